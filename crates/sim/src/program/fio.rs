//! fio's I/O loop: what each process of a job file does.
//!
//! fio counts *submission latency* from the start of the call to the hand-over and *completion latency* from there until the
//! I/O is collected; for synchronous engines the whole call is completion latency.

use std::cell::RefCell;
use std::rc::Rc;

use fairlift_core::{IoPrio, Op};
use fairlift_fio::offsets::{IoKind, Stream};
use fairlift_fio::{Direction, ExitWhat, Expansion, FileInfo, Job, OpenSync};

use super::pace::{Pace, Pause};
use fairlift_core::collections::Id;

use crate::engine::{Machine, OpDone, Signal, Simulation, Sys, TaskId};
use crate::kernel::{DirectIo, FileId, Layout, NoSpace, ReadaheadState};
use crate::result::JobResult;

/// How job files are put onto the simulated computer.
#[derive(Clone, Debug)]
pub struct Options {
    /// Files that are only written start out sparse (what fio of 2009 left behind), instead of laid out in full.
    pub fresh_files: bool,
    /// Stands in for the system's randomness where a job wants it.
    pub entropy: u64,
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
    let streams = streams(simulation, jobs, expansion, options)?;
    let files = create_files(simulation, jobs, expansion, &streams, options)?;
    let ended: Vec<Signal> = expansion.processes.iter().map(|_| Signal::new()).collect();
    let stop: Rc<RefCell<Vec<u32>>> = Rc::default();
    for (number, (process, stream)) in expansion.processes.iter().zip(streams).enumerate() {
        let job = &jobs[process.job];
        let wait_for = earlier(jobs, expansion, number).map(|p| ended[p].clone()).collect();
        let mut task = Process {
            job: job.clone(),
            stream,
            files: process.files.iter().map(|f| files[*f]).collect(),
            readahead: vec![ReadaheadState::default(); process.files.len()],
            pace: Pace::new(job, options.entropy ^ u64::from(process.thread_number)),
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
            stop: Rc::clone(&stop),
        };
        let (delay_ns, done) = (process.start_delay_us * 1000, ended[number].clone());
        let (reports, initial) = (results.clone(), task.result.clone());
        let id = simulation.spawn(priority(job), move |sys| async move {
            let before: Vec<Signal> = wait_for;
            for signal in &before {
                signal.wait(&sys).await;
            }
            sys.sleep(delay_ns).await;
            task.run(&sys).await;
            task.result.ended_ns = sys.now();
            // Another task may get the context's slot from here on.
            task.result.device_time_ns = device_time_ns(&sys.machine.borrow(), sys.task);
            if task.job.schedule.exit_what != ExitWhat::None {
                task.stop.borrow_mut().push(task.job.schedule.group_id);
            }
            reports.0.borrow_mut()[number].1 = task.result;
            done.raise(&sys);
        });
        results.0.borrow_mut().push((id, initial));
    }
    Ok(results)
}

