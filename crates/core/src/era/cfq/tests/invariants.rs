//! What must hold between any two hooks; in test builds checked on entry of every one.
//!
//! Only of small instances, as the random streams use: checking goes over all queues.

use std::vec;
use std::vec::Vec;

use super::super::Cfq;
use crate::collections::Id;
use crate::era::cfq::profile::Trees;
use crate::era::cfq::queue::{ASYNC_QUEUES, NOWHERE, ON_TURN};

impl Cfq {
    pub(in crate::era::cfq) fn check(&self) {
        if self.queues.len() > 64 {
            return;
        }
        self.check_trees();
        self.check_counts();
        self.check_owners();
    }

    /// Every busy queue is in exactly the tree it says, and every queue in a tree says so.
    fn check_trees(&self) {
        let mut seen = vec![0; self.queues.len()];
        for (g, group) in self.groups.iter().enumerate() {
            for (t, tree) in group.trees.iter().enumerate() {
                for id in tree.iter(&self.turns) {
                    seen[id.index()] += 1;
                    let queue = self.queue(id);
                    assert_eq!((queue.group.index(), usize::from(queue.tree)), (g, t), "{id:?}");
                }
            }
            for (p, tree) in group.positions.iter().enumerate() {
                for id in tree.iter(&self.places) {
                    let queue = self.queue(id);
                    assert_eq!((queue.group.index(), usize::from(queue.position)), (g, p), "{id:?}");
                    assert!(!queue.is_empty(), "{id:?} has no position");
                }
            }
        }
        for (i, queue) in self.queues.iter().enumerate() {
            assert_eq!(seen[i], u32::from(queue.is_busy() && queue.tree != ON_TURN), "queue {i}");
            let active = self.active.is_some_and(|a| a.index() == i);
            assert!(queue.tree != ON_TURN || active, "queue {i} is not filed");
            assert!(queue.position == NOWHERE || !active, "queue {i} is active and filed");
        }
    }

    /// The sums are the sums, and a queue waits for a turn if it has requests.
    fn check_counts(&self) {
        let (mut queued, mut in_flight) = (0, [0; 2]);
        let mut busy = vec![(0, 0); self.groups.len()];
        for (i, queue) in self.queues.iter().enumerate() {
            queued += queue.requests.len() as u32;
            let of_group = &mut busy[queue.group.index()];
            of_group.0 += u32::from(queue.is_busy());
            of_group.1 += u32::from(queue.counted_rt);
            in_flight[usize::from(queue.sync)] += queue.dispatched;
            assert_eq!(queue.is_empty(), queue.next.is_none(), "queue {i}");
            if queue.is_empty() {
                let may_stay =
                    self.profile.trees == Trees::Workloads && self.active.is_some_and(|a| a.index() == i);
                assert!(may_stay || !queue.is_busy(), "queue {i} is empty and busy");
            } else {
                assert!(queue.is_busy(), "queue {i} has requests and no turn");
            }
        }
        let counted: Vec<_> = self.groups.iter().map(|group| (group.busy, group.busy_rt)).collect();
        assert_eq!(counted, busy);
        assert_eq!((self.queued, self.busy), (queued, busy.iter().map(|(all, _)| all).sum()));
        assert_eq!(self.in_flight, in_flight);
    }

    /// Every context's queue exists and counts it; a free queue is nobody's.
    fn check_owners(&self) {
        let mut users = vec![0; self.queues.len()];
        for state in self.contexts.iter() {
            // A context counts for its queue and for those that one is to be merged into.
            let mut at = state.queue;
            while let Some(id) = at {
                assert!(self.queue(id).taken, "{id:?} is used and free");
                users[id.index()] += 1;
                at = self.queue(id).merge_into;
            }
        }
        for (i, queue) in self.queues.iter().enumerate().filter(|(_, q)| q.sync) {
            assert_eq!(queue.users, users[i], "users of queue {i}");
        }
        for id in self.free.iter() {
            assert!(!self.queue(*id).taken && self.queue(*id).is_empty(), "{id:?} is free and in use");
        }
        // In use, being emptied, or free: none is lost.
        for (i, queue) in self.queues.iter().enumerate() {
            let shared = queue.shared != NOWHERE;
            let active = self.active.is_some_and(|a| a.index() == i);
            let permanent = i == 0 || (!queue.sync && !shared && i + ASYNC_QUEUES >= self.queues.len());
            let in_use = queue.users > 0
                || queue.dispatched > 0
                || !queue.is_empty()
                || permanent
                || (shared && active);
            assert_eq!(in_use, queue.taken, "queue {i}");
        }
    }
}
