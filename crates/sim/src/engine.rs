//! Clock, events and tasks: the executor on which simulated programs run.
//!
//! Programs are async functions. A task is polled when something it waits for has happened; between two polls no
//! simulated time passes. At one instant things happen in a fixed order: device, queue timer, task timers by age; tasks run
//! in the order they were woken.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as PollContext, Poll, Waker};

use fairlift_core::queue::Admission;
use fairlift_core::{ContextId, IoPrio};

use serde::Serialize;

use crate::anatomy::{Anatomy, Call, Cause, Recorder, Step, Why};
use crate::block::{BlockLayer, Submitter};
use crate::group::{Cgroup, GroupResult, GroupTree, results};
use crate::kernel::{FileId, Kernel, Layout, NoSpace};
use crate::recording::Recording;
use crate::scheduler::host::HostSettings;

/// A simulated task (a thread of a program or of the kernel).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct TaskId(pub(crate) usize);

/// Everything but the tasks' code: what a poll may touch.
#[derive(Debug)]
pub struct Machine {
    now: u64,
    seq: u64,
    timers: BinaryHeap<Reverse<(u64, u64, TaskId)>>,
    ready: VecDeque<TaskId>,
    tasks: Vec<TaskState>,
    /// Program tasks that have not ended: the run is over when there is none.
    programs_left: usize,
    /// Tasks started by tasks, not polled yet.
    born: Vec<Born>,
    /// Block layer and device.
    pub(crate) block: BlockLayer,
    /// Files, page cache and version rules.
    pub(crate) kernel: Kernel,
    /// What the groups got while it counted, if that is over.
    groups_at_close: Option<Vec<GroupResult>>,
    /// The run ends at this time.
    limit_ns: u64,
    /// Steps of the clock since the caller of the run heard of it last.
    steps: u32,
}

#[derive(Debug)]
struct TaskState {
    context: ContextId,
    cgroup: Cgroup,
    in_ready: bool,
    program: bool,
    name: String,
    /// Processor time so far, nanoseconds.
    cpu_ns: u64,
    ended: bool,
    /// Tasks that wait for its end.
    joining: Vec<TaskId>,
    /// Finished asynchronous operations, oldest first.
    completions: VecDeque<OpDone>,
}

/// An operation on its way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpId(pub(crate) u32);

impl OpId {
    /// A small number: operations that are in flight or not yet collected have different ones.
    pub fn number(self) -> usize {
        self.0 as usize
    }
}

/// A finished operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpDone {
    /// Which one.
    pub op: OpId,
    /// When its last bio was done, nanoseconds.
    pub at_ns: u64,
}

impl Machine {
    /// The simulated time, nanoseconds since the start.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Block layer and device.
    pub fn block(&self) -> &BlockLayer {
        &self.block
    }

