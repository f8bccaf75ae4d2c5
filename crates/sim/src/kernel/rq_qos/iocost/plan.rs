//! At the end of each period: who leaves, who lends how much of its part, and how fast the clock runs from now on.
//!
//! Facts: Linux 6.12 `block/blk-iocost.c` (`ioc_timer_fn` and what it calls). The kernel finds the lenders' new weights by a walk
//! over the tree; here they are written in closed form. Of all lenders let D be the sum of the parts due and T of the parts they
//! will use; those who lend nothing keep their weights and are to have (1 - T) of the device where they had (1 - D), all the more
//! by the same factor. That is the case if a lender's weight is multiplied by t/d and divided by (1 - T)/(1 - D), whatever the tree:
//! an inner node's weight in use follows from its children's.

use super::model::{MILLION, PRESETS, V_PER_US};
use super::tree::WHOLE;
use super::{IoCost, MARGINS_PERCENT, Slot};

/// Waiting for request slots, percent of a period: above it the device is too busy; below three quarters it is not.
const SLOT_WAIT_PERCENT: u64 = 5;
const NOT_BUSY_PERCENT: u64 = 75;
/// By how much the rate changes at a level of busyness, percent: up to that level.
const RATE_STEPS: [(u32, u64); 6] = [(3, 0), (19, 1), (35, 2), (43, 4), (51, 8), (u32::MAX, 16)];
/// A rate beyond its bounds comes back in steps, percent.
const RATE_CLAMP_PERCENT: u64 = 4;
const BUSY_MAX: i32 = 1000;
/// An I/O that takes longer than a period keeps the rate from rising, for so many periods.
const LAGGING_PERIODS: i64 = 10;
/// How long the rate has to ask for another preset.
const PRESET_US: u64 = 10 * MILLION;
/// Debts halve this often while the device is used for no more than that, percent.
const FORGIVE_US: u64 = 100_000;
const FORGIVE_PERCENT: u64 = 50;

/// When debts were forgiven last, what is left of that time, and how much the device was used since.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Forgiving {
    since_us: u64,
    rest_us: u64,
    used_us: u64,
}

impl Forgiving {
    pub(super) fn since(now_us: u64) -> Forgiving {
        Forgiving { since_us: now_us, ..Forgiving::default() }
    }
}

/// What a look at the groups finds.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    short: usize,
    lagging: usize,
    used_us: u64,
}

impl IoCost {
    pub(super) fn end_period(&mut self, now_ns: u64, granted: &mut Vec<(Slot, u64)>) {
        let now_us = now_ns / 1000;
        let vnow = self.vnow(now_us);
        let debtors = self.look_at_groups(vnow, now_ns, granted);
        let found = self.plan_parts(vnow, now_us);
        self.judge(&found);
        self.change_preset(now_us);
        self.forgive(found.used_us, debtors, now_ns, granted);
        self.periods += 1;
        if self.active.is_empty() {
            (self.busy, self.error, self.ends_us) = (0, 0, None);
        } else {
            self.begin_period(now_us);
        }
        self.make_good(now_us);
    }

    /// Let sleepers go whose time has come, and groups that do nothing leave; how many are in debt.
    fn look_at_groups(&mut self, vnow: u64, now_ns: u64, granted: &mut Vec<(Slot, u64)>) -> usize {
        let mut debtors = 0;
        for group in self.active.clone() {
            let member = &self.members[group];
            if !member.waiting.is_empty() || member.debt > 0 || member.delay_us > 0 {
                self.kick(group, true, now_ns, granted);
                let member = &self.members[group];
                debtors += usize::from(member.debt > 0 || member.delay_us > 0);
            } else if member.period != self.periods && member.done_vtime == member.vtime {
                self.throw_away(group, vnow);
                self.tree.set(group, 0, 0);
                self.members[group].active = false;
            }
        }
        let members = &self.members;
        self.active.retain(|group| members[*group].active);
        debtors
    }

    /// Credit above what a group may keep is lost to it, and given to all by a faster clock. How much it was.
    fn throw_away(&mut self, group: usize, vnow: u64) -> u64 {
        let excess = (self.credit(group, vnow) - self.margins[2]).max(0) as u64;
        self.error -= Self::plain(excess, self.tree.parts(group).1) as i64;
        excess
    }

