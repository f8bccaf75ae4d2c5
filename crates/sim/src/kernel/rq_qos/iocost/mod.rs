//! io.cost: the device's time by weight. Every I/O costs virtual time by a linear model; the clock runs at a rate that follows what
//! the device can do, and a group's own clock, slower the lighter it is, may not pass it.
//!
//! An I/O goes on while its group's clock, cost included, is behind the device's; else its task sleeps until it is. Each period
//! (`plan`) groups that do not use their part lend it to the others, and the rate is adjusted by latencies and waits for request
//! slots. What must not wait (metadata) is paid for later: a group in debt issues nothing of its own until the debt is paid.
//!
//! Facts: Linux 6.12 `block/blk-iocost.c`. Not modelled: changes at run time; the delay of a task in debt begins when its
//! I/O is submitted, not when its system call returns.

pub mod model;
mod plan;
mod tree;

use std::collections::{BTreeSet, VecDeque};

use super::Slot;
use model::{CostModel, CostQos, Costs, MILLION, PRESETS, V_PER_US};
use tree::{Tree, WHOLE};

/// Parts of a period, percent: less credit than the first and nothing is lent, less than the second and what was lent is taken
/// back, more than the third is thrown away.
const MARGINS_PERCENT: [u64; 3] = [10, 20, 50];
/// What is lent is taken back in steps of this part of the weight, percent.
const TAKE_BACK_PERCENT: u64 = 25;
/// Sleepers wake this part of a period late at most, percent.
const SLACK_PERCENT: u64 = 1;
/// Debt, percent of a period, from which on a task is delayed, and from which on as long as it gets; the delays, microseconds.
const DELAY_PERCENT: (i128, i128) = (500, 25_000);
const DELAY_US: (u64, u64) = (250, 250_000);

/// Where the device's clock starts: far enough from 0 that credit can be had at once.
const V_START: u64 = 1 << 45;

/// What io.cost says to a bio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// It goes on, and its group paid so much virtual time.
    Go(u64),
    /// It goes on and is owed; its task pauses so long, nanoseconds.
    Owes(u64),
    /// It waits.
    Waits,
}

/// A bio as io.cost sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Io {
    pub(crate) group: usize,
    pub(crate) write: bool,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    /// Others wait for it: it is never held up.
    pub(crate) meta: bool,
}

/// A group beside its weight.
#[derive(Clone, Debug, Default)]
struct Member {
    active: bool,
    /// The period in which it last issued something, and when it became active.
    period: u64,
    activated_us: u64,
    /// Its clock, and how far of that is done.
    vtime: u64,
    done_vtime: u64,
    debt: u64,
    delay_us: u64,
    delayed_us: u64,
    /// Where its last I/O ended.
    cursor: u64,
    waiting: VecDeque<(Slot, u64)>,
    wakes_ns: Option<u64>,
    /// Costs since the period began.
    used: u64,
    /// What it had left when it was last looked at, and the part it then used of its weight.
    saved_margin: i64,
    last_inuse: u64,
    /// While a plan is made: the parts before and after what it lends.
    lends: Option<(u64, u64)>,
}

/// What was seen since the period began.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Of reads and writes: all, and those over the latency.
    done: [u64; 2],
    missed: [u64; 2],
    slot_wait_ns: u64,
}

/// io.cost on one device.
#[derive(Debug)]
pub(crate) struct IoCost {
    model: CostModel,
    qos: CostQos,
    preset: usize,
    /// Since when the rate asks for another preset.
    too_fast_since_us: Option<u64>,
    too_slow_since_us: Option<u64>,
    costs: [Costs; 2],
    latency_us: [u64; 2],
    /// Of a million, so many may miss it; all: nothing is asked.
    may_miss: [u64; 2],
    rate_min: u64,
    rate_max: u64,
    period_us: u64,
    margins: [i64; 3],
    /// Virtual time a microsecond, and the same while an error is made good.
    base_rate: u64,
    rate: u64,
    /// Credit that was thrown away (below zero) and not given back.
    error: i64,
    /// Periods so far; when this one began, by both clocks; when it ends.
    periods: u64,
    began_us: u64,
    began_v: u64,
    ends_us: Option<u64>,
    busy: i32,
    tree: Tree,
    members: Vec<Member>,
    active: Vec<usize>,
    wakes: BTreeSet<(u64, usize)>,
    seen: Seen,
    forgiving: plan::Forgiving,
}

