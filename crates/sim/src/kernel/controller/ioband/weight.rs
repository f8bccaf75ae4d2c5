//! dm-ioband's policies `weight` and `weight-iosize`: tokens by weight, dealt out again when no waiting group has any.
//!
//! Groups of the tree are groups of the device side by side; the root is its default group. Weights are those of the groups
//! (dm-ioband's own go from 1 to 100; only their ratios matter).

use super::super::{Ask, Entitled};
use super::{PolicyKind, Turn};

/// Tokens that may be saved up, all groups together (`DEFAULT_TOKENPOOL`).
const TOKEN_POOL: i64 = 2048;
/// Tokens of an epoch, as a multiple of twice `io_limit` (`DEFAULT_BUCKET`).
const BUCKET: i64 = 2;
/// Tokens a group uses before another is chosen (`TOKEN_BATCH_UNIT`).
const BATCH: i64 = 20;
/// The priority of a group that has just what an epoch gives it (`IOBAND_IOPRIO_BASE`).
const PRIORITY_BASE: i64 = 100;
/// A new epoch waits for the dominant group while it has more than 1/8 of its tokens (`PROCEED_THRESHOLD`).
const PROCEED_THRESHOLD: i64 = 8;
/// Really active is who used 1/8 of its own tokens, or 1/16 of all (`LOCAL_ACTIVE_RATIO`, `GLOBAL_ACTIVE_RATIO`).
const ACTIVE_LOCAL: i64 = 8;
const ACTIVE_GLOBAL: i64 = 16;
/// Held bios of a kind at which a group's tasks block: a quarter of its share of `io_limit` (`OVERCOMMIT_RATE`).
const OVERCOMMIT: u64 = 4;

/// Tokens of one group.
#[derive(Clone, Copy, Debug)]
struct Purse {
    /// May be negative: a debt.
    tokens: i64,
    /// Tokens an epoch gives it.
    initial: i64,
    epoch: u64,
    /// Used since its last refill.
    consumed: i64,
    limit: u32,
}

/// The tokens of a device.
#[derive(Debug)]
pub struct Weight {
    kind: PolicyKind,
    /// Tokens are sectors: 2^3 of them a page.
    unit: u32,
    purses: Vec<Purse>,
    /// Tokens of an epoch.
    bucket: i64,
    /// Epochs whose tokens may be saved up.
    carryover: u64,
    epoch: u64,
    /// Tokens of this epoch that no group took yet, and of the last that no group took at all.
    left: i64,
    extra: i64,
    /// The group that has the turn, and at how many tokens it ends.
    current: Option<(usize, i64)>,
    /// The really active group with the most tokens.
    dominant: Option<usize>,
}

impl Weight {
    /// `token`: tokens of an epoch, 0 for the default.
    pub fn new(kind: PolicyKind, io_limit: u32, token: u32, groups: &[Entitled]) -> Weight {
        let unit = if kind == PolicyKind::WeightIosize { 3 } else { 0 };
        let bucket = match token {
            0 => (i64::from(io_limit) * 2 * BUCKET) << unit,
            token => i64::from(token),
        };
        let total: u64 = groups.iter().map(|group| u64::from(group.weight)).sum();
        let share = |of: u64, weight: u32| (of * u64::from(weight) / total.max(1)).max(1);
        let purse = |weight| {
            let initial = share(bucket as u64, weight) as i64;
            let limit = (share(io_limit.into(), weight) / OVERCOMMIT).max(1) as u32;
            Purse { tokens: initial, initial, epoch: 0, consumed: 0, limit }
        };
        Weight {
            kind,
            unit,
            purses: groups.iter().map(|group| purse(group.weight)).collect(),
            bucket,
            carryover: (((TOKEN_POOL << unit) / bucket).max(1)) as u64,
            epoch: 0,
            left: bucket,
            extra: 0,
            current: None,
            dominant: None,
        }
    }

    /// Held bios of a kind at which the group's tasks block.
    pub fn limit(&self, group: usize) -> u32 {
        self.purses[group].limit
    }

    /// What it has, and may have for the asking.
    fn worth(&self, group: usize) -> i64 {
        let purse = &self.purses[group];
        purse.tokens + purse.initial * (self.epoch - purse.epoch).min(self.carryover) as i64
    }

    fn rank(&self, group: usize) -> i64 {
        self.worth(group) * PRIORITY_BASE / self.purses[group].initial + 1
    }

    /// 0: it has no tokens. An empty purse is filled if there was a new epoch since it was last.
    pub fn priority(&mut self, group: usize) -> i64 {
        if self.purses[group].tokens > 0 {
            return self.rank(group);
        }
        let epochs = (self.epoch - self.purses[group].epoch).min(self.carryover);
        if epochs == 0 {
            return 0;
        }
        let purse = &mut self.purses[group];
        purse.epoch = self.epoch;
        let due = purse.initial * epochs as i64;
        self.left -= due;
        let extra = self.extra * purse.initial / (self.bucket - self.extra / 2).max(1);
        purse.tokens += due + extra;
        purse.consumed = 0;
        if let Some((current, mark)) = &mut self.current
            && *current == group
        {
            *mark += due + extra;
        }
        if self.purses[group].tokens > 0 { self.rank(group) } else { 0 }
    }

    /// A bio goes. The purse may end up below zero.
    pub(super) fn consume(&mut self, ask: &Ask) -> Turn {
        let group = ask.group;
        let count = match self.kind {
            PolicyKind::WeightIosize => i64::from(ask.sectors),
            _ => 1,
        };
        let purse = self.purses[group];
        let active =
            purse.consumed * ACTIVE_LOCAL >= purse.initial || purse.consumed * ACTIVE_GLOBAL >= self.bucket;
        if active && self.dominant.is_none_or(|dominant| self.worth(group) > self.worth(dominant)) {
            self.dominant = Some(group);
        }
        let uses_up = self.epoch == purse.epoch && purse.tokens > 0 && purse.tokens <= count;
        if uses_up && self.dominant == Some(group) {
            self.dominant = None;
        }
        let mark = match self.current {
            Some((current, mark)) if current == group => mark,
            _ => purse.tokens - (BATCH << self.unit),
        };
        self.current = Some((group, mark));
        let purse = &mut self.purses[group];
        purse.tokens -= count;
        purse.consumed += count;
        if purse.tokens <= mark {
            self.current = None;
            return Turn::Yield;
        }
        Turn::On
    }

    /// No waiting group has tokens: a new epoch, unless the dominant group still has many and the device is busy anyway.
    pub fn new_epoch(&mut self, busy: bool) -> bool {
        if busy && self.dominant.is_some_and(|group| self.rank(group) * PROCEED_THRESHOLD > PRIORITY_BASE) {
            return false;
        }
        self.epoch += 1;
        self.extra = self.left.max(0);
        self.left = self.bucket;
        self.dominant = None;
        true
    }
}
