//! Random streams: the elevators against [`crate::model`], step by step.
//!
//! The seed is fixed. A failing stream is made smaller and printed; `FAIRLIFT_STREAMS=n` runs n times as many of them.

use std::collections::BTreeMap;

use fairlift_core::{MS, RequestId};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as RunnerConfig, RngAlgorithm, TestRng, TestRunner};

use crate::bench::{BE, Bench, DISCARD, IDLE, Kind, READ, RT, SYNC_WRITE, WRITE};
use crate::model::{self, Model, Name};

const STREAM_OPS: usize = 3000;
const CAPACITY: usize = 400;
/// Few enough that requests often meet.
const SECTORS: u64 = 300;

/// One step of a stream. An index picks one of the requests that qualify, modulo their number.
#[derive(Clone, Debug)]
enum Step {
    Insert(Kind, u64),
    /// Several at a time, so that limits are met.
    Burst(Kind, u64),
    Dispatch,
    DispatchAll,
    Complete(usize),
    CompleteAll,
    GrowFront(usize, u32),
    AbsorbLatter(usize),
    FrontLookUp(Kind, u64),
    AllowMerge(usize, Kind),
    Wait(u64),
    Set(&'static str, u64),
    Drain,
}

type Settings = &'static [(&'static str, &'static [u64])];

const MQ_DEADLINE: Settings = &[
    ("read_expire", &[0, 1, 5, 20, 100]),
    ("write_expire", &[0, 1, 5, 20, 100]),
    ("prio_aging_expire", &[0, 1, 10, 60, 10_000]),
    ("writes_starved", &[0, 1, 2, 3]),
    ("fifo_batch", &[0, 1, 2, 3, 7, 16]),
    ("front_merges", &[0, 1]),
];
const KYBER: Settings = &[
    ("read_lat_nsec", &[0, 1, 100_000, 2_000_000, 40_000_000]),
    ("write_lat_nsec", &[0, 1, 1_000_000, 10_000_000, 400_000_000]),
];

fn kind() -> impl Strategy<Value = Kind> {
    let what = select(vec![READ, READ, WRITE, WRITE, SYNC_WRITE, DISCARD]);
    (what, select(vec![BE, BE, BE, RT, IDLE])).prop_map(|(kind, ioprio)| kind.with(ioprio))
}

fn step(settings: Settings) -> impl Strategy<Value = Step> {
    let any = any::<usize>;
    let setting = select(settings).prop_flat_map(|(name, values)| (Just(name), select(values)));
    prop_oneof![
        30 => (kind(), 0..SECTORS).prop_map(|(kind, sector)| Step::Insert(kind, sector)),
        3 => (kind(), 0..SECTORS).prop_map(|(kind, sector)| Step::Burst(kind, sector)),
        22 => Just(Step::Dispatch),
        2 => Just(Step::DispatchAll),
        24 => any().prop_map(Step::Complete),
        2 => Just(Step::CompleteAll),
        4 => (any(), 1..40_u32).prop_map(|(i, n)| Step::GrowFront(i, n)),
        3 => any().prop_map(Step::AbsorbLatter),
        4 => (kind(), 0..SECTORS).prop_map(|(kind, sector)| Step::FrontLookUp(kind, sector)),
        4 => (any(), kind()).prop_map(|(i, kind)| Step::AllowMerge(i, kind)),
        8 => (0..40 * MS).prop_map(Step::Wait),
        1 => setting.prop_map(|(name, value)| Step::Set(name, value)),
        1 => Just(Step::Drain),
    ]
}

/// A bare elevator and its model side by side.
struct Pair {
    bench: Bench,
    model: Box<dyn Model>,
    /// The core's id by the model's name, of all that are queued, and of all that are with the device.
    queued: BTreeMap<Name, (RequestId, Kind)>,
    issued: BTreeMap<Name, (RequestId, Kind)>,
    names: Name,
}

fn nth(from: &BTreeMap<Name, (RequestId, Kind)>, index: usize) -> Option<(Name, RequestId, Kind)> {
    let at = index.checked_rem(from.len())?;
    from.iter().nth(at).map(|(name, (rq, kind))| (*name, *rq, *kind))
}

impl Pair {
    fn name_of(&self, rq: RequestId) -> Name {
        self.queued.iter().find(|(_, (id, _))| *id == rq).map(|(name, _)| *name).expect("queued")
    }

    fn insert(&mut self, kind: Kind, sector: u64) {
        if self.queued.len() + self.issued.len() == CAPACITY {
            return;
        }
        self.names += 1;
        let rq = self.bench.add(kind, sector);
        self.model.insert(self.names, kind, sector, self.bench.now);
        self.queued.insert(self.names, (rq, kind));
    }

