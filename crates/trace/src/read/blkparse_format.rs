//! Text written with blkparse's `-f FORMAT`.

use super::Shared;
use super::blkparse;
use super::fields::{device, hex, sectors_to_bytes, time, uint, uint32};
use super::lines::LineParser;
use crate::error::Problem;
use crate::event::{Action, Device, DeviceNumber, Event};

/// A format string as blkparse takes it: `%` with an optional width and one of `a c C d D e m M n N p P s S t T u U`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlkparseFormat {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(u8),
    /// One or more blanks.
    Blank,
    Field(u8),
}

const FIELDS: &[u8] = b"acCdDemMnNpPsStTuU";

impl BlkparseFormat {
    /// Reads a format string. `\n` and `\t` may be written as such. The message says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let text = text.replace("\\n", "\n").replace("\\t", "\t");
        let mut rest = text.trim_end_matches(['\n', '\r']).bytes().peekable();
        while let Some(byte) = rest.next() {
            if byte.is_ascii_whitespace() {
                if parts.last() != Some(&Part::Blank) {
                    parts.push(Part::Blank);
                }
            } else if byte == b'%' {
                while rest.next_if(|next| next.is_ascii_digit() || *next == b'-').is_some() {}
                match rest.next() {
                    Some(field) if FIELDS.contains(&field) => parts.push(Part::Field(field)),
                    Some(b'%') => parts.push(Part::Literal(b'%')),
                    Some(other) => {
                        let known = FIELDS.iter().map(|&field| field as char).collect::<String>();
                        return Err(format!("'%{}' is not a blkparse field; fields: {known}", other as char));
                    }
                    None => return Err("'%' at the end of the format".into()),
                }
            } else {
                parts.push(Part::Literal(byte));
            }
        }
        if !parts.iter().any(|part| matches!(part, Part::Field(b'T' | b't'))) {
            return Err("the format has no time: %T (seconds) or %t (nanoseconds) is needed".into());
        }
        Ok(Self { parts })
    }
}

/// Lines of such a format.
pub(crate) struct Formatted {
    format: BlkparseFormat,
}

impl Formatted {
    pub fn new(format: BlkparseFormat) -> Self {
        Self { format }
    }
}

/// What fields give before they make an event.
#[derive(Default)]
struct Found {
    major: Option<u32>,
    minor: Option<u32>,
    seconds: u64,
    nanoseconds: u64,
    number: Option<u64>,
}

impl LineParser for Formatted {
    fn parse(&mut self, line: &[u8], shared: &mut Shared) -> Result<Option<Event>, Problem> {
        if line.trim_ascii().is_empty() || line.starts_with(b"CPU") || line.starts_with(b"Total") {
            return Ok(None);
        }
        let (mut event, mut found, mut rest) = (Event::default(), Found::default(), line.trim_ascii_start());
        for (index, part) in self.format.parts.iter().enumerate() {
            match part {
                Part::Blank => rest = rest.trim_ascii_start(),
                Part::Literal(byte) => match rest.strip_prefix(&[*byte]) {
                    Some(tail) => rest = tail,
                    None => return Err(Problem::word(&format!("'{}' of the format", *byte as char), rest)),
                },
                Part::Field(field) => {
                    rest = rest.trim_ascii_start();
                    let (word, tail) = split(rest, self.format.parts.get(index + 1), *field);
                    rest = tail;
                    read_field(*field, word.trim_ascii_end(), &mut event, &mut found, shared)?;
                }
            }
        }
        event.time_ns = found
            .seconds
            .checked_mul(1_000_000_000)
            .and_then(|whole| whole.checked_add(found.nanoseconds))
            .ok_or_else(|| Problem::corrupt("the time is past 2^64 ns"))?;
        if let (Some(major), Some(minor)) = (found.major, found.minor) {
            let device = DeviceNumber::new(major, minor);
            event.device =
                Device::Number(device.ok_or_else(|| Problem::corrupt("the device number is too large"))?);
        }
        if let (Action::Unplug { by_timer, .. }, Some(count)) = (event.action, found.number) {
            event.action = Action::Unplug { count, by_timer };
        }
        Ok(Some(event))
    }
}

