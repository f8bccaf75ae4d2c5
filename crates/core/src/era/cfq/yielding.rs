//! Yielding: a task that sleeps until another one's I/O is done says so, and the rest of its turn goes to that one.
//!
//! A process that calls `fsync` writes its data, then sleeps until the journal thread has committed. Its queue has run
//! dry and is idled on although its next request cannot come before the journal's are done. So the file system names
//! the one it waits for ([`crate::elevator::Elevator::yield_to`]), and `select`, instead of idling,
//!
//! * serves a queue of the target if it has requests: its sync queue, else the async one it shares (the body of a
//!   commit is async in 2.6.33-2.6.36);
//! * else keeps up the wait that is on, but for the target as well: what comes first, the target's request or the caller's,
//!   goes at once;
//! * ends the wait if the target is not known by name.
//!
//! A target whose request preempts the caller's queue by itself (ext4 of 6.12 writes the body of a commit as sync metadata) has
//! been given the device as well.
//!
//! While the target works in the caller's place, the commit record (sync) takes the device from the body's async queue
//! as any sync request does. And while the target is idled on after it, the caller's next request takes the device
//! *back*: the wait would be for a task that only works for the caller.
//!
//! A yield is ignored when
//!
//! * it is not the caller's turn, or the caller itself has something queued or in flight;
//! * others would lose by it: the caller shares its queue, or it is idled on for the sake of the whole sync-noidle
//!   tree, of which another queue (not the target's) has requests or had one done within `slice_idle`, and the
//!   tree's mean think time fits into the wait ([`NoIdleTree`]).
//!
//! Caller and target together have no more right than one queue: once another queue has the device, the target's metadata interrupt
//! that after it has had as much time as these two had at a stretch ([`Pair`]), and then they do. (CFQ lets metadata interrupt at once. The
//! body of a commit, which follows the caller's last data, would cut each turn of the others short.)
//!
//! It is good for one turn: void with the end of the caller's slice, any new request of the caller, the exit of either,
//! and another queue's turn. It does not cross classes: a target of a lower class than a waiting queue gets
//! nothing, and the caller only gives up the rest of its slice. Nor does it cross groups: a target in another group gets
//! the device when its group's turn comes.
//!
//! A sequential reader beside still has its slices: when it is served between the body and the record, the record waits
//! until its slice is over.
//!
//! Source: J. Moyer's series "ext3/4: enhance fsync performance when using CFQ", fourth version, 2010: its goals and
//! guards, as far as its letters state them. The code of the series was not found; what is not in the letters (the way
//! back to the caller, what counts as another's window, classes, that the caller gets no credit for the time it gave)
//! is ours. The explicit yield by the task that waits is described in US patent 8,949,835 (Red Hat, which has published
//! a patent promise for open-source software).

use super::Cfq;
use super::queue::{Kind, QueueId, Residual};
use crate::collections::Id;
use crate::context::{ContextId, Contexts, IoClass};
use crate::elevator::Env;
use crate::elevator::think::ThinkTime;
use crate::group::GroupId;

/// A yield that was accepted.
#[derive(Clone, Copy)]
pub(super) struct Yield {
    from: ContextId,
    /// The caller's queue, active when it asked.
    queue: QueueId,
    to: Option<ContextId>,
    /// The target has been given the device. Until the caller's slice would have ended.
    lent: Option<u64>,
}

/// A caller and its target, which get and lose the device as one.
#[derive(Clone, Copy)]
pub(super) struct Pair {
    caller: QueueId,
    pub(super) target: ContextId,
    /// When they got the device, and, since another queue has it, when that was.
    since_ns: u64,
    lost_ns: Option<u64>,
}

impl Pair {
    /// Have the others had as much as these two had at a stretch?
    pub(super) fn is_due(&self, now: u64) -> bool {
        self.lost_ns.is_none_or(|lost| now.saturating_sub(lost) >= lost.saturating_sub(self.since_ns))
    }
}

/// Completions remembered: enough to find one that is neither the caller's nor the target's.
const RECENT: usize = 3;

/// The sync-noidle tree taken as one process: how long it thinks between two requests, and whose it served last.
#[derive(Clone, Copy)]
pub(super) struct NoIdleTree {
    think: ThinkTime,
    /// The queues with the last completions, newest first, no queue twice.
    recent: [Option<(QueueId, u64)>; RECENT],
}

impl NoIdleTree {
    pub(super) const NEW: NoIdleTree = NoIdleTree { think: ThinkTime::NONE, recent: [None; RECENT] };

