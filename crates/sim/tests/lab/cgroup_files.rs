//! Groups told by the files of cgroup v2, under a kernel of today: io.cost, io.latency, io.prio.class.

use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::scenario::{self, run_all};

/// Two jobs, `a` in group `/a` and `b` in `/b`, for five seconds.
fn text(kernel: &str, device: &str, scheduler: &str, jobs: [&str; 2], groups: &str) -> String {
    let [a, b] = jobs;
    format!(
        "title = \"t\"\ndevice = \"{device}\"\nkernel = \"{kernel}\"\nschedulers = [\"{scheduler}\"]\njobs = '''\n[global]\n\
         direct=1\nsize=4g\nnorandommap\nioengine=libaio\ntime_based\nruntime=5\nramp_time=1\n[a]\ncgroup=a\n{a}\n[b]\ncgroup=b\n{b}\n'''\n{groups}"
    )
}

fn try_run(text: &str) -> Result<RunResult, String> {
    let scenario = scenario::parse(text, "t.toml").map_err(|e| e.to_string())?;
    run_all(&scenario, 1, &()).map(|mut runs| runs.remove(0).remove(0)).map_err(|e| e.to_string())
}

fn run(device: &str, scheduler: &str, jobs: [&str; 2], groups: &str) -> RunResult {
    try_run(&text("6.12", device, scheduler, jobs, groups)).unwrap_or_else(|e| panic!("{e}"))
}

fn job<'a>(run: &'a RunResult, name: &str) -> &'a JobResult {
    run.processes.iter().find(|p| p.name == name).unwrap()
}

fn ratio(run: &RunResult) -> f64 {
    job(run, "b").iops() / job(run, "a").iops()
}

const DEEP_READER: &str = "rw=randread\nbs=4k\niodepth=64";
const SATA_SSD: &str = "sata-ssd-870";
/// The model that was measured on a drive of that kind, at three quarters of its rate: the modelled drive does 88 % of its random
/// reads, and what the drive itself cannot do nobody can share.
const COST: &str = "[[group]]\npath = \"/\"\nio.cost.model = \"Samsung_SSD_870\"\nio.cost.qos = \"enable=1 min=75 max=75\"\n";

fn weights(a: u32, b: u32) -> String {
    format!(
        "{COST}[[group]]\npath = \"a\"\nio.weight = {a}\n[[group]]\npath = \"b\"\nio.weight = \"default {b}\"\n"
    )
}

// ---- io.cost ----

/// What none and mq-deadline do not know by themselves: shares by weight on flash that is asked for more than it can do.
#[test]
fn io_cost_shares_flash_by_weight() {
    for scheduler in ["none", "mq-deadline"] {
        for (a, b) in [(100, 300), (100, 1000)] {
            let wanted = f64::from(b) / f64::from(a);
            let with = ratio(&run(SATA_SSD, scheduler, [DEEP_READER; 2], &weights(a, b)));
            assert!((with / wanted - 1.0).abs() < 0.03, "{scheduler} {a}:{b}: {with}");
            let without =
                ratio(&run(SATA_SSD, &format!("{scheduler}:groups=0"), [DEEP_READER; 2], &weights(a, b)));
            assert!((without - 1.0).abs() < 0.05, "{scheduler} {a}:{b} without: {without}");
        }
    }
}

/// A light group beside one that does little has what that one leaves.
#[test]
fn io_cost_leaves_nothing_unused() {
    let beside = |b: &str| job(&run(SATA_SSD, "none", [DEEP_READER, b], &weights(100, 1000)), "a").iops();
    let beside_little = beside("rw=randread\nbs=4k\nrate_iops=500");
    let beside_nothing = beside("rw=randread\nbs=4k\nrate_iops=1");
    assert!(
        beside_little > 0.97 * (beside_nothing - 500.0),
        "{beside_little} beside 500 a second, {beside_nothing} alone"
    );
}

/// Large sequential reads cost what the model says: shares are of the device's time, not of requests or bytes.
#[test]
fn io_cost_shares_time_not_requests() {
    let run = run(SATA_SSD, "none", [DEEP_READER, "rw=read\nbs=128k\niodepth=64"], &weights(100, 100));
    let [random, sequential] = ["a", "b"].map(|name| job(&run, name).iops());
    // Seconds of the device that each has used in a second, by the model.
    let random_s = random / 98_441.0;
    let sequential_s = sequential * (1.0 / 98_145.0 + 31.0 * 4096.0 / 571_729_370.0);
    assert!(
        (random_s / sequential_s - 1.0).abs() < 0.05,
        "{random_s} s of random, {sequential_s} s of sequential reads"
    );
}

// ---- io.latency ----

