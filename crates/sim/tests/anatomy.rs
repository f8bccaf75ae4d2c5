//! Why things take time: what is told adds up, is right where the answer is known, and changes nothing.

use std::collections::BTreeMap;

use fairlift_sim::anatomy::{Anatomy, Call, Cause, Step, Whom};
use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::{parse, run_all};

const MARK: &str = "fs_mark -S 1 -D 100 -N 1000 -n 200 -s 65536 -t 1 -w 4096";

/// Runs under these schedulers, with the recorder on or off.
fn runs(device: &str, kernel: &str, schedulers: &[&str], rest: &str, explain: bool) -> Vec<RunResult> {
    let schedulers = schedulers.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(",");
    let text = format!(
        "title = \"x\"\ndevice = \"{device}\"\nkernel = \"{kernel}\"\nschedulers = [{schedulers}]\n{rest}"
    );
    let mut scenario = parse(&text, "test.toml").unwrap();
    scenario.explain = explain;
    run_all(&scenario, 1, &()).unwrap().remove(0)
}

fn mark(schedulers: &[&str]) -> Vec<RunResult> {
    let rest = format!("filesystem = \"ext4\"\n[[program]]\nname = \"fs_mark\"\ncommand = \"{MARK}\"\n");
    runs("san-nvram", "2.6.34", schedulers, &rest, true)
}

/// Loads with everything in them: readers, a dirtier in the background, several threads in fsync, barriers, O_SYNC.
const MIXED: &str = r#"
filesystem = "ext4"
cache_mib = 64
jobs = """
[reader]
rw=read
bs=64k
size=64m
direct=1
numjobs=2
[random]
rw=randwrite
size=16m
ioengine=libaio
iodepth=32
direct=1
io_size=2m
[syncer]
rw=write
size=1m
fsync=8
[through]
rw=write
size=256k
sync=1
"""
[[program]]
name = "fs_mark"
command = "fs_mark -S 1 -n 20 -s 16384 -t 3"
[[program]]
name = "sync"
command = "sleep 0.1; sync"
[[program]]
name = "dirtier"
command = "while :; do dd if=/dev/zero of=big bs=1M count=64; sync; rm big; done"
background = true
"#;

fn explained(run: &RunResult) -> &Anatomy {
    run.explanation.as_ref().unwrap()
}

/// Everything that is told of a run leaves no gap, does not overlap and adds up to the nanosecond.
fn assert_adds_up(run: &RunResult) {
    let anatomy = explained(run);
    for task in &anatomy.tasks {
        let sum: u64 = task.request_causes.iter().map(|s| s.ns).sum();
        assert_eq!(sum, task.request_ns, "{}: requests of {}", run.scheduler, task.name);
    }
    for story in &anatomy.slowest {
        let spans = story.spans.iter().map(|s| (s.start_ns, s.end_ns));
        assert_tiles(spans, story.asked_ns, story.done_ns, &format!("{}: {story:?}", run.scheduler));
    }
    assert!(anatomy.slowest.is_sorted_by_key(|s| std::cmp::Reverse(s.took_ns())));
    for calls in &anatomy.calls {
        let sum: u64 = calls.parts.iter().map(|p| p.ns).sum();
        assert_eq!(sum, calls.total_ns, "{}: {:?} of {}", run.scheduler, calls.call, calls.name);
        for story in &calls.slowest {
            let parts = story.parts.iter().map(|p| (p.start_ns, p.end_ns));
            assert_tiles(parts, story.start_ns, story.end_ns, &format!("{}: {story:?}", run.scheduler));
        }
    }
    let device: u64 = anatomy.device.causes.iter().map(|s| s.ns).sum();
    assert!(device <= anatomy.duration_ns);
}

#[track_caller]
fn assert_tiles(stretches: impl Iterator<Item = (u64, u64)>, start: u64, end: u64, what: &str) {
    let mut at = start;
    for (from, to) in stretches {
        assert!(from == at && to > from, "gap or overlap at {at} in {what}");
        at = to;
    }
    assert_eq!(at, end, "{what}");
}

#[test]
fn an_fsync_of_fs_mark_under_cfq_is_eight_ms_of_idling_for_fs_mark_itself() {
    let runs = mark(&["cfq@2.6.34", "deadline"]);
    let [cfq, deadline] = [0, 1].map(|i| explained(&runs[i]).calls[0].clone());
    assert_eq!((cfq.name.as_str(), cfq.call, cfq.count), ("fs_mark", Call::Fsync, 200));
    let each_ms = |ns: u64| ns as f64 / 1e6 / 200.0;
    assert!((8.0..10.0).contains(&each_ms(cfq.total_ns)), "{}", each_ms(cfq.total_ns));
    let idling = |p: &&fairlift_sim::anatomy::CallPart| matches!(p.cause, Cause::Idling(_));
    let largest = cfq.parts.iter().max_by_key(|p| p.ns).unwrap();
    assert!(matches!(largest.cause, Cause::Idling(_)), "{largest:?}");
    assert_eq!(
        (largest.step, &largest.by, &largest.whom),
        (Step::JournalBody, &Whom::Named("jbd2".to_owned()), &Whom::Caller)
    );
    assert!(each_ms(largest.ns) > 7.0, "{}", each_ms(largest.ns));
    // Deadline's fsync is the same but for that: same round trips, and the difference is the idling.
    assert_eq!(deadline.parts.iter().filter(idling).count(), 0);
    let without: u64 = cfq.total_ns - cfq.parts.iter().filter(idling).map(|p| p.ns).sum::<u64>();
    assert!(each_ms(without.abs_diff(deadline.total_ns)) < 0.1);
    // Data, journal body, commit block; the first commit also writes the journal's superblock.
    assert_eq!((cfq.round_trips, deadline.round_trips), (601, 601));
}

