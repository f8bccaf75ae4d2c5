//! cfq: completely fair queueing. Every process gets the disk for a slice of time, in turn. `docs/cfq.md` explains it; groups
//! and their limits are [`groups`] and [`crate::group`].
//!
//! A disk that serves one process at a time hardly seeks; a disk that serves them all at once does little else. So
//! each io context has a queue for its sync requests (reads, and writes that a task waits for). One queue is *active*: it
//! alone sends requests, in sector order, until its slice is over. A queue that runs dry within its slice is not left
//! at once: the disk **idles** for up to `slice_idle`, because the process' next request usually lies next to its
//! last. Idling is worth it only for a process that comes back soon (*think time*) and stays near (*seekiness*), which
//! is measured all the time. Writes that no task waits for (async) share 17 queues by priority and wait behind sync ones.
//!
//! ```text
//!  insert ─> queue of (context, sync) ──┐            select: the active queue, as long as its slice lasts
//!            sorted by sector, and FIFO ├─> service   │        and it has, or will soon have, requests;
//!            learn think time, seeks    │   tree(s)  ─┤        else a queue reading close by;
//!            preempt the active queue?  ┘   by time   │        else the next queue in the tree
//!                                                     └─> dispatch: the overdue request once a slice, else by sector
//! ```
//!
//! * **Slices** ([`queue`]): longer for better levels; they begin at the first completion, so the first seek is free. A
//!   queue's next turn is due `(other queues) x (longest slice - own slice)` from now, less what it left over.
//! * **Order in a queue** ([`choose`]): the neighbour the head reaches more cheaply; a short way back costs double.
//! * **Idling** ([`idle`]), **preemption** ([`preempt`]), **close cooperators** ([`coop`]).
//! * **Trees and workload slices** of 2.6.34 ([`workload`]).
//! * **Yielding** ([`yielding`]): a task that waits for another one's I/O hands it the rest of its slice. Off unless the
//!   tunable `yield` is 1 (2.6.34, 2.6.37): the series was never merged. The explicit yield is described in US patent
//!   8,949,835 (Red Hat, which has published a patent promise for open-source software).
//!
//! What the profiles do differently ([`profile`] names each as a fact):
//!
//! | | 2.6.31 | 2.6.34 |
//! |---|---|---|
//! | service trees | one, by class then time | {RT, BE} x {async, sync-noidle, sync}, and idle; a share of 300 ms each |
//! | an empty queue leaves | with its last request | when it expires; busy queues include the one idled on |
//! | slice | `slice_sync`/`slice_async` by level | with `low_latency` shrunk to fit 300 ms a round |
//! | idled on | queues with an idle window, nothing in the device | also the last queue of a tree (for the tree) |
//! | idle wait | `slice_idle`; 2 ms for a seeker | `slice_idle`, not if the slice ends before the mean think time |
//! | seekiness | mean jump of the context > 4 MiB, ignored unless the device queues | > 4 of the queue's last 32 requests jump > 400 KiB (small requests on a device without seeks), unless the queue was deep |
//! | `hw_tag` | assumed, judged anew every 50 samples under load: **its own idling can make it false** | unknown, sticks once true, samples spoilt by idling skipped |
//! | depth of a queue | `quantum` 4, alone 16 | 4 (half of `quantum` 8), 8 while the slice is young, alone unlimited |
//! | async | never while sync is in flight | also ramps up by 1 per `slice_sync` without a sync request slower than 125 ms; sync that is idled on waits for async |
//! | close queues | served next once | merged while they stay sequential, split when seeky |
//! | close means | within the context's mean jump (4 MiB if unknown) | within 4 MiB |
//! | RT against BE | at every dispatch | at insertion |
//! | deadline runs from | the request's start | insertion |
//! | neighbours weighed from | the head | the request dispatched |
//! | alone and slice used | expires | waits `slice_idle` longer (`wait_busy`) |
//!
//! **2.6.37** is 2.6.34 but for commit 749ef9f8423, upstream's answer to slow `fsync`:
//!
//! | | 2.6.34 | 2.6.37 |
//! |---|---|---|
//! | a NOIDLE request | is filed by its queue's habits | takes its queue's idle window away while it is the queue's next: the queue is filed in the sync-noidle tree |
//! | the sync-noidle tree is idled on | after a request without NOIDLE, or when it is the only busy queue | always |
//!
//! The other half of that commit, journals that write sync and NOIDLE, is the file system's. `group_idle` (8 ms,
//! 2.6.36) is in this profile too ([`groups`]). Other changes between the two kernels were not compared line by line.
//!
//! Sources: Linux 2.6.31 and 2.6.34 `block/cfq-iosched.c`, and for 2.6.37 that commit as ported to an older tree;
//! rules in our own words and structure. One thing is *not* as in 2.6.31: that version added the residual of a slice to the key instead of subtracting it, so that an interrupted
//! queue had to wait longer; both profiles here subtract, as 2.6.32 does.
//!
//! **Time** is counted in jiffies of [`Config::tick_ns`] like the kernel's, and settings are rounded up to them; with
//! 0 the unit is the nanosecond and "one tick" means a millisecond (HZ = 1000). The idle timer is a number, looked at
//! on entry of every hook: work due at the timer is done as of its time. [`Dispatch::Idle`] tells when to ask again.
//!
//! **Not modelled**: the boost for holders of file system locks; a request's own ioprio (as in these
//! kernels the context's decides); the delay of a small request on an idle device for merging (plugging belongs to
//! [`crate::queue`]). Deviations made for bounded work: chains of more than 8 merges are refused, and so is merging the
//! overflow queue; with no queue left for a split the contexts stay together. When a request absorbs its queue's next
//! one it is next itself, in both profiles (2.6.31 would weigh the neighbours anew).

