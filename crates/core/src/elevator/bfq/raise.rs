//! Weight raising (`low_latency`): a queue that comes back after a while is *interactive* (a program that starts) and gets 30
//! times its weight until it would have started on a reference device; one that sends little at regular times is *soft real
//! time* (a player) and gets 3000 times its weight for 300 ms at a time. Many queues born together are a *burst* (a boot, a
//! compilation), in which latency of one is worth nothing.

use super::rate::REFERENCE;
use crate::{MS, SECOND};

/// The raise of interactive queues.
pub(super) const INTERACTIVE: u32 = 30;
/// The raise of soft real-time queues.
pub(super) const SOFT_RT: u32 = 100 * INTERACTIVE;
/// How long a soft real-time queue is raised.
pub(super) const SOFT_RT_NS: u64 = 300 * MS;
/// How long a queue has been idle that may be interactive.
const IDLE_NS: u64 = 2 * SECOND;
/// Between two raises of an async queue.
const ASYNC_NS: u64 = 500 * MS;
/// What a soft real-time queue is served at most, sectors/s.
const SOFT_RT_RATE: u64 = 7000;
/// What an interactive queue is served raised at most, sectors.
const SERVICE_MAX: u64 = 120_000;
/// How long starting takes on the devices of [`REFERENCE`].
const REFERENCE_NS: [u64; 2] = [2500 * MS, 7 * SECOND];
/// Four jiffies of 4 ms.
const SOFT_RT_PAUSE_NS: u64 = 16 * MS;
/// A burst: so many queues, each at most so long after the last; forgotten after so long without I/O.
pub(super) const BURST: usize = 8;
pub(super) const BURST_NS: u64 = 180 * MS;
pub(super) const BURST_FORGOTTEN_NS: u64 = 10 * SECOND;

/// How long an interactive queue is raised on a device of this peak rate.
pub(super) fn interactive_ns(rate: u64, rotational: bool) -> u64 {
    let device = usize::from(rotational);
    // 2^15 times 2^33.
    (REFERENCE[device] * REFERENCE_NS[device] / rate.max(1)).clamp(3 * SECOND, 25 * SECOND)
}

/// What kind of queue came back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Kind {
    pub(super) interactive: bool,
    pub(super) soft_rt: bool,
    pub(super) in_burst: bool,
}

/// A queue's raise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raise {
    /// What its weight is multiplied by; 1: not raised.
    pub(super) factor: u32,
    /// When it began, or, not raised, when it last might have.
    pub(super) since_ns: u64,
    pub(super) lasts_ns: u64,
    /// When the interactive period began that a soft real-time one interrupted.
    interactive_since_ns: Option<u64>,
    /// Sectors served since it became interactive.
    pub(super) service: u64,
    /// Not soft real time before this.
    pub(super) soft_rt_from_ns: u64,
    /// That is to be worked out when its last request is done.
    pub(super) soft_rt_unknown: bool,
    /// When it came back for the last time, and what it was served since, sectors.
    pub(super) backlog_since_ns: u64,
    pub(super) backlog_service: u64,
}

impl Raise {
    pub(super) fn new(now: u64) -> Raise {
        Raise {
            factor: 1,
            since_ns: now,
            lasts_ns: 0,
            interactive_since_ns: None,
            service: 0,
            soft_rt_from_ns: now,
            soft_rt_unknown: false,
            backlog_since_ns: now,
            backlog_service: 0,
        }
    }

    pub(super) fn is_raised(&self) -> bool {
        self.factor > 1
    }

    pub(super) fn is_soft_rt(&self) -> bool {
        self.factor == SOFT_RT
    }

    /// Has it been away for so long that it may be interactive?
    pub(super) fn was_long_idle(idle_since_ns: Option<u64>, now: u64) -> bool {
        idle_since_ns.is_none_or(|since| now > since + IDLE_NS)
    }

