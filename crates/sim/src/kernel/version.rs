//! Kernel versions: which flags, pools, plugs and clocks an operating system's I/O path uses.
//!
//! Sources: Linux 2.6.31 and 2.6.34 `include/linux/fs.h`, `fs/direct-io.c`, `block/`; Linux 6.12 `block/blk-mq.c`,
//! `fs/iomap/direct-io.c`. The CPU costs are stated constants of this lab, chosen once: they are not measured on any machine.

use fairlift_core::queue::{Admission, MergeLimits, NoMerges, Ordering, Plugging, QueueConfig};
use fairlift_core::{Flags, MS};

use crate::device::Limits;

/// What changes between kernel versions.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// The name `--kernel` knows.
    pub version: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// Length of a jiffy, nanoseconds.
    pub tick_ns: u64,
    /// Profile of elevators that have profiles.
    pub profile: &'static str,
    /// Blk-mq (tags, task plugs, flush sequences) instead of the 2.6 block layer.
    pub blk_mq: bool,
    /// Flags of an O_DIRECT read.
    pub direct_read: Flags,
    /// Flags of an O_DIRECT write.
    pub direct_write: Flags,
    /// Flags of a write that fsync waits for.
    pub fsync_write: Flags,
    /// CPU time of one I/O system call, from the program to the block layer and back, nanoseconds.
    pub cpu_per_io_ns: u64,
    /// CPU time to copy one page between program and page cache, nanoseconds.
    pub cpu_per_page_ns: u64,
    /// Do tasks that dirty too many pages write themselves (until 3.1)? Otherwise they only sleep.
    pub foreground_writeback: bool,
}

/// All versions, oldest first.
pub const VERSIONS: &[Rules] = &[
    Rules {
        version: "2.6.31",
        about: "September 2009: queue plug, sync/async request pools, CFQ without service trees",
        tick_ns: MS,
        profile: "2.6.31",
        blk_mq: false,
        direct_read: Flags::NONE,
        direct_write: Flags::SYNC,
        fsync_write: SYNC_NOIDLE,
        cpu_per_io_ns: 5_000,
        cpu_per_page_ns: 1_000,
        foreground_writeback: true,
    },
    Rules {
        version: "2.6.34",
        about: "May 2010: as 2.6.31, CFQ with service trees and low_latency",
        tick_ns: MS,
        profile: "2.6.34",
        blk_mq: false,
        direct_read: Flags::NONE,
        direct_write: Flags::SYNC,
        fsync_write: SYNC_NOIDLE,
        cpu_per_io_ns: 5_000,
        cpu_per_page_ns: 1_000,
        foreground_writeback: true,
    },
    Rules {
        version: "6.12",
        about: "blk-mq: scheduler tags, task plugs, FLUSH/FUA sequences",
        tick_ns: 0,
        profile: "2.6.34",
        blk_mq: true,
        direct_read: Flags::NONE,
        // REQ_SYNC | REQ_IDLE: as before, more is expected after it.
        direct_write: Flags::SYNC,
        fsync_write: SYNC_NOIDLE,
        cpu_per_io_ns: 2_000,
        cpu_per_page_ns: 300,
        foreground_writeback: false,
    },
];

const SYNC_NOIDLE: Flags = Flags::SYNC.or(Flags::NOIDLE);

/// The version called `name`.
pub fn find(name: &str) -> Option<&'static Rules> {
    VERSIONS.iter().find(|r| r.version == name)
}

impl Rules {
    /// The request queue this kernel puts above such a device, for `contexts` tasks.
    pub fn queue_config(&self, device: &Limits, contexts: usize) -> QueueConfig {
        let admission = if self.blk_mq {
            Admission::Tags { nr_requests: 2 * device.queue_depth.clamp(1, 128) }
        } else {
            Admission::Pools { nr_requests: 128 }
        };
        let ordering = match (self.blk_mq, device.write_cache, device.fua) {
            (true, write_cache, fua) => Ordering::Sequences { write_cache, fua },
            (false, false, _) => Ordering::Drain,
            (false, true, false) => Ordering::DrainFlush,
            (false, true, true) => Ordering::DrainFua,
        };
        QueueConfig {
            contexts_max: contexts,
            rotational: device.rotational,
            tagged: device.queue_depth > 1,
            admission,
            plugging: if self.blk_mq { Plugging::Task } else { Plugging::QUEUE },
            limits: MergeLimits {
                max_sectors: if self.blk_mq { device.max_sectors } else { device.max_sectors.min(1024) },
                max_segments: device.max_segments,
            },
            nomerges: NoMerges::Off,
            ordering,
            tick_ns: self.tick_ns,
        }
    }
}
