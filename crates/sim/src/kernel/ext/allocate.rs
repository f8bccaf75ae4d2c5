//! Who gets which blocks: bitmaps by group, goals, and windows set aside so that files growing side by side do not interleave.
//!
//! ext3 keeps a window of 8 blocks per open file that doubles up to 1024 (`fs/ext3/balloc.c`); ext4 takes the whole dirty run at
//! once and rounds it up by the file's size (`fs/ext4/mballoc.c`, `ext4_mb_normalize_request`).

use std::collections::VecDeque;

use super::layout::{BLOCKS_PER_GROUP, Layout};
use super::{DataMode, Ext, FsKind};
use crate::engine::TaskId;
use crate::kernel::files::{FileId, Files, PAGE, Place};
use crate::kernel::journal::Tid;

const WORDS: usize = (BLOCKS_PER_GROUP / 64) as usize;
/// ext3's first and largest window, blocks.
const WINDOW_MIN: u64 = 8;
const WINDOW_MAX: u64 = 1024;
/// Blocks an ext3 inode maps by itself, and blocks an indirect block maps.
pub(super) const DIRECT_BLOCKS: u64 = 12;
pub(super) const PER_INDIRECT: u64 = 1024;
/// Extents in an inode, and in a block of an extent tree.
const EXTENTS_IN_INODE: u64 = 4;
pub(super) const EXTENTS_PER_BLOCK: u64 = 340;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    next: u64,
    end: u64,
}

/// Which blocks are taken.
#[derive(Debug)]
pub(crate) struct BlockMap {
    groups: Vec<Group>,
    blocks: u64,
    free: u64,
    /// Freed by transactions that are not committed, in order: no file gets them before, as a crash would give them back to the old one.
    held: VecDeque<(Tid, u64, u64)>,
    held_blocks: u64,
}

#[derive(Debug)]
struct Group {
    free: u64,
    reserved: u64,
    size: u64,
    /// A bit per block, set = taken; made when first needed.
    taken: Option<Box<[u64; WORDS]>>,
}

impl Group {
    fn bits(&mut self) -> &mut [u64; WORDS] {
        let (reserved, size) = (self.reserved, self.size);
        self.taken.get_or_insert_with(|| {
            let mut bits = Box::new([0; WORDS]);
            for block in (0..reserved).chain(size..BLOCKS_PER_GROUP) {
                bits[block as usize / 64] |= 1 << (block % 64);
            }
            bits
        })
    }

    /// The first free run at or behind `from`: (start, length up to `max`).
    fn free_run(&mut self, from: u64, max: u64) -> Option<(u64, u64)> {
        let bits = self.bits();
        let mut at = from;
        while at < BLOCKS_PER_GROUP {
            let word = !bits[at as usize / 64] >> (at % 64);
            if word == 0 {
                at = (at / 64 + 1) * 64;
                continue;
            }
            at += u64::from(word.trailing_zeros());
            let mut end = at;
            while end < BLOCKS_PER_GROUP && end - at < max && bits[end as usize / 64] >> (end % 64) & 1 == 0 {
                end += 1;
            }
            return Some((at, end - at));
        }
        None
    }

    /// The first free run of `want` blocks at or behind `from`, or else the longest.
    fn find(&mut self, from: u64, want: u64) -> Option<(u64, u64)> {
        let mut best: Option<(u64, u64)> = None;
        let mut at = from;
        while let Some((start, length)) = self.free_run(at, want) {
            if best.is_none_or(|(_, longest)| length > longest) {
                best = Some((start, length));
            }
            if length >= want {
                break;
            }
            at = start + length;
        }
        best
    }

    fn set(&mut self, start: u64, length: u64, taken: bool) {
        let bits = self.bits();
        for block in start..start + length {
            let (word, bit) = (block as usize / 64, 1u64 << (block % 64));
            debug_assert!((bits[word] & bit != 0) != taken, "block {block} taken or freed twice");
            if taken {
                bits[word] |= bit;
            } else {
                bits[word] &= !bit;
            }
        }
        self.free = if taken { self.free - length } else { self.free + length };
    }
}