mod choose;
mod coop;
mod groups;
mod idle;
mod preempt;
mod profile;
mod queue;
#[cfg(test)]
mod tests;
mod workload;
mod yielding;

use alloc::boxed::Box;
use core::num::NonZeroU64;

use crate::collections::{Id, SortedFifoLinks, Stack, Table, TreeLinks};
use crate::context::{ContextId, IoClass};
use crate::elevator::{
    AnyElevator, Config, Descriptor, Dispatch, Elevator, Env, Grouping, Growth, MayQueue, first_occupied,
};
use crate::group::GroupId;
use crate::request::{Bio, Flags, Request, RequestId, Status};
use crate::tunable::Tunable;
use choose::BackSeek;
use groups::{GroupState, Spent};
use idle::DepthProbe;
use profile::{
    Arrival, Cooperators, DeadlineFrom, Depth, NeighboursFrom, NoIdle, Profile, Quantum, Ramp, Seeks, Trees,
};
use queue::{ContextState, Kind, Queue, QueueId, Residual, Turn};
use yielding::{NoIdleTree, Pair, Way, Yield};

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "cfq",
    about: "a slice of time for every process in turn, idling for the next request of a sequential reader",
    profiles: profile::NAMES,
    tunables: |name| profile::find(name).tunables,
    build: |config, name| AnyElevator::Cfq(Box::new(Cfq::new(config, profile::find(name)))),
};

/// The tunables as stored (times in ns); documented in [`profile`].
struct Settings {
    quantum: u64,
    fifo_expire_sync: u64,
    fifo_expire_async: u64,
    back_seek_max: u64,
    back_seek_penalty: u64,
    slice_sync: u64,
    slice_async: u64,
    slice_async_rq: u64,
    slice_idle: u64,
    low_latency: u64,
    yields: u64,
    group_isolation: u64,
}

/// What follows from the settings, times in clock units.
struct Derived {
    fifo_expire: [u64; 2],
    slice: [[u64; 8]; 2],
    slice_base: [u64; 2],
    slice_idle: u64,
    /// Longest idle wait for a seeker (2.6.31): 2 ms.
    seeky_idle: u64,
    back_seek: BackSeek,
    /// One jiffy, or a millisecond where time is exact.
    tick: u64,
    second: i64,
    /// How far behind the last queue an idle-class one queues up: 200 ms.
    idle_class_delay: i64,
    /// Length of a round that `low_latency` aims at: 300 ms.
    target_latency: u64,
}

