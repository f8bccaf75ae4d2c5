//! Controllers between merging and the request slot: writeback throttling, io.latency, io.cost.

use fairlift_core::queue::Submitted;
use fairlift_core::{Bio, RequestId};

use super::cookie::{QOS, slot_of};
use super::{BlockLayer, Passes, Submitter};
use crate::engine::TaskId;
use crate::group::limits::PrioClass;
use crate::kernel::rq_qos::{Coming, RqQos};

/// What those controllers make of a bio.
pub(super) enum Throttled {
    /// It goes on.
    Passes,
    /// It goes on after it waited: merging is over for it.
    Woken,
    /// It joined a request and asks no limit.
    Joined(RequestId),
    /// Its task sleeps.
    Waits,
}

impl BlockLayer {
    /// Put them there.
    pub(crate) fn set_qos(&mut self, qos: RqQos) {
        self.qos = Some(Box::new(qos));
    }

    /// The groups have an `io.prio.class`.
    pub(crate) fn set_classes(&mut self, classes: Vec<PrioClass>) {
        self.disks_mut().iter_mut().for_each(|layer| layer.set_classes(classes.clone()));
        self.classes = classes;
    }

    /// A task that dirties pages is made to pause.
    pub(crate) fn dirtier_pauses(&mut self, now: u64) {
        if let Some(qos) = &mut self.qos {
            qos.dirtier_pauses(now);
        }
        self.disks_mut().iter_mut().for_each(|layer| layer.dirtier_pauses(now));
    }

    /// What they make of a bio. One that they follow is from now on called by what they know it by.
    pub(super) fn throttle(
        &mut self,
        bio: &mut Bio,
        passes: &mut Passes,
        by: Submitter,
        now: u64,
    ) -> Throttled {
        let Some(qos) = &mut self.qos else { return Throttled::Passes };
        let comes_again = passes.slot.is_some();
        if !comes_again && !qos.follows(bio.op, bio.flags) {
            return Throttled::Passes;
        }
        let Bio { op, flags, sector, sectors, .. } = *bio;
        let (task, group, daemon) = (by.task, by.cgroup.index(), by.daemon);
        let coming = Coming { task, group, op, flags, sector, sectors, daemon };
        let slot = passes.slot.unwrap_or_else(|| qos.come(coming, bio.cookie, now));
        passes.slot = Some(slot);
        bio.cookie = QOS | u64::from(slot);
        if !comes_again && let Some(rq) = self.queue.join_queued(*bio, now) {
            qos.joined(slot, rq, now);
            return Throttled::Joined(rq);
        }
        let passed = qos.pass(slot, now);
        qos.take_woken(&mut self.woken);
        if !passed {
            self.queue.flush_plug(bio.context, now);
            return Throttled::Waits;
        }
        let merging_is_over = comes_again && !self.queue.limiter().is_used();
        if merging_is_over { Throttled::Woken } else { Throttled::Passes }
    }

    /// What became of a bio.
    pub(super) fn tell_qos(&mut self, bio: &Bio, answer: Submitted, now: u64) {
        let Some(qos) = &mut self.qos else { return };
        if let Submitted::Queued(_) | Submitted::Full = answer {
            qos.saw(bio.op, now);
        }
        if let (Some(slot), Submitted::Queued(rq)) = (slot_of(bio.cookie), answer) {
            qos.became(slot, rq);
        }
    }

    /// How long a task has to pause for what its group owes, nanoseconds.
    pub(crate) fn take_pause(&mut self, task: TaskId) -> u64 {
        let own = self.qos.as_mut().map_or(0, |qos| qos.take_pause(task));
        self.disks_mut().iter_mut().fold(own, |sum, layer| sum + layer.take_pause(task))
    }

    /// What the block layer itself calls a bio.
    pub(super) fn own_cookie(&self, cookie: u64) -> u64 {
        match (&self.qos, slot_of(cookie)) {
            (Some(qos), Some(slot)) => qos.cookie(slot),
            _ => cookie,
        }
    }

    /// Tasks go on that waited for them.
    #[inline]
    pub(super) fn wake_throttled(&mut self) {
        if let Some(qos) = &mut self.qos {
            qos.take_woken(&mut self.woken);
        }
    }
}
