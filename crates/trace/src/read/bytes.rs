//! Cuts a stream into binary records: a buffer that is refilled, never grown.

use std::io::Read;
use std::sync::Arc;

use super::{Input, NamedInput};
use crate::error::{Place, TraceError};

/// Larger than any record with its payload (64 + 65535 bytes).
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// A window on a stream.
pub(crate) struct Bytes {
    pub file: Arc<str>,
    input: Input,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    /// Stream offset of `buffer[start]`.
    pub offset: u64,
    at_end: bool,
}

impl Bytes {
    pub fn new(named: NamedInput) -> Self {
        Self::with_buffer(named, BUFFER_BYTES)
    }

    /// With another window than the usual.
    pub fn with_buffer(named: NamedInput, bytes: usize) -> Self {
        let buffer = vec![0; bytes].into_boxed_slice();
        Self { file: named.file, input: named.input, buffer, start: 0, end: 0, offset: 0, at_end: false }
    }

    /// What is in the window.
    pub fn window(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Has at least `count` bytes (at most the buffer) in the window, or all that are left. Returns how many there are.
    #[inline]
    pub fn fill(&mut self, count: usize) -> Result<usize, TraceError> {
        if self.end - self.start < count && !self.at_end {
            self.refill(count)?;
        }
        Ok(self.end - self.start)
    }

    #[cold]
    fn refill(&mut self, count: usize) -> Result<(), TraceError> {
        assert!(count <= self.buffer.len(), "a record fits the buffer");
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        while self.end < count {
            match self.input.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.at_end = true;
                    return Ok(());
                }
                Ok(read) => self.end += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.at_end = true;
                    let place = Place {
                        offset: self.offset + self.end as u64,
                        record: 0,
                        line: 0,
                        file: self.file.clone(),
                    };
                    return Err(TraceError::reading(place, &error));
                }
            }
        }
        Ok(())
    }

    /// Moves the window forward.
    #[inline]
    pub fn consume(&mut self, count: usize) {
        debug_assert!(count <= self.end - self.start);
        self.start += count;
        self.offset += count as u64;
    }
}