impl IoCost {
    /// For groups with these parents (earlier ones; the first is the root) and weights.
    pub(crate) fn new(
        model: CostModel,
        qos: CostQos,
        device: (bool, u32),
        groups: &[(Option<usize>, u32)],
    ) -> IoCost {
        let preset = match device {
            (true, _) => model::HDD,
            (false, ..=1) => model::SSD_DEPTH_1,
            (false, _) => model::SSD,
        };
        let mut io_cost = IoCost {
            model,
            qos,
            preset,
            too_fast_since_us: None,
            too_slow_since_us: None,
            costs: Costs::of(&PRESETS[preset].numbers),
            latency_us: [0; 2],
            may_miss: [MILLION; 2],
            rate_min: 0,
            rate_max: 0,
            period_us: 0,
            margins: [0; 3],
            base_rate: V_PER_US,
            rate: V_PER_US,
            error: 0,
            periods: 1,
            began_us: 0,
            began_v: V_START,
            ends_us: None,
            busy: 0,
            members: vec![Member::default(); groups.len()],
            tree: Tree::new(groups.iter().copied()),
            active: Vec::new(),
            wakes: BTreeSet::new(),
            seen: Seen::default(),
            forgiving: plan::Forgiving::default(),
        };
        io_cost.use_preset();
        io_cost
    }

    /// What follows from preset, model and qos.
    fn use_preset(&mut self) {
        let preset = &PRESETS[self.preset];
        self.costs = Costs::of(&self.model.numbers(preset));
        self.latency_us = self.qos.latency_us.map(|latency| latency.unwrap_or(preset.latency_us));
        let parts = self.qos.part.map(|part| part.unwrap_or(0) * 100);
        self.may_miss = parts.map(|part| MILLION - part);
        [self.rate_min, self.rate_max] = self.qos.rates().map(|rate| (V_PER_US * rate).div_ceil(10_000));
        let longer = usize::from(self.latency_us[1] > self.latency_us[0]);
        let times = if parts[longer] > 0 { (self.may_miss[longer] / 50_000).max(2) } else { 2 };
        self.period_us = (times * self.latency_us[longer]).clamp(1000, MILLION);
        self.set_margins();
    }

    fn set_margins(&mut self) {
        self.margins =
            MARGINS_PERCENT.map(|percent| (self.period_us * percent / 100 * self.base_rate) as i64);
    }

    fn slack_ns(&self) -> u64 {
        self.period_us * 1000 * SLACK_PERCENT / 100
    }

    /// The device's clock.
    fn vnow(&self, now_us: u64) -> u64 {
        self.began_v + (now_us - self.began_us) * self.rate
    }

    /// How far a group's clock is behind the device's.
    fn credit(&self, group: usize, vnow: u64) -> i64 {
        vnow as i64 - self.members[group].vtime as i64
    }

    /// A device's cost is the dearer for a group the smaller its part.
    fn dear(cost: u64, part: u64) -> u64 {
        u64::try_from((u128::from(cost) * u128::from(WHOLE)).div_ceil(u128::from(part)))
            .unwrap_or(u64::MAX >> 2)
    }

    /// The device's cost of what was dear to a group.
    fn plain(cost: u64, part: u64) -> u64 {
        (u128::from(cost) * u128::from(part) / u128::from(WHOLE)) as u64
    }

    fn set_weight(&mut self, group: usize, inuse: u64, save: Option<u64>) {
        self.tree.set(group, self.tree.active(group), inuse);
        if let Some(vnow) = save {
            self.members[group].saved_margin = self.credit(group, vnow);
            self.members[group].last_inuse = self.tree.inuse(group);
        }
    }

    // ---- a bio comes ------------------------------------------------------------------------------------------------------

    /// May this bio go on?
    pub(crate) fn ask(&mut self, slot: Slot, io: &Io, now_ns: u64) -> Answer {
        let now_us = now_ns / 1000;
        if self.tree.is_root(io.group) || !self.activate(io.group, now_us) {
            return Answer::Go(0);
        }
        let vnow = self.vnow(now_us);
        let member = &mut self.members[io.group];
        let plain = self.costs[usize::from(io.write)].of_io(io.sector, io.sectors, member.cursor);
        member.cursor = io.sector + u64::from(io.sectors);
        let cost = self.priced(io.group, plain, vnow);
        let member = &mut self.members[io.group];
        if member.waiting.is_empty() && member.debt == 0 && member.vtime + cost <= vnow {
            return Answer::Go(self.pay(io.group, plain, cost));
        }
        if io.meta {
            self.owe(io.group, plain);
            return Answer::Owes(self.delay_us(io.group, now_us) * 1000);
        }
        if member.debt == 0 && self.tree.inuse(io.group) != self.tree.active(io.group) {
            self.set_weight(io.group, self.tree.active(io.group), Some(vnow));
        }
        self.members[io.group].waiting.push_back((slot, plain));
        Answer::Waits
    }

