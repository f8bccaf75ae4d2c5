//! Turns of groups, for elevators that keep one queue per group (noop, deadline, anticipatory): whose queue may dispatch,
//! and for how long. cfq takes its own turns and asks the tree between them.
//!
//! A turn lasts a slice, which begins once the device has none of the others' requests left, or with the group's first
//! completion if that is earlier. A group that runs dry within its slice is waited for, up to
//! [`Settings::group_idle_ns`](super::Settings) after its last completion, unless it is known to think longer. One that
//! runs dry just as its slice ends (a program that reads one block after the other always does) keeps its place among
//! those who want a turn for the same time: if the next turn is its own again, it is waited for then, and otherwise others
//! are served meanwhile and no time is lost. That is the letters' *wait busy*, paid only where it decides something.
//!
//! What a turn costs is what the ledger billed its group ([`super::ledger`]); with `fairness=0`, history's rule, what its
//! slice lasted at most.
//!
//! Source: the IO controller's version 10 (24 September 2009) as described in `docs/sources.md`.

use super::{Came, GroupId, Groups};
use crate::collections::{Id, Table};
use crate::elevator::think::ThinkTime;

/// What the device should do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// Serve this group's queue.
    Serve(GroupId),
    /// Keep the device for a group's next request; ask again then.
    WaitFor {
        /// Whose.
        group: GroupId,
        /// Until when at the latest, nanoseconds.
        until: u64,
    },
    /// Nothing before the next arrival or completion.
    Rest,
}

/// The turn that goes on.
#[derive(Clone, Copy, Debug)]
struct Turn {
    group: GroupId,
    /// When it began, or had the device to itself.
    since_ns: u64,
    /// Is it known to have the device to itself?
    alone: bool,
    /// When the slice began, and how long it is.
    slice: Option<(u64, u64)>,
}

/// Keeps the turns.
#[derive(Debug)]
pub(crate) struct Turns {
    turn: Option<Turn>,
    /// When the slice of the turn that goes on ends, and whose it is; 0 while it has none, or no turn goes on. The same as in `turn`, where
    /// each request finds it at a glance.
    sure_until_ns: u64,
    sure_of: GroupId,
    /// A group without requests that keeps its place for the time it is worth waiting for.
    reserved: Option<GroupId>,
    /// How long each group thinks between an answer and its next request.
    think: Table<ThinkTime>,
    /// The group whose turn ended, until the host asks.
    ended: Option<GroupId>,
}

impl Turns {
    /// For `slots` groups, the root included.
    pub(crate) fn new(slots: usize) -> Turns {
        Turns {
            turn: None,
            sure_until_ns: 0,
            sure_of: GroupId::ROOT,
            reserved: None,
            ended: None,
            think: Table::new(ThinkTime::NONE, slots),
        }
    }

