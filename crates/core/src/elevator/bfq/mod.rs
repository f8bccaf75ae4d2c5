//! bfq: budget fair queueing. Every process and group gets its share of what the device transfers, in turns of so many sectors.
//!
//! Each io context has a queue for its sync requests; async ones share queues by priority. One queue is *in service*: it sends
//! requests until its *budget* (sectors) or its time is used up, or it has nothing more to send. Which queue is next, B-WF2Q+
//! says, by weight, on the tree of groups. A queue that runs dry in its turn may be waited for (*idling*), while requests of
//! others that do it no harm are sent (*injection*).
//!
//! ```text
//!  insert ─> queue of (context, sync) ─┐           select: the queue in service, while budget and time last
//!            sorted by sector, and FIFO├─> B-WF2Q+   │       and it has, or will soon have, requests;
//!            learn think time, seeks   │   on groups │       while it is waited for: an injected one;
//!            merge, split, raise,      │            ─┤       else whose turn it is
//!            preempt who is in service ┘             └─> dispatch: the overdue request once a turn, else by sector
//! ```
//!
//! Where to find what: the decision and what a turn's end changes ([`select`]), B-WF2Q+ ([`entity`], [`timeline`]), budgets and charging by
//! time ([`budget`]), the device's peak rate ([`rate`]), raising of weights ([`raise`]), idling ([`idle`]), injection ([`inject`])
//! and wakers ([`waker`]), merging of queues ([`coop`]), arrivals and preemption ([`arrive`]), groups ([`groups`]).
//!
//! Source: the algorithm of Linux 6.12 as described in `docs/bfq.md`, which also says what is different here and why.

mod arrive;
mod budget;
mod coop;
mod entity;
mod groups;
mod habits;
mod idle;
mod inject;
mod queue;
mod raise;
mod rate;
mod select;
mod settings;
#[cfg(test)]
mod tests;
mod timeline;
mod waker;

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{AnyElevator, Config, Descriptor, Dispatch, Elevator, Env, Grouping, Growth, Placement};
use crate::collections::{Id, List, ListLinks, SortedFifoLinks, TreeLinks};
use crate::context::{ContextId, IoClass};
use crate::group::GroupId;
use crate::request::{Bio, RequestId, Status};
use crate::tunable::Tunable;
use coop::Created;
use entity::Hierarchy;
use groups::GroupState;
use idle::DepthProbe;
use inject::Probe;
use queue::{ContextState, Queue, QueueId, Seen};
use raise::Raise;
use rate::PeakRate;
use settings::Settings;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "bfq",
    about: "a share of the device by weight for every process and group, and quick answers for interactive ones",
    profiles: &[],
    tunables: |_| settings::TUNABLES,
    build: |config, _| AnyElevator::Bfq(Box::new(Bfq::new(config))),
};

/// Why a turn ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expiry {
    /// It was waited for in vain.
    TooIdle,
    /// Its time is used up.
    Timeout,
    /// Its budget is.
    Exhausted,
    /// It has nothing to send, and is not waited for.
    NoMoreRequests,
    /// Another queue goes before it.
    Preempted,
}

/// What is kept about a request.
#[derive(Clone, Copy)]
struct Held {
    /// The queue it was inserted into.
    owner: QueueId,
    /// Still in it (not dispatched yet)?
    queued: bool,
}

/// Queues created together.
struct Burst {
    last_ns: u64,
    group: GroupId,
    size: usize,
    large: bool,
    members: [Option<Seen>; raise::BURST],
}

/// bfq.
pub struct Bfq {
    // Settings.
    settings: Settings,
    /// Most sectors a turn.
    max_budget: u64,

    // The queue in service.
    in_service: Option<QueueId>,
    /// When waiting for its next request ends, and since when it is waited for.
    timer_ns: Option<u64>,
    wait_since_ns: u64,
    /// Where its last request ended, sector.
    position_in_service: u64,
    probe: Probe,
    /// The request that is measured.
    probed: Option<RequestId>,

    // What is queued and in the device.
    queued: u32,
    in_driver: u32,
    /// Where the last request ended, sector.
    position: u64,
    /// Busy queues by class; those of them that are raised; those that are not, by level.
    busy: [u32; 3],
    raised: u32,
    levels: [u32; 8],
    /// Groups with something queued or in the device.
    pending_groups: u32,

