//! One run in the words of fio's own report.
//!
//! Units and roundings are fio 3.33's (`stat.c`, `lib/num2str.c`); what a simulation does not have (CPU shares, page
//! faults, process numbers) is left out.

use std::fmt::Write as _;

use fairlift_fio::Job;
use fairlift_sim::result::{JobResult, ProgramResult, RunResult, Transfer};
use fairlift_sim::scenario::Scenario;
use fairlift_sim::stats::{Latency, Moments};

use crate::explain::explanation;
use crate::fio_json::{
    PERCENTILES, Spread, bandwidth_spread, batch_range, iops_spread, latency_shares, milliseconds,
    submitted_at_once,
};
use crate::number::count;
use crate::style::Style;

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
/// fio puts no more latency ranges on a line.
const RANGES_PER_LINE: usize = 5;

/// A scenario's only scheduler, case by case.
pub fn report(scenario: &Scenario, runs: &[Vec<RunResult>], style: Style) -> String {
    let mut out = String::new();
    for (case, runs) in scenario.cases.iter().zip(runs) {
        if !case.name.is_empty() {
            let _ = writeln!(out, "case {}\n", case.name);
        }
        case.jobs.iter().for_each(|job| started(&mut out, job));
        let version = env!("CARGO_PKG_VERSION");
        let fio = if case.jobs.is_empty() { "" } else { "simulating fio-3.33 on " };
        let _ = writeln!(out, "fairlift-{version}, {fio}Linux {}", scenario.rules.version);
        for run in runs {
            let _ = writeln!(out, "Starting {} under {} on {}\n", starting(run), run.scheduler, run.device);
            for result in run.reported() {
                let batch = submitted_at_once(case, &result);
                job(&mut out, &result, &run.reported(), batch);
            }
            if !run.processes.is_empty() {
                groups(&mut out, run);
                out.push('\n');
            }
            run.programs.iter().for_each(|result| program(&mut out, result));
            disk(&mut out, run);
            if run.explanation.is_some() {
                out.push('\n');
                out.push_str(&explanation(run, style));
            }
        }
        out.push('\n');
    }
    out.pop();
    out
}

/// What starts: `2 processes`, `1 program`.
fn starting(run: &RunResult) -> String {
    let processes = count(run.processes.len() as u64, "process", "processes");
    let programs = count(run.programs.len() as u64, "program", "programs");
    match (run.processes.is_empty(), run.programs.is_empty()) {
        (_, true) => processes,
        (true, false) => programs,
        (false, false) => format!("{processes} and {programs}"),
    }
}

/// A program's command line, as at a prompt, and what it printed.
fn program(out: &mut String, program: &ProgramResult) {
    let background = if program.background { " &" } else { "" };
    let _ = writeln!(out, "$ {}{background}", program.command);
    out.push_str(&program.text);
    if !program.text.is_empty() && !program.text.ends_with('\n') {
        out.push('\n');
    }
    if program.stopped {
        let _ = writeln!(out, "[{}: stopped at {:.3} s]", program.name, program.ended_ns as f64 / 1e9);
    }
    out.push('\n');
}

fn started(out: &mut String, job: &Job) {
    let size = |d: usize| format!("{}B-{}B", job.blocks[d].min_bytes, job.blocks[d].max_bytes);
    let _ = writeln!(
        out,
        "{}: (g={}): rw={}, bs=(R) {}, (W) {}, (T) {}, ioengine={}, iodepth={}",
        job.name,
        job.schedule.group_id,
        job.access.name(),
        size(0),
        size(1),
        size(2),
        job.submission.engine,
        job.submission.iodepth
    );
}

fn job(out: &mut String, job: &JobResult, all: &[JobResult], batch: u32) {
    let end = job.ended_ns as f64 / 1e9;
    let _ = writeln!(
        out,
        "{}: (groupid={}, jobs={}): err= 0: simulated, ended at {end:.3} s",
        job.name, job.group_id, job.processes
    );
    for direction in 0..3 {
        if job.transfers[direction].ios > 0 {
            transfer(out, job, direction, all);
        }
    }
    let clat = job.clat();
    for (unit, ns, open_end) in [("nsec", 1, false), ("usec", 1_000, false), ("msec", 1_000_000, true)] {
        ranges(out, unit, &latency_shares(&clat, ns, open_end));
    }
    if job.sync.count() > 0 {
        out.push_str("  fsync/fdatasync/sync_file_range:\n");
        moments(out, "    sync", job.sync.moments());
        percentiles(out, "sync", &job.sync);
    }
    depths(out, job, batch);
}

