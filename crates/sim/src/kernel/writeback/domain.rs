//! How much may be dirty somewhere, and how fast tasks may dirty more: the computer's memory, or that of a cgroup.
//!
//! Source: Linux 6.12 `mm/page-writeback.c` (`wb_position_ratio`, `wb_dirty_limits`, `mdtc_calc_avail`).

/// Times of a second's pages that a flusher may have beyond its set point before its tasks stand still.
const SPAN_SECONDS: f64 = 8.0;

/// A domain as one flusher and its tasks see it. All in pages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Domain {
    /// Dirty pages above which flushers work, and which there may be at most.
    pub(super) background: f64,
    pub(super) limit: f64,
    /// Dirty or in flight.
    pub(super) dirty: f64,
    /// The part of `limit` that the flusher may have, and what it has.
    pub(super) own_limit: f64,
    pub(super) own_dirty: f64,
}

impl Domain {
    /// No task is held back up to here.
    pub(super) fn freerun(&self) -> f64 {
        f64::midpoint(self.background, self.limit)
    }

    pub(super) fn setpoint(&self) -> f64 {
        f64::midpoint(self.freerun(), self.limit)
    }

    /// By how much the rate of the flusher's tasks is corrected: first by all that is dirty, from 2 over 1 at the set point to 0 at the limit,
    /// then by what this flusher has, against its part. `bandwidth`: pages that it writes a second.
    pub(super) fn position(&self, bandwidth: f64) -> f64 {
        if self.dirty >= self.limit {
            return 0.0;
        }
        let setpoint = self.setpoint();
        let x = (setpoint - self.dirty) / (self.limit - setpoint).max(1.0);
        let all = (1.0 + x * x * x).clamp(0.0, 2.0);
        // A flusher that wrote little has an eighth of the room all the same.
        let own_limit = self.own_limit.min(self.limit).max((self.limit - self.dirty) / 8.0);
        let part = own_limit / self.limit;
        let own_setpoint = setpoint * part;
        let span = (self.limit - own_limit + SPAN_SECONDS * bandwidth) * part;
        let zero_at = own_setpoint + span;
        let mut position = if self.own_dirty < zero_at - span / 4.0 {
            all * (zero_at - self.own_dirty) / span.max(1.0)
        } else {
            all / 4.0
        };
        // Too little to keep the device busy: more.
        let reserve = own_limit / 2.0;
        if self.own_dirty < reserve {
            position *= (reserve / self.own_dirty.max(1.0)).min(8.0);
        }
        position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Background 1000, limit 2000: free up to 1500, set point 1750.
    fn domain(dirty: f64, own_limit: f64, own_dirty: f64) -> Domain {
        Domain { background: 1000.0, limit: 2000.0, dirty, own_limit, own_dirty }
    }

    #[test]
    fn a_flusher_alone_has_all_of_it() {
        let alone = |dirty| domain(dirty, 2000.0, dirty);
        assert_eq!((alone(0.0).freerun(), alone(0.0).setpoint()), (1500.0, 1750.0));
        assert_eq!(alone(1750.0).position(100.0), 1.0, "the set point asks for no change");
        assert_eq!(alone(2000.0).position(100.0), 0.0);
        assert!(alone(1700.0).position(100.0) > 1.0 && alone(1800.0).position(100.0) < 1.0);
        // A thousandth of a second's pages: eight times as many, of twice as many.
        assert!((alone(1.0).position(100.0) / 32.0 - 1.0).abs() < 2.0, "{}", alone(1.0).position(100.0));
    }

    /// Two thirds and a third of the limit, and half of the dirty pages each: the one below its part dirties faster.
    #[test]
    fn the_part_is_by_what_was_written() {
        let heavy = domain(1750.0, 4000.0 / 3.0, 875.0).position(100.0);
        let light = domain(1750.0, 2000.0 / 3.0, 875.0).position(100.0);
        assert!(heavy > 1.0 && light < 1.0, "{heavy} {light}");
        assert_eq!(domain(1750.0, 2000.0 / 3.0, 3000.0).position(1.0), 0.25, "far beyond it: a quarter");
    }
}
