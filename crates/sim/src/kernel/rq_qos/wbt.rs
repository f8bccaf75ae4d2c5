//! Writeback throttling (`wbt`): buffered writes wait for a request slot as long as too many of them are in flight, and fewer
//! may be the longer reads take.
//!
//! A depth is the most writes in flight; it shrinks a step when the fastest read of a window took longer than the target, and
//! grows a step when it did not, or when no task reads. Of the depth, writes that a task waits for get all (a sync write, a
//! dirtier that the kernel makes pause), half the others, and a quarter writeback in the background and any task that writes within
//! 100 ms of a read.
//!
//! Facts: Linux 6.12 `block/blk-wbt.c`, `block/blk-rq-qos.c` (`rq_depth_*`). Direct writes (SYNC and IDLE) pass; reads are watched
//! only. Not modelled: windows rounded to jiffies; swap, which has a line of its own; what `sync` writes before it waits
//! counts as background.

use std::collections::VecDeque;

use fairlift_core::{Flags, MS, Op, RequestId, SECOND};

use super::Slot;

/// Default of `wbt_lat_usec` without seeks, and with.
const TARGET_FLASH_NS: u64 = 2 * MS;
const TARGET_ROTATIONAL_NS: u64 = 75 * MS;
/// Length of a window while the depth is not cut.
const WINDOW_NS: u64 = 100 * MS;
/// Depth at step 0.
const DEPTH: u32 = 16;
/// Writes in a window that make its reads count.
const WRITES_MIN: u32 = 3;
/// Windows without enough of both after which the depth goes a step back towards the middle.
const UNKNOWN_MAX: u32 = 5;
/// A read this long ago still makes writes stand back.
const READ_RECENT_NS: u64 = 100 * MS;
/// A dirtier's pause this long ago still makes its pages urgent.
const PAUSE_RECENT_NS: u64 = SECOND;

/// Where a bio waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    Discard,
    Write,
}

/// How a bio's limit is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Want {
    Discard,
    /// A task waits for it.
    Urgent,
    /// From the flusher, to make room.
    Background,
    Other,
}

impl Want {
    /// Of a bio that is throttled.
    pub(crate) fn of(op: Op, flags: Flags, daemon: bool) -> Want {
        match op {
            Op::Discard => Want::Discard,
            // An empty flush is a write that nobody marked synchronous.
            Op::Flush => Want::Other,
            _ if flags.intersects(Flags::SYNC | Flags::META) => Want::Urgent,
            _ if daemon => Want::Background,
            _ => Want::Other,
        }
    }

    pub(crate) fn line(self) -> Line {
        if self == Want::Discard { Line::Discard } else { Line::Write }
    }
}

/// What a window saw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Window {
    ends_ns: u64,
    length_ns: u64,
    reads: u32,
    read_min_ns: u64,
    writes: u32,
}

/// What a window says about the depth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    TooSlow,
    Good,
    /// No task read.
    OnlyWrites,
    /// Too little happened.
    Unknown,
}

/// wbt on one queue.
#[derive(Debug)]
pub(crate) struct Wbt {
    target_ns: u64,
    queue_depth: u32,
    write_cache: bool,
    /// Steps the depth is cut; negative: it is raised.
    step: i32,
    /// It is raised as far as it goes.
    is_highest: bool,
    depth: u32,
    normal: u32,
    background: u32,
    under_way: [u32; 2],
    lines: [VecDeque<(Slot, Want)>; 2],
    /// When a read last came or was done.
    read_ns: Option<u64>,
    /// When a dirtier was last made to pause.
    paused_ns: Option<u64>,
    /// A read in the device, and since when.
    watched: Option<(RequestId, u64)>,
    window: Option<Window>,
    unknown: u32,
}

