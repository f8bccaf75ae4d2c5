//! Programs in the lab: what they do to the block layer, what they report, and how they live beside fio jobs.

use fairlift_sim::device::DeviceSpec;
use fairlift_sim::kernel::{Memory, version};
use fairlift_sim::lab::{self, LabError, Setup};
use fairlift_sim::program::ProgramSpec;
use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::{self, Verdict};
use fairlift_sim::scheduler::SchedulerSpec;

fn run_on(device: &str, programs: &[ProgramSpec]) -> Result<RunResult, LabError> {
    // The flush of a 2.6 queue over a device without a write cache does not come back yet: that device gets the new kernel.
    let kernel = if device == "null" { "6.12" } else { "2.6.34" };
    let setup = Setup {
        scheduler: &SchedulerSpec::parse("deadline", "").unwrap(),
        device: &DeviceSpec::load(device).unwrap(),
        rules: version::find(kernel).unwrap(),
        memory: Memory::default(),
        filesystem: fairlift_sim::kernel::Filesystem::Raw,
        jobs: &[],
        programs,
        seed: 1,
        runtime_ns: None,
        fresh_files: false,
        explain: false,
        groups: &fairlift_sim::group::GroupTree::default(),
        warmup_ns: None,
    };
    lab::run(&setup, &mut |_| {})
}

fn program(command: &str) -> ProgramSpec {
    ProgramSpec::new("it", command).unwrap_or_else(|e| panic!("{e}"))
}

fn run(device: &str, command: &str) -> RunResult {
    run_on(device, &[program(command)]).unwrap()
}

fn metric(run: &RunResult, name: &str) -> f64 {
    run.program("it").unwrap().metric(name).unwrap_or_else(|| panic!("no metric {name}"))
}

fn written_bytes(run: &RunResult) -> u64 {
    run.block.sectors[1] * 512
}

// ---- fs_mark ------------------------------------------------------------------------------------------------------------------

#[test]
fn fs_mark_writes_and_syncs_every_file() {
    let run = run("null", "fs_mark -S 1 -D 100 -N 1000 -s 65536 -t 1 -w 4096");
    assert_eq!(metric(&run, "files"), 1000.0);
    assert_eq!((metric(&run, "writes"), metric(&run, "fsyncs")), (16_000.0, 1000.0));
    assert!(
        written_bytes(&run) >= 1000 * 65_536,
        "data, and what the file system adds: {}",
        written_bytes(&run)
    );
    assert!(metric(&run, "app_overhead_us") >= 10_000.0, "10 us for each name");
}

#[test]
fn each_sync_method_syncs_as_many_files_as_the_real_one() {
    // Counted in traces of fs_mark 3.3 with these options: fsync calls of both processes.
    for (method, fsyncs) in [(0, 0.0), (1, 16.0), (2, 2.0), (3, 16.0), (4, 16.0), (5, 16.0), (6, 16.0)] {
        let run = run("null", &format!("fs_mark -S {method} -D 2 -N 3 -n 8 -s 16384 -t 2 -w 4096 -d d"));
        assert_eq!(metric(&run, "fsyncs"), fsyncs, "-S {method}");
        assert_eq!(metric(&run, "writes"), 64.0);
    }
}

#[test]
fn fs_mark_counts_up_over_iterations_and_threads() {
    let run = run("null", "fs_mark -n 10 -t 3 -L 2 -s 4096 -v");
    let text = &run.program("it").unwrap().text;
    let counts: Vec<&str> =
        text.lines().filter(|l| !l.starts_with('#')).filter_map(|l| l.split_whitespace().nth(1)).collect();
    assert_eq!(counts, ["Count", "30", "60"], "{text}");
    assert!(metric(&run, "files_per_s_min") <= metric(&run, "files_per_s"));
}

// ---- iozone -------------------------------------------------------------------------------------------------------------------

#[test]
fn iozone_times_the_fsync_only_with_e() {
    let disk = "sata7200-2009";
    let (with, without) = (run(disk, "iozone -s 64 -e -i 0"), run(disk, "iozone -s 64 -i 0"));
    assert!(
        metric(&without, "write_kib_s") > 10.0 * metric(&with, "write_kib_s"),
        "{} and {} KiB/s",
        metric(&without, "write_kib_s"),
        metric(&with, "write_kib_s")
    );
    assert!(written_bytes(&with) >= 2 * 65_536, "written twice, and synced after each");
    let text = &with.program("it").unwrap().text;
    let row: Vec<u64> = text
        .lines()
        .find(|l| l.trim_start().starts_with("64 "))
        .unwrap()
        .split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect();
    assert_eq!(row[..2], [64, 4]);
    assert_eq!(row[2], metric(&with, "write_kib_s") as u64, "the table cuts the figure");
}

