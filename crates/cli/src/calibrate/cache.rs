//! A cache that answers a part of the reads: the memory of a virtual machine's host, or of the drive.
//!
//! Reads within a span that fits into it take the time of a hit. Of reads all over the target the share that fits hits, so that its
//! times are a mixture: the median and the 95th percentile tell how long the others take (lognormal), the mean tells the share.

use super::fit::Series;
use super::measured::Figures;
use super::series::{self, SPANS};

/// The whole target's median over the shortest span's: less is noise, or an arm.
const SLOWER: f64 = 1.5;
const MIB: f64 = 1_048_576.0;
/// A cache that answers more leaves too little to tell the drive behind it.
const SHARE_MAX: f64 = 0.45;
const ROUNDS: u32 = 40;

/// What was found of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cached {
    pub target_bytes: f64,
    /// The part of the target that it holds.
    pub share: f64,
    /// A read that it answers, and the mean, median and 95th percentile of one that it does not, less the host's time.
    pub hit_ns: f64,
    pub miss_ns: f64,
    pub miss_p50_ns: f64,
    pub miss_p95_ns: f64,
}

impl Cached {
    /// Its size and the target's, as the device file has them.
    pub fn mib(&self) -> (u64, u64) {
        let whole = |bytes: f64| (bytes / MIB).round().max(1.0) as u64;
        (whole(self.target_bytes * self.share), whole(self.target_bytes))
    }

    /// What reads of `mean_ns` all over the target take where it does not answer.
    pub fn without(&self, mean_ns: f64) -> f64 {
        ((mean_ns - self.share * self.hit_ns) / (1.0 - self.share)).max(self.hit_ns)
    }
}

/// The cache that the series shows, if it does.
pub fn find(series: &Series<'_>) -> Option<Cached> {
    let short = series.get(&format!("{}{}", series::SPAN, SPANS[0]))?;
    let one = series.get(&format!("{}1", series::RANDOM))?;
    let host_ns = series.cpu_ns as f64;
    if short.p50_ns <= 0.0 || one.p50_ns < short.p50_ns * SLOWER {
        return None;
    }
    mixture(&one, (short.p50_ns - host_ns).max(1.0), host_ns, series.target_bytes()? as f64)
}

fn mixture(one: &Figures, hit_ns: f64, host_ns: f64, target_bytes: f64) -> Option<Cached> {
    let mean_ns = 1e9 / one.iops - host_ns;
    let (p50_ns, p95_ns) = (one.p50_ns - host_ns, one.p95_ns - host_ns);
    if p50_ns <= 0.0 || p95_ns <= p50_ns {
        return None;
    }
    let mut found = Cached {
        target_bytes,
        share: 0.0,
        hit_ns,
        miss_ns: mean_ns,
        miss_p50_ns: p50_ns,
        miss_p95_ns: p95_ns,
    };
    for _ in 0..ROUNDS {
        // Where the mixture's percentiles lie among the misses, which are the upper part of it.
        let at = |percent: f64| probit(((percent - found.share) / (1.0 - found.share)).clamp(0.01, 0.99));
        let (low, high) = (at(0.5), at(0.95));
        let sigma = (p95_ns / p50_ns).ln() / (high - low);
        let median_ns = p50_ns * (-sigma * low).exp();
        found.miss_p50_ns = median_ns;
        found.miss_p95_ns = median_ns * (sigma * probit(0.95)).exp();
        found.miss_ns = median_ns * (sigma * sigma / 2.0).exp();
        found.share = ((found.miss_ns - mean_ns) / (found.miss_ns - hit_ns)).clamp(0.0, SHARE_MAX);
    }
    // A cache smaller than a thousandth is that of the shortest span.
    found.share = found.share.max(SPANS[0] as f64 / 1e3);
    Some(found)
}

/// The standard normal's quantile, by bisection of its distribution function (Abramowitz and Stegun 26.2.17, error below 1e-7).
fn probit(share: f64) -> f64 {
    let below = |x: f64| {
        let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
        let series = t
            * (0.319_381_530
                + t * (-0.356_563_782 + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
        let tail = (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * series;
        if x < 0.0 { tail } else { 1.0 - tail }
    };
    let (mut low, mut high) = (-6.0, 6.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if below(middle) < share {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_normal() {
        for (share, wanted) in [(0.5, 0.0), (0.95, 1.644_854), (0.025, -1.959_964)] {
            assert!((probit(share) - wanted).abs() < 1e-5, "{share}: {}", probit(share));
        }
    }

    /// An eighth of the reads takes 12 us, the rest a lognormal time of median 65 us and σ 0.1.
    #[test]
    fn a_mixture_is_taken_apart() {
        let (share, sigma, median) = (0.125, 0.1, 65e3);
        let miss = |percent: f64| median * (sigma * probit((percent - share) / (1.0 - share))).exp();
        let miss_mean = median * f64::exp(sigma * sigma / 2.0);
        let mean = share * 12e3 + (1.0 - share) * miss_mean;
        let one = Figures { iops: 1e9 / mean, p50_ns: miss(0.5), p95_ns: miss(0.95), ..Figures::default() };
        let found = mixture(&one, 12e3, 0.0, 4096.0 * MIB).unwrap();
        assert!((found.share / share - 1.0).abs() < 0.01, "{found:?}");
        assert!((found.miss_ns / miss_mean - 1.0).abs() < 0.01, "{found:?}");
    }
}
