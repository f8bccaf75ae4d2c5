//! What the block layer counts.

use fairlift_core::Op;

/// What the block layer counted.
#[derive(Clone, Debug, Default)]
pub struct BlockStats {
    /// Requests completed, per op: read, write, discard, flush.
    pub requests: [u64; 4],
    /// Bios submitted. A flush is none where the device has nothing to flush and the queue is empty: it is done at once.
    pub bios: u64,
    /// Bios that joined a request.
    pub merged: u64,
    /// Those of them that write or discard.
    pub merged_writes: u64,
    /// Time from slot to completion of all requests, nanoseconds: reads, all others but flushes.
    pub ticks_ns: [u64; 2],
    /// Sectors completed: read, written.
    pub sectors: [u64; 2],
    /// Time with at least one request in the device, nanoseconds.
    pub busy_ns: u64,
    /// Integral of requests in queue and device over time, request-nanoseconds.
    pub queue_ns: u128,
    /// Of that the part in the device.
    pub device_ns: u128,
    /// Integral of tasks that wait for a request slot, task-nanoseconds.
    pub slot_wait_ns: u128,
    /// Integral of bios held by a limit or a controller above the queue over time, bio-nanoseconds.
    pub held_ns: u128,
    /// Time the scheduler's lock was held, nanoseconds.
    pub lock_ns: u64,
    /// Device time by context slot, nanoseconds; adds up to `busy_ns`. A busy interval is charged to the request whose
    /// completion ends it.
    pub device_time_ns: Vec<u64>,
}

impl BlockStats {
    /// Add those of another disk.
    pub(super) fn add(&mut self, other: &BlockStats) {
        let pairs = [
            (&mut self.requests[..], &other.requests[..]),
            (&mut self.ticks_ns[..], &other.ticks_ns[..]),
            (&mut self.sectors[..], &other.sectors[..]),
            (&mut self.device_time_ns[..], &other.device_time_ns[..]),
        ];
        for (sums, more) in pairs {
            sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        self.bios += other.bios;
        self.merged += other.merged;
        self.merged_writes += other.merged_writes;
        self.busy_ns += other.busy_ns;
        self.queue_ns += other.queue_ns;
        self.device_ns += other.device_ns;
        self.slot_wait_ns += other.slot_wait_ns;
        self.held_ns += other.held_ns;
        self.lock_ns += other.lock_ns;
    }
}

pub(super) const fn op_index(op: Op) -> usize {
    match op {
        Op::Read => 0,
        Op::Write => 1,
        Op::Discard => 2,
        Op::Flush => 3,
    }
}
