//! Time in jiffies, the way the elevators of the 2.6 era count it.

use crate::elevator::Config;
use crate::{MS, SECOND};

/// A clock that goes in steps of 1/HZ, or exactly. On an exact clock, rules that the kernel states in jiffies are those
/// of HZ=1000: a jiffy is a millisecond.
#[derive(Clone, Copy)]
pub(super) struct Clock {
    /// 1/HZ; 0 = exact.
    tick_ns: u64,
}

impl Clock {
    pub(super) const fn new(tick_ns: u64) -> Clock {
        Clock { tick_ns }
    }

    /// What the clock shows at `now`.
    #[inline]
    pub(super) const fn at(self, now: u64) -> u64 {
        Config::jiffies(self.tick_ns, now)
    }

    /// `span_ns` as a timer counts it: the next full number of ticks (the kernel's `msecs_to_jiffies`).
    pub(super) const fn whole(self, span_ns: u64) -> u64 {
        Config::jiffies(self.tick_ns, span_ns.saturating_add(self.tick_ns.saturating_sub(1)))
    }

    /// Length of a jiffy.
    pub(super) const fn jiffy_ns(self) -> u64 {
        if self.tick_ns == 0 { MS } else { self.tick_ns }
    }

    /// `HZ / divisor`, which the kernel's defaults are given as, in jiffies: rounded down.
    pub(super) const fn hz_over(self, divisor: u64) -> u64 {
        SECOND / self.jiffy_ns() / divisor
    }

    /// The grain of measured times: a jiffy, or on an exact clock a nanosecond.
    pub(super) const fn grain_ns(self) -> u64 {
        if self.tick_ns == 0 { 1 } else { self.tick_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_of_250_hz() {
        let clock = Clock::new(4 * MS);
        assert_eq!(clock.at(11 * MS), 8 * MS);
        assert_eq!([clock.whole(0), clock.whole(1), clock.whole(4 * MS)], [0, 4 * MS, 4 * MS]);
        // HZ/8 is 31 jiffies, 124 ms.
        assert_eq!(clock.hz_over(8) * clock.jiffy_ns(), 124 * MS);
        assert_eq!(clock.grain_ns(), 4 * MS);
    }

    #[test]
    fn an_exact_clock_has_jiffies_of_a_millisecond() {
        let clock = Clock::new(0);
        assert_eq!([clock.at(12_345), clock.whole(12_345)], [12_345, 12_345]);
        assert_eq!([clock.jiffy_ns(), clock.grain_ns(), clock.hz_over(50)], [MS, 1, 20]);
    }
}
