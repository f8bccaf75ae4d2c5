//! fio's I/O loop: what each process of a job file does.
//!
//! fio counts *submission latency* from the start of the call to the hand-over and *completion latency* from there until the
//! I/O is collected; for synchronous engines the whole call is completion latency.

mod calls;
mod setup;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use fairlift_core::{IoPrio, Op};
use fairlift_fio::offsets::{Io, IoKind, Rng, Stream};
use fairlift_fio::{Direction, EngineFamily, ExitWhat, Expansion, Job, OpenSync};

use super::pace::{Pace, Turn};
use fairlift_core::collections::Id;

use crate::anatomy::Call;
use crate::engine::{Machine, OpDone, Signal, Simulation, Sys, TaskId};
use crate::group::GroupTree;
use crate::kernel::{Advice, DirectIo, Errno, FileId, NoSpace, ReadaheadState};
use crate::result::JobResult;

/// How job files are put onto the simulated computer.
#[derive(Clone, Debug)]
pub struct Options {
    /// Files that are only written start out sparse (what fio of 2009 left behind), instead of laid out in full.
    pub fresh_files: bool,
    /// Stands in for the system's randomness where a job wants it.
    pub entropy: u64,
    /// The groups that jobs name.
    pub groups: GroupTree,
}

/// Why jobs could not be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupError {
    /// The files do not fit on the device.
    NoSpace {
        /// The job.
        job: String,
        /// What was asked for.
        space: NoSpace,
    },
    /// The job asks for something its file cannot give: a sentence that names it.
    Job(String),
}

impl std::fmt::Display for SetupError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SetupError::NoSpace { job, space } => write!(
                f,
                "job '{job}' needs {} bytes of disk (with the files before it), the device has {}",
                space.wanted, space.capacity
            ),
            SetupError::Job(reason) => write!(f, "{reason}"),
        }
    }
}

impl std::error::Error for SetupError {}

/// Results of all processes, filled in as they end.
#[derive(Clone, Debug, Default)]
pub struct Results(Rc<RefCell<Vec<(TaskId, JobResult)>>>);

impl Results {
    /// What the processes reported, in order of start, with the device time charged to each.
    pub fn collect(&self, simulation: &Simulation) -> Vec<JobResult> {
        let with_device_time = |(task, result): &(TaskId, JobResult)| {
            let mut result = result.clone();
            if result.ended_ns == 0 {
                result.device_time_ns = simulation.with_machine(|m| device_time_ns(m, *task));
            }
            result
        };
        self.0.borrow().iter().map(with_device_time).collect()
    }
}

/// Start all processes of `jobs`.
///
/// # Errors
/// When files do not fit on the device or a job does not fit its file.
pub fn spawn(
    simulation: &mut Simulation,
    jobs: &[Job],
    expansion: &Expansion,
    options: &Options,
) -> Result<Results, SetupError> {
    let results = Results::default();
    let files = setup::files(simulation, jobs, expansion, options)?;
    let ended: Vec<Signal> = expansion.processes.iter().map(|_| Signal::new()).collect();
    let states: Rc<[Cell<State>]> = vec![Cell::new(State::Waiting); expansion.processes.len()].into();
    let now = simulation.with_machine(|m| m.now());
    for (number, (process, files)) in expansion.processes.iter().zip(files).enumerate() {
        let setup::Files { stream, ids, names, filled } = files;
        let job = &jobs[process.job];
        let wait_for = earlier(jobs, expansion, number).map(|p| ended[p].clone()).collect();
        let mut task = Process {
            job: job.clone(),
            pace: Pace::new(job, stream.seeds()),
            priorities: stream.seeds().command_priority(),
            stream,
            readahead: vec![ReadaheadState::new(advice(job)); ids.len()],
            files: ids,
            names,
            filled,
            result: JobResult {
                name: job.name.clone(),
                group_id: job.schedule.group_id,
                group_reporting: job.schedule.group_reporting,
                processes: 1,
                depth: job.submission.depth,
                options: job.options.clone(),
                ..JobResult::default()
            },
            limit_ns: nonzero(job.schedule.runtime_us * 1000),
            flight: Vec::new(),
            in_flight: 0,
            number,
            states: Rc::clone(&states),
        };
        let groups = exits_with(jobs, expansion, number);
        // fio counts the delay from its own start, not from the end of those the process waited for.
        let (start_ns, done) = (now + process.start_delay_us * 1000, ended[number].clone());
        let (reports, initial) = (results.clone(), task.result.clone());
        let cgroup = options.groups.cgroup_of(job.cgroup.as_deref());
        let id = simulation.spawn_in(cgroup, priority(job), move |sys| async move {
            let before: Vec<Signal> = wait_for;
            for signal in &before {
                signal.wait(&sys).await;
            }
            sys.sleep_until(start_ns).await;
            let born_ns = sys.now();
            task.run(&sys).await;
            task.result.lifetime_ns = sys.now() - born_ns;
            task.result.cpu_ns = sys.machine.borrow().cpu_ns_of(sys.task);
            task.result.ended_ns = task.result.started_ns.max(sys.now());
            task.end_others(&groups);
            // Another task may get the context's slot from here on.
            task.result.device_time_ns = device_time_ns(&sys.machine.borrow(), sys.task);
            reports.0.borrow_mut()[number].1 = task.result;
            done.raise(&sys);
        });
        simulation.with_machine(|m| m.set_name(id, &job.name));
        results.0.borrow_mut().push((id, initial));
    }
    Ok(results)
}

