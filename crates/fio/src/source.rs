//! Job files as the caller hands them in, and what the reader may ask of its host.

use std::io;
use std::path::Path;

use crate::change::Change;

/// Largest job file, together with everything it includes, bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Longest line, bytes.
pub const MAX_LINE_BYTES: usize = 8192;
/// Files inside files.
pub const MAX_INCLUDE_DEPTH: u32 = 16;
/// `include` lines followed altogether.
pub const MAX_INCLUDES: u32 = 256;
/// Sections of all files.
pub const MAX_SECTIONS: usize = 4096;
/// Processes of all jobs: fio's own limit.
pub const MAX_PROCESSES: u32 = 4096;
/// Files of all processes.
pub const MAX_FILES: u64 = 1 << 20;
/// Remarks kept; one more says that there were more.
pub const MAX_DIAGNOSTICS: usize = 100;

/// A job file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its path, for messages and for `include` lines, which are relative to it.
    pub name: String,
    /// Its content. Anything but UTF-8 is an error.
    pub bytes: Vec<u8>,
}

impl Source {
    /// A job file from text.
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }
}

/// What the reader may ask, and how strict it is. The reader itself touches neither environment nor file system.
#[derive(Clone, Copy)]
pub struct ParseOptions<'a> {
    /// Turn warnings into errors.
    pub strict: bool,
    /// Value of an environment variable, for `${NAME}`.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// Content of a file named by `include`.
    pub read_file: &'a dyn Fn(&Path) -> io::Result<Vec<u8>>,
    /// `$pagesize`, bytes.
    pub page_bytes: u64,
    /// `$mb_memory`, MiB.
    pub memory_mib: u64,
    /// `$ncpus`.
    pub cpus: u64,
    /// Options that jobs get beside those of the files.
    pub changes: &'a [Change],
}

impl Default for ParseOptions<'_> {
    /// Lenient, an empty environment, no includes, 4 KiB pages, 4 GiB, 4 processors.
    fn default() -> Self {
        Self {
            strict: false,
            env: &|_| None,
            read_file: &|_| Err(io::ErrorKind::Unsupported.into()),
            page_bytes: 4096,
            memory_mib: 4096,
            cpus: 4,
            changes: &[],
        }
    }
}
