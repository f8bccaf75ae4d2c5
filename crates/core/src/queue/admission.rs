//! Admission: which bio gets a request slot, and which has to wait.
//!
//! Two eras. [`Admission::Pools`] is Linux 2.6.30 to 3.x: a pool for sync and one for async I/O (`era/pools.rs`).
//! [`Admission::Tags`] is blk-mq: one set of scheduler tags for all I/O.
//!
//! Source: Linux 6.12 `block/blk-mq-tag.c`.

use super::era::pools::{Pool, congestion_on, is_batching, relieved, use_batch};
use super::group_slots::GroupSlots;
use super::tags::Tags;
use crate::context::Context;
use crate::elevator::MayQueue;
use crate::group::{Claim, GroupId};

/// How request slots are given out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// `nr_requests` each for sync and for async I/O; batchers may go to 3/2 of it.
    Pools {
        /// `queue/nr_requests`, at least 4.
        nr_requests: u32,
    },
    /// `nr_requests` for all I/O together.
    Tags {
        /// `queue/nr_requests`, at least 1.
        nr_requests: u32,
    },
}

impl Admission {
    /// Slots of a pool, those beyond the limit included.
    pub(super) const fn pool_size(self) -> usize {
        match self {
            Admission::Pools { .. } => 3 * self.limit() as usize / 2,
            Admission::Tags { .. } => self.limit() as usize,
        }
    }

    /// Slots that can be taken at the same time.
    pub const fn slots(self) -> usize {
        match self {
            Admission::Pools { .. } => 2 * (3 * self.limit() as usize / 2),
            Admission::Tags { .. } => self.limit() as usize,
        }
    }

    /// `nr_requests`, not below its minimum.
    pub(super) const fn limit(self) -> u32 {
        match self {
            Admission::Pools { nr_requests } if nr_requests < 4 => 4,
            Admission::Tags { nr_requests: 0 } => 1,
            Admission::Pools { nr_requests } | Admission::Tags { nr_requests } => nr_requests,
        }
    }
}

/// What was short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refused {
    ByGroup,
    ByDevice,
}

/// The pools and their waiters' wake-ups.
#[derive(Debug)]
pub(super) struct RequestSlots {
    admission: Admission,
    nr: u32,
    pools: [Pool; 2],
    tags: Tags,
    /// Wake-ups the host has not fetched yet, `[async, sync]`.
    wakeups: [u32; 2],
    /// Who has how many of them; only where there can be groups.
    groups: Option<GroupSlots>,
}

impl RequestSlots {
    pub(super) fn new(admission: Admission) -> RequestSlots {
        RequestSlots {
            admission,
            nr: admission.limit(),
            pools: [Pool::default(); 2],
            tags: Tags::new(if let Admission::Tags { .. } = admission { admission.limit() } else { 0 }),
            wakeups: [0; 2],
            groups: None,
        }
    }

    /// With a part of the slots for each of so many groups, the root included, if it is not alone.
    pub(super) fn with_groups(self, slots: usize) -> RequestSlots {
        RequestSlots { groups: (slots > 1).then(|| GroupSlots::new(slots)), ..self }
    }

    /// Slots taken in both pools.
    #[inline]
    pub(super) fn taken(&self) -> u32 {
        self.pools[0].taken + self.pools[1].taken
    }

    /// Is the pool so full that those who can should hold back (read-ahead, writeback)?
    pub(super) fn is_congested(&self, sync: bool) -> bool {
        self.pools[usize::from(sync)].congested
    }

    /// Take a slot if the rules allow it.
    #[inline]
    pub(super) fn enter(&mut self, sync: bool, task: &mut Context, may: MayQueue, now: u64) -> bool {
        match self.admission {
            Admission::Pools { .. } => self.enter_pool(sync, task, may, now),
            Admission::Tags { .. } => {
                let free = self.taken() < self.nr;
                self.pools[usize::from(sync)].taken += u32::from(free);
                free
            }
        }
    }

    /// One of the first `limit` tags; none is needed where there are pools.
    pub(super) fn take_tag(&mut self, limit: u32) -> Option<u32> {
        match self.admission {
            Admission::Pools { .. } => Some(0),
            Admission::Tags { .. } => self.tags.take(limit),
        }
    }

