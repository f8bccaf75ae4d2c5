//! Plain CSV with a header that names its columns: what the CSV writer writes and what is easy to make.

use super::Shared;
use super::fields::{self, hex, int, sectors_to_bytes, time, uint, uint32};
use super::lines::LineParser;
use crate::error::{ErrorKind, Problem};
use crate::event::{Action, Device, DeviceNumber, Event, Flags, Op};

/// Column names, in the order the CSV writer writes them; then the alternatives only read.
pub(crate) const COLUMNS: [&str; 18] = [
    "time_ns",
    "action",
    "device",
    "sector",
    "skew_bytes",
    "bytes",
    "op",
    "flags",
    "pid",
    "comm",
    "cpu",
    "sequence",
    "error",
    "cgroup",
    "ioprio",
    "response_ns",
    "detail",
    "payload",
];
const ALTERNATIVES: [&str; 9] = [
    "time_us",
    "time_ms",
    "time_s",
    "offset_bytes",
    "sectors",
    "kib",
    "response_us",
    "response_ms",
    "response_s",
];

/// Names of actions in the `action` column.
pub(crate) const ACTIONS: [(&str, Action); 29] = {
    const ZERO: DeviceNumber = DeviceNumber(0);
    [
        ("queue", Action::Queue),
        ("back-merge", Action::BackMerge),
        ("front-merge", Action::FrontMerge),
        ("get-request", Action::GetRequest),
        ("sleep-request", Action::SleepRequest),
        ("requeue", Action::Requeue),
        ("issue", Action::Issue),
        ("complete", Action::Complete),
        ("plug", Action::Plug),
        ("unplug", Action::Unplug { count: 0, by_timer: false }),
        ("unplug-timer", Action::Unplug { count: 0, by_timer: true }),
        ("insert", Action::Insert),
        ("split", Action::Split { to: 0 }),
        ("bounce", Action::Bounce),
        ("remap", Action::Remap { from: ZERO, sector: 0, to: ZERO }),
        ("abort", Action::Abort),
        ("driver-data", Action::DriverData),
        ("zone-plug", Action::ZonePlug),
        ("zone-unplug", Action::ZoneUnplug),
        ("message", Action::Message),
        ("process", Action::Process),
        ("timestamp", Action::Timestamp { seconds: 0, nanoseconds: 0 }),
        ("request-merge", Action::RequestMerge),
        ("bio-complete", Action::BioComplete),
        ("error", Action::Error),
        ("io-start", Action::IoStart),
        ("io-done", Action::IoDone),
        ("file-add", Action::FileAdd),
        ("file-open", Action::FileOpen),
    ]
};

/// Rows under a header.
#[derive(Default)]
pub(crate) struct Csv {
    columns: Vec<&'static str>,
    cells: Vec<Vec<u8>>,
}

/// Whether a line names columns of this format, a time among them.
pub(crate) fn is_header(line: &[u8]) -> bool {
    let names = ["time_ns", "time_us", "time_ms", "time_s"];
    line.split(|&byte| byte == b',').any(|word| names.iter().any(|name| word.trim_ascii() == name.as_bytes()))
}

impl Csv {
    fn header(&mut self, line: &[u8]) -> Result<(), Problem> {
        let mut columns = Vec::new();
        for word in line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
            let known = COLUMNS.iter().chain(&ALTERNATIVES).find(|name| name.as_bytes() == word);
            let Some(name) = known else {
                let all: Vec<&str> = COLUMNS.iter().chain(&ALTERNATIVES).copied().collect();
                return Err(Problem::word(&format!("a column of {}", all.join(" ")), word));
            };
            if columns.contains(name) {
                return Err(Problem::corrupt(format!("the column {name} stands twice in the header")));
            }
            columns.push(*name);
        }
        if !columns.iter().any(|name| name.starts_with("time_")) {
            return Err(Problem::corrupt("the header has no time_ns, time_us, time_ms or time_s"));
        }
        self.columns = columns;
        Ok(())
    }

    /// Cuts a row into cells. Quotes are doubled inside quotes.
    fn cut(&mut self, line: &[u8]) -> Result<usize, Problem> {
        let (mut count, mut rest) = (0, line);
        loop {
            if self.cells.len() == count {
                self.cells.push(Vec::new());
            }
            let cell = &mut self.cells[count];
            cell.clear();
            count += 1;
            if let Some(mut quoted) = rest.strip_prefix(b"\"") {
                loop {
                    let Some(end) = quoted.iter().position(|&byte| byte == b'"') else {
                        return Err(Problem::corrupt("a quote is opened and not closed"));
                    };
                    cell.extend_from_slice(&quoted[..end]);
                    quoted = &quoted[end + 1..];
                    let Some(more) = quoted.strip_prefix(b"\"") else { break };
                    cell.push(b'"');
                    quoted = more;
                }
                rest = quoted;
            } else {
                let end = rest.iter().position(|&byte| byte == b',').unwrap_or(rest.len());
                cell.extend_from_slice(rest[..end].trim_ascii());
                rest = &rest[end..];
            }
            match rest {
                [] => return Ok(count),
                [b',', tail @ ..] => rest = tail,
                _ => return Err(Problem::word("a comma behind a quoted cell", rest)),
            }
            if count > COLUMNS.len() + ALTERNATIVES.len() {
                return Err(Problem::corrupt("more cells than there are columns"));
            }
        }
    }
}

