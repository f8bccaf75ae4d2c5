//! A file's io_uring: reads, writes and flushes without a thread for each.
//!
//! The argument for `unsafe` here: whatever an entry tells the kernel to use (the
//! buffers of a job, the list of them, the file) stays where it is until the kernel has answered that entry, because a job is in
//! [`Flights`] from before its entry is pushed until its answer is taken, no thread touches it there, and the thread that takes
//! answers keeps [`Shared`], and with it file and ring, until no job is in it.

use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use std::{io, thread};

use io_uring::squeue::Entry;
use io_uring::types::{Fixed, FsyncFlags};
use io_uring::{IoUring, opcode};

use crate::back::disk::{BUFFERS_MAX, Disk};
use crate::back::pool::Pool;
use crate::back::{Finisher, Job};
use crate::io::{Action, Fault};

/// The file, which is registered.
const FILE: Fixed = Fixed(0);
/// Name of the entry that wakes the thread at the end.
const WAKE: u64 = u64::MAX;
/// How long to wait when the kernel has no memory for an entry.
const BREATH: Duration = Duration::from_micros(100);

/// A job that the kernel has.
struct Flight {
    job: Job,
    /// Where its memory is, if that is more than one piece.
    buffers: Vec<libc::iovec>,
}

// SAFETY: what `buffers` points to is owned by `job` beside it, which is `Send`.
unsafe impl Send for Flight {}

/// Jobs that the kernel has, by the names of their entries.
#[derive(Default)]
struct Flights {
    slots: Vec<Option<Flight>>,
    free: Vec<usize>,
    closed: bool,
}

/// How an answer is to be taken.
enum Answer {
    Done(Job),
    /// The ring cannot, or did a part of it: a thread does all of it.
    Again(Job),
}

impl Flights {
    /// Keep `job`, and the entry for it.
    fn put(&mut self, job: Job) -> Entry {
        let at = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        let flight = self.slots[at].insert(Flight { job, buffers: Vec::new() });
        flight.entry().user_data(at as u64)
    }

    /// The kernel has answered entry `at` with `result`.
    fn take(&mut self, at: u64, result: i32) -> Option<Answer> {
        let at = usize::try_from(at).ok()?;
        let Flight { mut job, .. } = self.slots.get_mut(at)?.take()?;
        self.free.push(at);
        let whole = if job.action == Action::Flush { 0 } else { job.bytes };
        match u64::try_from(result) {
            Ok(done) if done == whole => job.result = Ok(()),
            Ok(_) => return Some(Answer::Again(job)),
            Err(_) => {
                let error = io::Error::from_raw_os_error(result.saturating_neg());
                let again = [libc::EAGAIN, libc::EINTR, libc::EOPNOTSUPP, libc::ECANCELED];
                if error.raw_os_error().is_some_and(|number| again.contains(&number)) {
                    return Some(Answer::Again(job));
                }
                job.result = Err(Fault::of(&error));
            }
        }
        Some(Answer::Done(job))
    }

    fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }
}

impl Flight {
    /// What the kernel is to do. The job is not moved afterwards, and its memory is not touched.
    fn entry(&mut self) -> Entry {
        let Flight { job, buffers } = self;
        let flags = if job.fua { libc::RWF_DSYNC } else { 0 };
        match (job.action, job.ios.as_mut_slice()) {
            (Action::Read, [(_, io)]) => {
                opcode::Read::new(FILE, io.data.as_mut_ptr(), io.bytes).offset(job.offset).build()
            }
            (Action::Write, [(_, io)]) => opcode::Write::new(FILE, io.data.as_ptr(), io.bytes)
                .offset(job.offset)
                .rw_flags(flags)
                .build(),
            (Action::Read | Action::Write, ios) => {
                buffers.extend(ios.iter_mut().map(|(_, io)| libc::iovec {
                    iov_base: io.data.as_mut_ptr().cast(),
                    iov_len: io.data.len(),
                }));
                let (list, len) = (buffers.as_ptr(), buffers.len() as u32);
                if job.action == Action::Read {
                    opcode::Readv::new(FILE, list, len).offset(job.offset).build()
                } else {
                    opcode::Writev::new(FILE, list, len).offset(job.offset).rw_flags(flags).build()
                }
            }
            _ => opcode::Fsync::new(FILE).flags(FsyncFlags::DATASYNC).build(),
        }
    }
}

