//! What a host may rely on, statement by statement, under every elevator: what `dispatch` answers, what `cancel` forgets, what
//! a failed request costs, and who pays for I/O that somebody waits for.

#[path = "../queue_support/mod.rs"]
mod queue_support;

mod answers;
mod cancel;
mod costs;
mod donation;
mod flushes;
mod many;
mod order;
mod rig;
