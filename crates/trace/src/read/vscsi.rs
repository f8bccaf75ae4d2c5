//! CloudPhysics' vscsi traces: binary records of two versions, and as CSV; VMware's CSV.

use super::bytes::Bytes;
use super::fields::{Words, digits, time, uint};
use super::lines::LineParser;
use super::record::Order;
use super::{NamedInput, Shared, Source};
use crate::error::{ErrorKind, Place, Problem, TraceError};
use crate::event::{Action, Event, Flags, Op};

/// Bytes of a record: 1 `sn len nSG cmd ver lbn ts`, 2 `cmd ver sn len nSG lbn ts rt`.
const RECORD_BYTES: [usize; 2] = [32, 40];

/// The version whose layout the first records fit: the upper byte of `ver` says so, in another place in each.
pub(crate) fn version_of(start: &[u8]) -> Option<u8> {
    let says = |version: u8, at: usize, record_bytes: usize| {
        let records = start.chunks_exact(record_bytes).take(4);
        records.len() > 0
            && records.clone().all(|record| record[at + 1] == version && operation(record, version).is_some())
    };
    match (says(2, 2, 40), says(1, 14, 32)) {
        (true, false) => Some(2),
        (false, true) => Some(1),
        _ => None,
    }
}

/// What a SCSI command does; `None` for a number no standard gives to block devices.
fn operation(record: &[u8], version: u8) -> Option<Op> {
    command(Order::Little.u16(record, if version == 2 { 0 } else { 12 }))
}

fn command(number: u16) -> Option<Op> {
    Some(match number {
        0x08 | 0x28 | 0xa8 | 0x88 => Op::Read,
        0x0a | 0x2a | 0xaa | 0x8a | 0x2e | 0x8e => Op::Write,
        0x41 | 0x93 => Op::WriteZeroes,
        0x42 => Op::Discard,
        0x35 | 0x91 => Op::Flush,
        other if other <= 0xff => Op::None,
        _ => return None,
    })
}

/// The events of a binary file.
pub(crate) struct Vscsi {
    bytes: Bytes,
    version: Option<u8>,
    record: u64,
    start: u64,
    at_end: bool,
}

impl Vscsi {
    pub fn new(named: NamedInput) -> Self {
        Self { bytes: Bytes::new(named), version: None, record: 0, start: 0, at_end: false }
    }
}

impl Source for Vscsi {
    fn next(&mut self, shared: &mut Shared) -> Result<Option<Event>, TraceError> {
        if self.at_end {
            return Ok(None);
        }
        shared.payload.clear();
        let version = match self.version {
            Some(version) => version,
            None => {
                let have = self.bytes.fill(4 * RECORD_BYTES[1])?;
                let Some(version) = version_of(&self.bytes.window()[..have]) else {
                    self.at_end = true;
                    let kind = if have == 0 { ErrorKind::Empty } else { ErrorKind::Corrupt };
                    let message = "expected vscsi records of version 1 (32 bytes) or 2 (40 bytes)";
                    return Err(TraceError::new(kind, self.place(), message));
                };
                *self.version.insert(version)
            }
        };
        let size = RECORD_BYTES[usize::from(version) - 1];
        let have = self.bytes.fill(size)?;
        self.start = self.bytes.offset;
        if have < size {
            self.at_end = true;
            if have == 0 {
                return Ok(None);
            }
            self.record += 1;
            let message = format!("the file ends {have} bytes into a record of {size}");
            return Err(TraceError::new(ErrorKind::Truncated, self.place(), message));
        }
        self.record += 1;
        let mut record = [0; 40];
        record[..size].copy_from_slice(&self.bytes.window()[..size]);
        self.bytes.consume(size);
        let word = |at| Order::Little.u32(&record, at);
        let long = |at| Order::Little.u64(&record, at);
        let (stated, sequence, bytes, at) =
            if version == 2 { (record[3], word(4), word(8), 16) } else { (record[15], word(0), word(4), 16) };
        let Some(op) = operation(&record, version).filter(|_| stated == version) else {
            let message =
                format!("record of version {stated} in a file of version {version}, or no SCSI command");
            return Err(TraceError::new(ErrorKind::Corrupt, self.place(), message));
        };
        let nanoseconds = |us: u64| {
            let message = format!("the time {us} us is past 2^64 ns");
            us.checked_mul(1000).ok_or_else(|| TraceError::new(ErrorKind::Corrupt, self.place(), message))
        };
        Ok(Some(Event {
            time_ns: nanoseconds(long(at + 8))?,
            action: Action::Queue,
            sector: long(at),
            bytes: u64::from(bytes),
            sequence,
            op,
            flags: Flags::when(op == Op::None, Flags::PASSTHROUGH),
            response_ns: if version == 2 { Some(nanoseconds(long(at + 16))?) } else { None },
            ..Event::default()
        }))
    }