    fn dispatch(&mut self) -> bool {
        let rq = self.bench.dispatch();
        let name = self.model.dispatch(self.bench.now);
        assert_eq!(rq, name.map(|name| self.queued[&name].0), "who goes");
        let Some(name) = name else {
            let waits = !self.queued.is_empty();
            assert!(!waits || !self.issued.is_empty(), "nothing is in the device and nothing goes");
            return false;
        };
        let entry = self.queued.remove(&name).expect("queued until now");
        self.bench.requests[entry.0].issued_ns = self.bench.now;
        self.issued.insert(name, entry);
        true
    }

    fn complete(&mut self, index: usize) {
        let Some((name, rq, kind)) = nth(&self.issued, index) else { return };
        let (came, issued) = (self.bench.requests[rq].start_ns, self.bench.requests[rq].issued_ns);
        self.issued.remove(&name);
        self.bench.completed(rq);
        self.model.completed(name, kind, came, issued, self.bench.now);
    }

    fn absorb_latter(&mut self, index: usize) {
        let Some((name, rq, _)) = nth(&self.queued, index) else { return };
        let Some(gone) = self.bench.latter(rq) else { return };
        let gone_name = self.name_of(gone);
        self.bench.absorb(rq, gone);
        self.model.absorb(name, gone_name);
        self.queued.remove(&gone_name);
    }

    fn grow_front(&mut self, index: usize, sectors: u32) {
        let Some((name, rq, _)) = nth(&self.queued, index) else { return };
        let sectors = u64::from(sectors).min(self.bench.requests[rq].sector) as u32;
        self.bench.grow_front(rq, sectors);
        self.model.new_start(name, self.bench.requests[rq].sector);
    }

    fn drain(&mut self) {
        while let Some(rq) = self.bench.drain() {
            let name = self.name_of(rq);
            self.model.lost(name);
            self.queued.remove(&name);
            self.bench.requests.release(rq);
        }
        assert!(self.queued.is_empty() && self.bench.elevator.is_empty());
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Insert(kind, sector) => self.insert(kind, sector),
            Step::Burst(kind, sector) => (0..60).for_each(|n| self.insert(kind, sector + n * 8)),
            Step::Dispatch => {
                self.dispatch();
            }
            Step::DispatchAll => while self.dispatch() {},
            Step::Complete(index) => self.complete(index),
            Step::CompleteAll => (0..self.issued.len()).for_each(|_| self.complete(0)),
            Step::GrowFront(index, sectors) => self.grow_front(index, sectors),
            Step::AbsorbLatter(index) => self.absorb_latter(index),
            Step::FrontLookUp(kind, sector) => {
                let found = self.bench.find_front(&kind.bio(sector));
                let end = kind.bio(sector).end();
                assert_eq!(found, self.model.front(kind, end).map(|name| self.queued[&name].0));
            }
            Step::AllowMerge(index, kind) => {
                if let Some((name, rq, own)) = nth(&self.queued, index) {
                    let kind = Kind { ioprio: kind.ioprio, ..own };
                    assert_eq!(self.bench.allow_merge(rq, &kind.bio(0)), self.model.allows(name, kind));
                }
            }
            Step::Wait(ns) => self.bench.now += ns,
            Step::Set(name, value) => {
                self.bench.set(name, &value.to_string());
                self.model.set(name, value);
            }
            Step::Drain => self.drain(),
        }
        assert_eq!(self.bench.elevator.is_empty(), self.queued.is_empty());
    }
}

fn run(elevator: &'static str, settings: Settings, model: fn() -> Box<dyn Model>) {
    let more: u32 = std::env::var("FAIRLIFT_STREAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let config = RunnerConfig { cases: 60 * more, failure_persistence: None, ..RunnerConfig::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let stream = proptest::collection::vec(step(settings), STREAM_OPS);
    TestRunner::new_with_rng(config, rng)
        .run(&stream, |steps| {
            let mut pair = Pair {
                bench: Bench::build(elevator, CAPACITY, true, 0),
                model: model(),
                queued: BTreeMap::new(),
                issued: BTreeMap::new(),
                names: 0,
            };
            steps.iter().for_each(|step| pair.step(step));
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn mq_deadline_does_what_the_model_does() {
    run("mq-deadline", MQ_DEADLINE, || Box::new(model::MqDeadline::new()));
}

#[test]
fn kyber_does_what_the_model_does() {
    run("kyber", KYBER, || Box::new(model::Kyber::new()));
}
