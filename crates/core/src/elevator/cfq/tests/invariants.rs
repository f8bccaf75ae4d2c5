//! What must hold between any two hooks; in test builds checked on entry of every one.
//!
//! Only of small instances, as the random streams use: checking goes over all queues.

use std::vec;

use super::super::Cfq;
use crate::collections::Id;
use crate::elevator::cfq::profile::Trees;
use crate::elevator::cfq::queue::{NOWHERE, ON_TURN};

impl Cfq {
    pub(in crate::elevator::cfq) fn check(&self) {
        if self.queues.len() > 40 {
            return;
        }
        self.check_trees();
        self.check_counts();
        self.check_owners();
    }

    /// Every busy queue is in exactly the tree it says, and every queue in a tree says so.
    fn check_trees(&self) {
        let mut seen = vec![0; self.queues.len()];
        for (t, tree) in self.trees.iter().enumerate() {
            for id in tree.iter(&self.turns) {
                seen[id.index()] += 1;
                assert_eq!(usize::from(self.queue(id).tree), t, "{id:?}");
            }
        }
        for (p, tree) in self.positions.iter().enumerate() {
            for id in tree.iter(&self.places) {
                assert_eq!(usize::from(self.queue(id).position), p, "{id:?}");
                assert!(!self.queue(id).is_empty(), "{id:?} has no position");
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
        let (mut queued, mut busy, mut busy_rt, mut in_flight) = (0, 0, 0, [0; 2]);
        for (i, queue) in self.queues.iter().enumerate() {
            queued += queue.sorted.len() as u32;
            busy += u32::from(queue.is_busy());
            busy_rt += u32::from(queue.counted_rt);
            in_flight[usize::from(queue.sync)] += queue.dispatched;
            assert_eq!(queue.sorted.len(), queue.fifo.len(), "queue {i}");
            assert_eq!(queue.is_empty(), queue.next.is_none(), "queue {i}");
            if queue.is_empty() {
                let may_stay =
                    self.profile.trees == Trees::Workloads && self.active.is_some_and(|a| a.index() == i);
                assert!(may_stay || !queue.is_busy(), "queue {i} is empty and busy");
            } else {
                assert!(queue.is_busy(), "queue {i} has requests and no turn");
            }
        }
        assert_eq!((self.queued, self.busy, self.busy_rt), (queued, busy, busy_rt));
        assert_eq!(self.in_flight, in_flight);
    }

    /// Every context's queue exists and counts it; a free queue is nobody's.
    fn check_owners(&self) {
        let mut users = vec![0; self.queues.len()];
        for state in &self.contexts {
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
        for id in &self.free {
            assert!(!self.queue(*id).taken && self.queue(*id).is_empty(), "{id:?} is free and in use");
        }
        // In use, being emptied, or free: none is lost.
        for (i, queue) in self.queues.iter().enumerate() {
            let in_use =
                queue.users > 0 || queue.dispatched > 0 || !queue.is_empty() || !queue.sync || i == 0;
            assert_eq!(in_use, queue.taken, "queue {i}");
        }
    }
}
