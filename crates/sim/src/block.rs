//! The simulated block layer: the core's request queue above a modelled device, and the operations that wait for it.

mod waiters;

use std::collections::VecDeque;

use fairlift_core::collections::Id;
use fairlift_core::elevator::{AnyElevator, Finding};
use fairlift_core::group::limit::{Direction, Rates};
use fairlift_core::queue::{Admission, QueueConfig, RequestQueue, Submitted};
use fairlift_core::request::RequestState;
use fairlift_core::{Bio, ContextId, Dispatch, Flags, GroupId, IoPrio, Op, Request, RequestId};

use crate::anatomy::{Anatomy, Cause, Recorder, is_plugged};
use crate::device::{Command, Completion, Device};
use crate::engine::{OpId, TaskId, earlier};
use crate::group::limits::PrioClass;
use crate::group::{Cgroup, GroupTree, Meter};
use crate::kernel::controller::seat::{Entry, Seat, Seated};
use crate::kernel::controller::{Controller, Ticket};
use crate::kernel::rq_qos::{Coming, RqQos, Slot};
use crate::scheduler::host::HostSettings;
use crate::scheduler::names::Cost;
pub(crate) use waiters::Place;
use waiters::Waiters;

/// Who is told when an operation is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A task that waits for it or collects it.
    Task(TaskId),
    /// The page cache: its I/O with this number.
    Pages(u32),
}

/// A finished operation.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Which one.
    pub op: OpId,
    /// Whose.
    pub owner: Owner,
    /// When, nanoseconds.
    pub at_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    owner: Owner,
    /// Bios not done yet, plus one while the submitter still adds some.
    left: u32,
}

/// Who submits a bio, and for whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Submitter {
    pub(crate) task: TaskId,
    /// The group the bio is counted for.
    pub(crate) cgroup: Cgroup,
    /// Since when pages of that group wait to be written, if there are some.
    pub(crate) backlog_since_ns: Option<u64>,
    /// A thread of the kernel's.
    pub(crate) daemon: bool,
}

/// How a bio comes to the block layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Attempt {
    /// For the first time, or to ask the controller again.
    New,
    /// The controller let it pass.
    Passed(Passes),
    /// It waited for a request slot, from this place in line on; with tags, for one of the first so many.
    ForSlot(Passes, Place, u32),
}

/// What a bio is known by to those that may hold it up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Passes {
    /// To the controller above the queue.
    pub(crate) ticket: Option<Ticket>,
    /// To those between merging and the request slot.
    slot: Option<Slot>,
}

impl Passes {
    pub(crate) const fn of(ticket: Option<Ticket>) -> Passes {
        Passes { ticket, slot: None }
    }
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taken {
    /// It is on its way.
    Yes,
    /// Its task waits to be woken and comes again like this.
    Wait(Attempt),
    /// Its task sleeps until this time and comes again like this.
    Sleep(u64, Attempt),
}

/// What the block layer counted.
#[derive(Clone, Debug, Default)]
pub struct BlockStats {
    /// Requests completed, per op: read, write, discard, flush.
    pub requests: [u64; 4],
    /// Bios submitted. A flush is none where the device has nothing to flush and the queue is empty: it is done at once.
    pub bios: u64,
    /// Bios that joined a request.
    pub merged: u64,
    /// Those of them that write or discard.
    pub merged_writes: u64,
    /// Time from slot to completion of all requests, nanoseconds: reads, all others but flushes.
    pub ticks_ns: [u64; 2],
    /// Sectors completed: read, written.
    pub sectors: [u64; 2],
    /// Time with at least one request in the device, nanoseconds.
    pub busy_ns: u64,
    /// Integral of requests in queue and device over time, request-nanoseconds.
    pub queue_ns: u128,
    /// Of that the part in the device.
    pub device_ns: u128,
    /// Integral of tasks that wait for a request slot, task-nanoseconds.
    pub slot_wait_ns: u128,
    /// Time with at least one bio held by a limit or a controller above the queue, nanoseconds.
    pub limited_ns: u64,
    /// Time the scheduler's lock was held, nanoseconds.
    pub lock_ns: u64,
    /// Device time by context slot, nanoseconds; adds up to `busy_ns`. A busy interval is charged to the request whose
    /// completion ends it.
    pub device_time_ns: Vec<u64>,
}

/// What the block layer was asked, or asked the device, at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEvent {
    /// When, nanoseconds.
    pub at_ns: u64,
    /// What happened.
    pub kind: TraceKind,
    /// Whose it is; `None` for flushes of the queue's own.
    pub task: Option<TaskId>,
    /// What to do.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u32,
}

/// Kind of a [`TraceEvent`]; in brackets blktrace's letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceKind {
    /// A bio came in and became a request (Q and G).
    Queued,
    /// A bio came in and joined a request (Q and M).
    Merged,
    /// A bio came in, there is no request slot, and its task sleeps until there is one (Q and S). The bio comes in once more
    /// when it gets one.
    Waits,
    /// A request went to the device (D).
    Issued,
    /// A request is done (C).
    Completed,
}

