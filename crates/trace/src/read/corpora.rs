//! The published corpora, one line parser each.

use super::Shared;
use super::fields::{Words, digits, sectors_to_bytes, time, uint, uint32};
use super::lines::LineParser;
use crate::error::{ErrorKind, Problem};
use crate::event::{Action, Device, DeviceNumber, Event, Op, SECTOR_BYTES};

/// Seconds from 1601, where FILETIME begins, to 1970.
const FILETIME_EPOCH_S: u64 = 11_644_473_600;

/// A header line is one whose first column is no number.
fn is_header(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line[0] == b'#' || !(line[0].is_ascii_digit() || line[0] == b'-' || line[0] == b'.')
}

fn letter(word: &[u8]) -> Result<Op, Problem> {
    match word {
        b"R" | b"r" => Ok(Op::Read),
        b"W" | b"w" => Ok(Op::Write),
        _ => Err(Problem::word("R or W", word)),
    }
}

fn at_offset(mut event: Event, offset: u64) -> Event {
    event.set_offset_bytes(offset);
    event.action = Action::Queue;
    event
}

macro_rules! header_then {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(crate) struct $name {
            seen: bool,
        }
        impl LineParser for $name {
            fn parse(&mut self, line: &[u8], shared: &mut Shared) -> Result<Option<Event>, Problem> {
                // Column names may stand in the first line only.
                if line.trim_ascii().is_empty() || (!std::mem::replace(&mut self.seen, true) && is_header(line)) {
                    return Ok(None);
                }
                Self::row(line, shared).map(Some)
            }
        }
    };
}

header_then! {
    /// MSR Cambridge: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`; FILETIME, bytes, 100 ns.
    Msr
}
header_then! {
    /// SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`; Unix seconds, seconds, bytes. Type and response may be
    /// blank.
    Systor
}
header_then! {
    /// Alibaba 2020: `device_id,opcode,offset,length,timestamp`; bytes, Unix microseconds.
    Alibaba
}
header_then! {
    /// Tencent CBS 2018: `Timestamp,Offset,Size,IOType,VolumeID`; whole Unix seconds, sectors, 0 = read.
    Tencent
}
header_then! {
    /// Fujitsu K5: `ID,Timestamp,Type,Offset,Length`; Unix seconds, bytes.
    K5
}
header_then! {
    /// SPC (UMass): `ASU,LBA,Size,Opcode,Timestamp`; sectors, bytes, seconds.
    Spc
}
header_then! {
    /// FIU: `ts pid process lba size R|W major minor md5`, blanks between; ns, sectors.
    Fiu
}

impl Msr {
    fn row(line: &[u8], shared: &mut Shared) -> Result<Event, Problem> {
        let words = Words::<7>::separated(line, b',');
        let columns = "Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
        let [stamp, host, disk, kind, offset, size, response] = *words.exactly(7, columns)?;
        let ticks = uint(stamp, "a FILETIME stamp (100 ns since 1601)")?;
        let since_1970 = ticks.checked_sub(FILETIME_EPOCH_S * 10_000_000);
        let time_ns = since_1970.and_then(|ticks| ticks.checked_mul(100)).ok_or_else(|| Problem {
            kind: ErrorKind::NegativeTime,
            message: format!("the FILETIME stamp {ticks} is before 1970 or past 2554"),
        })?;
        uint(disk, "a disk number")?;
        // Host and disk as in the corpus's file names, with a dot so that usr.1 and usr1 differ.
        let mut name = [0u8; 64];
        let length = host.len() + 1 + disk.len();
        if length > name.len() || host.is_empty() {
            return Err(Problem::word("a host name of at most 50 bytes", host));
        }
        name[..host.len()].copy_from_slice(host);
        name[host.len()] = b'.';
        name[host.len() + 1..length].copy_from_slice(disk);
        let event = Event {
            time_ns,
            device: Device::Name(shared.names.intern_bytes(&name[..length])),
            bytes: uint(size, "a size in bytes")?,
            op: match kind {
                b"Read" => Op::Read,
                b"Write" => Op::Write,
                _ => return Err(Problem::word("Read or Write", kind)),
            },
            response_ns: Some(time(response, 2, "the response time in 100 ns")?),
            ..Event::default()
        };
        Ok(at_offset(event, uint(offset, "an offset in bytes")?))
    }
}

impl Systor {
    fn row(line: &[u8], shared: &mut Shared) -> Result<Event, Problem> {
        let words = Words::<6>::separated(line, b',');
        let [stamp, response, kind, lun, offset, size] =
            *words.exactly(6, "Timestamp,Response,IOType,LUN,Offset,Size")?;
        uint(lun, "a LUN")?;
        let event = Event {
            time_ns: time(stamp, 9, "the time in seconds")?,
            device: Device::Name(shared.names.intern_bytes(lun)),
            bytes: uint(size, "a size in bytes")?,
            op: if kind.is_empty() { Op::None } else { letter(kind)? },
            response_ns: match response {
                b"" => None,
                _ => Some(time(response, 9, "the response time in seconds")?),
            },
            ..Event::default()
        };
        Ok(at_offset(event, uint(offset, "an offset in bytes")?))
    }
}

