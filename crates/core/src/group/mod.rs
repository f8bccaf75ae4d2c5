//! Groups: a tree of whose I/O it is, above the io contexts. One number, the weight, says how much of the device a group
//! gets beside its siblings; `docs/groups.md` has the model and its guarantees.
//!
//! Slot 0 is the root, which is always there. A group's own tasks compete with its child groups under the group's
//! [`GroupParams::leaf_weight`]. A request belongs to the group it was submitted in until it is done: neither moving its
//! context nor removing the group changes that. A removed group takes no new I/O (what still names it goes to the nearest
//! ancestor left) and its slot is free again once its last request is done.

mod charge;
mod fair;
pub mod limit;
mod occupancy;
mod stats;
#[cfg(test)]
mod tests;
mod tunables;
mod turns;

pub use charge::{Charge, Used};
pub use stats::{GroupStats, IoStats};
pub use tunables::{Settings, TUNABLES};
pub(crate) use turns::{Turn, Turns};

use alloc::vec::Vec;
use core::ops::Index;

use crate::collections::Id;
use crate::context::IoClass;
use crate::tunable::SetError;
use fair::Fair;
use occupancy::Occupancy;

crate::collections::define_id! {
    /// A group's slot in [`Groups`].
    GroupId
}

impl GroupId {
    /// The group of everything that was put in no other.
    pub const ROOT: GroupId = GroupId::constant(0);
}

/// Smallest and largest weight, as cgroup v2's `io.weight` has them.
pub const WEIGHT_RANGE: (u32, u32) = (1, 10_000);
/// The weight of who never asked.
pub const WEIGHT_DEFAULT: u32 = 100;

/// What a group is entitled to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GroupParams {
    /// Share beside the sibling groups and the parent's own tasks, in [`WEIGHT_RANGE`].
    pub weight: u32,
    /// Share of its own tasks beside its child groups, in [`WEIGHT_RANGE`].
    pub leaf_weight: u32,
    /// Strict among siblings: a best-effort group gets nothing while a real-time one has something to do.
    pub class: IoClass,
}

impl Default for GroupParams {
    fn default() -> GroupParams {
        GroupParams { weight: WEIGHT_DEFAULT, leaf_weight: WEIGHT_DEFAULT, class: IoClass::BestEffort }
    }
}

impl GroupParams {
    /// The default with another weight.
    pub fn weight(weight: u32) -> GroupParams {
        GroupParams { weight, ..GroupParams::default() }
    }

    fn check(&self) -> Result<(), GroupError> {
        let allowed = |weight| (WEIGHT_RANGE.0..=WEIGHT_RANGE.1).contains(&weight);
        if allowed(self.weight) && allowed(self.leaf_weight) { Ok(()) } else { Err(GroupError::Weight) }
    }
}

/// Why a change to the tree was refused; nothing changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GroupError {
    /// Every slot is taken: put the tasks in the parent, whose share they then split with its other tasks.
    Full,
    /// No such group, or it was removed.
    Unknown,
    /// A weight outside [`WEIGHT_RANGE`].
    Weight,
    /// A group cannot be moved below itself.
    Circle,
    /// The root can be neither removed nor moved.
    Root,
}

const IO_NONE: IoStats = IoStats { ios: 0, sectors: 0, merged: 0, queued: 0, service_ns: 0, wait_ns: 0 };

/// One group.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    params: GroupParams,
    parent: GroupId,
    /// Is the slot in use (a group, or requests of one that was removed)?
    used: bool,
    removed: bool,
    /// No request of it was inserted yet: the elevator may still have state of who had the slot before.
    pub(crate) new: bool,
    /// Requests that belong to it and are not done.
    requests: u32,
    /// Of these with the elevator, and in the device.
    pub(crate) queued: u32,
    pub(crate) in_flight: u32,
    /// Device time on its account that it was not charged for yet, nanoseconds; used when overruns are charged.
    unpaid_ns: u64,
    pub(crate) stats: GroupStats,
}

