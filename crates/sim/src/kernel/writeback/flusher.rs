//! The kernel's writeback threads: rounds over the dirty files, some pages of each at a time.

use fairlift_core::{Flags, SECOND};

use crate::anatomy::{Cause, Why};
use crate::engine::{Machine, Sys, TaskId};
use crate::group::Cgroup;
use crate::kernel::Kernel;
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

/// Whose files a thread writes: those of a group, or all.
type Of = Option<Cgroup>;

/// A writeback thread of the kernel's.
pub(super) async fn run(sys: Sys, duty: Duty) {
    let by_cgroup = sys.machine.borrow().kernel.writeback.cgroups.is_some();
    run_as(sys, duty, by_cgroup.then_some(Cgroup::ROOT)).await;
}

/// The flusher of a group.
pub(super) async fn run_for(sys: Sys, group: Cgroup) {
    run_as(sys, Duty::Both, Some(group)).await;
}

async fn run_as(sys: Sys, duty: Duty, of: Of) {
    let mut next_look = sys.now() + INTERVAL_NS;
    loop {
        let due = next_look;
        let mut armed = false;
        sys.wait(Why::Because(Cause::Unasked), |machine, task| {
            let looks_at_clock = looks_at_clock(machine, duty, of);
            if has_work(machine, duty, of) || (looks_at_clock && machine.now() >= due) {
                return Some(());
            }
            if !armed && looks_at_clock {
                armed = true;
                machine.wake_at(due.max(machine.now()), task);
            }
            None
        })
        .await;
        if does_work(of) {
            sys.do_work().await;
        }
        let now = sys.now();
        if duty != Duty::Background && now >= next_look {
            next_look = now + INTERVAL_NS;
            // By shares, what is old has its turn with the rest of its group's as long as there is too much.
            if !(sys.writes_by_share() && sys.machine.borrow().kernel.has_too_much_dirty()) {
                sys.write_expired(of, now).await;
            }
        }
        if duty != Duty::Periodic && sys.writes_by_share() {
            sys.write_background_by_share().await;
        } else if duty != Duty::Periodic {
            sys.write_background(of).await;
        }
    }
}

/// What `sync` asks for is done by one of them.
fn does_work(of: Of) -> bool {
    of.is_none_or(|group| group == Cgroup::ROOT)
}

fn has_work(machine: &Machine, duty: Duty, of: Of) -> bool {
    let kernel = &machine.kernel;
    let asked = does_work(of) && !kernel.writeback.work.is_empty();
    duty != Duty::Periodic && (is_too_much_dirty(kernel, of) || asked)
}

fn is_too_much_dirty(kernel: &Kernel, of: Of) -> bool {
    match (of, &kernel.writeback.cgroups) {
        (Some(group), Some(cgroups)) => cgroups.is_over_background(&kernel.cache, group),
        _ => kernel.has_too_much_dirty(),
    }
}

fn looks_at_clock(machine: &Machine, duty: Duty, of: Of) -> bool {
    let cache = &machine.kernel.cache;
    let dirty = of.map_or_else(|| cache.dirty_pages(), |group| cache.owned_by(group).dirty);
    duty != Duty::Background && dirty > 0
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
    async fn write_background(&self, of: Of) {
        while self.is_over_background(of) {
            if !does_work(of) || self.machine.borrow().kernel.writeback.work.is_empty() {
                if !self.write_round(of).await {
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

    fn is_over_background(&self, of: Of) -> bool {
        let kernel = &self.machine.borrow().kernel;
        match of {
            Some(_) => is_too_much_dirty(kernel, of),
            None => kernel.cache.over_background(),
        }
    }

    /// The file that is due, among those dirty since before `before_ns` and in line before `end`.
    fn next_file(&self, of: Of, before_ns: u64, end: u64) -> Option<FileId> {
        let cache = &self.machine.borrow().kernel.cache;
        match of {
            Some(group) => cache.next_dirty_file_of(group, before_ns, end),
            None => cache.next_dirty_file(before_ns, end),
        }
    }

    /// Write what has been dirty since before `now` minus 30 s.
    async fn write_expired(&self, of: Of, now: u64) {
        let Some(before) = now.checked_sub(EXPIRE_NS) else { return };
        // Rounds over all old files, until a round finds nothing it can start.
        let mut written = 1;
        while written > 0 {
            written = 0;
            let end = self.machine.borrow().kernel.cache.end_of_line();
            while let Some(file) = self.next_file(of, before, end) {
                if self.held_back() {
                    self.unplug();
                    self.pause(CONGESTION_NS, CONGESTED).await;
                    continue;
                }
                written += self.write_some(file, self.round_pages(of), Flags::NONE).await;
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
    fn round_pages(&self, of: Of) -> u64 {
        let kernel = &mut self.machine.borrow_mut().kernel;
        if kernel.rules.writeback.foreground {
            return ROUND_PAGES;
        }
        let limit = kernel.cache.limits().1;
        let bandwidth = match (&mut kernel.writeback.cgroups, of) {
            (Some(cgroups), Some(group)) => cgroups.flusher(group).rate.write_bandwidth(),
            _ => kernel.writeback.rate.write_bandwidth(),
        };
        let pages = (bandwidth / 2).min(limit / 8);
        (pages / ROUND_PAGES * ROUND_PAGES).max(ROUND_PAGES)
    }

    /// One round over the dirty files; was anything written?
    async fn write_round(&self, of: Of) -> bool {
        let end = self.machine.borrow().kernel.cache.end_of_line();
        let mut written = 0;
        while !self.held_back() && self.is_over_background(of) {
            let Some(file) = self.next_file(of, u64::MAX, end) else { break };
            written += self.write_some(file, self.round_pages(of), Flags::NONE).await;
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