/// What submitting threads and the one that takes answers share.
struct Shared {
    ring: IoUring,
    /// Also the right to push entries and to take answers.
    flights: Mutex<Flights>,
    /// For what the ring does not do.
    pool: Arc<Pool>,
    finisher: OnceLock<Finisher>,
    /// The kernel has its descriptor as long as the ring is there.
    _disk: Arc<Disk>,
}

impl Shared {
    fn flights(&self) -> MutexGuard<'_, Flights> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, _right: &mut Flights, entry: &Entry) {
        // SAFETY: the right to push is held, so this is the only submission queue; the entry's memory stays (see the module).
        while unsafe { self.ring.submission_shared().push(entry) }.is_err() {
            self.submit();
        }
    }

    /// Tell the kernel of what was pushed. It takes all of it unless it has no memory.
    fn submit(&self) {
        while self.ring.submit().is_err() {
            thread::sleep(BREATH);
        }
    }

    /// What the kernel has answered; is it over?
    fn take_answers(&self, done: &mut Vec<Job>, again: &mut Vec<Job>) -> bool {
        let mut flights = self.flights();
        // SAFETY: the right to take answers is held, so this is the only completion queue.
        for answer in unsafe { self.ring.completion_shared() } {
            match flights.take(answer.user_data(), answer.result()) {
                Some(Answer::Done(job)) => done.push(job),
                Some(Answer::Again(job)) => again.push(job),
                None => {}
            }
        }
        flights.closed && flights.is_empty()
    }

    fn run(&self) {
        let (mut done, mut again) = (Vec::new(), Vec::new());
        loop {
            if self.ring.submit_and_wait(1).is_err() {
                thread::sleep(BREATH);
            }
            let over = self.take_answers(&mut done, &mut again);
            self.pool.push(again.drain(..));
            if let Some(finisher) = self.finisher.get() {
                finisher.finish(&mut done);
            }
            done.clear();
            if over {
                return;
            }
        }
    }
}

/// Can the ring do `job`?
pub(crate) fn does(job: &Job) -> bool {
    match job.action {
        Action::Read | Action::Write => job.ios.len() <= BUFFERS_MAX,
        Action::Flush => true,
        Action::Trim | Action::Zero { .. } => false,
    }
}

/// The ring. It ends when it is dropped and the kernel has answered everything.
pub(crate) struct Uring(Arc<Shared>);

impl Uring {
    /// One for `disk` with room for `depth` jobs at a time; what it does not do goes to `pool`.
    ///
    /// # Errors
    /// When there is none to be had: old kernels, containers that forbid it, no thread.
    pub(crate) fn new(disk: &Arc<Disk>, depth: u32, pool: &Arc<Pool>) -> io::Result<Uring> {
        let ring = IoUring::new(depth.next_power_of_two())?;
        ring.submitter().register_files(&[disk.file.as_raw_fd()])?;
        let shared = Arc::new(Shared {
            ring,
            flights: Mutex::default(),
            pool: pool.clone(),
            finisher: OnceLock::new(),
            _disk: disk.clone(),
        });
        let runs = shared.clone();
        thread::Builder::new().name("io_uring".to_owned()).spawn(move || runs.run())?;
        Ok(Uring(shared))
    }

    pub(crate) fn attach(&self, finisher: Finisher) {
        let _ = self.0.finisher.set(finisher);
    }

    /// Hand over jobs that it [`does`].
    pub(crate) fn push(&self, jobs: impl Iterator<Item = Job>) {
        let mut flights = self.0.flights();
        let mut any = false;
        for job in jobs {
            let entry = flights.put(job);
            self.0.push(&mut flights, &entry);
            any = true;
        }
        if any {
            self.0.submit();
        }
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let mut flights = self.0.flights();
        flights.closed = true;
        self.0.push(&mut flights, &opcode::Nop::new().build().user_data(WAKE));
        self.0.submit();
    }
}
