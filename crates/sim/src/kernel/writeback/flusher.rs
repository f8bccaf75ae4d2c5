//! The kernel's writeback threads: rounds over the dirty files, some pages of each at a time.

use fairlift_core::{Flags, SECOND};

use crate::anatomy::{Cause, Why};
use crate::engine::{Machine, Sys, TaskId};
use crate::kernel::buffered::Which;
use crate::kernel::files::FileId;

/// `vm.dirty_writeback_centisecs`.
const INTERVAL_NS: u64 = 5 * SECOND;
/// `vm.dirty_expire_centisecs`.
const EXPIRE_NS: u64 = 30 * SECOND;
/// Pages of one file written before the next has its turn (`MAX_WRITEBACK_PAGES`).
const ROUND_PAGES: u64 = 1024;
/// How long who finds the queue congested, or nothing left to start, waits at most: HZ/10.
const CONGESTION_NS: u64 = SECOND / 10;

/// What a thread is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Duty {
    /// Keep dirty pages below the background limit.
    Background,
    /// Write what has been dirty for long.
    Periodic,
    /// All of it.
    Both,
}

/// Why a writeback thread pauses.
const CONGESTED: Why = Why::Because(Cause::Congestion);

/// Something `sync` wants written.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) file: FileId,
    /// For a task that waits.
    pub(super) sync: bool,
    pub(super) asked_by: TaskId,
}

/// A writeback thread.
pub(super) async fn run(sys: Sys, duty: Duty) {
    let mut next_look = INTERVAL_NS;
    loop {
        let due = next_look;
        let mut armed = false;
        sys.wait(Why::Because(Cause::Unasked), |machine, task| {
            if has_work(machine, duty) || (looks_at_clock(machine, duty) && machine.now() >= due) {
                return Some(());
            }
            if !armed && looks_at_clock(machine, duty) {
                armed = true;
                machine.wake_at(due.max(machine.now()), task);
            }
            None
        })
        .await;
        sys.do_work().await;
        let now = sys.now();
        if duty != Duty::Background && now >= next_look {
            next_look = now + INTERVAL_NS;
            // By shares, what is old has its turn with the rest of its group's as long as there is too much.
            if !(sys.writes_by_share() && sys.machine.borrow().kernel.has_too_much_dirty()) {
                sys.write_expired(now).await;
            }
        }
        if duty != Duty::Periodic && sys.writes_by_share() {
            sys.write_background_by_share().await;
        } else if duty != Duty::Periodic {
            sys.write_background().await;
        }
    }
}

fn has_work(machine: &Machine, duty: Duty) -> bool {
    let kernel = &machine.kernel;
    duty != Duty::Periodic && (kernel.has_too_much_dirty() || !kernel.writeback.work.is_empty())
}

fn looks_at_clock(machine: &Machine, duty: Duty) -> bool {
    duty != Duty::Background && machine.kernel.cache.dirty_pages() > 0
}

impl Sys {
    /// What `sync` asked for.
    pub(super) async fn do_work(&self) {
        loop {
            let work = {
                let work = &mut self.machine.borrow_mut().kernel.writeback.work;
                if work.is_empty() { None } else { Some(work.remove(0)) }
            };
            let Some(work) = work else { return };
            if work.sync {
                self.write_and_wait(work.file).await;
            } else {
                self.write_pages(work.file, 0..u64::MAX, u64::MAX, Flags::NONE, Which::All).await;
            }
            self.machine.borrow_mut().wake(work.asked_by);
        }
    }

    /// Write until no more is dirty than the background limit.
    async fn write_background(&self) {
        while self.machine.borrow().kernel.cache.over_background() {
            if self.machine.borrow().kernel.writeback.work.is_empty() {
                if !self.write_round(u64::MAX).await {
                    // All that is dirty is on its way already, or the queue is congested.
                    self.unplug();
                    self.pause(CONGESTION_NS, CONGESTED).await;
                }
            } else {
                self.do_work().await;
            }
        }
        self.unplug();
    }

    /// Write what has been dirty since before `now` minus 30 s.
    async fn write_expired(&self, now: u64) {
        let Some(before) = now.checked_sub(EXPIRE_NS) else { return };
        // Rounds over all old files, until a round finds nothing it can start.
        let mut written = 1;
        while written > 0 {
            written = 0;
            let end = self.machine.borrow().kernel.cache.end_of_line();
            loop {
                let file = self.machine.borrow().kernel.cache.next_dirty_file(before, end);
                let Some(file) = file else { break };
                if self.held_back() {
                    self.unplug();
                    self.pause(CONGESTION_NS, CONGESTED).await;
                    continue;
                }
                written += self.write_some(file, self.round_pages(), Flags::NONE).await;
            }
        }
        self.unplug();
    }

    /// Does pdflush leave the device alone because its queue is congested?
    fn held_back(&self) -> bool {
        let mut machine = self.machine.borrow_mut();
        machine.kernel.rules.writeback.pdflush && machine.block.is_congested(false)
    }

    /// Pages of one file in a round: 1024, or - today - half a second of the device's time.
    fn round_pages(&self) -> u64 {
        let kernel = &self.machine.borrow().kernel;
        if kernel.rules.writeback.foreground {
            return ROUND_PAGES;
        }
        let limit = kernel.cache.limits().1;
        let pages = (kernel.writeback.rate.write_bandwidth() / 2).min(limit / 8);
        (pages / ROUND_PAGES * ROUND_PAGES).max(ROUND_PAGES)
    }

    /// One round over the dirty files, at most `max` pages; was anything written?
    pub(super) async fn write_round(&self, max: u64) -> bool {
        let end = self.machine.borrow().kernel.cache.end_of_line();
        let mut written = 0;
        while written < max && !(max == u64::MAX && self.held_back()) {
            let file = {
                let cache = &self.machine.borrow().kernel.cache;
                if max == u64::MAX && !cache.over_background() {
                    None
                } else {
                    cache.next_dirty_file(u64::MAX, end)
                }
            };
            let Some(file) = file else { break };
            written += self.write_some(file, self.round_pages().min(max - written), Flags::NONE).await;
        }
        written > 0
    }

    /// Write up to `max` pages of `file`, from where the last round ended; then others have their turn.
    pub(super) async fn write_some(&self, file: FileId, max: u64, flags: Flags) -> u64 {
        let began = self.now();
        let from = self.machine.borrow().kernel.cache.write_from(file);
        let (mut written, mut at) = self.write_pages(file, from..u64::MAX, max, flags, Which::All).await;
        if written < max && from > 0 {
            let (more, end) = self.write_pages(file, 0..from, max - written, flags, Which::All).await;
            written += more;
            at = end;
        }
        let took_ns = self.now() - began;
        let cache = &mut self.machine.borrow_mut().kernel.cache;
        cache.round_over(file, took_ns);
        cache.set_write_from(file, at);
        cache.had_its_turn(file);
        written
    }
}
