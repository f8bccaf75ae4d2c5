//! The elevators that exist only to be Linux 2.6's, apart from what runs for a new elevator: [`cfq`] and [`anticipatory`]. What the
//! request queue was then (barriers, request pools, the plug of the queue) is in `queue/era`; beside them stand only the sorted
//! dispatch list (`queue/dispatch_list.rs`), on which every requeued request waits, and the classes of deadline as the letters of
//! 2009 had them (`elevator/deadline.rs`, `classes`), which are four lines of that elevator.
//!
//! The arrows point one way: this half uses the core's contract ([`crate::elevator`], [`crate::group::Rounds`]); the core names
//! it only where elevators are listed ([`crate::elevator::ELEVATORS`], [`crate::elevator::AnyElevator`]).

pub(crate) mod anticipatory;
pub(crate) mod cfq;
