//! A throttled volume's parameters, read from its device file and checked.

use super::super::rng::{Lognormal, Rng};
use super::super::spec::{Facts, Fields, SpecError, limits};
use super::super::{Limits, Op};
use super::Cloud;
use super::bucket::{Bucket, Limiter, Pays};

const MIB: f64 = 1_048_576.0;

/// Parameters of a cloud volume.
#[derive(Clone, Debug)]
pub(crate) struct CloudSpec {
    pub(super) limits: Limits,
    pub(super) unit_bytes: u64,
    pub(super) pays: Pays,
    /// Reads and writes wait in queues of their own, which take turns.
    pub(super) apart: bool,
    /// A command that finds too few tokens waits for whole periods.
    pub(super) period_ns: Option<u64>,
    /// Limits of the volume for all commands, of its reads, of its writes, and of the instance it is attached to.
    pub(super) volume: Limiter,
    pub(super) read: Option<Limiter>,
    pub(super) write: Option<Limiter>,
    pub(super) instance: Option<Limiter>,
    /// Burst credits: refilled at the base rate, spent by every operation.
    pub(super) credits: Option<Bucket>,
    latency: Latency,
}

/// What a command takes once it is let through: lognormal, and a part of all commands that takes much longer.
#[derive(Clone, Debug)]
struct Latency {
    usual: Lognormal,
    tail: Lognormal,
    tail_share: f64,
    flush_ns: u64,
}

impl CloudSpec {
    pub(crate) fn read(fields: &mut Fields) -> Result<CloudSpec, SpecError> {
        let sectors = fields.integer("sectors", 8, 1 << 50)?;
        let limits = limits(fields, sectors, Facts::default())?;
        let iops = fields.number("operations.rate_per_s", 1.0, 1e9)?;
        let burst = fields.number("operations.burst", 1.0, 1e12)?;
        let mib = fields.number("bytes.rate_mib_per_s", 0.001, 1e6)? * MIB;
        let burst_bytes = fields.number("bytes.burst_mib", 0.001, 1e9)? * MIB;
        let credits = match fields.has("credits.size") {
            true => {
                let size = fields.number("credits.size", 1.0, 1e12)?;
                Some(Bucket::new(fields.number("credits.rate_per_s", 0.001, 1e9)?, size))
            }
            false => None,
        };
        let pays =
            match fields.has("throttle.pays") && fields.choice("throttle.pays", &["before", "after"])? == 1 {
                true => Pays::After,
                false => Pays::Before,
            };
        Ok(CloudSpec {
            limits,
            unit_bytes: fields.integer("operations.unit_kib", 1, 1 << 20)? * 1024,
            pays,
            apart: fields.has("throttle.apart") && fields.boolean("throttle.apart")?,
            period_ns: match fields.has("throttle.period_ms") {
                true => Some((fields.number("throttle.period_ms", 0.001, 1e6)? * 1e6) as u64),
                false => None,
            },
            volume: Limiter { operations: Bucket::new(iops, burst), bytes: Bucket::new(mib, burst_bytes) },
            read: limiter(fields, "read")?,
            write: limiter(fields, "write")?,
            instance: limiter(fields, "instance")?,
            credits,
            latency: Latency::read(fields)?,
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn build(&self, seed: u64) -> Cloud {
        Cloud::new(self.clone(), Rng::new(seed))
    }

    /// What the command takes behind the throttle.
    pub(super) fn latency_ns(&self, op: Op, rng: &mut Rng) -> u64 {
        self.latency.ns(op, rng)
    }
}

/// The limits of a section, if it is there.
fn limiter(fields: &mut Fields, section: &str) -> Result<Option<Limiter>, SpecError> {
    let path = |key: &str| format!("{section}.{key}");
    if !fields.has(&path("rate_per_s")) && !fields.has(&path("rate_mib_per_s")) {
        return Ok(None);
    }
    let iops = fields.number(&path("rate_per_s"), 1.0, 1e9)?;
    let bytes_per_s = fields.number(&path("rate_mib_per_s"), 0.001, 1e6)? * MIB;
    let burst_s = fields.number(&path("burst_ms"), 0.001, 1e9)? / 1e3;
    Ok(Some(Limiter {
        // A bucket holds at least an operation, and a page of bytes.
        operations: Bucket::new(iops, (iops * burst_s).max(1.0)),
        bytes: Bucket::new(bytes_per_s, (bytes_per_s * burst_s).max(4096.0)),
    }))
}

impl Latency {
    fn read(fields: &mut Fields) -> Result<Latency, SpecError> {
        let median_ns = fields.number("latency.median_us", 0.0, 1e6)? * 1e3;
        let sigma = fields.number("latency.sigma", 0.0, 0.8)?;
        let tail = fields.has("latency.tail_share");
        let tail_share = if tail { fields.number("latency.tail_share", 0.0, 1.0)? } else { 0.0 };
        let tail_ns = if tail { fields.number("latency.tail_us", 0.0, 1e7)? * 1e3 } else { 0.0 };
        let flush = fields.has("latency.flush_us");
        Ok(Latency {
            usual: Lognormal::from_median(median_ns, sigma),
            tail: Lognormal::from_median(tail_ns, sigma),
            tail_share,
            flush_ns: if flush { (fields.number("latency.flush_us", 0.0, 1e7)? * 1e3) as u64 } else { 0 },
        })
    }

    fn ns(&self, op: Op, rng: &mut Rng) -> u64 {
        let slow = self.tail_share > 0.0 && rng.unit() < self.tail_share;
        let ns = if slow { self.tail.sample(rng) } else { self.usual.sample(rng) };
        if op == Op::Flush { ns + self.flush_ns } else { ns }
    }
}
