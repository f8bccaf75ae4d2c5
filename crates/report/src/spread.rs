//! A figure from several seeds: its mean, and how sure that is.

/// Mean of a figure over seeds, and half of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The true mean lies within so much of it, 19 times of 20, if the figure is normally distributed over seeds (Student). One seed
    /// tells nothing about that: 0.
    pub half: f64,
}

/// Student's t for 95 % (two-sided), by degrees of freedom from 1. Source: any table; these to three digits.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// Beyond the table: the normal distribution's.
const NORMAL: f64 = 1.96;

impl Spread {
    /// Of these values; `None` without any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let values: Vec<f64> = values.into_iter().collect();
        let count = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        if values.len() == 1 {
            return Some(Spread { mean, half: 0.0 });
        }
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let student = STUDENT.get(values.len() - 2).copied().unwrap_or(NORMAL);
        Some(Spread { mean, half: student * (squares / (count - 1.0) / count).sqrt() })
    }

    /// Do the intervals lie apart?
    pub fn is_apart_from(&self, other: &Spread) -> bool {
        (self.mean - other.mean).abs() > self.half + other.half
    }

    /// Half of the interval, percent of the mean.
    pub fn percent(&self) -> f64 {
        if self.mean == 0.0 { 0.0 } else { 100.0 * self.half / self.mean.abs() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_students() {
        // 9, 10, 11: deviation 1, error of the mean 1/sqrt(3), t for 2 degrees of freedom 4.303.
        let spread = Spread::of([9.0, 10.0, 11.0]).expect("three values");
        assert_eq!(spread.mean, 10.0);
        assert!((spread.half - 4.303 / 3.0_f64.sqrt()).abs() < 1e-12, "{spread:?}");
        assert!((spread.percent() - 24.84).abs() < 0.01, "{spread:?}");
        assert_eq!(Spread::of([7.0]), Some(Spread { mean: 7.0, half: 0.0 }));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn apart_is_what_does_not_overlap() {
        let at = |mean, half| Spread { mean, half };
        assert!(at(10.0, 1.0).is_apart_from(&at(13.0, 1.5)));
        assert!(!at(10.0, 1.0).is_apart_from(&at(12.0, 1.5)));
        assert!(!at(5.0, 0.0).is_apart_from(&at(5.0, 0.0)));
    }
}
