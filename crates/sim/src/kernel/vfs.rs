//! Open files: what a program holds when it opened a name.

use std::fmt;

use super::cache::ReadaheadState;
use super::files::FileId;

/// Durability that an open file asks for with every write.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OpenSync {
    /// None.
    #[default]
    None,
    /// `O_SYNC`: data and metadata are durable when `write` returns.
    Sync,
    /// `O_DSYNC`: data, and the metadata needed to read it back.
    DataSync,
}

/// How a file is opened. Build it from one of the constants: `OpenFlags::RDWR.create().truncate()`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenFlags {
    /// May be read.
    pub read: bool,
    /// May be written.
    pub write: bool,
    /// `O_CREAT`: make the file if there is none.
    pub create: bool,
    /// `O_TRUNC`: cut it to nothing.
    pub truncate: bool,
    /// `O_DIRECT`: past the page cache.
    pub direct: bool,
    /// `O_SYNC`, `O_DSYNC`.
    pub sync: OpenSync,
}

impl OpenFlags {
    /// `O_RDONLY`.
    pub const RDONLY: OpenFlags = OpenFlags {
        read: true,
        write: false,
        create: false,
        truncate: false,
        direct: false,
        sync: OpenSync::None,
    };
    /// `O_WRONLY`.
    pub const WRONLY: OpenFlags = OpenFlags { read: false, write: true, ..OpenFlags::RDONLY };
    /// `O_RDWR`.
    pub const RDWR: OpenFlags = OpenFlags { write: true, ..OpenFlags::RDONLY };

    /// With `O_CREAT`.
    pub const fn create(self) -> OpenFlags {
        OpenFlags { create: true, ..self }
    }

    /// With `O_TRUNC`.
    pub const fn truncate(self) -> OpenFlags {
        OpenFlags { truncate: true, ..self }
    }

    /// With `O_DIRECT`.
    pub const fn direct(self) -> OpenFlags {
        OpenFlags { direct: true, ..self }
    }

    /// With `O_SYNC`.
    pub const fn o_sync(self) -> OpenFlags {
        OpenFlags { sync: OpenSync::Sync, ..self }
    }

    /// With `O_DSYNC`.
    pub const fn o_dsync(self) -> OpenFlags {
        OpenFlags { sync: OpenSync::DataSync, ..self }
    }
}

/// What `fallocate` does with a stretch of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fallocate {
    /// Blocks are set aside for it; the file grows if it reaches beyond its end.
    Extend,
    /// Blocks are set aside, and the size stays (`FALLOC_FL_KEEP_SIZE`).
    KeepSize,
    /// It becomes a hole (`FALLOC_FL_PUNCH_HOLE`).
    Punch,
}

/// An open file; it belongs to the process that opened it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Fd(pub(crate) u32);

/// Why a system call failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Errno {
    /// `ENOENT`.
    NoEntry,
    /// `EEXIST`.
    Exists,
    /// `ENOSPC`.
    NoSpace,
    /// `EBADF`.
    BadFd,
    /// `EINVAL`.
    Invalid,
    /// `EOPNOTSUPP`.
    NotSupported,
    /// `EISDIR`.
    IsDirectory,
    /// `ENOTDIR`.
    NotDirectory,
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Errno::NoEntry => "No such file or directory",
            Errno::Exists => "File exists",
            Errno::NoSpace => "No space left on device",
            Errno::BadFd => "Bad file descriptor",
            Errno::Invalid => "Invalid argument",
            Errno::NotSupported => "Operation not supported",
            Errno::IsDirectory => "Is a directory",
            Errno::NotDirectory => "Not a directory",
        })
    }
}

impl std::error::Error for Errno {}

/// What the kernel keeps of an open file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenFile {
    pub(crate) file: FileId,
    pub(crate) flags: OpenFlags,
    pub(crate) position: u64,
    pub(crate) readahead: ReadaheadState,
}

/// All open files.
#[derive(Debug, Default)]
pub(crate) struct Vfs {
    open: Vec<Option<OpenFile>>,
    free: Vec<u32>,
    /// Directories that were made, without a file system.
    pub(crate) directories: std::collections::BTreeSet<String>,
}

impl Vfs {
    pub(crate) fn add(&mut self, file: OpenFile) -> Fd {
        if let Some(fd) = self.free.pop() {
            self.open[fd as usize] = Some(file);
            Fd(fd)
        } else {
            self.open.push(Some(file));
            Fd(self.open.len() as u32 - 1)
        }
    }

    pub(crate) fn get(&mut self, fd: Fd) -> Result<&mut OpenFile, Errno> {
        self.open.get_mut(fd.0 as usize).and_then(Option::as_mut).ok_or(Errno::BadFd)
    }

    pub(crate) fn remove(&mut self, fd: Fd) -> Result<OpenFile, Errno> {
        let file = self.open.get_mut(fd.0 as usize).and_then(Option::take).ok_or(Errno::BadFd)?;
        self.free.push(fd.0);
        Ok(file)
    }
}
