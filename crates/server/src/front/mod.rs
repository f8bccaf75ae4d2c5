//! Front ends: protocols by which clients reach an export.
//!
//! A front end owns its connections, turns requests into bios, submits them through a [`crate::device::Port`] as they come, and
//! sends each answer when it is there. It orders nothing, and it bounds what a connection may have in flight.

mod answers;
pub mod nbd;
mod operations;
#[cfg(feature = "ublk")]
pub mod ublk;
#[cfg(not(feature = "ublk"))]
#[path = "no_ublk.rs"]
pub mod ublk;
pub mod vhost;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::exports::Exports;
use crate::net::Stream;

/// A protocol.
pub trait FrontEnd: Send + Sync {
    /// What it is called.
    fn name(&self) -> &'static str;

    /// Serve one client until it leaves, fails, or `drain` is set and everything it sent is answered. Runs in a thread of its own.
    ///
    /// # Errors
    /// Why the connection ended, if not by the client's wish: a sentence for the log.
    fn serve(&self, stream: Stream, exports: &Arc<Exports>, drain: &AtomicBool) -> Result<(), String>;
}
