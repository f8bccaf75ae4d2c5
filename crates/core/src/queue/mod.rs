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
//! };
//! assert!(matches!(q.submit(bio(1, 0), 0), Submitted::Queued(_)));
//! assert!(matches!(q.submit(bio(2, 8), 0), Submitted::Merged(_))); // continues the first one
//! q.unplug();
//! let Dispatch::Issue(rq) = q.dispatch(0) else { panic!() };
//! assert_eq!(q.requests()[rq].sectors, 16);
//!
//! let mut done = Vec::new();
//! q.complete(rq, 5_000_000, |cookie| done.push(cookie));
//! assert_eq!(done, [1, 2]);
//! ```

mod admission;
mod bios;
mod dispatch_list;
mod elevator_queue;
mod flush;
mod merge;
mod plug;

pub use admission::Admission;
pub use dispatch_list::DispatchList;
pub use elevator_queue::ElevatorQueue;
pub use flush::Ordering;
pub use merge::{MergeLimits, NoMerges};
pub use plug::Plugging;

use alloc::boxed::Box;

use crate::context::{ContextId, Contexts, IoPrio};
use crate::elevator::{self, Dispatch, Elevator, Growth};
use crate::request::{Bio, Flags, Op, QueueData, Request, RequestId, RequestState, Requests};
use admission::Gate;
use bios::Bios;
use flush::{Barrier, FlushMachine, Plan, Step};
use merge::EndHash;
use plug::{QueuePlug, TaskPlugs};

/// Request slots for the queue's own flush commands.
const OWN_REQUESTS: usize = 2;
/// `QueueData::pool` of the queue's own requests.
const NO_POOL: u8 = 2;

/// How a queue is built. The default is a SATA disk under 2.6.30-2.6.36.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueConfig {
    /// io contexts beside the overflow one.
    pub contexts_max: usize,
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
        elevator::Config {
            requests_max: self.requests_max(),
            contexts_max: self.contexts_max + 1,
            tick_ns: self.tick_ns,
        }
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
    gate: Gate,
    bios: Bios,
    hash: EndHash,
    /// The request merged into or inserted last: the one-hit cache.
    last_merge: Option<RequestId>,
    plug: QueuePlug,
    task_plugs: TaskPlugs,
    barrier: Option<Barrier>,
    flushes: FlushMachine,
}

