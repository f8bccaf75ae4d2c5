//! noop: first come, first served; only merging helps the disk. Each group has a queue of its own.
//!
//! Source: Linux 2.6.30 `block/noop-iosched.c` as described in `docs/sources.md`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::{Config, Descriptor, Dispatch, Elevator, Env, Grouping, first_occupied};
use crate::collections::{Id, List, ListLinks};
use crate::group::GroupId;
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
    /// By group.
    queues: Vec<List<RequestId>>,
    links: ListLinks<RequestId>,
    /// Where draining goes on.
    drained: usize,
}

impl Noop {
    fn new(config: &Config) -> Noop {
        Noop {
            queues: alloc::vec![List::new(); config.groups_max.max(1)],
            links: ListLinks::new(config.requests_max),
            drained: 0,
        }
    }

    fn queue_of(&self, env: &Env<'_>, rq: RequestId) -> &List<RequestId> {
        &self.queues[env.requests[rq].group.index()]
    }
}

impl Elevator for Noop {
    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn grouping(&self) -> Grouping {
        Grouping::Queues
    }

    fn insert(&mut self, env: &mut Env<'_>, rq: RequestId) {
        // Where there is only the root, the request need not be looked at.
        let queue = match &mut self.queues[..] {
            [root] => root,
            queues => &mut queues[env.requests[rq].group.index()],
        };
        queue.push_back(&mut self.links, rq);
    }

    fn dispatch(&mut self, env: &mut Env<'_>) -> Dispatch {
        self.dispatch_group(env, GroupId::ROOT)
    }

    fn dispatch_group(&mut self, _env: &mut Env<'_>, group: GroupId) -> Dispatch {
        self.queues[group.index()].pop_front(&mut self.links).map_or(Dispatch::Empty, Dispatch::Issue)
    }

    fn drain(&mut self, _env: &mut Env<'_>) -> Option<RequestId> {
        let Noop { queues, links, drained } = self;
        let group = first_occupied(drained, queues.len(), |group| queues[group].is_empty())?;
        queues[group].pop_front(links)
    }

    fn is_empty(&self) -> bool {
        self.queues.iter().all(List::is_empty)
    }

    fn watches_device(&self) -> bool {
        false
    }

    fn absorbed(&mut self, env: &mut Env<'_>, _rq: RequestId, gone: RequestId) {
        self.queues[env.requests[gone].group.index()].remove(&mut self.links, gone);
    }

    fn former(&self, env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        self.queue_of(env, rq).prev(&self.links, rq)
    }

    fn latter(&self, env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        self.queue_of(env, rq).next(&self.links, rq)
    }

    fn tunables(&self) -> &'static [Tunable] {
        &[]
    }

    fn setting(&mut self, _name: &str) -> Option<&mut u64> {
        None
    }
}
