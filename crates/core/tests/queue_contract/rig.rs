//! What the tests share: queues with tasks and groups, and numbers without pattern.

use fairlift_core::elevator;
use fairlift_core::queue::{Ordering, QueueConfig, RequestQueue};
use fairlift_core::request::RequestState;
use fairlift_core::{Bio, ContextId, Dispatch, Flags, GroupId, GroupParams, IoPrio, MS, Op, RequestId};

pub use super::queue_support::*;

pub const ELEVATORS: [(&str, &str); 6] = [
    ("noop", ""),
    ("deadline", ""),
    ("fair", ""),
    ("anticipatory", ""),
    ("cfq", "2.6.31"),
    ("cfq", "2.6.34"),
];
/// After the beginning of time, which some rules take for *never*.
pub const T: u64 = 1000 * MS;

pub fn made(config: QueueConfig, (name, profile): (&str, &str)) -> RequestQueue {
    let built = (elevator::find(name).expect("known").build)(&config.elevator(), profile);
    RequestQueue::new(config, built)
}

/// Room for three groups.
pub fn grouped() -> QueueConfig {
    QueueConfig { groups_max: 3, ..unplugged() }
}

/// The same, where flush sequences keep order: there is no donation where barriers do.
pub fn grouped_with_sequences() -> QueueConfig {
    QueueConfig { ordering: sequences(), ..grouped() }
}

pub fn sequences() -> Ordering {
    Ordering::Sequences { write_cache: true, fua: false }
}

/// With a group of each weight below the root, and a task in each.
pub fn with_groups<const N: usize>(
    config: QueueConfig,
    elevator: (&str, &str),
    weights: [u32; N],
) -> (RequestQueue, [(GroupId, ContextId); N]) {
    let mut q = made(QueueConfig { groups_max: N, ..config }, elevator);
    let tenants = weights.map(|weight| {
        let group = q.groups_mut().create(GroupId::ROOT, GroupParams::weight(weight)).expect("room");
        (group, q.contexts_mut().create_in(group, IoPrio::DEFAULT))
    });
    (q, tenants)
}

/// A queue with two tasks, once without groups and once in two groups.
pub fn both(elevator: (&str, &str), config: QueueConfig) -> [(RequestQueue, [ContextId; 2]); 2] {
    let mut flat = made(QueueConfig { groups_max: 0, ..config }, elevator);
    let tasks = [(); 2].map(|()| flat.contexts_mut().create(IoPrio::DEFAULT));
    let (grouped, [(_, one), (_, other)]) = with_groups(config, elevator, [100, 100]);
    [(flat, tasks), (grouped, [one, other])]
}

/// The next request, however long the queue wants to wait for a better one.
pub fn next(q: &mut RequestQueue, now: &mut u64) -> RequestId {
    for _ in 0..100 {
        match q.dispatch(*now) {
            Dispatch::Issue(rq) => return rq,
            Dispatch::Idle { until } => {
                assert!(until > *now, "no time to wait");
                *now = until;
            }
            other => panic!("{other:?} although {} wait", q.pending()),
        }
    }
    panic!("only ever Idle");
}

/// Serve all there is, one by one; the cookies in the order they were done.
pub fn serve(q: &mut RequestQueue, now: &mut u64) -> Vec<u64> {
    let mut done = Vec::new();
    while q.pending() > 0 {
        let rq = next(q, now);
        *now += MS / 2;
        done.extend(complete(q, rq, *now));
    }
    done
}

pub fn cancel(q: &mut RequestQueue, rq: RequestId, now: u64) -> Option<Vec<u64>> {
    let mut done = Vec::new();
    q.cancel(rq, now, |cookie| done.push(cookie)).then_some(done)
}

/// Every elevator, with and without groups.
pub fn everywhere(config: QueueConfig, test: impl Fn(RequestQueue, [ContextId; 2], &str)) {
    for elevator in ELEVATORS {
        for ((q, tasks), how) in both(elevator, config).into_iter().zip(["flat", "in groups"]) {
            test(q, tasks, &format!("{elevator:?} {how}"));
        }
    }
}

/// Numbers without pattern; the same for the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    pub fn plain(&mut self, tasks: &[ContextId; 2], cookie: u64) -> Bio {
        let task = tasks[self.below(2) as usize];
        let op = [Op::Read, Op::Read, Op::Write][self.below(3) as usize];
        let flags = [Flags::NONE, Flags::SYNC][self.below(2) as usize];
        Bio { cookie, ..bio(op, flags, task, 8 * self.below(400), 8) }
    }

    pub fn any(&mut self, tasks: &[ContextId; 2], cookie: u64) -> Bio {
        let task = tasks[self.below(2) as usize];
        match self.below(8) {
            0 => Bio { cookie, ..flush(task) },
            1 => Bio { cookie, ..bio(Op::Write, Flags::PREFLUSH, task, 8 * self.below(400), 8) },
            2 => Bio { cookie, ..bio(Op::Write, Flags::FUA, task, 8 * self.below(400), 8) },
            _ => self.plain(tasks, cookie),
        }
    }
}

/// Dispatch and complete until nothing more comes; the cookies that were done.
pub fn run_dry(q: &mut RequestQueue, now: &mut u64) -> Vec<u64> {
    let mut done = Vec::new();
    for _ in 0..1000 {
        match q.dispatch(*now) {
            Dispatch::Issue(rq) => {
                *now += MS;
                done.extend(complete(q, rq, *now));
            }
            Dispatch::Idle { until } => *now = until,
            Dispatch::Busy | Dispatch::Empty => break,
        }
    }
    done.sort_unstable();
    done
}

/// `Busy` says that a completion will bring more, `Empty` that only an arrival will.
pub fn assert_answer(q: &RequestQueue, answer: Dispatch, what: &str) {
    let in_device = q.in_flight().iter().sum::<u32>() as usize;
    match answer {
        Dispatch::Busy => assert!(in_device > 0 && q.pending() > in_device, "{what}: nothing to wait for"),
        Dispatch::Empty => {
            // Those whose flush is in the device are as good as there themselves.
            let flushing =
                q.requests().iter().any(|(_, r)| r.op == Op::Flush && r.state == RequestState::Issued);
            let served = |state| state == RequestState::Issued || flushing && state == RequestState::Held;
            assert!(q.requests().iter().all(|(_, r)| served(r.state)), "{what}: something waits");
        }
        Dispatch::Issue(_) | Dispatch::Idle { .. } => {}
    }
}