    /// Find out who lends, and how much.
    fn plan_parts(&mut self, vnow: u64, now_us: u64) -> Found {
        let mut found = Found::default();
        let mut lenders = Vec::new();
        for group in self.active.clone() {
            let used_us = std::mem::take(&mut self.members[group].used) / self.base_rate;
            found.used_us += used_us;
            found.lagging += usize::from(self.is_lagging(group, vnow));
            let (due, used) = self.tree.parts(group);
            let member = &self.members[group];
            let has_left = member.waiting.is_empty() && self.credit(group, vnow) > self.margins[1];
            if used >= due && !has_left {
                found.short += 1;
                continue;
            }
            let part = self.part_used(group, used, used_us, now_us);
            let most = self.tree.most(group);
            let after = self.part_after(group, most, part, vnow);
            if after < most && due >= 2 {
                self.members[group].lends = Some((due, after));
                lenders.push(group);
            } else if self.members[group].debt == 0 {
                self.set_weight(group, self.tree.active(group), Some(vnow));
                found.short += 1;
            }
        }
        if found.short > 0 && !lenders.is_empty() {
            self.lend(&lenders, vnow);
        }
        found
    }

    /// Is something not done that was issued before this period, but not too long before?
    fn is_lagging(&self, group: usize, vnow: u64) -> bool {
        let member = &self.members[group];
        let period = (vnow - self.began_v) as i64;
        let behind = vnow as i64 - member.done_vtime as i64;
        self.may_miss != [MILLION; 2]
            && member.delay_us == 0
            && member.vtime > member.done_vtime
            && self.credit(group, vnow) < LAGGING_PERIODS * period
            && behind > period
    }

    /// The share of the device that a group used; what is in flight counts, lest a slow I/O look like idleness.
    fn part_used(&self, group: usize, used: u64, used_us: u64, now_us: u64) -> u64 {
        let member = &self.members[group];
        let under_way_us = Self::plain(member.vtime - member.done_vtime, used).div_ceil(self.base_rate);
        let since_us = self.began_us.max(member.activated_us);
        let lasted_us = (now_us - since_us.min(now_us)).max(1);
        (used_us.max(under_way_us) * WHOLE).div_ceil(lasted_us).clamp(1, WHOLE)
    }

    /// The part a group needs to do in the next period what it did in this one, and to have half a period's credit then.
    fn part_after(&mut self, group: usize, most: u64, part: u64, vnow: u64) -> u64 {
        if self.members[group].debt > 0 {
            return 1;
        }
        if !self.members[group].waiting.is_empty() || self.credit(group, vnow) < self.margins[0] {
            return most;
        }
        let excess = self.throw_away(group, vnow);
        let member = &mut self.members[group];
        member.vtime += excess;
        member.done_vtime += excess;
        let whole = i128::from(WHOLE);
        let period = i128::from(vnow - self.began_v).max(1);
        let left = whole * i128::from(self.credit(group, vnow)) / period;
        let target = whole * i128::from(MARGINS_PERCENT[2]) / 100;
        let after = whole * i128::from(part) / (whole - target + left).max(1);
        after.clamp(1, i128::from(most)) as u64
    }

