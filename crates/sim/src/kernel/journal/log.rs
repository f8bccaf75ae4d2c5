//! The log: a ring of blocks. Block 0 of its area is the journal's superblock.

use std::collections::VecDeque;

use super::Tid;
use crate::kernel::extents::Extents;

#[derive(Debug)]
pub(super) struct Log {
    /// Block of the log -> block of the device.
    area: Extents,
    /// Blocks of the ring, the superblock not counted.
    blocks: u64,
    head: u64,
    /// What each transaction takes, oldest first.
    used_by: VecDeque<(Tid, u64)>,
    used: u64,
}

impl Log {
    pub(super) fn new(area: Extents, blocks: u64) -> Log {
        Log { area, blocks: blocks.saturating_sub(1), head: 0, used_by: VecDeque::new(), used: 0 }
    }

    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// Blocks a new transaction may count on: some are kept back.
    pub(super) fn space(&self) -> u64 {
        let free = (self.blocks - self.used).saturating_sub(32);
        free - free / 8
    }

    /// The superblock's place.
    pub(super) fn superblock(&self) -> u64 {
        self.place(0)
    }

    fn place(&self, block: u64) -> u64 {
        self.area.run_at(block, 1).0.unwrap_or(0)
    }

    /// The next `count` blocks, for `tid`; and whether the ring began again.
    pub(super) fn take(&mut self, tid: Tid, count: u64) -> (Vec<u64>, bool) {
        assert!(self.used + count <= self.blocks, "the journal has overflowed");
        let places = (0..count).map(|i| self.place(1 + (self.head + i) % self.blocks)).collect();
        let wrapped = self.head + count >= self.blocks;
        self.head = (self.head + count) % self.blocks;
        self.used += count;
        match self.used_by.back_mut() {
            Some((last, blocks)) if *last == tid => *blocks += count,
            _ => self.used_by.push_back((tid, count)),
        }
        (places, wrapped)
    }

    /// Give back the blocks of the oldest transactions, as long as `is_done` says so; how many blocks that are.
    pub(super) fn release(&mut self, is_done: impl Fn(Tid) -> bool) -> u64 {
        let before = self.used;
        while let Some((tid, blocks)) = self.used_by.front().copied()
            && is_done(tid)
        {
            self.used_by.pop_front();
            self.used -= blocks;
        }
        before - self.used
    }

    /// The oldest transaction in the log.
    pub(super) fn oldest(&self) -> Option<Tid> {
        self.used_by.front().map(|(tid, _)| *tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_a_ring() {
        let mut area = Extents::default();
        area.insert(0, 500, 6);
        area.insert(6, 900, 5);
        let mut log = Log::new(area, 11);
        assert_eq!((log.blocks(), log.superblock()), (10, 500));
        assert_eq!(log.take(1, 4), (vec![501, 502, 503, 504], false));
        assert_eq!(log.take(1, 2), (vec![505, 900], false));
        assert_eq!(log.take(2, 3).0, [901, 902, 903]);
        assert_eq!(log.release(|tid| tid < 2), 6);
        assert_eq!(log.take(3, 3), (vec![904, 501, 502], true));
        assert_eq!((log.used(), log.oldest()), (6, Some(2)));
    }
}
