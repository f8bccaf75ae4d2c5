//! The core behind a C interface: what `kernel/src/*.c` calls.
//!
//! * [`host`]: one queue of the core with its recorder, in safe Rust. Everything the module can do is here.
//! * `first_come`: what is left when the core's rules turn out to be broken.
//! * [`limits`]: bios that wait for a limit, before there is a request.
//! * [`writeback`]: threads that wait for a tag, so that each group that writes back has its part of the tags.
//! * [`record`]: what went in and what was decided, kept in memory taken at construction; printed and parsed as text.
//! * [`replay`]: feeds a record to a fresh core and compares every answer.
//! * [`abi`]: the C functions. Each is one call of [`host`]; all `unsafe` of the module is here and in `runtime`.
//! * `runtime` (kernel target only): memory, panic.
//!
//! The module calls a queue under that queue's spinlock, except to construct and free it.
//!
//! ```
//! use fairlift_core::{Dispatch, Flags, IoPrio, Op};
//! use fairlift_kernel::host::{Arrival, Host, Setup};
//!
//! let (requests_max, contexts_max, groups_max, records_max) = (8, 2, 2, 0);
//! let setup = Setup { elevator: "deadline", profile: "", requests_max, contexts_max, groups_max, records_max, rotational: true };
//! let mut host = Host::new(setup).expect("an elevator of the core");
//! let (op, flags, ioprio) = (Op::Read, Flags::SYNC, IoPrio::DEFAULT);
//! let context = host.context_new(0, ioprio);
//! let slot = host.insert(&Arrival { op, flags, sector: 64, sectors: 8, context, group: 0, own: true, ioprio }, 1).expect("room");
//! assert!(matches!(host.dispatch(1), Dispatch::Issue(_)));
//! host.complete(slot, 2_000_000);
//! ```
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

pub mod abi;
mod first_come;
pub mod host;
pub mod limits;
pub mod record;
pub mod replay;
#[cfg(target_os = "none")]
mod runtime;
pub mod writeback;
