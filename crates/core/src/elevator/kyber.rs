//! kyber: four kinds of I/O, each with tokens for the device, whose number follows the latencies.
//!
//! Reads, writes, discards and the rest are *domains*, each served in order of arrival, in batches, and only while it has a
//! token. At most every 100 ms the latencies of the last while are looked at: when the device answers some domain too slowly,
//! domains that are well within their targets lose tokens, and those that miss theirs get some back. Never idles, sorts
//! nothing, knows neither priorities nor groups.
//!
//! Source: Linux 6.12.117 `block/kyber-iosched.c`, as described in `docs/sources.md`. One hardware and one software queue.

mod latency;

use alloc::vec::Vec;

use super::{AnyElevator, Config, Descriptor, Dispatch, Env, PerGroup, Placement, Policy, same_priority};
use crate::collections::{Id, List, ListLinks};
use crate::request::{Bio, Op, RequestId};
use crate::tunable::{Tunable, Unit};
use crate::{MS, SECOND};
use latency::{Buckets, DOMAINS_TIMED, Latencies};

pub(super) const DESCRIPTOR: Descriptor = Descriptor {
    name: "kyber",
    about: "tokens for reads, writes and discards, whose number follows the latencies (Linux 6.12)",
    profiles: &[],
    tunables: |_| TUNABLES,
    build: |config, _| AnyElevator::Kyber(alloc::boxed::Box::new(PerGroup::blind(Kyber::new(config)))),
};

const READ_LAT: Tunable =
    Tunable::new("read_lat_nsec", Unit::Nanoseconds, (0, u64::MAX), 2_000_000, "target latency of reads");
const WRITE_LAT: Tunable =
    Tunable::new("write_lat_nsec", Unit::Nanoseconds, (0, u64::MAX), 10_000_000, "target latency of writes");
const TUNABLES: &[Tunable] = &[READ_LAT, WRITE_LAT];

const DISCARD_LAT_NS: u64 = 5 * SECOND;

/// Kinds of I/O.
const READ: usize = 0;
const WRITE: usize = 1;
const DISCARD: usize = 2;
const OTHER: usize = 3;
const DOMAINS: usize = 4;

/// Tokens of each domain at most, and at the start.
const DEPTH_MAX: [u32; DOMAINS] = [256, 128, 64, 16];
/// Requests of a domain before the next one's turn.
const BATCH: [u32; DOMAINS] = [16, 8, 1, 1];
/// I/O that is not sync may take so much of the tags (of the queue, not of a domain), %.
const ASYNC_PERCENT: u32 = 75;
/// The newest requests of a domain that a bio is compared with.
const MERGE_CANDIDATES: usize = 8;
/// From a completion to the next look at the latencies, at most: HZ/10.
const LOOK_AFTER_NS: u64 = 100 * MS;

/// A domain's requests, oldest first in both lists.
#[derive(Clone, Default)]
struct Waiting {
    /// In the hardware queue: the next ones.
    next: List<RequestId>,
    /// In the software queue, where bios can still join them.
    fresh: List<RequestId>,
}

/// One queue.
#[derive(Clone, Default)]
pub struct Queue {
    domains: [Waiting; DOMAINS],
    /// The domain that has the turn, and its requests in it.
    current: usize,
    batched: u32,
}

/// kyber: the tokens, what is known of latencies, and the links of all queues.
pub struct Kyber {
    links: ListLinks<RequestId>,
    /// Which requests hold a token of their domain, and which are in the hardware queue.
    holds_token: Vec<bool>,
    is_next: Vec<bool>,
    depth: [u32; DOMAINS],
    taken: [u32; DOMAINS],
    targets_ns: [u64; DOMAINS_TIMED],
    latencies: Latencies,
    /// When to look at them.
    look_at_ns: Option<u64>,
}

const fn domain_of(op: Op) -> usize {
    match op {
        Op::Read => READ,
        Op::Write => WRITE,
        Op::Discard => DISCARD,
        Op::Flush => OTHER,
    }
}

impl Kyber {
    fn new(config: &Config) -> Kyber {
        Kyber {
            links: ListLinks::new(config.requests_max),
            holds_token: alloc::vec![false; config.requests_max],
            is_next: alloc::vec![false; config.requests_max],
            depth: DEPTH_MAX,
            taken: [0; DOMAINS],
            targets_ns: [READ_LAT.stored_default(), WRITE_LAT.stored_default(), DISCARD_LAT_NS],
            latencies: Latencies::new(),
            look_at_ns: None,
        }
    }

    // ---- the decision ----

    fn pick(&mut self, queue: &mut Queue) -> Option<RequestId> {
        if queue.batched < BATCH[queue.current]
            && let Some(rq) = self.pick_of(queue, queue.current)
        {
            queue.batched += 1;
            return Some(rq);
        }
        queue.batched = 0;
        for _ in 0..DOMAINS {
            queue.current = (queue.current + 1) % DOMAINS;
            if let Some(rq) = self.pick_of(queue, queue.current) {
                queue.batched = 1;
                return Some(rq);
            }
        }
        None
    }

    /// The oldest request of a domain, if there is a token for it.
    fn pick_of(&mut self, queue: &mut Queue, domain: usize) -> Option<RequestId> {
        let waiting = &mut queue.domains[domain];
        if self.taken[domain] >= self.depth[domain] {
            return None;
        }
        if waiting.next.is_empty() {
            // All that gathered in the software queue move over.
            core::mem::swap(&mut waiting.next, &mut waiting.fresh);
            let Kyber { is_next, links, .. } = self;
            waiting.next.iter(links).for_each(|rq| is_next[rq.index()] = true);
        }
        let rq = waiting.next.pop_front(&mut self.links)?;
        self.is_next[rq.index()] = false;
        self.taken[domain] += 1;
        self.holds_token[rq.index()] = true;
        Some(rq)
    }

