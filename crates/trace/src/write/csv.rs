//! CSV that holds everything an event has.

use std::io::{self, Write};

use super::{EventWriter, Losses};
use crate::event::{Action, Device, Event, Flags};
use crate::names::Texts;
use crate::read::csv::{ACTIONS, COLUMNS};

/// Writes a header and one row for each event. Lossless.
#[derive(Debug)]
pub struct CsvWriter<W: Write> {
    out: io::BufWriter<W>,
    started: bool,
    row: Vec<u8>,
}

impl<W: Write> CsvWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out: io::BufWriter::new(out), started: false, row: Vec::new() }
    }
}

fn action_name(action: Action) -> &'static str {
    if let Action::Lost { .. } = action {
        return "message";
    }
    let same = |known: &Action| match (known, &action) {
        (Action::Unplug { by_timer: known, .. }, Action::Unplug { by_timer, .. }) => known == by_timer,
        _ => std::mem::discriminant(known) == std::mem::discriminant(&action),
    };
    ACTIONS.iter().find(|(_, known)| same(known)).map_or("file-close", |(name, _)| name)
}

/// Text in a cell: bytes outside printable ASCII and backslashes as `\xNN`, quotes where commas, quotes or edge blanks
/// need them.
fn text(row: &mut Vec<u8>, bytes: &[u8], escape_first: bool) {
    let quote = bytes.iter().any(|byte| matches!(byte, b',' | b'"'))
        || bytes.first().is_some_and(|byte| *byte == b' ')
        || bytes.last().is_some_and(|byte| *byte == b' ');
    if quote {
        row.push(b'"');
    }
    for (index, &byte) in bytes.iter().enumerate() {
        match byte {
            b'"' => row.extend_from_slice(b"\"\""),
            b'\\' => row.extend_from_slice(b"\\\\"),
            b' '..=b'~' if !(escape_first && index == 0) => row.push(byte),
            _ => row.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
        }
    }
    if quote {
        row.push(b'"');
    }
}

impl<W: Write> EventWriter for CsvWriter<W> {
    fn write(&mut self, event: &Event, texts: Texts<'_>) -> io::Result<()> {
        if !std::mem::replace(&mut self.started, true) {
            writeln!(self.out, "{}", COLUMNS.join(","))?;
        }
        let row = &mut self.row;
        row.clear();
        write!(row, "{},{},", event.time_ns, action_name(event.action))?;
        match event.device {
            Device::None => {}
            Device::Number(number) => write!(row, "{}:{}", number.major(), number.minor())?,
            Device::Name(name) => {
                let name = texts.names.get(name);
                let like_a_number = name.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
                text(row, name.as_bytes(), like_a_number && name.contains(':'));
            }
        }
        write!(row, ",{},{},{},{},", event.sector, event.skew_bytes, event.bytes, event.op.name())?;
        let mut first = true;
        for (name, _) in Flags::NAMES.iter().filter(|(_, flag)| event.flags.has(*flag)) {
            write!(row, "{}{name}", if std::mem::replace(&mut first, false) { "" } else { "+" })?;
        }
        row.push(b',');
        number(row, event.pid);
        if let Some(comm) = event.comm {
            text(row, texts.names.get(comm).as_bytes(), false);
        }
        row.push(b',');
        number(row, event.cpu);
        write!(row, "{},{},", event.sequence, event.error)?;
        number(row, event.cgroup);
        number(row, event.ioprio);
        number(row, event.response_ns);
        match event.action {
            Action::Unplug { count, .. } => write!(row, "{count}")?,
            Action::Split { to } => write!(row, "{to}")?,
            Action::Remap { from, sector, to } => {
                write!(row, "{}:{}/{sector}/{}:{}", from.major(), from.minor(), to.major(), to.minor())?;
            }
            Action::Timestamp { seconds, nanoseconds } => write!(row, "{seconds}.{nanoseconds:09}")?,
            _ => {}
        }
        row.push(b',');
        text(row, texts.payload, false);
        row.push(b'\n');
        self.out.write_all(row)
    }

    fn finish(&mut self) -> io::Result<Losses> {
        self.out.flush()?;
        Ok(Losses::default())
    }
}

/// A number or nothing, and a comma.
fn number(row: &mut Vec<u8>, value: Option<impl std::fmt::Display>) {
    if let Some(value) = value {
        row.extend_from_slice(value.to_string().as_bytes());
    }
    row.push(b',');
}
