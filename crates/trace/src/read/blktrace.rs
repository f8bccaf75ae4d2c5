//! One file of binary blktrace records.

use super::bytes::Bytes;
use super::record::{self, CGROUP, Order, Record};
use super::{NamedInput, Shared, Source};
use crate::error::{ErrorKind, Place, TraceError};
use crate::event::{Action, Device, DeviceNumber, Event};

/// How far a merged file's notes may go before the first event: blkparse writes a batch of them first.
const AHEAD_BYTES: usize = 4 << 20;

/// The events of one file.
pub(crate) struct BlktraceFile {
    bytes: Bytes,
    /// Byte order and version, from the first record on.
    kind: Option<(Order, u8)>,
    record: u64,
    /// Offset of the record returned last.
    start: u64,
    skipped_bytes: u64,
    /// Look for a magic number before reading on.
    lost: bool,
    at_end: bool,
    /// Time of the last event that is no note.
    last_ns: u64,
    clock: NoteClock,
}

/// `blkparse -d` rebases events to the first one but writes notes with their own, unrebased clock, when it meets them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NoteClock {
    Unknown,
    /// Notes and events share a clock.
    Same,
    /// They do not: a note gets the time of the event before it.
    Other,
}

impl BlktraceFile {
    /// A file that may be the merged one of `blkparse -d`. One of a per-CPU set never is.
    pub fn alone(named: NamedInput) -> Self {
        Self::with(Bytes::with_buffer(named, AHEAD_BYTES), NoteClock::Unknown)
    }

    /// A file of one CPU.
    pub fn of_cpu(named: NamedInput) -> Self {
        Self::with(Bytes::new(named), NoteClock::Same)
    }

    fn with(bytes: Bytes, clock: NoteClock) -> Self {
        Self {
            bytes,
            kind: None,
            record: 0,
            start: 0,
            skipped_bytes: 0,
            lost: false,
            at_end: false,
            last_ns: 0,
            clock,
        }
    }

    /// Clock and record numbers of the event returned last, for a merger that has read ahead.
    pub fn position(&self) -> (u64, u64) {
        (self.record, self.start)
    }

    pub fn place_of(&self, (record, offset): (u64, u64)) -> Place {
        Place { file: self.bytes.file.clone(), record, line: 0, offset }
    }

    fn error(&self, kind: ErrorKind, message: impl Into<String>) -> TraceError {
        TraceError::new(kind, self.place(), message)
    }

    /// Finds the next bytes that begin a record. True if there are some.
    fn resynchronise(&mut self) -> Result<bool, TraceError> {
        self.lost = false;
        loop {
            let have = self.bytes.fill(record::V8_BYTES)?;
            if have < 4 {
                self.skipped_bytes += have as u64;
                self.bytes.consume(have);
                return Ok(false);
            }
            let window = self.bytes.window();
            let hit = window.windows(4).position(|word| {
                let found = record::identify(word.try_into().expect("four bytes"));
                found.is_some_and(|(order, version)| match self.kind {
                    Some(kind) => kind == (order, version),
                    None => record::head_bytes(version).is_some(),
                })
            });
            let skip = hit.unwrap_or(window.len() - 3);
            self.skipped_bytes += skip as u64;
            self.bytes.consume(skip);
            if hit.is_some() {
                return Ok(true);
            }
        }
    }

    /// Reads ahead to learn whether notes share the events' clock: they do unless notes are later than the first event
    /// behind them. If there are notes only as far as can be seen, order among them has to do.
    fn learn_clock(&mut self, order: Order, version: u8, head: usize) -> Result<(), TraceError> {
        let have = self.bytes.fill(AHEAD_BYTES)?;
        let window = &self.bytes.window()[..have];
        let (mut at, mut note_ns) = (0, None);
        self.clock = NoteClock::Same;
        while let Some(bytes) = window.get(at..at + head) {
            if record::identify(bytes[..4].try_into().expect("four bytes")) != Some((order, version)) {
                break;
            }
            let record = Record::decode(bytes, order, version);
            if record.action >> 16 & record::category::NOTIFY == 0 {
                let later = note_ns.is_some_and(|note| note > record.time_ns);
                self.clock = if later { NoteClock::Other } else { NoteClock::Same };
                break;
            }
            if note_ns > Some(record.time_ns) {
                self.clock = NoteClock::Other;
            }
            note_ns = note_ns.max(Some(record.time_ns));
            at += head + usize::from(record.payload_bytes);
        }
        Ok(())
    }

