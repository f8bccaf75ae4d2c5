//! fair: every task gets its share of the device, and no task waits behind another's deep queue.
//!
//! Flows (the sync requests of a task, the async ones of a group) divide their group's share of the device; groups share the
//! device by the core's tree and ledger. What it needs to know of the device it finds out ([`device`]); `docs/fair.md` has the
//! algorithm on a page, its bounds, and what it cannot do.
//!
//! The decision, from the top:
//! 1. while a device that serves one after the other flushes its cache, nothing goes out: it would only queue behind it;
//! 2. the group: that of the turn that goes on, else the tree's;
//! 3. in it a flow that may go through another's turn ([`pressing`]): one that has had less than its due, or has a write that makes
//!    something durable;
//! 4. the stream that has the turn, or a wait for its next request, where that saves more than it costs ([`returns`]);
//! 5. the flow with the earliest deadline that is not ahead of its due ([`round`]), or a short wait for it ([`dues`]).
//!
//! The chosen flow dispatches only while the device holds fewer requests than it gains from; a flow that has none there may go
//! beyond that, up to twice as many, so no flow waits behind another one's queue.

mod costs;
mod depth;
mod device;
mod dues;
mod flow;
mod gaps;
mod groups;
mod pace;
mod parts;
mod pressing;
mod report;
mod requests;
mod returns;
mod room;
mod round;
#[cfg(test)]
mod tests;
mod turns;

use alloc::boxed::Box;

use crate::collections::{Id, ListLinks, SortedFifoLinks, Table, TreeLinks};
use crate::context::ContextId;
use crate::elevator::{
    AnyElevator, Config, Descriptor, DeviceState, Dispatch, Elevator, Env, Finding, Grouping, Growth,
    first_occupied,
};
use crate::group::GroupId;
use crate::request::{Bio, Flags, RequestId, RequestState, Status};
use crate::tunable::{Tunable, Unit};
use device::{Model, Sent};
use flow::{Arrival, Flow, FlowId, Slots};
use groups::{GroupState, Shift};
use returns::Step;
use round::{Place, RoundLinks, Virtual};
use turns::FlushBill;

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "fair",
    about: "a share of the device for every task, no task behind a neighbour's queue; measures when idling pays",
    profiles: &[],
    tunables: |_| TUNABLES,
    build: |config, _| AnyElevator::Fair(Box::new(Fair::new(config))),
};

/// Trades latency of the others against bandwidth of streams.
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

const GOAL: Tunable = Tunable::new(
    "goal",
    Unit::Choice(&["latency", "shares"]),
    (0, 1),
    0,
    "who pays for the flush of a commit: latency: the task and the journal half each; shares: the task, so that it gets no more than others",
);

const TUNABLES: &[Tunable] = &[TURN_MAX, DEPTH, GOAL];

/// What a task that does nothing but fsync is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Goal {
    /// Short fsyncs: its own share, and one for the journal.
    Latency,
    /// The share of any other task.
    Shares,
}

/// Requests of a turn that a disk holds at most, to serve them in an order of its own: with four it gains most of that, and who goes
/// through the turn waits for four.
const ORDERED: u64 = 4;
/// Sectors of a merged request while two flows want a device that does not seek (64 KiB).
const MERGED_MAX: u32 = 128;

struct Settings {
    turn_max_ns: u64,
    depth: u64,
    goal: u64,
}

/// What is kept of a request.
#[derive(Clone, Copy)]
struct Held {
    flow: FlowId,
    /// Not sent yet?
    queued: bool,
    sent: Sent,
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
    /// Flows in a round with nothing queued.
    kept: u32,
    /// Who is waited for though it has nothing queued, since when.
    waits: Option<(FlowId, u64)>,
    /// Who sent last, where that ended, and how many of its requests went before it without another flow's between.
    last_sent: Option<(FlowId, u64, Step)>,

