//! A figure, and how far it can be trusted: a mark stands only where a difference is more than that.

use fairlift_sim::stats::Latency;

use crate::spread::Spread;

/// Figures of one run that differ by less are alike: the answer counts so, too.
const ALIKE: f64 = 1.05;
/// Half the width of a 95 % interval of a normal distribution, in standard deviations.
const NORMAL: f64 = 1.96;
/// A percentile with fewer slower samples than this behind it is hardly one.
pub(crate) const BEHIND_MIN: u64 = 10;

/// A figure within an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    /// It is a mean over seeds, and the interval Student's.
    pub seeds: bool,
}

impl Estimate {
    /// A figure by seed. Of one seed its interval is what counts as alike.
    pub(crate) fn of_seeds(values: impl IntoIterator<Item = f64>) -> Option<Estimate> {
        let values: Vec<f64> = values.into_iter().collect();
        let Spread { mean, half } = Spread::of(values.iter().copied())?;
        if values.len() > 1 {
            return Some(Estimate { value: mean, low: mean - half, high: mean + half, seeds: true });
        }
        let alike = ALIKE.sqrt();
        Some(Estimate { value: mean, low: mean / alike, high: mean * alike, seeds: false })
    }

    /// A percentile by seed. Of one seed the interval is that of the order statistics, as if requests were independent of each other
    /// (David and Nagaraja, Order Statistics, 7.1); they are not quite, so it is no narrower than what counts as alike.
    pub(crate) fn percentile(latencies: &[&Latency], percent: f64) -> Option<Estimate> {
        let at = |latency: &Latency, percent: f64| {
            latency.percentile_ns(percent.clamp(0.0, 100.0)).min(latency.max_ns()) as f64
        };
        let filled = || latencies.iter().filter(|latency| latency.count() > 0);
        let estimate = Estimate::of_seeds(filled().map(|latency| at(latency, percent)))?;
        let Some(latency) = filled().next().filter(|_| !estimate.seeds) else { return Some(estimate) };
        let part = percent / 100.0;
        let off = 100.0 * NORMAL * (part * (1.0 - part) / latency.count() as f64).sqrt();
        Some(Estimate {
            low: estimate.low.min(at(latency, percent - off)),
            high: estimate.high.max(at(latency, percent + off)),
            ..estimate
        })
    }

    fn is_apart_from(&self, other: &Estimate) -> bool {
        self.low > other.high || self.high < other.low
    }
}

/// Which of the figures are best: the best one, and those that cannot be told from it. None is if they are all alike.
pub(crate) fn best(estimates: &[Option<Estimate>], higher: bool) -> Vec<bool> {
    let order = |a: &Estimate, b: &Estimate| {
        if higher { a.value.total_cmp(&b.value) } else { b.value.total_cmp(&a.value) }
    };
    let Some(best) = estimates.iter().flatten().copied().max_by(order) else {
        return vec![false; estimates.len()];
    };
    let apart = |estimate: &Option<Estimate>| estimate.is_some_and(|e| e.is_apart_from(&best));
    let differs = estimates.iter().any(apart);
    estimates.iter().map(|estimate| differs && estimate.is_some() && !apart(estimate)).collect()
}

/// Samples slower than a percentile.
pub(crate) fn behind(count: u64, percent: f64) -> u64 {
    ((1.0 - percent / 100.0) * count as f64).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seeds(values: &[f64]) -> Option<Estimate> {
        Estimate::of_seeds(values.iter().copied())
    }

    #[test]
    fn what_cannot_be_told_from_the_best_is_marked_with_it() {
        let estimates =
            [seeds(&[10.0, 11.0, 12.0]), seeds(&[11.0, 12.0, 13.0]), seeds(&[100.0, 101.0, 102.0]), None];
        assert_eq!(best(&estimates, false), [true, true, false, false]);
        assert_eq!(best(&estimates, true), [false, false, true, false]);
    }

    #[test]
    fn nothing_is_marked_where_all_are_alike() {
        assert_eq!(best(&[seeds(&[100.0]), seeds(&[104.0])], true), [false, false]);
        assert_eq!(best(&[seeds(&[100.0]), seeds(&[106.0])], true), [false, true]);
    }

    #[test]
    fn a_percentile_of_few_samples_is_uncertain() {
        let latency = |count: u64| {
            let mut latency = Latency::new();
            (0..count).for_each(|at| latency.record(1_000 + at * 1_000_000 / count));
            latency
        };
        let width = |count| {
            let estimate = Estimate::percentile(&[&latency(count)], 90.0).expect("samples");
            estimate.high - estimate.low
        };
        // 1.96 sqrt(0.9 * 0.1 / 100) = 5.9 % of the samples to each side.
        assert!((width(100) - 118_000.0).abs() < 25_000.0, "{}", width(100));
        assert!(width(1_000_000) < 50_000.0);
        assert_eq!((behind(1000, 99.0), behind(489, 99.9)), (10, 0));
    }
}
