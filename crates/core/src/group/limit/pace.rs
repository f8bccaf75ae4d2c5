//! One rate, kept exactly: when the next request may go, in nanoseconds and a carried remainder.
//!
//! A request may go at the first nanosecond by which everything before it is paid for; then it goes into debt with all it
//! costs. So a request larger than any bucket passes like the others, only the next one waits longer, and there is no bucket
//! whose size would have to fit the rate.
//!
//! At 3 requests a second one costs 333,333,333 1/3 ns. The third of a nanosecond is not thrown away: it stays as `rest`, in
//! units of 1/rate ns, and after three requests the clock stands at 1,000,000,000 exactly.

/// Nanoseconds in a second, as two factors that keep a product with a rate below 2^64.
const SECOND_A: u64 = 32_000;
const SECOND_B: u64 = 31_250;
const SECOND: u64 = SECOND_A * SECOND_B;

/// The largest rate: 2^48 units a second (281 TB/s).
pub const RATE_MAX: u64 = 1 << 48;

/// A rate and what is owed to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Pace {
    /// Units a second; 0 = no limit.
    rate: u64,
    /// The rate there is, or else the last there was: debts outlive their limit and are paid at it, so that no group gets rid
    /// of one by having the limit taken away and set again.
    last_rate: u64,
    /// All that went is paid for at `due_ns + rest / last_rate`; `rest < last_rate`, or both are 0.
    due_ns: u64,
    rest: u64,
}

impl Pace {
    /// No limit.
    pub(super) const NONE: Pace = Pace { rate: 0, last_rate: 0, due_ns: 0, rest: 0 };

    /// The rate, 0 without one.
    #[inline]
    pub(super) const fn rate(&self) -> u64 {
        self.rate
    }

    /// The first nanosecond at which something may go; 0 without a limit.
    #[inline]
    pub(super) const fn ready_at(&self) -> u64 {
        // No overflow: `due_ns` stops at MAX, where `rest` is 0.
        if self.rate == 0 { 0 } else { self.due_ns + (self.rest > 0) as u64 }
    }

    /// Is there time before `floor_ns` that was not used?
    #[inline]
    pub(super) const fn has_credit(&self, floor_ns: u64) -> bool {
        self.due_ns < floor_ns
    }

    /// Time that was not used before `floor_ns` is lost.
    #[inline]
    pub(super) fn forget_credit(&mut self, floor_ns: u64) {
        if self.has_credit(floor_ns) {
            self.due_ns = floor_ns;
            self.rest = 0;
        }
    }

    /// `units` go.
    #[inline]
    pub(super) fn charge(&mut self, units: u64) {
        if self.rate == 0 {
            return;
        }
        let (ns, rest) = time_of(units, self.rate, self.rest);
        match self.due_ns.checked_add(ns) {
            Some(due_ns) => (self.due_ns, self.rest) = (due_ns, rest),
            // 584 years: nobody will see it paid.
            None => (self.due_ns, self.rest) = (u64::MAX, 0),
        }
    }

    /// `units` that were charged did not go after all; what is below a nanosecond stays charged.
    #[inline]
    pub(super) fn refund(&mut self, units: u64) {
        if self.rate != 0 && self.due_ns != u64::MAX {
            self.due_ns = self.due_ns.saturating_sub(time_of(units, self.rate, 0).0);
        }
    }

    /// What `units` cost, nanoseconds rounded down; 0 without a limit.
    #[inline]
    pub(super) fn cost_ns(&self, units: u64) -> u64 {
        if self.rate == 0 { 0 } else { time_of(units, self.rate, 0).0 }
    }

    /// From now on `rate` (0: none; at most [`RATE_MAX`]). What is owed stays owed, to the last fraction of a unit, and is paid
    /// at the new rate; unused time stays the same time, but time without a limit is no unused time.
    pub(super) fn set(&mut self, rate: u64, now: u64) {
        let was_limited = core::mem::replace(&mut self.rate, rate) != 0;
        if rate == 0 {
            return;
        }
        let last_rate = core::mem::replace(&mut self.last_rate, rate);
        if self.due_ns < now {
            self.rest = 0;
            self.due_ns = if was_limited { self.due_ns } else { now };
        } else {
            // Not on the request path, so in 128 bits: 2^64 ns x 2^48 + 2^48 < 2^113.
            let owed = u128::from(self.due_ns - now) * u128::from(last_rate) + u128::from(self.rest);
            let ns = u64::try_from(owed / u128::from(rate)).ok().and_then(|ns| now.checked_add(ns));
            // The remainder is below `rate`, which is a u64.
            let rest = (owed % u128::from(rate)) as u64;
            (self.due_ns, self.rest) = ns.map_or((u64::MAX, 0), |due| (due, rest));
        }
    }
}

