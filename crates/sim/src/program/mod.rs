//! What programs do, as async functions over the simulated system calls.

pub mod fio;
mod pace;
