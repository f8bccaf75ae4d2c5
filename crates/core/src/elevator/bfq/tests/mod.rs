//! Tests of bfq through an [`ElevatorQueue`], as a host uses it.
//!
//! Times in comments are milliseconds. Unless a test says otherwise the disk rotates, requests are 4 KiB reads and every context
//! has best-effort level 4.

mod arithmetic;
mod invariants;
mod properties;
mod rules;
mod schedules;
mod shares;
mod tags;
mod tree;

use super::DESCRIPTOR;
use crate::MS;
use crate::context::{ContextId, IoPrio};
use crate::elevator::{AnyElevator, Config, Dispatch, set};
use crate::group::{GroupId, GroupParams};
use crate::queue::ElevatorQueue;
use crate::request::{self, Flags, Op, RequestId};

/// Far away: 1 GiB in sectors.
const FAR: u64 = 2 * 1024 * 1024;

/// A queue under bfq with a clock moved by hand.
struct Rig {
    q: ElevatorQueue,
    now: u64,
}

fn build(requests: usize, contexts: usize, groups: usize) -> AnyElevator {
    (DESCRIPTOR.build)(&Config::for_queue(requests, contexts, groups, 0), "")
}

impl Rig {
    fn new() -> Rig {
        Rig::on(true)
    }

    fn on(rotational: bool) -> Rig {
        Rig::sized(256, 16, 8, rotational)
    }

    fn sized(requests: usize, contexts: usize, groups: usize, rotational: bool) -> Rig {
        let elevator = build(requests, contexts, groups);
        let q = ElevatorQueue::new(requests, contexts, rotational, elevator).with_groups(groups);
        // Not at 0, where the kernel never is either.
        Rig { q, now: 1000 * MS }
    }

    fn set(&mut self, name: &str, value: &str) {
        set(self.q.elevator_mut(), name, value).unwrap();
    }

    fn context(&mut self) -> ContextId {
        self.q.contexts_mut().create(IoPrio::DEFAULT)
    }

    fn context_at(&mut self, ioprio: IoPrio) -> ContextId {
        self.q.contexts_mut().create(ioprio)
    }

    fn group(&mut self, parent: GroupId, weight: u32) -> GroupId {
        self.q.groups_mut().create(parent, GroupParams::weight(weight)).unwrap()
    }

    fn context_in(&mut self, group: GroupId) -> ContextId {
        self.q.contexts_mut().create_in(group, IoPrio::DEFAULT)
    }

    /// Let `ms` pass.
    fn pass(&mut self, ms: u64) -> &mut Rig {
        self.now += ms * MS;
        self
    }

    fn insert(&mut self, op: Op, flags: Flags, sector: u64, sectors: u32, context: ContextId) -> RequestId {
        let mut request = request::request(op, flags, sector, sectors, context, self.now);
        request.group = self.q.contexts()[context].group;
        let rq = self.q.take(request).unwrap();
        self.q.insert(rq, self.now);
        rq
    }

    fn read(&mut self, context: ContextId, sector: u64) -> RequestId {
        self.insert(Op::Read, Flags::NONE, sector, 8, context)
    }

    fn read_of(&mut self, context: ContextId, sector: u64, sectors: u32) -> RequestId {
        self.insert(Op::Read, Flags::NONE, sector, sectors, context)
    }

    /// A write nobody waits for.
    fn write(&mut self, context: ContextId, sector: u64) -> RequestId {
        self.insert(Op::Write, Flags::NONE, sector, 8, context)
    }

    fn ask(&mut self) -> Dispatch {
        match self.q.dispatch(self.now) {
            // What it waits for is told apart in the tests of the queue.
            Dispatch::Busy => Dispatch::Empty,
            answer => answer,
        }
    }

    /// The next request must be `rq`.
    #[track_caller]
    fn issues(&mut self, rq: RequestId) {
        assert_eq!(self.ask(), Dispatch::Issue(rq));
    }

    /// Nothing may go out before `ms` from now.
    #[track_caller]
    fn idles_for(&mut self, ms: u64) {
        let until = self.now + ms * MS;
        assert_eq!(self.ask(), Dispatch::Idle { until });
    }

    /// There must be nothing to do before an arrival or a completion.
    #[track_caller]
    fn holds(&mut self) {
        assert_eq!(self.ask(), Dispatch::Empty);
    }

    fn complete(&mut self, rq: RequestId) {
        self.q.complete(rq, self.now);
        self.q.release(rq);
    }

    /// `rq` must be next; serve it in `ms`.
    #[track_caller]
    fn serves(&mut self, rq: RequestId, ms: u64) {
        self.issues(rq);
        self.pass(ms);
        self.complete(rq);
    }
}
