//! ublk: an export as a disk of this machine's own kernel, `/dev/ublkbN`, by the driver `ublk_drv`.
//!
//! The kernel hands a request to a queue's thread through an io_uring and takes the answer the same way (`uring/ublk.rs`); data is copied by
//! reads and writes of the disk's character device, `/dev/ublkcN`. Each queue has a thread and a [`Port`] of its own, and is a
//! connection of its export like one of NBD. Numbers and layouts: the kernel's `include/uapi/linux/ublk_cmd.h`.
//!
//! [`Port`]: crate::device::Port

mod queue;
mod recovery;
mod request;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::nbd::Bounds;
use crate::exports::{Export, UblkOptions};
use crate::log::{Level, log};
use crate::uring::ublk::{Command, Control};
use queue::Queue;

/// Requests of a queue at a time.
const DEPTH: u16 = 128;
/// Largest read or write, bytes.
const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Sectors of a discard or zeroing at most.
const RANGE_SECTORS_MAX: u32 = 1 << 22;
/// The kernel chooses a number.
const ANY: u32 = u32::MAX;
/// How often those who wait look whether they are to end.
const LOOK: Duration = Duration::from_millis(100);
/// How long the system may take to make the disk's character device.
const APPEARS: Duration = Duration::from_secs(5);

/// Flags of a disk (`UBLK_F_`): commands have numbers of ioctls, data is copied by reads and writes, the disk outlives its server and
/// its requests are asked for once more.
mod flag {
    pub const RECOVERY: u64 = 1 << 3 | 1 << 4;
    pub const IOCTL_ENCODE: u64 = 1 << 6;
    pub const USER_COPY: u64 = 1 << 7;
}

/// Attributes of a disk (`UBLK_ATTR_`).
mod attribute {
    pub const READ_ONLY: u32 = 1 << 0;
    pub const ROTATIONAL: u32 = 1 << 1;
    pub const VOLATILE_CACHE: u32 = 1 << 2;
    pub const FUA: u32 = 1 << 3;
}

/// `struct ublksrv_ctrl_dev_info` for a new disk.
fn info(number: u32, queues: u16, depth: u16, recovers: bool) -> [u8; 64] {
    let mut out = [0; 64];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &queues.to_ne_bytes());
    put(2, &depth.to_ne_bytes());
    put(8, &REQUEST_BYTES_MAX.to_ne_bytes());
    put(12, &number.to_ne_bytes());
    let recovery = if recovers { flag::RECOVERY } else { 0 };
    put(24, &(flag::IOCTL_ENCODE | flag::USER_COPY | recovery).to_ne_bytes());
    out
}

/// Number and flags as the kernel returns them in `info`.
fn granted(info: &[u8; 64]) -> (u32, u64) {
    let (mut number, mut flags) = ([0; 4], [0; 8]);
    number.copy_from_slice(&info[12..16]);
    flags.copy_from_slice(&info[24..32]);
    (u32::from_ne_bytes(number), u64::from_ne_bytes(flags))
}

/// `struct ublk_params` with its parts `basic` and `discard`.
fn parameters(export: &Export) -> [u8; 60] {
    let block = export.device.back().block_bytes().max(512);
    let (shift, page_shift) = (block.trailing_zeros() as u8, 12);
    let physical = shift.max(page_shift);
    let mut attributes = attribute::VOLATILE_CACHE | attribute::FUA;
    if export.is_read_only() {
        attributes |= attribute::READ_ONLY;
    }
    if export.device.limits().rotational {
        attributes |= attribute::ROTATIONAL;
    }
    let mut out = [0; 60];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &60u32.to_ne_bytes());
    put(4, &3u32.to_ne_bytes()); // both parts
    put(8, &attributes.to_ne_bytes());
    put(12, &[shift, physical, physical, physical]);
    put(16, &(REQUEST_BYTES_MAX / 512).to_ne_bytes());
    put(24, &(export.bytes() / 512).to_ne_bytes());
    put(44, &block.to_ne_bytes());
    put(48, &RANGE_SECTORS_MAX.to_ne_bytes());
    put(52, &RANGE_SECTORS_MAX.to_ne_bytes());
    put(56, &1u16.to_ne_bytes());
    out
}

/// What an error of the control device means to the administrator.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => {
            "this kernel has no ublk: no /dev/ublk-control (modprobe ublk_drv; Linux 6.5 or newer)".to_owned()
        }
        ErrorKind::PermissionDenied => {
            format!("ublk needs root (CAP_SYS_ADMIN) and /dev/ublk-control: {error}")
        }
        _ => format!("ublk: {error}"),
    }
}

/// A disk of this machine's kernel. It goes when it is dropped.
pub struct Disk {
    export: Arc<Export>,
    control: Control,
    number: u32,
    threads: Vec<JoinHandle<()>>,
}

impl Disk {
    /// Make `export` a disk, and begin to serve it.
    ///
    /// # Errors
    /// A sentence.
    pub fn start(export: &Arc<Export>, options: UblkOptions, bounds: Bounds) -> Result<Disk, String> {
        let depth = DEPTH.min(u16::try_from(bounds.requests).unwrap_or(DEPTH));
        let mut control = Control::open().map_err(|error| reason(&error))?;
        let mut asked = info(options.number.unwrap_or(ANY), options.queues, depth, options.recovers);
        let waits = match options.number {
            Some(number) if options.recovers => {
                recovery::take_over(&mut control, number, &asked, &parameters(export))?
            }
            _ => false,
        };
        if !waits {
            add(&mut control, options.number, &mut asked)?;
        }
        let (number, flags) = granted(&asked);
        // Dropped, it is removed again.
        let mut disk = Disk { export: export.clone(), control, number, threads: Vec::new() };
        export.connections.fetch_add(1, Relaxed);
        if flags & flag::USER_COPY == 0 {
            return Err("this kernel's ublk is too old: no UBLK_F_USER_COPY (Linux 6.5 or newer)".to_owned());
        }
        disk.serve(options.queues, depth, bounds, waits)
            .map_err(|why| format!("{}: {why}", disk.address()))?;
        Ok(disk)
    }