fn transfer(out: &mut String, job: &JobResult, direction: usize, all: &[JobResult]) {
    let transfer = &job.transfers[direction];
    let seconds = job.runtime_ns() as f64 / 1e9;
    let bandwidth = (transfer.bytes as f64 / seconds) as u64;
    let _ = writeln!(
        out,
        "  {}: IOPS={}, BW={}/s ({}/s)({}/{}msec)",
        DIRECTIONS[direction],
        scaled((transfer.ios as f64 / seconds) as u64, Unit::None),
        scaled(bandwidth, Unit::Binary),
        scaled(bandwidth, Unit::Decimal),
        scaled(transfer.bytes, Unit::Binary),
        milliseconds(job.runtime_ns())
    );
    if transfer.slat.count() > 0 {
        moments(out, "    slat", transfer.slat.moments());
    }
    moments(out, "    clat", transfer.clat.moments());
    moments(out, "     lat", &transfer.lat);
    percentiles(out, "clat", &transfer.clat);
    samples(out, job, transfer, direction, all);
}

fn samples(out: &mut String, job: &JobResult, transfer: &Transfer, direction: usize, all: &[JobResult]) {
    let (bw, iops) = (bandwidth_spread(job, transfer), iops_spread(job, transfer));
    if bw.samples == 0 {
        return;
    }
    let group: u64 =
        all.iter().filter(|j| j.group_id == job.group_id).map(|j| j.transfers[direction].bytes).sum();
    let share = 100.0 * transfer.bytes as f64 / group.max(1) as f64;
    let spread = |s: &Spread| format!("avg={:5.2}, stdev={:5.2}, samples={}", s.mean, s.deviation, s.samples);
    let (least, most) = (bw.min as u64, bw.max as u64);
    let _ = writeln!(out, "   bw (  KiB/s): min={least:5}, max={most:5}, per={share:3.2}%, {}", spread(&bw));
    let (least, most) = (iops.min as u64, iops.max as u64);
    let _ = writeln!(out, "   iops        : min={least:5}, max={most:5}, {}", spread(&iops));
}

fn moments(out: &mut String, name: &str, moments: &Moments) {
    let (min, max, deviation) = (moments.min_ns(), moments.max_ns(), moments.stddev_ns());
    let (unit, scale) = match () {
        () if min > 2_000_000 && max > 99_999_000 && deviation > 1e6 => ("msec", 1_000_000),
        () if min > 2_000 && max > 99_999 && deviation > 1e3 => ("usec", 1_000),
        () => ("nsec", 1),
    };
    let part = |ns: f64| ns / scale as f64;
    let bound = |ns: u64| scaled_to(ns / scale, Unit::None, 6);
    let _ = writeln!(
        out,
        "{name} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        bound(min),
        bound(max),
        part(moments.mean_ns()),
        part(deviation)
    );
}

fn percentiles(out: &mut String, name: &str, latency: &Latency) {
    let values: Vec<u64> = PERCENTILES.iter().map(|p| latency.percentile_ns(*p)).collect();
    let (least, most) = (values[0], values[values.len() - 1]);
    let (unit, scale) = match () {
        () if least > 2_000_000 && most > 99_999_000 => ("msec", 1_000_000),
        () if least > 2_000 && most > 99_999 => ("usec", 1_000),
        () => ("nsec", 1),
    };
    let width = most.div_ceil(scale).to_string().len().max(5);
    let per_line = (80 - 7) / (2 + 10 + width);
    let _ = write!(out, "    {name} percentiles ({unit}):\n     |");
    for (i, (percent, ns)) in PERCENTILES.iter().zip(&values).enumerate() {
        let _ = write!(out, " {percent:5.2}th=[{:width$}]", ns.div_ceil(scale));
        out.push_str(match i + 1 {
            last if last == values.len() => "\n",
            n if n % per_line == 0 => ",\n     |",
            _ => ",",
        });
    }
}

fn ranges(out: &mut String, unit: &str, shares: &[(String, f64)]) {
    let used: Vec<String> = shares
        .iter()
        .filter(|(_, s)| *s > 0.0)
        .map(|(bound, share)| format!("{bound}={share:.2}%"))
        .collect();
    for line in used.chunks(RANGES_PER_LINE) {
        let _ = writeln!(out, "  lat ({unit})   : {}", line.join(", "));
    }
}

fn depths(out: &mut String, job: &JobResult, batch: u32) {
    let total = job.depth_levels.iter().sum::<u64>().max(1) as f64;
    let levels: Vec<String> = ["1", "2", "4", "8", "16", "32", ">=64"]
        .iter()
        .zip(&job.depth_levels)
        .map(|(name, n)| format!("{name}={:.1}%", 100.0 * *n as f64 / total))
        .collect();
    let batches: Vec<String> = ["0", "4", "8", "16", "32", "64", ">=64"]
        .iter()
        .map(|name| format!("{name}={:.1}%", if *name == batch_range(batch) { 100.0 } else { 0.0 }))
        .collect();
    let issued: Vec<String> = job.transfers.iter().map(|t| t.ios.to_string()).collect();
    let _ = writeln!(out, "  IO depths    : {}", levels.join(", "));
    let _ = writeln!(out, "     submit    : {}", batches.join(", "));
    let _ = writeln!(out, "     complete  : {}", batches.join(", "));
    let _ = writeln!(
        out,
        "     issued rwts: total={},{} short=0,0,0,0 dropped=0,0,0,0",
        issued.join(","),
        job.sync.count()
    );
    let _ = writeln!(out, "     latency   : target=0, window=0, percentile=100.00%, depth={}", job.depth);
}

