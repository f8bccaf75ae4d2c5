//! What was found out, for those who want to know why.

use super::Fair;
use crate::elevator::{DeviceState, Finding};
use crate::tunable::Unit;

/// What [`Fair`] has found out about its device. For reports; decides nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Found {
    /// Requests it lets the device hold while two flows want it.
    pub(super) depth: u32,
    /// What a stream saves when it is not interrupted, nanoseconds; 0: turns and waits do not pay.
    pub(super) saving_ns: u64,
    /// How long a stream's turn is while others wait, nanoseconds.
    pub(super) turn_ns: u64,
    /// Do two flows want the device now?
    pub(super) shared: bool,
}

impl Fair {
    /// What was found out about `device` by the time `now`, nanoseconds.
    pub(super) fn findings(&self, device: &DeviceState, now: u64) -> Found {
        Found {
            depth: self.model.depth,
            saving_ns: self.model.saving_ns(device),
            turn_ns: self.model.turn_ns(device, self.settings.turn_max_ns),
            shared: self.model.is_shared(now),
        }
    }

    pub(super) fn report(&self, device: &DeviceState, now: u64, tell: &mut dyn FnMut(Finding)) {
        let found = self.findings(device, now);
        let mut say = |what, sectors, value, unit| tell(Finding { what, sectors, value, unit });
        say("requests in the device while two tasks want it", 0, u64::from(found.depth), Unit::Requests);
        say("a stream that goes on saves", 0, found.saving_ns, Unit::Microseconds);
        say("a stream's turn lasts", 0, found.turn_ns, Unit::Microseconds);
        for (what, sectors, alone_ns) in self.model.alone() {
            say(what, sectors, alone_ns, Unit::Microseconds);
        }
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
