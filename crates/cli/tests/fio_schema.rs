//! The JSON report against fio's own: `data/capture.json` is what fio 3.33 wrote for `data/capture.fio`.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::{Folder, SMALL};
use serde::Deserialize;
use serde_json::Value;

const JOBS: &str = include_str!("data/capture.fio");
const CAPTURE: &str = include_str!("data/capture.json");

/// Every key, with the keys it lies under.
fn keys(value: &Value, path: &str, out: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{path}/{key}");
                keys(value, &path, out);
                out.insert(path);
            }
        }
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, value)| keys(value, &format!("{path}[{i}]"), out));
        }
        _ => {}
    }
}

fn keys_of(text: &str) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    keys(&serde_json::from_str(text).unwrap(), "", &mut out);
    out
}

#[test]
fn the_keys_are_fios_own() {
    let ours = Folder::new()
        .with("capture.fio", JOBS)
        .run("run --kernel 2.6.31 capture.fio --output-format json")
        .ok();
    let (ours, theirs) = (keys_of(&ours), keys_of(CAPTURE));
    assert_eq!(theirs.difference(&ours).collect::<Vec<_>>(), [""; 0], "fio has them and we have not");
    assert_eq!(ours.difference(&theirs).collect::<Vec<_>>(), [""; 0], "we have them and fio has not");
}

/// Numbers that are integers in fio are integers here, and options are the same.
#[test]
fn the_types_are_fios_own() {
    let ours = Folder::new()
        .with("capture.fio", JOBS)
        .run("run --kernel 2.6.31 capture.fio --output-format json")
        .ok();
    let (ours, theirs) = (serde_json::from_str(&ours).unwrap(), serde_json::from_str(CAPTURE).unwrap());
    same_types(&ours, &theirs, "");
}

fn same_types(ours: &Value, theirs: &Value, path: &str) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                same_types(value, &b[key], &format!("{path}/{key}"));
            }
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{path}");
            a.iter().zip(b).for_each(|(a, b)| same_types(a, b, path));
        }
        (Value::Number(a), Value::Number(b)) => assert_eq!(a.is_f64(), b.is_f64(), "{path}: {a} for {b}"),
        (Value::String(a), Value::String(b)) if path.contains("options") => assert_eq!(a, b, "{path}"),
        (Value::String(_), Value::String(_)) => {}
        _ => panic!("{path}: {ours} for {theirs}"),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "reading them is the test")]
struct Comparison {
    #[serde(rename = "fairlift version")]
    version: String,
    title: String,
    runs: Vec<Run>,
    answers: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "reading them is the test")]
struct Run {
    scheduler: String,
    device: String,
    kernel: String,
    seed: u64,
    case: String,
    finished: bool,
    simulated_ns: u64,
    bandwidth_bytes_per_s: f64,
    device_busy_share: f64,
    jain_device_time: f64,
    job_device_time: Vec<DeviceTime>,
    fio: Report,
    programs: Vec<Value>,
    block: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "reading them is the test")]
struct DeviceTime {
    jobname: String,
    groupid: u32,
    processes: u32,
    device_time_ns: u64,
    share: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "reading them is the test")]
struct Report {
    #[serde(rename = "fio version")]
    version: String,
    timestamp: u64,
    timestamp_ms: u64,
    time: String,
    #[serde(rename = "global options")]
    global_options: BTreeMap<String, String>,
    jobs: Vec<Job>,
    disk_util: Vec<Disk>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "reading them is the test")]
struct Job {
    jobname: String,
    groupid: u32,
    error: i32,
    eta: u64,
    elapsed: u64,
    #[serde(rename = "job options")]
    options: BTreeMap<String, String>,
    read: Direction,
    write: Direction,
    trim: Direction,
    sync: Sync,
    job_runtime: u64,
    usr_cpu: f64,
    sys_cpu: f64,
    ctx: u64,
    majf: u64,
    minf: u64,
    iodepth_level: BTreeMap<String, f64>,
    iodepth_submit: BTreeMap<String, f64>,
    iodepth_complete: BTreeMap<String, f64>,
    latency_ns: BTreeMap<String, f64>,
    latency_us: BTreeMap<String, f64>,
    latency_ms: BTreeMap<String, f64>,
    latency_depth: u64,
    latency_target: u64,
    latency_percentile: f64,
    latency_window: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "reading them is the test")]
