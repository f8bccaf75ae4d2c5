//! An operation's part in the running transaction.

use fairlift_core::SECOND;

use super::{Tid, Transaction, changed};
use crate::anatomy::{Cause, Why};
use crate::engine::Sys;
use crate::kernel::version::Batching;

/// A transaction is committed after this time if no task asks before (`commit=`, 5 s).
const COMMIT_INTERVAL_NS: u64 = 5 * SECOND;

/// An open operation: while there is one, its transaction cannot be committed.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) tid: Tid,
    credits: u64,
}

enum Start {
    Started(Handle),
    NoRoom,
}

impl Sys {
    /// Join the running transaction, with at most `credits` blocks to change; start one if there is none.
    pub(crate) async fn start_handle(&self, credits: u64) -> Handle {
        loop {
            let start = self
                .wait(self.for_journal(), |machine, task| {
                    let now = machine.now();
                    let ext = machine.kernel.ext.as_mut()?;
                    let journal = &mut ext.journal;
                    if journal.fast.as_ref().is_some_and(|fast| fast.ongoing) {
                        journal.waiting.push(task);
                        return None;
                    }
                    if let Some(running) = &journal.running {
                        let full = running.blocks() + credits > journal.log.blocks() / 4
                            && !running.metadata.is_empty();
                        if full && !running.locked {
                            journal.requested = journal.requested.max(running.tid);
                        }
                        if running.locked || full {
                            journal.waiting.push(task);
                            if let Some(thread) = journal.thread {
                                machine.wake(thread);
                            }
                            return None;
                        }
                    }
                    let committing = journal.committing.as_ref().map_or(0, Transaction::blocks);
                    if journal.log.space() < journal.transaction_max() + committing {
                        return Some(Start::NoRoom);
                    }
                    let fresh = journal.running.is_none();
                    let next_tid = &mut journal.next_tid;
                    let running = journal.running.get_or_insert_with(|| {
                        *next_tid += 1;
                        Transaction { tid: *next_tid - 1, started_ns: now, ..Transaction::default() }
                    });
                    running.handles += 1;
                    running.joined += 1;
                    running.reserved += credits;
                    let handle = Handle { tid: running.tid, credits };
                    if fresh && let Some(thread) = journal.thread {
                        machine.wake_at(expires(now), thread);
                    }
                    Some(Start::Started(handle))
                })
                .await;
            match start {
                Start::Started(handle) => return handle,
                Start::NoRoom => Box::pin(self.make_log_room()).await,
            }
        }
    }

    /// The operation changed these blocks. Waits while one of them is being copied to the log.
    pub(crate) async fn journal_blocks(&self, handle: &Handle, blocks: &[u64]) {
        self.wait(self.for_journal(), |machine, task| {
            let journal = &mut machine.kernel.ext.as_mut()?.journal;
            let committing = journal.committing.as_ref().filter(|_| journal.shadow);
            if committing.is_some_and(|t| blocks.iter().any(|b| t.metadata.contains(b))) {
                journal.waiting.push(task);
                return None;
            }
            Some(())
        })
        .await;
        let kernel = &mut self.machine.borrow_mut().kernel;
        let Some(ext) = &mut kernel.ext else { return };
        let Some(running) = &mut ext.journal.running else { return };
        debug_assert_eq!(running.tid, handle.tid, "an open operation keeps its transaction from committing");
        for block in blocks {
            running.metadata.insert(*block);
            // It goes home only after this transaction.
            kernel.cache.undirty(ext.bdev, *block);
        }
    }

    /// The operation has changed everything it is going to change.
    pub(crate) fn stop_handle(&self, handle: Option<Handle>) {
        let Some(handle) = handle else { return };
        let mut machine = self.machine.borrow_mut();
        let Some(ext) = &mut machine.kernel.ext else { return };
        let Some(running) = ext.journal.running.as_mut().filter(|t| t.tid == handle.tid) else { return };
        running.handles -= 1;
        running.reserved -= handle.credits;
        let awaited = running.locked || ext.journal.fast.as_ref().is_some_and(|fast| fast.ongoing);
        if running.handles == 0 && awaited {
            changed(&mut machine);
        }
    }