    /// A new group in this slot.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.think[group.index()] = ThinkTime::NONE;
    }

    // ---- what happens to requests; the ledger has counted it already ----

    /// A request of `group` came in. Nothing is to be done if others of a busy group wait already.
    pub(crate) fn arrived(&mut self, groups: &mut Groups, group: GroupId, came: Came, now: u64) {
        if came.alone {
            self.came_back(groups, group, now);
        }
        if !came.busy {
            groups.set_busy(group, true);
            self.make_room(groups, group, now);
        }
    }

    /// Has the first request of `group` that waits, where the group takes part already, something to tell?
    #[inline(always)] // where each request of a group passes
    pub(crate) fn looks_at(&self, groups: &Groups, group: GroupId) -> bool {
        groups.ledger().account(group).in_flight == 0 || self.reserved == Some(group)
    }

    /// The first request of `group` that waits now.
    fn came_back(&mut self, groups: &Groups, group: GroupId, now: u64) {
        let account = groups.ledger().account(group);
        if account.in_flight == 0 {
            let pause_ns = if account.last_ns == 0 { 0 } else { now.saturating_sub(account.last_ns) };
            self.think[group.index()].add(pause_ns.min(2 * groups.settings().group_idle_ns));
        }
        if self.reserved == Some(group) {
            self.reserved = None;
        }
    }

    /// `group` wants the device again: a turn that began when there were fewer to share it gets shorter, or ends at once for
    /// a better class.
    fn make_room(&mut self, groups: &mut Groups, group: GroupId, now: u64) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.group != group) else { return };
        if groups.fair().outranks(group, turn.group) {
            return self.end_turn(groups, now);
        }
        if let Some((_, length_ns)) = &mut turn.slice
            && *length_ns > groups.settings().least_slice_ns()
        {
            let due_ns = groups.settings().slice_ns(groups.share(turn.group));
            *length_ns = due_ns.min(*length_ns);
            self.note_slice();
        }
    }

    /// The slice of the turn that goes on has begun, or changed.
    fn note_slice(&mut self) {
        let Some(Turn { group, slice: Some((since_ns, length_ns)), .. }) = self.turn else { return };
        (self.sure_until_ns, self.sure_of) = (since_ns.saturating_add(length_ns), group);
    }

    /// The last request of `group` that waited is on its way, or went up in another.
    #[inline]
    pub(crate) fn ran_dry(&mut self, groups: &mut Groups, group: GroupId) {
        let waited_for = self.turn.is_some_and(|turn| turn.group == group) || self.reserved == Some(group);
        if !waited_for {
            groups.set_busy(group, false);
        }
    }

    /// Does the turn that goes on have no slice yet? Then [`Turns::completed`] is to be told of completions.
    #[inline]
    pub(crate) fn awaits_slice(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.slice.is_none())
    }

    /// A request of `group` is done.
    pub(crate) fn completed(&mut self, groups: &Groups, group: GroupId, now: u64) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.slice.is_none()) else { return };
        if turn.group != group {
            turn.since_ns = now;
            turn.alone = groups.ledger().in_flight == groups.ledger().account(turn.group).in_flight;
            return;
        }
        let begun_ns = if turn.alone { turn.since_ns } else { now };
        turn.slice = Some((begun_ns, groups.settings().slice_ns(groups.share(group))));
        self.note_slice();
    }

    // ---- the decision ----

    /// The common case of [`Turns::select`]: the turn goes on, its group has requests, and it is neither sold out nor full.
    #[inline(always)] // with `ElevatorQueue::ask_in_turn`
    pub(crate) fn goes_on(&self, groups: &Groups, now: u64) -> Option<GroupId> {
        let group = self.sure_of;
        let account = groups.ledger().account(group);
        let goes_on = now < self.sure_until_ns && account.queued > 0 && !groups.has_goals();
        let has_room = account.in_flight == 0
            || groups.ledger().queued == account.queued && groups.settings().group_depth == 0;
        (goes_on && has_room).then_some(group)
    }

    /// Whose queue is to be served now.
    #[inline(always)] // with `ElevatorQueue::decide`
    pub(crate) fn select(&mut self, groups: &mut Groups, now: u64) -> Decision {
        if groups.ledger().queued == 0 {
            return Decision::Rest;
        }
        if let Some(turn) = self.turn {
            let group = turn.group;
            let over = now >= turn.end_ns(groups) || groups.is_claimed_from(group, now);
            if !over && groups.ledger().account(group).queued > 0 {
                if !turn.is_sold_out(groups, now) {
                    return self.send(groups, group);
                }
            } else if !over && let Some(decision) = self.wait_for(groups, &turn, now) {
                return decision;
            }
            self.end_turn(groups, now);
        }
        self.next_turn(groups, now)
    }

    /// It is `group`'s turn: may one more request of it go to the device?
    fn send(&self, groups: &Groups, group: GroupId) -> Decision {
        let depth_max = groups.settings().group_depth;
        let (ledger, account) = (groups.ledger(), groups.ledger().account(group));
        let others_want = ledger.queued > account.queued || ledger.in_flight > account.in_flight;
        let is_full = depth_max > 0 && others_want && u64::from(account.in_flight) >= depth_max;
        if is_full { Decision::Rest } else { Decision::Serve(group) }
    }

    /// Is it worth waiting for the group that has the turn, which has nothing queued?
    fn wait_for(&self, groups: &Groups, turn: &Turn, now: u64) -> Option<Decision> {
        let until_ns = self.worth_waiting_until(groups, turn.group, now)?;
        let until = groups.no_later_than_goals(until_ns.min(turn.end_ns(groups)), now);
        Some(Decision::WaitFor { group: turn.group, until })
    }

    /// Until when `group`, which has nothing queued, is worth waiting for: for its next request after the last answer, and
    /// before that for the answer, unless the device has completed nothing for a whole turn.
    fn worth_waiting_until(&self, groups: &Groups, group: GroupId, now: u64) -> Option<u64> {
        let settings = groups.settings();
        let patience_ns = settings.group_idle_ns;
        let thinks_long = self.think[group.index()].mean().is_some_and(|mean| mean > patience_ns);
        if patience_ns == 0 || thinks_long || groups.is_removed(group) || !groups.ledger().finds_slot(group) {
            return None;
        }
        let account = groups.ledger().account(group);
        let until_ns = if account.in_flight > 0 {
            // As long as the device gets on: its request may be behind others' there.
            groups.ledger().last_ns().max(account.last_ns).saturating_add(settings.group_slice_ns)
        } else {
            account.last_ns.saturating_add(patience_ns)
        };
        (account.last_ns > 0 && now < until_ns).then_some(until_ns)
    }

    /// When the turn that goes on ends at the latest.
    pub(crate) fn end_ns(&self, groups: &Groups) -> Option<u64> {
        self.turn.map(|turn| turn.end_ns(groups))
    }

    /// Another elevator: no turn goes on, no group keeps a place.
    pub(crate) fn restart(&mut self) {
        (self.turn, self.reserved, self.ended) = (None, None, None);
        self.sure_until_ns = 0;
    }

    fn next_turn(&mut self, groups: &mut Groups, now: u64) -> Decision {
        loop {
            let Some(group) = groups.next(now) else {
                debug_assert!(false, "requests are queued, but no group is busy");
                return Decision::Rest;
            };
            if groups.ledger().account(group).queued > 0 {
                return self.begin_turn(groups, group, now);
            }
            // The reserved one, of which there is one at most: this is not a loop of many rounds.
            match self.worth_waiting_until(groups, group, now) {
                Some(until) => {
                    return Decision::WaitFor { group, until: groups.no_later_than_goals(until, now) };
                }
                None => self.give_up_place(groups),
            }
        }
    }

    fn begin_turn(&mut self, groups: &mut Groups, group: GroupId, now: u64) -> Decision {
        let alone = groups.ledger().in_flight == groups.ledger().account(group).in_flight;
        if groups.settings().drains() && !alone {
            return Decision::Rest;
        }
        self.turn = Some(Turn { group, since_ns: now, alone, slice: None });
        self.send(groups, group)
    }

    /// Whose turn ended since the last call.
    #[inline]
    pub(crate) fn take_ended(&mut self) -> Option<GroupId> {
        self.ended.take()
    }

    /// The turn is over: what was billed since the last one is charged.
    pub(crate) fn end_turn(&mut self, groups: &mut Groups, now: u64) {
        let Some(turn) = self.turn.take() else { return };
        self.sure_until_ns = 0;
        let group = turn.group;
        self.ended = Some(group);
        groups.stop_waiting(now);
        let ran_dry = groups.ledger().account(group).queued == 0;
        let keeps_place = ran_dry && self.worth_waiting_until(groups, group, now).is_some();
        let leaves = ran_dry && !keeps_place;
        if groups.settings().charges_overrun() {
            groups.settle_turn(group, leaves);
        } else {
            groups.settle_turn_at(group, turn.lasted_ns(groups, now), leaves);
        }
        if keeps_place {
            self.reserve(groups, group);
        } else if self.reserved == Some(group) {
            self.reserved = None;
        }
    }

    /// A group that keeps a place without requests loses it when that is no longer worth it.
    fn give_up_place(&mut self, groups: &mut Groups) {
        if let Some(group) = self.reserved.take() {
            groups.set_busy(group, false);
        }
    }

    fn reserve(&mut self, groups: &mut Groups, group: GroupId) {
        if let Some(earlier) = self.reserved.replace(group).filter(|earlier| *earlier != group) {
            groups.set_busy(earlier, false);
        }
    }
}

