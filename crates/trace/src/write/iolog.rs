//! fio's I/O log.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{EventWriter, Losses};
use crate::event::{Action, Device, Event, Op};
use crate::names::Texts;

/// The log's version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IologVersion {
    /// Waits between lines; those below 100 us are dropped by fio, so they are added up here.
    V2,
    /// A time in microseconds in front of every line (fio 3.31 and later).
    V3,
}

/// fio ignores shorter waits.
const WAIT_US_MIN: u64 = 100;

/// Writes one line for each event of one action: an I/O once, not at each stage.
#[derive(Debug)]
pub struct IologWriter<W: Write> {
    out: io::BufWriter<W>,
    version: IologVersion,
    at: Action,
    started: bool,
    /// Files and whether they are open.
    files: HashMap<Device, File>,
    order: Vec<Device>,
    /// Time of the log so far, us (version 2), and of its last line.
    waited_us: u64,
    last_us: u64,
    names: HashMap<Device, String>,
    losses: Losses,
}

#[derive(Clone, Copy, Debug, Default)]
struct File {
    added: bool,
    open: bool,
}

impl<W: Write> IologWriter<W> {
    /// Writes to `out` what happens at `at`: [`Action::Queue`] for what programs asked, [`Action::Issue`] for what the
    /// device got.
    pub fn new(out: W, version: IologVersion, at: Action) -> Self {
        Self {
            out: io::BufWriter::new(out),
            version,
            at,
            started: false,
            files: HashMap::new(),
            order: Vec::new(),
            waited_us: 0,
            last_us: 0,
            names: HashMap::new(),
            losses: Losses::default(),
        }
    }

    fn line(&mut self, time_us: u64, device: Device, text: &str) -> io::Result<()> {
        let name = self.names.get(&device).map_or("", String::as_str);
        match self.version {
            IologVersion::V3 => writeln!(self.out, "{time_us} {name} {text}"),
            IologVersion::V2 => writeln!(self.out, "{name} {text}"),
        }
    }

    /// Adds and opens a file before its first I/O.
    fn ready(&mut self, time_us: u64, device: Device) -> io::Result<()> {
        let file = self.files.get(&device).copied().unwrap_or_default();
        if !file.added {
            self.line(time_us, device, "add")?;
        }
        if !file.open {
            self.line(time_us, device, "open")?;
        }
        self.set(device, File { added: true, open: true });
        Ok(())
    }

    fn set(&mut self, device: Device, file: File) {
        if self.files.insert(device, file).is_none() {
            self.order.push(device);
        }
    }
}

/// A file name without blanks: fio cuts lines there.
fn file_name(device: Device, texts: Texts<'_>, losses: &mut Losses) -> String {
    let name = match device {
        Device::None => return "device".into(),
        Device::Number(number) => return format!("/dev/block/{}:{}", number.major(), number.minor()),
        Device::Name(name) => texts.names.get(name),
    };
    let clean: String =
        name.chars().map(|c| if c.is_whitespace() || c.is_control() { '_' } else { c }).collect();
    losses.add_if(clean != name, "blanks in names of files");
    clean
}

impl<W: Write> EventWriter for IologWriter<W> {
    fn write(&mut self, event: &Event, texts: Texts<'_>) -> io::Result<()> {
        if !self.started {
            self.started = true;
            let version = if self.version == IologVersion::V2 { 2 } else { 3 };
            writeln!(self.out, "fio version {version} iolog")?;
        }
        let time_us = event.time_ns / 1000;
        let (losses, device) = (&mut self.losses, event.device);
        let is_file = matches!(event.action, Action::FileAdd | Action::FileOpen | Action::FileClose);
        if !is_file && event.action != self.at {
            return Ok(());
        }
        self.names.entry(device).or_insert_with(|| file_name(device, texts, losses));
        losses.add_if(!event.time_ns.is_multiple_of(1000), "parts of a microsecond");
        losses.add_if(event.pid.is_some() || event.comm.is_some(), "processes");
        losses.add_if(event.flags != crate::event::Flags::NONE, "flags");
        losses.add_if(event.response_ns.is_some(), "response times");
        let text = match (event.action, event.op) {
            (Action::FileAdd, _) => "add",
            (Action::FileOpen, _) => "open",
            (Action::FileClose, _) => "close",
            (_, Op::Read) => "read",
            (_, Op::Write | Op::ZoneAppend) => "write",
            (_, Op::Discard | Op::SecureErase | Op::WriteZeroes) => "trim",
            (_, Op::Sync | Op::Flush) => "sync",
            (_, Op::DataSync) => "datasync",
            _ => {
                losses.add("operations an iolog has no word for");
                return Ok(());
            }
        };
        if is_file {
            let mut file = self.files.get(&device).copied().unwrap_or_default();
            file.added |= event.action == Action::FileAdd;
            file.open = event.action == Action::FileOpen || (file.open && event.action != Action::FileClose);
            self.set(device, file);
            self.last_us = time_us;
            return self.line(time_us, device, text);
        }
        self.ready(time_us, device)?;
        if self.version == IologVersion::V2 && time_us >= self.waited_us + WAIT_US_MIN {
            let wait = time_us - self.waited_us;
            self.line(time_us, device, &format!("wait {wait} 0"))?;
            self.waited_us = time_us;
        }
        self.last_us = time_us;
        self.line(time_us, device, &format!("{text} {} {}", event.offset_bytes(), event.bytes))
    }

    fn finish(&mut self) -> io::Result<Losses> {
        for device in std::mem::take(&mut self.order) {
            if self.files.get(&device).is_some_and(|file| file.open) {
                self.line(self.last_us, device, "close")?;
            }
        }
        self.out.flush()?;
        Ok(std::mem::take(&mut self.losses))
    }
}