impl LineParser for Csv {
    fn parse(&mut self, line: &[u8], shared: &mut Shared) -> Result<Option<Event>, Problem> {
        if line.trim_ascii().is_empty() || line.starts_with(b"#") {
            return Ok(None);
        }
        if self.columns.is_empty() {
            self.header(line)?;
            return Ok(None);
        }
        let count = self.cut(line)?;
        if count != self.columns.len() {
            let message = format!("expected {} cells as in the header, found {count}", self.columns.len());
            return Err(Problem::corrupt(message));
        }
        let mut event = Event::default();
        let mut detail: &[u8] = b"";
        for (name, cell) in self.columns.iter().zip(&self.cells) {
            match *name {
                "detail" => detail = cell,
                _ if cell.is_empty() && !name.starts_with("time_") => {}
                _ => read_cell(name, cell, &mut event, shared)?,
            }
        }
        read_detail(detail, &mut event)?;
        Ok(Some(event))
    }

    /// Rows without an action are arrivals.
    fn stages(&self) -> Option<bool> {
        (!self.columns.is_empty()).then(|| self.columns.contains(&"action"))
    }
}

fn read_cell(name: &str, cell: &[u8], event: &mut Event, shared: &mut Shared) -> Result<(), Problem> {
    match name {
        "time_ns" => event.time_ns = time(cell, 0, name)?,
        "time_us" => event.time_ns = time(cell, 3, name)?,
        "time_ms" => event.time_ns = time(cell, 6, name)?,
        "time_s" => event.time_ns = time(cell, 9, name)?,
        "action" => event.action = action(cell)?,
        "device" => event.device = device(cell, shared),
        "sector" => event.sector = uint(cell, name)?,
        "skew_bytes" => {
            let skew = uint(cell, name)?;
            event.skew_bytes = u16::try_from(skew)
                .ok()
                .filter(|&skew| skew < 512)
                .ok_or_else(|| Problem::word("less than 512", cell))?;
        }
        "offset_bytes" => event.set_offset_bytes(uint(cell, name)?),
        "bytes" => event.bytes = uint(cell, name)?,
        "sectors" => event.bytes = sectors_to_bytes(uint(cell, name)?)?,
        "kib" => {
            event.bytes = uint(cell, name)?.checked_mul(1024).ok_or_else(|| Problem::word("a size", cell))?;
        }
        "op" => event.op = op(cell)?,
        "flags" => event.flags = flags(cell)?,
        "pid" => event.pid = Some(uint32(cell, name)?),
        "comm" => event.comm = Some(shared.names.intern_bytes(&unescape(cell))),
        "cpu" => event.cpu = Some(uint32(cell, name)?),
        "sequence" => event.sequence = uint32(cell, name)?,
        "error" => {
            event.error =
                i32::try_from(int(cell, name)?).map_err(|_| Problem::word("an error number", cell))?;
        }
        "cgroup" => event.cgroup = Some(uint(cell, name)?),
        "ioprio" => {
            let value = u16::try_from(uint(cell, name)?);
            event.ioprio = Some(value.map_err(|_| Problem::word("a priority below 65536", cell))?);
        }
        "response_ns" => event.response_ns = Some(time(cell, 0, name)?),
        "response_us" => event.response_ns = Some(time(cell, 3, name)?),
        "response_ms" => event.response_ns = Some(time(cell, 6, name)?),
        "response_s" => event.response_ns = Some(time(cell, 9, name)?),
        "payload" => shared.payload.extend_from_slice(&unescape(cell)),
        _ => unreachable!("the header holds known columns only"),
    }
    Ok(())
}

