//! The kernel's stream of events, read until recording ends and nothing is left.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::instance::Instance;
use crate::error::Failure;
use crate::output::reason;

/// Pause when there is nothing to read: small against what the buffers hold.
const POLL_EVERY: Duration = Duration::from_millis(10);

/// See the module.
#[derive(Debug)]
pub struct Pipe {
    file: File,
    stopped: Arc<AtomicBool>,
}

/// The events of `instance`, until `stopped` is set.
pub fn open(instance: &Instance, stopped: Arc<AtomicBool>) -> Result<Pipe, Failure> {
    let path = instance.pipe();
    // A read that waits would wait for ever after the last event.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path);
    let file = file.map_err(|e| {
        Failure::new(format!("cannot read events: {}", reason(&e))).at(path.display().to_string())
    })?;
    Ok(Pipe { file, stopped })
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            // Looked at before reading: what was recorded until then is there to be read.
            let is_last = self.stopped.load(Ordering::Acquire);
            match self.file.read(buffer) {
                Ok(0) if is_last => return Ok(0),
                Err(e) if e.kind() == ErrorKind::WouldBlock && is_last => return Ok(0),
                Ok(0) => thread::sleep(POLL_EVERY),
                Err(e) if e.kind() == ErrorKind::WouldBlock => thread::sleep(POLL_EVERY),
                result => return result,
            }
        }
    }
}
