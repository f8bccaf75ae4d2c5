//! Whatever happens to groups while I/O is queued and in flight (made, removed, reweighed, contexts put elsewhere,
//! the elevator switched): nothing is lost, nothing waits for ever, and the counts come out.

use std::collections::BTreeMap;
use std::prelude::v1::*;
use std::{format, vec};

use crate::context::IoClass;
use crate::elevator::{self, Dispatch};
use crate::group::{GroupError, GroupId, GroupParams, GroupStats};
use crate::queue::{Admission, Plugging, QueueConfig, RequestQueue, Submitted};
use crate::{Bio, ContextId, Flags, IoPrio, MS, Op, RequestId};

pub(super) const ELEVATORS: &[(&str, &str)] = &[
    ("noop", ""),
    ("deadline", ""),
    ("fair", ""),
    ("anticipatory", ""),
    ("cfq", "2.6.31"),
    ("cfq", "2.6.34"),
    ("cfq", "2.6.37"),
];
const GROUPS: usize = 5;
const TASKS: usize = 4;
const STEPS: usize = 400;
/// No wait of an elevator or of a group is longer.
const WAIT_MAX_NS: u64 = 100 * MS;

/// Numbers without pattern; the same for the same seed.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    pub(super) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

struct World {
    q: RequestQueue,
    config: QueueConfig,
    random: Random,
    now: u64,
    groups: Vec<GroupId>,
    tasks: Vec<ContextId>,
    cookies: u64,
    /// Accepted and not done.
    open: BTreeMap<u64, ()>,
    issued: Vec<RequestId>,
    /// Told that there is no slot: in which group, and with what.
    waiters: Vec<(GroupId, Bio)>,
    waited: u64,
    /// What the queue said, for comparing two runs.
    answers: Vec<(u64, String)>,
    /// Requests done outside the root.
    grouped_done: u64,
}

impl World {
    fn new(seed: u64, elevator: (&str, &str)) -> World {
        let mut random = Random(seed);
        let config = QueueConfig {
            contexts_max: random.one_of(&[1, TASKS, 8]),
            groups_max: random.one_of(&[1, GROUPS]),
            plugging: random.one_of(&[Plugging::Off, Plugging::QUEUE, Plugging::Task]),
            admission: random
                .one_of(&[Admission::Pools { nr_requests: 8 }, Admission::Tags { nr_requests: 8 }]),
            tick_ns: random.one_of(&[0, MS, 4 * MS]),
            rotational: random.below(2) == 0,
            ..QueueConfig::default()
        };
        let built = (elevator::find(elevator.0).unwrap().build)(&config.elevator(), elevator.1);
        let mut q = RequestQueue::new(config, built);
        let tasks = (0..TASKS).map(|_| q.contexts_mut().create(IoPrio::DEFAULT)).collect();
        World {
            q,
            config,
            random,
            now: 1000 * MS,
            groups: vec![GroupId::ROOT],
            tasks,
            cookies: 0,
            open: BTreeMap::new(),
            issued: Vec::new(),
            waiters: Vec::new(),
            waited: 0,
            answers: Vec::new(),
            grouped_done: 0,
        }
    }

    fn params(&mut self) -> GroupParams {
        let class =
            self.random.one_of(&[IoClass::BestEffort, IoClass::BestEffort, IoClass::RealTime, IoClass::Idle]);
        let weight = self.random.one_of(&[1, 50, 100, 1000, 10_000]);
        let leaf_weight = self.random.one_of(&[1, 100, 500]);
        let reserve = self.random.one_of(&[0, 0, 0, 1, 5, 10]);
        let latency_ns = self.random.one_of(&[0, 0, MS, 20 * MS]);
        GroupParams { weight, leaf_weight, class, reserve, latency_ns }
    }

    fn submit(&mut self) {
        let task = self.random.below(self.tasks.len() as u64) as usize;
        let group = (self.random.below(4) == 0).then(|| {
            let groups = self.groups.clone();
            self.random.one_of(&groups)
        });
        let flags =
            self.random.one_of(&[Flags::NONE, Flags::SYNC, Flags::META, Flags::NOIDLE, Flags::UNPLUG]);
        let bio = Bio {
            cookie: self.cookies,
            op: self.random.one_of(&[Op::Read, Op::Write, Op::Read, Op::Discard]),
            flags,
            sector: self.random.below(40) * 8 + self.random.below(3) * 1_000_000,
            sectors: 8,
            segments: 1,
            context: self.tasks[task],
            ioprio: None,
            group,
        };
        self.cookies += 1;
        let answer = self.q.submit(bio, self.now);
        self.answered(bio, answer);
        self.wake();
    }

