//! How far the runs are, on a terminal only.

use std::sync::atomic::{AtomicU64, Ordering};

use fairlift_sim::scenario::{Case, Progress, Scenario};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Steps of the bar per run.
const STEPS: u64 = 1000;

/// A progress bar over all runs of a scenario; draws nothing unless standard error is a terminal.
pub struct Bar {
    bar: ProgressBar,
    /// Steps done, per run.
    steps: Vec<AtomicU64>,
    /// When a run of a case will be over at the latest, nanoseconds, if that is known.
    ends_ns: Vec<Option<u64>>,
    /// Runs of a case.
    width: usize,
}

impl Bar {
    /// A bar for `scenario`, headed by `title`.
    pub fn new(scenario: &Scenario, title: &str) -> Bar {
        let runs = scenario.cases.len() * scenario.schedulers.len();
        let bar =
            ProgressBar::with_draw_target(Some(runs as u64 * STEPS), ProgressDrawTarget::stderr_with_hz(10));
        let style = ProgressStyle::with_template("{prefix}[{wide_bar}] {percent:>3} %, {eta} left {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> "));
        bar.set_prefix(if title.is_empty() { String::new() } else { format!("{title} ") });
        Bar {
            bar,
            steps: (0..runs).map(|_| AtomicU64::new(0)).collect(),
            ends_ns: scenario.cases.iter().map(|case| end_ns(scenario, case)).collect(),
            width: scenario.schedulers.len().max(1),
        }
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
        match self.ends_ns.get(run / self.width).copied().flatten() {
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

/// When the last job's time is up, if all have one and nothing else runs.
fn end_ns(scenario: &Scenario, case: &Case) -> Option<u64> {
    if case.programs.iter().any(|program| !program.background) || case.replaying.is_some() {
        return None;
    }
    let ends = case.jobs.iter().map(|job| {
        let plan = &job.schedule;
        let runtime_ns = scenario.runtime_ns.or((plan.runtime_us > 0).then_some(plan.runtime_us * 1000))?;
        let before_us = plan.start_delay_us.1.saturating_add(plan.ramp_time_us);
        Some(before_us.saturating_mul(1000).saturating_add(runtime_ns))
    });
    // Behind a stonewall the times add up.
    let walls =
        case.jobs.iter().skip(1).filter(|job| job.schedule.stonewall || job.schedule.wait_for.is_some());
    let longest = ends.collect::<Option<Vec<u64>>>()?.into_iter().max()?;
    Some(longest.saturating_mul(1 + walls.count() as u64))
}

/// How many runs at a time: as asked, else one per processor.
pub fn threads(asked: Option<usize>) -> usize {
    asked.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}
