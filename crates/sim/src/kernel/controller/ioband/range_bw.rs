//! dm-ioband's policy `range-bw`: every group at least its minimum and at most its maximum of KB/s, counted in periods of a
//! second. (Dong-Jae Kang and others, ETRI, 2009.)
//!
//! Tokens are as in the source, which takes the unit from a setting that this policy's own initialisation was not seen to
//! set; here one token is a sector (two a KB), as `weight-iosize` has it.

use super::super::{Ask, Entitled};
use super::Turn;

/// A period. All times here are milliseconds.
const PERIOD_MS: u64 = 1000;
/// A group's slice before its share of the minima is added.
const SLICE_MS: u64 = 100;
/// A slice once the minimum is reached.
const RANGE_SLICE_MS: u64 = 20;
/// Priority per missing token, and of a group without a minimum (`MINBW_PRIO_BASE`).
const PRIORITY_BASE: i64 = 10;
/// Part of twice `io_limit` that may be held (`OVER_IO_RATE`).
const OVER_IO_RATE: u64 = 4;
/// A wake-up at the end of a period comes so many jiffies late (`TIME_COMPENSATOR`; here of a millisecond).
const COMPENSATOR: u64 = 10;
/// Tokens of a KB.
const TOKENS_PER_KB: i64 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// Below its minimum: first.
    MinBw,
    /// Has no minimum.
    Default,
    /// Between minimum and maximum.
    Range,
    /// Has had its maximum.
    NoIo,
}

#[derive(Clone, Copy, Debug)]
struct Account {
    min_kb: u64,
    mode: Mode,
    min_tokens: i64,
    max_tokens: i64,
    consumed: i64,
    slice_ms: u64,
    /// End of its slice; 0: none runs.
    slice_end: u64,
    slice_over: bool,
}

/// The accounts of a device.
#[derive(Debug)]
pub struct RangeBw {
    accounts: Vec<Account>,
    min_total: i64,
    consumed: i64,
    min_kb_total: u64,
    /// All minima are met: the next of the waiting groups is chosen at random.
    leftover: bool,
    /// End of the period; 0: none runs.
    period_end: u64,
    running: Option<usize>,
    /// When those who had their maximum are woken, by group.
    timers: Vec<Option<u64>>,
    random: u32,
}

impl RangeBw {
    /// With the groups' [`Entitled::range_kb`].
    pub fn new(groups: &[Entitled]) -> RangeBw {
        let ranges: Vec<(u64, u64)> = groups.iter().map(|group| group.range_kb).collect();
        let min_kb_total: u64 = ranges.iter().map(|range| range.0).sum();
        let account = |(min_kb, max_kb): (u64, u64)| Account {
            min_kb,
            mode: if min_kb > 0 { Mode::MinBw } else { Mode::Default },
            min_tokens: min_kb as i64 * TOKENS_PER_KB,
            max_tokens: max_kb as i64 * TOKENS_PER_KB,
            consumed: 0,
            slice_ms: SLICE_MS + (SLICE_MS * ((min_kb + max_kb) / 2)).checked_div(min_kb_total).unwrap_or(0),
            slice_end: 0,
            slice_over: false,
        };
        RangeBw {
            timers: vec![None; ranges.len()],
            accounts: ranges.into_iter().map(account).collect(),
            min_total: min_kb_total as i64 * TOKENS_PER_KB,
            min_kb_total,
            consumed: 0,
            leftover: false,
            period_end: 0,
            running: None,
            random: 0x2545_f491,
        }
    }

    /// Held bios of a kind at which the group's tasks block.
    pub fn limit(&self, group: usize, io_limit: u32) -> u32 {
        let share = u64::from(io_limit) * 2 * self.accounts[group].min_kb;
        share.checked_div(self.min_kb_total).map_or(1, |share| share / OVER_IO_RATE + 1) as u32
    }

    /// Has the group had its most? Then its tasks sleep to the end of the period, and a little more.
    pub fn has_to_wait(&mut self, group: usize, now: u64) -> bool {
        let waits = self.accounts[group].mode == Mode::NoIo && self.period_end > now;
        if waits && self.timers[group].is_none() {
            self.timers[group] = Some(self.period_end + COMPENSATOR);
        }
        waits
    }

