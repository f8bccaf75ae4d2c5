//! I/Os of one traced process in a dozen bytes each, so that ten million of them fit into little memory.

use fairlift_core::{IoPrio, Op};
use fairlift_trace::Flags;

/// Bytes of a piece; pieces are not moved when more come.
const PIECE_BYTES: usize = 32 << 10;
/// Longest encoding of one I/O: the head and six numbers of up to ten bytes.
const IO_BYTES_MAX: usize = 2 + 6 * 10;

/// One I/O as it was traced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Io {
    /// When it arrived, nanoseconds since the trace's first I/O.
    pub(super) at_ns: u64,
    /// Nanoseconds from what came before it in its process: an I/O that was done (`after_completion`), or the I/O before.
    pub(super) gap_ns: u64,
    pub(super) after_completion: bool,
    /// I/Os of its process that were in flight when it arrived.
    pub(super) outstanding: u32,
    /// It was handed over together with the one before (the same plug).
    pub(super) joins: bool,
    pub(super) op: Op,
    pub(super) flags: Flags,
    pub(super) ioprio: Option<IoPrio>,
    /// Which of the trace's devices.
    pub(super) device: u32,
    pub(super) sector: u64,
    pub(super) sectors: u32,
}

/// The flags kept.
const KEPT: [Flags; 5] = [Flags::SYNC, Flags::META, Flags::FUA, Flags::PREFLUSH, Flags::READAHEAD];
const OPS: [Op; 4] = [Op::Read, Op::Write, Op::Discard, Op::Flush];
/// Bits of the head above the flags (0 to 4) and the operation (5 and 6).
const AFTER_COMPLETION: u16 = 1 << 7;
const JOINS: u16 = 1 << 8;
const HAS_IOPRIO: u16 = 1 << 9;
const OTHER_DEVICE: u16 = 1 << 10;

/// The I/O that the next one is stored as a difference to.
#[derive(Clone, Copy, Default, Debug)]
struct Before {
    at_ns: u64,
    end: u64,
    device: u32,
}

impl Before {
    fn of(io: &Io) -> Before {
        Before { at_ns: io.at_ns, end: io.sector.wrapping_add(u64::from(io.sectors)), device: io.device }
    }
}

/// The I/Os, in order of time.
#[derive(Debug, Default)]
pub(super) struct Packed {
    pieces: Vec<Vec<u8>>,
    last: Before,
}

impl Packed {
    pub(super) fn push(&mut self, io: &Io) {
        if self.pieces.last().is_none_or(|piece| piece.len() + IO_BYTES_MAX > PIECE_BYTES) {
            // Most processes of a trace do little: their first piece grows as it needs to.
            let room = if self.pieces.is_empty() { 0 } else { PIECE_BYTES };
            self.pieces.push(Vec::with_capacity(room));
        }
        let Some(out) = self.pieces.last_mut() else { return };
        let mut head = 0;
        for (bit, flag) in KEPT.into_iter().enumerate() {
            head |= u16::from(io.flags.has(flag)) << bit;
        }
        head |= (OPS.iter().position(|op| *op == io.op).unwrap_or(0) as u16) << 5;
        let marks = [
            (AFTER_COMPLETION, io.after_completion),
            (JOINS, io.joins),
            (HAS_IOPRIO, io.ioprio.is_some()),
            (OTHER_DEVICE, io.device != self.last.device),
        ];
        head |= marks.iter().filter(|(_, set)| *set).fold(0, |bits, (bit, _)| bits | bit);
        out.extend_from_slice(&head.to_le_bytes());
        put(out, io.at_ns.wrapping_sub(self.last.at_ns));
        if io.after_completion {
            put(out, io.gap_ns);
        }
        put(out, u64::from(io.outstanding));
        if let Some(ioprio) = io.ioprio {
            put(out, number_of(ioprio));
        }
        if io.device != self.last.device {
            put(out, u64::from(io.device));
        }
        put(out, zigzag(io.sector.wrapping_sub(self.last.end)));
        put(out, u64::from(io.sectors));
        self.last = Before::of(io);
    }

    /// Bytes taken.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.pieces.iter().map(Vec::len).sum()
    }
}

/// Where reading is.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Position {
    piece: usize,
    byte: usize,
    last: Before,
}

