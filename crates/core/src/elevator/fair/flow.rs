//! Flows: the sync requests of one task, or a group's async ones.
//!
//! Every context has a flow of its own in the group it sends for. What it sends for another group (a write that another
//! waits for and pays, pages that another group dirtied, a task that moved with requests still queued) goes to the flow that
//! such strangers share in that group; so no flow is ever in two groups, and none need be allocated.

use crate::collections::{Id, SortedFifo, SortedFifoLinks, Table};
use crate::context::{ContextId, Contexts, IoPrio};
use crate::elevator::think::ThinkTime;
use crate::group::GroupId;
use crate::request::{Flags, Request, RequestId};
use crate::{MS, SECOND};

crate::collections::define_id! {
    /// A flow's slot.
    FlowId
}

/// A flow's oldest request goes, wherever it lies, once it has waited so long and the flow has been served so often since.
const FIFO_NS: [u64; 2] = [SECOND, SECOND / 4];
const FIFO_EVERY: u32 = 8;
/// A request that begins no further than this behind the flow's last one continues it, sectors (64 KiB): read-ahead leaves holes.
pub(super) const NEAR: u64 = 128;
/// Jumps among the last eight requests from which a flow is no stream.
const JUMPS: u32 = 3;
/// What a request is taken to cost before any of the flow is done.
const COST_UNKNOWN_NS: u64 = MS;

/// One flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Whose I/O it is now.
    pub(super) group: GroupId,
    epoch: u32,
    pub(super) sync: bool,
    // What is queued, and in the device.
    pub(super) requests: SortedFifo<RequestId>,
    /// Writes in `requests` that a task waits for.
    pub(super) urgent: u32,
    /// In its group's list of those that may go through another's turn?
    pub(super) pressing: bool,
    pub(super) in_device: u32,
    /// In its round with nothing queued ([`super::dues`]).
    pub(super) kept: bool,
    // Where it is.
    /// End of the last request that was queued, and of the last that was sent.
    last_end: u64,
    head: u64,
    served_since_oldest: u32,
    /// A bit for each of the last eight requests: did it jump?
    jumps: u8,
    pub(super) last_done_ns: u64,
    /// It asked not to be waited for, with its last request.
    pub(super) no_idle: bool,
    // What was learnt.
    pub(super) think: ThinkTime,
    /// What a request costs of late, nanoseconds.
    pub(super) cost_ns: u64,
}

impl Flow {
    pub(super) const NEW: Flow = Flow {
        group: GroupId::ROOT,
        epoch: 0,
        sync: true,
        requests: SortedFifo::new(),
        urgent: 0,
        pressing: false,
        in_device: 0,
        kept: false,
        last_end: 0,
        head: 0,
        served_since_oldest: 0,
        jumps: u8::MAX,
        last_done_ns: 0,
        no_idle: false,
        think: ThinkTime::NONE,
        cost_ns: COST_UNKNOWN_NS,
    };

    /// One that tasks of `group` share.
    pub(super) fn shared(group: GroupId, sync: bool) -> Flow {
        Flow { group, sync, ..Flow::NEW }
    }

    /// It is `group`'s from now on; if another task has it, it forgets what it learnt.
    pub(super) fn renew(&mut self, group: GroupId, epoch: u32) {
        if self.epoch != epoch {
            *self = Flow { epoch, ..Flow::NEW };
        }
        self.group = group;
    }

    #[inline]
    pub(super) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Does it read or write on from where it was? Only what a task waits for has turns.
    #[inline]
    pub(super) fn is_stream(&self) -> bool {
        self.sync && self.jumps.count_ones() < JUMPS
    }

    /// What it takes at a time where a stream's turn lasts `turn_ns`, or there are none.
    #[inline]
    pub(super) fn quantum_ns(&self, turn_ns: u64) -> u64 {
        if turn_ns > 0 && self.is_stream() { turn_ns } else { self.cost_ns }
    }

    /// Does it have several requests queued, which a disk may serve in an order of its own?
    #[inline]
    pub(super) fn is_deep(&self) -> bool {
        self.sync && self.requests.len() > 1
    }

    pub(super) fn add(
        &mut self,
        links: &mut SortedFifoLinks<RequestId>,
        rq: RequestId,
        request: &Request,
        now: u64,
    ) {
        if self.requests.is_empty() && self.in_device == 0 && self.last_done_ns > 0 {
            self.think.add(now.saturating_sub(self.last_done_ns).min(SECOND));
        }
        let jumped = request.sector < self.last_end || request.sector > self.last_end + NEAR;
        self.jumps = self.jumps << 1 | u8::from(jumped);
        self.last_end = request.end();
        self.urgent += u32::from(is_urgent(request));
        self.requests.insert(links, rq, request.sector, now.saturating_add(FIFO_NS[usize::from(self.sync)]));
    }

