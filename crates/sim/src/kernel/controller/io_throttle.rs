//! io-throttle (Andrea Righi, 2008-2009): absolute limits; the task that submits sleeps.
//!
//! Two strategies per limit: the *leaky bucket* spreads I/O evenly, the *token bucket* lets a burst through first. Who submits is
//! put to sleep until what it submitted is within the limit, then its bio passes. The flusher never sleeps: from version 12 on a
//! thread, kiothrottled, submits its bios when their time has come. Not work-conserving, and knows no proportions.
//!
//! Facts from the covering letters of versions 8 to 14 (`docs/sources.md`); no source of the patch was found. Unverified, and so
//! chosen here: when the leaky bucket's count starts over (when nothing is owed), that bandwidth and iops limits are looked at
//! together and the longer sleep wins, and that a task sleeps by whole jiffies, rounded up.

use std::collections::BTreeSet;

use super::{Ask, Controller, Place, Ticket, Verdict};

const SECOND: u64 = 1_000_000_000;

/// How a limit is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Strategy {
    /// 0: sleep = bytes since / limit - time since.
    #[default]
    LeakyBucket,
    /// 1: tokens up to a bucket; sleep while they are below zero.
    TokenBucket,
}

/// One limit of one group.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    strategy: Strategy,
    /// Units a second; 0: none.
    limit: u64,
    /// Units the token bucket holds: one second's worth, the default since version 8.
    size: u64,
    /// Leaky: units since `since_ns`. Token: what is left, in units x 1 s (a nanosecond's worth is `limit`).
    count: i128,
    since_ns: u64,
}

impl Bucket {
    fn new(strategy: Strategy, limit: u64) -> Bucket {
        let full = i128::from(limit) * i128::from(SECOND);
        let count = if strategy == Strategy::TokenBucket { full } else { 0 };
        Bucket { strategy, limit, size: limit, count, since_ns: 0 }
    }

    /// `units` come: how long to sleep, nanoseconds.
    fn charge(&mut self, units: u64, now: u64) -> u64 {
        if self.limit == 0 {
            return 0;
        }
        match self.strategy {
            Strategy::LeakyBucket => self.leak(units, now),
            Strategy::TokenBucket => self.take(units, now),
        }
    }

    fn leak(&mut self, units: u64, now: u64) -> u64 {
        let price = |units: i128| (units * i128::from(SECOND)).div_euclid(i128::from(self.limit)) as u64;
        if price(self.count) <= now - self.since_ns {
            (self.count, self.since_ns) = (0, now);
        }
        self.count += i128::from(units);
        price(self.count).saturating_sub(now - self.since_ns)
    }

    fn take(&mut self, units: u64, now: u64) -> u64 {
        let one = i128::from(SECOND);
        let earned = self.count + i128::from(now - self.since_ns) * i128::from(self.limit);
        self.count = earned.min(i128::from(self.size) * one) - i128::from(units) * one;
        self.since_ns = now;
        let limit = i128::from(self.limit);
        if self.count >= 0 { 0 } else { ((-self.count + limit - 1) / limit) as u64 }
    }
}

/// io-throttle on one device.
#[derive(Debug)]
pub struct IoThrottle {
    /// By group: bandwidth and iops.
    buckets: Vec<[Bucket; 2]>,
    tick_ns: u64,
    /// The flusher's bios, by when they go.
    delayed: BTreeSet<(u64, Ticket)>,
}

impl IoThrottle {
    /// With the groups' [`bandwidth_bps`](super::Entitled::bandwidth_bps) and [`iops`](super::Entitled::iops).
    pub fn new(strategy: Strategy, place: &Place<'_>) -> IoThrottle {
        let of = |limit: u64| Bucket::new(strategy, limit);
        IoThrottle {
            buckets: place.groups.iter().map(|g| [of(g.bandwidth_bps), of(g.iops)]).collect(),
            tick_ns: place.tick_ns.max(1),
            delayed: BTreeSet::new(),
        }
    }
}

