//! Fitting a volume with a throttle: token buckets of operations and bytes, and the latency behind them.
//!
//! The mark of a bucket is a rate that does not rise with the depth although single commands are quick. How the wait is spread tells
//! how the volume looks at its bucket: continuously (each command waits a little), or once in a period (most commands do not wait at
//! all, and one in each period waits for its end).

use super::fit::{Fit, Series, relative};
use super::measured::Figures;
use super::series::{self, DEPTHS};
use crate::error::Failure;

/// The preset whose parameters stay where nothing was measured.
pub const PRESET: &str = "cloud-gp3";
/// So many of the deepest steps of the ladder are at one rate, within so much of it.
const FLAT_STEPS: usize = 3;
const FLAT: f64 = 0.05;
/// A rate below this share of the flat one is not held by the bucket.
const BELOW: f64 = 0.9;
/// The host, not the volume, holds a rate of which it takes this share of the time.
const HOST_BOUND: f64 = 0.7;
/// A latency so many times the median is a wait for a period's end.
const PERIOD_OVER_MEDIAN: f64 = 5.0;
/// What a continuous bucket holds was not seen: the preset's ten milliseconds.
const BURST_S: f64 = 0.01;
/// A larger request is one operation: the bytes have a bucket of their own.
const UNIT_KIB: u64 = 1 << 20;
/// Linux does not split 1 MiB below this.
const MAX_KIB: u64 = 1280;
/// Distance of the 95th percentile from the median in standard deviations, and the widest spread the model takes.
const P95: f64 = 1.645;
const SIGMA_MAX: f64 = 0.8;
const MIB: f64 = 1_048_576.0;

/// How the volume holds commands back.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Waits {
    /// One command at a time is never held back.
    Unseen,
    /// Each waits for its token.
    Each,
    /// Most do not wait, some for a period, nanoseconds.
    Period(f64),
}

/// Operations per second that the deepest steps have in common, if they do and the host is not what holds them.
pub fn flat_rate(series: &Series<'_>) -> Option<f64> {
    let deep: Vec<f64> = DEPTHS
        .iter()
        .filter_map(|depth| series.get(&format!("{}{depth}", series::RANDOM)))
        .map(|figures| figures.iops)
        .collect();
    let last = deep.last_chunk::<FLAT_STEPS>()?;
    let mean = last.iter().sum::<f64>() / FLAT_STEPS as f64;
    let flat = last.iter().all(|rate| relative(*rate, mean).abs() <= FLAT);
    (flat && mean * series.cpu_ns as f64 / 1e9 < HOST_BOUND).then_some(mean)
}

/// Fit a bucket of `rate` operations per second.
pub fn fit(series: &Series<'_>, rate: f64) -> Result<Fit, Failure> {
    let mut fit = Fit::new("cloud", PRESET);
    let one = series.need(&format!("{}1", series::RANDOM))?;
    let waits = waits(&one, rate);
    if let Some(bytes) = series.target_bytes() {
        fit.whole("", "sectors", bytes / 512, "the target's size");
    }
    let writes = [series::WRITE_MANY, series::WRITE_SEQUENTIAL].map(|job| series.get(job));
    let highest = writes[0].map_or(rate, |many| many.iops.max(rate));
    let burst_s = if let Waits::Period(ns) = waits { ns / 1e9 } else { BURST_S };
    fit.number("operations", "rate_per_s", highest, "the rate that greater depth does not raise");
    let of_burst = match waits {
        Waits::Period(_) => "what a period gives",
        _ => "not seen: ten milliseconds' worth",
    };
    fit.number("operations", "burst", (highest * burst_s).max(1.0), of_burst);
    fit.whole("operations", "unit_kib", UNIT_KIB, "bytes have a bucket of their own");
    bytes(&mut fit, series, rate, burst_s)?;
    if let [Some(many), sequential] = writes
        && relative(many.iops, rate).abs() > FLAT
    {
        apart(&mut fit, series, rate, &many, sequential.as_ref(), burst_s);
    }
    latency(&mut fit, series, &one, waits);
    if let Waits::Period(ns) = waits {
        fit.number("throttle", "period_ms", ns / 1e6, "the 99th or 99.9th percentile less the median");
    }
    fit.whole("limits", "max_kib", MAX_KIB, "a request of 1 MiB was one");
    Ok(fit)
}

