//! Request slots by group: no group can take all of them, and each has a congestion mark and waiters of its own.
//!
//! A group's own tasks have a pool for sync and one for async I/O with the rules of [`super::admission`], of
//! `nr_group_requests` each ([`crate::group::TUNABLES`]); `nr_requests` remains the ceiling for the device. (With
//! [`Admission::Tags`](super::Admission) a group's limit is for both classes together.)
//!
//! Two things can be short, so there are two kinds of waiters. A task refused because its group has its part is woken when a
//! request of the group is done. A task refused because the device has no slot left, or no more for its subtree of groups
//! ([`crate::group::Places`]), is woken when any request is done; groups that wait for that take turns, or those with most
//! requests would get most of the slots that become free.
//!
//! No task waits for ever: a group, or subtree, that has its part has requests, each of which wakes one of its waiters when it is
//! done, and the last one all of them (some may belong to another group by now, and so free no slot of this one). Likewise for
//! the device.
//!
//! Source: the IO controller's version 9 (20/23, per-group request descriptors), as described in `docs/sources.md`.

use super::admission::Refused;
use super::era::pools::{Pool, relieved};
use crate::collections::{Id, List, ListLinks, Table};
use crate::group::{Claim, GroupId};

/// Groups that are asked at a time for one that may have a slot; the next time others are.
const ASKED_MAX: usize = 32;

/// One group's part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    pub(super) pools: [Pool; 2],
    /// Who waits, `[async, sync]`: for a slot of the group's, and for one of the device's.
    waiting: [u32; 2],
    outside: [u32; 2],
    /// Wake-ups the host has not fetched yet.
    wakeups: [u32; 2],
}

/// The slots of all groups.
#[derive(Debug)]
pub(super) struct GroupSlots {
    shares: Table<Share>,
    /// Groups with bios outside, next one first; by class.
    queues: [List<GroupId>; 2],
    queue_links: [ListLinks<GroupId>; 2],
    /// Groups with wake-ups.
    awake: List<GroupId>,
    awake_links: ListLinks<GroupId>,
}

impl GroupSlots {
    /// For `slots` groups, the root included.
    pub(super) fn new(slots: usize) -> GroupSlots {
        GroupSlots {
            shares: Table::new(Share::default(), slots),
            queues: [List::new(); 2],
            queue_links: [ListLinks::new(slots), ListLinks::new(slots)],
            awake: List::new(),
            awake_links: ListLinks::new(slots),
        }
    }

    pub(super) fn share(&self, group: GroupId) -> &Share {
        &self.shares[group.index()]
    }

    pub(super) fn share_mut(&mut self, group: GroupId) -> &mut Share {
        &mut self.shares[group.index()]
    }

    /// One more waiter of `group`.
    pub(super) fn refuse(&mut self, group: GroupId, class: usize, refused: Refused) {
        let share = &mut self.shares[group.index()];
        match refused {
            Refused::ByGroup => share.waiting[class] += 1,
            Refused::ByDevice => {
                share.outside[class] += 1;
                if share.outside[class] == 1 {
                    self.queues[class].push_back(&mut self.queue_links[class], group);
                }
            }
        }
    }

    /// `group` has one slot more of its `nr` in pool number `pool`; those of `classes` wait for such.
    pub(super) fn leave(&mut self, group: GroupId, pool: usize, nr: u32, classes: core::ops::Range<usize>) {
        let slots = &mut self.shares[group.index()].pools[pool];
        let (has_room, is_empty) = (relieved(slots, nr), slots.taken == 0);
        for class in classes.filter(|_| has_room) {
            let waiting = self.shares[group.index()].waiting[class];
            let woken = if is_empty { waiting } else { waiting.min(1) };
            self.shares[group.index()].waiting[class] -= woken;
            self.wake(group, class, woken);
        }
    }

    /// The device has a slot more for `class`: the turn of the next group that may have it, those of subtrees that have few
    /// first. One that may not has others, and is asked again when one of those is given back.
    pub(super) fn admit(&mut self, class: usize, claim: &dyn Fn(GroupId) -> Claim) {
        let links = &mut self.queue_links[class];
        let (mut found, mut in_line) = (None, false);
        for _ in 0..ASKED_MAX.min(self.queues[class].len()) {
            let Some(group) = self.queues[class].pop_front(links) else { break };
            let may = claim(group);
            if may == Claim::First {
                (found, in_line) = (Some(group), false);
                break;
            }
            self.queues[class].push_back(links, group);
            if may == Claim::InTurn && found.is_none() {
                (found, in_line) = (Some(group), true);
            }
        }
        let Some(group) = found else { return };
        if in_line {
            self.queues[class].remove(links, group);
        }
        let links = &mut self.queue_links[class];
        let outside = &mut self.shares[group.index()].outside[class];
        *outside -= 1;
        if *outside > 0 {
            self.queues[class].push_back(links, group);
        }
        self.wake(group, class, 1);
    }

    /// A waiter of `group` was woken and did not need the slot.
    pub(super) fn pass_on(&mut self, group: GroupId, class: usize, claim: &dyn Fn(GroupId) -> Claim) {
        let waiting = &mut self.shares[group.index()].waiting[class];
        if *waiting > 0 {
            *waiting -= 1;
            self.wake(group, class, 1);
        }
        self.admit(class, claim);
    }

    /// So many waiters of `group` may try again.
    pub(super) fn wake(&mut self, group: GroupId, class: usize, count: u32) {
        let share = &mut self.shares[group.index()];
        if count > 0 && share.wakeups == [0; 2] {
            self.awake.push_back(&mut self.awake_links, group);
        }
        share.wakeups[class] += count;
    }

    /// A wake-up that was not fetched yet: whose waiter, and is it sync?
    pub(super) fn next_wakeup(&mut self) -> Option<(GroupId, bool)> {
        let group = self.awake.front()?;
        let wakeups = &mut self.shares[group.index()].wakeups;
        let class = usize::from(wakeups[0] == 0);
        wakeups[class] -= 1;
        if *wakeups == [0; 2] {
            self.awake.pop_front(&mut self.awake_links);
        }
        Some((group, class == 1))
    }
}
