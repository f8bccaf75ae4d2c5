//! What time went to, as it went on.

use std::collections::BTreeMap;

/// Intervals kept at most; when a run outlasts them, each becomes twice as long.
const INTERVALS_MAX: usize = 512;
/// Length of an interval at first, nanoseconds.
const FIRST_NS: u64 = 1_000_000;

/// Time by cause, or by another key, in each interval of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OverTime<Of> {
    /// Length of an interval, nanoseconds.
    pub interval_ns: u64,
    /// Nanoseconds in each interval since the run's start; intervals after a cause's last are left out.
    pub parts: BTreeMap<Of, Vec<u64>>,
}

impl<Of: Ord> OverTime<Of> {
    pub(crate) fn new() -> OverTime<Of> {
        OverTime { interval_ns: FIRST_NS, parts: BTreeMap::new() }
    }

    /// From `start_ns` to `end_ns` the time went to `of`.
    pub(crate) fn add(&mut self, of: Of, start_ns: u64, end_ns: u64) {
        while end_ns > self.interval_ns.saturating_mul(INTERVALS_MAX as u64) {
            self.halve();
        }
        let interval_ns = self.interval_ns;
        let samples = self.parts.entry(of).or_default();
        let last = (end_ns.saturating_sub(1) / interval_ns) as usize;
        if samples.len() <= last {
            samples.resize(last + 1, 0);
        }
        let first = (start_ns / interval_ns) as usize;
        for (number, sample) in samples.iter_mut().enumerate().skip(first) {
            let from_ns = number as u64 * interval_ns;
            *sample += end_ns.min(from_ns.saturating_add(interval_ns)).saturating_sub(start_ns.max(from_ns));
        }
    }

    /// Make the intervals twice as long.
    fn halve(&mut self) {
        self.interval_ns *= 2;
        for samples in self.parts.values_mut() {
            *samples = samples.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cause;
    use super::*;

    #[test]
    fn time_is_split_at_the_intervals_and_none_is_lost() {
        let mut over = OverTime::new();
        over.add(Cause::Flush, 500_000, 2_250_000);
        assert_eq!(over.parts[&Cause::Flush], [500_000, 1_000_000, 250_000]);
        over.add(Cause::Flush, 3_000_000_000, 3_000_000_001);
        assert_eq!(over.interval_ns, 8_000_000, "the shortest power of two of which 512 reach 3 s");
        assert_eq!(over.parts[&Cause::Flush].iter().sum::<u64>(), 1_750_001);
        assert_eq!(over.parts[&Cause::Flush][0], 1_750_000);
        assert_eq!(over.parts[&Cause::Flush].last(), Some(&1));
    }
    #[test]
    fn a_run_may_last_for_centuries() {
        let mut over = OverTime::new();
        over.add(Cause::Flush, u64::MAX - 10, u64::MAX);
        assert!(over.parts[&Cause::Flush].len() <= INTERVALS_MAX);
        assert_eq!(over.parts[&Cause::Flush].iter().sum::<u64>(), 10);
    }
}