    /// `request`, which is queued, grew at its end: what comes next continues it there.
    #[inline]
    pub(super) fn grew(&mut self, request: &Request) {
        if request.sector < self.last_end {
            self.last_end = self.last_end.max(request.end());
        }
    }

    pub(super) fn remove(
        &mut self,
        links: &mut SortedFifoLinks<RequestId>,
        rq: RequestId,
        request: &Request,
    ) {
        self.urgent -= u32::from(is_urgent(request));
        self.requests.remove(links, rq);
    }

    /// Which of its requests goes: upwards from where it was, then from the lowest; now and then the oldest, if that is late.
    pub(super) fn next(&mut self, links: &SortedFifoLinks<RequestId>, now: u64) -> Option<RequestId> {
        let oldest = self.requests.oldest()?;
        self.served_since_oldest += 1;
        if self.served_since_oldest >= FIFO_EVERY && now > links.deadline(oldest) {
            self.served_since_oldest = 0;
            return Some(oldest);
        }
        if self.requests.len() == 1 {
            return Some(oldest);
        }
        self.requests.at_or_above(links, self.head).or_else(|| self.requests.first())
    }

    /// One of its requests is on its way.
    #[inline]
    pub(super) fn sent(&mut self, end: u64) {
        self.in_device += 1;
        self.head = end;
    }

    /// One of its requests took `cost_ns` of the device.
    pub(super) fn learn_cost(&mut self, cost_ns: u64) {
        // One that was retried for seconds says little of the next.
        let cost_ns = cost_ns.min(8 * self.cost_ns.max(COST_UNKNOWN_NS));
        self.cost_ns = (7 * self.cost_ns + cost_ns) / 8;
    }
}

/// A write that makes something durable: of a program that fsyncs, or the journal's. A task waits for it, and sends no other before it
/// is done. (A program that writes past the page cache says that it goes on, as a reader does.)
#[inline]
pub(super) fn is_urgent(request: &Request) -> bool {
    let durable = Flags::NOIDLE.or(Flags::META).or(Flags::PREFLUSH).or(Flags::FUA);
    request.is_write() && request.is_sync() && request.flags.intersects(durable)
}

/// Which flow slots there are: one for each context, then for each group an async one and one for strangers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots {
    contexts: usize,
    groups: usize,
}

impl Slots {
    pub(super) fn new(contexts: usize, groups: usize) -> Slots {
        Slots { contexts: contexts.max(1), groups: groups.max(1) }
    }

    pub(super) fn count(self) -> usize {
        self.contexts + 2 * self.groups
    }

    pub(super) fn async_of(self, group: GroupId) -> FlowId {
        FlowId::from_index(self.contexts + group.index())
    }

    pub(super) fn strangers_of(self, group: GroupId) -> FlowId {
        FlowId::from_index(self.contexts + self.groups + group.index())
    }

    /// The flow of what `context` sends for `group` to pay, as things are.
    pub(super) fn find(self, flows: &Table<Flow>, context: ContextId, group: GroupId, sync: bool) -> FlowId {
        if !sync {
            return self.async_of(group);
        }
        let own = &flows[context.index()];
        match own.group == group {
            true => FlowId::from_index(context.index()),
            false => self.strangers_of(group),
        }
    }

    /// The same for a request that comes in; with [`Arrival::New`] if that flow now belongs to a context, or a group, that it did not belong
    /// to before. It holds no request then.
    pub(super) fn find_for(
        self,
        flows: &Table<Flow>,
        contexts: &Contexts,
        request: &Request,
    ) -> (FlowId, Arrival) {
        let (id, group) = (request.context, request.payer);
        if !request.is_sync() {
            return (self.async_of(group), Arrival::Known);
        }
        let (context, flow) = (&contexts[id], &flows[id.index()]);
        let own = FlowId::from_index(id.index());
        let (is_its, is_same) = (flow.group == group, flow.epoch == context.epoch);
        if is_its && is_same {
            return (own, Arrival::Known);
        }
        let is_free = !flow.has_requests() && flow.in_device == 0;
        let moves = !is_its && context.group == group;
        match is_free && (moves || !is_same) {
            true => (own, Arrival::New),
            false => (self.find(flows, id, group, true), Arrival::Known),
        }
    }

    /// At which priority a flow is served.
    pub(super) fn ioprio(self, contexts: &Contexts, flow: FlowId) -> IoPrio {
        if flow.index() >= self.contexts {
            return IoPrio::DEFAULT;
        }
        contexts[ContextId::from_index(flow.index())].ioprio
    }

    /// Whose flow it is, if it is one task's.
    pub(super) fn context_of(self, flow: FlowId) -> Option<ContextId> {
        (flow.index() < self.contexts).then(|| ContextId::from_index(flow.index()))
    }
}

/// Is the flow whose it was?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    Known,
    New,
}
