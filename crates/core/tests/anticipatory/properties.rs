//! Random streams: the elevator against [`crate::model`], step by step; and a host around the whole queue that does what
//! the answers say.
//!
//! The seed is fixed. A failing stream is made smaller and printed; `FAIRLIFT_STREAMS=n` runs n times as many of them.

use std::collections::{BTreeMap, VecDeque};

use fairlift_core::Groups;
use fairlift_core::collections::Id;
use fairlift_core::elevator::{self, AnyElevator, Config, DeviceState, Env, Growth, MayQueue};
use fairlift_core::group::Rounds;
use fairlift_core::queue::{DispatchList, ElevatorQueue, QueueConfig, RequestQueue, Submitted};
use fairlift_core::request::request;
use fairlift_core::{Bio, ContextId, Dispatch, Flags, GroupId, IoPrio, MS, Op, RequestId, Requests};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as RunnerConfig, RngAlgorithm, TestRng, TestRunner};

use crate::model::{Answer, Model, Name, Rq, Setting, TaskName};

const STREAM_OPS: usize = 2000;
const CAPACITY: usize = 32;
/// Task slots, the overflow context included.
const SLOTS: usize = 5;

type Kind = (Op, Flags);
const READ: Kind = (Op::Read, Flags::NONE);
const WRITE: Kind = (Op::Write, Flags::NONE);
const SYNC_WRITE: Kind = (Op::Write, Flags::SYNC);

/// One step of a stream. An index picks one of the requests that qualify, modulo their number.
#[derive(Clone, Debug)]
enum Step {
    /// By the task in a slot.
    Insert(usize, Kind, u64, u32),
    /// Where the task left off.
    Follow(usize, Kind),
    /// Take the head of the dispatch list to the drive, asking the elevator if there is none; or ask it only.
    Dispatch {
        issue: bool,
    },
    Complete(usize),
    Requeue(usize),
    GrowFront(usize, u32),
    GrowBack(usize, u32),
    AbsorbLatter(usize),
    FrontLookUp(Kind, u64),
    Neighbours(usize),
    MayQueue(usize),
    Exit(usize),
    Wait(u64),
    Set(Setting, u64),
    Drain,
}

fn sector() -> impl Strategy<Value = u64> {
    // Few places where requests meet; the width of the close window; the reach of going back.
    prop_oneof![2 => 0..200_u64, 3 => 0..40_000_u64, 2 => 0..4_000_000_u64, 1 => any::<u64>().prop_map(|s| s >> 20)]
}

fn step() -> impl Strategy<Value = Step> {
    let any = any::<usize>;
    let kind = || select(vec![READ, READ, READ, WRITE, WRITE, SYNC_WRITE]);
    prop_oneof![
        14 => (0..SLOTS, kind(), sector(), 1..64_u32).prop_map(|(t, k, s, n)| Step::Insert(t, k, s, n)),
        16 => (0..SLOTS, kind()).prop_map(|(t, k)| Step::Follow(t, k)),
        30 => any().prop_map(|n| Step::Dispatch { issue: n % 8 > 0 }),
        30 => any().prop_map(Step::Complete),
        1 => any().prop_map(Step::Requeue),
        2 => (any(), 0..40_u32).prop_map(|(i, n)| Step::GrowFront(i, n)),
        1 => (any(), 1..40_u32).prop_map(|(i, n)| Step::GrowBack(i, n)),
        3 => any().prop_map(Step::AbsorbLatter),
        2 => (kind(), sector()).prop_map(|(k, s)| Step::FrontLookUp(k, s)),
        2 => any().prop_map(Step::Neighbours),
        4 => (0..SLOTS).prop_map(Step::MayQueue),
        3 => (1..SLOTS).prop_map(Step::Exit),
        14 => prop_oneof![4 => 0..3 * MS, 3 => 0..8 * MS, 1 => 0..400 * MS].prop_map(Step::Wait),
        1 => prop_oneof![
            2 => (Just(Setting::Antic), select(vec![0, 1, 4, 6, 6, 6, 30])),
            1 => (Just(Setting::Read), select(vec![0, 1, 20, 125])),
            1 => (Just(Setting::Write), select(vec![0, 1, 20, 250])),
            1 => (Just(Setting::ReadBatch), select(vec![0, 5, 50, 500])),
            2 => (Just(Setting::WriteBatch), select(vec![0, 3, 20, 125])),
        ].prop_map(|(s, v)| Step::Set(s, v)),
        1 => select(vec![Step::Drain, Step::Wait(0), Step::Wait(0)]),
    ]
}

