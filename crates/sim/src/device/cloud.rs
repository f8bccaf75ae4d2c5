//! Cloud volume: token buckets for operations and bytes, a base latency, first come, first served when they are empty.
//!
//! Each bucket is kept as the time at which it would be full again (the generic cell rate algorithm): a command is let
//! through when all buckets have its tokens, and never before the command in front of it. Commands larger than the
//! operation unit are charged one operation per unit. A volume with burst credits has one more bucket.
//!
//! Not modelled: the service's own jitter of the rates (published: at least 90 % of provisioned 99 % of the time),
//! merging of small sequential operations, first touch of blocks restored from a snapshot, limits of the instance.

use super::events::{BusyClock, Events};
use super::rng::{Lognormal, Rng};
use super::spec::{Fields, SpecError, limits};
use super::{Command, Completion, Device, Limits, Op};

/// Parameters of a cloud volume.
#[derive(Clone, Debug)]
pub(super) struct CloudSpec {
    limits: Limits,
    unit_bytes: u64,
    latency_median_ns: f64,
    latency_sigma: f64,
    operations: Bucket,
    bytes: Bucket,
    /// Burst credits: refilled at the base rate, spent by every operation.
    credits: Option<Bucket>,
}

/// A token bucket; times in nanoseconds with 20 fractional bits.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    token: u128,
    /// Time to fill it from empty.
    depth: u128,
    full_at: u128,
}

const FRACTION: u32 = 20;

impl Bucket {
    fn new(tokens_per_s: f64, tokens: f64) -> Bucket {
        let token = 1e9 / tokens_per_s * (1u64 << FRACTION) as f64;
        Bucket { token: token as u128, depth: (token * tokens) as u128, full_at: 0 }
    }

    /// When it has `tokens`, from `now` on. More tokens than it holds are given when it is full.
    fn ready_at(&self, tokens: u64, now: u64) -> u64 {
        let cost = (u128::from(tokens) * self.token).min(self.depth);
        let at = (self.full_at + cost).saturating_sub(self.depth);
        // Rounded up: never early. Simulated time fits 64 bits with room to spare.
        now.max(((at + ((1 << FRACTION) - 1)) >> FRACTION) as u64)
    }

    fn take(&mut self, tokens: u64, now: u64) {
        self.full_at = self.full_at.max(u128::from(now) << FRACTION) + u128::from(tokens) * self.token;
    }
}

impl CloudSpec {
    pub(super) fn read(fields: &mut Fields) -> Result<CloudSpec, SpecError> {
        let sectors = fields.integer("sectors", 8, 1 << 50)?;
        let limits = Limits { rotational: false, write_cache: false, fua: false, ..limits(fields, sectors)? };
        let iops = fields.number("operations.rate_per_s", 1.0, 1e9)?;
        let burst = fields.number("operations.burst", 1.0, 1e12)?;
        let mib = fields.number("bytes.rate_mib_per_s", 0.001, 1e6)? * 1_048_576.0;
        let burst_bytes = fields.number("bytes.burst_mib", 0.001, 1e9)? * 1_048_576.0;
        let credits = match fields.has("credits.size") {
            true => {
                let size = fields.number("credits.size", 1.0, 1e12)?;
                Some(Bucket::new(fields.number("credits.rate_per_s", 0.001, 1e9)?, size))
            }
            false => None,
        };
        Ok(CloudSpec {
            limits,
            unit_bytes: fields.integer("operations.unit_kib", 1, 1 << 20)? * 1024,
            latency_median_ns: fields.number("latency.median_us", 0.0, 1e6)? * 1e3,
            latency_sigma: fields.number("latency.sigma", 0.0, 0.8)?,
            operations: Bucket::new(iops, burst),
            bytes: Bucket::new(mib, burst_bytes),
            credits,
        })
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(super) fn build(&self, seed: u64) -> Cloud {
        Cloud {
            latency: Lognormal::from_median(self.latency_median_ns, self.latency_sigma),
            spec: self.clone(),
            rng: Rng::new(seed),
            granted_at: 0,
            done: Events::with_capacity(self.limits.queue_depth as usize),
            in_device: 0,
            busy: BusyClock::default(),
        }
    }
}

/// A cloud volume.
#[derive(Clone, Debug)]
pub(super) struct Cloud {
    spec: CloudSpec,
    latency: Lognormal,
    rng: Rng,
    /// When the last command was let through.
    granted_at: u64,
    done: Events<u32>,
    in_device: u32,
    busy: BusyClock,
}

impl Cloud {
    fn grant(&mut self, bytes: u64, now: u64) -> u64 {
        let operations = bytes.div_ceil(self.spec.unit_bytes).max(1);
        let mut at = now.max(self.granted_at);
        at = self.spec.operations.ready_at(operations, at);
        at = self.spec.bytes.ready_at(bytes, at);
        if let Some(credits) = &self.spec.credits {
            at = credits.ready_at(operations, at);
        }
        self.spec.operations.take(operations, at);
        self.spec.bytes.take(bytes, at);
        if let Some(credits) = &mut self.spec.credits {
            credits.take(operations, at);
        }
        self.granted_at = at;
        at
    }
}

impl Device for Cloud {
    fn limits(&self) -> &Limits {
        &self.spec.limits
    }

    fn submit(&mut self, command: Command, now: u64) {
        self.in_device += 1;
        self.busy.set(true, now);
        let granted = match command.op {
            Op::Read | Op::Write => self.grant(u64::from(command.sectors) * 512, now),
            // Acknowledged writes are durable already.
            Op::Flush | Op::Discard => now,
        };
        let at = granted + self.latency.sample(&mut self.rng);
        self.done.push(at, command.tag);
    }

    fn next_event(&self) -> Option<u64> {
        self.done.next_at()
    }

    fn advance(&mut self, now: u64, done: &mut Vec<Completion>) {
        while let Some((at_ns, tag)) = self.done.pop_until(now) {
            self.in_device -= 1;
            self.busy.set(self.in_device > 0, at_ns);
            done.push(Completion { tag, at_ns });
        }
        self.busy.set(self.in_device > 0, now);
    }

    fn busy_ns(&self) -> u64 {
        self.busy.total_ns()
    }
}
