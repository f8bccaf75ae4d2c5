//! What an [`ElevatorQueue`] does once it has groups: count every request for its group, and ask for the group whose turn
//! it is. All of it is out of the way of a queue without groups.

use super::ElevatorQueue;
use crate::elevator::{Dispatch, Grouping};
use crate::group::{GroupId, Groups, Turn, Turns};
use crate::request::{Request, RequestId, RequestState};

/// `request` left the elevator.
pub(super) fn left(groups: &mut Groups, turns: &mut Turns, grouping: Grouping, request: &Request) {
    let group = groups.slot(request.group);
    group.queued -= 1;
    group.stats.of(request).queued -= 1;
    if grouping == Grouping::Queues {
        turns.left(groups, request.group);
    }
}

impl ElevatorQueue {
    /// The queue gets groups: whatever is there belongs to the root.
    pub(super) fn count_root(&mut self) {
        let root = self.groups.slot(GroupId::ROOT);
        (root.queued, root.in_flight) = (0, 0);
        for (_, request) in self.requests.iter() {
            match request.state {
                RequestState::Sorted => {
                    root.queued += 1;
                    root.stats.of(request).queued += 1;
                }
                RequestState::Issued => root.in_flight += 1,
                _ => {}
            }
        }
        let (queued, in_flight) = (root.queued, root.in_flight);
        self.turns.start(queued, in_flight);
        self.groups.start_counting(in_flight);
        if self.grouping == Grouping::Queues {
            self.groups.set_busy(GroupId::ROOT, queued > 0);
        }
    }

    /// `rq` is about to be inserted.
    #[cold]
    pub(super) fn group_arrival(&mut self, rq: RequestId, now: u64) {
        let request = &self.requests[rq];
        let id = request.group;
        let group = self.groups.slot(id);
        group.queued += 1;
        group.stats.of(request).queued += 1;
        if core::mem::take(&mut group.new) {
            self.turns.forget(id);
            self.elevator.group_started(id);
        }
        if self.grouping == Grouping::Queues {
            self.turns.arrived(&mut self.groups, id, now);
            self.tell_turn_over(now);
        }
    }

    /// `rq` left the elevator.
    #[cold]
    pub(super) fn group_departure(&mut self, rq: RequestId) {
        left(&mut self.groups, &mut self.turns, self.grouping, &self.requests[rq]);
    }

    /// `rq` grew.
    #[cold]
    pub(super) fn group_merge(&mut self, rq: RequestId) {
        let request = &self.requests[rq];
        self.groups.slot(request.group).stats.of(request).merged += 1;
    }

    /// `rq` goes to the device.
    #[cold]
    pub(super) fn group_issue(&mut self, rq: RequestId, now: u64) {
        let request = &self.requests[rq];
        let group = self.groups.slot(request.group);
        group.in_flight += 1;
        group.stats.of(request).wait_ns += now.saturating_sub(request.start_ns);
        self.groups.issued(now);
        self.turns.issued(request.group, request.sectors);
    }

    /// `rq` is done.
    #[cold]
    pub(super) fn group_completion(&mut self, rq: RequestId, now: u64) {
        let request = &self.requests[rq];
        let group = self.groups.slot(request.group);
        group.in_flight -= 1;
        let io = group.stats.of(request);
        io.ios += 1;
        io.sectors += u64::from(request.sectors);
        io.service_ns += now.saturating_sub(request.issued_ns);
        self.groups.completed(request.group, now);
        if self.grouping == Grouping::Queues {
            self.turns.completed(&mut self.groups, request.group, now);
        } else {
            self.turns.returned();
        }
    }

    /// `rq` came back from the device undone.
    #[cold]
    pub(super) fn group_return(&mut self, rq: RequestId, now: u64) {
        let request = &self.requests[rq];
        let group = self.groups.slot(request.group);
        group.in_flight -= 1;
        self.groups.completed(request.group, now);
        self.turns.returned();
    }

    /// What the elevator says of the queue of the group whose turn it is.
    #[cold]
    pub(super) fn ask_in_turn(&mut self, now: u64) -> Dispatch {
        let turn = self.turns.select(&mut self.groups, now);
        self.tell_turn_over(now);
        let group = match turn {
            Turn::Of(group) => group,
            Turn::Idle { until } => return Dispatch::Idle { until },
            Turn::Rest => return Dispatch::Empty,
        };
        let (elevator, mut env) = self.split(now);
        match elevator.dispatch_group(&mut env, group) {
            // Its turn does not get longer by waiting.
            Dispatch::Idle { until } => {
                let end = self.turns.slice_end_ns().filter(|end| *end > now);
                Dispatch::Idle { until: end.map_or(until, |end| until.min(end)) }
            }
            answer => answer,
        }
    }

    /// Let the elevator know of a turn that ended.
    fn tell_turn_over(&mut self, now: u64) {
        if let Some(group) = self.turns.take_ended() {
            let (elevator, mut env) = self.split(now);
            elevator.turn_over(&mut env, group);
        }
    }
}
