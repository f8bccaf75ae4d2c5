//! Queues that become one: tasks that read side by side (*cooperators*) share a queue as long as they do, and queues created
//! together may be one for good.

use super::Bfq;
use super::queue::{QueueId, Saved, Seen};
use super::raise::BURST_NS;
use crate::MS;
use crate::collections::Id;
use crate::context::{ContextId, IoClass, IoPrio};
use crate::elevator::Env;
use crate::group::GroupId;
use crate::request::Request;

/// Requests so far apart are close, sectors.
const CLOSE: u64 = 8192;
/// So long after its first service a backlog is not merged any more.
const LATE_NS: u64 = 100 * MS;
/// A queue must be so old to be joined for good, if it is not joined at once.
const MATURE_NS: u64 = 600 * MS;

/// The queue created last, and what one that may join it must be like.
#[derive(Clone, Copy)]
pub(super) struct Created {
    pub(super) seen: Seen,
    pub(super) group: GroupId,
    pub(super) ioprio: IoPrio,
}

impl Bfq {
    /// Is it still the queue it was?
    fn is_there(&self, seen: Seen) -> bool {
        let queue = self.queue(seen.queue);
        queue.taken && queue.created_ns == seen.created_ns && queue.users > 0
    }

    /// A queue created just now for a context like it, which `context` is to use from the start: where waiting gains nothing it
    /// does not matter which context sends, only that the elevator does not change queues for every request.
    pub(super) fn early_companion(&self, env: &Env<'_>, context: ContextId) -> Option<QueueId> {
        let last = self.last_created.filter(|last| self.suits(env, last, context))?;
        self.is_queueing_flash(env).then_some(last.seen.queue)
    }

    fn suits(&self, env: &Env<'_>, last: &Created, context: ContextId) -> bool {
        let tenant = &env.contexts[context];
        self.is_there(last.seen)
            && last.group == tenant.group
            && last.ioprio == tenant.ioprio
            && env.now < last.seen.created_ns + BURST_NS
    }

    /// `context` uses `id` from now on, which may have been created for it.
    pub(super) fn remember_created(&mut self, env: &Env<'_>, id: QueueId, context: ContextId) {
        let tenant = &env.contexts[context];
        let state = &mut self.contexts[context.index()];
        if let Some(last) = self.last_created {
            if last.seen.queue == id && last.seen.created_ns == self.queues[id.index()].created_ns {
                state.stable = true;
                return;
            }
            let fresh = env.now <= last.seen.created_ns + MATURE_NS;
            if fresh && last.group == tenant.group && last.ioprio == tenant.ioprio && self.is_there(last.seen)
            {
                if env.now < last.seen.created_ns + BURST_NS {
                    self.contexts[context.index()].may_join = Some(last.seen);
                }
                return;
            }
        }
        let seen = self.queue(id).seen(id);
        self.last_created = Some(Created { seen, group: tenant.group, ioprio: tenant.ioprio });
    }

    /// The queue that `request`'s context uses from now on: `id`, or one it goes along with.
    pub(super) fn join_cooperator(&mut self, env: &mut Env<'_>, request: &Request, id: QueueId) -> QueueId {
        let context = request.context;
        if let Some(target) = self.mature_companion(env, context, id) {
            self.contexts[context.index()].stable = true;
            return self.join(env, context, id, target);
        }
        if self.contexts[context.index()].stable || self.is_queueing_flash(env) {
            return id;
        }
        match self.cooperator(env, request, id) {
            Some(target) => self.join(env, context, id, target),
            None => id,
        }
    }

    /// The queue `context` may join for good, once its own has shown what it is; asked once.
    fn mature_companion(&mut self, env: &Env<'_>, context: ContextId, id: QueueId) -> Option<QueueId> {
        let seen = self.contexts[context.index()].may_join?;
        let is_mature = |since: u64| env.now > since + MATURE_NS;
        let queue = self.queue(id);
        if !is_mature(queue.created_ns) || queue.habits.split_ns.is_some_and(|split| !is_mature(split)) {
            return None;
        }
        self.contexts[context.index()].may_join = None;
        let may = self.is_there(seen) && seen.queue != id && !self.idling_is_faster(env, id);
        may.then_some(seen.queue)
    }

