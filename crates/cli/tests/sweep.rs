//! `fairlift sweep`: rows that their own command repeats, kills that lose nothing, the same bytes on any number of threads.

mod common;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use common::Folder;

const JOBS: &str = "[global]\ndirect=1\nioengine=libaio\nsize=64m\ntime_based=1\nruntime=100ms\n\
[db]\nrw=randread\nbs=4k\niodepth=2\n[batch]\nrw=write\nbs=128k\niodepth=8\n";

/// Two devices, three schedulers of which one has a tunable, two seeds: 2 x (2 + 2) x 2 runs.
const GRID: &str = r#"title = "Small"
goal = "p99 of db < 20 ms, then bandwidth of batch"
seeds = 2
[fixed]
jobs = "small.fio"
runtime = "50ms"
[over]
device = ["nvme", "sata-ssd"]
[vary]
"mq-deadline.fifo_batch" = { from = 1, to = 16, scale = "log", steps = 2 }
scheduler = ["none", "mq-deadline", "kyber"]
"#;

fn folder(sweep: &str) -> Folder {
    Folder::new().with("small.fio", JOBS).with("small.toml", sweep)
}

fn read(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.path().join("small-results").join(name)).unwrap()
}

/// The rows of results.csv, by head.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let split = |line: &str| {
        let (mut cells, mut quoted) = (vec![String::new()], false);
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                c => cells.last_mut().unwrap().push(c),
            }
        }
        cells
    };
    let mut lines = text.lines();
    let head = split(lines.next().unwrap());
    lines.map(|line| head.iter().cloned().zip(split(line)).collect()).collect()
}

#[test]
fn a_grid_runs_what_differs_and_each_row_has_the_command_that_repeats_it() {
    let folder = folder(GRID);
    let printed = folder.run("sweep small.toml").ok();
    assert!(printed.contains("16 runs: small-results/page.html"), "{printed}");
    let rows = rows(&read(&folder, "results.csv"));
    assert_eq!(rows.len(), 16);
    let of = |device: &str, scheduler: &str| {
        rows.iter().filter(|row| row["device"] == device && row["scheduler"] == scheduler).count()
    };
    assert_eq!([of("nvme", "none"), of("nvme", "mq-deadline"), of("sata-ssd", "kyber")], [2, 4, 2]);
    for row in rows.iter().step_by(5) {
        let words: Vec<&str> = row["command"].split(' ').skip(1).collect();
        let again = folder.run_words("", &[&words[..], &["--output-format", "csv"]].concat()).ok();
        let again = by_job(&again);
        for job in ["db", "batch"] {
            let figure = |name: &str| row[&format!("{job}.{name}")].parse::<f64>().unwrap();
            let theirs = |name: &str| again[job][name].parse::<f64>().unwrap();
            assert_eq!(figure("p99_ns"), theirs("clat_p99_ns"), "{}", row["command"]);
            assert_eq!(figure("max_ns"), theirs("clat_max_ns"), "{}", row["command"]);
            assert!((figure("bandwidth_bytes_per_s") - theirs("bandwidth_bytes_per_s")).abs() <= 0.05);
        }
    }
}

/// The rows of `run --output-format csv`, by job.
fn by_job(text: &str) -> BTreeMap<String, BTreeMap<String, String>> {
    rows(text).into_iter().map(|row| (row["job"].clone(), row)).collect()
}

