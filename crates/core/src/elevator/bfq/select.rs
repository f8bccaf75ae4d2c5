//! The decision: which queue is served, or whether the device is kept for one; and what the end of a turn changes.

use super::budget::Turn;
use super::queue::QueueId;
use super::{Bfq, Expiry, budget};
use crate::collections::Id;
use crate::elevator::Env;

/// What becomes of the queue in service.
enum Verdict {
    /// This queue sends its next request: the one in service, or another one while the device idles for it.
    Serve(QueueId),
    /// No queue sends: the elevator idles for the one in service.
    Wait,
    /// Its turn is over.
    Over(Expiry),
}

impl Bfq {
    /// The queue to send from; `None`: wait for a request, a completion or the end of the wait.
    pub(super) fn select(&mut self, env: &mut Env<'_>) -> Option<QueueId> {
        // A queue that was preempted while it was waited for is chosen empty, and leaves then. Each preemption makes one at most.
        for _ in 0..=self.queues.len() {
            let id = match self.in_service {
                Some(id) => id,
                None => self.choose(env)?,
            };
            match self.judge(env, id) {
                Verdict::Serve(id) => return Some(id),
                Verdict::Wait => return None,
                Verdict::Over(why) => self.expire(env, why),
            }
        }
        debug_assert!(false, "more empty queues than queues");
        None
    }

    /// How it goes on with `id`, the queue in service.
    fn judge(&mut self, env: &Env<'_>, id: QueueId) -> Verdict {
        let is_empty = self.queue(id).is_empty();
        if self.is_out_of_time_and_blame(id, env.now) && !(is_empty && self.is_better_idle(env, id)) {
            return Verdict::Over(Expiry::Timeout);
        }
        if !is_empty {
            let left = self.hierarchy.budget_left(self.entity(id));
            if self.charge_of_next(env, id) > left {
                return Verdict::Over(Expiry::Exhausted);
            }
            self.timer_ns = None;
            return Verdict::Serve(id);
        }
        let waits = self.timer_ns.is_some();
        if waits || (self.queue(id).dispatched > 0 && self.is_better_idle(env, id)) {
            return self.filler(env, id).map_or(Verdict::Wait, Verdict::Serve);
        }
        Verdict::Over(Expiry::NoMoreRequests)
    }

    pub(super) fn is_out_of_time(&self, id: QueueId, now: u64) -> bool {
        self.queue(id).timeout_ns <= now
    }

    /// Out of time, and not while a good part of its budget is used and it is waited for: then it ends by itself soon.
    fn is_out_of_time_and_blame(&self, id: QueueId, now: u64) -> bool {
        let entity = self.entity(id);
        let unused = self.hierarchy.budget_left(entity) >= self.hierarchy.budget(entity) / 3;
        self.is_out_of_time(id, now) && (self.timer_ns.is_none() || unused)
    }

    /// The queue that has the turn, which begins.
    fn choose(&mut self, env: &mut Env<'_>) -> Option<QueueId> {
        let now = env.now;
        let entity = self.hierarchy.choose(now)?;
        let id = QueueId::from_index(self.hierarchy.queue_of(entity)?);
        self.waiting.remove(&mut self.waiting_links, id);
        self.in_service = Some(id);
        self.timer_ns = None;
        self.assigned = (7 * self.assigned + 256) / 8;
        self.refresh_max_budget();
        let timeout_ns = self.settings.timeout_sync_ns;
        let queue = self.queue_mut(id);
        if queue.timeout_ns > 0 && queue.timeout_ns < now && queue.raise.is_soft_rt() {
            let waited_since = queue.timeout_ns;
            queue.raise.waited_since(waited_since, now);
        }
        let factor = if queue.raise.is_soft_rt() { 1 } else { u64::from(queue.raise.factor) };
        queue.fifo_checked = false;
        queue.began_ns = now;
        queue.timeout_ns = now.saturating_add(timeout_ns.saturating_mul(factor));
        self.position_in_service = queue.habits.position;
        // What is charged may have changed since the budget was given.
        let least = self.charge_of_next(env, id) + self.hierarchy.service(entity);
        if self.hierarchy.budget(entity) < least {
            self.hierarchy.set_budget(entity, least);
        }
        Some(id)
    }

