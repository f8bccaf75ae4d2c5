//! Requests come, grow, go, and come back undone.

use super::device::Sent;
use super::flow::NEAR;
use super::flow::{self, FlowId};
use super::{Fair, MERGED_MAX, dues};
use crate::collections::Id;
use crate::elevator::Env;
use crate::group::GroupId;
use crate::request::{Request, RequestId};

impl Fair {
    /// The flow in this slot is another task's or group's now.
    #[cold]
    pub(super) fn renew(&mut self, env: &Env<'_>, flow: FlowId, request: &Request) {
        if self.turn == Some(flow) {
            self.end_turn();
        }
        self.leave_round(flow);
        self.flows[flow.index()].renew(request.payer, env.contexts[request.context].epoch);
        self.places[flow.index()].start = 0;
    }

    /// `flow`, which got a request, is in its round from now on. Answers with its group.
    #[inline(always)] // for `insert`
    pub(super) fn take_part(&mut self, env: &Env<'_>, id: FlowId) -> GroupId {
        let turn_ns = self.turn_ns(env);
        self.disturb_lone_turn(id);
        let (flow, place) = (&mut self.flows[id.index()], &mut self.places[id.index()]);
        let group_id = flow.group;
        let group = &mut self.groups[group_id.index()];
        group.queued += 1;
        dues::keep(&mut self.kept, flow, false);
        if !place.busy {
            let ioprio = self.slots.ioprio(env.contexts, id);
            place.quantum_ns = flow.quantum_ns(turn_ns);
            group.round.join(&mut self.rounds, (id, place), ioprio, self.model.lag_ns(turn_ns));
        }
        if flow.may_press() {
            group.press(&mut self.pressing, (id, flow, place), self.model.behind_ns(turn_ns));
        }
        group_id
    }

    /// `flow` has another priority.
    #[cold]
    pub(super) fn rejoin(&mut self, env: &Env<'_>, id: FlowId) {
        if !self.places[id.index()].busy {
            return;
        }
        self.leave_round(id);
        let turn_ns = self.turn_ns(env);
        self.disturb_lone_turn(id);
        let (flow, place) = (&self.flows[id.index()], &mut self.places[id.index()]);
        let ioprio = self.slots.ioprio(env.contexts, id);
        place.quantum_ns = flow.quantum_ns(turn_ns);
        let round = &mut self.groups[flow.group.index()].round;
        round.join(&mut self.rounds, (id, place), ioprio, self.model.lag_ns(turn_ns));
    }

    /// `flow` is about to join its round, unless it is in it: until now the turn that goes on there may have been in no other flow's way.
    #[inline]
    fn disturb_lone_turn(&mut self, flow: FlowId) {
        let Some(turn) = self.turn else { return };
        let round = &self.groups[self.flows[flow.index()].group.index()].round;
        let place = &self.places[turn.index()];
        if !self.places[flow.index()].busy && round.is_alone(place) {
            self.turn_start = place.start;
        }
    }

    pub(super) fn leave_round(&mut self, flow: FlowId) {
        let (state, place) = (&mut self.flows[flow.index()], &mut self.places[flow.index()]);
        dues::keep(&mut self.kept, state, false);
        self.groups[state.group.index()].round.leave(&mut self.rounds, (flow, place));
    }

    /// `flow` has cost `more_ns` more than was charged so far, or `less_ns` less.
    pub(super) fn charge(&mut self, flow: FlowId, more_ns: u64, less_ns: u64) {
        let (state, place) = (&self.flows[flow.index()], &mut self.places[flow.index()]);
        let round = &mut self.groups[state.group.index()].round;
        round.charge(&mut self.rounds, (flow, place), more_ns, less_ns);
    }

