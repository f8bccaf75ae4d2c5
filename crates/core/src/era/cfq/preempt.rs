//! When a request's arrival takes the device away from the active queue.

use super::queue::{Kind, Queue, QueueId, Turn};
use super::{Cfq, Trees};
use crate::context::IoClass;
use crate::elevator::Env;
use crate::request::{Flags, Request};

impl Cfq {
    /// May `rq`, new in `id`, which is not active, take over at once?
    #[inline]
    pub(super) fn should_preempt(&self, env: &Env<'_>, id: QueueId, rq: &Request, now: u64) -> bool {
        let Some(active) = self.active else { return false };
        if self.queue(active).group != self.queue(id).group {
            return self.preempts_group(env, active, id, rq, now);
        }
        match self.profile.trees {
            Trees::Single => self.preempts_in_single_tree(active, id, rq, now),
            Trees::Workloads => self.preempts_among_workloads(active, id, rq, now),
        }
    }

    /// Linux 2.6.31: the first line that applies decides.
    fn preempts_in_single_tree(&self, active: QueueId, id: QueueId, rq: &Request, now: u64) -> bool {
        let (old, new) = (self.queue(active), self.queue(id));
        if old.slice_used(now) {
            return true;
        }
        if new.class == IoClass::Idle {
            return false;
        }
        if old.class == IoClass::Idle {
            return true;
        }
        if rq.is_sync() && !old.sync {
            return true;
        }
        if self.is_pressing_metadata(old, rq, now) {
            return true;
        }
        if new.class == IoClass::RealTime && old.class != IoClass::RealTime {
            return true;
        }
        old.waiting && self.active_context.is_some() && self.is_close(rq.sector)
    }

    /// Linux 2.6.34: the first line that applies decides.
    fn preempts_among_workloads(&self, active: QueueId, id: QueueId, rq: &Request, now: u64) -> bool {
        let (old, new) = (self.queue(active), self.queue(id));
        if new.class == IoClass::Idle {
            return false;
        }
        if old.class == IoClass::Idle {
            return true;
        }
        if old.class == IoClass::RealTime && new.class != IoClass::RealTime {
            return false;
        }
        if rq.is_sync() && !old.sync {
            return true;
        }
        if old.slice_used(now) {
            return true;
        }
        if self.group_of(active).workload.kind() == Kind::SyncNoIdle
            && new.kind() == Kind::SyncNoIdle
            && self.tree_holding(id).is_some_and(|tree| tree.len() == 2)
            && old.is_empty()
        {
            return true;
        }
        if self.is_pressing_metadata(old, rq, now) {
            return true;
        }
        if new.class == IoClass::RealTime && old.class != IoClass::RealTime {
            return true;
        }
        old.waiting && self.active_context.is_some() && self.is_close(rq.sector)
    }

    /// Across groups a better class decides, where they compete. Then the letters' controller lets a reader take over from a
    /// writer, and metadata from what is none, and 2.6.34 the former. Here only if the newcomer's group has had no more than
    /// the other: a group that is ahead would take a second share by sending its requests one by one.
    fn preempts_group(&self, env: &Env<'_>, active: QueueId, id: QueueId, rq: &Request, now: u64) -> bool {
        let (old, new) = (self.queue(active), self.queue(id));
        if env.rounds.outranks(new.group, old.group) {
            return true;
        }
        if env.rounds.outranks(old.group, new.group) || new.class == IoClass::Idle {
            return false;
        }
        if self.profile.trees == Trees::Single && old.slice_used(now) {
            return true;
        }
        let meta = self.profile.trees == Trees::Single && self.is_pressing_metadata(old, rq, now);
        (meta || rq.is_sync() && !old.sync) && env.rounds.is_behind(new.group, old.group)
    }

    /// Metadata, which the active queue has none of; not the journal's that a caller has yielded to, before others have had as much as
    /// these two.
    fn is_pressing_metadata(&self, active: &Queue, rq: &Request, now: u64) -> bool {
        rq.flags.contains(Flags::META)
            && active.meta_queued == 0
            && self.pair.is_none_or(|pair| pair.target != rq.context || pair.is_due(now))
    }

    /// `id` takes over: the active queue keeps what is left of its slice for its next turn, unless it has yielded that.
    #[cold]
    pub(super) fn preempt(&mut self, env: &mut Env<'_>, id: QueueId, now: u64) {
        let residual = self.lends_by_preemption(id);
        self.expire(env, now, residual);
        self.place(id, now, Turn::Front);
        let queue = self.queue_mut(id);
        queue.slice_end = 0;
        queue.slice_new = true;
    }
}
