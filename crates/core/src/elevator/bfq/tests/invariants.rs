//! What must hold between any two hooks; in test builds checked on entry of every one.
//!
//! Only of small instances, as the random streams use: checking goes over all queues.

use std::vec;

use super::super::entity::{EntityId, Hierarchy, Place};
use super::super::{Bfq, Queue};
use crate::collections::Id;

impl Bfq {
    pub(in crate::elevator::bfq) fn check(&self) {
        if self.queues.len() > 96 {
            return;
        }
        self.hierarchy.check();
        self.check_counts();
        self.check_places();
        self.check_owners();
    }

    /// The sums are the sums.
    fn check_counts(&self) {
        let (mut queued, mut in_driver, mut raised) = (0, 0, 0);
        let (mut busy, mut levels) = ([0; 3], [0; 8]);
        let mut groups = vec![(0, 0); self.groups.len()];
        for (i, queue) in self.queues.iter().enumerate() {
            queued += queue.requests.len() as u32;
            in_driver += queue.dispatched;
            let of_group = &mut groups[queue.group.index()];
            of_group.0 += u32::from(queue.busy);
            of_group.1 += u32::from(queue.pending);
            assert_eq!(queue.pending, queue.busy || queue.dispatched > 0, "queue {i}");
            if queue.busy {
                busy[queue.class() as usize] += 1;
                raised += u32::from(queue.raise.is_raised());
            }
            if queue.pending && !queue.raise.is_raised() {
                levels[usize::from(queue.ioprio.level())] += 1;
            }
        }
        assert_eq!((self.queued, self.in_driver, self.raised), (queued, in_driver, raised));
        assert_eq!((self.busy, self.levels), (busy, levels));
        assert_eq!(self.groups.iter().map(|g| (g.busy, g.pending)).collect::<std::vec::Vec<_>>(), groups);
        assert_eq!(self.pending_groups as usize, groups.iter().filter(|(_, pending)| *pending > 0).count());
    }

    /// A queue with requests is busy; one that is busy waits for its turn or is in service.
    fn check_places(&self) {
        let mut waiting = vec![0; self.queues.len()];
        for id in self.waiting.iter(&self.waiting_links) {
            waiting[id.index()] += 1;
        }
        for (i, queue) in self.queues.iter().enumerate() {
            let serving = self.in_service.is_some_and(|id| id.index() == i);
            assert_eq!(queue.is_empty(), queue.next.is_none(), "queue {i}");
            assert!(queue.is_empty() || queue.busy, "queue {i} has requests and no turn");
            // One that was preempted while it was waited for keeps its place.
            let is_awaited = queue.sync && queue.users > 0;
            assert!(
                !queue.busy || serving || !queue.is_empty() || is_awaited,
                "queue {i} is busy with nothing"
            );
            assert_eq!(waiting[i], i32::from(queue.busy && !serving), "queue {i} waits");
            let entity = self.hierarchy.queue(i);
            assert_eq!(self.hierarchy.is_active(entity), queue.busy, "queue {i} is backlogged");
        }
        assert!(self.timer_ns.is_none() || self.in_service.is_some(), "the wait is for somebody");
    }

    /// Every context's queue exists and counts it; a free queue is nobody's.
    fn check_owners(&self) {
        let mut users = vec![0; self.queues.len()];
        for id in self.contexts.iter().filter_map(|state| state.queue) {
            assert!(self.queue(id).taken, "{id:?} is used and free");
            users[id.index()] += 1;
        }
        for (i, queue) in self.queues.iter().enumerate() {
            let Queue { taken, shared, waker, .. } = *queue;
            assert_eq!(queue.users, users[i], "users of queue {i}");
            let in_use = queue.users > 0 || queue.dispatched > 0 || queue.busy || shared.is_some();
            assert_eq!(in_use, taken, "queue {i}");
            if let Some(waker) = waker {
                let woken = self.queue(waker).woken.iter(&self.woken_links);
                assert_eq!(woken.filter(|id| id.index() == i).count(), 1, "queue {i} is woken");
            }
        }
        assert_eq!(self.free.len(), self.queues.iter().filter(|queue| !queue.taken).count());
    }
}

impl Hierarchy {
    /// Start, finish and the tree's virtual time.
    pub(in crate::elevator::bfq) fn times(&self, id: EntityId) -> (u64, u64, u64) {
        (self.entity(id).start, self.entity(id).finish, self.tree(id).now)
    }

    /// Each entity is where it says, weights add up, and each group with backlogged children is backlogged itself.
    pub(in crate::elevator::bfq) fn check(&self) {
        let mut seen = vec![0; self.entities.len()];
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
