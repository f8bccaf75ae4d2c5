//! What each group got in a run.

use super::{Cgroup, GroupClass, GroupTree};
use crate::result::RunResult;
use crate::stats::Latency;

/// What a group's requests cost and got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupFigures {
    /// The device's time, nanoseconds, as jobs' is counted: a busy stretch is the request's whose completion ends it.
    pub device_time_ns: u64,
    /// Requests done: reads, all others but flushes.
    pub requests: [u64; 2],
    /// Sectors of these, without discards.
    pub sectors: [u64; 2],
    /// Bios that joined a request.
    pub merged: u64,
    /// Bytes of pages that its tasks made dirty.
    pub dirtied_bytes: u64,
    /// Bytes of such pages that reached the device, whichever task sent them there.
    pub written_bytes: u64,
    /// From request slot to completion.
    pub latency: Latency,
    /// Longest time that it had nothing in the queue or the device while pages of its waited to be written, nanoseconds.
    pub gap_longest_ns: u64,
    /// Sum of these times, nanoseconds.
    pub gap_total_ns: u64,
}

impl GroupFigures {
    pub(super) fn add_gap(&mut self, ns: u64) {
        self.gap_longest_ns = self.gap_longest_ns.max(ns);
        self.gap_total_ns += ns;
    }

    /// Bytes moved, both directions.
    pub fn bytes(&self) -> u64 {
        512 * self.sectors.iter().sum::<u64>()
    }

    /// Add those of a child, or of another disk.
    pub(crate) fn add(&mut self, child: &GroupFigures) {
        self.device_time_ns += child.device_time_ns;
        for direction in 0..2 {
            self.requests[direction] += child.requests[direction];
            self.sectors[direction] += child.sectors[direction];
        }
        self.merged += child.merged;
        self.dirtied_bytes += child.dirtied_bytes;
        self.written_bytes += child.written_bytes;
        self.latency.merge(&child.latency);
        self.gap_longest_ns = self.gap_longest_ns.max(child.gap_longest_ns);
        self.gap_total_ns += child.gap_total_ns;
    }
}

/// What became of a group's latency goal: sync requests of the whole run, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GoalFigures {
    /// The goal, nanoseconds.
    pub goal_ns: u64,
    /// Done in time.
    pub met: u64,
    /// Too late, and the group had had its due.
    pub missed_above_due: u64,
    /// Too late although it had not: the device, or another group's turn, took too long.
    pub missed_within_due: u64,
}

impl GoalFigures {
    /// Part of the requests that were too late, 0 to 1.
    pub fn missed(&self) -> f64 {
        let missed = self.missed_above_due + self.missed_within_due;
        missed as f64 / (self.met + missed).max(1) as f64
    }
}

/// A group after a run.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupResult {
    /// `/vm1/db`; the root is `/`.
    pub path: String,
    /// Its parent's place among the results; `None` for the root.
    pub parent: Option<usize>,
    /// Weight beside its siblings; the root has none.
    pub weight: Option<u32>,
    /// Weight of its own tasks beside its child groups.
    pub leaf_weight: u32,
    /// Class beside its siblings.
    pub class: GroupClass,
    /// Percent of the device's service that was reserved for it.
    pub reserve: u32,
    /// Its latency goal, if it has one and the queue knows the groups.
    pub goal: Option<GoalFigures>,
    /// Requests sent in turns that it got by weight, by a reserve and by a goal; `None` unless a group has one of these.
    pub turns: Option<[u64; 3]>,
    /// Of its own tasks alone.
    pub own: GroupFigures,
    /// With all groups below it.
    pub all: GroupFigures,
    /// Its part of its parent's device time, 0 to 1. What is missing to 1 among siblings is the parent's own tasks'.
    pub share: f64,
    /// Time counted, nanoseconds; at least 1.
    pub counted_ns: u64,
    /// Of its own tasks, as the run went on, if that was recorded ([`crate::lab::Setup::explain`]).
    pub over_time: Option<GroupOverTime>,
}

/// What a group got as the run went on, from its start: nanoseconds in each interval; intervals after the last are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupOverTime {
    /// Length of an interval, nanoseconds; the same for all groups of a run.
    pub interval_ns: u64,
    /// The device worked for it.
    pub device_ns: Vec<u64>,
    /// It had bios in the queue or the device.
    pub asking_ns: Vec<u64>,
}

impl GroupResult {
    /// Bytes per second, reads and writes.
    pub fn bandwidth(&self) -> f64 {
        self.per_second(self.all.bytes())
    }

    /// So much over the time counted, per second.
    pub fn per_second(&self, amount: u64) -> f64 {
        amount as f64 * 1e9 / self.counted_ns as f64
    }
}

impl RunResult {
    /// A group's result by its path; leading and double slashes do not count.
    pub fn group(&self, path: &str) -> Option<&GroupResult> {
        let path = format!("/{}", super::clean(path));
        self.groups.iter().find(|group| group.path == path)
    }
}

/// The results of a tree whose groups have these figures by themselves.
pub(crate) fn results(
    tree: &GroupTree,
    own: impl Fn(Cgroup) -> GroupFigures,
    counted_ns: u64,
) -> Vec<GroupResult> {
    let result = |group: Cgroup| GroupResult {
        path: tree.shown(group),
        parent: tree.parent(group).map(Cgroup::index),
        weight: tree.spec(group).map(|spec| spec.weight),
        leaf_weight: tree.leaf_weight(group),
        class: tree.spec(group).map_or(GroupClass::Be, |spec| spec.class),
        reserve: tree.spec(group).map_or(0, |spec| spec.reserve),
        goal: None,
        turns: None,
        own: own(group),
        all: own(group),
        share: 1.0,
        counted_ns: counted_ns.max(1),
        over_time: None,
    };
    let mut results: Vec<GroupResult> = tree.numbers().map(result).collect();
    // Children stand behind their parents.
    for place in (0..results.len()).rev() {
        if let Some(parent) = results[place].parent {
            let child = results[place].all.clone();
            results[parent].all.add(&child);
        }
    }
    for place in 0..results.len() {
        if let Some(parent) = results[place].parent {
            let all = results[parent].all.device_time_ns;
            results[place].share = results[place].all.device_time_ns as f64 / all.max(1) as f64;
        }
    }
    results
}
