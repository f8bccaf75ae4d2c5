//! Operations: what a task or the page cache waits for, made of bios.

use super::BlockLayer;
use crate::engine::{OpId, TaskId};

/// The task to wake when an operation is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A task that waits for it or collects it.
    Task(TaskId),
    /// The page cache: its I/O with this number.
    Pages(u32),
    /// An operation on a volume, of which this is the part for one disk.
    Volume(OpId),
}

/// A finished operation.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Which one.
    pub op: OpId,
    /// Whose.
    pub owner: Owner,
    /// When, nanoseconds.
    pub at_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    pub(super) owner: Owner,
    /// Bios not done yet, plus one while the submitter still adds some.
    pub(super) left: u32,
}

impl BlockLayer {
    /// Open an operation: bios are added until [`BlockLayer::close_op`].
    pub(crate) fn open_op(&mut self, owner: Owner) -> OpId {
        let operation = Operation { owner, left: 1 };
        if let Some(op) = self.free_ops.pop() {
            self.ops[op.0 as usize] = operation;
            op
        } else {
            self.ops.push(operation);
            OpId(self.ops.len() as u32 - 1)
        }
    }

    /// All its bios are submitted.
    pub(crate) fn close_op(&mut self, op: OpId, now: u64) {
        self.one_less(op, now);
    }

    pub(super) fn one_less(&mut self, op: OpId, now: u64) {
        let operation = &mut self.ops[op.0 as usize];
        operation.left -= 1;
        if operation.left == 0 {
            self.done.push_back(Done { op, owner: operation.owner, at_ns: now });
            if let Some(recorder) = &mut self.recorder {
                recorder.op_done(op, None);
            }
        }
    }

    /// Its owner knows that it is done: the number may be used again.
    pub(crate) fn forget_op(&mut self, op: OpId) {
        debug_assert_eq!(self.ops[op.0 as usize].left, 0);
        self.free_ops.push(op);
    }

    pub(crate) fn pop_done(&mut self) -> Option<Done> {
        self.done.pop_front()
    }
}