/// Device time charged to the task's io context so far.
fn device_time_ns(machine: &Machine, task: TaskId) -> u64 {
    machine.block.device_time_of(machine.context_of(task).index())
}

fn nonzero(value: u64) -> Option<u64> {
    (value > 0).then_some(value)
}

/// The processes `number` has to wait for: all earlier ones behind a stonewall, those of the job it names with `wait_for`.
fn earlier<'a>(jobs: &'a [Job], expansion: &'a Expansion, number: usize) -> impl Iterator<Item = usize> + 'a {
    let job_index = expansion.processes[number].job;
    let schedule = &jobs[job_index].schedule;
    // A stonewall holds back everything behind it too.
    let wall = jobs[..=job_index].iter().rposition(|j| j.schedule.stonewall).unwrap_or(0);
    expansion.processes[..number].iter().enumerate().filter_map(move |(p, process)| {
        let named = schedule.wait_for.as_ref().is_some_and(|name| jobs[process.job].name == *name);
        (process.job < wall || named).then_some(p)
    })
}

/// The processes that may have to end when `number` does, by its `exitall`.
fn exits_with(jobs: &[Job], expansion: &Expansion, number: usize) -> Vec<usize> {
    let of = |p: usize| &jobs[expansion.processes[p].job].schedule;
    let mine = of(number);
    (0..expansion.processes.len())
        .filter(|p| match mine.exit_what {
            ExitWhat::None => false,
            ExitWhat::Group => of(*p).group_id == mine.group_id,
            ExitWhat::Stonewall | ExitWhat::All => true,
        })
        .collect()
}

fn priority(job: &Job) -> IoPrio {
    job.priority.map_or(IoPrio::DEFAULT, |p| ioprio(p.class, p.level))
}

fn ioprio(class: u8, level: u8) -> IoPrio {
    match class {
        1 => IoPrio::RealTime(level),
        3 => IoPrio::Idle,
        _ => IoPrio::BestEffort(level),
    }
}

/// What fio tells the kernel when it opens a file.
fn advice(job: &Job) -> Advice {
    match (job.preparation.fadvise, job.access.random) {
        (false, _) => Advice::Normal,
        (true, false) => Advice::Sequential,
        (true, true) => Advice::Random,
    }
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    direction: Direction,
    bytes: u64,
    started_ns: u64,
    issued_ns: u64,
}

/// What a process does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Io(FileIo),
    /// With `true`, only the data (fdatasync).
    Sync(FileId, bool),
}

#[derive(Clone, Copy, Debug)]
struct FileIo {
    direction: Direction,
    /// Position among the process's files.
    slot: usize,
    file: FileId,
    offset: u64,
    bytes: u64,
}

impl FileIo {
    fn direct(&self, ioprio: Option<IoPrio>, through: bool) -> DirectIo {
        let op = match self.direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
            Direction::Trim => Op::Discard,
        };
        DirectIo { op, file: self.file, offset: self.offset, bytes: self.bytes, ioprio, through }
    }
}

/// Where a process is in its life.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// For its start delay, or for others.
    Waiting,
    Running,
    /// Another job's `exitall` ended it.
    Stopped,
}