/// Request queue, device and what waits for them.
pub struct BlockLayer {
    queue: RequestQueue,
    device: Box<dyn Device>,
    depth: u32,
    in_device: u32,
    /// When the queue wants to be asked again.
    timer: Option<u64>,
    /// Something happened since the queue was last asked.
    dirty: bool,
    ops: Vec<Operation>,
    free_ops: Vec<OpId>,
    done: VecDeque<Done>,
    /// Tasks waiting for a request slot.
    waiting: Waiters,
    /// Tasks waiting for room among the bios their group's limit holds, longest wait first.
    crowded: VecDeque<TaskId>,
    /// Bios that limits let in and that are not counted yet.
    entered: Vec<(Bio, Submitted)>,
    /// The controller above the queue.
    seat: Option<Seat>,
    /// Those between merging and the request slot.
    qos: Option<Box<RqQos>>,
    /// `io.prio.class` of each of the run's groups, if any has one.
    classes: Vec<PrioClass>,
    woken: VecDeque<TaskId>,
    finished: Vec<Completion>,
    stats: BlockStats,
    /// The task of each context, by slot.
    task_of: Vec<Option<TaskId>>,
    /// The queue's group of each of the run's groups; all are the root's that have none.
    groups: Vec<GroupId>,
    /// Counts by group, if the run has some.
    meter: Option<Box<Meter>>,
    /// A request that the scheduler gave beyond what the device takes: it waits for a tag. `parks`: there may be one.
    parked: Option<RequestId>,
    parks: bool,
    /// Is a request given to the device within its submission (no scheduler)?
    direct: bool,
    /// Processor time of the scheduler, and until when its lock is held.
    cost: Cost,
    locked_until_ns: u64,
    trace: Option<Vec<TraceEvent>>,
    recorder: Option<Box<Recorder>>,
    /// Since when the busy time is not charged to anybody yet.
    charged_until: u64,
    last_change: u64,
}

impl BlockLayer {
    /// `queue` above `device`.
    pub fn new(config: QueueConfig, elevator: impl Into<AnyElevator>, device: Box<dyn Device>) -> BlockLayer {
        let depth = device.limits().queue_depth;
        let contexts = config.elevator().contexts_max;
        BlockLayer {
            stats: BlockStats { device_time_ns: vec![0; contexts], ..BlockStats::default() },
            queue: RequestQueue::new(config, elevator),
            device,
            depth,
            in_device: 0,
            timer: None,
            dirty: false,
            ops: Vec::new(),
            free_ops: Vec::new(),
            done: VecDeque::new(),
            waiting: Waiters::new(config.admission),
            crowded: VecDeque::new(),
            entered: Vec::new(),
            seat: None,
            qos: None,
            classes: Vec::new(),
            woken: VecDeque::new(),
            finished: Vec::new(),
            task_of: vec![None; contexts],
            groups: vec![GroupId::ROOT],
            meter: None,
            parked: None,
            parks: false,
            direct: false,
            cost: Cost::default(),
            locked_until_ns: 0,
            trace: None,
            recorder: None,
            charged_until: 0,
            last_change: 0,
        }
    }

    /// The run has these groups: count for each, and tell the queue of them if `settings` say so.
    pub(crate) fn use_groups(&mut self, tree: &GroupTree, settings: &HostSettings) {
        if settings.groups() {
            settings.apply(self.queue.groups_mut());
            self.groups = tree.create(self.queue.groups_mut());
        }
        self.meter = Some(Box::new(Meter::new(tree.slots(), self.queue.config().requests_max())));
    }

    /// Limit the queue's groups by their `max`, all of which it knows.
    pub(crate) fn limit_groups(&mut self, tree: &GroupTree) {
        for cgroup in tree.numbers() {
            let rates = tree.limits(cgroup).max.rates();
            for (direction, rates) in Direction::ALL.into_iter().zip(rates) {
                if rates != Rates::NONE {
                    let known = self.queue.set_limit(self.group_of(cgroup), direction, rates, 0);
                    debug_assert!(known.is_ok(), "the queue knows its groups");
                }
            }
        }
    }

    /// `direct`: requests go straight to the device; `cost`: what the scheduler takes of the processor.
    pub(crate) fn set_scheduler(&mut self, direct: bool, cost: Cost) {
        (self.direct, self.cost) = (direct, cost);
        let tags = matches!(self.queue.config().admission, Admission::Tags { .. });
        self.parks = tags && !direct && !self.device.limits().budget;
    }

