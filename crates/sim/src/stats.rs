//! Latency distributions and rates, counted the way fio counts them.

/// Sub-buckets per power of two (fio's `FIO_IO_U_PLAT_VAL`).
const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;
/// Powers of two covered: all there are. (fio's `FIO_IO_U_PLAT_GROUP_NR` is 29, so that its percentiles end at 17.1 s.)
const GROUPS: usize = 59;
const BUCKETS: usize = GROUPS * SUB as usize;

/// Count, extremes, mean and deviation of samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    count: u64,
    min_ns: u64,
    max_ns: u64,
    sum_ns: u128,
    sum_square: u128,
}

impl Default for Moments {
    fn default() -> Moments {
        Moments { count: 0, min_ns: u64::MAX, max_ns: 0, sum_ns: 0, sum_square: 0 }
    }
}

impl Moments {
    /// Add a sample, nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.count += 1;
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns);
        self.sum_square += u128::from(ns) * u128::from(ns);
    }

    /// Add all samples of `other`.
    pub fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
        self.sum_square += other.sum_square;
    }

    /// Samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Smallest sample, nanoseconds; 0 without samples.
    pub fn min_ns(&self) -> u64 {
        if self.count == 0 { 0 } else { self.min_ns }
    }

    /// Largest sample, nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Mean, nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum_ns as f64 / self.count as f64 }
    }

    /// Standard deviation (of a sample, divisor n-1), nanoseconds.
    pub fn stddev_ns(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let n = self.count as f64;
        let variance = (self.sum_square as f64 - self.sum_ns as f64 * self.sum_ns as f64 / n) / (n - 1.0);
        variance.max(0.0).sqrt()
    }
}

/// A latency distribution in fio's buckets: exact below 128 ns, then 64 buckets per power of two, each reported at its
/// middle (error at most 1/128).
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// Up to the largest bucket that was ever needed: most distributions of thousands of processes stay empty.
    buckets: Vec<u64>,
    moments: Moments,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency::new()
    }
}

impl Latency {
    /// No sample.
    pub fn new() -> Latency {
        Latency { buckets: Vec::new(), moments: Moments::default() }
    }

    /// Add a sample, nanoseconds.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let bucket = bucket(ns);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.moments.record(ns);
    }

    /// Add all samples of `other`.
    pub fn merge(&mut self, other: &Latency) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.moments.merge(&other.moments);
    }

    /// Count, extremes, mean and deviation alone.
    pub fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The distribution: each bucket's middle, nanoseconds, and the samples in it; empty buckets are left out.
    pub fn distribution(&self) -> impl Iterator<Item = (u64, u64)> {
        self.buckets.iter().enumerate().filter(|(_, n)| **n > 0).map(|(i, n)| (middle(i), *n))
    }

    /// Samples below `ns`, by their buckets' middles: off by at most the bucket `ns` lies in.
    pub fn count_below(&self, ns: u64) -> u64 {
        self.buckets.iter().enumerate().take_while(|(i, _)| middle(*i) < ns).map(|(_, n)| n).sum()
    }

    /// Samples.
    pub fn count(&self) -> u64 {
        self.moments.count()
    }

    /// Smallest sample, nanoseconds; 0 without samples.
    pub fn min_ns(&self) -> u64 {
        self.moments.min_ns()
    }

    /// Largest sample, nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.moments.max_ns()
    }

    /// Mean, nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        self.moments.mean_ns()
    }

    /// Standard deviation (of a sample, divisor n-1), nanoseconds.
    pub fn stddev_ns(&self) -> f64 {
        self.moments.stddev_ns()
    }

    /// The value below which `percent` percent of the samples lie, nanoseconds, as fio reports it; 0 without samples.
    pub fn percentile_ns(&self, percent: f64) -> u64 {
        let wanted = percent / 100.0 * self.count() as f64;
        let mut seen = 0u64;
        for (i, n) in self.buckets.iter().enumerate() {
            seen += n;
            if *n > 0 && seen as f64 >= wanted {
                return middle(i);
            }
        }
        0
    }
}

fn bucket(ns: u64) -> usize {
    let top = 63 - (ns | 1).leading_zeros();
    if top <= SUB_BITS {
        return ns as usize;
    }
    let shift = top - SUB_BITS;
    let index = (u64::from(shift) << SUB_BITS) + (ns >> shift);
    (index as usize).min(BUCKETS - 1)
}

fn middle(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * SUB {
        return bucket;
    }
    let shift = (bucket >> SUB_BITS) - 1;
    let base = (bucket - (shift << SUB_BITS)) << shift;
    base + (1 << (shift - 1))
}

/// Jain's fairness index of what each got: 1 when equal, 1/n when one got all. 1 for nothing at all.
pub fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_fios() {
        assert_eq!((bucket(0), bucket(127), bucket(128), bucket(129), bucket(130)), (0, 127, 128, 128, 129));
        assert_eq!(middle(bucket(127)), 127);
        assert_eq!(middle(bucket(128)), 129, "128..130 is reported as its middle");
        for ns in [200u64, 12_345, 1_000_000, 8_333_333, 2_039_000_000, 40_000_000_000, u64::MAX] {
            let error = middle(bucket(ns)).abs_diff(ns) as f64 / ns as f64;
            assert!(error <= 1.0 / 128.0, "{ns}: {error}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_take_the_first_bucket_that_covers_them() {
        let mut latency = Latency::new();
        (1..=100).for_each(|ns| latency.record(ns));
        assert_eq!(
            (latency.percentile_ns(1.0), latency.percentile_ns(50.0), latency.percentile_ns(99.0)),
            (1, 50, 99)
        );
        assert_eq!((latency.percentile_ns(99.5), latency.percentile_ns(100.0)), (100, 100));
        assert_eq!(latency.mean_ns(), 50.5);
        assert!((latency.stddev_ns() - 29.011).abs() < 0.001);
    }

    #[test]
    fn jain_knows_the_extremes() {
        assert_eq!(jain(&[5.0, 5.0, 5.0]), 1.0);
        assert_eq!(jain(&[9.0, 0.0, 0.0]), 1.0 / 3.0);
    }
}
