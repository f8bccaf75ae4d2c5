//! Tests of cfq through an [`ElevatorQueue`], as a host uses it.
//!
//! Times in comments are milliseconds. Unless a test says otherwise a jiffy is 1 ms, requests are 4 KiB and every
//! context has best-effort level 4.

mod closed_loop;
mod cooperators;
mod depth;
mod groups;
mod hooks;
mod idling;
mod invariants;
mod order;
mod preemption;
mod properties;
mod slices;
mod workloads;
mod yielding;

use std::vec::Vec;

use super::DESCRIPTOR;
use crate::MS;
use crate::context::{ContextId, IoPrio};
use crate::elevator::{AnyElevator, Dispatch};
use crate::elevator::{Config, set};
use crate::queue::ElevatorQueue;
use crate::request::{self, Bio, Flags, Op, RequestId};

/// The profiles that differ in most.
const BOTH: [&str; 2] = ["2.6.31", "2.6.34"];

/// Sectors in a 4 KiB request.
const PAGE: u64 = 8;

/// Far away: 1 GiB in sectors.
const FAR: u64 = 2 * 1024 * 1024;

/// A queue under cfq with a clock moved by hand.
struct Rig {
    q: ElevatorQueue,
    now: u64,
}

fn build(profile: &str, requests: usize, contexts: usize, tick_ns: u64) -> AnyElevator {
    build_for_groups(profile, requests, contexts, 0, tick_ns)
}

fn build_for_groups(
    profile: &str,
    requests: usize,
    contexts: usize,
    groups: usize,
    tick_ns: u64,
) -> AnyElevator {
    (DESCRIPTOR.build)(&Config::for_queue(requests, contexts, groups, tick_ns), profile)
}

impl Rig {
    fn new(profile: &str) -> Rig {
        Rig::with_tick(profile, MS)
    }

    fn with_tick(profile: &str, tick_ns: u64) -> Rig {
        Rig::on(profile, tick_ns, true)
    }

    fn on(profile: &str, tick_ns: u64, rotational: bool) -> Rig {
        let (requests, contexts) = (2048, 64);
        let elevator = build(profile, requests, contexts, tick_ns);
        // Not at 0, where the kernel never is either.
        Rig { q: ElevatorQueue::new(requests, contexts, rotational, elevator), now: 1000 * MS }
    }

    fn set(&mut self, name: &str, value: &str) {
        set(self.q.elevator_mut(), name, value).unwrap();
    }

    fn context(&mut self) -> ContextId {
        self.context_at(IoPrio::DEFAULT)
    }

    fn context_at(&mut self, ioprio: IoPrio) -> ContextId {
        self.q.contexts_mut().create(ioprio)
    }

    /// Set the clock to `ms` after the start.
    fn at(&mut self, ms: u64) -> &mut Rig {
        self.at_ns(ms * MS)
    }

    fn at_ns(&mut self, ns: u64) -> &mut Rig {
        assert!(1000 * MS + ns >= self.now, "the clock never goes back");
        self.now = 1000 * MS + ns;
        self
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

    /// A write nobody waits for.
    fn write(&mut self, context: ContextId, sector: u64) -> RequestId {
        self.insert(Op::Write, Flags::NONE, sector, 8, context)
    }

    fn metadata(&mut self, context: ContextId, sector: u64) -> RequestId {
        self.insert(Op::Read, Flags::META, sector, 8, context)
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

    /// There must be nothing to do before `ms` after the start.
    #[track_caller]
    fn idles_until(&mut self, ms: u64) {
        assert_eq!(self.ask(), Dispatch::Idle { until: (1000 + ms) * MS });
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

    /// Serve the next request, whoever's it is, in `ms`; waiting out idle times.
    fn serve_next(&mut self, ms: u64) -> (RequestId, ContextId) {
        for _ in 0..4 {
            match self.ask() {
                Dispatch::Issue(rq) => {
                    let context = self.q.requests()[rq].context;
                    self.pass(ms);
                    self.complete(rq);
                    return (rq, context);
                }
                Dispatch::Idle { until } => {
                    assert!(until > self.now);
                    self.now = until;
                }
                Dispatch::Empty | Dispatch::Busy => break,
            }
        }
        panic!("nothing to serve at {}", self.now);
    }

    /// Teach cfq that `context` thinks for 20 ms between requests: idling for it is in vain. Takes 4 requests, 25 ms
    /// each; ends with nothing queued, no idling and no active queue that matters.
    fn make_slow(&mut self, context: ContextId) {
        for i in 0..4 {
            let rq = self.read(context, FAR + i * PAGE);
            self.serves(rq, 5);
            self.pass(20);
        }
    }

    fn bio(&self, context: ContextId, sector: u64) -> Bio {
        Bio {
            cookie: 0,
            op: Op::Read,
            flags: Flags::NONE,
            sector,
            sectors: 8,
            segments: 1,
            context,
            ioprio: None,
            group: None,
        }
    }
}
