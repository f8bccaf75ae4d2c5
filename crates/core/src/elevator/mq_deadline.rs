//! mq-deadline: batches in ascending sector order, cut short for requests that have waited too long, for each I/O priority class.
//!
//! A class (real-time, best-effort, idle) has for each direction a tree by sector and a FIFO by arrival. A class is served
//! only while the classes above have nothing at all, *in the device included*, unless one of its requests has waited for
//! `prio_aging_expire`. The batch and the account of starved writes are one for all classes. Never idles. Knows no groups.
//!
//! Source: Linux 6.12.117 `block/mq-deadline.c`, as described in `docs/sources.md`. Not here: requests put at the head (the
//! data part of a write with PREFLUSH), which wait in their order like others.

use alloc::vec::Vec;

use super::{
    AnyElevator, Config, Descriptor, Dispatch, Env, Growth, PerGroup, Placement, Policy, same_priority,
};
use crate::collections::{Id, SortedFifo, SortedFifoLinks};
use crate::context::{IoClass, IoPrio};
use crate::group::GroupId;
use crate::request::{Bio, Op, RequestId};
use crate::tunable::{Tunable, Unit};

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "mq-deadline",
    about: "batches in sector order, reads before writes, by I/O priority class (Linux 6.12)",
    profiles: &[],
    tunables: |_| TUNABLES,
    build: |config, _| AnyElevator::MqDeadline(PerGroup::blind(MqDeadline::new(config))),
};

/// The largest number the kernel's sysfs files take.
const INT_MAX: u64 = i32::MAX as u64;

const READ_EXPIRE: Tunable = Tunable::new(
    "read_expire",
    Unit::Milliseconds,
    (0, INT_MAX),
    500,
    "deadline of a read, looked at between batches",
);
const WRITE_EXPIRE: Tunable = Tunable::new(
    "write_expire",
    Unit::Milliseconds,
    (0, INT_MAX),
    5000,
    "deadline of a write, looked at between batches",
);
const PRIO_AGING_EXPIRE: Tunable = Tunable::new(
    "prio_aging_expire",
    Unit::Milliseconds,
    (0, INT_MAX),
    10_000,
    "age at which a request of a lower priority class passes those of a higher one",
);
const WRITES_STARVED: Tunable = Tunable::new(
    "writes_starved",
    Unit::Number,
    (0, INT_MAX),
    2,
    "batches of reads before waiting writes get one",
);
const FRONT_MERGES: Tunable = Tunable::new(
    "front_merges",
    Unit::Switch,
    (0, 1),
    1,
    "look for requests that a bio can be put in front of",
);
const ASYNC_DEPTH: Tunable = Tunable::new(
    "async_depth",
    Unit::Requests,
    (0, INT_MAX),
    0,
    "writes get a tag only while fewer than so many are taken; 0: nr_requests, the kernel's default",
);
const FIFO_BATCH: Tunable = Tunable::new(
    "fifo_batch",
    Unit::Requests,
    (0, INT_MAX),
    16,
    "requests in a batch: more means fewer seeks and longer waits",
);

const TUNABLES: &[Tunable] =
    &[READ_EXPIRE, WRITE_EXPIRE, PRIO_AGING_EXPIRE, WRITES_STARVED, FRONT_MERGES, ASYNC_DEPTH, FIFO_BATCH];

const READ: usize = 0;
const WRITE: usize = 1;
/// Real-time, best-effort (and who has none), idle; the level inside a class does not count.
const CLASSES: usize = 3;

struct Settings {
    expire_ns: [u64; 2],
    prio_aging_expire_ns: u64,
    writes_starved: u64,
    front_merges: u64,
    async_depth: u64,
    fifo_batch: u64,
}

/// What a class has had: the kernel's per-priority statistics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClassCounts {
    /// Requests that came in.
    pub inserted: u64,
    /// Requests that became a part of another.
    pub merged: u64,
    /// Requests that went to the device.
    pub dispatched: u64,
    /// Requests that are gone: done, merged away or cancelled.
    pub completed: u64,
}

impl ClassCounts {
    /// Requests that are queued or in the device.
    const fn queued(&self) -> u64 {
        self.inserted - self.completed
    }
}