fn action(cell: &[u8]) -> Result<Action, Problem> {
    if cell == b"file-close" {
        return Ok(Action::FileClose);
    }
    let named = ACTIONS.iter().find(|(name, _)| name.as_bytes() == cell).map(|(_, action)| *action);
    named
        .or_else(|| super::blkparse::action(cell))
        .ok_or_else(|| Problem::word("an action like queue, issue, complete or its blkparse letter", cell))
}

fn op(cell: &[u8]) -> Result<Op, Problem> {
    let named =
        Op::NAMES.iter().find(|(name, _)| cell.eq_ignore_ascii_case(name.as_bytes())).map(|(_, op)| *op);
    named
        .or(match cell {
            b"R" | b"r" => Some(Op::Read),
            b"W" | b"w" => Some(Op::Write),
            b"D" | b"d" | b"trim" => Some(Op::Discard),
            b"F" | b"f" => Some(Op::Flush),
            _ => None,
        })
        .ok_or_else(|| Problem::word("an operation like read, write, discard, flush", cell))
}

fn flags(cell: &[u8]) -> Result<Flags, Problem> {
    cell.split(|&byte| byte == b'+').map(<[u8]>::trim_ascii).try_fold(Flags::NONE, |flags, word| {
        let found = Flags::NAMES.iter().find(|(name, _)| name.as_bytes() == word);
        found.map(|(_, flag)| flags.with(*flag)).ok_or_else(|| {
            let names = Flags::NAMES.map(|(name, _)| name).join(" ");
            Problem::word(&format!("flags of {names}, joined by +"), word)
        })
    })
}

/// `8:0` is a device number, anything else a name; a name that looks like a number is written with a backslash.
fn device(cell: &[u8], shared: &mut Shared) -> Device {
    number(cell).map_or_else(|| Device::Name(shared.names.intern_bytes(&unescape(cell))), Device::Number)
}

fn number(text: &[u8]) -> Option<DeviceNumber> {
    let colon = text.iter().position(|&byte| byte == b':')?;
    let part = |part: &[u8]| fields::digits(part).and_then(|value| u32::try_from(value).ok());
    DeviceNumber::new(part(&text[..colon])?, part(&text[colon + 1..])?)
}

/// What an action carries besides the extent: `count`, `to`, `from-device/sector/to-device`, `seconds.nanoseconds`.
fn read_detail(detail: &[u8], event: &mut Event) -> Result<(), Problem> {
    if detail.is_empty() {
        return Ok(());
    }
    let wrong =
        || Problem { kind: ErrorKind::Corrupt, ..Problem::word("a detail that fits the action", detail) };
    event.action = match event.action {
        Action::Unplug { by_timer, .. } => Action::Unplug { count: uint(detail, "a count")?, by_timer },
        Action::Split { .. } => Action::Split { to: uint(detail, "a sector")? },
        Action::Remap { .. } => {
            let mut parts = detail.split(|&byte| byte == b'/');
            let mut part = || parts.next().unwrap_or_default();
            let (from, sector, to) = (part(), part(), part());
            Action::Remap {
                from: number(from).ok_or_else(wrong)?,
                sector: uint(sector, "a sector")?,
                to: number(to).ok_or_else(wrong)?,
            }
        }
        Action::Timestamp { .. } => {
            let ns = time(detail, 9, "the wall clock in seconds")?;
            let seconds = u32::try_from(ns / 1_000_000_000).map_err(|_| wrong())?;
            Action::Timestamp { seconds, nanoseconds: (ns % 1_000_000_000) as u32 }
        }
        _ => return Err(wrong()),
    };
    Ok(())
}

/// `\xNN` back into a byte, `\\` into a backslash.
fn unescape(cell: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(cell.len());
    let mut rest = cell;
    while let [first, tail @ ..] = rest {
        rest = tail;
        match (first, tail) {
            (b'\\', [b'x', high, low, more @ ..]) if hex(&[*high, *low]).is_some() => {
                out.push(hex(&[*high, *low]).unwrap_or(0) as u8);
                rest = more;
            }
            (b'\\', [b'\\', more @ ..]) => {
                out.push(b'\\');
                rest = more;
            }
            _ => out.push(*first),
        }
    }
    out
}
