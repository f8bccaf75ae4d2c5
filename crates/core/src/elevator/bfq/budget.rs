//! Budgets: how many sectors a queue may be served at a time, learnt from how it used the last ones.
//!
//! A queue that uses up its budget gets a larger one, so that it pays fewer switches; one that is slow, or pauses, a smaller
//! one, so that it does not hold the device for long. A queue that was slow for the time it had pays for the time: it is
//! charged the sectors a fast one would have had.

use super::Expiry;
use crate::MS;

/// The largest budget before anything is known of the device, sectors.
pub(super) const DEFAULT_MAX: u64 = 16 * 1024;
/// Budgets a queue is given before the device's rate says what the largest is.
pub(super) const ASSIGNED_ENOUGH: u32 = 194;
/// The time by which service is charged to slow queues: HZ / 8 at HZ = 250, whatever `timeout_sync` says.
pub(super) const CHARGED_TIME_NS: u64 = 124 * MS;
/// An async request is charged so often.
pub(super) const ASYNC_CHARGE: u64 = 3;

/// The smallest budget where `max` is the largest.
pub(super) const fn least(max: u64) -> u64 {
    max / 32
}

/// How a turn went.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) why: Expiry,
    /// The budget the queue had, and what of it is left, sectors.
    pub(super) budget: u64,
    pub(super) left: u64,
    /// What it was served, sectors.
    pub(super) service: u64,
    /// Are there requests of it in the device?
    pub(super) in_device: bool,
}

/// The largest budget of a sync queue that is not raised, after this turn; `max` is the device's, which bounds it if
/// `is_bounded`.
pub(super) fn after_turn(old: u64, turn: Turn, max: u64, is_bounded: bool) -> u64 {
    let least = least(max);
    let new = match turn.why {
        // It waits for what is in the device: a larger budget does no harm.
        Expiry::TooIdle if turn.in_device => (2 * old).min(max),
        Expiry::TooIdle if old > 5 * least => old - 4 * least,
        Expiry::TooIdle => least,
        Expiry::Timeout => (2 * old).min(max),
        Expiry::Exhausted => (4 * old).min(max),
        Expiry::NoMoreRequests => turn.service.max(least),
        Expiry::Preempted => old,
    };
    if is_bounded { new.min(max) } else { new }
}

/// Is `turn`, which took `lasted_ns`, one of a slow queue? Answers also with how long it counts as.
pub(super) fn is_slow(turn: Turn, lasted_ns: u64, seeky: bool, rotational: bool, max: u64) -> (bool, u64) {
    if lasted_ns < MS {
        // Too short to tell: a seeker's next request may take as long as this.
        return (seeky, if rotational { 8 * MS } else { 2 * MS });
    }
    if lasted_ns > 20 * MS {
        return (turn.service < max / 2, lasted_ns);
    }
    (seeky, lasted_ns)
}

/// Does the queue pay for its time?
pub(super) fn pays_for_time(turn: Turn, slow: bool) -> bool {
    slow || (turn.why == Expiry::Timeout && turn.left >= turn.budget / 3)
}

/// What `lasted_ns` of the device costs, sectors, where a whole turn is worth `max`.
pub(super) fn price_of_time(lasted_ns: u64, max: u64) -> u64 {
    // At most 2^27 ns times 2^31 sectors.
    max * lasted_ns.min(CHARGED_TIME_NS) / CHARGED_TIME_NS
}
