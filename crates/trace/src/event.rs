//! The event: one line or record of any trace, without owning memory.

use crate::names::Text;

/// A Linux device number as blktrace packs it: 12 bits of major, 20 bits of minor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DeviceNumber(pub u32);

impl DeviceNumber {
    /// Packs `major` (0-4095) and `minor` (0-1048575); `None` when one does not fit.
    pub const fn new(major: u32, minor: u32) -> Option<Self> {
        if major < 1 << 12 && minor < 1 << 20 { Some(Self(major << 20 | minor)) } else { None }
    }

    /// The major number.
    pub const fn major(self) -> u32 {
        self.0 >> 20
    }

    /// The minor number.
    pub const fn minor(self) -> u32 {
        self.0 & 0xf_ffff
    }
}

/// What an event happened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Device {
    /// The format does not say.
    #[default]
    None,
    /// A Linux block device.
    Number(DeviceNumber),
    /// A volume, file, LUN or host and disk, by the name the trace gives it.
    Name(Text),
}

/// What happened. blktrace's actions first, then what only other formats have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Action {
    /// A bio arrived at the queue (`Q`). Formats that record only arrivals give this action.
    #[default]
    Queue,
    /// The bio was appended to a request (`M`).
    BackMerge,
    /// The bio was put in front of a request (`F`).
    FrontMerge,
    /// A request was allocated (`G`).
    GetRequest,
    /// The submitter waits for a free request (`S`).
    SleepRequest,
    /// The device gave the request back (`R`).
    Requeue,
    /// The request was handed to the device (`D`).
    Issue,
    /// The request is done (`C`).
    Complete,
    /// The queue or the task's list was plugged (`P`).
    Plug,
    /// It was unplugged (`U`, or `T` by the timer of old kernels).
    Unplug {
        /// Requests released.
        count: u64,
        /// The timer did it.
        by_timer: bool,
    },
    /// The request was given to the elevator (`I`).
    Insert,
    /// The bio was cut in two (`X`).
    Split {
        /// First sector of the second part.
        to: u64,
    },
    /// The bio's pages were copied to low memory (`B`).
    Bounce,
    /// The bio was mapped from a partition or a stacked device to the event's device (`A`).
    Remap {
        /// The device it came from.
        from: DeviceNumber,
        /// Its sector there.
        sector: u64,
        /// The device it goes to, as the record says (usually the event's own).
        to: DeviceNumber,
    },
    /// The request was aborted.
    Abort,
    /// A driver's own bytes, in the payload.
    DriverData,
    /// A zone write plug was plugged (v8).
    ZonePlug,
    /// A zone write plug was unplugged (v8).
    ZoneUnplug,
    /// Text from the kernel, an elevator or a user (`m`), in the payload.
    Message,
    /// The recorder lost events at about this time; the payload says so in ftrace's words.
    Lost {
        /// How many; 0: it is not known.
        events: u64,
    },
    /// A process has this name from here on: see [`Event::pid`] and [`Event::comm`].
    Process,
    /// Wall clock of this moment.
    Timestamp {
        /// Seconds since 1970.
        seconds: u32,
        /// And nanoseconds.
        nanoseconds: u32,
    },
    /// Two requests became one (tracepoint `block_rq_merge`).
    RequestMerge,
    /// A bio is done (tracepoint `block_bio_complete`).
    BioComplete,
    /// A request failed (tracepoint `block_rq_error`); a completion follows.
    Error,
    /// Accounting of a request began (tracepoint `block_io_start`).
    IoStart,
    /// Accounting of a request ended (tracepoint `block_io_done`).
    IoDone,
    /// A file joins the log (fio iolog `add`).
    FileAdd,
    /// A file is opened (fio iolog `open`).
    FileOpen,
    /// A file is closed (fio iolog `close`).
    FileClose,
}

impl Action {
    /// blktrace's notes: records about the trace rather than about an I/O.
    pub const fn is_note(self) -> bool {
        matches!(self, Self::Message | Self::Lost { .. } | Self::Process | Self::Timestamp { .. })
    }

    /// Whether the action concerns an extent of a device: sector and size mean something.
    pub const fn has_extent(self) -> bool {
        !self.is_note()
            && !matches!(
                self,
                Self::Plug | Self::Unplug { .. } | Self::FileAdd | Self::FileOpen | Self::FileClose
            )
    }
}

/// What is done to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Op {
    /// Nothing, or the format does not say.
    #[default]
    None,
    /// Read.
    Read,
    /// Write.
    Write,
    /// Discard (trim).
    Discard,
    /// Secure erase.
    SecureErase,
    /// Flush of the device's cache, without data.
    Flush,
    /// Write zeroes without data.
    WriteZeroes,
    /// Zone append.
    ZoneAppend,
    /// Reset of a zone.
    ZoneReset,
    /// Reset of all zones.
    ZoneResetAll,
    /// Zone finish.
    ZoneFinish,
    /// Zone open.
    ZoneOpen,
    /// Zone close.
    ZoneClose,
    /// `fsync` of a file (fio iolog).
    Sync,
    /// `fdatasync` of a file (fio iolog).
    DataSync,
}

