//! A request is handed to the elevator, or goes around it.

use super::ElevatorQueue;
use crate::collections::Id;
use crate::elevator::Grouping;
use crate::group::GroupId;
use crate::request::{RequestId, RequestState, Standing};

impl ElevatorQueue {
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
        let mut group = GroupId::ROOT;
        if self.grouped {
            group = request.payer;
            let sync = request.is_sync();
            self.group_arrival(group, sync, now);
        }
        self.hand_over(rq, group, now);
    }

    /// The elevator gets `rq`, which `group` pays for.
    #[inline(always)] // for the two that insert
    pub(in crate::queue) fn hand_over(&mut self, rq: RequestId, group: GroupId, now: u64) {
        let request = (&self.requests[rq], !self.groups.is_in_use());
        if !self.elevator.file(group, rq, request, now) {
            self.file(rq, now);
        }
    }

    /// The elevator gets `rq`, and all that it may want to know.
    #[inline(always)]
    pub(super) fn file(&mut self, rq: RequestId, now: u64) {
        let (elevator, mut env) = self.split(now);
        elevator.insert(&mut env, rq);
        self.mark_listed();
    }

    /// Requests that the elevator itself put on the dispatch list are past merging.
    #[inline]
    pub(super) fn mark_listed(&mut self) {
        if self.list.was_placed() {
            self.mark_all_listed();
        }
    }

    #[cold]
    pub(super) fn mark_all_listed(&mut self) {
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
                self.requests[rq].queue.standing = Standing::First;
                self.group_arrival(self.requests[rq].payer, self.requests[rq].is_sync(), now);
                self.push_head(rq);
            }
            Grouping::Own => self.insert(rq, now),
            Grouping::Blind => {
                self.go_around(rq);
                self.group_arrival(self.requests[rq].payer, self.requests[rq].is_sync(), now);
                self.list.push_behind_requeued(&self.requests, rq);
            }
        }
    }

    /// A held request goes to the device without being asked for, around the elevator and out of turn. Its group is billed for
    /// it as for any other, and has that much less time afterwards.
    pub fn issue_around(&mut self, rq: RequestId, now: u64) {
        self.go_around(rq);
        if self.grouped {
            self.group_arrival(self.requests[rq].payer, self.requests[rq].is_sync(), now);
        }
        self.start(rq, now);
    }

    pub(in crate::queue) fn push_head(&mut self, rq: RequestId) {
        let payer = self.requests[rq].payer;
        self.headed += 1;
        self.list.push_front_of(&mut self.heads[payer.index()], rq);
    }

    /// Put a held request at the tail of the dispatch list, around the elevator: for a queue without groups.
    pub fn insert_tail(&mut self, rq: RequestId) {
        self.go_around(rq);
        if self.grouped {
            let _ = self.groups.arrived(self.requests[rq].payer, self.requests[rq].is_sync());
        }
        self.list.push_back(rq);
    }

    /// No elevator has `rq`, so none gets a hook for it.
    pub(super) fn go_around(&mut self, rq: RequestId) {
        let request = &mut self.requests[rq];
        debug_assert!(request.state == RequestState::Held);
        request.state = RequestState::Listed;
        request.generation = 0;
        request.queue.standing = Standing::Fixed;
        self.queued += 1;
    }
}
