//! Which blocks have been touched: one bit a block, and a tree of "all 64 taken" bits above it.
//!
//! Finding the next free block reads at most two words per level, so O(log₆₄ n).

/// Most blocks of a map (a map of 2 GiB): enough for 64 TiB in blocks of 4 KiB.
pub const MAP_BLOCKS_MAX: u64 = 1 << 34;

/// A set of blocks.
#[derive(Clone, Debug)]
pub struct RandomMap {
    /// `levels[0]` has a bit per block, `levels[n + 1]` a bit per full word of `levels[n]`. Bits past the end are set, so that
    /// nothing is ever found there.
    levels: Vec<Box<[u64]>>,
    blocks: u64,
}

impl RandomMap {
    /// An empty set for blocks `0..blocks`. Memory: 1.016 bits a block.
    pub fn new(blocks: u64) -> Self {
        let mut levels = Vec::new();
        let mut bits = blocks.max(1);
        loop {
            let words = bits.div_ceil(64);
            levels.push(vec![0; words as usize].into_boxed_slice());
            if words == 1 {
                break;
            }
            bits = words;
        }
        let mut map = Self { levels, blocks };
        map.clear();
        map
    }

    /// Forgets all blocks. Costs a pass over the memory.
    pub fn clear(&mut self) {
        let mut bits = self.blocks;
        for level in &mut self.levels {
            level.fill(0);
            let words = level.len();
            let used = bits - 64 * (words as u64 - 1).min(bits / 64);
            if used < 64 {
                level[words - 1] = u64::MAX << used;
            }
            bits = words as u64;
        }
    }

    /// Whether a block is in the set. Blocks past the end are not.
    #[inline]
    pub fn contains(&self, block: u64) -> bool {
        block < self.blocks && self.levels[0][(block / 64) as usize] & (1 << (block % 64)) != 0
    }

    /// Adds `count` blocks from `block` on, up to the first that is already in the set or past the end. Returns how many.
    #[inline]
    pub fn insert_run(&mut self, block: u64, count: u64) -> u64 {
        let mut inserted = 0;
        while inserted < count {
            let at = block + inserted;
            if at >= self.blocks || self.contains(at) {
                break;
            }
            self.insert(at);
            inserted += 1;
        }
        inserted
    }

    #[inline]
    fn insert(&mut self, block: u64) {
        let mut bit = block;
        for level in &mut self.levels {
            let word = &mut level[(bit / 64) as usize];
            *word |= 1 << (bit % 64);
            if *word != u64::MAX {
                return;
            }
            bit /= 64;
        }
    }

    /// The first block after `block` that is not in the set, starting over at 0 past the end. `None`: all are.
    pub fn next_free_after(&self, block: u64) -> Option<u64> {
        self.first_free_from(block + 1).or_else(|| self.first_free_from(0)).filter(|_| self.blocks > 0)
    }

    /// The first free block that is not below `from`.
    fn first_free_from(&self, from: u64) -> Option<u64> {
        // Climb while the rest of the word is full …
        let mut bit = from;
        let mut level = 0;
        let mut found = loop {
            let word = *self.levels.get(level)?.get((bit / 64) as usize)?;
            let free = !word & (u64::MAX << (bit % 64));
            if free != 0 {
                break bit / 64 * 64 + u64::from(free.trailing_zeros());
            }
            bit = bit / 64 + 1;
            level += 1;
        };
        // … then descend to the leftmost free bit below.
        while level > 0 {
            level -= 1;
            found = found * 64 + u64::from((!self.levels[level][found as usize]).trailing_zeros());
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn naive_next_free(set: &[bool], block: u64) -> Option<u64> {
        let blocks = set.len() as u64;
        (1..=blocks).map(|step| (block + step) % blocks).find(|&block| !set[block as usize])
    }

    proptest! {
        #[test]
        fn agrees_with_a_list_of_bools(blocks in 1u64..9000, runs in prop::collection::vec((0u64..9000, 1u64..200), 0..300)) {
            let mut map = RandomMap::new(blocks);
            let mut set = vec![false; blocks as usize];
            for (start, count) in runs {
                let start = start % blocks;
                let mut expected = 0;
                while expected < count && start + expected < blocks && !set[(start + expected) as usize] {
                    set[(start + expected) as usize] = true;
                    expected += 1;
                }
                prop_assert_eq!(map.insert_run(start, count), expected);
                prop_assert_eq!(map.next_free_after(start), naive_next_free(&set, start));
                prop_assert_eq!(map.contains(start), set[start as usize]);
            }
        }
    }

    #[test]
    fn full_means_none_and_clear_means_all() {
        for blocks in [1, 63, 64, 65, 4096, 4097, 262_145] {
            let mut map = RandomMap::new(blocks);
            assert_eq!(map.insert_run(0, blocks + 5), blocks);
            assert_eq!(map.next_free_after(0), None, "{blocks}");
            map.clear();
            assert_eq!(map.next_free_after(blocks - 1), Some(0));
        }
    }
}
