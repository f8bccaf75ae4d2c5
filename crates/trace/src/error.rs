//! What is wrong with a trace, and where.

use std::fmt;
use std::sync::Arc;

/// The class of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The operating system or the decompressor failed.
    Io,
    /// The file ends inside a record or line.
    Truncated,
    /// A record or line is not of the format.
    Corrupt,
    /// Records of both byte orders.
    ByteOrder,
    /// Time runs backwards.
    OutOfOrder,
    /// A time before zero.
    NegativeTime,
    /// Several devices where one is meant.
    MixedDevices,
    /// Nothing in it.
    Empty,
    /// Which format it is cannot be told.
    UnknownFormat,
    /// A feature this crate does not read.
    Unsupported,
}

/// Where in a trace.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file as the caller named it.
    pub file: Arc<str>,
    /// Record from 1; 0: the file as a whole.
    pub record: u64,
    /// Line from 1; 0 in binary files.
    pub line: u64,
    /// Byte offset of the record or line, after decompression.
    pub offset: u64,
}

impl Place {
    /// A file as a whole.
    pub fn file(file: &Arc<str>) -> Self {
        Self { file: file.clone(), record: 0, line: 0, offset: 0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.line, self.record) {
            (0, 0) => write!(f, "{}", self.file),
            (0, record) => write!(f, "{}: record {record} at byte {}", self.file, self.offset),
            (line, _) => write!(f, "{}:{line} (byte {})", self.file, self.offset),
        }
    }
}

/// A fault with its place. The message is a sentence without a final stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Its class.
    pub kind: ErrorKind,
    /// Where.
    pub place: Place,
    /// What is wrong and what was expected.
    pub message: String,
}

impl TraceError {
    /// A fault.
    pub fn new(kind: ErrorKind, place: Place, message: impl Into<String>) -> Self {
        Self { kind, place, message: message.into() }
    }

    /// A stream that cannot be read on. A compressed stream that ends early is a truncated file.
    pub(crate) fn reading(place: Place, error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return Self::new(ErrorKind::Truncated, place, "the compressed data end too early");
        }
        Self::new(ErrorKind::Io, place, format!("cannot read on: {error}"))
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for TraceError {}

/// A fault before its place is known.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub kind: ErrorKind,
    pub message: String,
}

impl Problem {
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Corrupt, message: message.into() }
    }

    /// `word` is not what was expected.
    pub fn word(expected: &str, word: &[u8]) -> Self {
        let shown: String =
            String::from_utf8_lossy(word).chars().take(40).flat_map(char::escape_debug).collect();
        Self::corrupt(format!("expected {expected}, found '{shown}'"))
    }

    pub fn at(self, place: Place) -> TraceError {
        TraceError::new(self.kind, place, self.message)
    }
}
