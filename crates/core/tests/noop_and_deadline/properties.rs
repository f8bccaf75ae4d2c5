//! Random streams: the elevators against [`crate::model`], step by step, bare and under [`ElevatorQueue`].
//!
//! The seed is fixed. A failing stream is made smaller and printed; `FAIRLIFT_STREAMS=n` runs n times as many of them.

use std::collections::{BTreeMap, VecDeque};

use fairlift_core::elevator::{self, AnyElevator, Config, Elevator, Growth};
use fairlift_core::queue::ElevatorQueue;
use fairlift_core::{Dispatch, Flags, MS, RequestId};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as RunnerConfig, RngAlgorithm, TestRng, TestRunner};

use crate::bench::{BE, Bench, DISCARD, IDLE, Kind, LENGTH, READ, RT, SYNC_WRITE, WRITE};
use crate::model::{self, Model, Name, Setting};

const STREAM_OPS: usize = 2000;
const CAPACITY: usize = 48;
/// Few enough that requests often meet.
const SECTORS: u64 = 300;

/// One step of a stream. An index picks one of the requests that qualify, modulo their number.
#[derive(Clone, Debug)]
enum Step {
    Insert(Kind, u64),
    Dispatch,
    Complete(usize),
    Requeue(usize),
    /// The queued one is grown at its start, by so many sectors.
    GrowFront(usize, u32),
    GrowBack(usize, u32),
    /// The queued one absorbs its neighbour in the elevator's order.
    AbsorbLatter(usize),
    /// The first absorbs the second, wherever they are.
    AbsorbAny(usize, usize),
    FrontLookUp(Kind, u64),
    AllowMerge(usize, Kind),
    Wait(u64),
    Set(Setting, u64),
    Drain,
    Switch(usize),
}

fn kind() -> impl Strategy<Value = Kind> {
    let what = select(vec![READ, READ, WRITE, WRITE, SYNC_WRITE, DISCARD]);
    (what, select(vec![BE, BE, BE, RT, IDLE])).prop_map(|(kind, ioprio)| kind.with(ioprio))
}

fn setting(classes: &'static [u64]) -> impl Strategy<Value = (Setting, u64)> {
    prop_oneof![
        select(vec![Setting::RtExpire, Setting::ReadExpire, Setting::WriteExpire])
            .prop_flat_map(|s| (Just(s), select(vec![0, 1, 5, 20, 100]))),
        (Just(Setting::WritesStarved), 0..4_u64),
        (Just(Setting::FifoBatch), select(vec![0, 1, 2, 3, 4, 7, 16, 200])),
        (Just(Setting::FrontMerges), 0..2_u64),
        (Just(Setting::Classes), select(classes)),
        (Just(Setting::Quantum), select(vec![0, 1, 7, 30])),
    ]
}

fn step(classes: &'static [u64]) -> impl Strategy<Value = Step> {
    let any = any::<usize>;
    prop_oneof![
        34 => (kind(), 0..SECTORS).prop_map(|(kind, sector)| Step::Insert(kind, sector)),
        22 => Just(Step::Dispatch),
        30 => any().prop_map(Step::Complete),
        2 => any().prop_map(Step::Requeue),
        4 => (any(), 1..40_u32).prop_map(|(i, n)| Step::GrowFront(i, n)),
        1 => (any(), 1..40_u32).prop_map(|(i, n)| Step::GrowBack(i, n)),
        3 => any().prop_map(Step::AbsorbLatter),
        1 => (any(), any()).prop_map(|(i, j)| Step::AbsorbAny(i, j)),
        4 => (kind(), 0..SECTORS).prop_map(|(kind, sector)| Step::FrontLookUp(kind, sector)),
        4 => (any(), kind()).prop_map(|(i, kind)| Step::AllowMerge(i, kind)),
        8 => (0..6 * MS).prop_map(Step::Wait),
        2 => setting(classes).prop_map(|(setting, value)| Step::Set(setting, value)),
        1 => select(vec![Step::Drain, Step::Switch(0), Step::Switch(1)]),
    ]
}

