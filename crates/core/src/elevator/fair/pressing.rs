//! Who goes through another flow's turn.
//!
//! * **A light flow**: one that has had no more than its due, even if it pays for what it costs the stream that has the turn to come
//!   back. So what a task pays for going at once is its own due, however many such tasks there are. One that wants
//!   more than that has used it up soon, and takes its place in the round.
//! * **A flow with a write that makes something durable**, an fsync's or the journal's, if it is not ahead of its due by more than
//!   a part of a turn: what it was served out of turn it waits for later.
//!
//! Where turns do not pay, a flow is light that is behind by more than the longest request: it need not wait for others' requests in
//! the device.

use super::device::Model;
use super::flow::{Flow, FlowId};
use super::groups::GroupState;
use super::round::Place;
use super::{Decision, Fair};
use crate::collections::{Id, ListLinks};
use crate::elevator::Env;
use crate::group::GroupId;

/// A write that a task waits for goes through another one's turn while its flow is ahead of its due by no more than this part
/// of a turn.
const AHEAD_TURNS: u64 = 4;
/// Credit that a flow keeps when it leaves: a turn, or, where turns do not pay, as many of the longest requests of late; so that
/// who sends one at a time is made up for what it waited while one of those was served.
const LAG_REQUESTS: u64 = 2;
/// Pressing flows that are looked at.
const LOOKED_AT: usize = 4;

impl Model {
    /// See [`Fair::lag_ns`].
    #[inline]
    pub(super) fn lag_ns(&self, turn_ns: u64) -> u64 {
        turn_ns.max(LAG_REQUESTS * self.longest_ns)
    }

    /// By how much a light flow is behind: where no flow has turns, by more than the round makes up for by itself.
    #[inline]
    pub(super) fn behind_ns(&self, turn_ns: u64) -> u64 {
        if turn_ns > 0 { 0 } else { self.longest_ns }
    }
}

impl Flow {
    /// May it press now, or has it pressed?
    #[inline]
    pub(super) fn may_press(&self) -> bool {
        self.pressing || self.urgent > 0 || self.requests.len() == 1
    }
}

impl GroupState {
    /// A request of `flow` came or went, which [may press](Flow::may_press).
    #[inline(always)] // for its two callers
    pub(super) fn press(
        &mut self,
        links: &mut ListLinks<FlowId>,
        (flow, state, place): (FlowId, &mut Flow, &Place),
        behind_ns: u64,
    ) {
        let presses = state.urgent > 0 || state.has_requests() && self.round.is_light(place, behind_ns);
        if presses == state.pressing {
            return;
        }
        state.pressing = presses;
        match presses {
            true => self.pressing.push_back(links, flow),
            false => self.pressing.remove(links, flow),
        }
    }
}

impl Fair {
    /// How much less than its due a flow can have had at most.
    #[inline]
    pub(super) fn lag_ns(&self, env: &Env<'_>) -> u64 {
        self.model.lag_ns(self.turn_ns(env))
    }

    /// A request of `flow` came or went: is it pressing?
    #[inline]
    pub(super) fn press(&mut self, env: &Env<'_>, flow: FlowId) {
        let turn_ns = self.turn_ns(env);
        let (state, place) = (&mut self.flows[flow.index()], &self.places[flow.index()]);
        // Who has had its due does not get behind by what comes after.
        if state.may_press() {
            let behind_ns = self.model.behind_ns(turn_ns);
            self.groups[state.group.index()].press(&mut self.pressing, (flow, state, place), behind_ns);
        }
    }

    fn is_light(&self, env: &Env<'_>, flow: FlowId) -> bool {
        let round = &self.groups[self.flows[flow.index()].group.index()].round;
        let behind_ns = self.model.behind_ns(self.turn_ns(env));
        round.is_light(&self.places[flow.index()], behind_ns)
    }

    /// What to do for the first flow of `group` that may go through another's turn.
    #[inline]
    pub(super) fn pressing_flow(&self, env: &Env<'_>, group: GroupId, in_device: u32) -> Option<Decision> {
        match self.groups[group.index()].pressing.is_empty() {
            true => None,
            false => self.one_that_presses(env, group, in_device),
        }
    }

    #[inline(never)]
    fn one_that_presses(&self, env: &Env<'_>, group: GroupId, in_device: u32) -> Option<Decision> {
        let state = &self.groups[group.index()];
        let ahead_ns = (self.turn_ns(env) / AHEAD_TURNS).max(self.model.longest_ns);
        for flow in state.pressing.iter(&self.pressing).take(LOOKED_AT) {
            if self.is_light(env, flow) && self.flows[flow.index()].in_device == 0 {
                // It fills no device, and need not wait for what is there.
                return Some(Decision::Send(flow));
            }
            let is_urgent = self.flows[flow.index()].urgent > 0 && !self.flushed_of_late(env);
            if is_urgent && state.round.is_within(&self.places[flow.index()], ahead_ns) {
                return Some(self.send(env, flow, in_device));
            }
        }
        None
    }
}
