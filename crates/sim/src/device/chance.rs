//! Something that happens to a share of all commands, and then takes a time of its own: the tail of a device's latencies.

use super::rng::{Lognormal, Rng};
use super::spec::{Fields, SpecError};

/// Spread of the extra times.
const SIGMA: f64 = 0.5;

/// A share of all commands or pages that takes longer.
#[derive(Clone, Debug, Default)]
pub(super) struct Chance {
    share: f64,
    long: Option<Lognormal>,
}

impl Chance {
    /// `tail.WHAT_share`, and `tail.WHAT_UNIT`, the median (lognormal, σ 0.5); `unit` is `us` or `ms`. Without them it never happens.
    pub(super) fn read(fields: &mut Fields, what: &str, unit: &str) -> Result<Chance, SpecError> {
        let share = format!("tail.{what}_share");
        if !fields.has(&share) {
            return Ok(Chance::default());
        }
        let unit_ns = if unit == "ms" { 1e6 } else { 1e3 };
        let median_ns = fields.number(&format!("tail.{what}_{unit}"), 0.0, 1e10 / unit_ns)? * unit_ns;
        let share = fields.number(&share, 0.0, 1.0)?;
        Ok(Chance { share, long: Some(Lognormal::from_median(median_ns, SIGMA)) })
    }

    /// The extra time, mostly none.
    pub(super) fn ns(&self, rng: &mut Rng) -> u64 {
        match &self.long {
            Some(long) if rng.unit() < self.share => long.sample(rng),
            _ => 0,
        }
    }
}
