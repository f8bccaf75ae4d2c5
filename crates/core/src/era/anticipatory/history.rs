//! What is known of a task: how long it thinks between two requests, how far apart they are, whether it still lives.
//!
//! All averages decay: a new sample counts one eighth. Chances and numbers of samples are fixed point, [`ONE`] = 1.0;
//! totals carry the same factor. Think times are counted in grains of the clock ([`Clock::grain_ns`]): whole jiffies in
//! kernels, and rounded as there, so that the same history gives the same decision.

use super::clock::Clock;
use crate::request::Request;

/// 1.0.
const ONE: u64 = 256;

/// How far a seek may exceed four times the mean, sectors; more is counted as that. A page-in elsewhere must not spoil
/// the picture, but the second and third seek of a task have to be able to form it.
const SEEK_EXCESS_EARLY: u64 = 2 * 1024 * 1024;
const SEEK_EXCESS: u64 = 2 * 1024 * 64;
/// Up to this many samples (fixed point) seeks are early: after one it is 32, after two 60, after three 84.
const EARLY_SAMPLES: u64 = 60;

/// Seven eighths of `old`, one of `sample`. Saturates: a distance of 2^56 sectors times 256 is more than 64 bits hold,
/// and no disk is that large.
const fn decayed(old: u64, sample: u64) -> u64 {
    old.saturating_mul(7).saturating_add(sample.saturating_mul(ONE)) / 8
}

/// How often something came true lately. From 0 it takes six times in a row to pass a half (32, 60, 84, 105, 123, 139).
#[derive(Clone, Copy, Default)]
pub(super) struct Chance(u64);

impl Chance {
    fn happened(&mut self) {
        self.0 = decayed(self.0, 1);
    }

    fn did_not_happen(&mut self) {
        self.0 = decayed(self.0, 0);
    }

    fn is_over_half(self) -> bool {
        self.0 > ONE / 2
    }
}

/// What tasks do on average at the start of their life, for a task of which nothing is known yet.
#[derive(Default)]
pub(super) struct Newcomers {
    think_total: u64,
    seek_total: u64,
    /// That a task we wait for has sent its only request already (the kernel's `exit_prob`).
    exits: Chance,
    /// That, after it, no other task goes on near its place (the kernel's `exit_no_coop`).
    leaves_no_successor: Chance,
}

impl Newcomers {
    /// Is waiting for a new task in vain as a rule? `patience` is in grains.
    fn are_not_worth_it(&self, patience: u64) -> bool {
        self.think_total / ONE > patience || self.exits.0 * self.leaves_no_successor.0 > ONE / 2 * ONE
    }
}

/// A task as far as its requests here tell.
#[derive(Clone, Copy)]
pub(super) struct Task {
    /// Which of the tasks that use this slot one after the other ([`crate::context::Context::epoch`]).
    pub(super) epoch: u32,
    /// Has it not exited?
    pub(super) is_alive: bool,
    /// Its requests with the elevator, and on the dispatch list.
    pub(super) queued: u32,
    pub(super) listed: u32,
    /// Has it sent a sync request? Its end.
    last_position: Option<u64>,
    /// When a sync request of its last completed.
    last_completion_ns: Option<u64>,
    /// Think times and seeks in the averages; both always come together.
    samples: u64,
    think_total: u64,
    seek_total: u64,
}

impl Task {
    pub(super) const fn new(epoch: u32, is_alive: bool) -> Task {
        Task {
            epoch,
            is_alive,
            queued: 0,
            listed: 0,
            last_position: None,
            last_completion_ns: None,
            samples: 0,
            think_total: 0,
            seek_total: 0,
        }
    }

    /// Nothing is known but, perhaps, one request.
    const fn is_new(&self) -> bool {
        self.samples == 0
    }

    /// Mean think time in grains; 0 for a new task.
    fn think(&self) -> u64 {
        self.think_total.saturating_add(ONE / 2).checked_div(self.samples).unwrap_or(0)
    }