/// `units x 1 s + rest` in units of 1/rate ns, as whole nanoseconds (saturating) and what is left over.
#[inline]
const fn time_of(units: u64, rate: u64, rest: u64) -> (u64, u64) {
    // Whole seconds apart, so that what is left is below one second's worth: r0 < rate <= 2^48.
    let (seconds, r0) = (units / rate, units % rate);
    // One second in two steps of less than 2^15 each: r0 x 32,000 < 2^63, and r1 < rate again, so that
    // r1 x 31,250 + rest < 2^63 + 2^48.
    let (n1, r1) = (r0 * SECOND_A / rate, r0 * SECOND_A % rate);
    let last = r1 * SECOND_B + rest;
    // n1 x 31,250 <= 10^9, as n1 <= 32,000; so only the whole seconds can be too many.
    (seconds.saturating_mul(SECOND).saturating_add(n1 * SECOND_B + last / rate), last % rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pace(rate: u64) -> Pace {
        let mut pace = Pace::default();
        pace.set(rate, 0);
        pace
    }

    /// The k-th request of a busy group goes at the first nanosecond >= k x size / rate, whatever was rounded before.
    #[test]
    fn thirds_of_a_nanosecond_are_carried() {
        let mut pace = pace(3);
        let due: [u64; 7] = core::array::from_fn(|_| {
            pace.charge(1);
            pace.ready_at()
        });
        assert_eq!(
            due,
            [
                333_333_334,
                666_666_667,
                1_000_000_000,
                1_333_333_334,
                1_666_666_667,
                2_000_000_000,
                2_333_333_334
            ]
        );
    }

    /// Against 128 bits, at the edges of what the arithmetic promises.
    #[test]
    fn the_two_steps_are_one_division() {
        for rate in [1, 2, 3, 7, 1000, 1024, 999_999_937, 10_000_000_000, RATE_MAX - 1, RATE_MAX] {
            for units in [1, 511, 512, 4096, 1 << 25, u64::from(u32::MAX) * 512, RATE_MAX - 1, RATE_MAX + 1] {
                for rest in [0, 1, rate / 2, rate - 1] {
                    let exact = u128::from(units) * u128::from(SECOND) + u128::from(rest.min(rate - 1));
                    let (ns, left) = time_of(units, rate, rest.min(rate - 1));
                    let whole = u64::try_from(exact / u128::from(rate)).unwrap_or(u64::MAX);
                    assert_eq!(
                        (ns, u128::from(left)),
                        (whole, exact % u128::from(rate)),
                        "{units} at {rate}"
                    );
                }
            }
        }
    }

    /// 500 bytes owed at 1000 B/s are half a second; at 250 B/s the half that is left after 250 ms takes one.
    #[test]
    fn a_debt_is_paid_at_the_new_rate() {
        let mut pace = pace(1000);
        pace.charge(500);
        pace.set(250, 250_000_000);
        assert_eq!(pace.ready_at(), 1_250_000_000);
    }

    /// A rate changed a million times between two values pays the debt at their mean: nothing is rounded up on the way.
    #[test]
    fn changes_do_not_round() {
        let mut pace = pace(1);
        pace.charge(1);
        let (mut now, mut fast) = (0, false);
        while pace.ready_at() > now {
            now += 1_000;
            fast = !fast;
            pace.set(if fast { 3 } else { 1 }, now);
        }
        assert_eq!(now, 500_000_000, "1 unit at 2 a second");
    }

    /// 10 units owed at 1 a second are 10 s; 4 s of them pass without a limit, and the 6 units left are 3 s at 2 a second.
    #[test]
    fn a_debt_outlives_its_limit() {
        let mut pace = pace(1);
        pace.charge(10);
        pace.set(0, SECOND);
        assert_eq!(pace.ready_at(), 0, "nothing is in the way");
        pace.charge(1000);
        pace.set(2, 4 * SECOND);
        assert_eq!(pace.ready_at(), 7 * SECOND);
    }

    /// Time without a limit is not saved up for when there is one.
    #[test]
    fn freedom_is_no_credit() {
        let mut pace = pace(1);
        pace.set(0, SECOND);
        pace.set(1, 10 * SECOND);
        assert_eq!(pace.ready_at(), 10 * SECOND);
    }

    #[test]
    fn a_debt_of_centuries_stops_at_the_end_of_time() {
        let mut pace = pace(1);
        for _ in 0..3 {
            pace.charge(u64::MAX);
        }
        assert_eq!(pace.ready_at(), u64::MAX);
        pace.set(RATE_MAX, 0);
        assert!(pace.ready_at() < u64::MAX, "at 281 TB/s it is paid some day");
    }
}
