//! How many I/Os are in flight, over time.

/// A step function of time: its mean, its maximum, and a picture of at most [`Depth::STEPS`] equal steps.
#[derive(Clone, Debug)]
pub struct Depth {
    /// In flight now.
    pub now: u64,
    /// The most at once.
    pub max: u64,
    started_ns: Option<u64>,
    last_ns: u64,
    /// Depth times ns.
    area: u128,
    /// Each step's length, ns; doubled when there are too many.
    step_ns: u64,
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Step {
    area: u128,
    max: u64,
}

impl Default for Depth {
    fn default() -> Self {
        Self { now: 0, max: 0, started_ns: None, last_ns: 0, area: 0, step_ns: 1_000_000, steps: Vec::new() }
    }
}

impl Depth {
    /// The picture's steps, at most.
    pub const STEPS: usize = 1024;

    /// From `now_ns` on there is one more.
    pub fn up(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.now += 1;
        self.peak();
    }

    /// From `now_ns` on there is one less. Nothing happens at zero: the trace began in the middle.
    pub fn down(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.now = self.now.saturating_sub(1);
    }

    /// From `now_ns` on there is none: what became of those in flight is not known.
    pub fn none(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.now = 0;
    }

    fn peak(&mut self) {
        self.max = self.max.max(self.now);
        let index = self.index(self.last_ns);
        if let Some(step) = self.steps.get_mut(index) {
            step.max = step.max.max(self.now);
        }
    }

    fn index(&self, ns: u64) -> usize {
        ((ns - self.started_ns.unwrap_or(ns)) / self.step_ns) as usize
    }

    fn advance(&mut self, now_ns: u64) {
        let started_ns = *self.started_ns.get_or_insert(now_ns);
        if self.steps.is_empty() {
            (self.last_ns, self.steps) = (now_ns, vec![Step::default()]);
        }
        let now_ns = now_ns.max(self.last_ns);
        while (now_ns - started_ns) / self.step_ns >= Self::STEPS as u64 {
            self.double();
        }
        self.area += u128::from(self.now) * u128::from(now_ns - self.last_ns);
        while self.last_ns < now_ns {
            let index = self.index(self.last_ns);
            let end_ns =
                (index as u64 + 1).saturating_mul(self.step_ns).saturating_add(started_ns).min(now_ns);
            if self.steps.len() <= index {
                self.steps.resize(index + 1, Step::default());
            }
            let step = &mut self.steps[index];
            step.area += u128::from(self.now) * u128::from(end_ns - self.last_ns);
            step.max = step.max.max(self.now);
            self.last_ns = end_ns;
        }
        let index = self.index(now_ns);
        if self.steps.len() <= index {
            self.steps.resize(index + 1, Step::default());
        }
    }

    /// Makes each step twice as long.
    fn double(&mut self) {
        self.step_ns = self.step_ns.saturating_mul(2);
        let pair = |pair: &[Step]| Step {
            area: pair.iter().map(|step| step.area).sum(),
            max: pair.iter().map(|step| step.max).max().unwrap_or(0),
        };
        self.steps = self.steps.chunks(2).map(pair).collect();
    }

    /// The mean over time from the first change to the last.
    pub fn mean(&self) -> f64 {
        let length_ns = self.last_ns - self.started_ns.unwrap_or(self.last_ns);
        if length_ns == 0 { 0.0 } else { self.area as f64 / length_ns as f64 }
    }

    /// Length of the picture's steps, ns.
    pub fn step_ns(&self) -> u64 {
        self.step_ns
    }

    /// Mean and maximum of each step, in order from the first change.
    pub fn series(&self) -> impl Iterator<Item = (f64, u64)> {
        self.steps.iter().map(|step| (step.area as f64 / self.step_ns as f64, step.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn area_survives_doubling() {
        let mut depth = Depth::default();
        depth.up(5);
        depth.up(10_000_000_005);
        depth.down(20_000_000_005);
        depth.down(30_000_000_005);
        depth.down(40_000_000_005);
        // 1, 2, 1, 0 for ten seconds each.
        assert!((depth.mean() - 1.0).abs() < 1e-9);
        assert_eq!((depth.now, depth.max), (0, 2));
        let total: f64 = depth.series().map(|(mean, _)| mean * depth.step_ns() as f64).sum();
        assert!((total - 4e10).abs() < 1.0);
        assert!(depth.series().count() <= Depth::STEPS);
    }
}
