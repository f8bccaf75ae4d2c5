//! Deterministic randomness for service times: the same seed gives the same numbers on every machine.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, 2019), seeded through splitmix64. Logarithms and
//! exponentials come from the `libm` crate, never from the platform.

use std::sync::OnceLock;

/// A small deterministic generator.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// A generator whose whole sequence is decided by `seed`.
    pub fn new(seed: u64) -> Rng {
        let mut mix = seed;
        let mut next = || {
            mix = mix.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = mix;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        };
        Rng { state: [next(), next(), next(), next()] }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..bound`; 0 for a bound of 0. (Multiply and shift: the bias is below `bound / 2^64`.)
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in `0.0..1.0`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
}

/// Points of a [`Lognormal`]'s table.
const POINTS: usize = 4096;

/// A lognormal time drawn from a table of 4,096 equally likely quantile mid-points, so that a draw costs one table
/// look-up. The tails are therefore cut at 1/8,192 on either side; the mean is exact to a nanosecond.
#[derive(Clone, Debug)]
pub struct Lognormal {
    table: Box<[u32]>,
}

impl Lognormal {
    /// From the mean (nanoseconds, at most 4 s) and the coefficient of variation (standard deviation / mean).
    pub fn from_mean(mean_ns: f64, cv: f64) -> Lognormal {
        let sigma = libm::sqrt(libm::log(1.0 + cv * cv));
        Self::build(mean_ns, sigma)
    }

    /// From the median (nanoseconds) and sigma, the standard deviation of the logarithm.
    pub fn from_median(median_ns: f64, sigma: f64) -> Lognormal {
        Self::build(median_ns * libm::exp(sigma * sigma / 2.0), sigma)
    }

    fn build(mean_ns: f64, sigma: f64) -> Lognormal {
        let raw: Vec<f64> = quantiles().iter().map(|quantile| libm::exp(sigma * quantile)).collect();
        // The cut tails would lower the mean by up to a per mille: scale them back in.
        let scale = mean_ns * POINTS as f64 / raw.iter().sum::<f64>();
        Lognormal { table: raw.iter().map(|x| (x * scale + 0.5) as u32).collect() }
    }

    /// One draw, nanoseconds.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> u64 {
        u64::from(self.table[(rng.next_u64() >> 52) as usize & (POINTS - 1)])
    }
}

/// The standard normal's quantile mid-points. They take 20 ms, more than a short run: thousands of runs in a process share them.
fn quantiles() -> &'static [f64; POINTS] {
    static QUANTILES: OnceLock<Box<[f64; POINTS]>> = OnceLock::new();
    QUANTILES
        .get_or_init(|| Box::new(std::array::from_fn(|i| inverse_normal((i as f64 + 0.5) / POINTS as f64))))
}

/// The standard normal's quantile function for `0 < p < 1`, by bisection on `erfc`: slow, exact, used at
/// construction only.
fn inverse_normal(p: f64) -> f64 {
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..60 {
        let mid = (low + high) / 2.0;
        let below = 0.5 * libm::erfc(-mid / core::f64::consts::SQRT_2);
        if below < p {
            low = mid;
        } else {
            high = mid;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lognormal_has_the_mean_and_spread_asked_for() {
        let times = Lognormal::from_mean(36_000.0, 0.2);
        let mut rng = Rng::new(1);
        let draws: Vec<f64> = (0..200_000).map(|_| times.sample(&mut rng) as f64).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let sd = (draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / draws.len() as f64).sqrt();
        assert!((mean / 36_000.0 - 1.0).abs() < 0.003, "{mean}");
        assert!((sd / mean - 0.2).abs() < 0.005, "{}", sd / mean);
    }

    #[test]
    fn median_form_matches_its_closed_mean() {
        // median 0.30 ms, sigma 0.25: mean 0.30 * exp(0.03125) = 0.3095 ms
        let times = Lognormal::from_median(300_000.0, 0.25);
        let mean = times.table.iter().map(|&x| f64::from(x)).sum::<f64>() / POINTS as f64;
        assert!((mean - 309_523.0).abs() < 5.0, "{mean}");
    }

    #[test]
    fn below_stays_below_and_is_repeatable() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        for bound in [1, 2, 3, 1000, u64::MAX] {
            let x = a.below(bound);
            assert!(x < bound);
            assert_eq!(x, b.below(bound));
        }
        assert_eq!(a.below(0), 0);
    }
}
