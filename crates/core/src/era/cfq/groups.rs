//! Groups: each has a round of its own (trees, busy queues, workload); between the turns of queues the tree of groups
//! ([`crate::group`]) chooses the group whose round continues. Without groups all queues are in the root's round.
//!
//! * **What a turn costs** its group: what the ledger billed it ([`crate::group::ledger`]). With `fairness=0`, as in the letters,
//!   the time of the slice, at most what was allotted; a turn whose slice never began, or ended in the tick it began, costs its
//!   time from the start, so that seeks and failed starts are paid for; an async turn of a group without sync queues costs all
//!   that was allotted, since a drive's cache takes writes faster than it can keep up with.
//! * **Being waited for**: the last queue of a group that runs dry is waited for up to `group_idle` even if it is not worth a
//!   wait by itself, and once more if that is at the end of its slice (*wait busy*), since its group would lose its place.
//! * **Whose queue**: a context has a sync queue in its own group. What a context sends for another group, sync requests of
//!   the overflow context in a group, and async ones go to queues a group's contexts share; the root's async queues are always
//!   there, those of other groups come and go with their requests. A queue stays in its group: a context that moves leaves it
//!   behind, to be served to the end.
//! * **`group_isolation`** (2.6.34): when off, as in that kernel, queues of the sync-noidle kind take turns in the root, so
//!   that it need not idle on every group's seekers; they have no protection then.
//!
//! Sources: the IO controller's version 10 for the 2.6.31 profile; Linux 2.6.34 and 2.6.36 `block/cfq-iosched.c` for the
//! others; rules in our own words. The place of a group that comes back is not theirs (the end of the line) but that of
//! [`crate::group`]'s tree; so are the rules of preemption across groups ([`super::preempt`]).

use super::queue::{ASYNC_QUEUES, Kind, NOWHERE, Queue, QueueId, TREES};
use super::workload::Workload;
use super::{Cfq, Trees};
use crate::collections::{Id, Tree};
use crate::context::{IoClass, IoPrio};
use crate::elevator::Env;
use crate::group::GroupId;

/// Place of the sync queue for what is sent by contexts of other groups, behind the async queues.
pub(super) const STRANGERS: usize = ASYNC_QUEUES;

/// One group's round.
#[derive(Clone, Copy)]
pub(super) struct GroupState {
    pub(super) trees: [Tree<QueueId>; TREES],
    /// By level: queues by the sector of their next request ([`super::coop`]).
    pub(super) positions: [Tree<QueueId>; 8],
    /// Queues that take part.
    pub(super) busy: u32,
    pub(super) busy_rt: u32,
    pub(super) workload: Workload,
    /// Queues its contexts share, while they have requests; not used for the root's async ones.
    shared: [Option<QueueId>; ASYNC_QUEUES + 1],
}

impl GroupState {
    pub(super) const NEW: GroupState = GroupState {
        trees: [Tree::new(); TREES],
        positions: [Tree::new(); 8],
        busy: 0,
        busy_rt: 0,
        workload: Workload::NONE,
        shared: [None; ASYNC_QUEUES + 1],
    };

    /// Any queue that waits in it.
    pub(super) fn first(&self) -> Option<QueueId> {
        self.trees.iter().find_map(Tree::first)
    }

    /// Has it sync queues that wait?
    fn has_sync(&self) -> bool {
        [Kind::SyncNoIdle, Kind::Sync].iter().any(|kind| {
            let kind = *kind as usize;
            !self.trees[kind].is_empty() || !self.trees[3 + kind].is_empty()
        })
    }
}

/// What the active queue's turn has cost, in clock units.
#[derive(Clone, Copy, Default)]
pub(super) struct Spent {
    /// When it became active, and when its slice began.
    pub(super) since: u64,
    pub(super) begun: u64,
    /// Length of the slice it was given.
    pub(super) allocated: u64,
}

impl Cfq {
    #[inline]
    pub(super) fn group_of(&self, id: QueueId) -> &GroupState {
        &self.groups[self.queue(id).group.index()]
    }

    #[inline]
    pub(super) fn group_of_mut(&mut self, id: QueueId) -> &mut GroupState {
        &mut self.groups[self.queues[id.index()].group.index()]
    }

    // Taking turns.

    /// Let the tree know whether `group` has something to do: a busy queue, or the active one.
    #[inline]
    pub(super) fn settle(&self, env: &mut Env<'_>, group: GroupId) {
        if env.rounds.in_use() {
            let active = self.active.is_some_and(|id| self.queue(id).group == group);
            env.rounds.set_busy(group, active || self.groups[group.index()].busy > 0);
        }
    }