impl BlockMap {
    pub(super) fn new(layout: &Layout) -> BlockMap {
        let group = |g: u64| {
            let size = BLOCKS_PER_GROUP.min(layout.blocks() - g * BLOCKS_PER_GROUP);
            let reserved = layout.reserved(g).min(size);
            Group { free: size - reserved, reserved, size, taken: None }
        };
        let groups: Vec<Group> = (0..layout.groups()).map(group).collect();
        let free = groups.iter().map(|g| g.free).sum();
        BlockMap { free, groups, blocks: layout.blocks(), held: VecDeque::new(), held_blocks: 0 }
    }

    /// Free blocks, those included that wait for a commit.
    pub(crate) fn free(&self) -> u64 {
        self.free + self.held_blocks
    }

    /// Take up to `want` blocks in a row, as near behind `goal` as possible. If there are none but such as wait for a commit, these: Linux
    /// forces the commit and tries again.
    pub(super) fn allocate(&mut self, goal: u64, want: u64) -> Option<(u64, u64)> {
        self.allocate_free(goal, want).or_else(|| {
            self.committed(Tid::MAX);
            self.allocate_free(goal, want)
        })
    }

    fn allocate_free(&mut self, goal: u64, want: u64) -> Option<(u64, u64)> {
        let goal = if goal < self.blocks { goal } else { 0 };
        let count = self.groups.len() as u64;
        let first = goal / BLOCKS_PER_GROUP;
        // The goal's group is looked at twice: behind the goal, and last of all from its start.
        for step in 0..=count {
            let number = (first + step) % count;
            let from = if step == 0 { goal % BLOCKS_PER_GROUP } else { 0 };
            let group = &mut self.groups[number as usize];
            if group.free == 0 {
                continue;
            }
            if let Some((start, length)) = group.find(from, want.min(BLOCKS_PER_GROUP)) {
                group.set(start, length, true);
                self.free -= length;
                return Some((number * BLOCKS_PER_GROUP + start, length));
            }
        }
        None
    }

    /// Give blocks back once transaction `tid` is committed.
    fn release_after(&mut self, tid: Tid, at: u64, length: u64) {
        self.held.push_back((tid, at, length));
        self.held_blocks += length;
    }

    /// `tid` and those before it are committed.
    pub(super) fn committed(&mut self, tid: Tid) {
        while let Some((freed_by, at, length)) = self.held.front().copied()
            && freed_by <= tid
        {
            self.held.pop_front();
            self.held_blocks -= length;
            self.release(at, length);
        }
    }

    /// Give blocks back.
    pub(super) fn release(&mut self, at: u64, length: u64) {
        let mut at = at;
        let end = at + length;
        while at < end {
            let (group, start) = (at / BLOCKS_PER_GROUP, at % BLOCKS_PER_GROUP);
            let step = (end - at).min(BLOCKS_PER_GROUP - start);
            self.groups[group as usize].set(start, step, false);
            at += step;
        }
        self.free += length;
    }
}

impl Ext {
    /// Give `blocks` blocks of a file from `block` on their places (those that have one keep it); appends the metadata blocks that
    /// changed. `None`: the device is full.
    pub(super) fn place_blocks(
        &mut self,
        files: &mut Files,
        file: FileId,
        block: u64,
        blocks: u64,
        task: TaskId,
        dirty: &mut Vec<u64>,
    ) -> Option<()> {
        let end = block + blocks;
        let mut at = block;
        let mut changed = false;
        while at < end {
            let Place::Allocated(map) = &files.get(file).place else { return Some(()) };
            let (place, length) = map.run_at(at, end - at);
            if place.is_some() {
                at += length;
                continue;
            }
            changed = true;
            let length = self.index_block(files, file, at, length, task, dirty)?;
            let (start, got) = self.take_for(files, file, at, length, task)?;
            self.push_block_maps(start, got, dirty);
            if let Place::Allocated(map) = &mut files.get_mut(file).place {
                map.insert(at, start, got);
            }
            at += got;
        }
        if changed && let Some(inode) = &files.get(file).ext {
            dirty.push(self.layout.inode_block(inode.number));
        }
        Some(())
    }