    /// After [`Answer::Waits`]: when does it go? Perhaps now, with what it paid in `granted`.
    pub(crate) fn waits(&mut self, group: usize, now_ns: u64, granted: &mut Vec<(Slot, u64)>) {
        self.kick(group, self.members[group].debt > 0, now_ns, granted);
    }

    /// A bio joined a request: it costs what it transfers; what it paid. `beside_paid`: that request was paid for.
    pub(crate) fn joined(&mut self, io: &Io, beside_paid: bool, now_ns: u64) -> u64 {
        let now_us = now_ns / 1000;
        let plain = self.costs[usize::from(io.write)].of_size(io.sectors);
        if self.tree.is_root(io.group) || !self.members[io.group].active {
            return 0;
        }
        let vnow = self.vnow(now_us);
        let member = &mut self.members[io.group];
        if member.cursor == io.sector {
            member.cursor += u64::from(io.sectors);
        }
        let cost = self.priced(io.group, plain, vnow);
        if beside_paid && self.members[io.group].vtime + cost <= vnow {
            return self.pay(io.group, plain, cost);
        }
        self.owe(io.group, plain);
        0
    }

    fn pay(&mut self, group: usize, plain: u64, cost: u64) -> u64 {
        let member = &mut self.members[group];
        member.vtime += cost;
        member.used += plain;
        cost
    }

    /// What `plain` costs the group; it takes back what it lent if its credit runs short.
    fn priced(&mut self, group: usize, plain: u64, vnow: u64) -> u64 {
        let mut cost = Self::dear(plain, self.tree.parts(group).1);
        let margin = self.credit(group, vnow) - cost as i64;
        let (active, mut inuse) = (self.tree.active(group), self.tree.inuse(group));
        let member = &self.members[group];
        let runs_short = margin < member.saved_margin && margin < self.margins[1];
        if member.debt > 0 || !runs_short || inuse == active {
            return cost;
        }
        let step = (active * TAKE_BACK_PERCENT).div_ceil(100);
        loop {
            inuse += step;
            self.set_weight(group, inuse, Some(vnow));
            cost = Self::dear(plain, self.tree.parts(group).1);
            if self.members[group].vtime + cost <= vnow || self.tree.inuse(group) == active {
                return cost;
            }
        }
    }

    /// The group takes part, if it is a leaf among those that do. It starts with as much credit as it may keep.
    fn activate(&mut self, group: usize, now_us: u64) -> bool {
        if self.members[group].active {
            self.members[group].period = self.periods;
            return true;
        }
        let above = &self.tree.path(group)[..self.tree.path(group).len() - 1];
        if self.tree.has_active_children(group) || above.iter().any(|parent| self.members[*parent].active) {
            return false;
        }
        let vnow = self.vnow(now_us);
        let start = vnow.saturating_sub(self.margins[2] as u64);
        let weight = self.tree.weight(group);
        let member = &mut self.members[group];
        member.done_vtime = start - (member.vtime - member.done_vtime).min(start);
        member.vtime = start;
        (member.active, member.period, member.activated_us) = (true, self.periods, now_us);
        let inuse = if member.last_inuse > 0 { member.last_inuse } else { weight };
        self.active.push(group);
        self.tree.set(group, weight, inuse);
        self.set_weight(group, inuse, Some(vnow));
        if self.ends_us.is_none() {
            self.forgiving = plan::Forgiving::since(now_us);
            self.begin_period(now_us);
        }
        true
    }

    // ---- sleepers and debts -----------------------------------------------------------------------------------------------

    fn owe(&mut self, group: usize, plain: u64) {
        if self.members[group].debt == 0 {
            self.set_weight(group, 0, None);
        }
        self.members[group].debt += plain;
        self.members[group].used += plain;
    }

    /// Pay debts if `pays`, let those go on that are due, and find out when the next one is due.
    fn kick(&mut self, group: usize, pays: bool, now_ns: u64, granted: &mut Vec<(Slot, u64)>) {
        let now_us = now_ns / 1000;
        let vnow = self.vnow(now_us);
        let mut budget = self.credit(group, vnow);
        if pays && self.members[group].debt > 0 && budget > 0 {
            budget -= self.pay_debt(group, budget as u64) as i64;
        }
        if self.members[group].debt > 0 || self.members[group].delay_us > 0 {
            self.delay_us(group, now_us);
        }
        let (due, used) = self.tree.parts(group);
        if self.members[group].debt > 0 {
            budget = (budget - Self::dear(self.members[group].debt, due) as i64).min(0);
        }
        let mut shortage = 0;
        while let Some((slot, plain)) = self.members[group].waiting.front().copied() {
            let cost = Self::dear(plain, used);
            budget -= cost as i64;
            if budget < 0 {
                shortage = budget.unsigned_abs();
                break;
            }
            self.members[group].waiting.pop_front();
            granted.push((slot, self.pay(group, plain, cost)));
        }
        self.set_wake(group, (shortage > 0).then(|| now_ns + shortage.div_ceil(self.base_rate) * 1000));
    }

