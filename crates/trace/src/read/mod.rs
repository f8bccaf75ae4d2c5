//! The readers: one file a format, over two ways to cut a stream (records, lines).

pub(crate) mod blkparse;
pub(crate) mod blkparse_format;
pub(crate) mod blkreplay;
pub(crate) mod blktrace;
pub(crate) mod bytes;
pub(crate) mod corpora;
pub(crate) mod csv;
pub(crate) mod disksim;
pub(crate) mod fields;
pub(crate) mod ftrace;
pub(crate) mod iolog;
pub(crate) mod lines;
pub(crate) mod merge;
pub(crate) mod record;
pub(crate) mod vscsi;

use std::io::Read;
use std::sync::Arc;

use crate::error::{Place, TraceError};
use crate::event::Event;
use crate::names::Names;

/// A stream of bytes after decompression.
pub(crate) type Input = Box<dyn Read + Send>;

/// What all sources of one reader share.
#[derive(Default)]
pub(crate) struct Shared {
    pub names: Names,
    /// The bytes that belong to the event returned last.
    pub payload: Vec<u8>,
    pub processes: Processes,
}

/// Process names learned from notes. Bounded: past the limit the older half of what is known is forgotten by
/// forgetting everything, which later notes repair.
#[derive(Default)]
pub(crate) struct Processes {
    names: std::collections::HashMap<u32, crate::names::Text>,
}

impl Processes {
    const COUNT_MAX: usize = 1 << 18;

    pub fn learn(&mut self, pid: u32, comm: crate::names::Text) {
        if self.names.len() >= Self::COUNT_MAX {
            self.names.clear();
        }
        self.names.insert(pid, comm);
    }

    pub fn name(&self, pid: u32) -> Option<crate::names::Text> {
        self.names.get(&pid).copied()
    }
}

/// One opened trace of a known format.
///
/// After an error the next call goes on behind the faulty record, unless the error is final: then it gives `None`.
pub(crate) trait Source: Send {
    /// The next event. Its payload, if any, is left in `shared`.
    fn next(&mut self, shared: &mut Shared) -> Result<Option<Event>, TraceError>;
    /// Where the event returned last stands.
    fn place(&self) -> Place;
    /// Bytes given up while looking for the next good record.
    fn skipped_bytes(&self) -> u64 {
        0
    }
    /// Whether events of several stages may be there; `None`: as the format says.
    fn stages(&self) -> Option<bool> {
        None
    }
}

/// A named stream.
pub(crate) struct NamedInput {
    pub file: Arc<str>,
    pub input: Input,
}