/// How one command at a time is held back.
fn waits(one: &Figures, rate: f64) -> Waits {
    if one.iops < BELOW * rate {
        return Waits::Unseen;
    }
    let long = [one.p99_ns, one.p999_ns].into_iter().find(|long| *long > PERIOD_OVER_MEDIAN * one.p50_ns);
    // Commands that each wait take as long as the rate leaves them.
    match long.filter(|_| one.p50_ns > 0.0 && one.p50_ns < 0.5e9 / rate) {
        Some(long) => Waits::Period(long - one.p50_ns),
        None => Waits::Each,
    }
}

fn bytes(fit: &mut Fit, series: &Series<'_>, rate: f64, burst_s: f64) -> Result<(), Failure> {
    let large = series.need(series::SEQUENTIAL)?;
    let held = large.iops < BELOW * rate;
    let source = if held { "1 MiB reads" } else { "the largest rate seen: no job met a limit of bytes" };
    let mib = series.fastest() / MIB;
    fit.number("bytes", "rate_mib_per_s", mib, source);
    fit.number("bytes", "burst_mib", (mib * burst_s).max(1.0 / 256.0), "as long as that of operations");
    Ok(())
}

/// Reads and writes with limits of their own.
fn apart(
    fit: &mut Fit,
    series: &Series<'_>,
    rate: f64,
    many: &Figures,
    large: Option<&Figures>,
    burst_s: f64,
) {
    let reads = series.get(series::SEQUENTIAL).map_or(series.fastest(), |figures| figures.bandwidth);
    let writes = large.map_or(series.fastest(), |figures| figures.bandwidth);
    for (section, rate, bytes) in [("read", rate, reads), ("write", many.iops, writes)] {
        fit.number(section, "rate_per_s", rate, "the rate of this direction alone");
        fit.number(section, "rate_mib_per_s", bytes / MIB, "1 MiB at a time");
        fit.number(section, "burst_ms", burst_s * 1e3, "as that of operations");
    }
    fit.word_bare("throttle", "apart", "true", "reads and writes have rates of their own");
}

fn latency(fit: &mut Fit, series: &Series<'_>, one: &Figures, waits: Waits) {
    let (median_ns, source) = match waits {
        Waits::Unseen | Waits::Period(_) => (one.p50_ns, "median of one read at a time"),
        Waits::Each => (one.p5_ns.min(one.p50_ns) * 0.5, "not seen behind the bucket: half of a fast wait"),
    };
    let sigma = match waits {
        Waits::Unseen => (one.p95_ns / one.p50_ns.max(1.0)).ln() / P95,
        _ => (one.p50_ns / one.p5_ns.max(1.0)).ln() / P95,
    };
    let sigma = if waits == Waits::Each { 0.0 } else { sigma.clamp(0.0, SIGMA_MAX) };
    fit.number("latency", "median_us", median_ns / 1e3, source);
    fit.number("latency", "sigma", sigma, "its spread, from the percentiles");
    let flushed = series.get(series::WRITE_FLUSHED).filter(|figures| figures.sync_ns > median_ns * 0.5);
    if let Some(flushed) = flushed {
        let longer_ns = (flushed.sync_ns - series.cpu_ns as f64 - median_ns).max(0.0);
        fit.number("latency", "flush_us", longer_ns / 1e3, "fdatasync less the latency of a command");
        fit.word_bare("limits", "write_cache", "true", "fdatasync was measured");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(iops: f64, p50_us: f64, p99_us: f64) -> Figures {
        let (p50_ns, p99_ns) = (p50_us * 1e3, p99_us * 1e3);
        Figures { iops, p50_ns, p99_ns, p999_ns: p99_ns, ..Figures::default() }
    }

    #[test]
    fn the_spread_of_waits_tells_the_kind_of_bucket() {
        assert_eq!(waits(&one(1600.0, 600.0, 900.0), 3000.0), Waits::Unseen);
        assert_eq!(waits(&one(400.0, 2490.0, 2600.0), 400.0), Waits::Each);
        assert_eq!(waits(&one(400.0, 100.0, 100_100.0), 400.0), Waits::Period(1e8));
        // Some jitter of waits that all have is no period.
        assert_eq!(waits(&one(400.0, 2400.0, 25_000.0), 400.0), Waits::Each);
    }
}
