//! What happens in the block layer, for a trace and for those who want to know why things take time.

use fairlift_core::collections::Id;
use fairlift_core::queue::Submitted;
use fairlift_core::{Bio, Flags, GroupId, Op, Request};

use super::BlockLayer;
use crate::anatomy::{Anatomy, Recorder, is_plugged};
use crate::engine::{OpId, TaskId};

/// What the block layer was asked, or asked the device, at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEvent {
    /// When, nanoseconds.
    pub at_ns: u64,
    /// On which disk of a volume; 0 without one.
    pub disk: u8,
    /// What happened.
    pub kind: TraceKind,
    /// Whose it is; `None` for flushes of the queue's own.
    pub task: Option<TaskId>,
    /// What to do.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u32,
}

/// Kind of a [`TraceEvent`]; in brackets blktrace's letter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceKind {
    /// A bio came in and became a request (Q and G).
    Queued,
    /// A bio came in and joined a request (Q and M).
    Merged,
    /// A bio came in, there is no request slot, and its task sleeps until there is one (Q and S). The bio comes in once more
    /// when it gets one.
    Waits,
    /// A request went to the device (D).
    Issued,
    /// A request is done (C).
    Completed,
    /// The scheduler decided something (m).
    Decided(Decision),
}

/// What the scheduler decided, as the kernel module tells it (`kernel/src/decisions.c`). `group` is the queue's number of the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision {
    /// A request of another group than the last one goes to the device.
    Turn {
        /// Whose.
        group: usize,
    },
    /// Requests are queued, but the device is kept idle for one that may come.
    Idle {
        /// The group that was told last.
        group: usize,
        /// For so long at most, microseconds.
        wait_us: u64,
    },
    /// A bio waits for a limit.
    Held {
        /// Whose.
        group: usize,
        /// Bios that wait now.
        held: usize,
    },
}

/// What was told last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    /// The group that has the turn; the root's before the first request, as in the module.
    turn: GroupId,
    /// Until when the queue wanted to wait, and the requests there were and in the device: asked again without news, it says the same.
    idle: Option<(u64, usize, u32)>,
}

impl BlockLayer {
    /// Record from now on what the scheduler decides, too.
    pub(crate) fn start_decisions(&mut self) {
        self.told = Some(Told { turn: GroupId::ROOT, idle: None });
        self.disks_mut().iter_mut().for_each(BlockLayer::start_decisions);
    }

    /// `request` goes to the device: whose turn is it?
    #[inline]
    pub(super) fn tell_turn(&mut self, request: &Request, at_ns: u64) {
        let Some(told) = &mut self.told else { return };
        if told.turn != request.group {
            told.turn = request.group;
            self.decided(Decision::Turn { group: request.group.index() }, at_ns);
        }
    }

    /// The queue wants to be asked again at `until`.
    #[inline]
    pub(super) fn tell_idle(&mut self, at_ns: u64, until: u64) {
        let Some(told) = &mut self.told else { return };
        let (pending, wait) = (self.queue.pending(), (until, self.queue.pending(), self.in_device));
        let waits = pending > self.in_device as usize && !self.queue.is_plugged(at_ns);
        let is_new = told.idle.replace(wait) != Some(wait);
        let group = told.turn.index();
        if waits && is_new {
            let wait_us = until.saturating_sub(at_ns) / 1000;
            self.decided(Decision::Idle { group, wait_us }, at_ns);
        }
    }

    /// A bio waits for its group's limit.
    pub(super) fn tell_held(&mut self, bio: &Bio, task: TaskId, at_ns: u64) {
        if self.told.is_none() {
            return;
        }
        let group = bio.group.unwrap_or(GroupId::ROOT).index();
        let kind = TraceKind::Decided(Decision::Held { group, held: self.queue.held() });
        self.trace_bio(kind, bio, task, at_ns);
    }

    fn decided(&mut self, decision: Decision, at_ns: u64) {
        let Some(trace) = &mut self.trace else { return };
        let kind = TraceKind::Decided(decision);
        let (op, flags) = (Op::Read, Flags::NONE);
        trace.push(TraceEvent { at_ns, disk: 0, kind, task: None, op, flags, sector: 0, sectors: 0 });
    }

    /// Record from now on what happens.
    pub fn start_trace(&mut self) {
        self.trace = Some(Vec::new());
        self.disks_mut().iter_mut().for_each(BlockLayer::start_trace);
    }

    /// What happened since the trace was started or last taken.
    pub fn take_trace(&mut self) -> Vec<TraceEvent> {
        if self.disks.is_some() {
            return self.take_traces();
        }
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// How many events of the trace were not taken yet.
    pub(crate) fn traced(&self) -> usize {
        let below = self.disks().iter().map(BlockLayer::traced).sum::<usize>();
        self.trace.as_ref().map_or(0, Vec::len) + below
    }

    pub(crate) fn start_anatomy(&mut self) {
        let mut recorder = Recorder::new();
        if let Some(meter) = &mut self.meter {
            recorder.use_groups(meter.groups());
            meter.record_over_time();
        }
        self.recorder = Some(Box::new(recorder));
    }

    pub(crate) fn take_anatomy(&mut self, now: u64) -> Option<Anatomy> {
        self.recorder.take().map(|recorder| recorder.finish(now))
    }

    /// The recorder of why things take time, if there is one.
    #[inline]
    pub(crate) fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_deref_mut()
    }

    pub(super) fn trace_bio(&mut self, kind: TraceKind, bio: &Bio, task: TaskId, at_ns: u64) {
        let Some(trace) = &mut self.trace else { return };
        let Bio { op, flags, sector, sectors, .. } = *bio;
        trace.push(TraceEvent { at_ns, disk: 0, kind, task: Some(task), op, flags, sector, sectors });
    }

    pub(super) fn trace_request(&mut self, kind: TraceKind, request: &Request, at_ns: u64) {
        let Some(trace) = &mut self.trace else { return };
        let Request { op, flags, sector, sectors, context, .. } = *request;
        let task = self.task_of[context.index()];
        trace.push(TraceEvent { at_ns, disk: 0, kind, task, op, flags, sector, sectors });
    }

    pub(super) fn record_bio(&mut self, answer: Submitted, op: OpId, bio: &Bio, task: TaskId, now: u64) {
        let Some(recorder) = &mut self.recorder else { return };
        let requests = self.queue.requests();
        match answer {
            Submitted::Queued(rq) => recorder.queued(rq, op, task, is_plugged(&requests[rq], bio), now),
            Submitted::Merged(rq) => recorder.merged(rq, op, task),
            Submitted::Full | Submitted::NoRoom => recorder.full(task, now),
            // Its request begins when it is let in.
            Submitted::Held => {}
            Submitted::Done | Submitted::Refused(_) => {}
        }
        recorder.look_at_plugs(requests, now);
    }
}
