//! Queues: which one a request belongs to, its turn in the round (slices, keys, residuals), and its life.

use super::choose::prefer;
use super::coop::CHAIN_MAX;
use super::groups::GroupState;
use super::groups::STRANGERS;
use super::idle::SeekMean;
use super::{Cfq, Cooperators, Derived, NEVER, Spent, Trees, Units};
use crate::collections::{Id, SortedFifo, Stack, Table, Tree};
use crate::context::{ContextId, Contexts, IoClass, IoPrio};
use crate::elevator::think::ThinkTime;
use crate::elevator::{Env, Placement};
use crate::group::GroupId;
use crate::request::{Flags, Request, RequestId};

pub(super) use id::QueueId;

/// The macro declares public ids; this one stays inside.
#[allow(unreachable_pub)]
mod id {
    crate::collections::define_id! {
        /// A queue: a sync one of some context(s), or one of the shared async ones.
        QueueId
    }
}

impl QueueId {
    /// The sync queue of the overflow context, and of every context for which there was no queue left.
    pub(super) const OVERFLOW: QueueId = QueueId::constant(0);
}

/// Async queues: 8 levels of RT, 8 of BE, one for IDLE.
pub(super) const ASYNC_QUEUES: usize = 17;

/// The trees of [`Trees::Workloads`]: best effort, then real time by [`Kind`], then idle; [`Trees::Single`] has only
/// the first.
pub(super) const TREES: usize = 7;
const IDLE_TREE: usize = 6;

/// Not in any tree.
pub(super) const NOWHERE: u8 = u8::MAX;
/// Busy, but in no tree: the active queue of [`Trees::Single`], which runs dry and gets its next request all the time
/// and is filed anew when it expires anyway.
pub(super) const ON_TURN: u8 = u8::MAX - 1;

/// What kind of work a queue brings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// No task waits for it.
    Async = 0,
    /// Sync, but waiting for its next request alone does not pay: served together with its like.
    SyncNoIdle = 1,
    /// Sync and worth an idle wait.
    Sync = 2,
}

/// One queue of requests with its turn in the round.
#[derive(Clone, Copy)]
pub(super) struct Queue {
    // Its requests.
    pub(super) requests: SortedFifo<RequestId>,
    /// The request to serve next by position.
    pub(super) next: Option<RequestId>,
    /// Requests dispatched and not completed.
    pub(super) dispatched: u32,
    /// Metadata requests among the queued ones.
    pub(super) meta_queued: u32,

    // Whose it is.
    pub(super) sync: bool,
    pub(super) class: IoClass,
    pub(super) level: u8,
    /// The owner's priority changed; taken over at the next request.
    pub(super) ioprio_stale: bool,
    /// Contexts that use it or are about to (see [`super::coop`]).
    pub(super) users: u32,
    pub(super) merge_into: Option<QueueId>,
    /// Length of the longest chain of merges that ends here.
    pub(super) chain: u8,
    /// Taken from the pool?
    pub(super) taken: bool,
    /// The group whose requests it holds, and the one it takes turns in (see [`super::groups`]).
    pub(super) home: GroupId,
    pub(super) group: GroupId,
    /// Its place among its group's shared queues, if it is one that comes and goes.
    pub(super) shared: u8,

    // Its turn.
    /// Time part of its key in the service tree.
    key: i64,
    /// The service tree it waits in.
    pub(super) tree: u8,
    /// The position tree it is in: its level when it entered.
    pub(super) position: u8,
    /// Counted as a busy real-time queue?
    pub(super) counted_rt: bool,
    /// No request completed yet since it became active: the slice has not begun.
    pub(super) slice_new: bool,
    pub(super) slice_end: u64,
    /// What was left of its last slice (negative: overrun); moves its next turn.
    pub(super) residual: i64,
    pub(super) slice_dispatched: u64,
    /// The FIFO was looked at in this slice.
    pub(super) fifo_checked: bool,
    /// Being idled for.
    pub(super) waiting: bool,
    /// One request goes out even if the slice is over.
    pub(super) must_dispatch: bool,
    /// The awaited context had its extra request slot in this slice.
    pub(super) must_allocated: bool,