    pub(crate) fn wake(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.0];
        if !state.in_ready {
            state.in_ready = true;
            self.ready.push_back(task);
        }
    }

    pub(crate) fn wake_at(&mut self, at: u64, task: TaskId) {
        self.seq += 1;
        self.timers.push(Reverse((at, self.seq, task)));
    }

    /// Enter a new task; its code follows.
    fn add_task(&mut self, ioprio: IoPrio, cgroup: Cgroup, program: bool) -> TaskId {
        let task = TaskId(self.tasks.len());
        let context = self.block.create_context(ioprio, task, cgroup);
        self.tasks.push(TaskState {
            context,
            cgroup,
            in_ready: false,
            program,
            name: format!("task{}", task.0),
            cpu_ns: 0,
            ended: false,
            joining: Vec::new(),
            completions: VecDeque::new(),
        });
        self.programs_left += usize::from(program);
        self.wake(task);
        if let Some(recorder) = self.block.recorder() {
            recorder.named(task, &self.tasks[task.0].name);
            recorder.belongs(task, cgroup);
        }
        task
    }

    /// Call a task something (`comm`), for traces.
    pub fn set_name(&mut self, task: TaskId, name: &str) {
        name.clone_into(&mut self.tasks[task.0].name);
        if let Some(recorder) = self.block.recorder() {
            recorder.named(task, name);
        }
    }

    /// What a task is called.
    pub fn name_of(&self, task: TaskId) -> &str {
        &self.tasks[task.0].name
    }

    /// The block layer, to start and take its trace.
    pub fn block_mut(&mut self) -> &mut BlockLayer {
        &mut self.block
    }

    /// Record from now on why requests and calls take as long as they do.
    pub fn start_anatomy(&mut self) {
        self.block.start_anatomy();
    }

    /// What was recorded, if it was.
    pub fn take_anatomy(&mut self) -> Option<Anatomy> {
        let now = self.now;
        self.block.take_anatomy(now)
    }

    /// A file that is there, written out, before the run.
    ///
    /// # Errors
    /// When it does not fit.
    pub fn make_file(&mut self, name: &str, bytes: u64) -> Result<FileId, NoSpace> {
        self.kernel.create_file(name, bytes, Layout::Preallocated)
    }

    /// Files, page cache, file system.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// Processor time of the task so far, nanoseconds.
    pub(crate) fn cpu_ns_of(&self, task: TaskId) -> u64 {
        self.tasks[task.0].cpu_ns
    }

    pub(crate) fn context_of(&self, task: TaskId) -> ContextId {
        self.tasks[task.0].context
    }

    pub(crate) fn cgroup_of(&self, task: TaskId) -> Cgroup {
        self.tasks[task.0].cgroup
    }

    /// The run has these groups, and `settings` say what becomes of them. Before the first task.
    pub(crate) fn use_groups(&mut self, tree: &GroupTree, settings: &HostSettings) {
        self.block.use_groups(tree, settings);
        // Reads and what waits for nothing but a slot need some too.
        let writes = match self.block.queue().config().admission {
            Admission::Pools { nr_requests } => u64::from(nr_requests) * 3 / 4,
            Admission::Tags { nr_requests } => u64::from(nr_requests) / 2,
        };
        self.kernel.use_groups(tree, settings, writes);
    }

    /// What the groups got so far does not count.
    pub(crate) fn restart_group_figures(&mut self) {
        let now = self.now;
        self.kernel.cache.restart_group_figures();
        self.block.restart_meters(now);
    }

    /// What the groups get from now on does not count.
    pub(crate) fn close_group_figures(&mut self, tree: &GroupTree) {
        self.groups_at_close = Some(self.group_results(tree));
    }

    /// What the groups got.
    pub(crate) fn group_results(&mut self, tree: &GroupTree) -> Vec<GroupResult> {
        if let Some(results) = &self.groups_at_close {
            return results.clone();
        }
        let now = self.now;
        if !self.block.disks().is_empty() {
            return self.group_results_of_volume(tree);
        }
        let Some(meter) = self.block.meter() else { return Vec::new() };
        let cache = &self.kernel.cache;
        let own = |group| {
            let mut figures = meter.figures(group, cache.unwritten_since(group), now);
            (figures.dirtied_bytes, figures.written_bytes) = cache.bytes_of(group);
            figures
        };
        let mut results = results(tree, own, now - meter.since_ns());
        for (result, over_time) in results.iter_mut().zip(meter.over_time(now)) {
            result.over_time = Some(over_time);
        }
        self.block.add_goals(tree, &mut results);
        results
    }

    /// The same of a volume: what the groups got of its disks together.
    fn group_results_of_volume(&mut self, tree: &GroupTree) -> Vec<GroupResult> {
        let now = self.now;
        let Some(since_ns) = self.block.meter().map(|meter| meter.since_ns()) else { return Vec::new() };
        let (cache, block) = (&self.kernel.cache, &self.block);
        let own = |group| {
            let mut figures = block.figures_below(group, cache.unwritten_since(group), now);
            (figures.dirtied_bytes, figures.written_bytes) = cache.bytes_of(group);
            figures
        };
        let mut results = results(tree, own, now - since_ns);
        self.block.add_goals(tree, &mut results);
        results
    }

    /// Who submits a bio, for `cgroup` or for its own group.
    pub(crate) fn submitter(&self, task: TaskId, cgroup: Option<Cgroup>) -> Submitter {
        let state = &self.tasks[task.0];
        let cgroup = cgroup.unwrap_or(state.cgroup);
        let backlog_since_ns = self.kernel.cache.unwritten_since(cgroup);
        Submitter { task, cgroup, backlog_since_ns, daemon: !state.program }
    }

    /// Take the task's oldest finished operation, or the one called `op`.
    pub(crate) fn take_completion(&mut self, task: TaskId, op: Option<OpId>) -> Option<OpDone> {
        let completions = &mut self.tasks[task.0].completions;
        let done = match op {
            None => completions.pop_front(),
            Some(op) => completions.remove(completions.iter().position(|d| d.op == op)?),
        }?;
        self.block.forget_op(done.op);
        Some(done)
    }

    /// Let the block layer offer the device what it has, and hand out what is done.
    fn settle(&mut self) {
        self.block.pump(self.now);
        self.deliver();
    }

    /// Tell tasks and page cache what the block layer finished, and who may try again for a slot.
    #[inline(always)] // most often there is none, and it is asked eight times an I/O
    fn deliver(&mut self) {
        if self.block.has_news() {
            self.deliver_news();
        }
    }

    #[inline(never)]
    fn deliver_news(&mut self) {
        while let Some(done) = self.block.pop_done() {
            let ended_by = self.block.recorder().and_then(Recorder::next_done);
            match done.owner {
                crate::block::Owner::Task(task) => {
                    if let Some(recorder) = self.block.recorder() {
                        recorder.woken(task, ended_by);
                    }
                    self.tasks[task.0].completions.push_back(OpDone { op: done.op, at_ns: done.at_ns });
                    if !self.block.keeps_turn(task) {
                        self.wake(task);
                    }
                }
                // The volume itself has taken it.
                crate::block::Owner::Volume(_) => {}
                crate::block::Owner::Pages(io) => {
                    self.block.forget_op(done.op);
                    for task in self.kernel.pages_done(io) {
                        if let Some(recorder) = self.block.recorder() {
                            recorder.woken(task, ended_by);
                        }
                        self.wake(task);
                    }
                }
            }
        }
        while let Some(task) = self.block.pop_woken() {
            self.wake(task);
        }
    }

    /// The time shall be `at` when `task`, which is running, goes on. `true`: it is. `false`: the task is woken then.
    ///
    /// Where nothing happens and no other task runs before, the result is the same as if the task had been suspended meanwhile.
    fn pass_time(&mut self, at: u64, task: TaskId) -> bool {
        if !self.may_pass_time(at) {
            self.wake_at(at, task);
            return false;
        }
        self.advance_to(at);
        let alone = self.ready.is_empty();
        self.wake(task);
        self.settle();
        if alone {
            // It goes on at once, before those whom the block layer woke.
            let first = self.ready.pop_front();
            debug_assert_eq!(first, Some(task));
            self.tasks[task.0].in_ready = false;
        }
        alone
    }

    /// Is the running task the only one that does anything until after `at`?
    fn may_pass_time(&mut self, at: u64) -> bool {
        let timer_is_first = self.timers.peek().is_some_and(|Reverse((due, ..))| *due <= at);
        if timer_is_first || at > self.limit_ns || self.steps >= STEPS_UNHEARD || self.programs_left == 0 {
            return false;
        }
        // What the task did up to now comes before what happens meanwhile. (The record tells of each time a task waits.)
        if self.block.recorder().is_some() || !self.born.is_empty() || !self.ready.is_empty() {
            return false;
        }
        self.settle();
        self.steps += 1;
        self.ready.is_empty() && self.next_event().is_none_or(|next| next > at)
    }

    fn next_event(&self) -> Option<u64> {
        let timer = self.timers.peek().map(|Reverse((at, ..))| *at);
        earlier(timer, self.block.next_event())
    }

    fn advance_to(&mut self, at: u64) {
        debug_assert!(at >= self.now, "time goes forward");
        self.now = at;
        self.block.advance(at);
        self.deliver();
        while let Some(Reverse((due, _, task))) = self.timers.peek().copied() {
            if due > at {
                break;
            }
            self.timers.pop();
            self.wake(task);
        }
    }
}