    /// Order, version and size of the record at the window's start.
    #[inline]
    fn identify(&mut self, have: usize) -> Result<(Order, u8, usize), TraceError> {
        let window = self.bytes.window();
        let first: [u8; 4] = match window.get(..4) {
            Some(first) => first.try_into().expect("four bytes"),
            None => {
                self.bytes.consume(have);
                self.at_end = true;
                let message =
                    format!("the file ends {have} bytes into a record; 4 bytes of magic number expected");
                return Err(self.error(ErrorKind::Truncated, message));
            }
        };
        let Some((order, version)) = record::identify(first) else {
            self.lost = true;
            let message = format!(
                "expected the magic number 0x65617407 or 0x65617408, found {:#010x}",
                u32::from_le_bytes(first)
            );
            return Err(self.error(ErrorKind::Corrupt, message));
        };
        if let Some((own, _)) = self.kind
            && own != order
        {
            self.lost = true;
            let message = format!("this record is {order:?}-endian, those before are {own:?}-endian");
            return Err(self.error(ErrorKind::ByteOrder, message));
        }
        let Some(head) = record::head_bytes(version) else {
            self.lost = true;
            let message =
                format!("record version {version}; versions 7 (48 bytes) and 8 (64 bytes) are read");
            return Err(self.error(ErrorKind::Unsupported, message));
        };
        Ok((order, version, head))
    }
}

impl Source for BlktraceFile {
    fn next(&mut self, shared: &mut Shared) -> Result<Option<Event>, TraceError> {
        if self.at_end || (self.lost && !self.resynchronise()?) {
            self.at_end = true;
            return Ok(None);
        }
        let have = self.bytes.fill(record::V8_BYTES)?;
        if have == 0 {
            self.at_end = true;
            return Ok(None);
        }
        self.start = self.bytes.offset;
        self.record += 1;
        let (order, version, head) = self.identify(have)?;
        self.kind.get_or_insert((order, version));
        if self.clock == NoteClock::Unknown {
            self.learn_clock(order, version, head)?;
        }

        let have = self.bytes.fill(head)?;
        let mut missing = head;
        let mut fields = None;
        if have >= head {
            let record = Record::decode(self.bytes.window(), order, version);
            missing = head + usize::from(record.payload_bytes);
            if self.bytes.fill(missing)? >= missing {
                fields = Some(record);
            }
        }
        let Some(fields) = fields else {
            let have = self.bytes.fill(missing)?;
            // A wrong payload length asks for bytes that are not there; good records may still follow.
            let more = self.bytes.window()[4..]
                .windows(4)
                .any(|word| record::identify(word.try_into().expect("four bytes")) == Some((order, version)));
            if more {
                self.lost = true;
                self.skipped_bytes += 4;
                self.bytes.consume(4);
                let message = format!("a record of {missing} bytes reaches past the end of the file");
                return Err(self.error(ErrorKind::Corrupt, message));
            }
            self.bytes.consume(have);
            self.at_end = true;
            let message = format!("the file ends {have} bytes into a record of {missing}");
            return Err(self.error(ErrorKind::Truncated, message));
        };
        let event = self.event(&fields, head, order, shared);
        if event.is_err() {
            self.lost = true;
            self.skipped_bytes += head as u64;
            self.bytes.consume(head);
        } else {
            self.bytes.consume(missing);
        }
        event.map(Some)
    }

    fn place(&self) -> Place {
        self.place_of(self.position())
    }

    fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }
}

impl BlktraceFile {
    /// The event of a record whose head and payload are at the window's start.
    #[inline]
    fn event(
        &mut self,
        r: &Record,
        head: usize,
        order: Order,
        shared: &mut Shared,
    ) -> Result<Event, TraceError> {
        let all = &self.bytes.window()[head..head + usize::from(r.payload_bytes)];
        let (cgroup, payload) = match all.get(..8) {
            Some(id) if r.action & CGROUP != 0 => (Some(order.u64(id, 0)), &all[8..]),
            _ => (None, all),
        };
        if r.action & CGROUP != 0 && cgroup.is_none() {
            let message = format!("a cgroup of 8 bytes is announced, the payload has {}", all.len());
            return Err(self.error(ErrorKind::Corrupt, message));
        }
        let Some(action) = record::action(r.action, payload, order) else {
            let message = format!("action {:#x} is not one of blktrace's", r.action);
            return Err(self.error(ErrorKind::Corrupt, message));
        };
        shared.payload.clear();
        let comm = match action {
            Action::Process => {
                let end = payload.iter().position(|&byte| byte == 0).unwrap_or(payload.len());
                let comm = shared.names.intern_bytes(&payload[..end]);
                shared.processes.learn(r.pid, comm);
                Some(comm)
            }
            Action::Timestamp { .. }
            | Action::Unplug { .. }
            | Action::Split { .. }
            | Action::Remap { .. } => shared.processes.name(r.pid),
            _ => {
                shared.payload.extend_from_slice(payload);
                shared.processes.name(r.pid)
            }
        };
        let (op, flags) = record::operation(r.action, r.bytes);
        let time_ns =
            if action.is_note() && self.clock == NoteClock::Other { self.last_ns } else { r.time_ns };
        self.last_ns = time_ns;
        Ok(Event {
            time_ns,
            sector: r.sector,
            bytes: u64::from(r.bytes),
            response_ns: None,
            cgroup,
            action,
            device: Device::Number(DeviceNumber(r.device)),
            pid: Some(r.pid),
            comm,
            cpu: Some(r.cpu),
            sequence: r.sequence,
            // Kernels store the negative number in 16 bits.
            error: i32::from(r.error as i16),
            skew_bytes: 0,
            ioprio: None,
            op,
            flags,
        })
    }
}
