//! Names: making, removing, renaming and cutting files. Each operation is one handle in the journal.

use super::layout::SUPERBLOCK;
use super::{Ext, FsKind, TRUNCATE_CREDITS};
use crate::engine::Sys;
use crate::kernel::files::{FileId, PAGE};
use crate::kernel::journal::Tid;
use crate::kernel::vfs::Errno;
use crate::kernel::{Kernel, buffered::Which};

/// Blocks a change of names may touch.
const NAME_CREDITS: u64 = 32;

impl Sys {
    /// Run `change` on the file system as one handle; it appends the blocks it changed.
    pub(super) async fn in_handle<R>(
        &self,
        credits: u64,
        change: impl FnOnce(&mut Kernel, &mut Vec<u64>, Tid, u64) -> R,
    ) -> R {
        let handle = self.start_handle(credits).await;
        let mut dirty = Vec::new();
        let result = {
            let mut machine = self.machine.borrow_mut();
            let now = machine.now();
            change(&mut machine.kernel, &mut dirty, handle.tid, now)
        };
        self.journal_blocks(&handle, &dirty).await;
        self.stop_handle(Some(handle));
        result
    }

    /// A new, empty file.
    pub(crate) async fn ext_create(&self, path: &str) -> Result<FileId, Errno> {
        self.in_handle(NAME_CREDITS, |kernel, dirty, tid, now| {
            // Somebody else may have been faster.
            if let Some(file) = kernel.files.find(path) {
                return Ok(file);
            }
            let Kernel { ext, files, rules, cache, .. } = kernel;
            let ext = ext.as_mut().ok_or(Errno::NotSupported)?;
            let (file, mut changed) = ext.enter_file(files, path);
            dirty.append(&mut changed);
            cache.add_files_up_to(file);
            let stamp = ext.stamp(now, rules);
            if let Some(inode) = &mut files.get_mut(file).ext {
                inode.stamp = stamp;
            }
            kernel.set_tids(file, tid, true);
            kernel.name_changed();
            Ok(file)
        })
        .await
    }

    /// Remove a name. The file goes with it unless a task has it open.
    pub(crate) async fn ext_unlink(&self, path: &str) -> Result<(), Errno> {
        let file = self.in_handle(NAME_CREDITS, |kernel, dirty, tid, _| {
            let file = kernel.files.find(path).ok_or(Errno::NoEntry)?;
            kernel.remove_name(path, file, dirty, tid);
            Ok(file)
        });
        let file = file.await?;
        self.ext_release(file).await;
        Ok(())
    }

    /// If no task uses the file any more, free it.
    pub(crate) async fn ext_release(&self, file: FileId) {
        {
            let kernel = &mut self.machine.borrow_mut().kernel;
            let Kernel { ext, files, .. } = kernel;
            let state = files.get(file);
            if state.opens > 0 {
                return;
            }
            if state.linked {
                if let Some(ext) = ext {
                    ext.drop_window(files, file);
                }
                return;
            }
        }
        self.in_handle(TRUNCATE_CREDITS, |kernel, dirty, _, _| {
            kernel.resize(file, 0);
            let Kernel { ext, files, .. } = kernel;
            if let Some(ext) = ext
                && files
                    .get(file)
                    .ext
                    .as_ref()
                    .is_some_and(|inode| !inode.parent.is_empty() || inode.number > 0)
            {
                dirty.push(SUPERBLOCK);
                ext.free_file(files, file, dirty);
                if let Some(inode) = &mut files.get_mut(file).ext {
                    (inode.number, inode.parent) = (0, String::new());
                }
            }
        })
        .await;
    }