    /// A timer that is near enough stays.
    fn set_wake(&mut self, group: usize, at_ns: Option<u64>) {
        let before = self.members[group].wakes_ns;
        let near = |a: u64, b: u64| a.abs_diff(b) <= self.slack_ns();
        if let (Some(before), Some(at_ns)) = (before, at_ns)
            && near(before, at_ns)
        {
            return;
        }
        if let Some(before) = before {
            self.wakes.remove(&(before, group));
        }
        self.members[group].wakes_ns = at_ns;
        self.wakes.extend(at_ns.map(|at_ns| (at_ns, group)));
    }

    /// Pay as much of the debt as `budget` covers; what that took.
    fn pay_debt(&mut self, group: usize, budget: u64) -> u64 {
        let due = self.tree.parts(group).0;
        let member = &mut self.members[group];
        let plain = Self::plain(budget, due).min(member.debt);
        let cost = Self::dear(plain, due);
        member.vtime += cost;
        member.done_vtime += cost;
        member.debt -= plain;
        if member.debt == 0 {
            let inuse = member.last_inuse;
            self.set_weight(group, inuse, None);
        }
        cost
    }

    /// How long a task of the group has to pause: by its debt, and half as long each second.
    fn delay_us(&mut self, group: usize, now_us: u64) -> u64 {
        let due = self.tree.parts(group).0;
        let over = Self::dear(self.members[group].debt, due) as i64 - self.credit(group, self.vnow(now_us));
        let percent = 100 * i128::from(over) / i128::from(self.period_us * self.base_rate);
        let (low, high) = DELAY_PERCENT;
        let new_us = match percent {
            percent if percent <= low => 0,
            percent if percent >= high => DELAY_US.1,
            percent => DELAY_US.0 + (DELAY_US.1 - DELAY_US.0) * (percent - low) as u64 / (high - low) as u64,
        };
        let member = &mut self.members[group];
        let seconds = (now_us - member.delayed_us.min(now_us)) / MILLION;
        let mut delay_us = member.delay_us >> seconds.min(63);
        if new_us > delay_us {
            (member.delay_us, member.delayed_us, delay_us) = (new_us, now_us, new_us);
        }
        if delay_us < DELAY_US.0 {
            (member.delay_us, delay_us) = (0, 0);
        }
        delay_us
    }

    // ---- what is seen -----------------------------------------------------------------------------------------------------

    /// A bio is done that paid so much.
    pub(crate) fn bio_done(&mut self, group: usize, paid: u64) {
        self.members[group].done_vtime += paid;
    }

    /// A request is done. It asked for a slot, and had one, then; what its transfer takes does not count as latency.
    pub(crate) fn request_done(&mut self, write: bool, sectors: u32, times_ns: (u64, u64), now_ns: u64) {
        let (asked_ns, began_ns) = times_ns;
        let at = usize::from(write);
        let size_ns = self.costs[at].of_size(sectors) / (V_PER_US / 1000);
        let late_ns = (now_ns - asked_ns.min(now_ns)).saturating_sub(size_ns);
        self.seen.done[at] += 1;
        self.seen.missed[at] += u64::from(late_ns > self.latency_us[at] * 1000);
        self.seen.slot_wait_ns += began_ns.saturating_sub(asked_ns);
    }

    // ---- clocks -----------------------------------------------------------------------------------------------------------

    pub(crate) fn next_event(&self) -> Option<u64> {
        let wake = self.wakes.first().map(|(at_ns, _)| *at_ns);
        crate::engine::earlier(wake, self.ends_us.map(|us| us * 1000))
    }

    /// Timers that rang; `granted` gets those that go on, with what they paid.
    pub(crate) fn advance(&mut self, now_ns: u64, granted: &mut Vec<(Slot, u64)>) {
        while let Some((at_ns, group)) = self.wakes.first().copied().filter(|(at_ns, _)| *at_ns <= now_ns) {
            self.wakes.remove(&(at_ns, group));
            self.members[group].wakes_ns = None;
            self.kick(group, self.members[group].debt > 0, now_ns, granted);
        }
        if self.ends_us.is_some_and(|ends_us| ends_us * 1000 <= now_ns) {
            self.end_period(now_ns, granted);
        }
    }

    fn begin_period(&mut self, now_us: u64) {
        self.began_v = self.vnow(now_us);
        self.began_us = now_us;
        self.ends_us = Some(now_us + self.period_us);
    }

    /// The rate of the device's clock, percent of the model's.
    #[cfg(test)]
    fn rate_percent(&self) -> u64 {
        self.base_rate * 100 / V_PER_US
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