    /// When to wake the next waiting group, milliseconds.
    pub fn timer(&self) -> Option<u64> {
        self.timers.iter().flatten().copied().min()
    }

    /// Those whose time has come may go on: is there one?
    pub fn period_over(&mut self, now: u64) -> bool {
        let mut any = false;
        for (timer, account) in self.timers.iter_mut().zip(&mut self.accounts) {
            if timer.is_some_and(|at| at <= now) {
                *timer = None;
                any = true;
                if account.mode == Mode::NoIo {
                    account.mode = Mode::MinBw;
                }
            }
        }
        any
    }

    fn rank(&mut self, group: usize) -> i64 {
        let account = &self.accounts[group];
        if self.leftover {
            // xorshift: any numbers will do, as long as they are the same ones in every run.
            self.random ^= self.random << 13;
            self.random ^= self.random >> 17;
            self.random ^= self.random << 5;
            return (i64::from(self.random) % PRIORITY_BASE).max(1);
        }
        match account.mode {
            Mode::MinBw => (account.min_tokens - account.consumed) * PRIORITY_BASE,
            Mode::Default => PRIORITY_BASE,
            Mode::Range => PRIORITY_BASE / 2,
            Mode::NoIo => 0,
        }
    }

    /// 0: it may not issue. What is held already always may: only new bios are kept out.
    pub fn priority(&mut self, group: usize, has_held: bool, now: u64) -> i64 {
        if has_held {
            return self.rank(group).max(1);
        }
        if self.running == Some(group) {
            let account = &mut self.accounts[group];
            if account.slice_over {
                (account.slice_over, account.slice_end) = (false, 0);
                return 0;
            }
            if account.slice_end == 0 {
                self.start_slice(group, now);
            }
            return self.rank(group);
        }
        self.running = Some(group);
        self.start_slice(group, now);
        self.rank(group)
    }

    fn start_slice(&mut self, group: usize, now: u64) {
        let account = &mut self.accounts[group];
        if self.leftover {
            account.slice_end = now + account.slice_ms;
            return;
        }
        (account.slice_end, account.slice_over) = match account.mode {
            Mode::MinBw => (now + account.slice_ms, false),
            Mode::Range => (now + RANGE_SLICE_MS, false),
            Mode::Default => (now + SLICE_MS, false),
            Mode::NoIo => (0, true),
        };
    }

    /// A bio goes.
    pub(super) fn consume(&mut self, ask: &Ask, now: u64) -> Turn {
        if self.period_end == 0 {
            self.period_end = now + PERIOD_MS;
        }
        if now > self.period_end {
            // The bio that finds the period over is not counted.
            self.new_period(now);
        } else if self.count(ask) == Turn::Yield {
            return Turn::Yield;
        }
        let account = &mut self.accounts[ask.group];
        if account.slice_end != 0 && now > account.slice_end {
            account.slice_over = true;
            return Turn::Yield;
        }
        Turn::On
    }

    fn count(&mut self, ask: &Ask) -> Turn {
        let tokens = i64::from(ask.sectors);
        let account = &mut self.accounts[ask.group];
        account.consumed += tokens;
        self.consumed += tokens;
        if account.max_tokens > 0 && account.consumed >= account.max_tokens {
            account.mode = Mode::NoIo;
            return Turn::Yield;
        }
        if account.mode != Mode::Range && account.min_tokens <= account.consumed {
            account.mode = Mode::Range;
            let all_met = self.accounts.iter().all(|a| matches!(a.mode, Mode::Range | Mode::Default));
            self.leftover |= self.min_total <= self.consumed && all_met;
        }
        Turn::On
    }

    fn new_period(&mut self, now: u64) {
        for account in &mut self.accounts {
            account.consumed = 0;
            if account.mode != Mode::Default {
                account.mode = Mode::MinBw;
            }
        }
        (self.consumed, self.leftover, self.period_end) = (0, false, now + PERIOD_MS);
        // Whoever sleeps is woken with the conductor's next turn.
        self.timers.iter_mut().flatten().for_each(|at| *at = now);
    }
}
