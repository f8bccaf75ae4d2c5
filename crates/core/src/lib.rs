//! The fairlift scheduler: the same source decides in the lab, in the kernel module and in the server.
//!
//! A host owns time, threads, memory and the device; the core owns the order. [`queue::RequestQueue`] is the
//! whole block layer above a device (admission, plugging, merging, elevator, dispatch list, barriers) for hosts
//! that submit bios. [`queue::ElevatorQueue`] is its lower half for hosts that merge by themselves and insert
//! ready requests.
//!
//! Nothing here reads a clock, allocates after construction, uses floating point, recurses or panics on the
//! request path. Time is integer nanoseconds, a sector is 512 bytes.
#![no_std]
// What only the elevators of the lab ask of the core is unused without them.
#![cfg_attr(not(feature = "lab"), allow(dead_code))]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod collections;
pub mod context;
pub mod elevator;
mod era;
pub mod group;
pub mod queue;
pub mod request;
pub mod tunable;

pub use context::{ContextId, Contexts, IoClass, IoPrio};
pub use elevator::{Dispatch, Elevator};
pub use group::{GroupId, GroupParams, Groups};
pub use request::{Bio, Flags, Op, Request, RequestId, Requests};

/// Nanoseconds in a millisecond.
pub const MS: u64 = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
