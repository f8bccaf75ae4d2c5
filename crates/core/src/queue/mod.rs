//! The request queue: everything between a submitted bio and the device, around an elevator.

mod dispatch_list;

pub use dispatch_list::DispatchList;
