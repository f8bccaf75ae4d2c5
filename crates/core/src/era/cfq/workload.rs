//! The 2.6.34 round: which of the trees is served, for how long, and how long a queue's slice is in it.
//!
//! Each group has its own; its share of the 300 ms is the whole where there is only the root.

use super::Cfq;
use super::queue::{Kind, QueueId};
use crate::collections::Id;
use crate::context::IoClass;
use crate::elevator::Env;
use crate::group::GroupId;

/// The tree being served.
#[derive(Clone, Copy)]
pub(super) struct Workload {
    class: IoClass,
    kind: Kind,
    /// Until when; `None`: choose anew.
    ends: Option<u64>,
    /// What was left when the last queue expired.
    saved: Option<u64>,
    /// [`Kind::SyncNoIdle`]: a request that did not ask to be left alone was served, so the tree is idled on.
    pub(super) wants_idle: bool,
    /// Queues usually busy: `[best effort, real time]`; rises fast, falls slowly.
    average: [u32; 2],
}

impl Workload {
    pub(super) const NONE: Workload = Workload {
        class: IoClass::BestEffort,
        kind: Kind::Async,
        ends: None,
        saved: None,
        wants_idle: false,
        average: [0; 2],
    };

    #[inline]
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// A queue expires: the workload's time stops until the next one is chosen.
    #[inline]
    pub(super) fn save(&mut self, now: u64) {
        self.saved = self.ends.and_then(|ends| ends.checked_sub(now)).filter(|left| *left > 0);
    }

    /// Another group has its place now.
    pub(super) fn forget(&mut self) {
        *self = Workload::NONE;
    }

    /// The group is empty: its workload is over.
    #[inline]
    pub(super) fn forget_saved(&mut self) {
        self.saved = None;
    }
}

/// First tree and place of the average of a class that has kinds.
const fn class_index(class: IoClass) -> usize {
    match class {
        IoClass::RealTime => 1,
        IoClass::BestEffort | IoClass::Idle => 0,
    }
}

impl Cfq {
    #[inline]
    fn tree_len(&self, group: GroupId, class: IoClass, kind: Kind) -> u64 {
        self.groups[group.index()].trees[3 * class_index(class) + kind as usize].len() as u64
    }

    /// Busy queues of a class in `group`.
    #[inline]
    pub(super) fn busy_of(&self, group: GroupId, class: IoClass) -> u64 {
        let kinds = [Kind::Async, Kind::SyncNoIdle, Kind::Sync];
        kinds.iter().map(|kind| self.tree_len(group, class, *kind)).sum()
    }

    /// Choose the tree of `group` to serve (real time first, idle last) and return its first queue.
    pub(super) fn pick_from_workloads(&mut self, env: &Env<'_>, group: GroupId, now: u64) -> Option<QueueId> {
        let mut workload = self.groups[group.index()].workload;
        workload.ends = workload.saved.map(|left| now + left);
        if self.busy_of(group, IoClass::RealTime) > 0 {
            workload.class = IoClass::RealTime;
        } else if self.busy_of(group, IoClass::BestEffort) > 0 {
            workload.class = IoClass::BestEffort;
        } else {
            workload.class = IoClass::Idle;
            workload.ends = Some(now + self.derived.tick);
            let group = &mut self.groups[group.index()];
            group.workload = workload;
            return group.trees[super::queue::TREES - 1].first();
        }
        let class = workload.class;
        let goes_on = workload.ends.is_some_and(|ends| now <= ends);
        if !goes_on || self.tree_len(group, class, workload.kind) == 0 {
            workload.kind = self.most_due(group, class);
            workload.ends = Some(now + self.workload_slice(env, group, class, workload.kind));
            workload.wants_idle = false;
        }
        let group = &mut self.groups[group.index()];
        group.workload = workload;
        group.trees.get(3 * class_index(class) + workload.kind as usize)?.first()
    }

    /// The kind whose first queue is due first.
    fn most_due(&self, group: GroupId, class: IoClass) -> Kind {
        let trees = &self.groups[group.index()].trees;
        let mut best: Option<(i64, Kind)> = None;
        for kind in [Kind::Async, Kind::SyncNoIdle, Kind::Sync] {
            let Some(first) = trees[3 * class_index(class) + kind as usize].first() else { continue };
            let key = self.turns.key(first);
            if best.is_none_or(|(least, _)| key < least) {
                best = Some((key, kind));
            }
        }
        best.map_or(Kind::SyncNoIdle, |(_, kind)| kind)
    }

    /// A workload's share of the 300 ms by its share of the class' queues; async time is shorter as async slices are.
    fn workload_slice(&self, env: &Env<'_>, group: GroupId, class: IoClass, kind: Kind) -> u64 {
        let target = self.target_latency_of(env, group);
        let usual = u64::from(self.groups[group.index()].workload.average[class_index(class)]);
        let here = self.busy_of(group, class);
        let share = target * self.tree_len(group, class, kind) / usual.max(here).max(1);
        let slice = if kind == Kind::Async {
            let async_busy = self.tree_len(group, IoClass::RealTime, Kind::Async)
                + self.tree_len(group, IoClass::BestEffort, Kind::Async);
            let of_all = self.derived.target_latency * async_busy / u64::from(self.busy).max(1);
            share.min(of_all).saturating_mul(self.derived.slice_base[0]) / self.derived.slice_base[1].max(1)
        } else {
            share.max(2 * self.derived.slice_idle)
        };
        slice.max(2 * self.derived.tick)
    }

    /// `low_latency`: a slice such that a round over the usual number of queues takes 300 ms, down to two idle waits.
    pub(super) fn adapted_slice(&mut self, env: &Env<'_>, id: QueueId, full: u64) -> u64 {
        if self.settings.low_latency == 0 {
            return full;
        }
        let class = self.queue(id).class;
        let group = self.queue(id).group;
        let target = self.target_latency_of(env, group);
        let counted = if class == IoClass::RealTime { class } else { IoClass::BestEffort };
        let busy = self.busy_of(group, counted) as u32;
        let average = &mut self.groups[group.index()].workload.average[class_index(class)];
        let (low, high) = ((*average).min(busy), (*average).max(busy));
        *average = (3 * high + low + 2) / 4;
        let base = self.derived.slice_base[1].max(1);
        let round = base.saturating_mul(u64::from(*average));
        if round <= target {
            return full;
        }
        // Saturating: only settings of many days get there, where the exact length does not matter.
        let least = full.min((2 * self.derived.slice_idle).saturating_mul(full) / base);
        (full.saturating_mul(target) / round.max(1)).max(least)
    }
}
