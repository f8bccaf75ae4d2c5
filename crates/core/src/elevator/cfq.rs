//! cfq: placeholder until written.
use super::Descriptor;
pub(super) const DESCRIPTOR: Descriptor = Descriptor { name: "cfq", ..super::noop::DESCRIPTOR };