    /// The same of the group that `id` takes turns in. (A look into a table is never left out: it counts strays.)
    #[inline]
    pub(super) fn settle_group_of(&self, env: &mut Env<'_>, id: QueueId) {
        if env.rounds.in_use() {
            self.settle(env, self.queue(id).group);
        }
    }

    /// Whose round goes on.
    #[cold]
    pub(super) fn pick_group(&self, env: &mut Env<'_>) -> Option<GroupId> {
        // The root may have been busy before there were groups.
        self.settle(env, GroupId::ROOT);
        env.rounds.next(env.now)
    }

    /// The active queue's turn is over: its group pays what was billed, or, where overruns are forgiven, for its slice.
    #[cold]
    pub(super) fn charge_group(&self, env: &mut Env<'_>, id: QueueId, now: u64) {
        let (queue, spent) = (self.queue(id), &self.spent);
        // From the last answer to another group, or the turn's beginning.
        let used = now.saturating_sub(spent.since);
        let lasted = now.saturating_sub(spent.begun);
        let time = if queue.slice_new || lasted == 0 {
            used.max(self.derived.tick)
        } else if !queue.sync && !self.sync_waits_in_group_of(id) {
            spent.allocated
        } else {
            lasted.min(spent.allocated)
        };
        env.rounds.turn_over(queue.group, queue.home, time.saturating_mul(self.units.unit_ns.get()), env.now);
    }

    /// The longest slice of a queue whose group shares the device with others: a part of a round by weight, as under every
    /// elevator, so that a light group's turns are short. No limit in history's mode.
    #[inline]
    pub(super) fn longest_turn(&self, env: &Env<'_>, id: QueueId) -> u64 {
        if !env.rounds.in_use() {
            return u64::MAX;
        }
        env.rounds.longest_turn_ns(self.queue(id).group).map_or(u64::MAX, |ns| self.units.round_up(ns))
    }

    /// Would another group miss its latency goal?
    #[inline]
    pub(super) fn is_claimed(&self, env: &mut Env<'_>, id: QueueId) -> bool {
        env.rounds.in_use() && env.rounds.is_claimed_from(self.queue(id).group, env.now)
    }

    /// Will what its group has in the device take the rest of the slice of `id`, the active queue, which has more to send?
    #[inline]
    pub(super) fn is_sold_out(&self, env: &Env<'_>, id: QueueId, now: u64) -> bool {
        if !env.rounds.in_use() {
            return false;
        }
        let queue = self.queue(id);
        if queue.dispatched == 0 || queue.is_empty() {
            return false;
        }
        let left =
            if queue.slice_new { self.longest_turn(env, id) } else { queue.slice_end.saturating_sub(now) };
        env.rounds.is_sold_out(queue.group, left.saturating_mul(self.units.unit_ns.get()))
    }

    /// A request of another queue is done: until now the device may have been busy with that.
    #[cold]
    pub(super) fn completed_for_other(&mut self, id: QueueId, now: u64) {
        let group = self.queue(id).group;
        let active = self.active.map(|active| self.queue(active));
        if active.is_some_and(|active| active.group != group && active.slice_new) {
            self.spent.since = now;
        }
    }

    /// [`Trees::Single`] does not file sync apart: there the group's busy queues beside `id` are asked for.
    fn sync_waits_in_group_of(&self, id: QueueId) -> bool {
        match self.profile.trees {
            Trees::Workloads => self.group_of(id).has_sync(),
            Trees::Single => self.shares_group(id),
        }
    }

    /// Are there busy queues in `id`'s group beside it?
    #[inline]
    pub(super) fn shares_group(&self, id: QueueId) -> bool {
        self.group_of(id).busy > u32::from(self.queue(id).is_busy())
    }

    // Waiting for a group.

    /// `group_idle` in clock units.
    pub(super) fn group_idle(&self, env: &Env<'_>) -> u64 {
        self.units.round_up(env.rounds.idle_ns())
    }

    /// Is `id`, which has nothing queued, the last queue of its group, others wait, and it will be back soon?
    #[inline]
    pub(super) fn group_is_worth_waiting(&self, env: &Env<'_>, id: QueueId) -> bool {
        env.rounds.in_use() && self.profile.group_idle && self.last_of_group_is_worth_waiting(env, id)
    }