impl Controller for IoThrottle {
    fn ask(&mut self, ask: &Ask, ticket: Ticket, now: u64) -> Verdict {
        let [bandwidth, iops] = &mut self.buckets[ask.group];
        let sleep_ns = bandwidth.charge(u64::from(ask.sectors) * 512, now).max(iops.charge(1, now));
        if sleep_ns == 0 {
            return Verdict::Pass;
        }
        let until = (now + sleep_ns).next_multiple_of(self.tick_ns);
        match (ask.daemon, ask.sync) {
            (false, _) => Verdict::SleepUntil(until),
            (true, false) => {
                self.delayed.insert((until, ticket));
                Verdict::Hold
            }
            // A thread of the kernel's that waits for its I/O (a journal's) is not held up.
            (true, true) => Verdict::Pass,
        }
    }

    fn conduct(&mut self, now: u64, out: &mut Vec<Ticket>) {
        while let Some((_, ticket)) = self.delayed.first().copied().filter(|(at, _)| *at <= now) {
            self.delayed.pop_first();
            out.push(ticket);
        }
    }

    fn next_event(&self) -> Option<u64> {
        self.delayed.first().map(|(at, _)| *at)
    }

    fn thread(&self) -> &'static str {
        "kiothrottled"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::controller::Entitled;

    fn throttle(strategy: Strategy, group: Entitled, ask: impl Fn(&mut IoThrottle)) {
        let groups = [Entitled::ROOT, group];
        let place = Place { groups: &groups, nr_requests: 128, tick_ns: 1_000_000, keeps_slice: false };
        ask(&mut IoThrottle::new(strategy, &place));
    }

    fn bio(sectors: u32) -> Ask {
        Ask { group: 1, read: true, sync: true, sectors, daemon: false, meta: false }
    }

    const MS: u64 = 1_000_000;

    /// 1 MiB/s, 64 KiB bios: 62.5 ms each from the first on, a debt of two is slept off at once.
    #[test]
    fn a_leaky_bucket_spreads_evenly() {
        let spec = Entitled { bandwidth_bps: 1 << 20, ..Entitled::below(0) };
        throttle(Strategy::LeakyBucket, spec, |t| {
            assert_eq!(t.ask(&bio(128), 0, 0), Verdict::SleepUntil(63 * MS));
            assert_eq!(t.ask(&bio(128), 0, 63 * MS), Verdict::SleepUntil(126 * MS), "the first is paid for");
            assert_eq!(t.ask(&bio(128), 0, 64 * MS), Verdict::SleepUntil(188 * MS), "the second is not");
            assert_eq!(
                t.ask(&bio(128), 0, 1000 * MS),
                Verdict::SleepUntil(1063 * MS),
                "idleness earns nothing"
            );
        });
    }

    /// 1 MiB/s and a bucket of as much: sixteen bios of 64 KiB pass at once, the seventeenth sleeps 62.5 ms.
    #[test]
    fn a_token_bucket_lets_a_burst_pass() {
        let spec = Entitled { bandwidth_bps: 1 << 20, ..Entitled::below(0) };
        throttle(Strategy::TokenBucket, spec, |t| {
            for _ in 0..16 {
                assert_eq!(t.ask(&bio(128), 0, 0), Verdict::Pass);
            }
            assert_eq!(t.ask(&bio(128), 0, 0), Verdict::SleepUntil(63 * MS));
        });
    }

    /// 100 requests a second beside a wide bandwidth: the scarcer limit decides.
    #[test]
    fn the_longer_sleep_wins() {
        let spec = Entitled { bandwidth_bps: 1 << 30, iops: 100, ..Entitled::below(0) };
        throttle(Strategy::LeakyBucket, spec, |t| {
            assert_eq!(t.ask(&bio(8), 0, 0), Verdict::SleepUntil(10 * MS));
        });
    }

    /// The flusher does not sleep; its thread submits the bio when its time has come.
    #[test]
    fn writeback_is_delayed_by_a_thread() {
        let spec = Entitled { bandwidth_bps: 1 << 20, ..Entitled::below(0) };
        throttle(Strategy::LeakyBucket, spec, |t| {
            let flusher = Ask { read: false, sync: false, daemon: true, ..bio(128) };
            assert_eq!([t.ask(&flusher, 7, 0), t.ask(&flusher, 8, 0)], [Verdict::Hold; 2]);
            let mut out = Vec::new();
            t.conduct(62 * MS, &mut out);
            assert_eq!((t.next_event(), &out[..]), (Some(63 * MS), &[][..]));
            t.conduct(63 * MS, &mut out);
            assert_eq!((t.next_event(), &out[..]), (Some(125 * MS), &[7][..]));
        });
    }
}
