//! Think time, rates, latency goals.

use crate::job::{LatencyTarget, Rate, RateProcess, ThinkTime};
use crate::settings::Reader;
use crate::values::{self, Wrong};

pub(super) fn think(r: &mut Reader<'_>) -> ThinkTime {
    let pause_us = r.time_us("thinktime", 0);
    ThinkTime {
        pause_us,
        spin_us: r.time_us("thinktime_spin", 0).min(pause_us),
        blocks: r.number("thinktime_blocks", 1, 0..=u64::from(u32::MAX)).max(1),
        count_issues: r.choice("thinktime_blocks_type", false, &[("complete", false), ("issue", true)]).0,
        iotime_us: r.time_us("thinktime_iotime", 0),
    }
}

pub(super) fn rate(r: &mut Reader<'_>) -> Rate {
    let mut limits = |name| r.per_direction(name, values::bytes).map(Option::unwrap_or_default);
    let bytes_per_s = limits("rate");
    let min_bytes_per_s = limits("rate_min");
    let iops = limits("rate_iops");
    let min_iops = limits("rate_iops_min");
    let set = |values: [u64; 3]| values.iter().any(|&value| value > 0);
    if set(bytes_per_s) && set(iops) {
        r.complain("rate_iops", Wrong::new("rate and rate_iops exclude each other", "one of them"));
    }
    if set(min_bytes_per_s) && set(min_iops) {
        r.complain(
            "rate_iops_min",
            Wrong::new("rate_min and rate_iops_min exclude each other", "one of them"),
        );
    }
    for (name, limit, least) in
        [("rate_min", bytes_per_s, min_bytes_per_s), ("rate_iops_min", iops, min_iops)]
    {
        if limit.iter().zip(least).any(|(&limit, least)| limit > 0 && limit < least) {
            r.complain(name, Wrong::new("is above the rate itself", "at most the rate"));
        }
    }
    for (name, least) in [("rate_min", min_bytes_per_s), ("rate_iops_min", min_iops)] {
        if set(least) {
            r.warn(name, "a job that falls below its least rate goes on; fio ends it");
        }
    }
    Rate {
        bytes_per_s,
        min_bytes_per_s,
        iops,
        min_iops,
        process: r
            .choice(
                "rate_process",
                RateProcess::Linear,
                &[("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)],
            )
            .0,
        cycle_ms: r.number("rate_cycle", 1000, 0..=u64::from(u32::MAX)),
        ignore_thinktime: r.flag("rate_ignore_thinktime", false),
    }
}

pub(super) fn latency_target(r: &mut Reader<'_>) -> Option<LatencyTarget> {
    let target_us = r.time_us("latency_target", 0);
    let window_us = r.time_us("latency_window", 0);
    let percentile = r.text("latency_percentile").map(values::fraction);
    let percentile = percentile.unwrap_or(Ok(100.0)).unwrap_or_else(|wrong| {
        r.complain("latency_percentile", wrong);
        100.0
    });
    let run = r.flag("latency_run", false);
    (target_us > 0).then(|| {
        r.warn("latency_target", "'latency_target' is not simulated: the job runs at its full iodepth");
        LatencyTarget { target_us, window_us, percentile, run }
    })
}
