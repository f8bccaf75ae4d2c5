//! The contract under random load: every accepted bio completes exactly once, requests carry exactly their bios' sectors,
//! nothing passes a barrier, flushes cover what they must, nothing leaks, an idling queue goes on, equal calls give equal
//! answers.
//!
//! A failure prints its seed and the shortest operation list found; `FAIRLIFT_SEED=<seed>` runs that one alone.

mod queue_support;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};

use fairlift_core::collections::Id;
use fairlift_core::elevator::{self, AnyElevator, ELEVATORS};
use fairlift_core::queue::{
    Admission, MergeLimits, NoMerges, Ordering, Plugging, QueueConfig, RequestQueue, Submitted,
};
use fairlift_core::request::RequestState;
use fairlift_core::tunable::Unit;
use fairlift_core::{Bio, ContextId, Dispatch, Flags, IoPrio, MS, Op, Request, RequestId, SECOND};

const RUNS: u64 = 2_000;
const STEPS: usize = 1_600;
const TASKS: usize = 6;
const DEVICE_DEPTH: usize = 8;

/// Knuth's MMIX generator; the upper bits are the good ones.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// One operation. Indices are taken modulo what there is, so that a list stays valid when operations are left out.
#[derive(Clone, Copy, Debug)]
enum Step {
    Submit {
        task: usize,
        op: Op,
        flags: Flags,
        sector: u64,
        sectors: u32,
        segments: u16,
        ioprio: Option<IoPrio>,
    },
    Resubmit,
    Dispatch,
    Complete(usize),
    Requeue(usize),
    Wait(u64),
    Unplug,
    OpenPlug(usize),
    ClosePlug(usize),
    Switch(usize, usize),
    Yield(usize, Option<usize>),
    SetPrio(usize, IoPrio),
    Exit(usize),
    Tune(usize, u64),
    NoMerges(u64),
}

const PRIOS: [IoPrio; 5] =
    [IoPrio::RealTime(3), IoPrio::BestEffort(0), IoPrio::BestEffort(4), IoPrio::BestEffort(7), IoPrio::Idle];

fn submit(r: &mut Random, task: usize) -> Step {
    let op = match r.below(100) {
        0..45 => Op::Read,
        45..92 => Op::Write,
        92..95 => Op::Discard,
        _ => Op::Flush,
    };
    let mut flags = Flags::NONE;
    for (flag, percent) in [
        (Flags::SYNC, 30),
        (Flags::META, 5),
        (Flags::NOIDLE, 15),
        (Flags::UNPLUG, 10),
        (Flags::READAHEAD, 5),
        (Flags::NOMERGE, 2),
    ] {
        if r.chance(percent) {
            flags.insert(flag);
        }
    }
    if op == Op::Write {
        for flag in [Flags::BARRIER, Flags::FUA, Flags::PREFLUSH] {
            if r.chance(4) {
                flags.insert(flag);
            }
        }
    }
    // A small disk, so that bios touch; each task has a favourite region, so that some run in sequence.
    let sector = if r.chance(60) { task as u64 * 64 + r.below(64) } else { r.below(512) };
    let sectors = if op == Op::Flush { 0 } else { r.one_of(&[1, 1, 2, 4, 8]) };
    let ioprio = r.chance(10).then(|| r.one_of(&PRIOS));
    Step::Submit { task, op, flags, sector, sectors, segments: r.below(3) as u16, ioprio }
}

fn step(r: &mut Random) -> Step {
    let task = r.below(TASKS as u64) as usize;
    let any = r.below(1 << 30) as usize;
    match r.below(1000) {
        0..330 => submit(r, task),
        330..370 => Step::Resubmit,
        370..620 => Step::Dispatch,
        620..840 => Step::Complete(any),
        840..860 => Step::Requeue(any),
        860..930 => {
            let most = r.one_of(&[MS / 10, 4 * MS, 40 * MS, 6 * SECOND]);
            Step::Wait(r.below(most))
        }
        930..945 => Step::Unplug,
        945..955 => Step::OpenPlug(task),
        955..970 => Step::ClosePlug(task),
        970..975 => Step::Switch(any, r.below(8) as usize),
        975..982 => Step::Yield(task, r.chance(50).then(|| r.below(TASKS as u64) as usize)),
        982..988 => Step::SetPrio(task, r.one_of(&PRIOS)),
        988..993 => Step::Exit(task),
        993..998 => Step::Tune(any, r.below(1 << 20)),
        _ => Step::NoMerges(r.below(3)),
    }
}

