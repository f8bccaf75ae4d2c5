//! The commands of the kernel's ublk driver: of its control device, and of a disk's queues.
//!
//! Numbers and layouts are those of the kernel's `include/uapi/linux/ublk_cmd.h` (6.12), their use that of
//! `Documentation/block/ublk.rst`.
//!
//! The argument for `unsafe` here: a control command borrows its buffer until the kernel has answered; the commands of a queue name no
//! memory at all, because data is copied by reads and writes of the disk's character device (`UBLK_F_USER_COPY`); and
//! the descriptors, which the kernel writes, are mapped for as long as [`Queue`] lives and read by value.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use io_uring::squeue::{Entry, Entry128};
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode};

/// How long to wait when the kernel has no memory for an entry.
const BREATH: Duration = Duration::from_micros(100);
/// Name of the entry that watches the answers of the disk's device.
const WOKEN: u64 = u64::MAX;
/// `UBLK_MAX_QUEUE_DEPTH`; each queue's descriptors are that many apart.
pub(crate) const DEPTH_MAX: u16 = 4096;
/// Size of `struct ublksrv_io_desc`, bytes.
const DESCRIPTOR_BYTES: usize = 24;

/// The number of an ioctl that reads and writes so many bytes, of the driver's type 'u' (`_IOWR`).
const fn read_write(number: u32, bytes: u32) -> u32 {
    3 << 30 | bytes << 16 | (b'u' as u32) << 8 | number
}

/// The same of one that reads only (`_IOR`).
const fn read(number: u32, bytes: u32) -> u32 {
    2 << 30 | bytes << 16 | (b'u' as u32) << 8 | number
}

/// What the control device does; each takes a `struct ublksrv_ctrl_cmd` of 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Command {
    Add = read_write(0x04, 32),
    Delete = read_write(0x05, 32),
    Start = read_write(0x06, 32),
    Stop = read_write(0x07, 32),
    SetParameters = read_write(0x08, 32),
    StartRecovery = read_write(0x10, 32),
    EndRecovery = read_write(0x11, 32),
    GetInfo = read(0x02, 32),
    GetParameters = read(0x09, 32),
}

const FETCH: u32 = read_write(0x20, 16);
const COMMIT_AND_FETCH: u32 = read_write(0x21, 16);

/// The control device.
pub(crate) struct Control {
    ring: IoUring<Entry128, cqueue::Entry>,
    file: File,
}

impl Control {
    /// # Errors
    /// The system's: no driver, no right, no io_uring.
    pub(crate) fn open() -> io::Result<Control> {
        let file = File::options().read(true).write(true).open("/dev/ublk-control")?;
        Ok(Control { ring: IoUring::builder().build(2)?, file })
    }

    /// Do `command` for the disk of that number, and wait for the end of it.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn command(
        &mut self,
        command: Command,
        number: u32,
        value: u64,
        buffer: &mut [u8],
    ) -> io::Result<()> {
        let len = u16::try_from(buffer.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
        let address = if buffer.is_empty() { 0 } else { buffer.as_mut_ptr().expose_provenance() as u64 };
        let mut fields = [0; 80];
        fields[..4].copy_from_slice(&number.to_ne_bytes());
        fields[4..6].copy_from_slice(&u16::MAX.to_ne_bytes()); // of no queue
        fields[6..8].copy_from_slice(&len.to_ne_bytes());
        fields[8..16].copy_from_slice(&address.to_ne_bytes());
        fields[16..24].copy_from_slice(&value.to_ne_bytes());
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), command as u32).cmd(fields).build();
        // SAFETY: this function returns, and gives `buffer` back, once the kernel has answered.
        unsafe { self.ring.submission().push(&entry) }.map_err(io::Error::other)?;
        loop {
            // Interrupted, or no memory: the entry is still there, or its answer is still to come.
            if self.ring.submit_and_wait(1).is_err() {
                thread::sleep(BREATH);
            }
            if let Some(answer) = self.ring.completion().next() {
                return match answer.result() {
                    result if result < 0 => Err(io::Error::from_raw_os_error(-result)),
                    _ => Ok(()),
                };
            }
        }
    }
}

/// What the kernel asks a queue for (`struct ublksrv_io_desc`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Descriptor {
    /// The operation in the lowest 8 bits, flags in the others.
    pub(crate) op_flags: u32,
    pub(crate) sectors: u32,
    pub(crate) start_sector: u64,
}

/// The descriptors of a queue, by tag, in memory that the kernel writes.
struct Descriptors {
    start: NonNull<[u64; 3]>,
    depth: u16,
}

