//! Think time: how long a task computes between two requests.

/// More samples than this (each counts 256, decaying by an eighth) and a mean is believed: three of them.
pub(crate) const SAMPLES_VALID: u32 = 80;

/// A decaying mean, in the user's unit of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThinkTime {
    samples: u32,
    total: u64,
    mean: u64,
}

impl ThinkTime {
    pub(crate) const NONE: ThinkTime = ThinkTime { samples: 0, total: 0, mean: 0 };

    /// `time` is at most 2^33 ms = 2^53 ns, so that `total` stays below 256 times that and 7 times it fits.
    #[inline]
    pub(crate) fn add(&mut self, time: u64) {
        self.samples = (7 * self.samples + 256) / 8;
        self.total = (7 * self.total + 256 * time) / 8;
        self.mean = (self.total + 128) / u64::from(self.samples.max(1));
    }

    /// The mean, once there are samples enough.
    #[inline]
    pub(crate) fn mean(&self) -> Option<u64> {
        (self.samples > SAMPLES_VALID).then_some(self.mean)
    }
}
