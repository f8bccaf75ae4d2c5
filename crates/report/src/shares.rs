//! The device's time as the run went on: whose it was, and how busy it was.

use fairlift_sim::anatomy::{Anatomy, Cause};
use fairlift_sim::result::RunResult;

use crate::chart::{Axis, Chart, Line, Scale, united};
use crate::curves::{Figure, file_name, seconds, title};
use crate::unit;

/// Points of a line; intervals are put together until there are no more.
pub(crate) const POINTS_MAX: usize = 60;

/// The share of a job (or program) in the device's working time under every scheduler.
pub(crate) fn share(case: usize, label: &str, name: &str, runs: &[RunResult]) -> Option<Figure> {
    let whose = |anatomy: &Anatomy, cause: Cause| matches!(cause, Cause::Behind(task @ Some(_)) if anatomy.name(task) == name);
    let lines = lines(runs, whose, |anatomy, _, at| worked(anatomy, at));
    figure(
        case,
        lines,
        file_name(&["share", label, name]),
        title("Share of device time", label, name),
        "Share of the device's working time that went to the job's own requests; writes of kernel threads count for these \
         threads. Intervals without any work are left out.",
        "share of device time",
    )
}

/// The time in which the device had something to do, under every scheduler.
pub(crate) fn busy(case: usize, label: &str, runs: &[RunResult]) -> Option<Figure> {
    let lines = lines(runs, |_, cause| works(cause), |_, length_ns, _| length_ns);
    let heading =
        if label.is_empty() { "Device busy".to_owned() } else { format!("Device busy, case {label}") };
    figure(
        case,
        lines,
        file_name(&["busy", label]),
        heading,
        "Part of the time with a request or a cache flush in the device. The rest is thinking time, or a scheduler that idles.",
        "device busy",
    )
}

fn figure(
    case: usize,
    lines: Vec<Line>,
    name: String,
    title: String,
    caption: &'static str,
    axis: &'static str,
) -> Option<Figure> {
    if lines.iter().flat_map(|line| &line.points).all(|(_, share)| *share == 0.0) {
        return None;
    }
    let chart = Chart {
        head: Default::default(),
        x: Axis { label: "time since the run's start", scale: Scale::Linear, write: seconds },
        y: Axis { label: axis, scale: Scale::Linear, write: percent },
        y_includes: (0.0, 100.0),
        lines: united(lines),
    };
    Some(Figure { name, title, caption, case, chart })
}

pub(crate) fn percent(value: f64) -> String {
    format!("{} %", unit::short(value))
}

const fn works(cause: Cause) -> bool {
    matches!(cause, Cause::Behind(_) | Cause::Flush)
}

/// An interval of the figure: which of the recorded ones.
type Interval = std::ops::Range<usize>;

/// For every run that recorded it: the time of the causes that `counts` in each interval, as percent of what `whole` says of
/// the run, the interval's length in nanoseconds, and the interval.
fn lines(
    runs: &[RunResult],
    counts: impl Fn(&Anatomy, Cause) -> bool,
    whole: impl Fn(&Anatomy, u64, Interval) -> u64,
) -> Vec<Line> {
    let line = |(colour, run): (usize, &RunResult)| {
        let anatomy = run.explanation.as_ref()?;
        let points: Vec<(f64, f64)> = intervals(anatomy)
            .filter_map(|at| {
                let step_ns = anatomy.device.over_time.interval_ns;
                let (from_ns, to_ns) =
                    (at.start as u64 * step_ns, (at.end as u64 * step_ns).min(anatomy.duration_ns));
                let all_ns = whole(anatomy, to_ns - from_ns, at.clone());
                let ns = sum(anatomy, at, |cause| counts(anatomy, cause));
                let middle_s = (from_ns + to_ns) as f64 / 2e9;
                (all_ns > 0).then(|| (middle_s, 100.0 * ns as f64 / all_ns as f64))
            })
            .collect();
        (points.len() > 1).then(|| Line { label: run.scheduler.clone(), points, colour, dashed: false })
    };
    runs.iter().enumerate().filter_map(line).collect()
}

/// The run in at most [`POINTS_MAX`] parts.
fn intervals(anatomy: &Anatomy) -> impl Iterator<Item = Interval> {
    let count = anatomy.duration_ns.div_ceil(anatomy.device.over_time.interval_ns) as usize;
    let step = count.div_ceil(POINTS_MAX).max(1);
    (0..count).step_by(step).map(move |from| from..(from + step).min(count))
}

/// The device's working time in an interval, nanoseconds.
fn worked(anatomy: &Anatomy, at: Interval) -> u64 {
    sum(anatomy, at, works)
}

fn sum(anatomy: &Anatomy, at: Interval, counts: impl Fn(Cause) -> bool) -> u64 {
    let causes = anatomy.device.over_time.parts.iter().filter(|(cause, _)| counts(**cause));
    causes.flat_map(|(_, samples)| samples.iter().take(at.end).skip(at.start)).sum()
}