    fn arrived(&mut self, now: u64, time_max: u64) {
        let Some((_, last)) = self.recent[0] else { return };
        self.think.add(now.saturating_sub(last).min(time_max));
    }

    fn completed(&mut self, id: QueueId, now: u64) {
        let known = self.recent.iter().position(|r| r.is_some_and(|(queue, _)| queue == id));
        let last = known.unwrap_or(RECENT - 1);
        self.recent.copy_within(..last, 1);
        self.recent[0] = Some((id, now));
    }

    /// When a request of a queue other than these was done last.
    fn last_beside(&self, not: [Option<QueueId>; 2]) -> Option<u64> {
        self.recent.iter().flatten().find(|(id, _)| !not.contains(&Some(*id))).map(|(_, at)| *at)
    }
}

/// What a yield makes of an empty active queue.
pub(super) enum Way {
    /// Nothing: it is waited for or not as ever.
    None,
    /// Its turn is over; it goes to this queue or, `None`, to the queue that is due.
    Over(Option<QueueId>),
}

impl Cfq {
    /// `from` waits for `to`.
    #[cold]
    pub(super) fn accept_yield(&mut self, env: &Env<'_>, from: ContextId, to: Option<ContextId>, now: u64) {
        if to == Some(from) || to.is_some_and(|to| !env.contexts[to].alive) {
            return;
        }
        let Some(id) = self.find_own_queue(env.contexts, from, true) else { return };
        if env.contexts[from].requests > 0 {
            return;
        }
        if let Some(target) = to {
            self.remember_pair(id, target, now);
        }
        if self.active != Some(id) {
            return;
        }
        // A shared queue is idled on for the others too.
        if self.queue(id).users > 1 || id == QueueId::OVERFLOW {
            return;
        }
        if self.takes_shared_window(env.contexts, id, to, now) {
            return;
        }
        self.yielded = Some(Yield { from, queue: id, to, lent: None });
    }

    /// Is `id` idled on for other queues of the sync-noidle tree than itself and the target's, and not in vain?
    fn takes_shared_window(&self, contexts: &Contexts, id: QueueId, to: Option<ContextId>, now: u64) -> bool {
        let queue = self.queue(id);
        if queue.kind() != Kind::SyncNoIdle {
            return false;
        }
        let target = to.and_then(|to| self.find_own_queue(contexts, to, true));
        let beside = target.is_some_and(|t| {
            let target = self.queue(t);
            (target.group, target.tree) == (queue.group, queue.tree)
        });
        if self.tree_holding(id).is_some_and(|tree| tree.len() > 1 + usize::from(beside)) {
            return true;
        }
        let window = self.derived.slice_idle.min(queue.slice_end.saturating_sub(now));
        let last = self.noidle_tree.last_beside([Some(id), target]);
        last.is_some_and(|at| now.saturating_sub(at) <= self.derived.slice_idle)
            && self.noidle_tree.think.mean().is_none_or(|mean| mean <= window)
    }

    /// `id`, the active queue, is empty: does it make way?
    #[cold]
    pub(super) fn make_way(&mut self, env: &mut Env<'_>, id: QueueId, now: u64) -> Way {
        let Some(given) = self.yielded.filter(|y| y.queue == id && y.lent.is_none()) else {
            return Way::None;
        };
        let Some(to) = given.to else { return Way::Over(None) };
        let Some(heir) = self.queue_of_target(env.contexts, to) else { return Way::None };
        self.yielded = Some(Yield { lent: Some(self.queue(id).slice_end), ..given });
        self.expire(env, now, Residual::Drop);
        let group = self.queue(id).group;
        let best = self.best_class_waiting(group);
        Way::Over(Some(heir).filter(|heir| {
            let heir = self.queue(*heir);
            heir.class == best && heir.group == group
        }))
    }

    /// The queue in which `to` has something queued. Async queues are shared: it counts if `to` has requests, and none in the
    /// device from its sync queue.
    fn queue_of_target(&self, contexts: &Contexts, to: ContextId) -> Option<QueueId> {
        let sync = self.find_own_queue(contexts, to, true);
        if sync.is_some_and(|id| !self.queue(id).is_empty()) {
            return sync;
        }
        if contexts[to].requests == 0 || sync.is_some_and(|id| self.queue(id).dispatched > 0) {
            return None;
        }
        self.find_own_queue(contexts, to, false).filter(|id| !self.queue(*id).is_empty())
    }

