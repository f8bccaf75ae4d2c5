//! What a job moved as time went on.

/// Length of a sample, nanoseconds (fio's `bwavgtime`).
pub const SAMPLE_NS: u64 = 500_000_000;

/// What a job moved in [`SAMPLE_NS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
}

impl Sample {
    fn add(&mut self, other: Sample) {
        self.ios += other.ios;
        self.bytes += other.bytes;
    }
}

/// Samples since a job's start, by number. Those in which nothing moved are not kept: a trace may rest for years.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples(Vec<(u64, Sample)>);

impl Samples {
    /// Add what was moved `since_start_ns` into the job.
    #[inline]
    pub(crate) fn add(&mut self, since_start_ns: u64, moved: Sample) {
        let number = since_start_ns / SAMPLE_NS;
        match self.0.last_mut() {
            Some((last, sample)) if *last == number => sample.add(moved),
            Some((last, _)) if *last > number => self.insert(number, moved),
            _ => self.0.push((number, moved)),
        }
    }

    fn insert(&mut self, number: u64, moved: Sample) {
        match self.0.binary_search_by_key(&number, |(number, _)| *number) {
            Ok(place) => self.0[place].1.add(moved),
            Err(place) => self.0.insert(place, (number, moved)),
        }
    }

    pub(crate) fn merge(&mut self, other: &Samples) {
        self.0.extend_from_slice(&other.0);
        self.0.sort_by_key(|(number, _)| *number);
        self.0.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1.add(later.1);
            }
            same
        });
    }

    /// Those in which something moved, with their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Sample)> {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(bytes: u64) -> Sample {
        Sample { ios: 1, bytes }
    }

    #[test]
    fn a_rest_of_centuries_takes_no_memory() {
        let mut samples = Samples::default();
        for (at_ns, bytes) in [(0, 1), (SAMPLE_NS - 1, 2), (u64::MAX, 4), (SAMPLE_NS, 8), (3 * SAMPLE_NS, 16)]
        {
            samples.add(at_ns, one(bytes));
        }
        let bytes: Vec<_> = samples.iter().map(|(number, sample)| (number, sample.bytes)).collect();
        assert_eq!(bytes, [(0, 3), (1, 8), (3, 16), (u64::MAX / SAMPLE_NS, 4)]);
    }

    #[test]
    fn merged_samples_add_up() {
        let of = |all: &[(u64, u64)]| {
            let mut samples = Samples::default();
            all.iter().for_each(|(number, bytes)| samples.add(number * SAMPLE_NS, one(*bytes)));
            samples
        };
        let mut all = of(&[(0, 1), (2, 2)]);
        all.merge(&of(&[(1, 4), (2, 8), (9, 16)]));
        let wanted = [(0, 1, 1), (1, 1, 4), (2, 2, 10), (9, 1, 16)];
        assert_eq!(all.iter().map(|(n, s)| (n, s.ios, s.bytes)).collect::<Vec<_>>(), wanted);
    }
}
