//! The third host of the fairlift core: a block device in user space that shares by weight.
//!
//! ```text
//! front ends (NBD) ── bios ──> a device: the core's queue under one combiner ── jobs ──> back ends (file, memory, model)
//! ```
//!
//! A front end turns its protocol into bios and submits them through a [`device::Port`]; the device's queue alone decides what
//! goes next; a back end serves it. Several threads submit, whichever finds the queue free works for all ([`device`]).

pub mod back;
pub mod client;
pub mod clock;
pub mod config;
pub mod control;
pub mod device;
pub mod exports;
pub mod front;
pub mod io;
pub mod log;
pub mod metrics;
pub mod net;
pub mod server;
