//! Binary blktrace, as the kernel and `blkparse -d` leave it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use super::{DeviceNumbers, EventWriter, Losses};
use crate::event::{Action, Event, Flags, Op};
use crate::names::{Text, Texts};
use crate::read::record::{self, CGROUP, Record};

/// The record version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 48 bytes: what blkparse, btt and fio read.
    V7,
    /// 64 bytes: Linux 6.19 and later; the only one with zone operations.
    V8,
}

/// Opens the file of a CPU.
type Open<W> = Box<dyn FnMut(u32) -> io::Result<W> + Send>;

/// Writes one file or one for each CPU, in this machine's byte order.
pub struct BlktraceWriter<W: Write> {
    version: Version,
    /// One for each CPU seen; one for all when `open` is `None`.
    files: Vec<(u32, BufWriter<W>)>,
    open: Option<Open<W>>,
    devices: DeviceNumbers,
    /// Process names written, so that a name is written once.
    processes: HashMap<u32, Text>,
    sequences: HashMap<u32, u32>,
    losses: Losses,
    payload: Vec<u8>,
    out: Vec<u8>,
}

impl<W: Write> std::fmt::Debug for BlktraceWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlktraceWriter").field("version", &self.version).finish_non_exhaustive()
    }
}

/// Names kept to tell whether one is new. Past it, all are forgotten and written again as they come.
const PROCESSES_MAX: usize = 1 << 18;

impl<W: Write> BlktraceWriter<W> {
    /// All records in one stream, as `blkparse -d` makes and btt, fio and `blkparse -i -` want it. blkparse takes a
    /// stream whose first time is 0 for one whose start it has not seen yet, and prints other times.
    pub fn single(out: W, version: Version) -> Self {
        Self::new(vec![(0, BufWriter::new(out))], None, version)
    }

    /// One stream for each CPU, opened when its first record comes.
    pub fn per_cpu(open: impl FnMut(u32) -> io::Result<W> + Send + 'static, version: Version) -> Self {
        Self::new(Vec::new(), Some(Box::new(open)), version)
    }

    fn new(files: Vec<(u32, BufWriter<W>)>, open: Option<Open<W>>, version: Version) -> Self {
        Self {
            version,
            files,
            open,
            devices: DeviceNumbers::default(),
            processes: HashMap::new(),
            sequences: HashMap::new(),
            losses: Losses::default(),
            payload: Vec::new(),
            out: Vec::new(),
        }
    }
}

impl BlktraceWriter<File> {
    /// Files `PREFIX.blktrace.CPU`, as blkparse takes them with `-i PREFIX`.
    pub fn per_cpu_files(prefix: impl Into<PathBuf>, version: Version) -> Self {
        let prefix = prefix.into();
        let open = move |cpu: u32| {
            let mut path = prefix.clone().into_os_string();
            path.push(format!(".blktrace.{cpu}"));
            File::create(path)
        };
        Self::per_cpu(open, version)
    }
}

impl<W: Write> EventWriter for BlktraceWriter<W> {
    fn write(&mut self, event: &Event, texts: Texts<'_>) -> io::Result<()> {
        self.payload.clear();
        let Some(mut word) = record::action_word(event.action, &mut self.payload) else {
            self.losses.add("events blktrace has no action for");
            return Ok(());
        };
        let cpu = event.cpu.unwrap_or(0);
        let pid = event.pid.unwrap_or(0);
        let device = self.devices.number(event.device, &mut self.losses);
        self.count_losses(event);
        self.name_process(event, cpu, device.0, texts)?;

        match event.action {
            Action::Process => {
                // The kernel's 16 bytes of comm, filled with zeroes; longer names from elsewhere are kept whole.
                let comm = event.comm.map_or("", |comm| texts.names.get(comm));
                self.payload.extend_from_slice(comm.as_bytes());
                self.payload.resize(comm.len().max(16), 0);
            }
            Action::Timestamp { .. }
            | Action::Unplug { .. }
            | Action::Split { .. }
            | Action::Remap { .. } => {}
            _ => self.payload.extend_from_slice(texts.payload),
        }
        if !event.action.is_note() {
            let op = match event.op {
                Op::Sync | Op::DataSync => Op::Flush,
                op => op,
            };
            word |= record::operation_word(op, event.flags);
        }
        if self.version == Version::V7 {
            self.losses.add_if(word >> 32 != 0, "zone operations and write-zeroes (they need version 8)");
            word &= 0xffff_ffff;
        }
        if let Some(cgroup) = event.cgroup {
            word |= CGROUP;
            self.payload.splice(0..0, cgroup.to_ne_bytes());
        }
        let sequence = if event.action.is_note() {
            event.sequence
        } else {
            let last = self.sequences.entry(cpu).or_insert(0);
            *last = if event.sequence > 0 { event.sequence } else { last.wrapping_add(1) };
            *last
        };
        let bytes = u32::try_from(event.bytes).unwrap_or_else(|_| {
            self.losses.add("sizes of 4 GiB and more");
            !511
        });
        self.emit(Record {
            sequence,
            time_ns: event.time_ns,
            sector: event.sector,
            bytes,
            action: word,
            pid,
            device: device.0,
            cpu,
            error: event.error as u16, // As the kernel stores it: the low 16 bits.
            payload_bytes: 0,
        })
    }

