//! What happens to a task that dirties pages: looks at the limits now and then, and writing or waiting when they are exceeded.
//!
//! Source: Linux 2.6.30 to 2.6.34 `mm/page-writeback.c`; a task's own limit is [`super::share`]'s, today's rules are in
//! [`super::rate`].

use fairlift_core::SECOND;

use crate::anatomy::{Cause, Why};
use crate::engine::Sys;
use crate::group::Cgroup;
use crate::kernel::files::FileId;

/// Processors of the simulated computer, for the number of pages between two looks.
const PROCESSORS: u64 = 2;
/// Pages between two looks while the limit is exceeded.
const EXCEEDED_PAGES: u64 = 8;
/// Longest pause: HZ/10.
const PAUSE_MAX_NS: u64 = SECOND / 10;

impl Sys {
    /// The caller has dirtied `pages` of `file`.
    pub(crate) async fn balance_dirty(&self, file: FileId, pages: u64) {
        if self.writes_by_share() || !self.machine.borrow().kernel.rules.writeback.foreground {
            return self.balance_by_rate(file, pages).await;
        }
        let due = {
            let kernel = &mut self.machine.borrow_mut().kernel;
            kernel.writeback.unchecked += pages;
            let ratelimit = ratelimit_pages(kernel.cache.max_pages());
            let often = if kernel.writeback.exceeded { EXCEEDED_PAGES } else { ratelimit };
            let due = kernel.writeback.unchecked >= often;
            if due {
                kernel.writeback.unchecked = 0;
            }
            due.then_some((often, ratelimit))
        };
        if let Some((dirtied, ratelimit)) = due {
            let dirtied = dirtied.max(if self.uses_bursts() { ratelimit } else { 0 });
            self.write_own_share(dirtied.max(ratelimit) * 3 / 2).await;
        }
    }

    fn uses_bursts(&self) -> bool {
        self.machine.borrow().kernel.rules.writeback.growing_pauses
    }

    fn only_above_limit(&self) -> bool {
        self.machine.borrow().kernel.rules.writeback.foreground_above_limit
    }

    /// Write `chunk` pages, of whatever file, and pause, until the limits are kept or the chunk is written.
    async fn write_own_share(&self, chunk: u64) {
        let mut written = 0;
        let mut pause_jiffies = 1;
        loop {
            let (unwritten, dirty, free, limit) = {
                let kernel = &self.machine.borrow().kernel;
                let (cache, limits) = (&kernel.cache, kernel.cache.limits());
                let own_limit = kernel.writeback.shares.limit_of(self.task.0, limits.1);
                (cache.unwritten_pages(), cache.dirty_pages(), u64::midpoint(limits.0, limits.1), own_limit)
            };
            let kept = unwritten <= limit || unwritten < free;
            self.machine.borrow_mut().kernel.writeback.exceeded = !kept;
            if kept {
                break;
            }
            if dirty > limit || (dirty > 0 && !self.only_above_limit()) {
                written += self.write_for_others(chunk - written).await;
            }
            if written >= chunk || self.machine.borrow().kernel.cache.unwritten_pages() <= limit {
                break;
            }
            self.unplug();
            let pause = self.pause_ns(pause_jiffies);
            self.pause(pause, Why::Because(Cause::Throttle)).await;
            pause_jiffies *= 2;
        }
        let mut machine = self.machine.borrow_mut();
        if machine.kernel.cache.over_background() {
            super::wake_flushers(&mut machine, Cgroup::ROOT);
        }
    }

    fn pause_ns(&self, jiffies: u64) -> u64 {
        let rules = &self.machine.borrow().kernel.rules;
        if rules.writeback.growing_pauses { rules.jiffies(jiffies).min(PAUSE_MAX_NS) } else { PAUSE_MAX_NS }
    }

    /// Up to `max` pages of the files that are due: not necessarily the caller's own.
    async fn write_for_others(&self, max: u64) -> u64 {
        let end = self.machine.borrow().kernel.cache.end_of_line();
        let mut written = 0;
        while written < max {
            let file = self.machine.borrow().kernel.cache.next_dirty_file(u64::MAX, end);
            let Some(file) = file else { break };
            written += self.write_some(file, max - written, fairlift_core::Flags::NONE).await;
        }
        written
    }
}

/// Pages a task dirties between two looks at the limits: 1/32 of memory per processor, 16 pages to 4 MiB.
fn ratelimit_pages(memory_pages: u64) -> u64 {
    (memory_pages / (32 * PROCESSORS)).clamp(16, 1024)
}