    // What was learnt about it.
    /// Worth an idle wait.
    pub(super) idle_window: bool,
    /// It held several requests at once: seeking, but not for want of requests.
    pub(super) deep: bool,
    /// Waits beyond its slice because its group would lose its place.
    pub(super) wait_busy: bool,
    /// [`Cooperators::Switch`]: served out of turn; [`Cooperators::MergeAndSplit`]: has several contexts.
    pub(super) coop: bool,
    /// To be taken apart again.
    pub(super) split: bool,
    /// A bit for each of the last 32 requests: did it jump? Newest lowest.
    pub(super) seek_history: u32,
    /// End of the request inserted last; 0 before the first.
    pub(super) last_end: u64,
}

impl Queue {
    pub(super) const FREE: Queue = Queue {
        requests: SortedFifo::new(),
        next: None,
        dispatched: 0,
        meta_queued: 0,
        sync: true,
        class: IoClass::BestEffort,
        level: 4,
        ioprio_stale: false,
        users: 0,
        merge_into: None,
        chain: 0,
        taken: false,
        home: GroupId::ROOT,
        group: GroupId::ROOT,
        shared: NOWHERE,
        key: 0,
        tree: NOWHERE,
        position: NOWHERE,
        counted_rt: false,
        slice_new: false,
        slice_end: 0,
        residual: 0,
        slice_dispatched: 0,
        fifo_checked: false,
        waiting: false,
        must_dispatch: false,
        must_allocated: false,
        idle_window: false,
        deep: false,
        wait_busy: false,
        coop: false,
        split: false,
        seek_history: 0,
        last_end: 0,
    };

    pub(super) fn new_async(ioprio: IoPrio) -> Queue {
        Queue { sync: false, class: ioprio.class(), level: ioprio.level(), taken: true, ..Queue::FREE }
    }

    /// A sync queue that takes its priority from its first request.
    pub(super) const fn new_sync() -> Queue {
        Queue { ioprio_stale: true, idle_window: true, taken: true, ..Queue::FREE }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Does it take part in the round?
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        self.tree != NOWHERE
    }

    #[inline]
    pub(super) fn kind(&self) -> Kind {
        if !self.sync {
            Kind::Async
        } else if self.idle_window {
            Kind::Sync
        } else {
            Kind::SyncNoIdle
        }
    }

    /// Is its slice over? Never before it began.
    #[inline]
    pub(super) fn slice_used(&self, now: u64) -> bool {
        !self.slice_new && now >= self.slice_end
    }

    fn take_ioprio(&mut self, ioprio: IoPrio) {
        self.class = ioprio.class();
        self.level = ioprio.level();
        self.ioprio_stale = false;
        if self.class == IoClass::Idle {
            self.idle_window = false;
        }
    }
}

/// What is kept about an io context.
#[derive(Clone, Copy)]
pub(super) struct ContextState {
    /// Whose state this is ([`crate::context::Context::epoch`]); `None` before the first.
    epoch: Option<u32>,
    /// Its sync queue.
    pub(super) queue: Option<QueueId>,
    /// When its last sync request completed (at first: when it was first seen).
    pub(super) last_completion: u64,
    pub(super) think: ThinkTime,
    pub(super) seeks: SeekMean,
}

impl ContextState {
    pub(super) const UNKNOWN: ContextState = ContextState {
        epoch: None,
        queue: None,
        last_completion: 0,
        think: ThinkTime::NONE,
        seeks: SeekMean::NONE,
    };
}

/// Does an expiring queue take the rest of its slice into account at its next turn?
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Residual {
    Keep,
    Drop,
}

/// Where a queue enters the service tree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// By its time.
    InOrder,
    /// Next.
    Front,
}

/// A key in [`Trees::Single`] is a time within a class: classes are this far apart, times stay within half of it
/// (2^60 ns = 36 years).
const CLASS_SPAN: i64 = 1 << 61;
const TIME_MAX: i64 = (1 << 60) - 1;

