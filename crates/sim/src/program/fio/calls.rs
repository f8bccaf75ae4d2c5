//! fio's engines that call the file system in place of I/O: filecreate, filedelete, filestat, ftruncate, falloc.
//!
//! What a call changes in the file system's metadata reaches the device by the journal. The times are those of the calls:
//! fio counts them as completion latency, and the blocks of the job as if they had been read or written.

use fairlift_fio::offsets::{Io, IoKind};
use fairlift_fio::{Direction, FileCall};

use super::{InFlight, Process};
use crate::engine::Sys;
use crate::kernel::{Errno, Fallocate, Fd, OpenFlags};

impl Process {
    pub(super) async fn run_calls(&mut self, sys: &Sys, call: FileCall) {
        let mut called = vec![false; self.names.len()];
        let mut pass = self.stream.passes();
        while let Some(io) = self.next_in_turn(sys).await {
            let IoKind::Data(direction) = io.kind else { continue };
            if self.stream.passes() != pass {
                pass = self.stream.passes();
                called.fill(false);
            }
            // fio makes the call when it opens the file; the I/O after it does nothing.
            if call.is_by_name() && std::mem::replace(&mut called[io.file], true) {
                continue;
            }
            let started_ns = sys.now();
            self.pace.issued(direction, io.length_bytes);
            let done = self.call(sys, call, &io, direction).await;
            let Some(opened) = self.end_on_error(done) else { return };
            let counted = InFlight { direction, bytes: io.length_bytes, started_ns, issued_ns: started_ns };
            self.record(&counted, sys.now());
            if started_ns >= self.result.started_ns {
                self.result.count_depth(1);
            }
            if let Some(fd) = opened {
                let closed = sys.close(fd).await;
                self.end_on_error(closed);
            }
            self.pace.completed();
            if self.pace.thinks(sys.now()) {
                self.think(sys).await;
            }
        }
    }

    /// One call; what it leaves open.
    async fn call(
        &self,
        sys: &Sys,
        call: FileCall,
        io: &Io,
        direction: Direction,
    ) -> Result<Option<Fd>, Errno> {
        let (offset, bytes) = (io.offset_bytes, io.length_bytes);
        match call {
            FileCall::Create => {
                return sys.open(&self.names[io.file], OpenFlags::RDWR.create()).await.map(Some);
            }
            FileCall::Delete => sys.unlink(&self.names[io.file]).await?,
            FileCall::Stat => sys.stat(&self.names[io.file]).await?,
            FileCall::Truncate => sys.truncate_file(self.files[io.file], offset).await,
            FileCall::Allocate => {
                sys.fallocate_file(self.files[io.file], fallocate(direction), offset, bytes).await?;
            }
        }
        Ok(None)
    }
}

/// What engine falloc does for a block of each direction.
pub(super) fn fallocate(direction: Direction) -> Fallocate {
    match direction {
        Direction::Read => Fallocate::KeepSize,
        Direction::Write => Fallocate::Extend,
        Direction::Trim => Fallocate::Punch,
    }
}
