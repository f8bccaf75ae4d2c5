//! The lower half of a request queue: request pool, contexts, elevator and dispatch list. A host that merges by itself
//! (the kernel module) uses it alone; [`super::RequestQueue`] builds on it.

mod merging_host;

use alloc::boxed::Box;

use super::{DispatchList, by_group};
use crate::collections::Id;
use crate::context::{ContextId, Contexts, IoPrio};
use crate::elevator::{DeviceState, Dispatch, Elevator, Env, Grouping, Growth, MayQueue};
use crate::group::{GroupError, GroupId, Groups, Turns};
use crate::request::{Bio, Request, RequestId, RequestState, Requests};

/// An elevator with the requests it orders.
pub struct ElevatorQueue {
    pub(super) requests: Requests,
    contexts: Contexts,
    pub(super) groups: Groups,
    list: DispatchList,
    pub(super) elevator: Box<dyn Elevator>,
    /// [`Elevator::watches_device`] and [`Elevator::grouping`]: kept here because asking costs as much as it saves.
    watches_device: bool,
    pub(super) grouping: Grouping,
    /// Are requests counted by group? Set once somebody asks for the groups to change them.
    grouped: bool,
    /// Does anybody want to hear of the device: the elevator, or the groups?
    is_watched: bool,
    pub(super) turns: Turns,
    /// Counts elevators since construction, from 1. A request remembers under which one it was inserted; 0 = none.
    generation: u32,
    device: DeviceState,
    /// Requests with the elevator or on the dispatch list.
    queued: usize,
}

impl ElevatorQueue {
    /// A queue for at most `requests_max` requests of `contexts_max` contexts at a time.
    pub fn new(
        requests_max: usize,
        contexts_max: usize,
        rotational: bool,
        elevator: Box<dyn Elevator>,
    ) -> ElevatorQueue {
        ElevatorQueue {
            requests: Requests::new(requests_max),
            contexts: Contexts::new(contexts_max),
            groups: Groups::new(0),
            list: DispatchList::new(requests_max),
            watches_device: elevator.watches_device(),
            grouping: elevator.grouping(),
            grouped: false,
            is_watched: elevator.watches_device(),
            turns: Turns::new(1),
            elevator,
            generation: 1,
            device: DeviceState { rotational, in_flight: [0; 2] },
            queued: 0,
        }
    }

    /// With room for `groups_max` groups beside the root. To be said before anything else.
    #[must_use]
    pub fn with_groups(mut self, groups_max: usize) -> ElevatorQueue {
        self.groups = Groups::new(groups_max);
        self.turns = Turns::new(self.groups.slots());
        self
    }

    /// The requests.
    #[inline]
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    #[inline]
    pub(crate) fn requests_mut(&mut self) -> &mut Requests {
        &mut self.requests
    }

    /// The contexts.
    pub fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// The contexts, to create one.
    pub fn contexts_mut(&mut self) -> &mut Contexts {
        &mut self.contexts
    }

    /// The groups.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The groups, to create one or change its weight.
    pub fn groups_mut(&mut self) -> &mut Groups {
        if !self.grouped && self.groups.slots() > 1 {
            self.grouped = true;
            self.is_watched = true;
            self.count_root();
        }
        &mut self.groups
    }

    /// Set a tunable of the groups to a stored value that [`Tunable::parse`](crate::tunable::Tunable::parse) returned.
    pub fn set_for_groups(&mut self, name: &str, value: u64) {
        self.groups.set_stored(name, value);
    }

    /// The elevator.
    pub fn elevator(&self) -> &dyn Elevator {
        &*self.elevator
    }

    /// The elevator, to set its tunables ([`crate::elevator::set`]).
    pub fn elevator_mut(&mut self) -> &mut dyn Elevator {
        &mut *self.elevator
    }

    /// Requests in the device, `[async, sync]`.
    pub fn in_flight(&self) -> [u32; 2] {
        self.device.in_flight
    }

    /// Requests with the elevator or on the dispatch list.
    #[inline]
    pub fn queued(&self) -> usize {
        self.queued
    }

