//! The commands on traces, and the traces that other commands write.

pub mod args;
pub mod capture;
pub mod convert;
pub mod diff;
mod input;
pub mod inspect;
mod output;
pub mod record;
pub mod replay;
pub mod rows;
