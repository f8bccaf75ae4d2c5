//! The values that a setting takes in a sweep: a list, or a range.

/// Significant digits of a sampled number: enough to tell values apart, and a command line stays readable.
const DIGITS: i32 = 4;

/// A setting and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Which setting: `device`, `mq-deadline.fifo_batch`, `job.db.iodepth`.
    pub key: String,
    /// Its values.
    pub values: Values,
}

/// What values there are.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// These.
    List(Vec<String>),
    /// All from one to another.
    Range(Range),
}

/// Numbers from `from` to `to`, both included.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The smallest.
    pub from: f64,
    /// The largest.
    pub to: f64,
    /// Whole numbers only.
    pub whole: bool,
    /// Equal ratios, not equal differences.
    pub log: bool,
    /// How many of them a grid takes.
    pub steps: Option<usize>,
}

impl Values {
    /// The values a grid takes, in order. Steps of whole numbers that fall together count once.
    pub fn grid(&self) -> Vec<String> {
        match self {
            Values::List(values) => values.clone(),
            Values::Range(range) => {
                let steps = range.steps.unwrap_or(1);
                let last = steps.saturating_sub(1).max(1) as f64;
                let mut values: Vec<String> = (0..steps).map(|step| range.at(step as f64 / last)).collect();
                values.dedup();
                values
            }
        }
    }

    /// The value at `share` (0 to 1, without 1) of the way through.
    pub fn at(&self, share: f64) -> String {
        match self {
            Values::List(values) => {
                let place = (share * values.len() as f64) as usize;
                values[place.min(values.len() - 1)].clone()
            }
            // Each whole number gets as much of the way as any other.
            Values::Range(range) if range.whole && !range.log => {
                let place = range.from + (share * (range.to - range.from + 1.0)).floor();
                number(place.min(range.to))
            }
            Values::Range(range) => range.at(share),
        }
    }
}

impl Range {
    fn at(&self, share: f64) -> String {
        let value = match self.log {
            // The platform's own functions may differ in the last bit.
            true => libm::exp(libm::log(self.from) + share * (libm::log(self.to) - libm::log(self.from))),
            false => self.from + share * (self.to - self.from),
        };
        number(if self.whole { value.round() } else { rounded(value) }.clamp(self.from, self.to))
    }
}

/// To [`DIGITS`] significant digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.*e}", (DIGITS - 1) as usize).parse().unwrap_or(value)
}

fn number(value: f64) -> String {
    format!("{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(from: f64, to: f64, whole: bool, log: bool, steps: usize) -> Values {
        Values::Range(Range { from, to, whole, log, steps: Some(steps) })
    }

    #[test]
    fn a_grid_has_both_ends() {
        assert_eq!(range(1.0, 64.0, true, true, 4).grid(), ["1", "4", "16", "64"]);
        assert_eq!(range(0.0, 1.0, false, false, 3).grid(), ["0", "0.5", "1"]);
        assert_eq!(range(1.0, 2.0, true, false, 9).grid(), ["1", "2"], "what falls together counts once");
        assert_eq!(range(7.0, 9.0, true, false, 1).grid(), ["7"]);
    }

    #[test]
    fn a_sample_gives_every_value_the_same_part() {
        let values = range(1.0, 4.0, true, false, 1);
        let drawn: Vec<String> = (0..8).map(|i| values.at(f64::from(i) / 8.0)).collect();
        assert_eq!(drawn, ["1", "1", "2", "2", "3", "3", "4", "4"]);
        let words = Values::List(vec!["a".into(), "b".into()]);
        assert_eq!([words.at(0.49), words.at(0.5), words.at(0.999_999)], ["a", "b", "b"]);
        assert_eq!(range(0.0, 1.0, false, false, 1).at(0.123_456), "0.1235");
    }
}