/// All queues: sync ones (and what groups share, as it comes and goes) first (the overflow one at 0), async ones last. Also the stack of free sync ones.
pub(super) fn queues(sync: usize) -> (Table<Queue>, Stack<QueueId>) {
    let mut queues = Table::new(Queue::FREE, sync + ASYNC_QUEUES);
    queues[0] = Queue::new_sync();
    let levels = (0..8).map(IoPrio::RealTime).chain((0..8).map(IoPrio::BestEffort));
    for (queue, ioprio) in queues.iter_mut().skip(sync).zip(levels.chain([IoPrio::Idle])) {
        *queue = Queue::new_async(ioprio);
    }
    (queues, Stack::full(QueueId::OVERFLOW, (1..sync).rev().map(QueueId::from_index)))
}

impl Cfq {
    #[inline]
    pub(super) fn queue(&self, id: QueueId) -> &Queue {
        &self.queues[id.index()]
    }

    #[inline]
    pub(super) fn queue_mut(&mut self, id: QueueId) -> &mut Queue {
        &mut self.queues[id.index()]
    }

    // Which queue a request belongs to.

    /// The root's async queue number `index`.
    #[inline]
    pub(super) fn root_async_queue(&self, index: usize) -> QueueId {
        QueueId::from_index(self.queues.len() - ASYNC_QUEUES + index)
    }

    /// The state of `context` if its present tenant is known.
    #[inline]
    pub(super) fn context(&self, contexts: &Contexts, context: ContextId) -> Option<&ContextState> {
        Some(&self.contexts[context.index()]).filter(|state| state.epoch == Some(contexts[context].epoch))
    }

    /// The queue a request of `context` would go to now, if it has one.
    #[inline]
    pub(super) fn find_queue(
        &self,
        contexts: &Contexts,
        context: ContextId,
        group: GroupId,
        sync: bool,
    ) -> Option<QueueId> {
        if !sync {
            self.find_shared(group, async_index(contexts[context].ioprio))
        } else if contexts[context].group == group {
            self.context(contexts, context)?.queue.filter(|id| self.queue(*id).home == group)
        } else {
            self.find_shared(group, STRANGERS)
        }
    }

    /// As [`Cfq::find_queue`], in the group the context is in.
    #[inline]
    pub(super) fn find_own_queue(
        &self,
        contexts: &Contexts,
        context: ContextId,
        sync: bool,
    ) -> Option<QueueId> {
        self.find_queue(contexts, context, contexts[context].group, sync)
    }

    /// The queue for a new request of `context`: splits and merges of shared queues take effect here.
    #[inline]
    pub(super) fn queue_for(&mut self, env: &mut Env<'_>, request: &Request, now: u64) -> QueueId {
        let (context, group) = (request.context, request.payer);
        let tenant = &env.contexts[context];
        let id = if !request.is_sync() {
            self.shared_queue(group, async_index(tenant.ioprio))
        } else if tenant.group != group {
            self.shared_queue(group, STRANGERS)
        } else {
            let state = &self.contexts[context.index()];
            let own =
                if state.epoch == Some(tenant.epoch) { state.queue } else { self.meet(env, context, now) };
            match own {
                Some(id) if self.queue(id).home == group => self.settled_queue(env, context, id, now),
                Some(id) => self.exchange(env, context, id, now),
                None => self.join_new_queue(context, group),
            }
        };
        self.refresh_ioprio(id, tenant.ioprio);
        id
    }

    /// `context` has a new tenant, who has no queue yet.
    #[cold]
    fn meet(&mut self, env: &mut Env<'_>, context: ContextId, now: u64) -> Option<QueueId> {
        self.forget(env, context, now);
        let epoch = Some(env.contexts[context].epoch);
        self.contexts[context.index()] =
            ContextState { epoch, last_completion: now, ..ContextState::UNKNOWN };
        None
    }

    #[inline]
    fn settled_queue(&mut self, env: &mut Env<'_>, context: ContextId, id: QueueId, now: u64) -> QueueId {
        let queue = self.queue(id);
        if queue.merge_into.is_none() && !queue.split && id != QueueId::OVERFLOW {
            return id;
        }
        self.settle_shared_queue(env, context, id, now)
    }

