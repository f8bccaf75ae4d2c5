//! blkparse's default text, column for column.

use std::io::{self, Write};

use super::{DeviceNumbers, EventWriter, Losses};
use crate::event::{Action, Device, Event, Flags, Op};
use crate::names::Texts;
use crate::rwbs;

/// Writes `"%D %2c %8s %5T.%9t %5p %2a %3d "` and each action's part. No summary follows (blkparse's `-q`).
#[derive(Debug)]
pub struct BlkparseWriter<W: Write> {
    out: io::BufWriter<W>,
    devices: DeviceNumbers,
    losses: Losses,
    word: Vec<u8>,
}

impl std::fmt::Debug for DeviceNumbers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceNumbers").field("given", &self.given.len()).finish()
    }
}

impl<W: Write> BlkparseWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        let (devices, losses) = (DeviceNumbers::default(), Losses::default());
        Self { out: io::BufWriter::new(out), devices, losses, word: Vec::new() }
    }
}

/// blkparse's letter; `None` for what it does not print.
fn letter(action: Action) -> Option<&'static str> {
    Some(match action {
        Action::Queue => "Q",
        Action::BackMerge => "M",
        Action::FrontMerge => "F",
        Action::GetRequest => "G",
        Action::SleepRequest => "S",
        Action::Requeue => "R",
        Action::Issue => "D",
        Action::Complete => "C",
        Action::Plug => "P",
        Action::Unplug { by_timer: false, .. } => "U",
        Action::Unplug { by_timer: true, .. } => "UT",
        Action::Insert => "I",
        Action::Split { .. } => "X",
        Action::Bounce => "B",
        Action::Remap { .. } => "A",
        Action::Message | Action::Lost { .. } => "m",
        _ => return None,
    })
}

impl<W: Write> EventWriter for BlkparseWriter<W> {
    fn write(&mut self, event: &Event, texts: Texts<'_>) -> io::Result<()> {
        let Some(letter) = letter(event.action) else {
            self.losses.add("events blkparse does not print (process and timestamp notes among them)");
            return Ok(());
        };
        let device = self.devices.number(event.device, &mut self.losses);
        self.count_losses(event);
        self.word.clear();
        rwbs::write(&mut self.word, event.op, event.flags);
        write!(
            self.out,
            "{:3},{:<3} {:2} {:8} {:5}.{:09} {:5} {letter:>2} {:>3} ",
            device.major(),
            device.minor(),
            event.cpu.unwrap_or(0),
            event.sequence,
            event.time_ns / 1_000_000_000,
            event.time_ns % 1_000_000_000,
            event.pid.unwrap_or(0),
            String::from_utf8_lossy(&self.word),
        )?;
        let (sector, sectors) = (event.sector, event.sectors());
        let comm = event.comm.map_or("", |comm| texts.names.get(comm));
        match event.action {
            Action::Message | Action::Lost { .. } => {
                let text: Vec<u8> =
                    texts.payload.iter().map(|&b| if b.is_ascii_control() { b' ' } else { b }).collect();
                self.losses.add_if(text != texts.payload, "control characters in messages");
                self.out.write_all(&text)?;
                self.out.write_all(b"\n")
            }
            Action::Plug => writeln!(self.out, "[{comm}]"),
            Action::Unplug { count, .. } => writeln!(self.out, "[{comm}] {count}"),
            Action::Split { to } => {
                self.losses.add_if(event.bytes > 0, "sizes of splits");
                writeln!(self.out, "{sector} / {to} [{comm}]")
            }
            Action::Remap { from, sector: from_sector, to } => {
                self.losses
                    .add_if(event.device != Device::Number(to), "remap targets that differ from the device");
                self.losses.add_if(event.comm.is_some(), "process names of remaps");
                let (major, minor) = (from.major(), from.minor());
                writeln!(self.out, "{sector} + {sectors} <- ({major},{minor}) {from_sector}")
            }
            action => {
                if event.flags.has(Flags::PASSTHROUGH) && texts.payload.len() > 1 {
                    write!(self.out, "{} (", event.bytes)?;
                    for (index, byte) in texts.payload.iter().enumerate() {
                        write!(self.out, "{}{byte:02x}", if index > 0 { " " } else { "" })?;
                    }
                    write!(self.out, ") ")?;
                } else if event.bytes > 0 {
                    write!(self.out, "{sector} + {sectors} ")?;
                } else if action == Action::Complete {
                    write!(self.out, "{sector} ")?;
                }
                match action {
                    Action::Complete | Action::Requeue => writeln!(self.out, "[{}]", event.error as u16),
                    _ => writeln!(self.out, "[{comm}]"),
                }
            }
        }
    }

    fn finish(&mut self) -> io::Result<Losses> {
        self.out.flush()?;
        Ok(std::mem::take(&mut self.losses))
    }
}

impl<W: Write> BlkparseWriter<W> {
    fn count_losses(&mut self, event: &Event) {
        let losses = &mut self.losses;
        losses.add_if(!event.bytes.is_multiple_of(512) || event.skew_bytes > 0, "parts of a sector");
        losses.add_if(event.cgroup.is_some(), "cgroups");
        losses.add_if(event.ioprio.is_some(), "I/O priorities");
        losses.add_if(event.response_ns.is_some(), "response times");
        losses.add_if(matches!(event.op, Op::Sync | Op::DataSync), "sync of a file");
        let kept =
            Flags::SYNC.with(Flags::META).with(Flags::FUA).with(Flags::PREFLUSH).with(Flags::READAHEAD);
        let lost =
            event.flags.without(kept).without(Flags::ATOMIC).without(Flags::PASSTHROUGH).without(Flags::FS);
        losses.add_if(lost != Flags::NONE, "flags hit and miss");
        losses.add_if(event.flags.has(Flags::FS), "the flag fs");
    }
}
