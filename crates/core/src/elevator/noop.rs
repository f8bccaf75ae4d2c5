//! noop: first come, first served; only merging helps the disk.
//!
//! Source: Linux 2.6.30 `block/noop-iosched.c` as described in `docs/sources.md`.

use super::{AnyElevator, Config, Descriptor, Dispatch, Env, PerGroup, Policy};
use crate::collections::{List, ListLinks};
use crate::request::RequestId;
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
    pub(super) links: ListLinks<RequestId>,
}

impl Noop {
    fn new(config: &Config) -> Noop {
        Noop { links: ListLinks::new(config.requests_max) }
    }
}

impl Policy for Noop {
    type Queue = List<RequestId>;

    fn name(&self) -> &'static str {
        DESCRIPTOR.name
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

    fn watches_device(&self) -> bool {
        false
    }

    fn absorbed(&mut self, queue: &mut List<RequestId>, env: &mut Env<'_>, _rq: RequestId, gone: RequestId) {
        self.remove(queue, env, gone);
    }

    fn remove(&mut self, queue: &mut List<RequestId>, _env: &mut Env<'_>, rq: RequestId) {
        queue.remove(&mut self.links, rq);
    }

    fn former(&self, queue: &List<RequestId>, rq: RequestId) -> Option<RequestId> {
        queue.prev(&self.links, rq)
    }

    fn latter(&self, queue: &List<RequestId>, rq: RequestId) -> Option<RequestId> {
        queue.next(&self.links, rq)
    }

    fn tunables(&self) -> &'static [Tunable] {
        &[]
    }

    fn setting(&mut self, _name: &str) -> Option<&mut u64> {
        None
    }
}
