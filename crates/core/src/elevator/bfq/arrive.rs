//! A request arrives: what it says of its queue, what that is raised to, and whether the queue in service makes way.

use super::queue::{Queue, QueueId};
use super::raise::{self, Kind, Raise};
use super::{Bfq, Expiry, budget};
use crate::SECOND;
use crate::collections::Id;
use crate::elevator::Env;
use crate::request::{Request, RequestId};

/// Since a split the raise of a queue is left alone for so long.
const SPLIT_NS: u64 = 2 * SECOND;

impl Bfq {
    /// `rq` joins queue `id`.
    pub(super) fn arrive(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId) {
        let requests = env.requests;
        let request = &requests[rq];
        self.observe(env, id, request);
        if request.is_sync() && self.contexts[request.context.index()].outstanding <= 1 {
            self.prepare_injection(env.now, id);
        }
        self.file(env, id, rq, request);

        if !self.queue(id).busy {
            self.come_back(env, id);
        } else {
            let (now, interactive_ns) = (env.now, self.interactive_ns(env));
            let queue = self.queue(id);
            if self.settings.low_latency != 0 && !queue.sync && !queue.raise.is_raised() {
                self.change_raise(id, |raise| _ = raise.grew_async(now, interactive_ns));
            }
            self.next_changed(id, env);
        }

        let queue = self.queue_mut(id);
        queue.habits.position = request.end();
        (queue.is_new, queue.context) = (false, request.context);
        if self.in_service == Some(id) && self.timer_ns.is_some() {
            self.timer_ns = None;
            if self.is_out_of_time(id, env.now) {
                self.expire(env, Expiry::Timeout);
            }
        }
    }

    /// Into the queue by sector and by arrival; the oldest is due a while after it came.
    fn file(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId, request: &Request) {
        let due = env.now.saturating_add(self.settings.fifo_expire_ns[usize::from(request.is_sync())]);
        let queue = &mut self.queues[id.index()];
        queue.requests.insert(&mut self.links, rq, request.sector, due);
        self.queued += 1;
        self.hierarchy.took_request(self.entity(id));
        self.offer(env, id, rq);
    }

    /// Think time, jumps and idle time of the queue that gets `request`.
    fn observe(&mut self, env: &Env<'_>, id: QueueId, request: &Request) {
        let (now, slice_idle_ns) = (env.now, self.settings.slice_idle_ns);
        let alive = env.contexts[request.context].alive;
        let interactive_ns = self.interactive_ns(env);
        let queue = self.queue_mut(id);
        let was_away = !queue.busy && queue.dispatched == 0;
        if was_away {
            queue.habits.thought(now, slice_idle_ns);
        }
        queue.habits.judge_io_bound(now, was_away);
        if queue.sync && queue.class() != crate::context::IoClass::Idle && slice_idle_ns > 0 {
            let flips = queue.habits.judge_think_time(now, slice_idle_ns, alive);
            let short = queue.habits.has_short_think;
            if flips && queue.limit.follows_think_time(now, short) {
                queue.limit.reset(now, short);
            }
        }
        queue.habits.saw(request, env.device.rotational);
        if queue.raise.is_soft_rt() && queue.habits.is_totally_seeky() {
            self.change_raise(id, |raise| raise.fall_back(now, interactive_ns));
        }
    }

    /// `id` has something to do again: a budget, perhaps a raise, perhaps the device at once.
    fn come_back(&mut self, env: &mut Env<'_>, id: QueueId) {
        let now = env.now;
        let interactive_ns = self.interactive_ns(env);
        self.join_burst(now, id);
        let charge = self.charge_of_next(env, id);
        let kind = self.kind_of(now, id);
        let raised_by_rules = self.settings.low_latency != 0;
        let queue = self.queue_mut(id);
        let in_time = now.saturating_sub(queue.habits.last_done_ns);
        let deserves =
            queue.raise.is_raised() || queue.sync && !queue.coop && (kind.interactive || kind.soft_rt);
        if queue.idle_since_ns.is_some_and(|since| now > since + raise::BURST_FORGOTTEN_NS) {
            queue.in_large_burst = false;
        }
        let waited = queue.blameless && queue.left > 0;
        let mut new_budget =
            if waited { queue.left.min(queue.max_budget) } else { queue.max_budget.max(charge) };
        new_budget = new_budget.max(charge);
        queue.blameless = false;
        let was_split_lately = queue.habits.split_ns.is_some_and(|split| now <= split + SPLIT_NS);
        if raised_by_rules && !was_split_lately {
            let was_raised = queue.raise.is_raised();
            self.change_raise(id, |raise| raise.came_back(now, kind, deserves, interactive_ns));
            if !was_raised && self.queue(id).raise.is_raised() {
                new_budget = new_budget.min(2 * budget::least(self.max_budget)).max(charge);
            }
        }
        let queue = self.queue_mut(id);
        (queue.raise.backlog_since_ns, queue.raise.backlog_service) = (now, 0);
        queue.raise.soft_rt_unknown = false;
        self.become_busy(env, id, new_budget, waited);

        let in_time = in_time <= 3 * self.settings.slice_idle_ns;
        self.preempt(env, id, waited && in_time);
    }