#[test]
fn the_number_of_threads_changes_no_byte() {
    let results = ["1", "3"].map(|threads| {
        let folder = folder(GRID);
        let printed = folder.run(&format!("sweep small.toml --threads {threads}")).ok();
        let parquet = std::fs::read(folder.path().join("small-results/results.parquet")).unwrap();
        (printed, read(&folder, "results.csv"), read(&folder, "page.html"), read(&folder, "page.md"), parquet)
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn what_a_kill_left_is_gone_on_with_and_nothing_runs_twice() {
    let longer = GRID.replace("seeds = 2", "seeds = 12");
    let whole = folder(&longer);
    whole.run("sweep small.toml").ok();
    let folder = folder(&longer);
    let mut child = folder.command("sweep small.toml --threads 1").spawn().unwrap();
    let log = folder.path().join("small-results/results.log");
    let lines = || {
        std::fs::read_to_string(&log).map_or(0, |text| text.lines().filter(|l| l.starts_with('R')).count())
    };
    let start = Instant::now();
    while lines() < 5 && start.elapsed() < Duration::from_secs(120) {
        std::thread::sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let before = lines();
    assert!((5..96).contains(&before), "killed on the way: {before} runs");
    // What a kill within a write leaves.
    let torn = std::fs::read_to_string(&log).unwrap() + "R\t95\t12";
    std::fs::write(&log, torn).unwrap();
    folder.run("sweep small.toml").ok();
    assert_eq!(read(&folder, "results.csv"), read(&whole, "results.csv"));
    let text = read(&folder, "results.log");
    let mut numbers: Vec<u64> = text
        .lines()
        .filter(|l| l.starts_with('R'))
        .map(|l| l.split('\t').nth(1).unwrap().parse().unwrap())
        .collect();
    assert_eq!(numbers.len(), 96, "each once");
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 96);
    let again = text.lines().count();
    folder.run("sweep small.toml").ok();
    assert_eq!(read(&folder, "results.log").lines().count(), again, "done is done");
}

#[test]
fn results_of_another_sweep_are_left_alone() {
    let folder = folder(GRID);
    folder.run("sweep small.toml").ok();
    std::fs::write(folder.path().join("small.fio"), JOBS.replace("iodepth=2", "iodepth=4")).unwrap();
    let complaint = folder.run("sweep small.toml").complaint();
    assert!(complaint.contains("another sweep") && complaint.contains("--output"), "{complaint}");
}

#[test]
fn halving_leaves_settings_behind_and_finds_the_same_best() {
    let all = GRID.replace("seeds = 2", "seeds = 4");
    let halved = format!("{all}[halving]\nby = \"seeds\"\nstart = 1\n");
    let best = |sweep: &str| {
        let folder = folder(sweep);
        let printed = folder.run("sweep small.toml").ok();
        let rows = rows(&read(&folder, "results.csv"));
        let commands: Vec<String> =
            printed.lines().filter(|l| l.starts_with("fairlift run")).map(str::to_owned).collect();
        (rows.len(), commands)
    };
    let ((many, thorough), (few, quick)) = (best(&all), best(&halved));
    assert_eq!((many, thorough.len()), (32, 2));
    // 4 settings with 1 seed, 2 with 1 more, 1 with 2 more, on 2 devices.
    assert_eq!(few, 2 * (4 + 2 + 2));
    assert_eq!(quick, thorough);
}

#[test]
fn halving_by_runtime_repeats_its_short_runs_by_their_own_commands() {
    let sweep = format!("{GRID}[halving]\nby = \"runtime\"\nstart = \"20ms\"\nkeep = 0.4\n");
    let folder = folder(&sweep);
    folder.run("sweep small.toml").ok();
    let rows = rows(&read(&folder, "results.csv"));
    let runtime = |text: &str| rows.iter().filter(|row| row["command"].contains(text)).count();
    assert_eq!((runtime("--runtime 20000us"), runtime("--runtime 50ms")), (16, 8));
}

#[test]
fn a_run_that_cannot_be_made_is_a_row_with_its_reason() {
    let sweep = "goal = \"iops\"\n[fixed]\ndevice = \"nvme\"\njobs = \"small.fio\"\nruntime = \"20ms\"\n\
                 [vary]\n\"job.db.size\" = [\"64m\", \"90t\"]\n";
    let folder = folder(sweep);
    let answer = folder.run("sweep small.toml");
    assert!(answer.stderr.contains("1 of 2 runs failed"), "{}", answer.stderr);
    let rows = rows(&read(&folder, "results.csv"));
    assert!(rows[0]["error"].is_empty() && !rows[0]["run.iops_per_s"].is_empty());
    assert!(!rows[1]["error"].is_empty() && rows[1]["run.iops_per_s"].is_empty());
    assert!(answer.ok().contains("job.db.size=64m"));
}

#[test]
fn samples_fields_groups_and_jobs_vary() {
    let sweep = "goal = \"lowest p99 of db\"\n[fixed]\ndevice = \"nvme\"\njobs = \"small.fio\"\nruntime = \"20ms\"\n\
        scheduler = \"fl-deadline\"\n[sample]\nmethod = \"sobol\"\npoints = 8\n[vary]\n\
        \"device.limits.queue_depth\" = { from = 1, to = 64, scale = \"log\" }\n\
        \"group./db.weight\" = { from = 1, to = 1000, scale = \"log\" }\n\
        \"job.batch.iodepth\" = { from = 1, to = 32 }\n";
    let folder = Folder::new()
        .with("small.fio", JOBS.replace("[db]\n", "[db]\ncgroup=db\n"))
        .with("small.toml", sweep);
    folder.run("sweep small.toml").ok();
    let rows = rows(&read(&folder, "results.csv"));
    assert_eq!(rows.len(), 8);
    let differ = |key: &str| {
        let mut values: Vec<&str> = rows.iter().map(|row| row[key].as_str()).collect();
        values.sort_unstable();
        values.dedup();
        values.len()
    };
    assert!(differ("device.limits.queue_depth") >= 6, "an eighth of the way each, rounded");
    assert!(differ("group./db.weight") >= 7, "1 and 2 are the ends of two eighths");
    assert_eq!(differ("job.batch.iodepth"), 8);
    assert!(differ("db.p99_ns") > 1);
}

#[test]
fn wrong_sweeps_are_refused_with_file_line_and_what_is_allowed() {
    let complaint = |from: &str, to: &str| {
        assert!(GRID.contains(from), "{from}");
        folder(&GRID.replace(from, to)).run("sweep small.toml").complaint()
    };
    let cases = [
        ("title =", "titel =", "small.toml:1", "did you mean 'title'?"),
        ("bandwidth of", "bandwith of", "small.toml:2", "did you mean 'bandwidth'?"),
        ("of batch", "of bach", "goal: no job, program or group is called 'bach'", "did you mean 'batch'?"),
        ("20 ms", "20 MB/s", "'MB/s' is not a unit", "ns, us, ms, s"),
        ("seeds = 2", "seeds = 0", "small.toml:3", "1 to 100000"),
        ("runtime =", "runtme =", "small.toml:6", "did you mean 'runtime'?"),
        ("[\"none\"", "[\"nnoe\"", "unknown scheduler 'nnoe'", "did you mean 'none'?"),
        ("fifo_batch", "fifo_bach", "has no tunable 'fifo_bach'", "did you mean 'fifo_batch'?"),
        (", steps = 2", "", "small.toml:10", "a grid needs steps"),
        ("from = 1,", "from = 0,", "small.toml:10", "a logarithmic scale begins above 0"),
        ("\"nvme\",", "\"nvme\", \"nvme\",", "small.toml:8", "has 'nvme' twice"),
        ("small.fio\"", "smal.fio\"", "cannot read 'smal.fio'", "there is no such file"),
        ("[over]\ndevice", "[over]\nruntime", "'runtime' is set twice", "one of [fixed], [over] and [vary]"),
    ];
    for (from, to, place, help) in cases {
        let text = complaint(from, to);
        assert!(text.contains(place) && text.contains(help), "{from} -> {to}:\n{text}");
    }
}

#[test]
fn traces_are_replayed_under_each_setting() {
    let trace = "8,0 0 1 0.000000000 10 Q R 0 + 8 [a]\n8,0 0 2 0.001000000 10 Q R 800 + 8 [a]\n\
                 8,0 0 3 0.002000000 11 Q W 4000 + 64 [b]\n";
    let sweep = "goal = \"lowest max of a\"\n[fixed]\ntrace = \"t.blkparse\"\nkernel = \"6.12\"\n[over]\ndevice = [\"nvme\", \"hdd\"]\n\
                 [vary]\nscheduler = [\"none\", \"mq-deadline\"]\n";
    let folder = Folder::new().with("t.blkparse", trace).with("small.toml", sweep);
    let printed = folder.run("sweep small.toml").ok();
    assert!(
        printed.contains("fairlift replay t.blkparse --device nvme --kernel 6.12 --scheduler"),
        "{printed}"
    );
    assert_eq!(rows(&read(&folder, "results.csv")).len(), 4);
}
