//! When a fio job may issue its next I/O: think time and rates.

use fairlift_fio::{Direction, Job, RateProcess};

/// What to do before the next I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pause {
    /// Go on.
    None,
    /// Let everything in flight end, then wait until this time (nanoseconds).
    DrainUntil(u64),
    /// Let everything in flight end, then wait this long (nanoseconds).
    DrainFor(u64),
}

/// Think time and rate schedule of one process.
#[derive(Debug)]
pub(super) struct Pace {
    think_ns: u64,
    think_blocks: u64,
    count_issues: bool,
    iotime_ns: u64,
    blocks: u64,
    busy_since_ns: u64,
    /// Bytes per second and I/Os per second by direction; 0 = no limit.
    bytes_per_s: [u64; 3],
    iops: [u64; 3],
    poisson: bool,
    /// When the next I/O of a direction is due, in nanoseconds and a fraction of 1/2^32.
    due: [u128; 3],
    random: u64,
}

impl Pace {
    pub(super) fn new(job: &Job, seed: u64) -> Pace {
        Pace {
            think_ns: job.think.pause_us * 1000,
            think_blocks: job.think.blocks.max(1),
            count_issues: job.think.count_issues,
            iotime_ns: job.think.iotime_us * 1000,
            blocks: 0,
            busy_since_ns: 0,
            bytes_per_s: job.rate.bytes_per_s,
            iops: job.rate.iops,
            poisson: job.rate.process == RateProcess::Poisson,
            due: [0; 3],
            random: seed | 1,
        }
    }

    pub(super) fn start(&mut self, now: u64) {
        self.busy_since_ns = now;
        self.due = [u128::from(now) << 32; 3];
    }

    /// May the I/O just drawn go out?
    pub(super) fn before_issue(&self, direction: Direction, now: u64) -> Pause {
        let d = direction.index();
        let due = (self.due[d] >> 32) as u64;
        if (self.bytes_per_s[d] > 0 || self.iops[d] > 0) && now < due {
            Pause::DrainUntil(due)
        } else {
            Pause::None
        }
    }

    /// An I/O went out: the next one of this direction is due later.
    pub(super) fn issued(&mut self, direction: Direction, bytes: u64) {
        let d = direction.index();
        let second = 1_000_000_000_u128 << 32;
        let mut gap = 0;
        if self.bytes_per_s[d] > 0 {
            gap = second * u128::from(bytes) / u128::from(self.bytes_per_s[d]);
        } else if self.iops[d] > 0 {
            gap = second / u128::from(self.iops[d]);
        }
        if self.poisson && gap > 0 {
            gap = (gap as f64 * self.exponential()) as u128;
        }
        self.due[d] += gap;
        if self.count_issues {
            self.blocks += 1;
        }
    }

    pub(super) fn completed(&mut self) {
        if !self.count_issues {
            self.blocks += 1;
        }
    }

    /// Is it time to think?
    pub(super) fn think(&mut self, now: u64) -> Pause {
        if self.think_ns == 0 {
            return Pause::None;
        }
        let by_time = self.iotime_ns > 0 && now >= self.busy_since_ns + self.iotime_ns;
        let by_blocks = self.iotime_ns == 0 && self.blocks >= self.think_blocks;
        if by_time || by_blocks {
            self.blocks = 0;
            self.busy_since_ns = now + self.think_ns;
            return Pause::DrainFor(self.think_ns);
        }
        Pause::None
    }

    /// An exponentially distributed number with mean 1.
    fn exponential(&mut self) -> f64 {
        // splitmix64 (Steele, Lea, Flood 2014).
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        let uniform = ((z >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        -libm::log(uniform)
    }
}