/// The text of a field: up to what follows it in the format. `%D` has its own comma.
fn split<'a>(rest: &'a [u8], next: Option<&Part>, field: u8) -> (&'a [u8], &'a [u8]) {
    let mut commas = usize::from(field == b'D');
    let mut end = rest.len();
    for (index, byte) in rest.iter().enumerate() {
        let stop = match next {
            Some(Part::Literal(literal)) => byte == literal,
            // Process names may hold blanks, but then nothing tells where they end.
            Some(Part::Blank) => byte.is_ascii_whitespace() && (field != b'D' || commas == 0),
            Some(Part::Field(_)) => !byte.is_ascii_alphanumeric(),
            None => false,
        };
        if stop && !(*byte == b',' && commas > 0) {
            end = index;
            break;
        }
        if *byte == b',' && commas > 0 {
            commas -= 1;
        }
    }
    rest.split_at(end)
}

fn read_field(
    field: u8,
    word: &[u8],
    event: &mut Event,
    found: &mut Found,
    shared: &mut Shared,
) -> Result<(), Problem> {
    match field {
        b'a' => event.action = blkparse::action(word).ok_or_else(|| Problem::word("an action", word))?,
        b'c' => event.cpu = Some(uint32(word, "a CPU")?),
        b'C' => event.comm = Some(shared.names.intern_bytes(word)),
        b'd' => {
            (event.op, event.flags) =
                crate::rwbs::parse(word).ok_or_else(|| Problem::word("operation and flags", word))?;
        }
        b'D' => {
            let word: Vec<u8> = word.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
            event.device = Device::Number(device(&word)?);
        }
        b'e' => event.error = blkparse::error_number(word)?,
        b'm' => found.minor = Some(uint32(word, "a minor number")?),
        b'M' => found.major = Some(uint32(word, "a major number")?),
        b'n' => event.bytes = event.bytes.max(sectors_to_bytes(uint(word, "a number of blocks")?)?),
        b'N' => event.bytes = uint(word, "a number of bytes")?,
        b'p' => event.pid = Some(uint32(word, "a process number")?),
        b'P' => {
            let bytes = word.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            shared.payload.extend(bytes.filter_map(hex).map(|byte| byte as u8));
        }
        b's' => event.sequence = uint32(word, "a sequence number")?,
        b'S' => event.sector = uint(word, "a sector")?,
        b't' => found.nanoseconds = uint(word, "nanoseconds")?,
        b'T' => found.seconds = time(word, 0, "the time in seconds")?,
        b'u' => {
            event.response_ns =
                Some(uint(word, "elapsed microseconds")?.saturating_mul(1000)).filter(|&ns| ns > 0);
        }
        b'U' => found.number = Some(uint(word, "a number")?),
        _ => unreachable!("the format holds known fields only"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(format: &str, line: &str) -> Event {
        let mut parser = Formatted::new(BlkparseFormat::parse(format).expect("a format"));
        parser.parse(line.as_bytes(), &mut Shared::default()).expect("a line").expect("an event")
    }

    #[test]
    fn common_formats() {
        let event = parse("%5T.%9t, %p, %a, %C\\n", "    7.000000042, 1234, Q, fio");
        assert_eq!((event.time_ns, event.pid, event.action), (7_000_000_042, Some(1234), Action::Queue));
        let event = parse(
            "%D %2c %8s %5T.%9t %5p %2a %3d %S %n %C\\n",
            "  8,0    3        1     0.5  697  D   W 223490 8 kjournald",
        );
        assert_eq!(event.device, Device::Number(DeviceNumber::new(8, 0).unwrap()));
        assert_eq!((event.sector, event.bytes, event.action), (223_490, 4096, Action::Issue));
        let event = parse("%M:%m;%T;%t;%d;%S;%N", "254:3;1;7;FWFS;64;512");
        assert_eq!(event.device, Device::Number(DeviceNumber::new(254, 3).unwrap()));
        assert!(BlkparseFormat::parse("%T %z").unwrap_err().contains("%z"));
        assert!(BlkparseFormat::parse("%a").unwrap_err().contains("no time"));
    }
}
