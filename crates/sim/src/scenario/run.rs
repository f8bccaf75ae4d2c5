//! All runs of a scenario, in parallel.

use std::borrow::Cow;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use fairlift_fio::Job;

use super::Scenario;
use crate::lab::{self, LabError, Setup};
use crate::recording::Recording;
use crate::result::RunResult;

/// Within how much time processes start that start together, where a case has a seed of its own, microseconds: what fio takes to
/// start some. A guess; it only has to be longer than a request.
const START_US: u64 = 10_000;

/// Hears how far the runs are; called from several threads.
pub trait Progress: Sync {
    /// Run number `run` has simulated so many nanoseconds.
    fn at(&self, run: usize, simulated_ns: u64);
    /// Run number `run` is over.
    fn done(&self, run: usize);
}

/// Says nothing.
impl Progress for () {
    fn at(&self, _run: usize, _simulated_ns: u64) {}
    fn done(&self, _run: usize) {}
}

/// Writes runs down; called from several threads.
pub trait Recorders: Sync {
    /// Run number `run` begins: where it is written to, if it is.
    fn begin(&self, run: usize) -> Option<Recording>;
    /// It is over.
    fn end(&self, run: usize, recording: Recording);
}

/// Writes nothing.
impl Recorders for () {
    fn begin(&self, _run: usize) -> Option<Recording> {
        None
    }
    fn end(&self, _run: usize, _recording: Recording) {}
}

/// A run that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFailure {
    /// The case; empty when there is only one.
    pub case: String,
    /// The scheduler.
    pub scheduler: String,
    /// Why.
    pub error: LabError,
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.case.is_empty() {
            write!(f, "case '{}', ", self.case)?;
        }
        write!(f, "{}: {}", self.scheduler, self.error)
    }
}

impl std::error::Error for RunFailure {}

/// Every case under every scheduler, on up to `threads` threads. Results come by case, then scheduler, whatever the threads
/// did: run number = case x schedulers + scheduler.
///
/// # Errors
/// The first failure in that order.
pub fn run_all(
    scenario: &Scenario,
    threads: usize,
    progress: &dyn Progress,
) -> Result<Vec<Vec<RunResult>>, RunFailure> {
    run_all_recorded(scenario, threads, progress, &())
}

/// The same, each run written down by `recorders`.
///
/// # Errors
/// As [`run_all`].
pub fn run_all_recorded(
    scenario: &Scenario,
    threads: usize,
    progress: &dyn Progress,
    recorders: &dyn Recorders,
) -> Result<Vec<Vec<RunResult>>, RunFailure> {
    let width = scenario.schedulers.len();
    let count = scenario.cases.len() * width;
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<RunResult, LabError>>>> =
        (0..count).map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= count {
                return;
            }
            let result = one(scenario, run, progress, recorders);
            *results[run].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(result);
            progress.done(run);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.clamp(1, count.max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let mut rows: Vec<Vec<RunResult>> =
        (0..scenario.cases.len()).map(|_| Vec::with_capacity(width)).collect();
    for (run, slot) in results.into_iter().enumerate() {
        let (case, scheduler) = (run / width, run % width);
        let fail = |error| RunFailure {
            case: scenario.cases[case].name.clone(),
            scheduler: scenario.schedulers[scheduler].to_string(),
            error,
        };
        match slot.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(Ok(result)) => rows[case].push(result),
            Some(Err(error)) => return Err(fail(error)),
            None => return Err(fail(LabError::NoJobs)),
        }
    }
    Ok(rows)
}

/// The jobs as a seed of a case's own moves them. fio repeats its places, sizes and directions from run to run (`randrepeat=1`); here
/// they come from the seed, except where a job asks for some by `randseed` or `allrandrepeat`. And processes that start together
/// do so within [`START_US`], as they do on a real machine: without that, sequential jobs on a device that draws nothing would be
/// the same run whatever the seed.
fn varied(jobs: &[Job]) -> Vec<Job> {
    let mut jobs = jobs.to_vec();
    for job in &mut jobs {
        let delay = &mut job.schedule.start_delay_us;
        if !job.seeding.allrandrepeat && job.seeding.randseed.is_none() {
            job.seeding.randrepeat = false;
            if delay.0 == delay.1 {
                delay.1 += START_US;
            }
        }
    }
    jobs
}

fn one(
    scenario: &Scenario,
    run: usize,
    progress: &dyn Progress,
    recorders: &dyn Recorders,
) -> Result<RunResult, LabError> {
    let width = scenario.schedulers.len();
    let case = &scenario.cases[run / width];
    let (jobs, seed) = match case.seed {
        Some(seed) => (Cow::Owned(varied(&case.jobs)), seed),
        None => (Cow::Borrowed(&case.jobs[..]), scenario.seed),
    };
    let setup = Setup {
        scheduler: &scenario.schedulers[run % width],
        device: case.device.as_ref().unwrap_or(&scenario.device),
        rules: &scenario.rules,
        memory: scenario.memory,
        filesystem: scenario.filesystem,
        jobs: &jobs,
        programs: &case.programs,
        groups: &case.groups,
        warmup_ns: scenario.warmup_ns,
        seed,
        runtime_ns: scenario.runtime_ns,
        fresh_files: scenario.fresh_files,
        explain: scenario.explain,
    };
    let mut recording = recorders.begin(run);
    let result =
        lab::run_with(&setup, case.replaying.as_ref(), &mut recording, &mut |ns| progress.at(run, ns));
    if let Some(recording) = recording {
        recorders.end(run, recording);
    }
    result
}
