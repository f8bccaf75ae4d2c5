//! bfq: budget fair queueing. Every process and group gets its share of what the device transfers, in turns of so many sectors.
//!
//! Each io context has a queue for its sync requests; async ones share queues by priority. One queue is *in service*: it sends
//! requests until its *budget* (sectors) or its time is used up, or it has nothing more to send. Which queue is next, B-WF2Q+
//! says, by weight, on the tree of groups. A queue that runs dry in its turn may be waited for (*idling*), while requests of
//! others that do it no harm are sent (*injection*).
//!
//! ```text
//!  insert ─> queue of (context, sync) ─┐           select: the queue in service, while budget and time last
//!            sorted by sector, and FIFO├─> B-WF2Q+   │       and it has, or will soon have, requests;
//!            learn think time, seeks   │   on groups │       while it is waited for: an injected one;
//!            merge, split, raise,      │            ─┤       else the next in the tree
//!            preempt who is in service ┘             └─> dispatch: the overdue request once a turn, else by sector
//! ```
//!
//! Where to find what: the decision and what a turn's end changes ([`select`]), B-WF2Q+ ([`entity`], [`wf2q`], [`timeline`]), budgets and charging by
//! time ([`budget`]), the device's peak rate ([`rate`]), raising of weights ([`raise`]), idling ([`idle`]), injection ([`inject`])
//! and wakers ([`waker`]), merging of queues ([`coop`]), arrivals and preemption ([`arrive`]), groups ([`groups`]).
//!
//! Source: the algorithm of Linux 6.12 as described in `docs/bfq.md`, which also says what is different here and why.

mod arrive;
mod budget;
mod busy;
mod coop;
mod entity;
mod groups;
mod habits;
mod hooks;
mod idle;
mod inject;
mod queue;
mod raise;
mod rate;
mod select;
mod settings;
mod tags;
#[cfg(test)]
mod tests;
mod timeline;
mod waker;
mod wf2q;

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{AnyElevator, Config, Descriptor, Env};
use crate::collections::{Id, List, ListLinks, SortedFifoLinks, TreeLinks};
use crate::group::GroupId;
use crate::request::RequestId;
use coop::Created;
use entity::Hierarchy;
use groups::GroupState;
use idle::DepthProbe;
use inject::Probe;
use queue::{ContextState, Queue, QueueId, Seen};
use rate::PeakRate;
use settings::Settings;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "bfq",
    about: "a share of the device by weight for every process and group, and short latencies for interactive ones",
    profiles: &[],
    tunables: |_| settings::TUNABLES,
    build: |config, _| AnyElevator::Bfq(Box::new(Bfq::new(config))),
};

/// Why a turn ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expiry {
    /// It was waited for in vain.
    TooIdle,
    /// Its time is used up.
    Timeout,
    /// Its budget is.
    Exhausted,
    /// It has nothing to send, and is not waited for.
    NoMoreRequests,
    /// Another queue goes before it.
    Preempted,
}

/// What is kept about a request.
#[derive(Clone, Copy)]
struct Held {
    /// The queue it was inserted into.
    owner: QueueId,
    /// Still in it (not dispatched yet)?
    queued: bool,
}

/// Queues created together.
struct Burst {
    last_ns: u64,
    group: GroupId,
    size: usize,
    large: bool,
    members: [Option<Seen>; raise::BURST],
}

/// bfq.
pub struct Bfq {
    // Settings.
    settings: Settings,
    /// Most sectors a turn.
    max_budget: u64,

    // The queue in service.
    in_service: Option<QueueId>,
    /// When waiting for its next request ends, and since when it is waited for.
    timer_ns: Option<u64>,
    wait_since_ns: u64,
    /// Where its last request ended, sector.
    position_in_service: u64,
    probe: Probe,
    /// The request that is measured.
    probed: Option<RequestId>,

