//! fair: every task its share of the device, nobody behind a neighbour's queue.
//!
//! Flows (the sync requests of a task, the async ones of a group) share their group's part of the device, groups share the
//! device by the core's tree and ledger. What it needs to know of the device it finds out ([`device`]); `docs/fair.md` has the
//! algorithm on a page, its bounds, and what it cannot do.
//!
//! The decision, from the top:
//! 1. while a device that serves one after the other flushes its cache, nothing goes out: it would only queue behind it;
//! 2. the group: that of the turn that goes on, else the tree's;
//! 3. in it a flow with a write that somebody waits for, if it is not ahead of the others by more than [`LAG_TURNS`];
//! 4. the stream whose turn it is, or a wait for its next request, where that saves more than it costs;
//! 5. the flow with the earliest deadline that is not ahead of its due ([`round`]).
//!
//! Whoever is chosen sends only while the device holds fewer requests than it gains from; a flow that has none there may go
//! beyond that, up to twice as many: so nobody waits behind another one's queue.

mod device;
mod flow;
mod groups;
mod report;
mod round;
#[cfg(test)]
mod tests;

pub use report::Found;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::collections::{Id, ListLinks, SortedFifoLinks, TreeLinks};
use crate::context::ContextId;
use crate::elevator::{
    AnyElevator, Config, Descriptor, Dispatch, Elevator, Env, Grouping, Growth, first_occupied,
};
use crate::group::GroupId;
use crate::request::{Bio, Flags, RequestId, RequestState, Status};
use crate::tunable::{Tunable, Unit};
use device::{Kind, Model};
use flow::{Arrival, Flow, FlowId, Slots};
use groups::{GroupState, Shift};
use round::{Place, RoundLinks, Virtual};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "fair",
    about: "every task its share of the device, and nobody behind a neighbour's queue; finds out what pays",
    profiles: &[],
    tunables: |_| TUNABLES,
    build: |config, _| AnyElevator::Fair(Box::new(Fair::new(config))),
};

/// Trades latency of the others against throughput of streams.
const TURN_MAX: Tunable = Tunable::new(
    "turn_max",
    Unit::Milliseconds,
    (0, 10_000),
    100,
    "longest turn of a stream while others wait; how long it really is, is found out; 0 = no turns, no waiting for streams",
);
const DEPTH: Tunable = Tunable::new(
    "depth",
    Unit::Requests,
    (0, 1024),
    0,
    "requests in the device while two tasks want it; 0 = found out",
);

const TUNABLES: &[Tunable] = &[TURN_MAX, DEPTH];

/// A write that somebody waits for goes through another one's turn while its flow is ahead of its due by no more than this part
/// of a turn: what it was served out of turn it waits for later.
const LAG_TURNS: u64 = 4;
/// Credit that a flow keeps when it leaves: a turn, or, where turns do not pay, as many of the longest requests of late; so that
/// who sends one at a time is made up for what it waited while one of those was served.
const LAG_REQUESTS: u64 = 2;
/// Sectors of a merged request while two flows want a device that does not seek (64 KiB).
const MERGED_MAX: u32 = 128;
/// Flows with such writes that are looked at.
const URGENT_LOOKED_AT: usize = 4;

struct Settings {
    turn_max_ns: u64,
    depth: u64,
}

/// What is kept of a request.
#[derive(Clone, Copy)]
struct Held {
    flow: FlowId,
    /// Not sent yet?
    queued: bool,
    kind: Kind,
    /// What its flow was charged when it went.
    charged_ns: u64,
}

/// fair.
pub struct Fair {
    settings: Settings,
    slots: Slots,
    model: Model,

    // Whose turn it is.
    /// The stream whose turn goes on.
    turn: Option<FlowId>,
    /// Where it was when its turn began.
    turn_start: Virtual,
    /// The group that was served last, until that is charged.
    shift: Option<Shift>,
    /// Whose next request the device is kept for.
    waiting_for: Option<ContextId>,

    // What is queued and in the device.
    flush: FlushBill,
    queued: u32,
    in_device: u32,
    /// Who sent last, and where that ended.
    last_sent: Option<(FlowId, u64)>,

    // Everything of one kind in one array, and the links of each kind of list and tree.
    flows: Vec<Flow>,
    places: Vec<Place>,
    groups: Vec<GroupState>,
    held: Vec<Held>,
    links: SortedFifoLinks<RequestId>,
    rounds: RoundLinks,
    urgent: ListLinks<FlowId>,
    /// Groups without requests that keep their place in the tree.
    dry: u32,
    drained: usize,
}

