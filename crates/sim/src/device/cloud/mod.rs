//! A throttled volume: token buckets for operations and bytes, a base latency with a tail.
//!
//! A command is let through when all buckets it draws on have its tokens (or, as in QEMU, when none is overdrawn), and
//! never before the command in front of it; then it takes the latency. Buckets may be the volume's, its reads' and its
//! writes' own, and the instance's above them. Commands larger than the operation unit are charged one operation per
//! unit. A volume with burst credits has one more bucket. Reads and writes wait in one queue, or in two that take turns.
//! A volume with a period looks at its buckets again only when the period is over, and then lets everything through that
//! they have gathered (Firecracker's `rate_limiter`: a timer of 100 ms).
//!
//! Not modelled: merging of small sequential operations by the service, first touch of blocks restored from a snapshot,
//! several volumes below one instance's limit.

mod bucket;
mod spec;

use std::collections::VecDeque;

use super::events::{BusyClock, Events};
use super::rng::Rng;
use super::{Command, Completion, Device, Limits, Op};
use bucket::{Cost, Limiter};

pub(super) use spec::CloudSpec;

/// A command that waits for tokens.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    tag: u32,
    write: bool,
    cost: Cost,
    latency_ns: u64,
}

/// A throttled volume.
#[derive(Clone, Debug)]
pub(super) struct Cloud {
    spec: CloudSpec,
    rng: Rng,
    /// One queue for all, or one for reads and one for writes.
    queues: [VecDeque<Waiting>; 2],
    /// Since when the first command of each is the first.
    first_since: [u64; 2],
    /// The queue that was let through last.
    last: usize,
    /// Tags, and when they were let through.
    done: Events<(u32, u64)>,
    in_device: u32,
    busy: BusyClock,
    /// A request waits for tokens.
    limited: BusyClock,
}

impl Cloud {
    fn new(spec: CloudSpec, rng: Rng) -> Cloud {
        let done = Events::with_capacity(spec.limits.queue_depth as usize);
        Cloud {
            spec,
            rng,
            queues: [VecDeque::new(), VecDeque::new()],
            first_since: [0, 0],
            last: 1,
            done,
            in_device: 0,
            busy: BusyClock::default(),
            limited: BusyClock::default(),
        }
    }

    /// The limiters a command draws on.
    fn limiters(&self, write: bool) -> impl Iterator<Item = &Limiter> {
        let own = if write { &self.spec.write } else { &self.spec.read };
        std::iter::once(&self.spec.volume).chain(own).chain(&self.spec.instance)
    }

    /// When the first command of a queue may go, not before `now`.
    fn ready_at(&self, queue: usize, now: u64) -> Option<u64> {
        let waiting = self.queues[queue].front()?;
        let pays = self.spec.pays;
        let at =
            self.limiters(waiting.write).fold(now, |at, limiter| limiter.ready_at(waiting.cost, pays, at));
        let at = match &self.spec.credits {
            Some(credits) => credits.ready_at(waiting.cost.operations, pays, at),
            None => at,
        };
        let since = self.first_since[queue];
        // A command that was turned away is looked at again when the period is over.
        Some(match self.spec.period_ns {
            Some(period) if at > since => since + (at - since).div_ceil(period) * period,
            _ => at,
        })
    }

    /// The queue whose first command goes next, and when: the earlier one, and in turn if both may.
    fn next_grant(&self, now: u64) -> Option<(u64, usize)> {
        let other = 1 - self.last;
        match (self.ready_at(other, now), self.ready_at(self.last, now)) {
            (Some(at), Some(before)) if before < at => Some((before, self.last)),
            (Some(at), _) => Some((at, other)),
            (None, at) => at.map(|at| (at, self.last)),
        }
    }

    /// Let everything through that may go up to `now`. `from`: when the buckets were last looked at.
    fn grant(&mut self, from: u64, now: u64) {
        let mut from = from;
        while let Some((at, queue)) = self.next_grant(from).filter(|&(at, _)| at <= now) {
            let Some(waiting) = self.queues[queue].pop_front() else { break };
            let own = if waiting.write { &mut self.spec.write } else { &mut self.spec.read };
            let limiters = std::iter::once(&mut self.spec.volume).chain(own).chain(&mut self.spec.instance);
            limiters.for_each(|limiter| limiter.take(waiting.cost, at));
            if let Some(credits) = &mut self.spec.credits {
                credits.take(waiting.cost.operations, at);
            }
            self.done.push(at + waiting.latency_ns, (waiting.tag, at));
            self.last = queue;
            self.first_since[queue] = at;
            from = at;
            self.limited.set(self.queues.iter().any(|queue| !queue.is_empty()), at);
        }
        self.limited.set(self.queues.iter().any(|queue| !queue.is_empty()), now);
    }
}

impl Device for Cloud {
    fn limits(&self) -> &Limits {
        &self.spec.limits
    }

    fn submit(&mut self, command: Command, now: u64) {
        self.in_device += 1;
        self.busy.set(true, now);
        let latency_ns = self.spec.latency_ns(command.op, &mut self.rng);
        let write = command.op == Op::Write;
        match command.op {
            Op::Read | Op::Write => {
                let bytes = u64::from(command.sectors) * 512;
                let operations = bytes.div_ceil(self.spec.unit_bytes).max(1);
                let cost = Cost { operations, bytes };
                let queue = usize::from(write && self.spec.apart);
                if self.queues[queue].is_empty() {
                    self.first_since[queue] = now;
                }
                self.queues[queue].push_back(Waiting { tag: command.tag, write, cost, latency_ns });
                self.grant(now, now);
            }
            // Not throttled.
            Op::Flush | Op::Discard => self.done.push(now + latency_ns, (command.tag, now)),
        }
    }

    fn next_event(&self) -> Option<u64> {
        let granted = self.next_grant(0).map(|(at, _)| at);
        self.done.next_at().into_iter().chain(granted).min()
    }

    fn advance(&mut self, now: u64, done: &mut Vec<Completion>) {
        self.grant(0, now);
        while let Some((at_ns, (tag, began_ns))) = self.done.pop_until(now) {
            self.in_device -= 1;
            self.busy.set(self.in_device > 0, at_ns);
            done.push(Completion { tag, at_ns, began_ns });
        }
        self.busy.set(self.in_device > 0, now);
    }

    fn busy_ns(&self) -> u64 {
        self.busy.total_ns()
    }

    fn limited_ns(&self) -> u64 {
        self.limited.total_ns()
    }
}
