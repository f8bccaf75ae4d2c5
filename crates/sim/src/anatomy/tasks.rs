//! What tasks wait for.

use std::collections::{BTreeMap, VecDeque};

use super::recorder::Critical;
use super::{Call, Cause, Step};
use crate::engine::TaskId;
use crate::group::Cgroup;

/// Why a task does not run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// For this cause, whatever other tasks and the device do.
    Because(Cause),
    /// I/O, its own or of pages it needs.
    Io,
    /// Something this task does for it.
    For(Option<TaskId>),
}

impl Why {
    pub(crate) const CPU: Why = Why::Because(Cause::Cpu);
    pub(crate) const SWITCH: Why = Why::Because(Cause::Switch);

    /// As a task's own totals count it.
    const fn cause(self) -> Cause {
        match self {
            Why::Because(cause) => cause,
            Why::Io => Cause::Device,
            Why::For(task) => Cause::Task(task),
        }
    }
}

/// A wait that is over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) why: Why,
    pub(super) step: Step,
    /// The request whose end ended it.
    pub(super) by: Option<Critical>,
}

/// A task as the recorder knows it.
#[derive(Debug, Default)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) group: Cgroup,
    /// What it waits for now, and since when.
    waiting: Option<(Why, u64)>,
    /// The request that was done when it was last woken.
    pub(super) woken_by: Option<Critical>,
    pub(super) step: Step,
    /// Since the oldest call that is still open began; oldest first.
    pub(super) waits: VecDeque<Wait>,
    pub(super) totals: BTreeMap<Cause, u64>,
    /// The call it is in: which, since when, and how many within each other.
    pub(super) call: Option<(Call, u64, u32)>,
    pub(super) requests: u64,
    pub(super) request_ns: u64,
    pub(super) causes: BTreeMap<Cause, u64>,
}

impl Task {
    pub(super) fn pends(&mut self, why: Why, now: u64) {
        if self.waiting.is_none() {
            self.waiting = Some((why, now));
            self.woken_by = None;
        }
    }

    /// It goes on; `kept`: a later call may ask why it did not.
    pub(super) fn resumes(&mut self, now: u64, kept: bool) {
        let Some((why, since)) = self.waiting.take() else { return };
        if now <= since {
            return;
        }
        *self.totals.entry(why.cause()).or_default() += now - since;
        if kept {
            self.waits.push_back(self.wait(why, since, now));
        }
    }

    /// The wait that is not over at `now`, if there is one.
    pub(super) fn open_wait(&self, now: u64) -> Option<Wait> {
        let (why, since) = self.waiting?;
        Some(self.wait(why, since, now))
    }

    fn wait(&self, why: Why, start_ns: u64, end_ns: u64) -> Wait {
        Wait { start_ns, end_ns, why, step: self.step, by: self.woken_by.filter(|_| why == Why::Io) }
    }
}
