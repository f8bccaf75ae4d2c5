//! What waits to be sent to a client.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Write};

use super::super::operations::{Operation, Operations};
use super::handshake::ALLOCATION_ID;
use super::wire::{self, Error, Request, chunk, state};
use crate::back::Extent;
use crate::io::{Action, Io};

/// Pieces handed to the system at a time.
const PIECES: usize = 128;
/// Longest header of a reply, bytes.
const HEAD_MAX: usize = 28;

/// A piece of a reply.
enum Piece {
    Head([u8; HEAD_MAX], usize),
    Bytes(Vec<u8>),
    Data(Box<Io>),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Piece::Head(bytes, len) => &bytes[..*len],
            Piece::Bytes(bytes) => bytes,
            Piece::Data(io) => &io.data,
        }
    }
}

/// Replies, in the order in which they are sent.
#[derive(Default)]
pub(super) struct Transmit {
    pieces: VecDeque<Piece>,
    /// Bytes of the first one that are sent.
    sent: usize,
    structured: bool,
}

impl Transmit {
    pub(super) fn new(structured: bool) -> Transmit {
        Transmit { structured, ..Transmit::default() }
    }

    /// Pieces that wait.
    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    fn head(&mut self, parts: &[&[u8]]) {
        let (mut head, mut len) = ([0; HEAD_MAX], 0);
        for part in parts {
            head[len..len + part.len()].copy_from_slice(part);
            len += part.len();
        }
        self.pieces.push_back(Piece::Head(head, len));
    }

    fn simple(&mut self, error: u32, cookie: u64) {
        self.head(&[&wire::SIMPLE_REPLY.to_be_bytes(), &error.to_be_bytes(), &cookie.to_be_bytes()]);
    }

    /// A chunk, the last one of its reply; `start`: the first bytes of its payload.
    fn chunk(&mut self, kind: u16, cookie: u64, len: u32, start: &[u8]) {
        self.head(&[
            &wire::CHUNK.to_be_bytes(),
            &chunk::DONE.to_be_bytes(),
            &kind.to_be_bytes(),
            &cookie.to_be_bytes(),
            &len.to_be_bytes(),
            start,
        ]);
    }

    /// It failed.
    pub(super) fn error(&mut self, cookie: u64, error: Error) {
        if self.structured {
            // Number, and an empty message.
            let mut payload = (error as u32).to_be_bytes().to_vec();
            payload.extend([0; 2]);
            self.chunk(chunk::ERROR, cookie, payload.len() as u32, &payload);
        } else {
            self.simple(error as u32, cookie);
        }
    }

    /// The answer to an operation that is done.
    pub(super) fn answer(&mut self, operation: Operation<Request>, spare: &mut Operations<Request>) {
        let Operation { request, action, mut parts, error, .. } = operation;
        match error {
            Some(error) => {
                self.error(request.cookie, error.into());
                parts.drain(..).flatten().for_each(|io| spare.recycle(io));
                return spare.recycle_list(parts);
            }
            None if !self.structured => self.simple(0, request.cookie),
            None if action == Action::Read && request.bytes > 0 => {
                // All of it in one chunk, as a client may ask for (DF).
                self.chunk(
                    chunk::OFFSET_DATA,
                    request.cookie,
                    request.bytes + 8,
                    &request.offset.to_be_bytes(),
                );
            }
            None => self.chunk(chunk::NONE, request.cookie, 0, &[]),
        }
        self.pieces.extend(parts.drain(..).flatten().map(Piece::Data));
        spare.recycle_list(parts);
    }

    /// The status of blocks.
    pub(super) fn status(&mut self, cookie: u64, extents: &[Extent]) {
        let mut payload = ALLOCATION_ID.to_be_bytes().to_vec();
        for extent in extents {
            let hole = if extent.hole { state::HOLE } else { 0 };
            let zero = if extent.zero { state::ZERO } else { 0 };
            // Bounded by the request's length, which has 32 bits.
            payload.extend((extent.bytes as u32).to_be_bytes());
            payload.extend((hole | zero).to_be_bytes());
        }
        self.chunk(chunk::BLOCK_STATUS, cookie, payload.len() as u32, &[]);
        self.pieces.push_back(Piece::Bytes(payload));
    }

    /// Send as much as goes without waiting; the bytes of data that are gone, and whether anything is.
    pub(super) fn send(
        &mut self,
        stream: &mut impl Write,
        spare: &mut Operations<Request>,
    ) -> io::Result<(u64, bool)> {
        let (mut data, mut any) = (0, false);
        while !self.pieces.is_empty() {
            let mut skip = self.sent;
            let slices: Vec<IoSlice<'_>> = self
                .pieces
                .iter()
                .take(PIECES)
                .map(|piece| IoSlice::new(&piece.bytes()[std::mem::take(&mut skip)..]))
                .collect();
            match stream.write_vectored(&slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    any = true;
                    data += self.gone(bytes, spare);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok((data, any))
    }

    /// So many bytes are sent.
    fn gone(&mut self, bytes: usize, spare: &mut Operations<Request>) -> u64 {
        self.sent += bytes;
        let mut data = 0;
        while let Some(len) =
            self.pieces.front().map(|piece| piece.bytes().len()).filter(|len| *len <= self.sent)
        {
            self.sent -= len;
            if let Some(Piece::Data(io)) = self.pieces.pop_front() {
                data += u64::from(io.bytes);
                spare.recycle(io);
            }
        }
        data
    }
}