    /// Does neither the elevator nor the dispatch list hold a request?
    pub fn is_empty(&self) -> bool {
        self.queued == 0
    }

    pub(crate) fn list_mut(&mut self) -> (&mut DispatchList, &Requests) {
        (&mut self.list, &self.requests)
    }

    #[inline]
    pub(super) fn split(&mut self, now: u64) -> (&mut dyn Elevator, Env<'_>) {
        let env = Env {
            now,
            requests: &self.requests,
            contexts: &self.contexts,
            groups: &mut self.groups,
            device: &self.device,
            dispatch: &mut self.list,
        };
        (&mut *self.elevator, env)
    }

    /// Is it the turn keeper who says which group's queue to ask?
    #[inline]
    fn in_turns(&self) -> bool {
        self.grouped && self.grouping == Grouping::Queues
    }

    /// Take a slot for `request` and count it for its context; `None` when all slots are taken.
    #[inline]
    pub fn take(&mut self, request: Request) -> Option<RequestId> {
        let (rq, slot) = self.requests.take_slot()?;
        let context = self.contexts.hold(request.context);
        let mut group = request.group;
        if group != GroupId::ROOT {
            group = self.groups.hold(group);
        }
        *slot = Request { state: RequestState::Held, context, group, ..request };
        Some(rq)
    }

    /// Give the slot of a request that is neither queued nor issued back.
    #[inline(always)] // out of line it costs 25 instructions more
    pub fn release(&mut self, rq: RequestId) {
        debug_assert!(self.requests[rq].state == RequestState::Held, "released while queued or issued");
        let request = &self.requests[rq];
        self.contexts.drop_hold(request.context);
        if request.group != GroupId::ROOT {
            self.groups.drop_hold(request.group);
        }
        self.requests.release(rq);
    }

    /// Hand a held request to the elevator.
    #[inline]
    pub fn insert(&mut self, rq: RequestId, now: u64) {
        let generation = self.generation;
        let request = &mut self.requests[rq];
        debug_assert!(request.state == RequestState::Held);
        request.state = RequestState::Sorted;
        request.queue.generation = generation;
        request.queue.fixed = false;
        self.queued += 1;
        if self.grouped {
            self.group_arrival(rq, now);
        }
        let (elevator, mut env) = self.split(now);
        elevator.insert(&mut env, rq);
        self.mark_listed();
    }

    /// Requests that the elevator itself put on the dispatch list are past merging.
    #[inline]
    fn mark_listed(&mut self) {
        if self.list.was_placed() {
            self.mark_all_listed();
        }
    }

    #[cold]
    fn mark_all_listed(&mut self) {
        self.list.forget_placed();
        for rq in self.list.iter() {
            let request = &mut self.requests[rq];
            let state = core::mem::replace(&mut request.state, RequestState::Listed);
            if self.grouped && state == RequestState::Sorted {
                by_group::left(&mut self.groups, &mut self.turns, self.grouping, request);
            }
        }
    }

    /// What the elevator says, of the group whose turn it is.
    #[inline]
    fn ask(&mut self, now: u64) -> Dispatch {
        if self.in_turns() {
            return self.ask_in_turn(now);
        }
        let (elevator, mut env) = self.split(now);
        elevator.dispatch(&mut env)
    }

    /// Put a held request at the head of the dispatch list, around the elevator.
    pub fn insert_head(&mut self, rq: RequestId) {
        self.go_around(rq);
        self.list.push_front(rq);
    }

    /// Put a held request at the tail of the dispatch list, around the elevator.
    pub fn insert_tail(&mut self, rq: RequestId) {
        self.go_around(rq);
        self.list.push_back(rq);
    }

    /// No elevator has `rq`, so none gets a hook for it.
    fn go_around(&mut self, rq: RequestId) {
        let request = &mut self.requests[rq];
        debug_assert!(request.state == RequestState::Held);
        request.state = RequestState::Listed;
        request.queue.generation = 0;
        request.queue.fixed = true;
        self.queued += 1;
    }