    fn answered(&mut self, bio: Bio, answer: Submitted) {
        match answer {
            Submitted::Queued(_) | Submitted::Merged(_) => {
                self.open.insert(bio.cookie, ());
            }
            Submitted::Full => {
                self.waited += 1;
                self.waiters.push((self.q.group_of(&bio), bio));
            }
            Submitted::Done | Submitted::Refused(_) => {}
            Submitted::Held | Submitted::NoRoom => unreachable!("nobody set a limit"),
        }
    }

    /// Those who were woken try again.
    fn wake(&mut self) {
        while let Some((group, sync)) = self.q.next_wakeup() {
            let first = self.waiters.iter().position(|(of, bio)| *of == group && bio.is_sync() == sync);
            if let Some((_, bio)) = first.map(|first| self.waiters.remove(first)) {
                let answer = self.q.resubmit(bio, self.now);
                self.answered(bio, answer);
            }
        }
    }

    fn dispatch(&mut self) -> Dispatch {
        let answer = self.q.dispatch(self.now);
        self.answers.push((self.now, format!("{answer:?}")));
        match answer {
            Dispatch::Issue(rq) => self.issued.push(rq),
            Dispatch::Idle { until } => {
                assert!(until > self.now, "a wait that is over");
                assert!(until <= self.now + WAIT_MAX_NS, "waits {} ns", until - self.now);
            }
            Dispatch::Empty | Dispatch::Busy => {}
        }
        answer
    }

    fn complete(&mut self) {
        if self.issued.is_empty() {
            return;
        }
        let rq = self.issued.remove(self.random.below(self.issued.len() as u64) as usize);
        if self.random.below(16) == 0 {
            self.q.requeue(rq, self.now);
            return;
        }
        self.grouped_done += u64::from(self.q.requests()[rq].group != GroupId::ROOT);
        let open = &mut self.open;
        self.q.complete(rq, self.now, |cookie| {
            assert!(open.remove(&cookie).is_some(), "bio {cookie} is done, but was not open");
        });
        self.wake();
    }

    fn change_groups(&mut self) {
        let groups = self.groups.clone();
        let one = self.random.one_of(&groups);
        match self.random.below(8) {
            0..3 => {
                let params = self.params();
                if let Ok(new) = self.q.groups_mut().create(one, params) {
                    self.groups.push(new);
                }
            }
            3 => {
                if self.q.remove_group(one, self.now).is_ok() {
                    self.groups.retain(|group| *group != one);
                }
            }
            4 => {
                let params = self.params();
                let changed = self.q.groups_mut().set_params(one, params);
                assert!(matches!(changed, Ok(()) | Err(GroupError::Reserve { .. })));
            }
            5 => {
                // An answer changes nothing that is queued.
                let tasks = self.tasks.clone();
                let (from, whom) = (self.random.one_of(&tasks), self.random.one_of(&tasks));
                match self.q.wait_begin(from, whom) {
                    Some(token) if self.random.below(2) == 0 => self.q.wait_end(token),
                    _ => {}
                }
            }
            6 => {
                let setting = self.random.one_of(&[
                    ("fairness", "0"),
                    ("fairness", "1"),
                    ("fairness", "2"),
                    ("charge", "time"),
                    ("charge", "bytes"),
                    ("charge", "requests"),
                    ("group_idle", "0"),
                    ("group_idle", "8"),
                    ("group_latency", "0"),
                    ("group_slice", "10"),
                    ("nr_group_requests", "1"),
                    ("nr_group_requests", "5"),
                    ("nr_group_requests", "128"),
                ]);
                self.q.groups_mut().set(setting.0, setting.1).expect("it is a setting");
            }
            _ => {
                let task = self.random.below(self.tasks.len() as u64) as usize;
                self.q.move_context(self.tasks[task], one, self.now);
            }
        }
    }

    fn step(&mut self) {
        self.now += self.random.one_of(&[0, 0, 1000, MS, 3 * MS, 9 * MS]);
        match self.random.below(20) {
            0..8 => self.submit(),
            8..12 => {
                self.dispatch();
            }
            12..16 => self.complete(),
            16 | 17 => self.change_groups(),
            18 if self.random.below(8) == 0 => {
                let (name, profile) = self.random.one_of(ELEVATORS);
                let new = (elevator::find(name).unwrap().build)(&self.config.elevator(), profile);
                self.q.switch(new, self.now);
            }
            18 if self.random.below(4) == 0 => {
                let task = self.random.below(self.tasks.len() as u64) as usize;
                self.q.context_exit(self.tasks[task], self.now);
                let groups = self.groups.clone();
                let group = self.random.one_of(&groups);
                self.tasks[task] = self.q.contexts_mut().create_in(group, IoPrio::BestEffort(2));
            }
            18 => {
                let task = self.random.below(self.tasks.len() as u64) as usize;
                let prio = self.random.one_of(&[IoPrio::RealTime(1), IoPrio::BestEffort(7), IoPrio::Idle]);
                self.q.set_ioprio(self.tasks[task], prio, self.now);
            }
            _ => self.q.unplug(),
        }
        self.check_counts();
    }