struct Process {
    job: Job,
    stream: Stream,
    /// Which I/Os get a priority of their own.
    priorities: Rng,
    /// Its files; none if it only knows their names.
    files: Vec<FileId>,
    /// Their names, if it makes calls by name.
    names: Vec<String>,
    /// It uses a file that another job fills the device with: the file's end is the end of what there is to read.
    filled: bool,
    readahead: Vec<ReadaheadState>,
    pace: Pace,
    result: JobResult,
    limit_ns: Option<u64>,
    /// By operation number.
    flight: Vec<Option<InFlight>>,
    in_flight: u32,
    /// Its place in `states`.
    number: usize,
    /// Of all processes.
    states: Rc<[Cell<State>]>,
}

impl Process {
    async fn run(&mut self, sys: &Sys) {
        if self.job.preparation.create_only {
            self.begin(sys.now());
            return;
        }
        if self.job.preparation.invalidate {
            for file in &self.files {
                sys.invalidate(*file);
            }
        }
        self.begin(sys.now());
        if self.state() == State::Waiting {
            self.states[self.number].set(State::Running);
        }
        match self.job.submission.family {
            EngineFamily::Call(call) => self.run_calls(sys, call).await,
            _ if self.depth() > 1 && self.job.submission.direct => self.run_queued(sys).await,
            _ => self.run_one_by_one(sys).await,
        }
        if self.job.durability.end_fsync || self.job.durability.fsync_on_close {
            self.sync_all(sys).await;
        }
    }

    /// Counting starts (after the ramp time).
    fn begin(&mut self, now: u64) {
        let ramp = self.job.schedule.ramp_time_us * 1000;
        self.result.started_ns = now + ramp;
        self.result.ended_ns = now + ramp;
        self.limit_ns = self.limit_ns.map(|limit| now + ramp + limit);
        self.pace.start(now);
    }

    /// I/Os in flight at most. Helper threads (`io_submit_mode=offload`) keep the depth up for any engine.
    fn depth(&self) -> u32 {
        let submission = &self.job.submission;
        if submission.offload { submission.iodepth } else { submission.depth }
    }

    fn state(&self) -> State {
        self.states[self.number].get()
    }

    fn is_over(&self, now: u64) -> bool {
        self.limit_ns.is_some_and(|limit| now >= limit) || self.state() == State::Stopped
    }

    /// `exitall`: this process has ended, so do those `others`; with `exit_what=stonewall` only those that run already.
    fn end_others(&self, others: &[usize]) {
        let running_only = self.job.schedule.exit_what == ExitWhat::Stonewall;
        for state in others.iter().map(|p| &self.states[*p]) {
            if !running_only || state.get() == State::Running {
                state.set(State::Stopped);
            }
        }
    }

    /// The next I/O, while time and amount allow one. Waits for its turn if there is a rate.
    async fn next_io(&mut self, sys: &Sys) -> Option<Step> {
        let io = match self.pace.is_limited() {
            true => self.next_in_turn(sys).await?,
            false if self.is_over(sys.now()) => return None,
            false => self.stream.next()?,
        };
        let file = self.files[io.file];
        if self.filled && sys.size_of(file) <= io.offset_bytes && io.kind == IoKind::Data(Direction::Read) {
            return None;
        }
        Some(match io.kind {
            IoKind::Data(direction) => Step::Io(FileIo {
                direction,
                slot: io.file,
                file,
                offset: io.offset_bytes,
                bytes: io.length_bytes,
            }),
            IoKind::Sync => Step::Sync(file, false),
            IoKind::DataSync => Step::Sync(file, true),
        })
    }

    /// The next I/O of the stream, while time and amount allow one, when it is its turn.
    async fn next_in_turn(&mut self, sys: &Sys) -> Option<Io> {
        if self.is_over(sys.now()) {
            return None;
        }
        // The clock chooses the direction of a mixed job; any other job may first have to sync, which no rate holds up.
        let mixed = self.job.access.mixed();
        let direction = if mixed { self.wait_for_turn(sys).await? } else { None };
        let io = self.stream.next_in(direction)?;
        if !mixed && matches!(io.kind, IoKind::Data(_)) {
            self.wait_for_turn(sys).await?;
        }
        Some(io)
    }

    /// Wait until the rates allow an I/O; in which direction, if only one. `None`: the job is over before that.
    async fn wait_for_turn(&mut self, sys: &Sys) -> Option<Option<Direction>> {
        match self.pace.turn(sys.now()) {
            Turn::Go(direction) => Some(direction),
            Turn::WaitUntil(due, direction) => {
                self.pause_until(sys, due, !self.job.submission.offload).await;
                (!self.is_over(sys.now())).then_some(direction)
            }
        }
    }

