//! A device that serves one request after the other, first come, first served, and holds up to a given number of them. How long
//! it takes is a function of the request alone (and of whether the head is there already).

use std::collections::VecDeque;

use fairlift_core::{MS, Op, RequestId, SECOND};

/// Each tenant has its own part of the disk, so that sectors tell whose they are.
pub const REGION_SECTORS: u64 = 1 << 40;
/// This part belongs to two tenants, block by block of 8 sectors.
pub const SHARED_REGION: u64 = 0;

/// What the head and the electronics take for a request, unless [`Setup::access_ns`] says otherwise; 8 sectors more make it 1 ms.
pub const ACCESS_NS: u64 = MS - 8 * SECTOR_NS;
/// A sector at about 100 MB/s.
pub const SECTOR_NS: u64 = 5_000;
/// A request of the ordinary size, 4 KiB.
pub const SERVICE_NS: u64 = MS;
/// Writing the cache back.
pub const FLUSH_NS: u64 = 5 * MS;
/// A read of the sector at this place of a tenant's region takes [`SLOW_NS`] (a bad block, tried again and again).
pub const SLOW_PLACE: u64 = (1 << 31) + 8;
pub const SLOW_NS: u64 = 10 * SECOND;
/// What it costs the device to give a request back.
pub const RETURN_NS: u64 = MS / 5;

/// First come, first served, one at a time; it holds up to `depth` requests.
pub struct Device {
    pub depth: usize,
    access_ns: u64,
    pub holds: VecDeque<Command>,
    /// When the first one is served.
    pub done_ns: u64,
    last_end: u64,
    pub busy_ns: u64,
}

/// A request in the device.
#[derive(Clone, Copy)]
pub struct Command {
    pub rq: RequestId,
    pub op: Op,
    pub sector: u64,
    pub sectors: u32,
    pub service_ns: u64,
    /// Given back instead of served.
    pub returned: bool,
}

impl Device {
    pub fn new(depth: usize, access_ns: u64) -> Device {
        Device { depth, access_ns, holds: VecDeque::new(), done_ns: u64::MAX, last_end: u64::MAX, busy_ns: 0 }
    }

    fn service_ns(&self, op: Op, sector: u64, sectors: u32) -> u64 {
        match op {
            Op::Flush => FLUSH_NS,
            Op::Discard => SERVICE_NS,
            _ if sector % REGION_SECTORS == SLOW_PLACE => SLOW_NS,
            _ if sector == self.last_end => u64::from(sectors) * SECTOR_NS,
            _ => self.access_ns + u64::from(sectors) * SECTOR_NS,
        }
    }

    pub fn push(&mut self, command: Command, now: u64) {
        self.holds.push_back(command);
        if self.holds.len() == 1 {
            self.start(now);
        }
    }

    /// Begin with the first one.
    fn start(&mut self, now: u64) {
        self.done_ns = u64::MAX;
        let Some(&Command { op, sector, sectors, returned, .. }) = self.holds.front() else { return };
        let service_ns = if returned { RETURN_NS } else { self.service_ns(op, sector, sectors) };
        self.holds[0].service_ns = service_ns;
        self.done_ns = now + service_ns;
        if op != Op::Flush {
            self.last_end = sector + u64::from(sectors);
        }
    }

    pub fn finish(&mut self, now: u64) -> Command {
        let command = self.holds.pop_front().expect("it was busy");
        self.busy_ns += command.service_ns;
        self.start(now);
        command
    }
}