    /// `waits`: the kernel has it already, and waits for a server.
    fn serve(&mut self, queues: u16, depth: u16, bounds: Bounds, waits: bool) -> Result<(), String> {
        let (number, mut parameters) = (self.number, parameters(&self.export));
        if !waits {
            let set = self.control.command(Command::SetParameters, number, 0, &mut parameters);
            set.map_err(|error| format!("the kernel does not take its parameters: {error}"))?;
        }
        let file =
            Arc::new(open(number).map_err(|error| format!("cannot open /dev/ublkc{number}: {error}"))?);
        let (sender, ready) = mpsc::channel();
        for at in 0..queues {
            let queue = Queue::new(&self.export, bounds, &file, at, depth)?;
            let sender = sender.clone();
            let started = thread::Builder::new().name("ublk".to_owned()).spawn(move || queue.run(&sender));
            self.threads.push(started.map_err(|error| format!("no thread: {error}"))?);
        }
        drop(sender);
        for _ in 0..queues {
            ready.recv().unwrap_or_else(|_| Err("its thread has ended".to_owned()))?;
        }
        let started = if waits {
            recovery::go_on(&mut self.control, number)
        } else {
            self.control.command(Command::Start, number, std::process::id().into(), &mut [])
        };
        started.map_err(|error| format!("the kernel does not start it: {error}"))?;
        // The server's elevator orders, and nothing before it.
        let scheduler = format!("/sys/block/ublkb{number}/queue/scheduler");
        if let Err(error) = std::fs::write(&scheduler, "none") {
            let why = format!("cannot write none to {scheduler}: {error}");
            log(Level::Warn, "two-elevators", &[("export", &self.export.options.name), ("why", &why)]);
        }
        Ok(())
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("/dev/ublkb{}", self.number)
    }

    /// Wait until `drain` is set or the export is removed; then it goes.
    pub fn run(self, drain: &AtomicBool) {
        while !drain.load(Relaxed) && !self.export.drain.load(Relaxed) {
            thread::sleep(LOOK);
            if self.threads.iter().any(JoinHandle::is_finished) {
                let why = format!("{} was removed by another program", self.address());
                return log(
                    Level::Warn,
                    "disk-ended",
                    &[("export", &self.export.options.name), ("why", &why)],
                );
            }
        }
    }
}

impl Drop for Disk {
    /// Stopping it waits for the requests that it has; then its threads end, and with them the last users of its character device.
    fn drop(&mut self) {
        let (number, export) = (self.number, self.export.options.name.clone());
        let mut tell = |command| {
            if let Err(error) = self.control.command(command, number, 0, &mut [])
                && error.raw_os_error() != Some(libc::ENODEV)
            {
                let why = format!("{command:?}: {error}");
                log(Level::Warn, "disk-not-removed", &[("export", &export), ("why", &why)]);
            }
        };
        tell(Command::Stop);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        tell(Command::Delete);
        self.export.connections.fetch_sub(1, Relaxed);
    }
}

/// The character device of a disk that was just added: udev may take a moment.
fn open(number: u32) -> io::Result<File> {
    let until = Instant::now() + APPEARS;
    loop {
        let file = File::options().read(true).write(true).open(format!("/dev/ublkc{number}"));
        match file {
            Err(error) if error.kind() == ErrorKind::NotFound && Instant::now() < until => {
                thread::sleep(Duration::from_millis(10));
            }
            file => return file,
        }
    }
}

/// A new disk, in place of a dead one.
fn add(control: &mut Control, number: Option<u32>, asked: &mut [u8; 64]) -> Result<(), String> {
    if let Some(number) = number {
        remove_dead(control, number)?;
    }
    let added = control.command(Command::Add, number.unwrap_or(ANY), 0, asked);
    added.map_err(|error| match number {
        Some(number) if error.kind() == ErrorKind::AlreadyExists => {
            format!("there is a /dev/ublkb{number} already")
        }
        _ => reason(&error),
    })
}

/// Remove what a server has left that was killed: the disk's number is taken, and no process serves it.
fn remove_dead(control: &mut Control, number: u32) -> Result<(), String> {
    let path = format!("/dev/ublkc{number}");
    match File::options().read(true).write(true).open(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        // The driver lets one process open it.
        Err(error) if error.kind() == ErrorKind::ResourceBusy => {
            return Err(format!("another process serves /dev/ublkb{number}"));
        }
        Err(error) => return Err(format!("cannot open {path}: {error}")),
        Ok(file) => drop(file),
    }
    let removed = control.command(Command::Delete, number, 0, &mut []);
    removed.map_err(|error| format!("cannot remove the dead /dev/ublkb{number}: {error}"))?;
    log(Level::Info, "removed-dead-disk", &[("address", &format!("/dev/ublkb{number}"))]);
    Ok(())
}

#[cfg(test)]
mod tests;
