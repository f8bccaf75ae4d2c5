//! fio's I/O logs, versions 2 and 3.

use super::Shared;
use super::fields::{next_word, time, uint};
use super::lines::LineParser;
use crate::error::{ErrorKind, Problem};
use crate::event::{Action, Device, DeviceNumber, Event, Op};

/// `fio version N iolog`, then `file action` or `file action offset bytes`; version 3 puts microseconds in front.
#[derive(Default)]
pub(crate) struct Iolog {
    version: Option<u8>,
    /// Version 2 counts waits.
    time_ns: u64,
}

/// The version of a first line, if it is one.
pub(crate) fn header_version(line: &[u8]) -> Option<u8> {
    match line.trim_ascii() {
        b"fio version 2 iolog" => Some(2),
        b"fio version 3 iolog" => Some(3),
        _ => None,
    }
}

/// The device of a file name: `/dev/block/8:0` is a device number, anything else a name.
fn device(file: &[u8], shared: &mut Shared) -> Device {
    let number = |text: &[u8]| -> Option<DeviceNumber> {
        let colon = text.iter().position(|&byte| byte == b':')?;
        let part = |part: &[u8]| super::fields::digits(part).and_then(|value| u32::try_from(value).ok());
        DeviceNumber::new(part(&text[..colon])?, part(&text[colon + 1..])?)
    };
    match file.strip_prefix(b"/dev/block/").and_then(number) {
        Some(number) => Device::Number(number),
        None => Device::Name(shared.names.intern_bytes(file)),
    }
}

impl LineParser for Iolog {
    fn parse(&mut self, line: &[u8], shared: &mut Shared) -> Result<Option<Event>, Problem> {
        let Some(version) = self.version else {
            self.version = header_version(line);
            if self.version.is_some() || line.trim_ascii().is_empty() {
                return Ok(None);
            }
            if line.starts_with(b"fio version") {
                let message = "only versions 2 and 3 of fio's iolog are read".to_owned();
                return Err(Problem { kind: ErrorKind::Unsupported, message });
            }
            return Err(Problem::word("'fio version 2 iolog' or 'fio version 3 iolog'", line));
        };
        // fio appends to an existing log, so the header may come again.
        if line.trim_ascii().is_empty() || header_version(line).is_some() {
            return Ok(None);
        }
        let mut rest = line;
        let time_ns = match version {
            3 => time(next_word(&mut rest), 3, "the time in microseconds")?,
            _ => self.time_ns,
        };
        let file = next_word(&mut rest);
        let word = next_word(&mut rest);
        let (action, op) = match word {
            b"add" => (Action::FileAdd, Op::None),
            b"open" => (Action::FileOpen, Op::None),
            b"close" => (Action::FileClose, Op::None),
            b"read" => (Action::Queue, Op::Read),
            b"write" => (Action::Queue, Op::Write),
            b"trim" => (Action::Queue, Op::Discard),
            b"sync" => (Action::Queue, Op::Sync),
            b"datasync" => (Action::Queue, Op::DataSync),
            b"wait" if version == 2 => {
                let wait = uint(next_word(&mut rest), "microseconds to wait")?;
                let time_ns = wait.checked_mul(1000).and_then(|wait| self.time_ns.checked_add(wait));
                self.time_ns = time_ns.ok_or_else(|| Problem::corrupt("the waits are more than 2^64 ns"))?;
                return Ok(None);
            }
            _ => {
                let expected = "add, open, close, read, write, trim, sync, datasync or (version 2) wait";
                return Err(Problem::word(expected, word));
            }
        };
        let mut event = Event { time_ns, action, op, device: device(file, shared), ..Event::default() };
        if action == Action::Queue {
            let (offset, size) = (next_word(&mut rest), next_word(&mut rest));
            let is_sync = matches!(op, Op::Sync | Op::DataSync);
            if !(is_sync && offset.is_empty()) {
                event.set_offset_bytes(uint(offset, "an offset in bytes")?);
                event.bytes = uint(size, "a size in bytes")?;
            }
        }
        Ok(Some(event))
    }
}
