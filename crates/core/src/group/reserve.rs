//! Reserves: the share of the device that a group gets before weights divide the rest.
//!
//! A reserve is a percentage of all service of the device, in the ledger's currency (`charge`): device time by default. It is a part
//! of what was served, not so many requests or bytes a second: how many of those a device does depends on what it is asked for, so that
//! a promise in them could not be checked when it is made, while parts of the service can be kept whenever they add up to no more than
//! all of it.
//!
//! Each group with a reserve has a second virtual start beside the one of its weight. It advances by `charge * 100 / percent`; its
//! now is the service of all groups together. A group whose start is before now is *short* of its reserve: of its class it is served
//! before those that are not, and what it is charged then counts towards its reserve and not towards its weight. So over any time in
//! which it stays busy it gets its reserve, at most one turn late, and its part by weight of what all reserves leave. (Two clocks of
//! which each service moves one: Gulati, Merchant and Varman, mClock, 2010.)
//!
//! As with weights sleeping gains nothing, and debt stays: a group that comes back starts now, or where it was if that is later.
//!
//! Work: O(log n) a charge; a choice looks at [`LOOKED_AT`] groups that are short.

use super::GroupId;
use super::fair::{CHARGE_MAX_NS, Weight};
use crate::MS;
use crate::collections::{Id, Table, Tree, TreeLinks};
use crate::context::IoClass;

/// All of the device.
const WHOLE: u32 = 100;
/// What all reserves may come to: who has none is not to starve.
pub(super) const MOST: u32 = 95;
/// Groups that are short of their reserve, the longest ones first, among which the earliest deadline is looked for.
const LOOKED_AT: usize = 16;
/// A turn costs this at least, in the deadlines of reserves.
const TURN_LEAST_NS: u64 = MS;

/// What is kept of a group.
#[derive(Clone, Copy, Debug)]
struct Seat {
    percent: u32,
    divisor: Weight,
    start: u64,
    /// In its parent's tree, of this class?
    filed: Option<IoClass>,
}

/// The reserves of all groups.
#[derive(Debug)]
pub(super) struct Reserves {
    /// Is there one, or was there?
    any: bool,
    /// What all groups were charged, nanoseconds. (It stops after 584 years.)
    served_ns: u64,
    seats: Table<Seat>,
    /// By parent and class: the busy children that have a reserve, by start.
    busy: Table<[Tree<GroupId>; 3]>,
    /// By parent: what those have in all, percent.
    busy_percent: Table<u32>,
    links: TreeLinks<GroupId, u64>,
}

impl Reserves {
    pub(super) fn new(slots: usize) -> Reserves {
        let none = Seat { percent: 0, divisor: Weight::of(1), start: 0, filed: None };
        Reserves {
            any: false,
            served_ns: 0,
            seats: Table::new(none, slots),
            busy: Table::new([Tree::new(); 3], slots),
            busy_percent: Table::new(0, slots),
            links: TreeLinks::new(slots),
        }
    }

