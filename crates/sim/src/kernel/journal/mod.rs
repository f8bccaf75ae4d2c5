//! The journal (jbd of ext3, jbd2 of ext4): operations join a running transaction; a commit writes copies of all blocks it changed
//! into the log, then one commit block that makes them count; in their places they are written later.
//!
//! Sources: Linux 2.6.34 `fs/jbd`, `fs/jbd2`.

mod checkpoint;
mod commit;
mod fast;
mod handle;
mod log;
mod ordered;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::extents::Extents;
use super::files::FileId;
use crate::engine::{Machine, TaskId};
pub(crate) use commit::commit_thread;
pub(crate) use fast::FastCommits;
pub(crate) use handle::Handle;
use log::Log;

/// Number of a transaction; 0 = before the first.
pub(crate) type Tid = u64;

/// A set of changes that become durable together.
#[derive(Debug, Default)]
struct Transaction {
    tid: Tid,
    started_ns: u64,
    /// Operations that still add to it, and how many blocks they may add.
    handles: u32,
    reserved: u64,
    /// Operations that ever joined.
    joined: u64,
    /// No further operation may join.
    locked: bool,
    /// Blocks it changed.
    metadata: BTreeSet<u64>,
    /// Files whose data must be on the device before it.
    data: BTreeSet<FileId>,
    /// An operation that is waited for is part of it (`t_synchronous_commit`).
    synchronous: bool,
}

impl Transaction {
    /// Blocks it has or may come to have.
    fn blocks(&self) -> u64 {
        self.metadata.len() as u64 + self.reserved
    }
}

/// What was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JournalStats {
    /// Commits of whole transactions.
    pub commits: u64,
    /// Fast commits.
    pub fast_commits: u64,
    /// Blocks written to the log, commit blocks included.
    pub log_blocks: u64,
    /// Most blocks the log held at a time.
    pub log_used_max: u64,
    /// Times the log began again at its start.
    pub wraps: u64,
    /// Rounds of checkpointing because the log was full.
    pub checkpoints: u64,
}

#[derive(Debug)]
pub(crate) struct Journal {
    log: Log,
    running: Option<Transaction>,
    committing: Option<Transaction>,
    next_tid: Tid,
    /// The last transaction that a task wants committed, and the last that is.
    requested: Tid,
    committed: Tid,
    /// Nothing is in the log: the next commit first has to say where it starts.
    empty: bool,
    /// The committing transaction's blocks are being copied to the log and may not change.
    shadow: bool,
    average_commit_ns: u64,
    /// Who asked for a synchronous commit last.
    last_sync: Option<TaskId>,
    /// Commits that tasks wait for now.
    waited_for: BTreeMap<Tid, u32>,
    thread: Option<TaskId>,
    /// Tasks that wait for any change of state.
    waiting: Vec<TaskId>,
    /// A task is making room in the log.
    making_room: bool,
    /// Blocks that committed transactions changed and that are not in their places yet; no set is empty.
    checkpoint: BTreeMap<Tid, BTreeSet<u64>>,
    checkpoint_of: BTreeMap<u64, Tid>,
    stats: JournalStats,
    /// If it has fast commits.
    pub(crate) fast: Option<FastCommits>,
}

impl Journal {
    /// An empty journal in `blocks` blocks at `area`.
    pub(crate) fn new(area: Extents, blocks: u64) -> Journal {
        Journal {
            log: Log::new(area, blocks),
            running: None,
            committing: None,
            next_tid: 1,
            requested: 0,
            committed: 0,
            empty: true,
            shadow: false,
            average_commit_ns: 0,
            last_sync: None,
            waited_for: BTreeMap::new(),
            thread: None,
            waiting: Vec::new(),
            making_room: false,
            checkpoint: BTreeMap::new(),
            checkpoint_of: BTreeMap::new(),
            stats: JournalStats::default(),
            fast: None,
        }
    }

    /// The same with fast commits at its end.
    pub(crate) fn with_fast_commits(area: Extents, blocks: u64) -> Journal {
        let places: Vec<u64> = (0..blocks).filter_map(|block| area.run_at(block, 1).0).collect();
        let fast = FastCommits::new(&places);
        let whole = blocks - fast.blocks();
        Journal { fast: Some(fast), ..Journal::new(area, whole) }
    }

    /// What was counted so far.
    pub(crate) fn stats(&self) -> JournalStats {
        JournalStats { fast_commits: self.fast.as_ref().map_or(0, FastCommits::count), ..self.stats }
    }

    /// Largest transaction, blocks: a quarter of the log.
    fn transaction_max(&self) -> u64 {
        self.log.blocks() / 4
    }

    /// Is `tid` durable?
    pub(crate) fn is_committed(&self, tid: Tid) -> bool {
        tid <= self.committed
    }

    /// The running transaction; where there is none, the next one.
    pub(crate) fn running_tid(&self) -> Tid {
        self.running.as_ref().map_or(self.next_tid, |running| running.tid)
    }

    /// The newest transaction that is not durable yet.
    pub(crate) fn newest(&self) -> Option<Tid> {
        self.running.as_ref().or(self.committing.as_ref()).map(|t| t.tid)
    }

    /// Changes that are not in the log or not in their places.
    pub(crate) fn unfinished(&self) -> [usize; 3] {
        let open = usize::from(self.running.is_some()) + usize::from(self.committing.is_some());
        [open, self.checkpoint_of.len(), self.waiting.len()]
    }

    /// Blocks of the log that are in use.
    pub(crate) fn log_used(&self) -> (u64, u64) {
        (self.log.used(), self.log.blocks())
    }

    /// Is this metadata block part of a transaction that is not yet complete? Then it is in memory.
    pub(crate) fn holds(&self, block: u64) -> bool {
        self.running.iter().chain(&self.committing).any(|transaction| transaction.metadata.contains(&block))
    }

    /// Data of `file` belongs to the running transaction.
    pub(crate) fn add_data(&mut self, file: FileId) {
        if let Some(running) = &mut self.running {
            running.data.insert(file);
        }
    }

    /// A metadata block reached its place.
    pub(crate) fn block_is_home(&mut self, block: u64) {
        if let Some(tid) = self.checkpoint_of.remove(&block) {
            self.lets_go(tid, block);
        }
    }

    /// `block` no longer holds the log space of transaction `tid`.
    fn lets_go(&mut self, tid: Tid, block: u64) {
        if let Entry::Occupied(mut entry) = self.checkpoint.entry(tid) {
            entry.get_mut().remove(&block);
            if entry.get().is_empty() {
                entry.remove();
            }
        }
    }
}

/// Wake all tasks that wait for the journal.
fn changed(machine: &mut Machine) {
    if let Some(ext) = &mut machine.kernel.ext {
        let waiting = std::mem::take(&mut ext.journal.waiting);
        for task in waiting {
            machine.wake(task);
        }
    }
}