    /// Which request would go next? `Issue` names the head of the dispatch list, asking the elevator to fill it when it is
    /// empty. From then on the request is past merging.
    #[inline]
    pub fn peek(&mut self, now: u64) -> Dispatch {
        if self.list.is_empty() {
            match self.ask(now) {
                Dispatch::Issue(rq) => {
                    let placement = self.elevator.placement();
                    self.list.place(&self.requests, rq, placement);
                }
                // A request may have reached the list around the answer; then that one goes.
                answer if self.list.is_empty() => return answer,
                _ => {}
            }
        }
        self.mark_listed();
        let Some(rq) = self.list.front() else { return Dispatch::Empty };
        self.requests[rq].queue.fixed = true;
        Dispatch::Issue(rq)
    }

    /// Take the head of the dispatch list to the device; `None` when the list is empty.
    #[inline]
    pub fn issue(&mut self, now: u64) -> Option<RequestId> {
        let rq = self.list.pop_front(&self.requests)?;
        self.start(rq, now);
        Some(rq)
    }

    /// `rq`, on no list any more, goes to the device.
    #[inline(always)]
    fn start(&mut self, rq: RequestId, now: u64) {
        let request = &mut self.requests[rq];
        request.state = RequestState::Issued;
        request.issued_ns = now;
        request.queue.requeued = false;
        let (sync, generation) = (request.is_sync(), request.queue.generation);
        self.device.in_flight[usize::from(sync)] += 1;
        self.queued -= 1;
        if self.is_watched {
            if self.grouped {
                self.group_issue(rq, now);
            }
            if self.watches_device && generation == self.generation {
                let (elevator, mut env) = self.split(now);
                elevator.issued(&mut env, rq);
            }
        }
    }

    /// Take the head of the dispatch list off without issuing it (a barrier waiting for the device to run dry): it is held.
    pub(crate) fn take_aside(&mut self) {
        if let Some(rq) = self.list.pop_front(&self.requests) {
            self.requests[rq].state = RequestState::Held;
            self.queued -= 1;
        }
    }

    /// The head of the dispatch list, without asking the elevator for one.
    #[inline]
    pub(crate) fn head(&self) -> Option<RequestId> {
        self.list.front()
    }

    /// Is the next request one that the device gave back?
    pub(crate) fn head_is_requeued(&self) -> bool {
        self.list.front().is_some_and(|rq| self.requests[rq].queue.requeued)
    }

    /// Next request for the device, or why there is none: as [`ElevatorQueue::peek`] and [`ElevatorQueue::issue`].
    #[inline(always)] // out of line it costs 35 instructions more
    pub fn dispatch(&mut self, now: u64) -> Dispatch {
        if !self.list.is_empty() {
            return self.dispatch_listed(now);
        }
        if self.grouped {
            return self.dispatch_grouped(now);
        }
        let (elevator, mut env) = self.split(now);
        let answer = elevator.dispatch(&mut env);
        if !self.list.is_empty() {
            return self.dispatch_around(answer, now);
        }
        // The common case: filed on an empty list it would be the next to leave it.
        if let Dispatch::Issue(rq) = answer {
            self.list.pass(&self.requests[rq]);
            self.start(rq, now);
        }
        answer
    }

    /// As above, of the group whose turn it is.
    #[cold]
    fn dispatch_grouped(&mut self, now: u64) -> Dispatch {
        let answer = self.ask(now);
        if !self.list.is_empty() {
            return self.dispatch_around(answer, now);
        }
        if let Dispatch::Issue(rq) = answer {
            self.group_departure(rq);
            self.list.pass(&self.requests[rq]);
            self.start(rq, now);
        }
        answer
    }

    /// A request reached the dispatch list around the elevator's `answer`: then that one goes.
    #[cold]
    fn dispatch_around(&mut self, answer: Dispatch, now: u64) -> Dispatch {
        if let Dispatch::Issue(rq) = answer {
            let placement = self.elevator.placement();
            self.list.place(&self.requests, rq, placement);
        }
        self.mark_listed();
        self.dispatch_listed(now)
    }