    /// The tag of a request that is gone.
    pub(super) fn give_tag_back(&mut self, tag: u32) {
        if let Admission::Tags { .. } = self.admission {
            self.tags.give_back(tag);
        }
    }

    fn enter_pool(&mut self, sync: bool, task: &mut Context, may: MayQueue, now: u64) -> bool {
        let nr = self.nr;
        let pool = &mut self.pools[usize::from(sync)];
        if may == MayQueue::No {
            pool.starved |= pool.taken == 0;
            return false;
        }
        let Some(beyond) = pool.ask(nr, task, may, now) else { return false };
        pool.taken += 1;
        pool.starved = false;
        if beyond {
            use_batch(task, now);
        }
        true
    }

    /// A slot is free again.
    #[inline]
    pub(super) fn leave(&mut self, sync: bool) {
        let class = usize::from(sync);
        self.pools[class].taken -= 1;
        match self.admission {
            Admission::Pools { .. } => {
                self.relieve(class);
                if self.pools[1 - class].starved {
                    self.relieve(1 - class);
                }
            }
            Admission::Tags { .. } => self.wake(class),
        }
    }

    /// One more waiter of the class may try. A tag suits either class, and only the host knows who waits.
    #[inline]
    pub(super) fn wake(&mut self, class: usize) {
        match self.admission {
            Admission::Pools { .. } => self.wakeups[class] = self.wakeups[class].saturating_add(1),
            Admission::Tags { .. } => self.wakeups = self.wakeups.map(|n| n.saturating_add(1)),
        }
    }

    fn relieve(&mut self, class: usize) {
        if relieved(&mut self.pools[class], self.nr) {
            self.wake(class);
        }
    }

    /// Wake-ups since the last call, `[async, sync]`.
    #[inline]
    pub(super) fn take_wakeups(&mut self) -> [u32; 2] {
        core::mem::take(&mut self.wakeups)
    }

    // ---- by group ----

    /// Are there groups?
    #[inline]
    pub(super) fn has_groups(&self) -> bool {
        self.groups.is_some()
    }

    /// A group's part of the slots, given `nr_group_requests`.
    fn part(&self, nr_group: u64) -> u32 {
        let least = if matches!(self.admission, Admission::Pools { .. }) { 4 } else { 1 };
        u32::try_from(nr_group).unwrap_or(u32::MAX).clamp(least, self.nr.max(least))
    }

    /// Which pool, and whose waiters its slots suit.
    pub(super) fn pool(&self, class: usize) -> (usize, core::ops::Range<usize>) {
        match self.admission {
            Admission::Pools { .. } => (class, class..class + 1),
            Admission::Tags { .. } => (0, 0..2),
        }
    }

    /// Is `group`'s part so full that those who can should hold back?
    pub(super) fn is_group_congested(&self, group: GroupId, sync: bool) -> bool {
        let pool = self.pool(usize::from(sync)).0;
        let of_group = self.groups.as_ref().map(|groups| groups.share(group).pools[pool]);
        of_group.is_some_and(|pool| pool.congested)
    }

    /// Take a slot of `group`'s part if the rules allow it. Who then waits for a wake-up has to be told ([`RequestSlots::refuse`]).
    pub(super) fn enter_group(
        &mut self,
        (group, nr_group): (GroupId, u64),
        sync: bool,
        task: &mut Context,
        may: MayQueue,
        now: u64,
    ) -> Result<(), Refused> {
        let part = self.part(nr_group);
        let beyond = match self.admission {
            Admission::Pools { .. } => self.ask_pools((group, part), sync, task, may, now),
            Admission::Tags { .. } => self.ask_tags(group, part),
        }?;
        let pool = self.pool(usize::from(sync)).0;
        let groups = self.groups.as_mut().ok_or(Refused::ByGroup)?;
        groups.share_mut(group).pools[pool].taken += 1;
        self.pools[pool].taken += 1;
        if beyond {
            use_batch(task, now);
        }
        Ok(())
    }

    /// One more of `group` waits for a wake-up.
    pub(super) fn refuse(&mut self, group: GroupId, sync: bool, refused: Refused) {
        if let Some(groups) = &mut self.groups {
            groups.refuse(group, usize::from(sync), refused);
        }
    }

