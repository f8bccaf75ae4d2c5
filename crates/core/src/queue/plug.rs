//! Plugging: hold I/O back for a moment, so that more of it comes together and merges.
//!
//! Two eras again. Until 2.6.38 the *queue* is plugged (`era/queue_plug.rs`). Since 2.6.39 each *task* gathers the requests of
//! one system call on a list of its own, and hands them over when it is done or goes to sleep.
//!
//! Source: Linux 6.12 `block/blk-mq.c`.

use super::RequestQueue;
use crate::collections::{Id, List, ListLinks, Table};
use crate::context::ContextId;
use crate::request::RequestId;

/// Which kind of plug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plugging {
    /// The queue's plug.
    Queue {
        /// `unplug_thresh`: this many waiting requests unplug.
        threshold: u32,
        /// `unplug_delay`, nanoseconds.
        delay_ns: u64,
        /// Does a device without seeks go unplugged: 2.6.29 always, since 2.6.30 only if it also queues.
        spare_non_rotational: bool,
    },
    /// Each task's plug, opened and closed by the host.
    Task,
    /// None: every request goes to the elevator at once.
    Off,
}

impl Plugging {
    /// 2.6.30 to 2.6.38.
    pub const QUEUE: Plugging =
        Plugging::Queue { threshold: 4, delay_ns: 3 * crate::MS, spare_non_rotational: true };
}

/// Requests on a task's plug that make the next one flush it first (`BLK_MAX_REQUEST_COUNT`).
const TASK_PLUG_REQUESTS: usize = 32;
/// So does a last request of this many sectors, 128 KiB (`BLK_PLUG_FLUSH_SIZE`).
const TASK_PLUG_SECTORS: u32 = 256;

/// The tasks' plugs.
#[derive(Debug)]
pub(super) struct TaskPlugs {
    plugs: Table<TaskPlug>,
    links: ListLinks<RequestId>,
}

#[derive(Debug, Clone, Copy, Default)]
struct TaskPlug {
    open: bool,
    list: List<RequestId>,
}

impl TaskPlugs {
    /// No plug at all takes no memory.
    pub(super) fn new(plugging: Plugging, contexts: usize, requests: usize) -> TaskPlugs {
        let on = plugging == Plugging::Task;
        TaskPlugs {
            plugs: Table::new(TaskPlug::default(), if on { contexts } else { 0 }),
            links: ListLinks::new(if on { requests } else { 0 }),
        }
    }

    pub(super) fn open(&mut self, context: ContextId) {
        if let Some(plug) = self.plugs.get_mut(context.index()) {
            plug.open = true;
        }
    }

    pub(super) fn close(&mut self, context: ContextId) {
        if let Some(plug) = self.plugs.get_mut(context.index()) {
            plug.open = false;
        }
    }

    pub(super) fn is_open(&self, context: ContextId) -> bool {
        self.plugs.get(context.index()).is_some_and(|p| p.open)
    }

    /// The request a bio of this task could be merged with: the newest.
    pub(super) fn newest(&self, context: ContextId) -> Option<RequestId> {
        self.plugs.get(context.index())?.list.back()
    }

    pub(super) fn len(&self, context: ContextId) -> usize {
        self.plugs.get(context.index()).map_or(0, |p| p.list.len())
    }

    pub(super) fn push(&mut self, context: ContextId, rq: RequestId) {
        self.plugs[context.index()].list.push_back(&mut self.links, rq);
    }

    pub(super) fn pop(&mut self, context: ContextId) -> Option<RequestId> {
        self.plugs.get_mut(context.index())?.list.pop_front(&mut self.links)
    }
}

impl RequestQueue {
    /// The task starts a system call that may submit several bios ([`Plugging::Task`] only).
    pub fn open_plug(&mut self, context: ContextId) {
        self.task_plugs.open(self.contexts().known(context));
    }

    /// The task is done submitting, or goes to sleep.
    pub fn close_plug(&mut self, context: ContextId, now: u64) {
        self.task_plugs.close(context);
        self.flush_task_plug(context, now);
    }

    pub(super) fn add_to_task_plug(&mut self, context: ContextId, rq: RequestId, now: u64) {
        let merging = self.config.nomerges.looks();
        let big = self
            .task_plugs
            .newest(context)
            .is_some_and(|last| merging && self.requests()[last].sectors >= TASK_PLUG_SECTORS);
        if big || self.task_plugs.len(context) >= TASK_PLUG_REQUESTS {
            self.flush_task_plug(context, now);
        }
        self.task_plugs.push(context, rq);
    }

    pub(super) fn flush_task_plug(&mut self, context: ContextId, now: u64) {
        while let Some(rq) = self.task_plugs.pop(context) {
            if !self.insert_merged(rq, now) {
                self.insert_sorted(rq, now);
            }
        }
    }
}
