//! Limits of groups in the lab: fairlift's own, and the comparators above the queue.

use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::scenario::{self, run_all};

use crate::harness::SECOND;

/// Jobs with groups on a device without latency, one column; ten seconds unless they say otherwise.
fn run(scheduler: &str, jobs: &str, groups: &str) -> RunResult {
    let text = format!(
        "title = \"t\"\ndevice = \"null\"\nkernel = \"2.6.34\"\nschedulers = [\"{scheduler}\"]\njobs = '''\n[global]\n\
        direct=1\nsize=1g\ntime_based\nruntime=10\n{jobs}'''\n{groups}"
    );
    let scenario = scenario::parse(&text, "t.toml").unwrap_or_else(|e| panic!("{e}"));
    run_all(&scenario, 1, &()).unwrap().remove(0).remove(0)
}

fn job<'a>(run: &'a RunResult, name: &str) -> &'a JobResult {
    run.processes.iter().find(|p| p.name == name).unwrap()
}

fn mib(job: &JobResult) -> f64 {
    job.bytes() as f64 / f64::from(1 << 20)
}

const WRITER_AND_READER: &str = "[w]\nrw=randwrite\nbs=4k\ncgroup=w\n[r]\nrw=read\nbs=1m\ncgroup=r\n";

/// 100 writes of 4 KiB and 3 reads of 1 MiB a second, to half a percent or one request.
#[test]
fn max_is_kept_exactly_under_every_scheduler() {
    let groups = "[[group]]\npath = \"w\"\nmax = \"wiops=100\"\n[[group]]\npath = \"r\"\nmax = \"rbps=3M\"\n";
    for scheduler in ["noop", "deadline", "anticipatory", "cfq", "cfq@2.6.34"] {
        let run = run(scheduler, WRITER_AND_READER, groups);
        let writes = job(&run, "w").bytes() / 4096;
        assert!((995..=1005).contains(&writes), "{scheduler}: {writes} writes in 10 s");
        assert!((mib(job(&run, "r")) - 30.0).abs() <= 1.0, "{scheduler}: {} MiB read", mib(job(&run, "r")));
    }
}

/// A parent's limit holds for its children together; they share it by weight.
#[test]
fn children_share_their_parents_max_by_weight() {
    let jobs = "[a]\nrw=randwrite\nbs=4k\ncgroup=vm/a\n[b]\nrw=randwrite\nbs=4k\ncgroup=vm/b\n";
    let jobs = jobs.replace("bs=4k", "bs=4k\nioengine=libaio\niodepth=8");
    let groups = "[[group]]\npath = \"vm\"\nmax = \"wiops=400\"\n[[group]]\npath = \"vm/a\"\nweight = 100\n\
        [[group]]\npath = \"vm/b\"\nweight = 300\n";
    // Without group_idle: while the elevator waited for one of them, the other would have all its bios past the limit's door.
    let run = run("noop:group_idle=0", &jobs, groups);
    let [a, b] = ["a", "b"].map(|name| job(&run, name).bytes() / 4096);
    assert!((3980..=4040).contains(&(a + b)), "{a} + {b} in 10 s at 400 a second");
    assert!((2.9..=3.1).contains(&(b as f64 / a as f64)), "{a} : {b}");
}

/// Buffered writes that the flusher sends are their writer's group's, and are all written in the end.
#[test]
fn a_buffered_writer_is_limited_by_its_group() {
    let jobs = "[w]\ndirect=0\nrw=write\nbs=64k\nsize=8m\ntime_based=0\nruntime=60\nend_fsync=1\ncgroup=w\n";
    let run = run("deadline", jobs, "[[group]]\npath = \"w\"\nmax = \"wbps=1M\"\n");
    assert_eq!(run.group("w").unwrap().own.written_bytes, 8 << 20);
    let seconds = run.duration_ns as f64 / SECOND as f64;
    assert!((7.0..=9.0).contains(&seconds), "8 MiB at 1 MiB/s took {seconds} s");
}

/// The comparators' absolute limits: blk-throttle lets a slice's worth go ahead, io-throttle's token bucket a second's; its leaky
/// bucket sleeps in whole jiffies, so that who asks a moment after the tenth millisecond sleeps until the twenty-first.
#[test]
fn comparators_keep_absolute_limits() {
    let groups = "[[group]]\npath = \"w\"\nmax = \"wiops=100\"\niops_max = \"100\"\n\
        [[group]]\npath = \"r\"\nmax = \"rbps=3M\"\nbandwidth_max = \"3M\"\nrange_kb = \"0:3072\"\n";
    for (controller, writes, reads) in [
        ("blk-throttle", 1000..=1011, 29.0..=31.0),
        ("io-throttle", 909..=910, 28.0..=31.0),
        ("io-throttle:strategy=1", 1090..=1101, 31.0..=34.0),
    ] {
        let run = run(&format!("noop:groups=0+{controller}"), WRITER_AND_READER, groups);
        let (w, r) = (job(&run, "w").bytes() / 4096, mib(job(&run, "r")));
        assert!(writes.contains(&w), "{controller}: {w} writes in 10 s");
        assert!(reads.contains(&r), "{controller}: {r} MiB in 10 s");
    }
    let run = run("noop:groups=0+dm-ioband:policy=range-bw", WRITER_AND_READER, groups);
    let r = mib(job(&run, "r"));
    assert!((25.0..=34.0).contains(&r), "range-bw at 3 MiB/s: {r} MiB in 10 s");
}

