//! Whether waiting for a queue's next request pays: think time, seeks, the device's own queueing; and the idle timer.

use super::queue::{QueueId, Residual};
use super::{Arrival, Cfq, Depth, NEVER, NoIdle, Seeks, Trees};
use crate::collections::Id;
use crate::context::IoClass;
use crate::elevator::Env;
use crate::elevator::think::SAMPLES_VALID;
use crate::request::{Flags, Request};

/// Mean jump above which a process seeks, sectors (4 MiB).
const SEEKY_MEAN: u64 = 8 * 1024;
/// Longest jump that counts, sectors (2 EiB): `total` stays below 256 times that, and 7 times it fits into 64 bits.
const JUMP_MAX: u64 = 1 << 52;
/// Jump that sets a bit of the history, sectors (400 KiB); a device without seeks counts small requests instead.
const JUMP: u64 = 800;
const SMALL_REQUEST: u32 = 64;
/// More bits than this in the history and a queue seeks.
const SEEKY_BITS: u32 = 4;
/// Requests at once from which a queue is deep.
const DEEP: usize = 4;
/// Depth that proves that a device queues by itself.
const DEPTH_MIN: u32 = 5;
/// Samples under load before judging.
const DEPTH_SAMPLES: u32 = 50;
/// A request larger than this is taken as fully merged, sectors (a page).
const PAGE: u32 = 8;

/// How far a context's requests jump, sectors: a decaying mean.
#[derive(Clone, Copy)]
pub(super) struct SeekMean {
    samples: u32,
    total: u64,
    mean: u64,
    /// End of its last request; 0 before the first.
    last_end: u64,
}

impl SeekMean {
    pub(super) const NONE: SeekMean = SeekMean { samples: 0, total: 0, mean: 0, last_end: 0 };

    #[inline]
    fn add(&mut self, request: &Request) {
        let jump = if self.last_end == 0 { 0 } else { request.sector.abs_diff(self.last_end) };
        // One odd page-in must not make a stream a seeker: later jumps are clipped harder than the first.
        let slack = if self.samples <= 60 { 2 * 1024 * 1024 } else { 2 * 1024 * 64 };
        let jump = jump.min(4 * self.mean + slack).min(JUMP_MAX);
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * jump) / 8;
        self.mean = (self.total + u64::from(self.samples / 2)) / u64::from(self.samples.max(1));
        self.last_end = request.end();
    }

    /// The mean, once there are samples enough.
    #[inline]
    pub(super) fn mean(&self) -> Option<u64> {
        (self.samples > SAMPLES_VALID).then_some(self.mean)
    }
}

/// Does the device reorder by itself (`hw_tag`)? Judged by the depth it was seen to reach under load.
#[derive(Clone, Copy)]
pub(super) struct DepthProbe {
    /// `None`: not known yet, taken as yes.
    verdict: Option<bool>,
    samples: u32,
    peak: u32,
}

impl DepthProbe {
    pub(super) fn new(depth: Depth) -> DepthProbe {
        DepthProbe { verdict: (depth == Depth::Resampled).then_some(true), samples: 0, peak: 0 }
    }

    #[inline]
    pub(super) fn queues_itself(&self) -> bool {
        self.verdict != Some(false)
    }
}

impl super::queue::Queue {
    #[inline]
    pub(super) fn is_seeky_by_history(&self) -> bool {
        self.seek_history.count_ones() > SEEKY_BITS
    }
}

impl Cfq {
    // Learning, at every insert.

    /// From `request`, new in `id`: think time and seeks, and whether the queue is worth an idle wait.
    #[inline]
    pub(super) fn learn(&mut self, env: &Env<'_>, id: QueueId, request: &Request, now: u64) {
        let slice_idle = self.derived.slice_idle;
        let context = &mut self.contexts[request.context.index()];
        let queue = &mut self.queues[id.index()];
        context.think.add(now.saturating_sub(context.last_completion).min(2 * slice_idle));
        match self.profile.seeks {
            Seeks::MeanPerContext => context.seeks.add(request),
            Seeks::HistoryPerQueue => {
                let jumped = if env.device.rotational {
                    queue.last_end != 0 && request.sector.abs_diff(queue.last_end) > JUMP
                } else {
                    request.sectors < SMALL_REQUEST
                };
                queue.seek_history = queue.seek_history << 1 | u32::from(jumped);
                queue.last_end = request.end();
            }
        }

        if !queue.sync || queue.class == IoClass::Idle {
            return;
        }
        let seeky = match self.profile.seeks {
            Seeks::MeanPerContext => self.depth.queues_itself() && context.seeks.mean > SEEKY_MEAN,
            Seeks::HistoryPerQueue => {
                queue.deep |= queue.requests.len() >= DEEP;
                !queue.deep && queue.is_seeky_by_history()
            }
        };
        let vain = self.profile.noidle == NoIdle::MovesQueue
            && queue.next.is_some_and(|next| env.requests[next].flags.contains(Flags::NOIDLE));
        if vain || seeky || slice_idle == 0 || !env.contexts[request.context].alive {
            queue.idle_window = false;
        } else if let Some(mean) = context.think.mean() {
            queue.idle_window = mean <= slice_idle;
        }
    }

