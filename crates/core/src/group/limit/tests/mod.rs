//! The limits against their own words: exact, bounded, in order, fair, changeable, never stuck.

mod cost;
mod exact;
mod order;
mod properties;
mod shares;
mod slots;

use std::vec::Vec;

use super::*;
use crate::SECOND;
use crate::group::GroupParams;

const READ: Direction = Direction::Read;
const WRITE: Direction = Direction::Write;

fn bytes_per_s(bytes_per_s: u64) -> Rates {
    Rates { bytes_per_s, ios_per_s: 0 }
}

fn ios_per_s(ios_per_s: u64) -> Rates {
    Rates { bytes_per_s: 0, ios_per_s }
}

fn group(index: usize) -> GroupId {
    GroupId::from_index(index)
}

/// Groups 1, 2, ... with these parents and weights.
fn table(groups: &[(usize, u32)]) -> Groups {
    let mut table = Groups::new(groups.len());
    for (index, (parent, weight)) in groups.iter().enumerate() {
        let id = table.create(group(*parent), GroupParams::weight(*weight)).expect("a slot for each");
        assert_eq!(id, group(index + 1), "slots go up");
    }
    table
}

/// What a bio is told, by the name it waits under.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    Go,
    Wait(u64),
    Full,
}

/// Who goes, or when to ask again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Next {
    Go(u64),
    Wait { until: u64 },
    Empty,
}

/// A table of groups and a limiter on it; every bio has a name.
struct Limits {
    groups: Groups,
    limiter: Limiter<u64>,
    names: u64,
}

/// Limits on groups 1, 2, ... with these parents, each of weight 100, with room for so many waiting bios in each.
fn tree(parents: &[usize], room: usize) -> Limits {
    on(table(&parents.iter().map(|parent| (*parent, 100)).collect::<Vec<_>>()), room)
}

fn on(groups: Groups, room: usize) -> Limits {
    Limits { limiter: Limiter::new(groups.slots(), room), groups, names: 0 }
}

impl Limits {
    fn ask(&mut self, group: GroupId, direction: Direction, bytes: u64, now: u64) -> Asked {
        self.names += 1;
        match self.limiter.ask(&self.groups, group, direction, bytes, self.names, now) {
            Answer::Go => Asked::Go,
            Answer::Held => Asked::Wait(self.names),
            Answer::Full => Asked::Full,
        }
    }

    fn charge(&mut self, group: GroupId, direction: Direction, bytes: u64, now: u64) {
        self.limiter.charge(&self.groups, group, direction, bytes, now);
    }

    fn set(&mut self, group: GroupId, direction: Direction, rates: Rates, now: u64) {
        self.limiter.set(&self.groups, group, direction, rates, now);
    }

    fn remove(&mut self, group: GroupId, now: u64) {
        self.groups.remove(group).expect("it is there");
        self.limiter.removed(&self.groups, group, now);
    }

    fn waiting(&self, group: GroupId) -> usize {
        self.limiter.waiting(group)
    }
}

/// The next who may go, in either direction.
fn next(limits: &mut Limits, now: u64) -> Next {
    loop {
        let mut round = limits.limiter.begin(&limits.groups, now);
        if let Some(name) = limits.limiter.next(&limits.groups, &mut round) {
            limits.limiter.settle(&limits.groups, &mut round, Entered::Yes);
            return Next::Go(name);
        }
        if !round.again {
            return limits.limiter.end(round).map_or(Next::Empty, |until| Next::Wait { until });
        }
    }
}

/// Somebody who always has `depth` bios on their way: (group, bytes of a bio).
struct Busy {
    of: Vec<(GroupId, u64)>,
    /// Whose bio waits under each name.
    names: Vec<usize>,
    now: u64,
    /// Bios that went: (when, whose).
    went: Vec<(u64, usize)>,
}

impl Busy {
    fn new(of: &[(usize, u64)]) -> Busy {
        let of = of.iter().map(|(g, bytes)| (group(*g), *bytes)).collect();
        Busy { of, names: Vec::new(), now: 0, went: Vec::new() }
    }

    fn ask(&mut self, limits: &mut Limits, who: usize) {
        let (group, bytes) = self.of[who];
        loop {
            match limits.ask(group, WRITE, bytes, self.now) {
                Asked::Go => self.went.push((self.now, who)),
                Asked::Wait(name) => {
                    self.names.resize(name as usize + 1, 0);
                    self.names[name as usize] = who;
                    return;
                }
                Asked::Full => panic!("room for every waiter"),
            }
        }
    }

    /// Everybody asks until they wait, and asks again whenever one of theirs goes; all before `end`. The host is `late_ns` late
    /// with each of its timers.
    fn run(&mut self, limits: &mut Limits, depth: usize, end: u64, late_ns: u64) {
        if self.names.is_empty() {
            for who in 0..self.of.len() {
                (0..depth).for_each(|_| self.ask(limits, who));
            }
        }
        loop {
            match next(limits, self.now) {
                Next::Go(name) => {
                    let who = self.names[name as usize];
                    self.went.push((self.now, who));
                    self.ask(limits, who);
                }
                Next::Wait { until } => {
                    assert!(until > self.now);
                    if until + late_ns >= end {
                        self.now = end;
                        return;
                    }
                    self.now = until + late_ns;
                }
                Next::Empty => panic!("somebody always waits"),
            }
        }
    }

    fn bios(&self, who: usize) -> u64 {
        self.went.iter().filter(|(_, w)| *w == who).count() as u64
    }

    fn bytes(&self, who: usize) -> u64 {
        self.bios(who) * self.of[who].1
    }
}
