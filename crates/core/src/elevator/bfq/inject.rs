//! Injection: how many requests of others may be in the device while it waits for the queue in service, without that one's
//! requests taking longer than half as long again.

use crate::{MS, SECOND};

/// Between two changes of a limit.
const PACE_NS: u64 = 10 * MS;
/// After so long everything is forgotten.
const FORGOTTEN_NS: u64 = SECOND;
/// After so long without a sample a queue whose think time became short loses its limit.
const SHORT_THINK_NS: u64 = 100 * MS;

/// A queue's limit and what it follows from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    /// Requests in the device up to which others' are sent.
    pub(super) requests: u32,
    /// What its request takes without injection; `None`: not measured.
    alone_ns: Option<u64>,
    /// When it was lowered or reset for the last time.
    lowered_ns: u64,
}

/// The measurement in progress, of the queue in service.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Probe {
    /// A request of it arrived then, and is the next to be sent, or is in the device.
    pub(super) since_ns: Option<u64>,
    /// Sent since: which one it is, is the owner's to know.
    pub(super) is_sent: bool,
    /// Were others' requests sent meanwhile?
    pub(super) injected: bool,
}

impl Limit {
    pub(super) fn new(now: u64) -> Limit {
        Limit { requests: 0, alone_ns: None, lowered_ns: now }
    }

    /// Forget everything.
    pub(super) fn reset(&mut self, now: u64, has_short_think: bool) {
        *self = Limit { requests: u32::from(!has_short_think), alone_ns: None, lowered_ns: now };
    }

    /// A request arrived: has what is known become old?
    pub(super) fn is_old(&self, now: u64) -> bool {
        now >= self.lowered_ns + FORGOTTEN_NS
    }

    /// Whether its think time is short changed: does the limit?
    pub(super) fn follows_think_time(&self, now: u64, has_short_think: bool) -> bool {
        self.alone_ns.is_none() && (!has_short_think || now >= self.lowered_ns + SHORT_THINK_NS)
    }

    /// A request arrived at the queue in service: is it to be measured? `others`: is what is in the device others' only,
    /// injected?
    pub(super) fn may_measure(&self, now: u64, in_driver: u32, injected: bool) -> bool {
        let known = self.alone_ns.is_some() && injected;
        (in_driver == 0 || known) && now >= self.lowered_ns + PACE_NS
    }

    /// The request measured is done after `took_ns`; `in_driver` still counts it, `most` is the deepest the device was.
    pub(super) fn measured(&mut self, now: u64, took_ns: u64, injected: bool, in_driver: u32, most: u32) {
        if let Some(alone_ns) = self.alone_ns.filter(|_| injected) {
            let slow_ns = alone_ns + alone_ns / 2;
            if took_ns >= slow_ns && self.requests > 0 {
                self.requests -= 1;
                self.lowered_ns = now;
            } else if took_ns < slow_ns && self.requests <= most {
                self.requests += 1;
            }
        }
        let alone = in_driver == 1;
        match self.alone_ns {
            None if alone => {
                self.requests = self.requests.max(1);
                self.alone_ns = Some(took_ns);
            }
            Some(known) if took_ns < known || (!injected && alone) => self.alone_ns = Some(took_ns),
            _ => {}
        }
    }
}
