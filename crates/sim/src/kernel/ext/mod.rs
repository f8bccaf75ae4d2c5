//! ext3 and ext4: which blocks of the device an operation changes, and which of them go through the journal.
//!
//! Of the metadata only the blocks that say where a file's blocks lie are read (`index.rs`); all others are taken to be in memory, as
//! after a while of use.
//!
//! Sources: the on-disk format of ext2-ext4; Linux 2.6.34 `fs/ext3`, `fs/ext4`.

mod allocate;
mod directory;
mod file;
mod index;
mod layout;
mod mount;
mod namespace;
mod space;
mod sync;

use std::collections::BTreeMap;

use super::files::{FileId, Files, Layout as FileLayout, NoSpace, PAGE, PAGE_SECTORS, Place};
use super::journal::{Journal, Tid};
use super::version::Rules;
use crate::engine::TaskId;
pub(crate) use allocate::BlockMap;
use allocate::Window;
use directory::Directory;
use layout::{BLOCKS_PER_GROUP, Layout};
pub use mount::{DataMode, Filesystem, FsKind, Mount};

/// Blocks that one step of delayed allocation may change.
pub(crate) const ALLOCATION_CREDITS: u64 = 32;
/// Blocks the end of a file may touch: bitmaps and descriptors of the groups it lies in.
const TRUNCATE_CREDITS: u64 = 64;

/// What the file system knows of a file beside its blocks.
#[derive(Debug)]
pub(crate) struct ExtInode {
    number: u32,
    /// Its directory.
    parent: String,
    /// The last transaction that changed it at all, and in a way that matters to its data.
    sync_tid: Tid,
    datasync_tid: Tid,
    /// Time of the last change, in the file system's granules.
    stamp: u64,
    /// Blocks set aside for it to grow into.
    window: Option<Window>,
    /// How many to set aside next (ext3).
    next_window: u64,
    /// Indirect or extent-tree blocks, by the part of the file they map.
    index_blocks: BTreeMap<u64, u64>,
}

/// A mounted file system.
#[derive(Debug)]
pub(crate) struct Ext {
    pub(crate) mount: Mount,
    layout: Layout,
    blocks: BlockMap,
    /// Freed data blocks may have to wait for the commit of what freed them.
    holds_freed_data: bool,
    inodes: directory::InodeMap,
    directories: BTreeMap<String, Directory>,
    /// The device's own pages: metadata on its way home.
    pub(crate) bdev: FileId,
    pub(crate) journal: Journal,
}

impl Ext {
    /// A fresh file system on a device, mounted.
    pub(crate) fn new(mount: Mount, rules: &Rules, files: &mut Files, capacity_sectors: u64) -> Ext {
        let device_blocks = capacity_sectors / PAGE_SECTORS;
        let size = mount.size_bytes.map_or(device_blocks, |bytes| (bytes / PAGE).min(device_blocks));
        let layout = Layout::new(size, mount.kind);
        let mut blocks = BlockMap::new(&layout);
        let journal_blocks = mount.journal_blocks.unwrap_or(layout.journal_blocks(rules.journal_blocks_max));
        // mke2fs puts the journal in the middle.
        let mut area = super::extents::Extents::default();
        let mut placed = 0;
        let mut goal = layout.groups() / 2 * BLOCKS_PER_GROUP;
        while placed < journal_blocks
            && let Some((at, length)) = blocks.allocate(goal, journal_blocks - placed)
        {
            area.insert(placed, at, length);
            placed += length;
            goal = at + length;
        }
        let mut ext = Ext {
            mount,
            inodes: directory::InodeMap::new(layout.groups()),
            layout,
            blocks,
            holds_freed_data: mount.kind == FsKind::Ext3 || rules.ext4_holds_freed_data,
            directories: BTreeMap::new(),
            bdev: files.add(Place::Contiguous(0), capacity_sectors * 512),
            journal: match mount.fast_commit && rules.ext4_fast_commits {
                true => Journal::with_fast_commits(area, placed),
                false => Journal::new(area, placed),
            },
        };
        let root = ext.new_directory(0);
        ext.directories.insert(String::new(), root);
        ext
    }

