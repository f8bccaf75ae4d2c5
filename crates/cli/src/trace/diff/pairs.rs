//! Which I/O of one trace is which of the other, and how far they lie apart.

use std::collections::HashMap;
use std::collections::VecDeque;

use serde::Serialize;

use super::ios::{Class, Io, Key, Trace};

/// An I/O that both traces have. Times count from each trace's first common arrival.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// As the first trace has it.
    pub a: &'a Io,
    /// As the second trace has it.
    pub b: &'a Io,
}

/// Two traces laid beside each other.
#[derive(Debug)]
pub struct Pairs<'a> {
    /// What both have, in the order in which the first trace dispatched it.
    pub both: Vec<Pair<'a>>,
    /// What only the first has.
    pub only_a: Vec<&'a Io>,
    /// What only the second has.
    pub only_b: Vec<&'a Io>,
    /// Zero of the first trace's time, ns.
    pub zero_a: u64,
    /// Zero of the second trace's time, ns.
    pub zero_b: u64,
}

/// A class of I/Os in numbers. Differences are the second trace's time less the first's.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// The class.
    pub ios: &'static str,
    /// I/Os in both traces.
    pub both: usize,
    /// I/Os that only the first has.
    pub only_a: usize,
    /// I/Os that only the second has.
    pub only_b: usize,
    /// I/Os that arrived within the tolerance of each other.
    pub arrived_within: usize,
    /// The most I/Os that can be picked so that both traces dispatched them in one order.
    pub dispatched_in_order: usize,
    /// I/Os that were dispatched within the tolerance of each other.
    pub dispatched_within: usize,
    /// How far the dispatches lie apart, ns.
    pub dispatch_apart: Apart,
    /// I/Os that were done within the tolerance of each other.
    pub done_within: usize,
    /// Merged in both traces.
    pub merged_both: usize,
    /// Merged in the first only.
    pub merged_a: usize,
    /// Merged in the second only.
    pub merged_b: usize,
}

/// Sizes of differences, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Apart {
    /// Half of them are no larger.
    pub p50_ns: u64,
    /// 99 % of them are no larger.
    pub p99_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

impl Apart {
    fn of(mut sizes: Vec<u64>) -> Apart {
        sizes.sort_unstable();
        let Some(last) = sizes.len().checked_sub(1) else { return Apart::default() };
        let at = |share: f64| sizes[((sizes.len() as f64 * share).ceil() as usize).clamp(1, last + 1) - 1];
        Apart { p50_ns: at(0.5), p99_ns: at(0.99), max_ns: sizes[last] }
    }
}

