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
//! **Choice.** With nobody eligible `V` jumps to the earliest start. Classes are strict; after 200 ms without it the idle class
//! is asked first once. Groups are best effort.
//!
//! **Overflow.** A virtual time is sectors times 2^22 by weight, wraps, and is compared by difference (see `timeline.rs`).
//! `sectors << 22` fits in `u64` for sectors below 2^42; budgets and charges are below 2^32.

use alloc::vec::Vec;

use super::timeline::{Links, Timeline, is_after};
use crate::MS;
use crate::collections::Id;
use crate::context::IoClass;
use crate::group::{DEPTH_MAX, GroupId};

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
const fn virtual_of(sectors: u64, weight: u64) -> u64 {
    let weight = if weight == 0 { 1 } else { weight };
    (sectors << SHIFT) / weight
}

/// Where an entity is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
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
struct Entity {
    parent: GroupId,
    class: IoClass,
    weight: u32,
    /// Class and weight from its next insertion on.
    pending: (IoClass, u32),
    /// How much its return is delayed less: the raise of its weight.
    raise: u32,
    start: u64,
    finish: u64,
    /// Sectors served since `start`.
    service: u64,
    /// Sectors it may be served.
    budget: u64,
    place: Place,
}

#[derive(Clone, Copy, Default)]
struct ServiceTree {
    active: Timeline,
    idle: Timeline,
    /// Virtual time.
    now: u64,
    /// Weights of all that are active, idle or served.
    weights: u64,
}

/// A group's children.
#[derive(Clone, Copy, Default)]
struct Children {
    in_service: Option<EntityId>,
    /// Who would be served next.
    next: Option<EntityId>,
    trees: [ServiceTree; 3],
}

/// All entities.
pub(super) struct Hierarchy {
    entities: Vec<Entity>,
    children: Vec<Children>,
    links: Links,
    /// When the idle class was asked first for the last time.
    idle_class_ns: u64,
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

    fn entity(&self, id: EntityId) -> &Entity {
        &self.entities[id.index()]
    }

    fn entity_mut(&mut self, id: EntityId) -> &mut Entity {
        &mut self.entities[id.index()]
    }

    fn tree_mut(&mut self, id: EntityId) -> &mut ServiceTree {
        let Entity { parent, class, .. } = self.entities[id.index()];
        &mut self.children[parent.index()].trees[class as usize]
    }

    fn tree(&self, id: EntityId) -> &ServiceTree {
        let Entity { parent, class, .. } = *self.entity(id);
        &self.children[parent.index()].trees[class as usize]
    }

