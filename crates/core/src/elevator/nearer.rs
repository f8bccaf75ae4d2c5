//! Which of two requests the head reaches more cheaply: the order within a queue of cfq and of bfq.

use crate::request::{Flags, Request};

/// How dear a way back is.
#[derive(Clone, Copy)]
pub(crate) struct BackSeek {
    /// Longest way back that counts as a seek, sectors.
    pub(crate) sectors_max: u64,
    /// Multiplier of its length.
    pub(crate) penalty: u64,
}

/// The cost of reaching `sector` from `from`; `None` when it lies too far back and waits for the next sweep.
fn cost(sector: u64, from: u64, back: BackSeek) -> Option<u64> {
    if sector >= from {
        Some(sector - from)
    } else if from - sector <= back.sectors_max {
        // Saturating: both factors are settings up to 2^33; a cost that high loses anyway.
        Some((from - sector).saturating_mul(back.penalty))
    } else {
        None
    }
}

/// Is `a` to be served before `b` with the head at `from`? Sync first, then metadata, then the cheaper one (of equals
/// the one ahead), then the one that starts the next sweep.
pub(crate) fn prefer(a: &Request, b: &Request, from: u64, back: BackSeek) -> bool {
    if a.is_sync() != b.is_sync() {
        return a.is_sync();
    }
    let (a_meta, b_meta) = (a.flags.contains(Flags::META), b.flags.contains(Flags::META));
    if a_meta != b_meta {
        return a_meta;
    }
    match (cost(a.sector, from, back), cost(b.sector, from, back)) {
        (Some(x), Some(y)) if x == y => a.sector >= b.sector,
        (Some(x), Some(y)) => x < y,
        (Some(_), None) => true,
        (None, Some(_)) => false,
        (None, None) => a.sector <= b.sector,
    }
}