/// The earlier of two times, if there is one.
#[inline]
pub(crate) fn earlier(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, other) => one.or(other),
    }
}

type Program = Pin<Box<dyn Future<Output = ()>>>;

/// The code of a task that another one started.
struct Born(Program);

impl std::fmt::Debug for Born {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Born")
    }
}

/// A computer with its tasks.
pub struct Simulation {
    machine: Rc<RefCell<Machine>>,
    programs: Vec<Option<Program>>,
    recording: Option<Recording>,
}

/// Events of the block layer that are kept before a recording gets them.
const RECORDED_AT_ONCE: usize = 4096;
/// Steps of the clock of which the caller of a run hears once.
const STEPS_UNHEARD: u32 = 8192;

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All programs ended.
    Finished,
    /// The time limit came first.
    TimeLimit,
    /// Programs wait for something that will never happen. A bug in a program or in a model.
    Stuck,
}

impl Simulation {
    /// A computer with this block layer and kernel, at time 0.
    pub fn new(block: BlockLayer, kernel: Kernel) -> Simulation {
        let machine = Machine {
            now: 0,
            seq: 0,
            timers: BinaryHeap::new(),
            ready: VecDeque::new(),
            tasks: Vec::new(),
            programs_left: 0,
            born: Vec::new(),
            block,
            kernel,
            groups_at_close: None,
            limit_ns: u64::MAX,
            steps: 0,
        };
        Simulation { machine: Rc::new(RefCell::new(machine)), programs: Vec::new(), recording: None }
    }

