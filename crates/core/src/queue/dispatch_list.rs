//! The dispatch list: requests past the elevator's decision, in the order the device will be offered them.

use crate::collections::{List, ListLinks};
use crate::elevator::Placement;
use crate::request::{Flags, Op, Request, RequestId, Requests, Standing};

/// Requests that left the elevator (or went around it) and wait for the device.
#[derive(Debug)]
pub struct DispatchList {
    list: List<RequestId>,
    links: ListLinks<RequestId>,
    /// Where the one-way sweep of sorted placement starts: the end of the request served last.
    boundary: u64,
    /// The queued request whose end the boundary is, if it is still ahead.
    boundary_request: Option<RequestId>,
    /// Something was filed since the queue last looked.
    placed: bool,
}

impl DispatchList {
    /// An empty list for a pool of `capacity` requests.
    pub fn new(capacity: usize) -> DispatchList {
        DispatchList {
            list: List::new(),
            links: ListLinks::new(capacity),
            boundary: 0,
            boundary_request: None,
            placed: false,
        }
    }

    /// Nothing waits?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Number of requests waiting.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// The next request for the device.
    #[inline]
    pub fn front(&self) -> Option<RequestId> {
        self.list.front()
    }

    /// File `rq` as its elevator wants.
    #[inline]
    pub fn place(&mut self, requests: &Requests, rq: RequestId, placement: Placement) {
        self.placed = true;
        match placement {
            Placement::Sorted => self.place_sorted(requests, rq),
            Placement::Tail => self.push_back_as_boundary(requests, rq),
        }
    }

    /// The kernel's `elv_dispatch_sort`: behind the first entry, seen from the tail, that may not be passed or precedes
    /// `rq` in a one-way sweep from the boundary.
    fn place_sorted(&mut self, requests: &Requests, rq: RequestId) {
        let new = &requests[rq];
        let mut at = self.list.back();
        while let Some(candidate) = at {
            if is_fence(&requests[candidate], new) || self.precedes(&requests[candidate], new) {
                self.list.insert_after(&mut self.links, candidate, rq);
                return;
            }
            at = self.list.prev(&self.links, candidate);
        }
        self.list.push_front(&mut self.links, rq);
    }

    fn precedes(&self, earlier: &Request, later: &Request) -> bool {
        match (earlier.sector >= self.boundary, later.sector >= self.boundary) {
            (true, false) => true,
            (false, true) => false,
            _ => earlier.sector <= later.sector,
        }
    }

    /// The kernel's `elv_dispatch_add_tail`: append; later sorting starts from its end.
    fn push_back_as_boundary(&mut self, requests: &Requests, rq: RequestId) {
        self.boundary = requests[rq].end();
        self.boundary_request = Some(rq);
        self.list.push_back(&mut self.links, rq);
    }

    /// Was something [`place`](DispatchList::place)d since [`forget_placed`](DispatchList::forget_placed)?
    #[inline]
    pub(crate) fn was_placed(&self) -> bool {
        self.placed
    }

    pub(crate) fn forget_placed(&mut self) {
        self.placed = false;
    }

    /// Append without touching the sort boundary.
    pub(crate) fn push_back(&mut self, rq: RequestId) {
        self.list.push_back(&mut self.links, rq);
    }

    /// To the head of `other`, a list that shares this one's links: a request is on one list at a time.
    pub(crate) fn push_front_of(&mut self, other: &mut List<RequestId>, rq: RequestId) {
        other.push_front(&mut self.links, rq);
    }

    /// To the tail of `other`, likewise.
    pub(crate) fn push_back_of(&mut self, other: &mut List<RequestId>, rq: RequestId) {
        other.push_back(&mut self.links, rq);
    }

    /// Out of `other`, likewise.
    pub(crate) fn remove_from(&mut self, other: &mut List<RequestId>, rq: RequestId) {
        other.remove(&mut self.links, rq);
    }

    /// The first of `other`, likewise.
    pub(crate) fn pop_front_of(&mut self, other: &mut List<RequestId>) -> Option<RequestId> {
        other.pop_front(&mut self.links)
    }

    /// To the head: passthrough, requeued and flush requests.
    pub(crate) fn push_front(&mut self, rq: RequestId) {
        self.list.push_front(&mut self.links, rq);
    }

    /// To the head, but behind what the device gave back: a barrier that waits for that looks for it there.
    pub(crate) fn push_behind_requeued(&mut self, requests: &Requests, rq: RequestId) {
        let given_back = |rq: &RequestId| requests[*rq].queue.standing == Standing::Requeued;
        match self.iter().take_while(given_back).last() {
            Some(last) => self.list.insert_after(&mut self.links, last, rq),
            None => self.push_front(rq),
        }
    }

    /// Out of it, wherever it is.
    pub(crate) fn remove(&mut self, rq: RequestId) {
        if self.boundary_request == Some(rq) {
            self.boundary_request = None;
        }
        self.list.remove(&mut self.links, rq);
    }

    /// Everything after this request sorts from its end (a barrier).
    pub(crate) fn set_boundary(&mut self, requests: &Requests, rq: RequestId) {
        self.boundary = requests[rq].end();
        self.boundary_request = Some(rq);
    }

    /// Take the head off for the device.
    #[inline]
    pub(crate) fn pop_front(&mut self, requests: &Requests) -> Option<RequestId> {
        let rq = self.list.pop_front(&mut self.links)?;
        if self.boundary_request.is_none_or(|b| b == rq) {
            self.boundary = requests[rq].end();
            self.boundary_request = None;
        }
        Some(rq)
    }

    /// `request` went to the device past the list, which is empty.
    #[inline]
    pub(crate) fn pass(&mut self, request: &Request) {
        debug_assert!(self.list.is_empty() && self.boundary_request.is_none());
        self.boundary = request.end();
    }

    /// What goes right behind `rq`.
    pub(crate) fn behind(&self, rq: RequestId) -> Option<RequestId> {
        self.list.next(&self.links, rq)
    }

    /// All waiting requests, next first.
    pub fn iter(&self) -> impl Iterator<Item = RequestId> + '_ {
        self.list.iter(&self.links)
    }
}

/// May `new` not be sorted past `entry`?
fn is_fence(entry: &Request, new: &Request) -> bool {
    entry.queue.standing != Standing::Sortable
        || entry.flags.contains(Flags::BARRIER)
        || entry.is_write() != new.is_write()
        || (entry.op == Op::Discard) != (new.op == Op::Discard)
}
