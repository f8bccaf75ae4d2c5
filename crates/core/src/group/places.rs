//! The places of a table (groups, contexts, request slots), given out so that no subtree of groups can keep the others from
//! theirs.
//!
//! A table has places that are given in order of arrival, as many as it was built for, and a *reserve*. Once the first are
//! gone a subtree may have at most three quarters of what it has and what is left to its parent's subtree, at each level; and
//! the first place of a subtree that has none is granted as long as there is one. So a tenant that asks for more and more takes
//! what the table was built for and is refused; a later group beside it, or beside any group above it, still finds room.
//! The root's own are bounded by nothing but the table.

use super::{DEPTH_MAX, GroupId, Groups};
use crate::collections::{Id, Table};

/// What a bio that waits for a place may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claim {
    /// None now.
    None,
    /// One, when it is its turn.
    InTurn,
    /// One, before those of subtrees that have many.
    First,
}

/// Who has how many.
#[derive(Debug)]
pub(crate) struct Places {
    first_come: u32,
    capacity: u32,
    /// By group: it and all below it.
    held: Table<u32>,
}

impl Places {
    /// So many places in order of arrival and so many in reserve, for a table of `slots` groups.
    pub(crate) fn new(slots: usize, first_come: usize, reserve: usize) -> Places {
        let number = |places: usize| u32::try_from(places).unwrap_or(u32::MAX / 2);
        Places {
            first_come: number(first_come),
            capacity: number(first_come).saturating_add(number(reserve)),
            held: Table::new(0, slots),
        }
    }

    /// How many `group` and all below it have.
    pub(crate) fn held(&self, group: GroupId) -> u32 {
        self.held[group.index()]
    }

    /// May `group` have one more?
    pub(crate) fn has_one_for(&self, groups: &Groups, group: GroupId) -> bool {
        let taken = self.held(GroupId::ROOT);
        let mut left = self.capacity.saturating_sub(taken);
        if taken < self.first_come || left == 0 {
            return left > 0;
        }
        // From the root down: what is left to a subtree follows from what is left to its parent's.
        let mut way = [GroupId::ROOT; DEPTH_MAX + 1];
        let mut levels = 0;
        for (place, at) in way.iter_mut().zip(groups.path(group)) {
            *place = at;
            levels += 1;
        }
        for at in way.iter().take(levels).rev().skip(1) {
            let own = self.held(*at);
            let most = (u64::from(left + own) * 3 / 4) as u32;
            if own > 0 && own >= most {
                return false;
            }
            left = most.saturating_sub(own);
        }
        true
    }

    /// The same for one who waits in line: is it before others, because its subtree below the root has no more than is left?
    pub(crate) fn claim(&self, groups: &Groups, group: GroupId) -> Claim {
        if !self.has_one_for(groups, group) {
            return Claim::None;
        }
        let left = self.capacity.saturating_sub(self.held(GroupId::ROOT));
        let own =
            groups.path(group).take_while(|at| *at != GroupId::ROOT).last().map_or(0, |top| self.held(top));
        if own <= left { Claim::First } else { Claim::InTurn }
    }

    /// One more or less for `group` itself; the caller goes up the tree.
    pub(crate) fn change(&mut self, group: GroupId, change: i32) {
        let held = &mut self.held[group.index()];
        *held = held.saturating_add_signed(change);
    }

    /// One more for `group` and everything above it.
    pub(crate) fn take(&mut self, groups: &Groups, group: GroupId) {
        groups.path(group).for_each(|at| self.change(at, 1));
    }

    /// One less.
    pub(crate) fn give_back(&mut self, groups: &Groups, group: GroupId) {
        groups.path(group).for_each(|at| self.change(at, -1));
    }
}