    /// What kind of queue is it that comes back?
    fn kind_of(&self, now: u64, id: QueueId) -> Kind {
        let queue = self.queue(id);
        let default_weight = queue.base_weight() == 40;
        let is_away = queue.dispatched == 0;
        Kind {
            in_burst: queue.in_large_burst,
            interactive: !queue.in_large_burst
                && is_away
                && Raise::was_long_idle(queue.idle_since_ns, now)
                && default_weight,
            soft_rt: !queue.in_large_burst
                && !queue.habits.is_totally_seeky()
                && now > queue.raise.soft_rt_from_ns
                && is_away
                && default_weight,
        }
    }

    /// Does the queue in service make way for `id`, which just came back? `in_time`: soon, to the rest of its budget.
    fn preempt(&mut self, env: &mut Env<'_>, id: QueueId, in_time: bool) {
        let Some(serving) = self.in_service.filter(|serving| *serving != id) else { return };
        let (queue, other) = (self.queue(id), self.queue(serving));
        let (weight, other_weight) = self.hierarchy.rival_weights(self.entity(id), self.entity(serving));
        let wants = in_time && queue.raise.factor >= other.raise.factor
            || queue.class() < other.class()
            || queue.class() == other.class() && weight > other_weight
            || !self.is_better_idle(env, serving);
        if wants && self.hierarchy.root_would_switch() {
            self.expire(env, Expiry::Preempted);
        }
    }

    /// A sync queue that sends for the first time may belong to a burst.
    fn join_burst(&mut self, now: u64, id: QueueId) {
        let Queue { is_new, sync, group, in_large_burst, .. } = *self.queue(id);
        let may_begin = self.burst.size > 0 || self.busy_total() == 0;
        if !is_new || !sync || in_large_burst || !may_begin {
            return;
        }
        let burst = &mut self.burst;
        let belongs = now <= burst.last_ns + raise::BURST_NS && burst.group == group && burst.size > 0;
        if !belongs {
            (burst.large, burst.size, burst.group) = (false, 0, group);
        }
        burst.last_ns = now;
        if burst.large {
            self.queue_mut(id).in_large_burst = true;
            return;
        }
        burst.members[burst.size] = Some(self.queues[id.index()].seen(id));
        burst.size += 1;
        if burst.size < raise::BURST {
            return;
        }
        burst.large = true;
        let members = burst.members;
        for member in members.into_iter().flatten() {
            let queue = self.queue_mut(member.queue);
            // Its slot may be another's by now.
            queue.in_large_burst |= queue.taken && queue.created_ns == member.created_ns;
        }
    }

    // ---- a queue's next request ----

    /// `rq`, in its place, may be what `id` serves next.
    pub(super) fn offer(&mut self, env: &Env<'_>, id: QueueId, rq: RequestId) {
        let next = self.nearer(env, self.queue(id).next, Some(rq));
        self.queue_mut(id).next = next;
    }

    fn nearer(&self, env: &Env<'_>, a: Option<RequestId>, b: Option<RequestId>) -> Option<RequestId> {
        let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
        let (x, y) = (&env.requests[first], &env.requests[second]);
        let prefers_first = crate::elevator::nearer::prefer(x, y, self.position, self.settings.back_seek());
        Some(if prefers_first { first } else { second })
    }

    /// What `id` serves after `rq`, which it still holds: once a turn the oldest if it is due, else a neighbour.
    pub(super) fn next_after(&mut self, env: &Env<'_>, id: QueueId, rq: RequestId) -> Option<RequestId> {
        let queue = &mut self.queues[id.index()];
        if !core::mem::replace(&mut queue.fifo_checked, true)
            && let Some(oldest) = queue.requests.oldest().filter(|oldest| *oldest != rq)
            && env.now >= self.links.deadline(oldest)
        {
            return Some(oldest);
        }
        let sorted = &queue.requests;
        let ahead = sorted.next(&self.links, rq).or_else(|| sorted.first().filter(|first| *first != rq));
        let behind = sorted.prev(&self.links, rq);
        self.nearer(env, ahead, behind)
    }

    /// The next request of `id` may be another one, or larger: its budget must be enough for it.
    pub(super) fn next_changed(&mut self, id: QueueId, env: &Env<'_>) {
        self.file_position(env, id);
        if self.in_service == Some(id) || !self.queue(id).busy {
            return;
        }
        let entity = self.entity(id);
        let charge = self.charge_of_next(env, id);
        let wanted = self.queue(id).max_budget.max(charge).max(self.hierarchy.service(entity));
        if wanted != self.hierarchy.budget(entity) {
            self.hierarchy.set_budget(entity, wanted);
        }
    }

    /// Sectors that `id`'s next request is charged.
    pub(super) fn charge_of_next(&self, env: &Env<'_>, id: QueueId) -> u64 {
        self.queue(id).next.map_or(0, |next| self.charge_of(env, id, next))
    }

    /// Sectors that `rq` of `id` is charged: writes that no task waits for count threefold, since the device's cache takes them faster
    /// than it writes them, unless the queues' shares are kept anyway.
    pub(super) fn charge_of(&self, env: &Env<'_>, id: QueueId, rq: RequestId) -> u64 {
        let sectors = u64::from(env.requests[rq].sectors);
        let queue = self.queue(id);
        if queue.sync || queue.raise.is_raised() || self.is_asymmetric(Some(id)) {
            sectors
        } else {
            budget::ASYNC_CHARGE * sectors
        }
    }

    /// How long an interactive queue is raised here.
    pub(super) fn interactive_ns(&self, env: &Env<'_>) -> u64 {
        raise::interactive_ns(self.rate.rate, env.device.rotational)
    }
}