    /// Mean seek in sectors; 0 for a new task.
    fn seek(&self) -> u64 {
        self.seek_total.saturating_add(self.samples / 2).checked_div(self.samples).unwrap_or(0)
    }

    /// The seek to expect of it.
    pub(super) fn expected_seek(&self, newcomers: &Newcomers) -> u64 {
        if self.is_new() { newcomers.seek_total / ONE } else { self.seek() }
    }

    /// A sync request arrived that carries its work on: its own, or a close one of another task while we wait for it.
    pub(super) fn learn(&mut self, request: &Request, now: u64, clock: Clock, newcomers: &mut Newcomers) {
        if let Some(last) = self.last_position {
            let think = self.think_time(now, clock);
            let seek = last.abs_diff(request.sector);
            if self.is_new() {
                newcomers.think_total = decayed(newcomers.think_total, think);
                newcomers.seek_total = decayed(newcomers.seek_total, seek);
                newcomers.exits.did_not_happen();
            }
            let excess = if self.samples <= EARLY_SAMPLES { SEEK_EXCESS_EARLY } else { SEEK_EXCESS };
            let seek = seek.min(self.seek().saturating_mul(4).saturating_add(excess));
            self.samples = decayed(self.samples, 1);
            self.think_total = decayed(self.think_total, think);
            self.seek_total = decayed(self.seek_total, seek);
        }
        self.last_position = Some(request.end());
    }

    /// Grains since it got its last answer; 0 when it did not wait for one. Less than 20 ms: longer pauses (a person at a
    /// keyboard) would take too long to forget.
    fn think_time(&self, now: u64, clock: Clock) -> u64 {
        let Some(answered_ns) = self.last_completion_ns.filter(|_| self.queued + self.listed == 0) else {
            return 0;
        };
        let most_ns = clock.hz_over(50).saturating_sub(1) * clock.jiffy_ns();
        now.saturating_sub(answered_ns).min(most_ns) / clock.grain_ns()
    }

    /// A sync request of its is done (or went up in another).
    pub(super) fn was_answered(&mut self, now: u64) {
        self.last_completion_ns = Some(now);
    }

    /// Waiting for it came to nothing.
    pub(super) fn did_not_come(&self, newcomers: &mut Newcomers) {
        if self.is_new() {
            newcomers.exits.happened();
        }
        if !self.is_alive {
            newcomers.leaves_no_successor.happened();
        }
    }

    /// While waiting for it, another task's request came that does as well.
    pub(super) fn was_succeeded(&self, newcomers: &mut Newcomers) {
        if !self.is_alive {
            if self.is_new() {
                newcomers.exits.happened();
            }
            newcomers.leaves_no_successor.did_not_happen();
        }
    }