impl Wbt {
    /// `target_ns`: `wbt_lat_usec`; `None`: the default. 0 is off.
    pub(crate) fn new(
        target_ns: Option<u64>,
        rotational: bool,
        queue_depth: u32,
        write_cache: bool,
    ) -> Option<Wbt> {
        let default = if rotational { TARGET_ROTATIONAL_NS } else { TARGET_FLASH_NS };
        let target_ns = target_ns.unwrap_or(default);
        let mut wbt = Wbt {
            target_ns,
            queue_depth: queue_depth.max(1),
            write_cache,
            step: 0,
            is_highest: false,
            depth: 0,
            normal: 0,
            background: 0,
            under_way: [0; 2],
            lines: Default::default(),
            read_ns: None,
            paused_ns: None,
            watched: None,
            window: None,
            unknown: 0,
        };
        wbt.set_depth();
        (target_ns > 0).then_some(wbt)
    }

    /// Does such a bio have to ask?
    pub(crate) fn throttles(&self, op: Op, flags: Flags) -> bool {
        match op {
            Op::Read => false,
            // The kernel's SYNC and IDLE, as a direct write has them.
            Op::Write => !flags.contains(Flags::SYNC) || flags.contains(Flags::NOIDLE),
            Op::Discard => true,
            Op::Flush => self.write_cache,
        }
    }

    // ---- the decision -----------------------------------------------------------------------------------------------------

    /// May this bio go on? Otherwise it waits in its line.
    pub(crate) fn ask(&mut self, slot: Slot, want: Want, now: u64) -> bool {
        let line = want.line() as usize;
        if self.lines[line].is_empty() && self.under_way[line] < self.limit(want, now) {
            self.take(line, now);
            return true;
        }
        self.lines[line].push_back((slot, want));
        false
    }

    /// Writes in flight with which one like this has to wait.
    fn limit(&self, want: Want, now: u64) -> u32 {
        match want {
            Want::Discard => self.background,
            Want::Urgent => self.depth,
            _ if self.dirtier_paused(now) => self.depth,
            Want::Background => self.background,
            Want::Other if is_within(self.read_ns, READ_RECENT_NS, now) => self.background,
            Want::Other => self.normal,
        }
    }

    fn dirtier_paused(&self, now: u64) -> bool {
        is_within(self.paused_ns, PAUSE_RECENT_NS, now)
    }

    fn take(&mut self, line: usize, now: u64) {
        self.under_way[line] += 1;
        if self.window.is_none() {
            self.begin_window(now);
        }
    }

    /// A write is done; `granted` gets those that go on.
    pub(crate) fn done(&mut self, line: Line, now: u64, granted: &mut Vec<Slot>) {
        self.under_way[line as usize] -= 1;
        let under_way = self.under_way[line as usize];
        let limit = match line {
            Line::Discard => self.background,
            // What the drive's cache took at once it writes all the same: let it run dry.
            Line::Write if self.write_cache && !self.dirtier_paused(now) => 0,
            Line::Write => self.normal,
        };
        if under_way == 0 || limit.saturating_sub(under_way) >= (self.background / 2).max(1) {
            self.wake(line as usize, now, granted);
        }
    }

    /// Those that wait go on, in their order, as far as the limits allow.
    fn wake(&mut self, line: usize, now: u64, granted: &mut Vec<Slot>) {
        while let Some((slot, want)) = self.lines[line].front().copied() {
            if self.under_way[line] >= self.limit(want, now) {
                return;
            }
            self.lines[line].pop_front();
            self.take(line, now);
            granted.push(slot);
        }
    }

    // ---- what is watched --------------------------------------------------------------------------------------------------

    pub(crate) fn read_came(&mut self, now: u64) {
        self.read_ns = Some(now);
    }

    pub(crate) fn read_issued(&mut self, rq: RequestId, now: u64) {
        self.watched.get_or_insert((rq, now));
    }

    pub(crate) fn read_done(&mut self, rq: RequestId, issued_ns: u64, now: u64) {
        if self.watched.is_some_and(|(watched, _)| watched == rq) {
            self.watched = None;
        }
        self.read_ns = Some(now);
        if let Some(window) = &mut self.window {
            window.reads += 1;
            window.read_min_ns = window.read_min_ns.min(now - issued_ns.min(now));
        }
    }