    // Everything of one kind in one array, and the links of each kind of list and tree.
    flows: Table<Flow>,
    places: Table<Place>,
    groups: Table<GroupState>,
    held: Table<Held>,
    links: SortedFifoLinks<RequestId>,
    rounds: RoundLinks,
    pressing: ListLinks<FlowId>,
    /// Groups without requests that keep their place in the tree.
    dry: u32,
    drained: usize,
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
        let mut flows = Table::new(Flow::NEW, slots.count());
        for group in (0..config.groups_max.max(1)).map(GroupId::from_index) {
            flows[slots.async_of(group).index()] = Flow::shared(group, false);
            flows[slots.strangers_of(group).index()] = Flow::shared(group, true);
        }
        let sent = Sent { number: 0, step: 0, streams: false };
        let held = Held { flow: FlowId::constant(0), queued: false, sent, charged_ns: 0 };
        Fair {
            settings: Settings {
                turn_max_ns: TURN_MAX.stored_default(),
                depth: DEPTH.stored_default(),
                goal: GOAL.stored_default(),
            },
            slots,
            model: Model::NEW,
            turn: None,
            turn_start: 0,
            flush: FlushBill::NONE,
            shift: None,
            waiting_for: None,
            queued: 0,
            in_device: 0,
            kept: 0,
            waits: None,
            last_sent: None,
            places: Table::new(Place::NEW, flows.len()),
            rounds: TreeLinks::new(flows.len()),
            pressing: ListLinks::new(flows.len()),
            flows,
            groups: Table::new(GroupState::NEW, config.groups_max.max(1)),
            held: Table::new(held, config.requests_max),
            links: SortedFifoLinks::new(config.requests_max),
            dry: 0,
            drained: 0,
        }
    }

    // ---- the decision ----

    #[inline]
    fn decide(&mut self, env: &mut Env<'_>) -> Decision {
        self.waiting_for = None;
        self.bill_wait(env.now);
        let in_device = self.in_device.max(env.device.in_flight_total());
        let flushing = self.bill_flush(env);
        if flushing && self.model.is_serial() {
            return Decision::Rest;
        }
        let group = match self.choose_group(env) {
            Ok(group) => group,
            Err(decision) => return decision,
        };
        if let Some(decision) = self.pressing_flow(env, group, in_device) {
            return decision;
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
        let flow = match self.next_flow(env, group) {
            Ok(flow) => flow,
            Err(decision) => return decision,
        };
        self.begin_turn(env, flow);
        match self.send(env, flow, in_device) {
            Decision::Rest => self.other_direction(env, flow, in_device),
            decision => decision,
        }
    }

    /// Is there room in the device for one more request of `flow`?
    #[inline]
    fn send(&self, env: &Env<'_>, flow: FlowId, in_device: u32) -> Decision {
        // As what follows says of an empty device.
        match in_device {
            0 => Decision::Send(flow),
            _ => self.send_beside(env, flow, in_device),
        }
    }

    fn send_beside(&self, env: &Env<'_>, flow: FlowId, in_device: u32) -> Decision {
        let writes = self.sends_write(env, flow);
        let (held, depth) = match self.settings.depth {
            0 => self.model.holds(writes, in_device),
            depth => (in_device, depth as u32),
        };
        let own = self.flows[flow.index()].in_device;
        let room = match own {
            // A disk would rather go on where it is than seek to a second one's requests.
            _ if own < in_device && self.turn_ns(env) > 0 => 0,
            // Whoever has nothing there need not wait for others' queues.
            0 => 2 * depth,
            _ if self.turn == Some(flow) => depth.max(self.in_turn(env, flow)),
            _ => depth,
        };
        if held < room || own == in_device && !self.model.is_shared(env.now) {
            Decision::Send(flow)
        } else {
            Decision::Rest
        }
    }

    fn goal(&self) -> Goal {
        if self.settings.goal == 0 { Goal::Latency } else { Goal::Shares }
    }

    /// How many requests of `flow`, which has the turn, a disk holds.
    fn in_turn(&self, env: &Env<'_>, flow: FlowId) -> u32 {
        let state = &self.flows[flow.index()];
        match state.is_stream() {
            true => 2,
            false => (self.turn_ns(env) / state.cost_ns.max(1)).clamp(1, ORDERED) as u32,
        }
    }

    /// Is what `flow` has waited longest with a write?
    #[inline]
    fn sends_write(&self, env: &Env<'_>, flow: FlowId) -> bool {
        self.flows[flow.index()].requests.oldest().is_some_and(|rq| env.requests[rq].is_write())
    }
}