    /// Give `context`, which uses none in `group`, a queue of its own; a shared one when it has none to itself.
    pub(super) fn join_new_queue(&mut self, context: ContextId, group: GroupId) -> QueueId {
        if context == ContextId::OVERFLOW && group != GroupId::ROOT {
            return self.shared_queue(group, STRANGERS);
        }
        let id = if context == ContextId::OVERFLOW { None } else { self.free.pop() };
        let id = id.unwrap_or(QueueId::OVERFLOW);
        if id != QueueId::OVERFLOW {
            *self.queue_mut(id) = Queue { home: group, group, ..Queue::new_sync() };
        }
        self.queue_mut(id).users += 1;
        self.contexts[context.index()].queue = Some(id);
        id
    }

    /// `context` has had to do with another group's `id` (the overflow queue), for want of a free one.
    #[cold]
    fn exchange(&mut self, env: &mut Env<'_>, context: ContextId, id: QueueId, now: u64) -> QueueId {
        if self.free.is_empty() || context == ContextId::OVERFLOW {
            return id;
        }
        let own = self.join_new_queue(context, env.contexts[context].group);
        self.leave(env, id, now);
        own
    }

    #[inline]
    pub(super) fn refresh_ioprio(&mut self, id: QueueId, ioprio: IoPrio) {
        let queue = self.queue_mut(id);
        if queue.ioprio_stale {
            queue.take_ioprio(ioprio);
        }
    }

    /// The tenant of `context` is gone: no elevator idles for it, its queue is served to the end.
    pub(super) fn forget(&mut self, env: &mut Env<'_>, context: ContextId, now: u64) {
        if self.active_context == Some(context) {
            self.active_context = None;
        }
        if let Some(id) = self.contexts[context.index()].queue.take() {
            if self.active == Some(id) {
                self.expire(env, now, Residual::Drop);
            }
            self.leave(env, id, now);
        }
    }

    /// One context less uses `id`, and the queues `id` was to be merged into.
    pub(super) fn leave(&mut self, env: &mut Env<'_>, id: QueueId, now: u64) {
        let mut link = self.queue(id).merge_into;
        for _ in 0..CHAIN_MAX {
            let Some(target) = link else { break };
            link = self.queue(target).merge_into;
            self.drop_user(env, target, now);
        }
        self.drop_user(env, id, now);
    }

    pub(super) fn drop_user(&mut self, env: &mut Env<'_>, id: QueueId, now: u64) {
        let queue = self.queue_mut(id);
        debug_assert!(queue.users > 0, "left more often than joined");
        queue.users = queue.users.saturating_sub(1);
        self.reap(env, id, now);
    }

    /// Free a sync queue that no context uses and that has nothing queued or dispatched.
    #[inline]
    pub(super) fn reap(&mut self, env: &mut Env<'_>, id: QueueId, now: u64) {
        let queue = self.queue(id);
        if queue.users == 0 && queue.dispatched == 0 && queue.is_empty() {
            self.reap_unused(env, id, now);
        }
    }

    fn reap_unused(&mut self, env: &mut Env<'_>, id: QueueId, now: u64) {
        let queue = self.queue(id);
        let shared = queue.shared != NOWHERE;
        let permanent = id == QueueId::OVERFLOW || !queue.sync && !shared;
        // A shared queue has users still to come: it may be idled on.
        if permanent || !queue.taken || (shared && self.active == Some(id)) {
            return;
        }
        if shared {
            self.forget_shared(id);
        }
        if self.active == Some(id) {
            self.expire(env, now, Residual::Drop);
        }
        debug_assert!(!self.queue(id).is_busy(), "an empty queue waits for a turn");
        *self.queue_mut(id) = Queue::FREE;
        self.free.push(id);
    }

    // Requests in a queue.

    /// Add `rq` to `id` by sector, behind those at the very same (or instead of the one that is there:
    /// [`Env::alias_goes_out`]), and by arrival.
    #[inline(always)] // with `take` and `unlink` saves 30 to 50 instructions a request
    pub(super) fn add(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId, deadline: u64, now: u64) {
        let sector = env.requests[rq].sector;
        let queue = &mut self.queues[id.index()];
        if !env.alias_goes_out() {
            queue.requests.insert(&mut self.links, rq, sector, deadline);
        } else if let Err(alias) = queue.requests.insert_unique(&mut self.links, rq, sector, deadline) {
            self.send_away(env, id, alias);
            self.queues[id.index()].requests.insert(&mut self.links, rq, sector, deadline);
        }
        self.queued += 1;
        self.offer(env, id, rq, now);
    }

