//! What kyber knows of latencies: for each domain two histograms in quarters of its target, and from them, how many tokens.

use crate::SECOND;

/// Domains whose latencies count: reads, writes, discards.
pub(super) const DOMAINS_TIMED: usize = 3;
const BUCKETS: usize = 8;
/// A latency in one of the first so many buckets is within the target: the buckets are quarters of it.
const GOOD: usize = 4;
/// A percentile of so many samples is good at once; of fewer only when they have gathered for [`PATIENCE_NS`].
const SAMPLES_ENOUGH: u32 = 500;
const PATIENCE_NS: u64 = SECOND;

/// How often which latency.
#[derive(Clone, Copy, Default)]
pub(super) struct Buckets([u32; BUCKETS]);

impl Buckets {
    /// The bucket of a latency.
    pub(super) fn place(latency_ns: u64, target_ns: u64) -> usize {
        let width = (target_ns / GOOD as u64).max(1);
        let bucket = latency_ns.checked_sub(1).map_or(0, |ns| ns / width);
        bucket.min(BUCKETS as u64 - 1) as usize
    }

    fn add(&mut self, place: usize) {
        if let Some(count) = self.0.get_mut(place) {
            *count = count.saturating_add(1);
        }
    }

    fn samples(&self) -> u32 {
        self.0.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The bucket that `percent` of the samples reach at most; the buckets are empty then.
    fn take_percentile(&mut self, percent: u64) -> usize {
        let mut left = (u64::from(self.samples()) * percent).div_ceil(100);
        let last = BUCKETS - 1;
        let place = self.0[..last].iter().position(|count| {
            let reached = u64::from(*count) >= left;
            if !reached {
                left -= u64::from(*count);
            }
            reached
        });
        self.0 = [0; BUCKETS];
        place.unwrap_or(last)
    }
}

/// One domain's.
#[derive(Clone, Copy, Default)]
struct Domain {
    /// From the tag to completion, and in the device.
    total: Buckets,
    device: Buckets,
    /// Until when a percentile waits for enough samples: one time for both histograms, as in the kernel, where the one that is
    /// asked first mostly clears it for the other.
    patience_until_ns: Option<u64>,
    /// A 99th percentile from before there was trouble.
    remembered: Option<usize>,
}

impl Domain {
    fn percentile(
        &mut self,
        buckets: fn(&mut Domain) -> &mut Buckets,
        percent: u64,
        now: u64,
    ) -> Option<usize> {
        let samples = buckets(self).samples();
        if samples == 0 {
            return None;
        }
        let until = *self.patience_until_ns.get_or_insert(now.saturating_add(PATIENCE_NS));
        if samples < SAMPLES_ENOUGH && now < until {
            return None;
        }
        self.patience_until_ns = None;
        Some(buckets(self).take_percentile(percent))
    }
}

/// What becomes of a domain's number of tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Scaled(usize);

impl Scaled {
    /// So many quarters of `depth`.
    pub(super) fn of(self, depth: u32) -> u32 {
        (u64::from(depth) * (self.0 as u64 + 1) / GOOD as u64) as u32
    }
}

/// All domains'.
pub(super) struct Latencies([Domain; DOMAINS_TIMED]);

impl Latencies {
    pub(super) const fn new() -> Latencies {
        const NEW: Domain = Domain {
            total: Buckets([0; BUCKETS]),
            device: Buckets([0; BUCKETS]),
            patience_until_ns: None,
            remembered: None,
        };
        Latencies([NEW; DOMAINS_TIMED])
    }

    /// A request of `domain` is done: its places among total and device latencies.
    pub(super) fn add(&mut self, domain: usize, total: usize, device: usize) {
        let domain = &mut self.0[domain];
        domain.total.add(total);
        domain.device.add(device);
    }