fn config(r: &mut Random) -> QueueConfig {
    let nr_requests = r.one_of(&[0, 4, 8, 24, 64]);
    let queue_plug = |spare| Plugging::Queue { threshold: 4, delay_ns: 3 * MS, spare_non_rotational: spare };
    QueueConfig {
        contexts_max: r.one_of(&[0, 2, TASKS, 20]),
        groups_max: 0,
        held_max: 0,
        rotational: r.chance(70),
        tagged: r.chance(50),
        admission: match r.chance(60) {
            true => Admission::Pools { nr_requests },
            false => Admission::Tags { nr_requests },
        },
        plugging: r.one_of(&[
            queue_plug(true),
            queue_plug(false),
            Plugging::Task,
            Plugging::Task,
            Plugging::Off,
        ]),
        limits: MergeLimits {
            max_sectors: r.one_of(&[8, 16, 40, 1024]),
            max_segments: r.one_of(&[3, 8, 128]),
        },
        nomerges: NoMerges::from_sysfs(r.one_of(&[0, 0, 0, 1, 2])),
        ordering: r.one_of(&[
            Ordering::NoBarriers,
            Ordering::Drain,
            Ordering::DrainFlush,
            Ordering::DrainFua,
            Ordering::Sequences { write_cache: true, fua: true },
            Ordering::Sequences { write_cache: true, fua: false },
            Ordering::Sequences { write_cache: false, fua: false },
        ]),
        tick_ns: r.one_of(&[0, MS, 4 * MS]),
    }
}

fn build(config: &QueueConfig, elevator: usize, profile: usize) -> AnyElevator {
    let descriptor = &ELEVATORS[elevator % ELEVATORS.len()];
    let profile = match descriptor.profiles {
        [] => "",
        profiles => profiles[profile % profiles.len()],
    };
    (descriptor.build)(&config.elevator(), profile)
}

/// A bio that was accepted and is not done. Times are ticks of the world, one for every event.
#[derive(Clone, Copy, Debug)]
struct Pending {
    bio: Bio,
    accepted: u64,
    /// Barriers accepted up to it (a barrier counts itself); `None` where a task's plug hides the order from the queue.
    era: Option<u64>,
    /// When its data came back from the device, and in which trip.
    written: Option<(u64, Trip)>,
}

/// A request in the device.
#[derive(Clone, Copy, Debug)]
struct Trip {
    rq: RequestId,
    issued: u64,
    /// When the youngest flush that was done by then had been issued: all that was done before that is on the medium.
    durable: u64,
}

/// The queue, and what a plain reading of the contract says about it.
struct World {
    q: RequestQueue,
    now: u64,
    tasks: Vec<ContextId>,
    cookies: u64,
    pending: BTreeMap<u64, Pending>,
    in_device: Vec<Trip>,
    /// Bios that were refused a slot, `[async, sync]`, and the wake-ups not used yet.
    waiting: [VecDeque<Bio>; 2],
    wakeups: [u32; 2],
    barriers: u64,
    /// Barriers that are not done, by era, and when those that are were.
    open_barriers: BTreeSet<u64>,
    barrier_done: BTreeMap<u64, u64>,
    /// When the last bio of an era was done.
    era_done: BTreeMap<u64, u64>,
    tick: u64,
    /// When the youngest flush that is done was issued.
    durable: u64,
    completed: u64,
    accepted: u64,
    /// Every answer, to compare runs.
    log: Vec<u64>,
}

