//! The longest single call of an elevator queue with 10,000 requests, 1,000 contexts and 4,000 groups up to 32 levels deep, by
//! kind of call and elevator: `cargo bench -p fairlift-core --bench longest`.
//!
//! The same calls are made [`RUNS`] times, and each counts as the shortest of its times: what the machine does beside is taken
//! off, what the core does is not. The clock's own 20 to 40 ns are in every figure.

use std::collections::BTreeMap;
use std::time::Instant;

use fairlift_core::elevator::{self, Config};
use fairlift_core::queue::ElevatorQueue;
use fairlift_core::request::{Status, request};
use fairlift_core::{ContextId, Dispatch, Flags, GroupId, GroupParams, IoPrio, MS, Op, RequestId};

const RUNS: usize = 3;
const STEPS: usize = 60_000;
const REQUESTS: usize = 10_000;
const CONTEXTS: usize = 1_000;
const GROUPS: usize = 4_000;
/// Requests in the device.
const DEPTH: usize = 32;

/// Numbers without pattern; the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

struct World {
    q: ElevatorQueue,
    random: Random,
    now: u64,
    groups: Vec<GroupId>,
    contexts: Vec<ContextId>,
    issued: Vec<RequestId>,
    queued: Vec<RequestId>,
}

impl World {
    fn new(elevator: &str) -> World {
        let config = Config::for_queue(REQUESTS, CONTEXTS, GROUPS, MS);
        let (name, profile) = elevator.split_once(':').unwrap_or((elevator, ""));
        let built = (elevator::find(name).expect("a built-in one").build)(&config, profile);
        let mut q = ElevatorQueue::new(REQUESTS, CONTEXTS, true, built).with_groups(GROUPS);
        let mut random = Random(1);
        let mut groups = vec![GroupId::ROOT];
        while groups.len() <= GROUPS {
            // Half of them in chains, as deep as is allowed, the others anywhere.
            let parent = match groups.len() % 2 {
                0 => groups[groups.len() - 1],
                _ => groups[random.below(groups.len())],
            };
            let params = GroupParams::weight(1 + random.below(1_000) as u32);
            let made = q.groups_mut().create(parent, params);
            groups
                .push(made.or_else(|_| q.groups_mut().create(GroupId::ROOT, params)).expect("there is room"));
        }
        let contexts = (0..CONTEXTS)
            .map(|_| q.contexts_mut().create_in(groups[random.below(groups.len())], IoPrio::DEFAULT))
            .collect();
        let mut world = World { q, random, now: 0, groups, contexts, issued: Vec::new(), queued: Vec::new() };
        (0..REQUESTS - 100).for_each(|_| world.insert());
        world
    }

    fn insert(&mut self) {
        let context = self.contexts[self.random.below(CONTEXTS)];
        let op = if self.random.below(4) == 0 { Op::Write } else { Op::Read };
        // Some at the very same sector.
        let places = if self.random.below(10) == 0 { 4 } else { 100_000_000 };
        let sector = 8 * self.random.below(places) as u64;
        let mut new = request(op, Flags::NONE, sector, 8, context, self.now);
        new.group = match self.random.below(4) {
            0 => self.groups[self.random.below(self.groups.len())],
            _ => self.q.contexts()[context].group,
        };
        if let Some(rq) = self.q.take(new) {
            self.q.insert(rq, self.now);
            self.queued.push(rq);
        }
    }

    /// One call, or a few that go together; what it was.
    fn step(&mut self) -> &'static str {
        self.now += 50_000;
        if self.q.requests().taken() < REQUESTS - 100 {
            self.insert();
            return "take, insert";
        }
        match self.random.below(100) {
            0..45 if self.issued.len() < DEPTH => {
                match self.q.dispatch(self.now) {
                    Dispatch::Issue(rq) => self.issued.push(rq),
                    Dispatch::Idle { until } => self.now = until.min(self.now + 10 * MS),
                    Dispatch::Busy | Dispatch::Empty => {}
                }
                "dispatch"
            }
            0..90 => {
                if self.issued.is_empty() {
                    return "nothing";
                }
                let at = self.random.below(self.issued.len());
                let rq = self.issued.swap_remove(at);
                if self.random.below(50) == 0 {
                    self.q.requeue(rq, self.now);
                    return "requeue";
                }
                self.q.complete_as(rq, Status::Done, self.now);
                self.q.release(rq);
                "complete, release"
            }
            90..93 => {
                let at = self.random.below(self.queued.len());
                let rq = self.queued.swap_remove(at);
                if self.q.cancel(rq, self.now) {
                    self.q.release(rq);
                }
                "cancel"
            }
            93..95 => {
                let group = self.groups[self.random.below(self.groups.len())];
                let _ = self.q.groups_mut().set_params(group, GroupParams::weight(1 + self.now as u32 % 900));
                "weight of a group"
            }
            95 => {
                let at = 1 + self.random.below(self.groups.len() - 1);
                let group = self.groups[at];
                if self.q.remove_group(group).is_ok() {
                    self.groups.swap_remove(at);
                }
                "remove a group"
            }
            96 => {
                let parent = self.groups[self.random.below(self.groups.len())];
                if let Ok(new) = self.q.groups_mut().create(parent, GroupParams::default()) {
                    self.groups.push(new);
                }
                "create a group"
            }
            97 => {
                let context = self.contexts[self.random.below(CONTEXTS)];
                let group = self.groups[self.random.below(self.groups.len())];
                self.q.move_context(context, group, self.now);
                "move a context"
            }
            98 => {
                let at = self.random.below(CONTEXTS);
                self.q.context_exit(self.contexts[at], self.now);
                let group = self.groups[self.random.below(self.groups.len())];
                self.contexts[at] = self.q.contexts_mut().create_in(group, IoPrio::DEFAULT);
                "context: exit, create"
            }
            _ => {
                let [from, whom] = [(); 2].map(|()| self.contexts[self.random.below(CONTEXTS)]);
                if let Some(token) = self.q.wait_begin(from, whom)
                    && self.random.below(2) == 0
                {
                    self.q.wait_end(token);
                }
                "wait begin, end"
            }
        }
    }
}

fn main() {
    println!(
        "longest call of 60,000, ns (each the shortest of {RUNS}), with 10,000 requests, 1,000 contexts, 4,000 groups"
    );
    for elevator in ["noop", "deadline", "anticipatory", "cfq:2.6.31", "cfq:2.6.34", "fair"] {
        let mut shortest: Vec<(&'static str, u64)> = Vec::new();
        for run in 0..RUNS {
            let mut world = World::new(elevator);
            for at in 0..STEPS {
                let begun = Instant::now();
                let kind = world.step();
                let ns = begun.elapsed().as_nanos() as u64;
                if run == 0 {
                    shortest.push((kind, ns));
                } else {
                    assert_eq!(shortest[at].0, kind, "every run makes the same calls");
                    shortest[at].1 = shortest[at].1.min(ns);
                }
            }
        }
        let mut longest: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
        for (kind, ns) in shortest {
            let entry = longest.entry(kind).or_default();
            *entry = (entry.0.max(ns), entry.1 + 1);
        }
        let of_all = longest.values().map(|(ns, _)| *ns).max().unwrap_or(0);
        println!("{elevator}: {of_all}");
        for (kind, (ns, count)) in longest {
            println!("  {kind:22} {ns:6}   ({count} calls)");
        }
    }
}
