//! What an [`ElevatorQueue`] does once it has groups: tell the ledger of every request, and ask for the group that has
//! the turn. All of it is out of the way of a queue without groups.

use super::ElevatorQueue;
use crate::collections::{Id, List};
use crate::elevator::{AnyElevator, Dispatch, Grouping};
use crate::group::{Came, Decision, GroupId};
use crate::request::{RequestId, RequestState};

impl ElevatorQueue {
    /// The queue gets groups: whatever is there belongs to the root.
    pub(super) fn count_root(&mut self) {
        let in_device = self.device.in_flight_total();
        let waiting = self.queued() as u32;
        // Nobody says what time it is. What was in the device before the last one went there is not counted.
        let issued = self.requests.iter().filter(|(_, request)| request.state == RequestState::Issued);
        let since_ns = issued.map(|(_, request)| request.issued_ns).max().unwrap_or(0);
        self.groups.start_counting(waiting, in_device, since_ns);
        if self.grouping == Grouping::Queues {
            self.groups.set_busy(GroupId::ROOT, waiting > 0);
        }
    }

    /// A request of `payer` is about to be queued.
    #[inline(always)] // where each request of a group passes
    pub(super) fn group_arrival(&mut self, payer: GroupId, sync: bool, now: u64) {
        let came = self.groups.arrived(payer, sync);
        self.group_came(payer, came, sync, now);
    }

    /// A request of `payer` was counted.
    #[inline(always)] // with `group_arrival`
    fn group_came(&mut self, payer: GroupId, came: Came, sync: bool, now: u64) {
        self.groups.goal_arrived(payer, sync, now);
        let in_turns = self.grouping == Grouping::Queues;
        if came.first || in_turns && (!came.busy || came.alone && self.turns.looks_at(&self.groups, payer)) {
            self.group_awakes(payer, came, now);
        }
    }

    /// It is the first one that waits of `payer`, or the only one that it takes part with.
    #[inline(never)]
    fn group_awakes(&mut self, payer: GroupId, came: Came, now: u64) {
        if came.first {
            self.turns.forget(payer);
            self.elevator.queue_started(payer);
        }
        if self.grouping == Grouping::Queues {
            self.turns.arrived(&mut self.groups, payer, came, now);
            self.tell_paused();
        }
    }

    /// `rq`, which was queued, goes neither to the device nor stays.
    pub(super) fn group_withdrawal(&mut self, rq: RequestId) {
        let (payer, sync) = (self.requests[rq].payer, self.requests[rq].is_sync());
        self.groups.withdrawn(payer, sync);
        self.groups.goal_gone(payer, sync, None);
        if self.grouping == Grouping::Queues && self.groups.queued(payer) == 0 {
            self.turns.ran_dry(&mut self.groups, payer);
        }
    }

    /// `rq` grew.
    #[cold]
    pub(super) fn group_merge(&mut self, rq: RequestId) {
        self.groups.merged(&self.requests[rq]);
    }

    /// A request of `payer` goes to the device.
    #[inline(always)] // for the few that send a request of a group
    pub(super) fn group_issue(&mut self, payer: GroupId, sync: bool, now: u64) {
        let left = self.groups.issued(payer, sync, now);
        if left == 0 && self.grouping == Grouping::Queues {
            self.turns.ran_dry(&mut self.groups, payer);
        }
    }

    /// `rq` is done.
    #[inline(always)] // where each request of a group passes
    pub(super) fn group_completion(&mut self, rq: RequestId, now: u64) {
        self.groups.completed(&self.requests[rq], now);
        self.group_answered(self.requests[rq].payer, now);
    }

    /// A request of `payer` is done and billed.
    #[inline(always)] // most often there is nothing to do
    pub(super) fn group_answered(&mut self, payer: GroupId, now: u64) {
        if self.grouping == Grouping::Queues && self.turns.awaits_slice() {
            self.turns.completed(&self.groups, payer, now);
        }
    }

    /// `rq` came back from the device undone.
    #[cold]
    pub(super) fn group_return(&mut self, rq: RequestId, now: u64) {
        let (payer, sync) = (self.requests[rq].payer, self.requests[rq].is_sync());
        let came = self.groups.returned(payer, sync, now);
        self.group_came(payer, came, sync, now);
    }

