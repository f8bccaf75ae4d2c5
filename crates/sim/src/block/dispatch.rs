//! Requests go to the device and come back.

use fairlift_core::collections::Id;
use fairlift_core::request::RequestState;
use fairlift_core::{Dispatch, Op, RequestId};

use super::cookie::{from_cookie, slot_of, ticket_of};
use super::stats::op_index;
use super::{BlockLayer, Done, TraceKind};
use crate::anatomy::Cause;
use crate::device::{Command, Completion};
use crate::group::Cgroup;

impl BlockLayer {
    /// Offer the device what the queue has, if something happened since the last time.
    #[inline(always)] // half of the times nothing did
    pub(crate) fn pump(&mut self, now: u64) {
        if self.dirty && !self.passes_over(now) {
            self.offer(now);
        }
    }

    /// Is there nothing to offer, which is so three times of four an I/O of a quiet elevator? Then it is offered.
    #[inline]
    fn passes_over(&mut self, now: u64) -> bool {
        let nothing = self.queue.has_nothing(now) && self.parked.is_none() && self.disks.is_none();
        if !nothing || self.recorder.is_some() {
            return false;
        }
        self.dirty = false;
        self.timer = None;
        self.book_entered(now);
        true
    }

    #[inline(never)]
    fn offer(&mut self, now: u64) {
        self.dirty = false;
        if self.disks.is_some() {
            return self.pump_disks(now);
        }
        self.timer = None;
        let mut idle = false;
        let until = self.let_in(now);
        if self.in_device < self.depth
            && let Some(first) = self.parked.take()
        {
            self.issue(first, now);
        }
        if self.in_device >= self.depth {
            self.timer = until;
        }
        while self.has_room() && !self.queue.has_nothing(now) {
            let entered = &mut self.entered;
            let answer = self.queue.dispatch_with(now, |bio, answer| entered.push((*bio, answer)));
            self.book_entered(now);
            match answer {
                Dispatch::Issue(rq) if self.in_device < self.depth => self.issue(rq, now),
                Dispatch::Issue(rq) => self.parked = Some(rq),
                Dispatch::Idle { until } => {
                    self.timer = Some(until.max(now + 1));
                    idle = true;
                    self.tell_idle(now, until);
                    break;
                }
                Dispatch::Busy | Dispatch::Empty => break,
            }
        }
        if self.recorder.is_some() {
            self.record_state(idle, now);
        }
    }

    /// May the scheduler give another request? blk-mq takes the driver's tag after that, and keeps a request that finds none
    /// (Linux 6.12 `block/blk-mq-sched.c`, `__blk_mq_do_dispatch_sched`).
    pub(super) fn has_room(&self) -> bool {
        self.in_device < self.depth || (self.parks && self.parked.is_none())
    }

    /// What queue and device are doing now; `idle`: the queue wants to be asked later.
    pub(super) fn record_state(&mut self, idle: bool, now: u64) {
        let plugged = idle && self.queue.is_plugged(now);
        let idled_for = if idle && !plugged { self.queue.idling_for() } else { None };
        let held = self.in_device == 0 && self.queue.pending() > 0;
        let waiting = match (plugged, idled_for) {
            (true, _) => Some(Cause::Plugged),
            (_, Some(context)) => Some(Cause::Idling(self.task_of[context.index()])),
            _ => held.then_some(Cause::Held),
        };
        let Some(recorder) = &mut self.recorder else { return };
        let queue = &self.queue;
        let oldest = || queue.requests().iter().map(|(_, r)| r.start_ns).min().unwrap_or(u64::MAX);
        recorder.queue_state(self.in_device > 0, waiting, now, oldest);
    }

    pub(super) fn issue(&mut self, rq: RequestId, now: u64) {
        let request = self.queue.requests()[rq];
        self.tell_turn(&request, now);
        self.trace_request(TraceKind::Issued, &request, now);
        if let Some(recorder) = &mut self.recorder {
            recorder.issued(rq, &request, self.task_of[request.context.index()], now);
        }
        debug_assert_eq!(request.state, RequestState::Issued);
        let command = Command {
            tag: rq.index() as u32,
            op: request.op,
            sector: request.sector,
            sectors: request.sectors,
            fua: request.flags.contains(fairlift_core::Flags::FUA),
        };
        self.account(now);
        if self.in_device == 0 {
            self.charged_until = now;
        }
        self.in_device += 1;
        if let Some(qos) = &mut self.qos {
            qos.issued(rq, &request, now);
        }
        self.device.submit(command, now);
    }