impl World {
    fn new(config: QueueConfig, elevator: usize) -> World {
        let mut q = RequestQueue::new(config, build(&config, elevator, elevator / 7));
        let tasks = (0..TASKS).map(|n| q.contexts_mut().create(PRIOS[n % PRIOS.len()])).collect();
        World {
            q,
            now: 0,
            tasks,
            cookies: 0,
            pending: BTreeMap::new(),
            in_device: Vec::new(),
            waiting: Default::default(),
            wakeups: [0; 2],
            barriers: 0,
            open_barriers: BTreeSet::new(),
            barrier_done: BTreeMap::new(),
            era_done: BTreeMap::new(),
            tick: 0,
            durable: 0,
            completed: 0,
            accepted: 0,
            log: Vec::new(),
        }
    }

    fn draining(&self) -> bool {
        matches!(self.q.config().ordering, Ordering::Drain | Ordering::DrainFlush | Ordering::DrainFua)
    }

    fn is_barrier(&self, bio: &Bio) -> bool {
        self.draining() && (bio.op == Op::Flush || bio.flags.contains(Flags::BARRIER))
    }

    fn run(&mut self, step: Step) {
        self.tick += 1;
        match step {
            Step::Submit { task, op, flags, sector, sectors, segments, ioprio } => {
                self.cookies += 1;
                let context = self.tasks[task];
                // A place of its own for what has a sequence, so that its data can be told from other requests'.
                let sequenced = flags.intersects(Flags::BARRIER | Flags::FUA | Flags::PREFLUSH);
                let sector = if sequenced { 100_000 + 16 * self.cookies } else { sector };
                let bio = Bio {
                    cookie: self.cookies,
                    op,
                    flags,
                    sector,
                    sectors,
                    segments,
                    context,
                    ioprio,
                    group: None,
                };
                let answer = self.q.submit(bio, self.now);
                self.answered(bio, answer, false);
            }
            Step::Resubmit => self.resubmit(),
            Step::Dispatch => {
                self.dispatch();
            }
            Step::Complete(n) => self.complete(n),
            Step::Requeue(n) => {
                if !self.in_device.is_empty() {
                    let trip = self.in_device.remove(n % self.in_device.len());
                    self.q.requeue(trip.rq, self.now);
                }
            }
            Step::Wait(ns) => self.now += ns,
            Step::Unplug => self.q.unplug(),
            Step::OpenPlug(task) => self.q.open_plug(self.tasks[task]),
            Step::ClosePlug(task) => self.q.close_plug(self.tasks[task], self.now),
            Step::Switch(elevator, profile) => {
                let config = *self.q.config();
                self.q.switch(build(&config, elevator, profile), self.now);
            }
            Step::Yield(from, to) => {
                self.q.yield_to(self.tasks[from], to.map(|to| self.tasks[to]), self.now);
            }
            Step::SetPrio(task, ioprio) => self.q.set_ioprio(self.tasks[task], ioprio, self.now),
            Step::Exit(task) => {
                self.q.context_exit(self.tasks[task], self.now);
                self.tasks[task] = self.q.contexts_mut().create(IoPrio::DEFAULT);
            }
            Step::Tune(n, value) => self.tune(n, value),
            Step::NoMerges(level) => self.q.set_nomerges(NoMerges::from_sysfs(level)),
        }
        self.check();
    }

    fn answered(&mut self, bio: Bio, answer: Submitted, woken: bool) {
        match answer {
            Submitted::Queued(rq) | Submitted::Merged(rq) => {
                assert!(!(woken && matches!(answer, Submitted::Merged(_))), "a woken bio is not merged");
                let request = &self.q.requests()[rq];
                assert!(
                    request.sector <= bio.sector && bio.end() <= request.end(),
                    "the request covers the bio"
                );
                self.log.push(rq.index() as u64);
                self.accept(bio);
            }
            Submitted::Full => {
                let class = usize::from(bio.is_sync());
                if woken {
                    self.waiting[class].push_front(bio);
                } else {
                    self.waiting[class].push_back(bio);
                }
            }
            Submitted::Held | Submitted::NoRoom => unreachable!("nobody set a limit"),
            Submitted::Done => assert!(bio.op == Op::Flush, "only a flush is done without I/O"),
            Submitted::Refused(_) => {
                let limits = self.q.config().limits;
                let refusable = bio.sectors > limits.max_sectors || bio.segments > limits.max_segments;
                let no_order = self.q.config().ordering == Ordering::NoBarriers;
                let barrier = bio.op == Op::Flush || bio.flags.contains(Flags::BARRIER);
                assert!(refusable || (no_order && barrier), "refused without a reason: {bio:?}");
            }
        }
    }