    /// The next request of the group that has the turn.
    #[inline(always)] // its answer need not go through memory
    pub(super) fn ask_in_turn(&mut self, now: u64) -> Dispatch {
        let group = match self.turns.goes_on(&self.groups, now) {
            Some(group) => group,
            None => match self.decide(now) {
                Decision::Serve(group) => group,
                Decision::WaitFor { group, until } => {
                    self.groups.wait(group, now, until);
                    return Dispatch::Idle { until };
                }
                Decision::Rest => return Dispatch::Empty,
            },
        };
        self.ask_group(group, now)
    }

    /// Whose queue is to be served now, where that is not plain.
    #[inline(never)]
    fn decide(&mut self, now: u64) -> Decision {
        let decision = self.turns.select(&mut self.groups, now);
        self.tell_paused();
        decision
    }

    /// What goes around the elevator, and then what that says. Its turn does not get longer by waiting.
    #[inline(always)] // with `ask_in_turn`
    fn ask_group(&mut self, group: GroupId, now: u64) -> Dispatch {
        if self.headed > 0
            && let Some(first) = self.pop_head(group)
        {
            return Dispatch::Issue(first);
        }
        let answer = match self.elevator.next(group, now, self.device.rotational) {
            Some(next) => next.map_or(Dispatch::Empty, Dispatch::Issue),
            None => {
                let (elevator, mut env) = self.split(now);
                elevator.dispatch(&mut env, group)
            }
        };
        let until = match answer {
            Dispatch::Issue(_) => return answer,
            Dispatch::Idle { until } => until,
            _ if self.groups.queued(group) == self.groups.ledger().queued() => return answer,
            _ => u64::MAX,
        };
        let until =
            self.turns.end_ns(&self.groups).filter(|end| *end > now).map_or(until, |end| until.min(end));
        let until = self.groups.no_later_than_goals(until, now);
        if until == u64::MAX {
            return answer;
        }
        self.groups.wait(group, now, until);
        Dispatch::Idle { until }
    }

    /// What goes first of all of `group`.
    #[cold]
    fn pop_head(&mut self, group: GroupId) -> Option<RequestId> {
        let first = self.list.pop_front_of(&mut self.heads[group.index()])?;
        self.headed -= 1;
        Some(first)
    }

    /// Let the elevator know of a turn that ended.
    #[inline]
    fn tell_paused(&mut self) {
        if let Some(group) = self.turns.take_ended() {
            self.elevator.queue_paused(group);
        }
    }

    /// Everything that is queued goes over to `elevator`, as if it came now.
    pub(super) fn switch_grouped(&mut self, elevator: AnyElevator, now: u64) -> AnyElevator {
        self.turns.end_turn(&mut self.groups, now);
        self.turns.restart();
        let mut moved = List::new();
        loop {
            let (old, mut env) = self.split(now);
            let Some(rq) = old.drain(&mut env) else { break };
            self.list.push_back_of(&mut moved, rq);
        }
        let old = self.attach(elevator);
        while let Some(rq) = self.list.pop_front_of(&mut moved) {
            self.groups.withdrawn(self.requests[rq].payer, self.requests[rq].is_sync());
            self.goal_forgets(rq);
            self.uncount();
            self.requests[rq].state = RequestState::Held;
            self.insert(rq, now);
        }
        // What was to go around the elevator still does, first of its group; cfq files it.
        if self.grouping != Grouping::Queues {
            self.file_heads(now);
        }
        // Everybody's debt stays; those whom the old one only waited for go.
        self.groups.leave_dry();
        let (elevator, mut env) = self.split(now);
        elevator.attached(&mut env);
        old
    }

    /// `rq` is queued no more, and is about to come again.
    fn goal_forgets(&mut self, rq: RequestId) {
        let request = &self.requests[rq];
        self.groups.goal_gone(request.payer, request.is_sync(), None);
    }

    /// What goes before all others of its group is filed as any other.
    fn file_heads(&mut self, now: u64) {
        for index in 0..self.heads.len() {
            while let Some(rq) = self.pop_head(GroupId::from_index(index)) {
                self.groups.withdrawn(self.requests[rq].payer, self.requests[rq].is_sync());
                self.goal_forgets(rq);
                self.uncount();
                self.requests[rq].state = RequestState::Held;
                self.insert(rq, now);
            }
        }
    }
}
