//! The file itself: what a thread that may block does with a job.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{AtFlags, FallocateFlags, OFlags, SeekFrom, StatxFlags, fallocate, fdatasync, seek, statx};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};

use crate::io::{Action, Data, Fault};

use super::Job;

/// Zeroes that are written at a time where the file system cannot make them.
const ZEROES: usize = 128 << 10;
/// Most buffers of one call (`IOV_MAX`).
pub(crate) const BUFFERS_MAX: usize = 1024;
/// What O_DIRECT wants where the kernel does not say (before Linux 6.1): no device wants more.
const BLOCK: u32 = 4096;

/// An open file or block device.
pub(crate) struct Disk {
    pub(crate) file: File,
    /// Bytes.
    pub(super) bytes: u64,
    /// Offsets, lengths and memory are multiples of it.
    pub(super) block: u32,
}

impl Disk {
    pub(super) fn open(path: &Path, read_only: bool, direct: bool) -> io::Result<Disk> {
        let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(!read_only).custom_flags(flags.bits().cast_signed());
        let file = match options.open(path) {
            Err(error) if direct && error.kind() == io::ErrorKind::InvalidInput => {
                return Err(io::Error::other("its file system knows no O_DIRECT"));
            }
            file => file?,
        };
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let bytes = seek(&file, SeekFrom::End(0))?;
        let block = if direct { block(&file)? } else { 1 };
        if !bytes.is_multiple_of(block.into()) {
            let text = format!("direct I/O goes in blocks of {block} bytes, and its {bytes} are no multiple");
            return Err(io::Error::other(text));
        }
        Ok(Disk { file, bytes, block })
    }

    /// Do `job`, however long it takes.
    pub(super) fn serve(&self, job: &mut Job) -> Result<(), Fault> {
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
        answer.map_err(|error| Fault::of(&error.into()))
    }

    fn transfer_all(&self, job: &mut Job) -> Result<(), Errno> {
        let flags = if job.fua { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
        let mut done = 0;
        while done < job.bytes {
            match self.transfer(job, done, flags) {
                // Behind the end of a file whose last sector is not whole. Before it there is data, unless somebody has cut the file short.
                Ok(0) if job.action == Action::Read && job.offset + done >= self.bytes => {
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
    pub(super) fn transfer(&self, job: &mut Job, skip: u64, flags: ReadWriteFlags) -> Result<u64, Errno> {
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
        let mut zeroes = Data::default();
        zeroes.resize(ZEROES, self.block);
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

/// The unit of direct I/O on `file`, bytes.
fn block(file: &File) -> io::Result<u32> {
    let dio = StatxFlags::DIOALIGN;
    match statx(file, c"", AtFlags::EMPTY_PATH, dio) {
        Ok(stat) if stat.stx_mask & dio.bits() != 0 => {
            match stat.stx_dio_offset_align.max(stat.stx_dio_mem_align) {
                0 => Err(io::Error::other("it can only be served through the page cache")),
                block => Ok(block.next_power_of_two()),
            }
        }
        _ => Ok(BLOCK),
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
