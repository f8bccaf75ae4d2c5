//! Block traces in and out.
mod compress;
mod detect;
mod error;
mod event;
mod format;
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
pub use names::{Names, Text, Texts};
pub use read::blkparse_format::BlkparseFormat;
pub use reader::{Options, Skipped, TraceReader};
pub use requests::{Bio, Interval, Step, Tracker};
pub use summary::{Amount, Depth, Load, Moments, Percentiles, Summary, Who};
