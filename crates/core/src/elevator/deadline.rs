//! deadline: batches in ascending sector order, cut short for requests that have waited too long.
//!
//! Requests are split in two classes. Each class has a tree (by start sector) and a FIFO (by arrival, every entry with
//! a deadline). A *batch* takes up to `fifo_batch` requests upwards from one place of one tree; only between batches
//! is a class chosen and its FIFO head looked at. Never idles, never withholds. Each group has trees, FIFOs and a batch of its own.
//!
//! # Which requests form a class: the tunable `classes`
//! | `classes` | first class | second class | status |
//! |---|---|---|---|
//! | `direction` | reads | writes | Linux 2.6.28 to 2.6.37 `block/deadline-iosched.c`, verified |
//! | `sync-async` | reads and sync writes | async writes | C. Zoccolo, 24 April 2009, reconstructed |
//! | `full` | best-effort reads, RT and BE sync writes | async writes, all of the idle class | C. Zoccolo, 22 April 2009, reconstructed |
//!
//! The tunables keep the kernel's names in all three: `read_expire` is the first class's, `write_expire` and
//! `writes_starved` the second's (the *sync_expire*, *async_expire* and *async_starved* of the posts).
//!
//! `full` adds a level above both, RT-class reads, which always wins, ends a running batch of the others and may starve
//! them; and three heuristics: a batch also lasts at least `quantum`; a batch that starts because of an expired request
//! starts `fifo_batch / 3` requests below it, because low sectors miss their deadlines more often; on a device without
//! seek cost everything but the second class goes in order of arrival.
//!
//! # What is verified about the two reconstructions
//! The opening mail (22 April 2009, its first part) states the three levels and the three heuristics; the founding post
//! (24 April 2009) states that FIFOs and the choice go by sync/async. The bodies of the patches were not found. Ours
//! are therefore, and may differ from his: the trees going by class too; refusing to merge a bio into a request of a
//! lower class (else a background write would take an fsync's page down with it); the defaults of `rt_expire` and
//! `quantum`; RT ending a running batch at once; looking back for the same request only once, so that a stream of
//! arrivals below it cannot hold it off for ever; a bound on that walk.
//!
//! # Changing `classes` with requests queued
//! A request stays where it was filed. The three levels always exist (`direction` and `sync-async` merely file nothing
//! under RT), so what an earlier setting filed is served by the same rules until it is gone.
//!
//! Source: `docs/sources.md`, Linux 2.6.30 deadline and the mails above.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Config, Descriptor, Dispatch, Elevator, Env, Grouping, Growth, Placement, first_occupied};
use crate::collections::{Id, List, ListLinks, Tree, TreeLinks};
use crate::context::{IoClass, IoPrio};
use crate::group::GroupId;
use crate::request::{Bio, Op, RequestId};
use crate::tunable::{Tunable, Unit};

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "deadline",
    about: "batches in sector order, reads before writes, with a deadline for every request",
    profiles: &[],
    tunables: |_| TUNABLES,
    build: |config, _| Box::new(Deadline::new(config)),
};

/// The largest number the kernel's sysfs files take.
const INT_MAX: u64 = i32::MAX as u64;

const READ_EXPIRE: Tunable = Tunable::new(
    "read_expire",
    Unit::Milliseconds,
    (0, INT_MAX),
    500,
    "deadline of a read (of the first class), looked at between batches",
);
const WRITE_EXPIRE: Tunable = Tunable::new(
    "write_expire",
    Unit::Milliseconds,
    (0, INT_MAX),
    5000,
    "deadline of a write (of the second class), looked at between batches",
);
const WRITES_STARVED: Tunable = Tunable::new(
    "writes_starved",
    Unit::Number,
    (0, INT_MAX),
    2,
    "batches of reads (first class) before waiting writes (second class) get one",
);
const FIFO_BATCH: Tunable = Tunable::new(
    "fifo_batch",
    Unit::Requests,
    (0, INT_MAX),
    16,
    "requests in a batch: more means fewer seeks and longer waits",
);
const FRONT_MERGES: Tunable = Tunable::new(
    "front_merges",
    Unit::Switch,
    (0, 1),
    1,
    "look for requests that a bio can be put in front of",
);
const CLASSES: Tunable = Tunable::new(
    "classes",
    Unit::Choice(&["direction", "sync-async", "full"]),
    (0, 2),
    0,
    "what reads and writes mean above: direction, sync and async, or that with an RT level and heuristics",
);
/// Default: a quarter of `read_expire`; of the original we know only that it was the shortest.
const RT_EXPIRE: Tunable = Tunable::new(
    "rt_expire",
    Unit::Milliseconds,
    (0, INT_MAX),
    125,
    "classes=full: deadline of an RT read, looked at between batches",
);
/// Default: what CFQ of the same kernels gives an async queue at a time (`slice_async`). Sixteen random requests of a
/// 7200/min disk take three to five times as long, so that they never profit; at 100 MB/s it is twice sixteen
/// sequential requests of 128 KiB. The original's value is not known.
const QUANTUM: Tunable = Tunable::new(
    "quantum",
    Unit::Milliseconds,
    (0, INT_MAX),
    40,
    "classes=full: a batch goes on beyond fifo_batch until it has lasted this long",
);

