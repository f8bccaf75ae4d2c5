//! The request queue: everything between a submitted bio and the device, around an elevator.
//!
//! ```
//! use fairlift_core::queue::{QueueConfig, RequestQueue, Submitted};
//! use fairlift_core::{Bio, Dispatch, Flags, IoPrio, Op, elevator};
//!
//! let config = QueueConfig::default();
//! let deadline = elevator::find("deadline").unwrap();
//! let mut q = RequestQueue::new(config, (deadline.build)(&config.elevator(), ""));
//! let task = q.contexts_mut().create(IoPrio::DEFAULT);
//!
//! let bio = |cookie, sector| Bio {
//!     cookie, op: Op::Read, flags: Flags::NONE, sector, sectors: 8, segments: 1, context: task, ioprio: None,
//!     group: None,
//! };
//! assert!(matches!(q.submit(bio(1, 0), 0), Submitted::Queued(_)));
//! assert!(matches!(q.submit(bio(2, 8), 0), Submitted::Merged(_))); // continues the first one
//! q.unplug();
//! let Dispatch::Issue(rq) = q.dispatch(0) else { panic!() };
//! assert_eq!(q.requests()[rq].sectors, 16);
//! assert!(q.cookies(rq).eq([1, 2])); // whose memory the device fills
//!
//! let mut done = Vec::new();
//! q.complete(rq, 5_000_000, |cookie| done.push(cookie));
//! assert_eq!(done, [1, 2]);
//! ```

mod admission;
mod bios;
mod by_group;
mod dispatch_list;
mod elevator_queue;
mod era;
mod flush;
mod group_slots;
mod limited;
mod merge;
mod ordering;
mod plug;
mod tags;

pub use admission::Admission;
pub use dispatch_list::DispatchList;
pub use elevator_queue::ElevatorQueue;
pub use merge::{MergeLimits, NoMerges};
pub use ordering::Ordering;
pub use plug::Plugging;

use alloc::vec::Vec;

use crate::collections::Id;
use crate::context::{ContextId, Contexts, ContextsMut, IoPrio};
use crate::elevator::{self, AnyElevator, Dispatch, Elevator, Finding, MayQueue};
use crate::group::limit::Limiter;
use crate::group::{GroupError, GroupId, Groups, Places, WaitToken};
use crate::request::{Bio, Flags, Op, QueueData, Request, RequestId, RequestState, Requests, Status};
use admission::{Refused, RequestSlots};
use bios::Bios;
use era::barrier::{Barrier, Fences};
use era::pools;
use era::queue_plug::QueuePlug;
use flush::{FlushMachine, Instead};
use merge::EndHash;
use plug::TaskPlugs;

/// Request slots for the queue's own flush commands.
const OWN_REQUESTS: usize = 2;
/// Requests that need a flush and stand aside in one call, while another flush is in the device.
const ASIDE_MAX: usize = 8;
/// `QueueData::pool` of the queue's own requests.
const NO_POOL: u8 = 2;

/// How a queue is built. The default is a SATA disk under 2.6.30-2.6.36.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    /// io contexts beside the overflow one.
    pub contexts_max: usize,
    /// Groups beside the root.
    pub groups_max: usize,
    /// Bios of one group that its limits may hold.
    pub held_max: usize,
    /// Do seeks cost the device time?
    pub rotational: bool,
    /// Does the device take several commands at a time? (The plug of 2.6.30 wants to know.)
    pub tagged: bool,
    /// Who gets a request slot.
    pub admission: Admission,
    /// Holding I/O back.
    pub plugging: Plugging,
    /// Limits of a request.
    pub limits: MergeLimits,
    /// How much to look for merges.
    pub nomerges: NoMerges,
    /// Barriers or flush sequences.
    pub ordering: Ordering,
    /// Length of a jiffy for elevators of the jiffy era, nanoseconds; 0 = exact.
    pub tick_ns: u64,
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig {
            contexts_max: 64,
            groups_max: 0,
            held_max: 64,
            rotational: true,
            tagged: true,
            admission: Admission::Pools { nr_requests: 128 },
            plugging: Plugging::QUEUE,
            limits: MergeLimits { max_sectors: 1024, max_segments: 128 },
            nomerges: NoMerges::Off,
            ordering: Ordering::DrainFlush,
            tick_ns: crate::MS,
        }
    }
}

impl QueueConfig {
    /// Slots of the request pool.
    pub const fn requests_max(&self) -> usize {
        self.admission.slots() + OWN_REQUESTS
    }