    fn accept(&mut self, bio: Bio) {
        self.accepted += 1;
        let ordered = self.draining() && self.q.config().plugging != Plugging::Task;
        if ordered && self.is_barrier(&bio) {
            self.barriers += 1;
            self.open_barriers.insert(self.barriers);
        }
        let era = ordered.then_some(self.barriers);
        let pending = Pending { bio, accepted: self.tick, era, written: None };
        assert!(self.pending.insert(bio.cookie, pending).is_none());
    }

    /// Those who were woken try again, first come, first served.
    fn resubmit(&mut self) {
        self.take_wakeups();
        for class in 0..2 {
            if self.wakeups[class] > 0 {
                self.wakeups[class] -= 1;
                if let Some(bio) = self.waiting[class].pop_front() {
                    let answer = self.q.resubmit(bio, self.now);
                    self.answered(bio, answer, true);
                }
            }
        }
    }

    fn take_wakeups(&mut self) {
        for (kept, new) in self.wakeups.iter_mut().zip(self.q.take_wakeups()) {
            *kept += new;
        }
    }

    fn dispatch(&mut self) -> Dispatch {
        self.tick += 1;
        if self.in_device.len() >= DEVICE_DEPTH {
            return Dispatch::Empty;
        }
        let answer = self.q.dispatch(self.now);
        match answer {
            Dispatch::Issue(rq) => self.issued(rq),
            Dispatch::Idle { until } => {
                assert!(until > self.now, "idling until {until}, which is not after {}", self.now);
                self.log.push(until);
            }
            Dispatch::Empty | Dispatch::Busy => {}
        }
        answer
    }

    fn issued(&mut self, rq: RequestId) {
        let request = self.q.requests()[rq];
        assert_eq!(request.state, RequestState::Issued);
        assert!(self.in_device.iter().all(|trip| trip.rq != rq), "issued twice");
        self.log.push(request.sector << 8 | rq.index() as u64);
        self.tick += 1;
        self.in_device.push(Trip { rq, issued: self.tick, durable: self.durable });
    }

    fn complete(&mut self, n: usize) {
        if self.in_device.is_empty() {
            return;
        }
        self.tick += 1;
        let trip = self.in_device.remove(n % self.in_device.len());
        let request = self.q.requests()[trip.rq];
        if request.op == Op::Flush {
            self.durable = self.durable.max(trip.issued);
        }
        let mut done = Vec::new();
        self.q.complete(trip.rq, self.now, |cookie| done.push(cookie));
        self.log.extend(&done);
        self.covers(&request, trip, &done);
        for cookie in done {
            let pending = self.pending.remove(&cookie).expect("done exactly once, and only if accepted");
            self.completed += 1;
            self.check_durability(&pending);
            self.check_order(&pending, trip);
        }
    }

    /// A request reports exactly its own bios: ascending, contiguous, all of them. One whose flush is to come reports nothing.
    fn covers(&mut self, request: &Request, trip: Trip, done: &[u64]) {
        if request.op == Op::Flush {
            return;
        }
        let written = Some((self.tick, trip));
        let mut at = request.sector;
        for cookie in done {
            let Some(pending) = self.pending.get_mut(cookie) else { panic!("{cookie} was not pending") };
            if pending.bio.op == Op::Flush {
                continue; // an empty barrier for which this was the last to wait for
            }
            assert_eq!(
                (pending.bio.op, pending.bio.sector),
                (request.op, at),
                "bios in order, without a gap"
            );
            at = pending.bio.end();
            pending.written = written;
        }
        if at == request.sector {
            let own =
                self.pending.values_mut().find(|p| p.bio.sector == request.sector && p.bio.op == request.op);
            let own = own.expect("a request that reports nothing belongs to a sequence");
            assert!(own.bio.flags.intersects(Flags::BARRIER | Flags::FUA | Flags::PREFLUSH));
            at = own.bio.end();
            own.written = written;
        }
        assert_eq!(at, request.end(), "the bios cover the request");
    }

