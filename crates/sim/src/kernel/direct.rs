//! Direct I/O: past the page cache, straight between program and device.

use fairlift_core::{Bio, Flags, IoPrio, Op};

use super::Rules;
use super::bio::Kind;
use super::files::{FileId, PAGE, PAGE_SECTORS, Run};
use super::vfs::Errno;
use crate::block::{Attempt, Owner};
use crate::engine::{OpId, Sys};

/// What a direct I/O does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectIo {
    /// Read, write or discard.
    pub op: Op,
    /// The file.
    pub file: FileId,
    /// Where, bytes from its start.
    pub offset: u64,
    /// How much, bytes.
    pub bytes: u64,
    /// A priority of its own.
    pub ioprio: Option<IoPrio>,
    /// Done only when it is on the medium (a write through O_DSYNC with asynchronous I/O). Kernels before blk-mq know no such
    /// write and ignore it.
    pub through: bool,
}

impl DirectIo {
    fn flags(&self, rules: &Rules) -> Flags {
        match self.op {
            Op::Read => rules.direct_read,
            _ if self.through && rules.blk_mq => rules.direct_write.or(Flags::FUA),
            _ => rules.direct_write,
        }
    }
}

impl Sys {
    /// Does a direct write under O_DSYNC or O_SYNC ask for FUA by itself? To a block device it does, and the call that waits for it flushes
    /// all the same when the write is done: three trips where the device has no FUA. Source: Linux 6.12 `block/fops.c`
    /// (`dio_bio_write_op`, `blkdev_write_iter`, `blkdev_fsync`).
    pub(crate) fn writes_through(&self, file: FileId) -> bool {
        self.machine.borrow().kernel.rules.blk_mq && !self.is_ext(file)
    }

    /// Submit a direct I/O and go on; its end is one of [`Sys::next_completion`]'s answers. Waits only for CPU, for request
    /// slots, and - on a file system - for what cannot be done directly.
    ///
    /// # Errors
    /// [`Errno::NoSpace`].
    pub async fn submit_direct(&self, io: DirectIo) -> Result<OpId, Errno> {
        let Some((op, bio)) = self.only_bio(&io) else {
            return self.submit_bios(io).await;
        };
        self.submit_as(op, bio, None, Attempt::New).await;
        self.close_op(op);
        Ok(op)
    }

    /// The bio of an I/O that is but one, within a file that lies in one piece; its operation is open. `None`: it takes a closer
    /// look.
    fn only_bio(&self, io: &DirectIo) -> Option<(OpId, Bio)> {
        let machine = &mut *self.machine.borrow_mut();
        let sector = machine.kernel.files.only_run(io.file, io.offset, io.bytes)?;
        let sectors = (io.offset + io.bytes).div_ceil(512) - io.offset / 512;
        if sectors > machine.block.bio_sectors_max() || sectors > machine.block.room_at(sector) {
            return None;
        }
        let bio = Bio {
            cookie: 0,
            op: io.op,
            flags: io.flags(&machine.kernel.rules),
            sector,
            sectors: sectors as u32,
            segments: sectors.div_ceil(PAGE_SECTORS) as u16,
            context: machine.context_of(self.task),
            ioprio: io.ioprio,
            group: None,
        };
        if sectors > machine.block.part_sectors_max(&bio, machine.now()) {
            return None;
        }
        let op = machine.block.open_op(Owner::Task(self.task));
        Some((op, bio))
    }

    async fn submit_bios(&self, io: DirectIo) -> Result<OpId, Errno> {
        let mut direct_end = io.offset + io.bytes;
        if matches!(io.op, Op::Read | Op::Write) && self.is_ext(io.file) {
            self.read_index_of(io.file, io.offset / PAGE, direct_end.div_ceil(PAGE)).await;
        }
        if io.op == Op::Write && self.is_ext(io.file) {
            direct_end = self.ext_prepare_direct(io.file, io.offset, io.bytes).await?;
        }
        let op = self.open_op(Owner::Task(self.task));
        let direct = DirectIo { bytes: direct_end - io.offset, ..io };
        let runs = self.direct_runs(&direct);
        for run in &runs {
            let flags = io.flags(&self.machine.borrow().kernel.rules);
            self.submit_run(op, Kind { ioprio: io.ioprio, ..Kind::new(io.op, flags) }, *run).await;
        }
        self.machine.borrow_mut().kernel.files.keep_room(runs);
        let rest = io.offset + io.bytes - direct_end;
        if rest > 0 {
            // From the first hole on, the call falls back to a buffered write that it waits for; the caller sleeps meanwhile.
            self.unplug();
            let written = self.write_file(io.file, direct_end, rest).await;
            self.write_and_wait(io.file).await;
            self.invalidate(io.file);
            let extra = self.machine.borrow().kernel.rules.cpu_per_hole_write_ns;
            if extra > 0 {
                self.compute(extra).await;
            }
            if let Err(error) = written {
                self.close_op(op);
                self.completion_of(op).await;
                return Err(error);
            }
        }
        self.close_op(op);
        Ok(op)
    }

    /// A direct I/O and its end: `pread`/`pwrite` on a file opened with O_DIRECT. Returns when it was done.
    ///
    /// # Errors
    /// [`Errno::NoSpace`].
    pub async fn direct(&self, io: DirectIo) -> Result<u64, Errno> {
        let op = self.submit_direct(io).await?;
        self.unplug();
        Ok(self.completion_of(op).await)
    }

    fn direct_runs(&self, io: &DirectIo) -> Vec<Run> {
        if io.bytes == 0 {
            return Vec::new();
        }
        let mut machine = self.machine.borrow_mut();
        let mut runs = machine.kernel.files.take_room();
        let first = io.offset / 512;
        let sectors = (io.offset + io.bytes).div_ceil(512) - first;
        let kernel = &mut machine.kernel;
        if io.op == Op::Write && io.offset + io.bytes > kernel.files.get(io.file).bytes {
            kernel.resize(io.file, io.offset + io.bytes);
        }
        kernel.files.map(io.file, first, sectors, io.op == Op::Write, &mut runs);
        runs
    }
}
