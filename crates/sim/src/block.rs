//! The simulated block layer: the core's request queue above a modelled device, and the operations that wait for it.

mod above;
mod cookie;
mod dispatch;
mod operations;
mod stats;
mod submit;
mod throttle;
mod trace;
mod volume;
mod waiters;
mod write_lines;

use std::collections::VecDeque;

use fairlift_core::collections::Id;
use fairlift_core::elevator::{AnyElevator, Finding};
use fairlift_core::group::limit::{Direction, Rates};
use fairlift_core::queue::{Admission, QueueConfig, RequestQueue, Submitted};
use fairlift_core::{Bio, ContextId, GroupId, IoPrio, Op, RequestId};

use crate::anatomy::Recorder;
use crate::device::{Completion, Device};
use crate::engine::{OpId, TaskId};
use crate::group::limits::PrioClass;
use crate::group::{Cgroup, GroupResult, GroupTree, Meter};
use crate::kernel::PAGE_SECTORS;
use crate::kernel::controller::seat::Seat;
use crate::kernel::rq_qos::RqQos;
use crate::scheduler::host::HostSettings;
use crate::scheduler::names::Cost;
use operations::Operation;
pub use operations::{Done, Owner};
pub use stats::BlockStats;
pub(crate) use submit::{Attempt, Passes, Submitter, Taken};
use trace::Told;
pub use trace::{Decision, TraceEvent, TraceKind};
use volume::Disks;
pub(crate) use volume::OnDisk;
pub use volume::Volume;
pub(crate) use waiters::Place;
use waiters::Waiters;
use write_lines::WriteLines;

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
    /// Threads that wait for their group's part of the tags, if the scheduler gives each one.
    write_lines: Option<Box<WriteLines>>,
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
    /// What the last decisions were, if they are written down.
    told: Option<Told>,
    recorder: Option<Box<Recorder>>,
    /// The disks of a volume; this layer's own queue and device then stand idle.
    disks: Option<Box<Disks>>,
    /// Since when the busy time is not charged to any group yet.
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
            write_lines: None,
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
            told: None,
            recorder: None,
            disks: None,
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
        self.disks_mut().iter_mut().for_each(|layer| layer.use_groups(tree, settings));
    }

    /// Why the groups got their turns, and what became of their latency goals, on all disks together.
    pub(crate) fn add_goals(&self, tree: &GroupTree, results: &mut [GroupResult]) {
        for disk in self.disks() {
            disk.add_goals(tree, results);
        }
        if !tree.iter().any(|spec| spec.reserve > 0 || spec.latency.0 > 0) {
            return;
        }
        for (cgroup, group) in tree.numbers().zip(&self.groups) {
            let stats = self.queue.groups()[*group].stats();
            let turns = results[cgroup.index()].turns.get_or_insert_default();
            turns.iter_mut().zip(stats.turns).for_each(|(sum, more)| *sum += more);
            let Some(spec) = tree.spec(cgroup).filter(|spec| spec.latency.0 > 0) else { continue };
            let counted = stats.goal;
            let goal = results[cgroup.index()].goal.get_or_insert_default();
            goal.goal_ns = spec.latency.0;
            goal.met += counted.met;
            goal.missed_above_due += counted.missed_above_due;
            goal.missed_within_due += counted.missed_within_due;
        }
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
        self.disks_mut().iter_mut().for_each(|layer| layer.limit_groups(tree));
    }

    /// `direct`: requests go straight to the device; `cost`: what the scheduler takes of the processor.
    pub(crate) fn set_scheduler(&mut self, direct: bool, cost: Cost) {
        (self.direct, self.cost) = (direct, cost);
        let tags = matches!(self.queue.config().admission, Admission::Tags { .. });
        self.parks = tags && !direct && !self.device.limits().budget;
        self.disks_mut().iter_mut().for_each(|layer| layer.set_scheduler(direct, cost));
    }

    /// The scheduler is the module's: async requests get a part of the tags, of which each group that writes back has its part.
    pub(crate) fn use_module(&mut self) {
        if let Admission::Tags { nr_requests } = self.queue.config().admission {
            self.queue.set_async_tags(write_lines::async_tags(nr_requests));
            if self.groups.len() > 1 {
                let requests = self.queue.config().requests_max();
                self.write_lines =
                    Some(Box::new(WriteLines::new(self.queue.groups(), requests, nr_requests)));
            }
        }
        self.disks_mut().iter_mut().for_each(BlockLayer::use_module);
    }

    /// A task comes to the scheduler with a bio, and takes its lock as soon as it is free: when the scheduler is done with it.
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

    /// What the groups got so far does not count.
    pub(crate) fn restart_meters(&mut self, now: u64) {
        if let Some(meter) = &mut self.meter {
            meter.restart(now);
        }
        self.disks_mut().iter_mut().for_each(|layer| layer.restart_meters(now));
    }

    /// The queue's group for the run's group.
    fn group_of(&self, cgroup: Cgroup) -> GroupId {
        self.groups.get(cgroup.index()).copied().unwrap_or(GroupId::ROOT)
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// The largest bio that fits into a request, sectors.
    pub(crate) fn bio_sectors_max(&self) -> u64 {
        let limits = &self.queue.config().limits;
        u64::from(limits.max_sectors).min(u64::from(limits.max_segments) * PAGE_SECTORS)
    }

    /// How much of `bio` the scheduler wants as one bio at `now`, sectors: whole pages that fit into a request.
    pub(crate) fn part_sectors_max(&mut self, bio: &Bio, now: u64) -> u64 {
        let most = self.bio_sectors_max();
        let queue = match &mut self.disks {
            Some(disks) => disks.queue_at(bio.sector),
            None => &mut self.queue,
        };
        let wanted = u64::from(queue.bio_sectors_max(bio, now)) / PAGE_SECTORS * PAGE_SECTORS;
        wanted.clamp(PAGE_SECTORS.min(most), most)
    }

    /// The request queue.
    pub fn queue(&mut self) -> &mut RequestQueue {
        &mut self.queue
    }

    /// What the elevator has found out about the device by now.
    pub fn found(&self, now: u64) -> Vec<Finding> {
        if let [first, ..] = self.disks() {
            return first.found(now);
        }
        let mut found = Vec::new();
        self.queue.found(now, &mut |finding| found.push(finding));
        found
    }

    /// What was counted so far.
    pub fn stats(&self) -> &BlockStats {
        &self.stats
    }

    /// `from` waits for I/O of `to`.
    pub(crate) fn yield_to(&mut self, from: ContextId, to: Option<ContextId>, now: u64) {
        self.queue.yield_to(from, to, now);
        self.disks_mut().iter_mut().for_each(|layer| layer.yield_to(from, to, now));
        self.dirty = true;
    }

    pub(crate) fn create_context(&mut self, ioprio: IoPrio, task: TaskId, cgroup: Cgroup) -> ContextId {
        let group = self.group_of(cgroup);
        let context = self.queue.contexts_mut().create_in(group, ioprio);
        self.task_of[context.index()] = (!self.queue.contexts().is_shared(context)).then_some(task);
        self.create_context_below(context, ioprio, task, cgroup);
        context
    }

    pub(crate) fn exit_context(&mut self, context: ContextId, now: u64) {
        self.queue.context_exit(context, now);
        self.disks_mut().iter_mut().for_each(|layer| layer.exit_context(context, now));
        self.dirty = true;
    }

    /// Tasks that wait for a request slot, and what a controller holds; requests and held bios that are not done; and
    /// operations that no task collected: all zero once everything has ended.
    pub fn unfinished(&self) -> [usize; 3] {
        let lines = self.write_lines.as_ref().map_or(0, |lines| lines.len());
        let waiting = self.waiting.len() + self.crowded.len() + lines;
        let above = self.seat.as_ref().map_or(0, Seat::unfinished)
            + self.qos.as_ref().map_or(0, |qos| qos.unfinished());
        let pending = self.queue.pending() + self.queue.held();
        let own = [waiting + above, pending, self.ops.len() - self.free_ops.len()];
        let add = |sum: [usize; 3], more: [usize; 3]| std::array::from_fn(|at| sum[at] + more[at]);
        self.disks().iter().map(BlockLayer::unfinished).fold(own, add)
    }

    /// Does `task` still wait for a request slot?
    pub(crate) fn is_waiting(&self, task: TaskId) -> bool {
        self.waiting.contains(task)
            || self.crowded.contains(&task)
            || self.write_lines.as_ref().is_some_and(|lines| lines.contains(task))
            || self.seat.as_ref().is_some_and(|seat| seat.is_waiting(task))
            || self.qos.as_ref().is_some_and(|qos| qos.is_asleep(task))
            || self.disks().iter().any(|layer| layer.is_waiting(task))
    }

    /// The caller is about to wait for I/O.
    pub(crate) fn unplug(&mut self) {
        self.queue.unplug();
        self.disks_mut().iter_mut().for_each(BlockLayer::unplug);
        self.dirty = true;
    }

    pub(crate) fn open_plug(&mut self, context: ContextId) {
        self.queue.open_plug(context);
        self.disks_mut().iter_mut().for_each(|layer| layer.open_plug(context));
    }

    pub(crate) fn close_plug(&mut self, context: ContextId, now: u64) {
        self.queue.close_plug(context, now);
        self.disks_mut().iter_mut().for_each(|layer| layer.close_plug(context, now));
        if let Some(recorder) = &mut self.recorder {
            recorder.look_at_plugs(self.queue.requests(), now);
        }
        self.wake_waiters();
        self.dirty = true;
    }

    /// A task goes to sleep, for whatever reason: what it has gathered does not wait with it.
    #[inline]
    pub(crate) fn task_sleeps(&mut self, context: ContextId, now: u64) {
        if self.disks.is_some() {
            self.disks_mut().iter_mut().for_each(|layer| layer.task_sleeps(context, now));
        }
        if self.queue.gathers(context) {
            self.queue.flush_plug(context, now);
            self.wake_waiters();
            self.dirty = true;
        }
    }

    /// Let those try again who wait for the slots freed since the last call.
    #[inline]
    fn wake_waiters(&mut self) {
        if !self.waiting.has_tags() || self.queue.parts_slots() {
            return self.wake_by_class();
        }
        // A tag suits either class: both are told of each.
        let [freed, _] = self.queue.take_wakeups();
        if freed > 0 && self.waiting.len() > 0 {
            let depth = self.queue.tags_min();
            self.waiting.tags_freed(freed, depth, &mut self.woken);
        }
    }

    fn wake_by_class(&mut self) {
        while let Some((group, sync)) = self.queue.next_wakeup() {
            self.woken.extend(self.waiting.take(group, sync));
        }
    }

    /// Is `task` among those just woken for a tag? It tries in its turn, even if I/O of its own is done at the same moment.
    pub(crate) fn keeps_turn(&self, task: TaskId) -> bool {
        self.waiting.has_tags() && self.woken.contains(&task)
    }

    /// Is there an operation that is done, or a task to be woken?
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        !self.done.is_empty() || !self.woken.is_empty()
    }

    pub(crate) fn pop_woken(&mut self) -> Option<TaskId> {
        self.woken.pop_front()
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