impl Op {
    /// Every operation with its name in CSV files.
    pub const NAMES: [(&'static str, Self); 15] = [
        ("none", Self::None),
        ("read", Self::Read),
        ("write", Self::Write),
        ("discard", Self::Discard),
        ("secure-erase", Self::SecureErase),
        ("flush", Self::Flush),
        ("write-zeroes", Self::WriteZeroes),
        ("zone-append", Self::ZoneAppend),
        ("zone-reset", Self::ZoneReset),
        ("zone-reset-all", Self::ZoneResetAll),
        ("zone-finish", Self::ZoneFinish),
        ("zone-open", Self::ZoneOpen),
        ("zone-close", Self::ZoneClose),
        ("sync", Self::Sync),
        ("datasync", Self::DataSync),
    ];

    /// Its name in CSV files.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, op)| *op == self).map_or("none", |(name, _)| name)
    }

    /// Whether data goes to the device.
    pub const fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::WriteZeroes | Self::ZoneAppend)
    }
}

/// A set of properties of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// No property.
    pub const NONE: Self = Self(0);
    /// A task waits for it.
    pub const SYNC: Self = Self(1);
    /// File system metadata.
    pub const META: Self = Self(1 << 1);
    /// Forced unit access: durable before it completes.
    pub const FUA: Self = Self(1 << 2);
    /// The device's cache is flushed before it (a *barrier* in old kernels).
    pub const PREFLUSH: Self = Self(1 << 3);
    /// Readahead: no task waits yet.
    pub const READAHEAD: Self = Self(1 << 4);
    /// A SCSI command passed through; its bytes are the payload.
    pub const PASSTHROUGH: Self = Self(1 << 5);
    /// From the file system (blktrace's `fs` bit).
    pub const FS: Self = Self(1 << 6);
    /// Atomic write.
    pub const ATOMIC: Self = Self(1 << 7);
    /// Served by the device's cache (DiskSim validation traces).
    pub const CACHE_HIT: Self = Self(1 << 8);
    /// Not served by the device's cache (DiskSim validation traces).
    pub const CACHE_MISS: Self = Self(1 << 9);

    /// Every property with its name in CSV files.
    pub const NAMES: [(&'static str, Self); 10] = [
        ("sync", Self::SYNC),
        ("meta", Self::META),
        ("fua", Self::FUA),
        ("preflush", Self::PREFLUSH),
        ("readahead", Self::READAHEAD),
        ("passthrough", Self::PASSTHROUGH),
        ("fs", Self::FS),
        ("atomic", Self::ATOMIC),
        ("hit", Self::CACHE_HIT),
        ("miss", Self::CACHE_MISS),
    ];

    /// Whether all of `other` is in this set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// This set with `other`.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// `other` if `condition`, else nothing.
    pub const fn when(condition: bool, other: Self) -> Self {
        if condition { other } else { Self::NONE }
    }
}

/// Bytes in a sector.
pub const SECTOR_BYTES: u64 = 512;

/// One event. Texts are numbers into the reader's [`crate::Names`]; a payload stays in the reader until its next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Event {
    /// When, ns. What zero is depends on the format: see [`crate::Format::clock`].
    pub time_ns: u64,
    /// First sector (512 B).
    pub sector: u64,
    /// Size.
    pub bytes: u64,
    /// The device's latency, for formats that record it with the arrival.
    pub response_ns: Option<u64>,
    /// The cgroup (its inode number).
    pub cgroup: Option<u64>,
    /// What happened.
    pub action: Action,
    /// On what.
    pub device: Device,
    /// Thread that ran when it happened. On a completion: the thread that was interrupted.
    pub pid: Option<u32>,
    /// Its name.
    pub comm: Option<Text>,
    /// The CPU.
    pub cpu: Option<u32>,
    /// Running number on that CPU; 0 when the format has none.
    pub sequence: u32,
    /// Result: 0 or a negative error number.
    pub error: i32,
    /// Bytes into the sector where the I/O starts, for formats that count in bytes. Below 512.
    pub skew_bytes: u16,
    /// I/O priority: class in the top three bits, hint, level in the low three bits.
    pub ioprio: Option<u16>,
    /// What is done to the device.
    pub op: Op,
    /// How.
    pub flags: Flags,
}

impl Event {
    /// First byte, for formats that count in bytes. Saturates past 2^64.
    pub const fn offset_bytes(&self) -> u64 {
        self.sector.saturating_mul(SECTOR_BYTES).saturating_add(self.skew_bytes as u64)
    }

    /// Sets sector and skew from a byte offset.
    pub const fn set_offset_bytes(&mut self, offset: u64) {
        self.sector = offset / SECTOR_BYTES;
        self.skew_bytes = (offset % SECTOR_BYTES) as u16;
    }

    /// Whole sectors of the size, rounded down as blkparse does.
    pub const fn sectors(&self) -> u64 {
        self.bytes / SECTOR_BYTES
    }

    /// The sector after the last one. Saturates.
    pub const fn end_sector(&self) -> u64 {
        self.sector.saturating_add(self.bytes.div_ceil(SECTOR_BYTES))
    }
}
