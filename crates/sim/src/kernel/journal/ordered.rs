//! Ordered mode: which data reaches the device before a commit.
//!
//! jbd keeps the buffers themselves on the transaction's list: what a program dirties after the transaction was closed belongs to the
//! next one, and the commit does not wait for it, however long the file goes on growing. jbd2 keeps the inodes, and writes whatever
//! is dirty in them.
//!
//! Source: Linux 2.6.30 `fs/jbd/commit.c` (`journal_submit_data_buffers`), `fs/jbd2/commit.c`.

use std::collections::BTreeSet;
use std::ops::Range;

use fairlift_core::Flags;

use crate::anatomy::Why;
use crate::engine::{Machine, Sys};
use crate::kernel::buffered::Which;
use crate::kernel::files::FileId;
use crate::kernel::{DataMode, FsKind};

/// Data that goes before a transaction.
#[derive(Debug, Default)]
pub(super) struct Ordered {
    files: Vec<OrderedFile>,
}

#[derive(Debug)]
struct OrderedFile {
    file: FileId,
    /// The pages that were dirty when the transaction was closed; `None`: all that are dirty when their turn comes.
    dirty: Option<Vec<Range<u64>>>,
    /// Writes in flight at that time have smaller numbers.
    under_way: u64,
}

impl Ordered {
    /// What goes before a transaction that is closed now and changed these files.
    pub(super) fn of(machine: &Machine, files: &BTreeSet<FileId>) -> Ordered {
        let kernel = &machine.kernel;
        let mount = match &kernel.ext {
            Some(ext) if ext.mount.data == DataMode::Ordered => &ext.mount,
            _ => return Ordered::default(),
        };
        let by_buffers = mount.kind == FsKind::Ext3 && !kernel.rules.ext3_is_ext4;
        let entry = |file: &FileId| OrderedFile {
            file: *file,
            dirty: by_buffers.then(|| kernel.cache.dirty_runs(*file)),
            under_way: kernel.cache.next_write(),
        };
        Ordered { files: files.iter().map(entry).collect() }
    }
}

impl Sys {
    /// Write it, and wait. What is on its way already is waited for too.
    pub(super) async fn write_ordered(&self, ordered: &Ordered, flags: Flags) {
        for entry in &ordered.files {
            let all = std::slice::from_ref(&(0..u64::MAX));
            for run in entry.dirty.as_deref().unwrap_or(all) {
                self.write_pages(entry.file, run.clone(), u64::MAX, flags, Which::Mapped).await;
            }
        }
        self.unplug();
        for entry in &ordered.files {
            match &entry.dirty {
                None => self.wait_for_writes(entry.file).await,
                Some(runs) => self.wait_for_pages_written(entry.file, runs, entry.under_way).await,
            }
        }
    }

    /// Wait for the file's writes that began before number `under_way`, and for those of `runs` that are in flight now.
    async fn wait_for_pages_written(&self, file: FileId, runs: &[Range<u64>], under_way: u64) {
        let now = self.machine.borrow().kernel.cache.next_write();
        self.wait(Why::Io, |machine, task| {
            let cache = &mut machine.kernel.cache;
            cache.wait_pages_written(file, runs, under_way..now, task).then_some(())
        })
        .await;
    }
}
