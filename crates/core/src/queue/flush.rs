//! Flush sequences, since 2.6.37: flush, write, flush, as far as the device needs them. They order nothing but themselves.
//!
//! One flush command is in the device at a time. Who needs one while it runs gathers, and all of them share the next one.
//!
//! **With groups** nothing goes before the turns of all other groups. A request that needs a flush waits in its group's queue, before
//! the others of its group; when it is that group's turn the flush command goes out, for all that need one, and those share what
//! it costs. The data step waits for its group's turn again. (Without groups both go at once, as in the kernel.)
//!
//! Source: Linux 6.12 `block/blk-flush.c`.

use super::ordering::{self, Ordering, Plan};
use super::{NO_POOL, RequestQueue};
use crate::SECOND;
use crate::collections::{List, ListLinks};
use crate::elevator::Dispatch;
use crate::group::GroupId;
use crate::request::{Flags, Op, QueueData, Request, RequestId};

/// A flush with waiters goes out after this long even if data writes of other sequences are in the device.
const PENDING_TIMEOUT_NS: u64 = 5 * SECOND;

/// What goes instead of a request that needs a flush first.
pub(super) enum Instead {
    /// It needs none.
    No,
    /// The flush command.
    Now(Dispatch),
    /// The next flush command, once the one in the device is done.
    Later,
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
    /// With groups: a group's turn to flush came while a command was in the device; the next one goes at once.
    granted: Option<GroupId>,
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
            granted: None,
        }
    }

    /// `rq` needs the device's cache flushed.
    pub(super) fn wait_for_flush(&mut self, rq: RequestId, now: u64) {
        if self.pending.is_empty() {
            self.pending_since_ns = now;
        }
        self.pending.push_back(&mut self.links, rq);
    }

    /// Does a request wait for a flush?
    #[inline]
    pub(super) fn any(&self) -> bool {
        !self.pending.is_empty() || self.granted.is_some()
    }

    /// Is a flush command in the device?
    #[inline]
    pub(super) fn is_running(&self) -> bool {
        self.command.is_some()
    }

    /// Is it time for a flush command?
    #[inline]
    pub(super) fn wants_flush(&self, now: u64) -> bool {
        self.command.is_none()
            && !self.pending.is_empty()
            && (self.data_in_flight == 0 || now >= self.pending_since_ns + PENDING_TIMEOUT_NS)
    }

    /// `command` goes to the device for all that wait now.
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
        if self.command.is_some() {
            return if answer == Dispatch::Empty && !self.pending.is_empty() {
                Dispatch::Busy
            } else {
                answer
            };
        }
        if self.pending.is_empty() {
            return answer;
        }
        let timeout = self.pending_since_ns + PENDING_TIMEOUT_NS;
        match answer {
            Dispatch::Empty | Dispatch::Busy => Dispatch::Idle { until: timeout },
            Dispatch::Idle { until } => Dispatch::Idle { until: until.min(timeout) },
            issue => issue,
        }
    }
}

impl RequestQueue {
    /// A flush command of the queue's own, of the root's.
    pub(super) fn own_flush(&mut self, now: u64) -> Option<RequestId> {
        self.own_flush_of(GroupId::ROOT, now)
    }

    /// The same, of `group`.
    pub(super) fn own_flush_of(&mut self, group: GroupId, now: u64) -> Option<RequestId> {
        self.lower.take(Request {
            op: Op::Flush,
            start_ns: now,
            group,
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
            self.need_flush(rq, now);
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
                self.flushed(served, now, done);
            }
        } else {
            self.flushes.data_finished();
            match Plan::from_byte(self.requests()[rq].queue.sequence) {
                Some(plan) if plan.post_flush => self.need_flush(rq, now),
                _ => self.finish(rq, done),
            }
        }
        self.kick_flush(now);
    }