    /// `rq`, which is in `id`, grew at its front: as [`Cfq::add`], but its place by arrival stays.
    pub(super) fn resort(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId, now: u64) {
        let sector = env.requests[rq].sector;
        let queue = &mut self.queues[id.index()];
        if !env.alias_goes_out() {
            queue.requests.resort(&mut self.links, rq, sector);
        } else if let Err(alias) = queue.requests.resort_unique(&mut self.links, rq, sector) {
            self.send_away(env, id, alias);
            self.queues[id.index()].requests.resort(&mut self.links, rq, sector);
        }
        self.offer(env, id, rq, now);
    }

    /// `rq`, in a new place, may be what `id` serves next.
    #[inline(always)] // see `add`
    fn offer(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId, now: u64) {
        let requests = env.requests;
        let request = &requests[rq];
        let queue = &mut self.queues[id.index()];
        let next =
            queue.next.filter(|next| prefer(&requests[*next], request, self.head, self.derived.back_seek));
        queue.next = next.or(Some(rq));
        if !queue.is_busy() {
            self.enter_round(env, id, now);
        }
        // The active queue is not looked for: it is filed when it expires.
        if self.active != Some(id) {
            self.update_position(requests, id);
        }
    }

    /// `alias` makes way for a request that starts at the same sector and is not there yet.
    #[cold]
    fn send_away(&mut self, env: &mut Env<'_>, id: QueueId, alias: RequestId) {
        self.take(env, id, alias);
        env.dispatch.place(env.requests, alias, Placement::Sorted);
    }

    /// Remove `rq` from `id` for the device.
    #[inline(always)] // see `add`
    pub(super) fn take(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId) {
        let queue = self.queue(id);
        let next = if queue.requests.len() == 1 { None } else { self.next_after(env.requests, queue, rq) };
        let queue = self.queue_mut(id);
        queue.next = next;
        queue.dispatched += 1;
        let kind = usize::from(queue.sync);
        self.in_flight[kind] += 1;
        self.unlink(env, id, rq);
    }

    /// Forget `rq`, which is no longer `id`'s next one (or was its last).
    #[inline(always)] // see `add`
    pub(super) fn unlink(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId) {
        let queue = &mut self.queues[id.index()];
        queue.requests.remove(&mut self.links, rq);
        queue.meta_queued -= u32::from(env.requests[rq].flags.contains(Flags::META));
        let (empty, filed) = (queue.is_empty(), queue.position != NOWHERE);
        self.held[rq.index()].queued = false;
        self.queued -= 1;
        if empty {
            if filed {
                self.leave_position(id);
            }
            if self.profile.trees == Trees::Single {
                self.leave_round(env, id);
            }
        }
    }

    /// The oldest request if its time has come; asked once in a slice.
    #[inline]
    pub(super) fn overdue(&mut self, id: QueueId, now: u64) -> Option<RequestId> {
        let queue = &mut self.queues[id.index()];
        if core::mem::replace(&mut queue.fifo_checked, true) {
            return None;
        }
        queue.requests.oldest().filter(|rq| now >= self.links.deadline(*rq))
    }

    // Turns.

    /// The service tree it belongs to now.
    #[inline]
    fn tree_of(trees: Trees, queue: &Queue) -> usize {
        match (trees, queue.class) {
            (Trees::Single, _) => 0,
            (Trees::Workloads, IoClass::Idle) => IDLE_TREE,
            (Trees::Workloads, IoClass::BestEffort) => queue.kind() as usize,
            (Trees::Workloads, IoClass::RealTime) => 3 + queue.kind() as usize,
        }
    }

    /// The service tree a busy queue waits in.
    #[inline]
    pub(super) fn tree_holding(&self, id: QueueId) -> Option<&Tree<QueueId>> {
        self.group_of(id).trees.get(usize::from(self.queue(id).tree))
    }

