//! Flush sequences, since 2.6.37: flush, write, flush, as far as the device needs them. They order nothing but themselves.
//!
//! One flush command is in the device at a time. Who needs one while it runs gathers, and all of them share the next one.
//!
//! Source: Linux 6.12 `block/blk-flush.c`.

use super::ordering::{Ordering, Plan};
use super::{NO_POOL, RequestQueue};
use crate::SECOND;
use crate::collections::{List, ListLinks};
use crate::elevator::Dispatch;
use crate::request::{Flags, Op, QueueData, Request, RequestId};

/// A flush with waiters goes out after this long even if data writes of other sequences are in the device.
const PENDING_TIMEOUT_NS: u64 = 5 * SECOND;

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
    #[inline]
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

    /// One of those the finished command served, newest first: each goes to the head, so the oldest ends up first.
    pub(super) fn pop_served(&mut self) -> Option<RequestId> {
        let rq = self.running.back()?;
        self.running.remove(&mut self.links, rq);
        Some(rq)
    }

    pub(super) fn data_started(&mut self) {
        self.data_in_flight += 1;
    }

    pub(super) fn data_finished(&mut self) {
        self.data_in_flight -= 1;
    }

    /// `answer`, but not waiting longer than the waiters for a flush may.
    #[inline]
    pub(super) fn limit(&self, answer: Dispatch) -> Dispatch {
        if self.command.is_some() || self.pending.is_empty() {
            return answer;
        }
        let timeout = self.pending_since_ns + PENDING_TIMEOUT_NS;
        match answer {
            Dispatch::Empty => Dispatch::Idle { until: timeout },
            Dispatch::Idle { until } => Dispatch::Idle { until: until.min(timeout) },
            issue => issue,
        }
    }
}

impl RequestQueue {
    /// A flush command of the queue's own.
    pub(super) fn own_flush(&mut self, now: u64) -> Option<RequestId> {
        self.lower.take(Request {
            op: Op::Flush,
            start_ns: now,
            queue: QueueData { pool: NO_POOL, ..Request::EMPTY.queue },
            ..Request::EMPTY
        })
    }

    /// Start `rq`'s sequence. True if it has to wait for a flush first; else it goes the way of all requests.
    pub(super) fn start_sequence(&mut self, rq: RequestId, plan: Plan, now: u64) -> bool {
        let device_fua = matches!(self.config.ordering, Ordering::Sequences { fua: true, .. });
        let request = &mut self.lower.requests_mut()[rq];
        request.queue.sequence = plan.to_byte();
        // What the queue does itself the device must not do again.
        request.flags.remove(Flags::PREFLUSH);
        if !device_fua {
            request.flags.remove(Flags::FUA);
        }
        request.flags.insert(Flags::NOMERGE);
        if plan.pre_flush {
            self.flushes.wait_for_flush(rq, now);
            self.kick_flush(now);
        } else {
            self.flushes.data_started();
        }
        plan.pre_flush
    }

    /// The device did `rq`, a flush command or the data of a sequence.
    pub(super) fn sequence_step_done(&mut self, rq: RequestId, now: u64, done: &mut impl FnMut(u64)) {
        if self.flushes.finished(rq) {
            self.release(rq);
            while let Some(served) = self.flushes.pop_served() {
                self.flushed(served, done);
            }
        } else {
            self.flushes.data_finished();
            match Plan::from_byte(self.requests()[rq].queue.sequence) {
                Some(plan) if plan.post_flush => self.flushes.wait_for_flush(rq, now),
                _ => self.finish(rq, done),
            }
        }
        self.kick_flush(now);
    }

    /// The flush `rq` waited for is done: its data goes now, ahead of everything; or that was the last step.
    fn flushed(&mut self, rq: RequestId, done: &mut impl FnMut(u64)) {
        let queue = &mut self.lower.requests_mut()[rq].queue;
        match Plan::from_byte(queue.sequence) {
            Some(plan) if plan.pre_flush && plan.data => {
                queue.sequence = Plan { pre_flush: false, ..plan }.to_byte();
                self.flushes.data_started();
                self.lower.insert_head(rq);
            }
            _ => self.finish(rq, done),
        }
    }

    /// Start a flush command if somebody waits for one and none is under way.
    #[inline]
    pub(super) fn kick_flush(&mut self, now: u64) {
        if self.flushes.wants_flush(now)
            && let Some(rq) = self.own_flush(now)
        {
            self.flushes.started(rq);
            self.lower.insert_head(rq);
        }
    }
}