    /// Do its past and its like say that its next request will not come within `patience` (grains)? That it is gone is
    /// noted at every call, as in the kernel.
    pub(super) fn is_not_worth_waiting_for(&self, patience: u64, newcomers: &mut Newcomers) -> bool {
        if !self.is_alive {
            if self.is_new() {
                newcomers.exits.happened();
            }
            if newcomers.leaves_no_successor.is_over_half() {
                return true;
            }
        }
        if self.is_new() { newcomers.are_not_worth_it(patience) } else { self.think() > patience }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::request;
    use crate::{ContextId, Flags, MS, Op};

    const EXACT: Clock = Clock::new(0);
    const HZ_1000: Clock = Clock::new(MS);

    fn read(sector: u64) -> Request {
        request(Op::Read, Flags::NONE, sector, 8, ContextId::OVERFLOW, 0)
    }

    /// A task that has read 0..8 and got its answer at 0 ms, then learns of reads at these sectors, each answered at once.
    fn after(clock: Clock, reads: &[(u64, u64)]) -> (Task, Newcomers) {
        let (mut task, mut newcomers) = (Task::new(1, true), Newcomers::default());
        task.learn(&read(0), 0, clock, &mut newcomers);
        task.was_answered(0);
        for (at_ns, sector) in reads {
            task.learn(&read(*sector), *at_ns, clock, &mut newcomers);
            task.was_answered(*at_ns);
        }
        (task, newcomers)
    }

    #[test]
    fn samples_and_chances_grow_by_eighths() {
        let steps = core::iter::successors(Some(0), |old| Some(decayed(*old, 1)));
        assert!(steps.take(8).eq([0, 32, 60, 84, 105, 123, 139, 153]));
        assert_eq!(decayed(249, 1), 249, "where it stays");
    }

    #[test]
    fn think_times_in_jiffies_are_rounded_as_the_kernel_does() {
        let (task, newcomers) = after(HZ_1000, &[(4 * MS, 8)]);
        // total 256*4/8 = 128, samples 32: (128+128)/32 = 8, twice what was measured: the rounding is meant for 256 samples.
        assert_eq!((task.samples, task.think_total, task.think()), (32, 128, 8));
        assert_eq!(newcomers.think_total, 128);
        let (task, newcomers) = after(HZ_1000, &[(4 * MS, 8), (8 * MS, 16)]);
        // 7*128/8 + 128 = 240; samples 60: 368/60 = 6. Newcomers learn of first thoughts only.
        assert_eq!((task.samples, task.think_total, task.think()), (60, 240, 6));
        assert_eq!(newcomers.think_total, 128);
    }

    #[test]
    fn think_times_on_an_exact_clock_are_not_rounded_up() {
        let (task, _) = after(EXACT, &[(4 * MS, 8)]);
        assert_eq!(task.think(), 4 * MS + 4);
    }

    #[test]
    fn a_long_pause_counts_19_jiffies_and_one_with_requests_queued_nothing() {
        let (task, _) = after(HZ_1000, &[(900 * MS, 8)]);
        assert_eq!(task.think_total, 256 * 19 / 8);
        let (mut task, mut newcomers) = after(HZ_1000, &[]);
        task.queued = 1;
        task.learn(&read(8), 5 * MS, HZ_1000, &mut newcomers);
        assert_eq!((task.samples, task.think_total), (32, 0));
    }

    #[test]
    fn seeks_are_absolute_and_clamped() {
        let (task, newcomers) = after(EXACT, &[(0, 1008), (0, 16)]);
        // 1000 up from 8, then 1000 down from 1016: totals 32000 and 7*32000/8 + 32000 = 60000, samples 60.
        assert_eq!((task.seek_total, task.seek()), (60_000, 1000));
        assert_eq!(newcomers.seek_total, 32_000);
        // From 24 to the end of the disk: early still, so it counts 4*1000 + 2 Mi sectors.
        let (task, _) = after(EXACT, &[(0, 1008), (0, 16), (0, 1 << 40)]);
        assert_eq!(task.seek_total, (60_000 * 7 + 256 * (4000 + SEEK_EXCESS_EARLY)) / 8);
        // A fourth one may not count as much: 84 samples are no longer early.
        let mean = task.seek();
        let (task, _) = after(EXACT, &[(0, 1008), (0, 16), (0, 1 << 40), (0, 0)]);
        let before = (60_000 * 7 + 256 * (4000 + SEEK_EXCESS_EARLY)) / 8;
        assert_eq!(task.seek_total, (before * 7 + 256 * (4 * mean + SEEK_EXCESS)) / 8);
    }

    #[test]
    fn the_first_request_teaches_nothing_but_a_place() {
        let (task, newcomers) = after(EXACT, &[]);
        assert!(task.is_new() && newcomers.seek_total == 0);
        assert_eq!(task.last_position, Some(8));
    }

    #[test]
    fn largest_numbers_saturate() {
        let (mut task, mut newcomers) = after(EXACT, &[]);
        for sector in [u64::MAX - 8, 0, u64::MAX - 8, 0, u64::MAX - 8] {
            task.learn(&read(sector), u64::MAX, EXACT, &mut newcomers);
        }
        assert!(task.expected_seek(&newcomers) > 0);
    }
}
