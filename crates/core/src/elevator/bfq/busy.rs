//! A queue becomes busy or idle, and a request leaves its queue: what is counted, and which parts have to know.

use super::inject::Probe;
use super::queue::{Queue, QueueId};
use super::raise::Raise;
use super::{Bfq, Expiry};
use crate::collections::Id;
use crate::elevator::{Dispatch, Env};
use crate::request::RequestId;

impl Bfq {
    pub(super) fn busy_total(&self) -> u32 {
        self.busy.iter().sum()
    }

    // ---- coming and going ----

    /// `id` has something to do.
    pub(super) fn become_busy(&mut self, env: &mut Env<'_>, id: QueueId, budget: u64, waited: bool) {
        self.refresh_weight(id);
        self.hierarchy.activate(self.entity(id), budget, waited);
        self.waiting.push_front(&mut self.waiting_links, id);
        self.queue_mut(id).busy = true;
        self.count(id, true);
        let group = self.queue(id).group;
        self.groups[group.index()].busy += 1;
        if !core::mem::replace(&mut self.queue_mut(id).pending, true) {
            self.count_level(id, true);
            self.groups[group.index()].pending += 1;
            self.pending_groups += u32::from(self.groups[group.index()].pending == 1);
        }
        self.file_position(env, id);
        self.tell_busy(env, group);
    }

    /// `id`, which the hierarchy has let go, has nothing to do any more.
    pub(super) fn become_idle(&mut self, env: &mut Env<'_>, id: QueueId) {
        self.count(id, false);
        self.queue_mut(id).busy = false;
        let group = self.queue(id).group;
        self.groups[group.index()].busy -= 1;
        self.rest(env.now, id);
        self.file_position(env, id);
        self.tell_busy(env, group);
    }

    /// `id` may have nothing queued and nothing in the device.
    pub(super) fn rest(&mut self, now: u64, id: QueueId) {
        let Queue { busy, dispatched, pending, group, .. } = *self.queue(id);
        if busy || dispatched > 0 {
            return;
        }
        if pending {
            self.count_level(id, false);
        }
        let queue = self.queue_mut(id);
        (queue.idle_since_ns, queue.pending) = (Some(now), false);
        if pending {
            self.groups[group.index()].pending -= 1;
            self.pending_groups -= u32::from(self.groups[group.index()].pending == 0);
        }
    }

    /// `id`, which is not in service, lost its last request.
    pub(super) fn run_dry(&mut self, env: &mut Env<'_>, id: QueueId) {
        self.hierarchy.deactivate(self.entity(id));
        self.waiting.remove(&mut self.waiting_links, id);
        self.queue_mut(id).blameless = false;
        self.become_idle(env, id);
    }

    fn count(&mut self, id: QueueId, busy: bool) {
        let Queue { raise: Raise { factor, .. }, ioprio, .. } = *self.queue(id);
        let class = &mut self.busy[ioprio.class() as usize];
        *class = if busy { *class + 1 } else { *class - 1 };
        if factor > 1 {
            self.raised = if busy { self.raised + 1 } else { self.raised - 1 };
        }
    }

    /// Queues with requests in the device count for their level, too.
    fn count_level(&mut self, id: QueueId, pending: bool) {
        let Queue { raise: Raise { factor, .. }, ioprio, .. } = *self.queue(id);
        if factor == 1 {
            let level = &mut self.levels[usize::from(ioprio.level())];
            *level = if pending { *level + 1 } else { *level - 1 };
        }
    }

    /// Change what `id` is counted by.
    pub(super) fn recount(&mut self, id: QueueId, change: impl FnOnce(&mut Queue)) {
        let Queue { busy, pending, .. } = *self.queue(id);
        if busy {
            self.count(id, false);
        }
        if pending {
            self.count_level(id, false);
        }
        change(self.queue_mut(id));
        if busy {
            self.count(id, true);
        }
        if pending {
            self.count_level(id, true);
        }
        self.refresh_weight(id);
    }

    pub(super) fn change_raise(&mut self, id: QueueId, change: impl FnOnce(&mut Raise)) {
        self.recount(id, |queue| change(&mut queue.raise));
    }

    /// The weight `id` competes with from its next turn on.
    pub(super) fn refresh_weight(&mut self, id: QueueId) {
        let queue = self.queue(id);
        let (class, factor) = (queue.class(), queue.raise.factor);
        let weight = queue.base_weight() * factor;
        self.hierarchy.set_weight(self.entity(id), class, weight, factor);
    }

    // ---- requests leave ----

    /// `rq` of `id` goes to the device.
    pub(super) fn send(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId) {
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
    pub(super) fn take(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId) {
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
    pub(super) fn forget_request(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let id = self.held[rq.index()].owner;
        self.unlink(env, id, rq);
        self.hierarchy.gave_request(self.entity(id));
        self.settle_context(env, rq);
        if self.queue(id).is_empty() && self.in_service != Some(id) {
            self.run_dry(env, id);
        }
        self.reap(id);
    }

    /// One request less of a context.
    pub(super) fn settle_context(&mut self, env: &Env<'_>, rq: RequestId) {
        let state = &mut self.contexts[env.requests[rq].context.index()];
        state.outstanding = state.outstanding.saturating_sub(1);
    }

    /// No request now: until when?
    pub(super) fn wait(&self, env: &mut Env<'_>) -> Dispatch {
        let (Some(id), Some(until)) = (self.in_service, self.timer_ns) else { return Dispatch::Empty };
        if env.rounds.in_use() {
            env.rounds.wait_for(self.queue(id).group, env.now, until);
        }
        Dispatch::Idle { until }
    }

    /// A request of the queue in service is done: wait for the next one, or end the turn.
    pub(super) fn completed_in_service(&mut self, env: &mut Env<'_>, id: QueueId) {
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

    /// The request that was measured is done.
    pub(super) fn end_probe(&mut self, now: u64, id: QueueId, is_done: bool) {
        self.probed = None;
        let Probe { since_ns, injected, .. } = core::mem::take(&mut self.probe);
        let Some(since_ns) = since_ns.filter(|_| is_done) else { return };
        let (in_driver, most) = (self.in_driver, self.depth.peak.max(self.in_driver));
        self.queue_mut(id).limit.measured(now, now.saturating_sub(since_ns), injected, in_driver, most);
    }
}
