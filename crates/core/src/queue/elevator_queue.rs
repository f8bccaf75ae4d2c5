//! The lower half of a request queue: request pool, contexts, elevator and dispatch list. A host that merges by itself
//! (the kernel module) uses it alone; [`super::RequestQueue`] builds on it.

mod merging_host;

use super::DispatchList;
use crate::collections::{Id, List, ListLinks, Table};
use crate::context::{ContextId, Contexts, ContextsMut, IoPrio};
use crate::elevator::{
    AnyElevator, DeviceState, Dispatch, Elevator, Env, Finding, Grouping, Growth, MayQueue,
};
use crate::group::{GroupError, GroupId, Groups, Places, Rounds, Turns, WaitToken, Waits};
use crate::request::{Bio, Op, Request, RequestId, RequestState, Requests, Standing, Status};

/// An elevator with the requests it orders.
pub struct ElevatorQueue {
    pub(super) requests: Requests,
    pub(super) contexts: Contexts,
    /// Contexts by subtree of groups.
    context_places: Places,
    contexts_max: usize,
    pub(super) groups: Groups,
    list: DispatchList,
    /// By group: requests that go before all others of their group, around the elevator, when it is their group's turn.
    pub(super) heads: Table<List<RequestId>>,
    pub(super) elevator: AnyElevator,
    /// [`Elevator::watches_device`] and [`Elevator::grouping`]: kept here because asking costs as much as it saves.
    watches_device: bool,
    pub(super) grouping: Grouping,
    /// Are requests counted by group? Set once a host asks for the groups to change them.
    pub(super) grouped: bool,
    /// Which listens to the device: the elevator, or the groups?
    is_watched: bool,
    pub(super) turns: Turns,
    waits: Waits,
    /// Counts elevators since construction, from 1. A request remembers under which one it was inserted; 0 = none.
    generation: u16,
    pub(super) device: DeviceState,
    /// Requests with the elevator or on the dispatch list.
    queued: usize,
}

impl ElevatorQueue {
    /// A queue for at most `requests_max` requests of `contexts_max` contexts at a time.
    pub fn new(
        requests_max: usize,
        contexts_max: usize,
        rotational: bool,
        elevator: impl Into<AnyElevator>,
    ) -> ElevatorQueue {
        let elevator = elevator.into();
        let contexts = Contexts::new(contexts_max);
        ElevatorQueue {
            requests: Requests::new(requests_max),
            waits: Waits::new(contexts.slots()),
            contexts,
            context_places: Places::new(1, contexts_max, 0),
            contexts_max,
            groups: Groups::new(0),
            list: DispatchList::new(requests_max),
            heads: Table::new(List::new(), 0),
            watches_device: elevator.watches_device(),
            grouping: elevator.grouping(),
            grouped: false,
            is_watched: elevator.watches_device(),
            turns: Turns::new(1),
            elevator,
            generation: 1,
            device: DeviceState { rotational, in_flight: [0; 2], depth: 0, flushes: 0 },
            queued: 0,
        }
    }

    /// With room for `groups_max` groups beside the root. To be said before anything else.
    #[must_use]
    pub fn with_groups(mut self, groups_max: usize) -> ElevatorQueue {
        self.groups = Groups::new(groups_max);
        let slots = self.groups.slots();
        let contexts = self.contexts_max;
        self.contexts = Contexts::with_groups(contexts, slots);
        self.context_places = Places::new(slots, contexts, if slots > 1 { contexts } else { 0 });
        self.waits = Waits::new(self.contexts.slots());
        self.turns = Turns::new(slots);
        if slots > 1 {
            self.heads = Table::new(List::new(), slots);
        }
        self
    }

    /// The device takes so many requests at a time, for elevators that want to know.
    #[must_use]
    pub fn with_depth(mut self, depth: u32) -> ElevatorQueue {
        self.device.depth = depth;
        self
    }

    /// All requests, with the states they are in, for none; the queue is of no use after that. For a host that serves them
    /// without it.
    pub fn swap_requests(&mut self, none: &mut Requests) {
        core::mem::swap(&mut self.requests, none);
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
    pub fn contexts_mut(&mut self) -> ContextsMut<'_> {
        ContextsMut {
            contexts: &mut self.contexts,
            groups: &mut self.groups,
            places: &mut self.context_places,
        }
    }

