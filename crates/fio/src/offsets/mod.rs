//! What one process issues, in fio's order, bit for bit.
//!
//! | subject | module |
//! |---|---|
//! | generators taus88 and taus258 | `rng` |
//! | one seed per stream | `seeds` |
//! | which part of which file | `layout` |
//! | blocks already touched | `random_map` |
//! | zipf, pareto, normal | `skew`, seeded through `path_hash` |
//! | `random_generator=lfsr` | `lfsr` |
//! | block sizes | `lengths` |
//! | gaps of `rate_process=poisson` | `gaps` |
//! | zones of `random_distribution=zoned` | `zones` |
//! | one file's position, map and distribution | `cursor` |
//! | the whole: passes, directions, files, syncs | `stream` |
//!
//! Every module is checked against streams recorded from fio 3.33 (`tests/vectors`).

mod cursor;
mod gaps;
mod layout;
mod lengths;
mod lfsr;
mod path_hash;
mod random_map;
mod rng;
mod seeds;
mod skew;
mod stream;
mod zones;

pub use gaps::poisson_gap_us;
pub use layout::{FileSpace, Layout};
pub use random_map::{MAP_BLOCKS_MAX, RandomMap};
pub use rng::Rng;
pub use seeds::Seeds;
pub use stream::{Io, IoKind, Stream};