    /// The flushes a bio asked for were done around its data.
    fn check_durability(&self, pending: &Pending) {
        let bio = &pending.bio;
        let (before, behind) = match self.q.config().ordering {
            Ordering::Sequences { write_cache: true, fua } => {
                (bio.flags.contains(Flags::PREFLUSH), !fua && bio.flags.contains(Flags::FUA))
            }
            Ordering::DrainFlush => (self.is_barrier(bio), self.is_barrier(bio)),
            Ordering::DrainFua => (self.is_barrier(bio), false),
            _ => (false, false),
        };
        if bio.op == Op::Flush {
            let cached = before || matches!(self.q.config().ordering, Ordering::Sequences { .. });
            assert!(!cached || self.durable > pending.accepted, "done without a flush of its own time");
            return;
        }
        let (written, trip) = pending.written.expect("its data was written before it was reported");
        assert!(!before || trip.durable > pending.accepted, "data went before its flush was done");
        assert!(!behind || self.durable > written, "no flush behind the data");
    }

    /// Nothing passes a barrier, in either direction.
    fn check_order(&mut self, pending: &Pending, trip: Trip) {
        let Some(era) = pending.era else { return };
        let issued = pending.written.map_or(trip.issued, |(_, trip)| trip.issued);
        if self.is_barrier(&pending.bio) {
            let older = self.pending.values().any(|p| p.era.is_some_and(|e| e < era));
            assert!(!older, "a barrier is done while something before it is not");
            if pending.bio.op != Op::Flush {
                let late = self.era_done.range(..era).any(|(_, done)| *done > issued);
                assert!(!late, "a barrier was sent before the device had run dry");
            }
            self.open_barriers.remove(&era);
            self.barrier_done.insert(era, self.tick);
            self.era_done.clear();
        } else {
            let open = self.open_barriers.first().is_some_and(|b| *b <= era);
            assert!(!open, "done although a barrier before it is not");
            let early = self.barrier_done.get(&era).is_some_and(|done| issued < *done);
            assert!(!early, "sent before the barrier before it was done");
            self.era_done.insert(era, self.tick);
        }
    }

    fn tune(&mut self, n: usize, value: u64) {
        let elevator = self.q.elevator_mut();
        let tunables = elevator.tunables();
        if tunables.is_empty() {
            return;
        }
        let tunable = &tunables[n % tunables.len()];
        let span = (tunable.max - tunable.min).saturating_add(1).max(1);
        let text = match tunable.unit {
            Unit::Choice(words) => words[value as usize % words.len()].to_string(),
            _ => (tunable.min + value % span).to_string(),
        };
        elevator::set(elevator, tunable.name, &text).expect("a value within its range is taken");
    }

    fn check(&self) {
        let [a, s] = self.q.in_flight();
        assert_eq!((a + s) as usize, self.in_device.len(), "in flight");
        assert_eq!(self.accepted - self.completed, self.pending.len() as u64, "conservation");
        assert!(self.q.pending() <= self.q.config().requests_max());
    }

    /// Serve everything: no more arrivals but of those who wait. Progress at the latest when `until` comes.
    fn finish(&mut self) {
        for task in 0..TASKS {
            self.q.close_plug(self.tasks[task], self.now);
        }
        let mut idle = 0;
        while !self.pending.is_empty() || self.waiting.iter().any(|w| !w.is_empty()) {
            self.resubmit();
            self.take_wakeups();
            if self.wakeups != [0; 2] {
                continue;
            }
            match self.dispatch() {
                Dispatch::Issue(_) => idle = 0,
                Dispatch::Idle { until } if self.in_device.is_empty() => {
                    idle += 1;
                    assert!(idle < 100, "nothing in flight, something queued, and no end of idling");
                    self.now = until;
                }
                _ => {
                    let stuck = self.in_device.is_empty() && self.wakeups == [0; 2];
                    assert!(
                        !stuck || self.q.pending() == 0,
                        "nothing in flight, something queued, and no answer"
                    );
                    let waiting = self.waiting.iter().any(|w| !w.is_empty());
                    assert!(!stuck || !waiting, "somebody waits for a slot and was never woken");
                    self.complete(self.tick as usize);
                    idle = 0;
                }
            }
            self.check();
        }
        assert_eq!(self.q.pending(), 0, "slots leaked");
        assert_eq!(self.accepted, self.completed);
        for task in 0..TASKS {
            self.q.context_exit(self.tasks[task], self.now);
        }
        assert_eq!(self.q.contexts().iter().count(), 1, "contexts leaked");
        self.nodes_are_all_free();
    }

