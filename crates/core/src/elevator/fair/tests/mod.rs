//! Tests of fair through an [`ElevatorQueue`](crate::queue::ElevatorQueue), as a host uses it. What holds for every elevator
//! (nothing lost, the ledger, requeue, switch, barriers, cancel, promises to groups) is tested with all of them in `tests/`.

mod alone;
mod closed_loop;
mod costs;
mod decision;
mod depth;
mod flushes;
mod gaps;
mod machine;
mod pace;
mod parts;
mod returns;
mod room;
mod round;