    /// Tell `resize` which domains get more or fewer tokens. Only when the device is too slow for some domain do domains that
    /// are well within their target lose some.
    pub(super) fn look(&mut self, now: u64, mut resize: impl FnMut(usize, Scaled)) {
        let mut bad = false;
        for domain in &mut self.0 {
            bad |= domain.percentile(|d| &mut d.device, 90, now).is_some_and(|place| place >= GOOD);
        }
        for (number, domain) in self.0.iter_mut().enumerate() {
            let mut p99 = domain.percentile(|d| &mut d.total, 99, now);
            if bad {
                p99 = p99.or(domain.remembered.take());
                domain.remembered = None;
            } else if p99.is_some() {
                domain.remembered = p99;
            }
            if let Some(place) = p99.filter(|place| bad || *place >= GOOD) {
                resize(number, Scaled(place));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Target 2 ms: buckets of 500 us, the bounds included below.
    #[test]
    fn a_bucket_is_a_quarter_of_the_target() {
        let place = |us: u64| Buckets::place(us * 1000, 2_000_000);
        assert_eq!(
            [0, 500, 501, 1000, 2000, 2001, 3500, 3501, 60_000].map(place),
            [0, 0, 1, 1, 3, 4, 6, 7, 7]
        );
        assert_eq!(Buckets::place(1, 0), 0, "a target of 0 has buckets of 1 ns");
        assert_eq!(Buckets::place(5, 0), 4);
    }

    /// 100 samples: 89 in bucket 0, 1 in bucket 2, 10 in bucket 5. The 90th is the one in 2, the 91st is in 5.
    #[test]
    fn a_percentile_counts_up_to_its_sample_and_empties_the_buckets() {
        let mut buckets = Buckets([89, 0, 1, 0, 0, 10, 0, 0]);
        assert_eq!(buckets.take_percentile(90), 2);
        assert_eq!(buckets.samples(), 0);
        let mut buckets = Buckets([89, 0, 1, 0, 0, 10, 0, 0]);
        assert_eq!(buckets.take_percentile(91), 5);
        assert_eq!(Buckets([0, 0, 0, 0, 0, 0, 0, 3]).take_percentile(99), 7);
    }

    /// 256 tokens times (p + 1) / 4.
    #[test]
    fn tokens_go_by_quarters() {
        assert_eq!([0, 1, 2, 3, 4, 7].map(|p| Scaled(p).of(256)), [64, 128, 192, 256, 320, 512]);
    }

    const SECONDS: u64 = SECOND;

    fn fill(latencies: &mut Latencies, domain: usize, count: u32, total: usize, device: usize) {
        (0..count).for_each(|_| latencies.add(domain, total, device));
    }

    fn look(latencies: &mut Latencies, now: u64) -> Vec<(usize, usize)> {
        let mut resized = Vec::new();
        latencies.look(now, |domain, Scaled(place)| resized.push((domain, place)));
        resized
    }

    #[test]
    fn five_hundred_samples_are_enough_and_fewer_wait_a_second() {
        let mut latencies = Latencies::new();
        fill(&mut latencies, 0, 499, 5, 5);
        assert_eq!(look(&mut latencies, 0), [], "too few");
        assert_eq!(look(&mut latencies, SECONDS - 1), [], "not yet a second");
        // The device's p90 is used after a second; asking for the total's p99 starts another one.
        assert_eq!(look(&mut latencies, SECONDS), []);
        assert_eq!(look(&mut latencies, 2 * SECONDS), [(0, 5)]);
        fill(&mut latencies, 0, 500, 6, 0);
        assert_eq!(look(&mut latencies, 2 * SECONDS), [(0, 6)]);
    }

    #[test]
    fn while_all_is_well_nobody_loses_tokens() {
        let mut latencies = Latencies::new();
        fill(&mut latencies, 0, 500, 1, 1);
        fill(&mut latencies, 1, 500, 3, 3);
        assert_eq!(look(&mut latencies, 0), []);
    }

    /// Writes take longer in the device than they should: reads, which are fast, and writes, which are not, are both resized.
    #[test]
    fn a_slow_device_takes_tokens_from_who_is_well_within_its_target() {
        let mut latencies = Latencies::new();
        fill(&mut latencies, 0, 500, 0, 0);
        fill(&mut latencies, 1, 500, 6, 6);
        assert_eq!(look(&mut latencies, 0), [(0, 0), (1, 6)]);
    }

    /// A p99 of quiet times stands in for one that has too few samples now, once.
    #[test]
    fn a_percentile_of_before_is_used_once() {
        let mut latencies = Latencies::new();
        fill(&mut latencies, 0, 500, 1, 1);
        assert_eq!(look(&mut latencies, 0), []);
        fill(&mut latencies, 1, 500, 7, 7);
        assert_eq!(look(&mut latencies, 0), [(0, 1), (1, 7)]);
        fill(&mut latencies, 1, 500, 7, 7);
        assert_eq!(look(&mut latencies, 0), [(1, 7)]);
    }
}
