//! How groups take turns, on one queue: the same numbers under every elevator.

use super::charge::Charge;
use super::fair::Quantum;
use crate::MS;
use crate::tunable::{self, SetError, Tunable, Unit};

pub(super) type Choice = &'static [&'static str];

/// The kernel's `UINT_MAX`, the upper end of most ranges.
const MAX: u64 = u32::MAX as u64;

/// Longest time that is waited for a group without requests; 0 = never.
const GROUP_IDLE: Tunable = Tunable::new(
    "group_idle",
    Unit::Milliseconds,
    (0, MAX),
    8,
    "how long the device idles for a group that ran dry; 0 = never",
);
const GROUP_SLICE: Tunable = Tunable::new(
    "group_slice",
    Unit::Milliseconds,
    (1, MAX),
    100,
    "longest turn of a group under noop, deadline and anticipatory",
);
/// A group has one turn in a round, so that over any stretch of time it is off its due by one turn at most: a part
/// `group_latency / stretch` of the due. 200 ms are the 2 % of ten seconds that are promised.
const GROUP_LATENCY: Tunable = Tunable::new(
    "group_latency",
    Unit::Milliseconds,
    (0, MAX),
    200,
    "shortens turns so that a round over all busy groups takes this long; 0 = off",
);
const FAIRNESS: Tunable = Tunable::new(
    "fairness",
    Unit::Number,
    (0, 2),
    1,
    "0: time beyond the slice is forgiven (history), 1: charged, 2: charged, and one group's requests at a time in the device",
);
const CHARGE: Tunable = Tunable::new(
    "charge",
    Unit::Choice(Charge::WORDS),
    (0, 2),
    0,
    "what weights share out: device time, bytes or requests",
);

const GROUP_DEPTH: Tunable = Tunable::new(
    "group_depth",
    Unit::Requests,
    (0, MAX),
    0,
    "requests a group may have in the device while other groups are busy, under noop, deadline and anticipatory; 0 = no limit",
);
const NR_GROUP_REQUESTS: Tunable = Tunable::new(
    "nr_group_requests",
    Unit::Number,
    (1, MAX),
    128,
    "request slots of a group's own tasks, for sync and for async I/O each; at most nr_requests",
);

/// The settings, in the order to show them.
pub const TUNABLES: &[Tunable] =
    &[GROUP_IDLE, GROUP_SLICE, GROUP_LATENCY, FAIRNESS, CHARGE, GROUP_DEPTH, NR_GROUP_REQUESTS];

/// Their values, times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub(crate) group_idle_ns: u64,
    pub(crate) group_slice_ns: u64,
    pub(crate) group_latency_ns: u64,
    pub(crate) fairness: u64,
    charge: u64,
    pub(crate) group_depth: u64,
    pub(crate) nr_group_requests: u64,
}

impl Settings {
    pub(super) const DEFAULT: Settings = Settings {
        group_idle_ns: GROUP_IDLE.stored_default(),
        group_slice_ns: GROUP_SLICE.stored_default(),
        group_latency_ns: GROUP_LATENCY.stored_default(),
        fairness: FAIRNESS.stored_default(),
        charge: CHARGE.stored_default(),
        group_depth: GROUP_DEPTH.stored_default(),
        nr_group_requests: NR_GROUP_REQUESTS.stored_default(),
    };

    /// Is what overran a slice charged?
    pub(crate) fn charges_overrun(&self) -> bool {
        self.fairness >= 1
    }

    /// Does a group have the device to itself?
    pub(crate) fn drains(&self) -> bool {
        self.fairness >= 2
    }

    /// What weights share out.
    pub(crate) fn charge(&self) -> Charge {
        Charge::from_stored(self.charge)
    }

    /// The longest a turn may be for one whose due is `share` (in 2^-20 of the device).
    pub(crate) fn slice_ns(&self, share: u64) -> u64 {
        if self.group_latency_ns == 0 {
            return self.group_slice_ns;
        }
        let least = self.least_slice_ns();
        let due = ((u128::from(self.group_latency_ns) * u128::from(share)) >> 20) as u64;
        due.max(least).min(self.group_slice_ns)
    }

    /// How long turns are as the tree reckons with them.
    pub(super) fn quantum(&self) -> Quantum {
        Quantum {
            least_ns: self.least_slice_ns(),
            most_ns: self.group_slice_ns,
            round_ns: if self.charges_overrun() { self.group_latency_ns } else { 0 },
        }
    }

    /// A turn shorter than two idle waits would be spent waiting.
    pub(crate) fn least_slice_ns(&self) -> u64 {
        self.group_idle_ns.saturating_mul(2).max(MS)
    }

    /// Set one from text; the old value stays if it is refused.
    pub(super) fn set(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        let tunable = tunable::find(TUNABLES, name).ok_or(SetError::Unknown)?;
        let value = tunable.parse(text)?;
        *self.place(name).ok_or(SetError::Unknown)? = value;
        Ok(())
    }

    /// Where the setting `name` is stored.
    pub(super) fn place(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "group_idle" => &mut self.group_idle_ns,
            "group_slice" => &mut self.group_slice_ns,
            "group_latency" => &mut self.group_latency_ns,
            "fairness" => &mut self.fairness,
            "charge" => &mut self.charge,
            "group_depth" => &mut self.group_depth,
            "nr_group_requests" => &mut self.nr_group_requests,
            _ => return None,
        })
    }
}
