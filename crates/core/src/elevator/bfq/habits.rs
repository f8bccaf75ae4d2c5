//! What a queue is like: does it jump about, how long does it think, is it limited by the device?

use crate::elevator::think::ThinkTime;
use crate::request::Request;
use crate::{MS, SECOND};

/// A jump, sectors.
const JUMP: u64 = 800;
/// On a device without seeks only requests smaller than this count, sectors.
pub(super) const LARGE: u32 = 64;
/// Jumps among the last 32 requests that make a queue seeky.
const JUMPS_SEEKY: u32 = 19;

/// Is `request` far from `position`, and does that matter?
pub(super) fn is_jump(position: u64, request: &Request, rotational: bool) -> bool {
    position.abs_diff(request.sector) > JUMP && (rotational || request.sectors < LARGE)
}

/// What was observed of a queue's requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habits {
    /// One bit a request, the newest lowest: was it a jump?
    jumps: u32,
    /// Where its last request ended, sector.
    pub(super) position: u64,
    think: ThinkTime,
    pub(super) has_short_think: bool,
    pub(super) is_io_bound: bool,
    /// Since when idle time is counted, and how much there was.
    window_ns: u64,
    idle_ns: u64,
    /// When its last request was done; before any, when it was created.
    pub(super) last_done_ns: u64,
    /// When it was split off, if it was.
    pub(super) split_ns: Option<u64>,
}

impl Habits {
    /// Of a queue that sent nothing yet.
    pub(super) fn new(now: u64) -> Habits {
        Habits {
            jumps: 1,
            position: 0,
            think: ThinkTime::NONE,
            has_short_think: true,
            is_io_bound: true,
            window_ns: now,
            idle_ns: 0,
            last_done_ns: now,
            split_ns: None,
        }
    }

    pub(super) fn is_seeky(&self) -> bool {
        self.jumps.count_ones() > JUMPS_SEEKY
    }

    /// Were all of the last 32 requests jumps?
    pub(super) fn is_totally_seeky(&self) -> bool {
        self.jumps == u32::MAX
    }

    /// A request came.
    pub(super) fn saw(&mut self, request: &Request, rotational: bool) {
        self.jumps = self.jumps << 1 | u32::from(is_jump(self.position, request, rotational));
    }

    /// A request came to the queue, which had nothing to do before.
    pub(super) fn thought(&mut self, now: u64, slice_idle_ns: u64) {
        self.think.add(now.saturating_sub(self.last_done_ns).min(2 * slice_idle_ns));
    }

    /// Decide anew whether its think time is short; did that change? `alive`: is there a task behind it?
    pub(super) fn judge_think_time(&mut self, now: u64, slice_idle_ns: u64, alive: bool) -> bool {
        // Just split: what was learnt together with others says nothing.
        if self.split_ns.is_some_and(|split| now < split + 2 * SECOND) {
            return false;
        }
        let long = !alive || self.think.mean().is_some_and(|mean| mean > slice_idle_ns / 2);
        core::mem::replace(&mut self.has_short_think, !long) == long
    }

    /// A request came; `was_away`: with nothing queued or in the device. More than a fifth of the time away: not bound by I/O.
    pub(super) fn judge_io_bound(&mut self, now: u64, was_away: bool) {
        if was_away {
            self.idle_ns += now.saturating_sub(self.last_done_ns);
        }
        let window_ns = now.saturating_sub(self.window_ns);
        self.is_io_bound = 5 * self.idle_ns <= window_ns;
        if window_ns > 200 * MS {
            self.window_ns = now - window_ns / 2;
            self.idle_ns /= 2;
        }
    }
}
