//! Writeback by cgroup (Linux since 4.2): a flusher and dirty limits for each group, and the module's tags for them.

use fairlift_sim::result::RunResult;

use crate::harness::{assert_near, lab};

/// Buffered writers in groups of these weights for 10 s, after 5 s of warm-up, on a device that serves one request at a time.
fn writers(weights: &[u32], scheduler: &str) -> RunResult {
    let mut jobs = "[global]\nrw=write\nbs=1m\nsize=1g\ntime_based\nramp_time=5\nruntime=10\n".to_owned();
    for weight in weights {
        jobs += &format!("[w{weight}]\ncgroup=w{weight}\ncgroup_weight={weight}\n");
    }
    lab(&jobs).kernel("6.12").cache_mib(400).under(scheduler).run_on_depth_1()
}

fn written(run: &RunResult, group: &str) -> f64 {
    run.group(group).unwrap().own.written_bytes as f64
}

/// The module shares out the tags: weights reach buffered writes without a setting, under each of its elevators.
#[test]
fn under_the_module_two_writers_get_two_to_one() {
    for scheduler in ["fl-noop", "fl-deadline", "fl-as", "fl-cfq", "fair", "fl-deadline:nr_requests=4"] {
        let run = writers(&[200, 100], scheduler);
        let ratio = written(&run, "w200") / written(&run, "w100");
        assert!((1.8..=2.2).contains(&ratio), "{scheduler}: {ratio}");
    }
}

/// Three of weights 1:2:4 get their due: none is starved for the tags of the others.
#[test]
fn under_the_module_three_writers_get_their_shares() {
    let run = writers(&[100, 200, 400], "fl-deadline");
    assert_near(written(&run, "w200") / written(&run, "w100"), 2.0, 0.15);
    assert_near(written(&run, "w400") / written(&run, "w100"), 4.0, 0.15);
}

/// Without it weights do nothing for them: flushers take turns at the tags.
#[test]
fn under_the_kernels_own_they_get_the_same() {
    for scheduler in ["mq-deadline", "none", "fl-deadline:groups=0"] {
        let run = writers(&[200, 100], scheduler);
        assert_near(written(&run, "w200") / written(&run, "w100"), 1.0, 0.1);
    }
}

/// With `tracking=page` there is one flusher for all, as before 4.2, and the weights do nothing for buffered writers.
#[test]
fn with_one_flusher_for_all_they_get_the_same() {
    let run = writers(&[200, 100], "fl-deadline:tracking=page");
    assert_near(written(&run, "w200") / written(&run, "w100"), 1.0, 0.15);
}

/// A writer alone in its group has all the tags and loses nothing.
#[test]
fn a_writer_alone_loses_nothing() {
    let [module, none] =
        ["fl-deadline", "none"].map(|scheduler| written(&writers(&[100], scheduler), "w100"));
    assert!(module >= 0.97 * none, "{module} {none}");
}

/// The end of the run finds everything written that was dirtied, also where one group writes another's file.
#[test]
fn it_ends_with_everything_written() {
    let jobs = "[global]\nfilename=one\nrw=randwrite\nbs=4k\nsize=64m\nend_fsync=1\n[a]\ncgroup=a\ncgroup_weight=900\n[b]\ncgroup=b\n";
    for scheduler in ["fl-deadline", "fl-cfq", "fair", "none", "bfq"] {
        let run = lab(jobs).on("sata7200-2009").kernel("6.12").under(scheduler).cache_mib(64).run();
        let root = run.group("/").unwrap();
        assert_eq!(root.all.dirtied_bytes, root.all.written_bytes, "{scheduler}");
        assert!(root.all.written_bytes >= 64 << 20);
    }
}
