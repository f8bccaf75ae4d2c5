//! What a device was asked for and did, in blktrace's format: `fairlift inspect` and `replay`, blkparse and fio read it.
//!
//! The combiner leaves events in a bounded line, a thread writes them. What it cannot keep up with is lost, and counted.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use fairlift_core::request::Request;
use fairlift_core::{Bio, Flags, Op};
use fairlift_trace::write::{BlktraceWriter, EventWriter, Version};
use fairlift_trace::{Action, Device, DeviceNumber, Event, Names, SECTOR_BYTES, Texts};
use rustc_hash::FxHashMap;

use crate::log::{Level, log};

/// Events that may wait for the file: some 10 MB.
const LINE_MAX: usize = 1 << 16;

/// For the thread that writes.
enum Record {
    /// This port is a connection to that export.
    Port(u32, String),
    /// What happened.
    Event(Event),
}

/// A trace that is being written. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Trace {
    /// `None` at the end.
    line: Option<SyncSender<Record>>,
    writer: Option<JoinHandle<()>>,
    lost: Arc<AtomicU64>,
}

/// Linux keeps majors 240 to 254 for local use.
fn device() -> Device {
    DeviceNumber::new(240, 0).map_or(Device::None, Device::Number)
}

fn op(op: Op) -> fairlift_trace::Op {
    match op {
        Op::Read => fairlift_trace::Op::Read,
        Op::Write => fairlift_trace::Op::Write,
        Op::Discard => fairlift_trace::Op::Discard,
        Op::Flush => fairlift_trace::Op::Flush,
    }
}

fn flags(flags: Flags) -> fairlift_trace::Flags {
    use fairlift_trace::Flags as Traced;
    Traced::FS
        .with(Traced::when(flags.contains(Flags::SYNC), Traced::SYNC))
        .with(Traced::when(flags.contains(Flags::FUA), Traced::FUA))
}

impl Trace {
    /// Write to `path`, which is replaced.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn start(path: &Path) -> std::io::Result<Trace> {
        let writer = BlktraceWriter::single(File::create(path)?, Version::V7);
        let (line, events) = sync_channel(LINE_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let (place, counted) = (path.display().to_string(), lost.clone());
        let writer = thread::Builder::new()
            .name("trace".to_owned())
            .spawn(move || write(&events, writer, &place, &counted))?;
        Ok(Trace { line: Some(line), writer: Some(writer), lost })
    }

    fn leave(&self, record: Record) {
        if self.line.as_ref().is_some_and(|line| line.try_send(record).is_err()) {
            self.lost.fetch_add(1, Relaxed);
        }
    }

    /// This port is a connection to that export.
    pub(super) fn name_port(&self, port: u32, export: &str) {
        self.leave(Record::Port(port, export.to_owned()));
    }

    /// Something happened to `bio` of `port`.
    pub(super) fn bio(&self, action: Action, bio: &Bio, port: u32, now: u64) {
        self.leave(Record::Event(Event {
            time_ns: now,
            sector: bio.sector,
            bytes: u64::from(bio.sectors) * SECTOR_BYTES,
            action,
            device: device(),
            pid: Some(port),
            cpu: Some(0),
            op: op(bio.op),
            flags: flags(bio.flags),
            ..Event::default()
        }));
    }

    /// Something happened to `request`.
    pub(super) fn request(&self, action: Action, request: &Request, failed: bool, now: u64) {
        self.leave(Record::Event(Event {
            time_ns: now,
            sector: request.sector,
            bytes: u64::from(request.sectors) * SECTOR_BYTES,
            action,
            device: device(),
            pid: Some(0),
            cpu: Some(0),
            op: op(request.op),
            flags: flags(request.flags),
            error: if failed { -libc::EIO } else { 0 },
            ..Event::default()
        }));
    }
}

impl Drop for Trace {
    /// Wait until everything is in the file.
    fn drop(&mut self) {
        self.line = None;
        if let Some(writer) = self.writer.take() {
            // What it had to say is in the log.
            let _ = writer.join();
        }
    }
}

/// The thread that writes.
fn write(events: &Receiver<Record>, mut writer: BlktraceWriter<File>, place: &str, lost: &AtomicU64) {
    let (mut names, mut exports) = (Names::default(), FxHashMap::default());
    let mut failed = None;
    for record in events {
        match record {
            Record::Port(port, export) => drop(exports.insert(port, names.intern(&export))),
            Record::Event(event) if failed.is_none() => {
                let comm = event.pid.and_then(|port| exports.get(&port).copied());
                let texts = Texts { names: &names, payload: &[] };
                failed = writer.write(&Event { comm, ..event }, texts).err();
            }
            Record::Event(_) => {}
        }
    }
    let failed = failed.or_else(|| writer.finish().err()).map(|error| error.to_string());
    let lost = lost.load(Relaxed).to_string();
    let (level, why) = match &failed {
        Some(why) => (Level::Warn, why.as_str()),
        None if lost != "0" => (Level::Warn, "the file was too slow"),
        None => (Level::Info, "as asked"),
    };
    log(level, "trace-ended", &[("file", place), ("lost", &lost), ("why", why)]);
}