/// Device time charged to the task's io context so far.
fn device_time_ns(machine: &Machine, task: TaskId) -> u64 {
    machine.block.stats().device_time_ns[machine.context_of(task).index()]
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

fn priority(job: &Job) -> IoPrio {
    match job.priority {
        Some(p) if p.class == 1 => IoPrio::RealTime(p.level),
        Some(p) if p.class == 3 => IoPrio::Idle,
        Some(p) => IoPrio::BestEffort(p.level),
        None => IoPrio::DEFAULT,
    }
}

/// What each process is going to do.
fn streams(
    simulation: &Simulation,
    jobs: &[Job],
    expansion: &Expansion,
    options: &Options,
) -> Result<Vec<Stream>, SetupError> {
    let capacity = simulation.with_machine(|m| m.block.device().limits().sectors * 512);
    let existing = |path: &str| path.starts_with("/dev/").then_some(capacity);
    (0..expansion.processes.len())
        .map(|number| {
            let job = &jobs[expansion.processes[number].job];
            Stream::new(job, expansion, number, &existing, options.entropy).map_err(SetupError::Job)
        })
        .collect()
}

/// Make every file large enough for all who use it.
fn create_files(
    simulation: &Simulation,
    jobs: &[Job],
    expansion: &Expansion,
    streams: &[Stream],
    options: &Options,
) -> Result<Vec<FileId>, SetupError> {
    let create = |(index, info): (usize, &FileInfo)| {
        let mut bytes = 0;
        let mut laid_out = !options.fresh_files;
        let mut user = String::new();
        for (process, stream) in expansion.processes.iter().zip(streams) {
            let spaces = process.files.iter().zip(stream.files()).filter(|(f, _)| **f == index);
            let job = &jobs[process.job];
            for (_, space) in spaces {
                bytes = bytes.max(space.total_bytes);
                laid_out |= job.access.reads || job.preparation.overwrite;
                user.clone_from(&job.name);
            }
        }
        let layout = match (info.device, laid_out) {
            (true, _) => Layout::Device,
            (false, true) => Layout::Preallocated,
            (false, false) => Layout::Fresh,
        };
        simulation
            .with_machine(|m| m.kernel.create_file(&info.path, bytes, layout))
            .map_err(|space| SetupError::NoSpace { job: user, space })
    };
    expansion.files.iter().enumerate().map(create).collect()
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    direction: Direction,
    bytes: u64,
    issued_ns: u64,
}

/// What a process does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Io(FileIo),
    Sync(FileId),
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
    fn direct(&self) -> DirectIo {
        let op = match self.direction {
            Direction::Read => Op::Read,
            Direction::Write => Op::Write,
            Direction::Trim => Op::Discard,
        };
        DirectIo { op, file: self.file, offset: self.offset, bytes: self.bytes, ioprio: None }
    }
}

struct Process {
    job: Job,
    stream: Stream,
    files: Vec<FileId>,
    readahead: Vec<ReadaheadState>,
    pace: Pace,
    result: JobResult,
    limit_ns: Option<u64>,
    /// By operation number.
    flight: Vec<Option<InFlight>>,
    in_flight: u32,
    /// Groups whose `exitall` was called.
    stop: Rc<RefCell<Vec<u32>>>,
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
        if self.job.submission.depth > 1 && self.job.submission.direct {
            self.run_queued(sys).await;
        } else {
            self.run_one_by_one(sys).await;
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

    /// The next I/O, while time and amount allow one.
    fn next_io(&mut self, now: u64) -> Option<Step> {
        if self.limit_ns.is_some_and(|limit| now >= limit) || self.is_stopped() {
            return None;
        }
        let io = self.stream.next()?;
        let file = self.files[io.file];
        Some(match io.kind {
            IoKind::Data(direction) => Step::Io(FileIo {
                direction,
                slot: io.file,
                file,
                offset: io.offset_bytes,
                bytes: io.length_bytes,
            }),
            IoKind::Sync | IoKind::DataSync => Step::Sync(file),
        })
    }

    fn is_stopped(&self) -> bool {
        let stop = self.stop.borrow();
        !stop.is_empty()
            && match self.job.schedule.exit_what {
                ExitWhat::Group => stop.contains(&self.job.schedule.group_id),
                _ => true,
            }
    }

    // ---- depth 1 ----------------------------------------------------------------------------------------------------------

    async fn run_one_by_one(&mut self, sys: &Sys) {
        while let Some(step) = self.next_io(sys.now()) {
            let io = match step {
                Step::Io(io) => io,
                Step::Sync(file) => {
                    self.sync(sys, file).await;
                    continue;
                }
            };
            if let Pause::DrainUntil(at) = self.pace.before_issue(io.direction, sys.now()) {
                sys.sleep_until(at).await;
            }
            self.pace.issued(io.direction, io.bytes);
            let started = sys.now();
            sys.sleep(sys.cpu_per_io_ns()).await;
            self.transfer(sys, &io).await;
            self.record(io.direction, io.bytes, started, sys.now());
            self.pace.completed();
            if let Pause::DrainFor(ns) = self.pace.think(sys.now()) {
                sys.sleep(ns).await;
            }
        }
    }

    /// One synchronous I/O.
    async fn transfer(&mut self, sys: &Sys, io: &FileIo) {
        let sync = self.job.durability.open_sync != OpenSync::None && io.direction == Direction::Write;
        match (self.job.submission.direct, io.direction) {
            (false, Direction::Read) => {
                let mut ra = self.readahead[io.slot];
                sys.read_file(io.file, io.offset, io.bytes, &mut ra).await;
                self.readahead[io.slot] = ra;
            }
            (false, Direction::Write) => sys.write_file(io.file, io.offset, io.bytes).await,
            _ => {
                sys.direct(io.direct()).await;
            }
        }
        if sync {
            sys.sync_file(io.file).await;
        }
    }

    // ---- depth N ----------------------------------------------------------------------------------------------------------

    async fn run_queued(&mut self, sys: &Sys) {
        let (depth, low) =
            (self.job.submission.depth, self.job.submission.low.clamp(1, self.job.submission.depth));
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
            if let Pause::DrainFor(ns) = self.pace.think(sys.now()) {
                self.collect(sys, self.in_flight).await;
                sys.sleep(ns).await;
            }
        }
    }