/// Who pays for the flush in the device: it passes the elevator by.
#[derive(Clone, Copy)]
struct FlushBill {
    since_ns: Option<u64>,
    /// Whose writes that somebody waits for went last: the journal's, and those of the task it works for.
    writers: [Option<FlowId>; 2],
}

impl FlushBill {
    const NONE: FlushBill = FlushBill { since_ns: None, writers: [None; 2] };

    /// A write of `flow` went that somebody waits for.
    fn wrote(&mut self, flow: FlowId) {
        if self.writers[0] != Some(flow) {
            self.writers = [Some(flow), self.writers[0]];
        }
    }
}

/// What to do next.
enum Decision {
    Send(FlowId),
    /// Keep the device for a request of this group's.
    WaitFor {
        group: GroupId,
        until: u64,
    },
    /// Nothing before the next completion or arrival.
    Rest,
}

impl Fair {
    fn new(config: &Config) -> Fair {
        let slots = Slots::new(config.contexts_max, config.groups_max);
        let mut flows = alloc::vec![Flow::NEW; slots.count()];
        for group in (0..config.groups_max.max(1)).map(GroupId::from_index) {
            flows[slots.async_of(group).index()] = Flow::shared(group, false);
            flows[slots.strangers_of(group).index()] = Flow::shared(group, true);
        }
        let held = Held { flow: FlowId::constant(0), queued: false, kind: (0, 0), charged_ns: 0 };
        Fair {
            settings: Settings { turn_max_ns: TURN_MAX.stored_default(), depth: DEPTH.stored_default() },
            slots,
            model: Model::NEW,
            turn: None,
            turn_start: 0,
            flush: FlushBill::NONE,
            shift: None,
            waiting_for: None,
            queued: 0,
            in_device: 0,
            last_sent: None,
            places: alloc::vec![Place::NEW; flows.len()],
            rounds: TreeLinks::new(flows.len()),
            urgent: ListLinks::new(flows.len()),
            flows,
            groups: alloc::vec![GroupState::NEW; config.groups_max.max(1)],
            held: alloc::vec![held; config.requests_max],
            links: SortedFifoLinks::new(config.requests_max),
            dry: 0,
            drained: 0,
        }
    }

    // ---- the decision ----

    fn decide(&mut self, env: &mut Env<'_>) -> Decision {
        self.waiting_for = None;
        let in_device = self.in_device.max(env.device.in_flight_total());
        let flushing = self.bill_flush(env);
        if flushing && self.model.is_serial() || self.model.is_kept(in_device) {
            return Decision::Rest;
        }
        let group = match self.choose_group(env) {
            Ok(group) => group,
            Err(decision) => return decision,
        };
        if let Some(flow) = self.urgent_flow(env, group) {
            return self.send(env, flow, in_device);
        }
        if let Some(flow) = self.turn.filter(|flow| self.flows[flow.index()].group == group) {
            if self.turn_lasts(env, flow) {
                if self.flows[flow.index()].has_requests() {
                    return self.send(env, flow, in_device);
                }
                if let Some(until) = self.worth_waiting_until(env, flow) {
                    return self.wait_for(flow, until);
                }
            }
            self.end_turn();
        }
        let Some(flow) = self.groups[group.index()].round.first(&mut self.rounds, &mut self.places) else {
            debug_assert!(false, "a group with requests has a flow with requests");
            return Decision::Rest;
        };
        if self.begins_turn(env, flow) {
            (self.turn, self.turn_start) = (Some(flow), self.places[flow.index()].start);
        }
        self.send(env, flow, in_device)
    }

    /// Is the device flushing its cache? Once it is done, the last two that wrote share what it cost. (With groups the ledger
    /// bills them besides.)
    #[inline]
    fn bill_flush(&mut self, env: &Env<'_>) -> bool {
        let flushing = env.device.flushes > 0;
        match self.flush.since_ns {
            None if flushing => self.flush.since_ns = Some(env.now),
            Some(since_ns) if !flushing => {
                let part_ns = env.now.saturating_sub(since_ns) / 2;
                let FlushBill { writers, .. } = core::mem::replace(&mut self.flush, FlushBill::NONE);
                for flow in writers.into_iter().flatten() {
                    let round = &mut self.groups[self.flows[flow.index()].group.index()].round;
                    round.charge(&mut self.rounds, &mut self.places, flow, part_ns, 0);
                }
            }
            _ => {}
        }
        flushing
    }

