//! What each group got: the counters behind the files of the founding posts, of the kernel's blkio controller and of
//! cgroup v2's `io.stat`. Counted for each group by itself, without its children, from the day the queue has groups.

use super::Bill;
use crate::request::{Op, Request};

/// Counters of one kind of I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoStats {
    /// Requests done.
    pub ios: u64,
    /// Sectors of these.
    pub sectors: u64,
    /// Bios and requests that went up in others.
    pub merged: u64,
    /// Time between going to the device and being done, summed over requests, nanoseconds.
    pub service_ns: u64,
    /// Time between taking a slot and going to the device, summed over requests, nanoseconds.
    pub wait_ns: u64,
}

/// Sync requests of a group that has a latency goal ([`super::GroupParams::latency_ns`]): done within it, or why not.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GoalStats {
    /// Done in time.
    pub met: u64,
    /// Too late, and the group had had its due while they waited.
    pub missed_above_due: u64,
    /// Too late although it had not: the device, or the turn of another group, took longer than that.
    pub missed_within_due: u64,
}

/// Why a group got a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TurnBy {
    /// It is its turn by weight.
    Weight,
    /// It, or a group above it, was short of its reserve.
    Reserve,
    /// It would have missed its latency goal.
    Goal,
}

/// Counters of one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupStats {
    /// By what it does ([`GroupStats::kind`]), then `[async, sync]`.
    pub io: [[IoStats; 2]; 3],
    /// Device time it was charged for, waits for it included, nanoseconds (`io.disk_time`).
    pub time_ns: u64,
    /// How often it left the tree for want of requests (`dequeue`).
    pub dequeued: u64,
    /// Device time spent waiting for its next request, nanoseconds.
    pub idle_ns: u64,
    /// Its latency goal, if it has one.
    pub goal: GoalStats,
    /// Requests sent in turns that it got by its weight, a reserve (its own or one above it), its goal: see [`TurnBy`]. Counted while a
    /// group has a reserve or a goal.
    pub turns: [u64; 3],
}

impl GroupStats {
    /// Index into `io`: reads, writes (and flushes), discards.
    pub const fn kind(op: Op) -> usize {
        match op {
            Op::Read => 0,
            Op::Write | Op::Flush => 1,
            Op::Discard => 2,
        }
    }

    /// The counters for a request like this.
    #[inline]
    pub(crate) fn of(&mut self, request: &Request) -> &mut IoStats {
        &mut self.io[GroupStats::kind(request.op)][usize::from(request.is_sync())]
    }

    /// A request is done: all there is to count of it.
    #[inline]
    pub(super) fn count(&mut self, request: &Request, now: u64) {
        let io = self.of(request);
        io.ios += 1;
        io.sectors += u64::from(request.sectors);
        io.service_ns += now.saturating_sub(request.issued_ns);
        io.wait_ns += request.issued_ns.saturating_sub(request.start_ns);
    }

    /// It was charged for this.
    pub(super) fn add(&mut self, bill: &Bill) {
        self.time_ns += bill.time_ns + bill.waited_ns;
        self.idle_ns += bill.waited_ns;
    }

    /// All kinds together.
    pub fn total(&self) -> IoStats {
        self.io.iter().flatten().fold(IoStats::default(), |sum, io| IoStats {
            ios: sum.ios + io.ios,
            sectors: sum.sectors + io.sectors,
            merged: sum.merged + io.merged,
            service_ns: sum.service_ns + io.service_ns,
            wait_ns: sum.wait_ns + io.wait_ns,
        })
    }
}
