//! Coming, going and being served in the tree of [`super::entity`]: how virtual times follow.

use super::entity::{Children, Entity, EntityId, Hierarchy, IDLE_CLASS_GRACE_NS, Place, virtual_of};
use super::timeline::is_after;
use crate::collections::Id;
use crate::context::IoClass;
use crate::group::{DEPTH_MAX, GroupId};

impl Hierarchy {
    // ---- coming, going, being served ----

    /// Queue `id` has something to do and `budget` sectors for it; `waited`: it was away only to wait for its own next request
    /// and delayed no other queue, so it may come back where it left.
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

    /// `id` leaves without debt: its queue has no context, or its group is gone.
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

    /// Forget `group`'s former children: another group has its slot. Each child that is forgotten was added once.
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
