//! Controllers above the request queue: they see bios, before merging, and never the device.
//!
//! A controller lets a bio pass, puts its task to sleep, or holds it; what it holds a kernel thread of its own submits later,
//! from its own io context, so that an elevator with a queue for each context no longer sees whose it was. That is where dm-ioband,
//! io-throttle and blk-throttle really sit, and what they are compared with group scheduling for. `docs/limits.md`
//! says what each is built from and what could not be verified.
//!
//! A controller is a state machine without tasks: [`crate::block::BlockLayer`] asks it.

pub mod blk_throttle;
pub mod io_throttle;
pub mod ioband;
pub(crate) mod seat;
mod spec;
pub(crate) mod worker;

use std::fmt::Debug;

pub use crate::group::limits::Max;
pub use spec::{ControllerSpec, KINDS, Kind};

/// What a controller sees of a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ask {
    /// Its group: an index into [`Place::groups`].
    pub group: usize,
    /// Does it read?
    pub read: bool,
    /// Does a task wait for it (reads, sync writes)?
    pub sync: bool,
    /// Sectors.
    pub sectors: u32,
    /// Submitted by a thread of the kernel's.
    pub daemon: bool,
    /// File system metadata.
    pub meta: bool,
}

/// The host's name for a bio that is held.
pub type Ticket = u32;

/// Where tasks sleep: a controller's own number for each of its wait queues.
pub type Line = usize;

/// What becomes of a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// On to the request queue, from its own task.
    Pass,
    /// Held under its ticket, until [`Controller::conduct`] names it.
    Hold,
    /// Its task sleeps until this time, nanoseconds; then the bio passes without being asked for again.
    SleepUntil(u64),
    /// Its task sleeps in this line until it is woken; then the bio is asked for again.
    Block(Line),
}

/// A controller.
pub trait Controller: Debug {
    /// A bio comes.
    fn ask(&mut self, ask: &Ask, ticket: Ticket, now: u64) -> Verdict;

    /// The controller's thread has nothing to do: the held bios it submits next. To be called at [`Controller::next_event`].
    fn conduct(&mut self, now: u64, out: &mut Vec<Ticket>);

    /// When the thread has something to do (not later than now: at once); `None`: when something happens.
    fn next_event(&self) -> Option<u64>;

    /// A bio that passed or was submitted is done.
    fn completed(&mut self, _ask: &Ask, _now: u64) {}

    /// All tasks in these lines are to be woken.
    fn take_woken(&mut self, _out: &mut Vec<Line>) {}

    /// What its thread is called.
    fn thread(&self) -> &'static str;

    /// Does a bio keep its group when the thread submits it? (The bio says whose it is; before that, the thread's task did.)
    fn bios_keep_group(&self) -> bool {
        false
    }
}

/// What controllers want to know of a group; each looks at its own part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entitled {
    /// Index of the parent, which comes earlier; `None`: the root.
    pub parent: Option<usize>,
    /// dm-ioband: share beside all the other groups.
    pub weight: u32,
    /// blk-throttle's limits (and fairlift's own).
    pub max: Max,
    /// dm-ioband's range: minimum and maximum (0: none), KB/s.
    pub range_kb: (u64, u64),
    /// io-throttle: bytes a second, 0 = none.
    pub bandwidth_bps: u64,
    /// io-throttle: requests a second, 0 = none.
    pub iops: u64,
}

impl Entitled {
    /// The root, without limits.
    pub const ROOT: Entitled = Entitled {
        parent: None,
        weight: 100,
        max: Max { read_bps: 0, write_bps: 0, read_iops: 0, write_iops: 0 },
        range_kb: (0, 0),
        bandwidth_bps: 0,
        iops: 0,
    };

    /// A child of group `parent` without limits.
    pub const fn below(parent: usize) -> Entitled {
        Entitled { parent: Some(parent), ..Entitled::ROOT }
    }
}

/// What a controller is built for.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The groups, the root first.
    pub groups: &'a [Entitled],
    /// Request slots of the queue below.
    pub nr_requests: u32,
    /// Length of a jiffy, nanoseconds.
    pub tick_ns: u64,
    /// The kernel's [`io_max_keeps_slice`](crate::kernel::Rules::io_max_keeps_slice).
    pub keeps_slice: bool,
}