    /// Somebody comes to the scheduler with a bio, and takes its lock as soon as it is free: when the scheduler is done with it.
    pub(crate) fn enter_scheduler(&mut self, bio: &Bio, now: u64) -> u64 {
        if bio.op == Op::Flush {
            return now; // goes around it
        }
        let start = if self.cost.locked { now.max(self.locked_until_ns) } else { now };
        self.stats.lock_ns += if self.cost.locked { self.cost.per_bio_ns } else { 0 };
        self.locked_until_ns = start + self.cost.per_bio_ns;
        self.locked_until_ns
    }

    /// Counts by group, if the run has some.
    pub(crate) fn meter(&mut self) -> Option<&mut Meter> {
        self.meter.as_deref_mut()
    }

    /// The queue's group for the run's group.
    fn group_of(&self, cgroup: Cgroup) -> GroupId {
        self.groups.get(cgroup.index()).copied().unwrap_or(GroupId::ROOT)
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// The request queue.
    pub fn queue(&mut self) -> &mut RequestQueue {
        &mut self.queue
    }

    /// What the elevator has found out about the device by now.
    pub fn found(&self, now: u64) -> Vec<Finding> {
        let mut found = Vec::new();
        self.queue.found(now, &mut |finding| found.push(finding));
        found
    }

    /// What was counted so far.
    pub fn stats(&self) -> &BlockStats {
        &self.stats
    }

    /// Record from now on what happens.
    pub fn start_trace(&mut self) {
        self.trace = Some(Vec::new());
    }

    /// What happened since the trace was started or last taken.
    pub fn take_trace(&mut self) -> Vec<TraceEvent> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(crate) fn start_anatomy(&mut self) {
        let mut recorder = Recorder::new();
        if let Some(meter) = &mut self.meter {
            recorder.use_groups(meter.groups());
            meter.record_over_time();
        }
        self.recorder = Some(Box::new(recorder));
    }

    pub(crate) fn take_anatomy(&mut self, now: u64) -> Option<Anatomy> {
        self.recorder.take().map(|recorder| recorder.finish(now))
    }

    /// Who wants to know why things take time, if anybody.
    #[inline]
    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut()
    }

    /// How many events of the trace were not taken yet.
    pub(crate) fn traced(&self) -> usize {
        self.trace.as_ref().map_or(0, Vec::len)
    }

    fn trace_bio(&mut self, kind: TraceKind, bio: &Bio, task: TaskId, at_ns: u64) {
        let Some(trace) = &mut self.trace else { return };
        let Bio { op, flags, sector, sectors, .. } = *bio;
        trace.push(TraceEvent { at_ns, kind, task: Some(task), op, flags, sector, sectors });
    }

    fn trace_request(&mut self, kind: TraceKind, request: &Request, at_ns: u64) {
        let Some(trace) = &mut self.trace else { return };
        let Request { op, flags, sector, sectors, context, .. } = *request;
        let task = self.task_of[context.index()];
        trace.push(TraceEvent { at_ns, kind, task, op, flags, sector, sectors });
    }

    /// `from` waits for I/O of `to`.
    pub(crate) fn yield_to(&mut self, from: ContextId, to: Option<ContextId>, now: u64) {
        self.queue.yield_to(from, to, now);
        self.dirty = true;
    }

    pub(crate) fn create_context(&mut self, ioprio: IoPrio, task: TaskId, cgroup: Cgroup) -> ContextId {
        let group = self.group_of(cgroup);
        let context = self.queue.contexts_mut().create_in(group, ioprio);
        self.task_of[context.index()] = (!self.queue.contexts().is_shared(context)).then_some(task);
        context
    }

    pub(crate) fn exit_context(&mut self, context: ContextId, now: u64) {
        self.queue.context_exit(context, now);
        self.dirty = true;
    }

    // ---- operations ---------------------------------------------------------------------------------------------------

    /// Open an operation: bios are added until [`BlockLayer::close_op`].
    pub(crate) fn open_op(&mut self, owner: Owner) -> OpId {
        let operation = Operation { owner, left: 1 };
        if let Some(op) = self.free_ops.pop() {
            self.ops[op.0 as usize] = operation;
            op
        } else {
            self.ops.push(operation);
            OpId(self.ops.len() as u32 - 1)
        }
    }

    /// All its bios are submitted.
    pub(crate) fn close_op(&mut self, op: OpId, now: u64) {
        self.one_less(op, now);
    }

    fn one_less(&mut self, op: OpId, now: u64) {
        let operation = &mut self.ops[op.0 as usize];
        operation.left -= 1;
        if operation.left == 0 {
            self.done.push_back(Done { op, owner: operation.owner, at_ns: now });
            if let Some(recorder) = &mut self.recorder {
                recorder.op_done(op, None);
            }
        }
    }

    /// Its owner knows that it is done: the number may be used again.
    pub(crate) fn forget_op(&mut self, op: OpId) {
        debug_assert_eq!(self.ops[op.0 as usize].left, 0);
        self.free_ops.push(op);
    }

