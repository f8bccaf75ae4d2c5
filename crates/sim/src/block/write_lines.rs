//! Tags for writeback by weight, as the module gives them ([`fairlift_core::group::Writeback`]): the lines in which the threads wait
//! that write dirty pages back for a group.
//!
//! The module counts a request once the elevator has it, and the thread's others, which are still in its plug, beside it; here
//! a request counts as soon as there is one.

use std::collections::VecDeque;

use fairlift_core::collections::Id;
use fairlift_core::group::{Groups, Writeback};
use fairlift_core::queue::Submitted;
use fairlift_core::request::RequestState;
use fairlift_core::{Bio, Flags, GroupId, Op, RequestId, Requests};

use super::BlockLayer;
use super::submit::Passes;
use super::throttle::Throttled;
use crate::engine::TaskId;

/// The part of the tags that async requests may have (`fl_async_depth`).
pub(super) fn async_tags(nr_requests: u32) -> u32 {
    (nr_requests * 3 / 4).max(1)
}

/// Who writes back, and who waits.
#[derive(Debug)]
pub(super) struct WriteLines {
    parts: Writeback,
    lines: Vec<VecDeque<TaskId>>,
    /// The group of each request that writes back, by slot.
    counted: Vec<Option<GroupId>>,
    tags: u32,
}

impl WriteLines {
    pub(super) fn new(groups: &Groups, requests: usize, nr_requests: u32) -> WriteLines {
        WriteLines {
            parts: Writeback::new(groups),
            lines: vec![VecDeque::new(); groups.slots()],
            counted: vec![None; requests],
            tags: async_tags(nr_requests),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.iter().map(VecDeque::len).sum()
    }

    pub(super) fn contains(&self, task: TaskId) -> bool {
        self.lines.iter().flatten().any(|waiter| *waiter == task)
    }

    /// Two requests became one: the other's slot is free.
    fn forget_merged(&mut self, requests: &Requests) {
        for slot in 0..self.counted.len() {
            let rq = RequestId::from_index(slot);
            if self.counted[slot].is_some() && requests[rq].state == RequestState::Free {
                self.done(rq);
            }
        }
    }

    fn done(&mut self, rq: RequestId) {
        if let Some(group) = self.counted[rq.index()].take() {
            self.parts.done(group);
        }
    }
}

impl BlockLayer {
    /// A bio asks for a tag. One that writes back for a group may have to wait for its group's part of them.
    pub(super) fn hold_write(
        &mut self,
        bio: &Bio,
        throttled: Throttled,
        passes: &mut Passes,
        task: TaskId,
        now: u64,
    ) -> Throttled {
        let held_by_limit = self.queue.limiter().is_used();
        let Some(lines) = &mut self.write_lines else { return throttled };
        let is_write = bio.op == Op::Write && !bio.is_sync() && !bio.flags.contains(Flags::META);
        let group = self.queue.group_of(bio);
        let asks = matches!(throttled, Throttled::Passes | Throttled::Woken) && !passes.was_held;
        if !asks || !is_write || group == GroupId::ROOT || held_by_limit {
            return throttled;
        }
        if passes.slot.is_none()
            && let Some(rq) = self.queue.join_queued(*bio, now)
        {
            return Throttled::Joined(rq);
        }
        lines.forget_merged(self.queue.requests());
        let busy = !self.queue.is_empty();
        if !lines.parts.hold(self.queue.groups(), group, 0, lines.tags, busy, now) {
            return throttled;
        }
        lines.lines[group.index()].push_back(task);
        passes.was_held = true;
        self.queue.flush_plug(bio.context, now);
        self.let_writes_go(now);
        Throttled::Waits
    }

    /// What became of a bio; `merged_away`: a request joined another one by it.
    pub(super) fn count_write(&mut self, answer: Submitted, was_held: bool, merged_away: bool, now: u64) {
        let Some(lines) = &mut self.write_lines else { return };
        match answer {
            Submitted::Queued(rq) => {
                let request = &self.queue.requests()[rq];
                let writes_back = request.op == Op::Write && !request.flags.contains(Flags::SYNC);
                if writes_back && request.group != GroupId::ROOT {
                    lines.done(rq);
                    lines.counted[rq.index()] = Some(request.group);
                    lines.parts.arrived(self.queue.groups(), request.group, request.sectors, now);
                }
            }
            Submitted::Merged(_) => {
                if was_held {
                    lines.parts.came();
                }
                if merged_away {
                    lines.forget_merged(self.queue.requests());
                    self.let_writes_go(now);
                }
            }
            _ => {}
        }
    }

    /// A request is done.
    pub(super) fn write_done(&mut self, rq: RequestId, now: u64) {
        if let Some(lines) = &mut self.write_lines {
            lines.done(rq);
            self.let_writes_go(now);
        }
    }

    /// Those go on who may.
    fn let_writes_go(&mut self, now: u64) {
        let Some(lines) = &mut self.write_lines else { return };
        while lines.parts.waiting() > 0
            && let Some(group) = lines.parts.next(self.queue.groups(), lines.tags, false, now)
        {
            self.woken.extend(lines.lines[group.index()].pop_front());
        }
    }
}