    /// Out of line: its registers would cost the common case twenty instructions of saving and restoring.
    #[inline(never)]
    fn dispatch_listed(&mut self, now: u64) -> Dispatch {
        self.issue(now).map_or(Dispatch::Empty, Dispatch::Issue)
    }

    /// The device is done with `rq`. The slot stays taken (state `Held`) until [`ElevatorQueue::release`].
    #[inline(always)] // as `dispatch`
    pub fn complete(&mut self, rq: RequestId, now: u64) {
        let request = &mut self.requests[rq];
        debug_assert!(request.state == RequestState::Issued, "completed but not issued");
        request.state = RequestState::Held;
        let (sync, generation) = (request.is_sync(), request.queue.generation);
        self.device.in_flight[usize::from(sync)] -= 1;
        if self.is_watched {
            if self.grouped {
                self.group_completion(rq, now);
            }
            if self.watches_device && generation == self.generation {
                let (elevator, mut env) = self.split(now);
                elevator.completed(&mut env, rq);
            }
        }
    }

    /// The device gave `rq` back unserved: it goes to the head of the dispatch list.
    pub fn requeue(&mut self, rq: RequestId, now: u64) {
        let request = &mut self.requests[rq];
        debug_assert!(request.state == RequestState::Issued, "requeued but not issued");
        request.state = RequestState::Listed;
        request.queue.requeued = true;
        request.queue.fixed = true;
        let (sync, generation) = (request.is_sync(), request.queue.generation);
        self.device.in_flight[usize::from(sync)] -= 1;
        self.queued += 1;
        if self.grouped {
            self.group_return(rq, now);
        }
        if self.watches_device && generation == self.generation {
            let (elevator, mut env) = self.split(now);
            elevator.requeued(&mut env, rq);
        }
        self.list.push_front(rq);
    }

    /// Move everything the elevator holds to the dispatch list, whatever its policy (2.6-era barrier, elevator switch).
    pub fn drain(&mut self, now: u64) {
        let placement = self.elevator.placement();
        loop {
            let (elevator, mut env) = self.split(now);
            let Some(rq) = elevator.drain(&mut env) else { break };
            self.list.place(&self.requests, rq, placement);
        }
        self.mark_listed();
        debug_assert!(self.elevator.is_empty(), "drained, yet not empty");
    }

    /// Change the elevator with requests queued and in flight. Queued requests go to the dispatch list; the old elevator is
    /// handed back, to be dropped where memory may be freed. The new one hears only of requests inserted from now on.
    pub fn switch(&mut self, elevator: Box<dyn Elevator>, now: u64) -> Box<dyn Elevator> {
        self.drain(now);
        if self.grouped {
            self.turns.end_turn(&mut self.groups, now);
            self.groups.all_idle();
            self.turns.start(0, self.device.in_flight_total());
        }
        self.grouping = elevator.grouping();
        self.generation += 1;
        self.watches_device = elevator.watches_device();
        self.is_watched = self.watches_device || self.grouped;
        core::mem::replace(&mut self.elevator, elevator)
    }

    /// See [`Elevator::find_front`].
    #[inline]
    pub fn find_front(&mut self, bio: &Bio, now: u64) -> Option<RequestId> {
        let (elevator, env) = self.split(now);
        elevator.find_front(&env, bio)
    }

    /// Would a request made of `bio` be of `rq`'s group?
    #[inline]
    pub(super) fn is_of_group(&self, rq: RequestId, bio: &Bio) -> bool {
        let group = || self.groups.known(bio.group.unwrap_or(self.contexts[bio.context].group));
        !self.grouped || self.requests[rq].group == group()
    }

    /// See [`Elevator::allow_merge`]. Nothing joins a request of another group, which would pay for it.
    #[inline]
    pub fn allow_merge(&mut self, rq: RequestId, bio: &Bio, now: u64) -> bool {
        if !self.is_of_group(rq, bio) {
            return false;
        }
        let (elevator, env) = self.split(now);
        elevator.allow_merge(&env, rq, bio)
    }

