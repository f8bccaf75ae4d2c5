//! deadline: batches in ascending sector order, cut short for requests that have waited too long.
//!
//! Requests are split in two classes. Each class has a tree (by start sector) and a FIFO (by arrival, every entry with
//! a deadline). A *batch* takes up to `fifo_batch` requests upwards from one place of one tree; only between batches
//! is a class chosen and its FIFO head looked at. Never idles, never withholds.
//!
//! # Which requests form a class: the tunable `classes`
//! | `classes` | first class | second class | status |
//! |---|---|---|---|
//! | `direction` | reads | writes | Linux 2.6.28 to 2.6.37 `block/deadline-iosched.c`, verified |
//! | `sync-async` | reads and sync writes | async writes | C. Zoccolo, 24 April 2009, reconstructed |
//! | `full` | best-effort reads, RT and BE sync writes | async writes, all of the idle class | C. Zoccolo, 22 April 2009, reconstructed |
//!
//! The tunables keep the kernel's names in all three: `read_expire` is the first class's, `write_expire` and
//! `writes_starved` the second's (the *sync_expire*, *async_expire* and *async_starved* of the letters).
//!
//! `full` adds a level above both, RT-class reads, which always wins, ends a running batch of the others and may starve
//! them; and three heuristics: a batch also lasts at least `quantum`; a batch that starts because of an expired request
//! starts `fifo_batch / 3` requests below it, because low sectors miss their deadlines more often; on a device without
//! seek cost everything but the second class goes in order of arrival.
//!
//! # What is verified about the two reconstructions
//! The opening mail (22 April 2009, its first part) states the three levels and the three heuristics; the letter of
//! 24 April 2009 states that FIFOs and the choice follow sync and async. The bodies of the patches were not found. Ours
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

use super::{AnyElevator, Config, Descriptor, Dispatch, Env, Growth, PerGroup, Placement, Policy};
use crate::collections::{SortedFifo, SortedFifoLinks};
use crate::context::{IoClass, IoPrio};
use crate::request::{Bio, Op, Request, RequestId};
use crate::tunable::{Tunable, Unit};

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "deadline",
    about: "batches in sector order, reads before writes, with a deadline for every request",
    profiles: &[],
    tunables: |_| TUNABLES,
    build: |config, _| AnyElevator::Deadline(PerGroup::new(Deadline::new(config), config.groups_max)),
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

/// Positions of the words of [`CLASSES`].
const DIRECTION: u64 = 0;
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

impl Level {
    /// The level of this number.
    #[inline]
    fn of(number: u8) -> Level {
        match number {
            0 => Level::Urgent,
            1 => Level::First,
            _ => Level::Second,
        }
    }
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

/// What the settings come to, in the elevator's clock.
#[derive(Default)]
struct Derived {
    /// Deadlines by level, rounded up to whole ticks.
    expire_ns: [u64; 3],
    /// `quantum`, or 0 where it has no say.
    batch_min_ns: u64,
    /// How many requests below an expired one its batch starts.
    look_back: u64,
}

/// One queue.
#[derive(Clone, Default)]
pub struct Queue {
    levels: [SortedFifo<RequestId>; 3],
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

/// deadline: the rules, and the links of all queues.
pub struct Deadline {
    /// A request's queue there is its level.
    links: SortedFifoLinks<RequestId>,
    settings: Settings,
    tick_ns: u64,
    /// The last tick that was asked for: most often the clock has not gone on by one.
    last_tick_ns: u64,
    derived: Derived,
}

impl Deadline {
    /// The level of new I/O.
    #[inline]
    fn classify(&self, op: Op, sync: bool, ioprio: IoPrio) -> Level {
        if self.settings.classes == DIRECTION {
            return if op == Op::Read { Level::First } else { Level::Second };
        }
        self.classify_by_class(op, sync, ioprio)
    }

    #[inline(never)]
    fn classify_by_class(&self, op: Op, sync: bool, ioprio: IoPrio) -> Level {
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
        self.links.queue_of(rq).map(Level::of)
    }

    /// `now` in whole ticks.
    #[inline]
    fn tick(&mut self, now: u64) -> u64 {
        if now.wrapping_sub(self.last_tick_ns) >= self.tick_ns {
            self.last_tick_ns = Config::jiffies(self.tick_ns, now);
        }
        self.last_tick_ns
    }

    /// Is this level served in order of arrival rather than by sector?
    fn is_fifo(&self, level: Level, rotational: bool) -> bool {
        self.settings.classes == FULL && !rotational && level != Level::Second
    }
}

impl Queue {
    #[inline]
    fn queue(&self, level: Level) -> &SortedFifo<RequestId> {
        &self.levels[level as usize]
    }