impl Alibaba {
    fn row(line: &[u8], shared: &mut Shared) -> Result<Event, Problem> {
        let words = Words::<5>::separated(line, b',');
        let [volume, op, offset, length, stamp] =
            *words.exactly(5, "device_id,opcode,offset,length,timestamp")?;
        uint(volume, "a volume number")?;
        let stamp_us = uint(stamp, "the time in microseconds")?;
        let time_ns =
            stamp_us.checked_mul(1000).ok_or_else(|| Problem::word("a time before the year 2554", stamp))?;
        let event = Event {
            time_ns,
            device: Device::Name(shared.names.intern_bytes(volume)),
            bytes: uint(length, "a length in bytes")?,
            op: letter(op)?,
            ..Event::default()
        };
        Ok(at_offset(event, uint(offset, "an offset in bytes")?))
    }
}

impl Tencent {
    fn row(line: &[u8], shared: &mut Shared) -> Result<Event, Problem> {
        let words = Words::<5>::separated(line, b',');
        let [stamp, sector, size, kind, volume] =
            *words.exactly(5, "Timestamp,Offset,Size,IOType,VolumeID")?;
        uint(volume, "a volume number")?;
        let seconds = digits(stamp).ok_or_else(|| Problem::word("the time in whole seconds", stamp))?;
        let time_ns = seconds.checked_mul(1_000_000_000);
        Ok(Event {
            time_ns: time_ns.ok_or_else(|| Problem::word("a time before the year 2554", stamp))?,
            device: Device::Name(shared.names.intern_bytes(volume)),
            sector: uint(sector, "an offset in sectors")?,
            bytes: sectors_to_bytes(uint(size, "a size in sectors")?)?,
            op: match kind {
                b"0" => Op::Read,
                b"1" => Op::Write,
                _ => return Err(Problem::word("0 (read) or 1 (write)", kind)),
            },
            ..Event::default()
        })
    }
}

impl K5 {
    fn row(line: &[u8], shared: &mut Shared) -> Result<Event, Problem> {
        let words = Words::<5>::separated(line, b',');
        let [volume, stamp, kind, offset, length] = *words.exactly(5, "ID,Timestamp,Type,Offset,Length")?;
        uint(volume, "a volume number")?;
        let event = Event {
            time_ns: time(stamp, 9, "the time in seconds")?,
            device: Device::Name(shared.names.intern_bytes(volume)),
            bytes: uint(length, "a length in bytes")?,
            op: letter(kind)?,
            ..Event::default()
        };
        Ok(at_offset(event, uint(offset, "an offset in bytes")?))
    }
}

impl Spc {
    fn row(line: &[u8], shared: &mut Shared) -> Result<Event, Problem> {
        // Optional columns may follow; the format allows them and gives them no meaning.
        let mut columns = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
        let mut column = || columns.next().unwrap_or_default();
        let (asu, lba, size, op, stamp) = (column(), column(), column(), column(), column());
        uint(asu, "an application storage unit")?;
        Ok(Event {
            time_ns: time(stamp, 9, "the time in seconds")?,
            action: Action::Queue,
            device: Device::Name(shared.names.intern_bytes(asu)),
            sector: uint(lba, "a block address")?,
            bytes: uint(size, "a size in bytes")?,
            op: letter(op)?,
            ..Event::default()
        })
    }
}

impl Fiu {
    fn row(line: &[u8], shared: &mut Shared) -> Result<Event, Problem> {
        let words = Words::<9>::blank(line);
        let columns = "ts pid process lba size R|W major minor md5";
        let [stamp, pid, process, lba, size, op, major, minor, digest] = *words.exactly(9, columns)?;
        if super::fields::hex(&digest[..digest.len().min(16)]).is_none() {
            return Err(Problem::word("a hexadecimal content hash", digest));
        }
        let number = DeviceNumber::new(uint32(major, "a major number")?, uint32(minor, "a minor number")?);
        let sectors = uint(size, "a size in sectors")?;
        Ok(Event {
            time_ns: digits(stamp).ok_or_else(|| Problem::word("the time in ns, a whole number", stamp))?,
            action: Action::Queue,
            device: Device::Number(
                number.ok_or_else(|| Problem::word("a device below 4096,1048576", major))?,
            ),
            sector: uint(lba, "a sector")?,
            bytes: sectors.checked_mul(SECTOR_BYTES).ok_or_else(|| Problem::word("a size", size))?,
            pid: Some(uint32(pid, "a process number")?),
            comm: Some(shared.names.intern_bytes(process)),
            op: letter(op)?,
            ..Event::default()
        })
    }
}