#[test]
fn iozone_reads_back_from_memory() {
    let run = run("sata7200-2009", "iozone -s 1m -r 64 -ec -i 0 -i 1");
    assert_eq!(run.block.requests[0], 0, "no read reaches the disk");
    assert!(metric(&run, "reread_kib_s") > metric(&run, "rewrite_kib_s"));
}

// ---- fsync-tester -------------------------------------------------------------------------------------------------------------

#[test]
fn fsync_tester_syncs_a_mebibyte_a_second() {
    let run = run("sata7200-2009", "fsync-tester -n 5");
    assert_eq!(metric(&run, "count"), 5.0);
    assert!(written_bytes(&run) >= 5 << 20);
    let (min, median, max) = (metric(&run, "min_s"), metric(&run, "median_s"), metric(&run, "max_s"));
    assert!(min > 0.0 && min <= median && median <= max);
    assert!(run.duration_ns >= 5_000_000_000, "five sleeps of a second");
    let text = &run.program("it").unwrap().text;
    assert_eq!(text.lines().count(), 5);
    assert!(text.lines().all(|l| l.starts_with("fsync time: ")), "{text}");
}

#[test]
fn fsync_tester_ends_after_a_minute() {
    let run = run("null", "fsync-tester");
    assert!((60_000_000_000..61_000_000_000).contains(&run.duration_ns), "{}", run.duration_ns);
}

#[test]
fn masons_variant_dirties_pages_beside() {
    let run = run("sata7200-2009", "fsync-tester --mason -n 2");
    assert_eq!(metric(&run, "count"), 2.0);
    assert!(written_bytes(&run) >= 2 << 20);
    assert!(run.program("it").unwrap().text.starts_with("write time "));
}

// ---- tiotest ------------------------------------------------------------------------------------------------------------------

