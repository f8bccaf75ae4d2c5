//! What the queue above calls, in the order a request meets it.

use super::{Bfq, DESCRIPTOR, Expiry, Held, settings};
use crate::collections::Id;
use crate::context::{ContextId, IoClass};
use crate::elevator::{Dispatch, Elevator, Env, Grouping, Growth, Placement};
use crate::group::GroupId;
use crate::request::{Bio, RequestId, Status};
use crate::tunable::Tunable;

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
        self.hierarchy.gave_request(self.entity(id));
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

    fn tags_for(&mut self, env: &mut Env<'_>, bio: &Bio, tags: u32) -> u32 {
        self.enter(env);
        self.tags_of(env, bio, tags)
    }

    fn shares_tags(&self) -> bool {
        true
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
