//! Directories and inode numbers.

use std::collections::BTreeSet;

use super::{Ext, layout};

/// Bytes of a directory entry beside its name.
const ENTRY_BYTES: u64 = 8;
/// A leaf block is split when it is this full, percent (htree leaves are 3/4 full on average).
const LEAF_PERCENT: u64 = 75;

#[derive(Debug)]
pub(super) struct Directory {
    pub(super) inode: u32,
    pub(super) group: u64,
    /// Its blocks; with more than one, the first is the index of the others.
    blocks: Vec<u64>,
    entry_bytes: u64,
}

impl Directory {
    pub(super) fn new(inode: u32, group: u64, block: u64) -> Directory {
        Directory { inode, group, blocks: vec![block], entry_bytes: 0 }
    }

    pub(super) fn first_block(&self) -> u64 {
        self.blocks[0]
    }

    /// The block that holds `name`.
    fn leaf(&self, name: &str) -> u64 {
        let leaves = &self.blocks[usize::from(self.blocks.len() > 1)..];
        leaves[(hash(name) % leaves.len() as u64) as usize]
    }

    fn leaves(&self) -> u64 {
        (self.blocks.len() as u64 - 1).max(1)
    }

    fn is_full(&self) -> bool {
        self.entry_bytes > self.leaves() * 4096 * LEAF_PERCENT / 100
    }
}

fn entry_bytes(path: &str) -> u64 {
    let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
    (ENTRY_BYTES + name.len() as u64).next_multiple_of(4)
}

/// FNV-1a.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

/// Which inode numbers are taken, by group.
#[derive(Debug)]
pub(super) struct InodeMap {
    groups: Vec<(u32, BTreeSet<u32>)>,
}

impl InodeMap {
    pub(super) fn new(groups: u64) -> InodeMap {
        // The first inodes are the file system's own.
        let group = |g: u64| (layout::first_inode(g) + if g == 0 { 10 } else { 0 }, BTreeSet::new());
        InodeMap { groups: (0..groups).map(group).collect() }
    }

    /// The lowest free number of the group (of the next one, if it is full).
    pub(super) fn take(&mut self, group: u64) -> u32 {
        let count = self.groups.len() as u64;
        for step in 0..count {
            let g = (group + step) % count;
            let (next, freed) = &mut self.groups[g as usize];
            if let Some(number) = freed.pop_first() {
                return number;
            }
            if *next < layout::first_inode(g + 1) {
                *next += 1;
                return *next - 1;
            }
        }
        0
    }

    pub(super) fn release(&mut self, number: u32) {
        self.groups[layout::group_of_inode(number) as usize].1.insert(number);
    }
}

impl Ext {
    /// Enter a name: appends the blocks that changed.
    pub(super) fn enter_name(&mut self, parent: &str, path: &str, dirty: &mut Vec<u64>) {
        let Some(directory) = self.directories.get_mut(parent) else { return };
        directory.entry_bytes += entry_bytes(path);
        let (inode, group) = (directory.inode, directory.group);
        if directory.is_full() {
            // A leaf splits; the first split also makes the first block an index.
            let more = if directory.blocks.len() == 1 { 2 } else { 1 };
            let goal = directory.blocks.last().copied().unwrap_or(group * layout::BLOCKS_PER_GROUP);
            if let Some((at, length)) = self.blocks.allocate(goal, more) {
                self.push_block_maps(at, length, dirty);
                dirty.extend(at..at + length);
                if let Some(directory) = self.directories.get_mut(parent) {
                    dirty.push(directory.blocks[0]);
                    directory.blocks.extend(at..at + length);
                }
            }
        }
        if let Some(directory) = self.directories.get(parent) {
            dirty.push(directory.leaf(path));
        }
        dirty.push(self.layout.inode_block(inode));
    }

    /// Take a name away: appends the blocks that changed.
    pub(super) fn remove_name(&mut self, parent: &str, path: &str, dirty: &mut Vec<u64>) {
        let Some(directory) = self.directories.get_mut(parent) else { return };
        directory.entry_bytes = directory.entry_bytes.saturating_sub(entry_bytes(path));
        dirty.push(directory.leaf(path));
        dirty.push(self.layout.inode_block(directory.inode));
    }
}
