//! Barriers of the 2.6 era: nothing passes them, in either direction.
//!
//! One empties the elevator into the dispatch list and goes behind it all. At the head of the list it is taken aside; once
//! the device has run dry, its steps ([`super::ordering`]) go one at a time, and only then what came after it.
//!
//! Source: Linux 2.6.33 `block/blk-barrier.c`.

use super::ordering::{Ordering, Plan, Step};
use super::{QueueConfig, RequestQueue};
use crate::elevator::Dispatch;
use crate::request::{Bio, Flags, Op, RequestId};

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

impl QueueConfig {
    pub(super) fn is_barrier(&self, bio: &Bio) -> bool {
        match self.ordering {
            Ordering::Sequences { .. } => false,
            _ => bio.flags.contains(Flags::BARRIER) || bio.op == Op::Flush,
        }
    }
}

impl RequestQueue {
    /// A barrier empties the elevator into the dispatch list and goes behind it all, its own task's plug included.
    pub(super) fn insert_barrier(&mut self, rq: RequestId, now: u64) {
        let context = self.requests()[rq].context;
        self.flush_task_plug(context, now);
        self.lower.drain(now);
        self.last_merge = None;
        self.lower.requests_mut()[rq].flags.insert(Flags::BARRIER);
        self.lower.insert_tail(rq);
        let (list, requests) = self.lower.list_mut();
        list.set_boundary(requests, rq);
        self.plug.unplug();
    }

    /// The barrier reached the head of the dispatch list: take it aside and let the device run dry.
    pub(super) fn begin_barrier(&mut self, rq: RequestId) {
        let empty = self.requests()[rq].op == Op::Flush;
        let Some(plan) = self.config.ordering.barrier(empty) else { return };
        self.lower.take_aside();
        self.lower.requests_mut()[rq].queue.sequence = plan.to_byte();
        self.barrier = Some(Barrier { rq, step: Step::Drain, plan, started: false });
    }

    /// While a barrier is at work nothing goes to the device but its steps, one at a time, and what the device gave back.
    pub(super) fn dispatch_barrier(&mut self, now: u64) -> Dispatch {
        let Some(barrier) = self.barrier else { return Dispatch::Empty };
        if self.lower.head_is_requeued() {
            return self.lower.issue(now).map_or(Dispatch::Empty, Dispatch::Issue);
        }
        if barrier.started || self.in_flight() != [0, 0] {
            return Dispatch::Empty;
        }
        let step = barrier.plan.next(barrier.step);
        let command = match step {
            Step::Data => {
                if self.config.ordering == Ordering::DrainFua {
                    self.lower.requests_mut()[barrier.rq].flags.insert(Flags::FUA);
                }
                Some(barrier.rq)
            }
            Step::PreFlush | Step::PostFlush => self.own_flush(now),
            Step::Drain | Step::Done => None,
        };
        let Some(rq) = command else { return Dispatch::Empty };
        self.barrier = Some(Barrier { step, started: true, ..barrier });
        self.lower.insert_head(rq);
        self.lower.issue(now).map_or(Dispatch::Empty, Dispatch::Issue)
    }

    /// The device did the barrier's step `rq`.
    pub(super) fn barrier_step_done(&mut self, rq: RequestId, done: &mut impl FnMut(u64)) {
        let Some(barrier) = self.barrier else { return };
        if rq != barrier.rq {
            self.release(rq);
        }
        let step = match barrier.step {
            Step::Drain | Step::PreFlush => barrier.plan.next(Step::Data),
            Step::Data => barrier.plan.next(Step::PostFlush),
            Step::PostFlush | Step::Done => Step::Done,
        };
        if step == Step::Done {
            self.barrier = None;
            self.finish(barrier.rq, done);
        } else {
            self.barrier = Some(Barrier { step, started: false, ..barrier });
        }
    }

    /// An empty barrier for a device without a volatile cache sends nothing: it is done as soon as the device has run dry,
    /// and only a completion brings that about (on an idle queue it is done at once, [`super::Submitted::Done`]).
    pub(super) fn finish_empty_barriers(&mut self, done: &mut impl FnMut(u64)) {
        while self.in_flight() == [0, 0] && !self.lower.head_is_requeued() {
            if self.barrier.is_none()
                && let Some(rq) = self.lower.head()
                && self.requests()[rq].flags.contains(Flags::BARRIER)
            {
                self.begin_barrier(rq);
            }
            match self.barrier {
                Some(b) if !b.started && b.plan.next(b.step) == Step::Done => {
                    self.barrier = None;
                    self.finish(b.rq, done);
                }
                _ => return,
            }
        }
    }
}
