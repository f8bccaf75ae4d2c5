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

use super::flow::FlowId;
use super::{Decision, Fair};
use crate::collections::Id;
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

impl Fair {
    /// How much less than its due a flow can have had at most.
    pub(super) fn lag_ns(&self, env: &Env<'_>) -> u64 {
        self.turn_ns(env).max(LAG_REQUESTS * self.model.longest_ns)
    }

    /// A request of `flow` came or went: is it pressing?
    #[inline]
    pub(super) fn press(&mut self, env: &Env<'_>, flow: FlowId) {
        let state = &self.flows[flow.index()];
        let (group, was) = (state.group.index(), state.pressing);
        // Who has had its due does not get behind by what comes after.
        if !was && state.urgent == 0 && state.requests.len() != 1 {
            return;
        }
        let presses = state.urgent > 0 || state.has_requests() && self.is_light(env, flow);
        if presses == was {
            return;
        }
        self.flows[flow.index()].pressing = presses;
        let list = &mut self.groups[group].pressing;
        match presses {
            true => list.push_back(&mut self.pressing, flow),
            false => list.remove(&mut self.pressing, flow),
        }
    }

    fn is_light(&self, env: &Env<'_>, flow: FlowId) -> bool {
        let round = &self.groups[self.flows[flow.index()].group.index()].round;
        // Where nobody has turns, it has to be behind by more than the round makes up for by itself.
        let behind_ns = if self.turn_ns(env) > 0 { 0 } else { self.model.longest_ns };
        round.is_light(&self.places, flow, behind_ns)
    }

    /// What to do for the first flow of `group` that may go through another's turn.
    pub(super) fn pressing_flow(&self, env: &Env<'_>, group: GroupId, in_device: u32) -> Option<Decision> {
        let state = &self.groups[group.index()];
        if state.pressing.is_empty() {
            return None;
        }
        let ahead_ns = (self.turn_ns(env) / AHEAD_TURNS).max(self.model.longest_ns);
        for flow in state.pressing.iter(&self.pressing).take(LOOKED_AT) {
            if self.is_light(env, flow) && self.flows[flow.index()].in_device == 0 {
                // It fills no device, and need not wait for what is there.
                return Some(Decision::Send(flow));
            }
            let is_urgent = self.flows[flow.index()].urgent > 0 && !self.flushed_of_late(env);
            if is_urgent && state.round.is_within(&self.places, flow, ahead_ns) {
                return Some(self.send(env, flow, in_device));
            }
        }
        None
    }
}