    /// Sleep, at most until the runtime is up. What is in flight is let end first (`drain`), as fio does before any sleep of
    /// its own.
    async fn pause_until(&mut self, sys: &Sys, until: u64, drain: bool) {
        if self.in_flight > 0 {
            // The sleep is the program's: what it submitted is not held back meanwhile.
            sys.close_plug();
            sys.unplug();
        }
        if drain {
            self.collect(sys, self.in_flight).await;
        }
        sys.sleep_until(self.limit_ns.map_or(until, |limit| until.min(limit))).await;
    }

    /// It is time to think.
    async fn think(&mut self, sys: &Sys) {
        self.pause_until(sys, sys.now(), true).await;
        let pause = self.pace.pause(sys.now());
        self.pause_until(sys, sys.now() + pause, true).await;
    }

    /// The priority of the next I/O, if it gets one of its own (`cmdprio_*`).
    fn command_priority(&mut self, direction: Direction, bytes: u64) -> Option<IoPrio> {
        let commands = &self.job.command_priority;
        if commands.is_off() || direction == Direction::Trim {
            return None;
        }
        let d = direction.index();
        let split = commands.split[d].iter().find(|(size, ..)| *size == bytes);
        let (percent, own) = match split {
            Some((_, percent, own)) => (*percent, *own),
            None if commands.split[d].is_empty() => (commands.percent[d], None),
            None => (0, None),
        };
        let chosen = percent > 0 && self.priorities.between(0, 99) < u64::from(percent);
        let (class, level) = own.map_or((commands.class[d], commands.level[d]), |p| (p.class, p.level));
        chosen.then(|| ioprio(class, level))
    }

    // ---- depth 1 ----------------------------------------------------------------------------------------------------------

    async fn run_one_by_one(&mut self, sys: &Sys) {
        while let Some(step) = self.next_io(sys).await {
            let io = match step {
                Step::Io(io) => io,
                Step::Sync(file, data_only) => {
                    self.sync(sys, file, data_only).await;
                    continue;
                }
            };
            self.pace.issued(io.direction, io.bytes);
            let started = sys.now();
            sys.compute(sys.cpu_per_io_ns()).await;
            if self.transfer(sys, &io).await.is_none() {
                return;
            }
            self.record(
                &InFlight {
                    direction: io.direction,
                    bytes: io.bytes,
                    started_ns: started,
                    issued_ns: started,
                },
                sys.now(),
            );
            if started >= self.result.started_ns {
                self.result.count_depth(1);
            }
            self.pace.completed();
            if self.pace.thinks(sys.now()) {
                self.think(sys).await;
            }
        }
    }

    /// A full file system ends the process.
    fn end_on_error<T>(&self, result: Result<T, Errno>) -> Option<T> {
        if result.is_err() {
            self.states[self.number].set(State::Stopped);
        }
        result.ok()
    }

    /// Must `io` be on the medium before it is done (O_SYNC)?
    fn syncs(&self, io: &FileIo) -> bool {
        self.job.durability.open_sync != OpenSync::None && io.direction == Direction::Write
    }

    /// One synchronous I/O; `None`: it failed.
    async fn transfer(&mut self, sys: &Sys, io: &FileIo) -> Option<()> {
        let through = self.job.submission.direct && self.syncs(io) && sys.writes_through(io.file);
        if self.syncs(io) {
            sys.begin_call(Call::SyncWrite);
        }
        let done = match (self.job.submission.direct, io.direction) {
            (false, Direction::Read) => {
                let mut ra = self.readahead[io.slot];
                sys.read_file(io.file, io.offset, io.bytes, &mut ra).await;
                self.readahead[io.slot] = ra;
                Ok(())
            }
            (false, Direction::Write) => sys.write_file(io.file, io.offset, io.bytes).await,
            _ => {
                let ioprio = self.command_priority(io.direction, io.bytes);
                sys.direct(io.direct(ioprio, through)).await.map(|_| ())
            }
        };
        let done = self.end_on_error(done);
        if self.syncs(io) {
            // What a write that goes through still needs is up to the call that waits for it; asynchronous I/O has none.
            if !through || self.job.submission.family == EngineFamily::Sync {
                sys.sync_file(io.file, self.job.durability.open_sync == OpenSync::DataSync).await;
            }
            sys.end_call();
        }
        done
    }

