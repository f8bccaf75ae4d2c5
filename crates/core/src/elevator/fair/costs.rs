//! What a request costs a device without seeks, by direction and size: the part of its time that explains how long rows of
//! requests took.
//!
//! Such a device serves many at a time, acknowledges writes before it is done with them, or lets a request go first and waits
//! afterwards. The time from one completion to the next then says little of the request that ends it: a read waits for a die that
//! another task's writes keep busy, a small request behind a large one. But a row of requests takes about as long as they cost together. So
//! for each row the difference between what it took and what its requests were thought to cost is shared out among the kinds, each
//! by the square of its part (normalised least mean squares; Widrow and Hoff 1960, Nagumo and Noda 1967): who had nothing to do with it
//! is hardly touched, and what cannot be told apart keeps its proportion.

use super::device::{SIZES, WORK_SECTORS};
use crate::MS;

/// Requests in a row: no fewer, and so many that they took this long, but no more than the second. (A drive that stalls now and then serves
/// afterwards what came meanwhile. In a shorter row, which has the stall and these, they would seem to have caused it.)
const ROW: [u32; 2] = [32, 1 << 15];
const ROW_NS: u64 = 20 * MS;
/// What is corrected at once: one part in so many of the difference, and no cost by more than to its half or double.
const STEP: i64 = 4;
/// The longest time that counts, nanoseconds (17 s; a row of them, and what it was thought to take in parts of 2^-10, fit into 2^59).
pub(super) const COST_MAX_NS: u64 = 1 << 34;
/// A kind counts in a row if it is more than one part in so many of it.
const COUNTS: u64 = 4;
/// Squares are of parts in 2^-10 of a row.
const PART_SHIFT: u32 = 10;

/// `sum` to divide by: neither 0 nor negative.
fn divisor(sum: u64) -> i64 {
    i64::try_from(sum).unwrap_or(i64::MAX).max(1)
}

/// What requests cost, and the row that is being looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    /// Nanoseconds, reads and writes by size; 0: not known.
    cost_ns: [[u64; SIZES]; 2],
    row: [[u32; SIZES]; 2],
    requests: u32,
    took_ns: u64,
    /// Which kinds counted in the row before, a bit for each.
    counted: u32,
    last_row: (u64, u64),
}

impl Costs {
    pub(super) const NEW: Costs = Costs {
        cost_ns: [[0; SIZES]; 2],
        row: [[0; SIZES]; 2],
        requests: 0,
        took_ns: 0,
        counted: 0,
        last_row: (0, 0),
    };

    /// A request is done, `took_ns` after the one before. Answers with what it costs.
    #[inline]
    pub(super) fn done(&mut self, writes: bool, size: usize, took_ns: u64) -> u64 {
        let (lane, size) = (usize::from(writes), size.min(SIZES - 1));
        let took_ns = took_ns.clamp(1, COST_MAX_NS);
        if self.cost_ns[lane][size] == 0 {
            self.cost_ns[lane][size] = like_others(&self.cost_ns, lane, size).unwrap_or(took_ns);
        }
        let cost_ns = self.cost_ns[lane][size];
        self.row[lane][size] += 1;
        self.requests += 1;
        self.took_ns += took_ns;
        let [least, most] = ROW;
        if self.requests >= least && self.took_ns >= ROW_NS || self.requests >= most {
            self.correct();
        }
        cost_ns
    }

    /// Did a row end with the request that was done last?
    #[inline]
    pub(super) fn row_ended(&self) -> bool {
        self.requests == 0
    }

    /// Were reads, or writes, of this size more than a quarter of the row before?
    pub(super) fn counted(&self, writes: bool, size: usize) -> bool {
        self.counted & 1 << (usize::from(writes) * SIZES + size) != 0
    }

    /// Sectors of the row before, as far as sizes tell, and how long it took, nanoseconds.
    pub(super) fn last_row(&self) -> (u64, u64) {
        self.last_row
    }

    /// What is known: what the requests are, their sectors, nanoseconds.
    pub(super) fn known(&self) -> impl Iterator<Item = (&'static str, u32, u64)> {
        known_costs(self.cost_ns)
    }

    fn correct(&mut self) {
        let row = core::mem::take(&mut self.row);
        let took_ns = core::mem::take(&mut self.took_ns);
        (self.requests, self.counted) = (0, 0);
        let sizes = row.iter().flat_map(|counts| counts.iter().enumerate());
        self.last_row = (sizes.map(|(size, count)| u64::from(*count) << size).sum(), took_ns);
        let kinds = || self.cost_ns.as_flattened().iter().zip(row.as_flattened());
        let thought_ns = kinds().map(|(cost_ns, count)| cost_ns * u64::from(*count)).sum::<u64>().max(1);
        let part = |cost_ns: u64, count: u32| ((cost_ns * u64::from(count)) << PART_SHIFT) / thought_ns;
        let squares = kinds().map(|(cost_ns, count)| part(*cost_ns, *count).pow(2)).sum::<u64>().max(1);
        // By how much of itself a kind that was the whole row would change, in 2^-10.
        let wrong = ((took_ns as i64 - thought_ns as i64) << PART_SHIFT) / divisor(thought_ns) / STEP;
        let wrong = wrong.clamp(-1 << 12, 1 << 12);
        let counts = row.as_flattened().iter();
        for (kind, (cost_ns, count)) in self.cost_ns.as_flattened_mut().iter_mut().zip(counts).enumerate() {
            if *count == 0 {
                continue;
            }
            let part = ((*cost_ns * u64::from(*count)) << PART_SHIFT) / thought_ns;
            self.counted |= u32::from(COUNTS * part > 1 << PART_SHIFT) << kind;
            let change = (wrong * part as i64 * (1 << PART_SHIFT) / divisor(squares)).clamp(-512, 1024);
            let moved = *cost_ns as i64 + ((*cost_ns as i64 * change) >> PART_SHIFT);
            *cost_ns = (moved.max(1) as u64).min(COST_MAX_NS);
        }
    }
}

/// What a kind is taken to cost of which nothing is known, where the others cost so much: what the nearest one does, by its work. (Its first
/// request's time says little: a rate limit lets a small one wait for what a large one before it has used up.)
fn like_others(cost_ns: &[[u64; SIZES]; 2], lane: usize, size: usize) -> Option<u64> {
    let nearest = |costs: &[u64; SIZES]| {
        let known = costs.iter().copied().enumerate().filter(|(_, cost_ns)| *cost_ns > 0);
        known.min_by_key(|(other, _)| other.abs_diff(size))
    };
    let [reads, writes] = cost_ns;
    let (same, opposite) = if lane == 0 { (reads, writes) } else { (writes, reads) };
    let (other, cost_ns) = nearest(same).or_else(|| nearest(opposite))?;
    let work = |size: usize| WORK_SECTORS.saturating_add(1 << size);
    Some((cost_ns * work(size) / work(other)).clamp(1, COST_MAX_NS))
}

/// Of what requests cost, by direction and size, what is known: what they are, their sectors, nanoseconds.
pub(super) fn known_costs(cost_ns: [[u64; SIZES]; 2]) -> impl Iterator<Item = (&'static str, u32, u64)> {
    let lanes = ["a read costs", "a write costs"].into_iter().zip(cost_ns);
    lanes
        .flat_map(|(what, costs)| costs.into_iter().enumerate().map(move |(size, ns)| (what, 1 << size, ns)))
        .filter(|(_, _, ns)| *ns > 0)
}
