//! Where the server was built without ublk: nothing, with a clear message.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::nbd::Bounds;
use crate::exports::{Export, UblkOptions};

/// A disk of this machine's kernel. There is none.
#[derive(Debug)]
pub struct Disk(Infallible);

impl Disk {
    /// # Errors
    /// Always.
    pub fn start(_: &Arc<Export>, _: UblkOptions, _: Bounds) -> Result<Disk, String> {
        Err("this fairlift was built without ublk: build it with --features ublk".to_owned())
    }

    /// Where it is.
    pub fn address(&self) -> String {
        match self.0 {}
    }

    /// Serve it.
    pub fn run(self, _: &AtomicBool) {
        match self.0 {}
    }
}