    /// Is there room in the device for one more request of `flow`?
    #[inline]
    fn send(&self, env: &Env<'_>, flow: FlowId, in_device: u32) -> Decision {
        let depth = match self.settings.depth {
            0 => self.model.depth,
            depth => depth as u32,
        };
        let own = self.flows[flow.index()].in_device;
        let room = match own {
            // A disk would rather go on where it is than seek to a second one's requests.
            _ if own < in_device && self.turn_ns(env) > 0 => 0,
            // Whoever has nothing there need not wait for others' queues.
            0 => 2 * depth,
            _ if self.turn == Some(flow) => depth.max(2),
            _ => depth,
        };
        if in_device < room || own == in_device && !self.model.is_shared(env.now) {
            Decision::Send(flow)
        } else {
            Decision::Rest
        }
    }

    /// A flow of `group` that has a write somebody waits for, and is not ahead of its due by more than a part of a turn.
    fn urgent_flow(&self, env: &Env<'_>, group: GroupId) -> Option<FlowId> {
        let state = &self.groups[group.index()];
        if state.urgent.is_empty() {
            return None;
        }
        let lag_ns = (self.turn_ns(env) / LAG_TURNS).max(self.model.longest_ns);
        let mut urgent = state.urgent.iter(&self.urgent).take(URGENT_LOOKED_AT);
        urgent.find(|flow| state.round.is_within(&self.places, *flow, lag_ns))
    }

    // ---- turns of streams ----

    fn turn_ns(&self, env: &Env<'_>) -> u64 {
        self.model.turn_ns(env.device, self.settings.turn_max_ns)
    }

    /// Is `flow`, which is next, to have the device for more than one request?
    fn begins_turn(&mut self, env: &Env<'_>, flow: FlowId) -> bool {
        let turn_ns = self.turn_ns(env);
        let state = &self.flows[flow.index()];
        let begins = turn_ns > 0 && state.is_stream();
        self.places[flow.index()].quantum_ns = if begins { turn_ns } else { state.cost_ns };
        begins
    }

    /// A turn is over when the stream was served for the length of a turn, or somebody of a better class waits.
    fn turn_lasts(&self, env: &Env<'_>, flow: FlowId) -> bool {
        let round = &self.groups[self.flows[flow.index()].group.index()].round;
        let alone = round.is_alone(&self.places, flow);
        !round.is_outranked(&self.places, flow)
            && self.flows[flow.index()].is_stream()
            && (alone || self.places[flow.index()].served_since(self.turn_start) < self.turn_ns(env))
    }

    /// Until when the stream whose turn it is, which has nothing queued, is worth waiting for: no longer than the wait saves,
    /// and not at all if it is known to think longer.
    fn worth_waiting_until(&self, env: &Env<'_>, flow: FlowId) -> Option<u64> {
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
        (env.now < until).then_some(until)
    }

    fn wait_for(&mut self, flow: FlowId, until: u64) -> Decision {
        if until == u64::MAX {
            return Decision::Rest;
        }
        self.waiting_for = self.slots.context_of(flow);
        Decision::WaitFor { group: self.flows[flow.index()].group, until }
    }

    fn end_turn(&mut self) {
        let Some(flow) = self.turn.take() else { return };
        if !self.flows[flow.index()].has_requests() {
            self.leave_round(flow);
        }
    }

    // ---- requests come and go ----

    fn join_round(&mut self, env: &Env<'_>, flow: FlowId) {
        let ioprio = self.slots.ioprio(env.contexts, flow);
        let state = &self.flows[flow.index()];
        if self.places[flow.index()].busy {
            return;
        }
        let turn_ns = self.turn_ns(env);
        let cost_ns = state.cost_ns;
        self.places[flow.index()].quantum_ns =
            if state.is_stream() && turn_ns > 0 { turn_ns } else { cost_ns };
        let lag_ns = turn_ns.max(LAG_REQUESTS * self.model.longest_ns);
        let round = &mut self.groups[state.group.index()].round;
        if let Some(turn) = self.turn.filter(|turn| round.is_alone(&self.places, *turn)) {
            // Until now it was in nobody's way.
            self.turn_start = self.places[turn.index()].start;
        }
        round.join(&mut self.rounds, &mut self.places, flow, ioprio, lag_ns);
    }

    fn leave_round(&mut self, flow: FlowId) {
        let round = &mut self.groups[self.flows[flow.index()].group.index()].round;
        round.leave(&mut self.rounds, &mut self.places, flow);
    }

