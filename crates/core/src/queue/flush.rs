//! Order and durability: the draining barriers of 2.6 and the FLUSH/FUA sequences that replaced them.
//!
//! A *barrier* (until 2.6.36) empties the elevator, lets the device run dry, and goes alone, between cache flushes if the
//! device has a volatile cache. A *flush sequence* (since 2.6.37) orders nothing but itself: flush, write, flush, as far
//! as the device needs them, with many sequences sharing one flush command.
//!
//! Source: Linux 2.6.33 `block/blk-barrier.c`, Documentation/block/barrier.txt; Linux 6.12 `block/blk-flush.c`.

use crate::SECOND;
use crate::collections::{List, ListLinks};
use crate::request::{Bio, Flags, Op, RequestId};

/// How the queue keeps order and durability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ordering {
    /// Barriers fail: the device cannot order (2.6's `QUEUE_ORDERED_NONE`).
    NoBarriers,
    /// Barrier by draining; the device's cache is not volatile (`QUEUE_ORDERED_DRAIN`).
    Drain,
    /// Barrier by draining, with a flush before and after (`QUEUE_ORDERED_DRAIN_FLUSH`).
    DrainFlush,
    /// Barrier by draining, a flush before, and a FUA write (`QUEUE_ORDERED_DRAIN_FUA`).
    DrainFua,
    /// FLUSH and FUA sequences.
    Sequences {
        /// Is there a volatile write cache?
        write_cache: bool,
        /// Does the device do FUA itself?
        fua: bool,
    },
}

/// A flush with waiters goes out after this long even if data writes of other sequences are in the device.
const PENDING_TIMEOUT_NS: u64 = 5 * SECOND;

/// The steps of a barrier or flush sequence, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum Step {
    Drain,
    PreFlush,
    Data,
    PostFlush,
    Done,
}

/// Which steps a sequence has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    pub(super) pre_flush: bool,
    pub(super) data: bool,
    pub(super) post_flush: bool,
}

impl Plan {
    /// The first step at or behind `from` that this plan has.
    pub(super) fn next(self, from: Step) -> Step {
        if from <= Step::PreFlush && self.pre_flush {
            Step::PreFlush
        } else if from <= Step::Data && self.data {
            Step::Data
        } else if from <= Step::PostFlush && self.post_flush {
            Step::PostFlush
        } else {
            Step::Done
        }
    }

    /// Kept in a request's `sequence` byte: bit 7 = has one, bits 0-2 = the steps.
    pub(super) fn to_byte(self) -> u8 {
        0x80 | u8::from(self.pre_flush) | u8::from(self.data) << 1 | u8::from(self.post_flush) << 2
    }

    pub(super) fn from_byte(byte: u8) -> Option<Plan> {
        (byte & 0x80 != 0).then_some(Plan {
            pre_flush: byte & 1 != 0,
            data: byte & 2 != 0,
            post_flush: byte & 4 != 0,
        })
    }
}

impl Ordering {
    /// The flush sequence of a bio; `None` when it needs none.
    pub(super) fn sequence(self, bio: &Bio) -> Option<Plan> {
        let Ordering::Sequences { write_cache, fua } = self else { return None };
        let plan = Plan {
            pre_flush: write_cache && (bio.op == Op::Flush || bio.flags.contains(Flags::PREFLUSH)),
            data: bio.op != Op::Flush,
            post_flush: write_cache && !fua && bio.flags.contains(Flags::FUA),
        };
        (plan.pre_flush || plan.post_flush).then_some(plan)
    }

    /// The steps of a barrier; `None` when barriers are refused. `empty` = no data, flush only.
    pub(super) fn barrier(self, empty: bool) -> Option<Plan> {
        let (pre_flush, post_flush) = match self {
            Ordering::NoBarriers => return None,
            Ordering::Drain | Ordering::Sequences { .. } => (false, false),
            Ordering::DrainFlush => (true, !empty),
            Ordering::DrainFua => (true, false),
        };
        Some(Plan { pre_flush, data: !empty, post_flush })
    }
}

/// The barrier at work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Barrier {
    /// The barrier request, off the dispatch list.
    pub(super) rq: RequestId,
    /// What is going on, or about to start once the device is empty.
    pub(super) step: Step,
    pub(super) plan: Plan,
    /// The step's request is in the device (or requeued).
    pub(super) started: bool,
}

/// All flush sequences of a queue.
#[derive(Debug)]
pub(super) struct FlushMachine {
    /// Waiting for the next flush command, oldest first.
    pending: List<RequestId>,
    /// Waiting for the one in the device.
    running: List<RequestId>,
    links: ListLinks<RequestId>,
    /// The flush command itself.
    command: Option<RequestId>,
    /// Data writes of sequences between insertion and completion.
    data_in_flight: u32,
    pending_since_ns: u64,
}

impl FlushMachine {
    pub(super) fn new(requests: usize) -> FlushMachine {
        FlushMachine {
            pending: List::new(),
            running: List::new(),
            links: ListLinks::new(requests),
            command: None,
            data_in_flight: 0,
            pending_since_ns: 0,
        }
    }

    /// `rq` needs the device's cache flushed.
    pub(super) fn wait_for_flush(&mut self, rq: RequestId, now: u64) {
        if self.pending.is_empty() {
            self.pending_since_ns = now;
        }
        self.pending.push_back(&mut self.links, rq);
    }

    /// Is it time for a flush command?
    pub(super) fn wants_flush(&self, now: u64) -> bool {
        self.command.is_none()
            && !self.pending.is_empty()
            && (self.data_in_flight == 0 || now >= self.pending_since_ns + PENDING_TIMEOUT_NS)
    }

    /// `command` goes to the device for everybody who waits now.
    pub(super) fn started(&mut self, command: RequestId) {
        self.command = Some(command);
        core::mem::swap(&mut self.pending, &mut self.running);
    }

    /// Is `rq` the flush command? Then it is done.
    pub(super) fn finished(&mut self, rq: RequestId) -> bool {
        let ours = self.command == Some(rq);
        if ours {
            self.command = None;
        }
        ours
    }

    /// One of those the finished command served.
    pub(super) fn pop_served(&mut self) -> Option<RequestId> {
        self.running.pop_front(&mut self.links)
    }

    pub(super) fn data_started(&mut self) {
        self.data_in_flight += 1;
    }

    pub(super) fn data_finished(&mut self) {
        self.data_in_flight -= 1;
    }

    /// When the pending timeout needs the queue to look again.
    pub(super) fn deadline(&self) -> Option<u64> {
        (self.command.is_none() && !self.pending.is_empty())
            .then_some(self.pending_since_ns + PENDING_TIMEOUT_NS)
    }
}