    /// Submit one bio of `op`.
    pub(crate) fn submit(&mut self, op: OpId, bio: Bio, by: Submitter, attempt: Attempt, now: u64) -> Taken {
        self.dirty = true;
        self.account(now);
        let (mut passes, place) = match attempt {
            Attempt::ForSlot(passes, place, limit) => (passes, Some((place, limit))),
            Attempt::Passed(passes) => (passes, None),
            Attempt::New => match self.ask_controller(op, bio, by, now) {
                Ok(ticket) => (Passes::of(ticket), None),
                Err(taken) => return taken,
            },
        };
        let again = place.is_some();
        let ticket = passes.ticket;
        let mut bio = self.addressed(bio, op, by.cgroup, ticket);
        let answer = match (self.throttle(&mut bio, &mut passes, by, now), place) {
            (Throttled::Waits, _) => return Taken::Wait(Attempt::Passed(passes)),
            (Throttled::Joined(rq), _) => Submitted::Merged(rq),
            (_, Some((_, limit))) => self.queue.resubmit_within(bio, limit, now),
            (Throttled::Passes, None) => self.queue.submit(bio, now),
            (Throttled::Woken, None) => self.queue.resubmit(bio, now),
        };
        self.tell_qos(&bio, answer, now);
        self.record_bio(answer, op, &bio, by.task, now);
        self.meter_bio(answer, by.cgroup, by.backlog_since_ns, now);
        match answer {
            Submitted::Queued(_) | Submitted::Held => {
                self.trace_bio(TraceKind::Queued, &bio, by.task, now);
                self.count_bio(op, ticket);
            }
            Submitted::Merged(_) => {
                self.trace_bio(TraceKind::Merged, &bio, by.task, now);
                self.count_bio(op, ticket);
                self.count_merge(&bio);
            }
            Submitted::Full => {
                // Who lost a race keeps its place; who may not take a tag that is free lets others try.
                let place = place.map(|(place, _)| place).filter(|_| !self.queue.has_free_tag());
                let place = self.waiting.add(by.task, self.queue.group_of(&bio), bio.is_sync(), place);
                if !again {
                    self.trace_bio(TraceKind::Waits, &bio, by.task, now);
                }
                return Taken::Wait(Attempt::ForSlot(passes, place, self.queue.refused_limit()));
            }
            Submitted::NoRoom => {
                self.crowded.push_back(by.task);
                return Taken::Wait(Attempt::Passed(passes));
            }
            // A barrier that the device cannot order fails with EOPNOTSUPP in 2.6 and the file system goes on without.
            Submitted::Done | Submitted::Refused(_) => self.give_up(op, passes, now),
        }
        // Two requests may have become one, which frees a slot.
        self.wake_waiters();
        if self.direct || bio.flags.contains(Flags::UNPLUG) {
            // The driver is called within the submission: what comes next finds nothing to merge with.
            self.pump(now);
        }
        Taken::Yes
    }

    /// The bio as the queue gets it.
    fn addressed(&self, bio: Bio, op: OpId, cgroup: Cgroup, ticket: Option<Ticket>) -> Bio {
        // Whom a controller's thread submits for the queue may not be told.
        let group = match (&self.seat, ticket) {
            (Some(seat), Some(ticket)) if seat.was_held(ticket) && !seat.bios_keep_group() => GroupId::ROOT,
            _ => self.group_of(cgroup),
        };
        let cookie = match ticket {
            Some(ticket) => TICKET | u64::from(ticket),
            None => cookie(op, cgroup),
        };
        let policy = self.classes.get(cgroup.index()).copied().unwrap_or_default();
        let ioprio = match policy {
            PrioClass::NoChange => bio.ioprio,
            policy => {
                let contexts = self.queue.contexts();
                Some(policy.apply(bio.ioprio.unwrap_or(contexts[contexts.known(bio.context)].ioprio)))
            }
        };
        Bio { cookie, group: Some(group), ioprio, ..bio }
    }

    /// A bio is on its way; one that a controller held was counted when it was held.
    fn count_bio(&mut self, op: OpId, ticket: Option<Ticket>) {
        if !self.was_held(ticket) {
            self.ops[op.0 as usize].left += 1;
            self.stats.bios += 1;
        }
    }

    fn count_merge(&mut self, bio: &Bio) {
        self.stats.merged += 1;
        self.stats.merged_writes += u64::from(bio.op != Op::Read);
    }

    /// A bio goes nowhere.
    fn give_up(&mut self, op: OpId, passes: Passes, now: u64) {
        let ticket = passes.ticket;
        let was_counted = self.was_held(ticket);
        if let (Some(qos), Some(slot)) = (&mut self.qos, passes.slot) {
            qos.end(slot, now);
            qos.take_woken(&mut self.woken);
        }
        if let (Some(seat), Some(ticket)) = (&mut self.seat, ticket) {
            seat.completed(ticket, now);
        }
        if was_counted {
            self.one_less(op, now);
        }
    }