const TUNABLES: &[Tunable] =
    &[READ_EXPIRE, WRITE_EXPIRE, WRITES_STARVED, FIFO_BATCH, FRONT_MERGES, CLASSES, RT_EXPIRE, QUANTUM];

/// Positions of two words of [`CLASSES`]; the third, 0, needs no name.
const SYNC_ASYNC: u64 = 1;
const FULL: u64 = 2;

/// Looking back stops here however large `fifo_batch` is: the walk happens under the host's lock.
const LOOK_BACK_MAX: u64 = 32;

/// Where a request is filed, best first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Level {
    /// RT-class reads, with `classes=full`.
    Urgent,
    First,
    Second,
}

/// The requests of one level, each in both orders.
#[derive(Default)]
struct LevelQueue {
    tree: Tree<RequestId>,
    fifo: List<RequestId>,
}

/// What is kept per request.
#[derive(Clone, Copy)]
struct Filed {
    /// `None`: not here.
    level: Option<Level>,
    /// It has expired once the clock shows more than this.
    deadline_ns: u64,
}

struct Settings {
    read_expire_ns: u64,
    write_expire_ns: u64,
    writes_starved: u64,
    fifo_batch: u64,
    front_merges: u64,
    classes: u64,
    rt_expire_ns: u64,
    quantum_ns: u64,
}

/// What the rules come to, in the elevator's clock.
#[derive(Default)]
struct Limits {
    /// Deadlines by level, rounded up to whole ticks.
    expire_ns: [u64; 3],
    /// `quantum`, or 0 where it has no say.
    batch_min_ns: u64,
    /// How many requests below an expired one its batch starts.
    look_back: u64,
}

/// The queue of one group.
#[derive(Default)]
struct GroupQueue {
    levels: [LevelQueue; 3],
    /// Who comes next if the batch goes on: the request behind the one that left last.
    next: Option<RequestId>,
    /// Requests of this batch so far.
    batched: u64,
    batch_since_ns: u64,
    /// Batches of the first class since the second one waits.
    starved: u64,
    /// The expired request for whose sake the last batch started below it.
    looked_back_for: Option<RequestId>,
}

/// What is the same for every group: the links of all trees and lists, and the rules.
struct Shared {
    filed: Vec<Filed>,
    tree_links: TreeLinks<RequestId, u64>,
    fifo_links: ListLinks<RequestId>,
    settings: Settings,
    tick_ns: u64,
    limits: Limits,
}

struct Deadline {
    groups: Vec<GroupQueue>,
    shared: Shared,
    /// Where draining goes on.
    drained: usize,
}

impl Shared {
    /// The level of new I/O.
    #[inline]
    fn classify(&self, op: Op, sync: bool, ioprio: IoPrio) -> Level {
        let read = op == Op::Read;
        let first = match (self.settings.classes, ioprio.class()) {
            (FULL, IoClass::RealTime) if read => return Level::Urgent,
            (FULL, IoClass::Idle) => false,
            (SYNC_ASYNC | FULL, _) => sync,
            _ => read,
        };
        if first { Level::First } else { Level::Second }
    }

