//! The decision, step by step.

use super::machine::build;
use crate::MS;
use crate::context::{ContextId, IoPrio};
use crate::elevator::{Dispatch, Growth};
use crate::queue::ElevatorQueue;
use crate::request::{self, Flags, Op, RequestId};

struct Rig {
    q: ElevatorQueue,
    now: u64,
}

impl Rig {
    fn on_disk() -> Rig {
        Rig { q: ElevatorQueue::new(super::machine::REQUESTS, 64, true, build()), now: MS }
    }

    fn context(&mut self) -> ContextId {
        self.q.contexts_mut().create(IoPrio::DEFAULT)
    }

    fn insert(&mut self, op: Op, flags: Flags, sector: u64, context: ContextId) -> RequestId {
        let sectors = if op == Op::Flush { 0 } else { 8 };
        let rq = self.q.take(request::request(op, flags, sector, sectors, context, self.now)).unwrap();
        match op {
            Op::Flush => self.q.insert_head(rq, self.now),
            _ => self.q.insert(rq, self.now),
        }
        rq
    }

    fn read(&mut self, context: ContextId, sector: u64) -> RequestId {
        self.insert(Op::Read, Flags::NONE, sector, context)
    }

    fn dispatch(&mut self) -> Dispatch {
        self.q.dispatch(self.now)
    }

    /// `rq` goes now, and is done after 1 ms.
    fn serves(&mut self, rq: RequestId) {
        self.serves_in(MS, rq);
    }

    fn serves_in(&mut self, span_ns: u64, rq: RequestId) {
        assert_eq!(self.dispatch(), Dispatch::Issue(rq));
        self.done_in(span_ns, rq);
    }

    fn done(&mut self, rq: RequestId) {
        self.done_in(MS, rq);
    }

    fn done_in(&mut self, span_ns: u64, rq: RequestId) {
        self.now += span_ns;
        self.q.complete(rq, self.now);
        self.q.release(rq);
    }

    /// A task that has had its part of the device: it has read eight blocks here and there, 8 ms each.
    fn served(&mut self) -> ContextId {
        let context = self.context();
        for block in 0..8 {
            let rq = self.read(context, (1 << 24) + (block << 16));
            self.serves_in(8 * MS, rq);
        }
        context
    }

    /// A task that has read eight blocks in a row, the first in 6 ms and each further one in half a millisecond, and where it goes
    /// on.
    fn stream(&mut self) -> (ContextId, u64) {
        let context = self.context();
        for block in 0..8 {
            let rq = self.read(context, 8 * block);
            self.serves_in(if block == 0 { 6 * MS } else { MS / 2 }, rq);
        }
        (context, 64)
    }
}

#[test]
fn nothing_goes_out_while_the_device_flushes() {
    let mut rig = Rig::on_disk();
    let context = rig.context();
    let flush = rig.insert(Op::Flush, Flags::NONE, 0, context);
    assert_eq!(rig.dispatch(), Dispatch::Issue(flush));
    let read = rig.read(context, 0);
    assert_eq!(rig.dispatch(), Dispatch::Busy);
    rig.done(flush);
    rig.serves(read);
}

#[test]
fn a_stream_is_waited_for_no_longer_than_that_saves() {
    let mut rig = Rig::on_disk();
    let other = rig.served();
    let (_, _) = rig.stream();
    let done_ns = rig.now;
    let theirs = rig.read(other, 1 << 20);
    let Dispatch::Idle { until } = rig.dispatch() else { panic!("the stream may go on") };
    assert!(until > done_ns && until <= done_ns + 8 * MS, "{}", until - done_ns);
    rig.now = until;
    rig.serves(theirs);
}

/// The page cache sends 128 KiB at a time, which become one large request while it is queued: the next one goes on where that ends,
/// not where it ended when it came.
#[test]
fn a_stream_whose_requests_grow_by_merging_is_a_stream() {
    let mut rig = Rig::on_disk();
    let other = rig.served();
    let context = rig.context();
    for block in 0..8 {
        let rq = rig.read(context, 1024 * block);
        rig.q.requests_mut()[rq].sectors = 1024;
        rig.q.grew(rq, Growth::Back, rig.now);
        rig.serves(rq);
    }
    rig.read(other, 1 << 20);
    assert!(matches!(rig.dispatch(), Dispatch::Idle { .. }));
}

/// Who has had less than its part goes through the turn.
#[test]
fn a_newcomer_does_not_wait_for_a_streams_turn() {
    let mut rig = Rig::on_disk();
    let (stream, end) = rig.stream();
    let other = rig.context();
    rig.read(stream, end);
    let theirs = rig.read(other, 1 << 20);
    rig.serves(theirs);
}

#[test]
fn its_next_request_ends_the_wait() {
    let mut rig = Rig::on_disk();
    let other = rig.served();
    let (stream, end) = rig.stream();
    rig.read(other, 1 << 20);
    assert!(matches!(rig.dispatch(), Dispatch::Idle { .. }));
    rig.now += MS / 10;
    let next = rig.read(stream, end);
    rig.serves(next);
}

#[test]
fn a_task_that_is_gone_or_said_so_is_not_waited_for() {
    for said_so in [false, true] {
        let mut rig = Rig::on_disk();
        let (stream, end) = rig.stream();
        if said_so {
            let last = rig.insert(Op::Read, Flags::NOIDLE, end, stream);
            rig.serves(last);
        } else {
            rig.q.context_exit(stream, rig.now);
        }
        let other = rig.context();
        let theirs = rig.read(other, 1 << 20);
        rig.serves(theirs);
    }
}

#[test]
fn a_write_that_somebody_waits_for_goes_before_the_streams_next_request() {
    let mut rig = Rig::on_disk();
    let (stream, end) = rig.stream();
    rig.read(stream, end);
    let other = rig.context();
    let write = rig.insert(Op::Write, Flags::SYNC.or(Flags::NOIDLE), 1 << 20, other);
    assert_eq!(rig.dispatch(), Dispatch::Issue(write));
}

/// Upwards from where the flow was, then from the lowest again.
#[test]
fn a_flow_goes_up_and_starts_over() {
    let mut rig = Rig::on_disk();
    let context = rig.context();
    let first = rig.read(context, 4000);
    rig.serves(first);
    let [low, high, higher] = [1000, 5000, 9000].map(|sector| rig.read(context, sector));
    for rq in [high, higher, low] {
        rig.serves(rq);
    }
}

/// However many come that lie before it by sector.
#[test]
fn a_late_request_goes_wherever_it_lies() {
    let mut rig = Rig::on_disk();
    let context = rig.context();
    let start = rig.read(context, 5000);
    rig.serves(start);
    let late = rig.read(context, 8);
    rig.read(context, 6000);
    for round in 0.. {
        let Dispatch::Issue(rq) = rig.dispatch() else { panic!("requests wait") };
        rig.done(rq);
        if rq == late {
            break;
        }
        rig.read(context, 6016 + 16 * round);
        assert!(rig.now < 300 * MS, "{round} went before it");
    }
    assert!(rig.now > 250 * MS, "not before it is late");
}
