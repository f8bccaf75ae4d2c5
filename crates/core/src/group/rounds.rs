//! What an elevator that takes its own turns (cfq) is given of the groups: whose round goes on, and nothing else.

use super::{GroupId, Groups};

/// The tree of groups, for an elevator with a round of its own in each of them.
#[derive(Debug)]
pub struct Rounds<'a> {
    groups: &'a mut Groups,
}

impl<'a> Rounds<'a> {
    /// Of these groups.
    pub fn new(groups: &'a mut Groups) -> Rounds<'a> {
        Rounds { groups }
    }

    /// Were there ever others than the root?
    #[inline]
    pub fn in_use(&self) -> bool {
        self.groups.in_use
    }

    /// The group of this name; see [`Groups::known`].
    #[inline]
    pub(crate) fn known(&self, group: GroupId) -> GroupId {
        self.groups.known(group)
    }

    /// Whose child `group` is; the root is its own parent.
    pub(crate) fn parent(&self, group: GroupId) -> GroupId {
        self.groups[group].parent()
    }

    /// The weight of `group` among its siblings.
    pub(crate) fn weight(&self, group: GroupId) -> u32 {
        self.groups[group].params().weight
    }

    /// Counts the groups that had this slot.
    pub(crate) fn epoch(&self, group: GroupId) -> u32 {
        self.groups.epoch(group)
    }

    /// The group whose round goes on; `None` if there is none, or while the device has others' requests and one group is to have it to
    /// itself.
    pub(crate) fn next(&mut self, now: u64) -> Option<GroupId> {
        let group = self.groups.next(now)?;
        let others = self.groups.ledger.in_flight - self.groups.in_flight(group);
        (others == 0 || !self.groups.settings.drains()).then_some(group)
    }

    /// Does `group` have something to do?
    pub(crate) fn set_busy(&mut self, group: GroupId, busy: bool) {
        self.groups.set_busy(group, busy);
    }

    /// Is nothing queued but what `group` pays for, in full, and has no group a reserve or a latency goal?
    #[inline]
    pub(crate) fn is_alone(&self, group: GroupId) -> bool {
        let Groups { ledger, settings, promises, .. } = &*self.groups;
        ledger.queued == ledger.account(group).queued && !promises && settings.charges_overrun()
    }

    /// Nothing goes out before `until_ns` for the sake of `group`'s next request.
    pub(crate) fn wait_for(&mut self, group: GroupId, now: u64, until_ns: u64) {
        self.groups.wait(group, now, until_ns);
    }

    /// A turn of `group` is over that served requests of `home` (most often the same) and lasted `time_ns` of its slice: it
    /// pays what was billed since the last one, or, where overruns are forgiven, that.
    pub(crate) fn turn_over(&mut self, group: GroupId, home: GroupId, time_ns: u64, now: u64) {
        self.groups.stop_waiting(now);
        if self.groups.settings.charges_overrun() {
            self.groups.settle_turn_for(group, home, false);
        } else {
            self.groups.settle_turn_at(group, time_ns, false);
        }
    }

    /// Every bill reaches the tree, also of that for the wait that went on.
    pub(crate) fn settle(&mut self, now: u64) {
        self.groups.stop_waiting(now);
        self.groups.settle();
    }

    /// Is what overran a slice charged?
    pub(crate) fn charges_overrun(&self) -> bool {
        self.groups.settings.charges_overrun()
    }

    /// The share of the device that is due to `group`, in 2^-20.
    pub(crate) fn share(&self, group: GroupId) -> u64 {
        self.groups.share(group)
    }

    /// How long a turn of `group` may be beside those that are busy now, nanoseconds; `None` where overruns are forgiven
    /// (history: an elevator's slices are its own).
    pub(crate) fn longest_turn_ns(&self, group: GroupId) -> Option<u64> {
        let settings = self.groups.settings;
        settings.charges_overrun().then(|| settings.slice_ns(self.groups.share(group)))
    }

    /// Will what `group` has in the device take `left_ns` of it, while others want it? Then it sends no more in this turn. Not
    /// asked where overruns are forgiven.
    #[inline]
    pub(crate) fn is_sold_out(&self, group: GroupId, left_ns: u64) -> bool {
        let (ledger, account) = (&self.groups.ledger, self.groups.ledger.account(group));
        account.in_flight > 0
            && ledger.queued > account.queued
            && self.groups.settings.charges_overrun()
            && ledger.time_of(account.in_flight) >= left_ns
    }

    /// Does the turn of `group` end because another group would miss its latency goal?
    #[inline]
    pub(crate) fn is_claimed_from(&mut self, group: GroupId, now: u64) -> bool {
        self.groups.is_claimed_from(group, now)
    }

    /// `until_ns`, or before that the time when a group has to go to keep its latency goal.
    #[inline]
    pub(crate) fn no_later_than_goals(&self, until_ns: u64, now: u64) -> u64 {
        self.groups.no_later_than_goals(until_ns, now)
    }

    /// Can a request of `group`, which has none queued, come before the device gets or answers another group's? Not while the others
    /// have all request slots.
    #[inline]
    pub(crate) fn finds_slot(&self, group: GroupId) -> bool {
        !self.in_use() || self.groups.ledger.finds_slot(group)
    }

    /// How long a group that ran dry is worth waiting for, nanoseconds.
    pub(crate) fn idle_ns(&self) -> u64 {
        self.groups.settings.group_idle_ns
    }

    /// Is `one` served before `other` because of its class?
    pub(crate) fn outranks(&self, one: GroupId, other: GroupId) -> bool {
        self.groups.fair.outranks(one, other)
    }

    /// Has `one` had no more than `other`, by weight, where they compete?
    pub(crate) fn is_behind(&self, one: GroupId, other: GroupId) -> bool {
        self.groups.fair.is_behind(one, other)
    }
}
