//! A file's data: what a write changes beside the data itself.

use std::ops::Range;

use super::{Ext, FsKind};
use crate::engine::{Sys, TaskId};
use crate::kernel::files::{FileId, Files, PAGE, Place};
use crate::kernel::journal::{Handle, Tid};
use crate::kernel::vfs::Errno;
use crate::kernel::{DataMode, Kernel};

/// Blocks an operation on an inode may change, beside those for its data.
const INODE_CREDITS: u64 = 16;

impl Sys {
    /// Does the file lie on an ext3 or ext4?
    pub(crate) fn is_ext(&self, file: FileId) -> bool {
        self.machine.borrow().kernel.files.get(file).ext.is_some()
    }

    /// The device's own file: metadata on its way home.
    pub(crate) fn bdev(&self) -> Option<FileId> {
        self.machine.borrow().kernel.ext.as_ref().map(|ext| ext.bdev)
    }

    /// Have the first pages of `pages` places on the device? And how many of them are alike.
    pub(crate) fn ext_mapped(&self, file: FileId, pages: &Range<u64>) -> (bool, u64) {
        let machine = self.machine.borrow();
        let Place::Allocated(map) = &machine.kernel.files.get(file).place else {
            return (true, pages.end - pages.start);
        };
        let (place, length) = map.run_at(pages.start, pages.end - pages.start);
        (place.is_some(), length)
    }

    /// A buffered write is going to dirty `pages` and to reach up to `end_bytes`. ext3 gives new blocks their places at once,
    /// ext4 when they are written back. Both note the time of change if it differs.
    pub(crate) async fn ext_prepare_write(
        &self,
        file: FileId,
        pages: Range<u64>,
        end_bytes: u64,
    ) -> Result<(), Errno> {
        self.read_index_of(file, pages.start, pages.end).await;
        let change = self.write_change(file, &pages, end_bytes)?;
        if !change.needs_handle {
            self.machine.borrow_mut().kernel.grow(file, end_bytes);
            return Ok(());
        }
        let credits = INODE_CREDITS + if change.allocate { pages.end - pages.start } else { 0 };
        let handle = self.start_handle(credits).await;
        let mut dirty = Vec::new();
        let mut placed = Some(());
        {
            let mut machine = self.machine.borrow_mut();
            let now = machine.now();
            let kernel = &mut machine.kernel;
            kernel.grow(file, end_bytes);
            let stamped = kernel.stamp_inode(file, now);
            if change.allocate {
                let (first, count) = (pages.start, pages.end - pages.start);
                placed = kernel.place(file, first, count, self.task, &mut dirty);
            }
            if stamped || change.size {
                kernel.push_inode(file, &mut dirty);
            }
            if !dirty.is_empty() {
                kernel.set_tids(file, handle.tid, change.size || change.allocate);
            }
            if let Some(ext) = &mut kernel.ext
                && ext.mount.kind == FsKind::Ext3
                && ext.mount.data == DataMode::Ordered
            {
                ext.journal.add_data(file);
            }
        }
        self.journal_blocks(&handle, &dirty).await;
        self.stop_handle(Some(handle));
        placed.ok_or(Errno::NoSpace)
    }

    fn write_change(&self, file: FileId, pages: &Range<u64>, end_bytes: u64) -> Result<WriteChange, Errno> {
        let machine = self.machine.borrow();
        let kernel = &machine.kernel;
        let (Some(ext), file_state) = (&kernel.ext, kernel.files.get(file)) else {
            return Err(Errno::Invalid);
        };
        let Place::Allocated(map) = &file_state.place else { return Err(Errno::Invalid) };
        let mapped = map.covers(pages.start, pages.end - pages.start);
        let delayed = ext.mount.kind == FsKind::Ext4 || kernel.rules.ext3_is_ext4;
        // Dirty pages may still need a place each; and index blocks take a few.
        let promised = if delayed { kernel.cache.dirty_pages() } else { 0 };
        if !mapped && ext.blocks.free() <= pages.end - pages.start + promised + 8 {
            return Err(Errno::NoSpace);
        }
        let allocate = !mapped && !delayed;
        // With delayed allocation the size on disk follows the blocks.
        let size = end_bytes > file_state.bytes && (mapped || !delayed);
        let stamps = file_state
            .ext
            .as_ref()
            .is_some_and(|inode| inode.stamp != ext.stamp(machine.now(), &kernel.rules));
        let data = !delayed && ext.mount.data == DataMode::Ordered;
        Ok(WriteChange { allocate, size, needs_handle: allocate || size || stamps || data })
    }

    /// Dirty pages that have no place get one, as they are written back.
    pub(crate) async fn ext_allocate_late(&self, handle: &Handle, file: FileId, pages: Range<u64>) {
        let mut dirty = Vec::new();
        {
            let kernel = &mut self.machine.borrow_mut().kernel;
            let (first, count) = (pages.start, pages.end - pages.start);
            // A device that fills up in between loses the data, as delayed allocation may.
            let _ = kernel.place(file, first, count, self.task, &mut dirty);
            kernel.set_tids(file, handle.tid, true);
            if let Some(ext) = &mut kernel.ext
                && ext.mount.data == DataMode::Ordered
            {
                ext.journal.add_data(file);
            }
        }
        self.journal_blocks(handle, &dirty).await;
    }

