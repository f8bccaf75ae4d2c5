//! Kernel versions: which flags, pools, plugs, clocks, writeback and journal rules an operating system's I/O path uses.
//!
//! Sources: Linux 2.6.28 to 2.6.39, 6.12 and 6.18: `include/linux/fs.h`, `fs/direct-io.c`, `block/`, `fs/ext3`, `fs/ext4`, `fs/jbd`,
//! `fs/jbd2`, `fs/iomap/direct-io.c`, `mm/page-writeback.c`. The CPU costs are stated constants of this lab,
//! chosen once: they are not measured on any machine.

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
    /// Length of a jiffy for elevators and timers of the jiffy era, nanoseconds; 0 = exact.
    pub tick_ns: u64,
    /// Granularity of file times, nanoseconds: a tick, even where timers are exact.
    pub clock_ns: u64,
    /// Profile of elevators that have profiles.
    pub profile: &'static str,
    /// Blk-mq (tags) instead of the 2.6 block layer.
    pub blk_mq: bool,
    /// `io.max` keeps the last slice that is over, so that a bio let go late does not lose the time it was late by (6.15: "blk-throttle:
    /// fix lower bps rate by throtl_trim_slice", linux-block, February 2025).
    pub io_max_keeps_slice: bool,
    /// Plugs of tasks (since 2.6.39) instead of the queue's.
    pub task_plugs: bool,
    /// `queue/nomerges` has a level 2 (2.6.34); before, it means 1.
    pub nomerges_all: bool,
    /// FLUSH and FUA sequences (since 2.6.37) instead of draining barriers.
    pub flush_sequences: bool,
    /// Flags of an O_DIRECT read.
    pub direct_read: Flags,
    /// Flags of an O_DIRECT write.
    pub direct_write: Flags,
    /// Flags of a data write that fsync waits for.
    pub fsync_write: Flags,
    /// Processor time of one I/O system call, from the program to the block layer and back, nanoseconds.
    pub cpu_per_io_ns: u64,
    /// Processor time to copy one page between program and page cache, nanoseconds.
    pub cpu_per_page_ns: u64,
    /// Largest readahead window (`queue/read_ahead_kb`), KiB; 0 = no readahead.
    pub read_ahead_kib: u64,
    /// Time until a task that another one woke runs, nanoseconds (between the journal's thread and those it serves).
    pub switch_ns: u64,
    /// How dirty pages are written back.
    pub writeback: WritebackRules,
    /// What the journal does.
    pub journal: JournalRules,
    /// ext3 and ext4 build bios of many pages, `[ext3, ext4]`; otherwise one per page.
    pub large_bios: [bool; 2],
    /// ext3 is served by ext4's code (since 4.3): delayed allocation, jbd2.
    pub ext3_is_ext4: bool,
    /// ext4 fills holes by direct writes (2.6.33); before, as ext3 always, it falls back to buffered ones.
    pub ext4_direct_into_holes: bool,
    /// ext4 can punch holes (3.0).
    pub ext4_punches_holes: bool,
    /// ext4 writes a file that replaces another at once (2.6.30).
    pub ext4_flush_on_replace: bool,
    /// In ordered mode ext4 gives no file the data blocks that another was freed of before that is committed; ext3 always does so.
    pub ext4_holds_freed_data: bool,
    /// ext4 has fast commits (5.10).
    pub ext4_fast_commits: bool,
    /// Largest journal mke2fs makes, blocks.
    pub journal_blocks_max: u64,
    /// Does a task that waits for a commit yield its place at the device to the journal's thread (Moyer's patches)?
    pub journal_yields: bool,
}

