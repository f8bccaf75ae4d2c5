//! An elevator of any kind, called without going through a table of functions: which one it is, is known at each call.

use alloc::boxed::Box;
use core::ops::{Deref, DerefMut};

#[cfg(feature = "lab")]
use super::bfq::Bfq;
use super::deadline::Deadline;
use super::fair::Fair;
#[cfg(feature = "lab")]
use super::kyber::Kyber;
#[cfg(feature = "lab")]
use super::mq_deadline::MqDeadline;
use super::noop::Noop;
use super::{Config, Dispatch, Elevator, Env, MayQueue, PerGroup, Policy};
use crate::collections::{List, ListLinks};
use crate::context::ContextId;
use crate::era::anticipatory::Anticipatory;
use crate::era::cfq::Cfq;
use crate::group::GroupId;
use crate::request::{Bio, Request, RequestId};

/// An elevator.
#[repr(u8)] // a tag of its own: told from the payload's spare values, the kind costs each request some instructions more
pub enum AnyElevator {
    /// First come, first served.
    Noop(PerGroup<Noop>),
    /// No scheduler. Beside noop: the question whether an elevator is one of the two is one comparison then.
    #[cfg(feature = "lab")]
    Direct(PerGroup<Noop>),
    /// Batches in sector order with deadlines.
    Deadline(PerGroup<Deadline>),
    /// Every task its share, no task behind a neighbour's queue.
    Fair(Box<Fair>),
    /// Batches by time, waiting for a reader's next request.
    Anticipatory(Box<PerGroup<Anticipatory>>),
    /// A slice of time for every process.
    Cfq(Box<Cfq>),
    /// Batches in sector order by priority class.
    #[cfg(feature = "lab")]
    MqDeadline(PerGroup<MqDeadline>),
    /// Tokens by latency.
    #[cfg(feature = "lab")]
    Kyber(Box<PerGroup<Kyber>>),
    /// Budgets by weight for every process and group.
    #[cfg(feature = "lab")]
    Bfq(Box<Bfq>),
    /// One from outside, by the table of its functions.
    Other(Box<dyn Elevator>),
}

impl AnyElevator {
    /// A policy from outside, with a queue for each group.
    pub fn of<P: Policy + 'static>(policy: P, config: &Config) -> AnyElevator {
        AnyElevator::Other(Box::new(PerGroup::new(policy, config.groups_max)))
    }
}

impl From<Box<dyn Elevator>> for AnyElevator {
    fn from(elevator: Box<dyn Elevator>) -> AnyElevator {
        AnyElevator::Other(elevator)
    }
}

/// `$call` of whichever it is.
macro_rules! of_kind {
    ($self:ident, $elevator:ident => $call:expr) => {
        match $self {
            AnyElevator::Noop($elevator) => $call,
            AnyElevator::Deadline($elevator) => $call,
            AnyElevator::Fair($elevator) => $call,
            AnyElevator::Anticipatory($elevator) => $call,
            AnyElevator::Cfq($elevator) => $call,
            #[cfg(feature = "lab")]
            AnyElevator::Direct($elevator) => $call,
            #[cfg(feature = "lab")]
            AnyElevator::MqDeadline($elevator) => $call,
            #[cfg(feature = "lab")]
            AnyElevator::Kyber($elevator) => $call,
            #[cfg(feature = "lab")]
            AnyElevator::Bfq($elevator) => $call,
            AnyElevator::Other($elevator) => $call,
        }
    };
}

/// The hooks that every request passes; [`Deref`] serves the rest.
impl AnyElevator {
    /// The line of `group`, where that is all there is to an elevator that asks nothing of a request: it need not be told what
    /// an [`Env`] tells.
    #[inline(always)]
    fn line(&mut self, group: GroupId) -> Option<(&mut List<RequestId>, &mut ListLinks<RequestId>)> {
        let noop = match self {
            AnyElevator::Noop(noop) => noop,
            #[cfg(feature = "lab")]
            AnyElevator::Direct(noop) => noop,
            _ => return None,
        };
        noop.queue_mut(group).map(|(policy, line)| (line, &mut policy.links))
    }

    /// File `rq` in the queue of `group` under an elevator that asks nothing but the time and the request, as noop and deadline do: no
    /// [`Env`] is built for them. No if it is another one, or if it has more to ask this time; then nothing was done.
    #[inline(always)] // where each request passes
    pub(crate) fn file(
        &mut self,
        group: GroupId,
        rq: RequestId,
        (request, unique): (&Request, bool),
        now: u64,
    ) -> bool {
        if let Some((line, links)) = self.line(group) {
            line.push_back(links, rq);
            return true;
        }
        let AnyElevator::Deadline(deadline) = self else { return false };
        let queue = deadline.queue_mut(group);
        queue.is_some_and(|(policy, queue)| policy.file(queue, rq, request, unique, now).is_ok())
    }