    /// A queue that reads where `request` does: the one in service, or the one whose next request is nearest.
    fn cooperator(&self, env: &Env<'_>, request: &Request, id: QueueId) -> Option<QueueId> {
        if self.busy_total() <= 1 || self.is_too_late(env.now, id) {
            return None;
        }
        let is_close = |sector: u64| sector.abs_diff(request.sector) <= CLOSE;
        if let Some(serving) = self.in_service
            && serving != id
            && is_close(self.position_in_service)
            && self.may_cooperate(env.now, id, serving)
        {
            return Some(serving);
        }
        let tree = &self.groups[self.queue(id).group.index()].positions;
        let around = tree.around(&self.places, request.sector);
        let near = |found: &QueueId| *found != id && is_close(self.places.key(*found));
        let found = around
            .into_iter()
            .flatten()
            .filter(near)
            .min_by_key(|found| self.places.key(*found).abs_diff(request.sector))?;
        self.may_cooperate(env.now, id, found).then_some(found)
    }

    fn is_too_late(&self, now: u64, id: QueueId) -> bool {
        let queue = self.queue(id);
        queue.raise.backlog_service > 0 && now > queue.first_served_ns + LATE_NS
    }

    fn may_cooperate(&self, now: u64, id: QueueId, other: QueueId) -> bool {
        let (one, two) = (self.queue(id), self.queue(other));
        one.group == two.group
            && two.users > 0
            && one.sync
            && two.sync
            && one.class() == two.class()
            && one.class() != IoClass::Idle
            && !one.habits.is_seeky()
            && !two.habits.is_seeky()
            && !self.is_too_late(now, other)
    }

    /// `context` leaves `id` for `target`, and takes along what it would have if it came back.
    fn join(&mut self, env: &mut Env<'_>, context: ContextId, id: QueueId, target: QueueId) -> QueueId {
        let from = *self.queue(id);
        if self.contexts[context.index()].saved.is_none() {
            self.contexts[context.index()].saved = Some(Saved {
                habits: from.habits,
                raise: from.raise,
                limit: from.limit,
                in_large_burst: from.in_large_burst,
            });
        }
        self.contexts[context.index()].queue = Some(target);
        let (now, stable) = (env.now, self.contexts[context.index()].stable);
        self.change_raise(target, |raise| raise.inherit(&from.raise));
        if from.users == 1 && from.raise.is_raised() {
            self.change_raise(id, |raise| raise.end(now));
        }
        let queue = self.queue_mut(target);
        queue.users += 1;
        queue.coop |= !stable;
        queue.habits.is_io_bound |= from.habits.is_io_bound;
        self.leave(env, id);
        target
    }

    /// A queue that turned out to be shared by tasks that go different ways is left by all but one.
    pub(super) fn split_if_due(&mut self, env: &mut Env<'_>, context: ContextId, id: QueueId) -> QueueId {
        let queue = self.queue_mut(id);
        if !queue.split || self.contexts[context.index()].stable {
            return id;
        }
        let queue = self.queue_mut(id);
        if queue.users == 1 {
            (queue.coop, queue.split) = (false, false);
            self.contexts[context.index()].saved = None;
            return id;
        }
        let tenant = env.contexts[context];
        let own = self.new_queue(env.now, tenant.group, tenant.ioprio, true);
        let saved = self.contexts[context.index()].saved.take();
        let queue = self.queue_mut(own);
        (queue.users, queue.is_new) = (1, false);
        if let Some(Saved { habits, raise, limit, in_large_burst }) = saved {
            queue.habits = habits;
            queue.limit = limit;
            queue.in_large_burst = in_large_burst;
            self.change_raise(own, |now| *now = raise);
        }
        self.queue_mut(own).habits.split_ns = Some(env.now);
        self.contexts[context.index()].queue = Some(own);
        self.leave(env, id);
        own
    }

    // ---- the tree of positions ----

    /// (Re-)file `id` by its next request. Of two at one sector the second stays out.
    pub(super) fn file_position(&mut self, env: &Env<'_>, id: QueueId) {
        let queue = self.queue(id);
        let next = queue.next.filter(|_| queue.sync && queue.class() != IoClass::Idle);
        let sector = next.map(|next| env.requests[next].sector);
        if queue.filed && sector == Some(self.places.key(id)) {
            return;
        }
        let group = queue.group;
        let tree = &mut self.groups[group.index()].positions;
        let queue = &mut self.queues[id.index()];
        if core::mem::take(&mut queue.filed) {
            tree.remove(&mut self.places, id);
        }
        if let Some(sector) = sector {
            queue.filed = tree.insert_unique(&mut self.places, id, sector).is_ok();
        }
    }
}
