//! What fsync and sync do beyond the data.

use crate::anatomy::Step;
use crate::engine::Sys;
use crate::kernel::FsKind;
use crate::kernel::files::FileId;

impl Sys {
    /// The metadata part of fsync: commit the transaction that last changed the file, if it is not durable yet.
    pub(crate) async fn ext_sync(&self, file: FileId, data_only: bool) {
        let (tid, durable, kind, barrier, rules, has_fast_commits) = {
            let machine = self.machine.borrow();
            let kernel = &machine.kernel;
            let (Some(ext), Some(inode)) = (&kernel.ext, &kernel.files.get(file).ext) else { return };
            let tid = if data_only { inode.datasync_tid } else { inode.sync_tid };
            let durable = ext.journal.is_committed(tid);
            (
                tid,
                durable,
                ext.mount.kind,
                ext.mount.barrier,
                kernel.rules.journal,
                ext.journal.fast.is_some(),
            )
        };
        if durable {
            if barrier && rules.flush_if_durable[kind as usize] {
                self.step(Step::Flush);
                self.flush_device().await;
            }
            return;
        }
        if rules.fsync_by_handle[kind as usize] {
            // journal_force_commit: an operation of its own, synchronous, that commits whatever is running.
            let handle = self.start_handle(1).await;
            self.stop_sync_handle(handle).await;
            self.wait_for_commit(tid).await;
        } else if !(has_fast_commits && self.fast_commit(file, tid).await) {
            self.request_commit(tid);
            self.wait_for_commit(tid).await;
        }
        if barrier && kind == FsKind::Ext4 && rules.ext4_flush_after_commit {
            self.step(Step::Flush);
            self.flush_device().await;
        }
    }

    /// Commit whatever is running; with `wait`, wait for it.
    pub(crate) async fn ext_commit_all(&self, wait: bool) {
        let newest = self.machine.borrow().kernel.ext.as_ref().and_then(|ext| ext.journal.newest());
        if let Some(tid) = newest {
            self.request_commit(tid);
            if wait {
                self.wait_for_commit(tid).await;
            }
        }
    }
}
