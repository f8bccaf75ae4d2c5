//! Count, minimum, mean, maximum and spread in one pass.

/// Of a stream of whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// How many.
    pub count: u64,
    /// The smallest; 0 when there is none.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// Their sum.
    pub sum: u128,
    /// Welford's running mean and sum of squared deviations.
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Takes one more.
    pub fn add(&mut self, value: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += 1;
        self.sum += u128::from(value);
        let deviation = value as f64 - self.mean;
        self.mean += deviation / self.count as f64;
        self.squares += deviation * (value as f64 - self.mean);
    }

    /// Takes `times` zeroes.
    pub(crate) fn add_zeroes(&mut self, times: u64) {
        if times == 0 {
            return;
        }
        let (old, new) = (self.count as f64, (self.count + times) as f64);
        self.squares += self.mean * self.mean * old * times as f64 / new;
        self.mean *= old / new;
        self.min = 0;
        self.count += times;
    }

    /// The mean; 0 when there is none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// The variance of the population.
    pub fn variance(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.squares / self.count as f64 }
    }

    /// Standard deviation over mean: 1 for a Poisson stream's gaps, more for a bursty one. `None` without a mean.
    pub fn variation(&self) -> Option<f64> {
        (self.mean() > 0.0).then(|| self.variance().sqrt() / self.mean())
    }

    /// Variance over mean: 1 for a Poisson stream's counts. `None` without a mean.
    pub fn dispersion(&self) -> Option<f64> {
        (self.mean() > 0.0).then(|| self.variance() / self.mean())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_sets_by_hand() {
        let mut moments = Moments::default();
        [2, 4, 4, 4, 5, 5, 7, 9].into_iter().for_each(|value| moments.add(value));
        assert_eq!((moments.count, moments.min, moments.max, moments.mean()), (8, 2, 9, 5.0));
        assert!(
            (moments.variance() - 4.0).abs() < 1e-12 && (moments.variation().unwrap() - 0.4).abs() < 1e-12
        );
        let mut padded = moments;
        padded.add_zeroes(8);
        let mut plain = moments;
        (0..8).for_each(|_| plain.add(0));
        assert_eq!((padded.count, padded.min), (plain.count, plain.min));
        assert!((padded.variance() - plain.variance()).abs() < 1e-9);
    }
}
