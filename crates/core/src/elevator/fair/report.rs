//! What was found out, for those who want to know why.

use super::Fair;
use crate::elevator::{DeviceState, Finding};
use crate::tunable::Unit;

/// What [`Fair`] has found out about its device. For reports; decides nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Found {
    /// Reads, and writes, it lets the device hold while two flows want it.
    pub(super) depth: [u32; 2],
    /// Sectors of the largest part of a read, and a write, on a device that serves many at a time; `None`: nothing is split.
    pub(super) part_sectors: [Option<u32>; 2],
    /// What a stream saves when it is not interrupted, nanoseconds; 0: turns and waits do not pay.
    pub(super) saving_ns: u64,
    /// How long a stream's turn is while others wait, nanoseconds.
    pub(super) turn_ns: u64,
    /// Do two flows want the device now?
    pub(super) shared: bool,
}

const PARTS: [&str; 2] = [
    "a read is split into parts of, while two tasks want it",
    "a write is split into parts of, while two tasks want it",
];

impl Fair {
    /// What was found out about `device` by the time `now`, nanoseconds.
    pub(super) fn findings(&self, device: &DeviceState, now: u64) -> Found {
        Found {
            depth: [false, true].map(|writes| self.model.depth(writes)),
            part_sectors: [false, true].map(|writes| self.model.splits_at(writes, device)),
            saving_ns: self.model.saving_ns(device),
            turn_ns: self.model.turn_ns(device, self.settings.turn_max_ns),
            shared: self.model.is_shared(now),
        }
    }

    pub(super) fn report(&self, device: &DeviceState, now: u64, tell: &mut dyn FnMut(Finding)) {
        let found = self.findings(device, now);
        let mut say = |what, sectors, value, unit| tell(Finding { what, sectors, value, unit });
        let [reads, writes] = found.depth;
        say("reads in the device while two tasks want it", 0, u64::from(reads), Unit::Requests);
        say("writes in the device while two tasks want it", 0, u64::from(writes), Unit::Requests);
        for (what, sectors) in PARTS.into_iter().zip(found.part_sectors) {
            if let Some(sectors) = sectors {
                say(what, 0, u64::from(sectors / 2), Unit::Kibibytes);
            }
        }
        if self.model.write_ns() > 0 {
            say("a write, when the drive's buffer is full", 64, self.model.write_ns(), Unit::Microseconds);
        }
        say("a stream that goes on saves", 0, found.saving_ns, Unit::Microseconds);
        say("a stream's turn lasts", 0, found.turn_ns, Unit::Microseconds);
        // Where turns pay each costs what it took.
        self.model.costs(&mut |what, sectors, cost_ns| say(what, sectors, cost_ns, Unit::Microseconds));
    }
}

impl core::fmt::Debug for Fair {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Fair")
            .field("queued", &self.queued)
            .field("in_device", &self.in_device)
            .field("turn", &self.turn)
            .field("device", &self.model)
            .finish_non_exhaustive()
    }
}
