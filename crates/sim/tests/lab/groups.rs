//! Groups in a run: who is in which, whose a buffered write is, and what each group is said to have got.

use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::{self, run_all};

use crate::harness::{assert_near, job, lab};

const TWO_READERS: &str = "[global]\ndirect=1\nbs=64k\nsize=2g\nrw=read\nruntime=4\ntime_based\n\
    [a]\ncgroup=light\ncgroup_weight=200\n[b]\ncgroup=heavy\ncgroup_weight=600\nnumjobs=2\n";

fn share(run: &RunResult, group: &str) -> f64 {
    run.group(group).unwrap().share
}

#[test]
fn fios_groups_share_the_device_by_weight_under_every_scheduler() {
    for scheduler in ["noop", "deadline", "anticipatory", "cfq", "cfq@2.6.34"] {
        let run = lab(TWO_READERS).on("sata7200-2009").under(scheduler).run();
        assert_near(share(&run, "heavy"), 0.75, 0.04);
        assert_near(share(&run, "light"), 0.25, 0.12);
    }
}

/// Requests that are queued when the time is up are done by number, not by weight.
#[test]
fn what_groups_get_is_counted_up_to_the_end_of_the_runtime() {
    let job = |cgroup: &str, weight: u32| {
        format!(
            "[{cgroup}]\ncgroup={cgroup}\ncgroup_weight={weight}\nrw=randread\nbs=4k\nsize=2g\nioengine=libaio\niodepth=64\ndirect=1\n"
        )
    };
    let timed = "[global]\nramp_time=1\nruntime=2\ntime_based\n".to_owned();
    let run = lab(&(timed + &job("light", 100) + &job("heavy", 300))).on("sata7200-2009").under("noop").run();
    assert!(run.duration_ns > 3_200_000_000, "many requests are left: {} ns", run.duration_ns);
    for group in &run.groups {
        assert_eq!(group.counted_ns, 2_000_000_000, "{}", group.path);
    }
}

#[test]
fn a_scheduler_that_is_not_told_of_groups_shares_by_task() {
    let run = lab(TWO_READERS).on("sata7200-2009").under("cfq:groups=0").run();
    assert_near(share(&run, "heavy"), 2.0 / 3.0, 0.05);
    assert_eq!(run.groups.len(), 3, "it is counted all the same");
}

#[test]
fn what_the_groups_got_adds_up_to_all_there_was() {
    let jobs = "[global]\nsize=64m\n[r]\nrw=randread\ndirect=1\nnumber_ios=300\ncgroup=a/b\n[w]\nrw=write\nend_fsync=1\ncgroup=a\n\
        [t]\nrw=write\ndirect=1\n";
    for setting in ["", ":groups=0", ":tracking=off", ":tracking=inode"] {
        let run = lab(jobs).on("sata7200-2009").under(&format!("deadline{setting}")).run();
        let root = run.group("/").unwrap();
        assert_eq!(root.all.device_time_ns, run.block.busy_ns);
        assert_eq!(root.all.sectors, run.block.sectors);
        assert_eq!(root.all.merged, run.block.merged);
        let (a, b) = (run.group("a").unwrap(), run.group("/a/b").unwrap());
        assert_eq!(a.all.requests[0], b.own.requests[0], "only b reads");
        assert_eq!((a.own.dirtied_bytes, a.own.written_bytes), (64 << 20, 64 << 20));
        assert_eq!(root.own.dirtied_bytes, 0);
    }
}

/// A buffered write of 64 MiB that the flusher sends to the device: whose requests these are.
#[test]
fn a_buffered_write_is_its_submitters_its_pages_or_its_files() {
    let jobs = "[w]\nrw=write\nsize=64m\ncgroup=a\n[sleeper]\nrw=randread\nsize=64k\ndirect=1\nthinktime=1s\n\
        thinktime_blocks=1\ntime_based\nruntime=45\n";
    let written = |setting: &str| {
        let run =
            lab(jobs).on("sata7200-2009").under(&format!("deadline:tracking={setting}")).cache_mib(100).run();
        let group = run.group("a").unwrap();
        assert!(group.own.written_bytes >= 60 << 20, "{setting}: the pages are its own in any case");
        [run.group("/").unwrap().own.sectors[1] / 2048, group.own.sectors[1] / 2048]
    };
    // The writer of 2.6.31 writes some pages back itself when there are too many.
    let [flusher, writer] = written("off");
    assert!(flusher >= 20 && writer < 44 && flusher + writer == 64, "off: {flusher} and {writer} MiB");
    assert_eq!(written("page"), [0, 64]);
    assert_eq!(written("inode"), [0, 64]);
}

#[test]
fn programs_and_their_children_are_in_their_group() {
    let text = "title = \"t\"\ndevice = \"sata7200-2009\"\nschedulers = [\"cfq\"]\nkernel = \"2.6.34\"\n\
        [[program]]\nname = \"threads\"\ncommand = \"tiotest -t 4 -f 4 -b 4096\"\ncgroup = \"vm/one\"\n";
    let scenario = scenario::parse(text, "t.toml").unwrap();
    let run = &run_all(&scenario, 1, &()).unwrap()[0][0];
    let group = run.group("vm/one").unwrap();
    assert!(group.own.dirtied_bytes >= 16 << 20);
    assert_eq!(run.group("/").unwrap().own.dirtied_bytes, 0);
}

