//! A deterministic computer around the fairlift core: clock and events, programs, the operating system's I/O paths and
//! devices. No thread, no wall clock, no hash order; one seed decides everything.

pub mod anatomy;
pub mod block;
pub mod device;
pub mod ends;
pub mod engine;
pub mod group;
pub mod kernel;
pub mod lab;
pub mod program;
pub mod rates;
pub mod recording;
pub mod result;
pub mod samples;
pub mod scenario;
pub mod scheduler;
pub mod stats;
pub mod validate;