impl RequestQueue {
    /// A queue around `elevator`, which must have been built with [`QueueConfig::elevator`]. Everything it will ever need is
    /// allocated here.
    pub fn new(config: QueueConfig, elevator: Box<dyn Elevator>) -> RequestQueue {
        let requests = config.requests_max();
        RequestQueue {
            config,
            lower: ElevatorQueue::new(requests, config.contexts_max, config.rotational, elevator),
            gate: Gate::new(config.admission),
            bios: Bios::new(requests * usize::from(config.limits.max_segments).max(1)),
            hash: EndHash::new(requests),
            last_merge: None,
            plug: QueuePlug::new(),
            task_plugs: TaskPlugs::new(config.plugging, config.contexts_max + 1, requests),
            barrier: None,
            flushes: FlushMachine::new(requests),
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
    pub fn contexts_mut(&mut self) -> &mut Contexts {
        self.lower.contexts_mut()
    }

    /// The elevator.
    pub fn elevator(&self) -> &dyn Elevator {
        self.lower.elevator()
    }

    /// The elevator, to set its tunables ([`crate::elevator::set`]).
    pub fn elevator_mut(&mut self) -> &mut dyn Elevator {
        self.lower.elevator_mut()
    }

    /// Requests in the device, `[async, sync]`.
    #[inline]
    pub fn in_flight(&self) -> [u32; 2] {
        self.lower.in_flight()
    }

    /// Requests that were accepted and are not done.
    pub fn pending(&self) -> usize {
        self.requests().taken()
    }

    /// Should those who can hold back (read-ahead for sync, writeback for async)?
    pub fn is_congested(&self, sync: bool) -> bool {
        self.gate.is_congested(sync)
    }

    /// Wake-ups since the last call, `[async, sync]`: that many waiters of a class may [`RequestQueue::resubmit`], longest
    /// wait first. Without a waiter a wake-up is void.
    #[inline]
    pub fn take_wakeups(&mut self) -> [u32; 2] {
        self.gate.take_wakeups()
    }

    /// Write `queue/nomerges`.
    pub fn set_nomerges(&mut self, nomerges: NoMerges) {
        self.config.nomerges = nomerges;
    }

    // ---- a bio comes in ---------------------------------------------------------------------------------------------------

    /// A bio at `now`.
    #[inline]
    pub fn submit(&mut self, bio: Bio, now: u64) -> Submitted {
        if let Some(refused) = self.refuse(&bio) {
            return refused;
        }
        if let Some(rq) = self.try_merge(&bio, now) {
            self.unplug_for(bio.flags);
            return Submitted::Merged(rq);
        }
        self.enqueue(bio, now)
    }

    /// The bio of a task that waited for a slot and was woken. It is not tried for merging again, and its task may take a
    /// batch of requests beyond the limit.
    pub fn resubmit(&mut self, bio: Bio, now: u64) -> Submitted {
        Gate::woken(&mut self.lower.contexts_mut()[bio.context], now);
        self.enqueue(bio, now)
    }

    fn refuse(&self, bio: &Bio) -> Option<Submitted> {
        let limits = &self.config.limits;
        let flush = bio.op == Op::Flush;
        if (bio.sectors == 0) != flush || !limits.allow(bio.sectors, u32::from(bio.segments)) {
            return Some(Submitted::Refused(Refusal::Size));
        }
        match self.config.ordering {
            Ordering::NoBarriers if flush || bio.flags.contains(Flags::BARRIER) => {
                Some(Submitted::Refused(Refusal::Barrier))
            }
            Ordering::Sequences { write_cache: false, .. } if flush => Some(Submitted::Done),
            _ => None,
        }
    }

    fn enqueue(&mut self, bio: Bio, now: u64) -> Submitted {
        let sync = bio.is_sync();
        let may = self.lower.may_queue(bio.context, sync, now);
        if !self.gate.enter(sync, &mut self.lower.contexts_mut()[bio.context], may, now) {
            // Its task goes to sleep: what it has gathered must not wait with it.
            self.flush_task_plug(bio.context, now);
            self.plug.unplug();
            return Submitted::Full;
        }
        let Some(rq) = self.take(&bio, sync, now) else {
            self.gate.leave(sync);
            return Submitted::Full;
        };
        let empty = self.lower.is_empty();
        if let Plugging::Queue { delay_ns, .. } = self.config.plugging
            && empty
            && self.may_plug()
        {
            self.plug.plug(now + delay_ns);
        }
        if self.is_barrier(&bio) {
            self.insert_barrier(rq, now);
        } else if let Some(plan) = self.config.ordering.sequence(&bio) {
            self.start_sequence(rq, plan, now);
        } else if self.task_plugs.is_open(bio.context) {
            self.add_to_task_plug(bio.context, rq, now);
        } else {
            self.insert_sorted(rq, now);
        }
        self.unplug_for(bio.flags);
        Submitted::Queued(rq)
    }

    fn take(&mut self, bio: &Bio, sync: bool, now: u64) -> Option<RequestId> {
        let node = self.bios.take(bio.cookie)?;
        let mut flags = bio.flags;
        flags.remove(Flags::UNPLUG);
        if matches!(self.config.ordering, Ordering::Sequences { .. }) {
            flags.remove(Flags::BARRIER); // barriers are gone since 2.6.37
        }
        let ioprio = bio.ioprio.unwrap_or(self.contexts()[bio.context].ioprio);
        self.lower.take(Request {
            op: bio.op,
            flags,
            sector: bio.sector,
            sectors: bio.sectors,
            segments: bio.segments,
            context: bio.context,
            ioprio,
            start_ns: now,
            issued_ns: 0,
            state: RequestState::Held,
            queue: QueueData {
                bio_first: node,
                bio_last: node,
                pool: u8::from(sync),
                ..Request::EMPTY.queue
            },
        })
    }

    /// Hand a held request to the elevator and make it known to later bios.
    fn insert_sorted(&mut self, rq: RequestId, now: u64) {
        if self.requests()[rq].is_mergeable() {
            self.hash.add(rq, self.requests()[rq].end());
            self.last_merge.get_or_insert(rq);
        }
        self.lower.insert(rq, now);
        if let Plugging::Queue { threshold, .. } = self.config.plugging {
            let [a, s] = self.lower.in_flight();
            if self.gate.taken().saturating_sub(a + s) >= threshold {
                self.plug.unplug();
            }
        }
    }

    // ---- merging ----------------------------------------------------------------------------------------------------------

    /// Let `bio` join a request, if there is one. Search order: the task's plug, the one-hit cache, the end hash, the
    /// elevator's front look-up.
    fn try_merge(&mut self, bio: &Bio, now: u64) -> Option<RequestId> {
        if self.config.nomerges == NoMerges::All || !merge::is_mergeable(bio) {
            return None;
        }
        if let Some(rq) = self.task_plugs.newest(bio.context)
            && let Some(growth) = merge::joins(&self.requests()[rq], bio)
            && self.attach(rq, bio, growth)
        {
            return Some(rq);
        }
        let (rq, growth) = self.find_merge(bio, now)?;
        if !self.attach(rq, bio, growth) {
            return None;
        }
        self.lower.grew(rq, growth, now);
        let survivor = self.coalesce(rq, growth, now);
        if growth == Growth::Back || survivor != rq || self.config.nomerges == NoMerges::Off {
            self.hash.moved(survivor, self.requests()[survivor].end());
        }
        self.last_merge = Some(survivor);
        Some(survivor)
    }

    fn find_merge(&mut self, bio: &Bio, now: u64) -> Option<(RequestId, Growth)> {
        if let Some(rq) = self.last_merge
            && let Some(growth) = merge::joins(&self.requests()[rq], bio)
            && self.lower.allow_merge(rq, bio, now)
        {
            return Some((rq, growth));
        }
        if self.config.nomerges != NoMerges::Off {
            return None;
        }
        if let Some(rq) = self.hash.find(self.lower.requests(), bio.sector)
            && merge::joins(&self.requests()[rq], bio) == Some(Growth::Back)
            && self.lower.allow_merge(rq, bio, now)
        {
            return Some((rq, Growth::Back));
        }
        let rq = self.lower.find_front(bio, now)?;
        let fits = merge::joins(&self.requests()[rq], bio) == Some(Growth::Front);
        (fits && self.lower.allow_merge(rq, bio, now)).then_some((rq, Growth::Front))
    }

    /// Grow `rq` by `bio`. A request that has no room is never tried again.
    fn attach(&mut self, rq: RequestId, bio: &Bio, growth: Growth) -> bool {
        let request = &self.requests()[rq];
        let sectors = request.sectors + bio.sectors;
        let segments = u32::from(request.segments) + u32::from(bio.segments);
        let room = self.config.limits.allow(sectors, segments);
        let node = if room { self.bios.take(bio.cookie) } else { None };
        let ioprio = bio.ioprio.unwrap_or(self.contexts()[bio.context].ioprio);
        let Some(node) = node else {
            self.forbid_merging(rq);
            return false;
        };
        let request = &mut self.lower.requests_mut()[rq];
        request.sectors = sectors;
        request.segments = segments as u16;
        request.ioprio = request.ioprio.best(ioprio);
        match growth {
            Growth::Back => self.bios.append(&mut request.queue, node),
            Growth::Front => {
                request.sector = bio.sector;
                self.bios.prepend(&mut request.queue, node);
            }
        }
        true
    }

    fn forbid_merging(&mut self, rq: RequestId) {
        self.lower.requests_mut()[rq].flags.insert(Flags::NOMERGE);
        self.hash.remove(rq);
        if self.last_merge == Some(rq) {
            self.last_merge = None;
        }
    }

    /// A request that grew may now touch its neighbour: make one of the two. Returns the survivor, which is the lower one.
    fn coalesce(&mut self, rq: RequestId, growth: Growth, now: u64) -> RequestId {
        let pair = match growth {
            Growth::Back => self.lower.latter(rq, now).map(|next| (rq, next)),
            Growth::Front => self.lower.former(rq, now).map(|prev| (prev, rq)),
        };
        match pair {
            Some((low, high)) if self.may_coalesce(low, high) => {
                self.absorb(low, high, now);
                low
            }
            _ => rq,
        }
    }

    fn may_coalesce(&self, low: RequestId, high: RequestId) -> bool {
        let (low, high) = (&self.requests()[low], &self.requests()[high]);
        low.end() == high.sector
            && low.op == high.op
            && low.is_mergeable()
            && high.is_mergeable()
            && self
                .config
                .limits
                .allow(low.sectors + high.sectors, u32::from(low.segments) + u32::from(high.segments))
    }

    /// Make `high`, which starts where `low` ends, part of `low`.
    fn absorb(&mut self, low: RequestId, high: RequestId, now: u64) {
        let gone = self.requests()[high];
        let request = &mut self.lower.requests_mut()[low];
        request.sectors += gone.sectors;
        request.segments += gone.segments;
        request.ioprio = request.ioprio.best(gone.ioprio);
        request.start_ns = request.start_ns.min(gone.start_ns);
        self.bios.join(&mut request.queue, &gone.queue);
        self.lower.absorbed(low, high, now);
        self.forget(high);
        self.release(high);
    }

    /// `rq` can no longer be merged into.
    fn forget(&mut self, rq: RequestId) {
        self.hash.remove(rq);
        if self.last_merge == Some(rq) {
            self.last_merge = None;
        }
    }

    // ---- plugging ---------------------------------------------------------------------------------------------------------

    fn may_plug(&self) -> bool {
        match self.config.plugging {
            Plugging::Queue { spare_non_rotational, .. } => {
                !spare_non_rotational || self.config.rotational || !self.config.tagged
            }
            _ => false,
        }
    }

    fn unplug_for(&mut self, flags: Flags) {
        if flags.contains(Flags::UNPLUG) {
            self.plug.unplug();
        }
    }

    /// Somebody is about to wait for I/O of this queue: let it go.
    pub fn unplug(&mut self) {
        self.plug.unplug();
    }

    /// The task starts a system call that may submit several bios ([`Plugging::Task`] only).
    pub fn open_plug(&mut self, context: ContextId) {
        self.task_plugs.open(context);
    }

    /// The task is done submitting, or goes to sleep.
    pub fn close_plug(&mut self, context: ContextId, now: u64) {
        self.task_plugs.close(context);
        self.flush_task_plug(context, now);
    }

    fn add_to_task_plug(&mut self, context: ContextId, rq: RequestId, now: u64) {
        let merging = self.config.nomerges != NoMerges::All;
        let big = self
            .task_plugs
            .newest(context)
            .is_some_and(|last| merging && self.requests()[last].sectors >= plug::TASK_PLUG_SECTORS);
        if big || self.task_plugs.len(context) >= plug::TASK_PLUG_REQUESTS {
            self.flush_task_plug(context, now);
        }
        self.task_plugs.push(context, rq);
    }

    fn flush_task_plug(&mut self, context: ContextId, now: u64) {
        while let Some(rq) = self.task_plugs.pop(context) {
            if !self.insert_merged(rq, now) {
                self.insert_sorted(rq, now);
            }
        }
    }

    /// Let a whole request off a plug join one with the elevator that ends where it starts.
    fn insert_merged(&mut self, rq: RequestId, now: u64) -> bool {
        if self.config.nomerges != NoMerges::Off || !self.requests()[rq].is_mergeable() {
            return false;
        }
        let Some(low) = self.hash.find(self.lower.requests(), self.requests()[rq].sector) else {
            return false;
        };
        if !self.may_coalesce(low, rq) || self.requests()[low].context != self.requests()[rq].context {
            return false;
        }
        let gone = self.requests()[rq];
        let request = &mut self.lower.requests_mut()[low];
        request.sectors += gone.sectors;
        request.segments += gone.segments;
        request.ioprio = request.ioprio.best(gone.ioprio);
        self.bios.join(&mut request.queue, &gone.queue);
        self.lower.grew(low, Growth::Back, now);
        self.hash.moved(low, self.requests()[low].end());
        self.release(rq);
        true
    }

    // ---- to the device ----------------------------------------------------------------------------------------------------

    /// The next request for the device, or why there is none. Call it after every arrival, unplug and completion, at the time
    /// an `Idle` names, and again after every `Issue` as long as the device takes more.
    #[inline]
    pub fn dispatch(&mut self, now: u64) -> Dispatch {
        if let Some(until) = self.plug.plugged_until(now) {
            return Dispatch::Idle { until };
        }
        self.kick_flush(now);
        if self.barrier.is_some() {
            return self.dispatch_barrier(now);
        }
        match self.lower.peek(now) {
            Dispatch::Issue(rq) if self.requests()[rq].flags.contains(Flags::BARRIER) => {
                self.begin_barrier(rq, now);
                self.dispatch_barrier(now)
            }
            Dispatch::Issue(rq) => {
                self.forget(rq);
                self.lower.issue(now).map_or(Dispatch::Empty, Dispatch::Issue)
            }
            Dispatch::Empty => {
                self.flushes.deadline().map_or(Dispatch::Empty, |until| Dispatch::Idle { until })
            }
            idle => idle,
        }
    }

    /// The device is done with `rq`; `done` gets the cookies of the bios that are done now, in the order of their sectors.
    /// A completion unplugs.
    #[inline]
    pub fn complete(&mut self, rq: RequestId, now: u64, mut done: impl FnMut(u64)) {
        self.plug.unplug();
        self.lower.complete(rq, now);
        if self.requests()[rq].queue.sequence == 0 && self.requests()[rq].queue.pool != NO_POOL {
            self.finish(rq, &mut done);
        } else if self.barrier.is_some_and(|b| b.started) {
            self.barrier_step_done(rq, &mut done);
        } else {
            self.sequence_step_done(rq, now, &mut done);
        }
    }

    /// The device gave `rq` back unserved; it will be issued again before anything else.
    pub fn requeue(&mut self, rq: RequestId, now: u64) {
        self.lower.requeue(rq, now);
    }

    /// Report a request's bios and free its slot.
    fn finish(&mut self, rq: RequestId, done: &mut impl FnMut(u64)) {
        let queue = self.requests()[rq].queue;
        self.bios.release(&queue, done);
        self.release(rq);
    }

    fn release(&mut self, rq: RequestId) {
        let pool = self.requests()[rq].queue.pool;
        self.lower.release(rq);
        if pool != NO_POOL {
            self.gate.leave(pool == 1);
        }
    }

    // ---- barriers and flush sequences ---------------------------------------------------------------------------------------

    fn is_barrier(&self, bio: &Bio) -> bool {
        match self.config.ordering {
            Ordering::Sequences { .. } => false,
            _ => bio.flags.contains(Flags::BARRIER) || bio.op == Op::Flush,
        }
    }

    /// A barrier empties the elevator into the dispatch list and goes behind it all.
    fn insert_barrier(&mut self, rq: RequestId, now: u64) {
        self.lower.drain(now);
        self.last_merge = None;
        self.lower.requests_mut()[rq].flags.insert(Flags::BARRIER);
        self.lower.insert_tail(rq);
        let (list, requests) = self.lower.list_mut();
        list.set_boundary(requests, rq);
        self.plug.unplug();
    }

    /// The barrier reached the head of the dispatch list: take it aside and let the device run dry.
    fn begin_barrier(&mut self, rq: RequestId, _now: u64) {
        let empty = self.requests()[rq].op == Op::Flush;
        let Some(plan) = self.config.ordering.barrier(empty) else { return };
        self.lower.take_aside();
        self.lower.requests_mut()[rq].queue.sequence = plan.to_byte();
        self.barrier = Some(Barrier { rq, step: Step::Drain, plan, started: false });
    }

    /// While a barrier is at work nothing goes to the device but its steps, one at a time, and what the device gave back.
    fn dispatch_barrier(&mut self, now: u64) -> Dispatch {
        let Some(barrier) = self.barrier else { return Dispatch::Empty };
        if self.lower.head_is_requeued() {
            return self.lower.issue(now).map_or(Dispatch::Empty, Dispatch::Issue);
        }
        let [a, s] = self.lower.in_flight();
        if barrier.started || a + s > 0 {
            return Dispatch::Empty;
        }
        let step = barrier.plan.next(Step::PreFlush.max(barrier.step));
        let issued = match step {
            Step::Data => {
                if self.config.ordering == Ordering::DrainFua {
                    self.lower.requests_mut()[barrier.rq].flags.insert(Flags::FUA);
                }
                Some(barrier.rq)
            }
            Step::PreFlush | Step::PostFlush => self.own_flush(now),
            Step::Drain | Step::Done => None,
        };
        let Some(rq) = issued else { return Dispatch::Empty };
        self.barrier = Some(Barrier { step, started: true, ..barrier });
        self.lower.insert_head(rq);
        self.lower.issue(now).map_or(Dispatch::Empty, Dispatch::Issue)
    }

    fn barrier_step_done(&mut self, rq: RequestId, done: &mut impl FnMut(u64)) {
        let Some(barrier) = self.barrier else { return };
        let is_step = rq == barrier.rq || self.requests()[rq].queue.pool == NO_POOL;
        if !is_step {
            return self.finish(rq, done);
        }
        if rq != barrier.rq {
            self.release(rq);
        }
        let next = match barrier.step {
            Step::Drain | Step::PreFlush => barrier.plan.next(Step::Data),
            Step::Data => barrier.plan.next(Step::PostFlush),
            Step::PostFlush | Step::Done => Step::Done,
        };
        if next == Step::Done {
            self.barrier = None;
            self.finish(barrier.rq, done);
        } else {
            self.barrier = Some(Barrier { step: next, started: false, ..barrier });
        }
    }

    /// A flush command of the queue's own.
    fn own_flush(&mut self, now: u64) -> Option<RequestId> {
        self.lower.take(Request {
            op: Op::Flush,
            start_ns: now,
            queue: QueueData { pool: NO_POOL, ..Request::EMPTY.queue },
            ..Request::EMPTY
        })
    }

    fn start_sequence(&mut self, rq: RequestId, plan: Plan, now: u64) {
        let request = &mut self.lower.requests_mut()[rq];
        request.queue.sequence = plan.to_byte();
        request.flags.insert(Flags::SYNC);
        self.sequence_step(rq, plan.next(Step::PreFlush), now, &mut |_| {});
    }

    /// Start a step of a flush sequence.
    fn sequence_step(&mut self, rq: RequestId, step: Step, now: u64, done: &mut impl FnMut(u64)) {
        match step {
            Step::Drain | Step::PreFlush | Step::PostFlush => self.flushes.wait_for_flush(rq, now),
            Step::Data => {
                self.flushes.data_started();
                self.lower.insert_head(rq);
            }
            Step::Done => self.finish(rq, done),
        }
        self.kick_flush(now);
    }

    /// Start a flush command if somebody waits for one and none is under way.
    fn kick_flush(&mut self, now: u64) {
        if self.flushes.wants_flush(now)
            && let Some(rq) = self.own_flush(now)
        {
            self.flushes.started(rq);
            self.lower.insert_head(rq);
        }
    }

    fn sequence_step_done(&mut self, rq: RequestId, now: u64, done: &mut impl FnMut(u64)) {
        if self.flushes.finished(rq) {
            self.release(rq);
            while let Some(served) = self.flushes.pop_served() {
                let queue = &mut self.lower.requests_mut()[served].queue;
                let Some(plan) = Plan::from_byte(queue.sequence) else { continue };
                // Whoever still has its data ahead was waiting for the first flush.
                let step = if plan.data && plan.pre_flush { Step::Data } else { Step::Done };
                queue.sequence = Plan { pre_flush: false, ..plan }.to_byte();
                self.sequence_step(served, step, now, done);
            }
        } else {
            self.flushes.data_finished();
            let plan = Plan::from_byte(self.requests()[rq].queue.sequence);
            let step = plan.map_or(Step::Done, |plan| plan.next(Step::PostFlush));
            self.sequence_step(rq, step, now, done);
        }
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

    /// `from` now waits for I/O of `to`, or of somebody unknown: idling for `from` is in vain. A hint.
    pub fn yield_to(&mut self, from: ContextId, to: Option<ContextId>, now: u64) {
        self.lower.yield_to(from, to, now);
    }

    /// Change the elevator with requests queued and in flight; the old one is handed back. Queued requests go to the device in
    /// the old one's order.
    pub fn switch(&mut self, elevator: Box<dyn Elevator>, now: u64) -> Box<dyn Elevator> {
        self.last_merge = None;
        self.lower.switch(elevator, now)
    }
}