    fn level_of_bio(&self, env: &Env<'_>, bio: &Bio) -> Level {
        let ioprio = bio.ioprio.unwrap_or(env.contexts[bio.context].ioprio);
        self.classify(bio.op, bio.is_sync(), ioprio)
    }

    #[inline]
    fn level_of(&self, rq: RequestId) -> Option<Level> {
        self.filed[rq.index()].level
    }

    /// Is this level served in order of arrival rather than by sector?
    fn is_fifo(&self, level: Level, rotational: bool) -> bool {
        self.settings.classes == FULL && !rotational && level != Level::Second
    }
}

impl GroupQueue {
    fn queue(&self, level: Level) -> &LevelQueue {
        &self.levels[level as usize]
    }

    fn is_waiting(&self, level: Level) -> bool {
        !self.queue(level).fifo.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.levels.iter().all(|queue| queue.fifo.is_empty())
    }

    // ---- the decision ----

    #[inline]
    fn pick(&mut self, shared: &mut Shared, env: &Env<'_>) -> Option<RequestId> {
        let now = Config::jiffies(shared.tick_ns, env.now);
        let rq = match self.batch_goes_on_with(shared, now) {
            Some(next) => next,
            None => {
                let level = self.choose_level(shared.settings.writes_starved)?;
                self.batched = 0;
                self.batch_since_ns = now;
                self.batch_start(shared, level, now, env.device.rotational)?
            }
        };
        self.batched = self.batched.saturating_add(1);
        self.next = self.remove(shared, rq, env.device.rotational);
        Some(rq)
    }

    #[inline]
    fn batch_goes_on_with(&self, shared: &Shared, now: u64) -> Option<RequestId> {
        let next = self.next?;
        let used_up = self.batched >= shared.settings.fifo_batch
            && now.saturating_sub(self.batch_since_ns) >= shared.limits.batch_min_ns;
        let overruled = self.is_waiting(Level::Urgent) && shared.level_of(next) != Some(Level::Urgent);
        (!used_up && !overruled).then_some(next)
    }

    fn choose_level(&mut self, writes_starved: u64) -> Option<Level> {
        if self.is_waiting(Level::Urgent) {
            return Some(Level::Urgent);
        }
        match (self.is_waiting(Level::First), self.is_waiting(Level::Second)) {
            (true, true) if self.starved < writes_starved => {
                self.starved += 1;
                Some(Level::First)
            }
            (true, false) => Some(Level::First),
            (_, true) => {
                self.starved = 0;
                Some(Level::Second)
            }
            (false, false) => None,
        }
    }

    /// With whom a batch of `level` starts: an expired head of the FIFO (or somebody below it), else where the last batch
    /// of the same level stopped, else the head.
    fn batch_start(
        &mut self,
        shared: &Shared,
        level: Level,
        now: u64,
        rotational: bool,
    ) -> Option<RequestId> {
        let head = self.queue(level).fifo.front()?;
        if now > shared.filed[head.index()].deadline_ns {
            return Some(self.look_back(shared, level, head, rotational));
        }
        Some(self.next.filter(|next| shared.level_of(*next) == Some(level)).unwrap_or(head))
    }

    /// The request `look_back` places below the expired `head`, as far as there are any.
    fn look_back(&mut self, shared: &Shared, level: Level, head: RequestId, rotational: bool) -> RequestId {
        let most = shared.limits.look_back;
        if most == 0 || shared.is_fifo(level, rotational) || self.looked_back_for == Some(head) {
            return head;
        }
        self.looked_back_for = Some(head);
        let mut start = head;
        for _ in 0..most {
            let Some(below) = self.queue(level).tree.prev(&shared.tree_links, start) else { break };
            start = below;
        }
        start
    }

    // ---- filing ----

    /// Put `rq` into its level's tree. A level has one request per start sector: an older one goes to the device first.
    #[inline(always)] // with `remove` saves 10 instructions a request
    fn sort_in(&mut self, shared: &mut Shared, env: &mut Env<'_>, level: Level, rq: RequestId) {
        let sector = env.requests[rq].sector;
        let tree = &mut self.levels[level as usize].tree;
        if let Err(alias) = tree.insert_unique(&mut shared.tree_links, rq, sector) {
            self.send_away(shared, env, alias);
            self.levels[level as usize].tree.insert(&mut shared.tree_links, rq, sector);
        }
    }

