//! A histogram of times with two bits of precision, up to hours.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Four steps for each power of two.
const STEPS: usize = 4;
const BUCKETS: usize = 40 * STEPS;

/// Counts by time; threads may add at the same time.
#[derive(Debug)]
pub struct Histogram {
    counts: Box<[AtomicU64]>,
    longest_ns: AtomicU64,
}

/// The figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// How many were counted.
    pub count: u64,
    /// Half were not longer than this, nanoseconds; rounded up by at most a quarter.
    pub p50_ns: u64,
    /// 99 % were not longer than this.
    pub p99_ns: u64,
    /// The longest, exactly.
    pub longest_ns: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(), longest_ns: AtomicU64::new(0) }
    }
}

/// In which bucket `ns` is counted.
fn bucket(ns: u64) -> usize {
    let power = ns.max(4).ilog2() as usize;
    let step = (ns.max(4) >> (power - 2)) as usize - STEPS;
    ((power - 2) * STEPS + step).min(BUCKETS - 1)
}

/// The longest time that `bucket` counts.
fn upper_ns(bucket: usize) -> u64 {
    let (power, step) = (bucket / STEPS, bucket % STEPS);
    (((STEPS + step + 1) as u64) << power) - 1
}

impl Histogram {
    /// One took so long.
    pub fn add(&self, ns: u64) {
        self.counts[bucket(ns)].fetch_add(1, Relaxed);
        self.longest_ns.fetch_max(ns, Relaxed);
    }

    /// What was counted: the longest time that a bucket counts, nanoseconds, and how many; empty ones are left out.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let counts = self.counts.iter().map(|count| count.load(Relaxed)).enumerate();
        counts.filter(|(_, count)| *count > 0).map(|(bucket, count)| (upper_ns(bucket), count)).collect()
    }

    /// The figures so far.
    pub fn summary(&self) -> Summary {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Relaxed)).collect();
        let count: u64 = counts.iter().sum();
        let longest_ns = self.longest_ns.load(Relaxed);
        let at = |percent: u64| {
            let wanted = (count * percent).div_ceil(100);
            let mut sum = 0;
            let found = counts.iter().position(|n| {
                sum += n;
                sum >= wanted
            });
            found.map_or(0, |bucket| upper_ns(bucket).min(longest_ns))
        };
        Summary { count, p50_ns: at(50), p99_ns: at(99), longest_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_a_quarter_wide() {
        for ns in [1, 4, 5, 7, 8, 1000, 123_456, 99_999_999] {
            let upper = upper_ns(bucket(ns));
            assert!(upper >= ns && upper <= ns.max(4) * 5 / 4 + 1, "{ns}: {upper}");
        }
    }

    #[test]
    fn percentiles_count_from_below() {
        let histogram = Histogram::default();
        (0..98).for_each(|_| histogram.add(1_000));
        histogram.add(50_000);
        histogram.add(9_000_000);
        let Summary { count, p50_ns, p99_ns, longest_ns } = histogram.summary();
        assert_eq!((count, longest_ns), (100, 9_000_000));
        assert_eq!(histogram.counts().iter().map(|(_, count)| *count).collect::<Vec<_>>(), [98, 1, 1]);
        assert!((1_000..1_250).contains(&p50_ns) && (50_000..62_500).contains(&p99_ns), "{p50_ns} {p99_ns}");
    }
}