    /// The groups.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The groups, to create one or change its weight.
    pub fn groups_mut(&mut self) -> &mut Groups {
        if !self.grouped && self.groups.slots() > 1 {
            self.start_grouping();
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

    /// The elevator, to see which one it is.
    pub fn any_elevator(&self) -> &AnyElevator {
        &self.elevator
    }

    /// The elevator, to set its tunables ([`crate::elevator::set`]).
    pub fn elevator_mut(&mut self) -> &mut dyn Elevator {
        &mut *self.elevator
    }

    /// What the elevator has found out about the device by the time `now`, nanoseconds.
    pub fn found(&self, now: u64, tell: &mut dyn FnMut(Finding)) {
        self.elevator.found(&self.device, now, tell);
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
    pub(super) fn split(&mut self, now: u64) -> (&mut AnyElevator, Env<'_>) {
        let env = Env {
            now,
            requests: &self.requests,
            contexts: &self.contexts,
            rounds: Rounds::new(&mut self.groups),
            device: &self.device,
            dispatch: &mut self.list,
        };
        (&mut self.elevator, env)
    }

    /// Is it the turn keeper who says which group's queue to ask?
    #[inline]
    pub(super) fn in_turns(&self) -> bool {
        self.grouped && self.grouping == Grouping::Queues
    }

    // ---- slots ----

    /// Take a slot for `request` and count it for its context and its group; `None` when all slots are taken. Who pays for it
    /// is found here.
    #[inline]
    pub fn take(&mut self, request: Request) -> Option<RequestId> {
        let (rq, slot) = self.requests.take_slot()?;
        *slot = request;
        slot.state = RequestState::Held;
        slot.context = self.contexts.hold(request.context);
        slot.payer = slot.group;
        if slot.group != GroupId::ROOT || self.waits.any() {
            self.find_payer(rq);
        }
        Some(rq)
    }

    /// Whose the request counts for, and who pays.
    fn find_payer(&mut self, rq: RequestId) {
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
        debug_assert!(self.requests[rq].state == RequestState::Held, "released while queued or issued");
        let request = &self.requests[rq];
        let (group, payer) = (request.group, request.payer);
        if let Some(home) = self.contexts.drop_hold(request.context) {
            self.context_freed(home);
        }
        if group != GroupId::ROOT || payer != GroupId::ROOT {
            self.groups.drop_hold(group);
            if payer != group {
                self.groups.drop_hold(payer);
            }
        }
        self.requests.release(rq);
    }

    /// Somebody who held `context` holds it no more.
    pub(crate) fn drop_context(&mut self, context: ContextId) {
        if let Some(home) = self.contexts.drop_hold(context) {
            self.context_freed(home);
        }
    }

    /// A context of `home` left its slot.
    #[cold]
    fn context_freed(&mut self, home: GroupId) {
        self.context_places.give_back(&self.groups, home);
        self.groups.drop_hold(home);
    }

    // ---- in ----

    /// Hand a held request to the elevator.
    #[inline]
    pub fn insert(&mut self, rq: RequestId, now: u64) {
        let generation = self.generation;
        let request = &mut self.requests[rq];
        debug_assert!(request.state == RequestState::Held);
        request.state = RequestState::Sorted;
        request.generation = generation;
        request.queue.standing = Standing::Sortable;
        self.queued += 1;
        if !self.grouped
            && let Some((line, links)) = self.elevator.line()
        {
            return line.push_back(links, rq);
        }
        if self.grouped {
            self.group_arrival(rq, now);
        }
        self.file(rq, now);
    }

    /// The elevator gets `rq`.
    #[inline(always)]
    fn file(&mut self, rq: RequestId, now: u64) {
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
            self.requests[rq].state = RequestState::Listed;
        }
    }

    /// Put a held request before all others of its group, around the elevator: it goes when it is their turn. (cfq, which
    /// takes turns itself, files it as any other.) Without groups: before all others.
    pub fn insert_head(&mut self, rq: RequestId, now: u64) {
        if !self.grouped {
            self.go_around(rq);
            return self.list.push_front(rq);
        }
        match self.grouping {
            Grouping::Queues => {
                self.go_around(rq);
                self.group_arrival(rq, now);
                self.push_head(rq);
            }
            Grouping::Own => self.insert(rq, now),
            Grouping::Blind => {
                self.go_around(rq);
                self.group_arrival(rq, now);
                self.list.push_front(rq);
            }
        }
    }

    pub(super) fn push_head(&mut self, rq: RequestId) {
        let payer = self.requests[rq].payer;
        self.list.push_front_of(&mut self.heads[payer.index()], rq);
    }

    /// Put a held request at the tail of the dispatch list, around the elevator: for a queue without groups.
    pub fn insert_tail(&mut self, rq: RequestId) {
        self.go_around(rq);
        if self.grouped {
            self.groups.arrived(self.requests[rq].payer);
        }
        self.list.push_back(rq);
    }

    /// No elevator has `rq`, so none gets a hook for it.
    fn go_around(&mut self, rq: RequestId) {
        let request = &mut self.requests[rq];
        debug_assert!(request.state == RequestState::Held);
        request.state = RequestState::Listed;
        request.generation = 0;
        request.queue.standing = Standing::Fixed;
        self.queued += 1;
    }

    // ---- out ----

    /// What the elevator says, of the group that has the turn.
    #[inline]
    fn ask(&mut self, now: u64) -> Dispatch {
        if self.in_turns() {
            return self.ask_in_turn(now);
        }
        let (elevator, mut env) = self.split(now);
        elevator.dispatch(&mut env, GroupId::ROOT)
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
                answer if self.list.is_empty() => return self.waiting(answer),
                _ => {}
            }
        }
        self.mark_listed();
        let Some(rq) = self.list.front() else { return self.waiting(Dispatch::Empty) };
        let standing = &mut self.requests[rq].queue.standing;
        if *standing == Standing::Sortable {
            *standing = Standing::Fixed;
        }
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
        request.queue.standing = Standing::Fixed;
        let (sync, generation) = (request.is_sync(), request.generation);
        self.device.flushes += u32::from(request.op == Op::Flush);
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

    /// Take the head of the dispatch list off without issuing it (a barrier waiting for the device to run dry, or who needs a
    /// flush first): it is held, and no elevator knows of it any more.
    pub(crate) fn take_aside(&mut self, now: u64) {
        let Some(rq) = self.list.pop_front(&self.requests) else { return };
        self.queued -= 1;
        if self.grouped {
            self.group_withdrawal(rq);
        }
        if self.watches_device && self.requests[rq].generation == self.generation {
            // It gave the request up for the device, and is told that it is done: of others' time it took none.
            let (elevator, mut env) = self.split(now);
            elevator.issued(&mut env, rq);
            elevator.completed(&mut env, rq);
        }
        let request = &mut self.requests[rq];
        (request.state, request.generation) = (RequestState::Held, 0);
    }

    /// The head of the dispatch list, without asking the elevator for one.
    #[inline]
    pub(crate) fn head(&self) -> Option<RequestId> {
        self.list.front()
    }

    /// Is the next request one that the device gave back?
    pub(crate) fn head_is_requeued(&self) -> bool {
        self.list.front().is_some_and(|rq| self.requests[rq].queue.standing == Standing::Requeued)
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
        if let Some((line, links)) = self.elevator.line() {
            return match line.pop_front(links) {
                Some(rq) => self.issue_past_list(rq, now),
                None => self.waiting(Dispatch::Empty),
            };
        }
        self.dispatch_filed(now)
    }

    /// What the elevator says, without groups.
    #[inline(always)]
    fn dispatch_filed(&mut self, now: u64) -> Dispatch {
        let (elevator, mut env) = self.split(now);
        let answer = elevator.dispatch(&mut env, GroupId::ROOT);
        if !self.list.is_empty() {
            return self.dispatch_around(answer, now);
        }
        match answer {
            Dispatch::Issue(rq) => self.issue_past_list(rq, now),
            answer => self.waiting(answer),
        }
    }

    /// The common case: filed on an empty list `rq` would be the next to leave it.
    #[inline(always)]
    fn issue_past_list(&mut self, rq: RequestId, now: u64) -> Dispatch {
        self.list.pass(&self.requests[rq]);
        self.start(rq, now);
        Dispatch::Issue(rq)
    }

    /// As above, of the group that has the turn.
    fn dispatch_grouped(&mut self, now: u64) -> Dispatch {
        let answer = self.ask(now);
        if !self.list.is_empty() {
            return self.dispatch_around(answer, now);
        }
        match answer {
            Dispatch::Issue(rq) => self.issue_past_list(rq, now),
            answer => self.waiting(answer),
        }
    }

    /// Next requests for the device, at most `most` of them, through `out`; answers with why there are no more, or with the
    /// last of them.
    pub fn dispatch_many(&mut self, now: u64, most: usize, mut out: impl FnMut(RequestId)) -> Dispatch {
        let mut answer = Dispatch::Empty;
        for _ in 0..most {
            answer = self.dispatch(now);
            let Dispatch::Issue(rq) = answer else { break };
            out(rq);
        }
        answer
    }

    /// Nothing to give: is there something to wait for?
    #[inline]
    fn waiting(&self, answer: Dispatch) -> Dispatch {
        let busy = self.device.in_flight != [0; 2];
        if answer == Dispatch::Empty && self.queued > 0 && busy { Dispatch::Busy } else { answer }
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

    // ---- back ----

    /// The device is done with `rq`. The slot stays taken (state `Held`) until [`ElevatorQueue::release`].
    #[inline(always)] // as `dispatch`
    pub fn complete(&mut self, rq: RequestId, now: u64) {
        self.finish(rq, Status::Done, now);
    }

    /// The device is done with `rq`, and says how.
    pub fn complete_as(&mut self, rq: RequestId, status: Status, now: u64) {
        self.finish(rq, status, now);
    }

    #[inline(always)]
    fn finish(&mut self, rq: RequestId, status: Status, now: u64) {
        self.end_flight(rq, status);
        if self.is_watched {
            if self.grouped {
                self.group_completion(rq, now);
            }
            self.tell_completed(rq, now);
        }
    }

    /// The device is done with `rq`, which all of `waiters` wanted, `count` of them: who pays for them shares what it cost.
    pub(crate) fn complete_shared(
        &mut self,
        rq: RequestId,
        (waiters, links): (&List<RequestId>, &ListLinks<RequestId>),
        count: u32,
        now: u64,
    ) {
        self.end_flight(rq, Status::Done);
        let payers = waiters.iter(links).map(|waiter| self.requests[waiter].payer);
        self.groups.completed_for(&self.requests[rq], payers, count, now);
        self.group_answered(rq, now);
        self.tell_completed(rq, now);
    }

    /// Are requests counted by group?
    #[inline]
    pub(crate) fn is_grouped(&self) -> bool {
        self.grouped
    }

    #[inline(always)]
    fn end_flight(&mut self, rq: RequestId, status: Status) {
        let request = &mut self.requests[rq];
        debug_assert!(request.state == RequestState::Issued, "completed but not issued");
        request.state = RequestState::Held;
        request.status = status;
        let sync = request.is_sync();
        self.device.flushes -= u32::from(request.op == Op::Flush);
        self.device.in_flight[usize::from(sync)] -= 1;
    }

    #[inline(always)]
    fn tell_completed(&mut self, rq: RequestId, now: u64) {
        if self.watches_device && self.requests[rq].generation == self.generation {
            let (elevator, mut env) = self.split(now);
            elevator.completed(&mut env, rq);
        }
    }

    /// The device gave `rq` back unserved: it goes again before all others (of its group, where there are groups).
    pub fn requeue(&mut self, rq: RequestId, now: u64) {
        self.give_back(rq, now);
        self.requests[rq].state = RequestState::Listed;
        if self.in_turns() {
            self.push_head(rq);
        } else {
            self.list.push_front(rq);
        }
    }

    /// The same, before all others of whatever group: a barrier waits for it.
    pub(crate) fn requeue_first(&mut self, rq: RequestId, now: u64) {
        self.give_back(rq, now);
        self.requests[rq].state = RequestState::Listed;
        self.list.push_front(rq);
    }

    /// `rq` is with the device no more, and counts as queued.
    fn give_back(&mut self, rq: RequestId, now: u64) {
        let request = &mut self.requests[rq];
        debug_assert!(request.state == RequestState::Issued, "requeued but not issued");
        request.queue.standing = Standing::Requeued;
        let (sync, generation) = (request.is_sync(), request.generation);
        self.device.flushes -= u32::from(request.op == Op::Flush);
        self.device.in_flight[usize::from(sync)] -= 1;
        self.queued += 1;
        if self.grouped {
            self.group_return(rq, now);
        }
        if self.watches_device && generation == self.generation {
            let (elevator, mut env) = self.split(now);
            elevator.requeued(&mut env, rq);
        }
    }

    /// Forget a request that is queued: its client is gone. It is held afterwards. `false` if it is past that.
    pub fn cancel(&mut self, rq: RequestId, now: u64) -> bool {
        let Request { state, payer, generation, .. } = self.requests[rq];
        match state {
            RequestState::Sorted if generation == self.generation => {
                let (elevator, mut env) = self.split(now);
                elevator.remove(&mut env, rq);
            }
            // Around the elevator, which has never heard of it.
            RequestState::Listed if generation == 0 && self.in_turns() => {
                self.list.remove_from(&mut self.heads[payer.index()], rq);
            }
            // The same where the elevator is blind to groups: all share one list.
            RequestState::Listed if generation == 0 && self.grouped => self.list.remove(rq),
            _ => return false,
        }
        self.requests[rq].state = RequestState::Held;
        self.queued -= 1;
        if self.grouped {
            self.group_withdrawal(rq);
        }
        true
    }

    // ---- the elevator changes ----

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

    /// Change the elevator with requests queued and in flight; the old one is handed back, to be dropped where memory may be
    /// freed. Without groups queued requests go to the device in the old one's order, and the new one hears only of requests
    /// inserted from now on; with groups they go over to the new one, so that everybody's turn still comes when it is due.
    /// O(queued): a host that cannot afford that lets the queue run dry first, as the kernel does.
    pub fn switch(&mut self, elevator: impl Into<AnyElevator>, now: u64) -> AnyElevator {
        let elevator = elevator.into();
        if self.grouped {
            return self.switch_grouped(elevator, now);
        }
        self.drain(now);
        self.attach(elevator)
    }

    pub(super) fn attach(&mut self, elevator: AnyElevator) -> AnyElevator {
        self.grouping = elevator.grouping();
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        self.watches_device = elevator.watches_device();
        self.is_watched = self.watches_device || self.grouped;
        core::mem::replace(&mut self.elevator, elevator)
    }

    // ---- merging ----

    pub(super) fn list_and_heads(&mut self) -> (&mut DispatchList, &mut Table<List<RequestId>>) {
        (&mut self.list, &mut self.heads)
    }

    /// One request less is queued; it comes again at once.
    pub(super) fn uncount(&mut self) {
        self.queued -= 1;
    }

    fn start_grouping(&mut self) {
        self.grouped = true;
        self.is_watched = true;
        self.count_root();
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
        if !self.grouped {
            return true;
        }
        let group = self.groups.known(bio.group.unwrap_or(self.contexts[bio.context].group));
        let request = &self.requests[rq];
        // What is sent for others' sake is theirs alone.
        request.group == group && request.payer == group
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
            self.group_withdrawal(gone);
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

    /// See [`Elevator::tags_for`].
    #[inline]
    pub(crate) fn tags_for(&mut self, bio: &Bio, tags: u32, now: u64) -> u32 {
        let (elevator, mut env) = self.split(now);
        elevator.tags_for(&mut env, bio, tags)
    }

    /// The context's task is gone. What it has queued is still served.
    pub fn context_exit(&mut self, context: ContextId, now: u64) {
        if self.contexts.is_shared(context) || !self.contexts.is_alive(context) {
            return;
        }
        self.waits.leave(&self.contexts, context);
        let (elevator, mut env) = self.split(now);
        elevator.context_exit(&mut env, context);
        if let Some(home) = self.contexts.exit(context) {
            self.context_freed(home);
        }
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
        if self.contexts.is_alive(context)
            && !self.contexts.is_shared(context)
            && self.contexts[context].group != group
        {
            self.change_group(context, group);
            let (elevator, mut env) = self.split(now);
            elevator.context_moved(&mut env, context);
        }
    }

    #[cold]
    fn change_group(&mut self, context: ContextId, group: GroupId) {
        self.groups.hold(group);
        self.context_places.take(&self.groups, group);
        let old = core::mem::replace(&mut self.contexts[context].group, group);
        self.context_freed(old);
    }

    /// Remove a group: it takes no new I/O, which goes to the nearest ancestor left, and so do its contexts with their next
    /// request; its child groups keep their place. What it has queued or in the device is served as its own.
    ///
    /// # Errors
    /// [`GroupError::Root`], [`GroupError::Unknown`].
    pub fn remove_group(&mut self, group: GroupId) -> Result<(), GroupError> {
        self.groups.remove(group)
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

    // ---- waiting for each other ----

    /// `from` waits for the I/O of `whom` from now on: what `whom` sends until the wait ends is served for the most entitled
    /// of those who wait for it, whose group pays. `None` if that cannot be said (the same context, or a shared one). A context
    /// waits for one other at a time: an earlier wait of `from` ends.
    pub fn wait_begin(&mut self, from: ContextId, whom: ContextId) -> Option<WaitToken> {
        let (from, whom) = (self.contexts.known(from), self.contexts.known(whom));
        if self.contexts.is_shared(whom) && whom != ContextId::OVERFLOW {
            let epoch = self.groups.epoch(self.contexts[whom].group);
            self.contexts.renew_unused(whom, epoch);
        }
        self.waits.begin(&self.contexts, from, whom)
    }

    /// A wait is over. It also ends with either context.
    pub fn wait_end(&mut self, token: WaitToken) {
        self.waits.end(&self.contexts, token);
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
