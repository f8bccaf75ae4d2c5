//! A request comes back from the device, done or unserved, or is forgotten.

use super::ElevatorQueue;
use crate::collections::{Id, List, ListLinks};
use crate::request::{Request, RequestId, RequestState, Standing, Status};

impl ElevatorQueue {
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
    pub(super) fn finish(&mut self, rq: RequestId, status: Status, now: u64) {
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
        self.group_answered(self.requests[rq].payer, now);
        self.tell_completed(rq, now);
    }

    #[inline(always)]
    pub(super) fn end_flight(&mut self, rq: RequestId, status: Status) {
        let request = &mut self.requests[rq];
        debug_assert!(request.state == RequestState::Issued, "completed but not issued");
        request.state = RequestState::Held;
        request.status = status;
        self.device.leaves(request);
    }

    #[inline(always)]
    pub(super) fn tell_completed(&mut self, rq: RequestId, now: u64) {
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
    pub(super) fn give_back(&mut self, rq: RequestId, now: u64) {
        let request = &mut self.requests[rq];
        debug_assert!(request.state == RequestState::Issued, "requeued but not issued");
        request.queue.standing = Standing::Requeued;
        let generation = request.generation;
        self.device.leaves(request);
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
        let Request { state, payer, generation, queue, .. } = self.requests[rq];
        match state {
            RequestState::Sorted if generation == self.generation => {
                let (elevator, mut env) = self.split(now);
                elevator.remove(&mut env, rq);
            }
            // Around the elevator, which has never heard of it.
            RequestState::Listed if generation == 0 && queue.standing == Standing::First => {
                self.headed -= 1;
                self.list.remove_from(&mut self.heads[payer.index()], rq);
            }
            // The same where the elevator is blind to groups, or was when it came: all share one list.
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
}
