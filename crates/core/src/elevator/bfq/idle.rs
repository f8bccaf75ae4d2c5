//! Does the device idle for the next request of a queue that ran dry? For bandwidth, where the queue goes on where it stopped; or
//! for its share, which it would lose to those who always have requests.

use super::Bfq;
use super::queue::QueueId;
use crate::MS;
use crate::context::IoClass;
use crate::elevator::Env;

/// A device that had so many requests is one that queues.
const DEPTH_MIN: u32 = 3;
/// Completions under load after which it is decided whether the device queues.
const DEPTH_SAMPLES: u32 = 32;
/// Longest wait for a seeker, and shortest for a raised queue.
const SEEKER_NS: u64 = 2 * MS;
const RAISED_NS: u64 = 20 * MS;

/// Does the device queue by itself (the kernel's `hw_tag`)?
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct DepthProbe {
    /// Most requests in it at a time.
    pub(super) peak: u32,
    samples: u32,
    /// `None`: not known yet. Once true it stays.
    pub(super) queues: Option<bool>,
}

impl DepthProbe {
    /// A request is done, still counted. `spoilt`: it is waiting that keeps the depth low.
    pub(super) fn completed(&mut self, in_driver: u32, queued: u32, spoilt: bool) {
        self.peak = self.peak.max(in_driver);
        if self.queues == Some(true) || in_driver + queued <= DEPTH_MIN || spoilt {
            return;
        }
        self.samples += 1;
        if self.samples >= DEPTH_SAMPLES {
            self.queues = Some(self.peak > DEPTH_MIN);
            (self.peak, self.samples) = (0, 0);
        }
    }
}

impl Bfq {
    /// Do queues that have something to do or something in the device have different claims, so that who is left alone for a moment would lose its share? `beside`: a queue that
    /// has the smallest claim anyway loses nothing.
    pub(super) fn is_asymmetric(&self, beside: Option<QueueId>) -> bool {
        let classes = self.busy.iter().filter(|busy| **busy > 0).count();
        if classes > 1 || self.pending_groups > 1 {
            return true;
        }
        let levels = || self.levels.iter().enumerate().filter(|(_, queues)| **queues > 0);
        let varied = levels().count() > 1;
        let is_smallest = beside.map(|id| self.queue(id)).is_some_and(|queue| {
            let lowest = levels().next_back().map(|(level, _)| level);
            queue.pending && !queue.raise.is_raised() && lowest == Some(usize::from(queue.ioprio.level()))
        });
        varied && !is_smallest
    }

    /// A device without seeks that queues: it gains nothing from being kept.
    pub(super) fn is_queueing_flash(&self, env: &Env<'_>) -> bool {
        !env.device.rotational && self.depth.queues != Some(false)
    }

    /// Does waiting for `id` make the device faster, with no raised queue that would suffer?
    pub(super) fn idling_is_faster(&self, env: &Env<'_>, id: QueueId) -> bool {
        let queue = self.queue(id);
        let serial = self.depth.queues == Some(false);
        let sequential = !queue.habits.is_seeky() && queue.habits.is_io_bound && queue.habits.has_short_think;
        let faster = env.device.rotational && serial || (env.device.rotational || serial) && sequential;
        faster && self.raised == 0
    }

    /// Would `id` lose its share if the device were not kept for it?
    pub(super) fn idling_is_fair(&self, id: QueueId) -> bool {
        let queue = self.queue(id);
        let raised_among_others = queue.raise.is_raised()
            && (self.raised < self.busy_total() || self.in_driver >= queue.dispatched + 4);
        raised_among_others || self.is_asymmetric(Some(id)) || self.busy_total() == 1
    }

    /// Is it better to wait for `id`, should it run dry, than to go on with another queue?
    pub(super) fn is_better_idle(&self, env: &Env<'_>, id: QueueId) -> bool {
        let queue = self.queue(id);
        let nobody = queue.users == 0 && queue.shared.is_none();
        if nobody {
            return false;
        }
        if self.settings.strict_guarantees != 0 {
            return true;
        }
        if self.settings.slice_idle_ns == 0 || !queue.sync || queue.class() == IoClass::Idle {
            return false;
        }
        self.idling_is_faster(env, id) || self.idling_is_fair(id)
    }

    /// Wait for the next request of `id`, the queue in service.
    pub(super) fn arm(&mut self, now: u64, id: QueueId) {
        let queue = self.queue(id);
        let mut wait_ns = self.settings.slice_idle_ns;
        if queue.raise.is_raised() {
            wait_ns = wait_ns.max(RAISED_NS);
        } else if queue.habits.is_seeky() && !self.is_asymmetric(Some(id)) {
            wait_ns = wait_ns.min(SEEKER_NS);
        }
        self.wait_since_ns = now;
        self.timer_ns = Some(now + wait_ns);
    }

    /// Does the depth in the device show how contexts use it, and not that the elevator idled for a queue that thinks shortly?
    pub(super) fn depth_is_spoilt(&self) -> bool {
        let Some(queue) = self.in_service.map(|id| self.queue(id)) else { return false };
        queue.habits.has_short_think
            && queue.dispatched + (queue.requests.len() as u32) < DEPTH_MIN
            && self.in_driver < DEPTH_MIN
    }
}
