//! deadline: placeholder until written.
use super::Descriptor;
pub(super) const DESCRIPTOR: Descriptor = Descriptor { name: "deadline", ..super::noop::DESCRIPTOR };
