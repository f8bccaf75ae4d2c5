//! The next request for the device.

use super::ElevatorQueue;
use crate::elevator::{Dispatch, Grouping};
use crate::group::GroupId;
use crate::request::{RequestId, RequestState, Standing};

impl ElevatorQueue {
    /// What the elevator says, of the group that has the turn.
    #[inline(always)] // see `ask_in_turn`
    pub(super) fn ask(&mut self, now: u64) -> Dispatch {
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
        if *standing != Standing::Requeued {
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
    pub(super) fn start(&mut self, rq: RequestId, now: u64) {
        if self.grouped { self.start_counted(rq, now) } else { self.start_uncounted(rq, now) }
    }

    /// `rq` goes to the device, and the groups count it.
    #[inline(always)] // into the two that send a request of a group
    fn start_counted(&mut self, rq: RequestId, now: u64) {
        let (payer, sync, generation) = self.begin_flight(rq, now);
        self.group_issue(payer, sync, now);
        if self.watches_device && generation == self.generation {
            self.tell_issued(rq, now);
        }
    }

    /// The same without groups.
    #[inline(always)]
    fn start_uncounted(&mut self, rq: RequestId, now: u64) {
        let (.., generation) = self.begin_flight(rq, now);
        if self.watches_device && generation == self.generation {
            self.tell_issued(rq, now);
        }
    }

    /// Answers with the payer of `rq`, whether it is sync, and under which elevator it was inserted.
    #[inline(always)]
    fn begin_flight(&mut self, rq: RequestId, now: u64) -> (GroupId, bool, u16) {
        let request = &mut self.requests[rq];
        request.state = RequestState::Issued;
        request.issued_ns = now;
        request.queue.standing = Standing::Fixed;
        self.device.enters(request);
        self.queued -= 1;
        (request.payer, request.is_sync(), request.generation)
    }

    #[inline(always)]
    fn tell_issued(&mut self, rq: RequestId, now: u64) {
        let (elevator, mut env) = self.split(now);
        elevator.issued(&mut env, rq);
    }

    /// Take the head of the dispatch list off without issuing it (a barrier waiting for the device to run dry, or who needs a
    /// flush first): it is held, and no elevator knows of it any more.
    pub(crate) fn take_aside(&mut self, now: u64) {
        if let Some(rq) = self.list.pop_front(&self.requests) {
            self.leave_list(rq, now);
        }
    }

    /// The same of one that is anywhere on it (a barrier is ahead of it, and there are groups from now on).
    pub(crate) fn take_from_list(&mut self, rq: RequestId, now: u64) {
        self.list.remove(rq);
        self.leave_list(rq, now);
    }

    fn leave_list(&mut self, rq: RequestId, now: u64) {
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

    /// What is on the dispatch list right behind `rq`.
    pub(crate) fn listed_behind(&self, rq: RequestId) -> Option<RequestId> {
        self.list.behind(rq)
    }

    /// The latest time that a request was sent or went to the device, as far as the requests that are there tell; for what
    /// happens without a time given.
    pub(crate) fn latest_ns(&self) -> u64 {
        self.requests.iter().map(|(_, request)| request.start_ns.max(request.issued_ns)).max().unwrap_or(0)
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
            return match self.grouping {
                Grouping::Queues if self.queued == 0 => Dispatch::Empty,
                Grouping::Queues => self.dispatch_grouped(now),
                Grouping::Own | Grouping::Blind => self.dispatch_by_itself(now),
            };
        }
        if let Some(next) = self.elevator.next(GroupId::ROOT, now, self.device.rotational) {
            let Some(rq) = next else { return self.waiting(Dispatch::Empty) };
            self.list.pass(&self.requests[rq]);
            self.start_uncounted(rq, now);
            return Dispatch::Issue(rq);
        }
        self.dispatch_filed(now)
    }

    /// What the elevator says, without groups.
    #[inline(always)]
    pub(super) fn dispatch_filed(&mut self, now: u64) -> Dispatch {
        let (elevator, mut env) = self.split(now);
        let answer = elevator.dispatch(&mut env, GroupId::ROOT);
        if !self.list.is_empty() {
            return self.dispatch_around(answer, now);
        }
        let Dispatch::Issue(rq) = answer else { return self.waiting(answer) };
        // The common case: filed on an empty list it would be the next to leave it.
        self.list.pass(&self.requests[rq]);
        self.start_uncounted(rq, now);
        answer
    }

    /// As above, of the group that has the turn.
    #[inline(never)]
    pub(super) fn dispatch_grouped(&mut self, now: u64) -> Dispatch {
        if self.headed == 0
            && let Some(group) = self.turns.goes_on(&self.groups, now)
            && let Some(Some(rq)) = self.elevator.next(group, now, self.device.rotational)
        {
            self.list.pass(&self.requests[rq]);
            self.start_counted(rq, now);
            return Dispatch::Issue(rq);
        }
        self.dispatch_decided(now)
    }

    /// The same where it is not that plain.
    #[inline(never)]
    fn dispatch_decided(&mut self, now: u64) -> Dispatch {
        let answer = self.ask_in_turn(now);
        self.dispatch_answer(answer, now)
    }

    /// As above, of an elevator that itself knows which group is next, or knows of none.
    #[inline(never)]
    fn dispatch_by_itself(&mut self, now: u64) -> Dispatch {
        let (elevator, mut env) = self.split(now);
        let answer = elevator.dispatch(&mut env, GroupId::ROOT);
        self.dispatch_answer(answer, now)
    }

    #[inline(always)] // for the two above
    fn dispatch_answer(&mut self, answer: Dispatch, now: u64) -> Dispatch {
        if !self.list.is_empty() {
            return self.dispatch_around(answer, now);
        }
        let Dispatch::Issue(rq) = answer else { return self.waiting(answer) };
        self.list.pass(&self.requests[rq]);
        self.start_counted(rq, now);
        answer
    }

    /// Nothing to give: is there something to wait for?
    #[inline]
    pub(super) fn waiting(&self, answer: Dispatch) -> Dispatch {
        let busy = self.device.in_flight != [0; 2];
        if answer == Dispatch::Empty && self.queued > 0 && busy { Dispatch::Busy } else { answer }
    }

    /// A request reached the dispatch list around the elevator's `answer`: then that one goes.
    #[cold]
    pub(super) fn dispatch_around(&mut self, answer: Dispatch, now: u64) -> Dispatch {
        if let Dispatch::Issue(rq) = answer {
            let placement = self.elevator.placement();
            self.list.place(&self.requests, rq, placement);
        }
        self.mark_listed();
        self.dispatch_listed(now)
    }

    /// Out of line: its registers would cost the common case twenty instructions of saving and restoring.
    #[inline(never)]
    pub(super) fn dispatch_listed(&mut self, now: u64) -> Dispatch {
        self.issue(now).map_or(Dispatch::Empty, Dispatch::Issue)
    }
}
