//! One queue of a policy for each group. The policy is handed the queue a hook is about, and knows of no other.

use super::{Dispatch, Elevator, Env, Grouping, Growth, MayQueue, Placement, first_occupied};
use crate::collections::{Id, Table};
use crate::context::ContextId;
use crate::group::GroupId;
use crate::request::{Bio, RequestId};
use crate::tunable::Tunable;

/// An elevator for one queue. Every request [`insert`](Policy::insert)ed leaves exactly once: by
/// [`dispatch`](Policy::dispatch), by [`drain`](Policy::drain), by being [`absorbed`](Policy::absorbed) or
/// [`remove`](Policy::remove)d, or over [`Env::dispatch`].
///
/// What is the same for all queues (settings, links of lists and trees, what is known of tasks) is in the policy itself, what
/// one queue holds in [`Policy::Queue`], which should be small: there are as many as there can be groups.
///
/// No hook may allocate, panic, recurse or loop without a bound; O(log n) at worst.
pub trait Policy: Send {
    /// One queue.
    type Queue: Clone + Send;

    /// The name it is selected by.
    fn name(&self) -> &'static str;

    /// An empty queue that has learnt nothing.
    fn new_queue(&self) -> Self::Queue;

    /// A request came in.
    fn insert(&mut self, queue: &mut Self::Queue, env: &mut Env<'_>, rq: RequestId);

    /// Give up one request, wait, or say there is none. A returned request is no longer the policy's.
    fn dispatch(&mut self, queue: &mut Self::Queue, env: &mut Env<'_>) -> Dispatch;

    /// Give up one request without regard to the policy (elevator switch, 2.6-era barrier); `None` once empty.
    fn drain(&mut self, queue: &mut Self::Queue, env: &mut Env<'_>) -> Option<RequestId>;

    /// Does it hold no request?
    fn is_empty(&self, queue: &Self::Queue) -> bool;

    /// How dispatched requests are filed.
    fn placement(&self) -> Placement {
        Placement::Sorted
    }

    /// Does it want to hear of [`issued`](Policy::issued), [`requeued`](Policy::requeued) and
    /// [`completed`](Policy::completed)? Asked once; the answer holds for its life.
    fn watches_device(&self) -> bool {
        true
    }

    /// The device serves another queue from now on, until this queue is asked again.
    fn paused(&mut self, _queue: &mut Self::Queue) {}

    /// A request it dispatched goes to the device now (the kernel's *activate*).
    fn issued(&mut self, _queue: &mut Self::Queue, _env: &mut Env<'_>, _rq: RequestId) {}

    /// A request it dispatched came back from the device unserved and will be issued again (*deactivate*).
    fn requeued(&mut self, _queue: &mut Self::Queue, _env: &mut Env<'_>, _rq: RequestId) {}

    /// A request it dispatched is done, or failed ([`crate::request::Status`]). `env.device` no longer counts it.
    fn completed(&mut self, _queue: &mut Self::Queue, _env: &mut Env<'_>, _rq: RequestId) {}

    /// A request starting exactly where `bio` ends, to be merged in front of.
    fn find_front(&self, _queue: &Self::Queue, _env: &Env<'_>, _bio: &Bio) -> Option<RequestId> {
        None
    }

    /// May `bio` be merged into `rq`? Asked after the queue's own rules agreed.
    fn allow_merge(&mut self, _queue: &mut Self::Queue, _env: &Env<'_>, _rq: RequestId, _bio: &Bio) -> bool {
        true
    }

    /// `rq` grew by a bio or a neighbour; `env.requests[rq]` is already the larger one.
    fn grew(&mut self, _queue: &mut Self::Queue, _env: &mut Env<'_>, _rq: RequestId, _growth: Growth) {}

    /// `gone`, which starts where `rq` ended, was merged into `rq`, of the same queue: forget `gone`. `rq` should take over
    /// the earlier deadline of the two.
    fn absorbed(&mut self, queue: &mut Self::Queue, env: &mut Env<'_>, rq: RequestId, gone: RequestId);

    /// `rq`, which is queued, is cancelled: forget it.
    fn remove(&mut self, queue: &mut Self::Queue, env: &mut Env<'_>, rq: RequestId);

    /// The queued request before `rq` in the order of sectors.
    fn former(&self, _queue: &Self::Queue, _rq: RequestId) -> Option<RequestId> {
        None
    }

    /// The queued request behind `rq` in the order of sectors.
    fn latter(&self, _queue: &Self::Queue, _rq: RequestId) -> Option<RequestId> {
        None
    }

    /// May `context` take a request slot for sync or async I/O?
    fn may_queue(
        &mut self,
        _queue: &mut Self::Queue,
        _env: &mut Env<'_>,
        _context: ContextId,
        _sync: bool,
    ) -> MayQueue {
        MayQueue::May
    }

    /// For a queue with tags ([`crate::queue::Admission::Tags`]): `bio` may take one while fewer than so many of the `tags` are
    /// taken (the kernel's *limit_depth*).
    fn tags_for(&mut self, _env: &mut Env<'_>, _bio: &Bio, tags: u32) -> u32 {
        tags
    }

    /// The least that [`tags_for`](Policy::tags_for) may ever answer (the kernel's *min_shallow_depth*).
    fn tags_min(&self, _tags: u32) -> u32 {
        1
    }

    /// `context`'s task is gone; its requests may still be queued. `env.contexts` still knows it.
    fn context_exit(&mut self, _queue: &mut Self::Queue, _env: &mut Env<'_>, _context: ContextId) {}

    /// Whose next request it is idling for, after [`dispatch`](Policy::dispatch) answered [`Dispatch::Idle`].
    fn idling_for(&self, _queue: &Self::Queue) -> Option<ContextId> {
        None
    }

    /// The tunables, in the order to show them.
    fn tunables(&self) -> &'static [Tunable];

    /// Where the value of the tunable `name` is stored (see [`crate::tunable::Unit`] for how).
    fn setting(&mut self, name: &str) -> Option<&mut u64>;

    /// Called after a setting was changed through [`set`](super::set).
    fn settings_changed(&mut self) {}
}

/// A policy with a queue for each group. Which queue a request is in is its payer's to say.
#[derive(Debug)]
pub struct PerGroup<P: Policy> {
    policy: P,
    queues: Table<P::Queue>,
    /// Where draining goes on.
    drained: usize,
    /// Whose queue was asked last.
    asked: GroupId,
    grouping: Grouping,
}

impl<P: Policy> PerGroup<P> {
    /// Queues for `groups` groups ([`super::Config::groups_max`]), at least the root's.
    pub fn new(policy: P, groups: usize) -> PerGroup<P> {
        let queues = Table::new(policy.new_queue(), groups.max(1));
        PerGroup { policy, queues, drained: 0, asked: GroupId::ROOT, grouping: Grouping::Queues }
    }

    /// One queue for all I/O: of groups it knows nothing.
    pub fn blind(policy: P) -> PerGroup<P> {
        PerGroup { grouping: Grouping::Blind, ..PerGroup::new(policy, 1) }
    }

    /// Where the queue of `group` is.
    #[inline]
    fn at(&self, group: GroupId) -> usize {
        group.index().min(self.queues.len() - 1)
    }

    /// The policy, and the queue of `group` if it has one of its own.
    #[inline]
    pub(super) fn queue_mut(&mut self, group: GroupId) -> Option<(&mut P, &mut P::Queue)> {
        Some((&mut self.policy, self.queues.get_mut(group.index())?))
    }

    /// The queue that `rq` is in.
    #[inline]
    fn of(&mut self, env: &Env<'_>, rq: RequestId) -> (&mut P, &mut P::Queue) {
        // Where there is only the root, the request need not be looked at.
        let queue = match self.queues.len() {
            1 => &mut self.queues[0],
            _ => &mut self.queues[env.requests[rq].payer.index()],
        };
        (&mut self.policy, queue)
    }

    fn queue_of(&self, env: &Env<'_>, rq: RequestId) -> &P::Queue {
        &self.queues[self.at(env.requests[rq].payer)]
    }

    /// The queue of a context's group.
    fn of_context(&mut self, env: &Env<'_>, context: ContextId) -> (&mut P, &mut P::Queue) {
        let group = env.rounds.known(env.contexts[context].group);
        let at = self.at(group);
        (&mut self.policy, &mut self.queues[at])
    }
}

impl<P: Policy> Elevator for PerGroup<P> {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    #[inline]
    fn insert(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let (policy, queue) = self.of(env, rq);
        policy.insert(queue, env, rq);
    }

    #[inline]
    fn dispatch(&mut self, env: &mut Env<'_>, group: GroupId) -> Dispatch {
        self.asked = group;
        let at = self.at(group);
        self.policy.dispatch(&mut self.queues[at], env)
    }

    fn remove(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let (policy, queue) = self.of(env, rq);
        policy.remove(queue, env, rq);
    }

    fn drain(&mut self, env: &mut Env<'_>) -> Option<RequestId> {
        let PerGroup { policy, queues, drained, .. } = self;
        // A policy may have something to do at the end of a drain: ask the first one when all are empty.
        let at = first_occupied(drained, queues.len(), |at| policy.is_empty(&queues[at])).unwrap_or(0);
        policy.drain(&mut queues[at], env)
    }

    fn is_empty(&self) -> bool {
        self.queues.iter().all(|queue| self.policy.is_empty(queue))
    }

    fn placement(&self) -> Placement {
        self.policy.placement()
    }

    fn grouping(&self) -> Grouping {
        self.grouping
    }

    fn queue_started(&mut self, group: GroupId) {
        // Everybody's is nobody's to start or pause.
        if self.grouping == Grouping::Queues {
            let at = self.at(group);
            self.queues[at] = self.policy.new_queue();
        }
    }

    fn queue_paused(&mut self, group: GroupId) {
        if self.grouping == Grouping::Queues {
            let at = self.at(group);
            self.policy.paused(&mut self.queues[at]);
        }
    }

    fn watches_device(&self) -> bool {
        self.policy.watches_device()
    }

    fn issued(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let (policy, queue) = self.of(env, rq);
        policy.issued(queue, env, rq);
    }

    fn requeued(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let (policy, queue) = self.of(env, rq);
        policy.requeued(queue, env, rq);
    }

    fn completed(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let (policy, queue) = self.of(env, rq);
        policy.completed(queue, env, rq);
    }

    fn find_front(&self, env: &Env<'_>, bio: &Bio) -> Option<RequestId> {
        self.policy.find_front(&self.queues[self.at(env.group_of(bio))], env, bio)
    }

    fn allow_merge(&mut self, env: &Env<'_>, rq: RequestId, bio: &Bio) -> bool {
        let (policy, queue) = self.of(env, rq);
        policy.allow_merge(queue, env, rq, bio)
    }

    fn grew(&mut self, env: &mut Env<'_>, rq: RequestId, growth: Growth) {
        let (policy, queue) = self.of(env, rq);
        policy.grew(queue, env, rq, growth);
    }

    fn absorbed(&mut self, env: &mut Env<'_>, rq: RequestId, gone: RequestId) {
        let (policy, queue) = self.of(env, gone);
        policy.absorbed(queue, env, rq, gone);
    }

    fn former(&self, env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        self.policy.former(self.queue_of(env, rq), rq)
    }

    fn latter(&self, env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        self.policy.latter(self.queue_of(env, rq), rq)
    }

    fn may_queue(&mut self, env: &mut Env<'_>, context: ContextId, sync: bool) -> MayQueue {
        let (policy, queue) = self.of_context(env, context);
        policy.may_queue(queue, env, context, sync)
    }

    fn tags_for(&mut self, env: &mut Env<'_>, bio: &Bio, tags: u32) -> u32 {
        self.policy.tags_for(env, bio, tags)
    }

    fn tags_min(&self, tags: u32) -> u32 {
        self.policy.tags_min(tags)
    }

    fn context_exit(&mut self, env: &mut Env<'_>, context: ContextId) {
        let (policy, queue) = self.of_context(env, context);
        policy.context_exit(queue, env, context);
    }

    fn idling_for(&self) -> Option<ContextId> {
        self.policy.idling_for(&self.queues[self.at(self.asked)])
    }

    fn tunables(&self) -> &'static [Tunable] {
        self.policy.tunables()
    }

    fn setting(&mut self, name: &str) -> Option<&mut u64> {
        self.policy.setting(name)
    }

    fn settings_changed(&mut self) {
        self.policy.settings_changed();
    }
}