/// One class of one queue.
#[derive(Clone, Default)]
struct Class {
    requests: [SortedFifo<RequestId>; 2],
    /// First sector of the request dispatched last.
    position: [u64; 2],
    /// The first request from there upwards, so that it need not be looked for each time.
    upwards: [Option<RequestId>; 2],
    counts: ClassCounts,
}

impl Class {
    fn is_waiting(&self, dir: usize) -> bool {
        !self.requests[dir].is_empty()
    }

    /// `rq` came in.
    fn add(&mut self, links: &mut Links, dir: usize, rq: RequestId, sector: u64, deadline_ns: u64) {
        self.requests[dir].insert(links, rq, sector, deadline_ns);
        let is_first = self.upwards[dir].is_none_or(|first| sector < links.sector(first));
        if is_first && sector >= self.position[dir] {
            self.upwards[dir] = Some(rq);
        }
    }

    /// `rq` leaves.
    fn take_out(&mut self, links: &mut Links, dir: usize, rq: RequestId) {
        let above = self.requests[dir].remove(links, rq);
        if self.upwards[dir] == Some(rq) {
            self.upwards[dir] = above;
        }
    }

    /// `rq` goes to the device: the next one is sought from its sector on.
    fn serve(&mut self, links: &mut Links, dir: usize, rq: RequestId) {
        let sector = links.sector(rq);
        let requests = &mut self.requests[dir];
        let has_equal = requests.prev(links, rq).is_some_and(|below| links.sector(below) == sector);
        let above = requests.remove(links, rq);
        self.position[dir] = sector;
        self.upwards[dir] = if has_equal { requests.at_or_above(links, sector) } else { above };
    }

    /// `rq` starts at another sector now.
    fn resort(&mut self, links: &mut Links, dir: usize, rq: RequestId, sector: u64) {
        self.requests[dir].resort(links, rq, sector);
        self.upwards[dir] = self.requests[dir].at_or_above(links, self.position[dir]);
    }
}

type Links = SortedFifoLinks<RequestId>;

/// One queue. What follows the classes is shared by them.
#[derive(Clone)]
pub struct Queue {
    classes: [Class; CLASSES],
    last_dir: usize,
    /// Requests of this batch so far.
    batched: u64,
    /// Batches of reads that passed waiting writes.
    starved: u64,
}

/// Where a request is filed, and counted until it is gone.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    class: u8,
    dir: u8,
}

impl Place {
    fn of(op: Op, ioprio: IoPrio) -> Place {
        let class = match ioprio.class() {
            IoClass::RealTime => 0,
            IoClass::BestEffort => 1,
            IoClass::Idle => 2,
        };
        Place { class, dir: if op == Op::Read { READ as u8 } else { WRITE as u8 } }
    }

    fn of_bio(env: &Env<'_>, bio: &Bio) -> Place {
        Place::of(bio.op, bio.ioprio.unwrap_or(env.contexts[bio.context].ioprio))
    }
}

/// mq-deadline: the rules, and the links of all queues.
pub struct MqDeadline {
    /// `None`: not counted, or no longer.
    places: Vec<Option<Place>>,
    links: SortedFifoLinks<RequestId>,
    settings: Settings,
    tick_ns: u64,
}

impl Queue {
    // ---- the decision ----

    fn pick(&mut self, rules: &MqDeadline, now: u64) -> Option<(usize, RequestId)> {
        self.pick_aged(rules, now).or_else(|| {
            for class in 0..CLASSES {
                let rq = self.pick_of(rules, class, now, |_| true);
                if rq.is_some() || self.classes[class].counts.queued() > 0 {
                    return rq.map(|rq| (class, rq));
                }
            }
            None
        })
    }

    /// A request of a lower class that has waited too long, while there are others.
    fn pick_aged(&mut self, rules: &MqDeadline, now: u64) -> Option<(usize, RequestId)> {
        if self.classes.iter().filter(|class| class.counts.queued() > 0).count() < 2 {
            return None;
        }
        let latest = now.checked_sub(rules.settings.prio_aging_expire_ns);
        let is_old = |came| latest.is_some_and(|latest| came <= latest);
        (1..CLASSES).find_map(|class| Some((class, self.pick_of(rules, class, now, is_old)?)))
    }