/// Time in units of a jiffy, or of a nanosecond where it is exact.
#[derive(Clone, Copy)]
struct Units {
    unit_ns: NonZeroU64,
    tick: u64,
    /// The unit that began last, and when it did.
    unit: u64,
    began_ns: u64,
}

impl Units {
    fn new(tick_ns: u64) -> Units {
        let (unit_ns, tick) = NonZeroU64::new(tick_ns).map_or((NonZeroU64::MIN, crate::MS), |tick| (tick, 1));
        Units { unit_ns, tick, unit: 0, began_ns: 0 }
    }

    /// The unit it is at `now`.
    #[inline]
    fn advance(&mut self, now: u64) -> u64 {
        if now.wrapping_sub(self.began_ns) >= self.unit_ns.get() {
            self.unit = now / self.unit_ns;
            self.began_ns = self.unit * self.unit_ns.get();
        }
        self.unit
    }

    /// The unit it was at `ns`, most often the present one: then there is nothing to divide.
    #[inline]
    fn at(&self, ns: u64) -> u64 {
        if ns.wrapping_sub(self.began_ns) < self.unit_ns.get() { self.unit } else { ns / self.unit_ns }
    }

    /// A duration of at least `ns`.
    fn round_up(self, ns: u64) -> u64 {
        ns / self.unit_ns + u64::from(ns % self.unit_ns != 0)
    }
}

/// What is kept about a request.
#[derive(Clone, Copy)]
struct Held {
    /// The queue it was inserted into.
    owner: QueueId,
    /// Still in it (not dispatched yet)?
    queued: bool,
}

/// The idle timer is not set.
const NEVER: u64 = u64::MAX;

/// cfq.
pub struct Cfq {
    // Settings.
    profile: Profile,
    units: Units,
    settings: Settings,
    derived: Derived,

    // The queue being served.
    active: Option<QueueId>,
    /// Whose request it dispatched first in this slice: the one to idle for.
    active_context: Option<ContextId>,
    /// What its turn has cost so far.
    spent: Spent,
    /// When idling ends, nanoseconds; [`NEVER`] while there is none.
    timer_ns: u64,
    /// The yield that was asked for: from which queue, to which.
    yielded: Option<Yield>,
    /// Who took the device back from a target, and until when it had lent it.
    taken_back: Option<(QueueId, u64)>,
    /// The last caller that asked to yield, and its target.
    pair: Option<Pair>,

    // What is queued and in the device.
    queued: u32,
    busy: u32,
    /// Dispatched and not completed, by the queue's kind: `[async, sync]`.
    in_flight: [u32; 2],
    /// Issued and not completed.
    in_driver: u32,
    /// End of the request issued last, sector.
    head: u64,

    // What was learnt about the device.
    depth: DepthProbe,
    /// When a sync request was slow for the last time; before any, a second before the first request.
    last_delayed_sync: Option<i64>,
    noidle_tree: NoIdleTree,

    // Everything of one kind in one array, and the links of each kind of list and tree.
    queues: Table<Queue>,
    free: Stack<QueueId>,
    contexts: Table<ContextState>,
    held: Table<Held>,
    links: SortedFifoLinks<RequestId>,
    groups: Table<GroupState>,
    turns: TreeLinks<QueueId, i64>,
    places: TreeLinks<QueueId, u64>,
    /// Where draining goes on.
    drained: usize,
}