    /// The block that says where `block` lies, if it is not the inode itself; it is made when it is the first of its part. Answers
    /// how many of `length` blocks it can take.
    fn index_block(
        &mut self,
        files: &mut Files,
        file: FileId,
        block: u64,
        length: u64,
        task: TaskId,
        dirty: &mut Vec<u64>,
    ) -> Option<u64> {
        let part = match self.mount.kind {
            FsKind::Ext3 if block < DIRECT_BLOCKS => return Some(length.min(DIRECT_BLOCKS - block)),
            FsKind::Ext3 => (block - DIRECT_BLOCKS) / PER_INDIRECT,
            FsKind::Ext4 => {
                let Place::Allocated(map) = &files.get(file).place else { return Some(length) };
                let count = map.count() as u64;
                if count < EXTENTS_IN_INODE {
                    return Some(length);
                }
                count / EXTENTS_PER_BLOCK
            }
        };
        let length = match self.mount.kind {
            FsKind::Ext3 => length.min(PER_INDIRECT - (block - DIRECT_BLOCKS) % PER_INDIRECT),
            FsKind::Ext4 => length,
        };
        let known = files.get(file).ext.as_ref().and_then(|inode| inode.index_blocks.get(&part).copied());
        let index = match known {
            Some(index) => index,
            None => {
                let (index, _) = self.take_for(files, file, block, 1, task)?;
                self.push_block_maps(index, 1, dirty);
                if let Some(inode) = &mut files.get_mut(file).ext {
                    inode.index_blocks.insert(part, index);
                    // Beyond the first, the new one is entered in another (double indirect, tree root).
                    if part > 0
                        && let Some(upper) = inode.index_blocks.get(&0)
                    {
                        dirty.push(*upper);
                    }
                }
                index
            }
        };
        dirty.push(index);
        Some(length)
    }

    /// Up to `want` blocks for `block` of a file, out of its window.
    fn take_for(
        &mut self,
        files: &mut Files,
        file: FileId,
        block: u64,
        want: u64,
        task: TaskId,
    ) -> Option<(u64, u64)> {
        let has_room = |files: &Files| {
            files
                .get(file)
                .ext
                .as_ref()
                .and_then(|inode| inode.window)
                .filter(|window| window.next < window.end)
        };
        if has_room(files).is_none() {
            self.open_window(files, file, block, want, task)?;
        }
        let window = files.get_mut(file).ext.as_mut().and_then(|inode| inode.window.as_mut())?;
        let start = window.next;
        let got = want.min(window.end - start);
        window.next += got;
        Some((start, got))
    }

    fn open_window(
        &mut self,
        files: &mut Files,
        file: FileId,
        block: u64,
        want: u64,
        task: TaskId,
    ) -> Option<()> {
        let bytes = files.get(file).bytes;
        let Place::Allocated(map) = &files.get(file).place else { return None };
        let before = map.place_before(block);
        let inode = files.get(file).ext.as_ref()?;
        let last = inode.window.map(|window| window.end - 1).or(before);
        let goal = match last {
            Some(last) => last + 1,
            None => self.first_goal(&inode.parent, task),
        };
        let size = match self.mount.kind {
            FsKind::Ext3 => inode.next_window.clamp(WINDOW_MIN, WINDOW_MAX),
            FsKind::Ext4 => normalised(bytes.div_ceil(PAGE)),
        };
        let (start, length) = self.blocks.allocate(goal, size.max(want))?;
        let inode = files.get_mut(file).ext.as_mut()?;
        inode.window = Some(Window { next: start, end: start + length });
        inode.next_window = size * 2;
        Some(())
    }

    /// Where a file's first block should be: near its directory. ext3 spreads tasks over 16 places of the group.
    fn first_goal(&self, parent: &str, task: TaskId) -> u64 {
        let group = self.directories.get(parent).map_or(0, |d| d.group);
        let colour = match self.mount.kind {
            FsKind::Ext3 => task.0 as u64 % 16 * (BLOCKS_PER_GROUP / 16),
            FsKind::Ext4 => 0,
        };
        group * BLOCKS_PER_GROUP + colour
    }

