//! Groups: their children and weights are the tree's of [`crate::group`]; bfq itself chooses the next queue.
//!
//! bfq reports to the ledger which group the device worked and idled for, so that its accounts and statistics are right. It is
//! not asked for turns.

use super::Bfq;
use super::queue::{QueueId, SHARED};
use crate::collections::{Id, Tree};
use crate::elevator::Env;
use crate::group::{DEPTH_MAX, GroupId};

/// The largest weight a group can have (`io.bfq.weight`).
const WEIGHT_MAX: u32 = 1000;

/// What is kept of a group.
#[derive(Clone, Copy)]
pub(super) struct GroupState {
    /// Which of those who had its slot it is about.
    epoch: Option<u32>,
    /// Its busy queues, and those with something queued or in the device.
    pub(super) busy: u32,
    pub(super) pending: u32,
    /// Queues its contexts share.
    pub(super) shared: [Option<QueueId>; SHARED],
    /// Sync queues by the sector of their next request.
    pub(super) positions: Tree<QueueId>,
}

impl GroupState {
    pub(super) const NEW: GroupState =
        GroupState { epoch: None, busy: 0, pending: 0, shared: [None; SHARED], positions: Tree::new() };
}

impl Bfq {
    /// A request for `group` came: learn who it is now, and its weight and those above it.
    pub(super) fn meet_group(&mut self, env: &Env<'_>, group: GroupId) {
        let mut at = group;
        for _ in 0..DEPTH_MAX {
            if at == GroupId::ROOT {
                return;
            }
            let (epoch, parent) = (Some(env.rounds.epoch(at)), env.rounds.parent(at));
            let weight = env.rounds.weight(at).min(WEIGHT_MAX);
            if self.groups[at.index()].epoch == epoch {
                self.hierarchy.set_group_weight(at, weight);
            } else {
                self.renew_group(at, parent, weight);
                self.groups[at.index()].epoch = epoch;
            }
            at = parent;
        }
    }

    /// Another group has the slot, so the state of its last group goes. No context has requests in it.
    fn renew_group(&mut self, group: GroupId, parent: GroupId, weight: u32) {
        for index in 0..SHARED {
            if let Some(id) = self.groups[group.index()].shared[index] {
                self.set_unused(id, false);
                self.give_up(id);
            }
        }
        debug_assert!(self.groups[group.index()].pending == 0, "a group that is gone has nothing pending");
        self.groups[group.index()] = GroupState::NEW;
        self.hierarchy.renew_group(group, parent, weight);
    }

    /// Let the ledger know whether `group` has something to do.
    pub(super) fn tell_busy(&self, env: &mut Env<'_>, group: GroupId) {
        if env.rounds.in_use() {
            env.rounds.set_busy(group, self.groups[group.index()].busy > 0);
        }
    }

    /// The turn of `id` is over: bills reach the accounts.
    pub(super) fn tell_turn_over(&self, env: &mut Env<'_>, id: QueueId) {
        if env.rounds.in_use() {
            let queue = self.queue(id);
            let lasted_ns = env.now.saturating_sub(queue.began_ns);
            env.rounds.turn_over(queue.group, queue.group, lasted_ns, env.now);
        }
    }
}