    #[inline]
    fn is_waiting(&self, level: Level) -> bool {
        !self.queue(level).is_empty()
    }

    fn is_empty(&self) -> bool {
        self.levels.iter().all(SortedFifo::is_empty)
    }

    // ---- the decision ----

    #[inline(never)] // one call for all of it
    pub(super) fn pick(&mut self, rules: &mut Deadline, now: u64, rotational: bool) -> Option<RequestId> {
        let rq = match self.batch_goes_on_with(rules, now) {
            Some(next) => next,
            None => {
                let level = self.choose_level(rules.settings.writes_starved)?;
                let now = rules.tick(now);
                self.batched = 0;
                self.batch_since_ns = now;
                self.batch_start(rules, level, now, rotational)?
            }
        };
        self.batched = self.batched.saturating_add(1);
        self.next = self.remove(rules, rq, rotational);
        Some(rq)
    }

    #[inline]
    fn batch_goes_on_with(&self, rules: &mut Deadline, now: u64) -> Option<RequestId> {
        let next = self.next?;
        let used_up = self.batched >= rules.settings.fifo_batch
            && rules.tick(now).saturating_sub(self.batch_since_ns) >= rules.derived.batch_min_ns;
        let overruled = self.is_waiting(Level::Urgent) && rules.level_of(next) != Some(Level::Urgent);
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

    /// The request with which a batch of `level` starts: an expired head of the FIFO (or a request below it by sector), else where the last batch
    /// of the same level stopped, else the head.
    fn batch_start(
        &mut self,
        rules: &Deadline,
        level: Level,
        now: u64,
        rotational: bool,
    ) -> Option<RequestId> {
        let head = self.queue(level).oldest()?;
        if now > rules.links.deadline(head) {
            return Some(self.look_back(rules, level, head, rotational));
        }
        Some(self.next.filter(|next| rules.level_of(*next) == Some(level)).unwrap_or(head))
    }

    /// The request `look_back` places below the expired `head`, as far as there are any.
    fn look_back(&mut self, rules: &Deadline, level: Level, head: RequestId, rotational: bool) -> RequestId {
        let most = rules.derived.look_back;
        if most == 0 || rules.is_fifo(level, rotational) || self.looked_back_for == Some(head) {
            return head;
        }
        self.looked_back_for = Some(head);
        let mut start = head;
        for _ in 0..most {
            let Some(below) = self.queue(level).prev(&rules.links, start) else { break };
            start = below;
        }
        start
    }

    // ---- filing ----

    /// A request starts where another one does, which makes way for it ([`Env::alias_goes_out`]): `alias` goes to the device.
    /// The batch goes on behind it, not with `newcomer`, which is not in its place yet.
    #[cold]
    fn send_away(&mut self, rules: &mut Deadline, env: &mut Env<'_>, alias: RequestId, newcomer: RequestId) {
        let rotational = env.device.rotational;
        // In order of arrival the newcomer has its place already.
        let level = rules.level_of(newcomer).filter(|level| !rules.is_fifo(*level, rotational));
        let behind = self.remove(rules, alias, rotational);
        self.next = match (behind, level) {
            (Some(rq), Some(level)) if rq == newcomer => self.queue(level).next(&rules.links, rq),
            _ => behind,
        };
        env.dispatch.place(env.requests, alias, Placement::Tail);
    }

    /// `rq` has left: `behind` comes where it was to come.
    fn forget(&mut self, rq: RequestId, behind: Option<RequestId>) {
        if self.looked_back_for == Some(rq) {
            self.looked_back_for = None;
        }
        if self.next == Some(rq) {
            self.next = behind;
        }
    }

    /// Take `rq` out. Answers with the one behind it in the order its level is served in.
    #[inline(always)] // saves 10 instructions a request
    fn remove(&mut self, rules: &mut Deadline, rq: RequestId, rotational: bool) -> Option<RequestId> {
        let level = rules.level_of(rq)?;
        if self.looked_back_for == Some(rq) {
            self.looked_back_for = None;
        }
        let is_fifo = rules.is_fifo(level, rotational);
        let queue = &mut self.levels[level as usize];
        let above = queue.remove(&mut rules.links, rq);
        if is_fifo { queue.oldest() } else { above }
    }
}

impl Deadline {
    /// File `rq`; where its sector is to be `unique` and another starts there, answers with that one and files nothing.
    #[inline(never)] // one call for all of it
    pub(super) fn file(
        &mut self,
        queue: &mut Queue,
        rq: RequestId,
        request: &Request,
        unique: bool,
        now: u64,
    ) -> Result<(), RequestId> {
        let sector = request.sector;
        let level = self.classify(request.op, request.is_sync(), request.ioprio);
        let deadline_ns = self.tick(now).saturating_add(self.derived.expire_ns[level as usize]);
        let requests = &mut queue.levels[level as usize];
        requests.insert_in(&mut self.links, (rq, level as u8, unique), sector, deadline_ns)
    }

