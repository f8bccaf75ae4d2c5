//! Each nanosecond once: whatever a host does, what is billed is what the device was busy or kept waiting, as measured from
//! outside; and every bio comes to its end.

mod queue_support;

use std::collections::BTreeSet;

use fairlift_core::group::{GroupError, Totals};
use fairlift_core::queue::{Admission, Ordering, Plugging, QueueConfig, RequestQueue, Submitted};
use fairlift_core::request::{RequestState, Status};
use fairlift_core::{
    Bio, ContextId, Dispatch, Flags, GroupId, GroupParams, IoClass, IoPrio, MS, Op, RequestId, elevator,
};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config as RunnerConfig, RngAlgorithm, TestRng, TestRunner};
use queue_support::*;

const ELEVATORS: [(&str, &str); 11] = [
    ("noop", ""),
    ("deadline", ""),
    ("fair", ""),
    ("anticipatory", ""),
    ("cfq", "2.6.31"),
    ("cfq", "2.6.34"),
    ("cfq", "2.6.37"),
    ("none", ""),
    ("mq-deadline", ""),
    ("kyber", ""),
    ("bfq", ""),
];
const GROUPS: usize = 4;
const TASKS: usize = 5;

/// One thing a host does. An index picks one of those that qualify, modulo their number.
#[derive(Clone, Debug)]
enum Step {
    Submit { task: usize, op: Op, flags: Flags, at: u64, group: Option<usize> },
    Dispatch { most: usize },
    Complete { which: usize, status: Status },
    Requeue { which: usize },
    Cancel { which: usize },
    Exit { task: usize },
    Move { task: usize, group: usize },
    Create { at: usize, parent: usize },
    Remove { group: usize },
    Reweigh { group: usize, params: GroupParams },
    Set(&'static str, &'static str),
    Wait { from: usize, whom: usize },
    EndWait { from: usize },
    Switch { to: usize },
    Pass { ns: u64 },
}

/// What a host of a device that keeps order by barriers, or by flush sequences, sends.
fn bio_kind(barriers: bool) -> impl Strategy<Value = (Op, Flags)> {
    let (none, sync) = (Flags::NONE, Flags::SYNC);
    let plain =
        vec![(Op::Read, none), (Op::Read, none), (Op::Write, none), (Op::Write, sync), (Op::Discard, none)];
    let ordered = match barriers {
        true => vec![(Op::Write, Flags::BARRIER), (Op::Flush, none)],
        false => vec![
            (Op::Flush, none),
            (Op::Write, Flags::PREFLUSH),
            (Op::Write, Flags::FUA),
            (Op::Write, Flags::PREFLUSH | Flags::FUA),
        ],
    };
    prop_oneof![5 => select(plain), 1 => select(ordered)]
}

fn params() -> impl Strategy<Value = GroupParams> {
    let class = select(vec![IoClass::BestEffort, IoClass::BestEffort, IoClass::RealTime, IoClass::Idle]);
    let weight = || select(vec![1, 100, 400, 10_000]);
    let (reserve, latency_ns) = (select(vec![0, 0, 10, 40]), select(vec![0, 0, MS, 20 * MS]));
    (weight(), weight(), class, reserve, latency_ns).prop_map(
        |(weight, leaf_weight, class, reserve, latency_ns)| GroupParams {
            weight,
            leaf_weight,
            class,
            reserve,
            latency_ns,
        },
    )
}