    /// May a request become so large by merging? One that takes long keeps others waiting, who have nothing of that where streams
    /// have no turns.
    fn may_grow(&self, env: &Env<'_>, sectors: u32) -> bool {
        sectors <= MERGED_MAX || !self.model.is_shared(env.now) || self.turn_ns(env) > 0
    }

    /// `rq` is queued no more.
    fn take_out(&mut self, env: &Env<'_>, rq: RequestId) -> FlowId {
        let held = &mut self.held[rq.index()];
        held.queued = false;
        let id = held.flow;
        let flow = &mut self.flows[id.index()];
        let group = &mut self.groups[flow.group.index()];
        let was_urgent = flow.urgent > 0;
        flow.remove(&mut self.links, rq, &env.requests[rq]);
        if was_urgent && flow.urgent == 0 {
            group.urgent.remove(&mut self.urgent, id);
        }
        group.queued -= 1;
        self.queued -= 1;
        if !self.flows[id.index()].has_requests() && self.turn != Some(id) {
            self.leave_round(id);
        }
        id
    }

    /// `rq`, which was sent, did not go to the device: it comes again, after a flush.
    #[cold]
    fn taken_aside(&mut self, env: &Env<'_>, rq: RequestId) {
        let held = self.held[rq.index()];
        self.in_device -= 1;
        self.model.forget(rq);
        let flow = &mut self.flows[held.flow.index()];
        flow.in_device -= 1;
        let group = flow.group;
        let round = &mut self.groups[group.index()].round;
        round.charge(&mut self.rounds, &mut self.places, held.flow, 0, held.charged_ns);
        self.answered(env, group);
    }

    /// The next request of `flow` goes.
    fn take(&mut self, env: &mut Env<'_>, id: FlowId) -> Option<RequestId> {
        let flow = &mut self.flows[id.index()];
        let (group, cost_ns, stream) = (flow.group, flow.cost_ns, flow.is_stream());
        let rq = flow.next(&self.links, env.now)?;
        let request = &env.requests[rq];
        let place = match self.last_sent {
            Some((last, end)) if last == id && request.sector.abs_diff(end) < 256 => device::Place::Continues,
            _ if stream => device::Place::Returns,
            _ => device::Place::Jumps,
        };
        // Before it leaves the round, of whose average its start is a part.
        let round = &mut self.groups[group.index()].round;
        round.charge(&mut self.rounds, &mut self.places, id, cost_ns, 0);
        self.take_out(env, rq);
        self.flows[id.index()].sent(request);
        let held = &mut self.held[rq.index()];
        (held.kind, held.charged_ns) = (Model::kind(request, place), cost_ns);
        if flow::is_urgent(request) {
            self.flush.wrote(id);
        }
        self.last_sent = Some((id, request.end()));
        self.model.sent(rq, self.in_device.max(env.device.in_flight_total()));
        self.in_device += 1;
        self.sent_for(env, group, cost_ns);
        Some(rq)
    }
}

impl Elevator for Fair {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn insert(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let request = &env.requests[rq];
        let (id, arrival) = self.slots.find_for(&mut self.flows, env.contexts, request);
        if arrival == Arrival::New {
            if self.turn == Some(id) {
                self.end_turn();
            }
            self.flows[id.index()].renew(request.payer, env.contexts[request.context].epoch);
            self.places[id.index()].start = 0;
        }
        let held = &mut self.held[rq.index()];
        (held.flow, held.queued) = (id, true);
        let flow = &mut self.flows[id.index()];
        let was_urgent = flow.urgent > 0;
        flow.add(&mut self.links, rq, request, env.now);
        let group = flow.group;
        if !was_urgent && flow.urgent > 0 {
            self.groups[group.index()].urgent.push_back(&mut self.urgent, id);
        }
        self.queued += 1;
        self.model.seen(id, env.now);
        self.join_round(env, id);
        self.arrived_for(env, group, id);
    }

    fn dispatch(&mut self, env: &mut Env<'_>, _group: GroupId) -> Dispatch {
        if self.queued == 0 {
            return Dispatch::Empty;
        }
        match self.decide(env) {
            Decision::Send(flow) => self.take(env, flow).map_or(Dispatch::Empty, Dispatch::Issue),
            Decision::Rest => Dispatch::Empty,
            Decision::WaitFor { group, until } => {
                if env.rounds.in_use() {
                    env.rounds.wait_for(group, env.now, until);
                }
                Dispatch::Idle { until }
            }
        }
    }

