//! scan: one way over the disk, then back to the start.

use fairlift_core::collections::{List, ListLinks, Tree, TreeLinks};
use fairlift_core::elevator::{Config, Descriptor, Env, Growth};
use fairlift_core::tunable::{Tunable, Unit};
use fairlift_core::{Dispatch, Elevator, RequestId};

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
    build: |config, _| Box::new(Scan::new(config)),
};

struct Scan {
    // Settings.
    oldest_after: u64,
    // Run-time data.
    /// By first sector.
    sorted: Tree<RequestId>,
    sorted_links: TreeLinks<RequestId, u64>,
    /// By arrival.
    arrivals: List<RequestId>,
    arrivals_links: ListLinks<RequestId>,
    /// Where the last request served ended.
    position: u64,
    /// Requests served since the last time it was the oldest's turn.
    served: u64,
}

impl Scan {
    fn new(config: &Config) -> Scan {
        Scan {
            oldest_after: OLDEST_AFTER.default,
            sorted: Tree::new(),
            sorted_links: TreeLinks::new(config.requests_max),
            arrivals: List::new(),
            arrivals_links: ListLinks::new(config.requests_max),
            position: 0,
            served: 0,
        }
    }

    /// The oldest request, if it is its turn; else the next one upwards; else the lowest.
    fn next(&mut self) -> Option<RequestId> {
        if self.oldest_after > 0 && self.served >= self.oldest_after {
            self.served = 0;
            return self.arrivals.front();
        }
        self.served += 1;
        let upwards = self.sorted.lower_bound(&self.sorted_links, self.position);
        upwards.or_else(|| self.sorted.first())
    }

    fn remove(&mut self, rq: RequestId) {
        self.sorted.remove(&mut self.sorted_links, rq);
        self.arrivals.remove(&mut self.arrivals_links, rq);
    }
}

impl Elevator for Scan {
    fn name(&self) -> &'static str {
        SCAN.name
    }

    fn insert(&mut self, env: &mut Env<'_>, rq: RequestId) {
        self.sorted.insert(&mut self.sorted_links, rq, env.requests[rq].sector);
        self.arrivals.push_back(&mut self.arrivals_links, rq);
    }

    fn dispatch(&mut self, env: &mut Env<'_>) -> Dispatch {
        let Some(rq) = self.next() else { return Dispatch::Empty };
        self.remove(rq);
        self.position = env.requests[rq].end();
        Dispatch::Issue(rq)
    }

    fn drain(&mut self, _env: &mut Env<'_>) -> Option<RequestId> {
        let rq = self.sorted.first()?;
        self.remove(rq);
        Some(rq)
    }

    fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    fn grew(&mut self, env: &mut Env<'_>, rq: RequestId, growth: Growth) {
        if growth == Growth::Front {
            self.sorted.remove(&mut self.sorted_links, rq);
            self.sorted.insert(&mut self.sorted_links, rq, env.requests[rq].sector);
        }
    }

    fn absorbed(&mut self, _env: &mut Env<'_>, _rq: RequestId, gone: RequestId) {
        self.remove(gone);
    }

    fn former(&self, _env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        self.sorted.prev(&self.sorted_links, rq)
    }

    fn latter(&self, _env: &Env<'_>, rq: RequestId) -> Option<RequestId> {
        self.sorted.next(&self.sorted_links, rq)
    }

    fn tunables(&self) -> &'static [Tunable] {
        &[OLDEST_AFTER]
    }

    fn setting(&mut self, name: &str) -> Option<&mut u64> {
        (name == OLDEST_AFTER.name).then_some(&mut self.oldest_after)
    }
}
