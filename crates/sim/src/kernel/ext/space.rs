//! fallocate: blocks set aside, and holes punched.

use super::{Ext, FsKind, TRUNCATE_CREDITS};
use crate::engine::Sys;
use crate::kernel::buffered::Which;
use crate::kernel::files::{FileId, Files, PAGE, Place};
use crate::kernel::vfs::{Errno, Fallocate};

impl Sys {
    /// Set blocks aside for `bytes` from `offset` on; with `keep_size` the file does not grow.
    pub(crate) async fn ext_fallocate(
        &self,
        file: FileId,
        offset: u64,
        bytes: u64,
        keep_size: bool,
    ) -> Result<(), Errno> {
        let (first, end) = (offset / PAGE, (offset + bytes).div_ceil(PAGE));
        let mode = if keep_size { Fallocate::KeepSize } else { Fallocate::Extend };
        self.check_allocates(mode)?;
        if self.machine.borrow().kernel.ext.as_ref().is_some_and(|ext| ext.blocks.free() < end - first) {
            return Err(Errno::NoSpace);
        }
        let task = self.task;
        self.in_handle(TRUNCATE_CREDITS + (end - first) / 1024, |kernel, dirty, tid, _| {
            let ext = kernel.ext.as_mut().ok_or(Errno::NotSupported)?;
            ext.place_blocks(&mut kernel.files, file, first, end - first, task, dirty)
                .ok_or(Errno::NoSpace)?;
            if !keep_size && offset + bytes > kernel.files.get(file).bytes {
                kernel.resize(file, offset + bytes);
            }
            kernel.push_inode(file, dirty);
            kernel.set_tids(file, tid, true);
            Ok(())
        })
        .await
    }

    /// Make a hole of `bytes` from `offset` on. What is dirty there is written first; blocks that lie in it only in part are
    /// overwritten with zeros in the page cache, the others become free. (`ext4_punch_hole` of Linux 6.12.)
    pub(crate) async fn ext_punch(&self, file: FileId, offset: u64, bytes: u64) -> Result<(), Errno> {
        self.check_allocates(Fallocate::Punch)?;
        let end = (offset + bytes).min(self.size_of(file));
        if offset >= end {
            return Ok(());
        }
        let flags = self.machine.borrow().kernel.rules.fsync_write;
        self.write_pages(file, offset / PAGE..end.div_ceil(PAGE), u64::MAX, flags, Which::All).await;
        self.unplug();
        self.wait_for_writes(file).await;
        let (first, last) = (offset.div_ceil(PAGE), end / PAGE);
        // A part of a block: at the start, and at the end unless it is the same block.
        if !offset.is_multiple_of(PAGE) {
            self.zero(file, offset, end.min(first * PAGE)).await?;
        }
        if !end.is_multiple_of(PAGE) && last >= first {
            self.zero(file, last * PAGE, end).await?;
        }
        self.in_handle(TRUNCATE_CREDITS, |kernel, dirty, tid, now| {
            if first < last {
                kernel.cache.forget(file, first..last);
                if let Some(ext) = &mut kernel.ext {
                    ext.free_range(&mut kernel.files, file, first, last - first, dirty);
                }
            }
            kernel.stamp_inode(file, now);
            kernel.push_inode(file, dirty);
            kernel.set_tids(file, tid, true);
        })
        .await;
        Ok(())
    }

    /// Zeros over a part of a block; a hole has them already.
    async fn zero(&self, file: FileId, offset: u64, end: u64) -> Result<(), Errno> {
        let page = offset / PAGE;
        if !self.ext_mapped(file, &(page..page + 1)).0 {
            return Ok(());
        }
        self.write_file(file, offset, end - offset).await
    }

    fn check_allocates(&self, mode: Fallocate) -> Result<(), Errno> {
        let kernel = &self.machine.borrow().kernel;
        kernel.filesystem().allocates(&kernel.rules, mode).then_some(()).ok_or(Errno::NotSupported)
    }
}

impl Ext {
    /// Give back the blocks of a stretch of a file: appends the metadata blocks that changed. Index blocks stay.
    fn free_range(&mut self, files: &mut Files, file: FileId, block: u64, blocks: u64, dirty: &mut Vec<u64>) {
        let Place::Allocated(map) = &mut files.get_mut(file).place else { return };
        let freed = map.remove(block, blocks);
        if freed.is_empty() {
            return;
        }
        if let Some(inode) = &files.get(file).ext
            && self.mount.kind == FsKind::Ext4
        {
            dirty.extend(inode.index_blocks.values().next_back());
        }
        self.give_back(freed, dirty);
    }
}