    fn new_directory(&mut self, group: u64) -> Directory {
        let inode = self.inodes.take(group);
        let block = self.blocks.allocate(group * BLOCKS_PER_GROUP, 1).map_or(0, |(at, _)| at);
        Directory::new(inode, group, block)
    }

    /// Transaction `tid` is committed: what it freed may be used again.
    pub(crate) fn transaction_committed(&mut self, tid: Tid) {
        self.blocks.committed(tid);
    }

    /// Blocks that no file has.
    pub(crate) fn blocks_free(&self) -> u64 {
        self.blocks.free()
    }

    /// The directory that holds `path`; one that was never made counts as the root.
    fn parent_of(&self, path: &str) -> String {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        if self.directories.contains_key(parent) { parent.to_owned() } else { String::new() }
    }

    /// Enter a new file: its number and the blocks that changed.
    fn enter_file(&mut self, files: &mut Files, path: &str) -> (FileId, Vec<u64>) {
        let parent = self.parent_of(path);
        let mut dirty = Vec::new();
        let group = self.directories[&parent].group;
        let number = self.inodes.take(group);
        self.push_inode_maps(number, &mut dirty);
        self.enter_name(&parent, path, &mut dirty);
        let file = files.add(Place::Allocated(super::extents::Extents::default()), 0);
        files.get_mut(file).ext = Some(ExtInode {
            number,
            parent,
            sync_tid: 0,
            datasync_tid: 0,
            stamp: u64::MAX,
            window: None,
            next_window: 0,
            index_blocks: BTreeMap::new(),
        });
        files.link(path, file);
        (file, dirty)
    }

    /// A file as it stands before a run: entered and, unless it is [`FileLayout::Fresh`], written out.
    pub(crate) fn lay_out(
        &mut self,
        files: &mut Files,
        name: &str,
        bytes: u64,
        layout: FileLayout,
    ) -> Result<FileId, NoSpace> {
        let blocks = bytes.div_ceil(PAGE);
        let wanted = if layout == FileLayout::Preallocated { blocks } else { 0 };
        if wanted > self.blocks.free() {
            return Err(NoSpace { wanted: bytes, capacity: self.blocks.free() * PAGE });
        }
        let (file, _) = self.enter_file(files, name);
        let mut at = 0;
        while at < wanted {
            let mut dirty = Vec::new();
            let step = (wanted - at).min(BLOCKS_PER_GROUP);
            if self.place_blocks(files, file, at, step, TaskId(0), &mut dirty).is_none() {
                break;
            }
            at += step;
        }
        files.resize(file, if wanted > 0 { bytes } else { 0 });
        self.drop_window(files, file);
        Ok(file)
    }

    /// The blocks an inode's creation or end changes: bitmap, group descriptor, its own.
    fn push_inode_maps(&self, number: u32, dirty: &mut Vec<u64>) {
        let group = layout::group_of_inode(number);
        dirty.push(self.layout.inode_bitmap(group));
        dirty.push(self.layout.descriptor(group));
        dirty.push(self.layout.inode_block(number));
    }

    /// The blocks that handing out or taking back blocks `at..at+length` changes.
    fn push_block_maps(&self, at: u64, length: u64, dirty: &mut Vec<u64>) {
        for group in at / BLOCKS_PER_GROUP..=(at + length - 1) / BLOCKS_PER_GROUP {
            dirty.push(self.layout.block_bitmap(group));
            dirty.push(self.layout.descriptor(group));
        }
    }

    /// The file system's clock: what a change at `now` is stamped with.
    fn stamp(&self, now: u64, rules: &Rules) -> u64 {
        now / if self.mount.kind == FsKind::Ext3 { fairlift_core::SECOND } else { rules.clock_ns }
    }
}
