//! What comes out: table, CSV, report, the same bytes each time, files that are whole.

mod common;

use common::{Folder, SMALL};
use insta::assert_snapshot;

fn small() -> Folder {
    Folder::new().with("small.fio", SMALL)
}

const CASES: &str = r#"
title = "Readers"
device = "null"
schedulers = ["noop", "deadline:fifo_batch=4", "cfq:slice_idle=0:quantum=8:back_seek_penalty=3:slice_sync=55"]
jobs = """
[reader]
rw=read
size=256k
numjobs=${N}
"""
[[case]]
name = "one"
vars = { N = "1" }
[[case]]
name = "two"
vars = { N = "2" }
"#;

#[test]
fn table_of_two_jobs() {
    assert_snapshot!(
        small().run("compare --kernel 2.6.31 small.fio --device null --scheduler noop,deadline").ok()
    );
}

#[test]
fn a_table_has_a_block_per_case_and_fits_the_line() {
    let table = Folder::new().with("cases.toml", CASES).run("compare cases.toml").ok();
    assert!(table.contains("\ncase one -") && table.contains("\ncase two -"), "{table}");
    for line in table.lines() {
        assert!(line.chars().count() <= 100, "{line}");
        assert_eq!(line, line.trim_end(), "no blanks at the end");
    }
}

#[test]
fn tables_fit_the_line_on_every_device() {
    for device in ["sata7200-2009", "fc15k", "flash-kd", "cloud-gp3", "san-nvram"] {
        let table = small().run(&format!("compare --kernel 2.6.31 small.fio --device {device}")).ok();
        assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
        for word in ["sequential (2 processes", "mixed, reads", "mixed, writes", "mixed, fsync", "all jobs"] {
            assert!(table.contains(word), "{device}: no '{word}' in\n{table}");
        }
    }
}

#[test]
fn csv_has_a_row_per_direction() {
    let csv = small().run("compare --kernel 2.6.31 small.fio --device null --output-format csv").ok();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    let wanted = [("sequential", "read"), ("mixed", "read"), ("mixed", "write"), ("mixed", "sync")];
    let (job, direction) = (column(&rows, "job"), column(&rows, "direction"));
    assert_eq!(rows.len(), 1 + 3 * wanted.len());
    for (row, (name, way)) in rows[1..].iter().zip(wanted.iter().cycle()) {
        assert_eq!((row[job], row[direction]), (*name, *way));
    }
    // 2 processes read 1 MiB each.
    assert_eq!(rows[1][column(&rows, "bytes")], "2097152");
    assert_eq!(rows[1][column(&rows, "ios")], "512");
}

fn column(rows: &[Vec<&str>], name: &str) -> usize {
    rows[0].iter().position(|head| *head == name).unwrap_or_else(|| panic!("no column {name}"))
}

#[test]
fn the_report_reads_like_fios() {
    let report = small().run("run --kernel 2.6.31 small.fio --device null --scheduler noop").ok();
    assert_snapshot!(report);
}

#[test]
fn same_seed_same_bytes_whatever_the_threads() {
    let folder = small().with("cases.toml", CASES);
    for job in ["small.fio", "cases.toml", "small.fio --device cloud-gp3 --seed 7"] {
        let answer = |threads: u32| {
            let arguments = format!("compare --kernel 2.6.31 {job} --output-format json --threads {threads}");
            folder.run(&arguments).ok()
        };
        let first = answer(1);
        assert_eq!(first, answer(1), "twice");
        assert_eq!(first, answer(2), "two threads");
        assert_eq!(first, answer(5), "five threads");
    }
}

#[test]
fn another_seed_gives_other_times_on_a_device_that_draws_them() {
    let folder = small();
    let answer = |seed: u32| {
        let arguments =
            format!("compare --kernel 2.6.31 small.fio --device cloud-gp3 --output-format csv --seed {seed}");
        folder.run(&arguments).ok()
    };
    assert_ne!(answer(1).replace(",1,", ",2,"), answer(2).replace(",1,", ",2,"));
}

#[test]
fn runtime_ends_every_job() {
    let csv = small()
        .run("compare --kernel 2.6.31 small.fio --runtime 2500ms --scheduler noop --output-format csv")
        .ok();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let simulated: f64 = rows[1][column(&rows, "run_simulated_s")].parse().unwrap();
    assert!((2.5..2.8).contains(&simulated), "{simulated}");
}

#[test]
fn job_files_come_from_standard_input_and_the_command_line() {
    let folder = small();
    let rows = |text: String| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let file = rows(folder.run("compare --kernel 2.6.31 small.fio --device null").ok());
    let stdin = rows(folder.run_with_input("compare --kernel 2.6.31 - --device null", SMALL.as_bytes()).ok());
    assert_eq!(file, stdin);
    let table = folder
        .run("compare --kernel 2.6.31 --device null -- --name=r --rw=randread --bs=4k --size=1m --direct=1")
        .ok();
    assert!(table.contains("r (1 process: randread of 4 KiB, direct, depth 1)"), "{table}");
}

#[test]
fn variables_come_from_the_environment() {
    let folder = Folder::new().with("job.fio", "[r]\nrw=read\nbs=${BS}\nsize=64k\ndirect=1\n");
    let output =
        folder.command("compare --kernel 2.6.31 job.fio --device null").env("BS", "8k").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("read of 8 KiB"), "{output:?}");
}

#[test]
fn settings_reach_their_columns() {
    let table = small()
        .run("compare --kernel 2.6.31 small.fio --device null --scheduler noop,cfq,cfq:quantum=8 --set cfq.slice_idle=0")
        .ok();
    assert!(
        table.contains("  cfq:slice_idle=0 ") && table.contains("  cfq:quantum=8:slice_idle=0 "),
        "{table}"
    );
}

