//! Groups: the core's tree says whose round goes on, the core's ledger what it cost.
//!
//! A *shift* of a group is a stream's turn in it, or a single request. When it is over the tree learns what was billed since,
//! and then says who is next. On a device that holds many requests, what is still there is paid in advance; one that serves one
//! after the other holds so few that their bills can be waited for. (An advance is an estimate by the mean request, and what
//! is too much of it lets hundreds of small ones pass before it is used up.) A shift ends early when a flow of a
//! higher class becomes busy, or a sync write arrives in a group that has had less.
//!
//! **A group that has all that is queued** keeps its shift for [`ALONE_NS`] at a time: to charge the tree after each request, to
//! leave it and to come back would change nothing, and costs more than all else. Once another group has a request, what was billed
//! until then is charged before the tree is asked.
//!
//! **A group that runs dry** keeps its place while it is worth waiting for (`group_idle`, and its think time), on a device that
//! serves one after the other; when it is next, nothing goes out before its request comes or the wait is over, and it pays for
//! that. On a device that serves many at once waiting costs others more than it gives, and the group leaves; so it does where
//! [`DRY_MAX`] others keep a place already.

use super::flow::{Flow, FlowId};
use super::round::Round;
use super::{Decision, Fair};
use crate::MS;
use crate::collections::{Id, List};
use crate::elevator::Env;
use crate::elevator::think::ThinkTime;
use crate::group::GroupId;

/// Groups that keep their place without requests: so many are looked at, at most, to find one that has some.
const DRY_MAX: u32 = 8;
/// So long a group that has all that is queued is served before the tree is charged: no longer than the shortest turn that the tree
/// reckons with, so that its deadlines are what they would be.
const ALONE_NS: u64 = MS;
/// The device idles for a group whose answer is to come while the device answers any group, or this long.
const ANSWER_NS: u64 = 100 * MS;

/// What is kept of a group.
#[derive(Clone, Copy)]
pub(super) struct GroupState {
    pub(super) round: Round,
    /// Flows that may go through another's turn.
    pub(super) pressing: List<FlowId>,
    pub(super) queued: u32,
    in_device: u32,
    /// Without requests, and in the tree all the same.
    is_dry: bool,
    think: ThinkTime,
    /// When a request of its went out or was done last; 0 before the first.
    last_ns: u64,
}

impl GroupState {
    pub(super) const NEW: GroupState = GroupState {
        round: Round::NEW,
        pressing: List::new(),
        queued: 0,
        in_device: 0,
        is_dry: false,
        think: ThinkTime::NONE,
        last_ns: 0,
    };
}

impl GroupState {
    fn is_in_tree(&self) -> bool {
        self.queued > 0 || self.is_dry
    }

    /// A request of it goes to the device.
    #[inline]
    pub(super) fn sent(&mut self, now: u64) {
        self.in_device += 1;
        self.last_ns = now;
    }

    /// A request of it is done.
    #[inline]
    pub(super) fn answered(&mut self, now: u64) {
        self.in_device -= 1;
        self.last_ns = now;
    }
}

/// A group that is being served.
#[derive(Clone, Copy)]
pub(super) struct Shift {
    group: GroupId,
    since_ns: u64,
    /// What was sent in it will cost so much, nanoseconds.
    sent_ns: u64,
    /// A group came that it makes way for.
    makes_way: bool,
}

impl Fair {
    // ---- whose requests ----

    /// The group to be served, or why none is. Without groups no tree is asked.
    #[inline]
    pub(super) fn choose_group(&mut self, env: &mut Env<'_>) -> Result<GroupId, Decision> {
        if !env.rounds.in_use() {
            return Ok(GroupId::ROOT);
        }
        if let Some(shift) = self.shift {
            if self.goes_on_alone(env, &shift) || self.shift_lasts(env, &shift) {
                return Ok(shift.group);
            }
            self.end_shift(env);
        }
        // It may have been busy before there were groups.
        self.settle(env, GroupId::ROOT);
        for _ in 0..=self.dry {
            let Some(group) = env.rounds.next(env.now) else { return Err(Decision::Rest) };
            if self.groups[group.index()].queued > 0 {
                self.shift = Some(Shift { group, since_ns: env.now, sent_ns: 0, makes_way: false });
                return Ok(group);
            }
            if let Some(until) = self.group_worth_waiting_until(env, group) {
                return Err(Decision::WaitFor { group, until });
            }
            self.give_place_up(env, group);
        }
        debug_assert!(false, "requests are queued, but no group is busy");
        Err(Decision::Rest)
    }

    /// Has its group, where no stream has a turn, all that is queued, and something of that is the elevator's?
    #[inline]
    fn goes_on_alone(&self, env: &Env<'_>, shift: &Shift) -> bool {
        self.groups[shift.group.index()].queued > 0
            && env.now.saturating_sub(shift.since_ns) < ALONE_NS
            && self.is_alone(env, shift.group)
    }

    /// Is nothing else queued, nor waited for?
    #[inline]
    fn is_alone(&self, env: &Env<'_>, group: GroupId) -> bool {
        self.dry == 0 && self.turn.is_none() && env.rounds.is_alone(group)
    }

