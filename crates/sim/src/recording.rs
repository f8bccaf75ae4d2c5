//! A simulated run as a block trace, for the tools that look at real ones.
//!
//! The device is 8:0 (a volume's disks: 8:0, 8:16, 8:32), there is one CPU, and a task's process number is its place in the order of start, from 1. A request
//! is inserted when it is made, so the time behind a plug counts as time in the elevator (I2D), and all merges are back
//! merges (M).

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use fairlift_core::{Flags, Op};
use fairlift_trace::write::{EventWriter, Losses};
use fairlift_trace::{Action, Device, DeviceNumber, Event, Flags as TraceFlags, Names, Op as TraceOp, Texts};

use crate::block::{Decision, TraceEvent, TraceKind};
use crate::engine::TaskId;

/// A simulated disk: `8,0` in blkparse, a volume's second one `8,16`.
fn device(disk: u8) -> DeviceNumber {
    DeviceNumber(8 << 20 | u32::from(disk) << 4)
}

/// Writes what happens in the block layer.
pub struct Recording {
    writer: Box<dyn EventWriter>,
    names: Names,
    /// Tasks that sleep for a request slot: their bio came in before.
    waiting: BTreeSet<TaskId>,
    failed: Option<io::Error>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording").field("waiting", &self.waiting.len()).finish_non_exhaustive()
    }
}

impl Recording {
    /// Into `writer`.
    pub fn new(writer: Box<dyn EventWriter>) -> Recording {
        Recording { writer, names: Names::default(), waiting: BTreeSet::new(), failed: None }
    }

    /// One more event, of a task called `name`.
    pub(crate) fn event(&mut self, event: &TraceEvent, name: &str) {
        let was_waiting = match (event.kind, event.task) {
            (TraceKind::Queued | TraceKind::Merged, Some(task)) => self.waiting.remove(&task),
            (TraceKind::Waits, Some(task)) => !self.waiting.insert(task),
            _ => false,
        };
        let actions: &[Action] = match (event.kind, was_waiting) {
            (TraceKind::Queued, false) => &[Action::Queue, Action::GetRequest, Action::Insert],
            (TraceKind::Queued, true) => &[Action::GetRequest, Action::Insert],
            (TraceKind::Merged, false) => &[Action::Queue, Action::BackMerge],
            (TraceKind::Merged, true) => &[Action::BackMerge],
            (TraceKind::Waits, _) => &[Action::Queue, Action::SleepRequest],
            (TraceKind::Issued, _) => &[Action::Issue],
            (TraceKind::Completed, _) => &[Action::Complete],
            (TraceKind::Decided(_), _) => &[Action::Message],
        };
        let mut told = Event {
            time_ns: event.at_ns,
            sector: event.sector,
            bytes: u64::from(event.sectors) * 512,
            device: Device::Number(device(event.disk)),
            pid: Some(event.task.map_or(0, |task| task.0 as u32 + 1)),
            comm: (!name.is_empty()).then(|| self.names.intern(name)),
            cpu: Some(0),
            op: op(event.op),
            flags: flags(event.flags),
            ..Event::default()
        };
        let message = message(event);
        for action in actions {
            told.action = *action;
            let texts = Texts { names: &self.names, payload: message.as_bytes() };
            if let (None, Err(error)) = (&self.failed, self.writer.write(&told, texts)) {
                self.failed = Some(error);
            }
        }
    }

    /// Write what is left; says what the format could not hold.
    ///
    /// # Errors
    /// The first error of the run or of this.
    pub fn finish(mut self) -> io::Result<Losses> {
        let losses = self.writer.finish();
        match self.failed {
            Some(error) => Err(error),
            None => losses,
        }
    }
}

/// What the kernel module calls a decision; nothing for other events.
fn message(of: &TraceEvent) -> String {
    let TraceKind::Decided(decision) = of.kind else { return String::new() };
    match decision {
        Decision::Turn { group } => format!("fairlift turn group {group}"),
        Decision::Idle { group, wait_us } => format!("fairlift idle group {group} for {wait_us} us"),
        Decision::Held { group, held } => {
            let what = if of.op == Op::Read { "read" } else { "write" };
            let TraceEvent { sector, sectors, .. } = of;
            format!("fairlift held group {group} {what} {sector} + {sectors}, {held} wait")
        }
    }
}

fn op(of: Op) -> TraceOp {
    match of {
        Op::Read => TraceOp::Read,
        Op::Write => TraceOp::Write,
        Op::Discard => TraceOp::Discard,
        Op::Flush => TraceOp::Flush,
    }
}

/// A barrier of the 2.6 era is what later kernels call a write with a flush before it.
fn flags(of: Flags) -> TraceFlags {
    let pairs = [
        (Flags::SYNC, TraceFlags::SYNC),
        (Flags::META, TraceFlags::META),
        (Flags::FUA, TraceFlags::FUA),
        (Flags::PREFLUSH, TraceFlags::PREFLUSH),
        (Flags::BARRIER, TraceFlags::PREFLUSH),
        (Flags::READAHEAD, TraceFlags::READAHEAD),
    ];
    let has = pairs.into_iter().filter(|(flag, _)| of.contains(*flag));
    has.fold(TraceFlags::NONE, |all, (_, flag)| all.with(flag))
}
