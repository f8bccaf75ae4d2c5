//! The operating system of the lab: file systems, journals, page cache and writeback, by kernel version.

#[path = "fs/check_loop.rs"]
mod check_loop;
#[path = "fs/commits.rs"]
mod commits;
#[path = "fs/direct.rs"]
mod direct;
#[path = "fs/fast_commit.rs"]
mod fast_commit;
#[path = "fs/fs_mark_real.rs"]
mod fs_mark_real;
#[path = "fs/fsync_by_version.rs"]
mod fsync_by_version;
#[path = "fs/harness.rs"]
mod harness;
#[path = "fs/metadata.rs"]
mod metadata;
#[path = "fs/names.rs"]
mod names;
#[path = "fs/properties.rs"]
mod properties;
#[path = "fs/scenarios.rs"]
mod scenarios;
#[path = "fs/writeback.rs"]
mod writeback;
