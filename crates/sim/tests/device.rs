//! The device models against published figures, and what must hold for every one of them.

#[path = "device/calibration.rs"]
mod calibration;
#[path = "device/cloud.rs"]
mod cloud;
#[path = "device/disk.rs"]
mod disk;
#[path = "device/flash.rs"]
mod flash;
#[path = "device/harness.rs"]
mod harness;
#[path = "device/properties.rs"]
mod properties;
#[path = "device/queue.rs"]
mod queue;
#[path = "device/san.rs"]
mod san;
#[path = "device/shingled.rs"]
mod shingled;
#[path = "device/spec.rs"]
mod spec;
#[path = "device/timed.rs"]
mod timed;
