//! A task that fsyncs, its journal, and a stream, on a disk: what the stream gets between two flushes.

use super::machine::{REQUESTS, build};
use crate::MS;
use crate::context::{ContextId, IoPrio};
use crate::elevator::Dispatch;
use crate::queue::ElevatorQueue;
use crate::request::{self, Flags, Op, RequestId};

const FLUSH_NS: u64 = 16 * MS;
/// A read of the stream, and what it takes longer after the arm was elsewhere.
const READ_NS: u64 = 6 * MS;
const RETURN_NS: u64 = 8 * MS;

struct Disk {
    q: ElevatorQueue,
    now: u64,
    stream: ContextId,
    writer: ContextId,
    journal: ContextId,
    next_sector: u64,
    /// Is the arm elsewhere?
    away: bool,
}

/// One fsync: when the journal's write went, after the task began, and how long the stream was served since the flush before.
#[derive(Debug)]
struct Fsync {
    waited_ns: u64,
    stream_ns: u64,
}

impl Disk {
    fn new() -> Disk {
        let mut q = ElevatorQueue::new(REQUESTS, 64, true, build());
        let [stream, writer, journal] = [(); 3].map(|()| q.contexts_mut().create(IoPrio::DEFAULT));
        let mut disk = Disk { q, now: MS, stream, writer, journal, next_sector: 0, away: true };
        disk.read();
        disk
    }

    fn take(&mut self, op: Op, flags: Flags, sector: u64, sectors: u32, context: ContextId) -> RequestId {
        self.q.take(request::request(op, flags, sector, sectors, context, self.now)).expect("a slot")
    }

    /// The stream sends its next read.
    fn read(&mut self) {
        let rq = self.take(Op::Read, Flags::NONE, self.next_sector, 1024, self.stream);
        self.next_sector += 1024;
        self.q.insert(rq, self.now);
    }

    fn serve(&mut self, rq: RequestId, took_ns: u64) {
        self.now += took_ns;
        self.q.complete(rq, self.now);
        self.q.release(rq);
    }

    /// A read of the stream is served, and it sends the next. Answers with how long that took.
    fn serve_read(&mut self, rq: RequestId) -> u64 {
        let took_ns = READ_NS + if core::mem::take(&mut self.away) { RETURN_NS } else { 0 };
        self.serve(rq, took_ns);
        self.read();
        took_ns
    }

    /// `context` sends a write that is to become durable.
    fn durable_write(&mut self, context: ContextId) -> RequestId {
        let rq = self.take(Op::Write, Flags::SYNC.or(Flags::NOIDLE), 1 << 30, 8, context);
        self.q.insert(rq, self.now);
        rq
    }

    /// The device flushes its cache; meanwhile nothing goes.
    fn flush(&mut self, context: ContextId) {
        let flush = self.take(Op::Flush, Flags::NONE, 0, 0, context);
        self.q.insert_head(flush, self.now);
        assert_eq!(self.q.dispatch(self.now), Dispatch::Issue(flush));
        assert_eq!(self.q.dispatch(self.now), Dispatch::Busy, "a read would only wait behind the flush");
        self.serve(flush, FLUSH_NS);
        self.away = true;
    }

    /// The next request that goes is served, whichever that is; `true` if it is `awaited`. The stream always has one more to send.
    fn serves(&mut self, awaited: Option<RequestId>) -> (bool, u64) {
        loop {
            match self.q.dispatch(self.now) {
                Dispatch::Issue(rq) if Some(rq) == awaited => {
                    self.serve(rq, MS / 5);
                    return (true, 0);
                }
                Dispatch::Issue(rq) => return (false, self.serve_read(rq)),
                Dispatch::Idle { until } => self.now = until,
                Dispatch::Busy | Dispatch::Empty => panic!("the stream has a read queued"),
            }
        }
    }

