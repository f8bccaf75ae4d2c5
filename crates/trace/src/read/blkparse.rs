//! blkparse's default text.

use super::Shared;
use super::fields::{self, bracketed, device, digits, int, next_word, sectors_to_bytes, time, uint, uint32};
use super::lines::LineParser;
use crate::error::Problem;
use crate::event::{Action, Device, DeviceNumber, Event};
use crate::rwbs;

/// Lines of `"%D %2c %8s %5T.%9t %5p %2a %3d "` and the part each action has of its own.
#[derive(Default)]
pub(crate) struct Blkparse {
    in_summary: bool,
}

/// The action of a letter; those with numbers get them later.
pub(crate) fn action(letters: &[u8]) -> Option<Action> {
    Some(match letters {
        b"Q" => Action::Queue,
        b"M" => Action::BackMerge,
        b"F" => Action::FrontMerge,
        b"G" => Action::GetRequest,
        b"S" => Action::SleepRequest,
        b"R" => Action::Requeue,
        b"D" => Action::Issue,
        b"C" => Action::Complete,
        b"P" => Action::Plug,
        b"U" => Action::Unplug { count: 0, by_timer: false },
        b"UT" | b"T" => Action::Unplug { count: 0, by_timer: true },
        b"I" => Action::Insert,
        b"X" => Action::Split { to: 0 },
        b"B" => Action::Bounce,
        b"A" => Action::Remap { from: DeviceNumber(0), sector: 0, to: DeviceNumber(0) },
        b"m" => Action::Message,
        _ => return None,
    })
}

/// blkparse prints the 16 bits of the kernel's error number, without a sign.
pub(crate) fn error_number(word: &[u8]) -> Result<i32, Problem> {
    let value = int(word, "an error number")?;
    let wrapped = if (0x8000..0x1_0000).contains(&value) { value - 0x1_0000 } else { value };
    i32::try_from(wrapped).map_err(|_| Problem::word("an error number", word))
}

/// `S + n`, `S`, `S / new`, `N (command)`, `<- (maj,min) sector`: the numbers of an action part up to its bracket.
/// Returns what is behind them.
pub(crate) fn extent<'a>(
    mut rest: &'a [u8],
    event: &mut Event,
    payload: &mut Vec<u8>,
) -> Result<&'a [u8], Problem> {
    let mut before = rest;
    let first = next_word(&mut rest);
    if first.is_empty() || first[0] == b'[' {
        return Ok(before);
    }
    let number = uint(first, "a sector")?;
    event.sector = number;
    loop {
        before = rest;
        let word = next_word(&mut rest);
        match word {
            b"+" => event.bytes = sectors_to_bytes(uint(next_word(&mut rest), "a number of sectors")?)?,
            b"/" => event.action = Action::Split { to: uint(next_word(&mut rest), "a sector")? },
            b"<-" => {
                let from = next_word(&mut rest);
                let inner = from.strip_prefix(b"(").and_then(|word| word.strip_suffix(b")"));
                let from = device(inner.ok_or_else(|| Problem::word("a device as (major,minor)", from))?)?;
                let sector = uint(next_word(&mut rest), "a sector")?;
                let Device::Number(to) = event.device else { unreachable!("a line's device has a number") };
                event.action = Action::Remap { from, sector, to };
            }
            [b'(', ..] => {
                // The time since the request's issue, a plain number, or a passed-through command, bytes in hex.
                let close = before
                    .iter()
                    .position(|&byte| byte == b')')
                    .ok_or_else(|| Problem::word("a closing parenthesis", word))?;
                let open = before.iter().position(|&byte| byte == b'(').unwrap_or(0);
                let inner = before[open + 1..close].trim_ascii();
                if event.bytes == 0 && inner.iter().any(u8::is_ascii_whitespace) {
                    (event.sector, event.bytes) = (0, number);
                    event.flags = event.flags.with(crate::event::Flags::PASSTHROUGH);
                    let bytes = inner.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
                    payload.extend(
                        bytes.take_while(|&word| word != b"..").filter_map(fields::hex).map(|b| b as u8),
                    );
                }
                rest = &before[close + 1..];
            }
            _ => return Ok(before),
        }
    }
}

impl LineParser for Blkparse {
    fn parse(&mut self, line: &[u8], shared: &mut Shared) -> Result<Option<Event>, Problem> {
        let mut rest = line;
        let first = next_word(&mut rest);
        // blkparse tells on the same stream which files it reads.
        if first.is_empty() || (first == b"Input" && line.ends_with(b"added")) {
            return Ok(None);
        }
        if (first.starts_with(b"CPU") || first == b"Total") && line.ends_with(b"):") {
            self.in_summary = true;
            return Ok(None);
        }
        let mut event = Event { device: Device::Number(device(first)?), ..Event::default() };
        event.cpu = Some(uint32(next_word(&mut rest), "a CPU")?);
        event.sequence = uint32(next_word(&mut rest), "a sequence number")?;
        event.time_ns = time(next_word(&mut rest), 9, "the time in seconds")?;
        event.pid = Some(uint32(next_word(&mut rest), "a process number")?);
        let letters = next_word(&mut rest);
        event.action = action(letters).ok_or_else(|| Problem::word("one of blkparse's actions", letters))?;
        let word = next_word(&mut rest);
        (event.op, event.flags) = rwbs::parse(word)
            .ok_or_else(|| Problem::word("operation and flags, like R, WS or FWFS", word))?;
        if event.action == Action::Message {
            shared.payload.extend_from_slice(rest.strip_prefix(b" ").unwrap_or(rest));
            return Ok(Some(event));
        }
        let rest = extent(rest, &mut event, &mut shared.payload)?;
        if rest.trim_ascii().is_empty() {
            return Ok(Some(event));
        }
        let (inner, behind) =
            bracketed(rest).ok_or_else(|| Problem::word("[process] or [error]", rest.trim_ascii()))?;
        match event.action {
            Action::Complete => event.error = error_number(inner)?,
            Action::Unplug { by_timer, .. } => {
                event.comm = (!inner.is_empty()).then(|| shared.names.intern_bytes(inner));
                let count = digits(behind.trim_ascii()).unwrap_or(0);
                event.action = Action::Unplug { count, by_timer };
            }
            Action::Requeue if int(inner, "").is_ok() => event.error = error_number(inner)?,
            _ => event.comm = (!inner.is_empty()).then(|| shared.names.intern_bytes(inner)),
        }
        Ok(Some(event))
    }

    fn is_done(&self) -> bool {
        self.in_summary
    }
}
