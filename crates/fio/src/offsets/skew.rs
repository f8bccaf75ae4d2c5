//! Uneven distributions: zipf, pareto, normal.
//!
//! Powers and logarithms come from the `libm` crate, so that the same seed gives the same blocks on every machine.
//! Zipf: J. Gray et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994.

use std::sync::{Mutex, PoisonError};

use crate::job::Distribution;
use crate::offsets::rng::Rng;

/// Terms of the zeta sum: fio stops here too.
const ZETA_TERMS_MAX: u64 = 10_000_000;
/// Sums remembered.
const KNOWN_MAX: usize = 1024;
/// 2⁶⁴ times the golden section: a value multiplied by it lands anywhere in the file.
const SCATTER: u64 = 0x61c8_8646_80b5_83eb;
/// Uniform numbers averaged for a normal one.
const NORMAL_TERMS: u64 = 12;

/// A distribution over the blocks `0..blocks` of one file.
#[derive(Clone, Debug)]
pub(super) struct Skew {
    shape: Shape,
    rng: Rng,
    blocks: u64,
    shift: u64,
}

#[derive(Clone, Debug)]
enum Shape {
    /// Precomputed: sum of the series, 1/(1-θ), η, 1 + 2^-θ.
    Zipf {
        zeta: f64,
        alpha: f64,
        eta: f64,
        two: f64,
    },
    Pareto {
        power: f64,
    },
    Normal {
        deviation: u64,
    },
}

impl Skew {
    /// `None` for distributions that are not skewed. `blocks` > 0.
    pub(super) fn new(distribution: &Distribution, blocks: u64, seed: u32) -> Option<Self> {
        let mut rng = Rng::taus88(u64::from(seed));
        let (shape, shift) = match *distribution {
            Distribution::Zipf { theta, center } => (zipf(theta, blocks), shift(&mut rng, blocks, center)),
            Distribution::Pareto { h, center } => {
                let power = libm::log(h) / libm::log(1.0 - h);
                (Shape::Pareto { power }, shift(&mut rng, blocks, center))
            }
            Distribution::Normal { deviation_percent, center } => {
                let deviation = libm::ceil(blocks as f64 * deviation_percent / 100.0) as u64;
                let shift = center.map_or(0, |center| (blocks as f64 * (center - 0.5)) as i64 as u64);
                (Shape::Normal { deviation: deviation.min(blocks / 2) }, shift)
            }
            Distribution::Uniform | Distribution::Zoned(_) => return None,
        };
        Some(Self { shape, rng, blocks, shift })
    }

    /// Next block.
    pub(super) fn next_block(&mut self) -> u64 {
        let rank = match self.shape {
            Shape::Zipf { zeta, alpha, eta, two } => {
                let uniform = self.rng.next_value() as f64 / f64::from(u32::MAX);
                match uniform * zeta {
                    z if z < 1.0 => 0,
                    z if z < two => 1,
                    _ => (self.blocks as f64 * libm::pow(eta * uniform - eta + 1.0, alpha)) as u64,
                }
            }
            Shape::Pareto { power } => {
                let uniform = self.rng.next_value() as f64 / f64::from(u32::MAX);
                ((self.blocks - 1) as f64 * libm::pow(uniform, power)) as u64
            }
            Shape::Normal { deviation } => normal(&mut self.rng, self.blocks, deviation),
        };
        rank.wrapping_mul(SCATTER).wrapping_add(self.shift) % self.blocks
    }
}

/// Where rank 0 lies: at the center asked for, else anywhere. Draws from the stream in either case.
fn shift(rng: &mut Rng, blocks: u64, center: Option<f64>) -> u64 {
    let anywhere = rng.next_value();
    center.map_or(anywhere, |center| (blocks as f64 * center) as u64)
}

/// Sum of the series. It takes up to a second, so processes of a job and runs of a sweep share it.
fn zeta(theta: f64, blocks: u64) -> f64 {
    static KNOWN: Mutex<Vec<(u64, u64, f64)>> = Mutex::new(Vec::new());
    let terms = blocks.min(ZETA_TERMS_MAX);
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((.., sum)) = known().iter().find(|(t, n, _)| (*t, *n) == (theta.to_bits(), terms)) {
        return *sum;
    }
    let term = |n: u64| libm::pow(1.0 / n as f64, theta);
    // Summed from the front: the order decides the last bits.
    let sum = (1..=terms).map(term).fold(0.0, |sum, term| sum + term);
    let mut known = known();
    if known.len() == KNOWN_MAX {
        known.clear();
    }
    known.push((theta.to_bits(), terms, sum));
    sum
}

fn zipf(theta: f64, blocks: u64) -> Shape {
    let zeta = zeta(theta, blocks);
    let half = libm::pow(0.5, theta);
    let eta = (1.0 - libm::pow(2.0 / blocks as f64, 1.0 - theta)) / (1.0 - (1.0 + half) / zeta);
    Shape::Zipf { zeta, alpha: 1.0 / (1.0 - theta), eta, two: 1.0 + half }
}

/// Mean of twelve uniform blocks, moved by up to half a deviation.
fn normal(rng: &mut Rng, blocks: u64, deviation: u64) -> u64 {
    let sum: u64 = (0..NORMAL_TERMS).map(|_| rng.next_value() % (blocks + 1)).sum();
    let mean = sum.div_ceil(NORMAL_TERMS);
    if deviation == 0 {
        return mean;
    }
    // 32-bit arithmetic wraps here in fio too, for files of more than 2³¹ blocks.
    let mut move_by =
        i64::from((deviation as f64 * rng.fraction()) as u32 as i32 - (deviation / 2) as u32 as i32);
    // Halved towards 0 until it stays inside; a sum below 0 counts as outside.
    while move_by != 0 && (mean as i64).wrapping_add(move_by) as u64 >= blocks {
        move_by /= 2;
    }
    mean.wrapping_add(move_by as u64)
}