    /// A queue got its first request.
    fn enter_round(&mut self, env: &mut Env<'_>, id: QueueId, now: u64) {
        self.choose_group(env, id);
        let queue = &mut self.queues[id.index()];
        let group = &mut self.groups[queue.group.index()];
        queue.counted_rt = queue.class == IoClass::RealTime;
        group.busy_rt += u32::from(queue.counted_rt);
        self.busy += 1;
        match self.profile.trees {
            Trees::Single => {
                group.busy += 1;
                if self.active == Some(id) {
                    queue.tree = ON_TURN;
                } else {
                    self.place(id, now, Turn::InOrder);
                }
            }
            // The group counts a queue only once it is in; see `slice_offset`.
            Trees::Workloads => {
                self.place(id, now, Turn::InOrder);
                self.group_of_mut(id).busy += 1;
            }
        }
        self.settle_group_of(env, id);
    }

    pub(super) fn leave_round(&mut self, env: &mut Env<'_>, id: QueueId) {
        let queue = &mut self.queues[id.index()];
        let group = &mut self.groups[queue.group.index()];
        match group.trees.get_mut(usize::from(queue.tree)) {
            Some(tree) => tree.remove(&mut self.turns, id),
            None if queue.tree == ON_TURN => {}
            None => return,
        }
        queue.tree = NOWHERE;
        let rt = core::mem::take(&mut queue.counted_rt);
        group.busy_rt -= u32::from(rt);
        group.busy -= 1;
        if group.busy == 0 {
            group.workload.forget_saved();
        }
        self.busy -= 1;
        self.settle_group_of(env, id);
    }

    /// Shorter slices come round sooner: the distance grows with the number of other queues.
    #[inline]
    fn slice_offset(derived: &Derived, queue: &Queue, group: &GroupState) -> i64 {
        let longest = derived.slice[1][0] as i64;
        let own = derived.slice[usize::from(queue.sync)][usize::from(queue.level & 7)] as i64;
        (i64::from(group.busy) - 1).saturating_mul(longest - own)
    }

    /// (Re-)file `id` in its service tree.
    pub(super) fn place(&mut self, id: QueueId, now: u64, turn: Turn) {
        let queue = &mut self.queues[id.index()];
        let group = &mut self.groups[queue.group.index()];
        let tree = Cfq::tree_of(self.profile.trees, queue);
        let key = if turn == Turn::InOrder && queue.class != IoClass::Idle {
            let residual = core::mem::take(&mut queue.residual);
            let offset = Cfq::slice_offset(&self.derived, queue, group);
            (now as i64).saturating_add(offset).saturating_sub(residual)
        } else {
            self.key_out_of_order(id, tree, now)
        };
        let key = key.clamp(-TIME_MAX, TIME_MAX);
        let queue = &mut self.queues[id.index()];
        let trees = &mut self.groups[queue.group.index()].trees;
        let rank = if self.profile.trees == Trees::Single { queue.class as i64 } else { 0 };
        let ranked = rank * CLASS_SPAN + key;
        let old = usize::from(queue.tree);
        if let Some(old_tree) = trees.get_mut(old) {
            if old == tree && self.turns.key(id) == ranked {
                return;
            }
            queue.key = key;
            if old == tree && old_tree.rekey(&mut self.turns, id, ranked) {
                return;
            }
            old_tree.remove(&mut self.turns, id);
        }
        trees[tree].insert(&mut self.turns, id, ranked);
        queue.key = key;
        queue.tree = tree as u8;
    }

    /// The time part of the key of `id`, of the idle class or next, in this tree.
    #[cold]
    fn key_out_of_order(&self, id: QueueId, tree: usize, now: u64) -> i64 {
        let tree = &self.group_of(id).trees[tree];
        let time = now as i64;
        if self.queue(id).class == IoClass::Idle {
            let last = tree.last().filter(|last| *last != id);
            last.map_or(time, |last| self.queue(last).key).saturating_add(self.derived.idle_class_delay)
        } else if self.profile.trees == Trees::Single {
            -TIME_MAX
        } else {
            let first = tree.first();
            first.map_or(time, |first| self.queue(first).key).saturating_sub(self.derived.second)
        }
    }

