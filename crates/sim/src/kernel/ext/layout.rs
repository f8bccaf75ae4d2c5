//! Where the file system's own blocks lie: superblock, group descriptors, bitmaps, inode tables. 4 KiB blocks.

use super::mount::FsKind;

/// Blocks of a group: what one block of bitmap covers.
pub(super) const BLOCKS_PER_GROUP: u64 = 32_768;
const INODES_PER_GROUP: u32 = 8192;
/// 256-byte inodes.
const INODES_PER_BLOCK: u32 = 16;
const TABLE_BLOCKS: u64 = (INODES_PER_GROUP / INODES_PER_BLOCK) as u64;
/// Group descriptors in a block.
const DESCRIPTORS_PER_BLOCK: u64 = 128;
/// Groups whose bitmaps and tables lie together (`flex_bg`, ext4).
const FLEX_GROUPS: u64 = 16;
/// The superblock's block.
pub(super) const SUPERBLOCK: u64 = 0;

/// The group an inode belongs to.
pub(super) const fn group_of_inode(number: u32) -> u64 {
    (number / INODES_PER_GROUP) as u64
}

/// The first inode of a group.
pub(super) const fn first_inode(group: u64) -> u32 {
    group as u32 * INODES_PER_GROUP
}

#[derive(Debug)]
pub(super) struct Layout {
    blocks: u64,
    flex: u64,
}

impl Layout {
    pub(super) fn new(blocks: u64, kind: FsKind) -> Layout {
        let whole = blocks / BLOCKS_PER_GROUP;
        // A last group too small for its own bitmaps and table is left out.
        let rest = blocks % BLOCKS_PER_GROUP;
        let blocks = if whole > 0 && rest < 2 * TABLE_BLOCKS { blocks - rest } else { blocks };
        Layout { blocks, flex: if kind == FsKind::Ext4 { FLEX_GROUPS } else { 1 } }
    }

    pub(super) fn blocks(&self) -> u64 {
        self.blocks
    }

    pub(super) fn groups(&self) -> u64 {
        self.blocks.div_ceil(BLOCKS_PER_GROUP)
    }

    pub(super) fn descriptor(&self, group: u64) -> u64 {
        1 + group / DESCRIPTORS_PER_BLOCK
    }

    /// Where the bitmaps and tables that `group`'s lie with begin, and for how many groups.
    fn metadata_area(&self, group: u64) -> (u64, u64) {
        let first = group / self.flex * self.flex;
        let groups = self.flex.min(self.groups() - first);
        let head = if first == 0 { 1 + self.groups().div_ceil(DESCRIPTORS_PER_BLOCK) } else { 0 };
        (first * BLOCKS_PER_GROUP + head, groups)
    }

    pub(super) fn block_bitmap(&self, group: u64) -> u64 {
        self.metadata_area(group).0 + group % self.flex
    }

    pub(super) fn inode_bitmap(&self, group: u64) -> u64 {
        let (start, groups) = self.metadata_area(group);
        start + groups + group % self.flex
    }

    pub(super) fn inode_block(&self, number: u32) -> u64 {
        let group = group_of_inode(number);
        let (start, groups) = self.metadata_area(group);
        let within = u64::from((number % INODES_PER_GROUP) / INODES_PER_BLOCK);
        start + 2 * groups + group % self.flex * TABLE_BLOCKS + within
    }

    /// Blocks at the start of `group` that no file can have.
    pub(super) fn reserved(&self, group: u64) -> u64 {
        if !group.is_multiple_of(self.flex) {
            return 0;
        }
        let (start, groups) = self.metadata_area(group);
        start - group * BLOCKS_PER_GROUP + groups * (2 + TABLE_BLOCKS)
    }

    /// The journal mke2fs makes, blocks.
    pub(super) fn journal_blocks(&self, max: u64) -> u64 {
        let size = match self.blocks {
            0..32_768 => 1024,
            32_768..262_144 => 4096,
            262_144..524_288 => 8192,
            524_288..1_048_576 => 16_384,
            1_048_576..8_388_608 => 32_768,
            8_388_608..16_777_216 => 65_536,
            16_777_216..33_554_432 => 131_072,
            _ => 262_144,
        };
        size.min(max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_lies_where_mke2fs_puts_it() {
        let ext3 = Layout::new(10 * BLOCKS_PER_GROUP, FsKind::Ext3);
        assert_eq!((ext3.descriptor(9), ext3.block_bitmap(0), ext3.inode_bitmap(0)), (1, 2, 3));
        assert_eq!((ext3.inode_block(0), ext3.inode_block(16)), (4, 5));
        assert_eq!((ext3.block_bitmap(3), ext3.reserved(3)), (3 * BLOCKS_PER_GROUP, 514));
        let ext4 = Layout::new(40 * BLOCKS_PER_GROUP, FsKind::Ext4);
        assert_eq!((ext4.block_bitmap(0), ext4.block_bitmap(15), ext4.inode_bitmap(0)), (2, 17, 18));
        assert_eq!(ext4.reserved(5), 0);
        assert_eq!(ext4.reserved(32), 8 * 514, "the last flex group has 8 groups");
        assert_eq!(ext4.inode_block(first_inode(17)), 16 * BLOCKS_PER_GROUP + 32 + 512);
    }
}
