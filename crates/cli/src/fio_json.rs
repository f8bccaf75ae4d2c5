//! fio's JSON report, field for field as fio 3.33 writes it.
//!
//! What a simulation does not have is 0: wall-clock times, CPU shares, page faults. `docs/cli.md` lists these fields.

use fairlift_sim::result::{JobResult, RunResult, Transfer};
use fairlift_sim::samples::{SAMPLE_NS, Sample};
use fairlift_sim::scenario::Case;
use fairlift_sim::stats::{Latency, Moments};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// fio's default percentiles.
pub const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];
/// Bounds of fio's latency histogram, in its unit (ns, us, ms).
pub const LATENCY_BOUNDS: [u64; 9] = [2, 4, 10, 20, 50, 100, 250, 500, 750];

const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];

/// A report of one run.
#[derive(Serialize)]
pub struct Report {
    #[serde(rename = "fio version")]
    version: String,
    timestamp: u64,
    timestamp_ms: u64,
    time: &'static str,
    #[serde(rename = "global options")]
    global_options: Options,
    jobs: Vec<JobReport>,
    disk_util: Vec<Disk>,
}

/// Options as written; of several of a name the last one counts. Like fio, without those that have no value.
struct Options(Vec<(String, String)>);

impl Serialize for Options {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let last = |i: usize, name: &str| !self.0[i + 1..].iter().any(|(later, _)| later == name);
        let mut map = serializer.serialize_map(None)?;
        let valued = self.0.iter().enumerate().filter(|(_, (_, value))| !value.is_empty());
        for (_, (name, value)) in valued.filter(|(i, (name, _))| last(*i, name)) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Shares in percent, by name.
struct Shares(Vec<(String, f64)>);

impl Serialize for Shares {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, share)| (name, six(*share))))
    }
}

#[derive(Serialize)]
struct JobReport {
    jobname: String,
    groupid: u32,
    error: u32,
    eta: u64,
    elapsed: u64,
    #[serde(rename = "job options")]
    options: Options,
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
    iodepth_level: Shares,
    iodepth_submit: Shares,
    iodepth_complete: Shares,
    latency_ns: Shares,
    latency_us: Shares,
    latency_ms: Shares,
    latency_depth: u32,
    latency_target: u64,
    latency_percentile: f64,
    latency_window: u64,
}

#[derive(Serialize)]
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

#[derive(Serialize)]
struct Sync {
    total_ios: u64,
    lat_ns: Statistics,
}

#[derive(Serialize)]
struct Statistics {
    min: u64,
    max: u64,
    mean: f64,
    stddev: f64,
    #[serde(rename = "N")]
    n: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    percentile: Option<Percentiles>,
}

struct Percentiles(Vec<(f64, u64)>);

impl Serialize for Percentiles {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(percent, ns)| (format!("{percent:.6}"), ns)))
    }
}

#[derive(Serialize)]
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

/// fio's report of a run.
pub fn report(case: &Case, run: &RunResult) -> Report {
    let reported = run.reported();
    Report {
        version: concat!("fio-3.33 (fairlift ", env!("CARGO_PKG_VERSION"), ")").to_owned(),
        timestamp: 0,
        timestamp_ms: 0,
        time: "Thu Jan  1 00:00:00 1970",
        global_options: Options(case.global_options.clone()),
        jobs: reported.iter().map(|job| JobReport::of(case, job, &reported)).collect(),
        disk_util: vec![Disk::of(run)],
    }
}

impl JobReport {
    fn of(case: &Case, job: &JobResult, all: &[JobResult]) -> JobReport {
        let direction = |d: usize| Direction::of(job, d, all);
        let clat = job.clat();
        JobReport {
            jobname: job.name.clone(),
            groupid: job.group_id,
            error: 0,
            eta: 0,
            elapsed: job.ended_ns.div_ceil(1_000_000_000),
            options: Options(job.options.clone()),
            read: direction(0),
            write: direction(1),
            trim: direction(2),
            sync: Sync { total_ios: job.sync.count(), lat_ns: Statistics::of(&job.sync) },
            job_runtime: milliseconds(job.runtime_ns()) * u64::from(job.processes),
            usr_cpu: 0.0,
            sys_cpu: 0.0,
            ctx: 0,
            majf: 0,
            minf: 0,
            iodepth_level: depth_levels(job),
            iodepth_submit: batches(submitted_at_once(case, job)),
            iodepth_complete: batches(submitted_at_once(case, job)),
            latency_ns: histogram(&clat, 1, false),
            latency_us: histogram(&clat, 1_000, false),
            latency_ms: histogram(&clat, 1_000_000, true),
            latency_depth: job.depth,
            latency_target: 0,
            latency_percentile: 100.0,
            latency_window: 0,
        }
    }
}