impl Position {
    /// The next I/O of `packed`.
    pub(super) fn next(&mut self, packed: &Packed) -> Option<Io> {
        let mut piece = packed.pieces.get(self.piece)?;
        if self.byte == piece.len() {
            (self.piece, self.byte) = (self.piece + 1, 0);
            piece = packed.pieces.get(self.piece)?;
        }
        let bytes = &mut &piece[self.byte..];
        let head = u16::from(byte(bytes)) | u16::from(byte(bytes)) << 8;
        let since_ns = take(bytes);
        let gap_ns = if head & AFTER_COMPLETION != 0 { take(bytes) } else { since_ns };
        let outstanding = take(bytes) as u32;
        let ioprio = if head & HAS_IOPRIO != 0 { Some(ioprio_of(take(bytes))) } else { None };
        let device = if head & OTHER_DEVICE != 0 { take(bytes) as u32 } else { self.last.device };
        let sector = self.last.end.wrapping_add(unzigzag(take(bytes)));
        let sectors = take(bytes) as u32;
        self.byte = piece.len() - bytes.len();
        let flags = KEPT.into_iter().enumerate().filter(|(bit, _)| head >> bit & 1 != 0);
        let io = Io {
            at_ns: self.last.at_ns.wrapping_add(since_ns),
            gap_ns,
            after_completion: head & AFTER_COMPLETION != 0,
            outstanding,
            joins: head & JOINS != 0,
            op: OPS[usize::from(head >> 5 & 3)],
            flags: flags.fold(Flags::NONE, |all, (_, flag)| all.with(flag)),
            ioprio,
            device,
            sector,
            sectors,
        };
        self.last = Before::of(&io);
        Some(io)
    }
}

/// Seven bits a byte, the lowest first; the top bit says that more follow.
fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn byte(bytes: &mut &[u8]) -> u8 {
    match bytes.split_first() {
        Some((first, rest)) => {
            *bytes = rest;
            *first
        }
        None => 0,
    }
}

fn take(bytes: &mut &[u8]) -> u64 {
    let (mut value, mut shift) = (0, 0);
    loop {
        let next = byte(bytes);
        value |= u64::from(next & 0x7f) << shift;
        shift += 7;
        if next & 0x80 == 0 || shift > 63 {
            return value;
        }
    }
}

/// Small differences of either sign to small numbers.
fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

fn number_of(ioprio: IoPrio) -> u64 {
    match ioprio {
        IoPrio::RealTime(level) => u64::from(level),
        IoPrio::BestEffort(level) => 8 + u64::from(level),
        IoPrio::Idle => 16,
    }
}

fn ioprio_of(number: u64) -> IoPrio {
    match number {
        level @ 0..=7 => IoPrio::RealTime(level as u8),
        level @ 8..=15 => IoPrio::BestEffort(level as u8 - 8),
        _ => IoPrio::Idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(n: u64) -> Io {
        Io {
            at_ns: n * 1_000_003,
            gap_ns: if n.is_multiple_of(3) { n * 7 } else { 1_000_003 },
            after_completion: n.is_multiple_of(3),
            outstanding: (n % 300) as u32,
            joins: n.is_multiple_of(2),
            op: OPS[(n % 4) as usize],
            flags: KEPT[(n % 5) as usize].with(KEPT[(n / 5 % 5) as usize]),
            ioprio: [None, Some(IoPrio::RealTime(3)), Some(IoPrio::BestEffort(0)), Some(IoPrio::Idle)]
                [(n % 4) as usize],
            device: (n / 100 % 3) as u32,
            sector: n.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            sectors: (n % 2048) as u32,
        }
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let all: Vec<Io> = (1..20_000).map(io).collect();
        let mut packed = Packed::default();
        all.iter().for_each(|io| packed.push(io));
        assert!(packed.pieces.len() > 5, "several pieces");
        let mut position = Position::default();
        for io in &all {
            assert_eq!(position.next(&packed).as_ref(), Some(io));
        }
        assert_eq!(position.next(&packed), None);
    }

    #[test]
    fn a_usual_io_takes_a_dozen_bytes() {
        let mut packed = Packed::default();
        for n in 0..1000 {
            let sector = n * 0x1234_5678 % 2_000_000_000;
            packed.push(&Io { sector, sectors: 8, gap_ns: 200_000, ioprio: None, device: 0, ..io(n) });
        }
        assert!(packed.bytes() <= 14 * 1000, "{}", packed.bytes());
    }
}
