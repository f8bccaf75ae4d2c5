//! Barriers of the 2.6 era: nothing passes them, in either direction.
//!
//! One empties the elevator into the dispatch list and goes behind it all. At the head of the list it is taken aside; once
//! the device has run dry, its steps ([`super::ordering`]) go one at a time, and only then what came after it.
//!
//! **With groups** a barrier orders the I/O of its own group: it goes when all of that which came before it is done, in its
//! group's turn, alone in the device; what its group sends behind it waits. Others' requests neither wait for it (until it is
//! at work) nor are promoted by it. If it emptied the elevator as above, a barrier now and then would void the turns of all groups.
//!
//! Source: Linux 2.6.33 `block/blk-barrier.c`.

use crate::collections::{Id, List, ListLinks, Table};
use crate::elevator::Dispatch;
use crate::group::GroupId;
use crate::queue::ordering::{Ordering, Plan, Step};
use crate::queue::{QueueConfig, RequestQueue};
use crate::request::{Bio, Flags, Op, RequestId, Standing};

/// The barrier at work.
#[derive(Clone, Copy, Debug)]
pub(in crate::queue) struct Barrier {
    /// The barrier request, off the dispatch list.
    pub(in crate::queue) rq: RequestId,
    /// What is going on, or about to start once the device is empty.
    pub(in crate::queue) step: Step,
    pub(in crate::queue) plan: Plan,
    /// The step's request is in the device (or requeued).
    pub(in crate::queue) started: bool,
}

/// With groups: what waits for the barriers of each.
#[derive(Debug)]
pub(in crate::queue) struct Fences {
    by_group: Table<Fence>,
    links: ListLinks<RequestId>,
    /// Groups with one.
    active: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Fence {
    /// The next barrier, and what its group sent behind it.
    behind: List<RequestId>,
    /// The barrier whose turn is awaited, or which is at work.
    up: Option<RequestId>,
}

impl Fences {
    pub(in crate::queue) fn new(groups: usize, requests: usize) -> Fences {
        let on = groups > 1;
        Fences {
            by_group: Table::new(Fence::default(), if on { groups } else { 0 }),
            links: ListLinks::new(if on { requests } else { 0 }),
            active: 0,
        }
    }

    #[inline]
    pub(in crate::queue) fn any(&self) -> bool {
        self.active > 0
    }

    pub(in crate::queue) fn is_closed(&self, group: GroupId) -> bool {
        self.by_group.get(group.index()).is_some_and(|fence| fence.up.is_some() || !fence.behind.is_empty())
    }

    /// `barrier` of `group` is at work.
    fn close(&mut self, group: GroupId, barrier: RequestId) {
        self.active += u32::from(!self.is_closed(group));
        self.set_up(group, Some(barrier));
    }

    /// `rq` waits behind the barriers of `group`, or is one.
    fn push(&mut self, group: GroupId, rq: RequestId) {
        self.active += u32::from(!self.is_closed(group));
        self.by_group[group.index()].behind.push_back(&mut self.links, rq);
    }

    fn first(&self, group: GroupId) -> Option<RequestId> {
        self.by_group[group.index()].behind.front()
    }

    fn pop(&mut self, group: GroupId) -> Option<RequestId> {
        self.by_group[group.index()].behind.pop_front(&mut self.links)
    }

    fn set_up(&mut self, group: GroupId, barrier: Option<RequestId>) {
        self.by_group[group.index()].up = barrier;
    }

    /// After a barrier: has the group another?
    fn settle(&mut self, group: GroupId) {
        self.active -= u32::from(!self.is_closed(group));
    }
}

impl QueueConfig {
    pub(in crate::queue) fn is_barrier(&self, bio: &Bio) -> bool {
        match self.ordering {
            Ordering::Sequences { .. } => false,
            _ => bio.flags.contains(Flags::BARRIER) || bio.op == Op::Flush,
        }
    }
}

impl RequestQueue {
    /// A barrier empties the elevator into the dispatch list and goes behind it all, its own task's plug included.
    pub(in crate::queue) fn insert_barrier(&mut self, rq: RequestId, now: u64) {
        let context = self.requests()[rq].context;
        self.flush_task_plug(context, now);
        if self.lower.is_grouped() {
            self.lower.requests_mut()[rq].flags.insert(Flags::BARRIER);
            let group = self.requests()[rq].payer;
            self.fences.push(group, rq);
            self.plug.unplug();
            return self.advance_fence(group, now);
        }
        self.lower.drain(now);
        self.last_merge = None;
        self.lower.requests_mut()[rq].flags.insert(Flags::BARRIER);
        self.lower.insert_tail(rq);
        let (list, requests) = self.lower.list_mut();
        list.set_boundary(requests, rq);
        self.plug.unplug();
    }