impl Turn {
    /// Will what its group has in the device take the rest of its slice? Then it sends no more: a device that queues would do
    /// it after the slice. Where overruns are forgiven (history) this is not looked at.
    #[inline]
    fn is_sold_out(&self, groups: &Groups, now: u64) -> bool {
        let account = groups.ledger().account(self.group);
        if account.in_flight == 0 || groups.ledger().queued == account.queued {
            return false;
        }
        let left_ns = match self.slice {
            Some((since_ns, length_ns)) => since_ns.saturating_add(length_ns).saturating_sub(now),
            None => groups.settings().slice_ns(groups.share(self.group)),
        };
        groups.settings().charges_overrun() && groups.ledger().time_of(account.in_flight) >= left_ns
    }

    /// When it is over. Before its slice has begun: when the device has had nothing but its requests for a whole one.
    #[inline]
    fn end_ns(&self, groups: &Groups) -> u64 {
        match self.slice {
            Some((since_ns, length_ns)) => since_ns.saturating_add(length_ns),
            None => self.since_ns.saturating_add(groups.settings().group_slice_ns),
        }
    }

    /// What it costs where overruns are forgiven: the length of its slice at most, and no more than it is worth waiting for
    /// after the last answer.
    fn lasted_ns(&self, groups: &Groups, now: u64) -> u64 {
        let account = groups.ledger().account(self.group);
        let mut end_ns = now;
        if account.queued == 0 && account.in_flight == 0 {
            let dry_since_ns = account.last_ns.max(self.since_ns);
            end_ns = now.min(dry_since_ns.saturating_add(groups.settings().group_idle_ns));
        }
        match self.slice {
            Some((since_ns, length_ns)) => end_ns.saturating_sub(since_ns).min(length_ns),
            None => end_ns.saturating_sub(self.since_ns),
        }
    }
}