impl Cfq {
    fn new(config: &Config, profile: &'static Profile) -> Cfq {
        let contexts = config.contexts_max.max(1);
        // Contexts that left a merged queue leave it behind until it is empty; half of the queues are for these.
        let sync_queues = match profile.cooperators {
            Cooperators::Switch => contexts,
            Cooperators::MergeAndSplit => 2 * contexts,
        };
        // What groups share needs a queue only while it has requests; so does what is left behind by a context that moved.
        let passing = if config.groups_max > 1 { config.requests_max + 2 } else { 0 };
        let (queues, free) = queue::queues(sync_queues + passing);
        let units = Units::new(config.tick_ns);
        let default = |name| crate::tunable::find(profile.tunables, name).map_or(0, Tunable::stored_default);
        let settings = Settings {
            quantum: default("quantum"),
            fifo_expire_sync: default("fifo_expire_sync"),
            fifo_expire_async: default("fifo_expire_async"),
            back_seek_max: default("back_seek_max"),
            back_seek_penalty: default("back_seek_penalty"),
            slice_sync: default("slice_sync"),
            slice_async: default("slice_async"),
            slice_async_rq: default("slice_async_rq"),
            slice_idle: default("slice_idle"),
            low_latency: default("low_latency"),
            yields: default("yield"),
            group_isolation: default("group_isolation"),
        };
        Cfq {
            profile: *profile,
            units,
            derived: Derived::new(&settings, units),
            settings,
            active: None,
            active_context: None,
            spent: Spent::default(),
            timer_ns: NEVER,
            yielded: None,
            taken_back: None,
            pair: None,
            queued: 0,
            busy: 0,
            in_flight: [0; 2],
            in_driver: 0,
            head: 0,
            depth: DepthProbe::new(profile.depth),
            last_delayed_sync: None,
            groups: Table::new(GroupState::NEW, config.groups_max.max(1)),
            noidle_tree: NoIdleTree::NEW,
            turns: TreeLinks::new(queues.len()),
            places: TreeLinks::new(queues.len()),
            queues,
            free,
            contexts: Table::new(ContextState::UNKNOWN, contexts),
            held: Table::new(Held { owner: QueueId::OVERFLOW, queued: false }, config.requests_max),
            links: SortedFifoLinks::new(config.requests_max),
            drained: 0,
        }
    }

    /// The time in clock units, after what the idle timer had to do up to it.
    #[inline]
    fn enter(&mut self, env: &mut Env<'_>) -> u64 {
        self.run_timer(env);
        self.units.advance(env.now)
    }

    /// Do what the idle timer had to do until now.
    #[inline]
    fn run_timer(&mut self, env: &mut Env<'_>) {
        #[cfg(test)]
        self.check();
        if env.now >= self.timer_ns {
            let due = self.units.at(self.timer_ns);
            self.timer_ran_out(env, due);
        }
    }

    /// The queue to dispatch from; `None`: wait for the active queue's requests to come or to complete.
    fn select(&mut self, env: &mut Env<'_>, now: u64) -> Option<QueueId> {
        let Some(id) = self.active else { return self.pick(env, now) };
        let queue = self.queue(id);
        if queue.wait_busy && !queue.is_empty() {
            self.expire(env, now, Residual::Drop);
            return self.pick(env, now);
        }
        if (queue.slice_used(now) || self.is_sold_out(env, id, now) || self.is_claimed(env, id))
            && !queue.must_dispatch
        {
            self.expire(env, now, Residual::Drop);
            return self.pick(env, now);
        }
        if self.pair.is_some()
            && let Some(target) = self.pair_interrupts(id, now)
        {
            self.preempt(env, target, now);
            return self.pick(env, now);
        }
        if self.profile.trees == Trees::Single
            && queue.class != IoClass::RealTime
            && self.group_of(id).busy_rt > 0
        {
            self.expire(env, now, Residual::Keep);
            return self.pick(env, now);
        }
        if !queue.is_empty() {
            return Some(id);
        }
        if self.yielded.is_some()
            && let Way::Over(heir) = self.make_way(env, id, now)
        {
            let Some(heir) = heir else {
                self.expire(env, now, Residual::Drop);
                return self.pick(env, now);
            };
            self.activate(heir, now);
            return Some(heir);
        }
        if let Some(other) = self.close_cooperator(env.requests, id) {
            self.hand_over(env, id, other, now);
            return Some(other);
        }
        let waits = self.timer_ns != NEVER || (self.queue(id).dispatched > 0 && self.keeps_device(env, id));
        if waits && env.rounds.finds_slot(self.queue(id).group) {
            return None;
        }
        self.expire(env, now, Residual::Drop);
        self.pick(env, now)
    }

