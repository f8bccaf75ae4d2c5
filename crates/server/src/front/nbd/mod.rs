//! NBD, as its protocol's document has it: fixed newstyle, listing, structured replies, block status of `base:allocation`,
//! flush, FUA, trim, write zeroes, several connections to an export.
//!
//! Not there: TLS, extended headers, resize, cache, payloads of block status.

mod connection;
mod handshake;
mod operations;
mod receive;
mod requests;
mod transmit;
pub mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use super::FrontEnd;
use crate::exports::{Export, Exports};
use crate::net::Stream;
use connection::Connection;
pub use handshake::{Session, negotiate};

/// Largest payload, bytes: what every client may expect that asks for no other.
pub const PAYLOAD_MAX: u32 = 32 << 20;
/// How long a client may take for each step of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// What a connection may have in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Requests.
    pub requests: usize,
    /// Bytes of payload, beyond which no further request is taken in.
    pub bytes: u64,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { requests: 256, bytes: 64 << 20 }
    }
}

/// The front end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nbd {
    /// For each connection.
    pub bounds: Bounds,
}

impl FrontEnd for Nbd {
    fn name(&self) -> &'static str {
        "nbd"
    }

    fn serve(&self, mut stream: Stream, exports: &Arc<Exports>, drain: &AtomicBool) -> Result<(), String> {
        stream.set_timeout(Some(HANDSHAKE_TIMEOUT)).map_err(|error| error.to_string())?;
        let Some(session) = negotiate(&mut stream, exports)? else { return Ok(()) };
        let counted = Counted::new(&session.export);
        let answer = Connection::new(stream, session, self.bounds)?.run(drain);
        drop(counted);
        answer
    }
}

/// An open connection is counted as long as this lives.
struct Counted(Arc<Export>);

impl Counted {
    fn new(export: &Arc<Export>) -> Counted {
        export.connections.fetch_add(1, Relaxed);
        Counted(export.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}