    /// Submit up to `count` I/Os in one call; `false` when there are no more.
    async fn submit_batch(&mut self, sys: &Sys, count: u32) -> bool {
        sys.open_plug();
        let mut more = true;
        for _ in 0..count {
            let io = match self.next_io(sys.now()) {
                Some(Step::Io(io)) => io,
                Some(Step::Sync(file)) => {
                    self.sync(sys, file).await;
                    continue;
                }
                None => {
                    more = false;
                    break;
                }
            };
            if let Pause::DrainUntil(at) = self.pace.before_issue(io.direction, sys.now()) {
                sys.close_plug();
                sys.unplug();
                self.collect(sys, self.in_flight).await;
                sys.sleep_until(at).await;
                sys.open_plug();
            }
            self.submit(sys, &io).await;
        }
        sys.close_plug();
        sys.unplug();
        more
    }

    async fn submit(&mut self, sys: &Sys, io: &FileIo) {
        self.pace.issued(io.direction, io.bytes);
        let started = sys.now();
        sys.sleep(sys.cpu_per_io_ns()).await;
        let op = sys.submit_direct(io.direct()).await;
        let issued_ns = sys.now();
        if started >= self.result.started_ns {
            self.result.transfers[io.direction.index()].slat.record(issued_ns - started);
        }
        let number = op.number();
        if number >= self.flight.len() {
            self.flight.resize(number + 1, None);
        }
        self.flight[number] = Some(InFlight { direction: io.direction, bytes: io.bytes, issued_ns });
        self.in_flight += 1;
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

    fn finish(&mut self, done: OpDone, now: u64) {
        let Some(io) = self.flight.get_mut(done.op.number()).and_then(Option::take) else { return };
        self.in_flight -= 1;
        self.pace.completed();
        self.record(io.direction, io.bytes, io.issued_ns, now);
    }

    // ---- accounts ---------------------------------------------------------------------------------------------------------

    fn record(&mut self, direction: Direction, bytes: u64, since: u64, now: u64) {
        // Nothing that ends within the ramp time counts; what spans its end does, as in fio.
        if now < self.result.started_ns {
            return;
        }
        self.result.ended_ns = now;
        let transfer = &mut self.result.transfers[direction.index()];
        transfer.clat.record(now - since);
        transfer.add(bytes, now - self.result.started_ns);
    }

    async fn sync_all(&mut self, sys: &Sys) {
        for file in self.files.clone() {
            self.sync(sys, file).await;
        }
    }

    async fn sync(&mut self, sys: &Sys, file: FileId) {
        let started = sys.now();
        sys.sleep(sys.cpu_per_io_ns()).await;
        sys.sync_file(file).await;
        if sys.now() >= self.result.started_ns {
            self.result.sync.record(sys.now() - started);
        }
    }
}
