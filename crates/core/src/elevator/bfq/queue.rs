//! Queues: whose requests are together, what is known of each, and where they are kept.
//!
//! A context has a queue for its sync requests in its own group. What it sends for another group than its own, and async
//! requests by class and level, go to queues that a group's contexts share. A context that moves leaves its queue behind, to be
//! served to the end.
//!
//! A queue is taken while a context uses it, or it has requests queued or in the device, or is in service; shared ones longer,
//! with their debts, until their place is needed. So `contexts + requests + 2` queues are always enough.

use super::Bfq;
use super::entity::EntityId;
use super::habits::Habits;
use super::inject::Limit;
use super::raise::Raise;
use crate::collections::{Id, List, SortedFifo};
use crate::context::{ContextId, Contexts, IoClass, IoPrio};
use crate::elevator::Env;
use crate::group::GroupId;
use crate::request::{Request, RequestId};

pub(super) use id::QueueId;

/// The macro declares public ids; this one stays inside.
#[allow(unreachable_pub)]
mod id {
    crate::collections::define_id! {
        /// A queue's slot.
        QueueId
    }
}

/// Shared queues of a group: async by level of RT and BE, of the idle class, and sync of other groups' contexts.
pub(super) const SHARED: usize = 18;
const STRANGERS: usize = 17;

/// A queue that a context came from or may join, as it was at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub(super) queue: QueueId,
    pub(super) created_ns: u64,
}

/// What a context takes with it when it leaves a queue, and gets back.
#[derive(Clone, Copy)]
pub(super) struct Saved {
    pub(super) habits: Habits,
    pub(super) raise: Raise,
    pub(super) limit: Limit,
    pub(super) in_large_burst: bool,
}

/// One queue.
#[derive(Clone, Copy)]
pub(super) struct Queue {
    // Whose.
    pub(super) taken: bool,
    pub(super) sync: bool,
    pub(super) ioprio: IoPrio,
    /// Whose its requests are (who pays for them).
    pub(super) group: GroupId,
    /// Contexts that use it.
    pub(super) users: u32,
    /// Its number among the group's shared ones.
    pub(super) shared: Option<u8>,
    /// Shared, with nothing to do: it can be given up.
    pub(super) unused: bool,
    /// Who sent last.
    pub(super) context: ContextId,
    pub(super) created_ns: u64,
    /// Nothing was sent yet.
    pub(super) is_new: bool,

    // Requests.
    pub(super) requests: SortedFifo<RequestId>,
    pub(super) next: Option<RequestId>,
    /// In the device.
    pub(super) dispatched: u32,
    /// Was the oldest looked at in this turn?
    pub(super) fifo_checked: bool,

    // Service.
    /// Has it something to do, or is it in service?
    pub(super) busy: bool,
    /// Busy, or something of it is in the device.
    pub(super) pending: bool,
    pub(super) max_budget: u64,
    pub(super) began_ns: u64,
    pub(super) timeout_ns: u64,
    /// It left with nothing to do, having used neither its budget nor its time.
    pub(super) blameless: bool,
    /// What was left of its budget then, sectors.
    pub(super) left: u64,
    /// Since when it has nothing queued or in the device; `None`: always.
    pub(super) idle_since_ns: Option<u64>,
    /// First service of its backlog.
    pub(super) first_served_ns: u64,

    // What is known of it.
    pub(super) habits: Habits,
    pub(super) raise: Raise,
    pub(super) limit: Limit,
    pub(super) in_large_burst: bool,

    // Others.
    pub(super) waker: Option<QueueId>,
    /// It may be the waker, seen so often since then.
    pub(super) suspect: Option<(QueueId, u8, u64)>,
    /// Queues it wakes.
    pub(super) woken: List<QueueId>,
    /// Contexts joined it, and shall leave it again.
    pub(super) coop: bool,
    pub(super) split: bool,
    /// Is its next request in the tree of positions?
    pub(super) filed: bool,
}

impl Queue {
    pub(super) fn new(now: u64, group: GroupId, ioprio: IoPrio, sync: bool) -> Queue {
        let mut habits = Habits::new(now);
        habits.has_short_think = sync && ioprio.class() != IoClass::Idle;
        Queue {
            taken: true,
            sync,
            ioprio,
            group,
            users: 0,
            shared: None,
            unused: false,
            context: ContextId::OVERFLOW,
            created_ns: now,
            is_new: true,
            requests: SortedFifo::new(),
            next: None,
            dispatched: 0,
            fifo_checked: false,
            busy: false,
            pending: false,
            max_budget: 0,
            began_ns: 0,
            timeout_ns: 0,
            blameless: false,
            left: 0,
            idle_since_ns: None,
            first_served_ns: 0,
            habits,
            raise: Raise::new(now),
            limit: Limit::new(now),
            in_large_burst: false,
            waker: None,
            suspect: None,
            woken: List::new(),
            coop: false,
            split: false,
            filed: false,
        }
    }

