//! noop: first come, first served; only merging helps the disk. blk-mq's none ([`super::none`]) is the same policy by the rules
//! of that queue: I/O of different priority does not merge, and nothing is filed by sector.
//!
//! Source: Linux 2.6.30 `block/noop-iosched.c` as described in `docs/sources.md`.

use super::{AnyElevator, Config, Descriptor, Dispatch, Env, PerGroup, Placement, Policy, same_priority};
use crate::collections::{List, ListLinks};
use crate::request::{Bio, RequestId};
use crate::tunable::Tunable;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "noop",
    about: "first come, first served; only merging helps the disk",
    profiles: &[],
    tunables: |_| &[],
    build: |config, _| AnyElevator::Noop(PerGroup::new(Noop::new(config), config.groups_max)),
};

/// noop.
#[derive(Debug)]
pub struct Noop {
    name: &'static str,
    /// By the rules of blk-mq?
    blk_mq: bool,
    pub(super) links: ListLinks<RequestId>,
}

impl Noop {
    fn new(config: &Config) -> Noop {
        Noop { name: DESCRIPTOR.name, blk_mq: false, links: ListLinks::new(config.requests_max) }
    }

    /// By the rules of blk-mq, called `name`.
    #[cfg(feature = "lab")]
    pub(super) fn of_blk_mq(config: &Config, name: &'static str) -> Noop {
        Noop { name, blk_mq: true, ..Noop::new(config) }
    }
}

impl Policy for Noop {
    type Queue = List<RequestId>;

    fn name(&self) -> &'static str {
        self.name
    }

    fn new_queue(&self) -> List<RequestId> {
        List::new()
    }

    #[inline]
    fn insert(&mut self, queue: &mut List<RequestId>, _env: &mut Env<'_>, rq: RequestId) {
        queue.push_back(&mut self.links, rq);
    }

    #[inline]
    fn dispatch(&mut self, queue: &mut List<RequestId>, _env: &mut Env<'_>) -> Dispatch {
        queue.pop_front(&mut self.links).map_or(Dispatch::Empty, Dispatch::Issue)
    }

    fn drain(&mut self, queue: &mut List<RequestId>, _env: &mut Env<'_>) -> Option<RequestId> {
        queue.pop_front(&mut self.links)
    }

    fn is_empty(&self, queue: &List<RequestId>) -> bool {
        queue.is_empty()
    }

    fn placement(&self) -> Placement {
        if self.blk_mq { Placement::Tail } else { Placement::Sorted }
    }

    fn watches_device(&self) -> bool {
        false
    }

    fn allow_merge(&mut self, _: &mut List<RequestId>, env: &Env<'_>, rq: RequestId, bio: &Bio) -> bool {
        !self.blk_mq || same_priority(env, rq, bio)
    }

    fn absorbed(&mut self, queue: &mut List<RequestId>, env: &mut Env<'_>, _rq: RequestId, gone: RequestId) {
        self.remove(queue, env, gone);
    }

    fn remove(&mut self, queue: &mut List<RequestId>, _env: &mut Env<'_>, rq: RequestId) {
        queue.remove(&mut self.links, rq);
    }

    fn former(&self, queue: &List<RequestId>, rq: RequestId) -> Option<RequestId> {
        queue.prev(&self.links, rq).filter(|_| !self.blk_mq)
    }

    fn latter(&self, queue: &List<RequestId>, rq: RequestId) -> Option<RequestId> {
        queue.next(&self.links, rq).filter(|_| !self.blk_mq)
    }

    /// The device's own tags; it keeps none back from any context.
    fn tags_min(&self, tags: u32) -> u32 {
        if self.blk_mq { tags } else { 1 }
    }

    fn tunables(&self) -> &'static [Tunable] {
        &[]
    }

    fn setting(&mut self, _name: &str) -> Option<&mut u64> {
        None
    }
}
