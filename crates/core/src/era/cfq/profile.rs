//! What distinguishes the kernel versions, as named facts; the code asks for a fact, never for a version.

use crate::tunable::{Tunable, Unit};

/// The behaviour of one kernel version.
#[derive(Clone, Copy)]
pub(super) struct Profile {
    /// The name it is selected by: the kernel version.
    pub(super) name: &'static str,
    /// How queues wait for their turn.
    pub(super) trees: Trees,
    /// From where the choice between a dispatched request's neighbours is measured.
    pub(super) neighbours_from: NeighboursFrom,
    /// How a queue's or process' seekiness is judged.
    pub(super) seeks: Seeks,
    /// How it is found out whether the device queues by itself.
    pub(super) depth: Depth,
    /// How many requests a queue may have in the device.
    pub(super) quantum: Quantum,
    /// How async depth is held back after sync requests.
    pub(super) async_ramp: Ramp,
    /// What is done about queues that read close to each other.
    pub(super) cooperators: Cooperators,
    /// What an arrival does to the idle wait it ends.
    pub(super) arrival: Arrival,
    /// What a NOIDLE request does.
    pub(super) noidle: NoIdle,
    /// When a request's soft deadline starts to run.
    pub(super) deadline_from: DeadlineFrom,
    /// Is the last queue of a group waited for, though it is not worth it by itself (`group_idle`)?
    pub(super) group_idle: bool,
    /// The settings, in the order of their documentation.
    pub(super) tunables: &'static [Tunable],
}

/// How queues wait for their turn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trees {
    /// One tree ordered by class, then time. A queue leaves with its last request; idling is decided by queue.
    Single,
    /// A tree for each class and kind of workload. A queue leaves when it expires empty; the last sync queue of a
    /// tree is idled on whatever it does.
    Workloads,
}

/// From where the choice between a dispatched request's neighbours is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NeighboursFrom {
    /// The end of the request the device got last.
    Head,
    /// The start of the request just dispatched.
    Request,
}

/// How a queue's or process' seekiness is judged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Seeks {
    /// A decaying mean of jump lengths per context.
    MeanPerContext,
    /// One bit for each of the last 32 requests of a queue.
    HistoryPerQueue,
}

/// How it is found out whether the device queues by itself (`hw_tag`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Believed at first; every 50 samples under load decide anew, even if idling itself kept the depth low.
    Resampled,
    /// Unknown at first; once seen it stays; samples that idling spoiled do not count.
    Sticky,
}

/// How many requests a queue may have in the device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantum {
    /// `quantum`; a sole user four times that.
    FourfoldAlone,
    /// Half of `quantum`, all of it while the slice is young, no limit for a sole user.
    Soft,
}

/// How async depth is held back after sync requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ramp {
    /// Not at all.
    None,
    /// One request for each `slice_sync` without a slow sync request, when `low_latency` is on.
    SinceDelayedSync,
}

/// What is done about queues that read close to each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cooperators {
    /// The other one is served next instead of idling.
    Switch,
    /// Also, they become one queue until it turns seeky.
    MergeAndSplit,
}

/// What an arrival does to the idle wait it ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Promises one dispatch in any case; the queue still counts as waiting.
    Promises,
    /// Ends the wait; promises a dispatch only to a small request on an otherwise idle device, for which the timer
    /// runs on.
    EndsWait,
}

/// What a request does whose sender says that no other will follow at once (NOIDLE).
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NoIdle {
    /// Its completion starts no idle wait by itself; the sync-noidle tree is idled on once it had a request without it.
    SparesWait,
    /// As the next one of its queue it takes the idle window away, so that the queue is filed in the sync-noidle tree;
    /// that tree is idled on like any other.
    MovesQueue,
}

/// When a request's soft deadline starts to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DeadlineFrom {
    /// When its slot was taken.
    Start,
    /// When it was inserted.
    Insert,
}

/// All profiles, the default first.
pub(super) const PROFILES: &[Profile] = &[V2_6_31, V2_6_34, V2_6_37];

/// Their names.
pub(super) const NAMES: &[&str] = &[V2_6_31.name, V2_6_34.name, V2_6_37.name];

/// The profile called `name`, else the default.
pub(super) fn find(name: &str) -> &'static Profile {
    PROFILES.iter().find(|p| p.name == name).unwrap_or(&PROFILES[0])
}

