//! A file or block device. What the page cache can answer at once is done where it comes up; all else by the kernel's own threads
//! (`uring`) or by ours (`pool.rs`).

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use rustix::fs::{SeekFrom, fdatasync, seek};
use rustix::io::{Errno, ReadWriteFlags};
use serde::Deserialize;

use super::disk::{BUFFERS_MAX, Disk};
use super::pool::{self, Pool};
use super::{BackEnd, Extent, Figures, Finisher, Job, Limits, MayWait, joined};
use crate::io::{Action, Fault};
use crate::log::{Level, log};
use crate::uring::file::{self as uring, Uring};

/// Jobs at a time if nothing else is asked for.
pub const DEPTH: u32 = 32;
/// Threads beside io_uring, for what it does not do.
const THREADS_BESIDE: usize = 4;
/// Most jobs at a time that the thread of their client does: as many as it does in a millisecond while writes are short.
const HERE_MAX: usize = 20;
/// Most extents of an answer.
const EXTENTS_MAX: usize = 1024;

/// Who does what may block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// io_uring for direct I/O where it may be used, else threads: through the page cache threads are the cheaper ones.
    #[default]
    Auto,
    /// io_uring, or an error.
    IoUring,
    /// A thread for each job.
    Threads,
}

impl Engine {
    /// Read `auto`, `io_uring` or `threads`.
    ///
    /// # Errors
    /// With what is allowed.
    pub fn parse(text: &str) -> Result<Engine, String> {
        match text {
            "auto" => Ok(Engine::Auto),
            "io_uring" => Ok(Engine::IoUring),
            "threads" => Ok(Engine::Threads),
            _ => Err(format!("there is no engine '{text}' (allowed: auto, io_uring, threads)")),
        }
    }
}

/// How a file is to be served.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Refuse writes?
    pub read_only: bool,
    /// Jobs at a time.
    pub depth: u32,
    /// Do seeks cost it time?
    pub rotational: bool,
    /// Past the page cache (O_DIRECT)?
    pub direct: bool,
    /// Who does what may block.
    pub engine: Engine,
}

/// The back end.
pub struct FileBack {
    disk: Arc<Disk>,
    pool: Arc<Pool>,
    uring: Option<Uring>,
    options: Options,
    /// Does the file system know "only if you need not wait" for reads, for writes?
    nowait: [AtomicBool; 2],
}

impl fmt::Debug for FileBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileBack").field("options", &self.options).finish_non_exhaustive()
    }
}

impl FileBack {
    /// Open it. Which engine it got, and why, is in the log.
    ///
    /// # Errors
    /// When it cannot be opened so, or has no size.
    pub fn open(path: &Path, options: Options) -> io::Result<FileBack> {
        let disk = Arc::new(Disk::open(path, options.read_only, options.direct)?);
        let wants_ring = match options.engine {
            Engine::Auto => options.direct,
            Engine::IoUring => true,
            Engine::Threads => false,
        };
        let threads = if wants_ring { THREADS_BESIDE } else { options.depth as usize };
        let mut pool = Arc::new(FileBack::pool(&disk, threads)?);
        let ring = wants_ring.then(|| Uring::new(&disk, options.depth, &pool));
        let (uring, why) = match ring {
            Some(Ok(uring)) => (Some(uring), String::new()),
            Some(Err(error)) if options.engine == Engine::IoUring => {
                return Err(io::Error::other(format!("io_uring: {error}")));
            }
            Some(Err(error)) => {
                pool = Arc::new(FileBack::pool(&disk, options.depth as usize)?);
                (None, format!("io_uring: {error}"))
            }
            None => (None, String::new()),
        };
        let back =
            FileBack { disk, pool, uring, options, nowait: [AtomicBool::new(true), AtomicBool::new(true)] };
        let (file, engine) = (path.display().to_string(), back.engine());
        let level = if why.is_empty() { Level::Info } else { Level::Warn };
        let fields = [("file", file.as_str()), ("engine", engine), ("why", why.as_str())];
        log(level, "engine", if why.is_empty() { &fields[..2] } else { &fields });
        Ok(back)
    }

    fn pool(disk: &Arc<Disk>, threads: usize) -> io::Result<Pool> {
        let worker = disk.clone();
        Pool::new(threads, move |job| job.result = worker.serve(job))
    }

    /// Who does what may block.
    fn engine(&self) -> &'static str {
        if self.uring.is_some() { "io_uring" } else { "threads" }
    }

    /// Is `job` done by the thread that starts it? A hop to another one and back takes longer than most of what the page cache is asked for.
    fn does_here(&self, job: &Job, short: bool) -> bool {
        match job.may_wait {
            MayWait::Long => true,
            MayWait::Shortly => short && pool::is_quick(job) && !self.options.direct,
            MayWait::No => false,
        }
    }

    /// Try it without waiting: `None` if that does not go.
    fn try_now(&self, job: &mut Job) -> Option<Result<(), Fault>> {
        let kind = match job.action {
            Action::Read => 0,
            Action::Write if !job.fua => 1,
            _ => return None,
        };
        if self.options.direct || !self.nowait[kind].load(Relaxed) || job.ios.len() > BUFFERS_MAX {
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

impl BackEnd for FileBack {
    fn limits(&self) -> Limits {
        Limits {
            sectors: self.disk.bytes.div_ceil(512),
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
        self.disk.bytes
    }

    fn block_bytes(&self) -> u32 {
        self.disk.block
    }

    fn is_read_only(&self) -> bool {
        self.options.read_only
    }

    fn attach(&self, finisher: Finisher) {
        if let Some(uring) = &self.uring {
            uring.attach(finisher.clone());
        }
        self.pool.attach(finisher);
    }

    fn start(&self, jobs: &mut Vec<Job>, done: &mut Vec<Job>) {
        let (mut others, mut here) = (Vec::new(), Vec::new());
        let short = self.pool.finds_writes_short();
        for mut job in jobs.drain(..) {
            if let Some(result) = self.try_now(&mut job) {
                job.result = result;
                done.push(job);
            } else if self.does_here(&job, short) && here.len() < HERE_MAX {
                here.push(job);
            } else {
                others.push(job);
            }
        }
        match &self.uring {
            Some(uring) => {
                let (for_ring, for_pool): (Vec<Job>, Vec<Job>) = others.into_iter().partition(uring::does);
                uring.push(for_ring.into_iter());
                self.pool.push(for_pool.into_iter());
            }
            None => self.pool.push(others.into_iter()),
        }
        if !here.is_empty() {
            // Other clients do not wait for them.
            if done.iter().any(|job| job.may_wait == MayWait::No) {
                self.pool.finish(done);
            }
            self.pool.do_timed(&mut here, |job| job.result = self.disk.serve(job));
            done.append(&mut here);
        }
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
                let hole =
                    seek(&self.disk.file, SeekFrom::Hole(data)).map_err(|error| Fault::of(&error.into()))?;
                out.push(Extent { bytes: hole.min(end) - data, hole: false, zero: false });
                at = hole.min(end);
            } else {
                at = end;
            }
        }
        Ok(joined(out.into_iter().filter(|extent| extent.bytes > 0), EXTENTS_MAX))
    }

    fn sync(&self) -> Result<(), Fault> {
        fdatasync(&self.disk.file).map_err(|error| Fault::of(&error.into()))
    }

    fn figures(&self) -> Figures {
        Figures { engine: Some(self.engine()), ..Figures::default() }
    }
}