fn step(barriers: bool) -> impl Strategy<Value = Step> {
    let any = any::<usize>;
    let (task, group) = (|| 0..TASKS, || 0..GROUPS);
    let status = select(vec![Status::Done, Status::Done, Status::Failed]);
    let setting = select(vec![
        ("charge", "time"),
        ("charge", "bytes"),
        ("charge", "requests"),
        ("fairness", "0"),
        ("fairness", "1"),
        ("fairness", "2"),
        ("group_idle", "0"),
        ("group_idle", "8"),
        ("group_slice", "3"),
        ("group_slice", "100"),
        ("group_depth", "0"),
        ("group_depth", "1"),
    ]);
    prop_oneof![
        30 => (task(), bio_kind(barriers), 0..60_u64, prop::option::weighted(0.2, group()))
            .prop_map(|(task, (op, flags), at, group)| Step::Submit { task, op, flags, at, group }),
        25 => (0..4_usize).prop_map(|most| Step::Dispatch { most }),
        25 => (any(), status).prop_map(|(which, status)| Step::Complete { which, status }),
        2 => any().prop_map(|which| Step::Requeue { which }),
        3 => any().prop_map(|which| Step::Cancel { which }),
        1 => task().prop_map(|task| Step::Exit { task }),
        1 => (task(), group()).prop_map(|(task, group)| Step::Move { task, group }),
        2 => (1..GROUPS, group()).prop_map(|(at, parent)| Step::Create { at, parent }),
        1 => (1..GROUPS).prop_map(|group| Step::Remove { group }),
        1 => (group(), params()).prop_map(|(group, params)| Step::Reweigh { group, params }),
        2 => setting.prop_map(|(name, text)| Step::Set(name, text)),
        2 => (task(), task()).prop_map(|(from, whom)| Step::Wait { from, whom }),
        1 => task().prop_map(|from| Step::EndWait { from }),
        1 => (0..ELEVATORS.len()).prop_map(|to| Step::Switch { to }),
        20 => prop_oneof![6 => 0..2 * MS, 2 => 0..20 * MS, 1 => 0..400 * MS].prop_map(|ns| Step::Pass { ns }),
    ]
}

/// The device's time, measured where it is spent.
#[derive(Default)]
struct Meter {
    /// Not before there are groups.
    on: bool,
    in_device: usize,
    /// Up to here it is measured.
    seen: u64,
    busy_ns: u64,
    idle_ns: u64,
}

impl Meter {
    fn pass(&mut self, now: u64) {
        let ns = now.saturating_sub(self.seen);
        self.seen = self.seen.max(now);
        if self.in_device > 0 {
            self.busy_ns += ns;
        } else {
            self.idle_ns += ns;
        }
    }

    fn issue(&mut self, now: u64) {
        // A busy stretch is measured when it ends, as it is billed.
        if self.in_device == 0 {
            self.pass(now);
        }
        self.in_device += 1;
    }

    fn end(&mut self, now: u64) {
        self.pass(now);
        self.in_device -= 1;
    }
}

struct World {
    q: RequestQueue,
    config: QueueConfig,
    now: u64,
    groups: [GroupId; GROUPS],
    tasks: [ContextId; TASKS],
    waits: [Option<fairlift_core::group::WaitToken>; TASKS],
    cookies: u64,
    open: BTreeSet<u64>,
    in_device: Vec<RequestId>,
    meter: Meter,
}

/// The shape of a world that does not change.
#[derive(Clone, Copy, Debug)]
struct Shape {
    elevator: usize,
    ordering: Ordering,
    plugging: Plugging,
    /// Are there groups before anything else?
    grouped: bool,
}

fn build_one(config: &QueueConfig, which: usize) -> elevator::AnyElevator {
    let (name, profile) = ELEVATORS[which];
    (elevator::find(name).expect("known").build)(&config.elevator(), profile)
}

impl World {
    fn new(shape: Shape) -> World {
        let config = QueueConfig {
            contexts_max: TASKS,
            groups_max: GROUPS,
            admission: Admission::Pools { nr_requests: 12 },
            ordering: shape.ordering,
            plugging: shape.plugging,
            ..QueueConfig::default()
        };
        let mut q = RequestQueue::new(config, build_one(&config, shape.elevator));
        let tasks = [(); TASKS].map(|()| q.contexts_mut().create(IoPrio::DEFAULT));
        let mut world = World {
            q,
            config,
            now: 1000 * MS,
            groups: [GroupId::ROOT; GROUPS],
            tasks,
            waits: [None; TASKS],
            cookies: 0,
            open: BTreeSet::new(),
            in_device: Vec::new(),
            meter: Meter::default(),
        };
        if shape.grouped {
            world.start_groups();
            for at in 1..GROUPS {
                world.apply(&Step::Create { at, parent: at / 2 });
                world.apply(&Step::Move { task: at, group: at });
            }
        }
        world
    }

