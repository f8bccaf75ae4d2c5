//! The journal's thread (kjournald, jbd2): the data, the copies, the commit block - each waited for before the next.

use std::collections::BTreeSet;

use fairlift_core::Flags;

use super::ordered::Ordered;
use super::{Tid, Transaction, changed, handle};
use crate::anatomy::{Cause, Step, Why};
use crate::engine::{Machine, Sys};
use crate::kernel::FsKind;

/// What a commit writes with.
#[derive(Clone, Copy, Debug)]
struct CommitFlags {
    data: Flags,
    body: Flags,
    record: Flags,
    superblock: Flags,
}

/// Commit whenever a task asks or a transaction is old enough.
pub(crate) async fn commit_thread(sys: Sys) {
    if let Some(ext) = &mut sys.machine.borrow_mut().kernel.ext {
        ext.journal.thread = Some(sys.task);
    }
    loop {
        sys.wait(Why::Because(Cause::Unasked), |machine, _| is_due(machine).then_some(())).await;
        let switch_ns = sys.machine.borrow().kernel.rules.switch_ns;
        sys.pause(switch_ns, Why::SWITCH).await;
        sys.commit().await;
    }
}

fn is_due(machine: &Machine) -> bool {
    let Some(ext) = &machine.kernel.ext else { return false };
    let journal = &ext.journal;
    journal.running.as_ref().is_some_and(|running| {
        journal.requested >= running.tid || machine.now() >= handle::expires(running.started_ns)
    })
}

impl Sys {
    async fn commit(&self) {
        self.await_fast_commit().await;
        self.step(Step::Superblock);
        self.name_log_start().await;
        self.step(Step::Commit);
        self.lock_transaction().await;
        let started = self.now();
        let (tid, data, flags) = self.seal_transaction();
        self.step(Step::OrderedData);
        self.write_ordered(&data, flags.data).await;
        self.step(Step::JournalBody);
        self.write_body(tid, flags.body).await;
        self.step(Step::CommitBlock);
        self.write_record(tid, flags.record).await;
        self.step(Step::Commit);
        self.finish_commit(started);
    }

    /// No fast commit begins from now on; wait for the one that is running.
    async fn await_fast_commit(&self) {
        self.wait(Why::Because(Cause::Handles), |machine, task| {
            let journal = &mut machine.kernel.ext.as_mut()?.journal;
            let Some(fast) = &mut journal.fast else { return Some(()) };
            if !fast.ongoing {
                fast.full = true;
                return Some(());
            }
            journal.waiting.push(task);
            None
        })
        .await;
    }

    /// The first commit into an empty log writes the journal's superblock, to say that the log is in use.
    async fn name_log_start(&self) {
        let place = {
            let kernel = &mut self.machine.borrow_mut().kernel;
            let Some(ext) = &mut kernel.ext else { return };
            std::mem::take(&mut ext.journal.empty).then(|| ext.journal.log.superblock())
        };
        if let Some(place) = place {
            let flags = self.commit_flags().superblock;
            self.write_blocks(flags, &[place]).await;
        }
    }

    /// Let no operation join any more, and wait until all have ended.
    async fn lock_transaction(&self) {
        self.wait(Why::Because(Cause::Handles), |machine, task| {
            let journal = &mut machine.kernel.ext.as_mut()?.journal;
            let Some(running) = &mut journal.running else { return Some(()) };
            running.locked = true;
            if running.handles == 0 {
                return Some(());
            }
            journal.waiting.push(task);
            None
        })
        .await;
    }

    /// The transaction is complete; a new one may start.
    fn seal_transaction(&self) -> (Tid, Ordered, CommitFlags) {
        let mut machine = self.machine.borrow_mut();
        let mut sealed = (0, BTreeSet::new());
        if let Some(ext) = &mut machine.kernel.ext
            && let Some(mut running) = ext.journal.running.take()
        {
            sealed = (running.tid, std::mem::take(&mut running.data));
            ext.journal.requested = ext.journal.requested.max(running.tid);
            if let Some(fast) = &mut ext.journal.fast {
                fast.transaction_closed();
            }
            ext.journal.committing = Some(running);
        }
        let ordered = Ordered::of(&machine, &sealed.1);
        changed(&mut machine);
        drop(machine);
        (sealed.0, ordered, self.commit_flags())
    }

