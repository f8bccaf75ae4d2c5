//! The blocks that say where a file's blocks lie: ext3's indirect blocks, ext4's extent tree. What of them is not in memory is read
//! from the disk before what it leads to, by the task that asks, and that task waits for it.
//!
//! With `metadata=cold` a file that lies on the disk before the run has its index there too, as it has its data: nothing of it is in
//! memory; with `metadata=90%` nine in ten blocks are. Blocks made or read in the run stay in the page cache, as pages of the device,
//! and a block that is used again survives eviction once.
//!
//! Sources: Linux 2.6.34 `ext3_get_branch`, `ext4_ext_find_extent` (plain reads, one level after the other), `touch_buffer`.

use super::allocate::{DIRECT_BLOCKS, EXTENTS_PER_BLOCK, PER_INDIRECT};
use super::{Ext, FsKind};
use crate::engine::Sys;
use crate::kernel::files::{FileId, Files, Place};

/// The way to a block of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Way {
    /// Index blocks to go through, in order.
    through: [Option<u64>; 2],
    /// The first block of the file that they do not lead to.
    end: u64,
}

impl Way {
    const fn inode(end: u64) -> Way {
        Way { through: [None, None], end }
    }
}

impl Ext {
    fn way_to(&self, files: &Files, file: FileId, block: u64) -> Way {
        let Some(inode) = files.get(file).ext.as_ref() else { return Way::inode(u64::MAX) };
        // The first index block stands for the level above the others, too.
        let top = inode.index_blocks.get(&0).copied();
        let through = |part: u64, index: Option<u64>| [top.filter(|_| part > 0), index];
        match self.mount.kind {
            FsKind::Ext3 if block < DIRECT_BLOCKS => Way::inode(DIRECT_BLOCKS),
            FsKind::Ext3 => {
                let part = (block - DIRECT_BLOCKS) / PER_INDIRECT;
                let index = inode.index_blocks.get(&part).copied();
                Way { through: through(part, index), end: DIRECT_BLOCKS + (part + 1) * PER_INDIRECT }
            }
            FsKind::Ext4 if inode.index_blocks.len() < 2 => Way { through: through(0, top), end: u64::MAX },
            FsKind::Ext4 => {
                let Place::Allocated(map) = &files.get(file).place else { return Way::inode(u64::MAX) };
                let (_, length) = map.run_at(block, u64::MAX - block);
                let part = map.count_up_to(block).saturating_sub(1) as u64 / EXTENTS_PER_BLOCK;
                let leaf = inode.index_blocks.range(..=part).next_back();
                let (part, index) = leaf.map_or((0, None), |(part, index)| (*part, Some(*index)));
                Way { through: through(part, index), end: block.saturating_add(length) }
            }
        }
    }
}

impl Sys {
    /// Before the place of `block` of a file is looked up: its index is read as far as it is not in memory. Answers the first block of
    /// the file for which that does not suffice.
    pub(crate) async fn read_index(&self, file: FileId, block: u64) -> u64 {
        let way = {
            let kernel = &self.machine.borrow().kernel;
            match &kernel.ext {
                Some(ext) => ext.way_to(&kernel.files, file, block),
                None => Way::inode(u64::MAX),
            }
        };
        for index in way.through.into_iter().flatten() {
            self.read_metadata(index).await;
        }
        way.end
    }

    /// The same for all of `first..end`.
    pub(crate) async fn read_index_of(&self, file: FileId, first: u64, end: u64) {
        let mut at = first;
        while at < end {
            at = self.read_index(file, at).await;
        }
    }

    /// Have a block of the device in memory.
    async fn read_metadata(&self, block: u64) {
        loop {
            let bdev = {
                let mut machine = self.machine.borrow_mut();
                let kernel = &mut machine.kernel;
                let Some(ext) = &kernel.ext else { return };
                let known = ext.mount.keeps(block)
                    || ext.journal.holds(block)
                    || kernel.cache.is_uptodate(ext.bdev, block);
                if known {
                    kernel.cache.touch(ext.bdev, block);
                    return;
                }
                ext.bdev
            };
            self.read_absent(bdev, block..block + 1).await;
            self.unplug();
            self.wait_while_read(bdev, block).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::files::{Layout, PAGE};
    use crate::kernel::{Filesystem, Rules, version};

    fn laid_out(kind: &str, pages: u64) -> (Ext, Files, FileId) {
        let Ok(Filesystem::Ext(mount)) = Filesystem::parse(kind, "") else { panic!("a file system") };
        let rules: &Rules = version::find("2.6.34").expect("a kernel");
        let mut files = Files::new(1 << 25);
        let mut ext = Ext::new(mount, rules, &mut files, 1 << 25);
        let file = ext.lay_out(&mut files, "f", pages * PAGE, Layout::Preallocated).expect("room");
        (ext, files, file)
    }

    #[test]
    fn ext3_maps_48_kib_by_itself_and_4_mib_by_each_indirect_block() {
        let (ext, files, file) = laid_out("ext3", 3000);
        assert_eq!(ext.way_to(&files, file, 11), Way::inode(12));
        let first = ext.way_to(&files, file, 12);
        assert_eq!((first.through[0], first.end), (None, 1036));
        let second = ext.way_to(&files, file, 1036);
        assert_eq!((second.through[0], second.end), (first.through[1], 2060));
        assert!(second.through[1].is_some() && second.through[1] != first.through[1]);
    }

    #[test]
    fn a_file_of_few_extents_is_mapped_by_its_inode_on_ext4() {
        let (ext, files, file) = laid_out("ext4", 3000);
        assert_eq!(ext.way_to(&files, file, 2999), Way::inode(u64::MAX));
    }
}
