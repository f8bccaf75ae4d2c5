//! What was found out, for those who want to know why.

use super::Fair;
use crate::elevator::DeviceState;

/// What [`Fair`] has found out about its device. For reports; decides nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Found {
    /// Requests it lets the device hold while two flows want it.
    pub depth: u32,
    /// What a stream's request saves when it is not interrupted, nanoseconds; 0: turns and waits do not pay.
    pub saving_ns: u64,
    /// How long a stream's turn is while others wait, nanoseconds.
    pub turn_ns: u64,
    /// Do two flows want the device now?
    pub shared: bool,
}

impl Fair {
    /// What was found out about `device` by the time `now`, nanoseconds.
    pub fn found(&self, device: &DeviceState, now: u64) -> Found {
        Found {
            depth: self.model.depth,
            saving_ns: self.model.saving_ns(device),
            turn_ns: self.model.turn_ns(device, self.settings.turn_max_ns),
            shared: self.model.is_shared(now),
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
