//! Latency goals: who goes first because it would be late.
//!
//! A group with a goal wants each sync request of its own tasks done within that time. The time of a request begins when it comes to a
//! group that has none waiting, or when the group's last one before it went to the device: what waits behind the group's own queue is not
//! late by others. The *deadline* of a group is the goal after that.
//!
//! When a deadline is near, the group *claims* the next turn, the earliest deadline first. The claim holds only while the group, and every
//! group above it, has had no more than its due by weight, or less than its reserve ([`super::fair`]): it moves service forward, and adds
//! none. What it gets is charged as any turn is, so that a group that claims too often is above its due before long, and then has no
//! claim. So the promise of the tree holds with any goals: no group gets more than its due and one turn, and a goal
//! that does not fit into the due is missed. That is counted ([`super::GoalStats`]), with the reason.
//!
//! Work: O(log n) a request; a choice looks at [`LOOKED_AT`] deadlines. A claim that does not hold is put off by the goal's length, so
//! that those of groups above their due do not hide the others.

use super::fair::Fair;
use super::{GoalStats, GroupId};
use crate::collections::{Id, Table, Tree, TreeLinks};

/// Claims that are looked at.
const LOOKED_AT: usize = 16;

/// What is kept of a group.
#[derive(Clone, Copy, Debug)]
struct Seat {
    /// 0: it has none.
    goal_ns: u64,
    /// In the tree of deadlines?
    filed: bool,
    /// When a claim of it did not hold last, nanoseconds.
    refused_ns: u64,
}

/// The goals of all groups.
#[derive(Debug)]
pub(super) struct Goals {
    /// Is there one, or was there?
    any: bool,
    seats: Table<Seat>,
    /// Groups with a goal and requests that wait, by deadline.
    deadlines: Tree<GroupId>,
    links: TreeLinks<GroupId, u64>,
}

impl Goals {
    pub(super) fn new(slots: usize) -> Goals {
        let none = Seat { goal_ns: 0, filed: false, refused_ns: 0 };
        Goals {
            any: false,
            seats: Table::new(none, slots),
            deadlines: Tree::new(),
            links: TreeLinks::new(slots),
        }
    }

    /// Has a group a goal? Until then nothing below need be asked.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.any
    }

    /// A new group in this slot.
    pub(super) fn enter(&mut self, group: GroupId, goal_ns: u64) {
        self.set(group, 0);
        self.set(group, goal_ns);
    }

    /// Another goal, for the requests that come from now on, and those that wait if [`Goals::arrived`] says so.
    pub(super) fn set(&mut self, group: GroupId, goal_ns: u64) {
        self.any |= goal_ns > 0;
        self.seats[group.index()].goal_ns = goal_ns;
        if goal_ns == 0 {
            self.unfile(group);
        }
    }

    /// A sync request of `group` waits.
    pub(super) fn arrived(&mut self, group: GroupId, now: u64) {
        let seat = &self.seats[group.index()];
        if seat.goal_ns > 0 && !seat.filed {
            self.file(group, now);
        }
    }

    /// A request of `group` waits no more, and `left` sync ones still do; the next one's time begins at `sent_ns`, if it was sent.
    pub(super) fn gone(&mut self, group: GroupId, sync: bool, left: u16, sent_ns: Option<u64>) {
        if self.seats[group.index()].goal_ns == 0 || !sync && left > 0 {
            return;
        }
        if left == 0 {
            self.unfile(group);
        } else if let Some(now) = sent_ns {
            self.unfile(group);
            self.file(group, now);
        }
    }

    fn file(&mut self, group: GroupId, from_ns: u64) {
        let seat = &mut self.seats[group.index()];
        seat.filed = true;
        self.deadlines.insert(&mut self.links, group, from_ns.saturating_add(seat.goal_ns));
    }

    fn unfile(&mut self, group: GroupId) {
        if core::mem::take(&mut self.seats[group.index()].filed) {
            self.deadlines.remove(&mut self.links, group);
        }
    }

    /// The earliest deadline, nanoseconds.
    pub(super) fn first_deadline_ns(&self) -> Option<u64> {
        self.deadlines.first().map(|group| self.links.key(group))
    }

    /// Of those whose deadline is before `by_ns` and whose claim holds, the one with the earliest.
    pub(super) fn first(&mut self, fair: &Fair, by_ns: u64) -> Option<GroupId> {
        for _ in 0..LOOKED_AT {
            let group = self.deadlines.first().filter(|group| self.links.key(*group) <= by_ns)?;
            if fair.is_within_due(group) {
                return Some(group);
            }
            self.seats[group.index()].refused_ns = by_ns;
            self.unfile(group);
            self.file(group, by_ns);
        }
        None
    }

    /// A sync request of `group` that came at `from_ns` is done.
    pub(super) fn judge(&self, group: GroupId, from_ns: u64, now: u64, stats: &mut GoalStats) {
        let seat = &self.seats[group.index()];
        if seat.goal_ns == 0 {
            return;
        }
        let count = match now.saturating_sub(from_ns) <= seat.goal_ns {
            true => &mut stats.met,
            false if seat.refused_ns >= from_ns => &mut stats.missed_above_due,
            false => &mut stats.missed_within_due,
        };
        *count += 1;
    }
}