/// A reader with a target beside a deep neighbour: with io.latency it waits less, and the neighbour gets less.
#[test]
fn io_latency_keeps_a_target_at_the_neighbours_cost() {
    let p90_and_iops = |scheduler: &str, neighbour: &str, target_us: u32| {
        let groups = format!(
            "[[group]]\npath = \"a\"\nio.latency = \"target={target_us}\"\n[[group]]\npath = \"b\"\n"
        );
        let run = run(SATA_SSD, scheduler, ["rw=randread\nbs=4k\nrate_iops=500", neighbour], &groups);
        (job(&run, "a").transfers[0].clat.percentile_ns(90.0) as f64 / 1e6, job(&run, "b").iops())
    };
    // Reads of 128 KiB keep the drive busy with a few of them: the target is kept, and costs nothing.
    let large = "rw=randread\nbs=128k\niodepth=64";
    let (without_ms, without_iops) = p90_and_iops("none:groups=0", large, 2000);
    let (with_ms, with_iops) = p90_and_iops("none", large, 2000);
    assert!(without_ms > 4.0 && with_ms < 2.5, "p90 {without_ms} ms without, {with_ms} ms with");
    assert!(with_iops > 0.9 * without_iops, "{with_iops} of {without_iops}");
    // Of small ones the drive does the more the more it has: there the neighbour pays.
    let (without_ms, without_iops) = p90_and_iops("none:groups=0", DEEP_READER, 150);
    let (with_ms, with_iops) = p90_and_iops("none", DEEP_READER, 150);
    assert!(with_ms < 0.75 * without_ms, "p90 {without_ms} ms without, {with_ms} ms with");
    assert!(with_iops < 0.9 * without_iops, "{with_iops} of {without_iops}");
}

// ---- io.prio.class ----

const ONE_AT_A_TIME: &str = "null";

/// mq-deadline goes by a bio's class. bfq goes by its task's, which the file does not change.
#[test]
fn io_prio_class_reaches_mq_deadline() {
    let of = |scheduler: &str, class: &str| {
        let groups =
            format!("[[group]]\npath = \"a\"\n[[group]]\npath = \"b\"\nio.prio.class = \"{class}\"\n");
        let reader = "rw=randread\nbs=4k\niodepth=16";
        ratio(&run(SATA_SSD, &format!("{scheduler}:nr_requests=64"), [reader; 2], &groups))
    };
    assert!(of("mq-deadline", "idle") < 0.05, "{}", of("mq-deadline", "idle"));
    assert!(of("mq-deadline", "promote-to-rt") > 20.0, "{}", of("mq-deadline", "promote-to-rt"));
    assert_eq!(of("mq-deadline", "none-to-rt"), of("mq-deadline", "promote-to-rt"), "an older name");
    assert_eq!(of("mq-deadline", "restrict-to-be"), of("mq-deadline", "no-change"), "nobody is real time");
    assert_eq!(of("bfq", "idle"), of("bfq", "no-change"));
}

// ---- words ----

#[test]
fn old_kernels_refuse_them_by_name() {
    for file in ["io.latency = \"target=1000\"", "io.prio.class = \"idle\""] {
        let groups = format!("[[group]]\npath = \"a\"\n{file}\n[[group]]\npath = \"b\"\n");
        let refused =
            try_run(&text("2.6.34", ONE_AT_A_TIME, "deadline", [DEEP_READER; 2], &groups)).unwrap_err();
        let name = file.split(' ').next().unwrap();
        assert!(
            refused.contains(&format!("group '/a': Linux 2.6.34 has no {name}; 6.12 has it")),
            "{refused}"
        );
    }
    let refused =
        try_run(&text("2.6.34", ONE_AT_A_TIME, "deadline", [DEEP_READER; 2], &weights(1, 1))).unwrap_err();
    assert!(refused.contains("group '/': Linux 2.6.34 has no io.cost.model"), "{refused}");
}

#[test]
fn wrong_words_are_answered_with_line_and_word() {
    let wrong = |group: &str| {
        let groups = format!("[[group]]\npath = \"a\"\n{group}\n[[group]]\npath = \"b\"\n");
        try_run(&text("6.12", ONE_AT_A_TIME, "none", [DEEP_READER; 2], &groups)).unwrap_err()
    };
    for (group, message) in [
        ("io.latency = \"target=0\"", "io.latency 'target=0' is not a target"),
        ("io.latency = \"tagret=5\"", "io.latency has no 'tagret'"),
        ("io.prio.class = \"ideal\"", "io.prio.class 'ideal' is unknown; did you mean 'idle'?"),
        ("io.max = \"8:0 rbp=1\"", "max has no 'rbp'; did you mean 'rbps'?"),
        ("io.wait = 1", "unknown field `wait`"),
        ("io.weight = 100\nweight = 100", "weight and io.weight are one: give one of them"),
        ("io.weight = \"heavy\"", "io.weight 'heavy' is not a weight"),
        ("io.weight = 10001", "weight 10001 is not within 1 to 10000"),
        ("io.cost.qos = \"enable=1\"", "io.cost.model and io.cost.qos are the root's: path = \"/\""),
        ("[[group]]\npath = \"/\"\nio.latency = \"target=5\"", "the root has no io.latency"),
        ("[[group]]\npath = \"/\"\nio.cost.model = \"Samsung_SSD_870\"", "does nothing without io.cost.qos"),
    ] {
        assert!(wrong(group).contains(message), "{group}: {}", wrong(group));
    }
}