    /// The queue that has the turn.
    fn pick(&mut self, env: &mut Env<'_>, now: u64) -> Option<QueueId> {
        let group = if env.rounds.in_use() { self.pick_group(env)? } else { GroupId::ROOT };
        let id = match self.profile.trees {
            Trees::Single => self.groups[group.index()].trees[0].first()?,
            Trees::Workloads => self.pick_from_workloads(env, group, now)?,
        };
        if self.profile.cooperators == Cooperators::Switch {
            self.queue_mut(id).coop = false;
        }
        self.activate(id, now);
        Some(id)
    }

    /// May `id` send one more request now?
    fn may_dispatch(&self, env: &Env<'_>, id: QueueId, now: u64) -> bool {
        let queue = self.queue(id);
        let [async_in_flight, sync_in_flight] = self.in_flight;
        if !queue.sync && sync_in_flight > 0 {
            return false;
        }
        let dispatched = u64::from(queue.dispatched);
        if queue.class == IoClass::Idle && dispatched > 0 {
            return false;
        }
        let quantum = self.settings.quantum;
        match self.profile.quantum {
            Quantum::FourfoldAlone => dispatched < quantum || (self.busy <= 1 && dispatched < 4 * quantum),
            Quantum::Soft => {
                if async_in_flight > 0 && self.should_idle(env, id) {
                    return false;
                }
                let mut depth_max = (quantum / 2).max(1);
                if dispatched >= depth_max {
                    if self.busy > 1 && self.slice_ends_soon(id, now) {
                        return false;
                    }
                    depth_max = if self.busy == 1 { u64::MAX } else { quantum };
                }
                if !queue.sync {
                    depth_max = depth_max.min(self.async_depth(dispatched, now));
                }
                dispatched < depth_max
            }
        }
    }

    /// Would `id`'s requests in the device, an idle wait each, outlast its slice? Taken as true before it began.
    fn slice_ends_soon(&self, id: QueueId, now: u64) -> bool {
        let queue = self.queue(id);
        let work = self.derived.slice_idle.saturating_mul(u64::from(queue.dispatched));
        queue.slice_new || now.saturating_add(work) > queue.slice_end
    }

    /// How many async requests the time since the last slow sync request allows.
    fn async_depth(&self, dispatched: u64, now: u64) -> u64 {
        if self.profile.async_ramp == Ramp::None || self.settings.low_latency == 0 {
            return u64::MAX;
        }
        let since = self.last_delayed_sync.map_or(0, |last| (now as i64).saturating_sub(last).max(0) as u64);
        let depth = since / self.derived.slice_base[1].max(1);
        if depth == 0 && dispatched == 0 { 1 } else { depth }
    }

    /// No request now: until when?
    fn wait(&self, env: &mut Env<'_>) -> Dispatch {
        if self.timer_ns == NEVER {
            return Dispatch::Empty;
        }
        if let Some(active) = self.active.filter(|_| env.rounds.in_use()) {
            env.rounds.wait_for(self.queue(active).group, env.now, self.timer_ns);
        }
        Dispatch::Idle { until: self.timer_ns }
    }

    /// [`Trees::Workloads`]: the only busy queue is near the end of its slice at a completion. Its group would leave
    /// the round and lose its place, so it may be waited for a little longer.
    fn waits_busy(&self, env: &Env<'_>, id: QueueId, now: u64) -> bool {
        let keeps_place = self.profile.trees == Trees::Workloads || self.group_is_worth_waiting(env, id);
        if !keeps_place || self.shares_group(id) {
            return false;
        }
        let queue = self.queue(id);
        let left = queue.slice_end.saturating_sub(now);
        let think = self.active_context.and_then(|context| self.contexts[context.index()].think.mean());
        left <= self.derived.tick || think.is_some_and(|mean| left < mean)
    }
}

impl Derived {
    fn new(settings: &Settings, units: Units) -> Derived {
        Derived {
            fifo_expire: [
                units.round_up(settings.fifo_expire_async),
                units.round_up(settings.fifo_expire_sync),
            ],
            slice: queue::slices(units, settings.slice_async, settings.slice_sync),
            slice_base: [units.round_up(settings.slice_async), units.round_up(settings.slice_sync)],
            slice_idle: units.round_up(settings.slice_idle),
            seeky_idle: units.round_up(2 * crate::MS),
            back_seek: BackSeek {
                sectors_max: 2 * settings.back_seek_max,
                penalty: settings.back_seek_penalty,
            },
            tick: units.tick,
            second: units.round_up(crate::SECOND) as i64,
            idle_class_delay: units.round_up(200 * crate::MS) as i64,
            target_latency: units.round_up(300 * crate::MS),
        }
    }
}