const TUNABLES: [(Setting, &str); 8] = [
    (Setting::RtExpire, "rt_expire"),
    (Setting::ReadExpire, "read_expire"),
    (Setting::WriteExpire, "write_expire"),
    (Setting::WritesStarved, "writes_starved"),
    (Setting::FifoBatch, "fifo_batch"),
    (Setting::FrontMerges, "front_merges"),
    (Setting::Classes, "classes"),
    (Setting::Quantum, "quantum"),
];

fn set(elevator: &mut dyn Elevator, setting: Setting, value: u64) {
    let (_, name) = TUNABLES.into_iter().find(|(s, _)| *s == setting).expect("all are listed");
    let text = match setting {
        Setting::Classes => ["direction", "sync-async", "full"][value as usize].to_string(),
        _ => value.to_string(),
    };
    // noop has none of them.
    let answer = elevator::set(elevator, name, &text);
    assert_eq!(answer.is_ok(), elevator.name() == "deadline");
}

/// What a stream runs on.
#[derive(Clone, Copy, Debug)]
struct Setup {
    elevator: &'static str,
    classes: u64,
    rotational: bool,
    tick_ns: u64,
}

impl Setup {
    fn model(&self) -> Box<dyn Model> {
        if self.elevator == "noop" {
            return Box::new(model::Noop::default());
        }
        let mut model = model::Deadline::new(self.tick_ns, self.rotational);
        model.set(Setting::Classes, self.classes);
        Box::new(model)
    }

    fn build(&self) -> AnyElevator {
        let config = Config::for_queue(CAPACITY, 0, 0, self.tick_ns);
        let mut elevator = (elevator::find(self.elevator).expect("known").build)(&config, "");
        if self.elevator == "deadline" {
            set(&mut *elevator, Setting::Classes, self.classes);
        }
        elevator
    }
}