    /// The barrier reached the head of the dispatch list: take it aside and let the device run dry.
    pub(in crate::queue) fn begin_barrier(&mut self, rq: RequestId, now: u64) {
        let empty = self.requests()[rq].op == Op::Flush;
        let Some(plan) = self.config.ordering.barrier(empty) else { return };
        self.lower.take_aside(now);
        self.lower.requests_mut()[rq].queue.sequence = plan.to_byte();
        self.barrier = Some(Barrier { rq, step: Step::Drain, plan, started: false });
    }

    /// While a barrier is at work nothing goes to the device but its steps, one at a time, and what the device gave back.
    pub(in crate::queue) fn dispatch_barrier(&mut self, now: u64) -> Dispatch {
        let Some(barrier) = self.barrier else { return Dispatch::Empty };
        if self.lower.head_is_requeued() {
            return self.issue_given_back(now);
        }
        if barrier.started || self.in_flight() != [0, 0] {
            return Dispatch::Busy;
        }
        let step = barrier.plan.next(barrier.step);
        let group = self.requests()[barrier.rq].payer;
        let command = match step {
            Step::Data => {
                if self.config.ordering == Ordering::DrainFua {
                    self.lower.requests_mut()[barrier.rq].flags.insert(Flags::FUA);
                }
                Some(barrier.rq)
            }
            Step::PreFlush | Step::PostFlush => self.own_flush_of(group, now),
            Step::Drain | Step::Done => None,
        };
        let Some(rq) = command else { return Dispatch::Empty };
        self.barrier = Some(Barrier { step, started: true, ..barrier });
        if self.lower.is_grouped() {
            self.lower.issue_again(rq, now);
            return Dispatch::Issue(rq);
        }
        self.lower.insert_head(rq, now);
        self.lower.issue(now).map_or(Dispatch::Empty, Dispatch::Issue)
    }

    /// What the device gave back goes again while a barrier waits for it. It may be the last one before another group's.
    fn issue_given_back(&mut self, now: u64) -> Dispatch {
        let Some(rq) = self.lower.issue(now) else { return Dispatch::Empty };
        if self.fences.any() {
            self.advance_fence(self.requests()[rq].payer, now);
        }
        Dispatch::Issue(rq)
    }

    /// Is `rq` a barrier that sends nothing ([`Ordering::Drain`])? With groups it is done as soon as all of its group is that
    /// came before it; only a completion brings that about, or a request that is cancelled.
    fn is_dry(&self, rq: RequestId) -> bool {
        self.config.ordering == Ordering::Drain && self.requests()[rq].op == Op::Flush
    }

    /// With groups: barriers of `group` that send nothing and have nothing left to wait for are done.
    pub(in crate::queue) fn finish_dry_barriers(
        &mut self,
        group: GroupId,
        now: u64,
        done: &mut impl FnMut(u64),
    ) {
        while let Some(rq) = self.fences.first(group).filter(|rq| self.is_dry(*rq)) {
            let groups = self.lower.groups();
            let is_up = self.fences.by_group[group.index()].up.is_some();
            if is_up || groups.queued(group) > 0 || groups.in_flight(group) > 0 {
                return;
            }
            self.fences.pop(group);
            self.finish(rq, done);
            self.go_on_behind(group, now);
        }
    }

    /// With groups: does `rq` wait behind a barrier of its group? Then it is kept.
    #[inline]
    pub(in crate::queue) fn waits_at_fence(&mut self, rq: RequestId) -> bool {
        if !self.fences.any() {
            return false;
        }
        let group = self.requests()[rq].payer;
        let waits = self.fences.is_closed(group);
        if waits {
            self.fences.push(group, rq);
        }
        waits
    }