#[test]
fn the_warm_up_does_not_count() {
    let jobs = "[a]\nrw=read\ndirect=1\nbs=64k\nsize=1g\ncgroup=a\ntime_based\nruntime=2\nramp_time=3\n";
    let run = lab(jobs).on("sata7200-2009").run();
    let group = run.group("a").unwrap();
    assert_near(group.counted_ns as f64, 2e9, 0.01);
    assert_near(group.all.bytes() as f64, run.processes[0].bytes() as f64, 0.01);
    assert!(group.all.device_time_ns <= group.counted_ns);
}

/// Written pages wait at most as long as the flusher sleeps; a gap ends with the next bio and is never longer than the run.
#[test]
fn a_gap_is_time_without_requests_while_pages_wait() {
    let jobs =
        "[w]\nrw=write\nsize=4m\ncgroup=a\nnumber_ios=8\nthinktime=2s\nthinktime_blocks=4\nend_fsync=1\n";
    let run = lab(jobs).on_latency(1_000_000).run();
    let group = run.group("a").unwrap();
    // Four blocks, two seconds, four blocks, two seconds, fsync: nothing is written before.
    assert_near(group.own.gap_longest_ns as f64, 4e9, 0.01);
    assert_eq!(group.own.gap_longest_ns, group.own.gap_total_ns);
}

fn complaint(text: &str) -> String {
    let head =
        "title = \"t\"\ndevice = \"null\"\nschedulers = [\"noop\"]\njobs = \"[a]\\nrw=read\\nsize=1m\\n\"\n";
    scenario::parse(&format!("{head}{text}"), "t.toml").unwrap_err().to_string()
}

#[test]
fn wrong_groups_are_refused_with_their_line() {
    let group = |rest: &str| complaint(&format!("[[group]]\npath = \"vm1\"\n{rest}"));
    assert_eq!(group("weight = 0\n"), "t.toml:5: group 'vm1': weight 0 is not within 1 to 10000");
    let class = group("class = \"bee\"\n");
    assert!(
        class.starts_with("t.toml:7: unknown variant `bee`") && class.contains("did you mean `be`"),
        "{class}"
    );
    let twice = group("[[group]]\npath = \"/vm1\"\n");
    assert_eq!(twice, "t.toml:7: group 'vm1' is described twice");
    let program = "[[program]]\nname = \"x\"\ncommand = \"sync\"\ncgroup = \"vm2\"\n";
    assert_eq!(group(program), "t.toml:10: there is no group '/vm2'; did you mean '/vm1'? (groups: /, /vm1)");
}

#[test]
fn published_figures_may_be_ratios_of_groups_jobs_and_cases() {
    let row = |rest: &str| {
        complaint(&format!(
            "[[group]]\npath = \"a\"\n[[published]]\nscheduler = \"noop\"\ntolerance = 0.1\nvalues = {{ \"\" = 2 }}\n{rest}"
        ))
    };
    assert!(row("metric = \"bandwidth\"\n").contains("either of a job (or program) or of a group"));
    assert!(row("metric = \"bandwidth\"\ngroup = \"/b\"\n").contains("there is no group '/b'"));
    assert!(row("metric = \"bandwith\"\ngroup = \"/a\"\n").contains("did you mean 'bandwidth'"));
    assert!(row("metric = \"iops\"\ngroup = \"/a\"\nover_job = \"a\"\n").contains("it is over_group"));
    assert!(row("metric = \"iops\"\njob = \"a\"\nover_job = \"c\"\n").contains("unknown job 'c'"));
    assert!(row("metric = \"iops\"\njob = \"a\"\nover_case = \"c\"\n").contains("unknown case 'c'"));
}

#[test]
fn a_ratio_is_taken_within_the_run() {
    let text = "title = \"t\"\ndevice = \"sata7200-2009\"\nschedulers = [\"deadline\"]\nruntime_s = 4\njobs = \"\"\"\n\
        [global]\ndirect=1\nbs=64k\nsize=2g\nrw=read\n[a]\ncgroup=a\n[b]\ncgroup=b\n\"\"\"\n\
        [[group]]\npath = \"a\"\nweight = 300\n[[group]]\npath = \"b\"\n\
        [[published]]\nscheduler = \"deadline\"\ngroup = \"a\"\nover_group = \"b\"\nmetric = \"device_time\"\n\
        values = { \"\" = 3 }\ntolerance = 0.05\n\
        [[published]]\nscheduler = \"deadline\"\njob = \"a\"\nover_job = \"b\"\nmetric = \"device_time\"\n\
        values = { \"\" = 3 }\ntolerance = 0.05\n";
    let scenario = scenario::parse(text, "t.toml").unwrap();
    let runs = run_all(&scenario, 1, &()).unwrap();
    let run = &runs[0][0];
    let of_group = |group: &str| run.group(group).unwrap().all.device_time_ns as f64;
    // Until it is done with what was queued at the end of its time.
    let of_job = |name: &str| job(run, name).device_time_ns as f64;
    let ratios = [of_group("a") / of_group("b"), of_job("a") / of_job("b")];
    for (row, ratio) in scenario.published.iter().zip(ratios) {
        let cells = row.cells(|_, _| Some(run));
        assert_near(cells[0].ours, ratio, 1e-6);
        assert!(row.label().ends_with("over that of b"), "{}", row.label());
    }
}
