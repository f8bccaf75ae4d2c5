//! Fast commits of ext4 (`fast_commit`, since Linux 5.10): instead of whole blocks the caller of fsync writes what changed in them into an area
//! at the journal's end, most often one block, and the journal's thread sleeps on. The transaction goes on running, and is committed
//! as ever when its time is up, when the area is full, or when `sync` asks.
//!
//! Source: Linux 5.10 and 6.12 `fs/ext4/fast_commit.c`, `fs/jbd2/journal.c` (`jbd2_fc_begin_commit`).

use std::collections::{BTreeMap, BTreeSet};

use fairlift_core::Flags;

use super::ordered::Ordered;
use super::{Tid, changed};
use crate::anatomy::{Cause, Step, Why};
use crate::engine::Sys;
use crate::kernel::files::{FileId, PAGE};

/// Blocks of the area (`JBD2_DEFAULT_FAST_COMMIT_BLOCKS`).
const AREA_BLOCKS: u64 = 256;
/// Bytes of a record, its tag included: the head, an inode of 256 bytes with one range of blocks, a name of some 20 letters, the tail.
const HEAD_BYTES: u64 = 12;
const INODE_BYTES: u64 = 168 + 20;
const NAME_BYTES: u64 = 32;
const TAIL_BYTES: u64 = 12;

/// The area, and what is not in it yet.
#[derive(Debug)]
pub(crate) struct FastCommits {
    /// Its blocks on the device.
    area: Vec<u64>,
    used: u64,
    /// Files that changed since they were last in a commit of any kind, and by which transaction.
    files: BTreeMap<FileId, Tid>,
    /// Changes of names likewise.
    names: u64,
    /// One is running.
    pub(super) ongoing: bool,
    /// A whole commit is, or is about to be.
    pub(super) full: bool,
    count: u64,
}

enum Begin {
    Committed,
    Begun,
}

impl FastCommits {
    /// Take the area from the end of a journal whose blocks are these.
    pub(crate) fn new(journal: &[u64]) -> FastCommits {
        let area = journal[journal.len().saturating_sub(AREA_BLOCKS as usize)..].to_vec();
        let (files, names) = (BTreeMap::new(), 0);
        FastCommits { area, used: 0, files, names, ongoing: false, full: false, count: 0 }
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.area.len() as u64
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn file_changed(&mut self, file: FileId, tid: Tid) {
        self.files.insert(file, tid);
    }

    pub(crate) fn name_changed(&mut self) {
        self.names += 1;
    }

    /// A transaction is closed: a commit of it covers what changed up to now.
    pub(super) fn transaction_closed(&mut self) {
        self.names = 0;
    }

    /// It is committed.
    pub(super) fn transaction_committed(&mut self, tid: Tid) {
        self.files.retain(|_, changed_by| *changed_by > tid);
        self.used = 0;
        self.full = false;
    }

    /// The blocks of the next one; `None`: the area is full.
    fn take(&mut self, files: u64, names: u64) -> Option<Vec<u64>> {
        let head = if self.used == 0 { HEAD_BYTES } else { 0 };
        let bytes = head + files * INODE_BYTES + names * NAME_BYTES + TAIL_BYTES;
        let from = self.used as usize;
        let places = self.area.get(from..from + bytes.div_ceil(PAGE) as usize)?.to_vec();
        self.used += places.len() as u64;
        Some(places)
    }
}

impl Sys {
    /// Make what transaction `tid` changed of `file` durable without the journal's thread; `false`: the transaction has to be committed.
    pub(crate) async fn fast_commit(&self, file: FileId, tid: Tid) -> bool {
        match self.begin_fast_commit(file, tid).await {
            Begin::Committed => return true,
            Begin::Begun => {}
        }
        self.step(Step::OrderedData);
        let (files, names, ordered, flags, barrier) = {
            let mut machine = self.machine.borrow_mut();
            let flags = machine.kernel.rules.fsync_write;
            let barrier = machine.kernel.rules.journal.barrier;
            let Some(ext) = &mut machine.kernel.ext else { return false };
            let barrier = if ext.mount.barrier { barrier } else { Flags::NONE };
            let Some(fast) = &mut ext.journal.fast else { return false };
            let files: BTreeSet<FileId> = std::mem::take(&mut fast.files).into_keys().collect();
            let names = std::mem::take(&mut fast.names);
            let ordered = Ordered::of(&machine, &files);
            (files.len() as u64, names, ordered, flags, barrier)
        };
        self.write_ordered(&ordered, flags).await;
        let places = {
            let ext = &mut self.machine.borrow_mut().kernel.ext;
            ext.as_mut().and_then(|ext| ext.journal.fast.as_mut()).and_then(|fast| fast.take(files, names))
        };
        if let Some((tail, rest)) = places.as_deref().and_then(<[u64]>::split_last) {
            self.step(Step::CommitBlock);
            if !rest.is_empty() {
                self.write_blocks(Flags::SYNC, rest).await;
            }
            self.write_blocks(Flags::SYNC | barrier, std::slice::from_ref(tail)).await;
        }
        self.end_fast_commit(places.is_some());
        places.is_some()
    }

    /// Wait for commits of others and for open operations; new ones have to wait for this one.
    async fn begin_fast_commit(&self, file: FileId, tid: Tid) -> Begin {
        let mut waited = false;
        let begin = self
            .wait(Why::Because(Cause::Handles), |machine, task| {
                let journal = &mut machine.kernel.ext.as_mut()?.journal;
                if journal.is_committed(tid) {
                    return Some(Begin::Committed);
                }
                let committing = journal.committing.is_some();
                let fast = journal.fast.as_mut()?;
                if fast.full || fast.ongoing || committing {
                    waited = true;
                    journal.waiting.push(task);
                    return None;
                }
                // The one that this task waited for had its changes, too.
                if waited && !fast.files.contains_key(&file) {
                    return Some(Begin::Committed);
                }
                fast.ongoing = true;
                Some(Begin::Begun)
            })
            .await;
        if matches!(begin, Begin::Begun) {
            self.wait(Why::Because(Cause::Handles), |machine, task| {
                let journal = &mut machine.kernel.ext.as_mut()?.journal;
                if journal.running.as_ref().is_none_or(|running| running.handles == 0) {
                    return Some(());
                }
                journal.waiting.push(task);
                None
            })
            .await;
        }
        begin
    }

    fn end_fast_commit(&self, complete: bool) {
        let mut machine = self.machine.borrow_mut();
        if let Some(fast) = machine.kernel.ext.as_mut().and_then(|ext| ext.journal.fast.as_mut()) {
            fast.ongoing = false;
            fast.count += u64::from(complete);
        }
        changed(&mut machine);
    }
}
