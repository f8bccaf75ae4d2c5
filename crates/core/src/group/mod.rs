//! Groups: a tree of whose I/O it is, above the io contexts. One number, the weight, says how much of the device a group
//! gets beside its siblings; `docs/groups.md` has the model and its guarantees.
//!
//! Slot 0 is the root, which is always there. A group's own tasks compete with its child groups under the group's
//! [`GroupParams::leaf_weight`]. A request belongs to the group it was submitted in until it is done: neither moving its
//! context nor removing the group changes that. A removed group takes no new I/O (what still names it goes to the nearest
//! ancestor left) and its slot is free again once its last request is done.

pub mod limit;

use alloc::vec::Vec;
use core::ops::Index;

use crate::collections::Id;
use crate::context::IoClass;

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

/// One group.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    params: GroupParams,
    parent: GroupId,
    /// Is the slot in use (a group, or requests of one that was removed)?
    used: bool,
    removed: bool,
    /// Requests that belong to it and are not done.
    requests: u32,
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
        requests: 0,
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
}

/// The groups of one queue. Slot 0 is the root.
#[derive(Debug)]
pub struct Groups {
    slots: Vec<Group>,
    free: Vec<GroupId>,
    /// Counts the changes of the tree and its weights, for those who keep a copy ([`limit::Limits`]).
    changes: u64,
}

impl Groups {
    /// A table for `capacity` groups beside the root. The only allocation it ever makes.
    pub fn new(capacity: usize) -> Groups {
        let mut slots = alloc::vec![Group::FREE; capacity + 1];
        slots[0].used = true;
        Groups { slots, free: (1..=capacity).rev().map(GroupId::from_index).collect(), changes: 0 }
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
    #[inline]
    pub(crate) fn hold(&mut self, id: GroupId) -> GroupId {
        let id = self.known(id);
        if id != GroupId::ROOT {
            self.slots[id.index()].requests += 1;
        }
        id
    }

    /// One request of `id`, which is not the root, is done.
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
        if group.used && group.removed && group.requests == 0 {
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
