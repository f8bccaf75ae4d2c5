//! DiskSim's ASCII traces, its validation traces, and MQSim's look-alike.

use super::Shared;
use super::fields::{Words, digits, hex, sectors_to_bytes, time, uint};
use super::lines::LineParser;
use crate::error::Problem;
use crate::event::{Action, Device, Event, Flags, Op};

/// `time_ms device block blocks flags`; bit 0 of the hexadecimal flags is a read.
#[derive(Default)]
pub(crate) struct DiskSim;

fn is_comment(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.is_empty() || line.starts_with(b"#")
}

fn volume(word: &[u8], shared: &mut Shared) -> Result<Device, Problem> {
    uint(word, "a device number")?;
    Ok(Device::Name(shared.names.intern_bytes(word)))
}

impl LineParser for DiskSim {
    fn parse(&mut self, line: &[u8], shared: &mut Shared) -> Result<Option<Event>, Problem> {
        if is_comment(line) {
            return Ok(None);
        }
        let words = Words::<5>::blank(line);
        let [when, device, block, blocks, flags] = *words.exactly(5, "time_ms device block blocks flags")?;
        let bits = hex(flags).ok_or_else(|| Problem::word("hexadecimal flags", flags))?;
        Ok(Some(Event {
            time_ns: time(when, 6, "the arrival time in ms")?,
            action: Action::Queue,
            device: volume(device, shared)?,
            sector: uint(block, "a block")?,
            bytes: sectors_to_bytes(uint(blocks, "a number of blocks")?)?,
            op: if bits & 1 == 1 { Op::Read } else { Op::Write },
            ..Event::default()
        }))
    }
}

/// `R|W LABEL block blocks response_us gap_us`, where the gap is from that completion to the next arrival. The label is
/// Hit, Miss, or what else who measured wanted to tell apart (Doub, Trip): a word.
#[derive(Default)]
pub(crate) struct Validation {
    next_ns: u64,
}

impl LineParser for Validation {
    fn parse(&mut self, line: &[u8], _: &mut Shared) -> Result<Option<Event>, Problem> {
        if is_comment(line) {
            return Ok(None);
        }
        let words = Words::<6>::blank(line);
        let columns = "R|W LABEL block blocks response_us gap_us";
        let [op, label, block, blocks, response, gap] = *words.exactly(6, columns)?;
        let response_ns = time(response, 3, "the response time in us")?;
        let gap_ns = time(gap, 3, "the time to the next arrival in us")?;
        let event = Event {
            time_ns: self.next_ns,
            action: Action::Queue,
            sector: uint(block, "a block")?,
            bytes: sectors_to_bytes(uint(blocks, "a number of blocks")?)?,
            op: match op {
                b"R" => Op::Read,
                b"W" => Op::Write,
                _ => return Err(Problem::word("R or W", op)),
            },
            flags: match label {
                b"Hit" => Flags::CACHE_HIT,
                b"Miss" => Flags::CACHE_MISS,
                word if word.iter().all(u8::is_ascii_alphabetic) => Flags::default(),
                _ => return Err(Problem::word("a label such as Hit, Miss or Doub", label)),
            },
            response_ns: Some(response_ns),
            ..Event::default()
        };
        self.next_ns = response_ns
            .checked_add(gap_ns)
            .and_then(|step| self.next_ns.checked_add(step))
            .ok_or_else(|| Problem::corrupt("the times add up to more than 2^64 ns"))?;
        Ok(Some(event))
    }
}

/// MQSim: `time_ns device sector sectors type`, where type 0 is a **write** and 1 a read.
#[derive(Default)]
pub(crate) struct MqSim;

impl LineParser for MqSim {
    fn parse(&mut self, line: &[u8], shared: &mut Shared) -> Result<Option<Event>, Problem> {
        if is_comment(line) {
            return Ok(None);
        }
        let words = Words::<5>::blank(line);
        let [when, device, sector, sectors, kind] =
            *words.exactly(5, "time_ns device sector sectors type")?;
        Ok(Some(Event {
            time_ns: digits(when)
                .ok_or_else(|| Problem::word("the arrival time in ns, a whole number", when))?,
            action: Action::Queue,
            device: volume(device, shared)?,
            sector: uint(sector, "a sector")?,
            bytes: sectors_to_bytes(uint(sectors, "a number of sectors")?)?,
            op: match kind {
                b"0" => Op::Write,
                b"1" => Op::Read,
                _ => return Err(Problem::word("0 (write) or 1 (read)", kind)),
            },
            ..Event::default()
        }))
    }
}
