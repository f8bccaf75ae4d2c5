//! Room in the device for the other direction, and in front of the queue for other flows.

use super::flow::FlowId;
use super::{Decision, Fair};
use crate::collections::Id;
use crate::elevator::Env;
use crate::request::Bio;

/// Flows that are looked at.
const LOOKED_AT: usize = 4;

/// Of so many request slots: what a flow may take that has most of them.
pub(super) fn most_of(tags: u32) -> u32 {
    (tags - tags / 4).max(1)
}

impl Fair {
    /// The device has no room for `next`. Where it holds reads and writes apart, it may have some for the other direction: the next flow that
    /// has one of those, if it has nothing there and is ahead of its due by no more than the credit that a flow may have.
    pub(super) fn other_direction(&self, env: &Env<'_>, next: FlowId, in_device: u32) -> Decision {
        if self.model.is_serial() {
            return Decision::Rest;
        }
        let (writes, lag_ns) = (self.sends_write(env, next), self.lag_ns(env));
        let round = &self.groups[self.flows[next.index()].group.index()].round;
        let suits = |flow: &FlowId| {
            let state = &self.flows[flow.index()];
            state.has_requests() && state.in_device == 0 && self.sends_write(env, *flow) != writes
        };
        let found = round.in_order(&self.rounds).take(LOOKED_AT).find(suits);
        match found.filter(|flow| round.is_within(&self.places[flow.index()], lag_ns)) {
            Some(flow) if !(self.sends_write(env, flow) && self.model.paced_until(env.now).is_some()) => {
                self.send(env, flow, in_device)
            }
            _ => Decision::Rest,
        }
    }

    /// How many of `tags` a bio's flow may take. While others want the device, too, and half of the tags are taken, a flow that has three
    /// quarters of its own and the free ones leaves a quarter of all to the others.
    pub(super) fn tags_of(&self, env: &Env<'_>, bio: &Bio, tags: u32) -> u32 {
        let taken = self.queued + self.in_device;
        if 2 * taken < tags || !self.model.is_shared(env.now) {
            return tags;
        }
        let flow = self.slots.find(&self.flows, bio.context, env.group_of(bio), bio.is_sync());
        let flow = &self.flows[flow.index()];
        let own = flow.requests.len() as u32 + flow.in_device;
        let free = tags.saturating_sub(taken);
        if own > 0 && own >= most_of(own + free) { most_of(tags) } else { tags }
    }
}
