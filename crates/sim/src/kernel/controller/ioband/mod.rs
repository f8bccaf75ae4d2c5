//! dm-ioband, a device-mapper target: bios of a group wait until the group has tokens.
//!
//! Hirokazu Takahashi and Ryo Tsuruta (VA Linux Systems Japan), 2008-2009. Facts from `drivers/md/dm-ioband-ctl.c`,
//! `dm-ioband-policy.c` and `dm-ioband-rangebw.c` of a tree of about version 1.14 (`docs/sources.md`). In this file: which bios
//! pass, wait or block their task, and the conductor, which releases them; the policies, which deal out the tokens, are
//! [`weight`] and [`range_bw`].
//!
//! Not modelled: urgent bios (page reclaim, swap), suspending, changing parameters at run time, groups below groups (every
//! group of the tree takes part as a group of the device; the root is the device's default group).

pub mod range_bw;
#[cfg(test)]
mod tests;
pub mod weight;

use std::collections::VecDeque;

use fairlift_core::MS;

use super::{Ask, Controller, Line, Place, Ticket, Verdict};
use range_bw::RangeBw;
use weight::Weight;

/// `DEFAULT_IO_THROTTLE`: with fewer bios out than this, a new epoch does not wait for the dominant group.
pub const IO_THROTTLE: u32 = 4;

/// Which policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyKind {
    /// One token a bio.
    Weight,
    /// One token a sector.
    WeightIosize,
    /// Between two bandwidths.
    RangeBw,
}

/// How a dm-ioband device is set up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The policy.
    pub policy: PolicyKind,
    /// See [`IO_THROTTLE`].
    pub io_throttle: u32,
    /// Bios of each kind (sync, async) that may be out; 0: one and a half times `nr_requests`.
    pub io_limit: u32,
    /// Tokens of an epoch (`token_base`); 0: by `io_limit`.
    pub token: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { policy: PolicyKind::Weight, io_throttle: IO_THROTTLE, io_limit: 0, token: 0 }
    }
}

/// What the policy says after a bio went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    /// The group may go on.
    On,
    /// Another group is to be chosen.
    Yield,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    ticket: Ticket,
    ask: Ask,
}

/// A group: what it has waiting, `[async, sync]`.
#[derive(Clone, Debug, Default)]
struct Group {
    fifo: VecDeque<Held>,
    /// Bios that stood first when there was no room for their kind; all of one kind.
    overtaken: VecDeque<Held>,
    held: [u32; 2],
    /// Held bios of a kind at which its tasks block.
    limit: u32,
    blocked: [bool; 2],
}

/// A dm-ioband device.
#[derive(Debug)]
pub struct Ioband {
    settings: Settings,
    io_limit: u32,
    tick_ns: u64,
    groups: Vec<Group>,
    policy: Policy,
    /// Bios below, `[async, sync]`.
    issued: [u32; 2],
    /// Bios held, `[async, sync]`.
    held: [u32; 2],
    blocked: [bool; 2],
    /// When the conductor runs.
    kick_ns: Option<u64>,
    woken: Vec<Line>,
}

#[derive(Debug)]
enum Policy {
    Weight(Weight),
    RangeBw(RangeBw),
}

impl Ioband {
    /// A device for these groups.
    pub fn new(settings: Settings, place: &Place<'_>) -> Ioband {
        let io_limit = match settings.io_limit {
            0 => 3 * place.nr_requests / 2,
            limit => limit,
        };
        let io_limit = io_limit.max(settings.io_throttle).max(1);
        let tick_ns = place.tick_ns.max(1);
        let policy = match settings.policy {
            PolicyKind::RangeBw => Policy::RangeBw(RangeBw::new(place.groups)),
            kind => Policy::Weight(Weight::new(kind, io_limit, settings.token, place.groups)),
        };
        let limit = |group| match &policy {
            Policy::Weight(policy) => policy.limit(group),
            Policy::RangeBw(policy) => policy.limit(group, io_limit),
        };
        let groups = (0..place.groups.len()).map(|group| Group { limit: limit(group), ..Group::default() });
        Ioband {
            settings,
            io_limit,
            tick_ns,
            groups: groups.collect(),
            policy,
            issued: [0; 2],
            held: [0; 2],
            blocked: [false; 2],
            kick_ns: None,
            woken: Vec::new(),
        }
    }

    fn device_line(&self, sync: usize) -> Line {
        2 * self.groups.len() + sync
    }

    fn room(&self, sync: usize) -> bool {
        self.issued[sync] < self.io_limit
    }

    fn issued(&self) -> u32 {
        self.issued[0] + self.issued[1]
    }

    /// Call the conductor at `at`; a call that is on its way already stays as it is.
    fn kick(&mut self, at: u64) {
        self.kick_ns.get_or_insert(at);
    }

    /// Does the submitter have to sleep? A thread of the kernel's only if the whole device is full of held bios: it may carry bios
    /// of several groups.
    fn block(&mut self, ask: &Ask, now: u64) -> Option<Line> {
        let sync = usize::from(ask.sync);
        if ask.daemon {
            self.blocked[sync] |= self.held[sync] >= self.io_limit;
            return self.blocked[sync].then(|| self.device_line(sync));
        }
        if let Policy::RangeBw(policy) = &mut self.policy
            && policy.has_to_wait(ask.group, now / MS)
        {
            return Some(self.period_line());
        }
        let group = &mut self.groups[ask.group];
        group.blocked[sync] |= group.held[sync] >= group.limit;
        group.blocked[sync].then_some(2 * ask.group + sync)
    }

