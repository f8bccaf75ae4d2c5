//! `sync(2)`: once over everything without waiting, then again for real, with the journal in between.
//!
//! Source: Linux 2.6.30 and 2.6.34 `fs/sync.c`. Since 2.6.32 the device's flusher does the writing for the caller.

use fairlift_core::Flags;

use super::flusher::Work;
use crate::anatomy::Why;
use crate::engine::Sys;
use crate::kernel::buffered::Which;
use crate::kernel::files::FileId;

impl Sys {
    /// Write everything that is dirty, and wait for it.
    pub(crate) async fn sync_everything(&self) {
        let bdev = self.bdev();
        self.sync_pass(bdev, false).await;
        self.ext_commit_all(false).await;
        if let Some(bdev) = bdev {
            self.write_pages(bdev, 0..u64::MAX, u64::MAX, Flags::NONE, Which::All).await;
        }
        self.sync_pass(bdev, true).await;
        self.ext_commit_all(true).await;
        if let Some(bdev) = bdev {
            self.write_and_wait(bdev).await;
        }
    }

    /// Once over all files.
    async fn sync_pass(&self, bdev: Option<FileId>, wait: bool) {
        let files: Vec<FileId> = self
            .machine
            .borrow()
            .kernel
            .cache
            .dirty_files()
            .into_iter()
            .filter(|f| Some(*f) != bdev)
            .collect();
        let flusher = {
            let kernel = &self.machine.borrow().kernel;
            if kernel.rules.writeback.pdflush { None } else { kernel.writeback.threads.first().copied() }
        };
        // The caller of 2.6.31 and before writes by itself.
        let Some(flusher) = flusher else {
            for file in &files {
                if wait {
                    self.write_and_wait(*file).await;
                } else {
                    self.write_pages(*file, 0..u64::MAX, u64::MAX, Flags::NONE, Which::All).await;
                }
            }
            self.wait_for_all_writes(bdev, wait).await;
            return;
        };
        {
            let mut machine = self.machine.borrow_mut();
            for file in files {
                machine.kernel.writeback.work.push(Work { file, sync: wait, asked_by: self.task });
            }
            machine.wake(flusher);
        }
        if wait {
            self.wait(Why::For(Some(flusher)), |machine, task| {
                let work = &machine.kernel.writeback.work;
                work.iter().all(|w| w.asked_by != task).then_some(())
            })
            .await;
            self.wait_for_all_writes(bdev, wait).await;
        }
    }

    /// What was on its way when the pass began is waited for too.
    async fn wait_for_all_writes(&self, bdev: Option<FileId>, wait: bool) {
        if !wait {
            return;
        }
        self.unplug();
        let files = self.machine.borrow().kernel.cache.files_being_written();
        for file in files.into_iter().filter(|f| Some(*f) != bdev) {
            self.wait_for_writes(file).await;
        }
    }
}
