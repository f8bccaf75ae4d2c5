//! A task that sends one request at a time has nothing queued when its request is done, and would get one request for each turn of
//! another flow's, however long. So on a device that serves one after the other a flow that sends much shorter ones, and answers
//! at once, keeps its place in the round: when it is next (it has had less than its due), it is waited for as long as it usually
//! thinks, which is next to nothing. It pays for that.

use super::flow::{Flow, FlowId};
use super::{Decision, Fair};
use crate::MS;
use crate::collections::Id;
use crate::elevator::Env;
use crate::group::GroupId;

/// A turn, or another one's request, is long for a flow whose own take at most one part in so many of it.
const LONG: u64 = 3;
/// Who thinks longer than one part in so many of what its requests take does not answer at once.
const AT_ONCE: u64 = 4;
/// Flows that keep their place at a time.
pub(super) const KEPT_MAX: u32 = 8;
/// Flows that are looked at, to find one that reads while writes are paced.
const LOOKED_AT: usize = 16;

impl Flow {
    /// Does it answer at once, with requests that take much shorter than `long_ns`, a turn or another one's request?
    #[inline]
    pub(super) fn sends_shorter_than(&self, long_ns: u64) -> bool {
        self.sync
            && !self.no_idle
            && LONG * self.cost_ns <= long_ns
            && self.think.mean().is_some_and(|mean| AT_ONCE * mean <= self.cost_ns)
    }
}

impl Fair {
    /// `flow`, the last of whose queued requests goes: does it keep its place?
    pub(super) fn keeps_place(&self, env: &Env<'_>, flow: FlowId) -> bool {
        let state = &self.flows[flow.index()];
        self.model.is_serial()
            && self.kept < KEPT_MAX
            && state.sends_shorter_than(self.turn_ns(env).max(self.model.longest_ns))
            && self.slots.context_of(flow).is_some_and(|context| env.contexts[context].alive)
    }

    /// `flow` has nothing queued, and is in its round all the same; or not so any more.
    #[inline]
    pub(super) fn keep(&mut self, flow: FlowId, kept: bool) {
        keep(&mut self.kept, &mut self.flows[flow.index()], kept);
    }

    /// Who is next in `group`; or what to do while it thinks.
    #[inline]
    pub(super) fn next_flow(&mut self, env: &Env<'_>, group: GroupId) -> Result<FlowId, Decision> {
        let mut looked_at = 0;
        loop {
            let round = &mut self.groups[group.index()].round;
            let Some(flow) = round.first(&mut self.rounds, &mut self.places) else {
                debug_assert!(false, "a group with requests has a flow with requests");
                return Err(Decision::Rest);
            };
            if self.flows[flow.index()].has_requests() {
                looked_at += 1;
                if looked_at <= LOOKED_AT && self.takes_longer_now(env, flow) {
                    continue;
                }
                return self.unless_paced(env, group, flow);
            }
            if self.in_device > 0 {
                return Err(Decision::Rest);
            }
            let in_vain = !env.rounds.finds_slot(group);
            if let Some(until) = self.thinks_until(flow).filter(|until| env.now < *until && !in_vain) {
                self.waits = Some((flow, env.now));
                return Err(self.wait_for(flow, until));
            }
            self.leave_round(flow);
        }
    }

    /// `flow`, which is next in `group`; while writes are paced, the next of the flows that read. Those take nothing from the writers then, and do
    /// not pay for it for long. Where groups take turns nothing is paced: the turn is one group's.
    #[inline]
    fn unless_paced(&mut self, env: &Env<'_>, group: GroupId, flow: FlowId) -> Result<FlowId, Decision> {
        match self.model.paced_until(env.now) {
            Some(until) if self.is_paced(env, flow) => self.past_paced(env, group, until),
            _ => Ok(self.unless_flushed(env, group, flow)),
        }
    }

    #[inline(never)]
    fn past_paced(&mut self, env: &Env<'_>, group: GroupId, until: u64) -> Result<FlowId, Decision> {
        let others = self.groups[group.index()].round.in_order(&self.rounds).take(LOOKED_AT);
        let reads = |flow: &FlowId| self.flows[flow.index()].has_requests() && !self.is_paced(env, *flow);
        let Some(flow) = { others }.find(reads) else { return Err(Decision::WaitFor { group, until }) };
        let lag_ns = self.lag_ns(env);
        let round = &mut self.groups[group.index()].round;
        round.bound_debt(&mut self.rounds, (flow, &mut self.places[flow.index()]), lag_ns);
        Ok(flow)
    }

    /// `flow`, which is next in `group`; if it would make the device flush again too soon, the next that had no more than its due.
    #[inline]
    fn unless_flushed(&self, env: &Env<'_>, group: GroupId, flow: FlowId) -> FlowId {
        if self.flows[flow.index()].urgent == 0 || !self.flushed_of_late(env) {
            return flow;
        }
        let round = &self.groups[group.index()].round;
        let others = round.in_order(&self.rounds).take(LOOKED_AT);
        let goes = |other: &FlowId| {
            let state = &self.flows[other.index()];
            state.has_requests() && state.urgent == 0 && round.is_within(&self.places[other.index()], 0)
        };
        { others }.find(goes).unwrap_or(flow)
    }

    /// Does `flow` send a write that no task waits for to become durable?
    fn is_paced(&self, env: &Env<'_>, flow: FlowId) -> bool {
        !env.rounds.in_use() && self.sends_write(env, flow)
    }

    /// The flow that was waited for pays for it.
    #[inline]
    pub(super) fn bill_wait(&mut self, now: u64) {
        let Some((flow, since_ns)) = self.waits.take() else { return };
        self.charge(flow, now.saturating_sub(since_ns), 0);
    }

    /// The next flow of `group` that has something queued: for those who cannot wait.
    pub(super) fn drained_flow(&mut self, group: GroupId) -> Option<FlowId> {
        loop {
            let flow = self.groups[group.index()].round.first(&mut self.rounds, &mut self.places)?;
            if self.flows[flow.index()].has_requests() {
                return Some(flow);
            }
            self.leave_round(flow);
        }
    }

    /// Until when `flow`, which has nothing queued, takes no longer than usual.
    fn thinks_until(&self, flow: FlowId) -> Option<u64> {
        let state = &self.flows[flow.index()];
        Some(state.last_done_ns.saturating_add(2 * state.think.mean()? + MS / 20))
    }
}

/// See [`Fair::keep`], of which `all` is the count.
#[inline]
pub(super) fn keep(all: &mut u32, flow: &mut Flow, kept: bool) {
    *all = *all + u32::from(kept) - u32::from(flow.kept);
    flow.kept = kept;
}
