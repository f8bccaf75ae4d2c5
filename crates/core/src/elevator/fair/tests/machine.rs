//! A machine for closed loops: tasks, one queue under fair, a device that serves so many at a time.

use std::vec::Vec;

use super::super::DESCRIPTOR;
use super::super::report::Found;
use crate::context::{ContextId, IoPrio};
use crate::elevator::{AnyElevator, Config, DeviceState, Dispatch};
use crate::group::{GroupId, GroupParams};
use crate::queue::ElevatorQueue;
use crate::request::{self, Flags, Op, RequestId};

pub(super) const REQUESTS: usize = 512;

pub(super) fn build() -> AnyElevator {
    (DESCRIPTOR.build)(&Config::for_queue(REQUESTS, 64, 4, 0), "")
}

/// What a task does, over and over.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) depth: usize,
    pub(super) think_ns: u64,
    pub(super) sequential: bool,
    pub(super) op: Op,
    pub(super) flags: Flags,
    pub(super) ioprio: IoPrio,
}

pub(super) const READS: Load = Load {
    depth: 1,
    think_ns: 0,
    sequential: false,
    op: Op::Read,
    flags: Flags::NONE,
    ioprio: IoPrio::DEFAULT,
};

struct Task {
    context: ContextId,
    load: Load,
    sector: u64,
    /// When requests are to be sent.
    due_ns: Vec<u64>,
    done: u64,
    busy_ns: u64,
    waited_ns: Vec<u64>,
}

/// The device: so many at a time; a request takes `access_ns` and, if it does not continue the one served last, `seek_ns`.
#[derive(Clone, Copy)]
pub(super) struct Device {
    pub(super) at_a_time: usize,
    pub(super) access_ns: u64,
    pub(super) seek_ns: u64,
    pub(super) slots: usize,
    pub(super) rotational: bool,
}

pub(super) struct Machine {
    pub(super) q: ElevatorQueue,
    pub(super) now: u64,
    device: Device,
    tasks: Vec<Task>,
    /// In the order of arrival: whose, and when it will be done if it is being served.
    in_device: Vec<(RequestId, usize, Option<u64>)>,
    head: u64,
    random: u64,
}

impl Machine {
    pub(super) fn new(device: Device) -> Machine {
        Machine::of(
            ElevatorQueue::new(REQUESTS, 64, device.rotational, build()).with_depth(device.slots as u32),
            device,
        )
    }

    /// With groups of these weights below the root.
    pub(super) fn with_groups<const N: usize>(device: Device, weights: [u32; N]) -> (Machine, [GroupId; N]) {
        let q = ElevatorQueue::new(REQUESTS, 64, device.rotational, build()).with_groups(N);
        let mut q = q.with_depth(device.slots as u32);
        let create =
            |weight| q.groups_mut().create(GroupId::ROOT, GroupParams::weight(weight)).expect("room");
        let groups = weights.map(create);
        (Machine::of(q, device), groups)
    }

    fn of(q: ElevatorQueue, device: Device) -> Machine {
        Machine { q, now: 1, device, tasks: Vec::new(), in_device: Vec::new(), head: 0, random: 1 }
    }

    pub(super) fn task(&mut self, load: Load) -> usize {
        self.task_in(GroupId::ROOT, load)
    }

    /// A task of `group`.
    pub(super) fn task_in(&mut self, group: GroupId, load: Load) -> usize {
        let context = self.q.contexts_mut().create_in(group, load.ioprio);
        let sector = self.tasks.len() as u64 * (1 << 24);
        let due_ns = std::vec![self.now; load.depth];
        self.tasks.push(Task { context, load, sector, due_ns, done: 0, busy_ns: 0, waited_ns: Vec::new() });
        self.tasks.len() - 1
    }

    pub(super) fn found(&self) -> Found {
        let AnyElevator::Fair(fair) = self.q.any_elevator() else { panic!("fair was built") };
        let [asynchronous, sync] = self.q.in_flight();
        let device = DeviceState {
            rotational: self.device.rotational,
            in_flight: [asynchronous, sync],
            depth: self.device.slots as u32,
            flushes: 0,
        };
        fair.findings(&device, self.now)
    }