impl Elevator for Cfq {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn insert(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let now = self.enter(env);
        let requests = env.requests;
        let request = &requests[rq];
        if self.last_delayed_sync.is_none() {
            self.last_delayed_sync = Some(now as i64 - self.derived.second);
        }
        let id = self.queue_for(env, request, now);
        let deadline = match self.profile.deadline_from {
            DeadlineFrom::Start => self.units.at(request.start_ns),
            DeadlineFrom::Insert => now,
        };
        let deadline = deadline.saturating_add(self.derived.fifo_expire[usize::from(request.is_sync())]);
        self.held[rq.index()] = Held { owner: id, queued: true };
        let queue = &mut self.queues[id.index()];
        queue.meta_queued += u32::from(request.flags.contains(Flags::META));
        self.add(env, id, rq, deadline, now);
        self.learn(env, id, request, now);
        let takes_back = self.settings.yields != 0 && self.heed_arrival(id, request.context, now);

        if self.active == Some(id) {
            self.arrived_for_active(id, request);
        } else if takes_back || self.should_preempt(env, id, request, now) {
            self.preempt(env, id, now);
        }
    }

    fn dispatch(&mut self, env: &mut Env<'_>, _group: GroupId) -> Dispatch {
        let now = self.enter(env);
        if self.queued == 0 {
            return Dispatch::Empty;
        }
        let Some(id) = self.select(env, now) else { return self.wait(env) };
        if !self.may_dispatch(env, id, now) {
            return self.wait(env);
        }
        let Some(rq) = self.overdue(id, now).or(self.queue(id).next) else {
            debug_assert!(false, "a selected queue has a next request");
            return self.wait(env);
        };
        self.take(env, id, rq);
        if self.active_context.is_none() {
            self.active_context = Some(env.requests[rq].context);
        }

        let queue = self.queue_mut(id);
        queue.slice_dispatched += 1;
        queue.must_dispatch = false;
        let (sync, class, level, sent) = (queue.sync, queue.class, queue.level, queue.slice_dispatched);
        if self.busy > 1 && (class == IoClass::Idle || (!sync && sent >= self.async_requests_max(level))) {
            self.expire(env, now, Residual::Drop);
        }
        Dispatch::Issue(rq)
    }

    fn drain(&mut self, env: &mut Env<'_>) -> Option<RequestId> {
        let now = self.enter(env);
        match self.active {
            Some(id) if self.profile.trees == Trees::Single && self.queued > 0 => {
                // Expires last, but must be found.
                if self.queue(id).is_busy() {
                    self.place(id, now, Turn::InOrder);
                }
            }
            _ => self.expire(env, now, Residual::Drop),
        }
        let groups = &self.groups;
        let group = first_occupied(&mut self.drained, groups.len(), |group| groups[group].busy == 0)?;
        let id = groups[group].first()?;
        let rq = self.queue(id).next?;
        self.take(env, id, rq);
        if self.queue(id).is_empty() {
            self.leave_round(env, id);
        }
        Some(rq)
    }

    fn is_empty(&self) -> bool {
        self.queued == 0
    }

    fn issued(&mut self, env: &mut Env<'_>, rq: RequestId) {
        self.run_timer(env);
        self.in_driver += 1;
        self.head = env.requests[rq].end();
    }

    fn requeued(&mut self, env: &mut Env<'_>, _rq: RequestId) {
        self.enter(env);
        self.in_driver = self.in_driver.saturating_sub(1);
    }