    fn new(config: &Config) -> Deadline {
        let mut deadline = Deadline {
            links: SortedFifoLinks::new(config.requests_max),
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
            last_tick_ns: 0,
            derived: Derived::default(),
        };
        deadline.settings_changed();
        deadline
    }
}

impl Policy for Deadline {
    type Queue = Queue;

    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn new_queue(&self) -> Queue {
        Queue::default()
    }

    fn insert(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        let request = &env.requests[rq];
        if let Err(alias) = self.file(queue, rq, request, env.alias_goes_out(), env.now) {
            queue.send_away(self, env, alias, rq);
            let _ = self.file(queue, rq, request, false, env.now);
        }
    }

    fn dispatch(&mut self, queue: &mut Queue, env: &mut Env<'_>) -> Dispatch {
        queue.pick(self, env.now, env.device.rotational).map_or(Dispatch::Empty, Dispatch::Issue)
    }

    /// In the order of its policy, as the kernel's, which does not look at *force*.
    fn drain(&mut self, queue: &mut Queue, env: &mut Env<'_>) -> Option<RequestId> {
        queue.pick(self, env.now, env.device.rotational)
    }

    fn is_empty(&self, queue: &Queue) -> bool {
        queue.is_empty()
    }

    fn placement(&self) -> Placement {
        Placement::Tail
    }

    fn watches_device(&self) -> bool {
        false
    }

    fn find_front(&self, queue: &Queue, env: &Env<'_>, bio: &Bio) -> Option<RequestId> {
        if self.settings.front_merges == 0 {
            return None;
        }
        queue.queue(self.level_of_bio(env, bio)).find(&self.links, bio.end())
    }

    /// Not into a request of a lower level. With `classes=direction` that cannot arise: reads never meet writes.
    fn allow_merge(&mut self, _queue: &mut Queue, env: &Env<'_>, rq: RequestId, bio: &Bio) -> bool {
        let level = self.level_of_bio(env, bio);
        self.level_of(rq).is_some_and(|filed| filed <= level)
    }

    fn grew(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId, growth: Growth) {
        let Some(level) = self.level_of(rq).filter(|_| growth == Growth::Front) else { return };
        let sector = env.requests[rq].sector;
        let requests = &mut queue.levels[level as usize];
        if !env.alias_goes_out() {
            requests.resort(&mut self.links, rq, sector);
        } else if let Err(alias) = requests.resort_unique(&mut self.links, rq, sector) {
            queue.send_away(self, env, alias, rq);
            queue.levels[level as usize].resort(&mut self.links, rq, sector);
        }
    }

    fn absorbed(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId, gone: RequestId) {
        let Some(level) = self.level_of(gone).filter(|level| self.level_of(rq) == Some(*level)) else {
            return self.remove(queue, env, gone);
        };
        let requests = &mut queue.levels[level as usize];
        let above = requests.absorb(&mut self.links, rq, gone);
        let behind = if self.is_fifo(level, env.device.rotational) { requests.oldest() } else { above };
        queue.forget(gone, behind);
    }

    fn remove(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        let behind = queue.remove(self, rq, env.device.rotational);
        queue.forget(rq, behind);
    }

    fn former(&self, queue: &Queue, rq: RequestId) -> Option<RequestId> {
        queue.queue(self.level_of(rq)?).prev(&self.links, rq)
    }

    fn latter(&self, queue: &Queue, rq: RequestId) -> Option<RequestId> {
        queue.queue(self.level_of(rq)?).next(&self.links, rq)
    }

    fn tunables(&self) -> &'static [Tunable] {
        TUNABLES
    }

    fn setting(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "read_expire" => &mut self.settings.read_expire_ns,
            "write_expire" => &mut self.settings.write_expire_ns,
            "writes_starved" => &mut self.settings.writes_starved,
            "fifo_batch" => &mut self.settings.fifo_batch,
            "front_merges" => &mut self.settings.front_merges,
            "classes" => &mut self.settings.classes,
            "rt_expire" => &mut self.settings.rt_expire_ns,
            "quantum" => &mut self.settings.quantum_ns,
            _ => return None,
        })
    }

    /// Requests that are queued keep the deadline and the level they have.
    fn settings_changed(&mut self) {
        let Deadline { settings, tick_ns, .. } = &self;
        let expires_ns = [settings.rt_expire_ns, settings.read_expire_ns, settings.write_expire_ns];
        let full = settings.classes == FULL;
        self.derived = Derived {
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