    // What was learnt.
    rate: PeakRate,
    /// Was the device seen, so that `rate` starts from the right figure?
    started: bool,
    depth: DepthProbe,
    /// Budgets given lately: an average that tends to 256.
    assigned: u32,
    last_completed: Option<QueueId>,
    last_created: Option<Created>,
    burst: Burst,

    // Everything of one kind in one array, and the links of each kind of list and tree.
    hierarchy: Hierarchy,
    queues: Vec<Queue>,
    free: Vec<QueueId>,
    contexts: Vec<ContextState>,
    groups: Vec<GroupState>,
    held: Vec<Held>,
    links: SortedFifoLinks<RequestId>,
    places: TreeLinks<QueueId, u64>,
    /// Busy queues but the one in service, the last to come first.
    waiting: List<QueueId>,
    waiting_links: ListLinks<QueueId>,
    woken_links: ListLinks<QueueId>,
    /// Shared queues that can be given up, the oldest first.
    unused: List<QueueId>,
    unused_links: ListLinks<QueueId>,
}

impl Bfq {
    fn new(config: &Config) -> Bfq {
        let (contexts, groups) = (config.contexts_max.max(1), config.groups_max.max(1));
        let queues = contexts + config.requests_max + 2;
        Bfq {
            settings: Settings::DEFAULT,
            max_budget: budget::DEFAULT_MAX,
            in_service: None,
            timer_ns: None,
            wait_since_ns: 0,
            position_in_service: 0,
            probe: Probe::default(),
            probed: None,
            queued: 0,
            in_driver: 0,
            position: 0,
            busy: [0; 3],
            raised: 0,
            levels: [0; 8],
            pending_groups: 0,
            rate: PeakRate::new(true),
            started: false,
            depth: DepthProbe::default(),
            assigned: 0,
            last_completed: None,
            last_created: None,
            burst: Burst {
                last_ns: 0,
                group: GroupId::ROOT,
                size: 0,
                large: false,
                members: [None; raise::BURST],
            },
            hierarchy: Hierarchy::new(groups, queues),
            queues: alloc::vec![Queue::free(); queues],
            free: (0..queues).rev().map(QueueId::from_index).collect(),
            contexts: alloc::vec![ContextState::UNKNOWN; contexts],
            groups: alloc::vec![GroupState::NEW; groups],
            held: alloc::vec![Held { owner: QueueId::constant(0), queued: false }; config.requests_max],
            links: SortedFifoLinks::new(config.requests_max),
            places: TreeLinks::new(queues),
            waiting: List::new(),
            waiting_links: ListLinks::new(queues),
            woken_links: ListLinks::new(queues),
            unused: List::new(),
            unused_links: ListLinks::new(queues),
        }
    }

    /// Do what the end of the wait had to do, if it has come: as of its time.
    fn enter(&mut self, env: &mut Env<'_>) {
        #[cfg(test)]
        self.check();
        if !self.started {
            self.started = true;
            self.rate = PeakRate::new(env.device.rotational);
        }
        if let Some(due_ns) = self.timer_ns.filter(|due| env.now >= *due) {
            self.timer_ns = None;
            let now = core::mem::replace(&mut env.now, due_ns);
            self.waited_in_vain(env);
            env.now = now;
        }
    }

    /// The wait for the queue in service is over.
    fn waited_in_vain(&mut self, env: &mut Env<'_>) {
        let Some(id) = self.in_service else { return };
        if self.is_out_of_time(id, env.now) {
            self.expire(env, Expiry::Timeout);
        } else if self.queue(id).is_empty() {
            self.expire(env, Expiry::TooIdle);
        }
    }

    fn busy_total(&self) -> u32 {
        self.busy.iter().sum()
    }

    // ---- coming and going ----

    /// `id` has something to do.
    fn become_busy(&mut self, env: &mut Env<'_>, id: QueueId, budget: u64, waited: bool) {
        self.refresh_weight(id);
        self.hierarchy.activate(self.entity(id), budget, waited);
        self.waiting.push_front(&mut self.waiting_links, id);
        self.queue_mut(id).busy = true;
        self.count(id, true);
        let group = self.queue(id).group;
        self.groups[group.index()].busy += 1;
        if !core::mem::replace(&mut self.queue_mut(id).pending, true) {
            self.groups[group.index()].pending += 1;
            self.pending_groups += u32::from(self.groups[group.index()].pending == 1);
        }
        self.file_position(env, id);
        self.tell_busy(env, group);
    }

