//! What a host needs that merges by itself and takes requests back from the device into its own hands (the kernel
//! module): the host reports what happened to the queue, which then does not do it itself.

use super::ElevatorQueue;
use crate::context::IoPrio;
use crate::elevator::Growth;
use crate::request::{RequestId, RequestState};

impl ElevatorQueue {
    /// The host merged something of priority `ioprio` into `rq`, which now covers `sectors` from `sector` on. Does nothing
    /// for the elevator when `rq` has left it.
    pub fn grow(
        &mut self,
        rq: RequestId,
        growth: Growth,
        (sector, sectors): (u64, u32),
        ioprio: IoPrio,
        now: u64,
    ) {
        let request = &mut self.requests[rq];
        request.sector = sector;
        request.sectors = sectors;
        request.ioprio = request.ioprio.best(ioprio);
        if request.state == RequestState::Sorted {
            self.grew(rq, growth, now);
        }
    }

    /// The host merged `gone`, which started where `rq` ended, into `rq`, which is `sectors` long now. Both are with the
    /// elevator; `gone` is held afterwards.
    pub fn absorb(&mut self, rq: RequestId, gone: RequestId, sectors: u32, now: u64) {
        let high = self.requests[gone];
        let low = &mut self.requests[rq];
        debug_assert!(low.state == RequestState::Sorted && high.state == RequestState::Sorted);
        low.sectors = sectors;
        low.ioprio = low.ioprio.best(high.ioprio);
        low.start_ns = low.start_ns.min(high.start_ns);
        self.absorbed(rq, gone, now);
    }

    /// `rq`, in the device, was inserted before its task had sent it; now the host knows what it covers. The elevator
    /// chose it without knowing that; what is paid and counted is this.
    pub fn fill(&mut self, rq: RequestId, sector: u64, sectors: u32) {
        let request = &mut self.requests[rq];
        debug_assert!(request.state == RequestState::Issued, "filled while not in the device");
        (request.sector, request.sectors) = (sector, sectors);
    }

    /// The device gave `rq` back unserved and the host keeps it for now: as [`ElevatorQueue::requeue`], but held. It goes on
    /// by [`ElevatorQueue::insert_again`] or [`ElevatorQueue::issue_again`].
    pub fn take_back(&mut self, rq: RequestId, now: u64) {
        self.give_back(rq, now);
        self.requests[rq].state = RequestState::Held;
        self.uncount();
        if self.grouped {
            self.group_withdrawal(rq);
        }
    }

    /// A request taken back goes before all others (of its group, where there are groups).
    pub fn insert_again(&mut self, rq: RequestId, now: u64) {
        self.count_again(rq, now);
        if self.in_turns() {
            self.push_head(rq);
        } else {
            self.list.push_front(rq);
        }
    }

    /// A request taken back goes to the device without being asked for.
    pub fn issue_again(&mut self, rq: RequestId, now: u64) {
        self.count_again(rq, now);
        self.start(rq, now);
    }

    fn count_again(&mut self, rq: RequestId, now: u64) {
        debug_assert!(self.requests[rq].state == RequestState::Held);
        self.requests[rq].state = RequestState::Listed;
        self.queued += 1;
        if self.grouped {
            self.group_arrival(self.requests[rq].payer, self.requests[rq].is_sync(), now);
        }
    }
}