    fn is_served(&self, id: EntityId) -> bool {
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

    fn apply_pending(&mut self, id: EntityId) {
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

    fn group_entity(&self, group: GroupId) -> EntityId {
        EntityId::from_index(group.index())
    }

    /// Who among `group`'s children is next.
    fn candidate(&mut self, group: GroupId) -> Option<EntityId> {
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

    // ---- coming, going, being served ----

    /// Queue `id` has something to do and `budget` sectors for it; `waited`: it was away only to wait for its own next request
    /// and held nobody up, so it may come back where it left.
    pub(super) fn activate(&mut self, id: EntityId, budget: u64, waited: bool) {
        let entity = self.entity_mut(id);
        (entity.budget, entity.service) = (budget, 0);
        self.enter(id, waited);
        self.update_above(self.entity(id).parent, waited);
    }

    /// Queue `id`, which is not served, has nothing to do any more.
    pub(super) fn deactivate(&mut self, id: EntityId) {
        self.retire(id);
        self.update_above(self.entity(id).parent, false);
    }

    /// Queue `id`, which is backlogged or served, has another budget.
    pub(super) fn set_budget(&mut self, id: EntityId, budget: u64) {
        self.entity_mut(id).budget = budget;
        if self.entity(id).place == Place::Active {
            self.reposition(id);
            self.update_above(self.entity(id).parent, false);
        }
    }

    /// `id` leaves without debt: its queue is nobody's, or its group is gone.
    pub(super) fn discard(&mut self, id: EntityId) {
        let (weight, place) = (u64::from(self.entity(id).weight), self.entity(id).place);
        debug_assert!(!self.is_served(id) || place == Place::Out);
        if place == Place::Out {
            return;
        }
        self.take_out(id);
        self.entity_mut(id).place = Place::Out;
        self.tree_mut(id).weights -= weight;
        if place == Place::Active {
            self.update_above(self.entity(id).parent, false);
        }
    }

    /// Nobody remembers `group`'s former children: another group has its slot. Each that is thrown out once came in.
    pub(super) fn renew_group(&mut self, group: GroupId, parent: GroupId, weight: u32) {
        for class in 0..3 {
            while let Some(id) = self.children[group.index()].trees[class].idle.first(&self.links) {
                self.discard(id);
            }
        }
        self.children[group.index()] = Children::default();
        self.adopt(self.group_entity(group), parent, IoClass::BestEffort, weight);
    }

    /// What `group` weighs from its next insertion on.
    pub(super) fn set_group_weight(&mut self, group: GroupId, weight: u32) {
        self.set_weight(self.group_entity(group), IoClass::BestEffort, weight, 1);
    }

    /// `sectors` of `id`'s were served: time goes on at each level.
    pub(super) fn serve(&mut self, id: EntityId, sectors: u64) {
        let mut at = id;
        for _ in 0..=DEPTH_MAX {
            self.entity_mut(at).service += sectors;
            let tree = self.tree_mut(at);
            tree.now = tree.now.wrapping_add(virtual_of(sectors, tree.weights));
            let (now, idle) = (tree.now, tree.idle);
            if let Some(first) = idle.first(&self.links)
                && !is_after(self.entity(first).finish, now)
            {
                self.discard(first);
            }
            match self.entity(at).parent {
                GroupId::ROOT => break,
                parent => at = self.group_entity(parent),
            }
        }
    }

    /// Who is served next, from the root down; it is in service from now on.
    pub(super) fn choose(&mut self, now_ns: u64) -> Option<EntityId> {
        let mut group = GroupId::ROOT;
        for _ in 0..=DEPTH_MAX {
            let id = self.overdue_idle_class(group, now_ns).or_else(|| self.candidate(group))?;
            self.children[group.index()].in_service = Some(id);
            if self.queue_of(id).is_some() {
                self.start_serving(id);
                self.update_above(group, false);
                return Some(id);
            }
            group = GroupId::from_index(id.index());
        }
        None
    }

    /// Take `id`, which is chosen, out of the tree it waits in.
    fn start_serving(&mut self, id: EntityId) {
        self.take_out(id);
        self.entity_mut(id).place = Place::Serving;
    }

    /// One of the idle class, if that has not been asked for too long.
    fn overdue_idle_class(&mut self, group: GroupId, now_ns: u64) -> Option<EntityId> {
        if now_ns < self.idle_class_ns.saturating_add(IDLE_CLASS_GRACE_NS) {
            return None;
        }
        let tree = &mut self.children[group.index()].trees[IoClass::Idle as usize];
        let earliest = tree.active.earliest_start(&self.links)?;
        if is_after(earliest, tree.now) {
            tree.now = earliest;
        }
        self.idle_class_ns = now_ns;
        tree.active.first_eligible(&self.links, tree.now)
    }

    /// `sectors` instead of what was really served count for queue `id`, which is in service: it pays for its time.
    pub(super) fn charge_more(&mut self, id: EntityId, sectors: u64) {
        let more = sectors.saturating_sub(self.entity(id).service);
        if more > 0 {
            self.serve(id, more);
        }
    }

    /// Queue `id` is served no more. It has more to do (with this budget), or leaves.
    pub(super) fn end_service(&mut self, id: EntityId, budget: Option<u64>) {
        let mut at = id;
        for _ in 0..=DEPTH_MAX {
            self.settle(at);
            let parent = self.entity(at).parent;
            self.children[parent.index()].in_service = None;
            match parent {
                GroupId::ROOT => break,
                parent => at = self.group_entity(parent),
            }
        }
        match budget {
            Some(budget) => {
                self.entity_mut(id).budget = budget;
                self.reposition(id);
            }
            None => self.retire(id),
        }
        self.update_above(self.entity(id).parent, false);
    }

    // ---- steps ----

    /// What was served counts: the next start is behind it.
    fn settle(&mut self, id: EntityId) {
        let entity = self.entity_mut(id);
        entity.start = entity.start.wrapping_add(virtual_of(entity.service, entity.weight.into()));
        (entity.finish, entity.service) = (entity.start, 0);
    }

    fn enter(&mut self, id: EntityId, waited: bool) {
        let now = self.tree(id).now;
        let Entity { finish, place, weight, .. } = *self.entity(id);
        debug_assert!(matches!(place, Place::Out | Place::Idle));
        let back = waited && is_after(now, finish);
        let base = if back { finish } else { now };
        let start = if place == Place::Idle {
            self.take_out(id);
            if is_after(finish, base) { finish } else { base }
        } else {
            self.tree_mut(id).weights += u64::from(weight);
            base
        };
        self.entity_mut(id).start = start;
        self.apply_pending(id);
        let now = self.tree(id).now;
        let entity = self.entity_mut(id);
        let finish = entity.start.wrapping_add(virtual_of(entity.budget, entity.weight.into()));
        let late = if back && is_after(now, finish) { now.wrapping_sub(finish) } else { 0 };
        let forgiven = late / u64::from(entity.raise.max(1));
        entity.start = entity.start.wrapping_add(forgiven);
        self.file(id);
    }

    /// Into the tree of the backlogged, with its start as it is.
    fn file(&mut self, id: EntityId) {
        let entity = self.entity_mut(id);
        entity.finish = entity.start.wrapping_add(virtual_of(entity.budget, entity.weight.into()));
        entity.place = Place::Active;
        let Entity { parent, class, start, finish, .. } = *entity;
        let tree = &mut self.children[parent.index()].trees[class as usize];
        tree.active.insert(&mut self.links, id, start, finish);
    }

    /// `id`'s start, budget, weight or class changed.
    fn reposition(&mut self, id: EntityId) {
        self.take_out(id);
        self.apply_pending(id);
        self.file(id);
    }

    /// Out of the tree it is in, if it is in one.
    fn take_out(&mut self, id: EntityId) {
        let Entity { parent, class, place, .. } = *self.entity(id);
        let tree = &mut self.children[parent.index()].trees[class as usize];
        match place {
            Place::Active => tree.active.remove(&mut self.links, id),
            Place::Idle => tree.idle.remove(&mut self.links, id),
            Place::Out | Place::Serving => {}
        }
    }

    /// `id` has nothing to do: remembered while it has had more than its due.
    fn retire(&mut self, id: EntityId) {
        self.take_out(id);
        self.settle(id);
        let Entity { parent, class, weight, start, finish, .. } = *self.entity(id);
        let tree = &mut self.children[parent.index()].trees[class as usize];
        let remembered = is_after(finish, tree.now);
        if remembered {
            tree.idle.insert(&mut self.links, id, start, finish);
        } else {
            tree.weights -= u64::from(weight);
        }
        self.entity_mut(id).place = if remembered { Place::Idle } else { Place::Out };
    }

    /// The children of `group` changed: who is next, what it would be served, and so on upwards.
    fn update_above(&mut self, from: GroupId, waited: bool) {
        let mut group = from;
        for _ in 0..=DEPTH_MAX {
            let next = self.candidate(group);
            self.children[group.index()].next = next;
            if group == GroupId::ROOT {
                return;
            }
            let id = self.group_entity(group);
            if let Some(next) = next {
                self.entity_mut(id).budget = self.entity(next).budget;
            }
            match (next.is_some(), self.is_served(id), self.entity(id).place) {
                (true, _, Place::Active) => self.reposition(id),
                (true, true, _) => {
                    self.settle(id);
                    self.reposition(id);
                }
                (true, false, Place::Serving) => self.reposition(id),
                (true, false, _) => self.enter(id, waited),
                (false, true, Place::Active) => self.start_serving(id),
                (false, false, Place::Active | Place::Serving) => self.retire(id),
                (false, ..) => {}
            }
            group = self.entity(id).parent;
        }
    }
}

#[cfg(test)]
impl Hierarchy {
    /// Start, finish and the tree's virtual time.
    pub(super) fn times(&self, id: EntityId) -> (u64, u64, u64) {
        (self.entity(id).start, self.entity(id).finish, self.tree(id).now)
    }

    /// Each entity is where it says, weights add up, and each group with backlogged children is backlogged itself.
    pub(super) fn check(&self) {
        let mut seen = std::vec![0; self.entities.len()];
        for (g, children) in self.children.iter().enumerate() {
            for (c, tree) in children.trees.iter().enumerate() {
                let mut weights = 0;
                for (line, place) in [(&tree.active, Place::Active), (&tree.idle, Place::Idle)] {
                    for id in line.all(&self.links) {
                        let entity = self.entity(id);
                        assert_eq!((entity.parent.index(), entity.class as usize), (g, c), "{id:?}");
                        assert_eq!(entity.place, place, "{id:?}");
                        seen[id.index()] += 1;
                        weights += u64::from(entity.weight);
                    }
                }
                if let Some(id) = children.in_service
                    && self.entity(id).place == Place::Serving
                    && self.entity(id).class as usize == c
                {
                    weights += u64::from(self.entity(id).weight);
                    seen[id.index()] += 1;
                }
                assert_eq!(tree.weights, weights, "group {g} class {c}");
            }
            let backlogged = children.trees.iter().any(|tree| !tree.active.is_empty());
            assert_eq!(children.next.is_some(), backlogged, "group {g}");
            if g > 0 {
                let id = EntityId::from_index(g);
                assert_eq!(self.entity(id).place == Place::Active, backlogged, "group {g}");
                assert_eq!(self.is_served(id), children.in_service.is_some(), "group {g}");
            }
        }
        for (i, entity) in self.entities.iter().enumerate() {
            assert_eq!(seen[i], i32::from(entity.place != Place::Out), "entity {i} {:?}", entity.place);
        }
    }
}