    /// `id`, which the hierarchy has let go, has nothing to do any more.
    fn become_idle(&mut self, env: &mut Env<'_>, id: QueueId) {
        self.count(id, false);
        self.queue_mut(id).busy = false;
        let group = self.queue(id).group;
        self.groups[group.index()].busy -= 1;
        self.rest(env.now, id);
        self.file_position(env, id);
        self.tell_busy(env, group);
    }

    /// `id` may have nothing queued and nothing in the device.
    fn rest(&mut self, now: u64, id: QueueId) {
        let Queue { busy, dispatched, pending, group, .. } = *self.queue(id);
        if busy || dispatched > 0 {
            return;
        }
        let queue = self.queue_mut(id);
        (queue.idle_since_ns, queue.pending) = (Some(now), false);
        if pending {
            self.groups[group.index()].pending -= 1;
            self.pending_groups -= u32::from(self.groups[group.index()].pending == 0);
        }
    }

    /// `id`, which is not in service, lost its last request.
    fn run_dry(&mut self, env: &mut Env<'_>, id: QueueId) {
        self.hierarchy.deactivate(self.entity(id));
        self.waiting.remove(&mut self.waiting_links, id);
        self.queue_mut(id).blameless = false;
        self.become_idle(env, id);
    }

    fn count(&mut self, id: QueueId, busy: bool) {
        let Queue { raise: Raise { factor, .. }, ioprio, .. } = *self.queue(id);
        let class = &mut self.busy[ioprio.class() as usize];
        let kind = if factor > 1 { &mut self.raised } else { &mut self.levels[usize::from(ioprio.level())] };
        for number in [class, kind] {
            *number = if busy { *number + 1 } else { *number - 1 };
        }
    }

    /// Change what `id` is counted by.
    fn recount(&mut self, id: QueueId, change: impl FnOnce(&mut Queue)) {
        let busy = self.queue(id).busy;
        if busy {
            self.count(id, false);
        }
        change(self.queue_mut(id));
        if busy {
            self.count(id, true);
        }
        self.refresh_weight(id);
    }

    fn change_raise(&mut self, id: QueueId, change: impl FnOnce(&mut Raise)) {
        self.recount(id, |queue| change(&mut queue.raise));
    }

    /// The weight `id` competes with from its next turn on.
    fn refresh_weight(&mut self, id: QueueId) {
        let queue = self.queue(id);
        let (class, factor) = (queue.class(), queue.raise.factor);
        let weight = queue.base_weight() * factor;
        self.hierarchy.set_weight(self.entity(id), class, weight, factor);
    }

    // ---- requests leave ----

    /// `rq` of `id` goes to the device.
    fn send(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId) {
        let request = &env.requests[rq];
        let charge = self.charge_of(env, id, rq);
        self.hierarchy.serve(self.entity(id), charge);
        let changed =
            self.rate.dispatched(env.now, request, self.position, env.device.rotational, self.in_driver);
        if changed {
            self.refresh_max_budget();
        }
        let serving = self.in_service == Some(id);
        if serving {
            self.position_in_service = request.end();
            if self.probe.since_ns.is_some() && !self.probe.is_sent {
                self.probe.is_sent = true;
                self.probed = Some(rq);
            }
        }
        let queue = self.queue_mut(id);
        if queue.raise.backlog_service == 0 {
            queue.first_served_ns = env.now;
        }
        queue.raise.served(charge);
        self.position = request.end();
        self.take(env, id, rq);
        if serving {
            self.review_raise(env, id);
        } else if self.queue(id).is_empty() {
            self.run_dry(env, id);
        }
    }

    /// Remove `rq` from `id` for the device.
    fn take(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId) {
        self.unlink(env, id, rq);
        self.queue_mut(id).dispatched += 1;
        self.in_driver += 1;
    }

    /// Remove `rq` from `id`.
    fn unlink(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId) {
        if self.queue(id).next == Some(rq) {
            let next = self.next_after(env, id, rq);
            self.queue_mut(id).next = next;
        }
        self.queues[id.index()].requests.remove(&mut self.links, rq);
        self.held[rq.index()].queued = false;
        self.queued -= 1;
        self.next_changed_unless_dry(env, id);
    }

    fn next_changed_unless_dry(&mut self, env: &mut Env<'_>, id: QueueId) {
        if self.queue(id).is_empty() {
            self.file_position(env, id);
        } else {
            self.next_changed(id, env);
        }
    }