    /// Requests of `task` that are done.
    pub(super) fn done(&self, task: usize) -> u64 {
        self.tasks[task].done
    }

    /// The part of the device's time that went to `task`, per mille of what went to all.
    pub(super) fn permille(&self, task: usize) -> u64 {
        let whole = self.tasks.iter().map(|task| task.busy_ns).sum::<u64>();
        self.tasks[task].busy_ns * 1000 / whole
    }

    /// The longest and the mean time from sending to the answer.
    pub(super) fn waited_ns(&self, task: usize) -> (u64, u64) {
        let waited = &self.tasks[task].waited_ns;
        let longest = waited.iter().max().copied().unwrap_or(0);
        (longest, waited.iter().sum::<u64>() / waited.len().max(1) as u64)
    }

    pub(super) fn forget(&mut self) {
        for task in &mut self.tasks {
            (task.done, task.busy_ns) = (0, 0);
            task.waited_ns.clear();
        }
    }

    pub(super) fn run(&mut self, span_ns: u64) {
        let end_ns = self.now + span_ns;
        while self.now < end_ns {
            self.submit();
            let until = self.fill();
            let done = self.in_device.iter().filter_map(|(_, _, done)| *done).min();
            let due = self.tasks.iter().flat_map(|task| task.due_ns.iter().copied()).min();
            let next = [Some(end_ns), done, due, until].into_iter().flatten().min().unwrap_or(end_ns);
            self.now = next.max(self.now);
            self.complete();
        }
    }

    fn submit(&mut self) {
        for task in &mut self.tasks {
            while let Some(at) = task.due_ns.iter().position(|due| *due <= self.now) {
                task.due_ns.swap_remove(at);
                let sector = match task.load.sequential {
                    true => task.sector,
                    false => {
                        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        task.sector + (self.random >> 44) * 8
                    }
                };
                if task.load.sequential {
                    task.sector += 8;
                }
                let Load { op, flags, .. } = task.load;
                let mut request = request::request(op, flags, sector, 8, task.context, self.now);
                request.group = self.q.contexts()[task.context].group;
                let rq = self.q.take(request).expect("a slot for each request");
                self.q.insert(rq, self.now);
            }
        }
    }

    /// As much as the queue gives and the device takes; until when it waits.
    fn fill(&mut self) -> Option<u64> {
        let mut answer = Dispatch::Empty;
        while self.in_device.len() < self.device.slots {
            answer = self.q.dispatch(self.now);
            let Dispatch::Issue(rq) = answer else { break };
            let context = self.q.requests()[rq].context;
            let task = self.tasks.iter().position(|task| task.context == context).expect("a task's");
            self.in_device.push((rq, task, None));
            self.serve();
        }
        let waits = self.q.queued() > 0 && self.in_device.is_empty();
        assert!(!waits || matches!(answer, Dispatch::Idle { .. }), "{answer:?} with an empty device");
        match answer {
            Dispatch::Idle { until } => Some(until),
            _ => None,
        }
    }

    fn serve(&mut self) {
        let served = self.in_device.iter().filter(|(_, _, done)| done.is_some()).count();
        let Device { at_a_time, access_ns, seek_ns, .. } = self.device;
        for (rq, _, done) in
            self.in_device.iter_mut().filter(|(_, _, done)| done.is_none()).take(at_a_time - served)
        {
            let request = &self.q.requests()[*rq];
            let takes_ns = access_ns + if request.sector == self.head { 0 } else { seek_ns };
            self.head = request.end();
            *done = Some(self.now + takes_ns);
        }
    }

    fn complete(&mut self) {
        while let Some(at) =
            self.in_device.iter().position(|(_, _, done)| done.is_some_and(|at| at <= self.now))
        {
            let (rq, index, _) = self.in_device.remove(at);
            let request = self.q.requests()[rq];
            let task = &mut self.tasks[index];
            task.done += 1;
            task.busy_ns += self.device.access_ns;
            task.waited_ns.push(self.now - request.start_ns);
            task.due_ns.push(self.now + task.load.think_ns);
            self.q.complete(rq, self.now);
            self.q.release(rq);
            self.serve();
        }
    }
}
