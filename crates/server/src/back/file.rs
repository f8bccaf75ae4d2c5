//! A file or block device. What the page cache can answer at once is done where it comes up; all else by threads that may block.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fdatasync, seek};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};

use super::pool::Pool;
use super::{BackEnd, Extent, Finisher, Job, Limits, joined};
use crate::io::{Action, Fault};

/// Threads, and so jobs at a time, if nothing else is asked for.
pub const DEPTH: u32 = 32;
/// Zeroes that are written at a time where the file system cannot make them.
const ZEROES: usize = 128 << 10;
/// Most buffers of one call (`IOV_MAX`).
const BUFFERS_MAX: usize = 1024;
/// Most extents of an answer.
const EXTENTS_MAX: usize = 1024;

/// How a file is to be served.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Refuse writes?
    pub read_only: bool,
    /// Jobs at a time.
    pub depth: u32,
    /// Do seeks cost it time?
    pub rotational: bool,
}

/// The back end.
pub struct FileBack {
    disk: Arc<Disk>,
    pool: Pool,
    options: Options,
    bytes: u64,
    /// Does the file system know "only if you need not wait" for reads, for writes?
    nowait: [AtomicBool; 2],
}

struct Disk {
    file: File,
}

impl FileBack {
    /// Open it.
    ///
    /// # Errors
    /// When it cannot be opened, or has no size.
    pub fn open(path: &Path, options: Options) -> io::Result<FileBack> {
        let file = OpenOptions::new().read(true).write(!options.read_only).open(path)?;
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let bytes = seek(&file, SeekFrom::End(0))?;
        let disk = Arc::new(Disk { file });
        let worker = disk.clone();
        let pool = Pool::new(options.depth as usize, move |job| job.result = worker.serve(job))?;
        Ok(FileBack { disk, pool, options, bytes, nowait: [AtomicBool::new(true), AtomicBool::new(true)] })
    }

    /// Try it without waiting: `None` if that does not go.
    fn try_now(&self, job: &mut Job) -> Option<Result<(), Fault>> {
        let kind = match job.action {
            Action::Read => 0,
            Action::Write if !job.fua => 1,
            _ => return None,
        };
        if !self.nowait[kind].load(Relaxed) || job.ios.len() > BUFFERS_MAX {
            return None;
        }
        match self.disk.transfer(job, 0, ReadWriteFlags::NOWAIT) {
            Ok(done) if done == job.bytes => Some(Ok(())),
            Err(Errno::OPNOTSUPP | Errno::INVAL) => {
                self.nowait[kind].store(false, Relaxed);
                None
            }
            _ => None,
        }
    }
}

impl Disk {
    fn serve(&self, job: &mut Job) -> Result<(), Fault> {
        let answer = match job.action {
            Action::Read | Action::Write => self.transfer_all(job),
            Action::Trim => match self.punch(job) {
                Err(Errno::OPNOTSUPP) => Ok(()), // it is advice
                answer => answer,
            },
            Action::Zero { punch, fast } => self.zero(job, punch, fast),
            Action::Flush => fdatasync(&self.file),
        };
        let durable = job.fua && !matches!(job.action, Action::Write | Action::Flush);
        let answer = answer.and_then(|()| if durable { fdatasync(&self.file) } else { Ok(()) });
        answer.map_err(|error| fault(error.into()))
    }

