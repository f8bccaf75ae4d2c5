//! Who may take a scheduler tag. Without a limit a queue that sends many requests would take them all, and the others would wait
//! outside, where no weight counts.
//!
//! Sync reads may take all tags, sync writes three quarters, async I/O half; three eighths of that while a queue is raised. Each group
//! on the way to the queue, and the queue itself, has the part of it that is its weight's among those that have something to do.
//! A queue that has that many already gets only the last tag: one while all others are free.
//!
//! Source: Linux 6.12 and 6.18 `block/bfq-iosched.c` (`bfq_limit_depth`, `bfqq_request_over_limit`).

use super::Bfq;
use super::entity::{EntityId, Hierarchy, Place};
use super::queue::QueueId;
use crate::collections::Id;
use crate::elevator::Env;
use crate::group::{DEPTH_MAX, GroupId};
use crate::request::{Bio, Op};

/// What classes weigh by: a queue counts those of higher classes so many times, at each step.
const LEVELS: u64 = 8;

impl Bfq {
    /// How many of `tags` may be taken when `bio` takes one.
    pub(super) fn tags_of(&self, env: &Env<'_>, bio: &Bio, tags: u32) -> u32 {
        let limit = limit_of(bio, self.raised > 0, tags);
        let queue = self.find_queue(env.contexts, bio.context, env.group_of(bio), bio.is_sync());
        if queue.is_some_and(|id| self.has_its_part(id, limit)) { 1 } else { limit }
    }

    /// Does queue `id`, or a group above it, hold its part of `limit` tags?
    fn has_its_part(&self, id: QueueId, limit: u32) -> bool {
        let mut path = [self.entity(id); DEPTH_MAX + 1];
        let mut length = 1;
        let mut parent = self.queue(id).group;
        while parent != GroupId::ROOT && length < path.len() {
            path[length] = self.hierarchy.group_entity(parent);
            parent = self.hierarchy.entity(path[length]).parent;
            length += 1;
        }
        if path[..length].iter().any(|at| self.hierarchy.entity(*at).place == Place::Out) {
            return false; // it must be known that there is something to do
        }
        let mut part = u64::from(limit);
        path[..length].iter().rev().any(|at| {
            let weights = match *at == path[0] {
                true => self.hierarchy.weights_up_to(*at),
                false => self.hierarchy.tree(*at).weights,
            };
            let entity = self.hierarchy.entity(*at);
            part = (part * u64::from(entity.weight) + weights / 2).checked_div(weights).unwrap_or(part);
            u64::from(entity.requests) >= part
        })
    }
}

impl Hierarchy {
    /// The weights that a queue's own is a part of: of its class, and of higher ones many times.
    fn weights_up_to(&self, id: EntityId) -> u64 {
        let entity = self.entity(id);
        let trees = &self.children[entity.parent.index()].trees[..=entity.class as usize];
        trees.iter().fold(0, |sum, tree| sum * LEVELS + tree.weights)
    }

    /// Queue `id` has a request more.
    pub(super) fn took_request(&mut self, id: EntityId) {
        self.each_upwards(id, |requests| *requests += 1);
    }

    /// One of its requests is gone.
    pub(super) fn gave_request(&mut self, id: EntityId) {
        self.each_upwards(id, |requests| {
            debug_assert!(*requests > 0, "more requests leave than came");
            *requests = requests.saturating_sub(1);
        });
    }

    fn each_upwards(&mut self, id: EntityId, change: impl Fn(&mut u32)) {
        let mut at = id;
        for _ in 0..=DEPTH_MAX {
            change(&mut self.entity_mut(at).requests);
            match self.entity(at).parent {
                GroupId::ROOT => return,
                parent => at = self.group_entity(parent),
            }
        }
    }
}

/// The tags for I/O like `bio`, if it is alone.
fn limit_of(bio: &Bio, raised: bool, tags: u32) -> u32 {
    if bio.is_sync() && bio.op == Op::Read {
        return tags;
    }
    let all = u64::from(tags);
    let limit = match (raised, bio.is_sync()) {
        (false, true) => all * 3 / 4,
        (false, false) => all / 2,
        (true, true) => all * 6 / 16,
        (true, false) => all * 3 / 16,
    };
    limit.max(1) as u32 // at most `tags`
}