impl Direction {
    fn of(job: &JobResult, direction: usize, all: &[JobResult]) -> Direction {
        let transfer = &job.transfers[direction];
        let seconds = job.runtime_ns() as f64 / 1e9;
        let bandwidth = transfer.bytes as f64 / seconds;
        let used = transfer.ios > 0;
        let group: u64 =
            all.iter().filter(|j| j.group_id == job.group_id).map(|j| j.transfers[direction].bytes).sum();
        let (bw, iops) = (bandwidth_spread(job, transfer), iops_spread(job, transfer));
        Direction {
            io_bytes: transfer.bytes,
            io_kbytes: transfer.bytes / 1024,
            bw_bytes: bandwidth as u64,
            bw: (bandwidth / 1024.0) as u64,
            iops: six(transfer.ios as f64 / seconds),
            runtime: if used { milliseconds(job.runtime_ns()) } else { 0 },
            total_ios: transfer.ios,
            short_ios: 0,
            drop_ios: 0,
            slat_ns: Statistics::plain(transfer.slat.moments()),
            clat_ns: Statistics::of(&transfer.clat),
            lat_ns: Statistics::plain(&transfer.lat),
            bw_min: bw.min as u64,
            bw_max: bw.max as u64,
            bw_agg: if bw.samples > 0 {
                six(100.0 * transfer.bytes as f64 / group.max(1) as f64)
            } else {
                0.0
            },
            bw_mean: six(bw.mean),
            bw_dev: six(bw.deviation),
            bw_samples: bw.samples,
            iops_min: iops.min as u64,
            iops_max: iops.max as u64,
            iops_mean: six(iops.mean),
            iops_stddev: six(iops.deviation),
            iops_samples: iops.samples,
        }
    }
}

impl Statistics {
    fn plain(moments: &Moments) -> Statistics {
        Statistics {
            min: moments.min_ns(),
            max: moments.max_ns(),
            mean: six(moments.mean_ns()),
            stddev: six(moments.stddev_ns()),
            n: moments.count(),
            percentile: None,
        }
    }

    /// With percentiles, if there are samples.
    fn of(latency: &Latency) -> Statistics {
        let list = || PERCENTILES.iter().map(|p| (*p, latency.percentile_ns(*p))).collect();
        let percentile = (latency.count() > 0).then(|| Percentiles(list()));
        Statistics { percentile, ..Statistics::plain(latency.moments()) }
    }
}

impl Disk {
    fn of(run: &RunResult) -> Disk {
        let block = &run.block;
        Disk {
            name: run.device.clone(),
            read_ios: block.requests[0],
            write_ios: block.requests[1] + block.requests[2],
            read_merges: block.merged - block.merged_writes,
            write_merges: block.merged_writes,
            read_ticks: block.ticks_ns[0] / 1_000_000,
            write_ticks: block.ticks_ns[1] / 1_000_000,
            in_queue: (block.ticks_ns[0] + block.ticks_ns[1]) / 1_000_000,
            util: six(100.0 * run.busy()),
        }
    }
}

/// Smallest, largest, mean and deviation of samples; all 0 without any.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation, divisor n-1.
    pub deviation: f64,
    /// How many.
    pub samples: u64,
}

impl Spread {
    /// Of `count` samples, of which these are not 0.
    fn of(count: u64, others: &[f64]) -> Spread {
        if count == 0 {
            return Spread::default();
        }
        let (n, zeros) = (count as f64, count.saturating_sub(others.len() as u64));
        let mean = others.iter().sum::<f64>() / n;
        let square = others.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() + zeros as f64 * mean * mean;
        let least = if zeros > 0 { 0.0 } else { f64::INFINITY };
        Spread {
            min: others.iter().copied().fold(least, f64::min),
            max: others.iter().copied().fold(0.0, f64::max),
            mean,
            deviation: if count > 1 { (square / (n - 1.0)).sqrt() } else { 0.0 },
            samples: count,
        }
    }

    /// Of the samples whose time was over before the job was: fio counts no others. None for a direction that was not used.
    fn of_samples(job: &JobResult, transfer: &Transfer, value: fn(Sample) -> f64) -> Spread {
        let full = if transfer.ios > 0 { job.runtime_ns() / SAMPLE_NS } else { 0 };
        let others = transfer.samples.iter().take_while(|(number, _)| *number < full);
        Spread::of(full, &others.map(|(_, sample)| value(sample)).collect::<Vec<f64>>())
    }
}

/// Of the bandwidth in each sample, KiB/s.
pub fn bandwidth_spread(job: &JobResult, transfer: &Transfer) -> Spread {
    Spread::of_samples(job, transfer, |sample| per_second(sample.bytes) / 1024.0)
}

