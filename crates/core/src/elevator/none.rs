//! none: no scheduler. A request goes to the device as soon as there is a tag of the device's for it.
//!
//! There are no scheduler tags: the host gives its queue as many tags as the device takes requests, so a request that has one can be
//! served at once. What is left is to hand over in order of arrival.
//!
//! Source: Linux 6.12 `block/blk-mq.c` (`blk_mq_try_issue_directly`, `blk_mq_plug_issue_direct`), `block/blk-mq-sched.c`.

use super::{AnyElevator, Config, Descriptor, Dispatch, Env, PerGroup, Placement, Policy, same_priority};
use crate::collections::{List, ListLinks};
use crate::request::{Bio, RequestId};
use crate::tunable::Tunable;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "none",
    about: "no scheduler: straight to the device, in order of arrival",
    profiles: &[],
    tunables: |_| &[],
    build: |config, _| AnyElevator::Direct(PerGroup::blind(Direct::new(config))),
};

/// none.
#[derive(Debug)]
pub struct Direct {
    links: ListLinks<RequestId>,
}

impl Direct {
    fn new(config: &Config) -> Direct {
        Direct { links: ListLinks::new(config.requests_max) }
    }
}

impl Policy for Direct {
    type Queue = List<RequestId>;

    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn new_queue(&self) -> List<RequestId> {
        List::new()
    }

    fn insert(&mut self, queue: &mut List<RequestId>, _env: &mut Env<'_>, rq: RequestId) {
        queue.push_back(&mut self.links, rq);
    }

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
        Placement::Tail
    }

    fn watches_device(&self) -> bool {
        false
    }

    fn allow_merge(&mut self, _: &mut List<RequestId>, env: &Env<'_>, rq: RequestId, bio: &Bio) -> bool {
        same_priority(env, rq, bio)
    }

    fn absorbed(&mut self, queue: &mut List<RequestId>, env: &mut Env<'_>, _rq: RequestId, gone: RequestId) {
        self.remove(queue, env, gone);
    }

    fn remove(&mut self, queue: &mut List<RequestId>, _env: &mut Env<'_>, rq: RequestId) {
        queue.remove(&mut self.links, rq);
    }

    /// The device's own tags, none of which is kept from anybody.
    fn tags_min(&self, tags: u32) -> u32 {
        tags
    }

    fn tunables(&self) -> &'static [Tunable] {
        &[]
    }

    fn setting(&mut self, _name: &str) -> Option<&mut u64> {
        None
    }
}
