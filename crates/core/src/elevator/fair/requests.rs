//! Requests come, grow, go, and come back undone.

use super::device::Sent;
use super::flow::NEAR;
use super::flow::{self, FlowId};
use super::{Fair, MERGED_MAX};
use crate::collections::Id;
use crate::elevator::Env;
use crate::request::RequestId;

impl Fair {
    pub(super) fn join_round(&mut self, env: &Env<'_>, flow: FlowId) {
        let ioprio = self.slots.ioprio(env.contexts, flow);
        self.keep(flow, false);
        if self.places[flow.index()].busy {
            return;
        }
        let state = &self.flows[flow.index()];
        let turn_ns = self.turn_ns(env);
        let cost_ns = state.cost_ns;
        self.places[flow.index()].quantum_ns =
            if state.is_stream() && turn_ns > 0 { turn_ns } else { cost_ns };
        let lag_ns = self.lag_ns(env);
        let round = &mut self.groups[state.group.index()].round;
        if let Some(turn) = self.turn.filter(|turn| round.is_alone(&self.places, *turn)) {
            // Until now it was in nobody's way.
            self.turn_start = self.places[turn.index()].start;
        }
        round.join(&mut self.rounds, &mut self.places, flow, ioprio, lag_ns);
    }

    pub(super) fn leave_round(&mut self, flow: FlowId) {
        self.keep(flow, false);
        let round = &mut self.groups[self.flows[flow.index()].group.index()].round;
        round.leave(&mut self.rounds, &mut self.places, flow);
    }

    /// May a request become so large by merging? One that takes long keeps others waiting, who have nothing of that where streams
    /// have no turns.
    pub(super) fn may_grow(&self, env: &Env<'_>, sectors: u32) -> bool {
        sectors <= MERGED_MAX || !self.model.is_shared(env.now) || self.turn_ns(env) > 0
    }

    /// `rq` is queued no more.
    pub(super) fn take_out(&mut self, env: &Env<'_>, rq: RequestId) -> FlowId {
        let id = self.take_from_flow(env, rq);
        if !self.flows[id.index()].has_requests() && self.turn != Some(id) {
            match self.keeps_place(env, id) {
                true => self.keep(id, true),
                false => self.leave_round(id),
            }
        }
        self.press(env, id);
        id
    }

    fn take_from_flow(&mut self, env: &Env<'_>, rq: RequestId) -> FlowId {
        let held = &mut self.held[rq.index()];
        held.queued = false;
        let id = held.flow;
        let flow = &mut self.flows[id.index()];
        let group = &mut self.groups[flow.group.index()];
        flow.remove(&mut self.links, rq, &env.requests[rq]);
        group.queued -= 1;
        self.queued -= 1;
        id
    }

    /// `rq`, which was sent, did not go to the device: it comes again, after a flush.
    #[cold]
    pub(super) fn taken_aside(&mut self, env: &Env<'_>, rq: RequestId) {
        let held = self.held[rq.index()];
        self.in_device -= 1;
        self.model.left(&env.requests[rq]);
        let flow = &mut self.flows[held.flow.index()];
        flow.in_device -= 1;
        let group = flow.group;
        let round = &mut self.groups[group.index()].round;
        round.charge(&mut self.rounds, &mut self.places, held.flow, 0, held.charged_ns);
        self.answered(env, group);
    }

    /// The next request of `flow` goes.
    pub(super) fn take(&mut self, env: &mut Env<'_>, id: FlowId) -> Option<RequestId> {
        let flow = &mut self.flows[id.index()];
        let (group, cost_ns, stream) = (flow.group, flow.cost_ns, flow.is_stream());
        let rq = flow.next(&self.links, env.now)?;
        let request = &env.requests[rq];
        let (streams, step) = match self.last_sent {
            Some((last, end, step)) if last == id && request.sector.abs_diff(end) < NEAR => {
                (true, step.saturating_add(1))
            }
            _ => (stream, 0),
        };
        let return_ns = self.model.saving_ns(env.device);
        if step == 0 && return_ns > 0 {
            let lag_ns = self.lag_ns(env);
            self.places[id.index()].disturbs(return_ns, lag_ns);
        }
        self.take_from_flow(env, rq);
        let wants_more = self.flows[id.index()].has_requests() || self.turn == Some(id);
        let kept = !wants_more && self.keeps_place(env, id);
        let round = &mut self.groups[group.index()].round;
        match wants_more || kept {
            true => round.charge(&mut self.rounds, &mut self.places, id, cost_ns, 0),
            false => round.served_last(&mut self.rounds, &mut self.places, id, cost_ns),
        }
        self.keep(id, kept);
        self.press(env, id);
        self.flows[id.index()].sent(request);
        let held = &mut self.held[rq.index()];
        let number = self.model.sent(request, env.now);
        held.charged_ns = cost_ns;
        held.sent = Sent { number, step, streams: streams && !request.is_write() };
        if flow::is_urgent(request) {
            self.flush.wrote(id, request);
        }
        self.last_sent = Some((id, request.end(), step));
        self.in_device += 1;
        self.sent_for(env, group, cost_ns);
        Some(rq)
    }
}
