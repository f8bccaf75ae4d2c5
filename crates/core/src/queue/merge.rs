//! Merging: which queued request a bio may join.
//!
//! Source: Linux 2.6.33 `block/elevator.c` (`elv_merge`), `block/blk-merge.c`; commits ac9fafa1243 and 488991e28e5 for
//! `nomerges`.

use super::RequestQueue;
use crate::collections::{Id, List, ListLinks, Table};
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
    /// No value of `queue/nomerges`: as `All`, and requests are not even made known to the end hash. What the RFC of April
    /// 2008 measured (its three patches; upstream took one); for `scripts/nomerges`.
    Rfc,
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

    /// Is a merge looked for anywhere?
    #[inline]
    pub(super) const fn looks(self) -> bool {
        matches!(self, NoMerges::Off | NoMerges::Simple)
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
    /// May something of these sizes and something of those be one request?
    #[inline]
    fn allow(&self, sectors: [u32; 2], segments: [u16; 2]) -> bool {
        let (limit, [a, b]) = (self.max_sectors, sectors);
        let (segment_limit, [c, d]) = (self.max_segments, segments);
        a <= limit && b <= limit - a && c <= segment_limit && d <= segment_limit - c
    }

    /// May a bio be as large as this?
    #[inline]
    pub(super) fn admit(&self, bio: &Bio) -> bool {
        self.allow([bio.sectors, 0], [bio.segments, 0])
    }
}

/// Requests with the elevator by their end sector, to find the one a bio continues.
#[derive(Debug)]
pub(super) struct EndHash {
    chains: Table<List<RequestId>>,
    links: ListLinks<RequestId>,
    /// The chain each request is on; `NONE` when on none.
    chain_of: Table<u32>,
}

const NONE: u32 = u32::MAX;