impl Group {
    const FREE: Group = Group {
        params: GroupParams {
            weight: WEIGHT_DEFAULT,
            leaf_weight: WEIGHT_DEFAULT,
            class: IoClass::BestEffort,
        },
        parent: GroupId::ROOT,
        used: false,
        removed: false,
        new: true,
        requests: 0,
        queued: 0,
        in_flight: 0,
        unpaid_ns: 0,
        stats: GroupStats { io: [[IO_NONE; 2]; 3], time_ns: 0, dequeued: 0, idle_ns: 0 },
    };

    /// What it is entitled to.
    pub fn params(&self) -> &GroupParams {
        &self.params
    }

    /// Whose child it is; the root is its own parent.
    #[inline]
    pub fn parent(&self) -> GroupId {
        self.parent
    }

    /// Requests that belong to it (not to its children) and are not done. The root's are not counted.
    pub fn requests(&self) -> u32 {
        self.requests
    }

    /// Requests of it with the elevator. Counted once the queue has groups.
    #[inline]
    pub fn queued(&self) -> u32 {
        self.queued
    }

    /// Requests of it in the device. Counted once the queue has groups.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// What it got. Counted once the queue has groups.
    pub fn stats(&self) -> &GroupStats {
        &self.stats
    }
}

/// The groups of one queue. Slot 0 is the root.
#[derive(Debug)]
pub struct Groups {
    slots: Vec<Group>,
    free: Vec<GroupId>,
    fair: Fair,
    settings: Settings,
    occupancy: Occupancy,
    /// Were there ever others than the root? Until then nothing is counted, and elevators need not ask.
    in_use: bool,
    /// Counts the changes of the tree and its weights, for those who keep a copy ([`limit::Limits`]).
    changes: u64,
}

impl Groups {
    /// A table for `capacity` groups beside the root. The only allocation it ever makes.
    pub fn new(capacity: usize) -> Groups {
        let mut slots = alloc::vec![Group::FREE; capacity + 1];
        (slots[0].used, slots[0].new) = (true, false);
        let settings = Settings::DEFAULT;
        let mut fair = Fair::new(slots.len(), settings.group_slice_ns);
        fair.enter(GroupId::ROOT, GroupId::ROOT, &GroupParams::default());
        let free = (1..=capacity).rev().map(GroupId::from_index).collect();
        Groups { slots, free, fair, settings, occupancy: Occupancy::NEW, in_use: false, changes: 0 }
    }

    /// Number of slots, the root included: an elevator's per-group arrays have this length.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// A new group below `parent`.
    ///
    /// # Errors
    /// [`GroupError::Weight`], [`GroupError::Unknown`], [`GroupError::Full`].
    pub fn create(&mut self, parent: GroupId, params: GroupParams) -> Result<GroupId, GroupError> {
        params.check()?;
        self.live(parent)?;
        let id = self.free.pop().ok_or(GroupError::Full)?;
        self.slots[id.index()] = Group { params, parent, used: true, ..Group::FREE };
        self.fair.enter(id, parent, &params);
        self.in_use = true;
        self.changes += 1;
        Ok(id)
    }

    /// Change weights and class (*reweigh*, *reclass*); what was charged so far stays charged at the old weight.
    ///
    /// # Errors
    /// [`GroupError::Weight`], [`GroupError::Unknown`].
    pub fn set_params(&mut self, id: GroupId, params: GroupParams) -> Result<(), GroupError> {
        params.check()?;
        self.live(id)?;
        self.slots[id.index()].params = params;
        self.fair.set_params(id, &params);
        self.changes += 1;
        Ok(())
    }

    /// Make `id` a child of `parent`, with everything below it.
    ///
    /// # Errors
    /// [`GroupError::Root`], [`GroupError::Unknown`], [`GroupError::Circle`].
    pub fn reparent(&mut self, id: GroupId, parent: GroupId) -> Result<(), GroupError> {
        self.live(id)?;
        self.live(parent)?;
        if id == GroupId::ROOT {
            return Err(GroupError::Root);
        }
        if self.path(parent).any(|ancestor| ancestor == id) {
            return Err(GroupError::Circle);
        }
        self.slots[id.index()].parent = parent;
        self.fair.reparent(id, parent);
        self.changes += 1;
        Ok(())
    }

