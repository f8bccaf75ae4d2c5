//! Time to move the heads by a number of cylinders.

/// A seek curve; times in nanoseconds, distances in cylinders.
#[derive(Clone, Debug)]
pub(in crate::device) enum SeekCurve {
    /// `a·√(d−1) + b·(d−1) + c`: Lee's three-parameter form (DiskSim manual B.5.1).
    Lee { a: f64, b: f64, c: f64 },
    /// `near + near_root·√d` up to `knee`, `far + far_slope·d` from there on, `single` for one cylinder:
    /// Ruemmler and Wilkes' form (IEEE Computer 27(3), 1994; DiskSim manual B.5.2).
    Hp { near: f64, near_root: f64, knee: u32, far: f64, far_slope: f64, single: Option<f64> },
    /// Measured points by rising distance, joined by straight lines; the last line goes on past the end.
    Table(Vec<(f64, f64)>),
}

impl SeekCurve {
    /// Lee's curve from shortest, mean and longest time, where the mean is over random pairs of `cylinders`.
    /// Gives (a, b, c) in the unit of the times; `a` and `b` are negative when no such curve exists.
    pub(super) fn lee_from_times(min: f64, mean: f64, max: f64, cylinders: u32) -> (f64, f64, f64) {
        let n = f64::from(cylinders);
        let a = (-10.0 * min + 15.0 * mean - 5.0 * max) / (3.0 * n.sqrt());
        let b = (7.0 * min - 15.0 * mean + 8.0 * max) / (3.0 * n);
        (a, b, min)
    }

    /// Time for `distance` cylinders; 0 for none.
    #[inline(always)]
    pub(in crate::device) fn ns(&self, distance: u32) -> u64 {
        if distance == 0 {
            return 0;
        }
        let d = f64::from(distance);
        let ns = match self {
            SeekCurve::Lee { a, b, c } => a * (d - 1.0).sqrt() + b * (d - 1.0) + c,
            SeekCurve::Hp { single: Some(single), .. } if distance == 1 => *single,
            SeekCurve::Hp { near, near_root, knee, .. } if distance < *knee => near + near_root * d.sqrt(),
            SeekCurve::Hp { far, far_slope, .. } => far + far_slope * d,
            SeekCurve::Table(points) => table(points, d),
        };
        // The cast saturates: a line that goes on below zero gives 0.
        ns as u64
    }
}

/// A lower bound of seek curves in one small table, so that the firmware's choice can pass over far candidates without
/// a square root each.
#[derive(Clone, Debug)]
pub(super) struct SeekFloor {
    shift: u32,
    bounds: Box<[u32]>,
}

impl SeekFloor {
    /// Below all of `curves` for any distance under `cylinders`, however they wind.
    pub(super) fn new(curves: &[&SeekCurve], cylinders: u32) -> SeekFloor {
        // At most 4,096 buckets.
        let shift = (32 - cylinders.leading_zeros()).saturating_sub(12);
        let shortest = |d| curves.iter().map(|curve| curve.ns(d)).min().unwrap_or(0);
        let mut bounds = vec![0u32; (cylinders >> shift) as usize + 1];
        let mut least = u64::MAX;
        for (bucket, bound) in bounds.iter_mut().enumerate().rev() {
            let first = (bucket as u32) << shift;
            // Exact over every distance of the bucket: a measured curve may dip between any two points.
            let within = (first..(first + (1 << shift)).min(cylinders)).map(shortest).min();
            least = least.min(within.unwrap_or(u64::MAX));
            *bound = u32::try_from(least).unwrap_or(u32::MAX);
        }
        SeekFloor { shift, bounds: bounds.into() }
    }

    /// No seek over `distance` cylinders takes less.
    #[inline]
    pub(super) fn ns(&self, distance: u32) -> u64 {
        u64::from(self.bounds.get((distance >> self.shift) as usize).copied().unwrap_or(0))
    }
}

fn table(points: &[(f64, f64)], d: f64) -> f64 {
    if points.len() < 2 {
        return points.first().map_or(0.0, |point| point.1);
    }
    let above = points.partition_point(|point| point.0 < d).clamp(1, points.len() - 1);
    let ((x0, y0), (x1, y1)) = (points[above - 1], points[above]);
    // Before the first point the curve is level: a seek is never shorter than the shortest measured.
    if d <= x0 { y0 } else { y0 + (y1 - y0) * (d - x0) / (x1 - x0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lee_coefficients_of_the_2009_disk() {
        // Published derivation: 0.8 / 8.5 / 16.0 ms over 153,352 cylinders gives a = 0.033623, b = 1.3259e-5.
        let (a, b, c) = SeekCurve::lee_from_times(0.8, 8.5, 16.0, 153_352);
        assert!((a - 0.033_623).abs() < 1e-6 && (b - 1.3259e-5).abs() < 1e-9 && c == 0.8);
    }

    #[test]
    fn lee_mean_over_random_pairs_is_the_mean_asked_for() {
        let n = 20_000u32;
        let (a, b, c) = SeekCurve::lee_from_times(0.8e6, 8.5e6, 16.0e6, n);
        let curve = SeekCurve::Lee { a, b, c };
        let count = f64::from(n);
        let sum: f64 = (1..n).map(|d| curve.ns(d) as f64 * 2.0 * (count - f64::from(d))).sum();
        assert!((sum / (count * count) / 8.5e6 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn hp_97560_as_published() {
        // 3.24 + 0.400 sqrt(d) up to 383 cylinders, 8.00 + 0.008 d beyond.
        let curve = SeekCurve::Hp {
            near: 3.24e6,
            near_root: 0.4e6,
            knee: 384,
            far: 8e6,
            far_slope: 8e3,
            single: None,
        };
        assert_eq!(curve.ns(0), 0);
        assert_eq!(curve.ns(100), 7_240_000);
        assert_eq!(curve.ns(1000), 16_000_000);
    }

    #[test]
    fn the_floor_is_below_a_curve_that_dips_and_close_to_one_that_rises() {
        let dips = SeekCurve::Table(vec![(1.0, 1.8e6), (13.0, 0.5e6), (20.0, 1.8e6), (90_000.0, 9e6)]);
        let rises = SeekCurve::Lee { a: 33_623.0, b: 13.259, c: 0.8e6 };
        for curve in [&dips, &rises] {
            let floor = SeekFloor::new(&[curve], 100_000);
            for d in 0..100_000 {
                assert!(floor.ns(d) <= curve.ns(d), "{d}");
            }
            assert!(floor.ns(50_000) * 100 > curve.ns(50_000) * 99);
        }
        assert_eq!(SeekFloor::new(&[&dips], 100_000).ns(2), 0, "no distance, no time");
    }

    #[test]
    fn a_table_is_joined_by_lines_and_goes_on_past_its_end() {
        let curve = SeekCurve::Table(vec![(1.0, 100.0), (11.0, 200.0), (21.0, 400.0)]);
        let times: Vec<u64> = [1, 6, 11, 16, 21, 31].iter().map(|&d| curve.ns(d)).collect();
        assert_eq!(times, [100, 150, 200, 300, 400, 600]);
    }
}