    pub(crate) fn next_event(&self) -> Option<u64> {
        if self.disks.is_some() {
            return self.next_event_below();
        }
        let or_never = |at: Option<u64>| at.unwrap_or(u64::MAX);
        let mut next = or_never(self.device.next_event()).min(or_never(self.timer));
        if let Some(seat) = &self.seat {
            next = next.min(or_never(seat.next_event()));
        }
        if let Some(qos) = &self.qos {
            next = next.min(or_never(qos.next_event()));
        }
        (next != u64::MAX).then_some(next)
    }

    /// Let the device work up to `now` and take what it finished.
    pub(crate) fn advance(&mut self, now: u64) {
        if self.disks.is_some() {
            self.dirty = true;
            return self.advance_disks(now);
        }
        self.device.advance(now, &mut self.finished);
        if !self.finished.is_empty() {
            self.complete_finished();
        }
        if self.timer.is_some_and(|at| at <= now) {
            self.dirty = true;
        }
        if let Some(seat) = &mut self.seat {
            seat.wake(now, &mut self.woken);
        }
        if let Some(qos) = &mut self.qos {
            qos.advance(now);
            self.wake_throttled();
        }
    }

    #[inline(never)]
    fn complete_finished(&mut self) {
        let mut finished = std::mem::take(&mut self.finished);
        for completion in finished.drain(..) {
            self.complete(completion);
        }
        self.finished = finished;
    }

    #[inline]
    pub(super) fn complete(&mut self, completion: Completion) {
        let (rq, now) = (RequestId::from_index(completion.tag as usize), completion.at_ns);
        self.account(now);
        self.in_device -= 1;
        self.dirty = true;
        let request = self.queue.requests()[rq];
        self.trace_request(TraceKind::Completed, &request, now);
        if let Some(recorder) = &mut self.recorder {
            let group = self.meter.as_ref().map_or(Cgroup::ROOT, |meter| meter.group_of(rq, &request));
            let task = self.task_of[request.context.index()];
            recorder.completed(rq, &request, task, group, (completion.began_ns, now));
        }
        let busy = now - self.charged_until.min(now);
        self.charged_until = now;
        self.stats.busy_ns += busy;
        self.stats.device_time_ns[request.context.index()] += busy;
        if let Some(meter) = &mut self.meter {
            meter.completed(rq, &request, busy, now);
        }
        self.stats.requests[op_index(request.op)] += 1;
        if request.op != Op::Flush {
            self.stats.sectors[usize::from(request.is_write())] += u64::from(request.sectors);
            self.stats.ticks_ns[usize::from(request.op != Op::Read)] += now - request.start_ns.min(now);
        }
        let mut queue_done = std::mem::take(&mut self.done);
        let (ops, recorder, meter) = (&mut self.ops, &mut self.recorder, &mut self.meter);
        let (seat, qos) = (&mut self.seat, &mut self.qos);
        if let Some(qos) = qos {
            qos.completed(rq, &request, now);
        }
        self.queue.complete(rq, now, |cookie| {
            let cookie = match (qos.as_mut(), slot_of(cookie)) {
                (Some(qos), Some(slot)) => qos.end(slot, now),
                _ => cookie,
            };
            let (op, cgroup) = match (seat.as_mut(), ticket_of(cookie)) {
                (Some(seat), Some(ticket)) => seat.completed(ticket, now),
                _ => from_cookie(cookie),
            };
            if let Some(meter) = meter {
                meter.went(cgroup, now);
            }
            let operation = &mut ops[op.0 as usize];
            operation.left -= 1;
            if operation.left == 0 {
                queue_done.push_back(Done { op, owner: operation.owner, at_ns: now });
                if let Some(recorder) = recorder {
                    recorder.op_done(op, Some((rq, request.op)));
                }
            }
        });
        self.done = queue_done;
        self.write_done(rq, now);
        self.let_in(now); // before those who are woken for the slot
        self.wake_waiters();
        self.wake_throttled();
    }

    pub(super) fn account(&mut self, now: u64) {
        let passed = now - self.last_change.min(now);
        if passed == 0 {
            return;
        }
        self.stats.queue_ns += self.queue.pending() as u128 * u128::from(passed);
        self.stats.device_ns += u128::from(self.in_device) * u128::from(passed);
        self.stats.slot_wait_ns += self.waiting.len() as u128 * u128::from(passed);
        self.stats.held_ns += self.held() as u128 * u128::from(passed);
        self.last_change = now;
    }
}