    fn finish(&mut self) -> io::Result<Losses> {
        for (_, file) in &mut self.files {
            file.flush()?;
        }
        Ok(std::mem::take(&mut self.losses))
    }
}

impl<W: Write> BlktraceWriter<W> {
    fn count_losses(&mut self, event: &Event) {
        let losses = &mut self.losses;
        losses.add_if(event.skew_bytes > 0, "offsets inside a sector");
        losses.add_if(event.ioprio.is_some(), "I/O priorities");
        losses.add_if(event.response_ns.is_some(), "response times");
        losses.add_if(event.op == Op::SecureErase, "secure erase (kept as discard)");
        losses.add_if(matches!(event.op, Op::Sync | Op::DataSync), "sync of a file (kept as flush)");
        let kept = Flags(0x7f);
        losses.add_if(event.flags.without(kept) != Flags::NONE, "flags atomic, hit and miss");
        losses.add_if(event.pid.is_none() && event.comm.is_some(), "process names without a number");
        losses.add_if(i32::from(event.error as i16) != event.error, "error numbers past 16 bits");
    }

    /// A note with the process's name in front of the first event that has it.
    fn name_process(&mut self, event: &Event, cpu: u32, device: u32, texts: Texts<'_>) -> io::Result<()> {
        let (Some(pid), Some(comm)) = (event.pid, event.comm) else { return Ok(()) };
        if self.processes.get(&pid) == Some(&comm) {
            return Ok(());
        }
        if self.processes.len() >= PROCESSES_MAX {
            self.processes.clear();
        }
        self.processes.insert(pid, comm);
        if event.action == Action::Process {
            return Ok(());
        }
        let own = std::mem::take(&mut self.payload);
        let name = texts.names.get(comm).as_bytes();
        self.payload.extend_from_slice(name);
        self.payload.resize(name.len().max(16), 0);
        let action = record::category::NOTIFY << 16;
        self.emit(Record { time_ns: event.time_ns, action, pid, device, cpu, ..Record::default() })?;
        self.payload = own;
        Ok(())
    }

    /// Writes a head with `self.payload` behind it.
    fn emit(&mut self, mut head: Record) -> io::Result<()> {
        if self.payload.len() > usize::from(u16::MAX) {
            self.losses.add("payload past 65535 bytes");
            self.payload.truncate(usize::from(u16::MAX));
        }
        head.payload_bytes = self.payload.len() as u16; // Cut to fit above.
        self.out.clear();
        head.encode(if self.version == Version::V8 { 8 } else { 7 }, &mut self.out);
        self.out.extend_from_slice(&self.payload);
        let index = match &mut self.open {
            None => 0,
            Some(open) => match self.files.iter().position(|(cpu, _)| *cpu == head.cpu) {
                Some(index) => index,
                None => {
                    self.files.push((head.cpu, BufWriter::new(open(head.cpu)?)));
                    self.files.len() - 1
                }
            },
        };
        self.files[index].1.write_all(&self.out)
    }
}
