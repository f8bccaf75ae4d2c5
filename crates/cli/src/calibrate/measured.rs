//! What fio measured: its JSON, job by job.

use std::path::Path;

use serde_json::{Map, Value};

use crate::error::Failure;
use crate::input;

/// Figures of one job, measured or simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Reads and writes per second.
    pub iops: f64,
    /// Bytes per second, both directions.
    pub bandwidth: f64,
    /// Completion latency of the direction with more I/Os, nanoseconds.
    pub mean_ns: f64,
    /// Its percentiles; 0 where the report has none.
    pub p5_ns: f64,
    pub p50_ns: f64,
    pub p95_ns: f64,
    pub p99_ns: f64,
    pub p999_ns: f64,
    /// Mean time of submitting one; 0 where the report has none (one at a time).
    pub submit_ns: f64,
    /// Mean of fsync and fdatasync calls, nanoseconds; 0 without.
    pub sync_ns: f64,
}

/// A job of a report.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Its name.
    pub name: String,
    /// Its options with the global ones below them, as fio reports them.
    pub options: Vec<(String, String)>,
    /// What came of it.
    pub figures: Figures,
}

impl Measured {
    /// An option's value.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// All jobs of a report, or of all `.json` files of a folder.
pub fn load(path: &str) -> Result<Vec<Measured>, Failure> {
    let mut files = vec![path.to_owned()];
    if Path::new(path).is_dir() {
        let entries = std::fs::read_dir(path)
            .map_err(|e| Failure::new(format!("cannot read '{path}': {}", crate::output::reason(&e))))?;
        files = entries.flatten().map(|entry| entry.path().display().to_string()).collect();
        files.retain(|file| Path::new(file).extension().is_some_and(|ending| ending == "json"));
        files.sort();
        if files.is_empty() {
            return Err(Failure::new("no .json file in this folder").at(path));
        }
    }
    let mut jobs: Vec<Measured> = Vec::new();
    for file in &files {
        for job in of_report(&input::read(file)?, file)? {
            if jobs.iter().any(|known| known.name == job.name) {
                return Err(Failure::new(format!("job '{}' is there twice", job.name)).at(file));
            }
            jobs.push(job);
        }
    }
    Ok(jobs)
}

fn of_report(bytes: &[u8], file: &str) -> Result<Vec<Measured>, Failure> {
    // fio prints what it has to complain of before the report.
    let start = bytes.iter().position(|&byte| byte == b'{').unwrap_or(bytes.len());
    let report: Value = serde_json::from_slice(&bytes[start..])
        .map_err(|e| Failure::new(format!("not a JSON report of fio: {e}")).at(file))?;
    let jobs = report["jobs"].as_array().filter(|jobs| !jobs.is_empty()).ok_or_else(|| {
        Failure::new("no \"jobs\" in it").at(file).help("fio --output-format=json writes such reports")
    })?;
    jobs.iter().map(|job| of_job(job, &report["global options"], file)).collect()
}

fn of_job(job: &Value, global: &Value, file: &str) -> Result<Measured, Failure> {
    let name = job["jobname"].as_str().unwrap_or_default().to_owned();
    let error = job["error"].as_i64().unwrap_or(0);
    if error != 0 {
        return Err(Failure::new(format!("job '{name}' failed with error {error}")).at(file));
    }
    let words = |value: &Value| -> Vec<(String, String)> {
        let empty = Map::new();
        let options = value.as_object().unwrap_or(&empty).iter();
        options.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
    };
    let (read, write) = (&job["read"], &job["write"]);
    let number = |of: &Value, key: &str| of[key].as_f64().unwrap_or(0.0);
    let both = |key: &str| number(read, key) + number(write, key);
    let more = if number(read, "total_ios") >= number(write, "total_ios") { read } else { write };
    let latency = &more["clat_ns"];
    let percentile = |key: &str| number(&latency["percentile"], key);
    let figures = Figures {
        iops: both("iops"),
        bandwidth: both("bw_bytes"),
        mean_ns: number(latency, "mean"),
        p5_ns: percentile("5.000000"),
        p50_ns: percentile("50.000000"),
        p95_ns: percentile("95.000000"),
        p99_ns: percentile("99.000000"),
        p999_ns: percentile("99.900000"),
        submit_ns: number(&more["slat_ns"], "mean"),
        sync_ns: number(&job["sync"]["lat_ns"], "mean"),
    };
    if figures.iops <= 0.0 {
        return Err(Failure::new(format!("job '{name}' did no I/O")).at(file));
    }
    let options = [words(global), words(&job["job options"])].concat();
    Ok(Measured { name, options, figures })
}
