//! Close cooperators: processes that read next to each other share a turn, and (2.6.34) become one queue as long as
//! they stay together.

use super::queue::{NOWHERE, QueueId, Residual};
use super::{Cfq, Cooperators};
use crate::collections::Id;
use crate::context::{ContextId, IoClass};
use crate::elevator::Env;
use crate::request::Requests;

/// Distance at which requests are close, sectors (4 MiB); the 2.6.31 profile takes the process' own mean jump instead
/// once it is known.
const CLOSE: u64 = 8 * 1024;

/// Longest chain of merges (a queue redirected to one that is redirected itself). The kernel has no bound; here a
/// merge that would make a longer one is refused, so that every walk is short.
pub(super) const CHAIN_MAX: u8 = 8;

impl Cfq {
    /// Is `sector` about as near to the head as the active context's own next request would be?
    #[inline]
    pub(super) fn is_close(&self, sector: u64) -> bool {
        let reach = match self.profile.cooperators {
            Cooperators::Switch => {
                let mean = self.active_context.and_then(|c| self.contexts[c.index()].seeks.mean());
                mean.unwrap_or(CLOSE)
            }
            Cooperators::MergeAndSplit => CLOSE,
        };
        sector.abs_diff(self.head) <= reach
    }

    /// The queue of `id`'s level whose next request is nearest to the head, if it is close.
    fn nearest(&self, requests: &Requests, id: QueueId) -> Option<QueueId> {
        let queue = self.queue(id);
        let tree = &self.groups[queue.group.index()].positions[usize::from(queue.level & 7)];
        let ahead = tree.lower_bound(&self.places, self.head);
        let behind = match ahead {
            // Nothing can be nearer than right here.
            Some(ahead) if self.places.key(ahead) == self.head => None,
            Some(ahead) => tree.prev(&self.places, ahead),
            None => tree.last(),
        };
        let distance = |q: QueueId| self.places.key(q).abs_diff(self.head);
        let nearest = match (ahead, behind) {
            (Some(a), Some(b)) if distance(b) < distance(a) => b,
            (a, b) => a.or(b)?,
        };
        // With `group_isolation` off queues of several groups may be in one round; a merged queue would be of one of them.
        let other = self.queue(nearest);
        let may_join = nearest != id && other.home == queue.home;
        let next = other.next.filter(|_| may_join)?;
        self.is_close(requests[next].sector).then_some(nearest)
    }

    /// A queue to serve instead of idling on `id`, which has run dry.
    #[inline]
    pub(super) fn close_cooperator(&self, requests: &Requests, id: QueueId) -> Option<QueueId> {
        match self.profile.cooperators {
            Cooperators::Switch => {
                self.active_context?;
                // A queue served out of turn is not again before it had its own: no ping-pong.
                self.nearest(requests, id).filter(|other| !self.queue(*other).coop)
            }
            Cooperators::MergeAndSplit => {
                let queue = self.queue(id);
                if queue.class == IoClass::Idle
                    || !queue.sync
                    || queue.is_seeky_by_history()
                    || self.group_of(id).busy == 1
                {
                    return None;
                }
                let rt = queue.class == IoClass::RealTime;
                self.nearest(requests, id).filter(|other| {
                    let other = self.queue(*other);
                    other.sync && !other.is_seeky_by_history() && (other.class == IoClass::RealTime) == rt
                })
            }
        }
    }

    /// `other` goes on where `id`, the active queue, stopped.
    pub(super) fn hand_over(&mut self, env: &mut Env<'_>, id: QueueId, other: QueueId, now: u64) {
        match self.profile.cooperators {
            Cooperators::Switch => self.queue_mut(other).coop = true,
            Cooperators::MergeAndSplit => {
                if self.queue(id).merge_into.is_none() {
                    self.plan_merge(id, other);
                }
            }
        }
        self.expire(env, now, Residual::Drop);
        self.activate(other, now);
    }

