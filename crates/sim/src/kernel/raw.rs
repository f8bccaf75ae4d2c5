//! I/O straight into the block layer, for programs that stand where the file system does (trace replay).

use fairlift_core::{Bio, Flags, IoPrio, Op};

use super::bio::Kind;
use super::files::Run;
use crate::block::Owner;
use crate::engine::{OpId, Sys};

/// An I/O of the block layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawIo {
    /// What to do.
    pub op: Op,
    /// How.
    pub flags: Flags,
    /// First sector of the device.
    pub sector: u64,
    /// Sectors; 0 for [`Op::Flush`].
    pub sectors: u64,
    /// A priority of its own.
    pub ioprio: Option<IoPrio>,
}

impl Sys {
    /// Submit it and go on; its end is one of [`Sys::next_completion`]'s answers. Waits only for request slots.
    pub async fn submit_raw(&self, io: &RawIo) -> OpId {
        let op = self.open_op(Owner::Task(self.task));
        if io.op == Op::Flush {
            let context = self.context();
            let (flags, ioprio) = (io.flags.or(Flags::SYNC), io.ioprio);
            let bio = Bio {
                cookie: 0,
                op: Op::Flush,
                flags,
                sector: 0,
                sectors: 0,
                segments: 0,
                context,
                ioprio,
                group: None,
            };
            self.submit_bio(op, bio).await;
        } else {
            let kind = Kind { ioprio: io.ioprio, ..Kind::new(io.op, io.flags) };
            self.submit_run(op, kind, Run { sector: io.sector, sectors: io.sectors }).await;
        }
        self.close_op(op);
        op
    }
}