    /// The turn of the queue in service is over, and this is why.
    pub(super) fn expire(&mut self, env: &mut Env<'_>, why: Expiry) {
        let Some(id) = self.in_service.take() else { return };
        let (now, entity) = (env.now, self.entity(id));
        let waited = self.timer_ns.take();
        let ended_ns = if why == Expiry::TooIdle { self.wait_since_ns } else { now };
        let turn = Turn {
            why,
            budget: self.hierarchy.budget(entity),
            left: self.hierarchy.budget_left(entity),
            service: self.hierarchy.service(entity),
            in_device: self.queue(id).dispatched > 0,
        };
        debug_assert!(waited.is_none() || self.queue(id).is_empty() || why != Expiry::TooIdle);

        self.charge_time(env, id, turn, ended_ns);
        self.end_raise_bookkeeping(now, id);
        self.learn_budget(id, turn);
        let left = self.hierarchy.budget_left(entity);
        let queue = self.queue_mut(id);
        queue.split |= queue.coop && queue.habits.is_seeky();
        self.tell_turn_over(env, id);
        let queue = self.queue(id);
        let keeps_place =
            why == Expiry::Preempted && queue.sync && queue.users > 0 && self.idling_is_fair(id);
        if queue.is_empty() && !keeps_place {
            self.hierarchy.end_service(entity, None);
            let blameless = !matches!(why, Expiry::Timeout | Expiry::Exhausted);
            let queue = self.queue_mut(id);
            (queue.blameless, queue.left) = (blameless, if blameless { left } else { 0 });
            self.become_idle(env, id);
            self.reap(id);
        } else {
            let next = self.queue(id).max_budget.max(self.charge_of_next(env, id));
            self.refresh_weight(id);
            self.hierarchy.end_service(entity, Some(next));
            self.waiting.push_front(&mut self.waiting_links, id);
        }
    }

    /// A queue that was slow, or did little in all its time, pays for the time.
    fn charge_time(&mut self, env: &Env<'_>, id: QueueId, turn: Turn, ended_ns: u64) {
        let queue = self.queue(id);
        let lasted_ns = ended_ns.saturating_sub(queue.began_ns);
        let (slow, counts_ns) =
            budget::is_slow(turn, lasted_ns, queue.habits.is_seeky(), env.device.rotational, self.max_budget);
        let slow = slow && queue.sync;
        if !queue.raise.is_raised() && budget::pays_for_time(turn, slow) {
            let price = budget::price_of_time(counts_ns, self.max_budget);
            self.hierarchy.charge_more(self.entity(id), price);
        }
    }

    /// Note the state that weight raising depends on.
    fn end_raise_bookkeeping(&mut self, now: u64, id: QueueId) {
        let slice_idle_ns = self.settings.slice_idle_ns;
        let low_latency = self.settings.low_latency != 0;
        let queue = self.queue_mut(id);
        if !low_latency {
            return;
        }
        if !queue.raise.is_raised() {
            queue.raise.since_ns = now;
        }
        if queue.is_empty() {
            if queue.dispatched == 0 {
                queue.raise.backlog_ended(now, slice_idle_ns);
            } else {
                queue.raise.soft_rt_unknown = true;
            }
        }
    }

    /// The budget of the queue's next turn.
    fn learn_budget(&mut self, id: QueueId, turn: Turn) {
        let max = self.max_budget;
        let is_bounded = self.assigned >= budget::ASSIGNED_ENOUGH && self.settings.max_budget == 0;
        let queue = self.queue_mut(id);
        queue.max_budget = if !queue.sync {
            max
        } else if queue.raise.is_raised() {
            2 * budget::least(max)
        } else {
            budget::after_turn(queue.max_budget.max(budget::least(max)), turn, max, is_bounded)
        };
    }
}