    /// A shift goes on while a stream's turn does: no longer than the group's part of a round.
    fn shift_lasts(&self, env: &mut Env<'_>, shift: &Shift) -> bool {
        if env.rounds.is_claimed_from(shift.group, env.now) {
            return false;
        }
        let Some(flow) = self.turn.filter(|flow| self.flows[flow.index()].group == shift.group) else {
            return false;
        };
        let lasted_ns = env.now.saturating_sub(shift.since_ns);
        let left_ns = match env.rounds.longest_turn_ns(shift.group) {
            Some(length_ns) => length_ns.saturating_sub(lasted_ns),
            None => u64::MAX,
        };
        !shift.makes_way
            && left_ns > 0
            && !env.rounds.is_sold_out(shift.group, left_ns)
            && self.turn_lasts(env, flow)
            && (self.flows[flow.index()].has_requests()
                || self.groups[shift.group.index()].is_in_tree()
                    && self.worth_waiting_until(env, flow).is_some())
    }

    /// The tree is charged the cost of the shift.
    fn end_shift(&mut self, env: &mut Env<'_>) {
        let Some(shift) = self.shift.take() else { return };
        self.end_turn();
        let lasted_ns = env.now.saturating_sub(shift.since_ns).max(shift.sent_ns);
        if self.model.is_serial() && env.rounds.charges_overrun() {
            env.rounds.settle(env.now);
        } else {
            env.rounds.turn_over(shift.group, shift.group, lasted_ns, env.now);
        }
        if self.groups[shift.group.index()].queued == 0 {
            self.ran_dry(env, shift.group);
        }
    }

    // ---- who takes part ----

    /// Let the tree know whether `group` has something to do.
    pub(super) fn settle(&self, env: &mut Env<'_>, group: GroupId) {
        if env.rounds.in_use() {
            env.rounds.set_busy(group, self.groups[group.index()].is_in_tree());
        }
    }

    /// A request of `flow` came in, and `group` counts it: where there are groups.
    #[inline]
    pub(super) fn arrived_for(&mut self, env: &mut Env<'_>, group: GroupId, flow: FlowId) {
        let state = &mut self.groups[group.index()];
        if state.queued == 1 {
            if state.in_device == 0 && state.last_ns > 0 {
                let pause_ns = env.now.saturating_sub(state.last_ns);
                state.think.add(pause_ns.min(2 * env.rounds.idle_ns()));
            }
            if core::mem::take(&mut state.is_dry) {
                self.dry -= 1;
            }
            self.settle(env, group);
        }
        let is_urgent = self.flows[flow.index()].urgent > 0;
        if let Some(shift) = self.shift.as_mut().filter(|shift| shift.group != group) {
            shift.makes_way |= env.rounds.outranks(group, shift.group)
                || is_urgent && env.rounds.is_behind(group, shift.group);
        }
    }

    /// A request of `group` goes to the device, and will cost about so much; was it the last one queued?
    pub(super) fn sent_for(&mut self, env: &mut Env<'_>, group: GroupId, was_last: bool, cost_ns: u64) {
        if let Some(shift) = &mut self.shift {
            shift.sent_ns = shift.sent_ns.saturating_add(cost_ns);
        }
        if !was_last {
            return;
        }
        // It may be back before another group comes; if not it leaves when its shift ends.
        if self.shift.is_none_or(|shift| shift.group != group) || !self.is_alone(env, group) {
            self.ran_dry(env, group);
        }
    }

    /// `group` may have nothing queued any more: does it keep its place?
    pub(super) fn ran_dry(&mut self, env: &mut Env<'_>, group: GroupId) {
        let state = &self.groups[group.index()];
        if !env.rounds.in_use() || state.queued > 0 || state.is_dry {
            return;
        }
        // A group that is waited for stays in the tree: it is billed for that, and has to be there.
        let streams = self.turn.filter(|flow| self.flows[flow.index()].group == group);
        let stream_is = streams.is_some_and(|flow| self.worth_waiting_until(env, flow).is_some());
        if self.dry < DRY_MAX && (stream_is || self.group_worth_waiting_until(env, group).is_some()) {
            self.groups[group.index()].is_dry = true;
            self.dry += 1;
        }
        self.settle(env, group);
    }

    fn give_place_up(&mut self, env: &mut Env<'_>, group: GroupId) {
        env.rounds.settle(env.now);
        if core::mem::take(&mut self.groups[group.index()].is_dry) {
            self.dry -= 1;
        }
        self.settle(env, group);
    }

    /// Until when `group`, which has nothing queued, is worth waiting for: for its next request after the last answer, and
    /// before that for the answer.
    fn group_worth_waiting_until(&self, env: &Env<'_>, group: GroupId) -> Option<u64> {
        let state = &self.groups[group.index()];
        let patience_ns = env.rounds.idle_ns();
        let thinks_long = state.think.mean().is_some_and(|mean| mean > patience_ns);
        let is_removed = env.rounds.known(group) != group;
        let in_vain = thinks_long || is_removed || !env.rounds.finds_slot(group);
        if patience_ns == 0 || in_vain || !self.model.is_serial() {
            return None;
        }
        let until = match state.in_device {
            0 => state.last_ns.saturating_add(patience_ns),
            _ => state.last_ns.max(self.model.last_done_ns()).saturating_add(ANSWER_NS),
        };
        (state.last_ns > 0 && env.now < until).then_some(until)
    }

    /// A new group in this slot: nothing is known of its tasks. The clock of its round goes on, by which flows are placed that
    /// had to do with its predecessor.
    pub(super) fn start_group(&mut self, group: GroupId) {
        let state = &mut self.groups[group.index()];
        (state.think, state.last_ns) = (ThinkTime::NONE, 0);
        for flow in [self.slots.async_of(group), self.slots.strangers_of(group)] {
            let sync = self.flows[flow.index()].sync;
            if !self.flows[flow.index()].has_requests() && self.turn != Some(flow) {
                self.flows[flow.index()] = Flow::shared(group, sync);
                self.places[flow.index()].start = 0;
            }
        }
    }
}
