//! The core behind a C interface: what `kernel/src/*.c` calls.
//!
//! * [`host`]: one queue of the core with its recorder, in safe Rust. Everything the module can do is here.
//! * `first_come`: what is left when the core's rules turn out to be broken.
//! * [`limits`]: bios that wait for a limit, before there is a request.
//! * [`record`]: what went in and what was decided, kept in memory taken at construction; printed and parsed as text.
//! * [`replay`]: feeds a record to a fresh core and compares every answer.
//! * [`abi`]: the C functions. Each is one call of [`host`]; all `unsafe` of the project is here and in `runtime`.
//! * `runtime` (kernel target only): memory, panic.
//!
//! The module calls a queue under that queue's spinlock, except to construct and free it.
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
