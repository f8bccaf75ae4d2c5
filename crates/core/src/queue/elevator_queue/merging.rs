//! What the elevator is asked and told when something joins a request.

use super::ElevatorQueue;
use crate::elevator::Growth;
use crate::request::{Bio, RequestId, RequestState};

impl ElevatorQueue {
    /// See [`Elevator::find_front`](crate::elevator::Elevator::find_front).
    #[inline]
    pub fn find_front(&mut self, bio: &Bio, now: u64) -> Option<RequestId> {
        let (elevator, env) = self.split(now);
        elevator.find_front(&env, bio)
    }

    /// Would a request made of `bio` be of `rq`'s group?
    #[inline]
    pub(in crate::queue) fn is_of_group(&self, rq: RequestId, bio: &Bio) -> bool {
        if !self.grouped {
            return true;
        }
        let group = self.groups.known(bio.group.unwrap_or(self.contexts[bio.context].group));
        let request = &self.requests[rq];
        // What is sent for others' sake is theirs alone.
        request.group == group && request.payer == group
    }

    /// See [`Elevator::allow_merge`](crate::elevator::Elevator::allow_merge). Nothing joins a request of another group, which would pay for it.
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

    /// See [`Elevator::former`](crate::elevator::Elevator::former).
    pub fn former(&mut self, rq: RequestId, now: u64) -> Option<RequestId> {
        let (elevator, env) = self.split(now);
        elevator.former(&env, rq)
    }

    /// See [`Elevator::latter`](crate::elevator::Elevator::latter).
    pub fn latter(&mut self, rq: RequestId, now: u64) -> Option<RequestId> {
        let (elevator, env) = self.split(now);
        elevator.latter(&env, rq)
    }
}