/// Of the I/Os per second in each sample.
pub fn iops_spread(job: &JobResult, transfer: &Transfer) -> Spread {
    Spread::of_samples(job, transfer, |sample| per_second(sample.ios))
}

/// What a sample's amount is per second.
fn per_second(amount: u64) -> f64 {
    amount as f64 * 1e9 / SAMPLE_NS as f64
}

/// Share of I/Os in each of fio's latency ranges, percent, with the upper bound of the range in its unit.
pub fn latency_shares(latency: &Latency, unit_ns: u64, open_end: bool) -> Vec<(String, f64)> {
    let bounds = LATENCY_BOUNDS.iter().copied().chain([1000]).chain(open_end.then_some(2000));
    let total = latency.count().max(1) as f64;
    // Units follow each other without a gap: the first range starts where the smaller unit ended.
    let mut below = if unit_ns == 1 { 0 } else { latency.count_below(unit_ns) };
    let mut shares = Vec::new();
    for bound in bounds {
        let next = latency.count_below(bound * unit_ns);
        shares.push((bound.to_string(), 100.0 * (next - below) as f64 / total));
        below = next;
    }
    if open_end {
        shares.push((">=2000".to_owned(), 100.0 * (latency.count() - below) as f64 / total));
    }
    shares
}

fn histogram(latency: &Latency, unit_ns: u64, open_end: bool) -> Shares {
    Shares(latency_shares(latency, unit_ns, open_end))
}

fn depth_levels(job: &JobResult) -> Shares {
    let total = job.depth_levels.iter().sum::<u64>().max(1) as f64;
    let share = |(name, n): (&&str, &u64)| ((*name).to_owned(), 100.0 * *n as f64 / total);
    Shares(DEPTHS.iter().zip(&job.depth_levels).map(share).collect())
}

/// I/Os handed over in one call, as the job asks for; 0 when it did none.
pub fn submitted_at_once(case: &Case, job: &JobResult) -> u32 {
    if job.ios() == 0 {
        return 0;
    }
    case.jobs.iter().find(|j| j.name == job.name).map_or(1, |j| j.submission.batch.clamp(1, job.depth.max(1)))
}

/// fio's name for the range a batch falls into: 1-4, 5-8, ...
pub fn batch_range(batch: u32) -> &'static str {
    match batch {
        0 => BATCHES[0],
        1..=4 => BATCHES[1],
        5..=8 => BATCHES[2],
        9..=16 => BATCHES[3],
        17..=32 => BATCHES[4],
        33..=64 => BATCHES[5],
        _ => BATCHES[6],
    }
}

fn batches(batch: u32) -> Shares {
    let range = batch_range(batch);
    let mut found = batch == 0;
    let share = |name: &&str| {
        let here = !found && **name == *range;
        found |= here;
        ((*name).to_owned(), if here { 100.0 } else { 0.0 })
    };
    Shares(BATCHES.iter().map(share).collect())
}

/// Nanoseconds to milliseconds, rounded up: a job that did something ran for a while.
pub fn milliseconds(ns: u64) -> u64 {
    ns.div_ceil(1_000_000)
}

/// Six decimals, as fio prints.
fn six(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_ranges_add_up_to_everything() {
        let mut latency = Latency::new();
        for ns in [1, 3, 999, 1_500, 30_000, 800_000, 1_500_000, 1_700_000_000, 3_000_000_000] {
            latency.record(ns);
        }
        let all: Vec<_> = [(1, false), (1_000, false), (1_000_000, true)]
            .iter()
            .flat_map(|(unit, open)| latency_shares(&latency, *unit, *open))
            .filter(|(_, share)| *share > 0.0)
            .collect();
        let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["2", "4", "1000", "2", "50", "1000", "2", "2000", ">=2000"]);
        assert!((all.iter().map(|(_, share)| share).sum::<f64>() - 100.0).abs() < 1e-9);
    }

    #[test]
    fn the_last_of_two_equal_options_counts() {
        let options = Options(vec![
            ("bs".into(), "4k".into()),
            ("rw".into(), "read".into()),
            ("bs".into(), "8k".into()),
        ]);
        assert_eq!(serde_json::to_string(&options).unwrap(), r#"{"rw":"read","bs":"8k"}"#);
    }

    #[test]
    fn spreads_are_those_of_a_sample() {
        let spread = Spread::of(3, &[2.0, 4.0, 6.0]);
        assert_eq!(
            (spread.min, spread.max, spread.mean, spread.deviation, spread.samples),
            (2.0, 6.0, 4.0, 2.0, 3)
        );
        assert_eq!(Spread::of(0, &[]), Spread::default());
        let spread = Spread::of(4, &[2.0, 6.0]);
        assert_eq!((spread.min, spread.max, spread.mean, spread.deviation), (0.0, 6.0, 2.0, 8f64.sqrt()));
    }
}
