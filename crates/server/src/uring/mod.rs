//! What goes through an io_uring: a file's I/O, and the commands of the kernel's ublk driver.
//!
//! This module alone of the crate may use `unsafe`: the kernel gets memory by its address. Each file begins with its argument.
#![allow(unsafe_code, reason = "the kernel gets memory by its address")]

pub(crate) mod file;
#[cfg(feature = "ublk")]
pub(crate) mod ublk;