    /// `rq`, with the elevator, grew: the pool already holds the larger request.
    #[inline]
    pub fn grew(&mut self, rq: RequestId, growth: Growth, now: u64) {
        let (elevator, mut env) = self.split(now);
        elevator.grew(&mut env, rq, growth);
        if self.grouped {
            self.group_merge(rq);
        }
        self.mark_listed();
    }

    /// `gone`, with the elevator, was merged into `rq`; `gone` is held afterwards.
    pub fn absorbed(&mut self, rq: RequestId, gone: RequestId, now: u64) {
        let (elevator, mut env) = self.split(now);
        elevator.absorbed(&mut env, rq, gone);
        if self.grouped {
            self.group_departure(gone);
            self.group_merge(rq);
        }
        self.requests[gone].state = RequestState::Held;
        self.queued -= 1;
    }

    /// See [`Elevator::former`].
    pub fn former(&mut self, rq: RequestId, now: u64) -> Option<RequestId> {
        let (elevator, env) = self.split(now);
        elevator.former(&env, rq)
    }

    /// See [`Elevator::latter`].
    pub fn latter(&mut self, rq: RequestId, now: u64) -> Option<RequestId> {
        let (elevator, env) = self.split(now);
        elevator.latter(&env, rq)
    }

    /// See [`Elevator::may_queue`].
    #[inline]
    pub fn may_queue(&mut self, context: ContextId, sync: bool, now: u64) -> MayQueue {
        let context = self.contexts.known(context);
        let (elevator, mut env) = self.split(now);
        elevator.may_queue(&mut env, context, sync)
    }

    /// The context's task is gone. What it has queued is still served.
    pub fn context_exit(&mut self, context: ContextId, now: u64) {
        if context == ContextId::OVERFLOW || !self.contexts.is_alive(context) {
            return;
        }
        let (elevator, mut env) = self.split(now);
        elevator.context_exit(&mut env, context);
        self.contexts.exit(context);
    }

    /// Change a context's priority (`ioprio_set`).
    pub fn set_ioprio(&mut self, context: ContextId, ioprio: IoPrio, now: u64) {
        if !self.contexts.is_alive(context) {
            return;
        }
        self.contexts[context].ioprio = ioprio;
        let (elevator, mut env) = self.split(now);
        elevator.ioprio_changed(&mut env, context);
    }

    /// Put a context into another group. What it has queued or in the device stays with the old one.
    pub fn move_context(&mut self, context: ContextId, group: GroupId, now: u64) {
        let group = self.groups.known(group);
        if self.contexts.is_alive(context) && self.contexts[context].group != group {
            self.contexts[context].group = group;
            let (elevator, mut env) = self.split(now);
            elevator.context_moved(&mut env, context);
        }
    }

    /// Remove a group: its contexts and child groups become its parent's; what it has queued or in the device is served as
    /// its own.
    ///
    /// # Errors
    /// [`GroupError::Root`], [`GroupError::Unknown`].
    pub fn remove_group(&mut self, group: GroupId, now: u64) -> Result<(), GroupError> {
        let parent = self.groups.remove(group)?;
        for index in 0..self.contexts.slots() {
            let context = ContextId::from_index(index);
            if self.contexts[context].group == group {
                self.contexts[context].group = parent;
                let (elevator, mut env) = self.split(now);
                elevator.context_moved(&mut env, context);
            }
        }
        Ok(())
    }

    /// See [`Elevator::yield_to`].
    pub fn yield_to(&mut self, from: ContextId, to: Option<ContextId>, now: u64) {
        let from = self.contexts.known(from);
        let to = to.map(|to| self.contexts.known(to));
        let (elevator, mut env) = self.split(now);
        elevator.yield_to(&mut env, from, to);
    }
}

impl core::fmt::Debug for ElevatorQueue {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ElevatorQueue")
            .field("elevator", &self.elevator.name())
            .field("queued", &self.queued)
            .field("in_flight", &self.device.in_flight)
            .finish_non_exhaustive()
    }
}
