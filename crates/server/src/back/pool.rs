//! Threads that do what blocks: each takes the oldest job.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

use super::{Finisher, Job};

/// What the threads share.
struct Shared {
    line: Mutex<Line>,
    came: Condvar,
    finisher: OnceLock<Finisher>,
}

#[derive(Default)]
struct Line {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Shared {
    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest job, as soon as there is one; `None`: no more will come.
    fn next(&self) -> Option<Job> {
        let mut line = self.line();
        loop {
            if line.closed {
                return None;
            }
            match line.jobs.pop_front() {
                Some(job) => return Some(job),
                None => line = self.came.wait(line).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// The threads. They end with it.
pub(super) struct Pool(Arc<Shared>);

impl Pool {
    /// So many threads, each of which does jobs with `work`. With fewer than asked for it is slower, not wrong.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub(super) fn new(
        threads: usize,
        work: impl Fn(&mut Job) + Send + Sync + 'static,
    ) -> std::io::Result<Pool> {
        let shared =
            Arc::new(Shared { line: Mutex::default(), came: Condvar::new(), finisher: OnceLock::new() });
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

    pub(super) fn push(&self, jobs: impl Iterator<Item = Job>) {
        let mut line = self.0.line();
        for job in jobs {
            line.jobs.push_back(job);
            self.0.came.notify_one();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.line().closed = true;
        self.0.came.notify_all();
    }
}

fn worker(shared: &Shared, work: &dyn Fn(&mut Job)) {
    let mut done = Vec::new();
    while let Some(mut job) = shared.next() {
        work(&mut job);
        done.push(job);
        if let Some(finisher) = shared.finisher.get() {
            finisher.finish(&mut done);
        }
        done.clear();
    }
}
