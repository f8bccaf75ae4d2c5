//! How far the runs are, on a terminal only.

use std::sync::atomic::{AtomicU64, Ordering};

use fairlift_sim::scenario::{Progress, Scenario};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Steps of the bar per run.
const STEPS: u64 = 1000;

/// A progress bar over all runs of a scenario; draws nothing unless standard error is a terminal.
pub struct Bar {
    bar: ProgressBar,
    /// Steps done, per run.
    steps: Vec<AtomicU64>,
    /// When a run will be over, nanoseconds, if that is known.
    end_ns: Option<u64>,
}

impl Bar {
    /// A bar for `scenario`, headed by `title`.
    pub fn new(scenario: &Scenario, title: &str) -> Bar {
        let runs = scenario.cases.len() * scenario.schedulers.len();
        let bar =
            ProgressBar::with_draw_target(Some(runs as u64 * STEPS), ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template("{prefix}[{wide_bar}] {percent:>3} % {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        bar.set_prefix(if title.is_empty() { String::new() } else { format!("{title} ") });
        Bar { bar, steps: (0..runs).map(|_| AtomicU64::new(0)).collect(), end_ns: scenario.runtime_ns }
    }

    /// Take it away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn show(&self, run: usize, steps: u64) {
        let before = self.steps[run].fetch_max(steps, Ordering::Relaxed);
        self.bar.inc(steps.saturating_sub(before));
    }
}

impl Progress for Bar {
    fn at(&self, run: usize, simulated_ns: u64) {
        if self.bar.is_hidden() {
            return;
        }
        match self.end_ns {
            Some(end) => self.show(
                run,
                (u128::from(simulated_ns) * u128::from(STEPS) / u128::from(end.max(1)))
                    .min(u128::from(STEPS) - 1) as u64,
            ),
            None => self.bar.set_message(format!("{:.0} s simulated", simulated_ns as f64 / 1e9)),
        }
        self.bar.tick();
    }

    fn done(&self, run: usize) {
        self.show(run, STEPS);
    }
}

/// How many runs at a time: as asked, else one per processor.
pub fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}
