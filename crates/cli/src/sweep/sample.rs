//! Points of the unit cube: Latin hypercube and Sobol's sequence.

mod directions;

use directions::DIRECTIONS;

/// How points are drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// Each coordinate has one point in each of as many equal parts as there are points (McKay, Beckman, Conover 1979).
    LatinHypercube,
    /// Sobol's sequence with Joe and Kuo's directions, shifted digit by digit at random.
    Sobol,
}

/// Most coordinates of [`Method::Sobol`].
pub const SOBOL_DIMENSIONS_MAX: usize = DIRECTIONS.len() + 1;
/// Digits of a coordinate.
const BITS: u32 = 32;

/// `count` points of `dimensions` coordinates each, 0 to 1 without 1; `seed` decides them.
pub fn points(method: Method, dimensions: usize, count: usize, seed: u64) -> Vec<Vec<f64>> {
    match method {
        Method::LatinHypercube => latin(dimensions, count, seed),
        Method::Sobol => shifted_sobol(dimensions, count, seed),
    }
}

fn latin(dimensions: usize, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = SplitMix(seed);
    let mut points = vec![Vec::with_capacity(dimensions); count];
    for _ in 0..dimensions {
        let mut parts: Vec<usize> = (0..count).collect();
        for last in (1..count).rev() {
            parts.swap(last, random.below(last + 1));
        }
        for (point, part) in points.iter_mut().zip(parts) {
            point.push((part as f64 + random.unit()) / count as f64);
        }
    }
    points
}

fn shifted_sobol(dimensions: usize, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = SplitMix(seed);
    let shifts: Vec<u32> = (0..dimensions).map(|_| (random.next() >> 32) as u32).collect();
    let share = |digits: u32| f64::from(digits) / 2f64.powi(BITS as i32);
    sobol(dimensions, count)
        .into_iter()
        .map(|point| point.iter().zip(&shifts).map(|(digits, shift)| share(digits ^ shift)).collect())
        .collect()
}

/// The sequence itself, from its first point, the origin; coordinates are fractions of 2^32. In the order of the Gray code
/// (Antonov, Saleev 1979), so that a point differs from the one before by one direction.
fn sobol(dimensions: usize, count: usize) -> Vec<Vec<u32>> {
    let directions: Vec<[u32; BITS as usize]> = (0..dimensions).map(directions_of).collect();
    let mut point = vec![0u32; dimensions];
    let mut points = Vec::with_capacity(count);
    for number in 0..count {
        points.push(point.clone());
        let changed = (!(number as u64)).trailing_zeros().min(BITS - 1) as usize;
        for (coordinate, own) in point.iter_mut().zip(&directions) {
            *coordinate ^= own[changed];
        }
    }
    points
}

/// Direction numbers of a coordinate, from the primitive polynomial and the first of them (Bratley, Fox 1988).
fn directions_of(dimension: usize) -> [u32; BITS as usize] {
    let mut all = [0u32; BITS as usize];
    let Some((polynomial, first)) = dimension.checked_sub(1).map(|row| DIRECTIONS[row]) else {
        // The first coordinate is van der Corput's sequence.
        (0..BITS).for_each(|bit| all[bit as usize] = 1 << (BITS - 1 - bit));
        return all;
    };
    let degree = first.len();
    for bit in 0..BITS as usize {
        all[bit] = match first.get(bit) {
            Some(start) => start << (BITS as usize - 1 - bit),
            None => {
                let mut value = all[bit - degree] ^ (all[bit - degree] >> degree);
                for term in 1..degree {
                    if polynomial >> (degree - 1 - term) & 1 == 1 {
                        value ^= all[bit - term];
                    }
                }
                value
            }
        };
    }
    all
}

/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to 1, without 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// 0 to `end`, without `end`.
    fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Point 37 of all coordinates, the upper 16 digits, as `scipy.stats.qmc.Sobol(21, scramble=False)` gives it.
    #[test]
    fn sobols_sequence_is_joe_and_kuos() {
        let expected: [u32; SOBOL_DIMENSIONS_MAX] = [
            0xec00, 0xa400, 0x9400, 0xec00, 0xc400, 0x4c00, 0x2c00, 0xcc00, 0x9c00, 0x2c00, 0x0400, 0x1400,
            0x9400, 0xdc00, 0x1c00, 0x7c00, 0xcc00, 0x6c00, 0x0c00, 0x2400, 0xf400,
        ];
        let point: Vec<u32> = sobol(SOBOL_DIMENSIONS_MAX, 38)[37].iter().map(|x| x >> 16).collect();
        assert_eq!(point, expected);
    }

    /// Both methods, and all coordinates of Sobol's: of 2^k points each of 2^k equal parts has one.
    #[test]
    fn every_part_of_every_coordinate_has_its_point() {
        for (method, dimensions) in [(Method::LatinHypercube, 7), (Method::Sobol, SOBOL_DIMENSIONS_MAX)] {
            let points = points(method, dimensions, 64, 5);
            for coordinate in 0..dimensions {
                let mut parts: Vec<u32> = points.iter().map(|p| (p[coordinate] * 64.0) as u32).collect();
                parts.sort_unstable();
                assert_eq!(parts, (0..64).collect::<Vec<_>>(), "{method:?}, coordinate {coordinate}");
            }
        }
    }

    #[test]
    fn the_seed_decides() {
        for method in [Method::LatinHypercube, Method::Sobol] {
            assert_eq!(points(method, 3, 9, 1), points(method, 3, 9, 1));
            assert_ne!(points(method, 3, 9, 1), points(method, 3, 9, 2));
        }
    }
}