    /// With groups: what came before the next barrier of `group` may all have gone. Then it goes in its group's turn; what
    /// came before it and is in the device is waited for there.
    pub(in crate::queue) fn advance_fence(&mut self, group: GroupId, now: u64) {
        if self.fences.by_group[group.index()].up.is_some() || self.lower.groups().queued(group) > 0 {
            return;
        }
        let Some(barrier) = self.fences.first(group).filter(|rq| !self.is_dry(*rq)) else { return };
        self.fences.pop(group);
        self.fences.set_up(group, Some(barrier));
        self.lower.insert_head(barrier, now);
    }

    /// `barrier` is done. With groups: what its group sent behind it goes on, up to the next one.
    fn barrier_done(&mut self, barrier: RequestId, now: u64, done: &mut impl FnMut(u64)) {
        self.barrier = None;
        let group = self.requests()[barrier].payer;
        self.finish(barrier, done);
        if self.lower.is_grouped() {
            self.fences.set_up(group, None);
            self.go_on_behind(group, now);
            self.finish_dry_barriers(group, now, done);
        }
    }

    /// The queue gets groups, and all that is there is the root's: barriers, and what came behind them, wait at the root's
    /// fence from now on. What came before the first of them, or was given back, goes as it would have.
    pub(in crate::queue) fn fence_pending_barriers(&mut self, now: u64) {
        let listed = |rq: &RequestId| self.requests()[*rq].flags.contains(Flags::BARRIER);
        if self.barrier.is_none() && !self.lower.list().iter().any(|rq| listed(&rq)) {
            return;
        }
        // The newest, as every barrier emptied the elevator.
        self.lower.drain(now);
        self.last_merge = None;
        if let Some(barrier) = self.barrier {
            self.fences.close(GroupId::ROOT, barrier.rq);
        }
        let mut next = self.lower.head();
        while let Some(rq) = next {
            next = self.lower.listed_behind(rq);
            let request = &self.requests()[rq];
            let is_behind = request.flags.contains(Flags::BARRIER) || self.fences.any();
            if is_behind && request.queue.standing != Standing::Requeued {
                self.forget(rq);
                self.lower.take_from_list(rq, now);
                self.fences.push(GroupId::ROOT, rq);
            }
        }
    }

    /// There are groups now: nothing may be left that the first barrier waits for.
    pub(in crate::queue) fn advance_first_fence(&mut self, now: u64) {
        if self.fences.any() {
            self.advance_fence(GroupId::ROOT, now);
        }
    }

    /// What waits behind a barrier of `group` that is done goes on, up to the next one.
    fn go_on_behind(&mut self, group: GroupId, now: u64) {
        while let Some(rq) = self.fences.first(group) {
            if self.requests()[rq].flags.contains(Flags::BARRIER) {
                break;
            }
            self.fences.pop(group);
            self.lower.insert(rq, now);
        }
        self.fences.settle(group);
        if self.fences.is_closed(group) {
            self.advance_fence(group, now);
        }
    }

    /// The device did the barrier's step `rq`.
    pub(in crate::queue) fn barrier_step_done(
        &mut self,
        rq: RequestId,
        now: u64,
        done: &mut impl FnMut(u64),
    ) {
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
            self.barrier_done(barrier.rq, now, done);
        } else {
            self.barrier = Some(Barrier { step, started: false, ..barrier });
        }
    }

    /// An empty barrier for a device without a volatile cache sends nothing: it is done as soon as the device has run dry,
    /// and only a completion brings that about (on an idle queue it is done at once, [`super::Submitted::Done`]).
    pub(in crate::queue) fn finish_empty_barriers(&mut self, now: u64, done: &mut impl FnMut(u64)) {
        while self.in_flight() == [0, 0] && !self.lower.head_is_requeued() {
            if self.barrier.is_none()
                && let Some(rq) = self.lower.head()
                && self.requests()[rq].flags.contains(Flags::BARRIER)
            {
                self.begin_barrier(rq, now);
            }
            match self.barrier {
                Some(b) if !b.started && b.plan.next(b.step) == Step::Done => {
                    self.barrier_done(b.rq, now, done);
                }
                _ => return,
            }
        }
    }
}
