//! A memory in front of a flash drive that answers reads of what it holds: a virtual disk's host has one.
//!
//! Each 4 KiB has one place in it (direct-mapped), so reads spread evenly over more than it holds hit in the share that it holds,
//! and whatever is no longer than it fits without conflict. It begins with blocks from all over the part of the drive that is in use.

/// What it keeps apart.
const BLOCK_BYTES: u64 = 4096;

/// Scatters what it begins with: 2^64 over the golden ratio.
const SCATTER: u64 = 0x9E37_79B9_7F4A_7C15;

/// Which of the blocks that share a place is in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    held: Vec<u32>,
}

impl Cache {
    /// Of so many bytes, for a drive of which the first `over` bytes are in use; of none it never answers.
    pub(super) fn new(bytes: u64, over: u64) -> Cache {
        let count = bytes / BLOCK_BYTES;
        let sharing = (over / bytes.max(1)).max(1);
        let first_holder = |place: u64| (place.wrapping_mul(SCATTER) >> 32) % sharing;
        Cache { held: (0..count).map(|place| first_holder(place) as u32).collect() }
    }

    /// Has it no room at all?
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Does it hold all of these bytes?
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        !self.held.is_empty()
            && self.places(start, end).all(|(place, holder)| self.held.get(place) == Some(&holder))
    }

    /// It holds these bytes from now on.
    pub(super) fn keep(&mut self, start: u64, end: u64) {
        if self.held.is_empty() {
            return;
        }
        for (place, holder) in self.places(start, end) {
            self.held[place] = holder;
        }
    }

    fn places(&self, start: u64, end: u64) -> impl Iterator<Item = (usize, u32)> + use<> {
        let count = self.held.len() as u64;
        // A drive of 2^50 sectors has 2^47 blocks: with one place the number does not fit, and is only a mark.
        (start / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES))
            .map(move |block| ((block % count) as usize, (block / count) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_keeps_what_came_last() {
        let mut cache = Cache::new(8 * BLOCK_BYTES, 8 * BLOCK_BYTES);
        assert!(cache.holds(0, 8 * BLOCK_BYTES) && !cache.holds(0, 9 * BLOCK_BYTES));
        cache.keep(9 * BLOCK_BYTES, 10 * BLOCK_BYTES);
        assert!(
            cache.holds(9 * BLOCK_BYTES, 9 * BLOCK_BYTES + 512) && !cache.holds(BLOCK_BYTES, 2 * BLOCK_BYTES)
        );
        let mut none = Cache::new(0, 1 << 40);
        none.keep(0, 4096);
        assert!(!none.holds(0, 4096));
    }
    #[test]
    fn it_begins_with_its_share_of_what_is_in_use() {
        let cache = Cache::new(1 << 20, 4 << 20);
        let held = (0..1024).filter(|block| cache.holds(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES));
        assert_eq!(held.count(), 256);
        let first = (0..256).filter(|block| cache.holds(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES));
        assert!((50..80).contains(&first.count()));
    }
}
