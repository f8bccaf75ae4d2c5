//! B-WF2Q+ on the tree of groups: which queue is served next, by weight.
//!
//! Queues and groups are *entities*, children of a group. An entity of weight `w` that is to be served a budget of `b` sectors
//! from the virtual time `S` on finishes at `F = S + b / w`. A service tree (one for each class of each group) has a virtual
//! time `V`, which advances by `served / (sum of weights)`. Of the backlogged entities with `S <= V` the one with the smallest
//! `F` is served next: WF2Q+ (Bennett and Zhang, 1997). The *B* (Valente and Checconi, *High throughput disk scheduling with fair
//! bandwidth distribution*, 2010) is that the sizes of what is served are budgets assigned beforehand: when an entity used
//! less, its next start is `S + used / w`.
//!
//! Who runs out of requests leaves; while its finish is ahead of `V` it is remembered (the *idle* tree) and its weight stays in the
//! sum, so that it comes back with its debt. A group's budget is that of the child it would serve next.
//!
//! **Choice.** If no entity is eligible, `V` jumps to the earliest start. Classes are strict; after 200 ms without it the idle class
//! is asked first once. Groups are best effort.
//!
//! **Overflow.** A virtual time is sectors times 2^22 by weight, wraps, and is compared by difference (see `timeline.rs`).
//! `sectors << 22` fits in `u64` for sectors below 2^42; budgets and charges are below 2^32.

use alloc::vec::Vec;

use super::timeline::{Links, Timeline, is_after};
use crate::MS;
use crate::collections::Id;
use crate::context::IoClass;
use crate::group::GroupId;

pub(super) use id::EntityId;

/// The macro declares public ids; this one stays inside.
#[allow(unreachable_pub)]
mod id {
    crate::collections::define_id! {
        /// A group among its siblings (the first so many), or a queue.
        EntityId
    }
}

/// Virtual time of one sector at weight 1: 2^22.
const SHIFT: u32 = 22;
/// How long the idle class may go without.
pub(super) const IDLE_CLASS_GRACE_NS: u64 = 200 * MS;
/// The weight of groups whose operator said nothing.
pub(super) const GROUP_WEIGHT_DEFAULT: u32 = 100;

/// `sectors` served to `weight`, in virtual time.
#[inline]
pub(super) const fn virtual_of(sectors: u64, weight: u64) -> u64 {
    let weight = if weight == 0 { 1 } else { weight };
    (sectors << SHIFT) / weight
}

/// Where an entity is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// Nowhere, not counted.
    Out,
    /// Backlogged.
    Active,
    /// It has left, and is still remembered.
    Idle,
    /// In service, and nothing else of it is backlogged.
    Serving,
}

#[derive(Clone, Copy)]
pub(super) struct Entity {
    pub(super) parent: GroupId,
    pub(super) class: IoClass,
    pub(super) weight: u32,
    /// Class and weight from its next insertion on.
    pub(super) pending: (IoClass, u32),
    /// How much its return is delayed less: the raise of its weight.
    pub(super) raise: u32,
    pub(super) start: u64,
    pub(super) finish: u64,
    /// Sectors served since `start`.
    pub(super) service: u64,
    /// Sectors it may be served.
    pub(super) budget: u64,
    pub(super) place: Place,
    /// Requests of it and of all below: queued and in the device.
    pub(super) requests: u32,
}

#[derive(Clone, Copy, Default)]
pub(super) struct ServiceTree {
    pub(super) active: Timeline,
    pub(super) idle: Timeline,
    /// Virtual time.
    pub(super) now: u64,
    /// Weights of all that are active, idle or served.
    pub(super) weights: u64,
}

/// A group's children.
#[derive(Clone, Copy, Default)]
pub(super) struct Children {
    pub(super) in_service: Option<EntityId>,
    /// Who would be served next.
    pub(super) next: Option<EntityId>,
    pub(super) trees: [ServiceTree; 3],
}

/// All entities.
pub(super) struct Hierarchy {
    pub(super) entities: Vec<Entity>,
    pub(super) children: Vec<Children>,
    pub(super) links: Links,
    /// When the idle class was asked first for the last time.
    pub(super) idle_class_ns: u64,
}

impl Hierarchy {
    /// For so many groups and queues.
    pub(super) fn new(groups: usize, queues: usize) -> Hierarchy {
        let entity = Entity {
            parent: GroupId::ROOT,
            class: IoClass::BestEffort,
            weight: GROUP_WEIGHT_DEFAULT,
            pending: (IoClass::BestEffort, GROUP_WEIGHT_DEFAULT),
            raise: 1,
            start: 0,
            finish: 0,
            service: 0,
            budget: 0,
            place: Place::Out,
            requests: 0,
        };
        Hierarchy {
            entities: alloc::vec![entity; groups + queues],
            children: alloc::vec![Children::default(); groups],
            links: Links::new(groups + queues),
            idle_class_ns: 0,
        }
    }