#[test]
fn a_file_is_written_whole_or_not_at_all() {
    let folder = small().with("out.csv", "before");
    folder.run("compare --kernel 2.6.31 small.fio --device null --output-format csv --output new.csv").ok();
    let direct = folder.run("compare --kernel 2.6.31 small.fio --device null --output-format csv").ok();
    assert_eq!(std::fs::read_to_string(folder.path().join("new.csv")).unwrap(), direct);
    folder.run("compare --kernel 2.6.31 small.fio --device nul --output out.csv").complaint();
    assert_eq!(std::fs::read_to_string(folder.path().join("out.csv")).unwrap(), "before");
    assert_eq!(folder.names(), ["new.csv", "out.csv", "small.fio"], "nothing is left behind");
}

#[cfg(unix)]
#[test]
fn links_and_devices_are_not_replaced_by_a_file() {
    let folder = small().with("target.csv", "before");
    std::os::unix::fs::symlink("target.csv", folder.path().join("link.csv")).unwrap();
    folder.run("compare --kernel 2.6.31 small.fio --device null --output-format csv --output link.csv").ok();
    assert!(folder.path().join("link.csv").is_symlink());
    assert!(std::fs::read_to_string(folder.path().join("target.csv")).unwrap().starts_with("case,"));
    folder.run("compare --kernel 2.6.31 small.fio --device null --output /dev/null").ok();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn there_are_no_escapes_in_a_pipe_and_no_progress() {
    let answer = small().run("compare --kernel 2.6.31 small.fio");
    assert_eq!((answer.stderr.as_str(), answer.stdout.contains('\u{1b}')), ("", false));
}

#[cfg(unix)]
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = small();
    let mut command = folder.command("compare --kernel 2.6.31 small.fio --device null --output-format json");
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{output:?}");
}

#[test]
fn help_has_examples_everywhere() {
    let folder = Folder::new();
    for command in [
        "",
        "compare --kernel 2.6.31",
        "run --kernel 2.6.31",
        "devices",
        "schedulers",
        "kernels",
        "reproduce",
        "serve",
        "ctl",
    ] {
        let help = folder.run(&format!("{command} --help")).ok();
        assert!(help.contains("Example"), "{command}: {help}");
    }
    assert!(folder.run("--version").ok().starts_with("fairlift 0."));
}

#[test]
fn the_catalogue_names_everything_and_fits_the_line() {
    let folder = Folder::new();
    let mut all = String::new();
    for list in
        ["devices", "schedulers", "kernels", "schedulers noop", "schedulers deadline", "schedulers cfq"]
    {
        all += &folder.run(list).ok();
    }
    for word in
        ["flash-kd", "deadline", "2.6.34", "no tunables", "writes_starved", "low_latency", "8 ms", "0 | 1"]
    {
        assert!(all.contains(word), "no '{word}' in\n{all}");
    }
    assert!(all.lines().all(|line| line.chars().count() <= 100), "{all}");
    let device = folder.run("devices sata7200-2009").ok();
    assert!(device.contains("GB") && device.contains("ms"), "{device}");
}

/// Two readers in groups of 1:3 on a disk.
const GROUPS: &str = "[global]\nrw=read\nbs=64k\ndirect=1\nsize=1g\nruntime=1\ntime_based\n[a]\ncgroup=vm1\n\
    [b]\ncgroup=vm2/db\n";

fn groups() -> Folder {
    Folder::new().with("groups.fio", GROUPS)
}

#[test]
fn table_of_groups() {
    let command = "compare --kernel 2.6.31 groups.fio --scheduler cfq,deadline,deadline:groups=0 --set group./vm2.weight=300";
    let table = groups().run(command).ok();
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert_snapshot!(table);
}

#[test]
fn programs_for_programs_have_the_groups_too() {
    let json = groups().run("compare --kernel 2.6.31 groups.fio --scheduler cfq --output-format json").ok();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let groups = json["runs"][0]["groups"].as_array().unwrap();
    let paths: Vec<&str> = groups.iter().map(|g| g["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/", "/vm1", "/vm2", "/vm2/db"]);
    let sectors = |i: usize, part: &str| groups[i][part]["read_sectors"].as_u64().unwrap();
    assert_eq!(sectors(0, "all"), sectors(1, "own") + sectors(3, "own"));
    assert_eq!((sectors(2, "own"), sectors(2, "all")), (0, sectors(3, "own")));
    let csv = groups_csv();
    let shares: Vec<&str> = csv.lines().filter(|line| line.contains("device_time_share")).collect();
    assert_eq!(shares.len(), 3, "all but the root have one: {csv}");
    let columns = csv.lines().map(|line| line.split(',').count());
    assert!(columns.min() == csv.lines().map(|line| line.split(',').count()).max(), "{csv}");
}

fn groups_csv() -> String {
    groups().run("compare --kernel 2.6.31 groups.fio --scheduler cfq --output-format csv").ok()
}

/// Without a kernel it is today's with its schedulers, and a word stands for a device.
#[test]
fn todays_schedulers_on_a_kind_of_device() {
    let folder = small();
    for (word, device) in
        [("nvme", "nvme-970evo"), ("sata-ssd", "sata-ssd-870"), ("hdd", "nearline4t"), ("cloud", "cloud-gp3")]
    {
        let table = folder.run(&format!("compare small.fio --device {word}")).ok();
        assert!(table.contains(&format!("device {device}")) && table.contains("Linux 6.12"), "{table}");
        for scheduler in ["none", "mq-deadline", "kyber"] {
            assert!(table.contains(scheduler), "{scheduler}: {table}");
        }
    }
    let default = folder.run("run small.fio --device nvme --output-format csv").ok();
    assert!(default.contains("mq-deadline"), "{default}");
}
