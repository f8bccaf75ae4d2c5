//! How fast a drive takes writes that it acknowledges before it is done with them.
//!
//! A drive with a write buffer says done at once until the buffer is full, and from then on as slowly as it programs; a
//! task that reads waits for the dies behind all that is in the buffer. A limit on the number of writes in the device does not help: the buffer
//! fills with one at a time. So while a task reads, writes go at 7/8 of the rate at which the drive took them when its buffer was
//! full, evenly spaced. That rate is measured when most writes of a row take much longer than one into an empty buffer; it is
//! lowered when that happens again, and measured anew, without a pace, every half minute.

use crate::{MS, SECOND};

/// Writes in a row that are judged.
const JUDGED: u32 = 64;
/// A write took long if it took so many times what the fastest of late did, and this much more.
const LONG: u64 = 4;
const LONG_NS: u64 = MS / 20;
/// Measured anew after this long, and not before the second; for no longer than the third.
const AGAIN_NS: u64 = 30 * SECOND;
const LEAST_NS: u64 = SECOND / 4;
const MEASURED_NS: u64 = SECOND / 5;
const WAY_SECTORS: u64 = 128;
/// Time for a sector is kept in parts of 2^-8 ns.
const SHIFT: u32 = 8;
/// The longest time for a write that is spaced out (1 s).
const SPACE_MAX_NS: u64 = SECOND;

/// The pace of writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// What a sector takes when the buffer is full, 2^-8 ns; 0: it never was.
    sector: u64,
    /// When that is to be measured, and since when it is.
    again_ns: u64,
    least_ns: u64,
    measuring_ns: Option<u64>,
    /// No write before.
    next_ns: u64,
    /// What the fastest write of late took, nanoseconds.
    fastest_ns: u64,
    // The row.
    writes: u32,
    long: u32,
    sectors: u64,
    since_ns: u64,
}

impl Pace {
    pub(super) const NEW: Pace = Pace {
        sector: 0,
        again_ns: 0,
        least_ns: 0,
        measuring_ns: None,
        next_ns: 0,
        fastest_ns: u64::MAX,
        writes: 0,
        long: 0,
        sectors: 0,
        since_ns: 0,
    };

    /// What a write of 32 KiB takes when the buffer is full, nanoseconds; 0: not known.
    pub(super) fn of_32_kib_ns(&self) -> u64 {
        (self.sector * 64) >> SHIFT
    }

    /// Before when no write is to go.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        if self.measuring_ns.is_some() { 0 } else { self.next_ns }
    }

    /// A write goes.
    #[inline]
    pub(super) fn sent(&mut self, sectors: u32, now: u64) {
        let space_ns = ((u64::from(sectors) * self.sector) >> SHIFT).min(SPACE_MAX_NS);
        self.next_ns = now.saturating_add(space_ns + space_ns / 7);
    }

    /// A write is done, which took `took_ns`. Is another one in the device?
    pub(super) fn done(&mut self, sectors: u32, took_ns: u64, others: bool, now: u64) {
        if !others {
            // Whoever writes no faster than this says nothing of how fast the drive is.
            (self.writes, self.long, self.sectors, self.since_ns) = (0, 0, 0, now);
            return;
        }
        // A large one takes longer on its way: as much again for each 64 KiB.
        let took_ns = took_ns.min(SECOND) * WAY_SECTORS / (WAY_SECTORS + u64::from(sectors));
        self.fastest_ns = took_ns.min(self.fastest_ns.saturating_add(self.fastest_ns / 1024));
        self.writes += 1;
        self.sectors += u64::from(sectors);
        self.long += u32::from(took_ns > LONG.saturating_mul(self.fastest_ns).saturating_add(LONG_NS));
        if self.writes >= JUDGED {
            self.judge(now);
        }
    }

    fn judge(&mut self, now: u64) {
        let row_ns = now.saturating_sub(self.since_ns).min(1 << 40);
        let sector = (row_ns << SHIFT) / self.sectors.max(1);
        let was_full = self.since_ns > 0 && 4 * self.long >= 3 * self.writes;
        (self.writes, self.long, self.sectors, self.since_ns) = (0, 0, 0, now);
        match (was_full, self.measuring_ns) {
            (true, Some(_)) => (self.sector, self.measuring_ns) = (sector, None),
            // Full for the first time; or it takes less than it did, how much is seen without a pace.
            (true, None) if self.sector == 0 => self.sector = sector,
            (true, None) if now >= self.least_ns => self.measuring_ns = Some(now),
            (false, Some(since_ns)) if now.saturating_sub(since_ns) > MEASURED_NS => {
                // It takes all that comes.
                (self.sector, self.measuring_ns) = (0, None);
            }
            _ => {}
        }
        if was_full && self.measuring_ns.is_none() && now >= self.least_ns {
            self.again_ns = now.saturating_add(AGAIN_NS);
            self.least_ns = now.saturating_add(LEAST_NS);
        } else if self.sector > 0 && self.measuring_ns.is_none() && now >= self.again_ns {
            self.measuring_ns = Some(now);
        }
    }
}
