//! Making room in the log: the oldest transaction's blocks are written to their places, then the journal's superblock moves the
//! log's start.

use super::{Tid, changed};
use crate::anatomy::{Step, Why};
use crate::engine::Sys;
use crate::kernel::buffered::Which;

/// Blocks written at a time.
const BATCH: usize = 64;

/// What there is to do for room.
enum Room {
    /// The log's start has moved: say so on the device.
    Superblock(u64),
    /// Write these home.
    Write(Vec<u64>),
    /// Wait for those that are in flight to their home.
    Wait,
    /// The blocks were changed again: only a commit frees their log space.
    Commit(Tid),
    /// Another task did it.
    Nothing,
}

impl Sys {
    /// One step towards room for a transaction.
    pub(super) async fn make_log_room(&self) {
        let mine = self
            .wait(Why::For(None), |machine, task| {
                let journal = &mut machine.kernel.ext.as_mut()?.journal;
                if !journal.making_room {
                    journal.making_room = true;
                    return Some(());
                }
                journal.waiting.push(task);
                None
            })
            .await;
        let () = mine;
        self.step(Step::Checkpoint);
        match self.room_step() {
            Room::Superblock(place) => {
                let flags = self.machine.borrow().kernel.rules.journal.record[0];
                self.write_blocks(flags, &[place]).await;
            }
            Room::Write(blocks) => self.write_home(&blocks).await,
            Room::Wait => {
                if let Some(bdev) = self.bdev() {
                    self.unplug();
                    self.wait_for_writes(bdev).await;
                }
            }
            Room::Commit(tid) => {
                self.request_commit(tid);
                self.wait_for_commit(tid).await;
            }
            Room::Nothing => {}
        }
        let mut machine = self.machine.borrow_mut();
        if let Some(ext) = &mut machine.kernel.ext {
            ext.journal.making_room = false;
        }
        changed(&mut machine);
    }

    fn room_step(&self) -> Room {
        let machine = &mut *self.machine.borrow_mut();
        let Some(ext) = &mut machine.kernel.ext else { return Room::Nothing };
        let journal = &mut ext.journal;
        let committing = journal.committing.as_ref().map_or(Tid::MAX, |t| t.tid);
        let checkpoint = &journal.checkpoint;
        if journal.log.release(|tid| tid < committing && !checkpoint.contains_key(&tid)) > 0 {
            return Room::Superblock(journal.log.superblock());
        }
        let oldest = journal.log.oldest().and_then(|tid| journal.checkpoint.get(&tid));
        let Some(oldest) = oldest else {
            return journal.newest().map_or(Room::Nothing, Room::Commit);
        };
        journal.stats.checkpoints += 1;
        if let Some(running) =
            journal.running.as_ref().filter(|t| oldest.iter().any(|b| t.metadata.contains(b)))
        {
            return Room::Commit(running.tid);
        }
        let dirty = |block: &u64| machine.kernel.cache.first_dirty(ext.bdev, *block..*block + 1, 1).is_some();
        let blocks: Vec<u64> = oldest.iter().filter(|b| dirty(b)).take(BATCH).copied().collect();
        match (blocks.is_empty(), journal.committing.as_ref()) {
            (false, _) => Room::Write(blocks),
            (true, Some(t)) if oldest.iter().any(|b| t.metadata.contains(b)) => Room::Commit(t.tid),
            (true, _) => Room::Wait,
        }
    }

    async fn write_home(&self, blocks: &[u64]) {
        let Some(bdev) = self.bdev() else { return };
        let flags = self.machine.borrow().kernel.rules.journal.checkpoint;
        for block in blocks {
            self.write_pages(bdev, *block..*block + 1, 1, flags, Which::All).await;
        }
        self.unplug();
        self.wait_for_writes(bdev).await;
    }
}