    /// Has a group a reserve? Until then nothing below need be asked.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.any
    }

    /// A new group in this slot, which is not busy.
    pub(super) fn enter(&mut self, group: GroupId, percent: u32) {
        self.any |= percent > 0;
        self.seats[group.index()] =
            Seat { percent, divisor: Weight::of(percent), start: self.served_ns, filed: None };
    }

    /// Another reserve for `group`, which is in no tree ([`Reserves::leave`]). Debt is kept, and paid off at the new rate.
    pub(super) fn set(&mut self, group: GroupId, percent: u32) {
        self.any |= percent > 0;
        let served_ns = self.served_ns;
        let seat = &mut self.seats[group.index()];
        debug_assert!(seat.filed.is_none());
        if seat.percent > 0 && percent > 0 && seat.percent != percent {
            let debt = u128::from(seat.start.saturating_sub(served_ns)) * u128::from(seat.percent);
            let debt = u64::try_from(debt / u128::from(percent)).unwrap_or(u64::MAX);
            seat.start = served_ns.saturating_add(debt);
        }
        (seat.percent, seat.divisor) = (percent, Weight::of(percent));
    }

    /// `group`, a child of `parent`, has something to do.
    pub(super) fn join(&mut self, parent: GroupId, group: GroupId, class: IoClass) {
        let seat = &mut self.seats[group.index()];
        if seat.percent == 0 || seat.filed.is_some() {
            return;
        }
        (seat.start, seat.filed) = (seat.start.max(self.served_ns), Some(class));
        self.busy[parent.index()][class as usize].insert(&mut self.links, group, seat.start);
        self.busy_percent[parent.index()] += seat.percent;
    }

    /// It has nothing to do any more, or is about to be changed.
    pub(super) fn leave(&mut self, parent: GroupId, group: GroupId) {
        let seat = &mut self.seats[group.index()];
        if let Some(class) = seat.filed.take() {
            self.busy[parent.index()][class as usize].remove(&mut self.links, group);
            self.busy_percent[parent.index()] -= seat.percent;
        }
    }

    /// Has `group` had less than its reserve while it was busy?
    #[inline]
    pub(super) fn is_short(&self, group: GroupId) -> bool {
        let seat = &self.seats[group.index()];
        seat.filed.is_some() && seat.start < self.served_ns
    }

    /// `group`, a child of `parent`, was served to this amount: does it count towards its reserve?
    pub(super) fn charge(&mut self, parent: GroupId, group: GroupId, charge_ns: u64) -> bool {
        let served_ns = self.served_ns;
        let seat = &mut self.seats[group.index()];
        if seat.percent == 0 || seat.start >= served_ns {
            return false;
        }
        let advance = seat.divisor.divide(charge_ns.min(CHARGE_MAX_NS) * u64::from(WHOLE)).0;
        // One that has left has no credit: this is of requests it had in the device.
        let from = if seat.filed.is_some() { seat.start } else { served_ns };
        seat.start = from.saturating_add(advance);
        if let Some(class) = seat.filed {
            let tree = &mut self.busy[parent.index()][class as usize];
            tree.remove(&mut self.links, group);
            tree.insert(&mut self.links, group, seat.start);
        }
        true
    }

    /// A group was charged this much: now goes on for all.
    pub(super) fn served(&mut self, charge_ns: u64) {
        self.served_ns = self.served_ns.saturating_add(charge_ns);
    }

    /// The child of `node`, of this class, that is short of its reserve and has the earliest deadline; `usual_ns` says what a turn of
    /// one costs.
    pub(super) fn first(
        &self,
        node: GroupId,
        class: IoClass,
        usual_ns: impl Fn(GroupId) -> u64,
    ) -> Option<GroupId> {
        let tree = &self.busy[node.index()][class as usize];
        let deadline = |group: &GroupId| {
            let seat = &self.seats[group.index()];
            let turn_ns = usual_ns(*group).clamp(TURN_LEAST_NS, CHARGE_MAX_NS);
            seat.start.saturating_add(seat.divisor.divide(turn_ns * u64::from(WHOLE)).0)
        };
        let short = tree.iter(&self.links).take_while(|group| self.is_short(*group));
        short.take(LOOKED_AT).min_by_key(deadline)
    }

    /// The reserve of `group` and those of the busy children of `parent`, its own included, in 2^-20 of the device.
    pub(super) fn parts(&self, parent: GroupId, group: Option<GroupId>) -> (i64, i64) {
        let part = |percent: u32| (i64::from(percent) << 20) / i64::from(WHOLE);
        let all = self.busy_percent[parent.index()];
        let Some(seat) = group.map(|group| &self.seats[group.index()]) else { return (0, part(all)) };
        let own = seat.percent;
        (part(own), part(if seat.filed.is_some() { all } else { all + own }))
    }
}