    /// Write down from now on what happens in the block layer.
    pub fn record(&mut self, recording: Recording) {
        let mut machine = self.machine.borrow_mut();
        machine.block.start_trace();
        machine.block.start_decisions();
        drop(machine);
        self.recording = Some(recording);
    }

    /// The recording, complete up to now.
    pub fn take_recording(&mut self) -> Option<Recording> {
        self.write_down();
        self.recording.take()
    }

    /// Give the recording what happened since the last time.
    fn write_down(&mut self) {
        let Some(recording) = &mut self.recording else { return };
        let mut machine = self.machine.borrow_mut();
        for event in machine.block.take_trace() {
            recording.event(&event, event.task.map_or("", |task| machine.name_of(task)));
        }
    }

    /// Start a program's task; the run lasts until all of these ended. Its code gets the [`Sys`] with which it calls the
    /// kernel.
    pub fn spawn<F, P>(&mut self, ioprio: IoPrio, program: P) -> TaskId
    where
        P: FnOnce(Sys) -> F,
        F: Future<Output = ()> + 'static,
    {
        self.start(ioprio, Cgroup::ROOT, true, program)
    }

    /// The same, in a group.
    pub fn spawn_in<F, P>(&mut self, cgroup: Cgroup, ioprio: IoPrio, program: P) -> TaskId
    where
        P: FnOnce(Sys) -> F,
        F: Future<Output = ()> + 'static,
    {
        self.start(ioprio, cgroup, true, program)
    }

    /// Start a task of the kernel's; it does not keep the run going.
    pub fn spawn_daemon<F, P>(&mut self, ioprio: IoPrio, program: P) -> TaskId
    where
        P: FnOnce(Sys) -> F,
        F: Future<Output = ()> + 'static,
    {
        self.start(ioprio, Cgroup::ROOT, false, program)
    }

    /// Start a program's task that does not keep the run going, in a group.
    pub fn spawn_background<F, P>(&mut self, cgroup: Cgroup, ioprio: IoPrio, program: P) -> TaskId
    where
        P: FnOnce(Sys) -> F,
        F: Future<Output = ()> + 'static,
    {
        self.start(ioprio, cgroup, false, program)
    }

    fn start<F, P>(&mut self, ioprio: IoPrio, cgroup: Cgroup, is_program: bool, program: P) -> TaskId
    where
        P: FnOnce(Sys) -> F,
        F: Future<Output = ()> + 'static,
    {
        let task = self.machine.borrow_mut().add_task(ioprio, cgroup, is_program);
        let sys = Sys { machine: Rc::clone(&self.machine), task };
        self.programs.push(Some(Box::pin(program(sys))));
        task
    }

    /// Run until all programs ended or `limit_ns` is reached; `progress` hears the simulated time now and then.
    pub fn run(&mut self, limit_ns: u64, progress: &mut dyn FnMut(u64)) -> Outcome {
        let mut poll = PollContext::from_waker(Waker::noop());
        self.machine.borrow_mut().limit_ns = limit_ns;
        loop {
            self.run_ready(&mut poll);
            if self.recording.is_some() && self.machine.borrow().block.traced() >= RECORDED_AT_ONCE {
                self.write_down();
            }
            let mut machine = self.machine.borrow_mut();
            machine.steps += 1;
            if machine.steps > STEPS_UNHEARD {
                machine.steps = 0;
                progress(machine.now);
            }
            if machine.programs_left == 0 {
                return Outcome::Finished;
            }
            match machine.next_event() {
                None => return Outcome::Stuck,
                Some(at) if at > limit_ns => {
                    machine.now = limit_ns;
                    return Outcome::TimeLimit;
                }
                Some(at) => {
                    machine.advance_to(at);
                    machine.settle();
                }
            }
        }
    }