    // What is queued and in the device.
    queued: u32,
    in_driver: u32,
    /// Where the last request ended, sector.
    position: u64,
    /// Busy queues by class, and those of them that are raised; by level those not raised that are busy or have something in the device.
    busy: [u32; 3],
    raised: u32,
    levels: [u32; 8],
    /// Groups with something queued or in the device.
    pending_groups: u32,

    // What was learnt.
    rate: PeakRate,
    /// Was the device seen, so that `rate` starts from the right figure?
    started: bool,
    depth: DepthProbe,
    /// Budgets given lately: an average that tends to 256.
    assigned: u32,
    last_completed: Option<QueueId>,
    last_created: Option<Created>,
    burst: Burst,

    // Everything of one kind in one array, and the links of each kind of list and tree.
    hierarchy: Hierarchy,
    queues: Vec<Queue>,
    free: Vec<QueueId>,
    contexts: Vec<ContextState>,
    groups: Vec<GroupState>,
    held: Vec<Held>,
    links: SortedFifoLinks<RequestId>,
    places: TreeLinks<QueueId, u64>,
    /// Busy queues but the one in service, the last to come first.
    waiting: List<QueueId>,
    waiting_links: ListLinks<QueueId>,
    woken_links: ListLinks<QueueId>,
    /// Shared queues that can be given up, the oldest first.
    unused: List<QueueId>,
    unused_links: ListLinks<QueueId>,
}

impl Bfq {
    fn new(config: &Config) -> Bfq {
        let (contexts, groups) = (config.contexts_max.max(1), config.groups_max.max(1));
        let queues = contexts + config.requests_max + 2;
        Bfq {
            settings: Settings::DEFAULT,
            max_budget: budget::DEFAULT_MAX,
            in_service: None,
            timer_ns: None,
            wait_since_ns: 0,
            position_in_service: 0,
            probe: Probe::default(),
            probed: None,
            queued: 0,
            in_driver: 0,
            position: 0,
            busy: [0; 3],
            raised: 0,
            levels: [0; 8],
            pending_groups: 0,
            rate: PeakRate::new(true),
            started: false,
            depth: DepthProbe::default(),
            assigned: 0,
            last_completed: None,
            last_created: None,
            burst: Burst {
                last_ns: 0,
                group: GroupId::ROOT,
                size: 0,
                large: false,
                members: [None; raise::BURST],
            },
            hierarchy: Hierarchy::new(groups, queues),
            queues: alloc::vec![Queue::free(); queues],
            free: (0..queues).rev().map(QueueId::from_index).collect(),
            contexts: alloc::vec![ContextState::UNKNOWN; contexts],
            groups: alloc::vec![GroupState::NEW; groups],
            held: alloc::vec![Held { owner: QueueId::constant(0), queued: false }; config.requests_max],
            links: SortedFifoLinks::new(config.requests_max),
            places: TreeLinks::new(queues),
            waiting: List::new(),
            waiting_links: ListLinks::new(queues),
            woken_links: ListLinks::new(queues),
            unused: List::new(),
            unused_links: ListLinks::new(queues),
        }
    }

    /// Do what the end of the wait had to do, if it has come: as of its time.
    fn enter(&mut self, env: &mut Env<'_>) {
        #[cfg(test)]
        self.check();
        if !self.started {
            self.started = true;
            self.rate = PeakRate::new(env.device.rotational);
        }
        if let Some(due_ns) = self.timer_ns.filter(|due| env.now >= *due) {
            self.timer_ns = None;
            let now = core::mem::replace(&mut env.now, due_ns);
            self.waited_in_vain(env);
            env.now = now;
        }
    }

    /// The wait for the queue in service is over.
    fn waited_in_vain(&mut self, env: &mut Env<'_>) {
        let Some(id) = self.in_service else { return };
        if self.is_out_of_time(id, env.now) {
            self.expire(env, Expiry::Timeout);
        } else if self.queue(id).is_empty() {
            self.expire(env, Expiry::TooIdle);
        }
    }
}
