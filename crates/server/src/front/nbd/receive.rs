//! What came from a client and is not understood yet.

use std::io::{self, Read};

use super::wire::Request;

/// Read at a time, bytes.
const BUFFER: usize = 256 << 10;

/// What came and was not taken.
pub(super) struct Receive {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Receive {
    pub(super) fn new() -> Receive {
        Receive { buffer: vec![0; BUFFER].into(), start: 0, end: 0 }
    }

    /// Bytes that are there.
    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Read once; 0: the client has sent its last.
    pub(super) fn fill(&mut self, stream: &mut impl Read) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let bytes = stream.read(&mut self.buffer[self.end..])?;
        self.end += bytes;
        Ok(bytes)
    }

    /// The next header, if all of it is there; `Err`: it is none.
    pub(super) fn header(&mut self) -> Result<Option<Request>, ()> {
        let Some(header) = self.buffer[self.start..self.end].first_chunk::<{ Request::SIZE }>() else {
            return Ok(None);
        };
        let request = Request::read(header).ok_or(())?;
        self.start += Request::SIZE;
        Ok(Some(request))
    }

    /// Fill `data` as far as there is something; how far.
    pub(super) fn take(&mut self, data: &mut [u8]) -> usize {
        let len = data.len().min(self.len());
        data[..len].copy_from_slice(&self.buffer[self.start..self.start + len]);
        self.start += len;
        len
    }

    /// Forget up to so many bytes; how many.
    pub(super) fn skip(&mut self, most: usize) -> usize {
        let len = most.min(self.len());
        self.start += len;
        len
    }
}
