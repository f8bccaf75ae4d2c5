//! The limits against their own words: exact, bounded, in order, fair, changeable, never stuck.

mod exact;
mod order;
mod properties;

use std::vec::Vec;

use super::*;
use crate::SECOND;
use crate::group::{GroupParams, Groups};

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

/// Limits on groups 1, 2, ... with these parents, each of weight 100, with room for so many waiting bios in each.
fn tree(parents: &[usize], room: usize) -> Limits {
    on(&table(&parents.iter().map(|parent| (*parent, 100)).collect::<Vec<_>>()), room)
}

fn on(table: &Groups, room: usize) -> Limits {
    let mut limits = Limits::new(table.slots(), room);
    limits.follow(table, 0);
    limits
}

/// Whoever may go in either direction.
fn next(limits: &mut Limits, now: u64) -> Next {
    let read = limits.next(READ, now);
    if matches!(read, Next::Go(_)) {
        return read;
    }
    match (read, limits.next(WRITE, now)) {
        (_, write @ Next::Go(_)) => write,
        (Next::Wait { until: a }, Next::Wait { until: b }) => Next::Wait { until: a.min(b) },
        (Next::Wait { until }, Next::Empty) | (Next::Empty, Next::Wait { until }) => Next::Wait { until },
        _ => Next::Empty,
    }
}

/// Somebody who always has `depth` bios on their way: (group, bytes of a bio).
struct Busy {
    of: Vec<(GroupId, u64)>,
    /// Who waits under each name.
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
                Answer::Go => self.went.push((self.now, who)),
                Answer::Wait(name) => {
                    self.names.resize(self.names.len().max(name.index() + 1), 0);
                    self.names[name.index()] = who;
                    return;
                }
                Answer::Full => panic!("room for every waiter"),
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
                    let who = self.names[name.index()];
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