    // ---- depth N ----------------------------------------------------------------------------------------------------------

    async fn run_queued(&mut self, sys: &Sys) {
        let depth = self.depth();
        let low = self.job.submission.low.clamp(1, depth);
        let batch = self.job.submission.batch.clamp(1, depth);
        let mut more = true;
        loop {
            let mut filling = self.in_flight <= low;
            while more && filling && self.in_flight < depth {
                more = self.submit_batch(sys, batch.min(depth - self.in_flight)).await;
                filling = self.in_flight < depth;
            }
            if self.in_flight == 0 && !more {
                return;
            }
            let wanted = self.job.submission.batch_complete_min.clamp(1, self.in_flight.max(1));
            self.collect(sys, wanted).await;
            if self.pace.thinks(sys.now()) {
                self.think(sys).await;
            }
        }
    }

    /// Submit up to `count` I/Os in one call; `false` when there are no more.
    async fn submit_batch(&mut self, sys: &Sys, count: u32) -> bool {
        sys.open_plug();
        let mut more = true;
        for _ in 0..count {
            let io = match self.next_io(sys).await {
                Some(Step::Io(io)) => io,
                Some(Step::Sync(file, data_only)) => {
                    self.sync(sys, file, data_only).await;
                    continue;
                }
                None => {
                    more = false;
                    break;
                }
            };
            self.submit(sys, &io).await;
            if self.pace.thinks(sys.now()) {
                self.think(sys).await;
            }
        }
        sys.close_plug();
        sys.unplug();
        more
    }

    async fn submit(&mut self, sys: &Sys, io: &FileIo) {
        self.pace.issued(io.direction, io.bytes);
        let started = sys.now();
        sys.compute(sys.cpu_per_io_ns()).await;
        let ioprio = self.command_priority(io.direction, io.bytes);
        let submitted = sys.submit_direct(io.direct(ioprio, self.syncs(io))).await;
        let Some(op) = self.end_on_error(submitted) else { return };
        let issued_ns = sys.now();
        if started >= self.result.started_ns {
            self.result.transfers[io.direction.index()].slat.record(issued_ns - started);
        }
        let number = op.number();
        if number >= self.flight.len() {
            self.flight.resize(number + 1, None);
        }
        self.flight[number] =
            Some(InFlight { direction: io.direction, bytes: io.bytes, started_ns: started, issued_ns });
        self.in_flight += 1;
        if started >= self.result.started_ns {
            self.result.count_depth(self.in_flight);
        }
    }

    /// Wait until at least `wanted` I/Os are done, and take all that are.
    async fn collect(&mut self, sys: &Sys, wanted: u32) {
        let mut got = 0;
        while self.in_flight > 0 && got < wanted {
            let done = sys.next_completion().await;
            self.finish(done, sys.now());
            got += 1;
        }
        while let Some(done) = sys.try_completion() {
            self.finish(done, sys.now());
        }
    }

    /// An I/O was collected at `now`. (Helper threads notice its end at once.)
    fn finish(&mut self, done: OpDone, now: u64) {
        let now = if self.job.submission.offload { done.at_ns } else { now };
        let Some(io) = self.flight.get_mut(done.op.number()).and_then(Option::take) else { return };
        self.in_flight -= 1;
        self.pace.completed();
        self.record(&io, now);
    }

    // ---- accounts ---------------------------------------------------------------------------------------------------------

    fn record(&mut self, io: &InFlight, now: u64) {
        // Nothing that ends within the ramp time counts; what spans its end does, as in fio.
        if now < self.result.started_ns {
            return;
        }
        self.result.ended_ns = now;
        let transfer = &mut self.result.transfers[io.direction.index()];
        transfer.clat.record(now - io.issued_ns);
        transfer.lat.record(now - io.started_ns);
        transfer.add(io.bytes, now - self.result.started_ns);
    }

    async fn sync_all(&mut self, sys: &Sys) {
        for file in self.files.clone() {
            self.sync(sys, file, false).await;
        }
    }

    async fn sync(&mut self, sys: &Sys, file: FileId, data_only: bool) {
        let started = sys.now();
        sys.compute(sys.cpu_per_io_ns()).await;
        sys.sync_file(file, data_only).await;
        if sys.now() >= self.result.started_ns {
            self.result.sync.record(sys.now() - started);
        }
    }
}