    /// May a request become so large by merging? One that takes long keeps others waiting, who have nothing of that where streams
    /// have no turns.
    pub(super) fn may_grow(&self, env: &Env<'_>, writes: bool, sectors: u32) -> bool {
        sectors <= MERGED_MAX
            || !self.model.is_shared(env.now)
            || self.turn_ns(env) > 0
            || self.model.may_be_parallel(env.device) && sectors <= self.model.part_sectors(writes)
    }

    /// `rq` is queued no more.
    pub(super) fn take_out(&mut self, env: &Env<'_>, rq: RequestId) -> FlowId {
        let held = &mut self.held[rq.index()];
        held.queued = false;
        let id = held.flow;
        let flow = &mut self.flows[id.index()];
        flow.remove(&mut self.links, rq, &env.requests[rq]);
        self.groups[flow.group.index()].queued -= 1;
        self.queued -= 1;
        if !self.flows[id.index()].has_requests() && self.turn != Some(id) {
            match self.keeps_place(env, id) {
                true => self.keep(id, true),
                false => self.leave_round(id),
            }
        }
        self.press(env, id);
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
        self.charge(held.flow, 0, held.charged_ns);
        self.groups[group.index()].answered(env.now);
    }

    #[cold]
    pub(super) fn take_drained(&mut self, env: &mut Env<'_>, id: FlowId) -> Option<RequestId> {
        self.take(env, id)
    }

    /// The next request of `flow` goes. Every row is looked up once.
    #[inline(always)] // for `dispatch`
    pub(super) fn take(&mut self, env: &mut Env<'_>, id: FlowId) -> Option<RequestId> {
        let (flow, place) = (&mut self.flows[id.index()], &mut self.places[id.index()]);
        let group_id = flow.group;
        let group = &mut self.groups[group_id.index()];
        let rq = flow.next(&self.links, env.now)?;
        let (request, held) = (&env.requests[rq], &mut self.held[rq.index()]);
        let (cost_ns, end) = (flow.cost_ns, request.end());
        let (streams, step) = match self.last_sent {
            Some((last, end, step)) if last == id && request.sector.abs_diff(end) < NEAR => {
                (true, step.saturating_add(1))
            }
            _ => (flow.is_stream(), 0),
        };
        let return_ns = self.model.saving_ns(env.device);
        let turn_ns = self.model.turn_of(return_ns, self.settings.turn_max_ns);
        if step == 0 && return_ns > 0 {
            place.disturbs(return_ns, self.model.lag_ns(turn_ns));
        }

        flow.remove(&mut self.links, rq, request);
        group.queued -= 1;
        self.queued -= 1;
        let mut kept = false;
        if flow.has_requests() || self.turn == Some(id) {
            group.round.charge(&mut self.rounds, (id, place), cost_ns, 0);
        } else {
            let long_ns = turn_ns.max(self.model.longest_ns);
            kept = self.model.is_serial()
                && self.kept < dues::KEPT_MAX
                && flow.sends_shorter_than(long_ns)
                && self.slots.context_of(id).is_some_and(|context| env.contexts[context].alive);
            match kept {
                true => group.round.charge(&mut self.rounds, (id, place), cost_ns, 0),
                false => group.round.served_last(&mut self.rounds, (id, place), cost_ns),
            }
        }
        dues::keep(&mut self.kept, flow, kept);
        if flow.may_press() {
            group.press(&mut self.pressing, (id, flow, place), self.model.behind_ns(turn_ns));
        }

        flow.sent(end);
        group.sent(env.now);
        self.in_device += 1;
        held.queued = false;
        held.charged_ns = cost_ns;
        let number = self.model.sent(request, env.now);
        held.sent = Sent { number, step, streams: streams && !request.is_write() };
        self.last_sent = Some((id, end, step));
        if flow::is_urgent(request) {
            self.flush.wrote(id, request);
        }
        if env.rounds.in_use() {
            let is_dry = group.queued == 0;
            self.sent_for(env, group_id, is_dry, cost_ns);
        }
        Some(rq)
    }
}
