//! Threads that do what may block: each takes the oldest jobs. While writes are short, a client's own thread does some of its writes itself
//! (`file.rs`), and its time counts here too.
//!
//! A write that goes to the page cache seldom blocks, and waking a thread for it takes longer than the write. As long as writes
//! have been *short*, no more threads are awake for them than there are processors, and each takes several at a time. Whatever
//! else comes gets a thread at once, and so do writes again as soon as two were not short.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Instant;

use super::{Finisher, Job};
use crate::io::Action;

/// A write that took less did not block, nanoseconds: five times what 4 KiB to the page cache take, a tenth of a flash's write.
const SHORT_NS: u64 = 50_000;
/// Most short jobs that a thread takes at a time: their answers wait for the last of them.
const BATCH_MAX: usize = 8;

/// What the threads share.
struct Shared {
    line: Mutex<Line>,
    came: Condvar,
    finisher: OnceLock<Finisher>,
    processors: usize,
}

#[derive(Default)]
struct Line {
    jobs: VecDeque<Job>,
    /// Threads that wait, without those that are called already.
    idle: usize,
    /// Threads that are called and did not come yet.
    called: usize,
    /// Threads at short jobs.
    at_short: usize,
    /// What writes took of late, nanoseconds.
    write_ns: u64,
    closed: bool,
}

/// May it turn out short?
pub(super) fn is_quick(job: &Job) -> bool {
    job.action == Action::Write && !job.fua
}

impl Line {
    fn finds_writes_short(&self) -> bool {
        self.write_ns < SHORT_NS
    }

    fn is_short(&self, job: &Job) -> bool {
        is_quick(job) && self.finds_writes_short()
    }

    /// How many threads to call for `blocking` jobs and `short` ones.
    fn call(&mut self, blocking: usize, short: usize, processors: usize) -> usize {
        let for_short = short.min(processors.saturating_sub(self.at_short + self.called));
        let called = (blocking + for_short).min(self.idle);
        self.idle -= called;
        self.called += called;
        called
    }

    /// The oldest job, and short ones behind it up to this thread's part of them.
    fn take(&mut self, processors: usize, jobs: &mut Vec<Job>) {
        let most = (self.jobs.len() / processors).clamp(1, BATCH_MAX);
        let short = self.jobs.front().is_some_and(|job| self.is_short(job));
        self.at_short += usize::from(short);
        jobs.extend(self.jobs.pop_front());
        while short && jobs.len() < most && self.jobs.front().is_some_and(is_quick) {
            jobs.extend(self.jobs.pop_front());
        }
    }

    /// A write took so long. One that was not short may have been interrupted; of two in a row neither was.
    fn learn(&mut self, ns: u64) {
        self.write_ns = (3 * self.write_ns + ns.min(2 * SHORT_NS)) / 4;
    }
}

impl Shared {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, threads: usize) {
        (0..threads).for_each(|_| self.came.notify_one());
    }

    fn finish(&self, jobs: &mut Vec<Job>) {
        if let Some(finisher) = self.finisher.get() {
            finisher.finish(jobs);
        }
    }

    /// The oldest jobs, as soon as there are any, and whether they pass for short; `None`: no more will come.
    fn next(&self, jobs: &mut Vec<Job>) -> Option<bool> {
        let mut line = self.line();
        while line.jobs.is_empty() {
            line.idle += 1;
            while line.called == 0 && !line.closed {
                line = self.came.wait(line).unwrap_or_else(PoisonError::into_inner);
            }
            if line.closed {
                return None;
            }
            line.called -= 1;
        }
        let before = line.at_short;
        line.take(self.processors, jobs);
        let short = line.at_short > before;
        if !short {
            // Those behind are not for the threads that are awake alone.
            let left = line.jobs.len();
            let called = line.call(left, 0, self.processors);
            drop(line);
            self.wake(called);
        }
        Some(short)
    }
}

/// The threads. They end with it.
pub(crate) struct Pool(Arc<Shared>);

