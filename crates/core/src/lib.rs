//! The fairlift scheduler: the same source decides in the lab, in the kernel module and in the server.
//!
//! A host owns time, threads, memory and the device; the core owns the order. [`queue::RequestQueue`] is the
//! whole block layer above a device (admission, plugging, merging, elevator, dispatch list, barriers) for hosts
//! that submit bios. [`queue::ElevatorQueue`] is its lower half for hosts that merge by themselves and insert
//! ready requests.
//!
//! Nothing here reads a clock, allocates after construction, uses floating point, recurses or panics on the
//! request path. Time is integer nanoseconds, a sector is 512 bytes.
//!
//! ```
//! use fairlift_core::queue::{Plugging, QueueConfig, RequestQueue};
//! use fairlift_core::{Bio, Dispatch, Flags, IoPrio, Op, elevator};
//!
//! let config = QueueConfig { plugging: Plugging::Off, ..QueueConfig::default() };
//! let deadline = elevator::find("deadline").expect("one of the core's");
//! let mut queue = RequestQueue::new(config, (deadline.build)(&config.elevator(), ""));
//! let task = queue.contexts_mut().create(IoPrio::DEFAULT);
//! for sector in [500, 100, 900] {
//!     let (op, flags) = (Op::Write, Flags::NONE);
//!     let bio = Bio { cookie: sector, op, flags, sector, sectors: 8, segments: 1, context: task, ioprio: None, group: None };
//!     queue.submit(bio, 0);
//! }
//!
//! let mut order = Vec::new();
//! while let Dispatch::Issue(request) = queue.dispatch(0) {
//!     order.push(queue.requests()[request].sector);
//!     queue.complete(request, 1_000_000, |_cookie| ());
//! }
//! assert_eq!(order, [500, 900, 100]); // the oldest, and upwards from there
//! ```
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
