//! The half of the request queue that exists only to be Linux 2.6: its barriers, its request pools with batches, and the plug of
//! the whole queue. The elevators of that time are in [`crate::era`].

pub(super) mod barrier;
pub(super) mod pools;
pub(super) mod queue_plug;