    /// Give back what was set aside for a file (its last user closed it, or it was cut).
    pub(super) fn drop_window(&mut self, files: &mut Files, file: FileId) {
        if let Some(inode) = &mut files.get_mut(file).ext
            && let Some(window) = inode.window.take()
        {
            inode.next_window = 0;
            if window.next < window.end {
                self.blocks.release(window.next, window.end - window.next);
            }
        }
    }

    /// Cut a file's blocks: frees all from `blocks` on; appends the metadata blocks that changed.
    pub(super) fn free_blocks(&mut self, files: &mut Files, file: FileId, blocks: u64, dirty: &mut Vec<u64>) {
        self.drop_window(files, file);
        let Place::Allocated(map) = &mut files.get_mut(file).place else { return };
        let freed = map.truncate(blocks);
        if let Some(inode) = &mut files.get_mut(file).ext {
            let keep = match self.mount.kind {
                FsKind::Ext3 => blocks.saturating_sub(DIRECT_BLOCKS).div_ceil(PER_INDIRECT),
                FsKind::Ext4 => u64::from(blocks > 0),
            };
            let index_blocks = inode.index_blocks.split_off(&keep).into_values();
            for index in index_blocks {
                self.push_block_maps(index, 1, dirty);
                self.blocks.release_after(self.journal.running_tid(), index, 1);
            }
        }
        self.give_back(freed, dirty);
    }

    /// Data blocks are free, or will be once the running transaction is committed: always on ext3 (jbd keeps the bitmaps as they are
    /// committed), on ext4 in ordered mode of today's kernels.
    pub(super) fn give_back(&mut self, freed: Vec<(u64, u64)>, dirty: &mut Vec<u64>) {
        let waits = self.holds_freed_data
            && (self.mount.kind == FsKind::Ext3 || self.mount.data == DataMode::Ordered);
        for (at, length) in freed {
            self.push_block_maps(at, length, dirty);
            match waits {
                true => self.blocks.release_after(self.journal.running_tid(), at, length),
                false => self.blocks.release(at, length),
            }
        }
    }
}

/// How much ext4 sets aside for a file of so many blocks.
fn normalised(blocks: u64) -> u64 {
    match blocks {
        0..=256 => blocks.next_power_of_two().max(4),
        257..=1023 => 512,
        1024..=2047 => 1024,
        _ => 2048,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_taken_behind_the_goal_and_come_back() {
        let layout = Layout::new(2 * BLOCKS_PER_GROUP, FsKind::Ext3);
        let mut map = BlockMap::new(&layout);
        let all = map.free();
        let (at, length) = map.allocate(0, 16).unwrap();
        assert_eq!((at, length), (2 + 514, 16), "superblock, descriptors, bitmaps and table come first");
        assert_eq!(map.allocate(0, 4), Some((at + 16, 4)));
        map.release(at, 16);
        assert_eq!(map.allocate(0, 20), Some((at + 20, 20)), "the hole is too small");
        assert_eq!(map.allocate(0, 8), Some((at, 8)));
        assert_eq!(map.allocate(BLOCKS_PER_GROUP, 1), Some((BLOCKS_PER_GROUP + 514, 1)));
        assert_eq!(map.free(), all - 4 - 20 - 8 - 1);
        let mut taken = 0;
        while let Some((_, length)) = map.allocate(40_000, 1000) {
            taken += length;
        }
        assert_eq!((taken, map.free()), (all - 33, 0));
    }
    #[test]
    fn freed_blocks_wait_for_the_commit_unless_there_are_no_others() {
        let mut map = BlockMap::new(&Layout::new(BLOCKS_PER_GROUP, FsKind::Ext3));
        let all = map.free();
        let (at, _) = map.allocate(0, 16).unwrap();
        map.release_after(7, at, 16);
        assert_eq!((map.free(), map.allocate(0, 8)), (all, Some((at + 16, 8))));
        map.committed(6);
        assert_eq!(map.allocate(0, 8), Some((at + 24, 8)), "another transaction");
        map.committed(7);
        assert_eq!(map.allocate(0, 8), Some((at, 8)));
        map.release_after(9, at, 8);
        let mut last = None;
        while map.free() > 0 {
            last = map.allocate(0, 1000);
        }
        assert_eq!(last, Some((at, 8)), "what waits comes last");
    }
}