    /// From now on it is counted: what is in the device has been there since the last of it went there.
    fn start_groups(&mut self) {
        if !self.meter.on {
            let issued = self.in_device.iter().map(|rq| self.q.requests()[*rq].issued_ns);
            let seen = issued.max().unwrap_or(self.now);
            self.meter = Meter { on: true, in_device: self.in_device.len(), seen, ..Meter::default() };
        }
        self.q.groups_mut();
    }

    fn totals(&self) -> Totals {
        self.q.groups().totals()
    }

    fn check(&mut self) {
        let Totals { busy_ns, waited_ns, billed_ns } = self.totals();
        assert_eq!(billed_ns, busy_ns + waited_ns, "what is billed is what there was to bill");
        if !self.meter.on {
            return assert_eq!(billed_ns, 0, "nothing is counted before there are groups");
        }
        assert_eq!(busy_ns, self.meter.busy_ns, "the device's busy time");
        if self.meter.in_device == 0 {
            self.meter.pass(self.now);
        }
        assert!(waited_ns <= self.meter.idle_ns, "kept empty for longer than it was empty");
        let (mut queued, mut in_flight) = (0, 0);
        for (group, _) in self.q.groups().iter() {
            queued += self.q.groups().queued(group);
            in_flight += self.q.groups().in_flight(group);
        }
        assert!(in_flight as usize <= self.in_device.len(), "counted in the device, and is not");
        assert!(queued as usize + self.in_device.len() <= self.q.pending(), "counted as queued, and is not");
    }

    fn done(&mut self, cookies: Vec<u64>) {
        for cookie in cookies {
            assert!(self.open.remove(&cookie), "{cookie} is done twice");
        }
    }

    fn issue(&mut self) -> Dispatch {
        let answer = self.q.dispatch(self.now);
        if let Dispatch::Issue(rq) = answer {
            assert_eq!(self.q.requests()[rq].state, RequestState::Issued);
            assert!(!self.in_device.contains(&rq), "issued twice");
            self.in_device.push(rq);
            self.meter.issue(self.now);
        }
        answer
    }

    fn pick(&mut self, which: usize) -> Option<RequestId> {
        let at = which.checked_rem(self.in_device.len())?;
        Some(self.in_device.remove(at))
    }

    fn complete(&mut self, which: usize, status: Status) {
        let Some(rq) = self.pick(which) else { return };
        self.meter.end(self.now);
        let mut done = Vec::new();
        self.q.complete_as(rq, status, self.now, |cookie| done.push(cookie));
        self.done(done);
    }

    fn submit(&mut self, bio: Bio) {
        match self.q.submit(bio, self.now) {
            Submitted::Queued(_) | Submitted::Merged(_) => {
                self.open.insert(bio.cookie);
            }
            Submitted::Done | Submitted::Full | Submitted::Refused(_) => {}
            other => panic!("{other:?}"),
        }
        while self.q.next_wakeup().is_some() {}
    }