impl<'a> Pairs<'a> {
    /// The n-th I/O of the first trace with this operation, sector and size is the n-th such of the second.
    pub fn of(a: &'a Trace, b: &'a Trace) -> Pairs<'a> {
        let mut known: HashMap<Key, VecDeque<&Io>> = HashMap::new();
        for io in &b.ios {
            known.entry(io.key).or_default().push_back(io);
        }
        let (mut both, mut only_a) = (Vec::new(), Vec::new());
        for io in &a.ios {
            match known.get_mut(&io.key).and_then(VecDeque::pop_front) {
                Some(other) => both.push(Pair { a: io, b: other }),
                None => only_a.push(io),
            }
        }
        let mut only_b: Vec<&Io> = known.into_values().flatten().collect();
        only_b.sort_by_key(|io| (io.arrived_ns, io.key.sector));
        let zero_a = both.iter().map(|pair| pair.a.arrived_ns).min().unwrap_or(0);
        let zero_b = both.iter().map(|pair| pair.b.arrived_ns).min().unwrap_or(0);
        both.sort_by_key(|pair| (pair.a.dispatched_ns, pair.b.dispatched_ns));
        Pairs { both, only_a, only_b, zero_a, zero_b }
    }

    /// The figures of one class; of all I/Os without one.
    pub fn figures(&self, class: Option<Class>, within_ns: u64) -> Figures {
        let is_in = |io: &Io| class.is_none_or(|class| io.class == class);
        let pairs: Vec<&Pair<'_>> = self.both.iter().filter(|pair| is_in(pair.a)).collect();
        let near = |apart: u64| apart <= within_ns;
        let merged = |a: bool, b: bool| {
            pairs.iter().filter(|pair| (pair.a.is_merged, pair.b.is_merged) == (a, b)).count()
        };
        let dispatches: Vec<u64> = pairs.iter().filter_map(|pair| self.dispatch_apart(pair)).collect();
        Figures {
            ios: class.map_or("all", Class::name),
            both: pairs.len(),
            only_a: self.only_a.iter().filter(|io| is_in(io)).count(),
            only_b: self.only_b.iter().filter(|io| is_in(io)).count(),
            arrived_within: pairs.iter().filter(|pair| near(self.arrival_apart(pair))).count(),
            dispatched_in_order: longest_rising(pairs.iter().filter_map(|pair| pair.b.dispatched_ns)),
            dispatched_within: dispatches.iter().filter(|apart| near(**apart)).count(),
            dispatch_apart: Apart::of(dispatches),
            done_within: pairs.iter().filter(|pair| near(self.done_apart(pair))).count(),
            merged_both: merged(true, true),
            merged_a: merged(true, false),
            merged_b: merged(false, true),
        }
    }

    /// Both traces have the same I/Os, dispatched in one order, each within the tolerance, merged alike.
    pub fn is_same(&self, within_ns: u64) -> bool {
        let all = self.figures(None, within_ns);
        all.only_a + all.only_b + all.merged_a + all.merged_b == 0
            && all.dispatched_in_order == all.both
            && all.dispatched_within == all.both
            && all.done_within == all.both
    }

    /// The first `count` pairs that were dispatched further apart than the tolerance.
    pub fn first_apart(&self, within_ns: u64, count: usize) -> Vec<&Pair<'a>> {
        let is_apart = |pair: &&Pair<'_>| self.dispatch_apart(pair).is_none_or(|apart| apart > within_ns);
        self.both.iter().filter(is_apart).take(count).collect()
    }

    fn arrival_apart(&self, pair: &Pair<'_>) -> u64 {
        self.apart(pair.a.arrived_ns, pair.b.arrived_ns)
    }

    fn done_apart(&self, pair: &Pair<'_>) -> u64 {
        self.apart(pair.a.done_ns, pair.b.done_ns)
    }

    fn dispatch_apart(&self, pair: &Pair<'_>) -> Option<u64> {
        Some(self.apart(pair.a.dispatched_ns?, pair.b.dispatched_ns?))
    }

    fn apart(&self, a_ns: u64, b_ns: u64) -> u64 {
        let (a, b) = (i128::from(a_ns) - i128::from(self.zero_a), i128::from(b_ns) - i128::from(self.zero_b));
        u64::try_from((a - b).abs()).unwrap_or(u64::MAX)
    }
}

/// The length of the longest subsequence that never falls: each value is put on the first pile whose top is greater.
pub fn longest_rising(values: impl Iterator<Item = u64>) -> usize {
    let mut tops: Vec<u64> = Vec::new();
    for value in values {
        let pile = tops.partition_point(|top| *top <= value);
        match tops.get_mut(pile) {
            Some(top) => *top = value,
            None => tops.push(value),
        }
    }
    tops.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rising_part_is_found() {
        let length = |values: &[u64]| longest_rising(values.iter().copied());
        assert_eq!(length(&[]), 0);
        assert_eq!(length(&[1, 2, 3]), 3);
        assert_eq!(length(&[3, 2, 1]), 1);
        assert_eq!(length(&[1, 5, 2, 3, 9, 4]), 4);
        assert_eq!(length(&[2, 2, 1, 2]), 3, "requests dispatched at one time are in order");
    }

    #[test]
    fn percentiles_are_of_the_sizes() {
        assert_eq!(Apart::of(Vec::new()), Apart::default());
        assert_eq!(Apart::of((1..=200).rev().collect()), Apart { p50_ns: 100, p99_ns: 198, max_ns: 200 });
        assert_eq!(Apart::of(vec![7]), Apart { p50_ns: 7, p99_ns: 7, max_ns: 7 });
    }
}
