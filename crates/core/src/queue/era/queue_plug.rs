//! The queue's plug, until 2.6.38: the queue is plugged when a request enters it empty; the driver is not called until a task that
//! waits unplugs it, four requests have gathered, or 3 ms have passed.
//!
//! Source: Linux 2.6.33 `block/blk-core.c`, `block/blk-settings.c`.

use crate::queue::{Plugging, RequestQueue};
use crate::request::Flags;

/// The queue's plug.
#[derive(Debug)]
pub(in crate::queue) struct QueuePlug {
    /// Plugged until then.
    until_ns: Option<u64>,
}

impl QueuePlug {
    pub(in crate::queue) const fn new() -> QueuePlug {
        QueuePlug { until_ns: None }
    }

    #[inline]
    pub(in crate::queue) fn plug(&mut self, until_ns: u64) {
        self.until_ns.get_or_insert(until_ns);
    }

    #[inline]
    pub(in crate::queue) fn unplug(&mut self) {
        self.until_ns = None;
    }

    /// Until when it is plugged; the timer unplugs.
    #[inline]
    pub(in crate::queue) fn plugged_until(&mut self, now: u64) -> Option<u64> {
        if self.until_ns.is_some_and(|until| until <= now) {
            self.until_ns = None;
        }
        self.until_ns
    }
}

impl RequestQueue {
    pub(in crate::queue) fn may_plug(&self) -> bool {
        match self.config.plugging {
            Plugging::Queue { spare_non_rotational, .. } => {
                !spare_non_rotational || self.config.rotational || !self.config.tagged
            }
            _ => false,
        }
    }

    #[inline]
    pub(in crate::queue) fn unplug_for(&mut self, flags: Flags) {
        if flags.contains(Flags::UNPLUG) {
            self.plug.unplug();
        }
    }

    /// A task is about to wait for I/O of this queue: let it go.
    pub fn unplug(&mut self) {
        self.plug.unplug();
    }
}