    /// Give a file another name, in place of the file that has it.
    pub(crate) async fn ext_rename(&self, from: &str, to: &str) -> Result<(), Errno> {
        let changed = self.in_handle(NAME_CREDITS, |kernel, dirty, tid, _| {
            let file = kernel.files.find(from).ok_or(Errno::NoEntry)?;
            let victim = kernel.files.find(to);
            if victim == Some(file) {
                return Ok((file, None));
            }
            if let Some(victim) = victim {
                kernel.remove_name(to, victim, dirty, tid);
            }
            kernel.files.unlink(from);
            kernel.files.link(to, file);
            let Kernel { ext, files, .. } = &mut *kernel;
            if let Some(ext) = ext {
                let (old, new) = (ext.parent_of(from), ext.parent_of(to));
                ext.remove_name(&old, from, dirty);
                ext.enter_name(&new, to, dirty);
                if let Some(inode) = &mut files.get_mut(file).ext {
                    inode.parent = new;
                }
            }
            kernel.push_inode(file, dirty);
            kernel.set_tids(file, tid, false);
            kernel.name_changed();
            Ok((file, victim))
        });
        let (file, victim) = changed.await?;
        let Some(victim) = victim else { return Ok(()) };
        self.ext_release(victim).await;
        // A file that replaces another is written at once, lest a crash leave neither (ext4 since 2.6.30).
        let flushes = {
            let kernel = &self.machine.borrow().kernel;
            kernel.rules.ext4_flush_on_replace
                && kernel.ext.as_ref().is_some_and(|e| e.mount.kind == FsKind::Ext4)
        };
        if flushes {
            let flags = self.machine.borrow().kernel.rules.fsync_write;
            self.write_pages(file, 0..u64::MAX, u64::MAX, flags, Which::All).await;
        }
        Ok(())
    }

    /// A new directory.
    pub(crate) async fn ext_mkdir(&self, path: &str) -> Result<(), Errno> {
        if self.machine.borrow().kernel.ext.as_ref().is_some_and(|e| e.directories.contains_key(path)) {
            return Err(Errno::Exists);
        }
        self.in_handle(NAME_CREDITS, |kernel, dirty, _, _| {
            let Kernel { ext, files, .. } = kernel;
            let ext = ext.as_mut().ok_or(Errno::NotSupported)?;
            if ext.directories.contains_key(path) || files.find(path).is_some() {
                return Err(Errno::Exists);
            }
            ext.make_directory(path, dirty);
            kernel.name_changed();
            Ok(())
        })
        .await
    }

    /// Cut a file, or let it grow by a hole.
    pub(crate) async fn ext_truncate(&self, file: FileId, bytes: u64) {
        let old = self.machine.borrow().kernel.files.get(file).bytes;
        // Even an empty file that is cut to nothing gets a new time of change.
        self.in_handle(TRUNCATE_CREDITS, |kernel, dirty, tid, now| {
            let Kernel { ext, files, rules, .. } = &mut *kernel;
            if let Some(ext) = ext {
                if bytes < old {
                    dirty.push(SUPERBLOCK);
                    ext.free_blocks(files, file, bytes.div_ceil(PAGE), dirty);
                }
                let stamp = ext.stamp(now, rules);
                if let Some(inode) = &mut files.get_mut(file).ext {
                    inode.stamp = stamp;
                }
            }
            kernel.resize(file, bytes);
            kernel.push_inode(file, dirty);
            kernel.set_tids(file, tid, true);
        })
        .await;
    }
}

impl Kernel {
    fn remove_name(&mut self, path: &str, file: FileId, dirty: &mut Vec<u64>, tid: Tid) {
        self.files.unlink(path);
        if let Some(ext) = &mut self.ext {
            let parent = ext.parent_of(path);
            ext.remove_name(&parent, path, dirty);
            // Without a name the file is on the orphan list, which starts in the superblock.
            dirty.push(SUPERBLOCK);
        }
        self.push_inode(file, dirty);
        self.set_tids(file, tid, false);
        self.name_changed();
    }
}

impl Ext {
    /// Is there a directory of that name?
    pub(crate) fn is_directory(&self, path: &str) -> bool {
        !path.is_empty() && self.directories.contains_key(path)
    }

    /// Directories in the root are spread over the groups, others stay with their parent.
    fn make_directory(&mut self, path: &str, dirty: &mut Vec<u64>) {
        let parent = self.parent_of(path);
        let group = if parent.is_empty() {
            // A fixed walk through the groups in place of Orlov's random one.
            (self.directories.len() as u64).wrapping_mul(0x9e37_79b9) % self.layout.groups()
        } else {
            self.directories[&parent].group
        };
        let directory = self.new_directory(group);
        self.push_inode_maps(directory.inode, dirty);
        let block = directory.first_block();
        self.push_block_maps(block, 1, dirty);
        dirty.push(block);
        self.enter_name(&parent, path, dirty);
        self.directories.insert(path.to_owned(), directory);
    }
}