    /// Flags by version, and by who waits for this commit.
    fn commit_flags(&self) -> CommitFlags {
        let machine = self.machine.borrow();
        let kernel = &machine.kernel;
        let rules = &kernel.rules.journal;
        let Some(ext) = &kernel.ext else {
            return CommitFlags {
                data: Flags::NONE,
                body: Flags::NONE,
                record: Flags::NONE,
                superblock: Flags::NONE,
            };
        };
        let kind = ext.mount.kind as usize;
        let committing = ext.journal.committing.as_ref();
        let synchronous = committing.is_some_and(|t| t.synchronous);
        let waited = committing.is_some_and(|t| ext.journal.waited_for.range(..=t.tid).next().is_some());
        let sync = synchronous || (rules.sync_if_waited && waited);
        let body = if sync { rules.body_if_sync } else { rules.body };
        let barrier = if ext.mount.barrier { rules.barrier } else { Flags::NONE };
        CommitFlags {
            data: if ext.mount.kind == FsKind::Ext3 && !kernel.rules.ext3_is_ext4 {
                body_without_unplug(body)
            } else {
                kernel.rules.fsync_write
            },
            body,
            record: rules.record[kind] | barrier,
            superblock: rules.record[kind],
        }
    }

    /// Descriptor blocks and copies, in a row in the log.
    async fn write_body(&self, tid: Tid, flags: Flags) {
        let places = {
            let mut machine = self.machine.borrow_mut();
            let tags = machine.kernel.rules.journal.tags_per_descriptor;
            let Some(ext) = &mut machine.kernel.ext else { return };
            let journal = &mut ext.journal;
            let blocks = journal.committing.as_ref().map_or(0, |t| t.metadata.len() as u64);
            journal.shadow = true;
            journal.take_log(tid, blocks + blocks.div_ceil(tags))
        };
        if !places.is_empty() {
            self.write_blocks(flags, &places).await;
        }
        let mut machine = self.machine.borrow_mut();
        if let Some(ext) = &mut machine.kernel.ext {
            ext.journal.shadow = false;
        }
        changed(&mut machine);
    }

    async fn write_record(&self, tid: Tid, flags: Flags) {
        let places = {
            let mut machine = self.machine.borrow_mut();
            let Some(ext) = &mut machine.kernel.ext else { return };
            ext.journal.take_log(tid, 1)
        };
        self.write_blocks(flags, &places).await;
    }

    /// The transaction is durable: its blocks may go home.
    fn finish_commit(&self, started: u64) {
        let mut machine = self.machine.borrow_mut();
        let now = machine.now();
        let kernel = &mut machine.kernel;
        let Some(ext) = &mut kernel.ext else { return };
        let done = ext.journal.committing.take();
        if let Some(fast) = &mut ext.journal.fast {
            fast.transaction_committed(done.as_ref().map_or(0, |done| done.tid));
        }
        let Some(done) = done else { return };
        ext.transaction_committed(done.tid);
        ext.journal.enter_checkpoint(&done);
        for block in &done.metadata {
            let changed_again = ext.journal.running.as_ref().is_some_and(|t| t.metadata.contains(block));
            if !changed_again {
                kernel.cache.dirty(ext.bdev, *block, crate::group::Cgroup::ROOT, now);
            }
        }
        let journal = &mut ext.journal;
        journal.committed = done.tid;
        journal.stats.commits += 1;
        let took = now - started;
        journal.average_commit_ns = match journal.average_commit_ns {
            0 => took,
            average => (took + 3 * average) / 4,
        };
        changed(&mut machine);
    }
}

/// The data pages of jbd's own list are submitted like its blocks, but never with an unplug each.
fn body_without_unplug(body: Flags) -> Flags {
    let mut flags = body;
    flags.remove(Flags::UNPLUG);
    flags
}

impl super::Journal {
    fn take_log(&mut self, tid: Tid, blocks: u64) -> Vec<u64> {
        let (places, wrapped) = self.log.take(tid, blocks);
        self.stats.log_blocks += blocks;
        self.stats.log_used_max = self.stats.log_used_max.max(self.log.used());
        self.stats.wraps += u64::from(wrapped);
        places
    }

    /// From now on the log space of `done` is held by its blocks, until they are home or changed by a later transaction.
    fn enter_checkpoint(&mut self, done: &Transaction) {
        for block in &done.metadata {
            if let Some(older) = self.checkpoint_of.insert(*block, done.tid) {
                self.lets_go(older, *block);
            }
        }
        if !done.metadata.is_empty() {
            self.checkpoint.insert(done.tid, done.metadata.clone());
        }
    }
}