    /// The next request of a class, if `suits` likes when it came. (If not, what was decided on the way remains decided, as in
    /// the kernel. The kernel asks that it did not come in the future, too, which it seems to have when an expiry time was
    /// shortened since, and then lets the device stand idle; that is left out.)
    fn pick_of(
        &mut self,
        rules: &MqDeadline,
        class: usize,
        now: u64,
        suits: impl Fn(u64) -> bool,
    ) -> Option<RequestId> {
        let goes_on = self.upwards(rules, class, self.last_dir);
        let rq = match goes_on.filter(|_| self.batched < rules.settings.fifo_batch) {
            Some(next) => next,
            None => self.start_batch(rules, class, now)?,
        };
        let came = rules.links.deadline(rq).saturating_sub(rules.settings.expire_ns[self.last_dir]);
        suits(came).then(|| {
            self.batched += 1;
            rq
        })
    }

    fn start_batch(&mut self, rules: &MqDeadline, class: usize, now: u64) -> Option<RequestId> {
        let dir = self.choose_direction(class, rules.settings.writes_starved)?;
        let head = self.classes[class].requests[dir].oldest()?;
        let rq = if rules.links.deadline(head) <= now {
            head
        } else {
            self.upwards(rules, class, dir).unwrap_or(head)
        };
        self.last_dir = dir;
        self.batched = 0;
        Some(rq)
    }

    fn choose_direction(&mut self, class: usize, writes_starved: u64) -> Option<usize> {
        let dir = match (self.classes[class].is_waiting(READ), self.classes[class].is_waiting(WRITE)) {
            (false, false) => return None,
            (true, false) => READ,
            (false, true) => WRITE,
            (true, true) => {
                let passed = self.starved;
                self.starved = passed.saturating_add(1);
                if passed >= writes_starved { WRITE } else { READ }
            }
        };
        if dir == WRITE {
            self.starved = 0;
        }
        Some(dir)
    }

    /// The next request of a class from where the last one was served.
    #[inline]
    fn upwards(&self, rules: &MqDeadline, class: usize, dir: usize) -> Option<RequestId> {
        let Class { requests, position, upwards, .. } = &self.classes[class];
        debug_assert!(upwards[dir] == requests[dir].at_or_above(&rules.links, position[dir]));
        upwards[dir]
    }
}

impl MqDeadline {
    fn new(config: &Config) -> MqDeadline {
        MqDeadline {
            places: alloc::vec![None; config.requests_max],
            links: SortedFifoLinks::new(config.requests_max),
            settings: Settings {
                expire_ns: [READ_EXPIRE.stored_default(), WRITE_EXPIRE.stored_default()],
                prio_aging_expire_ns: PRIO_AGING_EXPIRE.stored_default(),
                writes_starved: WRITES_STARVED.stored_default(),
                front_merges: FRONT_MERGES.stored_default(),
                async_depth: ASYNC_DEPTH.stored_default(),
                fifo_batch: FIFO_BATCH.stored_default(),
            },
            tick_ns: config.tick_ns,
        }
    }

    fn place(&self, rq: RequestId) -> Option<Place> {
        self.places[rq.index()]
    }

    /// Not queued and not in the device any more.
    fn forget(&mut self, queue: &mut Queue, rq: RequestId) {
        if let Some(place) = self.places[rq.index()].take() {
            queue.class(place).counts.completed += 1;
        }
    }
}

impl Queue {
    fn class(&mut self, place: Place) -> &mut Class {
        &mut self.classes[usize::from(place.class)]
    }

    fn requests(&self, place: Place) -> &SortedFifo<RequestId> {
        &self.classes[usize::from(place.class)].requests[usize::from(place.dir)]
    }
}

impl PerGroup<MqDeadline> {
    /// What each class has had so far: real-time, best-effort, idle.
    pub fn class_counts(&mut self) -> [ClassCounts; CLASSES] {
        self.queue_mut(GroupId::ROOT).map_or([ClassCounts::default(); CLASSES], |(_, queue)| {
            core::array::from_fn(|class| queue.classes[class].counts)
        })
    }
}

impl Policy for MqDeadline {
    type Queue = Queue;

    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn new_queue(&self) -> Queue {
        Queue {
            classes: [Class::default(), Class::default(), Class::default()],
            last_dir: WRITE,
            batched: 0,
            starved: 0,
        }
    }