const V2_6_31: Profile = Profile {
    name: "2.6.31",
    trees: Trees::Single,
    neighbours_from: NeighboursFrom::Head,
    seeks: Seeks::MeanPerContext,
    depth: Depth::Resampled,
    quantum: Quantum::FourfoldAlone,
    async_ramp: Ramp::None,
    cooperators: Cooperators::Switch,
    arrival: Arrival::Promises,
    noidle: NoIdle::SparesWait,
    deadline_from: DeadlineFrom::Start,
    group_idle: true,
    tunables: &[
        quantum(4),
        FIFO_EXPIRE_SYNC,
        FIFO_EXPIRE_ASYNC,
        BACK_SEEK_MAX,
        BACK_SEEK_PENALTY,
        SLICE_SYNC,
        SLICE_ASYNC,
        SLICE_ASYNC_RQ,
        SLICE_IDLE,
    ],
};

const V2_6_34: Profile = Profile {
    name: "2.6.34",
    trees: Trees::Workloads,
    neighbours_from: NeighboursFrom::Request,
    seeks: Seeks::HistoryPerQueue,
    depth: Depth::Sticky,
    quantum: Quantum::Soft,
    async_ramp: Ramp::SinceDelayedSync,
    cooperators: Cooperators::MergeAndSplit,
    arrival: Arrival::EndsWait,
    noidle: NoIdle::SparesWait,
    deadline_from: DeadlineFrom::Insert,
    group_idle: false,
    tunables: &[
        quantum(8),
        FIFO_EXPIRE_SYNC,
        FIFO_EXPIRE_ASYNC,
        BACK_SEEK_MAX,
        BACK_SEEK_PENALTY,
        SLICE_SYNC,
        SLICE_ASYNC,
        SLICE_ASYNC_RQ,
        SLICE_IDLE,
        LOW_LATENCY,
        YIELD,
        GROUP_ISOLATION,
    ],
};

/// As 2.6.34 but for 749ef9f8423, upstream's answer to slow `fsync`: together with journals that write sync and NOIDLE,
/// caller and journal thread take turns in the sync-noidle tree.
const V2_6_37: Profile = Profile { name: "2.6.37", noidle: NoIdle::MovesQueue, group_idle: true, ..V2_6_34 };

/// The kernel's `UINT_MAX`, the upper end of almost every range.
const MAX: u64 = u32::MAX as u64;

const fn quantum(default: u64) -> Tunable {
    Tunable::new(
        "quantum",
        Unit::Requests,
        (1, MAX),
        default,
        "requests one queue may have in the device while others wait",
    )
}

const FIFO_EXPIRE_SYNC: Tunable = Tunable::new(
    "fifo_expire_sync",
    Unit::Milliseconds,
    (1, MAX),
    125,
    "age at which a sync request goes first at its queue's next turn",
);
const FIFO_EXPIRE_ASYNC: Tunable = Tunable::new(
    "fifo_expire_async",
    Unit::Milliseconds,
    (1, MAX),
    250,
    "age at which an async request goes first at its queue's next turn",
);
const BACK_SEEK_MAX: Tunable = Tunable::new(
    "back_seek_max",
    Unit::Kibibytes,
    (0, MAX),
    16 * 1024,
    "longest way back that still counts as a seek rather than a new sweep",
);
const BACK_SEEK_PENALTY: Tunable = Tunable::new(
    "back_seek_penalty",
    Unit::Number,
    (1, MAX),
    2,
    "how many times as much a seek backwards counts as one forwards of the same length",
);
const SLICE_SYNC: Tunable = Tunable::new(
    "slice_sync",
    Unit::Milliseconds,
    (1, MAX),
    100,
    "slice of a sync queue at level 4; a fifth more or less per level",
);
const SLICE_ASYNC: Tunable = Tunable::new(
    "slice_async",
    Unit::Milliseconds,
    (1, MAX),
    40,
    "slice of an async queue at level 4; a fifth more or less per level",
);
const SLICE_ASYNC_RQ: Tunable = Tunable::new(
    "slice_async_rq",
    Unit::Requests,
    (1, MAX),
    2,
    "async requests per slice while others wait: 2 x this x (8 - level)",
);
const SLICE_IDLE: Tunable = Tunable::new(
    "slice_idle",
    Unit::Milliseconds,
    (0, MAX),
    8,
    "how long to wait for a sync queue's next request; 0 = never",
);
const LOW_LATENCY: Tunable = Tunable::new(
    "low_latency",
    Unit::Switch,
    (0, 1),
    1,
    "shrink slices to fit 300 ms per round and let async depth grow slowly",
);
const GROUP_ISOLATION: Tunable = Tunable::new(
    "group_isolation",
    Unit::Switch,
    (0, 1),
    0,
    "1: random readers stay in their own group; 0: those of all groups share the root's round",
);
const YIELD: Tunable = Tunable::new(
    "yield",
    Unit::Switch,
    (0, 1),
    0,
    "1: a task that waits for another task's I/O (fsync for the journal's) gives it the rest of its slice",
);