    fn apply(&mut self, step: &Step) {
        let now = self.now;
        match *step {
            Step::Submit { task, op, flags, at, group } => {
                self.cookies += 1;
                let (sector, sectors) = if op == Op::Flush { (0, 0) } else { (8 * at, 8) };
                let group = group.map(|at| self.groups[at]);
                let bio = bio(op, flags, self.tasks[task], sector, sectors);
                self.submit(Bio { cookie: self.cookies, group, ..bio });
            }
            Step::Dispatch { most } => {
                for _ in 0..most {
                    if !matches!(self.issue(), Dispatch::Issue(_)) {
                        break;
                    }
                }
            }
            Step::Complete { which, status } => self.complete(which, status),
            Step::Requeue { which } => {
                if let Some(rq) = self.pick(which) {
                    self.meter.end(now);
                    self.q.requeue(rq, now);
                }
            }
            Step::Cancel { which } => {
                let taken: Vec<RequestId> = self.q.requests().iter().map(|(rq, _)| rq).collect();
                let Some(at) = which.checked_rem(taken.len()) else { return };
                let is_out = self.in_device.contains(&taken[at]);
                let mut done = Vec::new();
                let cancelled = self.q.cancel(taken[at], now, |cookie| done.push(cookie));
                assert!(!(cancelled && is_out), "it is in the device");
                assert_eq!(cancelled, !done.is_empty());
                self.done(done);
            }
            Step::Exit { task } => {
                self.q.context_exit(self.tasks[task], now);
                let group = self.groups[task % GROUPS];
                self.tasks[task] = self.q.contexts_mut().create_in(group, IoPrio::DEFAULT);
            }
            Step::Move { task, group } => self.q.move_context(self.tasks[task], self.groups[group], now),
            Step::Create { at, parent } => {
                if self.groups[at] == GroupId::ROOT {
                    self.start_groups();
                    let made = self.q.groups_mut().create(self.groups[parent], GroupParams::default());
                    self.groups[at] = made.unwrap_or(GroupId::ROOT);
                }
            }
            Step::Remove { group } => {
                if self.groups[group] != GroupId::ROOT {
                    self.q.remove_group(self.groups[group], now).expect("there");
                    self.groups[group] = GroupId::ROOT;
                }
            }
            Step::Reweigh { group, params } => {
                if self.meter.on && self.groups[group] != GroupId::ROOT {
                    let changed = self.q.groups_mut().set_params(self.groups[group], params);
                    assert!(matches!(changed, Ok(()) | Err(GroupError::Reserve { .. })));
                }
            }
            Step::Set(name, text) => {
                if self.meter.on {
                    self.q.groups_mut().set(name, text).expect("in range");
                }
            }
            Step::Wait { from, whom } => {
                self.waits[from] = self.q.wait_begin(self.tasks[from], self.tasks[whom]).or(self.waits[from]);
            }
            // Sometimes for the second time.
            Step::EndWait { from } => self.waits[from].iter().for_each(|token| self.q.wait_end(*token)),
            Step::Switch { to } => drop(self.q.switch(build_one(&self.config, to), now)),
            Step::Pass { ns } => self.now += ns,
        }
    }

    /// Serve all that is left.
    fn finish(&mut self) {
        self.q.unplug();
        for _ in 0..10_000 {
            match self.issue() {
                Dispatch::Issue(_) => {}
                Dispatch::Idle { until } if self.in_device.is_empty() => {
                    assert!(until > self.now, "no time to wait");
                    self.now = until;
                }
                _ if self.in_device.is_empty() => break,
                _ => {
                    self.now += MS;
                    self.complete(0, Status::Done);
                }
            }
            self.check();
        }
        assert!(self.open.is_empty(), "never done: {:?}", self.open);
        assert_empty(&self.q);
        for (group, _) in self.q.groups().iter() {
            assert_eq!((self.q.groups().queued(group), self.q.groups().in_flight(group)), (0, 0));
        }
    }
}

fn number(variable: &str) -> Option<u32> {
    Some(std::env::var(variable).ok()?.parse().unwrap_or_else(|_| panic!("{variable} has to be a number")))
}