impl Pool {
    /// So many threads, each of which does jobs with `work`. With fewer than asked for it is slower, not wrong.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(super) fn new(
        threads: usize,
        work: impl Fn(&mut Job) + Send + Sync + 'static,
    ) -> std::io::Result<Pool> {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        let (line, came, finisher) = (Mutex::default(), Condvar::new(), OnceLock::new());
        let shared = Arc::new(Shared { line, came, finisher, processors });
        let work = Arc::new(work);
        for number in 0..threads.max(1) {
            let (shared, work) = (shared.clone(), work.clone());
            let started =
                thread::Builder::new().name(format!("back-{number}")).spawn(move || worker(&shared, &*work));
            match started {
                Err(error) if number == 0 => return Err(error),
                _ => {}
            }
        }
        Ok(Pool(shared))
    }

    pub(super) fn attach(&self, finisher: Finisher) {
        let _ = self.0.finisher.set(finisher);
    }

    /// `jobs` are done.
    pub(super) fn finish(&self, jobs: &mut Vec<Job>) {
        self.0.finish(jobs);
    }

    /// Did writes take less than a hop to another thread of late?
    pub(super) fn finds_writes_short(&self) -> bool {
        self.0.line().finds_writes_short()
    }

    /// Do `jobs` in this thread.
    pub(super) fn do_timed(&self, jobs: &mut [Job], work: impl Fn(&mut Job)) {
        if let Some(each_ns) = timed(jobs, &work) {
            self.0.line().learn(each_ns);
        }
    }

    pub(crate) fn push(&self, jobs: impl Iterator<Item = Job>) {
        let mut line = self.0.line();
        let (mut blocking, mut short) = (0, 0);
        for job in jobs {
            if line.is_short(&job) {
                short += 1;
            } else {
                blocking += 1;
            }
            line.jobs.push_back(job);
        }
        let called = line.call(blocking, short, self.0.processors);
        drop(line);
        self.0.wake(called);
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.line().closed = true;
        self.0.came.notify_all();
    }
}

/// Do `jobs`; what each took if all of them may turn out short, nanoseconds.
fn timed(jobs: &mut [Job], work: &dyn Fn(&mut Job)) -> Option<u64> {
    let start = Instant::now();
    jobs.iter_mut().for_each(work);
    let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let all = jobs.iter().all(is_quick);
    ns.checked_div(jobs.len() as u64).filter(|_| all)
}

fn worker(shared: &Shared, work: &dyn Fn(&mut Job)) {
    let mut jobs = Vec::new();
    while let Some(short) = shared.next(&mut jobs) {
        let each_ns = timed(&mut jobs, work);
        {
            let mut line = shared.line();
            line.at_short -= usize::from(short);
            if let Some(each_ns) = each_ns {
                line.learn(each_ns);
            }
        }
        shared.finish(&mut jobs);
        jobs.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_called_for_what_blocks_and_processors_for_what_is_short() {
        let mut line = Line { idle: 10, ..Line::default() };
        assert_eq!(line.call(3, 0, 2), 3, "each that blocks has a thread");
        line.called = 0;
        assert_eq!(line.call(0, 5, 2), 2, "a thread for each processor");
        assert_eq!(line.call(0, 5, 2), 0, "they are on their way");
        line.called = 0;
        line.at_short = 2;
        assert_eq!(line.call(0, 5, 2), 0, "they are at work");
        assert_eq!(line.call(9, 0, 2), 5, "no more than there are");
    }

    #[test]
    fn writes_that_block_are_noticed_and_an_interruption_is_not() {
        let mut line = Line::default();
        (0..10).for_each(|_| line.learn(20_000));
        line.learn(10_000_000);
        assert!(line.write_ns < SHORT_NS, "once");
        line.learn(10_000_000);
        assert!(line.write_ns >= SHORT_NS, "twice");
        (0..5).for_each(|_| line.learn(20_000));
        assert!(line.write_ns < SHORT_NS, "forgotten");
    }
}
