//! The pieces of the guest's memory that a request is in. The guest may change a chain of descriptors at any time, so it is looked at once.

use std::{io, slice};

use virtio_queue::DescriptorChain;
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};

use super::memory::Memory;

/// Most pieces of a request: as many as a ring has descriptors at most (2.7.5.3.1).
const PIECES_MAX: usize = super::RING_MAX;
/// The status is the last byte that the device may write (5.2.6).
const STATUS_BYTES: u64 = 1;

/// A piece; it has a byte at least.
#[derive(Clone, Copy)]
struct Piece {
    at: GuestAddress,
    bytes: u32,
    /// Is it for the device to write?
    writable: bool,
}

/// A list of pieces, empty, kept for its memory.
#[derive(Default)]
pub(super) struct Spare(Vec<Piece>);

/// A request's memory.
pub(super) struct Chain {
    head: u16,
    memory: Memory,
    pieces: Vec<Piece>,
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Chain {
    /// What `descriptors` describe. A chain with a piece outside of the memory has none.
    pub(super) fn new(descriptors: DescriptorChain<Memory>, memory: Memory, spare: Spare) -> Chain {
        let (head, mut pieces) = (descriptors.head_index(), spare.0);
        for descriptor in descriptors {
            let (at, bytes, writable) = (descriptor.addr(), descriptor.len(), descriptor.is_write_only());
            if pieces.len() == PIECES_MAX || !memory.check_range(at, bytes as usize) {
                pieces.clear();
                break;
            }
            if bytes > 0 {
                pieces.push(Piece { at, bytes, writable });
            }
        }
        Chain { head, memory, pieces }
    }

    /// Its number in the ring.
    pub(super) fn head(&self) -> u16 {
        self.head
    }

    fn side(&self, writable: bool) -> impl Iterator<Item = Piece> + '_ {
        self.pieces.iter().copied().filter(move |piece| piece.writable == writable)
    }

    /// Bytes to read and to write, the status among these.
    pub(super) fn lengths(&self) -> (u64, u64) {
        let sum = |writable| self.side(writable).map(|piece| u64::from(piece.bytes)).sum();
        (sum(false), sum(true))
    }

    /// What it has for the device to read.
    pub(super) fn reader(&self) -> Cursor<'_> {
        self.cursor(false)
    }

    fn cursor(&self, writable: bool) -> Cursor<'_> {
        Cursor { memory: &self.memory, pieces: self.pieces.iter(), writable, piece: None }
    }

    /// Write `data` and the status, as far as there is room before that; how many bytes were written.
    pub(super) fn answer<'a>(&self, data: impl Iterator<Item = &'a [u8]>, status: u8) -> io::Result<u32> {
        let mut room = self
            .lengths()
            .1
            .checked_sub(STATUS_BYTES)
            .ok_or_else(|| broken("there is no place for a status"))?;
        let mut to = self.cursor(true);
        let mut written = STATUS_BYTES;
        for part in data {
            room = room
                .checked_sub(part.len() as u64)
                .ok_or_else(|| broken("there is no place for the data"))?;
            to.write_all(part)?;
            written += part.len() as u64;
        }
        let last = self.side(true).last().ok_or_else(|| broken("there is no place for a status"))?;
        let at = GuestAddress(last.at.0 + u64::from(last.bytes) - STATUS_BYTES);
        self.memory.write_obj(status, at).map_err(io::Error::other)?;
        Ok(u32::try_from(written).unwrap_or(u32::MAX))
    }

    /// It is answered.
    pub(super) fn spare(self) -> Spare {
        let mut pieces = self.pieces;
        pieces.clear();
        Spare(pieces)
    }
}

/// A place in the pieces of one kind.
pub(super) struct Cursor<'a> {
    memory: &'a GuestMemoryMmap,
    pieces: slice::Iter<'a, Piece>,
    writable: bool,
    /// What is left of the piece it is in.
    piece: Option<Piece>,
}

impl Cursor<'_> {
    /// The next bytes in one piece, `most` at most.
    fn step(&mut self, most: usize) -> io::Result<(GuestAddress, usize)> {
        let writable = self.writable;
        let mut next = || self.pieces.find(|piece| piece.writable == writable).copied();
        let piece = self.piece.take().or_else(&mut next);
        let Piece { at, bytes, writable } = piece.ok_or_else(|| broken("the request is too short"))?;
        let taken = most.min(bytes as usize);
        let left = bytes - taken as u32;
        if left > 0 {
            self.piece = Some(Piece { at: GuestAddress(at.0 + taken as u64), bytes: left, writable });
        }
        Ok((at, taken))
    }

    pub(super) fn read_exact(&mut self, mut to: &mut [u8]) -> io::Result<()> {
        while !to.is_empty() {
            let (at, bytes) = self.step(to.len())?;
            let (now, later) = to.split_at_mut(bytes);
            self.memory.read_slice(now, at).map_err(io::Error::other)?;
            to = later;
        }
        Ok(())
    }

    fn write_all(&mut self, mut from: &[u8]) -> io::Result<()> {
        while !from.is_empty() {
            let (at, bytes) = self.step(from.len())?;
            let (now, later) = from.split_at(bytes);
            self.memory.write_slice(now, at).map_err(io::Error::other)?;
            from = later;
        }
        Ok(())
    }
}