/// fio's "Run status group" paragraphs.
fn groups(out: &mut String, run: &RunResult) {
    let jobs = run.reported();
    let mut groups: Vec<u32> = jobs.iter().map(|j| j.group_id).collect();
    groups.dedup();
    for group in groups {
        let _ = writeln!(out, "\nRun status group {group} (all jobs):");
        for (direction, name) in ["READ", "WRITE", "TRIM"].iter().enumerate() {
            let members: Vec<&JobResult> =
                jobs.iter().filter(|j| j.group_id == group && j.transfers[direction].ios > 0).collect();
            if !members.is_empty() {
                group_line(out, name, direction, &members);
            }
        }
    }
}

fn group_line(out: &mut String, name: &str, direction: usize, members: &[&JobResult]) {
    let bytes: u64 = members.iter().map(|j| j.transfers[direction].bytes).sum();
    let runtimes = || members.iter().map(|j| j.runtime_ns());
    let rate = |bytes: u64, ns: u64| (bytes as f64 * 1e9 / ns as f64) as u64;
    let rates = || members.iter().map(|j| rate(j.transfers[direction].bytes, j.runtime_ns()));
    let (shortest, longest) = (runtimes().min().unwrap_or(1), runtimes().max().unwrap_or(1));
    let (slowest, fastest) = (rates().min().unwrap_or(0), rates().max().unwrap_or(0));
    let both = |amount: u64, per: &str| {
        format!("{}{per} ({}{per})", scaled(amount, Unit::Binary), scaled(amount, Unit::Decimal))
    };
    let _ = writeln!(
        out,
        "{name:>7}: bw={}, {}/s-{}/s ({}/s-{}/s), io={}, run={}-{}msec",
        both(rate(bytes, longest), "/s"),
        scaled(slowest, Unit::Binary),
        scaled(fastest, Unit::Binary),
        scaled(slowest, Unit::Decimal),
        scaled(fastest, Unit::Decimal),
        both(bytes, ""),
        milliseconds(shortest),
        milliseconds(longest)
    );
}

fn disk(out: &mut String, run: &RunResult) {
    let block = &run.block;
    let ticks = block.ticks_ns.map(|ns| ns / 1_000_000);
    let _ = writeln!(
        out,
        "Disk stats (read/write):\n  {}: ios={}/{}, merge={}/{}, ticks={}/{}, in_queue={}, util={:.2}%",
        run.device,
        block.requests[0],
        block.requests[1] + block.requests[2],
        block.merged - block.merged_writes,
        block.merged_writes,
        ticks[0],
        ticks[1],
        ticks[0] + ticks[1],
        100.0 * run.busy()
    );
}

// ---- fio's numbers ------------------------------------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// A count: `12.3k`.
    None,
    /// Bytes in powers of 1024: `12.3MiB`.
    Binary,
    /// Bytes in powers of 1000: `12.9MB`.
    Decimal,
}

fn scaled(value: u64, unit: Unit) -> String {
    scaled_to(value, unit, 4)
}

/// At most `digits` characters and a prefix, as fio's `num2str` does it.
fn scaled_to(value: u64, unit: Unit, digits: usize) -> String {
    let thousand = if unit == Unit::Binary { 1024 } else { 1000 };
    let (mut whole, mut rest, mut power) = (value, None, 0);
    while whole.to_string().len() > digits && power < 6 {
        rest = Some(whole % thousand);
        whole /= thousand;
        power += 1;
    }
    let prefix = match unit {
        Unit::Binary => ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power],
        _ => ["", "k", "M", "G", "T", "P", "E"][power],
    };
    let suffix = if unit == Unit::None { "" } else { "B" };
    let length = whole.to_string().len();
    let number = match rest {
        Some(rest) if length + 1 < digits => {
            let decimals = digits - length - 1;
            format!("{:.decimals$}", whole as f64 + rest as f64 / thousand as f64)
        }
        Some(rest) => (whole + u64::from(rest >= thousand / 2)).to_string(),
        None => whole.to_string(),
    };
    format!("{number}{prefix}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_fio_writes_them() {
        // From fio 3.33's own output.
        assert_eq!(scaled(8258, Unit::None), "8258");
        assert_eq!(scaled(1_048_576, Unit::Binary), "1024KiB");
        assert_eq!(scaled(33_825_032, Unit::Binary), "32.3MiB");
        assert_eq!(scaled(33_825_032, Unit::Decimal), "33.8MB");
        assert_eq!(scaled(4_093_953, Unit::Binary), "3998KiB");
        assert_eq!(scaled(4_093_953, Unit::Decimal), "4094kB");
        assert_eq!(scaled(12_345, Unit::None), "12.3k");
        assert_eq!(scaled_to(3_138_500, Unit::None, 6), "3138.5k");
        assert_eq!(scaled_to(812_260, Unit::None, 6), "812260");
    }
}
