//! Elevators: the policies that decide which request goes to the device next.
//!
//! One policy a file, all of the same shape: the tunables with units and defaults first, then one state struct,
//! then the hooks in the order a request meets them, with the decision on one screen. A policy keeps *one* queue and knows
//! nothing of groups: it implements [`Policy`], and [`PerGroup`] holds one such queue for each group.
//! `docs/adding-an-elevator.md` walks through a new one. (cfq, which takes turns among its own queues, implements the wider
//! [`Elevator`] itself.)

mod any;
#[cfg(feature = "lab")]
mod bfq;
mod deadline;
mod fair;
#[cfg(feature = "lab")]
mod kyber;
#[cfg(feature = "lab")]
mod mq_deadline;
pub(crate) mod nearer;
#[cfg(feature = "lab")]
mod none;
mod noop;
mod per_group;
pub(crate) mod think;

pub use any::AnyElevator;
pub use fair::Fair;
#[cfg(feature = "lab")]
pub use mq_deadline::ClassCounts;
pub use per_group::{PerGroup, Policy};

use crate::context::{ContextId, Contexts};
use crate::era;
use crate::group::{GroupId, Groups, Rounds};
use crate::queue::DispatchList;
use crate::request::{Bio, Op, Request, RequestId, Requests};
use crate::tunable::{SetError, Tunable, Unit};

/// What [`Elevator::dispatch`] (and the queue above it) answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dispatch {
    /// Give this request to the device.
    Issue(RequestId),
    /// Deliberately waiting although something may be queued: ask again at `until` (nanoseconds) or on any arrival,
    /// completion or unplug.
    Idle {
        /// When to ask again at the latest.
        until: u64,
    },
    /// Something is queued, and has to wait for a completion: ask again then, or on any arrival.
    Busy,
    /// Nothing to give away before the next arrival.
    Empty,
}

/// May a context take a request slot beyond the limit?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MayQueue {
    /// By the ordinary rules.
    May,
    /// Yes: the elevator is waiting for this context's next request.
    Must,
    /// No.
    No,
}

/// At which end a request grew.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Growth {
    /// At its end; its first sector is as before.
    Back,
    /// At its start; its first sector changed.
    Front,
}

/// How the queue files a dispatched request on the dispatch list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// By sector, one-way from the last position (the kernel's `elv_dispatch_sort`).
    Sorted,
    /// At the tail.
    Tail,
}

/// What the device looks like from above.
#[derive(Clone, Copy, Debug)]
pub struct DeviceState {
    /// Do seeks cost time?
    pub rotational: bool,
    /// Requests in the device: `[async, sync]`.
    pub in_flight: [u32; 2],
    /// Requests it takes at a time; 0 = not known.
    pub depth: u32,
    /// Flush commands in it.
    pub flushes: u32,
}

impl DeviceState {
    /// Requests in the device.
    #[inline]
    pub const fn in_flight_total(&self) -> u32 {
        self.in_flight[0] + self.in_flight[1]
    }

    /// `request` goes to it.
    #[inline(always)] // as `leaves`
    pub(crate) fn enters(&mut self, request: &Request) {
        self.in_flight[usize::from(request.is_sync())] += 1;
        if request.op == Op::Flush {
            self.flushes += 1;
        }
    }

    /// It is done with `request`, or gave it back.
    #[inline(always)] // a branch for reads, which are most, costs less than the sum
    pub(crate) fn leaves(&mut self, request: &Request) {
        self.in_flight[usize::from(request.is_sync())] -= 1;
        if request.op == Op::Flush {
            self.flushes -= 1;
        }
    }
}

/// Something that an elevator has found out ([`Elevator::found`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finding {
    /// What it is, in a few words.
    pub what: &'static str,
    /// Of requests of so many sectors, up to the double; 0: of all.
    pub sectors: u32,
    /// The value, as a tunable of this unit is stored.
    pub value: u64,
    /// Its unit.
    pub unit: Unit,
}

