//! Back ends: what serves the requests that the core's queue lets go.
//!
//! A back end gets *jobs*, each a request with the memory of its bios, and gives each back exactly once: at once, from
//! [`BackEnd::start`] or [`BackEnd::advance`], or later from a thread of its own through its [`Finisher`]. It never has more of
//! them than its [`Limits::queue_depth`], and it does not order them.

pub(crate) mod disk;
mod extents;
pub mod file;
pub mod model;
pub mod null;
pub(crate) mod pool;
pub mod ram;

use std::sync::Weak;

use fairlift_core::RequestId;
pub use fairlift_sim::device::Limits;

use crate::device::Device;
use crate::histogram;
use crate::io::{Action, Fault, Io};
pub use extents::{Extent, joined};

/// May the thread that starts a job wait until it is done? Who waits then is its own client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayWait {
    /// No, it is another client's job.
    No,
    /// If that takes no longer than a hop to another thread and back.
    Shortly,
    /// Yes, as nothing else is in the device.
    Long,
}

/// A request on its way through a back end.
#[derive(Debug)]
pub struct Job {
    /// The core's request.
    pub request: RequestId,
    /// What to do; that of all `ios`.
    pub action: Action,
    /// On stable storage before it is done?
    pub fua: bool,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// May the thread that starts it wait for it?
    pub may_wait: MayWait,
    /// The bios with their names in the device, in the order of their offsets, without gaps; none for a flush.
    pub ios: Vec<(u32, Box<Io>)>,
    /// How it went.
    pub result: Result<(), Fault>,
}

impl Job {
    pub(crate) fn new(
        request: RequestId,
        action: Action,
        offset: u64,
        bytes: u64,
        ios: Vec<(u32, Box<Io>)>,
    ) -> Job {
        Job { request, action, fua: false, offset, bytes, may_wait: MayWait::No, ios, result: Ok(()) }
    }
}

/// Where a back end's own threads leave what they are done with.
#[derive(Clone, Debug)]
pub struct Finisher(Weak<Device>);

impl Finisher {
    pub(crate) fn new(device: Weak<Device>) -> Finisher {
        Finisher(device)
    }

    /// These are done.
    pub fn finish(&self, jobs: &mut Vec<Job>) {
        if let Some(device) = self.0.upgrade() {
            device.finish(jobs);
        }
    }
}

/// Something that stores.
pub trait BackEnd: Send + Sync {
    /// What it can do. The size in sectors is rounded up; [`BackEnd::bytes`] is exact.
    fn limits(&self) -> Limits;

    /// Its size, bytes.
    fn bytes(&self) -> u64 {
        self.limits().sectors * 512
    }

    /// What offsets, lengths and memory of reads, writes, trims and zeroes are multiples of: a power of two.
    fn block_bytes(&self) -> u32 {
        1
    }

    /// May it be written?
    fn is_read_only(&self) -> bool {
        false
    }

    /// Where its own threads leave what they are done with. Called once, before anything else.
    fn attach(&self, _finisher: Finisher) {}

    /// Start `jobs`; those that are done already go to `done`. It must not block, as any thread may call it, but for jobs that it
    /// may wait for.
    fn start(&self, jobs: &mut Vec<Job>, done: &mut Vec<Job>);

    /// For back ends that depend on a clock: it is `now` (nanoseconds, as [`crate::clock::now`]); what is done by now goes to `done`.
    fn advance(&self, _now: u64, _done: &mut Vec<Job>) {}

    /// Does it depend on a clock?
    fn is_timed(&self) -> bool {
        false
    }

    /// When to call [`BackEnd::advance`] again.
    fn next_event(&self) -> Option<u64> {
        None
    }

    /// What is known of the allocation of a range: extents in order that cover it, or at least begin at `offset`.
    ///
    /// # Errors
    /// When it cannot be found out.
    fn extents(&self, offset: u64, bytes: u64) -> Result<Vec<Extent>, Fault> {
        let _ = offset;
        Ok(vec![Extent { bytes, hole: false, zero: false }])
    }

    /// Put everything on stable storage; called when the server ends.
    ///
    /// # Errors
    /// When that fails.
    fn sync(&self) -> Result<(), Fault> {
        Ok(())
    }

    /// What it has to tell of itself, for `show` and the metrics.
    fn figures(&self) -> Figures {
        Figures::default()
    }
}

/// What a back end has to tell of itself.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// How much later than its model said it answered, nanoseconds: median, 99 %, longest; and of how many answers.
    pub lateness: Option<histogram::Summary>,
    /// Who does what may block: `io_uring` or `threads`.
    pub engine: Option<&'static str>,
}
