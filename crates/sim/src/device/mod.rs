//! Devices: what happens to a command after the block layer let it go.

mod array;
mod chance;
mod cloud;
mod disk;
mod drive;
mod events;
mod flash;
pub mod import;
mod null;
mod paced;
pub mod rng;
mod spec;
mod timed;

use std::fmt::Debug;

pub use disk::{Geometry, Layout};
pub use spec::{DeviceSpec, Measured, PRESETS, Preset, SpecError, WORDS, Word, preset, word};

pub use fairlift_core::Op;

/// A command on its way to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// The host's name for it; comes back in [`Completion`].
    pub tag: u32,
    /// What to do.
    pub op: Op,
    /// First sector (512 bytes).
    pub sector: u64,
    /// Sectors; 0 for [`Op::Flush`].
    pub sectors: u32,
    /// Must reach the medium before it completes.
    pub fua: bool,
}

/// A command that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The command's tag.
    pub tag: u32,
    /// When it was done, nanoseconds.
    pub at_ns: u64,
    /// Before this time it waited inside the device, behind others or for a rate; 0: it never did.
    pub began_ns: u64,
}

/// What the block layer may know of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Size, sectors.
    pub sectors: u64,
    /// Commands it takes at a time.
    pub queue_depth: u32,
    /// Do seeks cost time (`queue/rotational`)?
    pub rotational: bool,
    /// Does it have a volatile write cache, so that FLUSH and FUA mean something (`queue/write_cache`)?
    pub write_cache: bool,
    /// Does it obey FUA itself?
    pub fua: bool,
    /// Is its driver asked for room before the scheduler is asked for a request (SCSI's *budget*)? Without, the scheduler gives one
    /// request more than the device takes, which waits for a tag outside.
    pub budget: bool,
    /// Largest command, sectors (`queue/max_sectors_kb`).
    pub max_sectors: u32,
    /// Most memory segments of a command (`queue/max_segments`).
    pub max_segments: u16,
}

/// A modelled device. The host never has more than [`Limits::queue_depth`] commands in it and calls
/// [`advance`](Device::advance) at [`next_event`](Device::next_event).
pub trait Device: Debug {
    /// Its limits.
    fn limits(&self) -> &Limits;

    /// Accept a command at `now` (nanoseconds, never going back; the device has been advanced to `now`).
    fn submit(&mut self, command: Command, now: u64);

    /// When something happens inside next; `None` while nothing is going on.
    fn next_event(&self) -> Option<u64>;

    /// Let everything happen up to and including `now`; finished commands are appended to `done` in order of time.
    fn advance(&mut self, now: u64, done: &mut Vec<Completion>);

    /// Nanoseconds it has been working on commands or its own background work since the start.
    fn busy_ns(&self) -> u64;

    /// Nanoseconds since the start in which a command waited for nothing but a rate that was set (a volume's limit).
    fn limited_ns(&self) -> u64 {
        0
    }
}

/// A volume as its users see it: limits. The commands go to the disks below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Face(pub(crate) Limits);

impl Device for Face {
    fn limits(&self) -> &Limits {
        &self.0
    }

    fn submit(&mut self, command: Command, _now: u64) {
        debug_assert!(false, "{command:?} did not go to a disk");
    }

    fn next_event(&self) -> Option<u64> {
        None
    }

    fn advance(&mut self, _now: u64, _done: &mut Vec<Completion>) {}

    fn busy_ns(&self) -> u64 {
        0
    }
}