struct Direction {
    io_bytes: u64,
    io_kbytes: u64,
    bw_bytes: u64,
    bw: u64,
    iops: f64,
    runtime: u64,
    total_ios: u64,
    short_ios: u64,
    drop_ios: u64,
    slat_ns: Statistics,
    clat_ns: Statistics,
    lat_ns: Statistics,
    bw_min: u64,
    bw_max: u64,
    bw_agg: f64,
    bw_mean: f64,
    bw_dev: f64,
    bw_samples: u64,
    iops_min: u64,
    iops_max: u64,
    iops_mean: f64,
    iops_stddev: f64,
    iops_samples: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sync {
    total_ios: u64,
    lat_ns: Statistics,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Statistics {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    n: u64,
    percentile: Option<BTreeMap<String, u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "reading them is the test")]
struct Disk {
    name: String,
    read_ios: u64,
    write_ios: u64,
    read_merges: u64,
    write_merges: u64,
    read_ticks: u64,
    write_ticks: u64,
    in_queue: u64,
    util: f64,
}

#[test]
fn a_strict_reader_of_fios_schema_reads_both() {
    serde_json::from_str::<Report>(CAPTURE).unwrap();
    let text = Folder::new()
        .with("small.fio", SMALL)
        .run("compare --kernel 2.6.31 small.fio --output-format json")
        .ok();
    let comparison: Comparison = serde_json::from_str(&text).unwrap();
    let schedulers: Vec<_> = comparison.runs.iter().map(|r| r.scheduler.as_str()).collect();
    assert_eq!(schedulers, ["noop", "deadline", "cfq"]);
    assert_eq!(comparison.answers.len(), 1, "one case, one answer");
    for run in &comparison.runs {
        let names: Vec<_> = run.fio.jobs.iter().map(|j| j.jobname.as_str()).collect();
        assert_eq!(names, ["sequential", "sequential", "mixed"], "one entry per process, as in fio");
        run.fio.jobs.iter().for_each(consistent);
        assert!(run.finished && run.device_busy_share > 0.0 && run.device_busy_share <= 1.0);
        assert!((run.job_device_time.iter().map(|j| j.share).sum::<f64>() - 1.0).abs() < 1e-9);
    }
}

/// Figures that must agree with each other.
fn consistent(job: &Job) {
    for direction in [&job.read, &job.write, &job.trim] {
        let Direction { io_bytes, total_ios, bw_bytes, bw, .. } = *direction;
        assert_eq!((direction.io_kbytes, bw), (io_bytes / 1024, bw_bytes / 1024));
        assert_eq!(io_bytes, total_ios * 4096);
        assert_eq!((direction.clat_ns.n, direction.lat_ns.n), (total_ios, total_ios));
        assert_eq!(direction.clat_ns.percentile.is_some(), total_ios > 0);
        let (clat, lat) = (&direction.clat_ns, &direction.lat_ns);
        assert!(clat.min as f64 <= clat.mean && clat.mean <= clat.max as f64);
        assert!((lat.mean - clat.mean - direction.slat_ns.mean).abs() < 1e-3, "lat = slat + clat");
        assert!(clat.stddev >= 0.0);
    }
    let sync = &job.sync;
    assert_eq!((sync.total_ios, sync.lat_ns.percentile.is_some()), (sync.lat_ns.n, sync.total_ios > 0));
    for shares in [&job.iodepth_level, &job.iodepth_submit, &job.iodepth_complete] {
        assert!((shares.values().sum::<f64>() - 100.0).abs() < 1e-3, "{shares:?}");
    }
    let ranges = [&job.latency_ns, &job.latency_us, &job.latency_ms];
    assert!((ranges.iter().flat_map(|m| m.values()).sum::<f64>() - 100.0).abs() < 1e-3);
}

#[test]
fn group_reporting_merges_as_in_fio() {
    let jobs = "[a]\nrw=read\nsize=256k\nnumjobs=3\ngroup_reporting\n";
    let text = Folder::new()
        .with("a.fio", jobs)
        .run("run --kernel 2.6.31 a.fio --device null --output-format json")
        .ok();
    let report: Report = serde_json::from_str(&text).unwrap();
    assert_eq!(report.jobs.len(), 1);
    assert_eq!(report.jobs[0].read.io_bytes, 3 * 256 * 1024);
}