    fn completed(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let now = self.enter(env);
        let requests = env.requests;
        let request = &requests[rq];
        let sync = request.is_sync();
        let id = self.held[rq.index()].owner;
        self.probe_depth();
        self.in_driver = self.in_driver.saturating_sub(1);
        let queue = self.queue_mut(id);
        queue.dispatched = queue.dispatched.saturating_sub(1);
        let kind = usize::from(queue.sync);
        self.in_flight[kind] = self.in_flight[kind].saturating_sub(1);
        if sync {
            self.contexts[request.context.index()].last_completion = now;
            let slow = self.units.at(request.start_ns).saturating_add(self.derived.fifo_expire[1]) <= now;
            if slow && request.status == Status::Done {
                self.last_delayed_sync = Some(now as i64);
            }
            if self.settings.yields != 0 {
                self.heed_completion(id, now);
            }
        }
        if self.active == Some(id) {
            self.completed_for_active(env, id, request, now);
        } else if env.rounds.in_use() {
            self.completed_for_other(id, now);
        }
        self.reap(env, id, now);
    }

    fn find_front(&self, env: &Env<'_>, bio: &Bio) -> Option<RequestId> {
        let id = self.find_queue(env.contexts, bio.context, env.group_of(bio), bio.is_sync())?;
        self.queue(id).requests.find(&self.links, bio.end())
    }

    fn allow_merge(&mut self, env: &Env<'_>, rq: RequestId, bio: &Bio) -> bool {
        if bio.is_sync() && !env.requests[rq].is_sync() {
            return false;
        }
        let held = self.held[rq.index()];
        let group = env.group_of(bio);
        held.queued && self.find_queue(env.contexts, bio.context, group, bio.is_sync()) == Some(held.owner)
    }

    fn grew(&mut self, env: &mut Env<'_>, rq: RequestId, growth: Growth) {
        let now = self.enter(env);
        let held = self.held[rq.index()];
        if growth == Growth::Back || !held.queued {
            return;
        }
        self.resort(env, held.owner, rq, now);
    }

    fn absorbed(&mut self, env: &mut Env<'_>, rq: RequestId, gone: RequestId) {
        let now = self.enter(env);
        let (held, lost) = (self.held[rq.index()], self.held[gone.index()]);
        if !lost.queued {
            return;
        }
        let same_queue = held.queued && held.owner == lost.owner;
        if same_queue {
            self.queues[held.owner.index()].requests.inherit(&mut self.links, rq, gone);
        }
        if same_queue && self.queue(lost.owner).next == Some(gone) {
            self.queue_mut(lost.owner).next = Some(rq);
        }
        self.forget_request(env, lost.owner, gone, now);
    }

    fn former(&self, _env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        let held = &self.held[rq.index()];
        self.queue(held.owner).requests.prev(&self.links, rq).filter(|_| held.queued)
    }

    fn latter(&self, _env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        let held = &self.held[rq.index()];
        self.queue(held.owner).requests.next(&self.links, rq).filter(|_| held.queued)
    }

    fn may_queue(&mut self, env: &mut Env<'_>, context: ContextId, sync: bool) -> MayQueue {
        self.enter(env);
        let Some(id) = self.find_own_queue(env.contexts, context, sync) else { return MayQueue::May };
        self.refresh_ioprio(id, env.contexts[context].ioprio);
        let queue = self.queue_mut(id);
        if queue.waiting && !queue.must_allocated {
            queue.must_allocated = true;
            return MayQueue::Must;
        }
        MayQueue::May
    }

    fn context_exit(&mut self, env: &mut Env<'_>, context: ContextId) {
        let now = self.enter(env);
        self.forget_yield(context);
        self.forget(env, context, now);
    }

    fn context_moved(&mut self, env: &mut Env<'_>, context: ContextId) {
        let now = self.enter(env);
        self.forget_yield(context);
        self.forget(env, context, now);
    }

    fn remove(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let now = self.enter(env);
        let held = self.held[rq.index()];
        if held.queued {
            self.forget_request(env, held.owner, rq, now);
        }
    }

    fn attached(&mut self, env: &mut Env<'_>) {
        (0..self.groups.len()).for_each(|index| self.settle(env, GroupId::from_index(index)));
    }

    fn queue_started(&mut self, group: GroupId) {
        self.groups[group.index()].workload.forget();
    }

    fn grouping(&self) -> Grouping {
        Grouping::Own
    }