/// `FAIRLIFT_STREAMS` times 400 streams; `FAIRLIFT_SEED` chooses others.
fn run(seed: u8, shape: impl Strategy<Value = Shape>, barriers: bool) {
    let more = number("FAIRLIFT_STREAMS").unwrap_or(20);
    let seed = number("FAIRLIFT_SEED").map_or(seed, |other| seed.wrapping_add(other as u8));
    let config = RunnerConfig {
        cases: 400 * more,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..RunnerConfig::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    TestRunner::new_with_rng(config, rng)
        .run(&(shape, prop::collection::vec(step(barriers), 1..300)), |(shape, steps)| {
            let mut world = World::new(shape);
            for step in &steps {
                world.apply(step);
                world.check();
            }
            world.finish();
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}

fn shape(orderings: Vec<Ordering>, grouped: bool) -> impl Strategy<Value = Shape> {
    let plugging = select(vec![Plugging::Off, Plugging::Off, Plugging::QUEUE]);
    (0..ELEVATORS.len(), select(orderings), plugging).prop_map(move |(elevator, ordering, plugging)| Shape {
        elevator,
        ordering,
        plugging,
        grouped,
    })
}

fn sequences() -> Vec<Ordering> {
    [(true, true), (true, false), (false, false)]
        .map(|(write_cache, fua)| Ordering::Sequences { write_cache, fua })
        .to_vec()
}

const BARRIERS: [Ordering; 3] = [Ordering::DrainFlush, Ordering::DrainFua, Ordering::Drain];

#[test]
fn the_bills_are_the_devices_time_with_flush_sequences() {
    run(1, shape(sequences(), true), false);
}

#[test]
fn the_bills_are_the_devices_time_with_barriers() {
    run(2, shape(BARRIERS.to_vec(), true), true);
}

#[test]
fn counting_begins_with_the_first_group_whatever_is_under_way_with_flush_sequences() {
    run(3, shape(sequences(), false), false);
}

#[test]
fn counting_begins_with_the_first_group_whatever_is_under_way_with_barriers() {
    run(4, shape(BARRIERS.to_vec(), false), true);
}

fn replayed(elevator: usize, ordering: Ordering, grouped: bool, steps: &[Step]) {
    let mut world = World::new(Shape { elevator, ordering, plugging: Plugging::Off, grouped });
    for step in steps {
        world.apply(step);
        world.check();
    }
    world.finish();
}

fn sent(task: usize, op: Op, flags: Flags, group: Option<usize>) -> Step {
    Step::Submit { task, op, flags, at: 0, group }
}

#[test]
fn a_barrier_from_before_the_first_group_lets_one_from_after_it_go() {
    let barrier = || sent(0, Op::Write, Flags::BARRIER, None);
    let empty = sent(0, Op::Flush, Flags::NONE, None);
    replayed(0, Ordering::Drain, false, &[barrier(), empty, Step::Create { at: 1, parent: 0 }, barrier()]);
}

#[test]
fn who_waits_for_others_io_does_not_lead_it_past_their_barriers() {
    let (read, empty) = (sent(2, Op::Read, Flags::NONE, None), sent(2, Op::Flush, Flags::NONE, None));
    replayed(0, Ordering::Drain, true, &[read, Step::Wait { from: 4, whom: 2 }, empty]);
}

#[test]
fn a_barrier_from_before_the_first_group_waits_for_what_the_device_gives_back() {
    let (read, empty) = (sent(0, Op::Read, Flags::NONE, None), sent(0, Op::Flush, Flags::NONE, None));
    let (given, group) = (Step::Requeue { which: 0 }, Step::Create { at: 1, parent: 0 });
    for elevator in 0..ELEVATORS.len() {
        let (read, empty, given, group) = (read.clone(), empty.clone(), given.clone(), group.clone());
        let steps = [read, empty, Step::Dispatch { most: 1 }, group, given];
        replayed(elevator, Ordering::Drain, false, &steps);
    }
}

#[test]
fn a_barrier_that_waits_for_nothing_when_groups_begin_goes() {
    for elevator in 0..ELEVATORS.len() {
        let barrier = sent(0, Op::Write, Flags::BARRIER, None);
        replayed(elevator, Ordering::Drain, false, &[barrier, Step::Create { at: 1, parent: 0 }]);
    }
}