/// How dirty pages are written back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WritebackRules {
    /// Tasks that dirty too many pages write some themselves (until 3.1); otherwise they are paused by rate control.
    pub foreground: bool,
    /// They do only while more is dirty than the limit, what is on its way not counted (2.6.31, d7831a0bdf0): else they just wait.
    pub foreground_above_limit: bool,
    /// A pool of pdflush threads (until 2.6.31) that skips congested queues, instead of a thread per device that waits.
    pub pdflush: bool,
    /// The pause between two looks at the limits doubles from one jiffy (2.6.32) instead of waiting for congestion to end.
    pub growing_pauses: bool,
    /// A flusher and dirty limits for each cgroup (4.2, with cgroup v2).
    pub by_cgroup: bool,
    /// `vm.dirty_background_ratio` and `vm.dirty_ratio`.
    pub ratios: (u32, u32),
}

/// Sync batching of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Batching {
    /// A jiffy, again as long as others join (before 2.6.29).
    Tick,
    /// As long as a commit takes on average.
    Average,
}

/// What the journal does. Pairs are `[ext3, ext4]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JournalRules {
    /// Flags of descriptor blocks and copies.
    pub body: Flags,
    /// The same in a commit that is marked synchronous (or is waited for, see `sync_if_waited`).
    pub body_if_sync: Flags,
    /// Is a commit marked synchronous by an operation that is (2.6.30)?
    pub marks_synchronous: bool,
    /// Does it count that a task waits for the commit (3.7)?
    pub sync_if_waited: bool,
    /// Flags of the commit block.
    pub record: [Flags; 2],
    /// Added to them with barriers.
    pub barrier: Flags,
    /// Flags of writes that make room in the log.
    pub checkpoint: Flags,
    /// Block tags in a descriptor block.
    pub tags_per_descriptor: u64,
    /// Does fsync commit by a synchronous operation of its own (batching, mark), or by asking for the commit only?
    pub fsync_by_handle: [bool; 2],
    /// Does fsync flush the device when there is nothing to commit (with barriers)?
    pub flush_if_durable: [bool; 2],
    /// ext4 until 2.6.32 flushes the device once more after the commit.
    pub ext4_flush_after_commit: bool,
    /// How long a synchronous operation waits for others.
    pub batching: Batching,
}

const SYNC_NOIDLE: Flags = Flags::SYNC.or(Flags::NOIDLE);
/// `WRITE_SYNC` before 2.6.30.
const SYNC_UNPLUG: Flags = Flags::SYNC.or(Flags::UNPLUG);
/// `WRITE_SYNC` since 2.6.30.
const WRITE_SYNC: Flags = SYNC_NOIDLE.or(Flags::UNPLUG);
/// `JBD2_JOURNAL_REQ_FLAGS`.
const JBD2_TODAY: Flags = Flags::SYNC.or(Flags::META);

const WRITEBACK_29: WritebackRules = WritebackRules {
    foreground: true,
    foreground_above_limit: false,
    pdflush: true,
    growing_pauses: false,
    by_cgroup: false,
    ratios: (5, 10),
};
const WRITEBACK_30: WritebackRules = WritebackRules { ratios: (10, 20), ..WRITEBACK_29 };
const WRITEBACK_31: WritebackRules = WritebackRules { foreground_above_limit: true, ..WRITEBACK_30 };
const WRITEBACK_32: WritebackRules = WritebackRules { pdflush: false, growing_pauses: true, ..WRITEBACK_31 };
const WRITEBACK_TODAY: WritebackRules = WritebackRules { foreground: false, by_cgroup: true, ..WRITEBACK_32 };

const JOURNAL_28: JournalRules = JournalRules {
    body: Flags::NONE,
    body_if_sync: Flags::NONE,
    marks_synchronous: false,
    sync_if_waited: false,
    record: [SYNC_UNPLUG, Flags::NONE],
    barrier: Flags::BARRIER,
    checkpoint: Flags::NONE,
    tags_per_descriptor: 508,
    fsync_by_handle: [true, true],
    flush_if_durable: [false, false],
    ext4_flush_after_commit: true,
    batching: Batching::Tick,
};
const JOURNAL_29: JournalRules =
    JournalRules { record: [Flags::NONE, SYNC_UNPLUG], batching: Batching::Average, ..JOURNAL_28 };
