//! The device's time as the run went on: whose it was, and how busy it was.

use fairlift_sim::anatomy::{Anatomy, Cause};

use crate::chart::{Axis, Chart, Scale};
use crate::curves::{Curve, Figure, file_name, lines_over_time, title};
use crate::report::Column;
use crate::unit;
use crate::windows::windows;

/// The share of a job (or program) in the device's working time under every scheduler.
pub(crate) fn share(case: usize, label: &str, name: &str, columns: &[Column<'_>]) -> Option<Figure> {
    let whose = |anatomy: &Anatomy, cause: Cause| matches!(cause, Cause::Behind(task @ Some(_)) if anatomy.name(task) == name);
    let curves = curves(columns, whose, |anatomy, _, at| worked(anatomy, at));
    figure(
        case,
        curves,
        file_name(&["share", label, name]),
        title("Share of device time", label, name),
        "Share of the device's working time that went to the job's own requests, with the lowest and highest within each stretch; \
         writes of kernel threads count for these threads. Stretches without any work are left out.",
        "share of device time",
    )
}

/// The time in which the device had something to do, under every scheduler.
pub(crate) fn busy(case: usize, label: &str, columns: &[Column<'_>]) -> Option<Figure> {
    let curves = curves(columns, |_, cause| works(cause), |_, length_ns, _| length_ns);
    let heading =
        if label.is_empty() { "Device busy".to_owned() } else { format!("Device busy, case {label}") };
    figure(
        case,
        curves,
        file_name(&["busy", label]),
        heading,
        "Part of the time with a request or a cache flush in the device. The rest is thinking time, or a scheduler that idles.",
        "device busy",
    )
}

fn figure(
    case: usize,
    curves: Vec<(&Column<'_>, Curve)>,
    name: String,
    title: String,
    caption: &'static str,
    axis: &str,
) -> Option<Figure> {
    let (lines, stops) = lines_over_time(curves, 1.0, unit::percent);
    if lines.iter().flat_map(|line| &line.points).all(|(_, share)| *share == 0.0) {
        return None;
    }
    let chart = Chart {
        head: Default::default(),
        x: Axis { label: "time since the run's start".into(), scale: Scale::Linear, write: unit::seconds },
        y: Axis { label: axis.into(), scale: Scale::Linear, write: unit::percent },
        y_includes: (0.0, 100.0),
        panels: lines.len() > 1,
        lines,
        stops,
    };
    Some(Figure { name, title, caption, case, chart })
}

const fn works(cause: Cause) -> bool {
    matches!(cause, Cause::Behind(_) | Cause::Flush)
}

/// Intervals of the run: which of the recorded ones.
type Interval = std::ops::Range<usize>;

/// For every run that recorded it: the time of the causes that `counts`, as percent of what `whole` says of the run, the stretch's
/// length in nanoseconds, and the stretch.
fn curves<'a, 'r>(
    columns: &'a [Column<'r>],
    counts: impl Fn(&Anatomy, Cause) -> bool,
    whole: impl Fn(&Anatomy, u64, Interval) -> u64,
) -> Vec<(&'a Column<'r>, Curve)> {
    let of_run = |anatomy: &Anatomy| {
        let step_ns = anatomy.device.over_time.interval_ns;
        let ends =
            |at: &Interval| (at.start as u64 * step_ns, (at.end as u64 * step_ns).min(anatomy.duration_ns));
        let share = |at: Interval| {
            let (from_ns, to_ns) = ends(&at);
            let all_ns = whole(anatomy, to_ns.saturating_sub(from_ns), at.clone());
            (all_ns > 0)
                .then(|| 100.0 * sum(anatomy, at, |cause| counts(anatomy, cause)) as f64 / all_ns as f64)
        };
        let mut curve = Curve::default();
        for window in windows(anatomy.duration_ns.div_ceil(step_ns) as usize) {
            if let Some((value, band)) = window.value(share) {
                let (from_ns, to_ns) = ends(&window.whole);
                curve.points.push(((from_ns + to_ns) as f64 / 2e9, value));
                curve.band.push(band);
            }
        }
        curve
    };
    let curve = |column: &'a Column<'r>| Some((column, of_run(column.first().explanation.as_ref()?)));
    columns.iter().filter_map(curve).collect()
}

/// The device's working time in an interval, nanoseconds.
fn worked(anatomy: &Anatomy, at: Interval) -> u64 {
    sum(anatomy, at, works)
}

fn sum(anatomy: &Anatomy, at: Interval, counts: impl Fn(Cause) -> bool) -> u64 {
    let causes = anatomy.device.over_time.parts.iter().filter(|(cause, _)| counts(**cause));
    causes.flat_map(|(_, samples)| samples.iter().take(at.end).skip(at.start)).sum()
}