    // ---- the controller above the queue -----------------------------------------------------------------------------------

    /// Put a controller above the queue.
    pub(crate) fn set_controller(&mut self, controller: Box<dyn Controller>) {
        self.seat = Some(Seat::new(controller));
    }

    /// What its thread is called.
    pub(crate) fn controller_thread(&self) -> Option<&'static str> {
        self.seat.as_ref().map(Seat::thread_name)
    }

    pub(crate) fn set_controller_thread(&mut self, task: TaskId) {
        if let Some(seat) = &mut self.seat {
            seat.set_thread(task);
        }
    }

    /// The ticket of a bio that passes; `Err`: it does not.
    fn ask_controller(
        &mut self,
        op: OpId,
        bio: Bio,
        by: Submitter,
        now: u64,
    ) -> Result<Option<Ticket>, Taken> {
        let Some(seat) = &mut self.seat else { return Ok(None) };
        if bio.op == Op::Flush {
            return Ok(None); // carries nothing
        }
        let seated = seat.ask(op, bio, by, now);
        seat.wake(now, &mut self.woken);
        match seated {
            Seated::Pass(ticket) => Ok(Some(ticket)),
            Seated::Sleep(at, ticket) => Err(Taken::Sleep(at, Attempt::Passed(Passes::of(Some(ticket))))),
            Seated::Blocked => Err(Taken::Wait(Attempt::New)),
            Seated::Held => {
                self.ops[op.0 as usize].left += 1;
                self.stats.bios += 1;
                Err(Taken::Yes)
            }
        }
    }

    fn was_held(&self, ticket: Option<Ticket>) -> bool {
        match (&self.seat, ticket) {
            (Some(seat), Some(ticket)) => seat.was_held(ticket),
            _ => false,
        }
    }

    /// What the controller's thread submits now.
    pub(crate) fn conduct(&mut self, now: u64) -> Vec<Ticket> {
        let Some(seat) = &mut self.seat else { return Vec::new() };
        let tickets = seat.conduct(now);
        seat.wake(now, &mut self.woken);
        tickets
    }

    /// A held bio as the controller's thread, whose io context is `context`, submits it.
    pub(crate) fn held_bio(&self, ticket: Ticket, context: ContextId) -> Option<Entry> {
        let mut entry = self.seat.as_ref()?.entry(ticket)?;
        entry.bio.context = context;
        Some(entry)
    }

    // ---- controllers between merging and the request slot -----------------------------------------------------------------

    /// Put them there.
    pub(crate) fn set_qos(&mut self, qos: RqQos) {
        self.qos = Some(Box::new(qos));
    }

    /// The groups have an `io.prio.class`.
    pub(crate) fn set_classes(&mut self, classes: Vec<PrioClass>) {
        self.classes = classes;
    }

    /// A task that dirties pages is made to pause.
    pub(crate) fn dirtier_pauses(&mut self, now: u64) {
        if let Some(qos) = &mut self.qos {
            qos.dirtier_pauses(now);
        }
    }

    /// What they make of a bio. One that they follow is from now on called by what they know it by.
    fn throttle(&mut self, bio: &mut Bio, passes: &mut Passes, by: Submitter, now: u64) -> Throttled {
        let Some(qos) = &mut self.qos else { return Throttled::Passes };
        let comes_again = passes.slot.is_some();
        if !comes_again && !qos.follows(bio.op, bio.flags) {
            return Throttled::Passes;
        }
        let Bio { op, flags, sector, sectors, .. } = *bio;
        let (task, group, daemon) = (by.task, by.cgroup.index(), by.daemon);
        let coming = Coming { task, group, op, flags, sector, sectors, daemon };
        let slot = passes.slot.unwrap_or_else(|| qos.come(coming, bio.cookie, now));
        passes.slot = Some(slot);
        bio.cookie = QOS | u64::from(slot);
        if !comes_again && let Some(rq) = self.queue.join_queued(*bio, now) {
            qos.joined(slot, rq, now);
            return Throttled::Joined(rq);
        }
        let passed = qos.pass(slot, now);
        qos.take_woken(&mut self.woken);
        if !passed {
            self.queue.flush_plug(bio.context, now);
            return Throttled::Waits;
        }
        let merging_is_over = comes_again && !self.queue.limiter().is_used();
        if merging_is_over { Throttled::Woken } else { Throttled::Passes }
    }

    /// What became of a bio.
    fn tell_qos(&mut self, bio: &Bio, answer: Submitted, now: u64) {
        let Some(qos) = &mut self.qos else { return };
        if let Submitted::Queued(_) | Submitted::Full = answer {
            qos.saw(bio.op, now);
        }
        if let (Some(slot), Submitted::Queued(rq)) = (slot_of(bio.cookie), answer) {
            qos.became(slot, rq);
        }
    }

    /// How long a task has to pause for what its group owes, nanoseconds.
    pub(crate) fn take_pause(&mut self, task: TaskId) -> u64 {
        self.qos.as_mut().map_or(0, |qos| qos.take_pause(task))
    }

    /// What the block layer itself calls a bio.
    fn own_cookie(&self, cookie: u64) -> u64 {
        match (&self.qos, slot_of(cookie)) {
            (Some(qos), Some(slot)) => qos.cookie(slot),
            _ => cookie,
        }
    }

    /// Tasks go on that waited for them.
    fn wake_throttled(&mut self) {
        if let Some(qos) = &mut self.qos {
            qos.take_woken(&mut self.woken);
        }
    }

    // ---- accounts ---------------------------------------------------------------------------------------------------------

    fn meter_bio(&mut self, answer: Submitted, group: Cgroup, backlog_since_ns: Option<u64>, now: u64) {
        let Some(meter) = &mut self.meter else { return };
        let own = match answer {
            Submitted::Queued(rq) => Some(rq),
            Submitted::Merged(_) => None,
            // What is held comes when it is let in.
            _ => return,
        };
        meter.came(group, own, backlog_since_ns, now);
    }

    fn record_bio(&mut self, answer: Submitted, op: OpId, bio: &Bio, task: TaskId, now: u64) {
        let Some(recorder) = &mut self.recorder else { return };
        let requests = self.queue.requests();
        match answer {
            Submitted::Queued(rq) => recorder.queued(rq, op, task, is_plugged(&requests[rq], bio), now),
            Submitted::Merged(rq) => recorder.merged(rq, op, task),
            Submitted::Full | Submitted::NoRoom => recorder.full(task, now),
            // Its request begins when it is let in.
            Submitted::Held => {}
            Submitted::Done | Submitted::Refused(_) => {}
        }
        recorder.look_at_plugs(requests, now);
    }

    /// Tasks that wait for a request slot, and what a controller holds; requests and held bios that are not done; and
    /// operations that nobody collected: all zero once everything has ended.
    pub fn unfinished(&self) -> [usize; 3] {
        let waiting = self.waiting.len() + self.crowded.len();
        let above = self.seat.as_ref().map_or(0, Seat::unfinished)
            + self.qos.as_ref().map_or(0, |qos| qos.unfinished());
        let pending = self.queue.pending() + self.queue.held();
        [waiting + above, pending, self.ops.len() - self.free_ops.len()]
    }

    /// Does `task` still wait for a request slot?
    pub(crate) fn is_waiting(&self, task: TaskId) -> bool {
        self.waiting.contains(task)
            || self.crowded.contains(&task)
            || self.seat.as_ref().is_some_and(|seat| seat.is_waiting(task))
            || self.qos.as_ref().is_some_and(|qos| qos.is_asleep(task))
    }

    /// The caller is about to wait for I/O.
    pub(crate) fn unplug(&mut self) {
        self.queue.unplug();
        self.dirty = true;
    }

    pub(crate) fn open_plug(&mut self, context: ContextId) {
        self.queue.open_plug(context);
    }

    pub(crate) fn close_plug(&mut self, context: ContextId, now: u64) {
        self.queue.close_plug(context, now);
        if let Some(recorder) = &mut self.recorder {
            recorder.look_at_plugs(self.queue.requests(), now);
        }
        self.wake_waiters();
        self.dirty = true;
    }

    // ---- the device -----------------------------------------------------------------------------------------------------

    /// Offer the device what the queue has.
    pub(crate) fn pump(&mut self, now: u64) {
        if !self.dirty {
            return;
        }
        self.dirty = false;
        self.timer = None;
        let mut idle = false;
        let until = self.let_in(now);
        if self.in_device < self.depth
            && let Some(first) = self.parked.take()
        {
            self.issue(first, now);
        }
        if self.in_device >= self.depth {
            self.timer = until;
        }
        while self.has_room() {
            let entered = &mut self.entered;
            let answer = self.queue.dispatch_with(now, |bio, answer| entered.push((*bio, answer)));
            self.book_entered(now);
            match answer {
                Dispatch::Issue(rq) if self.in_device < self.depth => self.issue(rq, now),
                Dispatch::Issue(rq) => self.parked = Some(rq),
                Dispatch::Idle { until } => {
                    self.timer = Some(until.max(now + 1));
                    idle = true;
                    break;
                }
                Dispatch::Busy | Dispatch::Empty => break,
            }
        }
        if self.recorder.is_some() {
            self.record_state(idle, now);
        }
    }

    /// May the scheduler give another request? blk-mq takes the driver's tag after that, and keeps a request that finds none
    /// (Linux 6.12 `block/blk-mq-sched.c`, `__blk_mq_do_dispatch_sched`).
    fn has_room(&self) -> bool {
        self.in_device < self.depth || (self.parks && self.parked.is_none())
    }

    /// What queue and device are doing now; `idle`: the queue wants to be asked later.
    fn record_state(&mut self, idle: bool, now: u64) {
        let plugged = idle && self.queue.is_plugged(now);
        let idled_for = if idle && !plugged { self.queue.idling_for() } else { None };
        let held = self.in_device == 0 && self.queue.pending() > 0;
        let waiting = match (plugged, idled_for) {
            (true, _) => Some(Cause::Plugged),
            (_, Some(context)) => Some(Cause::Idling(self.task_of[context.index()])),
            _ => held.then_some(Cause::Held),
        };
        let Some(recorder) = &mut self.recorder else { return };
        let queue = &self.queue;
        let oldest = || queue.requests().iter().map(|(_, r)| r.start_ns).min().unwrap_or(u64::MAX);
        recorder.queue_state(self.in_device > 0, waiting, now, oldest);
    }

    fn issue(&mut self, rq: RequestId, now: u64) {
        let request = self.queue.requests()[rq];
        self.trace_request(TraceKind::Issued, &request, now);
        if let Some(recorder) = &mut self.recorder {
            recorder.issued(rq, &request, self.task_of[request.context.index()], now);
        }
        debug_assert_eq!(request.state, RequestState::Issued);
        let command = Command {
            tag: rq.index() as u32,
            op: request.op,
            sector: request.sector,
            sectors: request.sectors,
            fua: request.flags.contains(fairlift_core::Flags::FUA),
        };
        self.account(now);
        if self.in_device == 0 {
            self.charged_until = now;
        }
        self.in_device += 1;
        if let Some(qos) = &mut self.qos {
            qos.issued(rq, &request, now);
        }
        self.device.submit(command, now);
    }

    pub(crate) fn next_event(&self) -> Option<u64> {
        let controller = self.seat.as_ref().and_then(Seat::next_event);
        let qos = self.qos.as_ref().and_then(|qos| qos.next_event());
        earlier(earlier(self.device.next_event(), self.timer), earlier(controller, qos))
    }

    /// Let the device work up to `now` and take what it finished.
    pub(crate) fn advance(&mut self, now: u64) {
        let mut finished = std::mem::take(&mut self.finished);
        self.device.advance(now, &mut finished);
        for completion in finished.drain(..) {
            self.complete(completion);
        }
        self.finished = finished;
        if self.timer.is_some_and(|at| at <= now) {
            self.dirty = true;
        }
        if let Some(seat) = &mut self.seat {
            seat.wake(now, &mut self.woken);
        }
        if let Some(qos) = &mut self.qos {
            qos.advance(now);
            self.wake_throttled();
        }
    }

    fn complete(&mut self, completion: Completion) {
        let (rq, now) = (RequestId::from_index(completion.tag as usize), completion.at_ns);
        self.account(now);
        self.in_device -= 1;
        self.dirty = true;
        let request = self.queue.requests()[rq];
        self.trace_request(TraceKind::Completed, &request, now);
        if let Some(recorder) = &mut self.recorder {
            let group = self.meter.as_ref().map_or(Cgroup::ROOT, |meter| meter.group_of(rq, &request));
            let task = self.task_of[request.context.index()];
            recorder.completed(rq, &request, task, group, (completion.began_ns, now));
        }
        let busy = now - self.charged_until.min(now);
        self.charged_until = now;
        self.stats.busy_ns += busy;
        self.stats.device_time_ns[request.context.index()] += busy;
        if let Some(meter) = &mut self.meter {
            meter.completed(rq, &request, busy, now);
        }
        self.stats.requests[op_index(request.op)] += 1;
        if request.op != Op::Flush {
            self.stats.sectors[usize::from(request.is_write())] += u64::from(request.sectors);
            self.stats.ticks_ns[usize::from(request.op != Op::Read)] += now - request.start_ns.min(now);
        }
        let mut queue_done = std::mem::take(&mut self.done);
        let (ops, recorder, meter) = (&mut self.ops, &mut self.recorder, &mut self.meter);
        let (seat, qos) = (&mut self.seat, &mut self.qos);
        if let Some(qos) = qos {
            qos.completed(rq, &request, now);
        }
        self.queue.complete(rq, now, |cookie| {
            let cookie = match (qos.as_mut(), slot_of(cookie)) {
                (Some(qos), Some(slot)) => qos.end(slot, now),
                _ => cookie,
            };
            let (op, cgroup) = match (seat.as_mut(), ticket_of(cookie)) {
                (Some(seat), Some(ticket)) => seat.completed(ticket, now),
                _ => from_cookie(cookie),
            };
            if let Some(meter) = meter {
                meter.went(cgroup, now);
            }
            let operation = &mut ops[op.0 as usize];
            operation.left -= 1;
            if operation.left == 0 {
                queue_done.push_back(Done { op, owner: operation.owner, at_ns: now });
                if let Some(recorder) = recorder {
                    recorder.op_done(op, Some((rq, request.op)));
                }
            }
        });
        self.done = queue_done;
        self.let_in(now); // before those who are woken for the slot
        self.wake_waiters();
        self.wake_throttled();
    }

    /// Let those in whom the limits of the queue's groups allow; when to do it again.
    fn let_in(&mut self, now: u64) -> Option<u64> {
        let entered = &mut self.entered;
        let until = self.queue.let_in(now, |bio, answer| entered.push((*bio, answer)));
        self.book_entered(now);
        until
    }

    /// Count the bios that were let in.
    fn book_entered(&mut self, now: u64) {
        if !self.entered.is_empty() {
            self.book_each(now);
        }
        if self.queue.take_room() {
            self.woken.extend(self.crowded.drain(..));
        }
    }

    #[cold]
    fn book_each(&mut self, now: u64) {
        let mut entered = std::mem::take(&mut self.entered);
        for (bio, answer) in entered.drain(..) {
            self.tell_qos(&bio, answer, now);
            let cookie = self.own_cookie(bio.cookie);
            let (op, cgroup) = match (&self.seat, ticket_of(cookie)) {
                (Some(seat), Some(ticket)) => seat.whose(ticket),
                _ => from_cookie(cookie),
            };
            self.meter_bio(answer, cgroup, None, now);
            if matches!(answer, Submitted::Merged(_)) {
                self.count_merge(&bio);
            }
            if let (Some(recorder), Some(task)) = (&mut self.recorder, self.task_of[bio.context.index()]) {
                match answer {
                    Submitted::Queued(rq) => recorder.queued(rq, op, task, false, now),
                    Submitted::Merged(rq) => recorder.merged(rq, op, task),
                    _ => {}
                }
            }
        }
        self.entered = entered;
    }

    /// Let those try again who wait for the slots freed since the last call.
    fn wake_waiters(&mut self) {
        if self.waiting.has_tags() && !self.queue.parts_slots() {
            // A tag suits either class: both are told of each.
            let [freed, _] = self.queue.take_wakeups();
            let depth = self.queue.tags_min();
            return self.waiting.tags_freed(freed, depth, &mut self.woken);
        }
        while let Some((group, sync)) = self.queue.next_wakeup() {
            self.woken.extend(self.waiting.take(group, sync));
        }
    }

    /// Is `task` among those just woken for a tag? It tries in its turn, even if I/O of its own is done at the same moment.
    pub(crate) fn keeps_turn(&self, task: TaskId) -> bool {
        self.waiting.has_tags() && self.woken.contains(&task)
    }

    fn account(&mut self, now: u64) {
        let passed = now - self.last_change.min(now);
        if passed == 0 {
            return;
        }
        self.stats.queue_ns += self.queue.pending() as u128 * u128::from(passed);
        self.stats.device_ns += u128::from(self.in_device) * u128::from(passed);
        self.stats.slot_wait_ns += self.waiting.len() as u128 * u128::from(passed);
        if self.queue.held() > 0 || self.seat.as_ref().is_some_and(Seat::holds_any) {
            self.stats.limited_ns += passed;
        }
        self.last_change = now;
    }

    pub(crate) fn pop_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }

    pub(crate) fn pop_woken(&mut self) -> Option<TaskId> {
        self.woken.pop_front()
    }
}