impl Elevator for Fair {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn insert(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let request = &env.requests[rq];
        let (id, arrival) = self.slots.find_for(&self.flows, env.contexts, request);
        if arrival == Arrival::New {
            self.renew(env, id, request);
        }
        let held = &mut self.held[rq.index()];
        (held.flow, held.queued) = (id, true);
        let flow = &mut self.flows[id.index()];
        flow.add(&mut self.links, rq, request, env.now);
        self.queued += 1;
        self.model.seen(id, env.now);
        if !request.is_write() {
            self.model.read_came(env.now);
        }
        let group = self.take_part(env, id);
        if env.rounds.in_use() {
            self.arrived_for(env, group, id);
        }
    }

    fn dispatch(&mut self, env: &mut Env<'_>, _group: GroupId) -> Dispatch {
        if self.queued == 0 {
            return Dispatch::Empty;
        }
        match self.decide(env) {
            Decision::Send(flow) => match self.take(env, flow) {
                Some(rq) => Dispatch::Issue(rq),
                None => Dispatch::Empty,
            },
            Decision::Rest => Dispatch::Empty,
            Decision::WaitFor { group, until } => {
                let until = env.rounds.no_later_than_goals(until, env.now);
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
        let flow = self.drained_flow(GroupId::from_index(group))?;
        self.take_drained(env, flow)
    }

    fn is_empty(&self) -> bool {
        self.queued == 0
    }

    fn completed(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let request = &env.requests[rq];
        let held = self.held[rq.index()];
        if request.state == RequestState::Listed {
            return self.taken_aside(env, rq);
        }
        self.in_device -= 1;
        let cost_ns = self.model.done(request, held.sent, env.device, env.now);
        let (flow, place) = (&mut self.flows[held.flow.index()], &mut self.places[held.flow.index()]);
        flow.in_device -= 1;
        flow.last_done_ns = env.now;
        flow.no_idle = request.flags.contains(Flags::NOIDLE);
        if request.status == Status::Done {
            flow.learn_cost(cost_ns);
        }
        let group = &mut self.groups[flow.group.index()];
        group.round.correct(&mut self.rounds, (held.flow, place), cost_ns, held.charged_ns);
        group.answered(env.now);
        self.model.seen(held.flow, env.now);
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
            && self.may_grow(env, request.is_write(), request.sectors + bio.sectors)
    }

    fn grew(&mut self, env: &mut Env<'_>, rq: RequestId, growth: Growth) {
        let held = &self.held[rq.index()];
        if !held.queued {
            return;
        }
        let flow = &mut self.flows[held.flow.index()];
        match growth {
            Growth::Front => flow.requests.resort(&mut self.links, rq, env.requests[rq].sector),
            Growth::Back => flow.grew(&env.requests[rq]),
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

    fn tags_for(&mut self, env: &mut Env<'_>, bio: &Bio, tags: u32) -> u32 {
        self.tags_of(env, bio, tags)
    }

    fn tags_min(&self, tags: u32) -> u32 {
        room::most_of(tags)
    }

    fn bio_sectors_max(&self, env: &Env<'_>, bio: &Bio) -> u32 {
        self.part_of(env, bio)
    }

    fn grouping(&self) -> Grouping {
        Grouping::Own
    }

    fn ioprio_changed(&mut self, env: &mut Env<'_>, context: ContextId) {
        self.rejoin(env, FlowId::from_index(context.index()));
    }

    fn idling_for(&self) -> Option<ContextId> {
        self.waiting_for
    }

    fn found(&self, device: &DeviceState, now: u64, tell: &mut dyn FnMut(Finding)) {
        self.report(device, now, tell);
    }

    fn tunables(&self) -> &'static [Tunable] {
        TUNABLES
    }

    fn setting(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "turn_max" => &mut self.settings.turn_max_ns,
            "depth" => &mut self.settings.depth,
            "goal" => &mut self.settings.goal,
            _ => return None,
        })
    }
}