    /// Every slot can be taken again and filled with as many bios as fit.
    fn nodes_are_all_free(&mut self) {
        let config = *self.q.config();
        self.q.set_nomerges(NoMerges::Off);
        self.q.switch(build(&config, 0, 0), self.now);
        let each = u64::from(config.limits.max_sectors.min(u32::from(config.limits.max_segments)));
        let mut requests = 0;
        for op in [Op::Read, Op::Write] {
            loop {
                let bio =
                    |n| queue_support::bio(op, Flags::NONE, ContextId::OVERFLOW, requests * 10_000 + n, 1);
                // As somebody who was woken, so that it passes the full pool.
                match self.q.resubmit(bio(0), self.now) {
                    Submitted::Full => break,
                    answer => {
                        queue_support::queued(answer);
                    }
                }
                for n in 1..each {
                    queue_support::merged(self.q.submit(bio(n), self.now));
                }
                requests += 1;
            }
        }
        assert_eq!(requests as usize, config.requests_max() - 2, "all but the queue's own two");
        self.q.unplug();
        let mut done = 0;
        while let Dispatch::Issue(rq) = self.q.dispatch(self.now) {
            self.q.complete(rq, self.now, |_| done += 1);
        }
        assert_eq!(done, requests * each);
    }
}

fn steps(seed: u64) -> (QueueConfig, usize, Vec<Step>) {
    let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0xfa17);
    let config = config(&mut r);
    let elevator = r.below(1000) as usize;
    (config, elevator, (0..STEPS).map(|_| step(&mut r)).collect())
}

fn run(config: QueueConfig, elevator: usize, steps: &[Step]) -> Vec<u64> {
    let mut world = World::new(config, elevator);
    for step in steps {
        world.run(*step);
    }
    world.finish();
    world.log
}

fn fails(config: QueueConfig, elevator: usize, steps: &[Step]) -> bool {
    catch_unwind(AssertUnwindSafe(|| run(config, elevator, steps))).is_err()
}

/// Leave out ever smaller pieces as long as it still fails.
fn shorten(config: QueueConfig, elevator: usize, mut steps: Vec<Step>) -> Vec<Step> {
    let mut piece = steps.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < steps.len() {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + piece).min(steps.len()));
            if fails(config, elevator, &fewer) {
                steps = fewer;
            } else {
                at += piece;
            }
        }
        piece /= 2;
    }
    steps
}

fn check_seed(seed: u64) -> Vec<u64> {
    let (config, elevator, steps) = steps(seed);
    match catch_unwind(AssertUnwindSafe(|| run(config, elevator, &steps))) {
        Ok(log) => log,
        Err(_) => {
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(|_| {}));
            let short = shorten(config, elevator, steps);
            std::panic::set_hook(hook);
            let name = ELEVATORS[elevator % ELEVATORS.len()].name;
            eprintln!("seed {seed}: {} steps under {name} with {config:?}", short.len());
            short.iter().for_each(|step| eprintln!("  {step:?}"));
            run(config, elevator, &short);
            unreachable!("the short list fails");
        }
    }
}

/// 2,000 queues of all kinds, 1,600 operations each and a drain: 3.2 million operations.
#[test]
fn a_million_random_operations_keep_the_contract() {
    if let Ok(seed) = std::env::var("FAIRLIFT_SEED") {
        check_seed(seed.parse().expect("FAIRLIFT_SEED is a number"));
        return;
    }
    for seed in 0..RUNS {
        check_seed(seed);
    }
}

#[test]
fn equal_calls_give_equal_answers() {
    for seed in 0..60 {
        assert_eq!(check_seed(seed), check_seed(seed), "seed {seed}");
    }
}
