//! What is left when the core's own rules turn out to be broken: first come, first served.
//!
//! The core cannot panic in a hook ([`fairlift_core::collections::Table`]). If a look beyond a table's end is counted during a call,
//! something is wrong that no test has seen, and no answer of that queue is worth anything. Its requests are all in their slots,
//! whatever became of the lists they were on: they are served from there, oldest first, and nothing is lost. Weights, limits,
//! merging by the elevator and idling are gone until an elevator is selected anew.

use fairlift_core::collections::Id;
use fairlift_core::request::{RequestState, request};
use fairlift_core::{ContextId, RequestId, Requests};

use crate::host::{Arrival, Slot};

/// Before all others.
const FIRST: u64 = 0;

/// The requests of a queue that has given up its elevator.
pub(crate) struct FirstCome {
    requests: Requests,
}

fn id(slot: Slot) -> RequestId {
    RequestId::from_index(slot as usize)
}

impl FirstCome {
    /// What was neither in the device nor with the module waits.
    pub(crate) fn new(mut requests: Requests) -> FirstCome {
        for slot in 0..requests.capacity() as Slot {
            let state = &mut requests[id(slot)].state;
            if !matches!(state, RequestState::Free | RequestState::Issued | RequestState::Held) {
                *state = RequestState::Listed;
            }
        }
        FirstCome { requests }
    }

    pub(crate) fn state(&self, slot: Slot) -> RequestState {
        if (slot as usize) < self.requests.capacity() {
            self.requests[id(slot)].state
        } else {
            RequestState::Free
        }
    }

    pub(crate) fn insert(&mut self, arrival: &Arrival, at_head: bool, now: u64) -> Option<Slot> {
        let Arrival { op, flags, sector, sectors, .. } = *arrival;
        let since = if at_head { FIRST } else { now };
        let mut new = request(op, flags, sector, sectors, ContextId::OVERFLOW, since);
        new.state = RequestState::Listed;
        Some(self.requests.take(new)?.index() as Slot)
    }

    /// One that goes to the device now.
    pub(crate) fn issue_around(&mut self, arrival: &Arrival, now: u64) -> Option<Slot> {
        let slot = self.insert(arrival, true, now)?;
        self.requests[id(slot)].state = RequestState::Issued;
        Some(slot)
    }

    /// The oldest that waits: one look at each slot.
    pub(crate) fn dispatch(&mut self) -> Option<Slot> {
        let waits = self.requests.iter().filter(|(_, rq)| rq.state == RequestState::Listed);
        let (oldest, _) = waits.min_by_key(|(_, rq)| rq.start_ns)?;
        self.requests[oldest].state = RequestState::Issued;
        Some(oldest.index() as Slot)
    }

    pub(crate) fn complete(&mut self, slot: Slot) {
        if matches!(self.state(slot), RequestState::Issued | RequestState::Held) {
            self.requests.release(id(slot));
        }
    }

    pub(crate) fn take_back(&mut self, slot: Slot) {
        if self.state(slot) == RequestState::Issued {
            self.requests[id(slot)].state = RequestState::Held;
        }
    }

    pub(crate) fn insert_again(&mut self, slot: Slot) {
        if self.state(slot) == RequestState::Held {
            let rq = &mut self.requests[id(slot)];
            (rq.state, rq.start_ns) = (RequestState::Listed, FIRST);
        }
    }

    /// A request that the module merged into another is no more.
    pub(crate) fn absorbed(&mut self, gone: Slot) {
        if self.state(gone) == RequestState::Listed {
            self.requests.release(id(gone));
        }
    }

    pub(crate) fn queued(&self) -> usize {
        self.requests.iter().filter(|(_, rq)| rq.state == RequestState::Listed).count()
    }

    pub(crate) fn in_flight(&self) -> [u32; 2] {
        let mut count = [0; 2];
        for (_, rq) in self.requests.iter().filter(|(_, rq)| rq.state == RequestState::Issued) {
            count[usize::from(rq.is_sync())] += 1;
        }
        count
    }

    pub(crate) fn taken(&self) -> usize {
        self.requests.taken()
    }
}