    fn last_of_group_is_worth_waiting(&self, env: &Env<'_>, id: QueueId) -> bool {
        let queue = self.queue(id);
        let idle = self.group_idle(env);
        let others = self.busy > u32::from(queue.is_busy());
        if idle == 0 || !others || self.shares_group(id) || !queue.sync || queue.class == IoClass::Idle {
            return false;
        }
        let think = self.active_context.and_then(|context| self.contexts[context.index()].think.mean());
        think.is_none_or(|mean| mean <= idle)
    }

    /// Does the active queue, which is empty and has requests in the device, keep it until they are done?
    #[inline]
    pub(super) fn keeps_device(&self, env: &Env<'_>, id: QueueId) -> bool {
        self.holds_on(env, id) || self.group_is_worth_waiting(env, id)
    }

    /// How long a group that ran dry at the end of a slice is waited for.
    pub(super) fn busy_wait(&self, env: &Env<'_>) -> u64 {
        match self.profile.trees {
            Trees::Workloads => self.derived.slice_idle,
            Trees::Single => self.group_idle(env),
        }
    }

    /// The part of a round that is due to `group`.
    #[inline]
    pub(super) fn target_latency_of(&self, env: &Env<'_>, group: GroupId) -> u64 {
        let target = self.derived.target_latency;
        if !env.rounds.in_use() {
            return target;
        }
        // At most 300 ms in ns (2^29) times 2^20.
        ((target * env.rounds.share(group)) >> 20).max(1)
    }

    // Whose queue.

    /// The shared queue number `index` of `group`, if there is one now.
    #[inline]
    pub(super) fn find_shared(&self, group: GroupId, index: usize) -> Option<QueueId> {
        if group == GroupId::ROOT && index < ASYNC_QUEUES {
            return Some(self.root_async_queue(index));
        }
        self.groups[group.index()].shared[index]
    }

    /// The shared queue number `index` of `group`.
    #[inline]
    pub(super) fn shared_queue(&mut self, group: GroupId, index: usize) -> QueueId {
        self.find_shared(group, index).unwrap_or_else(|| self.new_shared_queue(group, index))
    }

    #[cold]
    fn new_shared_queue(&mut self, group: GroupId, index: usize) -> QueueId {
        // There is a queue for each request and two more: the active one, and the one that is left for the next.
        let Some(id) = self.free.pop() else { return QueueId::OVERFLOW };
        let mut queue = match index {
            STRANGERS => Queue::new_sync(),
            16 => Queue::new_async(IoPrio::Idle),
            level @ 8.. => Queue::new_async(IoPrio::BestEffort(level as u8 - 8)),
            level => Queue::new_async(IoPrio::RealTime(level as u8)),
        };
        (queue.home, queue.group, queue.shared) = (group, group, index as u8);
        *self.queue_mut(id) = queue;
        if let Some(place) = self.groups[group.index()].shared.get_mut(index) {
            *place = Some(id);
        }
        id
    }

    /// A shared queue is about to be freed.
    pub(super) fn forget_shared(&mut self, id: QueueId) {
        let queue = self.queue(id);
        let (home, index) = (queue.home, usize::from(queue.shared));
        debug_assert!(queue.shared != NOWHERE);
        if let Some(place) = self.groups[home.index()].shared.get_mut(index) {
            *place = None;
        }
    }

    // In whose round.

    /// The group in whose round a queue takes turns.
    fn round_of(&self, env: &Env<'_>, id: QueueId) -> GroupId {
        let queue = self.queue(id);
        let sent_to_root = self.profile.trees == Trees::Workloads
            && env.rounds.in_use()
            && self.settings.group_isolation == 0
            && queue.kind() == Kind::SyncNoIdle;
        if sent_to_root { GroupId::ROOT } else { queue.home }
    }

    /// Is a queue that is filed, or about to be, in the wrong round?
    #[inline]
    pub(super) fn is_misplaced(&self, env: &Env<'_>, id: QueueId) -> bool {
        self.queue(id).home != GroupId::ROOT && self.queue(id).group != self.round_of(env, id)
    }

    /// `id`, which is in no tree, is about to enter a round.
    #[inline]
    pub(super) fn choose_group(&mut self, env: &Env<'_>, id: QueueId) {
        if self.is_misplaced(env, id) && self.active != Some(id) {
            let group = self.round_of(env, id);
            self.leave_position(id);
            self.queue_mut(id).group = group;
        }
    }
}
