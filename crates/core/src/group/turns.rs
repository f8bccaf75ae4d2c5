//! Turns of groups, for elevators that keep one queue per group (noop, deadline, anticipatory): whose queue may dispatch,
//! and for how long. cfq takes its own turns and asks the tree between them.
//!
//! A turn lasts a slice, which begins once the device has none of the others' requests left, or with the group's first
//! completion if that is earlier. A group that runs dry within its slice is waited for, up to
//! [`Settings::group_idle_ns`](super::Settings) after its last completion, unless it is known to think longer. One that
//! runs dry just as its slice ends (a program that reads one block after the other always does) keeps its place among
//! those who want a turn for the same time: if the next turn is its own again, it is waited for then, and otherwise others
//! are served meanwhile and no time is lost. That is the posts' *wait busy*, paid only where it decides something.
//!
//! With overruns charged a turn costs what is on its group's account, not what it lasted (see `occupancy`).
//!
//! Source: the IO controller's version 10 (24 September 2009) as described in `docs/sources.md`.

use alloc::vec::Vec;

use super::{GroupId, Groups, Used};
use crate::collections::Id;
use crate::elevator::think::ThinkTime;

/// What the device should do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    /// Serve this group's queue.
    Of(GroupId),
    /// Wait for a group's next request; ask again then.
    Idle {
        /// When at the latest, nanoseconds.
        until: u64,
    },
    /// Nothing before the next arrival or completion.
    Rest,
}

/// What is learnt about a group.
#[derive(Clone, Copy, Debug)]
struct Habit {
    think: ThinkTime,
    /// When a request of its was done last, nanoseconds.
    answered_ns: Option<u64>,
}

impl Habit {
    const UNKNOWN: Habit = Habit { think: ThinkTime::NONE, answered_ns: None };
}

/// The turn that goes on.
#[derive(Clone, Copy, Debug)]
struct Active {
    group: GroupId,
    /// When it began, or had the device to itself.
    since_ns: u64,
    /// Is it known to have the device to itself?
    alone: bool,
    /// When the slice began, and how long it is.
    slice: Option<(u64, u64)>,
    sent: Used,
}

/// Keeps the turns.
#[derive(Debug)]
pub(crate) struct Turns {
    active: Option<Active>,
    /// A group without requests that keeps its place for the time it is worth waiting for.
    reserved: Option<GroupId>,
    habits: Vec<Habit>,
    /// Whose turn ended, until somebody asks.
    ended: Option<GroupId>,
    /// Requests in the device, of all groups.
    in_flight: u32,
    queued: u32,
}

impl Turns {
    /// For `slots` groups, the root included.
    pub(crate) fn new(slots: usize) -> Turns {
        Turns {
            active: None,
            reserved: None,
            ended: None,
            habits: alloc::vec![Habit::UNKNOWN; slots],
            in_flight: 0,
            queued: 0,
        }
    }

    /// A new group in this slot.
    pub(crate) fn forget(&mut self, group: GroupId) {
        self.habits[group.index()] = Habit::UNKNOWN;
    }

    /// Count what is there already: requests with the elevator and in the device.
    pub(crate) fn start(&mut self, queued: u32, in_flight: u32) {
        (self.queued, self.in_flight) = (queued, in_flight);
        (self.active, self.reserved) = (None, None);
    }

    // ---- what happens to requests; `Groups` has counted it already ----

    /// A request of `group` came in.
    pub(crate) fn arrived(&mut self, groups: &mut Groups, group: GroupId, now: u64) {
        self.queued += 1;
        let habit = &mut self.habits[group.index()];
        if groups[group].queued() == 1 && groups[group].in_flight() == 0 {
            let pause_ns = habit.answered_ns.map_or(0, |at| now.saturating_sub(at));
            habit.think.add(pause_ns.min(2 * groups.settings().group_idle_ns));
            if self.active.is_some_and(|active| active.group == group) {
                groups.slot(group).stats.idle_ns += pause_ns;
            }
        }
        groups.set_busy(group, true);
        if self.reserved == Some(group) {
            self.reserved = None;
        }
        if self.active.is_some_and(|active| groups.fair().outranks(group, active.group)) {
            self.end_turn(groups, now);
        }
    }

    /// A request of `group` left the elevator.
    pub(crate) fn left(&mut self, groups: &mut Groups, group: GroupId) {
        self.queued -= 1;
        let waited_for =
            self.active.is_some_and(|active| active.group == group) || self.reserved == Some(group);
        if groups[group].queued() == 0 && !waited_for {
            groups.set_busy(group, false);
        }
    }

    /// A request of `group` went to the device.
    pub(crate) fn issued(&mut self, group: GroupId, sectors: u32) {
        self.in_flight += 1;
        if let Some(active) = self.active.as_mut().filter(|active| active.group == group) {
            active.sent.requests += 1;
            active.sent.sectors += u64::from(sectors);
        }
    }

    /// A request came back from the device, done under an elevator that takes its own turns, or undone.
    pub(crate) fn returned(&mut self) {
        self.in_flight -= 1;
    }

