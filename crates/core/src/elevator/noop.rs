//! noop: first come, first served; only merging helps the disk.
//!
//! Source: Linux 2.6.30 `block/noop-iosched.c` as described in `docs/sources.md`.

use alloc::boxed::Box;

use super::{Config, Descriptor, Dispatch, Elevator, Env};
use crate::collections::{List, ListLinks};
use crate::request::RequestId;
use crate::tunable::Tunable;

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "noop",
    about: "first come, first served; only merging helps the disk",
    profiles: &[],
    tunables: |_| &[],
    build: |config, _| Box::new(Noop::new(config)),
};

struct Noop {
    queue: List<RequestId>,
    links: ListLinks<RequestId>,
}

impl Noop {
    fn new(config: &Config) -> Noop {
        Noop { queue: List::new(), links: ListLinks::new(config.requests_max) }
    }
}

impl Elevator for Noop {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn insert(&mut self, _env: &mut Env<'_>, rq: RequestId) {
        self.queue.push_back(&mut self.links, rq);
    }

    fn dispatch(&mut self, _env: &mut Env<'_>) -> Dispatch {
        self.queue.pop_front(&mut self.links).map_or(Dispatch::Empty, Dispatch::Issue)
    }

    fn drain(&mut self, _env: &mut Env<'_>) -> Option<RequestId> {
        self.queue.pop_front(&mut self.links)
    }

    fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn watches_device(&self) -> bool {
        false
    }

    fn absorbed(&mut self, _env: &mut Env<'_>, _rq: RequestId, gone: RequestId) {
        self.queue.remove(&mut self.links, gone);
    }

    fn former(&self, _env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        self.queue.prev(&self.links, rq)
    }

    fn latter(&self, _env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        self.queue.next(&self.links, rq)
    }

    fn tunables(&self) -> &'static [Tunable] {
        &[]
    }

    fn setting(&mut self, _name: &str) -> Option<&mut u64> {
        None
    }
}