    /// The entity of queue number `queue`.
    pub(super) fn queue(&self, queue: usize) -> EntityId {
        EntityId::from_index(self.children.len() + queue)
    }

    /// The number of the queue an entity is; `None`: a group.
    pub(super) fn queue_of(&self, id: EntityId) -> Option<usize> {
        id.index().checked_sub(self.children.len())
    }

    pub(super) fn entity(&self, id: EntityId) -> &Entity {
        &self.entities[id.index()]
    }

    pub(super) fn entity_mut(&mut self, id: EntityId) -> &mut Entity {
        &mut self.entities[id.index()]
    }

    pub(super) fn tree_mut(&mut self, id: EntityId) -> &mut ServiceTree {
        let Entity { parent, class, .. } = self.entities[id.index()];
        &mut self.children[parent.index()].trees[class as usize]
    }

    pub(super) fn tree(&self, id: EntityId) -> &ServiceTree {
        let Entity { parent, class, .. } = *self.entity(id);
        &self.children[parent.index()].trees[class as usize]
    }

    pub(super) fn is_served(&self, id: EntityId) -> bool {
        self.children[self.entity(id).parent.index()].in_service == Some(id)
    }

    // ---- settings ----

    /// `id`, which is in no tree, is a child of `parent` from now on.
    pub(super) fn adopt(&mut self, id: EntityId, parent: GroupId, class: IoClass, weight: u32) {
        self.discard(id);
        let entity = self.entity_mut(id);
        (entity.parent, entity.class, entity.weight) = (parent, class, weight);
        (entity.pending, entity.raise) = ((class, weight), 1);
        (entity.service, entity.start, entity.finish) = (0, 0, 0);
    }

    /// Class and weight from the next insertion on.
    pub(super) fn set_weight(&mut self, id: EntityId, class: IoClass, weight: u32, raise: u32) {
        let entity = self.entity_mut(id);
        (entity.pending, entity.raise) = ((class, weight), raise);
    }

    /// The same at once, for the queue in service.
    pub(super) fn apply_weight(&mut self, id: EntityId) {
        if self.entity(id).place == Place::Serving {
            self.apply_pending(id);
        }
    }

    pub(super) fn apply_pending(&mut self, id: EntityId) {
        let Entity { pending: (class, weight), class: old_class, weight: old, .. } = *self.entity(id);
        if (class, weight) == (old_class, old) {
            return;
        }
        self.tree_mut(id).weights -= u64::from(old);
        (self.entity_mut(id).class, self.entity_mut(id).weight) = (class, weight);
        let tree = self.tree_mut(id);
        tree.weights += u64::from(weight);
        let now = tree.now;
        if class != old_class {
            self.entity_mut(id).start = now;
        }
    }

    // ---- asking ----

    /// Is it backlogged or served?
    #[cfg(test)]
    pub(super) fn is_active(&self, id: EntityId) -> bool {
        matches!(self.entity(id).place, Place::Active | Place::Serving)
    }

    /// What `id` may still be served of its budget, sectors.
    pub(super) fn budget_left(&self, id: EntityId) -> u64 {
        let entity = self.entity(id);
        entity.budget.saturating_sub(entity.service)
    }

    pub(super) fn budget(&self, id: EntityId) -> u64 {
        self.entity(id).budget
    }

    pub(super) fn service(&self, id: EntityId) -> u64 {
        self.entity(id).service
    }

    /// Would the root's next child be another than the one it serves?
    pub(super) fn root_would_switch(&self) -> bool {
        let root = &self.children[GroupId::ROOT.index()];
        root.next.is_some() && root.next != root.in_service
    }

    /// The weights two queues are compared by: their own in one group, else those of their groups (the root has none).
    pub(super) fn rival_weights(&self, one: EntityId, other: EntityId) -> (u32, u32) {
        let (a, b) = (self.entity(one), self.entity(other));
        if a.parent == b.parent {
            return (a.weight, b.weight);
        }
        let of = |entity: &Entity| match entity.parent {
            GroupId::ROOT => entity.weight,
            parent => self.entity(self.group_entity(parent)).weight,
        };
        (of(a), of(b))
    }

    pub(super) fn group_entity(&self, group: GroupId) -> EntityId {
        EntityId::from_index(group.index())
    }

    /// Who among `group`'s children is next.
    pub(super) fn candidate(&mut self, group: GroupId) -> Option<EntityId> {
        let children = &mut self.children[group.index()];
        let is_served = children.in_service.is_some();
        for tree in &mut children.trees {
            let Some(earliest) = tree.active.earliest_start(&self.links) else { continue };
            let now = if is_after(earliest, tree.now) { earliest } else { tree.now };
            if !is_served {
                tree.now = now;
            }
            return tree.active.first_eligible(&self.links, now);
        }
        None
    }
}