const JOURNAL_30: JournalRules = JournalRules {
    body_if_sync: SYNC_NOIDLE,
    marks_synchronous: true,
    record: [WRITE_SYNC, SYNC_NOIDLE],
    ..JOURNAL_29
};
const JOURNAL_32: JournalRules =
    JournalRules { fsync_by_handle: [false, true], flush_if_durable: [true, false], ..JOURNAL_30 };
const JOURNAL_33: JournalRules = JournalRules {
    fsync_by_handle: [false, false],
    flush_if_durable: [true, true],
    ext4_flush_after_commit: false,
    ..JOURNAL_32
};
const JOURNAL_37: JournalRules = JournalRules {
    body: WRITE_SYNC,
    record: [WRITE_SYNC, WRITE_SYNC],
    barrier: Flags::PREFLUSH.or(Flags::FUA),
    ..JOURNAL_33
};
const JOURNAL_39: JournalRules = JournalRules {
    body: SYNC_NOIDLE,
    record: [SYNC_NOIDLE, SYNC_NOIDLE],
    checkpoint: SYNC_NOIDLE,
    ..JOURNAL_37
};
const JOURNAL_TODAY: JournalRules = JournalRules {
    body: JBD2_TODAY,
    body_if_sync: JBD2_TODAY,
    record: [JBD2_TODAY, JBD2_TODAY],
    checkpoint: JBD2_TODAY,
    tags_per_descriptor: 254,
    ..JOURNAL_39
};

const V2_6_28: Rules = Rules {
    version: "2.6.28",
    about: "December 2008: as 2.6.29, journal commits of ext3 marked sync, fixed batching",
    tick_ns: MS,
    clock_ns: MS,
    profile: "2.6.31",
    blk_mq: false,
    io_max_keeps_slice: false,
    task_plugs: false,
    nomerges_all: false,
    flush_sequences: false,
    direct_read: Flags::NONE,
    direct_write: Flags::SYNC,
    fsync_write: Flags::NONE,
    cpu_per_io_ns: 5_000,
    cpu_per_page_ns: 1_000,
    read_ahead_kib: 128,
    switch_ns: 40_000,
    writeback: WRITEBACK_29,
    journal: JOURNAL_28,
    large_bios: [false, false],
    ext3_is_ext4: false,
    ext4_direct_into_holes: false,
    ext4_punches_holes: false,
    ext4_flush_on_replace: false,
    ext4_holds_freed_data: false,
    ext4_fast_commits: false,
    journal_blocks_max: 32_768,
    journal_yields: false,
};
const V2_6_29: Rules = Rules {
    version: "2.6.29",
    about: "March 2009: fsync's data as async writes, dirty limits 5 and 10 %, adaptive batching",
    journal: JOURNAL_29,
    ..V2_6_28
};
const V2_6_30: Rules = Rules {
    version: "2.6.30",
    about: "June 2009: fsync writes sync, without idling; sync/async pools; dirty limits 10 and 20 %",
    fsync_write: SYNC_NOIDLE,
    writeback: WRITEBACK_30,
    journal: JOURNAL_30,
    ext4_flush_on_replace: true,
    ..V2_6_29
};
const V2_6_31: Rules = Rules {
    version: "2.6.31",
    about: "September 2009: queue plug, sync/async request pools, CFQ without service trees",
    writeback: WRITEBACK_31,
    ..V2_6_30
};
const V2_6_32: Rules = Rules {
    version: "2.6.32",
    about: "December 2009: one flusher per device; ext3's fsync no longer marks its commit sync",
    writeback: WRITEBACK_32,
    journal: JOURNAL_32,
    ..V2_6_31
};
const V2_6_33: Rules = Rules {
    version: "2.6.33",
    about: "February 2010: neither ext3's nor ext4's fsync marks its commit synchronous",
    profile: "2.6.34",
    journal: JOURNAL_33,
    ext4_direct_into_holes: true,
    ..V2_6_32
};
const V2_6_34: Rules = Rules {
    version: "2.6.34",
    about: "May 2010: as 2.6.31, CFQ with service trees and low_latency",
    nomerges_all: true,
    ..V2_6_33
};
const V2_6_37: Rules = Rules {
    version: "2.6.37",
    about: "January 2011: journal writes sync, without idling; FLUSH and FUA instead of barriers",
    flush_sequences: true,
    journal: JOURNAL_37,
    large_bios: [false, true],
    ..V2_6_34
};
const V2_6_39: Rules = Rules {
    version: "2.6.39",
    about: "May 2011: plugs of tasks instead of the queue's",
    task_plugs: true,
    journal: JOURNAL_39,
    ..V2_6_37
};
const V6_12: Rules = Rules {
    version: "6.12",
    about: "blk-mq: scheduler tags, task plugs, FLUSH/FUA sequences",
    tick_ns: 0,
    clock_ns: 4 * MS,
    blk_mq: true,
    // REQ_SYNC | REQ_IDLE as before: more is expected after it. Writes that fsync waits for come without REQ_IDLE.
    direct_write: Flags::SYNC,
    fsync_write: SYNC_NOIDLE,
    cpu_per_io_ns: 2_000,
    cpu_per_page_ns: 300,
    switch_ns: 10_000,
    writeback: WRITEBACK_TODAY,
    journal: JOURNAL_TODAY,
    large_bios: [true, true],
    ext3_is_ext4: true,
    ext4_punches_holes: true,
    ext4_holds_freed_data: true,
    ext4_fast_commits: true,
    journal_blocks_max: 262_144,
    ..V2_6_39
};