    pub(crate) fn write_done(&mut self) {
        if let Some(window) = &mut self.window {
            window.writes += 1;
        }
    }

    pub(crate) fn dirtier_pauses(&mut self, now: u64) {
        self.paused_ns = Some(now);
    }

    // ---- windows ------------------------------------------------------------------------------------------------------------

    pub(crate) fn next_event(&self) -> Option<u64> {
        self.window.map(|window| window.ends_ns)
    }

    /// The cut depth is looked at more often, by the square root of the steps.
    fn begin_window(&mut self, now: u64) {
        let length_ns = match self.step {
            1.. => (WINDOW_NS << 4) / u64::from((self.step as u32 + 1) << 8).isqrt(),
            _ => WINDOW_NS,
        };
        let ends_ns = now + length_ns;
        self.window = Some(Window { ends_ns, length_ns, reads: 0, read_min_ns: u64::MAX, writes: 0 });
    }

    /// A window that is over says by how much the depth changes.
    pub(crate) fn advance(&mut self, now: u64, granted: &mut Vec<Slot>) {
        let Some(window) = self.window.filter(|window| window.ends_ns <= now) else { return };
        let changed = match self.verdict(&window, now) {
            Verdict::TooSlow => self.cut(true),
            Verdict::Good | Verdict::OnlyWrites => self.raise(),
            Verdict::Unknown => {
                self.unknown += 1;
                self.unknown >= UNKNOWN_MAX && self.towards_middle()
            }
        };
        if changed {
            self.unknown = 0;
            self.set_depth();
            [0, 1].into_iter().for_each(|line| self.wake(line, now, granted));
        }
        self.window = None;
        if self.step != 0 || self.under_way != [0; 2] {
            self.begin_window(now);
        }
    }

    fn verdict(&self, window: &Window, now: u64) -> Verdict {
        // A read that is not back yet says more than those that are.
        let watched_ns = self.watched.map_or(0, |(_, since)| now - since.min(now));
        if watched_ns > window.length_ns || (watched_ns > self.target_ns && window.reads == 0) {
            return Verdict::TooSlow;
        }
        if window.reads == 0 || window.writes < WRITES_MIN {
            let writes = window.writes > 0 || self.dirtier_paused(now) || self.under_way != [0; 2];
            return if writes { Verdict::OnlyWrites } else { Verdict::Unknown };
        }
        if window.read_min_ns > self.target_ns { Verdict::TooSlow } else { Verdict::Good }
    }

    /// `hard`: what was raised is taken back at once.
    fn cut(&mut self, hard: bool) -> bool {
        if self.depth == 1 {
            return false;
        }
        self.step = if self.step < 0 && hard { 0 } else { self.step + 1 };
        true
    }

    fn raise(&mut self) -> bool {
        if self.is_highest {
            return false;
        }
        self.step -= 1;
        true
    }

    fn towards_middle(&mut self) -> bool {
        match self.step {
            0 => false,
            1.. => self.raise(),
            _ => self.cut(false),
        }
    }

    /// Depth and limits at this step.
    fn set_depth(&mut self) {
        let least = DEPTH.min(self.queue_depth);
        let most = 3 * self.queue_depth / 4;
        let raised = || 1u64 + (u64::from(least - 1) << self.step.unsigned_abs().min(31));
        (self.depth, self.is_highest) = match self.step {
            // One has to be ready when the one before it is done.
            ..=0 if self.queue_depth == 1 => (2, true),
            1.. => (1 + ((least - 1) >> self.step.min(31)), false),
            ..=-1 if raised() > u64::from(most) => (most, true),
            ..=-1 => (raised() as u32, false),
            0 => (least, false),
        };
        (self.normal, self.background) = match self.depth {
            ..=2 => (self.depth, 1),
            depth => (depth.div_ceil(2), depth.div_ceil(4)),
        };
    }
}

fn is_within(then: Option<u64>, ns: u64, now: u64) -> bool {
    then.is_some_and(|then| now < then + ns)
}

#[cfg(test)]
#[path = "wbt_tests.rs"]
mod tests;