    /// A request of `group` is done.
    pub(crate) fn completed(&mut self, groups: &mut Groups, group: GroupId, now: u64) {
        self.in_flight -= 1;
        self.habits[group.index()].answered_ns = Some(now);
        if self.active.is_none_or(|active| active.group != group) {
            groups.charge_rest(group);
        }
        let Some(active) = self.active.as_mut().filter(|active| active.slice.is_none()) else { return };
        if active.group != group {
            active.since_ns = now;
            active.alone = self.in_flight == groups[active.group].in_flight();
            return;
        }
        let begun_ns = if active.alone { active.since_ns } else { now };
        active.slice = Some((begun_ns, groups.settings().slice_ns(groups.share(group))));
    }

    // ---- the decision ----

    /// Whose queue is to be served now.
    pub(crate) fn select(&mut self, groups: &mut Groups, now: u64) -> Turn {
        if self.queued == 0 {
            return Turn::Rest;
        }
        if let Some(active) = self.active {
            let group = active.group;
            let over = active.slice.is_some_and(|(since, length)| now.saturating_sub(since) >= length);
            if !over && groups[group].queued() > 0 {
                return self.send(groups, group);
            }
            if !over && let Some(turn) = self.wait_for(groups, group, now) {
                return turn;
            }
            self.end_turn(groups, now);
        }
        self.next_turn(groups, now)
    }

    /// It is `group`'s turn: may one more request of it go to the device?
    fn send(&self, groups: &Groups, group: GroupId) -> Turn {
        let depth_max = groups.settings().group_depth;
        let (queued, in_flight) = (groups[group].queued(), groups[group].in_flight());
        let others_want = self.queued > queued || self.in_flight > in_flight;
        let is_full = depth_max > 0 && others_want && u64::from(in_flight) >= depth_max;
        if is_full { Turn::Rest } else { Turn::Of(group) }
    }

    /// Is it worth waiting for `group`, which has nothing queued?
    fn wait_for(&self, groups: &Groups, group: GroupId, now: u64) -> Option<Turn> {
        let habit = &self.habits[group.index()];
        let patience_ns = groups.settings().group_idle_ns;
        let thinks_long = habit.think.mean().is_some_and(|mean| mean > patience_ns);
        if patience_ns == 0 || thinks_long || groups[group].removed {
            return None;
        }
        if groups[group].in_flight() > 0 {
            return Some(Turn::Rest);
        }
        let until = habit.answered_ns?.saturating_add(patience_ns);
        (now < until).then_some(Turn::Idle { until })
    }

    /// When the turn that goes on ends at the latest, if its slice has begun.
    pub(crate) fn slice_end_ns(&self) -> Option<u64> {
        let (since, length) = self.active?.slice?;
        Some(since.saturating_add(length))
    }

    fn next_turn(&mut self, groups: &mut Groups, now: u64) -> Turn {
        loop {
            let Some(group) = groups.pick() else {
                debug_assert!(false, "requests are queued, but no group is busy");
                return Turn::Rest;
            };
            if groups[group].queued() > 0 {
                return self.begin_turn(groups, group, now);
            }
            // The reserved one, of which there is one at most: this is not a loop of many rounds.
            if let Some(turn) = self.wait_for(groups, group, now) {
                return turn;
            }
            self.reserved = None;
            groups.set_busy(group, false);
        }
    }

    fn begin_turn(&mut self, groups: &mut Groups, group: GroupId, now: u64) -> Turn {
        if groups.settings().drains() && self.in_flight > groups[group].in_flight() {
            return Turn::Rest;
        }
        let alone = self.in_flight == groups[group].in_flight();
        groups.turn_of(group, now);
        self.active = Some(Active { group, since_ns: now, alone, slice: None, sent: Used::default() });
        self.send(groups, group)
    }

    /// Whose turn ended since the last call.
    pub(crate) fn take_ended(&mut self) -> Option<GroupId> {
        self.ended.take()
    }

    /// The turn is over: charge it.
    pub(crate) fn end_turn(&mut self, groups: &mut Groups, now: u64) {
        let Some(active) = self.active.take() else { return };
        let group = active.group;
        self.ended = Some(group);
        let ran_dry = groups[group].queued() == 0;
        let mut end_ns = now;
        if ran_dry && groups[group].in_flight() == 0 {
            // Nobody asked when its time was up.
            let idle_since_ns = self.habits[group.index()].answered_ns.unwrap_or(0).max(active.since_ns);
            end_ns = now.min(idle_since_ns.saturating_add(groups.settings().group_idle_ns));
            groups.slot(group).stats.idle_ns += end_ns.saturating_sub(idle_since_ns);
        }
        let used_ns = groups.turn_over(group, end_ns);
        let time_ns = match active.slice {
            _ if groups.settings().charges_overrun() => used_ns,
            Some((since, length)) => end_ns.saturating_sub(since).min(length),
            None => end_ns.saturating_sub(active.since_ns),
        };
        groups.charge(group, &Used { time_ns, ..active.sent });
        if ran_dry {
            if self.wait_for(groups, group, now).is_some() {
                self.reserve(groups, group);
            } else {
                groups.set_busy(group, false);
            }
        }
    }

    fn reserve(&mut self, groups: &mut Groups, group: GroupId) {
        if let Some(earlier) = self.reserved.replace(group).filter(|earlier| *earlier != group) {
            groups.set_busy(earlier, false);
        }
    }
}
