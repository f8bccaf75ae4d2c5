//! The server's time: nanoseconds since a moment before it started. It never goes back and is never 0.

use std::sync::OnceLock;
use std::time::Instant;

/// The first answer: some elevators take 0 for "never".
const START_NS: u64 = 1_000_000_000;

/// Now.
pub fn now() -> u64 {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    START_NS + u64::try_from(EPOCH.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX >> 1)
}