    /// A queue that `deserves` it (or is raised) came back.
    pub(super) fn came_back(&mut self, now: u64, kind: Kind, deserves: bool, interactive_ns: u64) {
        let was_raised = self.is_raised();
        if !was_raised && deserves {
            if kind.interactive {
                self.service = 0;
                self.begin(INTERACTIVE, interactive_ns);
            } else {
                self.interactive_since_ns = None;
                self.begin(SOFT_RT, SOFT_RT_NS);
            }
        } else if was_raised {
            if kind.interactive {
                self.begin(INTERACTIVE, interactive_ns);
            } else if kind.in_burst {
                self.factor = 1;
            } else if kind.soft_rt {
                if !self.is_soft_rt() {
                    self.interactive_since_ns = Some(self.since_ns);
                    self.begin(SOFT_RT, SOFT_RT_NS);
                }
                self.since_ns = now;
            }
        }
        if !was_raised || !self.is_raised() || kind.interactive {
            self.since_ns = now;
        }
    }

    fn begin(&mut self, factor: u32, lasts_ns: u64) {
        (self.factor, self.lasts_ns) = (factor, lasts_ns);
    }

    /// An async queue that is at work got a request. Is it raised by that?
    pub(super) fn grew_async(&mut self, now: u64, interactive_ns: u64) -> bool {
        let may = !self.is_raised() && now > self.since_ns + ASYNC_NS;
        if may {
            self.begin(INTERACTIVE, interactive_ns);
            self.since_ns = now;
        }
        may
    }

    /// A request goes out: is the raise over?
    pub(super) fn review(&mut self, now: u64, in_burst: bool, interactive_ns: u64) {
        if !self.is_raised() {
            return;
        }
        if in_burst {
            return self.end(now);
        }
        if now > self.since_ns + self.lasts_ns {
            self.fall_back(now, interactive_ns);
        }
        if self.factor == INTERACTIVE && self.service > SERVICE_MAX {
            self.end(now);
        }
    }

    /// A soft real-time queue's raise is over, or it turned out to jump about: back to the interactive period it
    /// interrupted, if that would still run.
    pub(super) fn fall_back(&mut self, now: u64, interactive_ns: u64) {
        let interrupted = self.interactive_since_ns.filter(|_| self.is_soft_rt());
        match interrupted {
            Some(since) if now <= since + interactive_ns => {
                self.begin(INTERACTIVE, interactive_ns);
                self.since_ns = since;
            }
            _ => self.end(now),
        }
    }

    pub(super) fn end(&mut self, now: u64) {
        (self.factor, self.lasts_ns, self.since_ns) = (1, 0, now);
    }

    /// A soft real-time queue that waited for service past the end of its turn's time keeps what it waited.
    pub(super) fn waited_since(&mut self, timeout_ns: u64, now: u64) {
        if self.is_soft_rt() && self.since_ns < now && timeout_ns < now {
            self.since_ns = (self.since_ns + (now - timeout_ns)).min(now);
        }
    }

    /// Its backlog is over: from when on may it be soft real time? Not if it comes back sooner than at [`SOFT_RT_RATE`], and
    /// not at once, as who is limited by the device does.
    pub(super) fn backlog_ended(&mut self, now: u64, slice_idle_ns: u64) {
        // Saturating: 2^30 ns times the sectors of one backlog.
        let at_rate = self.backlog_service.saturating_mul(SECOND) / SOFT_RT_RATE;
        self.soft_rt_from_ns = self
            .soft_rt_from_ns
            .max(self.backlog_since_ns.saturating_add(at_rate))
            .max(now + slice_idle_ns + SOFT_RT_PAUSE_NS);
        self.soft_rt_unknown = false;
    }

    /// It was served so many sectors.
    pub(super) fn served(&mut self, sectors: u64) {
        self.service += sectors;
        self.backlog_service += sectors;
    }

    /// What a queue that another joins takes over: the other's raise, unless it has one.
    pub(super) fn inherit(&mut self, other: &Raise) {
        if other.is_raised() && !self.is_raised() {
            *self = Raise {
                backlog_since_ns: self.backlog_since_ns,
                backlog_service: self.backlog_service,
                ..*other
            };
        }
    }
}
