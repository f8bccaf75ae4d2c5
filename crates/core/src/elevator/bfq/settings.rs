//! The tunables, by the kernel's names.

use crate::elevator::nearer::BackSeek;
use crate::tunable::{Tunable, Unit};

/// The largest number the kernel's sysfs files take.
const INT_MAX: u64 = i32::MAX as u64;

const FIFO_EXPIRE_SYNC: Tunable = Tunable::new(
    "fifo_expire_sync",
    Unit::Milliseconds,
    (0, INT_MAX),
    125,
    "deadline of a sync request within its queue, looked at once a turn",
);
const FIFO_EXPIRE_ASYNC: Tunable = Tunable::new(
    "fifo_expire_async",
    Unit::Milliseconds,
    (0, INT_MAX),
    250,
    "deadline of an async request within its queue",
);
const BACK_SEEK_MAX: Tunable = Tunable::new(
    "back_seek_max",
    Unit::Kibibytes,
    (0, INT_MAX),
    16 * 1024,
    "longest way back that is considered",
);
const BACK_SEEK_PENALTY: Tunable = Tunable::new(
    "back_seek_penalty",
    Unit::Number,
    (1, INT_MAX),
    2,
    "a way back costs so many times a way ahead",
);
const SLICE_IDLE: Tunable = Tunable::new(
    "slice_idle",
    Unit::Milliseconds,
    (0, INT_MAX),
    8,
    "how long the device is kept for a queue's next request; 0: never",
);
const SLICE_IDLE_US: Tunable = Tunable::new(
    "slice_idle_us",
    Unit::Microseconds,
    (0, INT_MAX),
    8000,
    "slice_idle, to the microsecond: one setting by two names",
);
const MAX_BUDGET: Tunable = Tunable::new(
    "max_budget",
    Unit::Number,
    (0, INT_MAX),
    0,
    "most sectors a queue is served in a turn; 0: what the device does at its best in timeout_sync",
);
const TIMEOUT_SYNC: Tunable = Tunable::new(
    "timeout_sync",
    Unit::Milliseconds,
    (1, INT_MAX),
    124,
    "how long a turn lasts at most (HZ / 8 at HZ = 250)",
);
const STRICT_GUARANTEES: Tunable = Tunable::new(
    "strict_guarantees",
    Unit::Switch,
    (0, 1),
    0,
    "one request in the device at a time, and wait for every sync queue",
);
const LOW_LATENCY: Tunable = Tunable::new(
    "low_latency",
    Unit::Switch,
    (0, 1),
    1,
    "raise the weight of interactive and soft real-time queues",
);

/// In the order to show them.
pub(super) const TUNABLES: &[Tunable] = &[
    FIFO_EXPIRE_SYNC,
    FIFO_EXPIRE_ASYNC,
    BACK_SEEK_MAX,
    BACK_SEEK_PENALTY,
    SLICE_IDLE,
    SLICE_IDLE_US,
    MAX_BUDGET,
    TIMEOUT_SYNC,
    STRICT_GUARANTEES,
    LOW_LATENCY,
];

/// The tunables as stored (times in ns).
pub(super) struct Settings {
    /// `[async, sync]`.
    pub(super) fifo_expire_ns: [u64; 2],
    pub(super) back_seek_max_kib: u64,
    pub(super) back_seek_penalty: u64,
    pub(super) slice_idle_ns: u64,
    pub(super) max_budget: u64,
    pub(super) timeout_sync_ns: u64,
    pub(super) strict_guarantees: u64,
    pub(super) low_latency: u64,
}

impl Settings {
    pub(super) const DEFAULT: Settings = Settings {
        fifo_expire_ns: [FIFO_EXPIRE_ASYNC.stored_default(), FIFO_EXPIRE_SYNC.stored_default()],
        back_seek_max_kib: BACK_SEEK_MAX.stored_default(),
        back_seek_penalty: BACK_SEEK_PENALTY.stored_default(),
        slice_idle_ns: SLICE_IDLE.stored_default(),
        max_budget: MAX_BUDGET.stored_default(),
        timeout_sync_ns: TIMEOUT_SYNC.stored_default(),
        strict_guarantees: STRICT_GUARANTEES.stored_default(),
        low_latency: LOW_LATENCY.stored_default(),
    };

    pub(super) fn place(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "fifo_expire_sync" => &mut self.fifo_expire_ns[1],
            "fifo_expire_async" => &mut self.fifo_expire_ns[0],
            "back_seek_max" => &mut self.back_seek_max_kib,
            "back_seek_penalty" => &mut self.back_seek_penalty,
            "slice_idle" | "slice_idle_us" => &mut self.slice_idle_ns,
            "max_budget" => &mut self.max_budget,
            "timeout_sync" => &mut self.timeout_sync_ns,
            "strict_guarantees" => &mut self.strict_guarantees,
            "low_latency" => &mut self.low_latency,
            _ => return None,
        })
    }

    /// Settings that rule out others: strict guarantees need a wait of the default length at least.
    pub(super) fn agree(&mut self) {
        if self.strict_guarantees != 0 {
            self.slice_idle_ns = self.slice_idle_ns.max(SLICE_IDLE.stored_default());
        }
    }

    pub(super) fn back_seek(&self) -> BackSeek {
        BackSeek { sectors_max: 2 * self.back_seek_max_kib, penalty: self.back_seek_penalty }
    }
}