    pub(super) fn free() -> Queue {
        Queue { taken: false, ..Queue::new(0, GroupId::ROOT, IoPrio::DEFAULT, true) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Weight by level, not raised: 10 to 80.
    pub(super) fn base_weight(&self) -> u32 {
        10 * (8 - u32::from(self.ioprio.level()))
    }

    pub(super) fn class(&self) -> IoClass {
        self.ioprio.class()
    }

    pub(super) fn seen(&self, queue: QueueId) -> Seen {
        Seen { queue, created_ns: self.created_ns }
    }
}

/// What is kept about a context.
#[derive(Clone, Copy)]
pub(super) struct ContextState {
    /// The tenant of the context's slot that this is about.
    pub(super) epoch: Option<u32>,
    pub(super) queue: Option<QueueId>,
    /// Requests queued and in the device.
    pub(super) outstanding: u32,
    /// What it had before it joined another's queue.
    pub(super) saved: Option<Saved>,
    /// The queue it may join for good later on.
    pub(super) may_join: Option<Seen>,
    /// It joined another's queue for good.
    pub(super) stable: bool,
}

impl ContextState {
    pub(super) const UNKNOWN: ContextState =
        ContextState { epoch: None, queue: None, outstanding: 0, saved: None, may_join: None, stable: false };
}

/// The number of the async queue for `ioprio` among a group's shared ones.
const fn async_index(ioprio: IoPrio) -> usize {
    match ioprio.class() {
        IoClass::RealTime => ioprio.level() as usize,
        IoClass::BestEffort => 8 + ioprio.level() as usize,
        IoClass::Idle => 16,
    }
}

impl Bfq {
    pub(super) fn queue(&self, id: QueueId) -> &Queue {
        &self.queues[id.index()]
    }

    pub(super) fn queue_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.queues[id.index()]
    }

    pub(super) fn entity(&self, id: QueueId) -> EntityId {
        self.hierarchy.queue(id.index())
    }

    /// The queue that requests of `context` for `group` go to, if there is one now.
    pub(super) fn find_queue(
        &self,
        contexts: &Contexts,
        context: ContextId,
        group: GroupId,
        sync: bool,
    ) -> Option<QueueId> {
        let tenant = &contexts[context];
        let shared = &self.groups[group.index()].shared;
        if !sync {
            return shared[async_index(tenant.ioprio)];
        }
        if tenant.group != group || contexts.is_shared(context) {
            return shared[STRANGERS];
        }
        let state = &self.contexts[context.index()];
        state.queue.filter(|id| state.epoch == Some(tenant.epoch) && self.queue(*id).group == group)
    }

    /// The queue for a new request: splits and merges take effect here.
    pub(super) fn queue_for(&mut self, env: &mut Env<'_>, request: &Request) -> QueueId {
        let Request { context, payer: group, .. } = *request;
        let tenant = env.contexts[context];
        let meets = self.contexts[context.index()].epoch != Some(tenant.epoch);
        if meets {
            self.forget(env, context);
            self.contexts[context.index()] =
                ContextState { epoch: Some(tenant.epoch), ..ContextState::UNKNOWN };
        }
        if !request.is_sync() {
            return self.shared_queue(env, group, async_index(tenant.ioprio), tenant.ioprio, false);
        }
        if tenant.group != group || env.contexts.is_shared(context) {
            return self.shared_queue(env, group, STRANGERS, tenant.ioprio, true);
        }
        let id = match self.contexts[context.index()].queue {
            Some(id) if self.queue(id).group == group => self.split_if_due(env, context, id),
            Some(_) => {
                self.forget(env, context);
                self.join_new_queue(env, context)
            }
            None => self.join_new_queue(env, context),
        };
        let id = self.join_cooperator(env, request, id);
        self.take_ioprio(id, tenant.ioprio);
        id
    }

    /// Class and level of a queue follow its sender's.
    pub(super) fn take_ioprio(&mut self, id: QueueId, ioprio: IoPrio) {
        if self.queue(id).ioprio != ioprio {
            self.recount(id, |queue| queue.ioprio = ioprio);
        }
    }

    fn shared_queue(
        &mut self,
        env: &mut Env<'_>,
        group: GroupId,
        index: usize,
        ioprio: IoPrio,
        sync: bool,
    ) -> QueueId {
        if let Some(id) = self.groups[group.index()].shared[index] {
            self.set_unused(id, false);
            return id;
        }
        let id = self.new_queue(env.now, group, ioprio, sync);
        self.queue_mut(id).shared = Some(index as u8);
        self.groups[group.index()].shared[index] = Some(id);
        id
    }

    /// A queue of its own for `context`, or one it is to share from the start.
    fn join_new_queue(&mut self, env: &mut Env<'_>, context: ContextId) -> QueueId {
        let tenant = env.contexts[context];
        let id = match self.early_companion(env, context) {
            Some(companion) => companion,
            None => self.new_queue(env.now, tenant.group, tenant.ioprio, true),
        };
        self.queue_mut(id).users += 1;
        self.contexts[context.index()].queue = Some(id);
        self.remember_created(env, id, context);
        id
    }

    pub(super) fn new_queue(&mut self, now: u64, group: GroupId, ioprio: IoPrio, sync: bool) -> QueueId {
        if self.free.is_empty()
            && let Some(unused) = self.unused.front()
        {
            self.set_unused(unused, false);
            self.give_up(unused);
        }
        debug_assert!(!self.free.is_empty(), "there is a queue for every request");
        let id = self.free.pop().unwrap_or(QueueId::constant(0));
        let mut queue = Queue::new(now, group, ioprio, sync);
        queue.max_budget = if sync { 2 * self.max_budget / 3 } else { self.max_budget };
        let (class, weight) = (queue.class(), queue.base_weight());
        *self.queue_mut(id) = queue;
        self.hierarchy.adopt(self.entity(id), group, class, weight);
        id
    }

    /// `context`'s tenant is gone, or in another group: no task waits for it, its queue is served to the end.
    pub(super) fn forget(&mut self, env: &mut Env<'_>, context: ContextId) {
        let state = &mut self.contexts[context.index()];
        (state.saved, state.may_join, state.stable) = (None, None, false);
        if let Some(id) = state.queue.take() {
            self.leave(env, id);
        }
    }

    /// One context less uses `id`.
    pub(super) fn leave(&mut self, env: &mut Env<'_>, id: QueueId) {
        let queue = self.queue_mut(id);
        debug_assert!(queue.users > 0, "left more often than joined");
        queue.users = queue.users.saturating_sub(1);
        let is_done = queue.users == 0 && queue.is_empty() && queue.busy;
        if is_done && self.in_service == Some(id) {
            self.expire(env, super::Expiry::NoMoreRequests);
        } else if is_done {
            self.run_dry(env, id);
        }
        self.reap(id);
    }

    /// Free a queue that no context uses and that has nothing to do; a shared one only gives up its place when that is needed.
    pub(super) fn reap(&mut self, id: QueueId) {
        let queue = self.queue(id);
        let used = queue.users > 0 || queue.busy || queue.dispatched > 0 || !queue.is_empty();
        if used || !queue.taken {
            return;
        }
        if queue.shared.is_some() {
            self.set_unused(id, true);
        } else {
            self.give_up(id);
        }
    }

    /// File a shared queue among those that can be given up, or take it off there.
    pub(super) fn set_unused(&mut self, id: QueueId, unused: bool) {
        let was = core::mem::replace(&mut self.queues[id.index()].unused, unused);
        match (was, unused) {
            (false, true) => self.unused.push_back(&mut self.unused_links, id),
            (true, false) => self.unused.remove(&mut self.unused_links, id),
            _ => {}
        }
    }

    /// No context uses the queue from now on.
    pub(super) fn give_up(&mut self, id: QueueId) {
        let Queue { group, shared, waker, .. } = *self.queue(id);
        if let Some(index) = shared {
            self.groups[group.index()].shared[usize::from(index)] = None;
        }
        if let Some(waker) = waker {
            self.queues[waker.index()].woken.remove(&mut self.woken_links, id);
        }
        self.disown_woken(id);
        if self.last_completed == Some(id) {
            self.last_completed = None;
        }
        self.hierarchy.discard(self.entity(id));
        *self.queue_mut(id) = Queue::free();
        self.free.push(id);
    }
}
