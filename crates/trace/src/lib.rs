//! Block traces in and out: streaming readers and writers of every common format over one [`Event`], and statistics in
//! one pass.
//!
//! | format | read | write | what it holds |
//! |---|---|---|---|
//! | [`Format::Blktrace`] | v7, v8, both byte orders, per-CPU files merged, `blkparse -d` files | v7, v8 | every stage, device, process, CPU, flags, notes, cgroup |
//! | [`Format::Blkparse`] | default text | the same, column for column | every stage, device, process, CPU, flags, messages |
//! | [`Format::BlkparseFormat`] | text of any `-f` string | - | what the string names |
//! | [`Format::Ftrace`] | ftrace, `trace-cmd report`, `perf script` | - | every stage, device, process, CPU, flags, priority |
//! | [`Format::Iolog`] | fio iolog 2, 3 | 2, 3 | arrivals of files, µs, sync |
//! | [`Format::DiskSim`], [`Format::MqSim`] | yes | - | arrivals |
//! | [`Format::DiskSimValidation`] | yes | - | arrivals in a closed loop, response times, cache hits |
//! | [`Format::Blkreplay`] | `.load` | - | arrivals; response times after a replay |
//! | [`Format::Msr`], [`Format::Systor`] | yes | - | arrivals of volumes, response times |
//! | [`Format::Alibaba`], [`Format::Tencent`], [`Format::K5`], [`Format::Spc`] | yes | - | arrivals of volumes (Tencent: whole seconds) |
//! | [`Format::Fiu`] | yes | - | arrivals, device, process |
//! | [`Format::Vscsi`], [`Format::VscsiCsv`], [`Format::CloudPhysics`] | binary 1 and 2; VMware's CSV; CloudPhysics' CSV | - | arrivals; response times in version 2 |
//! | [`Format::Csv`] | any columns of the list in `docs/traces.md` | all columns | everything |
//! | Chrome/Perfetto JSON | - | [`write::ChromeWriter`] | a slice for each I/O, messages, requests in the device |
//!
//! [`Format::facts`] says of each what it records, [`TraceReader::facts`] what a trace does. `.gz`, `.xz`, `.zst` and `.bz2` are read directly; the reader
//! recognises the format from the content.
//!
//! An [`Event`] is plain data and owns nothing: names are numbers into [`TraceReader::names`], and a message's text stays
//! in [`TraceReader::payload`] until the next event. Memory is bounded whatever the trace.
//!
//! ```
//! use fairlift_trace::write::{CsvWriter, EventWriter};
//! use fairlift_trace::{Options, Summary, TraceReader};
//!
//! let text = "0.5 0 2048 8 1\n1.25 0 2056 8 0\n"; // DiskSim: ms, device, block, blocks, 1 = read
//! let mut reader = TraceReader::from_read("demo", text.as_bytes(), &Options::default())?;
//! let (mut summary, mut csv) = (Summary::new(), Vec::new());
//! let mut writer = CsvWriter::new(&mut csv);
//! while let Some(event) = reader.next() {
//!     let event = event?;
//!     summary.add(&event);
//!     writer.write(&event, reader.texts())?;
//! }
//! assert!(writer.finish()?.is_empty(), "CSV loses nothing");
//! assert_eq!(summary.all.total().bytes, 8192);
//! assert_eq!(summary.all.sequential, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Facts about the formats come from the public sources named in `docs/traces.md` and from running blktrace 1.2.0 and
//! fio 3.33; `tests/recorded.rs` and `tests/acceptance.rs` compare with them.

mod compress;
mod detect;
mod error;
mod event;
mod format;
mod gap;
mod names;
mod open;
mod read;
mod reader;
mod requests;
mod rwbs;
mod summary;
pub mod write;

pub use error::{ErrorKind, Place, TraceError};
pub use event::{Action, Device, DeviceNumber, Event, Flags, Op, SECTOR_BYTES};
pub use format::{Clock, Facts, Format};
pub use gap::Lost;
pub use names::{Names, Text, Texts};
pub use read::blkparse_format::BlkparseFormat;
pub use reader::{Options, Skipped, TraceReader};
pub use requests::{Bio, Interval, Step, Tracker};
pub use summary::{Amount, Depth, Load, Moments, Percentiles, Summary, Who};
