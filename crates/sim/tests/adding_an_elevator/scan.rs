//! scan: one way over the disk, then back to the start.

use fairlift_core::collections::{SortedFifo, SortedFifoLinks};
use fairlift_core::elevator::{AnyElevator, Config, Descriptor, Env, Growth, Policy};
use fairlift_core::tunable::{Tunable, Unit};
use fairlift_core::{Dispatch, RequestId};

const OLDEST_AFTER: Tunable = Tunable {
    name: "oldest_after",
    unit: Unit::Requests,
    min: 0,
    max: 10_000,
    default: 0,
    about: "requests served in the order of sectors before the oldest has its turn; 0 = never",
};

pub static SCAN: Descriptor = Descriptor {
    name: "scan",
    about: "one way over the disk, then back to the start",
    profiles: &[],
    tunables: |_| &[OLDEST_AFTER],
    build: |config, _| AnyElevator::of(Scan::new(config), config),
};

struct Scan {
    // Settings.
    oldest_after: u64,
    /// Of all queues.
    links: SortedFifoLinks<RequestId>,
}

/// One queue.
#[derive(Clone, Default)]
struct Queue {
    requests: SortedFifo<RequestId>,
    /// Where the last request served ended.
    position: u64,
    /// Requests served since the last time it was the oldest's turn.
    served: u64,
}

impl Scan {
    fn new(config: &Config) -> Scan {
        Scan { oldest_after: OLDEST_AFTER.default, links: SortedFifoLinks::new(config.requests_max) }
    }

    /// The oldest request, if it is its turn; else the next one upwards; else the lowest.
    fn next(&self, queue: &mut Queue) -> Option<RequestId> {
        if self.oldest_after > 0 && queue.served >= self.oldest_after {
            queue.served = 0;
            return queue.requests.oldest();
        }
        queue.served += 1;
        let upwards = queue.requests.at_or_above(&self.links, queue.position);
        upwards.or_else(|| queue.requests.first())
    }
}

impl Policy for Scan {
    type Queue = Queue;

    fn name(&self) -> &'static str {
        SCAN.name
    }

    fn new_queue(&self) -> Queue {
        Queue::default()
    }

    fn insert(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        queue.requests.insert(&mut self.links, rq, env.requests[rq].sector, 0);
    }

    fn dispatch(&mut self, queue: &mut Queue, env: &mut Env<'_>) -> Dispatch {
        let Some(rq) = self.next(queue) else { return Dispatch::Empty };
        queue.requests.remove(&mut self.links, rq);
        queue.position = env.requests[rq].end();
        Dispatch::Issue(rq)
    }

    fn drain(&mut self, queue: &mut Queue, env: &mut Env<'_>) -> Option<RequestId> {
        let rq = queue.requests.first()?;
        self.remove(queue, env, rq);
        Some(rq)
    }

    fn is_empty(&self, queue: &Queue) -> bool {
        queue.requests.is_empty()
    }

    fn grew(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId, growth: Growth) {
        if growth == Growth::Front {
            queue.requests.resort(&mut self.links, rq, env.requests[rq].sector);
        }
    }

    fn absorbed(&mut self, queue: &mut Queue, _env: &mut Env<'_>, rq: RequestId, gone: RequestId) {
        queue.requests.absorb(&mut self.links, rq, gone);
    }

    fn remove(&mut self, queue: &mut Queue, _env: &mut Env<'_>, rq: RequestId) {
        queue.requests.remove(&mut self.links, rq);
    }

    fn former(&self, queue: &Queue, rq: RequestId) -> Option<RequestId> {
        queue.requests.prev(&self.links, rq)
    }

    fn latter(&self, queue: &Queue, rq: RequestId) -> Option<RequestId> {
        queue.requests.next(&self.links, rq)
    }

    fn tunables(&self) -> &'static [Tunable] {
        &[OLDEST_AFTER]
    }

    fn setting(&mut self, name: &str) -> Option<&mut u64> {
        (name == OLDEST_AFTER.name).then_some(&mut self.oldest_after)
    }
}