/// What an elevator is given with every call.
#[derive(Debug)]
pub struct Env<'a> {
    /// The time, nanoseconds. Never goes back.
    pub now: u64,
    /// The request pool. Elevators read it; the queue changes it.
    pub requests: &'a Requests,
    /// The io contexts.
    pub contexts: &'a Contexts,
    /// Whose round goes on, for an elevator that takes its own turns.
    pub rounds: Rounds<'a>,
    /// The device.
    pub device: &'a DeviceState,
    /// Requests that left the elevator and wait for the device. An elevator appends here only when it must get rid of a
    /// request outside of [`Elevator::dispatch`] (two requests at one sector, in the elevators of the 2.6 era).
    pub dispatch: &'a mut DispatchList,
}

impl Env<'_> {
    /// The group a request made of `bio` would belong to.
    #[inline]
    pub(crate) fn group_of(&self, bio: &Bio) -> GroupId {
        match bio.group.unwrap_or(self.contexts[bio.context].group) {
            GroupId::ROOT => GroupId::ROOT,
            group => self.rounds.known(group),
        }
    }

    /// Does a request make way for a new one at the same sector by going to the device at once, as in the kernels of the 2.6
    /// era? That is unfair: who reads one sector again and again is served before all others. So it is done only while
    /// there is no group but the root; otherwise both are queued.
    #[inline]
    pub(crate) fn alias_goes_out(&self) -> bool {
        !self.rounds.in_use()
    }
}

/// Who takes turns among groups.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grouping {
    /// No task or group: the elevator has one queue for all I/O.
    Blind,
    /// The queue above it, which says whose queue is asked: the elevator has one for each group ([`PerGroup`]).
    Queues,
    /// The elevator itself, which asks [`Env::rounds`] between turns.
    Own,
}

/// What the queue above an elevator calls. Every request [`insert`](Elevator::insert)ed leaves exactly once: by
/// [`dispatch`](Elevator::dispatch), by [`drain`](Elevator::drain), by being [`absorbed`](Elevator::absorbed) or
/// [`remove`](Elevator::remove)d, or over [`Env::dispatch`].
///
/// No hook may allocate, panic, recurse or loop without a bound; O(log n) at worst.
pub trait Elevator: Send {
    /// The name it is selected by.
    fn name(&self) -> &'static str;