    fn run_ready(&mut self, poll: &mut PollContext<'_>) {
        loop {
            let task = {
                let mut machine = self.machine.borrow_mut();
                let Some(task) = machine.ready.pop_front() else { return };
                machine.tasks[task.0].in_ready = false;
                task
            };
            let Some(program) = self.programs[task.0].as_mut() else { continue };
            let ended = program.as_mut().poll(poll).is_ready();
            let mut machine = self.machine.borrow_mut();
            if ended {
                self.programs[task.0] = None;
                machine.programs_left -= usize::from(machine.tasks[task.0].program);
                let (context, now) = (machine.tasks[task.0].context, machine.now);
                machine.block.exit_context(context, now);
                machine.tasks[task.0].ended = true;
                for waiting in std::mem::take(&mut machine.tasks[task.0].joining) {
                    machine.wake(waiting);
                }
            }
            machine.settle();
            if !machine.born.is_empty() {
                self.programs.extend(machine.born.drain(..).map(|Born(program)| Some(program)));
            }
        }
    }

    /// Look at the machine after a run.
    pub fn with_machine<R>(&self, look: impl FnOnce(&mut Machine) -> R) -> R {
        look(&mut self.machine.borrow_mut())
    }
}

/// A task's way into the kernel: simulated system calls. The calls that do I/O are in [`crate::kernel`].
#[derive(Clone, Debug)]
pub struct Sys {
    pub(crate) machine: Rc<RefCell<Machine>>,
    pub(crate) task: TaskId,
}

impl Sys {
    /// The time, nanoseconds since the start of the simulation.
    pub fn now(&self) -> u64 {
        self.machine.borrow().now
    }

    /// The caller's io context.
    pub fn context(&self) -> ContextId {
        self.machine.borrow().context_of(self.task)
    }

    /// Call this task something (`prctl(PR_SET_NAME)`), for traces.
    pub fn set_name(&self, name: &str) {
        self.machine.borrow_mut().set_name(self.task, name);
    }

    /// This task.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// Start another task (fork): it runs beside the caller, in the same group, with an io context of its own. The children of a daemon are
    /// daemons.
    pub fn spawn<F, P>(&self, ioprio: IoPrio, program: P) -> TaskId
    where
        P: FnOnce(Sys) -> F,
        F: Future<Output = ()> + 'static,
    {
        let task = {
            let mut machine = self.machine.borrow_mut();
            let parent = &machine.tasks[self.task.0];
            let (is_program, cgroup, name) = (parent.program, parent.cgroup, parent.name.clone());
            let task = machine.add_task(ioprio, cgroup, is_program);
            machine.set_name(task, &name);
            task
        };
        let sys = Sys { machine: Rc::clone(&self.machine), task };
        let program = Born(Box::pin(program(sys)));
        self.machine.borrow_mut().born.push(program);
        task
    }

    /// Start a task of the kernel's, in the root; it does not keep the run going.
    pub(crate) fn spawn_kernel<F, P>(&self, name: &str, program: P) -> TaskId
    where
        P: FnOnce(Sys) -> F,
        F: Future<Output = ()> + 'static,
    {
        let task = {
            let mut machine = self.machine.borrow_mut();
            let task = machine.add_task(IoPrio::DEFAULT, Cgroup::ROOT, false);
            machine.set_name(task, name);
            task
        };
        let sys = Sys { machine: Rc::clone(&self.machine), task };
        let program = Born(Box::pin(program(sys)));
        self.machine.borrow_mut().born.push(program);
        task
    }

    /// Wait until a task ended.
    pub async fn join(&self, task: TaskId) {
        self.wait(Why::Because(Cause::Task(Some(task))), |machine, caller| {
            let other = &mut machine.tasks[task.0];
            if !other.ended {
                other.joining.push(caller);
            }
            other.ended.then_some(())
        })
        .await;
    }

    /// Sleep until the clock shows `at` nanoseconds.
    pub async fn sleep_until(&self, at: u64) {
        self.pause_until(at, Why::Because(Cause::Sleep)).await;
    }

    /// Sleep for `ns` nanoseconds.
    pub async fn sleep(&self, ns: u64) {
        self.pause(ns, Why::Because(Cause::Sleep)).await;
    }