    /// Look at the depth, at every completion (the completed request still counted).
    pub(super) fn probe_depth(&mut self) {
        let in_driver = self.in_driver;
        self.depth.peak = self.depth.peak.max(in_driver);
        if self.profile.depth == Depth::Sticky && self.depth.verdict == Some(true) {
            return;
        }
        if self.queued <= DEPTH_MIN && in_driver <= DEPTH_MIN {
            return;
        }
        if self.profile.depth == Depth::Sticky && self.depth_spoiled_by_idling() {
            return;
        }
        self.depth.samples += 1;
        if self.depth.samples <= DEPTH_SAMPLES {
            return;
        }
        self.depth.verdict = Some(self.depth.peak >= DEPTH_MIN);
        match self.profile.depth {
            Depth::Resampled => (self.depth.samples, self.depth.peak) = (0, 0),
            Depth::Sticky => self.depth.samples = DEPTH_SAMPLES,
        }
    }

    /// Is it the queue being idled on, not the device, that keeps the depth low?
    fn depth_spoiled_by_idling(&self) -> bool {
        let Some(queue) = self.active.map(|id| self.queue(id)) else { return false };
        queue.idle_window
            && queue.dispatched + (queue.requests.len() as u32) < DEPTH_MIN
            && self.in_driver < DEPTH_MIN
    }

    // Deciding.

    /// Is the device one without seeks that reorders by itself? It gains nothing from idling.
    #[inline]
    fn idling_is_vain(&self, env: &Env<'_>) -> bool {
        !env.device.rotational && self.depth.queues_itself()
    }

    /// [`Trees::Workloads`]: is `id` to be waited for? For its own sake, or, as the last of its tree, for the tree's.
    #[inline]
    pub(super) fn should_idle(&self, env: &Env<'_>, id: QueueId) -> bool {
        let queue = self.queue(id);
        if queue.class == IoClass::Idle {
            return false;
        }
        if queue.idle_window && !self.idling_is_vain(env) {
            return true;
        }
        queue.sync && self.tree_holding(id).is_some_and(|tree| tree.len() == 1)
    }

    /// Does an empty active queue keep the device while it has requests in it?
    #[inline]
    pub(super) fn holds_on(&self, env: &Env<'_>, id: QueueId) -> bool {
        match self.profile.trees {
            Trees::Single => self.queue(id).idle_window,
            Trees::Workloads => self.should_idle(env, id),
        }
    }

    /// The active queue ran dry at a completion (of a request that asked not to be waited for, or one that did not): wait for
    /// its next request, unless that is vain.
    pub(super) fn arm(&mut self, env: &Env<'_>, id: QueueId, no_idle: bool, now: u64) {
        let vain = self.idling_is_vain(env) || self.profile.trees == Trees::Single && no_idle;
        let for_queue = self.derived.slice_idle > 0 && !vain && self.holds_on(env, id);
        // A group's place in the round is worth a wait on any device, and as long a one as a group gets.
        let for_group = self.group_is_worth_waiting(env, id);
        let for_queue = for_queue && !self.thinks_too_long_for_others(env);
        if !for_queue && !for_group {
            return;
        }
        let Some(context) = self.active_context.filter(|context| env.contexts[*context].alive) else {
            return;
        };
        let state = &self.contexts[context.index()];
        let queue = self.queue(id);
        let mut wait = match for_group {
            true if for_queue => self.group_idle(env).max(self.derived.slice_idle),
            true => self.group_idle(env),
            false => self.derived.slice_idle,
        };
        match self.profile.trees {
            Trees::Single => {
                if self.in_driver > 0 {
                    return;
                }
                if !for_group && state.seeks.mean().is_some_and(|mean| mean > SEEKY_MEAN) {
                    wait = wait.min(self.derived.seeky_idle);
                }
            }
            Trees::Workloads => {
                let left = queue.slice_end.saturating_sub(now);
                if queue.dispatched > 0 || state.think.mean().is_some_and(|mean| left < mean) {
                    return;
                }
            }
        }
        self.queue_mut(id).waiting = true;
        self.timer_ns = (now + wait) * self.units.unit_ns.get();
    }

    /// With groups: is the awaited task known to think longer than it is worth waiting for? Other groups would lose by the wait
    /// (2.6.34 waits for the last queue of a tree all the same).
    fn thinks_too_long_for_others(&self, env: &Env<'_>) -> bool {
        if !env.rounds.in_use() || !env.rounds.charges_overrun() {
            return false;
        }
        let think = self.active_context.and_then(|context| self.contexts[context.index()].think.mean());
        think.is_some_and(|mean| mean > self.derived.slice_idle)
    }

    /// The idle timer ran out at `now`.
    #[cold]
    pub(super) fn timer_ran_out(&mut self, env: &mut Env<'_>, now: u64) {
        self.timer_ns = NEVER;
        let Some(id) = self.active else { return };
        let queue = self.queue(id);
        if queue.must_dispatch {
            return;
        }
        if !queue.slice_used(now) {
            // Nobody to make room for, or its request is there: it goes on.
            if self.busy == 0 || !queue.is_empty() {
                return;
            }
            self.queue_mut(id).deep = false;
        }
        self.expire(env, now, Residual::Drop);
    }

    /// A request came for the active queue.
    #[inline]
    pub(super) fn arrived_for_active(&mut self, id: QueueId, request: &Request) {
        if !self.queue(id).waiting {
            return;
        }
        // A small request on an otherwise idle device may still grow; the host's plug decides how long it may.
        let at_once = request.sectors > PAGE || self.busy > 1;
        if at_once {
            self.timer_ns = NEVER;
        }
        let arrival = self.profile.arrival;
        let queue = self.queue_mut(id);
        match arrival {
            Arrival::Promises => queue.must_dispatch = true,
            Arrival::EndsWait => {
                queue.waiting &= !at_once;
                queue.must_dispatch |= !at_once;
            }
        }
    }
}