/// Where its rules are 6.12's: mq-deadline, kyber and bfq decide alike, and tags are limited alike (`queue/async_depth`, which
/// replaces the schedulers' own, came later); what was rebuilt is who allocates what, when a scheduler is switched.
const V6_18: Rules = Rules {
    version: "6.18",
    about: "November 2025: as 6.12; io.max does not forget the time by which a bio went late",
    io_max_keeps_slice: true,
    ..V6_12
};

/// All versions, oldest first.
pub const VERSIONS: &[Rules] =
    &[V2_6_28, V2_6_29, V2_6_30, V2_6_31, V2_6_32, V2_6_33, V2_6_34, V2_6_37, V2_6_39, V6_12, V6_18];

/// The version of a scenario that names none.
pub const DEFAULT: &Rules = &V2_6_31;

/// The version for a job without a scenario: what runs today.
pub const TODAY: &Rules = &V6_12;

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
        let ordering = match (self.flush_sequences, device.write_cache, device.fua) {
            (true, write_cache, fua) => Ordering::Sequences { write_cache, fua },
            (false, false, _) => Ordering::Drain,
            (false, true, false) => Ordering::DrainFlush,
            (false, true, true) => Ordering::DrainFua,
        };
        QueueConfig {
            contexts_max: contexts,
            groups_max: 0,
            held_max: QueueConfig::default().held_max,
            rotational: device.rotational,
            tagged: device.queue_depth > 1,
            admission,
            plugging: if self.task_plugs { Plugging::Task } else { Plugging::QUEUE },
            limits: MergeLimits {
                max_sectors: if self.blk_mq { device.max_sectors } else { device.max_sectors.min(1024) },
                max_segments: device.max_segments,
            },
            nomerges: NoMerges::Off,
            ordering,
            tick_ns: self.tick_ns,
        }
    }

    /// Nanoseconds of `jiffies` for rules that count in jiffies; 1 ms where timers are exact.
    pub(crate) fn jiffies(&self, jiffies: u64) -> u64 {
        jiffies * if self.tick_ns > 0 { self.tick_ns } else { MS }
    }
}
