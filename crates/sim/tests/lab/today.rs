//! The schedulers and settings of a kernel of today.

use fairlift_sim::device::Op;
use fairlift_sim::lab::LabError;
use fairlift_sim::result::RunResult;

use crate::harness::{Lab, MS, job, lab};

fn today(text: &str, scheduler: &str) -> Lab {
    lab(text).kernel("6.12").under(scheduler)
}

const DEEP: &str = "[global]\ndirect=1\nrw=randread\nsize=1g\nnorandommap\nioengine=libaio\ntime_based\nruntime=1\n[a]\niodepth=32\n";

fn iops(run: &RunResult) -> f64 {
    run.processes.iter().map(|p| p.iops()).sum()
}

// ---- what they cost ----

/// One job's own time for an I/O is 2 us; a scheduler comes on top of it.
#[test]
fn a_scheduler_costs_the_job_processor_time() {
    for (scheduler, us_per_io) in [("none", 2.0), ("mq-deadline", 2.49), ("kyber", 2.64), ("fl-noop", 2.61)] {
        let run = today(DEEP, scheduler).run();
        let expected = 1e6 / us_per_io;
        let off = iops(&run) / expected - 1.0;
        assert!(off.abs() < 0.01, "{scheduler}: {} of {expected}", iops(&run));
    }
}

/// Eight jobs have a processor each, but mq-deadline one lock: 1 / 0.49 us is the most it lets through. kyber has none.
#[test]
fn a_lock_is_the_limit_of_many_jobs() {
    let text = DEEP.replace("iodepth=32", "iodepth=32\nnumjobs=8").replace("runtime=1", "runtime=50ms");
    let of = |scheduler| iops(&today(&text, scheduler).on_latency(10_000).run());
    let (none, locked, kyber) = (of("none"), of("mq-deadline"), of("kyber"));
    assert!((locked / (1e9 / 490.0) - 1.0).abs() < 0.02, "{locked}");
    assert!(none > 1.5 * locked && kyber > 1.4 * locked, "{none} {kyber} {locked}");
    let free = of("mq-deadline:scheduler_cpu_ns=0");
    assert!((free / none - 1.0).abs() < 0.05, "{free} {none}");
}

#[test]
fn processor_time_can_be_set() {
    let run = today(DEEP, "none:cpu_per_io_ns=8000").run();
    assert!((iops(&run) / 125_000.0 - 1.0).abs() < 0.01, "{}", iops(&run));
}

// ---- tags ----

/// none has the device's own tags, a scheduler twice as many, at most 256, or what is written to nr_requests.
#[test]
fn tags_by_scheduler_and_setting() {
    let text = DEEP.replace("iodepth=32", "iodepth=512");
    let most = |scheduler: &str| today(&text, scheduler).on_latency(50 * MS).run_logged().log.in_flight_max;
    assert_eq!(most("none"), 512, "of 1024 tags");
    assert_eq!(most("none:nr_requests=64"), 64);
    assert_eq!(most("mq-deadline"), 256);
    assert_eq!(most("mq-deadline:nr_requests=400"), 400);
    assert_eq!(most("kyber:nr_requests=2"), 4, "the kernel's least");
}

#[test]
fn what_the_kernel_would_refuse_is_an_error() {
    let refused = |scheduler: &str| match today(DEEP, scheduler).on("flash-kd").try_run() {
        Err(LabError::Setting(message)) => message,
        other => panic!("{scheduler}: {other:?}"),
    };
    assert!(refused("none:nr_requests=1024").contains("at most 1023"));
    assert!(refused("mq-deadline:nr_requests=2049").contains("at most 2048"));
    assert!(refused("none:max_sectors_kb=2").contains("4 (a page) to 1280"));
    assert!(refused("none:max_sectors_kb=2000").contains("4 (a page) to 1280"));
}

// ---- requests ----

