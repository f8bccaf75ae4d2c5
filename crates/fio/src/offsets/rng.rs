//! L'Ecuyer's combined Tausworthe generators as fio seeds them.
//!
//! taus88: P. L'Ecuyer, "Maximally equidistributed combined Tausworthe generators", Math. Comp. 65 (1996); taus258: "Tables of
//! maximally equidistributed combined LFSR generators", Math. Comp. 68 (1999). Seeding: fio 3.33
//! `lib/rand.c` (the start value 53 is fio's `2^31 + 2^17 + 2^7` read as exclusive ors).

const START: u64 = 53;
/// Outputs thrown away after seeding.
const WARM_UP: usize = 6;

/// One random stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rng {
    /// 32 bits an output.
    Taus88([u32; 3]),
    /// 64 bits an output.
    Taus258([u64; 5]),
}

impl Rng {
    /// taus88; only the low 32 bits of the seed count.
    pub fn taus88(seed: u64) -> Self {
        let seed = seed as u32;
        let mut value = START as u32;
        let mut part = |least: u32| {
            value = value.wrapping_mul(69_069) ^ seed;
            value = if value < least { value + least } else { value };
            value
        };
        let mut rng = Self::Taus88([part(1), part(7), part(15)]);
        rng.warm_up();
        rng
    }

    /// taus258.
    pub fn taus258(seed: u64) -> Self {
        let mut value = START;
        let mut part = |least: u64| {
            value = value.wrapping_mul(6_906_969_069) ^ seed;
            value = if value < least { value + least } else { value };
            value
        };
        let mut rng = Self::Taus258([part(1), part(7), part(15), part(33), part(49)]);
        rng.warm_up();
        rng
    }

    fn warm_up(&mut self) {
        for _ in 0..WARM_UP {
            self.next_value();
        }
    }

    /// Either, by width.
    pub fn new(seed: u64, wide: bool) -> Self {
        if wide { Self::taus258(seed) } else { Self::taus88(seed) }
    }

    /// Next output: 32 or 64 random bits.
    #[inline]
    pub fn next_value(&mut self) -> u64 {
        match self {
            Self::Taus88(s) => {
                s[0] = ((s[0] & !1) << 12) ^ (((s[0] << 13) ^ s[0]) >> 19);
                s[1] = ((s[1] & !7) << 4) ^ (((s[1] << 2) ^ s[1]) >> 25);
                s[2] = ((s[2] & !15) << 17) ^ (((s[2] << 3) ^ s[2]) >> 11);
                u64::from(s[0] ^ s[1] ^ s[2])
            }
            Self::Taus258(s) => {
                // Per component: bits kept, shift of the kept part, shifts of the feedback.
                let steps =
                    [(1, 10, 1, 53), (9, 5, 24, 50), (12, 29, 3, 23), (17, 23, 5, 24), (23, 8, 3, 33)];
                for (s, (low, left, a, b)) in s.iter_mut().zip(steps) {
                    let kept = *s & !((1u64 << low) - 1);
                    *s = (kept << left) ^ (((*s << a) ^ *s) >> b);
                }
                s.iter().fold(0, |sum, part| sum ^ part)
            }
        }
    }

    /// Largest possible output.
    pub fn max_value(&self) -> u64 {
        match self {
            Self::Taus88(_) => u64::from(u32::MAX),
            Self::Taus258(_) => u64::MAX,
        }
    }

    /// Next output as a fraction of its range, 0 to (for 64 bits, including) 1. Exact arithmetic of IEEE doubles, so the same everywhere.
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        let value = self.next_value();
        match self {
            Self::Taus88(_) => value as f64 / 4_294_967_296.0,
            Self::Taus258(_) => value as f64 / 18_446_744_073_709_551_616.0,
        }
    }

    /// A number in `low..=high`.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + ((high - low + 1) as f64 * self.fraction()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_outputs_of_job_1() {
        let mut rng = Rng::taus88(0xb189_9bed);
        let outputs: Vec<_> = (0..5).map(|_| rng.next_value()).collect();
        assert_eq!(outputs, [259_043_585, 3_179_521_932, 3_621_444_214, 2_018_697_059, 1_726_199_243]);
    }

    #[test]
    fn between_stays_between() {
        let mut rng = Rng::taus88(1);
        let values: Vec<_> = (0..10_000).map(|_| rng.between(1, 100)).collect();
        assert_eq!(values.iter().min(), Some(&1));
        assert_eq!(values.iter().max(), Some(&100));
    }
}
