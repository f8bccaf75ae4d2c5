//! The elevator changes, or is emptied for something else.

use super::ElevatorQueue;
use crate::elevator::AnyElevator;

impl ElevatorQueue {
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
    /// inserted from now on; with groups they go over to the new one, so that each group's turn still comes when it is due.
    /// O(queued): a host that cannot afford that lets the queue run dry first, as the kernel does.
    pub fn switch(&mut self, elevator: impl Into<AnyElevator>, now: u64) -> AnyElevator {
        let elevator = elevator.into();
        if self.grouped {
            return self.switch_grouped(elevator, now);
        }
        self.drain(now);
        self.attach(elevator)
    }

    pub(in crate::queue) fn attach(&mut self, elevator: AnyElevator) -> AnyElevator {
        self.grouping = elevator.grouping();
        self.generation = self.generation.checked_add(1).unwrap_or(1);
        self.watches_device = elevator.watches_device();
        self.is_watched = self.watches_device || self.grouped;
        core::mem::replace(&mut self.elevator, elevator)
    }
}