    /// Before a direct write: up to where it can go directly. Blocks beyond the end of the file get their places; a hole within it
    /// ends the direct part, unless the file system can fill it with unwritten extents (ext4 since 2.6.33).
    pub(crate) async fn ext_prepare_direct(
        &self,
        file: FileId,
        offset: u64,
        bytes: u64,
    ) -> Result<u64, Errno> {
        if self.machine.borrow().kernel.cache.is_dirty(file) {
            self.write_and_wait(file).await;
        }
        self.invalidate(file);
        let (direct_end, allocate, grows, stamps) = self.direct_reach(file, offset, bytes);
        if direct_end == offset {
            return Ok(offset);
        }
        if allocate || grows || stamps {
            let first = offset / PAGE;
            let count = direct_end.div_ceil(PAGE) - first;
            let handle = self.start_handle(INODE_CREDITS + count.div_ceil(64)).await;
            let mut dirty = Vec::new();
            let mut placed = Some(());
            {
                let mut machine = self.machine.borrow_mut();
                let now = machine.now();
                let kernel = &mut machine.kernel;
                kernel.stamp_inode(file, now);
                if allocate {
                    placed = kernel.place(file, first, count, self.task, &mut dirty);
                }
                if grows {
                    // A file that grows directly is on the orphan list meanwhile.
                    dirty.push(super::layout::SUPERBLOCK);
                    kernel.grow(file, direct_end);
                }
                kernel.push_inode(file, &mut dirty);
                kernel.set_tids(file, handle.tid, allocate || grows);
            }
            self.journal_blocks(&handle, &dirty).await;
            self.stop_handle(Some(handle));
            placed.ok_or(Errno::NoSpace)?;
        }
        Ok(direct_end)
    }

    /// Where the direct part ends; and does it allocate, grow the file, change its time?
    fn direct_reach(&self, file: FileId, offset: u64, bytes: u64) -> (u64, bool, bool, bool) {
        let machine = self.machine.borrow();
        let kernel = &machine.kernel;
        let (Some(ext), state) = (&kernel.ext, kernel.files.get(file)) else {
            return (offset + bytes, false, false, false);
        };
        let Place::Allocated(map) = &state.place else { return (offset + bytes, false, false, false) };
        let fills = ext.mount.kind == FsKind::Ext4 && kernel.rules.ext4_direct_into_holes;
        let end = offset + bytes;
        let mut at = offset / PAGE;
        let mut allocate = false;
        while at * PAGE < end {
            let (place, length) = map.run_at(at, end.div_ceil(PAGE) - at);
            if place.is_none() {
                if at * PAGE < state.bytes && !fills {
                    break;
                }
                allocate = true;
            }
            at += length;
        }
        let direct_end = (at * PAGE).clamp(offset, end);
        let stamps =
            state.ext.as_ref().is_some_and(|inode| inode.stamp != ext.stamp(machine.now(), &kernel.rules));
        (direct_end, allocate, direct_end > state.bytes, stamps)
    }
}

struct WriteChange {
    allocate: bool,
    size: bool,
    needs_handle: bool,
}

impl Kernel {
    /// A file reaches at least up to `bytes`.
    fn grow(&mut self, file: FileId, bytes: u64) {
        if bytes > self.files.get(file).bytes {
            self.resize(file, bytes);
        }
    }

    /// Set the time of change; did it differ?
    pub(super) fn stamp_inode(&mut self, file: FileId, now: u64) -> bool {
        let Some(ext) = &self.ext else { return false };
        let stamp = ext.stamp(now, &self.rules);
        let inode = self.files.get_mut(file).ext.as_mut();
        inode.is_some_and(|inode| std::mem::replace(&mut inode.stamp, stamp) != stamp)
    }

    fn place(
        &mut self,
        file: FileId,
        block: u64,
        blocks: u64,
        task: TaskId,
        dirty: &mut Vec<u64>,
    ) -> Option<()> {
        let Kernel { ext, files, .. } = self;
        ext.as_mut()?.place_blocks(files, file, block, blocks, task, dirty)
    }

    pub(super) fn push_inode(&self, file: FileId, dirty: &mut Vec<u64>) {
        if let (Some(ext), Some(inode)) = (&self.ext, &self.files.get(file).ext) {
            dirty.push(ext.layout.inode_block(inode.number));
        }
    }

    /// The file's inode is part of transaction `tid`; `data` when its blocks or size changed.
    pub(super) fn set_tids(&mut self, file: FileId, tid: Tid, data: bool) {
        if let Some(inode) = &mut self.files.get_mut(file).ext {
            inode.sync_tid = tid;
            if data {
                inode.datasync_tid = tid;
            }
        }
        if let Some(fast) = self.ext.as_mut().and_then(|ext| ext.journal.fast.as_mut()) {
            fast.file_changed(file, tid);
        }
    }

    /// A name was made or removed.
    pub(super) fn name_changed(&mut self) {
        if let Some(fast) = self.ext.as_mut().and_then(|ext| ext.journal.fast.as_mut()) {
            fast.name_changed();
        }
    }
}

impl Ext {
    /// The file has no name and no user any more: all of it is free. Appends the blocks that changed.
    pub(super) fn free_file(&mut self, files: &mut Files, file: FileId, dirty: &mut Vec<u64>) {
        self.free_blocks(files, file, 0, dirty);
        let number = files.get(file).ext.as_ref().map(|inode| inode.number);
        if let Some(number) = number {
            self.push_inode_maps(number, dirty);
            self.inodes.release(number);
        }
    }
}
