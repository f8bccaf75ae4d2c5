//! Wakers: a queue whose request comes again and again right after another's completion is waiting for that one (an `fsync`
//! for the journal). While the device is kept for the sleeper its *waker* may send, and the other way round. And how much of
//! requests of all others may be sent meanwhile ([`super::inject`]).

use super::inject::Probe;
use super::queue::QueueId;
use super::{Bfq, budget};
use crate::MS;
use crate::collections::Id;
use crate::elevator::Env;

/// A request that comes so soon after another's completion may be due to it.
const SOON_NS: u64 = 4 * MS;
/// So many times in a row, within so many `slice_idle`.
const CERTAIN: u8 = 3;
const WINDOW: u64 = 128;
/// Queues looked at for one to inject; the kernel looks at all.
const LOOKED_AT: usize = 32;

impl Bfq {
    /// A request of a task with no other arrived at `id`: who woke it, and how long will it take?
    pub(super) fn prepare_injection(&mut self, now: u64, id: QueueId) {
        self.suspect_waker(now, id);
        let queue = &mut self.queues[id.index()];
        if queue.limit.is_old(now) {
            let short = queue.habits.has_short_think;
            queue.limit.reset(now, short);
            if self.in_service == Some(id) {
                self.probe = Probe::default();
            }
        }
        if self.in_service == Some(id)
            && self.queue(id).limit.may_measure(now, self.in_driver, self.probe.injected)
        {
            let injected = self.probe.injected && self.in_driver > 0;
            self.probe = Probe { since_ns: Some(now), is_sent: false, injected };
            self.probed = None;
        }
    }

    fn suspect_waker(&mut self, now: u64, id: QueueId) {
        let Some(last) = self.last_completed.filter(|last| *last != id) else { return };
        let soon = now.saturating_sub(self.rate.last_completion_ns) < SOON_NS;
        let queue = self.queue(id);
        let may = queue.sync && !queue.habits.has_short_think && queue.waker != Some(last);
        if !may || !soon || self.queue(last).coop || !self.queue(last).taken {
            return;
        }
        let window_ns = WINDOW * self.settings.slice_idle_ns;
        let (times, since) = match queue.suspect {
            Some((suspect, times, since)) if suspect == last && now <= since + window_ns => {
                (times + 1, since)
            }
            _ => (1, now),
        };
        if times < CERTAIN {
            self.queue_mut(id).suspect = Some((last, times, since));
            return;
        }
        let queue = &mut self.queues[id.index()];
        queue.suspect = None;
        if let Some(old) = queue.waker.replace(last) {
            self.queues[old.index()].woken.remove(&mut self.woken_links, id);
        }
        self.queues[last.index()].woken.push_back(&mut self.woken_links, id);
    }

    /// No queue is woken by `id` any more.
    pub(super) fn disown_woken(&mut self, id: QueueId) {
        // Each was put there once.
        while let Some(woken) = self.queues[id.index()].woken.pop_front(&mut self.woken_links) {
            self.queues[woken.index()].waker = None;
        }
    }

    /// The device idles for `id`, which is empty: which queue may send meanwhile? One that `id` may be waiting for, or one that its
    /// limit leaves room for.
    pub(super) fn filler(&mut self, env: &Env<'_>, id: QueueId) -> Option<QueueId> {
        let queue = self.queue(id);
        let own_async = self.find_queue(env.contexts, queue.context, queue.group, false).filter(|other| {
            self.queue(*other).next.is_some_and(|next| env.requests[next].context == queue.context)
        });
        let related = own_async
            .filter(|other| self.fits(env, *other))
            .or_else(|| queue.waker.filter(|other| self.fits(env, *other)))
            .or_else(|| queue.woken.front().filter(|other| self.fits(env, *other)));
        if related.is_some() {
            return related;
        }
        let costs_nothing = !self.idling_is_faster(env, id)
            && (!queue.raise.is_raised() || self.raised > 1 || !queue.habits.has_short_think);
        if costs_nothing { self.injected(env, id) } else { None }
    }

    /// Has `id`, which is not in service, a request that its budget is enough for?
    fn fits(&self, env: &Env<'_>, id: QueueId) -> bool {
        let queue = self.queue(id);
        let left = self.hierarchy.budget_left(self.entity(id));
        queue.busy && queue.next.is_some_and(|next| self.charge_of(env, id, next) <= left)
    }

    /// A queue whose next request may be sent although the device is kept for `serving`.
    fn injected(&mut self, env: &Env<'_>, serving: QueueId) -> Option<QueueId> {
        let queue = self.queue(serving);
        if self.in_driver >= queue.limit.requests {
            return None;
        }
        let anybody = !queue.raise.is_raised() || !queue.habits.has_short_think;
        let fits = |id: &QueueId| {
            let queue = self.queue(*id);
            let large = queue.next.is_some_and(|next| env.requests[next].sectors >= super::habits::LARGE);
            let too_large = !env.device.rotational && large && self.in_driver >= 1;
            (anybody || queue.raise.is_raised()) && !too_large && self.fits(env, *id)
        };
        let found = self.waiting.iter(&self.waiting_links).take(LOOKED_AT).find(fits)?;
        self.probe.injected = true;
        Some(found)
    }

    /// The largest budget of the device, or the operator's.
    pub(super) fn refresh_max_budget(&mut self) {
        let auto = self.rate.budget(self.settings.timeout_sync_ns).clamp(1, i32::MAX as u64);
        self.max_budget = match self.settings.max_budget {
            0 if self.assigned < budget::ASSIGNED_ENOUGH => budget::DEFAULT_MAX,
            0 => auto,
            set => set,
        };
    }
}