    /// Redirect the contexts of the queue with fewer of them to the other one; each follows with its next request.
    fn plan_merge(&mut self, id: QueueId, other: QueueId) {
        if self.queue(other).users == 0 {
            return;
        }
        // Not to a queue that is about to go elsewhere itself, but to where it goes; and never in a circle.
        let mut end = other;
        for _ in 0..CHAIN_MAX {
            let Some(next) = self.queue(end).merge_into else { break };
            if next == id {
                return;
            }
            end = next;
        }
        // Contexts may join the overflow queue at any time: they could not be counted in advance.
        if id == QueueId::OVERFLOW || end == QueueId::OVERFLOW {
            return;
        }
        let (mine, theirs) = (self.queue(id).users, self.queue(end).users);
        if mine == 0 || theirs == 0 || end == id || self.queue(end).merge_into.is_some() {
            return;
        }
        let (from, to, moving) = if theirs >= mine { (id, end, mine) } else { (end, id, theirs) };
        let chain = self.queue(from).chain + 1;
        if chain > CHAIN_MAX {
            return;
        }
        self.queue_mut(from).merge_into = Some(to);
        let target = self.queue_mut(to);
        // Counted at once, so that the target outlives the redirection.
        target.users += moving;
        target.chain = target.chain.max(chain);
    }

    /// `context` brings a request and its queue is to be split or merged (or is the overflow queue): the queue it uses
    /// from now on.
    #[cold]
    pub(super) fn settle_shared_queue(
        &mut self,
        env: &mut Env<'_>,
        context: ContextId,
        id: QueueId,
        now: u64,
    ) -> QueueId {
        let shared = self.queue(id).coop && self.queue(id).split;
        if shared && self.queue(id).users == 1 {
            // The last one keeps it.
            self.queue_mut(id).coop = false;
            self.queue_mut(id).split = false;
        } else if (shared || (id == QueueId::OVERFLOW && context != ContextId::OVERFLOW))
            && !self.free.is_empty()
        {
            let own = self.join_new_queue(context, self.queue(id).home);
            self.leave(env, id, now);
            return own;
        }
        let Some(target) = self.queue(id).merge_into else { return id };
        self.contexts[context.index()].queue = Some(target);
        self.queue_mut(target).coop = true;
        self.drop_user(env, id, now);
        target
    }

    // The position trees: queues by the sector of their next request, one tree a level.

    /// (Re-)file `id` by its next request. Two queues at one sector: the second stays out.
    #[inline]
    pub(super) fn update_position(&mut self, requests: &Requests, id: QueueId) {
        let queue = &mut self.queues[id.index()];
        let Some(next) = queue.next.filter(|_| queue.class != IoClass::Idle) else {
            return self.leave_position(id);
        };
        let sector = requests[next].sector;
        if queue.position == queue.level && self.places.key(id) == sector {
            return;
        }
        let positions = &mut self.groups[queue.group.index()].positions;
        if let Some(tree) = positions.get_mut(usize::from(queue.position)) {
            tree.remove(&mut self.places, id);
        }
        let entered = positions[usize::from(queue.level & 7)].insert_unique(&mut self.places, id, sector);
        queue.position = if entered.is_ok() { queue.level } else { NOWHERE };
    }

    #[inline]
    pub(super) fn leave_position(&mut self, id: QueueId) {
        let queue = &mut self.queues[id.index()];
        if queue.position == NOWHERE {
            return;
        }
        let positions = &mut self.groups[queue.group.index()].positions;
        if let Some(tree) = positions.get_mut(usize::from(queue.position)) {
            tree.remove(&mut self.places, id);
            queue.position = NOWHERE;
        }
    }

    /// For `env` of the trait's hooks: is there a cooperator for `id` now?
    #[inline]
    pub(super) fn has_cooperator(&self, env: &Env<'_>, id: QueueId) -> bool {
        self.close_cooperator(env.requests, id).is_some()
    }
}
