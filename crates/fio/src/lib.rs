//! fio job files, and the exact stream of I/O each process of them would issue.
//!
//! * [`parse`] and [`parse_command_line`] read job files and fio command lines into [`Job`]s and say, with file, line and
//!   word, what is wrong, what is not simulated and what is refused.
//! * [`expand`] makes processes of jobs: clones, thread numbers, shared files.
//! * [`offsets`] generates what one process issues, in fio's order: same seeds, same offsets, same sizes as fio 3.33.
//!
//! The crate opens no file and asks no clock: job files, environment, includes and randomness are handed in.
//!
//! ```
//! use fairlift_fio::{ParseOptions, Source, expand, offsets::Stream, parse};
//!
//! let file = Source::new("demo.fio", "[reader]\nrw=randread\nsize=1m\nbs=4k\n");
//! let parsed = parse(&[file], &ParseOptions::default()).expect("a correct job file");
//! let expansion = expand(&parsed.jobs, 0);
//! let mut stream = Stream::new(&parsed.jobs[0], &expansion, 0, &|_| None, 0).expect("the job fits its file");
//! let first = stream.next().expect("256 blocks to read");
//! assert_eq!(first.offset_bytes, 61_440); // every fio job 1 starts at 6.03 % of its file
//! ```
//!
//! Facts about fio come from its documentation and source and from running fio 3.33; the recorded streams are in
//! `tests/vectors`.

mod build;
mod change;
mod command_line;
mod diagnostic;
mod expand;
mod job;
pub mod offsets;
mod parse;
mod sections;
mod settings;
mod source;
mod substitute;
pub mod table;
mod values;

pub use change::Change;
pub use command_line::parse_command_line;
pub use diagnostic::{Diagnostic, Place, Severity};
pub use expand::{Expansion, FileId, FileInfo, Process, expand};
pub use job::*;
pub use parse::{Parsed, Refused, parse};
pub use source::{
    MAX_BYTES, MAX_DIAGNOSTICS, MAX_FILES, MAX_INCLUDE_DEPTH, MAX_INCLUDES, MAX_LINE_BYTES, MAX_PROCESSES,
    MAX_SECTIONS, ParseOptions, Source,
};
pub use table::{EngineFamily, FileCall};
pub use values::Amount;
