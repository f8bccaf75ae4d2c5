//! What a request costs a device that serves exactly one after the other and has no seeks, by direction and size.
//!
//! Most such devices serve a request and then say that it is done: the gap between two completions is the cost of the second. A rate limit in
//! tokens says first that a request is done and makes the next one wait for it: the gap is the cost of the first. So a gap is taken for
//! the sum of two parts, one of each, and both are corrected by what was wrong with the sum (least mean squares; Widrow and Hoff
//! 1960). The two parts of a kind together are what it costs; the order of events decides which of them grows.
//!
//! Not every device is like that. The parts count while they foretell the gaps much better than what rows of requests say
//! ([`super::costs`]): a limit that lets a burst pass makes a request wait for what went long before.

use super::costs::{COST_MAX_NS, known_costs};
use super::device::SIZES;

/// One part in so many of what was wrong is corrected at once, in each of the two parts.
const STEP: i64 = 16;
/// A gap of more than so many times what was expected counts as that: it may be a pause.
const LONG: i64 = 4;
/// The parts count once they are wrong by less than the first, of what rows are wrong by, and until they are by more than the second, per cent.
const COUNTS: [u64; 2] = [50, 75];
/// How wrong they are is a running mean of 2^5.
const WRONG_SHIFT: u32 = 5;

/// Of a kind of request: nanoseconds in the gap that it ends, and in the gap that follows it.
#[derive(Clone, Copy, Debug)]
struct Parts {
    own_ns: i64,
    next_ns: i64,
}

impl Parts {
    const NONE: Parts = Parts { own_ns: 0, next_ns: 0 };

    fn cost_ns(self) -> u64 {
        self.own_ns.saturating_add(self.next_ns).max(0) as u64
    }
}

/// By how much an expectation is wrong, a running sum.
#[derive(Clone, Copy, Debug)]
struct Wrong(u64);

impl Wrong {
    fn add(&mut self, wrong_ns: i64) {
        self.0 += wrong_ns.unsigned_abs();
        self.0 -= self.0 >> WRONG_SHIFT;
    }
}

/// What requests cost, and which was done last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gaps {
    /// Reads and writes by size; [`Parts::NONE`]: not known.
    parts: [[Parts; SIZES]; 2],
    /// Its direction and size.
    last: Option<(bool, usize)>,
    /// How wrong the parts are, and the rows.
    wrong: Wrong,
    rows_wrong: Wrong,
    pub(super) count: bool,
}

impl Gaps {
    pub(super) const NEW: Gaps = Gaps {
        parts: [[Parts::NONE; SIZES]; 2],
        last: None,
        wrong: Wrong(0),
        rows_wrong: Wrong(0),
        count: false,
    };

    /// A request is done, `gap_ns` after the one before, or after it was sent if that was later: the device had nothing to do for `idle_ns`
    /// then. Rows say that it costs `row_ns`. Answers with what it costs.
    pub(super) fn done(&mut self, writes: bool, size: usize, gap_ns: u64, idle_ns: u64, row_ns: u64) -> u64 {
        let (lane, size) = (usize::from(writes), size.min(SIZES - 1));
        let [gap_ns, idle_ns, row_ns] = [gap_ns, idle_ns, row_ns].map(|ns| ns.clamp(1, COST_MAX_NS) as i64);
        if self.parts[lane][size].cost_ns() == 0 {
            self.parts[lane][size] = Parts { own_ns: row_ns - row_ns / 2, next_ns: row_ns / 2 };
        }
        // What is left of the one before, if it left anything.
        let before = self.last.map(|(writes, size)| (usize::from(writes), size % SIZES));
        let before = before.filter(|(lane, size)| self.parts[*lane][*size].next_ns > idle_ns);
        let left_ns = before.map_or(0, |(lane, size)| self.parts[lane][size].next_ns - idle_ns);
        let thought_ns = self.parts[lane][size].own_ns + left_ns;
        let gap_ns = gap_ns.min(LONG * thought_ns.max(row_ns));
        let wrong_ns = gap_ns - thought_ns;
        self.parts[lane][size].own_ns += wrong_ns / STEP;
        if let Some((lane, size)) = before {
            self.parts[lane][size].next_ns += wrong_ns / STEP;
        }
        self.last = Some((writes, size));

        self.wrong.add(wrong_ns);
        self.rows_wrong.add(gap_ns - row_ns);
        let [some, most] = COUNTS.map(|percent| self.rows_wrong.0.saturating_mul(percent) / 100);
        self.count = self.wrong.0 < if self.count { most } else { some };
        if self.count { self.parts[lane][size].cost_ns().max(1) } else { row_ns as u64 }
    }

    /// What is known: what the requests are, their sectors, nanoseconds.
    pub(super) fn known(&self) -> impl Iterator<Item = (&'static str, u32, u64)> {
        known_costs(self.parts.map(|parts| parts.map(Parts::cost_ns)))
    }
}