    fn ask_pools(
        &mut self,
        (group, part): (GroupId, u32),
        sync: bool,
        task: &mut Context,
        may: MayQueue,
        now: u64,
    ) -> Result<bool, Refused> {
        let groups = self.groups.as_mut().ok_or(Refused::ByGroup)?;
        let device = &mut self.pools[usize::from(sync)];
        if may == MayQueue::No {
            return Err(Refused::ByDevice);
        }
        let own = &mut groups.share_mut(group).pools[usize::from(sync)];
        let beyond = own.ask(part, task, may, now).ok_or(Refused::ByGroup)?;
        device.congested |= device.taken + 1 >= congestion_on(self.nr);
        let batches = may == MayQueue::Must || is_batching(task, now);
        let ceiling = if batches { 3 * self.nr / 2 } else { self.nr };
        if device.taken < ceiling { Ok(beyond) } else { Err(Refused::ByDevice) }
    }

    fn ask_tags(&mut self, group: GroupId, part: u32) -> Result<bool, Refused> {
        let groups = self.groups.as_ref().ok_or(Refused::ByGroup)?;
        match (groups.share(group).pools[0].taken < part, self.taken() < self.nr) {
            (true, true) => Ok(false),
            (false, _) => Err(Refused::ByGroup),
            (true, false) => Err(Refused::ByDevice),
        }
    }

    /// A slot of `group`'s part is free again.
    pub(super) fn leave_group(
        &mut self,
        (group, nr_group): (GroupId, u64),
        sync: bool,
        claim: &dyn Fn(GroupId) -> Claim,
    ) {
        let (pool, classes) = self.pool(usize::from(sync));
        let (part, nr) = (self.part(nr_group), self.nr);
        let beyond = self.admission.pool_size() as u32;
        let Some(groups) = &mut self.groups else { return };
        groups.share_mut(group).pools[pool].taken -= 1;
        groups.leave(group, pool, part, classes.clone());
        let device = &mut self.pools[pool];
        device.taken -= 1;
        // Who is woken may take one of those beyond the limit: other groups' batches must not keep it waiting.
        let has_room = relieved(device, nr) || device.taken < beyond;
        if has_room {
            classes.for_each(|class| groups.admit(class, claim));
        }
        // Somebody may have been refused by the elevator although there was room.
        if self.pools[1 - pool].taken == 0 {
            groups.admit(1 - pool, claim);
        }
    }

    /// A waiter of `group` was woken and did not need the slot: it is the next one's.
    pub(super) fn pass_on(&mut self, group: GroupId, sync: bool, claim: &dyn Fn(GroupId) -> Claim) {
        if let Some(groups) = &mut self.groups {
            groups.pass_on(group, usize::from(sync), claim);
        }
    }