    fn place(&self) -> Place {
        Place { file: self.bytes.file.clone(), record: self.record, line: 0, offset: self.start }
    }
}

/// `Serial Number,IO Data Length,Num SG Entries,Command Type,LBN,Time Stamp (us)`, `#` before remarks.
#[derive(Default)]
pub(crate) struct VscsiCsv;

impl LineParser for VscsiCsv {
    fn parse(&mut self, line: &[u8], _: &mut Shared) -> Result<Option<Event>, Problem> {
        let text = line.trim_ascii();
        if text.is_empty() || text.starts_with(b"#") {
            return Ok(None);
        }
        let words = Words::<6>::separated(text, b',');
        let [serial, length, entries, command, lbn, stamp] =
            *words.exactly(6, "serial,bytes,nSG,command,lbn,time_us")?;
        uint(entries, "a number of scatter-gather entries")?;
        let serial = uint(serial, "a serial number")?;
        Ok(Some(Event {
            time_ns: time(stamp, 3, "the time in microseconds")?,
            action: Action::Queue,
            sector: uint(lbn, "a block")?,
            bytes: uint(length, "a length in bytes")?,
            sequence: serial as u32, // The recorder's counter has 32 bits.
            op: match command.to_ascii_lowercase().as_slice() {
                b"read" => Op::Read,
                b"write" => Op::Write,
                _ => return Err(Problem::word("read or write", command)),
            },
            ..Event::default()
        }))
    }
}

/// The first line of a CloudPhysics trace as CSV.
const CLOUD_PHYSICS: &[u8] = b"version,time,op,size,lbn";

/// Is this the first line of a CloudPhysics trace as CSV?
pub(crate) fn is_cloud_physics(line: &[u8]) -> bool {
    line.trim_ascii().eq_ignore_ascii_case(CLOUD_PHYSICS)
}

/// CloudPhysics' CSV: `version,time,op,size,lbn`; seconds, a SCSI command's number or a word, bytes, blocks of 512.
#[derive(Default)]
pub(crate) struct CloudPhysics;

impl LineParser for CloudPhysics {
    fn parse(&mut self, line: &[u8], _: &mut Shared) -> Result<Option<Event>, Problem> {
        let text = line.trim_ascii();
        if text.is_empty() || is_cloud_physics(text) {
            return Ok(None);
        }
        let words = Words::<5>::separated(text, b',');
        let [version, stamp, op, size, lbn] = *words.exactly(5, "version,time,op,size,lbn")?;
        uint(version, "a version")?;
        let number = digits(op).and_then(|number| u16::try_from(number).ok());
        let op = match (op.to_ascii_lowercase().as_slice(), number.and_then(command)) {
            (_, Some(op)) => op,
            (b"r" | b"read", None) => Op::Read,
            (b"w" | b"write", None) => Op::Write,
            _ => return Err(Problem::word("a SCSI command's number, read or write", op)),
        };
        Ok(Some(Event {
            time_ns: time(stamp, 9, "the time in seconds")?,
            action: Action::Queue,
            sector: uint(lbn, "a block")?,
            bytes: uint(size, "a size in bytes")?,
            op,
            flags: Flags::when(op == Op::None, Flags::PASSTHROUGH),
            ..Event::default()
        }))
    }
}