// SAFETY: a mapping belongs to no thread.
unsafe impl Send for Descriptors {}

impl Descriptors {
    fn map(file: &File, queue: u16, depth: u16) -> io::Result<Descriptors> {
        // SAFETY: sysconf has no conditions.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        let page = usize::try_from(page).map_err(|_| io::Error::last_os_error())?;
        let apart = (usize::from(DEPTH_MAX) * DESCRIPTOR_BYTES).next_multiple_of(page);
        let (bytes, offset) = (usize::from(depth) * DESCRIPTOR_BYTES, usize::from(queue) * apart);
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        // SAFETY: a new mapping where the kernel likes; nothing else is there.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                flags,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Descriptors { start, depth })
    }

    fn get(&self, tag: u16) -> Descriptor {
        assert!(tag < self.depth, "the kernel knows {} tags", self.depth);
        // SAFETY: inside the mapping, which is aligned to a page; any bytes are valid.
        let [first, start_sector, _] = unsafe { self.start.add(tag.into()).read_volatile() };
        let bytes = first.to_ne_bytes();
        Descriptor {
            op_flags: u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            sectors: u32::from_ne_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            start_sector,
        }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nobody has a reference into it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), usize::from(self.depth) * DESCRIPTOR_BYTES) };
    }
}

/// What a queue's thread is woken by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The kernel asks for what the descriptor of this tag says.
    Request(u16),
    /// The kernel asks for nothing with this tag any more; or it refused a command of it.
    Gone(u16),
    /// What [`Queue::watch`] watches is ready.
    Woken,
}

/// A disk's queue. One thread has it: the driver wants all commands of a queue from the thread of the first.
pub(crate) struct Queue {
    ring: IoUring,
    descriptors: Descriptors,
    file: Arc<File>,
    number: u16,
}

impl Queue {
    /// Queue `number` of the disk whose character device is `file`.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn new(file: &Arc<File>, number: u16, depth: u16) -> io::Result<Queue> {
        let ring = IoUring::builder().setup_coop_taskrun().build(u32::from(depth) + 1)?;
        let descriptors = Descriptors::map(file, number, depth)?;
        Ok(Queue { ring, descriptors, file: file.clone(), number })
    }

    pub(crate) fn depth(&self) -> u16 {
        self.descriptors.depth
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn descriptor(&self, tag: u16) -> Descriptor {
        self.descriptors.get(tag)
    }

    fn push(&mut self, entry: &Entry) {
        // SAFETY: neither a command of a queue (its address is 0) nor a poll has memory.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            if self.ring.submit().is_err() {
                thread::sleep(BREATH);
            }
        }
    }

    fn tell(&mut self, command: u32, tag: u16, result: i32) {
        let mut fields = [0; 16];
        fields[..2].copy_from_slice(&self.number.to_ne_bytes());
        fields[2..4].copy_from_slice(&tag.to_ne_bytes());
        fields[4..8].copy_from_slice(&result.to_ne_bytes());
        let entry = opcode::UringCmd16::new(Fd(self.file.as_raw_fd()), command).cmd(fields).build();
        self.push(&entry.user_data(tag.into()));
    }

    /// The kernel may ask with this tag from now on.
    pub(crate) fn fetch(&mut self, tag: u16) {
        self.tell(FETCH, tag, 0);
    }

    /// Answer the request of this tag, with bytes or an error's number below zero; the kernel may ask with it again.
    pub(crate) fn commit(&mut self, tag: u16, result: i32) {
        self.tell(COMMIT_AND_FETCH, tag, result);
    }

    /// [`Event::Woken`] comes once when `what` is ready to be read.
    pub(crate) fn watch(&mut self, what: &impl AsFd) {
        let entry = opcode::PollAdd::new(Fd(what.as_fd().as_raw_fd()), libc::POLLIN as u32).build();
        self.push(&entry.user_data(WOKEN));
    }

    /// Tell the kernel of all that was asked for, and take what came; `wait`: at least one.
    pub(crate) fn enter(&mut self, wait: bool, events: &mut Vec<Event>) {
        if (wait || !self.ring.submission().is_empty())
            && self
                .ring
                .submit_and_wait(usize::from(wait))
                .is_err_and(|error| error.raw_os_error() != Some(libc::EINTR))
        {
            thread::sleep(BREATH);
        }
        events.extend(self.ring.completion().map(|answer| match (answer.user_data(), answer.result()) {
            (WOKEN, _) => Event::Woken,
            (tag, 0) => Event::Request(tag as u16),
            (tag, _) => Event::Gone(tag as u16),
        }));
    }
}
