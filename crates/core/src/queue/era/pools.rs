//! Request pools of Linux 2.6.30 to 3.x: a limit, a congestion mark below it, and *batching*: a task that had to wait may take
//! a few requests beyond the limit, so that it gets a worthwhile run before others interfere.
//!
//! Source: Linux 2.6.33 `block/blk-core.c` (`get_request`, `freed_request`), `block/blk.h`.

use crate::MS;
use crate::context::Context;
use crate::elevator::MayQueue;

/// Allocations a batcher has before it queues up again.
const BATCH_REQUESTS: u32 = 32;
/// How long a task stays a batcher: HZ/50.
const BATCH_NS: u64 = 20 * MS;

/// One class's pool.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::queue) struct Pool {
    pub(in crate::queue) taken: u32,
    pub(in crate::queue) congested: bool,
    /// No more slots but for batchers.
    full: bool,
    /// The elevator refused a task while the pool was empty: the other pool's next free slot looks here too.
    pub(in crate::queue) starved: bool,
}

impl Pool {
    /// May `task` take a slot of `nr`? If so: is it one beyond them?
    #[inline]
    pub(in crate::queue) fn ask(
        &mut self,
        nr: u32,
        task: &mut Context,
        may: MayQueue,
        now: u64,
    ) -> Option<bool> {
        let mut beyond = false;
        if self.taken + 1 >= congestion_on(nr) {
            if self.taken + 1 >= nr {
                beyond = true;
                if !self.full {
                    start_batch(task, now);
                    self.full = true;
                } else if may != MayQueue::Must && !is_batching(task, now) {
                    return None;
                }
            }
            self.congested = true;
        }
        (self.taken < 3 * nr / 2).then_some(beyond)
    }
}

/// A slot of `nr` was given back: is there room for a new request?
#[inline]
pub(in crate::queue) fn relieved(pool: &mut Pool, nr: u32) -> bool {
    if pool.taken < congestion_off(nr) {
        pool.congested = false;
    }
    if pool.taken < nr {
        pool.full = false;
    }
    pool.taken < nr
}

pub(in crate::queue) const fn congestion_on(nr: u32) -> u32 {
    let on = nr - nr / 8 + 1;
    if on < nr { on } else { nr }
}

const fn congestion_off(nr: u32) -> u32 {
    let off = nr - nr / 8 - nr / 16 - 1;
    if off > 1 { off } else { 1 }
}

pub(in crate::queue) fn is_batching(task: &Context, now: u64) -> bool {
    task.batch_left == BATCH_REQUESTS || (task.batch_left > 0 && now < task.batch_since_ns + BATCH_NS)
}

/// A task that waited becomes a batcher.
pub(in crate::queue) fn start_batch(task: &mut Context, now: u64) {
    task.batch_left = BATCH_REQUESTS;
    task.batch_since_ns = now;
}

/// `task` took a slot beyond the limit.
pub(in crate::queue) fn use_batch(task: &mut Context, now: u64) {
    if is_batching(task, now) {
        task.batch_left -= 1;
    }
}