    /// The task thinks and writes one block, the journal writes another, and the device flushes its cache.
    fn fsync(&mut self, thinks_ns: u64) -> Fsync {
        let mut stream_ns = 0;
        let until = self.now + thinks_ns;
        while self.now < until {
            stream_ns += self.serves(None).1;
        }
        let sent_ns = self.now;
        let mut waited_ns = 0;
        for (context, flags) in [(self.writer, Flags::NOIDLE), (self.journal, Flags::META)] {
            let write = self.take(Op::Write, Flags::SYNC.or(flags), 1 << 30, 8, context);
            self.q.insert(write, self.now);
            loop {
                let at = self.now;
                let (went, took_ns) = self.serves(Some(write));
                if went {
                    waited_ns = at - sent_ns;
                    break;
                }
                stream_ns += took_ns;
            }
        }
        self.flush(self.journal);
        Fsync { waited_ns, stream_ns }
    }
}

fn last_fifty(goal: u64) -> (u64, u64) {
    let mut disk = Disk::new();
    *disk.q.elevator_mut().setting("goal").expect("fair has it") = goal;
    for _ in 0..50 {
        let _ = disk.fsync(0);
    }
    let began_ns = disk.now;
    let stream_ns = (0..50).map(|_| disk.fsync(0).stream_ns).sum::<u64>() / 50;
    (stream_ns, 50_000 * MS / (disk.now - began_ns))
}

/// Else each read of the stream would come after a return, and the disk would do little but go to and fro.
#[test]
fn between_the_flushes_of_a_task_that_does_nothing_else_a_stream_goes_on_for_several_reads() {
    let (stream_ns, fsyncs) = last_fifty(0);
    assert!(stream_ns >= RETURN_NS + 3 * READ_NS, "{} us between two flushes", stream_ns / 1000);
    // Task and journal have two shares of three: so they go for a third of the disk at least.
    assert!(fsyncs >= 15, "{fsyncs} fsyncs a second");
}

/// With the goal `shares` the task pays for the whole commit: half of the disk is the stream's.
#[test]
fn a_task_that_pays_for_its_journal_leaves_a_stream_its_share() {
    let (stream_ns, fsyncs) = last_fifty(1);
    assert!(stream_ns >= FLUSH_NS && fsyncs <= 1_000 * MS / (2 * FLUSH_NS), "{stream_ns} {fsyncs}");
}

/// A task that has had less than its due waits for no read that is not in the device already.
#[test]
fn a_task_that_flushes_now_and_then_goes_at_once() {
    let mut disk = Disk::new();
    for _ in 0..50 {
        let fsync = disk.fsync(200 * MS);
        assert!(fsync.waited_ns <= MS, "{fsync:?}");
    }
}

/// Two tasks without a journal, each of which flushes for itself, beside a stream: two of three shares are theirs, and one the stream's.
#[test]
fn tasks_that_flush_for_themselves_get_their_shares_and_no_more() {
    let mut disk = Disk::new();
    let mut writes = [disk.writer, disk.journal].map(|context| disk.durable_write(context));
    let (began_ns, flushes) = (disk.now, 200);
    for _ in 0..flushes {
        // Whichever write goes first is flushed, and its task sends the next.
        let at = loop {
            match disk.q.dispatch(disk.now) {
                Dispatch::Issue(rq) => match writes.iter().position(|write| *write == rq) {
                    Some(at) => break at,
                    None => drop(disk.serve_read(rq)),
                },
                Dispatch::Idle { until } => disk.now = until,
                other => panic!("the stream has a read queued: {other:?}"),
            }
        };
        let context = disk.q.requests()[writes[at]].context;
        disk.serve(writes[at], MS / 5);
        disk.flush(context);
        writes[at] = disk.durable_write(context);
    }
    let permille = flushes * FLUSH_NS * 1000 / (disk.now - began_ns);
    assert!((600..734).contains(&permille), "{permille} per mille of the disk, of a due 667");
}