    /// Where those sleep whose group has had its most.
    fn period_line(&self) -> Line {
        2 * self.groups.len() + 2
    }

    /// May the group issue; the more the better.
    fn priority(&mut self, group: usize, now: u64) -> i64 {
        let has_held = self.groups[group].held != [0; 2];
        match &mut self.policy {
            Policy::Weight(policy) => policy.priority(group),
            Policy::RangeBw(policy) => policy.priority(group, has_held, now / MS),
        }
    }

    fn issue(&mut self, ask: &Ask, now: u64) -> Turn {
        self.issued[usize::from(ask.sync)] += 1;
        match &mut self.policy {
            Policy::Weight(policy) => policy.consume(ask),
            Policy::RangeBw(policy) => policy.consume(ask, now / MS),
        }
    }

    fn best_group(&mut self, now: u64) -> Option<usize> {
        let mut best = None;
        let mut highest = 0;
        for index in 0..self.groups.len() {
            let group = &self.groups[index];
            let overtaken = group.overtaken.front().map(|held| usize::from(held.ask.sync));
            let only_overtaken = group.fifo.is_empty();
            if group.held == [0; 2] || !(self.room(0) || self.room(1)) {
                continue;
            }
            if only_overtaken && overtaken.is_some_and(|sync| !self.room(sync)) {
                continue;
            }
            let priority = self.priority(index, now);
            if priority > highest {
                (highest, best) = (priority, Some(index));
            }
        }
        best
    }

    /// Release bios of a group while it may issue and there is room.
    fn release(&mut self, group: usize, now: u64, out: &mut Vec<Ticket>) -> Turn {
        loop {
            if self.groups[group].held == [0; 2] || self.priority(group, now) == 0 {
                return Turn::On;
            }
            let Some(held) = self.next_of(group) else { return Turn::On };
            out.push(held.ticket);
            let sync = usize::from(held.ask.sync);
            self.held[sync] -= 1;
            let gone = &mut self.groups[group];
            gone.held[sync] -= 1;
            if gone.held[sync] == 0 && std::mem::take(&mut gone.blocked[sync]) {
                self.woken.push(2 * group + sync);
            }
            if self.issue(&held.ask, now) == Turn::Yield {
                return Turn::Yield;
            }
        }
    }

    /// The group's next bio for which there is room; those of the other kind that stood before it step aside.
    fn next_of(&mut self, group: usize) -> Option<Held> {
        if let Some(first) = self.groups[group].overtaken.front() {
            let room = self.room(usize::from(first.ask.sync));
            if room {
                return self.groups[group].overtaken.pop_front();
            }
        }
        while self.room(0) || self.room(1) {
            let held = self.groups[group].fifo.pop_front()?;
            if self.room(usize::from(held.ask.sync)) {
                return Some(held);
            }
            self.groups[group].overtaken.push_back(held);
        }
        None
    }

    /// No group may issue: may all of them have new tokens?
    fn restart(&mut self) -> bool {
        let issued = self.issued();
        match &mut self.policy {
            Policy::Weight(policy) => policy.new_epoch(issued >= self.settings.io_throttle),
            Policy::RangeBw(_) => true,
        }
    }
}

impl Controller for Ioband {
    fn ask(&mut self, ask: &Ask, ticket: Ticket, now: u64) -> Verdict {
        if let Some(line) = self.block(ask, now) {
            return Verdict::Block(line);
        }
        let sync = usize::from(ask.sync);
        if self.groups[ask.group].held[sync] == 0 && self.room(sync) {
            if self.priority(ask.group, now) != 0 {
                self.issue(ask, now);
                return Verdict::Pass;
            }
            if self.held == [0; 2] && self.issued() == 0 {
                self.kick(now + self.tick_ns); // nothing will complete and call the conductor
            }
        }
        self.held[sync] += 1;
        let group = &mut self.groups[ask.group];
        group.held[sync] += 1;
        group.fifo.push_back(Held { ticket, ask: *ask });
        Verdict::Hold
    }

    fn conduct(&mut self, now: u64, out: &mut Vec<Ticket>) {
        if let Policy::RangeBw(policy) = &mut self.policy
            && policy.period_over(now / MS)
        {
            self.woken.push(2 * self.groups.len() + 2);
        }
        if self.kick_ns.is_none_or(|at| at > now) {
            return;
        }
        self.kick_ns = None;
        if self.held != [0; 2]
            && let Some(group) = self.best_group(now)
            && self.release(group, now, out) == Turn::Yield
        {
            self.kick(now);
        }
        for sync in 0..2 {
            if self.blocked[sync] && self.held[sync] < self.io_limit {
                self.blocked[sync] = false;
                self.woken.push(self.device_line(sync));
            }
        }
        let stuck = self.held != [0; 2] && self.room(0) && self.room(1) && out.is_empty();
        if stuck && self.restart() {
            self.kick(now);
        }
    }

    fn next_event(&self) -> Option<u64> {
        let period = match &self.policy {
            Policy::RangeBw(policy) => policy.timer().map(|ms| ms * MS),
            Policy::Weight(_) => None,
        };
        [self.kick_ns, period].into_iter().flatten().min()
    }

    fn completed(&mut self, ask: &Ask, now: u64) {
        self.issued[usize::from(ask.sync)] -= 1;
        if self.held != [0; 2] {
            self.kick(now);
        }
    }

    fn take_woken(&mut self, out: &mut Vec<Line>) {
        out.append(&mut self.woken);
    }

    fn thread(&self) -> &'static str {
        "kioband"
    }
}