    /// `id` takes the device from the active queue. If the caller of a yield waits for its task, that is the turn it gave up, and no
    /// less so because nothing had to be given away (the body of a commit may be sync metadata, which preempts).
    pub(super) fn lends_by_preemption(&mut self, id: QueueId) -> Residual {
        let active = self.active;
        let Some(given) = self.yielded.filter(|y| y.lent.is_none() && active == Some(y.queue)) else {
            return Residual::Keep;
        };
        if given.to.and_then(|to| self.contexts[to.index()].queue) != Some(id) {
            return Residual::Keep;
        }
        self.yielded = Some(Yield { lent: Some(self.queue(given.queue).slice_end), ..given });
        Residual::Drop
    }

    fn remember_pair(&mut self, caller: QueueId, target: ContextId, now: u64) {
        if self.pair.is_none_or(|pair| (pair.caller, pair.target) != (caller, target)) {
            let lost_ns = (self.active != Some(caller)).then_some(now);
            self.pair = Some(Pair { caller, target, since_ns: now, lost_ns });
        }
    }

    /// `id` gets the device: one of the pair, or another.
    #[cold]
    pub(super) fn pair_has(&mut self, id: QueueId, now: u64) {
        let Some(pair) = &mut self.pair else { return };
        let is_member = id == pair.caller || self.contexts[pair.target.index()].queue == Some(id);
        match (is_member, pair.lost_ns) {
            (true, Some(_)) => (pair.since_ns, pair.lost_ns) = (now, None),
            (false, None) => pair.lost_ns = Some(now),
            _ => {}
        }
    }

    /// The target's queue, if its metadata may interrupt the active queue now, and could not when they came.
    #[cold]
    pub(super) fn pair_interrupts(&self, active: QueueId, now: u64) -> Option<QueueId> {
        let pair = self.pair.filter(|pair| pair.lost_ns.is_some() && pair.is_due(now))?;
        let id = self.contexts[pair.target.index()].queue?;
        let (old, new) = (self.queue(active), self.queue(id));
        let interrupts =
            new.meta_queued > 0 && old.meta_queued == 0 && (new.group, new.class) == (old.group, old.class);
        (interrupts && id != active).then_some(id)
    }

    fn best_class_waiting(&self, group: GroupId) -> IoClass {
        [IoClass::RealTime, IoClass::BestEffort]
            .into_iter()
            .find(|class| self.busy_of(group, *class) > 0)
            .unwrap_or(IoClass::Idle)
    }

    /// A request of `context` came into `id`. Says whether it is the caller of a yield that takes the device back.
    #[cold]
    pub(super) fn heed_arrival(&mut self, id: QueueId, context: ContextId, now: u64) -> bool {
        if self.queue(id).kind() == Kind::SyncNoIdle {
            self.noidle_tree.arrived(now, 2 * self.derived.slice_idle);
        }
        let Some(given) = self.yielded.filter(|y| y.from == context) else { return false };
        self.yielded = None;
        let idled_on = self.active.is_some_and(|id| self.queue(id).waiting && self.queue(id).is_empty());
        let until = given.lent.filter(|until| now < *until && idled_on && self.queue(id).sync);
        self.taken_back = until.map(|until| (id, until));
        until.is_some()
    }

    /// The end of the slice of `id`, which would begin now and end then: one that took the device back goes on with the slice it lent.
    /// Else an fsync after the other would be one turn without an end.
    pub(super) fn end_of_slice(&mut self, id: QueueId, end: u64) -> u64 {
        match self.taken_back.take() {
            Some((queue, until)) if queue == id => end.min(until),
            _ => end,
        }
    }

    /// A sync request of `id` is done.
    #[cold]
    pub(super) fn heed_completion(&mut self, id: QueueId, now: u64) {
        if self.queue(id).kind() == Kind::SyncNoIdle {
            self.noidle_tree.completed(id, now);
        }
    }

    /// `id` gets the device: any yield is over unless it is the target's.
    #[cold]
    pub(super) fn yield_ends_with_turn_of(&mut self, id: QueueId) {
        self.yielded = self.yielded.filter(|given| {
            let sync = given.to.and_then(|to| self.contexts[to.index()].queue);
            given.lent.is_some() && (sync == Some(id) || !self.queue(id).sync)
        });
    }

    /// `context` is gone: no context waits for it, and it waits for none.
    pub(super) fn forget_yield(&mut self, context: ContextId) {
        self.yielded = self.yielded.filter(|given| given.from != context && given.to != Some(context));
        self.pair = self.pair.filter(|pair| pair.target != context);
    }
}
