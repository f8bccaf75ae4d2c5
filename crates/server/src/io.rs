//! What a front end submits: a bio with its memory.

use std::ops::{Deref, DerefMut};

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
    pub data: Data,
    /// The answer.
    pub result: Result<(), Fault>,
}

/// A bio's memory. It begins at a multiple of what its back end wants.
#[derive(Debug, Default)]
pub struct Data {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Data {
    /// Make it `len` bytes at a multiple of `align`, which is a power of two. What is in it is anything.
    pub fn resize(&mut self, len: usize, align: u32) {
        let room = len + align as usize - 1;
        if self.memory.len() < room {
            self.memory = vec![0; room];
        }
        // The memory does not move until it is replaced.
        self.start = if align == 1 { 0 } else { self.memory.as_ptr().addr().wrapping_neg() % align as usize };
        self.len = len;
    }

    /// Bytes it takes.
    pub fn capacity(&self) -> usize {
        self.memory.len()
    }
}

impl Deref for Data {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }
}

impl DerefMut for Data {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

/// Bios that go from thread to thread: moved as pointers, and used again.
#[allow(clippy::vec_box, reason = "one of a hundred bytes is moved five times on its way")]
pub type Ios = Vec<Box<Io>>;

impl Io {
    /// A new one, without memory.
    pub fn new(tag: u64, action: Action, offset: u64, bytes: u32) -> Io {
        Io { tag, action, fua: false, offset, bytes, data: Data::default(), result: Ok(()) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_begins_where_it_is_to_and_is_used_again() {
        let mut data = Data::default();
        for (len, align) in [(5, 1), (4096, 512), (512, 4096), (0, 4096), (8192, 4096)] {
            data.resize(len, align);
            assert_eq!((data.len(), data.as_ptr().addr() % align as usize), (len, 0));
        }
        let place = data.as_ptr().addr();
        data.fill(7);
        data.resize(4096, 4096);
        assert_eq!((data.as_ptr().addr(), data[4095]), (place, 7));
    }
}