    fn remove(&mut self, env: &mut Env<'_>, rq: RequestId) {
        if self.held[rq.index()].queued {
            let flow = self.take_out(env, rq);
            self.ran_dry(env, self.flows[flow.index()].group);
        }
    }

    fn drain(&mut self, env: &mut Env<'_>) -> Option<RequestId> {
        self.end_turn();
        let groups = &self.groups;
        let group = first_occupied(&mut self.drained, groups.len(), |group| groups[group].queued == 0)?;
        let flow = self.groups[group].round.first(&mut self.rounds, &mut self.places)?;
        self.take(env, flow)
    }

    fn is_empty(&self) -> bool {
        self.queued == 0
    }

    fn requeued(&mut self, _env: &mut Env<'_>, rq: RequestId) {
        self.model.forget(rq);
    }

    fn completed(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let request = &env.requests[rq];
        let held = self.held[rq.index()];
        if request.state == RequestState::Listed {
            return self.taken_aside(env, rq);
        }
        self.in_device -= 1;
        let cost_ns = self.model.done(rq, request, held.kind, env.now);
        let flow = &mut self.flows[held.flow.index()];
        flow.in_device -= 1;
        flow.last_done_ns = env.now;
        flow.no_idle = request.flags.contains(Flags::NOIDLE);
        if request.status == Status::Done {
            flow.learn_cost(cost_ns);
        }
        let group = flow.group;
        let round = &mut self.groups[group.index()].round;
        round.charge(&mut self.rounds, &mut self.places, held.flow, cost_ns, held.charged_ns);
        self.model.seen(held.flow, env.now);
        self.answered(env, group);
    }

    fn find_front(&self, env: &Env<'_>, bio: &Bio) -> Option<RequestId> {
        let flow = self.slots.find(&self.flows, bio.context, env.group_of(bio), bio.is_sync());
        self.flows[flow.index()].requests.find(&self.links, bio.end())
    }

    /// Into requests of the flow it would be of.
    fn allow_merge(&mut self, env: &Env<'_>, rq: RequestId, bio: &Bio) -> bool {
        let held = &self.held[rq.index()];
        let flow = self.slots.find(&self.flows, bio.context, env.group_of(bio), bio.is_sync());
        let request = &env.requests[rq];
        held.queued
            && held.flow == flow
            && bio.is_sync() == request.is_sync()
            && self.may_grow(env, request.sectors + bio.sectors)
    }

    fn grew(&mut self, env: &mut Env<'_>, rq: RequestId, growth: Growth) {
        let held = &self.held[rq.index()];
        if growth == Growth::Front && held.queued {
            let flow = &mut self.flows[held.flow.index()];
            flow.requests.resort(&mut self.links, rq, env.requests[rq].sector);
        }
    }

    fn absorbed(&mut self, env: &mut Env<'_>, rq: RequestId, gone: RequestId) {
        let (held, lost) = (self.held[rq.index()], self.held[gone.index()]);
        if !lost.queued {
            return;
        }
        if held.queued && held.flow == lost.flow {
            self.flows[held.flow.index()].requests.inherit(&mut self.links, rq, gone);
        }
        self.remove(env, gone);
    }

    fn former(&self, _env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        let held = self.held.get(rq.index()).filter(|held| held.queued)?;
        self.flows[held.flow.index()].requests.prev(&self.links, rq)
    }

    fn latter(&self, _env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        let held = self.held.get(rq.index()).filter(|held| held.queued)?;
        self.flows[held.flow.index()].requests.next(&self.links, rq)
    }

    fn attached(&mut self, env: &mut Env<'_>) {
        (0..self.groups.len()).for_each(|index| self.settle(env, GroupId::from_index(index)));
    }

    fn queue_started(&mut self, group: GroupId) {
        self.start_group(group);
    }

    fn grouping(&self) -> Grouping {
        Grouping::Own
    }

    fn ioprio_changed(&mut self, env: &mut Env<'_>, context: ContextId) {
        let flow = FlowId::from_index(context.index());
        if self.places[flow.index()].busy {
            self.leave_round(flow);
            self.join_round(env, flow);
        }
    }

    fn idling_for(&self) -> Option<ContextId> {
        self.waiting_for
    }

    fn tunables(&self) -> &'static [Tunable] {
        TUNABLES
    }

    fn setting(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "turn_max" => &mut self.settings.turn_max_ns,
            "depth" => &mut self.settings.depth,
            _ => return None,
        })
    }
}
