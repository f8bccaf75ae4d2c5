//! What the queue's tests share: short ways to say "a read of 8 sectors at 64", and an elevator that can be watched.
#![allow(dead_code)] // every test file uses its own part

use std::sync::{Arc, Mutex};

use fairlift_core::elevator::{self, AnyElevator, Env, Growth, MayQueue};
use fairlift_core::queue::{NoMerges, Plugging, QueueConfig, RequestQueue, Submitted};
use fairlift_core::tunable::Tunable;
use fairlift_core::{
    Bio, ContextId, Dispatch, Elevator, Flags, GroupId, IoPrio, Op, Request, RequestId, Requests,
};

/// No plug, so that every request is with the elevator at once.
pub fn unplugged() -> QueueConfig {
    QueueConfig { plugging: Plugging::Off, ..QueueConfig::default() }
}

pub fn with_nomerges(value: u64) -> QueueConfig {
    QueueConfig { nomerges: NoMerges::from_sysfs(value), ..unplugged() }
}

pub fn queue(config: QueueConfig, elevator: &str) -> RequestQueue {
    RequestQueue::new(config, build(&config, elevator))
}

pub fn build(config: &QueueConfig, elevator: &str) -> AnyElevator {
    let descriptor = elevator::find(elevator).expect("a known elevator");
    (descriptor.build)(&config.elevator(), "")
}

/// A bio whose cookie is its first sector, one segment.
pub fn bio(op: Op, flags: Flags, context: ContextId, sector: u64, sectors: u32) -> Bio {
    Bio { cookie: sector, op, flags, sector, sectors, segments: 1, context, ioprio: None, group: None }
}

pub fn read(context: ContextId, sector: u64, sectors: u32) -> Bio {
    bio(Op::Read, Flags::NONE, context, sector, sectors)
}

pub fn write(context: ContextId, sector: u64, sectors: u32) -> Bio {
    bio(Op::Write, Flags::NONE, context, sector, sectors)
}

pub fn flush(context: ContextId) -> Bio {
    Bio { cookie: 999_999, ..bio(Op::Flush, Flags::NONE, context, 0, 0) }
}

/// The request a bio became.
pub fn queued(answer: Submitted) -> RequestId {
    match answer {
        Submitted::Queued(rq) => rq,
        other => panic!("expected a request of its own, got {other:?}"),
    }
}

/// The request a bio joined.
pub fn merged(answer: Submitted) -> RequestId {
    match answer {
        Submitted::Merged(rq) => rq,
        other => panic!("expected a merge, got {other:?}"),
    }
}

/// The next request; the queue must have one.
pub fn issue(q: &mut RequestQueue, now: u64) -> RequestId {
    match q.dispatch(now) {
        Dispatch::Issue(rq) => rq,
        other => panic!("expected a request at {now}, got {other:?}"),
    }
}

/// Complete a request; the cookies that are done.
pub fn complete(q: &mut RequestQueue, rq: RequestId, now: u64) -> Vec<u64> {
    let mut done = Vec::new();
    q.complete(rq, now, |cookie| done.push(cookie));
    done
}

/// Serve everything one by one; `(first sector, sectors)` of each request in order.
pub fn serve_all(q: &mut RequestQueue, now: u64) -> Vec<(u64, u32)> {
    let mut order = Vec::new();
    while let Dispatch::Issue(rq) = q.dispatch(now) {
        order.push((q.requests()[rq].sector, q.requests()[rq].sectors));
        complete(q, rq, now);
    }
    order
}

/// Everything is done and every slot is free.
pub fn assert_empty(q: &RequestQueue) {
    assert_eq!(q.pending(), 0, "slots still taken");
    assert_eq!(q.in_flight(), [0, 0]);
}

// ---- an elevator to watch ------------------------------------------------------------------------------------------------

/// What a [`Probe`] was told and is to answer.
#[derive(Default)]
pub struct Orders {
    /// Hooks in the order they came: name and request.
    pub hooks: Vec<(&'static str, Option<RequestId>)>,
    /// Answer to `allow_merge`: no.
    pub veto: bool,
    /// Answer to `may_queue`.
    pub may_queue: Option<MayQueue>,
    /// Answer `Idle` until then instead of giving up a request.
    pub idle_until: Option<u64>,
}

/// First come, first served, with neighbours by sector, under the test's orders.
pub struct Probe {
    queue: Vec<RequestId>,
    orders: Arc<Mutex<Orders>>,
}

/// A probe and the orders it follows.
pub fn probe() -> (Box<dyn Elevator>, Arc<Mutex<Orders>>) {
    let orders = Arc::new(Mutex::new(Orders::default()));
    (Box::new(Probe { queue: Vec::new(), orders: orders.clone() }), orders)
}

impl Probe {
    fn note(&self, hook: &'static str, rq: RequestId) {
        self.orders.lock().unwrap().hooks.push((hook, Some(rq)));
    }