    /// The next wake-up that was not fetched: of a waiter of which group, and is it sync?
    pub(super) fn next_wakeup(&mut self) -> Option<(GroupId, bool)> {
        if let Some(groups) = &mut self.groups {
            return groups.next_wakeup();
        }
        let class = self.wakeups.iter().position(|count| *count > 0)?;
        self.wakeups[class] -= 1;
        Some((GroupId::ROOT, class == 1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::era::pools::start_batch;
    use super::*;
    use crate::MS;
    use crate::context::{Contexts, IoPrio};

    fn pools(nr: u32) -> (RequestSlots, Contexts) {
        (RequestSlots::new(Admission::Pools { nr_requests: nr }), Contexts::new(4))
    }

    /// nr_requests 128: congested from the 113th slot on, relieved below 103.
    #[test]
    fn congestion_has_hysteresis() {
        let (mut slots, mut contexts) = pools(128);
        let task = contexts.take(GroupId::ROOT, IoPrio::DEFAULT).expect("there is room");
        for taken in 1..=112 {
            assert!(slots.enter(true, &mut contexts[task], MayQueue::May, 0));
            assert!(!slots.is_congested(true), "after {taken}");
        }
        assert!(slots.enter(true, &mut contexts[task], MayQueue::May, 0));
        assert!(slots.is_congested(true) && !slots.is_congested(false));
        for taken in (103..=112).rev() {
            slots.leave(true);
            assert!(slots.is_congested(true), "at {taken}");
        }
        slots.leave(true);
        assert!(!slots.is_congested(true));
    }

    /// The task that fills the pool is a batcher for 32 more; another one has to wait; no task passes 3/2.
    #[test]
    fn only_batchers_pass_a_full_pool() {
        let (mut slots, mut contexts) = pools(128);
        let (first, second) = (
            contexts.take(GroupId::ROOT, IoPrio::DEFAULT).expect("there is room"),
            contexts.take(GroupId::ROOT, IoPrio::DEFAULT).expect("there is room"),
        );
        for _ in 0..127 {
            assert!(slots.enter(false, &mut contexts[first], MayQueue::May, 0));
        }
        // Slot 128 makes `first` a batcher and is the first of its 32.
        for _ in 0..32 {
            assert!(slots.enter(false, &mut contexts[first], MayQueue::May, 0));
        }
        assert!(!slots.enter(false, &mut contexts[first], MayQueue::May, 0), "its batch is used up");
        assert!(!slots.enter(false, &mut contexts[second], MayQueue::May, 0));
        assert!(slots.enter(false, &mut contexts[second], MayQueue::Must, 0), "the awaited task passes");
        assert!(slots.enter(true, &mut contexts[second], MayQueue::May, 0), "the sync pool is another one");
        while slots.enter(false, &mut contexts[second], MayQueue::Must, 0) {}
        assert_eq!(slots.pools[0].taken, 192);
    }

    /// A batch lasts 20 ms from the wait, except its first request.
    #[test]
    fn a_batch_runs_out_of_time() {
        let (mut slots, mut contexts) = pools(4);
        let task = contexts.take(GroupId::ROOT, IoPrio::DEFAULT).expect("there is room");
        for _ in 0..4 {
            assert!(slots.enter(true, &mut contexts[task], MayQueue::May, 0));
        }
        assert_eq!(contexts[task].batch_left, 31);
        assert!(!slots.enter(true, &mut contexts[task], MayQueue::May, 20 * MS), "20 ms are over");
        start_batch(&mut contexts[task], 0);
        assert!(
            slots.enter(true, &mut contexts[task], MayQueue::May, 100 * MS),
            "the first one has no time limit"
        );
        assert!(!slots.enter(true, &mut contexts[task], MayQueue::May, 100 * MS));
    }

    /// One waiter is woken for each slot freed, but only once the pool is below nr again.
    #[test]
    fn a_free_slot_wakes_one_waiter_of_its_class() {
        let (mut slots, mut contexts) = pools(4);
        let task = contexts.take(GroupId::ROOT, IoPrio::DEFAULT).expect("there is room");
        for _ in 0..5 {
            assert!(slots.enter(true, &mut contexts[task], MayQueue::May, 0));
        }
        slots.leave(true);
        assert_eq!(slots.take_wakeups(), [0, 0], "4 are still taken");
        slots.leave(true);
        assert_eq!(slots.take_wakeups(), [0, 1]);
    }

    /// A task that the elevator refuses while the pool is empty is woken by the other pool's free slots.
    #[test]
    fn a_starved_class_is_woken_by_the_other() {
        let (mut slots, mut contexts) = pools(4);
        let task = contexts.take(GroupId::ROOT, IoPrio::DEFAULT).expect("there is room");
        assert!(slots.enter(true, &mut contexts[task], MayQueue::May, 0));
        assert!(!slots.enter(false, &mut contexts[task], MayQueue::No, 0));
        slots.leave(true);
        assert_eq!(slots.take_wakeups(), [1, 1]);
    }

    /// blk-mq's scheduler tags know no classes.
    #[test]
    fn tags_are_shared_by_both_classes() {
        let (mut slots, mut contexts) =
            (RequestSlots::new(Admission::Tags { nr_requests: 3 }), Contexts::new(1));
        let task = contexts.take(GroupId::ROOT, IoPrio::DEFAULT).expect("there is room");
        assert!(slots.enter(true, &mut contexts[task], MayQueue::May, 0));
        assert!(slots.enter(false, &mut contexts[task], MayQueue::May, 0));
        assert!(slots.enter(true, &mut contexts[task], MayQueue::May, 0));
        assert!(!slots.enter(false, &mut contexts[task], MayQueue::Must, 0));
        slots.leave(true);
        assert!(slots.enter(false, &mut contexts[task], MayQueue::May, 0));
    }
}