    /// Remove `id`: its children become its parent's. Contexts are moved by the queue.
    pub(crate) fn remove(&mut self, id: GroupId) -> Result<GroupId, GroupError> {
        self.live(id)?;
        if id == GroupId::ROOT {
            return Err(GroupError::Root);
        }
        let parent = self.slots[id.index()].parent;
        for index in 1..self.slots.len() {
            if self.slots[index].used && self.slots[index].parent == id {
                self.slots[index].parent = parent;
                self.fair.reparent(GroupId::from_index(index), parent);
            }
        }
        self.slots[id.index()].removed = true;
        self.changes += 1;
        self.reap(id);
        Ok(parent)
    }

    fn live(&self, id: GroupId) -> Result<(), GroupError> {
        let known = self.slots.get(id.index()).is_some_and(|g| g.used && !g.removed);
        if known { Ok(()) } else { Err(GroupError::Unknown) }
    }

    /// The tunables ([`TUNABLES`]) as they are.
    #[inline]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Set a tunable from text; it holds from the next turn on.
    ///
    /// # Errors
    /// Unknown name, malformed text or a value out of range; the old value stays.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        self.settings.set(name, text)?;
        self.fair.set_quantum(self.settings.group_slice_ns);
        Ok(())
    }

    /// The stored value of a tunable; `None` if there is none of that name.
    pub fn get(&self, name: &str) -> Option<u64> {
        let mut copy = self.settings;
        copy.place(name).map(|value| *value)
    }

    /// Set a tunable to a stored value that [`Tunable::parse`](crate::tunable::Tunable::parse) returned; as
    /// [`Groups::set`].
    pub(crate) fn set_stored(&mut self, name: &str, value: u64) {
        if let Some(place) = self.settings.place(name) {
            *place = value;
            self.fair.set_quantum(self.settings.group_slice_ns);
        }
    }

    /// Were there ever others than the root?
    #[inline]
    pub(crate) fn in_use(&self) -> bool {
        self.in_use
    }

    /// What part of the device is due to the group's own tasks while those that are busy now are, in 2^-20. A group that is
    /// not busy counts as if it were.
    pub fn share(&self, id: GroupId) -> u64 {
        self.fair.share(id)
    }

    // ---- for elevators and the turn keeper ----

    /// The tree, to ask and compare.
    #[inline]
    pub(crate) fn fair(&self) -> &Fair {
        &self.fair
    }

    /// Whose turn it is.
    pub(crate) fn pick(&mut self) -> Option<GroupId> {
        self.fair.pick()
    }

    /// Does `id` have something to do (or is it waited for)? Puts it into the tree or takes it out.
    pub(crate) fn set_busy(&mut self, id: GroupId, busy: bool) {
        if busy == self.fair.is_busy(id) {
            return;
        }
        if busy {
            self.fair.activate(id);
        } else {
            self.fair.deactivate(id);
            self.slots[id.index()].stats.dequeued += 1;
            self.reap(id);
        }
    }

    /// A turn of `id` is over.
    pub(crate) fn charge(&mut self, id: GroupId, used: &Used) {
        self.fair.charge(id, self.settings.charge().of(used));
        self.slots[id.index()].stats.time_ns += used.time_ns;
    }

    /// So many requests are in the device already.
    pub(crate) fn start_counting(&mut self, in_flight: u32) {
        self.occupancy.start(in_flight);
    }

    /// A request goes to the device.
    pub(crate) fn issued(&mut self, now: u64) {
        let pause = self.occupancy.issued(self.settings.group_slice_ns, now);
        self.put_on_account(pause);
    }

    /// A request of `id` is done, or came back.
    pub(crate) fn completed(&mut self, id: GroupId, now: u64) {
        let time_ns = self.occupancy.completed(now);
        self.slots[id.index()].unpaid_ns += time_ns;
    }

    /// The device is at `id`'s disposal from now on, if it was at nobody's.
    pub(crate) fn turn_of(&mut self, id: GroupId, now: u64) {
        self.occupancy.turn_of(id, now);
    }

    /// The turn is over: what `id`, whose it was, has to pay for, nanoseconds.
    pub(crate) fn turn_over(&mut self, id: GroupId, now: u64) -> u64 {
        let pause = self.occupancy.turn_over(self.settings.group_slice_ns, now);
        self.put_on_account(pause);
        self.take_account(id)
    }

    /// What is on `id`'s account, which is empty from now on, nanoseconds.
    pub(crate) fn take_account(&mut self, id: GroupId) -> u64 {
        core::mem::take(&mut self.slots[id.index()].unpaid_ns)
    }

    fn put_on_account(&mut self, pause: Option<(GroupId, u64)>) {
        if let Some((id, time_ns)) = pause {
            self.slots[id.index()].unpaid_ns += time_ns;
        }
    }

    /// `id`, whose turn it is not, pays for what the device still did for it.
    pub(crate) fn charge_rest(&mut self, id: GroupId) {
        if self.settings.charges_overrun() {
            let time_ns = self.take_account(id);
            self.charge(id, &Used { time_ns, ..Used::default() });
        }
    }

    pub(crate) fn slot(&mut self, id: GroupId) -> &mut Group {
        &mut self.slots[id.index()]
    }

    /// Take everybody out of the tree (an elevator leaves).
    pub(crate) fn all_idle(&mut self) {
        for index in 0..self.slots.len() {
            self.set_busy(GroupId::from_index(index), false);
        }
    }

    /// `id` if it is a group, the nearest ancestor left if it was removed, else the root: a stale id costs fairness, never
    /// an error.
    #[inline]
    pub fn known(&self, id: GroupId) -> GroupId {
        match self.slots.get(id.index()) {
            Some(group) if group.used && !group.removed => id,
            // A removed group's parent is alive: removing that one moves it up.
            Some(group) if group.used => group.parent,
            _ => GroupId::ROOT,
        }
    }

    /// Differs after every change of the tree or a weight.
    #[inline]
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    /// `id`, its parent, and so on to the root.
    pub fn path(&self, id: GroupId) -> impl Iterator<Item = GroupId> + '_ {
        let mut at = Some(id);
        core::iter::from_fn(move || {
            let here = at?;
            at = (here != GroupId::ROOT).then(|| self.slots[here.index()].parent);
            Some(here)
        })
    }

    /// All groups, the root first, without those removed.
    pub fn iter(&self) -> impl Iterator<Item = (GroupId, &Group)> {
        let slots = self.slots.iter().enumerate();
        slots.filter(|(_, g)| g.used && !g.removed).map(|(i, g)| (GroupId::from_index(i), g))
    }

    /// One more request of `id`, or of whom it counts for: see [`Groups::known`]. The root's are not counted.
    #[cold] // out of the way of who has no groups
    pub(crate) fn hold(&mut self, id: GroupId) -> GroupId {
        let id = self.known(id);
        if id != GroupId::ROOT {
            self.slots[id.index()].requests += 1;
        }
        id
    }

    /// One request of `id`, which is not the root, is done.
    #[cold] // as `hold`
    pub(crate) fn drop_hold(&mut self, id: GroupId) {
        let group = &mut self.slots[id.index()];
        debug_assert!(group.requests > 0, "group released more often than held");
        group.requests -= 1;
        if group.removed {
            self.reap(id);
        }
    }

    fn reap(&mut self, id: GroupId) {
        let group = &mut self.slots[id.index()];
        if group.used && group.removed && group.requests == 0 && !self.fair.is_busy(id) {
            group.used = false;
            self.free.push(id);
        }
    }
}

impl Index<GroupId> for Groups {
    type Output = Group;
    #[inline]
    fn index(&self, id: GroupId) -> &Group {
        &self.slots[id.index()]
    }
}