    /// The next request of `group` under such an elevator; `None` if it is another one.
    #[inline(always)] // as `file`
    pub(crate) fn next(&mut self, group: GroupId, now: u64, rotational: bool) -> Option<Option<RequestId>> {
        if let Some((line, links)) = self.line(group) {
            return Some(line.pop_front(links));
        }
        let AnyElevator::Deadline(deadline) = self else { return None };
        let (policy, queue) = deadline.queue_mut(group)?;
        Some(queue.pick(policy, now, rotational))
    }

    /// Does it, while it holds nothing, always answer that, and stay as it is? Others may wait for a request that comes soon.
    #[inline]
    pub(crate) fn rests_empty(&self) -> bool {
        match self {
            AnyElevator::Noop(_) => true,
            #[cfg(feature = "lab")]
            AnyElevator::Direct(_) | AnyElevator::MqDeadline(_) => true,
            _ => false,
        }
    }

    #[inline(always)] // one call less on each request's way
    pub(crate) fn insert(&mut self, env: &mut Env<'_>, rq: RequestId) {
        of_kind!(self, elevator => elevator.insert(env, rq));
    }

    #[inline(always)] // as above
    pub(crate) fn dispatch(&mut self, env: &mut Env<'_>, group: GroupId) -> Dispatch {
        of_kind!(self, elevator => elevator.dispatch(env, group))
    }

    #[inline]
    pub(crate) fn may_queue(&mut self, env: &mut Env<'_>, context: ContextId, sync: bool) -> MayQueue {
        match self {
            // They never refuse anybody.
            AnyElevator::Noop(_) | AnyElevator::Deadline(_) => MayQueue::May,
            #[cfg(feature = "lab")]
            AnyElevator::Direct(_) | AnyElevator::MqDeadline(_) | AnyElevator::Kyber(_) => MayQueue::May,
            #[cfg(feature = "lab")]
            AnyElevator::Bfq(elevator) => elevator.may_queue(env, context, sync),
            AnyElevator::Fair(elevator) => elevator.may_queue(env, context, sync),
            AnyElevator::Anticipatory(elevator) => elevator.may_queue(env, context, sync),
            AnyElevator::Cfq(elevator) => elevator.may_queue(env, context, sync),
            AnyElevator::Other(elevator) => elevator.may_queue(env, context, sync),
        }
    }

    #[inline]
    pub(crate) fn find_front(&self, env: &Env<'_>, bio: &Bio) -> Option<RequestId> {
        of_kind!(self, elevator => elevator.find_front(env, bio))
    }

    #[inline(always)] // as above
    pub(crate) fn issued(&mut self, env: &mut Env<'_>, rq: RequestId) {
        // What it dispatched counts as sent there.
        if !matches!(self, AnyElevator::Fair(_)) {
            of_kind!(self, elevator => elevator.issued(env, rq));
        }
    }

    #[inline(always)] // as above
    pub(crate) fn completed(&mut self, env: &mut Env<'_>, rq: RequestId) {
        of_kind!(self, elevator => elevator.completed(env, rq));
    }
}

impl Deref for AnyElevator {
    type Target = dyn Elevator;
    fn deref(&self) -> &(dyn Elevator + 'static) {
        match self {
            AnyElevator::Noop(elevator) => elevator,
            AnyElevator::Deadline(elevator) => elevator,
            AnyElevator::Fair(elevator) => &**elevator,
            AnyElevator::Anticipatory(elevator) => &**elevator,
            AnyElevator::Cfq(elevator) => &**elevator,
            #[cfg(feature = "lab")]
            AnyElevator::Direct(elevator) => elevator,
            #[cfg(feature = "lab")]
            AnyElevator::MqDeadline(elevator) => elevator,
            #[cfg(feature = "lab")]
            AnyElevator::Kyber(elevator) => &**elevator,
            #[cfg(feature = "lab")]
            AnyElevator::Bfq(elevator) => &**elevator,
            AnyElevator::Other(elevator) => &**elevator,
        }
    }
}

impl DerefMut for AnyElevator {
    fn deref_mut(&mut self) -> &mut (dyn Elevator + 'static) {
        match self {
            AnyElevator::Noop(elevator) => elevator,
            AnyElevator::Deadline(elevator) => elevator,
            AnyElevator::Fair(elevator) => &mut **elevator,
            AnyElevator::Anticipatory(elevator) => &mut **elevator,
            AnyElevator::Cfq(elevator) => &mut **elevator,
            #[cfg(feature = "lab")]
            AnyElevator::Direct(elevator) => elevator,
            #[cfg(feature = "lab")]
            AnyElevator::MqDeadline(elevator) => elevator,
            #[cfg(feature = "lab")]
            AnyElevator::Kyber(elevator) => &mut **elevator,
            #[cfg(feature = "lab")]
            AnyElevator::Bfq(elevator) => &mut **elevator,
            AnyElevator::Other(elevator) => &mut **elevator,
        }
    }
}

impl core::fmt::Debug for AnyElevator {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}