impl EndHash {
    pub(super) fn new(requests: usize) -> EndHash {
        // The kernel has 64 chains for 2 x 128 requests; keep that density.
        let chains = (requests / 4).next_power_of_two().max(64);
        EndHash {
            chains: Table::new(List::new(), chains),
            links: ListLinks::new(requests),
            chain_of: Table::new(NONE, requests),
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

/// What `rq` looks like to a rule about bios.
fn as_bio(rq: &Request) -> Bio {
    Bio {
        cookie: 0,
        op: rq.op,
        flags: rq.flags,
        sector: rq.sector,
        sectors: rq.sectors,
        segments: rq.segments,
        context: rq.context,
        ioprio: Some(rq.ioprio),
        group: Some(rq.group),
    }
}

impl RequestQueue {
    /// Let `bio` join a request, if there is one. Search order: the task's plug, the one-hit cache, the end hash, the
    /// elevator's front look-up. The first that fits decides, even if it then has no room.
    #[inline]
    pub(super) fn try_merge(&mut self, bio: &Bio, now: u64) -> Option<RequestId> {
        if !self.config.nomerges.looks() || !is_mergeable(bio) {
            return None;
        }
        if let Some(rq) = self.task_plugs.newest(bio.context)
            && let Some(growth) = joins(&self.requests()[rq], bio)
            && self.lower.is_of_group(rq, bio)
            && self.attach(rq, bio, growth)
        {
            return Some(rq);
        }
        let (rq, growth) = self.find_merge(bio, now)?;
        self.attach(rq, bio, growth).then(|| self.grown(rq, growth, now))
    }

    #[inline]
    fn find_merge(&mut self, bio: &Bio, now: u64) -> Option<(RequestId, Growth)> {
        if self.lower.is_empty() { None } else { self.find_queued(bio, now) }
    }

    fn find_queued(&mut self, bio: &Bio, now: u64) -> Option<(RequestId, Growth)> {
        if let Some(rq) = self.one_hit()
            && let Some(growth) = joins(&self.requests()[rq], bio)
            && self.lower.allow_merge(rq, bio, now)
        {
            return Some((rq, growth));
        }
        if self.config.nomerges != NoMerges::Off {
            return None;
        }
        if let Some(rq) = self.hash.find(self.lower.requests(), bio.sector)
            && joins(&self.requests()[rq], bio) == Some(Growth::Back)
            && self.lower.allow_merge(rq, bio, now)
        {
            return Some((rq, Growth::Back));
        }
        let rq = self.lower.find_front(bio, now)?;
        let fits = joins(&self.requests()[rq], bio) == Some(Growth::Front);
        (fits && self.lower.allow_merge(rq, bio, now)).then_some((rq, Growth::Front))
    }

    /// The one-hit cache: the request merged into last, as long as the elevator has it.
    #[inline]
    pub(super) fn one_hit(&self) -> Option<RequestId> {
        self.last_merge.filter(|rq| self.requests()[*rq].state == RequestState::Sorted)
    }

    /// Grow `rq` by `bio`. A request that has no room is never tried again.
    fn attach(&mut self, rq: RequestId, bio: &Bio, growth: Growth) -> bool {
        let request = &self.requests()[rq];
        let room = self.config.limits.allow([request.sectors, bio.sectors], [request.segments, bio.segments]);
        let node = if room { self.bios.take(bio.cookie) } else { None };
        let ioprio = bio.ioprio.unwrap_or(self.contexts()[bio.context].ioprio);
        let Some(node) = node else {
            self.lower.requests_mut()[rq].flags.insert(Flags::NOMERGE);
            self.forget(rq);
            return false;
        };
        let request = &mut self.lower.requests_mut()[rq];
        request.sectors += bio.sectors;
        request.segments += bio.segments;
        request.ioprio = request.ioprio.best(ioprio);
        match growth {
            Growth::Back => self.bios.append(&mut request.queue, node),
            Growth::Front => {
                request.sector = bio.sector;
                self.bios.prepend(&mut request.queue, node);
            }
        }
        true
    }

    /// `rq`, with the elevator, grew at one end, where it may now touch its neighbour. Returns what it is part of now.
    fn grown(&mut self, rq: RequestId, growth: Growth, now: u64) -> RequestId {
        self.lower.grew(rq, growth, now);
        let survivor = self.coalesce(rq, growth, now);
        if growth == Growth::Back || survivor != rq {
            self.hash.moved(survivor, self.requests()[survivor].end());
        }
        self.last_merge = Some(survivor);
        survivor
    }

    /// Make `rq` and the neighbour it grew towards one request, if they touch. Returns the survivor, which is the lower one.
    fn coalesce(&mut self, rq: RequestId, growth: Growth, now: u64) -> RequestId {
        let pair = match growth {
            Growth::Back => self.lower.latter(rq, now).map(|next| (rq, next)),
            Growth::Front => self.lower.former(rq, now).map(|prev| (prev, rq)),
        };
        match pair {
            Some((low, high)) if self.may_coalesce(low, high) => {
                self.join(low, high);
                self.lower.absorbed(low, high, now);
                self.forget(high);
                self.release(high);
                low
            }
            _ => rq,
        }
    }

    fn may_coalesce(&self, low: RequestId, high: RequestId) -> bool {
        let (low, high) = (&self.requests()[low], &self.requests()[high]);
        low.end() == high.sector
            && low.op == high.op
            && low.group == high.group
            && low.payer == high.payer
            && low.is_mergeable()
            && high.is_mergeable()
            && self.config.limits.allow([low.sectors, high.sectors], [low.segments, high.segments])
    }

    /// Give `high`'s bios to `low`, which ends where `high` starts. `low` keeps its flags, and gets the better priority and
    /// the older start of the two.
    fn join(&mut self, low: RequestId, high: RequestId) {
        let gone = self.requests()[high];
        let request = &mut self.lower.requests_mut()[low];
        request.sectors += gone.sectors;
        request.segments += gone.segments;
        request.ioprio = request.ioprio.best(gone.ioprio);
        request.start_ns = request.start_ns.min(gone.start_ns);
        self.bios.join(&mut request.queue, &gone.queue);
    }

    /// Let a whole request off a plug join one with the elevator that ends where it starts: the one-hit cache or by the end
    /// hash. The elevator may veto it, as it may for a bio.
    pub(super) fn insert_merged(&mut self, rq: RequestId, now: u64) -> bool {
        if self.lower.is_empty() || !self.config.nomerges.looks() || !self.requests()[rq].is_mergeable() {
            return false;
        }
        let cached = self.one_hit().filter(|low| self.may_coalesce(*low, rq));
        let low = match cached {
            None if self.config.nomerges == NoMerges::Off => self
                .hash
                .find(self.lower.requests(), self.requests()[rq].sector)
                .filter(|low| self.may_coalesce(*low, rq)),
            cached => cached,
        };
        let Some(low) = low else { return false };
        let bio = as_bio(&self.requests()[rq]);
        if !self.lower.allow_merge(low, &bio, now) {
            return false;
        }
        self.join(low, rq);
        self.release(rq);
        self.grown(low, Growth::Back, now);
        true
    }

    /// `rq` can no longer be merged into.
    #[inline]
    pub(super) fn forget(&mut self, rq: RequestId) {
        self.hash.remove(rq);
        if self.last_merge == Some(rq) {
            self.last_merge = None;
        }
    }
}
