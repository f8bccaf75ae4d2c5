//! NBD, as its protocol's document has it: fixed newstyle, listing, structured replies, block status of `base:allocation`,
//! flush, FUA, trim, write zeroes, several connections to an export, TLS.
//!
//! Not there: extended headers, resize, cache, payloads of block status.

mod connection;
mod handshake;
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
use crate::tls::Tls;
use connection::Connection;
pub use handshake::{Greeted, Outcome, Security, Session, greet, negotiate};

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
#[derive(Clone, Debug, Default)]
pub struct Nbd {
    /// For each connection.
    pub bounds: Bounds,
    /// Certificates; `None`: no TLS.
    pub tls: Option<Tls>,
}

impl Nbd {
    /// Shake hands, with TLS between if client or server want it; `None`: the client left.
    fn agree(&self, mut stream: Stream, exports: &Exports) -> Result<Option<(Stream, Session)>, String> {
        let Some(mut greeted) = greet(&mut stream)? else { return Ok(None) };
        let mut security = match &self.tls {
            None => Security::None,
            Some(tls) if tls.is_required(&stream) => Security::Required,
            Some(_) => Security::Offered,
        };
        loop {
            match (negotiate(&mut stream, exports, greeted, security)?, &self.tls) {
                (Outcome::Agreed(session), _) => return Ok(Some((stream, session))),
                (Outcome::Tls(again), Some(tls)) => {
                    (greeted, security, stream) = (again, Security::Begun, tls.accept(stream)?);
                }
                (Outcome::Left | Outcome::Tls(_), _) => return Ok(None),
            }
        }
    }
}

impl FrontEnd for Nbd {
    fn name(&self) -> &'static str {
        "nbd"
    }

    fn serve(&self, stream: Stream, exports: &Arc<Exports>, drain: &AtomicBool) -> Result<(), String> {
        stream.set_timeout(Some(HANDSHAKE_TIMEOUT)).map_err(|error| error.to_string())?;
        let Some((stream, session)) = self.agree(stream, exports)? else { return Ok(()) };
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
