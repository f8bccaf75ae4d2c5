//! Where a file's blocks lie: runs of blocks, in the order of the file.

use std::collections::BTreeMap;

/// Blocks of a file to blocks of the device; what is not in it is a hole.
#[derive(Debug, Default)]
pub(crate) struct Extents {
    /// First block of the file -> (first block of the device, blocks).
    runs: BTreeMap<u64, (u64, u64)>,
}

impl Extents {
    /// How `block` of the file and up to `max` blocks from it on lie: (place, or `None` for a hole; length of the run).
    pub(crate) fn run_at(&self, block: u64, max: u64) -> (Option<u64>, u64) {
        if let Some((start, (place, length))) = self.runs.range(..=block).next_back()
            && block < start + length
        {
            let within = block - start;
            return (Some(place + within), max.min(length - within));
        }
        let hole = self.runs.range(block..).next().map_or(max, |(next, _)| max.min(next - block));
        (None, hole)
    }

    /// Are all of these blocks mapped?
    pub(crate) fn covers(&self, block: u64, blocks: u64) -> bool {
        let mut at = block;
        while at < block + blocks {
            match self.run_at(at, block + blocks - at) {
                (None, _) => return false,
                (Some(_), length) => at += length,
            }
        }
        true
    }

    /// A hole gets its place.
    pub(crate) fn insert(&mut self, block: u64, place: u64, blocks: u64) {
        debug_assert!(self.run_at(block, blocks) == (None, blocks), "blocks are placed once");
        let mut run = (block, place, blocks);
        if let Some((start, (at, length))) = self.runs.range_mut(..block).next_back()
            && *start + *length == block
            && *at + *length == place
        {
            *length += blocks;
            run = (*start, *at, *length);
        } else {
            self.runs.insert(block, (place, blocks));
        }
        let end = run.0 + run.2;
        if let Some((next, next_length)) = self.runs.get(&end).copied()
            && run.1 + run.2 == next
        {
            self.runs.remove(&end);
            self.runs.insert(run.0, (run.1, run.2 + next_length));
        }
    }

    /// Cut the file to `blocks` blocks: the places that are free now.
    pub(crate) fn truncate(&mut self, blocks: u64) -> Vec<(u64, u64)> {
        let mut freed = Vec::new();
        if let Some((start, (place, length))) = self.runs.range_mut(..blocks).next_back()
            && *start + *length > blocks
        {
            let kept = blocks - start;
            freed.push((*place + kept, *length - kept));
            *length = kept;
        }
        freed.extend(self.runs.split_off(&blocks).into_values());
        freed
    }

    /// Make a hole of `blocks` blocks from `block` on: the places that are free now.
    pub(crate) fn remove(&mut self, block: u64, blocks: u64) -> Vec<(u64, u64)> {
        self.split(block);
        self.split(block + blocks);
        let within: Vec<u64> = self.runs.range(block..block + blocks).map(|(start, _)| *start).collect();
        within.iter().filter_map(|start| self.runs.remove(start)).collect()
    }

    /// A run that reaches over the start of `block` becomes two.
    fn split(&mut self, block: u64) {
        if let Some((start, (place, length))) = self.runs.range_mut(..block).next_back()
            && *start + *length > block
        {
            let kept = block - start;
            let rest = (*place + kept, *length - kept);
            *length = kept;
            self.runs.insert(block, rest);
        }
    }

    /// Number of runs that begin at or before `block`.
    pub(crate) fn count_up_to(&self, block: u64) -> usize {
        self.runs.range(..=block).count()
    }

    /// Number of runs.
    pub(crate) fn count(&self) -> usize {
        self.runs.len()
    }

    /// Where the block before `block` lies.
    pub(crate) fn place_before(&self, block: u64) -> Option<u64> {
        self.runs.range(..block).next_back().map(|(_, (place, length))| place + length - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_touch_are_one() {
        let mut map = Extents::default();
        map.insert(10, 110, 2);
        map.insert(0, 100, 4);
        map.insert(12, 112, 1);
        assert_eq!(map.count(), 2);
        map.insert(4, 104, 6);
        assert_eq!(map.count(), 1);
        assert_eq!(map.run_at(3, 100), (Some(103), 10));
        assert_eq!(map.run_at(13, 5), (None, 5));
        assert!(map.covers(0, 13) && !map.covers(0, 14));
        assert_eq!(map.truncate(5), [(105, 8)]);
        assert_eq!(map.run_at(5, 3), (None, 3));
        assert_eq!(map.truncate(0), [(100, 5)]);
        assert_eq!(map.count(), 0);
    }

    #[test]
    fn a_hole_leaves_what_lies_around_it() {
        let mut map = Extents::default();
        map.insert(0, 100, 10);
        map.insert(20, 300, 4);
        assert_eq!(map.remove(4, 2), [(104, 2)], "in the middle of a run");
        assert_eq!(
            (map.run_at(0, 9), map.run_at(4, 9), map.run_at(6, 9)),
            ((Some(100), 4), (None, 2), (Some(106), 4))
        );
        assert_eq!(map.remove(8, 14), [(108, 2), (300, 2)], "over a hole into the next run");
        assert_eq!(map.run_at(22, 9), (Some(302), 2));
        assert_eq!(map.remove(40, 5), []);
        map.insert(4, 104, 2);
        assert_eq!(map.count(), 2, "filled again, it is one run");
    }
}
