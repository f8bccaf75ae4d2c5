//! Percentiles of a stream, within 0.8 %.

/// A histogram with 64 steps for each power of two, as fio's.
#[derive(Clone, Debug, Default)]
pub struct Percentiles {
    counts: Vec<u64>,
    count: u64,
}

const STEP_BITS: u32 = 6;

fn bucket(value: u64) -> usize {
    let exponent = value.checked_ilog2().unwrap_or(0);
    let shift = exponent.saturating_sub(STEP_BITS);
    // Below 2^7 every value has its own bucket; above, the top seven bits and the shift name it.
    ((u64::from(shift) << STEP_BITS) + (value >> shift)) as usize
}

/// The middle of a bucket.
fn value(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 << STEP_BITS {
        return bucket;
    }
    let shift = (bucket >> STEP_BITS) - 1;
    let low = (bucket - (shift << STEP_BITS)) << shift;
    low + (1 << shift) / 2
}

impl Percentiles {
    /// Takes one more.
    pub fn add(&mut self, sample: u64) {
        let bucket = bucket(sample);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
    }

    /// How many were taken.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The value below which `percent` of the samples lie; `None` without samples.
    pub fn at(&self, percent: f64) -> Option<u64> {
        let rank = (percent / 100.0 * self.count as f64).ceil().max(1.0) as u64;
        let mut sum = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            sum += count;
            if sum >= rank {
                return Some(value(bucket));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_close_and_ordered() {
        let mut last = 0;
        for sample in (0..4000u64)
            .chain((12..63).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + (1 << (bit - 1))]))
        {
            let (number, middle) = (bucket(sample), value(bucket(sample)));
            assert!(number >= last, "{sample}");
            assert!(middle.abs_diff(sample) * 128 <= sample.max(1), "{sample} is shown as {middle}");
            last = number;
        }
        assert!(bucket(u64::MAX) < 4096);
    }

    #[test]
    fn ranks() {
        let mut percentiles = Percentiles::default();
        assert_eq!(percentiles.at(50.0), None);
        (1..=100).for_each(|sample| percentiles.add(sample));
        assert_eq!(
            (percentiles.at(50.0), percentiles.at(99.0), percentiles.at(100.0)),
            (Some(50), Some(99), Some(100))
        );
    }
}