/// Run `streams` streams of `STREAM_OPS` steps.
fn run(seed: u8, streams: u32, classes: &'static [u64], test: impl Fn(&[Step])) {
    let more = std::env::var("FAIRLIFT_STREAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let config = RunnerConfig { cases: streams * more, failure_persistence: None, ..RunnerConfig::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let stream = proptest::collection::vec(step(classes), STREAM_OPS);
    TestRunner::new_with_rng(config, rng)
        .run(&stream, |steps| {
            test(&steps);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}

// ---- bare ----

/// A bare elevator and its model side by side.
struct Pair {
    bench: Bench,
    model: Box<dyn Model>,
    /// The core's id by the model's name, of all that are queued, and of all that are with the device.
    queued: BTreeMap<Name, RequestId>,
    issued: BTreeMap<Name, RequestId>,
    kinds: BTreeMap<Name, Kind>,
    names: Name,
    /// Everything the elevator answered.
    answers: Vec<Option<RequestId>>,
}

fn nth(from: &BTreeMap<Name, RequestId>, index: usize) -> Option<(Name, RequestId)> {
    let at = index.checked_rem(from.len())?;
    from.iter().nth(at).map(|(name, rq)| (*name, *rq))
}

impl Pair {
    fn new(setup: Setup) -> Pair {
        let mut bench = Bench::build(setup.elevator, CAPACITY, setup.rotational, setup.tick_ns);
        bench.elevator = setup.build();
        Pair {
            bench,
            model: setup.model(),
            queued: BTreeMap::new(),
            issued: BTreeMap::new(),
            kinds: BTreeMap::new(),
            names: 0,
            answers: Vec::new(),
        }
    }

    /// The elevator gave `rq` up, the model `name`.
    fn left(&mut self, rq: Option<RequestId>, name: Option<Name>) {
        self.answers.push(rq);
        assert_eq!(rq, name.map(|name| self.queued[&name]), "who left");
        if let Some(name) = name {
            let rq = self.queued.remove(&name).expect("queued until now");
            self.issued.insert(name, rq);
        }
    }

    /// Somebody had to make way for another at the same sector.
    fn made_way(&mut self, name: Option<Name>) {
        assert!(self.bench.evicted.len() <= 1);
        let rq = self.bench.evicted.first().copied();
        self.left(rq, name);
    }

    fn absorb(&mut self, (name, rq): (Name, RequestId), (gone_name, gone): (Name, RequestId)) {
        if name != gone_name {
            self.bench.absorb(rq, gone);
            self.model.absorb(name, gone_name);
            self.queued.remove(&gone_name);
        }
    }

    fn drain(&mut self) {
        while !self.queued.is_empty() {
            let (rq, name) = (self.bench.drain(), self.model.dispatch(self.bench.now));
            self.left(rq, name);
        }
        assert_eq!(self.bench.drain(), None);
    }

    fn step(&mut self, step: &Step, setup: &Setup) {
        match *step {
            Step::Insert(kind, sector) => {
                if self.queued.len() + self.issued.len() == CAPACITY {
                    return;
                }
                let (rq, name) = (self.bench.add(kind, sector), self.names);
                self.names += 1;
                let away = self.model.insert(name, kind, sector, self.bench.now);
                self.made_way(away);
                self.queued.insert(name, rq);
                self.kinds.insert(name, kind);
            }
            Step::Dispatch => {
                let (rq, name) = (self.bench.dispatch(), self.model.dispatch(self.bench.now));
                self.left(rq, name);
            }
            Step::Complete(i) => {
                if let Some((name, rq)) = nth(&self.issued, i) {
                    self.bench.completed(rq);
                    self.issued.remove(&name);
                    self.kinds.remove(&name);
                }
            }
            Step::Requeue(i) => {
                if let Some((_, rq)) = nth(&self.issued, i) {
                    self.bench.requeued(rq);
                }
            }
            Step::GrowFront(i, sectors) => {
                let Some((name, rq)) = nth(&self.queued, i) else { return };
                let start = self.bench.requests[rq].sector;
                let sectors = u64::from(sectors).min(start);
                self.bench.grow_front(rq, sectors as u32);
                let away = self.model.new_start(name, start - sectors);
                self.made_way(away);
            }
            Step::GrowBack(i, sectors) => {
                if let Some((_, rq)) = nth(&self.queued, i) {
                    self.bench.grow_back(rq, sectors);
                    assert!(self.bench.evicted.is_empty());
                }
            }
            Step::AbsorbLatter(i) => {
                let Some((name, rq)) = nth(&self.queued, i) else { return };
                if let Some(gone_name) = self.model.latter(name) {
                    let gone = self.bench.latter(rq).expect("the model has one");
                    self.absorb((name, rq), (gone_name, gone));
                }
            }
            Step::AbsorbAny(i, j) => {
                if let (Some(kept), Some(gone)) = (nth(&self.queued, i), nth(&self.queued, j)) {
                    self.absorb(kept, gone);
                }
            }
            Step::FrontLookUp(kind, sector) => {
                let found = self.bench.find_front(&kind.bio(sector));
                let expected = self.model.front(kind, sector + u64::from(LENGTH));
                assert_eq!(found, expected.map(|name| self.queued[&name]), "front look-up");
                self.answers.push(found);
            }
            Step::AllowMerge(i, kind) => {
                let Some((name, rq)) = nth(&self.queued, i) else { return };
                assert_eq!(self.bench.allow_merge(rq, &kind.bio(0)), self.model.allows(name, kind), "veto");
                let near = [self.bench.former(rq), self.bench.latter(rq)];
                let expected = [self.model.former(name), self.model.latter(name)];
                assert_eq!(near, expected.map(|n| n.map(|name| self.queued[&name])), "neighbours");
                self.answers.extend(near);
            }
            Step::Wait(ns) => self.bench.now += ns,
            Step::Set(setting, value) => {
                set(&mut *self.bench.elevator, setting, value);
                self.model.set(setting, value);
            }
            Step::Drain => self.drain(),
            Step::Switch(_) => {
                self.drain();
                self.bench.elevator = setup.build();
                self.model = setup.model();
            }
        }
        assert_eq!(self.bench.elevator.is_empty(), self.queued.is_empty());
    }

    /// All steps, then everything out. Every request inserted has left once or was absorbed: `left` refuses a second time.
    fn all(mut self, steps: &[Step], setup: &Setup) -> Vec<Option<RequestId>> {
        for step in steps {
            self.step(step, setup);
        }
        self.drain();
        assert!(self.queued.is_empty() && self.bench.elevator.is_empty());
        self.answers
    }
}

/// Every stream runs twice and must get the same answers.
fn bare(seed: u8, streams: u32, setups: &[Setup], classes: &'static [u64]) {
    for setup in setups {
        run(seed, streams, classes, |steps| {
            let answers = Pair::new(*setup).all(steps, setup);
            assert_eq!(answers, Pair::new(*setup).all(steps, setup), "equal streams, equal answers");
        });
    }
}

const DISK: Setup = Setup { elevator: "deadline", classes: 0, rotational: true, tick_ns: 0 };

#[test]
fn noop_agrees_with_its_model() {
    bare(1, 60, &[Setup { elevator: "noop", ..DISK }], &[0]);
}

#[test]
fn deadline_by_direction_agrees_with_its_model() {
    bare(2, 60, &[DISK, Setup { tick_ns: 4 * MS, ..DISK }], &[0]);
}

#[test]
fn deadline_by_sync_agrees_with_its_model() {
    let setup = Setup { classes: 1, ..DISK };
    bare(3, 60, &[setup, Setup { tick_ns: MS, rotational: false, ..setup }], &[1]);
}

#[test]
fn deadline_full_agrees_with_its_model() {
    let setup = Setup { classes: 2, ..DISK };
    bare(4, 60, &[setup, Setup { tick_ns: MS, ..setup }, Setup { rotational: false, ..setup }], &[2]);
}

#[test]
fn deadline_with_classes_changing_under_way_agrees_with_its_model() {
    bare(5, 60, &[DISK, Setup { rotational: false, classes: 2, ..DISK }], &[0, 1, 2]);
}

// ---- under the queue ----

#[derive(Clone, Copy, Debug)]
struct Listed {
    name: Name,
    kind: Kind,
    start: u64,
    /// The device had it already.
    given_back: bool,
}

/// The dispatch list and the choice of elevator, as plainly as the models below it.
struct ModelQueue {
    model: Box<dyn Model>,
    sorted: bool,
    list: VecDeque<Listed>,
    /// Where a one-way sweep starts, and by which listed request's end that was last said.
    boundary: u64,
    boundary_by: Option<Name>,
    known: BTreeMap<Name, Listed>,
}

fn end(listed: &Listed) -> u64 {
    listed.start + u64::from(LENGTH)
}

fn may_not_be_passed(there: &Listed, by: &Listed) -> bool {
    use fairlift_core::Op;
    there.given_back
        || (there.kind.op == Op::Read) != (by.kind.op == Op::Read)
        || (there.kind.op == Op::Discard) != (by.kind.op == Op::Discard)
        || there.kind.flags.contains(Flags::BARRIER)
}

impl ModelQueue {
    fn append(&mut self, name: Name) {
        let listed = self.known[&name];
        self.boundary = end(&listed);
        self.boundary_by = Some(name);
        self.list.push_back(listed);
    }

    fn file(&mut self, name: Name) {
        if !self.sorted {
            return self.append(name);
        }
        let listed = self.known[&name];
        // Ascending from the boundary, then ascending from zero.
        let key = |l: &Listed| (l.start < self.boundary, l.start);
        let behind = self
            .list
            .iter()
            .rposition(|there| may_not_be_passed(there, &listed) || key(there) <= key(&listed));
        self.list.insert(behind.map_or(0, |at| at + 1), listed);
    }

    fn dispatch(&mut self, now: u64) -> Option<Name> {
        if self.list.is_empty() {
            let name = self.model.dispatch(now)?;
            self.file(name);
        }
        let head = self.list.pop_front()?;
        if self.boundary_by.is_none_or(|name| name == head.name) {
            self.boundary = end(&head);
            self.boundary_by = None;
        }
        Some(head.name)
    }

    fn drain(&mut self, now: u64) {
        while let Some(name) = self.model.dispatch(now) {
            self.file(name);
        }
    }
}

/// The streams' steps on an [`ElevatorQueue`] that switches between noop and the three deadlines.
fn under_the_queue(steps: &[Step], rotational: bool, tick_ns: u64) -> Vec<Option<RequestId>> {
    let setup = |which: usize| Setup {
        elevator: if which == 0 { "noop" } else { "deadline" },
        classes: (which % 4).saturating_sub(1) as u64,
        rotational,
        tick_ns,
    };
    let mut q = ElevatorQueue::new(CAPACITY, 0, rotational, setup(0).build());
    let mut m = ModelQueue {
        model: setup(0).model(),
        sorted: true,
        list: VecDeque::new(),
        boundary: 0,
        boundary_by: None,
        known: BTreeMap::new(),
    };
    let (mut now, mut names, mut switches) = (0, 0, 0);
    let (mut queued, mut issued) = (BTreeMap::new(), BTreeMap::new());
    let mut answers = Vec::new();
    let drained = steps.iter().chain(std::iter::repeat_n(&Step::Dispatch, CAPACITY));
    for step in drained {
        match *step {
            Step::Insert(kind, sector) => {
                let Some(rq) = q.take(kind.at(sector, now)) else {
                    assert_eq!(queued.len() + issued.len(), CAPACITY);
                    continue;
                };
                q.insert(rq, now);
                m.known.insert(names, Listed { name: names, kind, start: sector, given_back: false });
                if let Some(away) = m.model.insert(names, kind, sector, now) {
                    m.append(away);
                }
                queued.insert(names, rq);
                names += 1;
            }
            Step::Dispatch => {
                let answer = match q.dispatch(now) {
                    Dispatch::Issue(rq) => Some(rq),
                    _ => None,
                };
                let name = m.dispatch(now);
                assert_eq!(answer, name.map(|name| queued[&name]));
                if let Some(name) = name {
                    issued.insert(name, queued.remove(&name).expect("issued once"));
                }
                answers.push(answer);
            }
            Step::Complete(i) => {
                if let Some((name, rq)) = nth(&issued, i) {
                    q.complete(rq, now);
                    q.release(rq);
                    issued.remove(&name);
                    m.known.remove(&name);
                }
            }
            Step::Requeue(i) => {
                if let Some((name, rq)) = nth(&issued, i) {
                    q.requeue(rq, now);
                    m.list.push_front(Listed { given_back: true, ..m.known[&name] });
                    issued.remove(&name);
                    queued.insert(name, rq);
                }
            }
            // With its sectors unchanged: a host's business. The elevator has to file it anew all the same.
            Step::GrowFront(i, _) => {
                let listed = |name| m.list.iter().any(|l| l.name == name);
                if let Some((_, rq)) = nth(&queued, i).filter(|(name, _)| !listed(*name)) {
                    q.grew(rq, Growth::Front, now);
                }
            }
            Step::AbsorbLatter(i) => {
                let Some((name, rq)) = nth(&queued, i) else { continue };
                if let Some(gone) = m.model.latter(name) {
                    assert_eq!(q.latter(rq, now), Some(queued[&gone]));
                    q.absorbed(rq, queued[&gone], now);
                    q.release(queued[&gone]);
                    m.model.absorb(name, gone);
                    queued.remove(&gone);
                    m.known.remove(&gone);
                }
            }
            Step::Wait(ns) => now += ns,
            Step::Set(setting, value) if q.elevator().name() == "deadline" => {
                set(q.elevator_mut(), setting, value);
                m.model.set(setting, value);
            }
            Step::Drain => {
                q.drain(now);
                m.drain(now);
            }
            Step::Switch(by) => {
                switches += 1 + by;
                q.switch(setup(switches % 4).build(), now);
                m.drain(now);
                m.model = setup(switches % 4).model();
                m.sorted = switches % 4 == 0;
            }
            _ => {}
        }
        assert_eq!(q.queued(), queued.len());
        assert_eq!(q.is_empty(), queued.is_empty());
        let in_flight: u32 = q.in_flight().iter().sum();
        assert_eq!(in_flight as usize, issued.len());
    }
    assert!(queued.is_empty(), "everything has left");
    answers
}

#[test]
fn switching_draining_and_requeueing_lose_and_double_nothing() {
    for (seed, rotational, tick_ns) in [(6, true, 0), (7, false, MS)] {
        run(seed, 60, &[0, 1, 2], |steps| {
            let answers = under_the_queue(steps, rotational, tick_ns);
            assert_eq!(answers, under_the_queue(steps, rotational, tick_ns), "equal streams, equal answers");
        });
    }
}
