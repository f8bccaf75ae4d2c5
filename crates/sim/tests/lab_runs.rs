//! The simulator as a whole: fio jobs through kernel, block layer and device, one statement a test.

#[path = "lab/cgroup_files.rs"]
mod cgroup_files;
#[path = "lab/cgroup_writeback.rs"]
mod cgroup_writeback;
#[path = "lab/conservation.rs"]
mod conservation;
#[path = "lab/depth.rs"]
mod depth;
#[path = "lab/determinism.rs"]
mod determinism;
#[path = "lab/durability.rs"]
mod durability;
#[path = "lab/elevators.rs"]
mod elevators;
#[path = "lab/fair_writeback.rs"]
mod fair_writeback;
#[path = "lab/file_calls.rs"]
mod file_calls;
#[path = "lab/groups.rs"]
mod groups;
#[path = "lab/harness.rs"]
mod harness;
#[path = "lab/limits.rs"]
mod limits;
#[path = "lab/order.rs"]
mod order;
#[path = "lab/pace.rs"]
mod pace;
#[path = "lab/page_cache.rs"]
mod page_cache;
#[path = "lab/property.rs"]
mod property;
#[path = "lab/slots.rs"]
mod slots;
#[path = "lab/today.rs"]
mod today;
#[path = "lab/volume.rs"]
mod volume;
#[path = "lab/wbt.rs"]
mod wbt;
#[path = "lab/work.rs"]
mod work;
