//! What happens in the block layer, for a trace and for those who want to know why things take time.

use fairlift_core::collections::Id;
use fairlift_core::queue::Submitted;
use fairlift_core::{Bio, Flags, Op, Request};

use super::BlockLayer;
use crate::anatomy::{Anatomy, Recorder, is_plugged};
use crate::engine::{OpId, TaskId};

/// What the block layer was asked, or asked the device, at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceEvent {
    /// When, nanoseconds.
    pub at_ns: u64,
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
}

impl BlockLayer {
    /// Record from now on what happens.
    pub fn start_trace(&mut self) {
        self.trace = Some(Vec::new());
    }

    /// What happened since the trace was started or last taken.
    pub fn take_trace(&mut self) -> Vec<TraceEvent> {
        self.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// How many events of the trace were not taken yet.
    pub(crate) fn traced(&self) -> usize {
        self.trace.as_ref().map_or(0, Vec::len)
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
        trace.push(TraceEvent { at_ns, kind, task: Some(task), op, flags, sector, sectors });
    }

    pub(super) fn trace_request(&mut self, kind: TraceKind, request: &Request, at_ns: u64) {
        let Some(trace) = &mut self.trace else { return };
        let Request { op, flags, sector, sectors, context, .. } = *request;
        let task = self.task_of[context.index()];
        trace.push(TraceEvent { at_ns, kind, task, op, flags, sector, sectors });
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