    fn ioprio_changed(&mut self, env: &mut Env<'_>, context: ContextId) {
        self.enter(env);
        if let Some(id) = self.find_own_queue(env.contexts, context, true) {
            self.queue_mut(id).ioprio_stale = true;
        }
    }

    fn yield_to(&mut self, env: &mut Env<'_>, from: ContextId, to: Option<ContextId>) {
        let now = self.enter(env);
        if self.settings.yields != 0 {
            self.accept_yield(env, from, to, now);
        }
    }

    fn idling_for(&self) -> Option<ContextId> {
        self.active_context.filter(|_| self.timer_ns != NEVER)
    }

    fn tunables(&self) -> &'static [Tunable] {
        self.profile.tunables
    }

    fn setting(&mut self, name: &str) -> Option<&mut u64> {
        crate::tunable::find(self.profile.tunables, name)?;
        Some(match name {
            "quantum" => &mut self.settings.quantum,
            "fifo_expire_sync" => &mut self.settings.fifo_expire_sync,
            "fifo_expire_async" => &mut self.settings.fifo_expire_async,
            "back_seek_max" => &mut self.settings.back_seek_max,
            "back_seek_penalty" => &mut self.settings.back_seek_penalty,
            "slice_sync" => &mut self.settings.slice_sync,
            "slice_async" => &mut self.settings.slice_async,
            "slice_async_rq" => &mut self.settings.slice_async_rq,
            "slice_idle" => &mut self.settings.slice_idle,
            "low_latency" => &mut self.settings.low_latency,
            "yield" => &mut self.settings.yields,
            "group_isolation" => &mut self.settings.group_isolation,
            _ => return None,
        })
    }

    fn settings_changed(&mut self) {
        self.derived = Derived::new(&self.settings, self.units);
        if self.settings.yields == 0 {
            (self.yielded, self.pair) = (None, None);
        }
    }
}

impl Cfq {
    /// `rq` leaves the queue `id` without being dispatched.
    fn forget_request(&mut self, env: &mut Env<'_>, id: QueueId, rq: RequestId, now: u64) {
        if self.queue(id).next == Some(rq) {
            let next = self.next_after(env.requests, self.queue(id), rq);
            self.queue_mut(id).next = next;
        }
        self.unlink(env, id, rq);
        if self.queue(id).is_empty() && self.active != Some(id) {
            self.leave_round(env, id);
        } else if self.active != Some(id) {
            self.update_position(env.requests, id);
        }
        self.reap(env, id, now);
    }

    /// A request of the active queue is done: begin its slice, end it, or wait for the next request.
    #[inline]
    fn completed_for_active(&mut self, env: &mut Env<'_>, id: QueueId, request: &Request, now: u64) {
        if self.queue(id).slice_new {
            self.begin_slice(env, id, now);
        }
        if self.waits_busy(env, id, now) {
            let end = now + self.busy_wait(env);
            let queue = self.queue_mut(id);
            queue.slice_end = end;
            queue.wait_busy = true;
        }
        let queue = self.queue(id);
        if queue.slice_used(now) || queue.class == IoClass::Idle {
            self.expire(env, now, Residual::Keep);
            return;
        }
        if !request.is_sync() || !queue.is_empty() {
            return;
        }
        let no_idle = request.flags.contains(Flags::NOIDLE);
        let worth_it = match self.profile.trees {
            // That the queue need not be waited for says nothing of its group, which would lose its place. Looking for a
            // cooperator costs most: last.
            Trees::Single => {
                let wanted = !no_idle && queue.idle_window || self.group_is_worth_waiting(env, id);
                wanted && !self.has_cooperator(env, id)
            }
            Trees::Workloads => {
                if self.has_cooperator(env, id) {
                    return;
                }
                let group = self.group_of_mut(id);
                group.workload.wants_idle |= !no_idle;
                let tree = group.workload.kind() == Kind::Sync || group.workload.wants_idle;
                self.profile.noidle == NoIdle::MovesQueue || tree || !self.shares_group(id)
            }
        };
        if worth_it {
            self.arm(env, id, no_idle, now);
        }
    }
}