#[test]
fn max_sectors_kb_cuts_requests() {
    let text = "[a]\nrw=read\nbs=1m\nsize=4m\ndirect=1\n";
    let kib = |scheduler| today(text, scheduler).on_latency(MS).run_logged().log.kib(Op::Read);
    assert!(kib("none").iter().all(|kib| *kib == 1024));
    assert!(kib("none:max_sectors_kb=64").iter().all(|kib| *kib == 64));
}

/// `fair` asks for parts where large requests would block another task's; alone, and under the kernel's schedulers, they stay whole, and
/// each byte is read once either way.
#[test]
fn fair_has_large_requests_in_parts_beside_another_task() {
    let large = "[global]\ndirect=1\nioengine=libaio\nsize=512m\n[large]\nrw=randread\nbs=1m\niodepth=16\n";
    let small = "[small]\nrw=randread\nbs=4k\niodepth=64\nrate_iops=500\n";
    let sizes = |text: &str, scheduler| {
        let run = today(text, scheduler).on("flash-kd").run_logged();
        let mut kib: Vec<u32> = run.log.kib(Op::Read).into_iter().filter(|kib| *kib > 8).collect();
        kib.sort_unstable();
        (kib[kib.len() / 2], kib.iter().sum::<u32>().div_ceil(1024))
    };
    let beside = format!("{large}{small}");
    assert_eq!(sizes(&beside, "fair"), (64, 512));
    assert_eq!(sizes(&beside, "mq-deadline").0, 508);
    assert_eq!(sizes(large, "fair").0, 508);
}

/// A buffered sequential reader: one 128 KiB window after the other, or what is set; without readahead what it asks for.
#[test]
fn read_ahead_kb_sets_the_window() {
    let text = "[a]\nrw=read\nbs=4k\nsize=4m\nfadvise_hint=0\n";
    let largest = |scheduler| {
        let log = today(text, scheduler).on_latency(MS).run_logged().log;
        log.kib(Op::Read).into_iter().max()
    };
    assert_eq!(largest("none"), Some(128));
    assert_eq!(largest("none:read_ahead_kb=512"), Some(512));
    assert_eq!(largest("none:read_ahead_kb=0"), Some(4));
}

// ---- groups ----

const WEIGHTS: &str = "[global]\ndirect=1\nrw=randread\nsize=1g\nnorandommap\nioengine=libaio\niodepth=16\ntime_based\nruntime=2\n\
     [heavy]\ncgroup=heavy\ncgroup_weight=1000\n[light]\ncgroup=light\ncgroup_weight=100\n";

/// As in Linux they know no weights; this project's do.
#[test]
fn the_kernels_own_ignore_weights() {
    let ratio = |scheduler| {
        let run = today(WEIGHTS, scheduler).run_on_depth_1();
        job(&run, "heavy").iops() / job(&run, "light").iops()
    };
    for scheduler in ["none", "mq-deadline", "kyber"] {
        assert!((0.9..1.1).contains(&ratio(scheduler)), "{scheduler}: {}", ratio(scheduler));
    }
    assert!(ratio("fl-deadline") > 8.0, "{}", ratio("fl-deadline"));
}

// ---- priorities ----

/// A real-time reader has mq-deadline to itself; none and kyber do not look.
#[test]
fn mq_deadline_serves_classes_strictly() {
    let text = "[global]\ndirect=1\nrw=randread\nsize=1g\nnorandommap\nioengine=libaio\niodepth=8\ntime_based\nruntime=5\n\
                [rt]\nprioclass=1\n[be]\n";
    let part = |scheduler| {
        let run = today(text, scheduler).run_on_depth_1();
        job(&run, "be").iops() / iops(&run)
    };
    let strict = part("mq-deadline:nr_requests=64");
    assert!(strict < 0.01, "{strict}");
    assert!(part("mq-deadline:nr_requests=64:prio_aging_expire=0") > 0.4, "age counts at once");
    // Who waits for one of two tags has no class yet: that line is not the scheduler's.
    assert!((0.45..0.55).contains(&part("mq-deadline")));
    assert!((0.45..0.55).contains(&part("kyber")) && (0.45..0.55).contains(&part("none")));
}