/// Eight writes on their way on a device without latency, of which 100 a second are let go: nearly all wait nearly all the time,
/// whether the queue's own limit holds them or blk-throttle does, until the moment they are let go.
#[test]
fn what_limits_hold_is_counted() {
    let jobs = "[w]\nrw=randwrite\nbs=4k\nioengine=libaio\niodepth=8\ncgroup=w\n";
    let limit = "[[group]]\npath = \"w\"\nmax = \"wiops=100\"\n";
    for scheduler in ["noop", "noop:groups=0+blk-throttle"] {
        let run = self::run(scheduler, jobs, limit);
        let held = run.block.held_ns as f64 / run.duration_ns as f64;
        assert!((7.5..=8.0).contains(&held), "{scheduler}: {held} bios held on average");
    }
    assert_eq!(run("noop", jobs, "[[group]]\npath = \"w\"\n").block.held_ns, 0);
}

/// What dm-ioband shares: bios under `weight`, sectors under `weight-iosize`, whatever they cost.
#[test]
fn dm_ioband_shares_bios_or_sectors_by_weight() {
    let jobs = "[a]\nrw=randread\nbs=4k\nioengine=libaio\niodepth=256\ncgroup=a\n\
        [b]\nrw=randread\nbs=8k\nioengine=libaio\niodepth=256\ncgroup=b\n";
    let groups = "[[group]]\npath = \"a\"\nweight = 100\n[[group]]\npath = \"b\"\nweight = 200\n";
    let text = |policy: &str| format!("deadline:groups=0+dm-ioband:policy={policy}");
    let on_disk = |policy| {
        let text = format!(
            "title = \"t\"\ndevice = \"sata7200-2009\"\nkernel = \"2.6.31\"\nschedulers = [\"{}\"]\njobs = '''\n[global]\n\
            direct=1\nsize=1g\ntime_based\nruntime=20\n{jobs}'''\n{groups}",
            text(policy)
        );
        let scenario = scenario::parse(&text, "t.toml").unwrap();
        let run = run_all(&scenario, 1, &()).unwrap().remove(0).remove(0);
        ["a", "b"].map(|name| job(&run, name).bytes() as f64)
    };
    let [a, b] = on_disk("weight");
    assert!((1.6..=2.4).contains(&(b / 2.0 / a)), "bios {a} : {}", b / 2.0);
    let [a, b] = on_disk("weight-iosize");
    assert!((1.6..=2.4).contains(&(b / a)), "bytes {a} : {b}");
}

#[test]
fn wrong_limits_name_the_word() {
    let wrong = |group: &str| {
        let text = format!(
            "title = \"t\"\ndevice = \"null\"\nschedulers = [\"noop\"]\njobs = '''\n[w]\nrw=read\nsize=1m\n'''\n\
            [[group]]\npath = \"w\"\n{group}\n"
        );
        scenario::parse(&text, "t.toml").unwrap_err().to_string()
    };
    assert!(
        wrong("max = \"rbp=1M\"").contains("t.toml:11: max has no 'rbp'; did you mean 'rbps'?"),
        "{}",
        wrong("max = \"rbp=1M\"")
    );
    assert!(wrong("iops_max = \"0\"").contains("'0' is not a rate from 1"), "{}", wrong("iops_max = \"0\""));
    assert!(wrong("range_kb = \"5:1\"").contains("not MIN:MAX"), "{}", wrong("range_kb = \"5:1\""));
}

#[test]
fn wrong_controllers_name_the_word() {
    let wrong =
        |text: &str| fairlift_sim::scheduler::SchedulerSpec::parse(text, "2.6.31").unwrap_err().to_string();
    assert!(wrong("cfq+dm-ioban").contains("unknown controller 'dm-ioban'; did you mean 'dm-ioband'?"));
    assert!(wrong("cfq+blk-throttle:x=1").contains("(allowed: none)"));
    let written = "cfq@2.6.31:groups=0+dm-ioband:policy=weight-iosize:io_limit=256";
    assert_eq!(
        fairlift_sim::scheduler::SchedulerSpec::parse(written, "2.6.31").unwrap().to_string(),
        written
    );
}