/// A bio's cookie: its operation, and the group it is counted for.
const fn cookie(op: OpId, cgroup: Cgroup) -> u64 {
    op.0 as u64 | (cgroup.0 as u64) << 32
}

const fn from_cookie(cookie: u64) -> (OpId, Cgroup) {
    (OpId(cookie as u32), Cgroup((cookie >> 32) as u16))
}

/// In a cookie: it is a controller's ticket.
const TICKET: u64 = 1 << 63;

fn ticket_of(cookie: u64) -> Option<Ticket> {
    (cookie & TICKET != 0).then_some(cookie as Ticket)
}

/// In a cookie: it is what the controllers between merging and the request slot know a bio by.
const QOS: u64 = 1 << 62;

fn slot_of(cookie: u64) -> Option<Slot> {
    (cookie & (TICKET | QOS) == QOS).then_some(cookie as Slot)
}

/// What those controllers make of a bio.
enum Throttled {
    /// It goes on.
    Passes,
    /// It goes on after it waited: merging is over for it.
    Woken,
    /// It joined a request and asks nobody.
    Joined(RequestId),
    /// Its task sleeps.
    Waits,
}

const fn op_index(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
        Op::Flush => 3,
    }
}

impl std::fmt::Debug for BlockLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockLayer")
            .field("queue", &self.queue)
            .field("in_device", &self.in_device)
            .field("timer", &self.timer)
            .finish_non_exhaustive()
    }
}