    /// What an elevator for this queue has to know.
    pub const fn elevator(&self) -> elevator::Config {
        elevator::Config::for_queue(self.requests_max(), self.contexts_max, self.groups_max, self.tick_ns)
    }
}

/// What became of a submitted bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Submitted {
    /// It is a request of its own.
    Queued(RequestId),
    /// It joined this request.
    Merged(RequestId),
    /// It needed no I/O and is done: an empty flush for a device without a volatile cache.
    Done,
    /// All request slots of its class are taken: its task has to wait for a wake-up ([`RequestQueue::take_wakeups`]) and
    /// come back with [`RequestQueue::resubmit`].
    Full,
    /// A limit of its group holds it back; it goes on by itself ([`RequestQueue::let_in`]).
    Held,
    /// A limit would hold it back, and holds [`QueueConfig::held_max`] bios of its group already: its task has to wait until
    /// [`RequestQueue::take_room`] says so and submit it once more.
    NoRoom,
    /// Refused for good.
    Refused(Refusal),
}

/// Why a bio was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A barrier on a queue that cannot order (`EOPNOTSUPP`).
    Barrier,
    /// No sectors, yet not a flush; or more sectors or segments than a request may have: the host has to split.
    Size,
}

/// The block layer above one device.
#[derive(Debug)]
pub struct RequestQueue {
    config: QueueConfig,
    lower: ElevatorQueue,
    slots: RequestSlots,
    /// Request slots by subtree of groups, of each pool; not used without groups.
    slot_places: [Places; 2],
    bios: Bios,
    hash: EndHash,
    /// The request merged into or inserted last: the one-hit cache.
    last_merge: Option<RequestId>,
    plug: QueuePlug,
    task_plugs: TaskPlugs,
    barrier: Option<Barrier>,
    fences: Fences,
    flushes: FlushMachine,
    limiter: Limiter<Bio>,
    /// Each request's tag, where there are tags.
    tag_of: Vec<u32>,
    /// The limit a bio comes back with, and what the one refused last had.
    wanted_limit: Option<u32>,
    refused_limit: u32,
    /// Tags of which an async bio gets one.
    async_tags: u32,
}

/// The waiters for a request slot.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiter {
    /// A task that tries again when it is woken.
    Task,
    /// A bio that its limit let go, which tries again by itself ([`RequestQueue::let_in`]).
    Door,
}

impl RequestQueue {
    /// A queue around `elevator`, which must have been built with [`QueueConfig::elevator`]. Everything it will ever need is
    /// allocated here.
    pub fn new(mut config: QueueConfig, elevator: impl Into<AnyElevator>) -> RequestQueue {
        config.limits.max_segments = config.limits.max_segments.max(1);
        let requests = config.requests_max();
        let elevator = elevator.into();
        let parts = if elevator.shares_tags() { 1 } else { Groups::slots_for(config.groups_max) };
        let mut lower = ElevatorQueue::new(requests, config.contexts_max, config.rotational, elevator)
            .with_groups(config.groups_max);
        if let Admission::Tags { .. } = config.admission {
            lower.set_request_slots(config.admission.limit(), config.admission.limit());
        }
        RequestQueue {
            config,
            lower,
            slots: RequestSlots::new(config.admission).with_groups(parts),
            slot_places: core::array::from_fn(|_| {
                let size = config.admission.pool_size();
                Places::new(Groups::slots_for(config.groups_max), size / 2, size - size / 2)
            }),
            bios: Bios::new(requests * usize::from(config.limits.max_segments)),
            hash: EndHash::new(requests),
            last_merge: None,
            plug: QueuePlug::new(),
            task_plugs: TaskPlugs::new(config.plugging, config.elevator().contexts_max, requests),
            barrier: None,
            fences: Fences::new(Groups::slots_for(config.groups_max), requests),
            flushes: FlushMachine::new(requests),
            tag_of: alloc::vec![0; requests],
            wanted_limit: None,
            refused_limit: 0,
            async_tags: u32::MAX,
            limiter: Limiter::new(Groups::slots_for(config.groups_max), config.held_max),
        }
    }

    /// How it was built; `nomerges` is the current value.
    pub fn config(&self) -> &QueueConfig {
        &self.config
    }

    /// The requests.
    #[inline]
    pub fn requests(&self) -> &Requests {
        self.lower.requests()
    }

    /// The contexts.
    pub fn contexts(&self) -> &Contexts {
        self.lower.contexts()
    }