    /// Not go on until `at`, and why.
    pub(crate) fn pause_until(&self, at: u64, why: Why) -> impl Future<Output = ()> {
        let mut armed = false;
        std::future::poll_fn(move |_| self.poll_until(at, why, &mut armed))
    }

    fn poll_until(&self, at: u64, why: Why, armed: &mut bool) -> Poll<()> {
        self.poll(why, |machine, task| {
            if machine.now >= at {
                return Some(());
            }
            if !*armed {
                *armed = true;
                if matches!(why, Why::CPU) {
                    machine.tasks[task.0].cpu_ns += at - machine.now;
                }
                return machine.pass_time(at, task).then_some(());
            }
            None
        })
    }

    /// Not go on for `ns` nanoseconds, and why.
    pub(crate) fn pause(&self, ns: u64, why: Why) -> impl Future<Output = ()> {
        let (at, mut armed) = (self.now().saturating_add(ns), false);
        std::future::poll_fn(move |_| match ns {
            0 => Poll::Ready(()),
            _ => self.poll_until(at, why, &mut armed),
        })
    }

    /// Compute for `ns` nanoseconds.
    pub(crate) fn compute(&self, ns: u64) -> impl Future<Output = ()> {
        self.pause(ns, Why::CPU)
    }

    /// Wait until `ready` answers; it is asked at every wake-up of this task and may leave the task in a list of tasks to wake. `why` is
    /// for the record.
    pub(crate) fn wait<R>(
        &self,
        why: Why,
        mut ready: impl FnMut(&mut Machine, TaskId) -> Option<R>,
    ) -> impl Future<Output = R> {
        std::future::poll_fn(move |_| self.poll(why, &mut ready))
    }

    /// Ask `ready`, and record the answer.
    #[inline]
    pub(crate) fn poll<R>(&self, why: Why, ready: impl FnOnce(&mut Machine, TaskId) -> Option<R>) -> Poll<R> {
        let machine = &mut *self.machine.borrow_mut();
        let answer = ready(machine, self.task);
        if answer.is_none() && !matches!(why, Why::CPU) {
            machine.block.task_sleeps(machine.tasks[self.task.0].context, machine.now);
        }
        if let Some(recorder) = machine.block.recorder() {
            match &answer {
                Some(_) => recorder.resumes(self.task, machine.now),
                None => recorder.pends(self.task, why, machine.now),
            }
        }
        answer.map_or(Poll::Pending, Poll::Ready)
    }

    /// For the record: what follows belongs to this step of a call or commit.
    pub(crate) fn step(&self, step: Step) {
        if let Some(recorder) = self.machine.borrow_mut().block.recorder() {
            recorder.step(self.task, step);
        }
    }

    /// For the record: a call begins that waits for the disk.
    pub(crate) fn begin_call(&self, call: Call) {
        let machine = &mut *self.machine.borrow_mut();
        if let Some(recorder) = machine.block.recorder() {
            recorder.begin_call(self.task, call, machine.now);
        }
    }

    /// For the record: the call that began last ends.
    pub(crate) fn end_call(&self) {
        let machine = &mut *self.machine.borrow_mut();
        if let Some(recorder) = machine.block.recorder() {
            recorder.end_call(self.task, machine.now);
        }
    }
}

/// A flag that tasks can wait for, for programs that have to start or stop together.
#[derive(Clone, Debug, Default)]
pub struct Signal(Rc<RefCell<SignalState>>);

#[derive(Debug, Default)]
struct SignalState {
    raised: bool,
    waiting: Vec<TaskId>,
}

impl Signal {
    /// A lowered flag.
    pub fn new() -> Signal {
        Signal::default()
    }

    /// Is it raised?
    pub fn is_raised(&self) -> bool {
        self.0.borrow().raised
    }

    /// Raise it for good.
    pub fn raise(&self, sys: &Sys) {
        let mut state = self.0.borrow_mut();
        state.raised = true;
        let mut machine = sys.machine.borrow_mut();
        for task in state.waiting.drain(..) {
            machine.wake(task);
        }
    }

    /// Wait until it is raised.
    pub async fn wait(&self, sys: &Sys) {
        sys.wait(Why::Because(Cause::Task(None)), |_, task| {
            let mut state = self.0.borrow_mut();
            if state.raised {
                return Some(());
            }
            state.waiting.push(task);
            None
        })
        .await;
    }
}