    /// End an operation that is to be durable: wait a moment for others to join, then for the commit (`h_sync`).
    pub(crate) async fn stop_sync_handle(&self, handle: Handle) {
        self.batch(handle.tid).await;
        let tid = handle.tid;
        {
            let kernel = &mut self.machine.borrow_mut().kernel;
            let marks = kernel.rules.journal.marks_synchronous;
            if let Some(running) = kernel.ext.as_mut().and_then(|e| e.journal.running.as_mut()) {
                running.synchronous |= marks;
            }
        }
        self.request_commit(tid);
        self.stop_handle(Some(handle));
        self.wait_for_commit(tid).await;
    }

    /// Sync batching: a task that was not the last to commit gives others the time of a commit to join.
    async fn batch(&self, tid: Tid) {
        let (batching, pause_ns) = {
            let mut machine = self.machine.borrow_mut();
            let (now, tick_ns) = (machine.now(), machine.kernel.rules.tick_ns);
            let batching = machine.kernel.rules.journal.batching;
            let Some(ext) = &mut machine.kernel.ext else { return };
            let jbd = ext.mount.kind == crate::kernel::FsKind::Ext3;
            let journal = &mut ext.journal;
            if journal.last_sync.replace(self.task) == Some(self.task) {
                return;
            }
            let age =
                journal.running.as_ref().filter(|t| t.tid == tid).map_or(u64::MAX, |t| now - t.started_ns);
            let average = journal.average_commit_ns.min(if jbd { tick_ns } else { 15_000_000 });
            match batching {
                Batching::Tick => (batching, tick_ns),
                Batching::Average if age < average => (batching, average),
                Batching::Average => return,
            }
        };
        let joined = || {
            let machine = self.machine.borrow();
            let running = machine.kernel.ext.as_ref().and_then(|e| e.journal.running.as_ref());
            running.map_or(0, |t| t.joined)
        };
        loop {
            let before = joined();
            self.pause(pause_ns, Why::Because(Cause::Batching)).await;
            if batching == Batching::Average || joined() == before {
                return;
            }
        }
    }

    /// Ask for the commit of `tid`.
    pub(crate) fn request_commit(&self, tid: Tid) {
        let mut machine = self.machine.borrow_mut();
        let Some(ext) = &mut machine.kernel.ext else { return };
        if tid > ext.journal.requested {
            ext.journal.requested = tid;
            if let Some(thread) = ext.journal.thread {
                machine.wake(thread);
            }
        }
    }

    /// What a wait for the journal is for: its thread.
    fn for_journal(&self) -> Why {
        Why::For(self.machine.borrow().kernel.ext.as_ref().and_then(|ext| ext.journal.thread))
    }

    /// Wait until `tid` is durable.
    pub(crate) async fn wait_for_commit(&self, tid: Tid) {
        {
            let mut machine = self.machine.borrow_mut();
            let Some(ext) = &mut machine.kernel.ext else { return };
            if ext.journal.is_committed(tid) {
                return;
            }
            *ext.journal.waited_for.entry(tid).or_default() += 1;
            let thread = ext.journal.thread;
            if machine.kernel.rules.journal_yields {
                let (from, now) = (machine.context_of(self.task), machine.now());
                let to = thread.map(|thread| machine.context_of(thread));
                machine.block.yield_to(from, to, now);
            }
        }
        self.unplug();
        self.wait(self.for_journal(), |machine, task| {
            let journal = &mut machine.kernel.ext.as_mut()?.journal;
            if journal.is_committed(tid) {
                return Some(());
            }
            journal.waiting.push(task);
            None
        })
        .await;
        let switch_ns = {
            let kernel = &mut self.machine.borrow_mut().kernel;
            if let Some(ext) = &mut kernel.ext
                && let Some(count) = ext.journal.waited_for.get_mut(&tid)
            {
                *count -= 1;
                if *count == 0 {
                    ext.journal.waited_for.remove(&tid);
                }
            }
            kernel.rules.switch_ns
        };
        self.pause(switch_ns, Why::SWITCH).await;
    }
}

/// When a transaction that started at `now` is committed unasked: the timer is rounded up to a whole second.
pub(super) const fn expires(now: u64) -> u64 {
    (now + COMMIT_INTERVAL_NS).next_multiple_of(SECOND)
}
