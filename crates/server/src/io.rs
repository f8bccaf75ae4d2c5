//! What a front end submits: a bio with its memory.

/// What to do with a range of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Fill [`Io::data`].
    Read,
    /// Write [`Io::data`].
    Write,
    /// The contents are no longer needed; what is read afterwards is undefined.
    Trim,
    /// Make it read as zeroes.
    Zero {
        /// May the space be given back?
        punch: bool,
        /// Refuse with [`Fault::NotSupported`] if it would take as long as writing.
        fast: bool,
    },
    /// Everything that was answered before is on stable storage afterwards.
    Flush,
}

/// Why an [`Io`] failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The back end failed.
    Io,
    /// There is no space left behind it.
    NoSpace,
    /// It cannot do that, or not fast.
    NotSupported,
    /// It may not be written.
    ReadOnly,
    /// It is not a range of it.
    Invalid,
}

/// A bio on its way through the device, with its memory.
#[derive(Debug)]
pub struct Io {
    /// The front end's name for it.
    pub tag: u64,
    /// What to do.
    pub action: Action,
    /// On stable storage before it is answered?
    pub fua: bool,
    /// First byte on the device.
    pub offset: u64,
    /// Bytes; 0 for [`Action::Flush`].
    pub bytes: u32,
    /// `bytes` bytes for a read or write, else empty.
    pub data: Vec<u8>,
    /// The answer.
    pub result: Result<(), Fault>,
}

/// Bios on their way from thread to thread: moved as pointers, and used again.
#[allow(clippy::vec_box, reason = "one of a hundred bytes is moved five times on its way")]
pub type Ios = Vec<Box<Io>>;

impl Io {
    /// A new one, without memory.
    pub fn new(tag: u64, action: Action, offset: u64, bytes: u32) -> Io {
        Io { tag, action, fua: false, offset, bytes, data: Vec::new(), result: Ok(()) }
    }

    /// First byte behind it.
    pub fn end(&self) -> u64 {
        self.offset + u64::from(self.bytes)
    }
}

impl Fault {
    /// What an error of the system means to a client. All that is nothing better is an I/O error.
    pub fn of(error: &std::io::Error) -> Fault {
        match error.kind() {
            std::io::ErrorKind::StorageFull
            | std::io::ErrorKind::QuotaExceeded
            | std::io::ErrorKind::FileTooLarge => Fault::NoSpace,
            std::io::ErrorKind::Unsupported => Fault::NotSupported,
            std::io::ErrorKind::ReadOnlyFilesystem => Fault::ReadOnly,
            _ => Fault::Io,
        }
    }
}
