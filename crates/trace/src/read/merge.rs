//! Per-CPU files in one order: by time, equal times by CPU, within a CPU as recorded. (blkparse
//! leaves the order of equal times on different CPUs to how it happened to read them.)

use super::blktrace::BlktraceFile;
use super::{Shared, Source};
use crate::error::{ErrorKind, Place, TraceError};
use crate::event::Event;

/// Several blktrace files as one.
pub(crate) struct Merge {
    files: Vec<Stream>,
    /// The stream the last event came from.
    last: usize,
    last_position: (u64, u64),
    started: bool,
}

struct Stream {
    file: BlktraceFile,
    head: Option<Event>,
    position: (u64, u64),
    payload: Vec<u8>,
}

impl Stream {
    /// Reads the next head. An error is reported now; a later call goes on behind it.
    fn advance(&mut self, shared: &mut Shared) -> Result<(), TraceError> {
        self.head = None;
        let event = self.file.next(shared)?;
        self.head = event;
        self.position = self.file.position();
        std::mem::swap(&mut self.payload, &mut shared.payload);
        Ok(())
    }
}

impl Merge {
    /// `files` in the order of their CPUs.
    pub fn new(files: Vec<BlktraceFile>) -> Self {
        let stream = |file| Stream { file, head: None, position: (0, 0), payload: Vec::new() };
        Self {
            files: files.into_iter().map(stream).collect(),
            last: usize::MAX,
            last_position: (0, 0),
            started: false,
        }
    }
}

impl Source for Merge {
    fn next(&mut self, shared: &mut Shared) -> Result<Option<Event>, TraceError> {
        if !self.started {
            // An error leaves that stream without a head; the call after it comes here again and goes on.
            for stream in self.files.iter_mut().filter(|stream| stream.head.is_none()) {
                stream.advance(shared)?;
            }
            self.started = true;
            if self.files.iter().all(|stream| stream.head.is_none()) {
                let place = self.files.first().map_or_else(
                    || Place { file: "".into(), record: 0, line: 0, offset: 0 },
                    |stream| Place { record: 0, ..stream.file.place() },
                );
                return Err(TraceError::new(ErrorKind::Empty, place, "no record in this trace"));
            }
        }
        if let Some(stream) = self.files.get_mut(self.last)
            && stream.head.is_none()
        {
            let advanced = stream.advance(shared);
            if stream.head.is_none() && advanced.is_ok() {
                self.last = usize::MAX;
            }
            advanced?;
        }
        let next = self
            .files
            .iter()
            .enumerate()
            .filter_map(|(index, stream)| stream.head.map(|head| (head.time_ns, head.cpu, index)))
            .min();
        let Some((.., index)) = next else { return Ok(None) };
        self.last = index;
        let stream = &mut self.files[index];
        self.last_position = stream.position;
        std::mem::swap(&mut stream.payload, &mut shared.payload);
        Ok(stream.head.take())
    }

    fn place(&self) -> Place {
        match self.files.get(self.last) {
            Some(stream) => stream.file.place_of(self.last_position),
            None => Place { file: "".into(), record: 0, line: 0, offset: 0 },
        }
    }

    fn skipped_bytes(&self) -> u64 {
        self.files.iter().map(|stream| stream.file.skipped_bytes()).sum()
    }
}