    fn take(&mut self, rq: RequestId) {
        let at = self.queue.iter().position(|q| *q == rq).expect("the elevator has it");
        self.queue.remove(at);
    }

    fn neighbour(&self, requests: &Requests, of: &Request, after: bool) -> Option<RequestId> {
        let others = self.queue.iter().copied().filter(|q| (requests[*q].sector > of.sector) == after);
        let others = others.filter(|q| requests[*q].sector != of.sector);
        if after {
            others.min_by_key(|q| requests[*q].sector)
        } else {
            others.max_by_key(|q| requests[*q].sector)
        }
    }
}

impl Elevator for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }
    fn insert(&mut self, _env: &mut Env<'_>, rq: RequestId) {
        self.note("insert", rq);
        self.queue.push(rq);
    }
    fn dispatch(&mut self, _env: &mut Env<'_>, _group: GroupId) -> Dispatch {
        if let Some(until) = self.orders.lock().unwrap().idle_until {
            return Dispatch::Idle { until };
        }
        match self.queue.first().copied() {
            Some(rq) => {
                self.take(rq);
                self.note("dispatch", rq);
                Dispatch::Issue(rq)
            }
            None => Dispatch::Empty,
        }
    }
    fn remove(&mut self, _env: &mut Env<'_>, rq: RequestId) {
        self.note("remove", rq);
        self.take(rq);
    }
    fn drain(&mut self, _env: &mut Env<'_>) -> Option<RequestId> {
        let rq = self.queue.first().copied()?;
        self.take(rq);
        self.note("drain", rq);
        Some(rq)
    }
    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    fn issued(&mut self, _env: &mut Env<'_>, rq: RequestId) {
        self.note("issued", rq);
    }
    fn requeued(&mut self, _env: &mut Env<'_>, rq: RequestId) {
        self.note("requeued", rq);
    }
    fn completed(&mut self, _env: &mut Env<'_>, rq: RequestId) {
        self.note("completed", rq);
    }
    fn find_front(&self, env: &Env<'_>, bio: &Bio) -> Option<RequestId> {
        self.queue.iter().copied().find(|q| env.requests[*q].sector == bio.end())
    }
    fn allow_merge(&mut self, _env: &Env<'_>, rq: RequestId, _bio: &Bio) -> bool {
        self.note("allow_merge", rq);
        !self.orders.lock().unwrap().veto
    }
    fn grew(&mut self, _env: &mut Env<'_>, rq: RequestId, _growth: Growth) {
        self.note("grew", rq);
    }
    fn absorbed(&mut self, _env: &mut Env<'_>, _rq: RequestId, gone: RequestId) {
        self.note("absorbed", gone);
        self.take(gone);
    }
    fn former(&self, env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        self.neighbour(env.requests, &env.requests[rq], false)
    }
    fn latter(&self, env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        self.neighbour(env.requests, &env.requests[rq], true)
    }
    fn may_queue(&mut self, _env: &mut Env<'_>, _context: ContextId, _sync: bool) -> MayQueue {
        self.orders.lock().unwrap().may_queue.unwrap_or(MayQueue::May)
    }
    fn context_exit(&mut self, _env: &mut Env<'_>, _context: ContextId) {
        self.orders.lock().unwrap().hooks.push(("context_exit", None));
    }
    fn tunables(&self) -> &'static [Tunable] {
        &[]
    }
    fn setting(&mut self, _name: &str) -> Option<&mut u64> {
        None
    }
}

/// How often `hook` was called for anything.
pub fn count(orders: &Arc<Mutex<Orders>>, hook: &str) -> usize {
    orders.lock().unwrap().hooks.iter().filter(|(name, _)| *name == hook).count()
}

/// A queue with a probe and one context.
pub fn probed(config: QueueConfig) -> (RequestQueue, Arc<Mutex<Orders>>, ContextId) {
    let (elevator, orders) = probe();
    let mut q = RequestQueue::new(config, elevator);
    let task = q.contexts_mut().create(IoPrio::DEFAULT);
    (q, orders, task)
}
