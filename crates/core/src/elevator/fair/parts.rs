//! How large a request may be where others want the device as well: all of them wait while a large one crosses the link.
//!
//! Bios of a flow that is not behind its due go in parts, and merging makes no larger requests, on a device that serves many at a time.
//! (One that serves one after the other would pay for each part what it pays for a request. A flow that is behind its due
//! keeps its large requests: in parts it would wait for a place in the device as often as it has parts.)
//!
//! A part has 64 KiB at least. A device that counts operations, and large ones as one (a cloud volume: up to 256 KiB), would lose by
//! that. So now and then parts of twice the size are tried, or of half: the larger are kept if the device does a quarter more with them,
//! so that small ones cost a fifth at most. What they cost is what is measured anyway ([`super::costs`]); until it is, the size
//! tried is taken to be no better.

use super::device::SIZES;
use super::{Fair, MERGED_MAX};
use crate::SECOND;
use crate::collections::Id;
use crate::elevator::Env;
use crate::request::{Bio, Op};

/// The smallest part, as a power of two of sectors (64 KiB).
const LEAST: u8 = MERGED_MAX.ilog2() as u8;
/// So large are parts at most, and then nothing is split.
const MOST: u8 = SIZES as u8 - 1;
/// Rows of requests after which a cost that was wrong by half is right to within a tenth: each corrects a quarter.
const ROWS: u32 = 6;
/// The larger parts have to cost less than 8/5 of the smaller ones: twice as much is as much for each byte.
const LESS: [u64; 2] = [8, 5];
/// Another size is tried after this long, then after twice as long each time, up to the second.
const RETRY_NS: [u64; 2] = [SECOND, 16 * SECOND];

/// How large the parts of one direction are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// As a power of two of sectors.
    size: u8,
    /// The size before, while another is tried.
    before: Option<u8>,
    /// Rows in which requests of this size counted.
    rows: u32,
    retry_at_ns: u64,
    retry_ns: u64,
    /// Is a smaller size tried next? What paid is tried once more, else the other direction.
    shrinks: bool,
}

/// Where a table by size has it.
fn index(size: u8) -> usize {
    usize::from(size).min(SIZES - 1)
}

impl Parts {
    pub(super) const NEW: Parts =
        Parts { size: LEAST, before: None, rows: 0, retry_at_ns: 0, retry_ns: RETRY_NS[0], shrinks: false };

    /// Sectors of a part.
    #[inline]
    pub(super) fn sectors(&self) -> u32 {
        if self.size == MOST { u32::MAX } else { 1 << self.size }
    }

    /// The kind of requests whose rows count, as a power of two of sectors.
    pub(super) fn size(&self) -> usize {
        index(self.size)
    }

    /// A row ended in which parts counted; requests cost so much, by size.
    pub(super) fn row(&mut self, cost_ns: &mut [u64; SIZES], now: u64) {
        self.rows += 1;
        if self.rows < ROWS {
            return;
        }
        match self.before.take() {
            Some(before) => self.judge(before, cost_ns, now),
            None if now >= self.retry_at_ns => self.try_another(cost_ns),
            None => {}
        }
    }

    fn judge(&mut self, before: u8, cost_ns: &[u64; SIZES], now: u64) {
        let (small, large) = (before.min(self.size), before.max(self.size));
        let [small_ns, large_ns] = [small, large].map(|size| cost_ns[index(size)]);
        let [most, of] = LESS;
        let best = if of * large_ns < most * small_ns { large } else { small };
        (self.size, self.rows) = (best, 0);
        if best == before {
            self.shrinks = !self.shrinks;
            self.retry_ns = (2 * self.retry_ns).min(RETRY_NS[1]);
            self.retry_at_ns = now.saturating_add(self.retry_ns);
        } else {
            self.retry_ns = RETRY_NS[0];
        }
    }

    fn try_another(&mut self, cost_ns: &mut [u64; SIZES]) {
        self.shrinks = self.size > LEAST && (self.shrinks || self.size == MOST);
        let (now_ns, before) = (cost_ns[self.size()], self.size);
        self.size = if self.shrinks { before - 1 } else { before + 1 };
        cost_ns[self.size()] = if self.shrinks { now_ns } else { 2 * now_ns };
        (self.before, self.rows) = (Some(before), 0);
    }
}

impl Fair {
    /// Sectors that a request of `bio`'s flow may have.
    pub(super) fn part_of(&self, env: &Env<'_>, bio: &Bio) -> u32 {
        if !self.model.is_shared(env.now) || !self.model.may_be_parallel(env.device) {
            return u32::MAX;
        }
        let flow = self.slots.find(&self.flows, bio.context, env.group_of(bio), bio.is_sync());
        let (state, place) = (&self.flows[flow.index()], &self.places[flow.index()]);
        match self.groups[state.group.index()].round.is_behind(place, 0) {
            true => u32::MAX,
            false => self.model.part_sectors(bio.op != Op::Read),
        }
    }
}
