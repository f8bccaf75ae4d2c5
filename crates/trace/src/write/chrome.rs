//! Chrome's trace-event JSON, which Perfetto opens: a track for each process and device.

use std::collections::HashMap;
use std::io::{self, Write};

use super::{EventWriter, Losses};
use crate::event::{Action, Device, Event};
use crate::names::{Names, Text, Texts};
use crate::requests::{Bio, Step, Tracker};
use crate::rwbs;

/// Writes a slice for every I/O on its process's track with two parts, *queued* and *in device*; a counter of requests
/// in each device; an instant for every message on its CPU's track. Times are microseconds with three decimals.
#[derive(Debug)]
pub struct ChromeWriter<W: Write> {
    out: io::BufWriter<W>,
    tracker: Tracker,
    started: bool,
    next_id: u64,
    named: HashMap<u32, Text>,
    in_device: HashMap<Device, u64>,
    losses: Losses,
    done: Vec<(Bio, u64)>,
}

/// Process number of the tracks that are no process: messages by CPU, counters by device.
const KERNEL_PID: u32 = 0;

impl<W: Write> ChromeWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self {
            out: io::BufWriter::new(out),
            tracker: Tracker::default(),
            started: false,
            next_id: 1,
            named: HashMap::new(),
            in_device: HashMap::new(),
            losses: Losses::default(),
            done: Vec::new(),
        }
    }

    fn entry(&mut self, json: std::fmt::Arguments<'_>) -> io::Result<()> {
        let separator = if std::mem::replace(&mut self.started, true) {
            ",\n"
        } else {
            "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
        };
        self.out.write_all(separator.as_bytes())?;
        self.out.write_fmt(json)
    }

    fn name_process(&mut self, pid: u32, comm: Text, names: &Names) -> io::Result<()> {
        if self.named.insert(pid, comm) == Some(comm) {
            return Ok(());
        }
        let name = escape(names.get(comm).as_bytes());
        self.entry(format_args!(
            r#"{{"ph":"M","name":"process_name","pid":{pid},"args":{{"name":"{name}"}}}}"#
        ))
    }

    /// The slices of an I/O that is done.
    fn slices(&mut self, bio: &Bio, done_ns: u64, names: &Names) -> io::Result<()> {
        let pid = bio.pid.unwrap_or(KERNEL_PID);
        if let Some(comm) = bio.comm.filter(|_| bio.pid.is_some()) {
            self.name_process(pid, comm, names)?;
        }
        let mut word = Vec::new();
        rwbs::write(&mut word, bio.op, bio.flags);
        let (id, tid) = (self.next_id, bio.cpu.unwrap_or(0));
        self.next_id += 1;
        let name = format!("{} {}+{}", String::from_utf8_lossy(&word), bio.sector, bio.bytes / 512);
        let device = device_name(bio.device, names);
        let args = format!(
            r#","args":{{"device":"{device}","sector":{},"bytes":{},"op":"{}"}}"#,
            bio.sector,
            bio.bytes,
            bio.op.name()
        );
        let issued_ns = bio.issued_ns.unwrap_or(done_ns);
        let edges = [
            ("b", name.as_str(), bio.queued_ns, args.as_str()),
            ("b", "queued", bio.queued_ns, ""),
            ("e", "queued", issued_ns, ""),
            ("b", "in device", issued_ns, ""),
            ("e", "in device", done_ns, ""),
            ("e", name.as_str(), done_ns, ""),
        ];
        for (phase, name, ns, args) in edges {
            let (us, part) = (ns / 1000, ns % 1000);
            self.entry(format_args!(
                r#"{{"ph":"{phase}","cat":"block","id":{id},"name":"{name}","pid":{pid},"tid":{tid},"ts":{us}.{part:03}{args}}}"#
            ))?;
        }
        Ok(())
    }

    fn count(&mut self, event: &Event, names: &Names) -> io::Result<()> {
        let depth = self.in_device.entry(event.device).or_insert(0);
        *depth = match event.action {
            Action::Issue => *depth + 1,
            _ => depth.saturating_sub(1),
        };
        let (depth, device) = (*depth, device_name(event.device, names));
        let (us, part) = (event.time_ns / 1000, event.time_ns % 1000);
        self.entry(format_args!(
            r#"{{"ph":"C","name":"in device {device}","pid":{KERNEL_PID},"ts":{us}.{part:03},"args":{{"requests":{depth}}}}}"#
        ))
    }
}

fn device_name(device: Device, names: &Names) -> String {
    match device {
        Device::None => "device".into(),
        Device::Number(number) => format!("{}:{}", number.major(), number.minor()),
        Device::Name(name) => escape(names.get(name).as_bytes()),
    }
}

/// Text inside a JSON string.
fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for letter in String::from_utf8_lossy(bytes).chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control.is_control() => out.push_str(&format!("\\u{:04x}", control as u32)),
            other => out.push(other),
        }
    }
    out
}

impl<W: Write> EventWriter for ChromeWriter<W> {
    fn write(&mut self, event: &Event, texts: Texts<'_>) -> io::Result<()> {
        if matches!(event.action, Action::Message | Action::Lost { .. }) {
            let text = escape(texts.payload);
            let (us, part, tid) = (event.time_ns / 1000, event.time_ns % 1000, event.cpu.unwrap_or(0));
            return self.entry(format_args!(
                r#"{{"ph":"i","s":"t","cat":"message","name":"{text}","pid":{KERNEL_PID},"tid":{tid},"ts":{us}.{part:03}}}"#
            ));
        }
        if let (Action::Queue, Some(response_ns)) = (event.action, event.response_ns) {
            let bio = Bio::of(event, Some(event.time_ns));
            return self.slices(&bio, event.time_ns.saturating_add(response_ns), texts.names);
        }
        let mut done = std::mem::take(&mut self.done);
        self.tracker.event(event, |step| {
            if let Step::Done(bio, ns) = step {
                done.push((*bio, ns));
            }
        });
        for (bio, ns) in done.drain(..) {
            self.slices(&bio, ns, texts.names)?;
        }
        self.done = done;
        match event.action {
            Action::Issue | Action::Requeue | Action::Complete if event.bytes > 0 => {
                self.count(event, texts.names)
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<Losses> {
        if !std::mem::replace(&mut self.started, true) {
            self.out.write_all(b"{\"traceEvents\":[")?;
        }
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()?;
        let unfinished = self.tracker.open() as u64 + self.tracker.forgotten();
        if unfinished > 0 {
            self.losses.entries.push(("I/Os without a completion", unfinished));
        }
        Ok(std::mem::take(&mut self.losses))
    }
}
