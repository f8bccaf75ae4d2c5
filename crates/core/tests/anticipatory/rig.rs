//! An elevator under its queue, with a clock set by hand. Requests are named by their start sector and are `LENGTH` long.

use fairlift_core::elevator::{self, Config, MayQueue};
use fairlift_core::queue::ElevatorQueue;
use fairlift_core::request::request;
use fairlift_core::{ContextId, Dispatch, Flags, IoPrio, MS, Op, RequestId};

/// Sectors per request.
pub(crate) const LENGTH: u32 = 8;
pub(crate) const CAPACITY: usize = 128;
/// Tasks beside the overflow context.
pub(crate) const TASKS: usize = 4;
/// 1/HZ for HZ=1000.
pub(crate) const HZ_1000: u64 = MS;

/// What the queue answered, in milliseconds and sectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Next {
    At(u64),
    IdleUntilMs(u64),
    Empty,
}
pub(crate) use Next::{At, Empty, IdleUntilMs};

pub(crate) struct Rig {
    pub(crate) q: ElevatorQueue,
    pub(crate) now: u64,
    /// What was issued last.
    issued: Option<RequestId>,
}

pub(crate) fn build(tick_ns: u64, requests_max: usize) -> ElevatorQueue {
    let config = Config { requests_max, contexts_max: TASKS + 1, groups_max: 1, tick_ns };
    let elevator = (elevator::find("anticipatory").expect("known").build)(&config, "");
    ElevatorQueue::new(requests_max, TASKS, true, elevator)
}

impl Rig {
    pub(crate) fn new(tick_ns: u64) -> Rig {
        Rig { q: build(tick_ns, CAPACITY), now: 0, issued: None }
    }

    pub(crate) fn set(&mut self, name: &str, text: &str) {
        elevator::set(self.q.elevator_mut(), name, text).expect("a tunable and a value in range");
    }

    /// The stored value of a tunable.
    pub(crate) fn setting(&mut self, name: &str) -> u64 {
        *self.q.elevator_mut().setting(name).expect("a tunable")
    }

    pub(crate) fn at_ms(&mut self, ms: u64) -> &mut Rig {
        assert!(ms * MS >= self.now, "the clock goes on");
        self.now = ms * MS;
        self
    }

    pub(crate) fn task(&mut self) -> ContextId {
        let task = self.q.contexts_mut().create(IoPrio::DEFAULT);
        assert_ne!(task, ContextId::OVERFLOW, "a free slot");
        task
    }

    pub(crate) fn exit(&mut self, task: ContextId) {
        self.q.context_exit(task, self.now);
    }

    pub(crate) fn add(&mut self, task: ContextId, op: Op, flags: Flags, sector: u64) -> RequestId {
        let rq = self.q.take(request(op, flags, sector, LENGTH, task, self.now)).expect("a free slot");
        self.q.insert(rq, self.now);
        rq
    }

    pub(crate) fn read(&mut self, task: ContextId, sector: u64) -> RequestId {
        self.add(task, Op::Read, Flags::NONE, sector)
    }

    pub(crate) fn write(&mut self, task: ContextId, sector: u64) -> RequestId {
        self.add(task, Op::Write, Flags::NONE, sector)
    }

    pub(crate) fn sync_write(&mut self, task: ContextId, sector: u64) -> RequestId {
        self.add(task, Op::Write, Flags::SYNC, sector)
    }

    /// Ask for a request and issue it.
    pub(crate) fn next(&mut self) -> Next {
        match self.q.dispatch(self.now) {
            Dispatch::Issue(rq) => {
                self.issued = Some(rq);
                At(self.q.requests()[rq].sector)
            }
            Dispatch::Idle { until } => {
                assert_eq!(until % MS, 0);
                IdleUntilMs(until / MS)
            }
            Dispatch::Empty | Dispatch::Busy => Empty,
        }
    }

    /// The next one, which must be at `sector`.
    pub(crate) fn issue(&mut self, sector: u64) -> RequestId {
        assert_eq!(self.next(), At(sector), "at {} ns", self.now);
        self.issued.expect("just issued")
    }

    pub(crate) fn done(&mut self, rq: RequestId) {
        self.q.complete(rq, self.now);
        self.q.release(rq);
    }

    /// Complete what was issued last.
    pub(crate) fn done_last(&mut self) {
        let rq = self.issued.take().expect("issued and not completed");
        self.done(rq);
    }

    /// Issue the one at `sector` and complete it after `ms`.
    pub(crate) fn serve(&mut self, sector: u64, ms: u64) {
        let rq = self.issue(sector);
        self.now += ms * MS;
        self.done(rq);
    }

    /// `task` reads at `sector` and is served in no time.
    pub(crate) fn read_at_once(&mut self, task: ContextId, sector: u64) {
        self.read(task, sector);
        self.serve(sector, 0);
    }

    /// A task that has read five requests up to `end` without thinking: 123 samples, think time (0+128)/123 = 1 jiffy, mean
    /// seek 0.
    pub(crate) fn reader(&mut self, end: u64) -> ContextId {
        let task = self.task();
        for i in (1..=6).rev() {
            self.read_at_once(task, end - i * u64::from(LENGTH));
        }
        task
    }

    pub(crate) fn may_queue(&mut self, task: ContextId) -> MayQueue {
        self.q.may_queue(task, true, self.now)
    }

    /// Start sectors of all that is left, each completed at once.
    pub(crate) fn rest(&mut self) -> Vec<u64> {
        let mut all = Vec::new();
        while let At(sector) = self.next() {
            all.push(sector);
            self.done_last();
        }
        assert!(self.q.is_empty(), "left behind: {:?} then {:?}", all, self.q);
        all
    }
}