    /// The flush `rq` waited for is done: its data goes now, ahead of everything; or that was the last step.
    fn flushed(&mut self, rq: RequestId, now: u64, done: &mut impl FnMut(u64)) {
        let queue = &mut self.lower.requests_mut()[rq].queue;
        match Plan::from_byte(queue.sequence) {
            Some(plan) if plan.pre_flush && plan.data => {
                queue.sequence = Plan { pre_flush: false, ..plan }.to_byte();
                self.flushes.data_started();
                self.lower.insert_head(rq, now);
            }
            _ => self.finish(rq, done),
        }
    }

    /// `rq` needs the device's cache flushed before it goes on.
    fn need_flush(&mut self, rq: RequestId, now: u64) {
        self.flushes.wait_for_flush(rq, now);
        let sequence = &mut self.lower.requests_mut()[rq].queue.sequence;
        *sequence = ordering::without_flush(*sequence);
        if self.lower.is_grouped() {
            self.lower.insert_head(rq, now);
        } else {
            self.kick_flush(now);
        }
    }

    /// With groups: `rq` is next for the device. Does it wait for a flush? Then it is taken aside, and the command goes instead,
    /// for all who need one; while another is in the device, right behind that.
    pub(super) fn flush_instead(&mut self, rq: RequestId, now: u64) -> Instead {
        if !ordering::needs_flush(self.requests()[rq].queue.sequence) {
            return Instead::No;
        }
        let payer = self.requests()[rq].payer;
        self.lower.take_aside(now);
        if self.flushes.command.is_some() {
            self.flushes.granted = self.flushes.granted.or(Some(payer));
            return Instead::Later;
        }
        Instead::Now(self.start_flush_of(payer, now))
    }

    /// The flush command goes to the device, in the turn of `group`, for all that wait.
    pub(super) fn start_flush_of(&mut self, group: GroupId, now: u64) -> Dispatch {
        let Some(command) = self.own_flush_of(group, now) else {
            self.flushes.granted = Some(group);
            return Dispatch::Busy;
        };
        self.flushes.started(command);
        let mut waiter = self.flushes.running.front();
        while let Some(rq) = waiter {
            waiter = self.flushes.running.next(&self.flushes.links, rq);
            let sequence = &mut self.lower.requests_mut()[rq].queue.sequence;
            *sequence = ordering::with_flush(*sequence);
            // Those whose turn has not come need it no more.
            self.lower.cancel(rq, now);
        }
        self.lower.issue_again(command, now);
        Dispatch::Issue(command)
    }

    /// The queue gets groups: those that wait for a flush take their place in their group's queue.
    pub(super) fn file_pending_flushes(&mut self) {
        let now = self.flushes.pending_since_ns;
        let mut waiter = self.flushes.pending.front();
        while let Some(rq) = waiter {
            waiter = self.flushes.pending.next(&self.flushes.links, rq);
            let sequence = &mut self.lower.requests_mut()[rq].queue.sequence;
            *sequence = ordering::without_flush(*sequence);
            self.lower.insert_head(rq, now);
        }
    }

    /// A flush whose turn came while another was in the device.
    #[inline]
    pub(super) fn granted_flush(&mut self, now: u64) -> Option<Dispatch> {
        if self.flushes.granted.is_none() || self.flushes.command.is_some() {
            return None;
        }
        let group = self.flushes.granted.take()?;
        (!self.flushes.pending.is_empty()).then(|| self.start_flush_of(group, now))
    }

    /// With groups: if `rq` is the flush command it is done, and those it was for share its cost. `false`: it is another request.
    pub(super) fn flush_is_done(&mut self, rq: RequestId, now: u64) -> bool {
        if self.flushes.command != Some(rq) || !self.lower.is_grouped() {
            return false;
        }
        let RequestQueue { lower, flushes, .. } = self;
        let count = flushes.running.len() as u32;
        lower.complete_shared(rq, (&flushes.running, &flushes.links), count, now);
        true
    }

    /// Start a flush command if a request waits for one and none is in flight.
    #[inline]
    pub(super) fn kick_flush(&mut self, now: u64) {
        if !self.lower.is_grouped()
            && self.flushes.wants_flush(now)
            && let Some(rq) = self.own_flush(now)
        {
            self.flushes.started(rq);
            self.lower.insert_head(rq, now);
        }
    }
}