    fn transfer_all(&self, job: &mut Job) -> Result<(), Errno> {
        let flags = if job.fua { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
        let mut done = 0;
        while done < job.bytes {
            match self.transfer(job, done, flags) {
                // Behind the end of a file whose last sector is not whole.
                Ok(0) if job.action == Action::Read => {
                    behind(job, done, |data| data.fill(0));
                    return Ok(());
                }
                Ok(0) => return Err(Errno::IO),
                Ok(bytes) => done += bytes,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// One system call for what is behind the first `skip` bytes.
    fn transfer(&self, job: &mut Job, skip: u64, flags: ReadWriteFlags) -> Result<u64, Errno> {
        let at = job.offset + skip;
        let done = if job.action == Action::Read {
            let mut buffers: Vec<IoSliceMut<'_>> = Vec::with_capacity(job.ios.len());
            behind(job, skip, |data| buffers.push(IoSliceMut::new(data)));
            buffers.truncate(BUFFERS_MAX);
            preadv2(&self.file, &mut buffers, at, flags)?
        } else {
            let mut buffers: Vec<IoSlice<'_>> = Vec::with_capacity(job.ios.len());
            behind(job, skip, |data| buffers.push(IoSlice::new(data)));
            buffers.truncate(BUFFERS_MAX);
            pwritev2(&self.file, &buffers, at, flags)?
        };
        Ok(done as u64)
    }

    fn punch(&self, job: &Job) -> Result<(), Errno> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, flags, job.offset, job.bytes)
    }

    fn zero(&self, job: &Job, punch: bool, fast: bool) -> Result<(), Errno> {
        let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
        let first = if punch { self.punch(job) } else { Err(Errno::OPNOTSUPP) };
        let answer = match first {
            Err(Errno::OPNOTSUPP) => fallocate(&self.file, flags, job.offset, job.bytes),
            answer => answer,
        };
        match answer {
            Err(Errno::OPNOTSUPP) if !fast => self.write_zeroes(job.offset, job.bytes),
            answer => answer,
        }
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), Errno> {
        let zeroes = vec![0; ZEROES];
        let mut done = 0;
        while done < bytes {
            let part = (bytes - done).min(ZEROES as u64) as usize;
            match rustix::io::pwrite(&self.file, &zeroes[..part], offset + done) {
                Ok(0) => return Err(Errno::IO),
                Ok(written) => done += written as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// What of the job's memory is behind the first `skip` bytes, in order.
fn behind<'a>(job: &'a mut Job, skip: u64, mut each: impl FnMut(&'a mut [u8])) {
    let mut skip = skip as usize;
    for (_, io) in &mut job.ios {
        let len = io.data.len();
        if skip < len {
            each(&mut io.data[skip..]);
        }
        skip = skip.saturating_sub(len);
    }
}

fn fault(error: io::Error) -> Fault {
    Fault::of(&error)
}

impl BackEnd for FileBack {
    fn limits(&self) -> Limits {
        Limits {
            sectors: self.bytes.div_ceil(512),
            queue_depth: self.options.depth,
            rotational: self.options.rotational,
            write_cache: true,
            fua: true,
            max_sectors: 2560,
            max_segments: 128,
            budget: false,
        }
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn is_read_only(&self) -> bool {
        self.options.read_only
    }

    fn attach(&self, finisher: Finisher) {
        self.pool.attach(finisher);
    }

    fn start(&self, jobs: &mut Vec<Job>, done: &mut Vec<Job>) {
        let mut waits = Vec::new();
        for mut job in jobs.drain(..) {
            match self.try_now(&mut job) {
                Some(result) => {
                    job.result = result;
                    done.push(job);
                }
                None => waits.push(job),
            }
        }
        self.pool.push(waits.into_iter());
    }

    /// A hop to another thread and back takes longer than most of what the page cache is asked for.
    fn start_alone(&self, jobs: &mut Vec<Job>, done: &mut Vec<Job>) {
        jobs.iter_mut().for_each(|job| job.result = self.disk.serve(job));
        done.append(jobs);
    }

    fn extents(&self, offset: u64, bytes: u64) -> Result<Vec<Extent>, Fault> {
        let (mut at, end) = (offset, offset + bytes);
        let mut out = Vec::new();
        while at < end && out.len() < EXTENTS_MAX {
            // The place is moved by others as well; only the answers count.
            let data = match seek(&self.disk.file, SeekFrom::Data(at)) {
                Ok(data) => data.min(end),
                Err(Errno::NXIO) => end,
                Err(_) => return Ok(vec![Extent { bytes, hole: false, zero: false }]),
            };
            out.push(Extent { bytes: data - at, hole: true, zero: true });
            if data < end {
                let hole = seek(&self.disk.file, SeekFrom::Hole(data)).map_err(|e| fault(e.into()))?;
                out.push(Extent { bytes: hole.min(end) - data, hole: false, zero: false });
                at = hole.min(end);
            } else {
                at = end;
            }
        }
        Ok(joined(out.into_iter().filter(|extent| extent.bytes > 0), EXTENTS_MAX))
    }

    fn sync(&self) -> Result<(), Fault> {
        fdatasync(&self.disk.file).map_err(|error| fault(error.into()))
    }
}
