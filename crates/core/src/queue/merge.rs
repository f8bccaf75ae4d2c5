//! Merging: which queued request a bio may join.
//!
//! Source: Linux 2.6.33 `block/elevator.c` (`elv_merge`), `block/blk-merge.c`; commits ac9fafa1243 and 488991e28e5 for
//! `nomerges`.

use alloc::vec::Vec;

use crate::collections::{Id, List, ListLinks};
use crate::elevator::Growth;
use crate::request::{Bio, Flags, Op, Request, RequestId, RequestState, Requests};

/// `queue/nomerges`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum NoMerges {
    /// 0: look everywhere.
    #[default]
    Off,
    /// 1: only the request merged into last.
    Simple,
    /// 2: not at all.
    All,
}

impl NoMerges {
    /// What a write of `value` means: 0, 2, anything else is 1.
    pub const fn from_sysfs(value: u64) -> NoMerges {
        match value {
            0 => NoMerges::Off,
            2 => NoMerges::All,
            _ => NoMerges::Simple,
        }
    }
}

/// Limits of a single request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MergeLimits {
    /// Sectors.
    pub max_sectors: u32,
    /// Memory segments.
    pub max_segments: u16,
}

impl MergeLimits {
    pub(super) fn allow(&self, sectors: u32, segments: u32) -> bool {
        sectors <= self.max_sectors && segments <= u32::from(self.max_segments)
    }
}

/// Requests with the elevator by their end sector, to find the one a bio continues.
#[derive(Debug)]
pub(super) struct EndHash {
    chains: Vec<List<RequestId>>,
    links: ListLinks<RequestId>,
    /// The chain each request is on; `NONE` when on none.
    chain_of: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl EndHash {
    pub(super) fn new(requests: usize) -> EndHash {
        // The kernel has 64 chains for 2 x 128 requests; keep that density.
        let chains = (requests / 4).next_power_of_two().max(64);
        EndHash {
            chains: alloc::vec![List::new(); chains],
            links: ListLinks::new(requests),
            chain_of: alloc::vec![NONE; requests],
        }
    }

    fn chain(&self, end: u64) -> usize {
        // Neighbouring ends share the low bits; multiply (golden ratio) and take the upper ones.
        let mixed = (end >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.chains.len() - 1)
    }

    #[inline]
    pub(super) fn add(&mut self, rq: RequestId, end: u64) {
        let chain = self.chain(end);
        self.chain_of[rq.index()] = chain as u32;
        self.chains[chain].push_front(&mut self.links, rq);
    }

    #[inline]
    pub(super) fn remove(&mut self, rq: RequestId) {
        let chain = core::mem::replace(&mut self.chain_of[rq.index()], NONE);
        if chain != NONE {
            self.chains[chain as usize].remove(&mut self.links, rq);
        }
    }

    pub(super) fn moved(&mut self, rq: RequestId, end: u64) {
        self.remove(rq);
        self.add(rq, end);
    }

    /// A mergeable request ending at `sector`.
    #[inline]
    pub(super) fn find(&mut self, requests: &Requests, sector: u64) -> Option<RequestId> {
        let chain = self.chain(sector);
        let mut at = self.chains[chain].front();
        while let Some(rq) = at {
            at = self.chains[chain].next(&self.links, rq);
            let request = &requests[rq];
            if !request.is_mergeable() || request.state != RequestState::Sorted {
                self.remove(rq);
            } else if request.end() == sector {
                return Some(rq);
            }
        }
        None
    }
}

/// May this bio ever be merged?
pub(super) fn is_mergeable(bio: &Bio) -> bool {
    bio.op != Op::Flush
        && !bio.flags.intersects(Flags::BARRIER | Flags::FUA | Flags::PREFLUSH | Flags::NOMERGE)
}

/// The end of `request` at which `bio` would join, if what they do allows it.
#[inline]
pub(super) fn joins(request: &Request, bio: &Bio) -> Option<Growth> {
    if request.op != bio.op || !request.is_mergeable() {
        return None;
    }
    if request.end() == bio.sector {
        Some(Growth::Back)
    } else if bio.end() == request.sector {
        Some(Growth::Front)
    } else {
        None
    }
}
