//! Turns of streams, where going on saves what coming back costs; waits for their next request; who pays for a flush.

use super::Decision;
use super::flow::FlowId;
use super::{Fair, Goal};
use crate::collections::Id;
use crate::elevator::Env;
use crate::request::{Flags, Request};

/// Flushes lie apart by so many returns at least, if the writer is not light: other flows are served in between.
const FLUSHES_APART: u64 = 5;

/// Who pays for the flush in the device: it passes the elevator by.
#[derive(Clone, Copy)]
pub(super) struct FlushBill {
    since_ns: Option<u64>,
    /// When the last one was over.
    ended_ns: u64,
    /// The last two flows that wrote what is to become durable: the journal's, and that of the task it works for.
    writers: [Option<FlowId>; 2],
    /// Which of them is the journal's.
    journal: Option<FlowId>,
}

impl FlushBill {
    pub(super) const NONE: FlushBill =
        FlushBill { since_ns: None, ended_ns: 0, writers: [None; 2], journal: None };

    /// `request` of `flow` went, a write that a task waits for.
    pub(super) fn wrote(&mut self, flow: FlowId, request: &Request) {
        if self.writers[0] != Some(flow) {
            self.writers = [Some(flow), self.writers[0]];
        }
        if request.flags.contains(Flags::META) {
            self.journal = Some(flow);
        }
    }

    /// The part of a flush of `cost_ns` that each of `flow`s pays: half for the journal and half for the task, or all for the task.
    fn parts(&self, cost_ns: u64, goal: Goal) -> [(Option<FlowId>, u64); 2] {
        let half_ns = cost_ns / 2;
        match (goal, self.writers) {
            (Goal::Shares, [Some(one), Some(other)]) if self.journal == Some(one) => {
                [(Some(other), cost_ns), (None, 0)]
            }
            (Goal::Shares, [Some(one), Some(other)]) if self.journal == Some(other) => {
                [(Some(one), cost_ns), (None, 0)]
            }
            (Goal::Shares, [Some(one), None]) => [(Some(one), cost_ns), (None, 0)],
            (_, [one, other]) => [(one, half_ns), (other, half_ns)],
        }
    }
}

impl Fair {
    /// Is the device flushing its cache? Once it is done, the last two that wrote share what it cost, and what the return to where the
    /// device was before will cost others. (With groups the ledger bills them besides.)
    #[inline]
    pub(super) fn bill_flush(&mut self, env: &Env<'_>) -> bool {
        let flushing = env.device.flushes > 0;
        match self.flush.since_ns {
            None if flushing => self.flush.since_ns = Some(env.now),
            Some(since_ns) if !flushing => {
                // Wherever it went, it is elsewhere now.
                self.last_sent = None;
                let return_ns = self.model.saving_ns(env.device);
                let lag_ns = self.lag_ns(env);
                let cost_ns = env.now.saturating_sub(since_ns).saturating_add(return_ns);
                let parts = self.flush.parts(cost_ns, self.goal());
                self.flush = FlushBill { ended_ns: env.now, ..FlushBill::NONE };
                for (flow, part_ns) in parts {
                    let Some(flow) = flow else { continue };
                    self.places[flow.index()].disturbs(return_ns, lag_ns);
                    self.charge(flow, part_ns, 0);
                }
            }
            _ => {}
        }
        flushing
    }

    /// Would a flush now come so soon after the last one that the device does little but return from them? Not where returns cost nothing.
    #[inline]
    pub(super) fn flushed_of_late(&self, env: &Env<'_>) -> bool {
        let apart_ns = FLUSHES_APART * self.model.saving_ns(env.device);
        env.now < self.flush.ended_ns.saturating_add(apart_ns) && self.flush.ended_ns > 0
    }

    #[inline]
    pub(super) fn turn_ns(&self, env: &Env<'_>) -> u64 {
        self.model.turn_ns(env.device, self.settings.turn_max_ns)
    }

    /// Does `flow`, which is next by its deadline, begin a turn of more than twice what it took when that was set? Its deadline is set anew
    /// then. (When turns begin to pay, every stream would get its first before a flow of short requests.)
    #[inline]
    pub(super) fn takes_longer_now(&mut self, env: &Env<'_>, flow: FlowId) -> bool {
        let turn_ns = self.turn_ns(env);
        let (state, place) = (&self.flows[flow.index()], &mut self.places[flow.index()]);
        if !state.is_stream() || turn_ns <= 2 * place.quantum_ns {
            return false;
        }
        let round = &mut self.groups[state.group.index()].round;
        round.takes(&mut self.rounds, (flow, place), turn_ns);
        true
    }

    /// `flow` is next: is it to have the device for more than one request?
    #[inline]
    pub(super) fn begin_turn(&mut self, env: &Env<'_>, flow: FlowId) {
        let turn_ns = self.turn_ns(env);
        let (state, place) = (&self.flows[flow.index()], &mut self.places[flow.index()]);
        // Where groups take turns, a turn would be the whole group's.
        let begins = turn_ns > 0 && (state.is_stream() || state.is_deep() && !env.rounds.in_use());
        place.quantum_ns = if begins { turn_ns } else { state.cost_ns };
        if begins {
            (self.turn, self.turn_start) = (Some(flow), place.start);
        }
    }

    /// A turn is over when the flow was served for the length of a turn, or is no stream and has nothing queued or in the device (a task
    /// that keeps four requests there sends the next when one is done), or a flow of a higher class waits.
    pub(super) fn turn_lasts(&self, env: &Env<'_>, flow: FlowId) -> bool {
        let state = &self.flows[flow.index()];
        let round = &self.groups[state.group.index()].round;
        let place = &self.places[flow.index()];
        (state.is_stream() || state.has_requests() || state.in_device > 0)
            && !round.is_outranked(place)
            && (place.served_since(self.turn_start) < self.turn_ns(env) || round.is_alone(place))
    }

    /// Until when the stream that has the turn, which has nothing queued, is worth waiting for: no longer than the wait saves,
    /// and not at all if it is known to think longer.
    pub(super) fn worth_waiting_until(&self, env: &Env<'_>, flow: FlowId) -> Option<u64> {
        let state = &self.flows[flow.index()];
        let saving_ns = self.model.saving_ns(env.device);
        let alive = self.slots.context_of(flow).is_some_and(|context| env.contexts[context].alive);
        let thinks_long = state.think.mean().is_some_and(|mean| mean > saving_ns);
        if saving_ns == 0 || self.settings.turn_max_ns == 0 || !alive || thinks_long || state.no_idle {
            return None;
        }
        if state.in_device > 0 {
            return Some(u64::MAX);
        }
        let until = state.last_done_ns.saturating_add(saving_ns);
        (env.now < until && env.rounds.finds_slot(state.group)).then_some(until)
    }

    pub(super) fn wait_for(&mut self, flow: FlowId, until: u64) -> Decision {
        if until == u64::MAX {
            return Decision::Rest;
        }
        self.waiting_for = self.slots.context_of(flow);
        Decision::WaitFor { group: self.flows[flow.index()].group, until }
    }

    pub(super) fn end_turn(&mut self) {
        let Some(flow) = self.turn.take() else { return };
        if !self.flows[flow.index()].has_requests() {
            self.leave_round(flow);
        }
    }
}
