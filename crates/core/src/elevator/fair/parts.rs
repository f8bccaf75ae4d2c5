//! How large a request may be where others want the device as well: all of them wait while a large one crosses the link.
//!
//! Bios of a flow that fills the device and is not behind its due go in parts, and merging makes no larger requests, on a device that serves many at a time.
//! (One that serves one after the other would pay for each part what it pays for a request. A flow that is behind its due
//! keeps its large requests: in parts it would wait for a place in the device as often as it has parts.)
//!
//! A part has 64 KiB at least. A device that counts operations, and large ones as one (a cloud volume: up to 256 KiB), would lose by
//! that. So now and then parts of twice the size are tried, or of half: the larger are kept if the device does a quarter more with them,
//! so that small ones cost a fifth at most. That is measured while the depth is settled: at one that is too small for small parts,
//! larger ones give more because more is in the device with them.

use super::costs::Costs;
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
/// Rows of requests at a size after which it is judged, but for the first, which has requests of the size before as well.
const ROWS: u32 = 4;
/// The larger parts have to give more than this part of what the smaller ones give.
const PAYS: [u64; 2] = [5, 4];
/// Sectors per time are kept in parts of 2^-20.
const RATE_SHIFT: u32 = 20;
/// Another size is tried after this long, then after twice as long each time, up to the second.
const RETRY_NS: [u64; 2] = [SECOND, 16 * SECOND];

/// How large the parts of one direction are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parts {
    /// As a power of two of sectors.
    size: u8,
    /// The size before and what it gave, while another is tried.
    before: Option<(u8, u64)>,
    /// Did requests of this size ever count?
    begun: bool,
    /// Rows in which they did, their sectors, and how long those took.
    rows: u32,
    sectors: u64,
    took_ns: u64,
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
    pub(super) const NEW: Parts = Parts {
        size: LEAST,
        before: None,
        begun: false,
        rows: 0,
        sectors: 0,
        took_ns: 0,
        retry_at_ns: 0,
        retry_ns: RETRY_NS[0],
        shrinks: false,
    };

    /// Sectors of a part.
    #[inline]
    pub(super) fn sectors(&self) -> u32 {
        if self.size == MOST { u32::MAX } else { 1 << self.size }
    }

    /// A row of requests ended. Does the size of parts change now, or do they begin to count?
    pub(super) fn row(&mut self, costs: &Costs, writes: bool, depth_is_settled: bool, now: u64) -> bool {
        if !costs.counted(writes, index(self.size)) {
            return false;
        }
        if !core::mem::replace(&mut self.begun, true) {
            return true;
        }
        if !depth_is_settled {
            return false;
        }
        self.rows += 1;
        if self.rows > 1 {
            let (sectors, took_ns) = costs.last_row();
            (self.sectors, self.took_ns) = (self.sectors + sectors, self.took_ns.saturating_add(took_ns));
        }
        self.rows >= ROWS && self.measured((self.sectors << RATE_SHIFT) / self.took_ns.max(1), now)
    }

    /// Parts of this size give so many sectors per time. Does the size change?
    fn measured(&mut self, rate: u64, now: u64) -> bool {
        let size = self.size;
        (self.rows, self.sectors, self.took_ns) = (0, 0, 0);
        match self.before.take() {
            Some(before) => self.judge(before, rate, now),
            None if now >= self.retry_at_ns => {
                self.before = Some((size, rate));
                self.shrinks = size > LEAST && (self.shrinks || size == MOST);
                self.size = if self.shrinks { size - 1 } else { size + 1 };
            }
            None => {}
        }
        self.size != size
    }

    fn judge(&mut self, (before, before_rate): (u8, u64), rate: u64, now: u64) {
        let (small_rate, large_rate) =
            if before < self.size { (before_rate, rate) } else { (rate, before_rate) };
        let [most, of] = PAYS;
        let larger_pays = of * large_rate > most * small_rate;
        if larger_pays == (self.size > before) {
            self.retry_ns = RETRY_NS[0];
            return;
        }
        self.size = before;
        self.shrinks = !self.shrinks;
        self.retry_ns = (2 * self.retry_ns).min(RETRY_NS[1]);
        self.retry_at_ns = now.saturating_add(self.retry_ns);
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
        let writes = bio.op != Op::Read;
        // One that does not fill the device by itself waits for each of its parts.
        if state.in_device + (state.requests.len() as u32) < self.model.depth(writes) {
            return u32::MAX;
        }
        match self.groups[state.group.index()].round.is_behind(place, 0) {
            true => u32::MAX,
            false => self.model.part_sectors(writes),
        }
    }
}