#[test]
fn the_device_stands_idle_for_whom_cfq_says() {
    let runs = mark(&["cfq@2.6.34"]);
    let anatomy = explained(&runs[0]);
    let mut idled: BTreeMap<&str, u64> = BTreeMap::new();
    for share in &anatomy.device.causes {
        if let Cause::Idling(task) = share.cause {
            *idled.entry(anatomy.name(task)).or_default() += share.ns;
        }
    }
    assert!(idled["fs_mark"] > anatomy.duration_ns * 8 / 10, "{idled:?} of {}", anatomy.duration_ns);
}

#[test]
fn what_is_told_adds_up_under_every_scheduler_and_kernel() {
    let kernels = [
        ("2.6.31", &["noop", "deadline", "anticipatory", "cfq"][..]),
        ("2.6.34", &["cfq@2.6.34", "deadline"][..]),
        ("6.12", &["none", "mq-deadline", "kyber", "fl-noop", "fl-deadline"][..]),
    ];
    for (kernel, schedulers) in kernels {
        for device in ["sata7200-2009", "flash-kd"] {
            for run in &runs(device, kernel, schedulers, MIXED, true) {
                assert_adds_up(run);
                let kinds: Vec<Call> = explained(run).calls.iter().map(|c| c.call).collect();
                for call in [Call::Fsync, Call::SyncWrite, Call::Sync] {
                    assert!(kinds.contains(&call), "{kernel}: {kinds:?}");
                }
            }
        }
    }
}

#[test]
fn looking_changes_nothing() {
    let told = |run: &RunResult| {
        let times: Vec<_> = run.processes.iter().map(|p| (p.ended_ns, p.bytes(), p.device_time_ns)).collect();
        (
            run.duration_ns,
            times,
            run.programs.clone(),
            run.block.requests,
            run.block.ticks_ns,
            run.block.queue_ns,
        )
    };
    let schedulers = ["cfq", "anticipatory"];
    let with = runs("sata7200-2009", "2.6.31", &schedulers, MIXED, true);
    let without = runs("sata7200-2009", "2.6.31", &schedulers, MIXED, false);
    assert_eq!(with.iter().map(told).collect::<Vec<_>>(), without.iter().map(told).collect::<Vec<_>>());
    assert!(without.iter().all(|run| run.explanation.is_none()));
}

#[test]
fn a_reader_behind_a_deep_writer_is_told_so() {
    let jobs = "jobs = \"\"\"\n[global]\ndirect=1\nsize=64m\nruntime=2\ntime_based=1\n[writer]\nrw=randwrite\nioengine=libaio\niodepth=64\n[reader]\nrw=randread\n\"\"\"\n";
    let runs = runs("sata7200-2009", "2.6.31", &["noop"], jobs, true);
    assert_adds_up(&runs[0]);
    let anatomy = explained(&runs[0]);
    let works = |c: &Cause| matches!(c, Cause::Behind(_) | Cause::Flush);
    let busy: u64 = anatomy.device.causes.iter().filter(|s| works(&s.cause)).map(|s| s.ns).sum();
    assert_eq!(busy, runs[0].block.busy_ns, "noop never waits: the device is busy or has nothing to do");
    let reader = anatomy.tasks.iter().find(|t| t.name == "reader").unwrap();
    let of = |wanted: fn(&Cause) -> bool| {
        reader.request_causes.iter().filter(|s| wanted(&s.cause)).map(|s| s.ns).sum::<u64>()
    };
    let queued = of(|c| matches!(c, Cause::Behind(_)));
    let inside = of(|c| matches!(c, Cause::Inside(_)));
    let served = of(|c| matches!(c, Cause::Device));
    assert!(queued > 0 && inside > 0 && served > 0, "{reader:?}");
    assert!(queued + inside + served > reader.request_ns * 9 / 10, "{reader:?}");
    let inside_behind = reader
        .request_causes
        .iter()
        .filter(|s| matches!(s.cause, Cause::Inside(t) if anatomy.name(t) == "writer"));
    assert!(inside_behind.map(|s| s.ns).sum::<u64>() > inside * 9 / 10, "{reader:?}");
    // The drive holds 31 requests and serves one: a writer's waits there behind the other ones.
    let writer = anatomy.tasks.iter().find(|t| t.name == "writer").unwrap();
    let of = |wanted: fn(&Cause) -> bool| {
        writer.request_causes.iter().filter(|s| wanted(&s.cause)).map(|s| s.ns).sum::<u64>()
    };
    let (inside, served) = (of(|c| matches!(c, Cause::Inside(_))), of(|c| matches!(c, Cause::Device)));
    assert!(inside > 10 * served && served > 0, "{writer:?}");
    let behind_writer = reader
        .request_causes
        .iter()
        .filter(|s| matches!(s.cause, Cause::Behind(t) if anatomy.name(t) == "writer"));
    assert!(behind_writer.map(|s| s.ns).sum::<u64>() > queued / 2);
}