    /// `alias` makes way for a request that starts at the same sector. The batch goes on behind the one that leaves, not
    /// with the newcomer, which is not there yet.
    #[cold]
    fn send_away(&mut self, shared: &mut Shared, env: &mut Env<'_>, alias: RequestId) {
        self.next = self.remove(shared, alias, env.device.rotational);
        env.dispatch.place(env.requests, alias, Placement::Tail);
    }

    /// Forget `rq`. Answers with the one behind it in the order its level is served in.
    #[inline(always)] // see `sort_in`
    fn remove(&mut self, shared: &mut Shared, rq: RequestId, rotational: bool) -> Option<RequestId> {
        let level = shared.filed[rq.index()].level.take()?;
        if self.looked_back_for == Some(rq) {
            self.looked_back_for = None;
        }
        let is_fifo = shared.is_fifo(level, rotational);
        let queue = &mut self.levels[level as usize];
        let above = queue.tree.next(&shared.tree_links, rq);
        queue.tree.remove(&mut shared.tree_links, rq);
        queue.fifo.remove(&mut shared.fifo_links, rq);
        if is_fifo { queue.fifo.front() } else { above }
    }
}

impl Deadline {
    fn new(config: &Config) -> Deadline {
        let shared = Shared {
            filed: alloc::vec![Filed { level: None, deadline_ns: 0 }; config.requests_max],
            tree_links: TreeLinks::new(config.requests_max),
            fifo_links: ListLinks::new(config.requests_max),
            settings: Settings {
                read_expire_ns: READ_EXPIRE.stored_default(),
                write_expire_ns: WRITE_EXPIRE.stored_default(),
                writes_starved: WRITES_STARVED.stored_default(),
                fifo_batch: FIFO_BATCH.stored_default(),
                front_merges: FRONT_MERGES.stored_default(),
                classes: CLASSES.stored_default(),
                rt_expire_ns: RT_EXPIRE.stored_default(),
                quantum_ns: QUANTUM.stored_default(),
            },
            tick_ns: config.tick_ns,
            limits: Limits::default(),
        };
        let groups = (0..config.groups_max.max(1)).map(|_| GroupQueue::default()).collect();
        let mut deadline = Deadline { groups, shared, drained: 0 };
        deadline.settings_changed();
        deadline
    }

    /// The queue that `rq`, which is filed, is in.
    fn queue_of(&self, env: &Env<'_>, rq: RequestId) -> Option<&LevelQueue> {
        let level = self.shared.level_of(rq)?;
        Some(self.groups[env.requests[rq].group.index()].queue(level))
    }
}

impl Elevator for Deadline {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn insert(&mut self, env: &mut Env<'_>, rq: RequestId) {
        let request = &env.requests[rq];
        let shared = &mut self.shared;
        let level = shared.classify(request.op, request.is_sync(), request.ioprio);
        let group = &mut self.groups[request.group.index()];
        group.sort_in(shared, env, level, rq);
        group.levels[level as usize].fifo.push_back(&mut shared.fifo_links, rq);
        let expire_ns = shared.limits.expire_ns[level as usize];
        let deadline_ns = Config::jiffies(shared.tick_ns, env.now).saturating_add(expire_ns);
        shared.filed[rq.index()] = Filed { level: Some(level), deadline_ns };
    }

    fn dispatch(&mut self, env: &mut Env<'_>) -> Dispatch {
        self.dispatch_group(env, GroupId::ROOT)
    }

    fn dispatch_group(&mut self, env: &mut Env<'_>, group: GroupId) -> Dispatch {
        self.groups[group.index()].pick(&mut self.shared, env).map_or(Dispatch::Empty, Dispatch::Issue)
    }

    /// In the order of its policy, as the kernel's, which does not look at *force*.
    fn drain(&mut self, env: &mut Env<'_>) -> Option<RequestId> {
        let Deadline { groups, shared, drained } = self;
        let group = first_occupied(drained, groups.len(), |group| groups[group].is_empty())?;
        groups[group].pick(shared, env)
    }

    fn is_empty(&self) -> bool {
        self.groups.iter().all(GroupQueue::is_empty)
    }

    fn grouping(&self) -> Grouping {
        Grouping::Queues
    }

