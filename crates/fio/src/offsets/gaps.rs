//! Gaps of `rate_process=poisson`.

use crate::offsets::rng::Rng;

/// Microseconds from one I/O to the next, exponentially distributed around 1/`iops`.
///
/// fio's arithmetic: the mean is a whole number of microseconds, the logarithm a 32-bit float. `iops` is `rate_iops`, or `rate` divided
/// by the smallest block size and rounded down; 0 counts as 1. The stream: [`Seeds::poisson`](crate::offsets::Seeds::poisson).
pub fn poisson_gap_us(rng: &mut Rng, iops: u64) -> u64 {
    let mean_us = 1_000_000 / iops.max(1);
    let uniform = (rng.next_value() as f64 + 1.0) / 4_294_967_296.0;
    (mean_us as f32 * -libm::logf(uniform as f32)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_the_mean_asked_for() {
        let mut rng = Rng::taus88(1);
        let sum: u64 = (0..100_000).map(|_| poisson_gap_us(&mut rng, 1000)).sum();
        assert!((98_000_000..102_000_000).contains(&sum), "{sum}");
    }
}
