//! The request queue: everything between a submitted bio and the device, around an elevator.

mod dispatch_list;
mod elevator_queue;

pub use dispatch_list::DispatchList;
pub use elevator_queue::ElevatorQueue;