#[test]
fn tiotests_arithmetic_is_the_posts() {
    // Reference 7.4: 32 threads, 4 KB blocks, 1000 random operations each. A tenth of the file size does not change them.
    let run = run("null", "tiotest -t 32 -f 8");
    let calls =
        |phase: &str| (metric(&run, &format!("{phase}_iops")) * metric(&run, &format!("{phase}_s"))).round();
    assert_eq!([calls("write"), calls("read")], [65_536.0, 65_536.0]);
    assert_eq!([calls("random_write"), calls("random_read")], [32_000.0, 32_000.0]);
    let text = &run.program("it").unwrap().text;
    for part in
        ["for 32 concurrent io threads", "| Write         256 MBs |", "| Random Read   125 MBs |", "| Total "]
    {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    assert_eq!(metric(&run, "write_over_2s_percent"), 0.0);
}

#[test]
fn tiotest_skips_hides_and_takes_turns() {
    let run = run("null", "tiotest -t 2 -f 1 -k 1 -k 3 -L -W -S");
    let text = &run.program("it").unwrap().text;
    assert!(!text.contains("Random") && !text.contains("latency"), "{text}");
    assert!(run.program("it").unwrap().metric("random_read_s").is_none());
    assert!(written_bytes(&run) >= 2 << 20);
}

#[test]
fn tiotest_reads_a_raw_device() {
    let run = run("sata7200-2009", "tiotest -R -d /dev/sdb -t 2 -f 2 -r 20");
    assert!(written_bytes(&run) >= 4 << 20);
    assert_eq!((metric(&run, "random_read_iops") * metric(&run, "random_read_s")).round(), 40.0);
}

// ---- dd and the shell -----------------------------------------------------------------------------------------------------------

#[test]
fn dd_copies_what_it_says() {
    let run = run("sata7200-2009", "dd if=/dev/zero of=f bs=1M count=32 conv=fsync");
    assert!(written_bytes(&run) >= 32 << 20);
    let text = &run.program("it").unwrap().text;
    assert!(
        text.starts_with("32+0 records in\n32+0 records out\n33554432 bytes (34 MB, 32 MiB) copied, "),
        "{text}"
    );
}

#[test]
fn dd_without_sync_leaves_it_in_memory() {
    let run = run("sata7200-2009", "dd if=/dev/zero of=f bs=1M count=8");
    assert!(written_bytes(&run) < 8 << 20, "writeback has not begun");
    assert!(metric(&run, "mib_s") > 200.0);
}

#[test]
fn a_script_runs_in_order_and_outlives_a_failure() {
    let script = "time sh -c \"dd if=/dev/zero of=f bs=4k count=3; rm nothing; dd if=f of=/dev/null bs=10k; sync; rm f\"";
    let run = run("null", script);
    let text = &run.program("it").unwrap().text;
    assert!(text.contains("rm: cannot remove nothing: No such file or directory"), "{text}");
    assert!(text.contains("1+1 records in"), "{text}");
    assert!(text.contains("\nreal\t0m0.00"), "{text}");
}

#[test]
fn a_program_that_fails_says_so() {
    let error = run_on("null", &[program("dd if=missing of=/dev/null")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "program 'it' failed: dd: failed to open missing: No such file or directory"
    );
}

// ---- scenarios ------------------------------------------------------------------------------------------------------------------

const MIXED: &str = r#"
title = "fs_mark and a reader beside the dd loop"
device = "sata7200-2009"
kernel = "2.6.34"
schedulers = ["deadline", "cfq"]
cache_mib = 128
jobs = """
[reader]
rw=read
bs=64k
direct=1
size=8m
"""

[[program]]
name = "load"
command = "while :; do dd if=/dev/zero of=bigfile bs=1M count=${MB}; sync; rm bigfile; done"
background = true
ioprio = "be/7"

[[program]]
name = "fs_mark"
command = "fs_mark -n 20 -s 65536 -w 4096 -d d"
start_s = 0.25

[[case]]
name = "16"
vars = { MB = "16" }

[[published]]
scheduler = "cfq"
job = "fs_mark"
metric = "files"
values = { 16 = 20 }
tolerance = 0.01
source = "this test"

[[published]]
scheduler = "cfq"
job = "reader"
metric = "iops"
values = { 16 = 1e9 }
tolerance = 0.01
source = "this test"
"#;

#[test]
fn programs_and_jobs_mix_and_the_background_stops() {
    let scenario = scenario::parse(MIXED, "mixed.toml").unwrap_or_else(|e| panic!("{e}"));
    let results = scenario::run_all(&scenario, 2, &()).unwrap();
    for run in &results[0] {
        let [load, mark] = &run.programs[..] else { panic!("two programs") };
        assert!(load.background && load.stopped && load.error.is_none(), "{load:?}");
        assert!(load.text.contains("16+0 records in"), "{}", load.text);
        assert!(!mark.stopped && mark.started_ns == 250_000_000);
        let reader = &run.jobs()[0];
        assert_eq!(reader.bytes(), 8 << 20);
        assert_eq!(
            run.duration_ns,
            mark.ended_ns.max(reader.ended_ns),
            "the run ends with the last in the foreground"
        );
    }
    let cells = |row: usize| scenario.published[row].cells(|_, _| results[0].get(1));
    assert_eq!(cells(0)[0].verdict, Verdict::Reproduced);
    assert_eq!(cells(1)[0].verdict, Verdict::NotReproduced);
}

#[test]
fn equal_runs_are_equal() {
    let once = || {
        let scenario = scenario::parse(MIXED, "mixed.toml").unwrap();
        let results = scenario::run_all(&scenario, 1, &()).unwrap();
        results[0]
            .iter()
            .map(|r| (r.programs.clone(), r.processes.clone(), r.duration_ns))
            .collect::<Vec<_>>()
    };
    assert!(once() == once());
}

#[test]
fn wrong_scenarios_name_line_and_word() {
    let wrong =
        |from: &str, to: &str| scenario::parse(&MIXED.replace(from, to), "s.toml").unwrap_err().to_string();
    let answers = [
        wrong("metric = \"files\"", "metric = \"file\""),
        wrong("metric = \"iops\"", "metric = \"files\""),
        wrong("job = \"fs_mark\"", "job = \"fsmark\""),
        wrong("-n 20", "-n none"),
        wrong("be/7", "be/8"),
        wrong("start_s = 0.25", "start_s = -1"),
        wrong("name = \"load\"", "name = \"reader\""),
        wrong("background", "backgruond"),
    ];
    insta::assert_snapshot!(answers.join("\n"));
    let nothing = "title = \"t\"\ndevice = \"null\"\nschedulers = [\"noop\"]\n";
    let only_background =
        format!("{nothing}[[program]]\nname = \"a\"\ncommand = \"sync\"\nbackground = true\n");
    for text in [nothing, &only_background] {
        assert!(scenario::parse(text, "s.toml").unwrap_err().to_string().contains("nothing runs"));
    }
}