    /// What each group counts is what there is.
    fn check_counts(&self) {
        let in_flight: u32 = self.q.groups().iter().map(|(id, _)| self.q.groups().in_flight(id)).sum();
        if self.groups.len() > 1 && self.all_are_live() {
            assert_eq!(in_flight, self.q.in_flight().iter().sum::<u32>());
        }
    }

    /// Has no removed group anything left?
    fn all_are_live(&self) -> bool {
        self.q.requests().iter().all(|(_, request)| self.groups.contains(&request.payer))
    }

    /// Finish everything: with nothing in flight, an answer to wait must be followed by progress when the time is up.
    fn finish(&mut self) {
        for task in self.tasks.clone() {
            self.q.close_plug(task, self.now);
        }
        self.q.unplug();
        let mut waits = 0;
        while !self.open.is_empty() {
            match self.dispatch() {
                Dispatch::Issue(_) => waits = 0,
                Dispatch::Idle { until } => {
                    waits += 1;
                    assert!(waits < 40, "asked again and again, and told to wait: {:?}", self.open);
                    if self.issued.is_empty() {
                        self.now = until;
                    } else {
                        self.complete();
                    }
                }
                Dispatch::Empty | Dispatch::Busy => {
                    assert!(!self.issued.is_empty(), "nothing in flight, yet no progress: {:?}", self.open);
                    self.now += MS;
                    self.complete();
                }
            }
        }
        while !self.issued.is_empty() {
            self.complete();
            self.dispatch();
        }
        assert_eq!(self.waiters, [], "nobody wakes them any more");
    }
}

fn run(seed: u64, elevator: (&str, &str)) -> World {
    let mut world = World::new(seed, elevator);
    for _ in 0..STEPS {
        world.step();
    }
    world.finish();
    world
}

fn streams() -> u64 {
    let more = std::env::var("FAIRLIFT_STREAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    150 * more
}

#[test]
fn nothing_is_lost_whatever_happens_to_groups() {
    for elevator in ELEVATORS {
        let (mut grouped, mut waited) = (0, 0);
        for seed in 0..streams() {
            let world = run(seed, *elevator);
            grouped += world.grouped_done;
            waited += world.waited;
            let groups = world.q.groups();
            for (id, _) in groups.iter() {
                assert_eq!((groups.queued(id), groups.in_flight(id)), (0, 0), "{id:?}, seed {seed}");
            }
            assert_eq!(world.q.pending(), 0);
        }
        assert!(waited > 10 * streams(), "{elevator:?}: only {waited} had to wait for a slot");
        assert!(grouped > 10 * streams(), "{elevator:?}: only {grouped} requests in groups");
    }
}

/// A removed group's slot is free again once its last request is done, its last context is gone (or has sent one for another)
/// and nobody waits for it.
#[test]
fn slots_of_removed_groups_come_back() {
    for elevator in ELEVATORS {
        for seed in 0..streams() {
            let mut world = run(seed, *elevator);
            world.now += 1000 * MS;
            for group in world.groups.split_off(1) {
                world.q.remove_group(group, world.now).expect("it is there");
            }
            // One more request shows the elevator that time has passed.
            world.submit();
            world.finish();
            for task in world.tasks.clone() {
                world.q.context_exit(task, world.now);
            }
            world.now += 1000 * MS;
            let new = (elevator::find("noop").unwrap().build)(&world.config.elevator(), "");
            world.q.switch(new, world.now);
            for n in 0..world.config.groups_max {
                let made = world.q.groups_mut().create(GroupId::ROOT, GroupParams::default());
                assert!(made.is_ok(), "group {n} of {}: {made:?}, seed {seed}", world.config.groups_max);
            }
        }
    }
}

#[test]
fn equal_calls_give_equal_answers() {
    for elevator in ELEVATORS {
        for seed in 0..20 {
            assert_eq!(run(seed, *elevator).answers, run(seed, *elevator).answers);
        }
    }
}

#[test]
fn kinds_of_io_are_counted_apart() {
    assert_eq!([Op::Read, Op::Write, Op::Flush, Op::Discard].map(GroupStats::kind), [0, 1, 1, 2]);
}
