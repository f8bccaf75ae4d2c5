//! A device that serves one request after the other, and tasks that send the next request when one is done: enough of a
//! machine to see who gets what of the device's time.

use std::prelude::v1::*;
use std::vec;

use crate::elevator::{self, Dispatch};
use crate::group::{GroupId, GroupParams};
use crate::queue::{Admission, Plugging, QueueConfig, RequestQueue, Submitted};
use crate::{Bio, ContextId, Flags, IoPrio, Op, RequestId};

/// What a task does.
#[derive(Clone, Copy)]
pub(super) struct Load {
    /// Requests at a time.
    pub(super) depth: u32,
    /// What one takes of the device.
    pub(super) service_ns: u64,
    pub(super) sectors: u32,
    /// Between an answer and the next request.
    pub(super) think_ns: u64,
    pub(super) op: Op,
    pub(super) flags: Flags,
}

impl Load {
    pub(super) const READS: Load =
        Load { depth: 4, service_ns: 1_000_000, sectors: 8, think_ns: 0, op: Op::Read, flags: Flags::NONE };
}

struct Task {
    context: ContextId,
    group: GroupId,
    load: Load,
    position: u64,
}

pub(super) struct Loop {
    pub(super) q: RequestQueue,
    pub(super) now: u64,
    tasks: Vec<Task>,
    /// When whose next requests come.
    arrivals: Vec<(u64, usize)>,
    /// In the device, the first one being served until then.
    device: Vec<RequestId>,
    depth: usize,
    busy_until_ns: u64,
    /// Device time of each group, by its index; requests and sectors likewise.
    pub(super) time_ns: Vec<u64>,
    pub(super) requests: Vec<u64>,
    pub(super) sectors: Vec<u64>,
    /// Longest time from submission to completion, by group.
    pub(super) latency_max_ns: Vec<u64>,
    /// Were requests of two groups in the device at a time?
    pub(super) mixed: bool,
}

impl Loop {
    pub(super) fn new((elevator, profile): (&str, &str), depth: usize) -> Loop {
        const GROUPS: usize = 16;
        let config = QueueConfig {
            contexts_max: 128,
            groups_max: GROUPS,
            plugging: Plugging::Off,
            admission: Admission::Pools { nr_requests: 512 },
            tick_ns: 0,
            ..QueueConfig::default()
        };
        let built = (elevator::find(elevator).unwrap().build)(&config.elevator(), profile);
        let counts = vec![0; 2 * GROUPS + 1];
        Loop {
            q: RequestQueue::new(config, built),
            now: 0,
            tasks: Vec::new(),
            arrivals: Vec::new(),
            device: Vec::new(),
            depth,
            busy_until_ns: 0,
            time_ns: counts.clone(),
            requests: counts.clone(),
            sectors: counts.clone(),
            latency_max_ns: counts,
            mixed: false,
        }
    }

    pub(super) fn group(&mut self, parent: GroupId, weight: u32) -> GroupId {
        self.q.groups_mut().create(parent, GroupParams::weight(weight)).unwrap()
    }

    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.q.groups_mut().set(name, value).unwrap();
    }

    pub(super) fn task(&mut self, group: GroupId, load: Load) {
        let context = self.q.contexts_mut().create_in(group, IoPrio::DEFAULT);
        let task = self.tasks.len();
        self.tasks.push(Task { context, group, load, position: 10_000_000 * task as u64 });
        self.arrivals.extend((0..load.depth).map(|_| (self.now, task)));
    }

    fn submit(&mut self, index: usize) {
        let task = &mut self.tasks[index];
        let bio = Bio {
            cookie: index as u64,
            op: task.load.op,
            flags: Flags::NOMERGE | task.load.flags,
            sector: task.position,
            sectors: task.load.sectors,
            segments: 1,
            context: task.context,
            ioprio: None,
            group: None,
        };
        task.position += u64::from(task.load.sectors);
        assert!(matches!(self.q.submit(bio, self.now), Submitted::Queued(_)), "there are slots for all");
    }

    /// Run until then; `seen` is called after each completion.
    pub(super) fn run(&mut self, until_ns: u64, mut seen: impl FnMut(&Loop)) {
        while self.now < until_ns {
            let again_ns = self.fill_device();
            let next_ns = self.arrivals.iter().map(|(at, _)| *at).min().unwrap_or(u64::MAX);
            let done_ns = if self.device.is_empty() { u64::MAX } else { self.busy_until_ns };
            let at = next_ns.min(done_ns).min(again_ns);
            assert!(at != u64::MAX, "nothing happens any more");
            self.now = self.now.max(at);
            let now = self.now;
            let due: Vec<_> =
                self.arrivals.iter().filter(|(at, _)| *at <= now).map(|(_, task)| *task).collect();
            self.arrivals.retain(|(at, _)| *at > now);
            due.into_iter().for_each(|task| self.submit(task));
            if done_ns <= now {
                self.finish_first();
                seen(self);
            }
        }
    }

    /// When the queue wants to be asked again.
    fn fill_device(&mut self) -> u64 {
        while self.device.len() < self.depth {
            match self.q.dispatch(self.now) {
                Dispatch::Issue(rq) => {
                    let group = self.q.requests()[rq].group;
                    self.mixed |= self.device.iter().any(|other| self.q.requests()[*other].group != group);
                    self.device.push(rq);
                    if self.device.len() == 1 {
                        self.busy_until_ns = self.now + self.service_ns(rq);
                    }
                }
                Dispatch::Idle { until } => return until,
                Dispatch::Empty | Dispatch::Busy => break,
            }
        }
        u64::MAX
    }

    fn task_of(&self, rq: RequestId) -> usize {
        let context = self.q.requests()[rq].context;
        self.tasks.iter().position(|task| task.context == context).expect("each has a context of its own")
    }

    fn service_ns(&self, rq: RequestId) -> u64 {
        self.tasks[self.task_of(rq)].load.service_ns
    }

    fn finish_first(&mut self) {
        use crate::collections::Id;
        let rq = self.device.remove(0);
        let (request, task) = (self.q.requests()[rq], self.task_of(rq));
        let group = self.tasks[task].group.index();
        self.time_ns[group] += self.service_ns(rq);
        self.requests[group] += 1;
        self.sectors[group] += u64::from(request.sectors);
        let latency = &mut self.latency_max_ns[group];
        *latency = (*latency).max(self.now - request.start_ns);
        self.q.complete(rq, self.now, |_| {});
        self.arrivals.push((self.now + self.tasks[task].load.think_ns, task));
        if let Some(next) = self.device.first() {
            self.busy_until_ns = self.now + self.service_ns(*next);
        }
    }
}