    /// A request came in.
    fn insert(&mut self, env: &mut Env<'_>, rq: RequestId);

    /// Give up one request of `group`'s queue (of any, if the elevator has only one or takes its own turns), wait, or say there is
    /// none. A returned request is no longer the elevator's.
    fn dispatch(&mut self, env: &mut Env<'_>, group: GroupId) -> Dispatch;

    /// `rq`, which is queued, is cancelled: forget it.
    fn remove(&mut self, env: &mut Env<'_>, rq: RequestId);

    /// Give up one request without regard to any policy (elevator switch, 2.6-era barrier); `None` once empty.
    fn drain(&mut self, env: &mut Env<'_>) -> Option<RequestId>;

    /// Does it hold no request?
    fn is_empty(&self) -> bool;

    /// How dispatched requests are filed.
    fn placement(&self) -> Placement {
        Placement::Sorted
    }

    /// What it makes of groups. Asked once; the answer holds for its life.
    fn grouping(&self) -> Grouping {
        Grouping::Blind
    }

    /// It took over from another elevator, whose requests it has been given ([`Grouping::Own`] only): say who has something to do.
    fn attached(&mut self, _env: &mut Env<'_>) {}

    /// The first request for this queue is about to be inserted: forget what its last tenant left.
    fn queue_started(&mut self, _group: GroupId) {}

    /// The device serves another queue from now on, until this queue is asked again ([`Grouping::Queues`] only).
    fn queue_paused(&mut self, _group: GroupId) {}

    /// `context` is in another group from now on; what it has queued or in the device stays with the old one.
    fn context_moved(&mut self, _env: &mut Env<'_>, _context: ContextId) {}

    /// Does it want to hear of [`issued`](Elevator::issued), [`requeued`](Elevator::requeued) and
    /// [`completed`](Elevator::completed)? Asked once; the answer holds for its life.
    fn watches_device(&self) -> bool {
        true
    }

    /// A request it dispatched goes to the device now (the kernel's *activate*).
    fn issued(&mut self, _env: &mut Env<'_>, _rq: RequestId) {}

    /// A request it dispatched came back from the device unserved and will be issued again (*deactivate*).
    fn requeued(&mut self, _env: &mut Env<'_>, _rq: RequestId) {}

    /// A request it dispatched is done. `env.device` no longer counts it.
    fn completed(&mut self, _env: &mut Env<'_>, _rq: RequestId) {}

    /// A request starting exactly where `bio` ends, to be merged in front of.
    fn find_front(&self, _env: &Env<'_>, _bio: &Bio) -> Option<RequestId> {
        None
    }

    /// May `bio` be merged into `rq`? Asked after the queue's own rules agreed.
    fn allow_merge(&mut self, _env: &Env<'_>, _rq: RequestId, _bio: &Bio) -> bool {
        true
    }

    /// `rq` grew by a bio or a neighbour; `env.requests[rq]` is already the larger one.
    fn grew(&mut self, _env: &mut Env<'_>, _rq: RequestId, _growth: Growth) {}

    /// `gone`, which starts where `rq` ended, was merged into `rq`: forget `gone`. `rq` should take over the earlier
    /// deadline of the two.
    fn absorbed(&mut self, env: &mut Env<'_>, rq: RequestId, gone: RequestId);

    /// The queued request before `rq` in the elevator's order of sectors.
    fn former(&self, _env: &Env<'_>, _rq: RequestId) -> Option<RequestId> {
        None
    }

    /// The queued request behind `rq` in the elevator's order of sectors.
    fn latter(&self, _env: &Env<'_>, _rq: RequestId) -> Option<RequestId> {
        None
    }

    /// May `context` take a request slot for sync or async I/O?
    fn may_queue(&mut self, _env: &mut Env<'_>, _context: ContextId, _sync: bool) -> MayQueue {
        MayQueue::May
    }

    /// For a queue with tags ([`crate::queue::Admission::Tags`]): `bio` may take one while fewer than so many of the `tags` are
    /// taken (the kernel's *limit_depth*).
    fn tags_for(&mut self, _env: &mut Env<'_>, _bio: &Bio, tags: u32) -> u32 {
        tags
    }

    /// How much of `bio` it wants in one request for now, sectors: a host submits what is larger in parts
    /// ([`crate::queue::RequestQueue::bio_sectors_max`]).
    fn bio_sectors_max(&self, _env: &Env<'_>, _bio: &Bio) -> u32 {
        u32::MAX
    }

    /// Does [`tags_for`](Elevator::tags_for) alone decide how many tags each gets? Otherwise groups have parts of them.
    fn shares_tags(&self) -> bool {
        false
    }

    /// The least that [`tags_for`](Elevator::tags_for) may ever answer. Waiters for a tag are woken in batches of an eighth of
    /// it (the kernel's *min_shallow_depth*, to which most schedulers set 1).
    fn tags_min(&self, _tags: u32) -> u32 {
        1
    }

    /// `context`'s task is gone; its requests may still be queued. `env.contexts` still knows it.
    fn context_exit(&mut self, _env: &mut Env<'_>, _context: ContextId) {}

    /// `context`'s priority changed.
    fn ioprio_changed(&mut self, _env: &mut Env<'_>, _context: ContextId) {}

    /// `from` now waits for I/O of `to` (or of an unknown task): idling for `from` is in vain. A hint.
    fn yield_to(&mut self, _env: &mut Env<'_>, _from: ContextId, _to: Option<ContextId>) {}

    /// Whose next request it is idling for, after [`dispatch`](Elevator::dispatch) answered [`Dispatch::Idle`]. For those who
    /// explain why the device is idle; decides nothing. The overflow context stands for a task that is gone.
    fn idling_for(&self) -> Option<ContextId> {
        None
    }

    /// The facts about `device`, found by the time `now` (nanoseconds), on which its decisions depend. For reports; decides nothing.
    fn found(&self, _device: &DeviceState, _now: u64, _tell: &mut dyn FnMut(Finding)) {}

    /// The tunables, in the order to show them.
    fn tunables(&self) -> &'static [Tunable];

    /// Where the value of the tunable `name` is stored (see [`crate::tunable::Unit`] for how).
    fn setting(&mut self, name: &str) -> Option<&mut u64>;

    /// Called after a setting was changed through [`set`].
    fn settings_changed(&mut self) {}
}

/// Has `bio` the priority of `rq`? blk-mq merges only equal ones.
fn same_priority(env: &Env<'_>, rq: RequestId, bio: &Bio) -> bool {
    env.requests[rq].ioprio == bio.ioprio.unwrap_or(env.contexts[bio.context].ioprio)
}

/// For [`Elevator::drain`]: the first queue that is not empty, from where the last search ended, which is kept in `from`. A
/// drain of all queues looks at each of them twice at most.
pub(crate) fn first_occupied(
    from: &mut usize,
    groups: usize,
    is_empty: impl Fn(usize) -> bool,
) -> Option<usize> {
    let found = (*from..groups).chain(0..*from).find(|group| !is_empty(*group));
    *from = found.unwrap_or(0);
    found
}

/// Set a tunable from text, as a write to `queue/iosched/NAME` would.
///
/// # Errors
/// Unknown name, malformed text or a value out of range; the old value stays.
pub fn set(elevator: &mut dyn Elevator, name: &str, text: &str) -> Result<(), SetError> {
    let tunable = crate::tunable::find(elevator.tunables(), name).ok_or(SetError::Unknown)?;
    let value = tunable.parse(text)?;
    match elevator.setting(name) {
        Some(place) => *place = value,
        None => return Err(SetError::Unknown),
    }
    elevator.settings_changed();
    Ok(())
}

/// What an elevator needs to know to be built.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Slots of the request pool it will see.
    pub requests_max: usize,
    /// Slots of the context table it will see ([`Contexts::slots`]).
    pub contexts_max: usize,
    /// Slots of the group table it will see ([`crate::Groups::slots`]); 1 = the root only.
    pub groups_max: usize,
    /// Length of a jiffy, nanoseconds (1/HZ), for elevators of the jiffy era: their clock goes in such steps. 0 = exact.
    pub tick_ns: u64,
}

impl Config {
    /// For a queue of `requests_max` requests with tables for `contexts_max` contexts and `groups_max` groups (beside the root).
    pub const fn for_queue(
        requests_max: usize,
        contexts_max: usize,
        groups_max: usize,
        tick_ns: u64,
    ) -> Config {
        let groups = Groups::slots_for(groups_max);
        Config {
            requests_max,
            contexts_max: Contexts::slots_for(contexts_max, groups),
            groups_max: groups,
            tick_ns,
        }
    }

    /// `now` as a jiffy-era elevator sees it.
    #[inline]
    pub const fn jiffies(tick_ns: u64, now: u64) -> u64 {
        if tick_ns == 0 { now } else { now - now % tick_ns }
    }
}

/// An elevator that can be chosen by name.
#[derive(Clone, Copy)]
pub struct Descriptor {
    /// Name.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Kernel versions whose behaviour it can take, the default first; empty when there is only one.
    pub profiles: &'static [&'static str],
    /// Tunables of a profile.
    pub tunables: fn(profile: &str) -> &'static [Tunable],
    /// Build one. `profile` is one of `profiles` (anything else gives the default).
    pub build: fn(config: &Config, profile: &str) -> AnyElevator,
}

/// All elevators.
pub const ELEVATORS: &[Descriptor] = &[
    noop::DESCRIPTOR,
    deadline::DESCRIPTOR,
    era::anticipatory::DESCRIPTOR,
    era::cfq::DESCRIPTOR,
    #[cfg(feature = "lab")]
    none::DESCRIPTOR,
    #[cfg(feature = "lab")]
    mq_deadline::DESCRIPTOR,
    #[cfg(feature = "lab")]
    kyber::DESCRIPTOR,
    #[cfg(feature = "lab")]
    bfq::DESCRIPTOR,
    fair::DESCRIPTOR,
];

/// The elevator called `name`.
pub fn find(name: &str) -> Option<&'static Descriptor> {
    ELEVATORS.iter().find(|d| d.name == name)
}