    fn group_started(&mut self, group: GroupId) {
        self.groups[group.index()] = GroupQueue::default();
    }

    fn placement(&self) -> Placement {
        Placement::Tail
    }

    fn watches_device(&self) -> bool {
        false
    }

    fn find_front(&self, env: &Env<'_>, bio: &Bio) -> Option<RequestId> {
        if self.shared.settings.front_merges == 0 {
            return None;
        }
        let group = &self.groups[env.group_of(bio).index()];
        group.queue(self.shared.level_of_bio(env, bio)).tree.find(&self.shared.tree_links, bio.end())
    }

    /// Not into a request of a lower level. With `classes=direction` that cannot arise: reads never meet writes.
    fn allow_merge(&mut self, env: &Env<'_>, rq: RequestId, bio: &Bio) -> bool {
        let level = self.shared.level_of_bio(env, bio);
        self.shared.level_of(rq).is_some_and(|filed| filed <= level)
    }

    fn grew(&mut self, env: &mut Env<'_>, rq: RequestId, growth: Growth) {
        let Some(level) = self.shared.level_of(rq) else { return };
        if growth == Growth::Front {
            let group = &mut self.groups[env.requests[rq].group.index()];
            group.levels[level as usize].tree.remove(&mut self.shared.tree_links, rq);
            group.sort_in(&mut self.shared, env, level, rq);
        }
    }

    fn absorbed(&mut self, env: &mut Env<'_>, rq: RequestId, gone: RequestId) {
        let shared = &mut self.shared;
        let (kept, leaving) = (shared.filed[rq.index()], shared.filed[gone.index()]);
        let same_group = env.requests[rq].group == env.requests[gone].group;
        let group = &mut self.groups[env.requests[gone].group.index()];
        if let Some(level) = leaving.level
            && kept.level == Some(level)
            && same_group
            && leaving.deadline_ns < kept.deadline_ns
        {
            let fifo = &mut group.levels[level as usize].fifo;
            fifo.remove(&mut shared.fifo_links, rq);
            fifo.insert_before(&mut shared.fifo_links, gone, rq);
            shared.filed[rq.index()].deadline_ns = leaving.deadline_ns;
        }
        let behind = group.remove(shared, gone, env.device.rotational);
        if group.next == Some(gone) {
            group.next = behind;
        }
    }

    fn former(&self, env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        self.queue_of(env, rq)?.tree.prev(&self.shared.tree_links, rq)
    }

    fn latter(&self, env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        self.queue_of(env, rq)?.tree.next(&self.shared.tree_links, rq)
    }

    fn tunables(&self) -> &'static [Tunable] {
        TUNABLES
    }

    fn setting(&mut self, name: &str) -> Option<&mut u64> {
        let settings = &mut self.shared.settings;
        Some(match name {
            "read_expire" => &mut settings.read_expire_ns,
            "write_expire" => &mut settings.write_expire_ns,
            "writes_starved" => &mut settings.writes_starved,
            "fifo_batch" => &mut settings.fifo_batch,
            "front_merges" => &mut settings.front_merges,
            "classes" => &mut settings.classes,
            "rt_expire" => &mut settings.rt_expire_ns,
            "quantum" => &mut settings.quantum_ns,
            _ => return None,
        })
    }

    /// Requests that are queued keep the deadline and the level they have.
    fn settings_changed(&mut self) {
        let Shared { settings, tick_ns, .. } = &self.shared;
        let expires_ns = [settings.rt_expire_ns, settings.read_expire_ns, settings.write_expire_ns];
        let full = settings.classes == FULL;
        self.shared.limits = Limits {
            expire_ns: expires_ns.map(|span_ns| whole_ticks(*tick_ns, span_ns)),
            batch_min_ns: if full { whole_ticks(*tick_ns, settings.quantum_ns) } else { 0 },
            look_back: if full { (settings.fifo_batch / 3).min(LOOK_BACK_MAX) } else { 0 },
        };
    }
}

/// A span as a jiffy-era timer counts it: the next full number of ticks, as the kernel's `msecs_to_jiffies`.
fn whole_ticks(tick_ns: u64, span_ns: u64) -> u64 {
    if tick_ns == 0 { span_ns } else { span_ns.div_ceil(tick_ns).saturating_mul(tick_ns) }
}
