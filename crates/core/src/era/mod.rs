//! What exists only to be Linux 2.6, apart from what runs for a new elevator: its own elevators ([`cfq`], [`anticipatory`]) and,
//! beside the request queue that they are parts of, its barriers (`queue/barrier.rs`), request pools (`queue/admission.rs`), plug
//! of the queue (`queue/plug.rs`), sorted dispatch list (`queue/dispatch_list.rs`) and the classes of deadline as the posts of
//! 2009 had them (`elevator/deadline.rs`, `classes`).
//!
//! The arrows point one way: this half uses the core's contract ([`crate::elevator`], [`crate::group::Rounds`]); the core names
//! it only where elevators are listed ([`crate::elevator::ELEVATORS`], [`crate::elevator::AnyElevator`]).

pub(crate) mod anticipatory;
pub(crate) mod cfq;