    fn give_token_back(&mut self, domain: usize, rq: RequestId) {
        if core::mem::take(&mut self.holds_token[rq.index()]) {
            self.taken[domain] -= 1;
        }
    }

    // ---- how many tokens ----

    /// Adjust the domains' tokens, if it is time to.
    fn look_at_latencies(&mut self, now: u64) {
        if let Some(due) = self.look_at_ns.filter(|due| *due <= now) {
            self.look_at_ns = None;
            let Kyber { depth, latencies, .. } = self;
            latencies.look(due, |domain, scaled| {
                depth[domain] = scaled.of(depth[domain]).clamp(1, DEPTH_MAX[domain]);
            });
        }
    }

    /// The list `rq` waits in.
    fn list_of<'a>(&self, queue: &'a mut Queue, domain: usize, rq: RequestId) -> &'a mut List<RequestId> {
        let waiting = &mut queue.domains[domain];
        if self.is_next[rq.index()] { &mut waiting.next } else { &mut waiting.fresh }
    }

    /// The requests a bio is compared with, newest first.
    fn candidates<'a>(&'a self, queue: &'a Queue, domain: usize) -> impl Iterator<Item = RequestId> + 'a {
        let fresh = &queue.domains[domain].fresh;
        core::iter::successors(fresh.back(), |rq| fresh.prev(&self.links, *rq)).take(MERGE_CANDIDATES)
    }
}

impl Policy for Kyber {
    type Queue = Queue;

    fn name(&self) -> &'static str {
        DESCRIPTOR.name
    }

    fn new_queue(&self) -> Queue {
        Queue::default()
    }

    fn insert(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        self.is_next[rq.index()] = false;
        self.holds_token[rq.index()] = false;
        queue.domains[domain_of(env.requests[rq].op)].fresh.push_back(&mut self.links, rq);
    }

    fn dispatch(&mut self, queue: &mut Queue, env: &mut Env<'_>) -> Dispatch {
        self.look_at_latencies(env.now);
        self.pick(queue).map_or(Dispatch::Empty, Dispatch::Issue)
    }

    fn drain(&mut self, queue: &mut Queue, env: &mut Env<'_>) -> Option<RequestId> {
        let lists = || queue.domains.iter().flat_map(|waiting| [&waiting.next, &waiting.fresh]);
        let rq = lists().find_map(List::front)?;
        self.remove(queue, env, rq);
        Some(rq)
    }

    fn is_empty(&self, queue: &Queue) -> bool {
        queue.domains.iter().all(|waiting| waiting.next.is_empty() && waiting.fresh.is_empty())
    }

    fn placement(&self) -> Placement {
        Placement::Tail
    }

    fn requeued(&mut self, _queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        self.give_token_back(domain_of(env.requests[rq].op), rq);
    }

    fn completed(&mut self, _queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        self.look_at_latencies(env.now);
        let request = &env.requests[rq];
        let domain = domain_of(request.op);
        self.give_token_back(domain, rq);
        if domain < DOMAINS_TIMED {
            let target_ns = self.targets_ns[domain];
            let since = |start_ns: u64| Buckets::place(env.now.saturating_sub(start_ns), target_ns);
            self.latencies.add(domain, since(request.start_ns), since(request.issued_ns));
            let due = env.now.saturating_add(LOOK_AFTER_NS);
            self.look_at_ns = Some(self.look_at_ns.map_or(due, |armed| armed.min(due)));
        }
    }

    fn find_front(&self, queue: &Queue, env: &Env<'_>, bio: &Bio) -> Option<RequestId> {
        self.candidates(queue, domain_of(bio.op)).find(|rq| env.requests[*rq].sector == bio.end())
    }

    /// Only into one of the newest few that are still in the software queue.
    fn allow_merge(&mut self, queue: &mut Queue, env: &Env<'_>, rq: RequestId, bio: &Bio) -> bool {
        same_priority(env, rq, bio) && self.candidates(queue, domain_of(bio.op)).any(|near| near == rq)
    }

    fn absorbed(&mut self, queue: &mut Queue, env: &mut Env<'_>, _rq: RequestId, gone: RequestId) {
        self.remove(queue, env, gone);
    }

    fn remove(&mut self, queue: &mut Queue, env: &mut Env<'_>, rq: RequestId) {
        let domain = domain_of(env.requests[rq].op);
        let list = self.list_of(queue, domain, rq);
        list.remove(&mut self.links, rq);
        self.is_next[rq.index()] = false;
    }

    fn tags_for(&mut self, _env: &mut Env<'_>, bio: &Bio, tags: u32) -> u32 {
        if bio.is_sync() { tags } else { self.tags_min(tags) }
    }

    fn tags_min(&self, tags: u32) -> u32 {
        (u64::from(tags) * u64::from(ASYNC_PERCENT) / 100).max(1) as u32
    }

    fn tunables(&self) -> &'static [Tunable] {
        TUNABLES
    }

    fn setting(&mut self, name: &str) -> Option<&mut u64> {
        Some(match name {
            "read_lat_nsec" => &mut self.targets_ns[READ],
            "write_lat_nsec" => &mut self.targets_ns[WRITE],
            _ => return None,
        })
    }
}