    fn insert(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        let request = &env.requests[rq];
        let place = Place::of(request.op, request.ioprio);
        let now = Config::jiffies(self.tick_ns, env.now);
        let deadline_ns = now.saturating_add(self.settings.expire_ns[usize::from(place.dir)]);
        let class = queue.class(place);
        class.add(&mut self.links, usize::from(place.dir), rq, request.sector, deadline_ns);
        class.counts.inserted += 1;
        self.places[rq.index()] = Some(place);
    }

    fn dispatch(&mut self, queue: &mut Queue, env: &mut Env<'_>) -> Dispatch {
        let now = Config::jiffies(self.tick_ns, env.now);
        let Some((class, rq)) = queue.pick(self, now) else { return Dispatch::Empty };
        let class = &mut queue.classes[class];
        class.serve(&mut self.links, queue.last_dir, rq);
        class.counts.dispatched += 1;
        Dispatch::Issue(rq)
    }

    /// Class by class, oldest first; who leaves like this is not counted any more.
    fn drain(&mut self, queue: &mut Queue, env: &mut Env<'_>) -> Option<RequestId> {
        let rq = queue.classes.iter().flat_map(|class| &class.requests).find_map(SortedFifo::oldest)?;
        self.remove(queue, env, rq);
        Some(rq)
    }

    fn is_empty(&self, queue: &Queue) -> bool {
        queue.classes.iter().flat_map(|class| &class.requests).all(SortedFifo::is_empty)
    }

    fn placement(&self) -> Placement {
        Placement::Tail
    }

    fn completed(&mut self, queue: &mut Queue, _env: &mut Env<'_>, rq: RequestId) {
        self.forget(queue, rq);
    }

    fn find_front(&self, queue: &Queue, env: &Env<'_>, bio: &Bio) -> Option<RequestId> {
        if self.settings.front_merges == 0 {
            return None;
        }
        queue.requests(Place::of_bio(env, bio)).find(&self.links, bio.end())
    }

    fn allow_merge(&mut self, _queue: &mut Queue, env: &Env<'_>, rq: RequestId, bio: &Bio) -> bool {
        same_priority(env, rq, bio)
    }

    fn grew(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId, growth: Growth) {
        if let Some(place) = self.place(rq).filter(|_| growth == Growth::Front) {
            let sector = env.requests[rq].sector;
            queue.class(place).resort(&mut self.links, usize::from(place.dir), rq, sector);
        }
    }

    fn absorbed(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId, gone: RequestId) {
        let Some(place) = self.place(gone) else { return };
        if self.place(rq) == Some(place) && self.links.is_queued(rq) {
            queue.class(place).requests[usize::from(place.dir)].inherit(&mut self.links, rq, gone);
        }
        queue.class(place).counts.merged += 1;
        self.remove(queue, env, gone);
    }

    fn remove(&mut self, queue: &mut Queue, _env: &mut Env<'_>, rq: RequestId) {
        if let Some(place) = self.place(rq) {
            queue.class(place).take_out(&mut self.links, usize::from(place.dir), rq);
            self.forget(queue, rq);
        }
    }

    fn former(&self, queue: &Queue, rq: RequestId) -> Option<RequestId> {
        queue.requests(self.place(rq)?).prev(&self.links, rq)
    }

    fn latter(&self, queue: &Queue, rq: RequestId) -> Option<RequestId> {
        queue.requests(self.place(rq)?).next(&self.links, rq)
    }

    /// All but sync reads are limited.
    fn tags_for(&mut self, _env: &mut Env<'_>, bio: &Bio, tags: u32) -> u32 {
        match u32::try_from(self.settings.async_depth) {
            Ok(depth) if depth > 0 && bio.op != Op::Read => depth.min(tags),
            _ => tags,
        }
    }

    fn tunables(&self) -> &'static [Tunable] {
        TUNABLES
    }

    fn setting(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "read_expire" => &mut self.settings.expire_ns[READ],
            "write_expire" => &mut self.settings.expire_ns[WRITE],
            "prio_aging_expire" => &mut self.settings.prio_aging_expire_ns,
            "writes_starved" => &mut self.settings.writes_starved,
            "front_merges" => &mut self.settings.front_merges,
            "async_depth" => &mut self.settings.async_depth,
            "fifo_batch" => &mut self.settings.fifo_batch,
            _ => return None,
        })
    }
}