    /// Make the lenders' weights such that all others have more by the same factor.
    fn lend(&mut self, lenders: &[usize], vnow: u64) {
        self.fit_into_whole(lenders);
        let parts = |group: &usize| self.members[*group].lends.unwrap_or((1, 1));
        let (due, after) =
            lenders.iter().map(parts).fold((0, 0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        let (others_before, others_after) =
            (WHOLE.saturating_sub(due).max(1), WHOLE.saturating_sub(after).max(1));
        for group in lenders {
            let (due, after) = self.members[*group].lends.take().unwrap_or((1, 1));
            let active = u128::from(self.tree.active(*group));
            let inuse = active * u128::from(after) * u128::from(others_before);
            let inuse = inuse.div_ceil(u128::from(due) * u128::from(others_after));
            self.set_weight(*group, inuse.min(active) as u64, Some(vnow));
        }
    }

    /// Lenders may want more than is due to them, as long as others lend it; but not all there is.
    fn fit_into_whole(&mut self, lenders: &[usize]) {
        let parts = |members: &[super::Member], group: usize| members[group].lends.unwrap_or((1, 1));
        let sum: u64 = lenders.iter().map(|group| parts(&self.members, *group).1).sum();
        if sum < WHOLE {
            return;
        }
        let over: Vec<usize> = lenders
            .iter()
            .copied()
            .filter(|group| {
                let (due, after) = parts(&self.members, *group);
                after > due
            })
            .collect();
        let over_sum: u64 = over.iter().map(|group| parts(&self.members, *group).1).sum();
        let target = over_sum.saturating_sub(sum - (WHOLE - 1));
        for group in over {
            let (due, after) = parts(&self.members, group);
            self.members[group].lends = Some((due, (after * target / over_sum.max(1)).max(1)));
        }
    }

    // ---- the rate -----------------------------------------------------------------------------------------------------------

    /// Is the device too busy, or does it have more to give? The rate follows after some periods.
    fn judge(&mut self, found: &Found) {
        let seen = std::mem::take(&mut self.seen);
        let wait = seen.slot_wait_ns * 100 / (self.period_us * 1000);
        let missed = [0, 1].map(|at| (seen.missed[at] * MILLION).div_ceil(seen.done[at].max(1)));
        let is_busy = wait > SLOT_WAIT_PERCENT || (0..2).any(|at| missed[at] > self.may_miss[at]);
        let is_quiet = wait <= SLOT_WAIT_PERCENT * NOT_BUSY_PERCENT / 100
            && (0..2).all(|at| missed[at] <= self.may_miss[at] * NOT_BUSY_PERCENT / 100);
        self.busy = match (is_busy, is_quiet) {
            (true, _) => self.busy.max(0) + 1,
            // Somebody waits although the device could do more; what takes long is waited for first.
            (false, true) if found.short > 0 => self.busy.min(0) - i32::from(found.lagging == 0),
            _ => 0,
        }
        .clamp(-BUSY_MAX, BUSY_MAX);
        if self.busy != 0 && !(self.busy < 0 && found.lagging > 0) {
            self.change_rate();
        }
    }

    fn change_rate(&mut self) {
        let rate = self.base_rate;
        self.base_rate = if rate < self.rate_min {
            (rate * (100 + RATE_CLAMP_PERCENT) / 100).min(self.rate_min)
        } else if rate > self.rate_max {
            (rate * (100 - RATE_CLAMP_PERCENT) / 100).max(self.rate_max)
        } else {
            let level = self.busy.unsigned_abs();
            let step = RATE_STEPS.iter().find(|(to, _)| level <= *to).map_or(0, |(_, percent)| *percent);
            let percent = if self.busy > 0 { 100 - step } else { 100 + step };
            (rate * percent).div_ceil(100).clamp(self.rate_min, self.rate_max)
        };
        self.set_margins();
    }

    /// While no numbers are set, a device that is much faster or slower than its preset gets the next one.
    fn change_preset(&mut self, now_us: u64) {
        if self.model.is_users() || self.qos.is_users() {
            return;
        }
        let percent = self.base_rate * 100 / V_PER_US;
        let preset = &PRESETS[self.preset];
        let lasts = |since: &mut Option<u64>, asks: bool| match asks {
            true => now_us - *since.get_or_insert(now_us) >= PRESET_US,
            false => {
                *since = None;
                false
            }
        };
        let faster = lasts(&mut self.too_fast_since_us, preset.too_fast.is_some_and(|at| percent >= at));
        let slower = lasts(&mut self.too_slow_since_us, preset.too_slow.is_some_and(|at| percent <= at));
        self.preset = match (faster, slower) {
            (true, _) => self.preset + 1,
            (_, true) => self.preset - 1,
            _ => return,
        };
        (self.too_fast_since_us, self.too_slow_since_us) = (None, None);
        self.base_rate = V_PER_US;
        self.use_preset();
    }

    /// Give back by a faster clock what was thrown away, within a period and by no more than the rate again.
    fn make_good(&mut self, now_us: u64) {
        let rate = self.base_rate as i64;
        let left_us = (self.began_us + self.period_us).saturating_sub(now_us) as i64;
        self.rate = self.base_rate;
        if left_us > 0 {
            let more = (-self.error / left_us).clamp(-(rate / 2), rate);
            self.error += more * left_us;
            self.rate = (rate + more) as u64;
        }
        let period = self.period_us as i64 * rate;
        self.error = self.error.clamp(-period, period);
    }

    /// While the device is half idle debts halve every tenth of a second.
    fn forgive(&mut self, used_us: u64, debtors: usize, now_ns: u64, granted: &mut Vec<(Slot, u64)>) {
        let now_us = now_ns / 1000;
        if debtors == 0 {
            self.forgiving = Forgiving::since(now_us);
            return;
        }
        self.forgiving.used_us += if self.busy > 0 { used_us.max(self.period_us) } else { used_us };
        let lasted_us = now_us - self.forgiving.since_us;
        if lasted_us < FORGIVE_US {
            return;
        }
        let is_used = 100 * self.forgiving.used_us / lasted_us > FORGIVE_PERCENT;
        let us = if is_used { 0 } else { lasted_us + self.forgiving.rest_us };
        self.forgiving = Forgiving { rest_us: us % FORGIVE_US, ..Forgiving::since(now_us) };
        let times = (us / FORGIVE_US).min(63);
        for group in self.active.clone() {
            let member = &mut self.members[group];
            if times == 0 || (member.debt == 0 && member.delay_us == 0) {
                continue;
            }
            for owed in [&mut member.debt, &mut member.delay_us] {
                *owed = (*owed >> times).max(u64::from(*owed > 0));
            }
            self.kick(group, true, now_ns, granted);
        }
    }
}