    /// Is the raise of `id`, the queue in service, over?
    fn review_raise(&mut self, env: &Env<'_>, id: QueueId) {
        let interactive_ns = self.interactive_ns(env);
        let was_raised = self.queue(id).raise.is_raised();
        let in_burst = self.queue(id).in_large_burst;
        if was_raised {
            self.change_raise(id, |raise| raise.review(env.now, in_burst, interactive_ns));
            if !self.queue(id).raise.is_raised() {
                self.hierarchy.apply_weight(self.entity(id));
            }
        }
    }

    /// `rq` leaves without being dispatched.
    fn forget_request(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let id = self.held[rq.index()].owner;
        self.unlink(env, id, rq);
        self.settle_context(env, rq);
        if self.queue(id).is_empty() && self.in_service != Some(id) {
            self.run_dry(env, id);
        }
        self.reap(id);
    }

    /// One request less of a context.
    fn settle_context(&mut self, env: &Env<'_>, rq: RequestId) {
        let state = &mut self.contexts[env.requests[rq].context.index()];
        state.outstanding = state.outstanding.saturating_sub(1);
    }

    /// No request now: until when?
    fn wait(&self, env: &mut Env<'_>) -> Dispatch {
        let (Some(id), Some(until)) = (self.in_service, self.timer_ns) else { return Dispatch::Empty };
        if env.rounds.in_use() {
            env.rounds.wait_for(self.queue(id).group, env.now, until);
        }
        Dispatch::Idle { until }
    }

    /// A request of the queue in service is done: wait for the next one, or end the turn.
    fn completed_in_service(&mut self, env: &mut Env<'_>, id: QueueId) {
        let Queue { dispatched, .. } = *self.queue(id);
        let is_empty = self.queue(id).is_empty();
        if is_empty && self.is_better_idle(env, id) {
            if dispatched == 0 {
                self.arm(env.now, id);
            }
        } else if self.is_out_of_time(id, env.now) {
            self.expire(env, Expiry::Timeout);
        } else if is_empty {
            self.expire(env, Expiry::NoMoreRequests);
        }
    }
}

impl Elevator for Bfq {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn insert(&mut self, env: &mut Env<'_>, rq: RequestId) {
        self.enter(env);
        let requests = env.requests;
        let request = &requests[rq];
        self.meet_group(env, request.payer);
        let id = self.queue_for(env, request);
        self.held[rq.index()] = Held { owner: id, queued: true };
        self.contexts[request.context.index()].outstanding += 1;
        self.arrive(env, id, rq);
    }

    fn dispatch(&mut self, env: &mut Env<'_>, _group: GroupId) -> Dispatch {
        self.enter(env);
        if self.queued == 0 {
            return Dispatch::Empty;
        }
        if self.settings.strict_guarantees != 0 && self.in_driver > 0 {
            return Dispatch::Empty;
        }
        let Some(id) = self.select(env) else { return self.wait(env) };
        let Some(rq) = self.queue(id).next else {
            debug_assert!(false, "a selected queue has a next request");
            return self.wait(env);
        };
        self.send(env, id, rq);
        let is_idle_class = self.queue(id).class() == IoClass::Idle;
        if self.in_service == Some(id) && is_idle_class && self.busy_total() > 1 {
            self.expire(env, Expiry::Exhausted);
        }
        Dispatch::Issue(rq)
    }

    fn placement(&self) -> Placement {
        Placement::Tail
    }

    fn drain(&mut self, env: &mut Env<'_>) -> Option<RequestId> {
        self.enter(env);
        self.expire(env, Expiry::NoMoreRequests);
        // As in `select`, some may be empty.
        while let Some(id) = self.waiting.front() {
            let next = self.queue(id).next;
            if let Some(rq) = next {
                self.take(env, id, rq);
            }
            if self.queue(id).is_empty() {
                self.run_dry(env, id);
            }
            if next.is_some() {
                return next;
            }
        }
        None
    }

    fn is_empty(&self) -> bool {
        self.queued == 0
    }

    fn grouping(&self) -> Grouping {
        Grouping::Own
    }