    /// `id` gets the device.
    pub(super) fn activate(&mut self, id: QueueId, now: u64) {
        let queue = self.queue_mut(id);
        queue.slice_end = 0;
        queue.slice_dispatched = 0;
        queue.waiting = false;
        queue.must_dispatch = false;
        queue.must_allocated = false;
        queue.fifo_checked = false;
        queue.slice_new = true;
        self.timer_ns = NEVER;
        self.active = Some(id);
        self.spent = Spent { since: now, begun: now, allocated: 0 };
        self.leave_position(id);
        self.taken_back = self.taken_back.filter(|(queue, _)| *queue == id);
        if self.pair.is_some() {
            self.pair_has(id, now);
        }
        if self.yielded.is_some() {
            self.yield_ends_with_turn_of(id);
        }
    }

    /// The active queue's turn is over.
    pub(super) fn expire(&mut self, env: &mut Env<'_>, now: u64, residual: Residual) {
        let Some(id) = self.active.take() else { return };
        self.timer_ns = NEVER;
        self.active_context = None;
        let merges = self.profile.cooperators == Cooperators::MergeAndSplit;
        let queue = self.queue_mut(id);
        queue.waiting = false;
        queue.wait_busy = false;
        if merges && queue.coop && queue.is_seeky_by_history() {
            queue.split = true;
        }
        if residual == Residual::Keep && !queue.slice_new {
            queue.residual = queue.slice_end as i64 - now as i64;
        }
        self.group_of_mut(id).workload.save(now);
        if env.rounds.in_use() {
            self.charge_group(env, id, now);
        }
        if !self.queue(id).is_busy() {
            self.settle_group_of(env, id);
        } else if self.queue(id).is_empty() {
            self.leave_round(env, id);
        } else if self.is_misplaced(env, id) {
            self.leave_round(env, id);
            self.enter_round(env, id, now);
            self.update_position(env.requests, id);
        } else {
            self.place(id, now, Turn::InOrder);
            self.settle_group_of(env, id);
            self.update_position(env.requests, id);
        }
        if self.queue(id).shared != NOWHERE {
            self.reap(env, id, now);
        }
    }

    /// The slice of the active queue begins: its first request completed.
    pub(super) fn begin_slice(&mut self, env: &Env<'_>, id: QueueId, now: u64) {
        let queue = self.queue(id);
        let full = self.derived.slice[usize::from(queue.sync)][usize::from(queue.level & 7)];
        let slice = match self.profile.trees {
            Trees::Single => full,
            Trees::Workloads => self.adapted_slice(env, id, full),
        };
        let slice = slice.min(self.longest_turn(env, id));
        let end = if self.taken_back.is_some() { self.end_of_slice(id, now + slice) } else { now + slice };
        (self.spent.begun, self.spent.allocated) = (now, end.saturating_sub(now));
        let queue = self.queue_mut(id);
        queue.slice_new = false;
        queue.slice_end = end;
    }

    /// Async requests a queue of `level` may send in a slice while others wait.
    pub(super) fn async_requests_max(&self, level: u8) -> u64 {
        2 * self.settings.slice_async_rq * (8 - u64::from(level))
    }
}

/// The place of the async queue for `ioprio` among a group's shared queues.
#[inline]
pub(super) const fn async_index(ioprio: IoPrio) -> usize {
    match ioprio.class() {
        IoClass::RealTime => ioprio.level() as usize,
        IoClass::BestEffort => 8 + ioprio.level() as usize,
        IoClass::Idle => 16,
    }
}

/// Slices by kind (async, sync) and level: a fifth of the base more or less per level away from 4, in whole ticks.
pub(super) fn slices(units: Units, async_ns: u64, sync_ns: u64) -> [[u64; 8]; 2] {
    [async_ns, sync_ns].map(|base_ns| {
        let base = units.round_up(base_ns);
        core::array::from_fn(|level| base + base / 5 * 4 - base / 5 * level as u64)
    })
}
