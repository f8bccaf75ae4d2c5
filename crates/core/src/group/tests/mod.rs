//! Groups: the tree by itself, and under every elevator. In here, and not among the integration tests, because in test builds
//! cfq checks its own books on entry of every hook.

mod closed_loop;
mod fair;
mod goals;
mod payers;
mod properties;
mod reserve;
mod shares;
