//! Request slots: taken for a request, counted for its context and its group, and given back.

use super::ElevatorQueue;
use crate::context::ContextId;
use crate::elevator::MayQueue;
use crate::group::GroupId;
use crate::request::{Bio, Request, RequestId, RequestState};

impl ElevatorQueue {
    /// Take a slot for `request` and count it for its context and its group; `None` when all slots are taken. Who pays for it
    /// is found here.
    #[inline]
    pub fn take(&mut self, request: Request) -> Option<RequestId> {
        let (rq, slot) = self.requests.take_slot()?;
        let context = self.contexts.hold(request.context);
        let group = request.group;
        *slot = Request { state: RequestState::Held, context, payer: group, ..request };
        let closer = self.needs_closer_look(context, group);
        if closer || group != GroupId::ROOT && !self.groups.hold_if_live(group) {
            self.find_payer(rq);
        }
        Some(rq)
    }

    /// May a request that `context` sends for `group` count for another, or be paid for by another, though there is such a group?
    #[inline]
    pub(in crate::queue) fn needs_closer_look(&self, context: ContextId, group: GroupId) -> bool {
        let is_renewed = || {
            let task = &self.contexts[context];
            task.epoch != self.groups.epoch(task.group)
        };
        let is_shared = self.contexts.is_shared(context) && context != ContextId::OVERFLOW;
        self.waits.any() || group != GroupId::ROOT && is_shared && is_renewed()
    }

    /// Whose the request counts for, and who pays, in the cases that take a closer look.
    #[inline(never)]
    pub(in crate::queue) fn find_payer(&mut self, rq: RequestId) {
        let Request { context, group: named, .. } = self.requests[rq];
        let group = self.groups.hold(named);
        let task = self.contexts[context].group;
        if !self.contexts.is_shared(context) {
            if group != named && task == named {
                // Its group is gone: from now on the task is the heir's.
                self.change_group(context, group);
            }
        } else if context != ContextId::OVERFLOW {
            self.contexts.renew_shared(context, self.groups.epoch(task));
        }
        let mut payer = group;
        if self.waits.any() {
            payer = self.waits.payer(&self.contexts, &self.groups, context, group);
            if payer != group {
                payer = self.groups.hold(payer);
            }
        }
        let slot = &mut self.requests[rq];
        (slot.group, slot.payer) = (group, payer);
    }

    /// Give the slot of a request that is neither queued nor issued back.
    #[inline(always)] // out of line it costs 25 instructions more
    pub fn release(&mut self, rq: RequestId) {
        let (context, group, payer) = self.requests.release_after(rq, |request| {
            debug_assert!(request.state == RequestState::Held, "released while queued or issued");
            (request.context, request.group, request.payer)
        });
        self.drop_holds(context, group, payer);
    }

    /// A request of these is gone.
    #[inline(always)] // with `release`
    pub(super) fn drop_holds(&mut self, context: ContextId, group: GroupId, payer: GroupId) {
        if let Some(home) = self.contexts.drop_hold(context) {
            self.context_freed(home);
        }
        if group != GroupId::ROOT || payer != GroupId::ROOT {
            self.groups.drop_hold(group);
            if payer != group {
                self.groups.drop_hold(payer);
            }
        }
    }

    /// One holder of `context` holds it no more.
    pub(crate) fn drop_context(&mut self, context: ContextId) {
        if let Some(home) = self.contexts.drop_hold(context) {
            self.context_freed(home);
        }
    }

    /// A context of `home` left its slot.
    #[cold]
    pub(super) fn context_freed(&mut self, home: GroupId) {
        self.context_places.give_back(&self.groups, home);
        self.groups.drop_hold(home);
    }

    /// See [`Elevator::may_queue`](crate::elevator::Elevator::may_queue).
    #[inline]
    pub fn may_queue(&mut self, context: ContextId, sync: bool, now: u64) -> MayQueue {
        let context = self.contexts.known(context);
        let (elevator, mut env) = self.split(now);
        elevator.may_queue(&mut env, context, sync)
    }

    /// See [`Elevator::tags_for`](crate::elevator::Elevator::tags_for).
    #[inline]
    pub(crate) fn tags_for(&mut self, bio: &Bio, tags: u32, now: u64) -> u32 {
        let (elevator, mut env) = self.split(now);
        elevator.tags_for(&mut env, bio, tags)
    }

    /// See [`Elevator::bio_sectors_max`](crate::elevator::Elevator::bio_sectors_max).
    pub(crate) fn bio_sectors_max(&mut self, bio: &Bio, now: u64) -> u32 {
        let (elevator, env) = self.split(now);
        elevator.bio_sectors_max(&env, bio)
    }

    /// Something of a group waits at its host's door: the group keeps its slot, even if it is removed, until
    /// [`ElevatorQueue::drop_group`] is called as often.
    pub fn hold_group(&mut self, group: GroupId) {
        self.groups.hold(group);
    }

    /// What waited of a group waits no longer.
    pub fn drop_group(&mut self, group: GroupId) {
        self.groups.drop_hold(group);
    }
}