const TUNABLES: [(Setting, &str); 5] = [
    (Setting::Read, "read_expire"),
    (Setting::Write, "write_expire"),
    (Setting::Antic, "antic_expire"),
    (Setting::ReadBatch, "read_batch_expire"),
    (Setting::WriteBatch, "write_batch_expire"),
];

/// Run `streams` streams of `STREAM_OPS` steps.
fn run<S: Strategy>(seed: u8, streams: u32, step: S, test: impl Fn(&[S::Value]))
where
    S::Value: Clone,
{
    let more = std::env::var("FAIRLIFT_STREAMS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let config = RunnerConfig { cases: streams * more, failure_persistence: None, ..RunnerConfig::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    TestRunner::new_with_rng(config, rng)
        .run(&proptest::collection::vec(step, STREAM_OPS), |steps| {
            test(&steps);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}

// ---- against the model ----

/// A bare elevator and its model side by side, with a dispatch list in order of arrival.
struct Pair {
    elevator: AnyElevator,
    model: Model,
    requests: Requests,
    /// Of which only the contexts are used.
    tasks_of: ElevatorQueue,
    now: u64,
    /// By slot: the task's name there, and where it left off.
    tasks: [(TaskName, u64); SLOTS],
    names: Name,
    queued: BTreeMap<Name, RequestId>,
    listed: VecDeque<Name>,
    issued: BTreeMap<Name, RequestId>,
    known: BTreeMap<Name, Rq>,
    /// Nobody may be told to wait longer, as long as nothing is dispatched.
    idle_until: Option<u64>,
    answers: Vec<Dispatch>,
}

/// Run `$call` with an `Env`. Answers with that, and whom it put on the dispatch list.
macro_rules! hook {
    ($pair:ident, |$elevator:ident, $env:ident| $call:expr) => {{
        let mut list = DispatchList::new(CAPACITY);
        let mut groups = Groups::new(0);
        let mut env_owned = Env {
            now: $pair.now,
            requests: &$pair.requests,
            contexts: $pair.tasks_of.contexts(),
            rounds: Rounds::new(&mut groups),
            device: &DeviceState { rotational: true, in_flight: [0; 2], depth: 0, flushes: 0 },
            dispatch: &mut list,
        };
        let $elevator = &mut $pair.elevator;
        let $env = &mut env_owned;
        let answer = $call;
        let evicted: Vec<RequestId> = list.iter().collect();
        (answer, evicted)
    }};
}

fn nth<T: Copy>(from: &BTreeMap<Name, T>, index: usize) -> Option<(Name, T)> {
    let at = index.checked_rem(from.len())?;
    from.iter().nth(at).map(|(name, rq)| (*name, *rq))
}

impl Pair {
    fn new(tick_ns: u64) -> Pair {
        let config = Config::for_queue(CAPACITY, SLOTS - 1, 0, tick_ns);
        let build = || (elevator::find("anticipatory").expect("known").build)(&config, "");
        let mut tasks_of = ElevatorQueue::new(CAPACITY, SLOTS - 1, true, build());
        let mut model = Model::new(tick_ns);
        let tasks = [0; SLOTS].map(|_| (model.new_task(), 0));
        for _ in 1..SLOTS {
            tasks_of.contexts_mut().create(IoPrio::DEFAULT);
        }
        Pair {
            elevator: build(),
            model,
            requests: Requests::new(CAPACITY),
            tasks_of,
            now: 0,
            tasks,
            names: 0,
            queued: BTreeMap::new(),
            listed: VecDeque::new(),
            issued: BTreeMap::new(),
            known: BTreeMap::new(),
            idle_until: None,
            answers: Vec::new(),
        }
    }

    /// The context in `slot`; if its task is gone and so are its requests, a new one moves in.
    fn enter(&mut self, slot: usize) -> Option<ContextId> {
        let id = ContextId::from_index(slot);
        if !self.tasks_of.contexts()[id].alive {
            if self.requests.iter().any(|(_, r)| r.context == id) {
                return None;
            }
            let mut contexts = self.tasks_of.contexts_mut();
            contexts[id].alive = true;
            contexts[id].epoch += 1;
            self.tasks[slot].0 = self.model.new_task();
        }
        Some(id)
    }

    fn insert(&mut self, slot: usize, (op, flags): Kind, sector: u64, sectors: u32) {
        let Some(context) = self.enter(slot) else { return };
        let new = request(op, flags, sector, sectors, context, self.now);
        let Some(id) = self.requests.take(new) else { return };
        let name = self.names;
        self.names += 1;
        let (task, at) = &mut self.tasks[slot];
        *at = new.end();
        let rq = Rq { name, task: *task, sync: new.is_sync(), start: sector, end: new.end() };
        self.known.insert(name, rq);
        let ((), evicted) = hook!(self, |elevator, env| elevator.insert(env, id));
        let sent_away = self.model.insert(rq, self.now);
        self.made_way(&evicted, sent_away);
        self.queued.insert(name, id);
    }

    fn made_way(&mut self, evicted: &[RequestId], name: Option<Name>) {
        assert_eq!(evicted, name.map(|name| self.queued[&name]).as_slice(), "who had to leave");
        if let Some(name) = name {
            self.leaves(name);
        }
    }

    fn leaves(&mut self, name: Name) {
        let rq = self.queued.remove(&name).expect("queued, and leaves once");
        self.listed.push_back(name);
        self.issued.insert(name, rq);
        self.idle_until = None;
    }

    fn ask(&mut self) {
        let (answer, evicted) = hook!(self, |elevator, env| elevator.dispatch(env, GroupId::ROOT));
        assert!(evicted.is_empty());
        let expected = match self.model.dispatch(self.now) {
            Answer::Issue(name) => Dispatch::Issue(self.queued[&name]),
            Answer::Idle(until) => Dispatch::Idle { until },
            Answer::Empty => Dispatch::Empty,
        };
        assert_eq!(answer, expected, "at {} ns", self.now);
        self.answers.push(answer);
        match answer {
            Dispatch::Issue(rq) => {
                let name = *self.queued.iter().find(|(_, id)| **id == rq).expect("queued").0;
                self.leaves(name);
            }
            Dispatch::Idle { until } => {
                assert!(until > self.now, "no time to wait");
                assert!(!self.queued.is_empty(), "nothing to wait with");
                assert!(self.idle_until.is_none_or(|first| until <= first), "the wait was made longer");
                self.idle_until = Some(until);
            }
            Dispatch::Empty | Dispatch::Busy => {
                assert!(self.queued.is_empty() || !self.issued.is_empty(), "stuck with a dry drive");
            }
        }
    }

    /// Those in the drive, not on the list.
    fn in_drive(&self, index: usize) -> Option<(Name, RequestId)> {
        let out: BTreeMap<Name, RequestId> = self
            .issued
            .iter()
            .filter(|(name, _)| !self.listed.contains(name))
            .map(|(n, r)| (*n, *r))
            .collect();
        nth(&out, index)
    }

    fn issue(&mut self) {
        if let Some(name) = self.listed.pop_front() {
            let rq = self.issued[&name];
            hook!(self, |elevator, env| elevator.issued(env, rq));
            self.model.issued(&self.known[&name], self.now);
        }
    }

    fn complete(&mut self, index: usize) {
        if let Some((name, rq)) = self.in_drive(index) {
            hook!(self, |elevator, env| elevator.completed(env, rq));
            self.model.completed(&self.known[&name], self.now);
            self.requests.release(rq);
            self.issued.remove(&name);
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Insert(slot, kind, sector, sectors) => self.insert(slot, kind, sector, sectors),
            Step::Follow(slot, kind) => self.insert(slot, kind, self.tasks[slot].1, 8),
            Step::Dispatch { issue } => {
                if self.listed.is_empty() {
                    self.ask();
                }
                if issue {
                    self.issue();
                }
            }
            Step::Complete(i) => self.complete(i),
            Step::Requeue(i) => {
                if let Some((name, rq)) = self.in_drive(i) {
                    hook!(self, |elevator, env| elevator.requeued(env, rq));
                    self.model.requeued(&self.known[&name], self.now);
                    self.listed.push_front(name);
                }
            }
            Step::GrowFront(i, sectors) => {
                let Some((name, rq)) = nth(&self.queued, i) else { return };
                let request = &mut self.requests[rq];
                let by = request.sector.min(u64::from(sectors));
                request.sector -= by;
                request.sectors += by as u32;
                let start = request.sector;
                let ((), evicted) = hook!(self, |elevator, env| elevator.grew(env, rq, Growth::Front));
                let sent_away = self.model.new_start(name, start, self.now);
                self.made_way(&evicted, sent_away);
            }
            Step::GrowBack(i, sectors) => {
                let Some((name, rq)) = nth(&self.queued, i) else { return };
                self.requests[rq].sectors += sectors;
                hook!(self, |elevator, env| elevator.grew(env, rq, Growth::Back));
                self.model.new_end(name, self.requests[rq].end(), self.now);
            }
            Step::AbsorbLatter(i) => {
                let Some((name, rq)) = nth(&self.queued, i) else { return };
                let Some(gone_name) = self.model.latter(name) else { return };
                let gone = self.queued.remove(&gone_name).expect("queued");
                hook!(self, |elevator, env| elevator.absorbed(env, rq, gone));
                self.model.absorb(name, gone_name, self.now);
                self.requests.release(gone);
            }
            Step::FrontLookUp((op, flags), sector) => {
                let context = ContextId::OVERFLOW;
                let bio = Bio {
                    cookie: 0,
                    op,
                    flags,
                    sector,
                    sectors: 8,
                    segments: 1,
                    context,
                    ioprio: None,
                    group: None,
                };
                let (found, _) = hook!(self, |elevator, env| elevator.find_front(env, &bio));
                let expected = self.model.front(op == Op::Read, bio.end());
                assert_eq!(found, expected.map(|name| self.queued[&name]), "front");
            }
            Step::Neighbours(i) => {
                let Some((name, rq)) = nth(&self.queued, i) else { return };
                let ((former, latter), _) =
                    hook!(self, |elevator, env| (elevator.former(env, rq), elevator.latter(env, rq)));
                let expected = [self.model.former(name), self.model.latter(name)];
                assert_eq!(
                    [former, latter],
                    expected.map(|n| n.map(|name| self.queued[&name])),
                    "neighbours"
                );
            }
            Step::MayQueue(slot) => {
                let Some(context) = self.enter(slot) else { return };
                let (answer, _) = hook!(self, |elevator, env| elevator.may_queue(env, context, true));
                let must = self.model.must_queue(self.tasks[slot].0, self.now);
                assert_eq!(answer, if must { MayQueue::Must } else { MayQueue::May });
            }
            Step::Exit(slot) => {
                let context = ContextId::from_index(slot);
                if self.tasks_of.contexts()[context].alive {
                    hook!(self, |elevator, env| elevator.context_exit(env, context));
                    self.tasks_of.contexts_mut()[context].alive = false;
                    self.model.exit(self.tasks[slot].0, self.now);
                }
            }
            Step::Wait(ns) => self.now += ns,
            Step::Set(setting, ms) => {
                let (_, name) = TUNABLES.into_iter().find(|(s, _)| *s == setting).expect("all are listed");
                elevator::set(&mut *self.elevator, name, &ms.to_string()).expect("in range");
                self.model.set(setting, ms);
            }
            Step::Drain => {
                for name in self.model.drain(self.now) {
                    let (rq, _) = hook!(self, |elevator, env| elevator.drain(env));
                    assert_eq!(rq, Some(self.queued[&name]), "order of draining");
                    self.leaves(name);
                }
                assert_eq!(hook!(self, |elevator, env| elevator.drain(env)).0, None);
                assert!(self.queued.is_empty());
            }
        }
        assert_eq!(self.elevator.is_empty(), self.queued.is_empty());
    }

    /// All steps, then a host that serves what is left, one request at a time.
    fn all(mut self, steps: &[Step]) -> Vec<Dispatch> {
        for step in steps {
            self.step(step);
        }
        while !self.queued.is_empty() || !self.issued.is_empty() {
            if self.listed.is_empty() && self.issued.is_empty() {
                self.ask();
            }
            match self.answers.last() {
                Some(Dispatch::Idle { until }) if self.issued.is_empty() => self.now = *until,
                _ => {}
            }
            self.issue();
            self.complete(0);
        }
        assert!(self.elevator.is_empty());
        assert_eq!(self.requests.taken(), 0);
        self.answers
    }
}

/// Every stream runs twice and must get the same answers.
fn against_the_model(seed: u8, streams: u32, tick_ns: u64) {
    run(seed, streams, step(), |steps| {
        let answers = Pair::new(tick_ns).all(steps);
        assert_eq!(answers, Pair::new(tick_ns).all(steps), "equal streams, equal answers");
    });
}

#[test]
fn agrees_with_its_model_at_hz_1000() {
    against_the_model(11, 100, MS);
}

#[test]
fn agrees_with_its_model_at_hz_250() {
    against_the_model(12, 60, 4 * MS);
}

#[test]
fn agrees_with_its_model_at_hz_100() {
    against_the_model(13, 40, 10 * MS);
}

#[test]
fn agrees_with_its_model_on_an_exact_clock() {
    against_the_model(14, 60, 0);
}

// ---- under the whole queue ----

/// What a host does next.
#[derive(Clone, Debug)]
enum Act {
    Submit(usize, Kind, u64),
    /// As many as there are, up to the drive's depth.
    Serve(u32),
    Complete(usize),
    Exit(usize),
    Wait(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let any = any::<usize>;
    prop_oneof![
        30 => (0..SLOTS, select(vec![READ, READ, WRITE, SYNC_WRITE]), 0..400_u64)
            .prop_map(|(t, kind, s)| Act::Submit(t, kind, s * 8)),
        20 => (1..8_u32).prop_map(Act::Serve),
        24 => any().prop_map(Act::Complete),
        1 => (1..SLOTS).prop_map(Act::Exit),
        10 => (0..4 * MS).prop_map(Act::Wait),
    ]
}

struct Host {
    q: RequestQueue,
    now: u64,
    tasks: [ContextId; SLOTS],
    cookies: u64,
    in_drive: Vec<RequestId>,
    /// Bios by cookie: completed?
    done: Vec<bool>,
}

impl Host {
    fn complete(&mut self, index: usize) {
        let Some(at) = index.checked_rem(self.in_drive.len()) else { return };
        let rq = self.in_drive.remove(at);
        let done = &mut self.done;
        self.q.complete(rq, self.now, |cookie| {
            assert!(!done[cookie as usize], "completed twice");
            done[cookie as usize] = true;
        });
    }

    fn serve(&mut self, depth: u32) -> Dispatch {
        loop {
            if self.in_drive.len() >= depth as usize {
                return Dispatch::Empty;
            }
            match self.q.dispatch(self.now) {
                Dispatch::Issue(rq) => self.in_drive.push(rq),
                answer => return answer,
            }
        }
    }

    fn act(&mut self, act: &Act) {
        match *act {
            Act::Submit(slot, (op, flags), sector) => {
                let context = self.tasks[slot];
                let cookie = self.cookies;
                let bio = Bio {
                    cookie,
                    op,
                    flags,
                    sector,
                    sectors: 8,
                    segments: 1,
                    context,
                    ioprio: None,
                    group: None,
                };
                match self.q.submit(bio, self.now) {
                    Submitted::Queued(_) | Submitted::Merged(_) => {
                        self.cookies += 1;
                        self.done.push(false);
                    }
                    _ => {}
                }
            }
            Act::Serve(depth) => drop(self.serve(depth)),
            Act::Complete(i) => self.complete(i),
            Act::Exit(slot) => {
                self.q.context_exit(self.tasks[slot], self.now);
                self.tasks[slot] = self.q.contexts_mut().create(IoPrio::DEFAULT);
            }
            Act::Wait(ns) => self.now += ns,
        }
    }

    /// Do as told until everything is done. Between two dispatches there is at most one wait.
    fn finish(&mut self) {
        self.q.unplug();
        let mut waits = 0;
        while self.q.pending() > 0 || !self.in_drive.is_empty() {
            let before = self.in_drive.len();
            match self.serve(4) {
                Dispatch::Idle { until } if self.in_drive.is_empty() => {
                    assert!(until > self.now && until <= self.now + 6 * MS);
                    self.now = until;
                    waits += 1;
                }
                _ => assert!(!self.in_drive.is_empty(), "stuck"),
            }
            waits = if self.in_drive.len() > before { 0 } else { waits };
            assert!(waits <= 1, "waits one after the other");
            self.now += MS / 4;
            self.complete(0);
        }
    }
}

#[test]
fn every_bio_is_done_once_under_the_whole_queue() {
    run(15, 60, act(), |acts| {
        let config = QueueConfig { contexts_max: 64, ..QueueConfig::default() };
        let elevator = (elevator::find("anticipatory").expect("known").build)(&config.elevator(), "");
        let mut q = RequestQueue::new(config, elevator);
        let tasks = [0; SLOTS].map(|_| q.contexts_mut().create(IoPrio::DEFAULT));
        let mut host = Host { q, now: 0, tasks, cookies: 0, in_drive: Vec::new(), done: Vec::new() };
        for act in acts {
            host.act(act);
        }
        host.finish();
        assert!(host.done.iter().all(|done| *done), "some bio was lost");
        assert_eq!(host.q.requests().taken(), 0);
    });
}