    /// The contexts, to create one.
    pub fn contexts_mut(&mut self) -> ContextsMut<'_> {
        self.lower.contexts_mut()
    }

    /// The groups.
    pub fn groups(&self) -> &Groups {
        self.lower.groups()
    }

    /// The groups, to create one or change its weight.
    pub fn groups_mut(&mut self) -> &mut Groups {
        if !self.lower.is_grouped() && self.groups().slots() > 1 {
            let now = self.lower.latest_ns();
            self.fence_pending_barriers(now);
            self.lower.groups_mut();
            self.file_pending_flushes();
            self.advance_first_fence(now);
        }
        self.lower.groups_mut()
    }

    /// The elevator.
    pub fn elevator(&self) -> &dyn Elevator {
        self.lower.elevator()
    }

    /// The elevator, to set its tunables ([`crate::elevator::set`]).
    pub fn elevator_mut(&mut self) -> &mut dyn Elevator {
        self.lower.elevator_mut()
    }

    /// What the elevator has found out about the device by the time `now`, nanoseconds.
    pub fn found(&self, now: u64, tell: &mut dyn FnMut(Finding)) {
        self.lower.found(now, tell);
    }

    /// Requests in the device, `[async, sync]`.
    #[inline]
    pub fn in_flight(&self) -> [u32; 2] {
        self.lower.in_flight()
    }

    /// Requests that were accepted and are not done; bios that limits hold ([`RequestQueue::held`]) are none yet.
    pub fn pending(&self) -> usize {
        self.requests().taken()
    }

    /// Should those who can hold back (read-ahead for sync, writeback for async)?
    pub fn is_congested(&self, sync: bool) -> bool {
        self.slots.is_congested(sync)
    }

    /// Should tasks of `group` hold back if they can? Its part of the slots may be short ([`crate::group::TUNABLES`]:
    /// `nr_group_requests`) when the device's are not, and the other way round.
    pub fn is_group_congested(&self, group: GroupId, sync: bool) -> bool {
        self.is_congested(sync) || self.slots.is_group_congested(self.groups().known(group), sync)
    }

    /// The group whose `bio` is: by itself, or its context's.
    pub fn group_of(&self, bio: &Bio) -> GroupId {
        let context = self.contexts().known(bio.context);
        self.groups().known(bio.group.unwrap_or(self.contexts()[context].group))
    }

    /// The tags of [`Admission::Tags`], or the least number of them to which the elevator limits some I/O
    /// ([`Elevator::tags_min`]): a task that waits found at least so many taken.
    pub fn tags_min(&self) -> u32 {
        let tags = self.config.admission.limit();
        self.lower.elevator().tags_min(tags).min(self.async_tags).clamp(1, tags)
    }

    /// Has the task of `context` gathered requests that the elevator does not have yet?
    #[inline]
    pub fn gathers(&self, context: ContextId) -> bool {
        self.task_plugs.newest(context).is_some()
    }

    /// Async bios get one of the first so many tags from now on, whatever the elevator allows besides: the others are for sync ones.
    pub fn set_async_tags(&mut self, tags: u32) {
        self.async_tags = tags.max(1);
    }

    /// Has the elevator no request?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.lower.is_empty()
    }

    /// How much of `bio` to submit as one bio at `now`, sectors: what a request may have, or less where that would keep others waiting
    /// ([`Elevator::bio_sectors_max`]). A host submits more in parts of this size, each a bio of its own, which it marks with
    /// [`Flags::NOMERGE`] if its plugs would join them again, and is done when the last one is. What carries no data, and what is ordered by
    /// flushes or barriers, stays in one piece. This is a wish: a larger bio is accepted all the same.
    pub fn bio_sectors_max(&mut self, bio: &Bio, now: u64) -> u32 {
        let ordered = Flags::BARRIER.or(Flags::PREFLUSH).or(Flags::FUA);
        let whole = self.config.limits.max_sectors;
        if !matches!(bio.op, Op::Read | Op::Write) || bio.flags.intersects(ordered) {
            return whole;
        }
        let context = self.contexts().known(bio.context);
        whole.min(self.lower.bio_sectors_max(&Bio { context, ..*bio }, now)).max(1)
    }

    /// Is there a free tag?
    pub fn has_free_tag(&self) -> bool {
        matches!(self.config.admission, Admission::Tags { .. })
            && self.slots.taken() < self.config.admission.limit()
    }

    /// Has each group its part of the request slots?
    pub fn parts_slots(&self) -> bool {
        self.slots.has_groups()
    }

    /// The next wake-up: a waiter of which group, and of which class (sync?). That group's waiter who waits longest may
    /// [`RequestQueue::resubmit`]; `None`: that was all. For queues with and without groups. A waiter belongs to the group
    /// its bio had ([`RequestQueue::group_of`]) when it was told [`Submitted::Full`], even if its task was moved since. In a
    /// queue with groups every `Full` counts one waiter, who must come back when woken.
    pub fn next_wakeup(&mut self) -> Option<(GroupId, bool)> {
        self.slots.next_wakeup()
    }

    /// For queues whose slots are not parted ([`RequestQueue::parts_slots`]): as [`RequestQueue::next_wakeup`], all at once.
    ///
    /// Wake-ups since the last call, `[async, sync]`: that many waiters of a class may [`RequestQueue::resubmit`], longest
    /// wait first. Without a waiter a wake-up is void. ([`Admission::Tags`] wakes one waiter of each class for a free tag: one
    /// of them may find it gone, gets [`Submitted::Full`] and waits on.)
    #[inline]
    pub fn take_wakeups(&mut self) -> [u32; 2] {
        self.slots.take_wakeups()
    }

    /// Write `queue/nomerges`.
    pub fn set_nomerges(&mut self, nomerges: NoMerges) {
        self.config.nomerges = nomerges;
    }

    // ---- a bio comes in ---------------------------------------------------------------------------------------------------

    /// A bio at `now`.
    #[inline]
    pub fn submit(&mut self, mut bio: Bio, now: u64) -> Submitted {
        self.adopt(&mut bio);
        if let Some(answer) = self.answer_at_once(&bio) {
            return answer;
        }
        if self.limiter.is_used()
            && let Some(answer) = self.hold_back(&bio, now)
        {
            return answer;
        }
        if let Some(rq) = self.try_merge(&bio, now) {
            self.unplug_for(bio.flags);
            return Submitted::Merged(rq);
        }
        self.enqueue(bio, Waiter::Task, now)
    }

    /// Let `bio` join a request, if it can, without asking for a slot: for a host that has something to decide before a bio
    /// becomes a request (Linux merges before `rq_qos_throttle`). `None`: nothing happened; go on with [`RequestQueue::submit`].
    /// Where limits hold bios back they come first, and nothing joins here.
    pub fn join_queued(&mut self, mut bio: Bio, now: u64) -> Option<RequestId> {
        self.adopt(&mut bio);
        if self.limiter.is_used() || self.answer_at_once(&bio).is_some() {
            return None;
        }
        let rq = self.try_merge(&bio, now)?;
        self.unplug_for(bio.flags);
        Some(rq)
    }

    /// The task of `context` goes to sleep: what it has gathered must not wait with it. Its plug stays open.
    pub fn flush_plug(&mut self, context: ContextId, now: u64) {
        self.flush_task_plug(context, now);
        self.plug.unplug();
    }

    /// The bio of a task that waited for a slot and was woken. It is not tried for merging again, and its task may take a
    /// batch of requests beyond the limit.
    pub fn resubmit(&mut self, mut bio: Bio, now: u64) -> Submitted {
        self.adopt(&mut bio);
        if let Some(answer) = self.answer_at_once(&bio) {
            // It leaves the slot it was woken for to the next.
            match self.slots.has_groups() {
                true => self.pass_on(&bio),
                false => self.slots.wake(usize::from(bio.is_sync())),
            }
            return answer;
        }
        pools::start_batch(&mut self.lower.contexts[bio.context], now);
        self.enqueue(bio, Waiter::Task, now)
    }

    /// The same of a bio that was refused a tag while it was limited to the first `limit` of them: it still is, as the kernel asks
    /// only once ([`RequestQueue::refused_limit`]).
    pub fn resubmit_within(&mut self, bio: Bio, limit: u32, now: u64) -> Submitted {
        self.wanted_limit = Some(limit);
        let answer = self.resubmit(bio, now);
        self.wanted_limit = None;
        answer
    }

    /// To how many tags the bio was limited that was told [`Submitted::Full`] last.
    pub fn refused_limit(&self) -> u32 {
        self.refused_limit
    }

    fn tag_limit(&mut self, bio: &Bio, now: u64) -> u32 {
        match self.config.admission {
            Admission::Pools { .. } => 0,
            Admission::Tags { .. } => {
                let limit = self.lower.tags_for(bio, self.config.admission.limit(), now);
                if bio.is_sync() { limit } else { limit.min(self.async_tags) }
            }
        }
    }

    /// A waiter was woken and needs no slot: the next one's.
    fn pass_on(&mut self, bio: &Bio) {
        let (group, sync) = (self.group_of(bio), bio.is_sync());
        let RequestQueue { slots, slot_places, lower, .. } = self;
        let (places, groups) = (&slot_places[slots.pool(usize::from(sync)).0], lower.groups());
        slots.pass_on(group, sync, &|group| places.claim(groups, group));
    }

    /// Put the bio in this queue's terms. At least one segment each, so that the segment limit bounds the bios of a request.
    #[inline]
    fn adopt(&self, bio: &mut Bio) {
        bio.context = self.contexts().known(bio.context);
        bio.segments = bio.segments.max(1);
        bio.flags = self.config.ordering.flags(bio);
    }

    /// What is refused or needs no I/O.
    #[inline]
    fn answer_at_once(&self, bio: &Bio) -> Option<Submitted> {
        let flush = bio.op == Op::Flush;
        let sized = flush || self.config.limits.admit(bio);
        if (bio.sectors == 0) != flush || !sized || bio.sector.checked_add(bio.sectors.into()).is_none() {
            return Some(Submitted::Refused(Refusal::Size));
        }
        match self.config.ordering {
            Ordering::NoBarriers if flush || bio.flags.contains(Flags::BARRIER) => {
                Some(Submitted::Refused(Refusal::Barrier))
            }
            Ordering::Sequences { write_cache: false, .. } if flush => Some(Submitted::Done),
            Ordering::Drain if flush && self.is_idle(bio.context, self.group_of(bio)) => {
                Some(Submitted::Done)
            }
            _ => None,
        }
    }

    /// Is there nothing an empty barrier of `context` would have to wait for?
    fn is_idle(&self, context: ContextId, group: GroupId) -> bool {
        let nothing_gathered = self.task_plugs.newest(context).is_none();
        if self.lower.is_grouped() {
            let groups = self.lower.groups();
            let nothing_there = groups.queued(group) == 0 && groups.in_flight(group) == 0;
            return nothing_there && nothing_gathered && !self.fences.is_closed(group);
        }
        self.lower.is_empty() && self.barrier.is_none() && self.in_flight() == [0, 0] && nothing_gathered
    }

    fn enqueue(&mut self, bio: Bio, waiter: Waiter, now: u64) -> Submitted {
        let sync = bio.is_sync();
        let mut may = self.lower.may_queue(bio.context, sync, now);
        if waiter == Waiter::Door && may == MayQueue::May {
            // It has waited, as those have who may take a slot beyond the limit when they are woken.
            may = MayQueue::Must;
        }
        let limit = self.wanted_limit.take().unwrap_or_else(|| self.tag_limit(&bio, now));
        let Some(tag) = self.enter(&bio, may, waiter, limit, now) else {
            self.refused_limit = limit;
            // Its task goes to sleep: what it has gathered must not wait with it.
            self.flush_task_plug(bio.context, now);
            self.plug.unplug();
            return Submitted::Full;
        };
        let Some(rq) = self.take(&bio, sync, tag, now) else {
            self.leave(sync, self.group_of(&bio), tag);
            return Submitted::Full;
        };
        if let Plugging::Queue { delay_ns, .. } = self.config.plugging
            && self.may_plug()
            && self.lower.is_empty()
        {
            self.plug.plug(now + delay_ns);
        }
        let sequence = self.config.ordering.sequence(&bio);
        if self.config.is_barrier(&bio) {
            self.insert_barrier(rq, now);
        } else if !sequence.is_some_and(|plan| self.start_sequence(rq, plan, now)) {
            if self.task_plugs.is_open(bio.context) {
                self.add_to_task_plug(bio.context, rq, now);
            } else {
                self.insert_sorted(rq, now);
            }
        }
        self.unplug_for(bio.flags);
        Submitted::Queued(rq)
    }

    /// Take a slot for `bio` if there is one for it: its tag, where there are tags, one of the first `limit`.
    #[inline]
    fn enter(&mut self, bio: &Bio, may: MayQueue, waiter: Waiter, limit: u32, now: u64) -> Option<u32> {
        let Some(tag) = self.slots.take_tag(limit) else {
            if self.slots.has_groups() && waiter == Waiter::Task {
                self.slots.refuse(self.group_of(bio), bio.is_sync(), Refused::ByDevice);
            }
            return None;
        };
        if self.enter_pool(bio, may, waiter, now) {
            return Some(tag);
        }
        self.slots.give_tag_back(tag);
        None
    }

    fn enter_pool(&mut self, bio: &Bio, may: MayQueue, waiter: Waiter, now: u64) -> bool {
        let sync = bio.is_sync();
        if !self.slots.has_groups() {
            return self.slots.enter(sync, &mut self.lower.contexts[bio.context], may, now);
        }
        let part = (self.group_of(bio), self.groups().settings().nr_group_requests);
        let pool = self.slots.pool(usize::from(sync)).0;
        let answer = match self.slot_places[pool].has_one_for(self.lower.groups(), part.0) {
            true => self.slots.enter_group(part, sync, &mut self.lower.contexts[bio.context], may, now),
            false => Err(Refused::ByDevice),
        };
        match (answer, waiter) {
            (Ok(()), _) => self.slot_places[pool].take(self.lower.groups(), part.0),
            (Err(refused), Waiter::Task) => self.slots.refuse(part.0, sync, refused),
            _ => {}
        }
        answer.is_ok()
    }

    /// Give a slot back that `group` took.
    #[inline]
    fn leave(&mut self, sync: bool, group: GroupId, tag: u32) {
        self.slots.give_tag_back(tag);
        self.limiter.slot_freed(group);
        if !self.slots.has_groups() {
            return self.slots.leave(sync);
        }
        let part = (group, self.groups().settings().nr_group_requests);
        let RequestQueue { slots, slot_places, lower, .. } = self;
        let (places, groups) = (&mut slot_places[slots.pool(usize::from(sync)).0], lower.groups());
        places.give_back(groups, group);
        slots.leave_group(part, sync, &|group| places.claim(groups, group));
    }

    /// A slot and a bio node for `bio`; there is one of each for every bio that is let in.
    fn take(&mut self, bio: &Bio, sync: bool, tag: u32, now: u64) -> Option<RequestId> {
        let ioprio = bio.ioprio.unwrap_or(self.contexts()[bio.context].ioprio);
        let node = self.bios.take(bio.cookie)?;
        let queue =
            QueueData { bio_first: node, bio_last: node, pool: u8::from(sync), ..Request::EMPTY.queue };
        let rq = self.lower.take(Request {
            op: bio.op,
            flags: self.config.ordering.request_flags(bio),
            sector: bio.sector,
            sectors: bio.sectors,
            segments: bio.segments,
            context: bio.context,
            ioprio,
            group: bio.group.unwrap_or(self.contexts()[bio.context].group),
            payer: GroupId::ROOT,
            start_ns: now,
            issued_ns: 0,
            state: RequestState::Held,
            status: Status::Done,
            generation: 0,
            queue,
        });
        if let Some(rq) = rq {
            self.tag_of[rq.index()] = tag;
        } else {
            self.bios.release(&queue, &mut |_| {});
        }
        rq
    }

    /// Hand a held request to the elevator and make it known to later bios.
    fn insert_sorted(&mut self, rq: RequestId, now: u64) {
        if self.waits_at_fence(rq) {
            return;
        }
        if self.config.nomerges != NoMerges::Rfc && self.requests()[rq].is_mergeable() {
            self.hash.add(rq, self.requests()[rq].end());
            self.last_merge = self.one_hit().or(Some(rq));
        }
        self.lower.insert(rq, now);
        if let Plugging::Queue { threshold, .. } = self.config.plugging {
            let [a, s] = self.lower.in_flight();
            if self.slots.taken().saturating_sub(a + s) >= threshold {
                self.plug.unplug();
            }
        }
    }

    // ---- to the device ----------------------------------------------------------------------------------------------------

    /// The next request for the device, or why there is none. Call it after every arrival, unplug and completion, at the time
    /// an `Idle` names, and again after every `Issue` as long as the device takes more.
    #[inline]
    pub fn dispatch(&mut self, now: u64) -> Dispatch {
        self.dispatch_with(now, |_, _| {})
    }

    /// The same; `entered` gets each bio that limits let in meanwhile, and what became of it.
    #[inline]
    pub fn dispatch_with(&mut self, now: u64, entered: impl FnMut(&Bio, Submitted)) -> Dispatch {
        let until = self.let_in(now, entered);
        Self::with_limits(self.dispatch_queued(now), until)
    }

    /// Would [`RequestQueue::dispatch`] answer `Empty` or `Busy` and change nothing? It is cheaper to ask this; `false`: ask that.
    #[inline]
    pub fn has_nothing(&mut self, now: u64) -> bool {
        self.lower.has_nothing()
            && self.limiter.held() == 0
            && self.barrier.is_none()
            && !self.flushes.any()
            && !self.fences.any()
            && self.plug.plugged_until(now).is_none()
    }

    #[inline]
    fn dispatch_queued(&mut self, now: u64) -> Dispatch {
        if let Some(until) = self.plug.plugged_until(now) {
            return Dispatch::Idle { until };
        }
        self.kick_flush(now);
        if self.barrier.is_some() {
            return self.dispatch_barrier(now);
        }
        // Barriers go around the elevator: one that is next is on the list already.
        if let Some(rq) = self.lower.head()
            && self.requests()[rq].flags.contains(Flags::BARRIER)
        {
            self.begin_barrier(rq, now);
            return self.dispatch_barrier(now);
        }
        if self.lower.is_grouped() && (self.fences.any() || self.flushes.any()) {
            return self.dispatch_ordered(now);
        }
        match self.lower.dispatch(now) {
            Dispatch::Issue(rq) => {
                self.forget(rq);
                Dispatch::Issue(rq)
            }
            waiting => self.flushes.limit(waiting),
        }
    }

    /// With groups, while barriers or flushes wait for their group's turn: what is next may be one of them.
    #[cold]
    fn dispatch_ordered(&mut self, now: u64) -> Dispatch {
        if let Some(answer) = self.granted_flush(now) {
            return answer;
        }
        for _ in 0..ASIDE_MAX {
            let rq = match self.lower.peek(now) {
                Dispatch::Issue(rq) => rq,
                // Those that stood aside are queued nowhere else.
                Dispatch::Empty if self.flushes.is_running() => return Dispatch::Busy,
                waiting => return waiting,
            };
            if self.requests()[rq].flags.contains(Flags::BARRIER) {
                self.begin_barrier(rq, now);
                return self.dispatch_barrier(now);
            }
            match self.flush_instead(rq, now) {
                Instead::No => return self.issue_ordered(rq, now),
                Instead::Now(answer) => return answer,
                Instead::Later => {}
            }
        }
        // A flush is in the device: more of those who wait for the next one stand aside when it is done.
        Dispatch::Busy
    }

    /// `rq` goes; a barrier of its group may be next.
    fn issue_ordered(&mut self, rq: RequestId, now: u64) -> Dispatch {
        self.forget(rq);
        let payer = self.requests()[rq].payer;
        let answer = self.lower.issue(now).map_or(Dispatch::Empty, Dispatch::Issue);
        if self.fences.any() {
            self.advance_fence(payer, now);
        }
        answer
    }

    /// As [`RequestQueue::dispatch`], for up to `most` requests, which `out` gets; answers with why there are no more, or with
    /// the last of them.
    pub fn dispatch_many(&mut self, now: u64, most: usize, mut out: impl FnMut(RequestId)) -> Dispatch {
        let mut answer = Dispatch::Empty;
        for _ in 0..most {
            answer = self.dispatch(now);
            let Dispatch::Issue(rq) = answer else { break };
            out(rq);
        }
        answer
    }

    /// The device is done with `rq`; `done` gets the cookies of the bios that are done now, in the order of their sectors.
    /// A completion unplugs.
    #[inline]
    pub fn complete(&mut self, rq: RequestId, now: u64, done: impl FnMut(u64)) {
        self.complete_as(rq, Status::Done, now, done);
    }

    /// The same, saying how the device answered. A failed request is done all the same: its bios are, with that status, and
    /// what it took of the device is paid for.
    #[inline]
    pub fn complete_as(&mut self, rq: RequestId, status: Status, now: u64, mut done: impl FnMut(u64)) {
        self.plug.unplug();
        let payer = self.requests()[rq].payer;
        if !self.flush_is_done(rq, now) {
            self.lower.complete_as(rq, status, now);
        }
        if self.requests()[rq].queue.sequence == 0 && self.requests()[rq].queue.pool != NO_POOL {
            self.finish(rq, &mut done);
        } else if self.barrier.is_some() {
            self.barrier_step_done(rq, now, &mut done);
        } else {
            self.sequence_step_done(rq, now, &mut done);
        }
        if self.config.ordering == Ordering::Drain {
            if self.fences.any() {
                self.finish_dry_barriers(payer, now, &mut done);
            }
            self.finish_empty_barriers(now, &mut done);
        }
    }

    /// The device gave `rq` back unserved; it will be issued again before anything else (of its group, where there are groups).
    pub fn requeue(&mut self, rq: RequestId, now: u64) {
        if self.barrier.is_some() {
            self.lower.requeue_first(rq, now);
        } else {
            self.lower.requeue(rq, now);
        }
    }

    /// The client that `rq` is for is gone: forget it if it is still queued and no part of a barrier or flush sequence. `done`
    /// gets the cookies of its bios, as if they were done; `false` if it has to be waited for.
    pub fn cancel(&mut self, rq: RequestId, now: u64, mut done: impl FnMut(u64)) -> bool {
        let request = &self.requests()[rq];
        let is_step = request.queue.sequence != 0
            || request.queue.pool == NO_POOL
            || request.flags.contains(Flags::BARRIER);
        let payer = request.payer;
        if is_step || self.requests()[rq].state != RequestState::Sorted || !self.lower.cancel(rq, now) {
            return false;
        }
        self.forget(rq);
        self.finish(rq, &mut done);
        if self.fences.any() {
            self.advance_fence(payer, now);
            self.finish_dry_barriers(payer, now, &mut done);
        }
        true
    }

    /// The cookies of the bios that `rq` is made of, in the order of their sectors: whose memory the device has to fill or read.
    /// A flush command of the queue's own has none.
    pub fn cookies(&self, rq: RequestId) -> impl Iterator<Item = u64> + '_ {
        self.bios.cookies(&self.requests()[rq].queue)
    }

    /// Report a request's bios and free its slot.
    #[inline]
    fn finish(&mut self, rq: RequestId, done: &mut impl FnMut(u64)) {
        let queue = self.requests()[rq].queue;
        self.bios.release(&queue, done);
        self.release(rq);
    }

    #[inline]
    fn release(&mut self, rq: RequestId) {
        let request = &self.requests()[rq];
        let (pool, group, tag) = (request.queue.pool, request.group, self.tag_of[rq.index()]);
        self.lower.release(rq);
        if pool != NO_POOL {
            self.leave(pool == 1, group, tag);
        }
    }

    /// Is everything held back by the queue's plug?
    pub fn is_plugged(&mut self, now: u64) -> bool {
        self.plug.plugged_until(now).is_some()
    }

    /// Whose next request the elevator idles for, after [`RequestQueue::dispatch`] answered [`Dispatch::Idle`].
    pub fn idling_for(&self) -> Option<ContextId> {
        self.lower.elevator().idling_for()
    }

    // ---- tasks and policy ---------------------------------------------------------------------------------------------------

    /// The context's task is gone. What it has queued is still served.
    pub fn context_exit(&mut self, context: ContextId, now: u64) {
        self.close_plug(context, now);
        self.lower.context_exit(context, now);
    }

    /// Change a context's priority (`ioprio_set`).
    pub fn set_ioprio(&mut self, context: ContextId, ioprio: IoPrio, now: u64) {
        self.lower.set_ioprio(context, ioprio, now);
    }

    /// Put a context into another group. What it has queued or in the device stays with the old one.
    pub fn move_context(&mut self, context: ContextId, group: GroupId, now: u64) {
        self.lower.move_context(context, group, now);
    }

    /// `from` waits for the I/O of `whom` from now on: see [`ElevatorQueue::wait_begin`]. `None` too where barriers keep order
    /// ([`Ordering::drains`]): a barrier orders the I/O in its group's queue, and donated requests are in another's.
    pub fn wait_begin(&mut self, from: ContextId, whom: ContextId) -> Option<WaitToken> {
        if self.config.ordering.drains() {
            return None;
        }
        self.lower.wait_begin(from, whom)
    }

    /// A wait is over.
    pub fn wait_end(&mut self, token: WaitToken) {
        self.lower.wait_end(token);
    }

    /// Remove a group: it takes no new I/O, which goes to its nearest ancestor left; its child groups keep their place. What it
    /// has queued or in the device is served as its own.
    ///
    /// # Errors
    /// [`GroupError::Root`], [`GroupError::Unknown`].
    pub fn remove_group(&mut self, group: GroupId, now: u64) -> Result<(), GroupError> {
        self.lower.remove_group(group)?;
        self.limiter.removed(self.lower.groups(), group, now);
        Ok(())
    }

    /// `from` now waits for I/O of `to`, or of an unknown task: idling for `from` is in vain. A hint; ask
    /// [`dispatch`](RequestQueue::dispatch) again.
    pub fn yield_to(&mut self, from: ContextId, to: Option<ContextId>, now: u64) {
        self.lower.yield_to(from, to, now);
    }

    /// Change the elevator with requests queued and in flight; the old one is handed back. Queued requests go to the device in
    /// the old one's order.
    pub fn switch(&mut self, elevator: impl Into<AnyElevator>, now: u64) -> AnyElevator {
        self.last_merge = None;
        self.lower.switch(elevator, now)
    }
}
