//! Which of two requests the head reaches more cheaply, and a queue's next request by that measure.

use super::queue::Queue;
use super::{Cfq, NeighboursFrom};
use crate::request::{Flags, Request, RequestId, Requests};

/// How dear a way back is.
#[derive(Clone, Copy)]
pub(super) struct BackSeek {
    /// Longest way back that counts as a seek, sectors.
    pub(super) sectors_max: u64,
    /// Multiplier of its length.
    pub(super) penalty: u64,
}

/// The cost of reaching `sector` from `from`; `None` when it lies too far back and waits for the next sweep.
fn cost(sector: u64, from: u64, back: BackSeek) -> Option<u64> {
    if sector >= from {
        Some(sector - from)
    } else if from - sector <= back.sectors_max {
        // Saturating: both factors are settings up to 2^33; a cost that high loses anyway.
        Some((from - sector).saturating_mul(back.penalty))
    } else {
        None
    }
}

/// Is `a` to be served before `b` with the head at `from`? Sync first, then metadata, then the cheaper one (of equals
/// the one ahead), then the one that starts the next sweep.
pub(super) fn prefer(a: &Request, b: &Request, from: u64, back: BackSeek) -> bool {
    if a.is_sync() != b.is_sync() {
        return a.is_sync();
    }
    let (a_meta, b_meta) = (a.flags.contains(Flags::META), b.flags.contains(Flags::META));
    if a_meta != b_meta {
        return a_meta;
    }
    match (cost(a.sector, from, back), cost(b.sector, from, back)) {
        (Some(x), Some(y)) if x == y => a.sector >= b.sector,
        (Some(x), Some(y)) => x < y,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => a.sector <= b.sector,
    }
}

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
