//! A queue's next request: of two neighbours the one the head reaches more cheaply.

use super::queue::Queue;
use super::{Cfq, NeighboursFrom};
pub(super) use crate::elevator::nearer::{BackSeek, prefer};
use crate::request::{RequestId, Requests};

impl Cfq {
    /// The better of two requests, if there are any.
    #[inline]
    pub(super) fn best(
        &self,
        requests: &Requests,
        a: Option<RequestId>,
        b: Option<RequestId>,
        from: u64,
    ) -> Option<RequestId> {
        let (Some(first), Some(second)) = (a, b) else { return a.or(b) };
        Some(if prefer(&requests[first], &requests[second], from, self.derived.back_seek) {
            first
        } else {
            second
        })
    }

    /// The request of `queue` to serve after `rq`, which is still in the queue: a neighbour in sector order.
    pub(super) fn next_after(&self, requests: &Requests, queue: &Queue, rq: RequestId) -> Option<RequestId> {
        let sorted = &queue.requests;
        let ahead = sorted.next(&self.links, rq).or_else(|| sorted.first().filter(|first| *first != rq));
        let behind = sorted.prev(&self.links, rq);
        let from = match self.profile.neighbours_from {
            NeighboursFrom::Head => self.head,
            NeighboursFrom::Request => requests[rq].sector,
        };
        self.best(requests, ahead, behind, from)
    }
}
