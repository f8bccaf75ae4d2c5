//! Writeback by groups' weights: what buffered writers in groups get with it, and without it do not.

use fairlift_sim::result::RunResult;

use crate::harness::{MS, assert_near, lab};

/// Buffered writers in groups of these weights for 30 s, after 15 s of warm-up.
fn writers(weights: &[u32], scheduler: &str) -> RunResult {
    let mut jobs = "[global]\nrw=write\nbs=1m\nsize=40g\ntime_based\nramp_time=15\nruntime=30\n".to_owned();
    for weight in weights {
        jobs += &format!("[w{weight}]\ncgroup=w{weight}\ncgroup_weight={weight}\n");
    }
    lab(&jobs).on("sata7200-2009").under(scheduler).run()
}

/// Bytes that one group made dirty, and that reached the device, over those of the other.
fn ratios(run: &RunResult, one: &str, other: &str) -> [f64; 2] {
    let (one, other) = (&run.group(one).unwrap().own, &run.group(other).unwrap().own);
    [
        one.dirtied_bytes as f64 / other.dirtied_bytes as f64,
        one.written_bytes as f64 / other.written_bytes as f64,
    ]
}

#[test]
fn two_writers_get_two_to_one() {
    // Under an elevator that is not told of groups the flusher's quotas alone do it.
    for scheduler in ["cfq:fair_writeback=1", "deadline:fair_writeback=1", "noop:groups=0:fair_writeback=1"] {
        let run = writers(&[1000, 500], scheduler);
        for ratio in ratios(&run, "w1000", "w500") {
            assert!((1.8..=2.2).contains(&ratio), "{scheduler}: {ratio}");
        }
        let gap_ns = run.group("w1000").unwrap().own.gap_longest_ns;
        assert!(gap_ns <= 50 * MS, "{scheduler}: {gap_ns}");
    }
}

#[test]
fn without_it_weights_do_nothing_for_buffered_writers() {
    let run = writers(&[1000, 500], "cfq");
    for ratio in ratios(&run, "w1000", "w500") {
        assert!((0.9..=1.1).contains(&ratio), "{ratio}");
    }
}

#[test]
fn three_writers_get_one_to_three_to_ten() {
    for scheduler in ["deadline:fair_writeback=1", "noop:groups=0:fair_writeback=1"] {
        let run = writers(&[100, 300, 1000], scheduler);
        let time = |group: &str| run.group(group).unwrap().own.device_time_ns as f64;
        assert_near(time("w300") / time("w100"), 3.0, 0.1);
        assert_near(time("w1000") / time("w100"), 10.0, 0.1);
    }
}

#[test]
fn a_single_writer_loses_nothing() {
    let free = writers(&[100], "cfq");
    for scheduler in ["cfq:fair_writeback=1", "deadline:fair_writeback=1"] {
        let paced = writers(&[100], scheduler);
        let written = |run: &RunResult| run.group("w100").unwrap().own.written_bytes as f64;
        assert!(
            written(&paced) >= 0.97 * written(&free),
            "{scheduler}: {} {}",
            written(&paced),
            written(&free)
        );
    }
}

#[test]
fn a_writer_and_a_direct_reader_share_the_devices_time() {
    let jobs = "[global]\nsize=40g\ntime_based\nramp_time=10\nruntime=30\n[w]\nrw=write\nbs=1m\ncgroup=w\n\
        [r]\nrw=read\nbs=64k\ndirect=1\ncgroup=r\n";
    let share = |scheduler| lab(jobs).on("sata7200-2009").under(scheduler).run().group("w").unwrap().share;
    assert_near(share("deadline:fair_writeback=1"), 0.5, 0.05);
    assert_near(share("cfq:fairness=2:fair_writeback=1"), 0.5, 0.05);
    assert!(share("cfq") > 0.6, "{}", share("cfq"));
}

/// Nothing stays behind: what was written is on the device after an fsync, also of two writers in one file.
#[test]
fn it_ends_with_everything_written() {
    let jobs = "[global]\nfilename=one\nrw=randwrite\nbs=4k\nsize=64m\nend_fsync=1\n[a]\ncgroup=a\ncgroup_weight=900\n[b]\ncgroup=b\n";
    for kernel in ["2.6.31", "2.6.34", "6.12"] {
        for tracking in ["off", "page", "inode"] {
            let scheduler = format!("deadline:tracking={tracking}:fair_writeback=1");
            let run = lab(jobs).on("sata7200-2009").kernel(kernel).under(&scheduler).cache_mib(64).run();
            let root = run.group("/").unwrap();
            assert_eq!(root.all.dirtied_bytes, root.all.written_bytes, "{kernel} {tracking}");
            assert!(root.all.written_bytes >= 64 << 20);
        }
    }
}