    fn completed(&mut self, env: &mut Env<'_>, rq: RequestId) {
        self.enter(env);
        let now = env.now;
        let id = self.held[rq.index()].owner;
        self.settle_context(env, rq);
        let is_done = env.requests[rq].status == Status::Done;
        if self.probed == Some(rq) {
            self.end_probe(now, id, is_done);
        }
        self.depth.completed(self.in_driver, self.queued, self.depth_is_spoilt());
        self.in_driver = self.in_driver.saturating_sub(1);
        let slice_idle_ns = self.settings.slice_idle_ns;
        let queue = self.queue_mut(id);
        queue.dispatched = queue.dispatched.saturating_sub(1);
        queue.habits.last_done_ns = now;
        if queue.dispatched == 0 && queue.raise.soft_rt_unknown {
            queue.raise.backlog_ended(now, slice_idle_ns);
        }
        self.rest(now, id);
        if is_done && self.rate.completed(now) {
            self.refresh_max_budget();
        }
        self.last_completed = Some(id);
        if self.in_service == Some(id) {
            self.completed_in_service(env, id);
        }
        self.reap(id);
    }

    fn find_front(&self, env: &Env<'_>, bio: &Bio) -> Option<RequestId> {
        let id = self.find_queue(env.contexts, bio.context, env.group_of(bio), bio.is_sync())?;
        self.queue(id).requests.find(&self.links, bio.end())
    }

    fn allow_merge(&mut self, env: &Env<'_>, rq: RequestId, bio: &Bio) -> bool {
        if bio.is_sync() && !env.requests[rq].is_sync() {
            return false;
        }
        let held = self.held[rq.index()];
        let group = env.group_of(bio);
        held.queued && self.find_queue(env.contexts, bio.context, group, bio.is_sync()) == Some(held.owner)
    }

    fn grew(&mut self, env: &mut Env<'_>, rq: RequestId, growth: Growth) {
        self.enter(env);
        let Held { owner: id, queued } = self.held[rq.index()];
        if !queued {
            return;
        }
        if growth == Growth::Front {
            self.queues[id.index()].requests.resort(&mut self.links, rq, env.requests[rq].sector);
            self.offer(env, id, rq);
        }
        self.next_changed(id, env);
    }

    fn absorbed(&mut self, env: &mut Env<'_>, rq: RequestId, gone: RequestId) {
        self.enter(env);
        let (held, lost) = (self.held[rq.index()], self.held[gone.index()]);
        if !lost.queued {
            return;
        }
        if held.queued && held.owner == lost.owner {
            let queue = &mut self.queues[held.owner.index()];
            queue.requests.inherit(&mut self.links, rq, gone);
            if queue.next == Some(gone) {
                queue.next = Some(rq);
            }
        }
        self.forget_request(env, gone);
    }

    fn former(&self, _env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        let held = &self.held[rq.index()];
        self.queue(held.owner).requests.prev(&self.links, rq).filter(|_| held.queued)
    }

    fn latter(&self, _env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        let held = &self.held[rq.index()];
        self.queue(held.owner).requests.next(&self.links, rq).filter(|_| held.queued)
    }

    fn context_exit(&mut self, env: &mut Env<'_>, context: ContextId) {
        self.enter(env);
        self.forget(env, context);
    }

    fn context_moved(&mut self, env: &mut Env<'_>, context: ContextId) {
        self.enter(env);
        self.forget(env, context);
    }

    fn remove(&mut self, env: &mut Env<'_>, rq: RequestId) {
        self.enter(env);
        if self.held[rq.index()].queued {
            self.forget_request(env, rq);
        }
    }

    fn attached(&mut self, env: &mut Env<'_>) {
        (0..self.groups.len()).for_each(|index| self.tell_busy(env, GroupId::from_index(index)));
    }

    fn idling_for(&self) -> Option<ContextId> {
        self.timer_ns.and(self.in_service).map(|id| self.queue(id).context)
    }

    fn tunables(&self) -> &'static [Tunable] {
        settings::TUNABLES
    }

    fn setting(&mut self, name: &str) -> Option<&mut u64> {
        self.settings.place(name)
    }

    fn settings_changed(&mut self) {
        self.settings.agree();
        self.refresh_max_budget();
    }
}

impl Bfq {
    /// The request that was measured is done.
    fn end_probe(&mut self, now: u64, id: QueueId, is_done: bool) {
        self.probed = None;
        let Probe { since_ns, injected, .. } = core::mem::take(&mut self.probe);
        let Some(since_ns) = since_ns.filter(|_| is_done) else { return };
        let (in_driver, most) = (self.in_driver, self.depth.peak.max(self.in_driver));
        self.queue_mut(id).limit.measured(now, now.saturating_sub(since_ns), injected, in_driver, most);
    }
}
