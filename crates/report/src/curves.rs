//! Which figures a scenario's results make.

use std::path::{Path, PathBuf};

use fairlift_sim::result::JobResult;
use fairlift_sim::samples::SAMPLE_NS;
use fairlift_sim::stats::Latency;

use crate::canvas::DUE;
use crate::chart::{Axis, Chart, DrawError, Line, Scale, Stops};
use crate::estimate::behind;
use crate::report::{Column, Report, job_names};
use crate::windows::windows;
use crate::{groups, shares, unit};

/// Percentiles at which a distribution's values can be asked for.
const PERCENTILES: [f64; 7] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999];

/// A picture of results.
pub struct Figure {
    /// Short name, fit for a file.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: &'static str,
    /// Case of the scenario it belongs to, by position.
    pub case: usize,
    pub(crate) chart: Chart,
}

impl Figure {
    /// As SVG.
    pub fn svg(&self) -> String {
        self.chart.svg()
    }

    /// Write it into `folder` as `NAME.svg` and `NAME.png`.
    ///
    /// # Errors
    /// When it cannot be drawn or a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<[PathBuf; 2], DrawError> {
        self.write_as(folder, &self.name)
    }

    /// The same under another name.
    ///
    /// # Errors
    /// As [`Figure::write`].
    pub fn write_as(&self, folder: &Path, name: &str) -> Result<[PathBuf; 2], DrawError> {
        let [svg, png] = ["svg", "png"].map(|ending| folder.join(format!("{name}.{ending}")));
        std::fs::write(&svg, self.svg()).map_err(|e| DrawError::of(&svg, &e))?;
        self.chart.png(&png)?;
        Ok([svg, png])
    }
}

/// Jobs with figures in a case; a page of thousands is not read. Those that moved most are shown.
pub(crate) const JOBS_MAX: usize = 8;

/// All figures, case by case: latency, bandwidth and share of the device of every job, then shares of groups, then the device.
pub fn figures(report: &Report<'_>) -> Vec<Figure> {
    let mut figures = Vec::new();
    for case in 0..report.runs.len() {
        let (label, columns) = (report.case_name(case), report.columns(case));
        let mut of_case = Vec::new();
        for name in shown_jobs(&columns) {
            of_case.extend(latency(case, label, &name, &columns));
            of_case.extend(bandwidth(case, label, &name, &columns));
            of_case.extend(shares::share(case, label, &name, &columns));
        }
        let programs = columns.first().into_iter().flat_map(|column| &column.first().programs);
        for program in programs.take(JOBS_MAX) {
            of_case.extend(shares::share(case, label, &program.name, &columns));
        }
        of_case.extend(groups::shares(case, label, &columns));
        of_case.extend(shares::busy(case, label, &columns));
        for figure in &mut of_case {
            figure.chart.head = [figure.title.clone(), report.conditions(case)];
        }
        figures.extend(of_case);
    }
    figures
}

/// Names of the jobs with figures, in their order.
pub(crate) fn shown_jobs(columns: &[Column<'_>]) -> Vec<String> {
    let mut names = job_names(columns);
    if names.len() > JOBS_MAX {
        let moved =
            |name: &String| columns.iter().flat_map(|column| column.job(name)).map(|job| job.bytes()).max();
        let mut order: Vec<usize> = (0..names.len()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(moved(&names[*at])));
        let kept = &order[..JOBS_MAX];
        names =
            names.into_iter().enumerate().filter(|(at, _)| kept.contains(at)).map(|(_, name)| name).collect();
    }
    names
}

fn latency(case: usize, label: &str, job: &str, columns: &[Column<'_>]) -> Option<Figure> {
    let merged = |column: &Column<'_>| {
        let mut all = Latency::new();
        column.job(job).iter().for_each(|result| all.merge(&result.clat()));
        all
    };
    let latencies: Vec<(&Column<'_>, Latency)> = columns
        .iter()
        .map(|column| (column, merged(column)))
        .filter(|(_, latency)| latency.count() > 0)
        .collect();
    let most = latencies.iter().map(|(_, latency)| latency.count()).max()?;
    let mut stops: Vec<(f64, String)> = PERCENTILES
        .into_iter()
        .filter(|percent| behind(most, *percent) > 0)
        .map(|percent| (nines_of(percent), format!("{percent} % done within")))
        .collect();
    stops.push(((most as f64).log10(), "longest".to_owned()));
    let line = |(column, latency): &(&Column<'_>, Latency)| {
        let told = |percent: &f64| {
            (behind(latency.count(), *percent) > 0).then(|| {
                let ns = latency.percentile_ns(*percent).min(latency.max_ns());
                let text = format!(
                    "{} ({} slower)",
                    unit::time(ns as f64),
                    unit::count(behind(latency.count(), *percent))
                );
                (text, (ns as f64, nines_of(*percent)))
            })
        };
        let longest = (
            unit::time(latency.max_ns() as f64),
            (latency.max_ns() as f64, (latency.count() as f64).log10()),
        );
        let asked =
            PERCENTILES.iter().filter(|percent| behind(most, **percent) > 0).map(told).chain([Some(longest)]);
        let (values, at) =
            asked.map(|value| value.map_or((String::new(), None), |(text, at)| (text, Some(at)))).unzip();
        Line {
            label: format!("{} ({})", column.label, unit::count(latency.count())),
            points: tail(latency),
            band: Vec::new(),
            colour: column.at,
            dashed: false,
            values,
            at,
        }
    };
    Some(Figure {
        name: file_name(&["latency", label, job]),
        title: title("Latency", label, job),
        caption: "Share of I/Os done within a time, in brackets their number; both axes logarithmic, so that rare slow ones are seen. Further left is better.",
        case,
        chart: Chart {
            head: Default::default(),
            x: Axis { label: "completion latency".into(), scale: Scale::Logarithmic, write: unit::time },
            y: Axis { label: "share of I/Os done within".into(), scale: Scale::Nines, write: nines },
            y_includes: (0.0, 1.0),
            lines: latencies.iter().map(line).collect(),
            panels: false,
            stops: Stops { upright: true, places: stops },
        },
    })
}

/// The distribution as (latency in ns, number of nines): 1 is 90 %, 2 is 99 %, and so on.
fn tail(latency: &Latency) -> Vec<(f64, f64)> {
    let total = latency.count() as f64;
    let mut points = vec![(latency.min_ns() as f64, 0.0)];
    let mut seen = 0;
    for (ns, count) in latency.distribution() {
        seen += count;
        let slower = (latency.count() - seen) as f64 / total;
        if slower > 0.0 {
            points.push((ns as f64, -slower.log10()));
        }
    }
    // The slowest of all: the height says how many there were.
    points.push((latency.max_ns() as f64, total.log10()));
    points
}

/// A percentage as a number of nines.
fn nines_of(percent: f64) -> f64 {
    -(1.0 - percent / 100.0).log10()
}

fn nines(value: f64) -> String {
    let percent = 100.0 * (1.0 - 10f64.powf(-value));
    let digits = (value.ceil() as i32 - 2).clamp(0, 6) as usize;
    format!("{percent:.digits$} %")
}

fn bandwidth(case: usize, label: &str, job: &str, columns: &[Column<'_>]) -> Option<Figure> {
    let curves: Vec<(&Column<'_>, Curve)> =
        columns.iter().map(|column| (column, rate(&column.job(job)))).collect();
    let fastest =
        curves.iter().flat_map(|(_, curve)| &curve.points).map(|(_, rate)| *rate).fold(0.0, f64::max);
    let (unit, name) = unit::of_bandwidth(fastest);
    let (lines, stops) = lines_over_time(curves, unit, unit::bandwidth);
    if lines.is_empty() || fastest == 0.0 {
        return None;
    }
    Some(Figure {
        name: file_name(&["bandwidth", label, job]),
        title: title("Bandwidth", label, job),
        caption: "Bytes moved, all directions and processes of the job: the mean of each stretch, and from the lowest to the highest \
                  within it. Further up is better.",
        case,
        chart: Chart {
            head: Default::default(),
            x: Axis {
                label: "time since the job's start".into(),
                scale: Scale::Linear,
                write: unit::seconds,
            },
            y: Axis { label: format!("bandwidth, {name}"), scale: Scale::Linear, write: unit::short },
            y_includes: (0.0, 0.0),
            panels: lines.len() > 1,
            lines,
            stops,
        },
    })
}

/// Values over time: seconds and value, with the lowest and highest around each.
#[derive(Default)]
pub(crate) struct Curve {
    pub points: Vec<(f64, f64)>,
    pub band: Vec<(f64, f64)>,
}

/// Lines of such values, in units of so much; `write` takes them as they are.
pub(crate) fn lines_over_time(
    curves: Vec<(&Column<'_>, Curve)>,
    unit: f64,
    write: fn(f64) -> String,
) -> (Vec<Line>, Stops) {
    let curves: Vec<(&Column<'_>, Curve)> =
        curves.into_iter().filter(|(_, curve)| curve.points.len() > 1).collect();
    let longest = curves.iter().max_by_key(|(_, curve)| curve.points.len());
    let xs: Vec<f64> =
        longest.map(|(_, curve)| curve.points.iter().map(|(x, _)| *x).collect()).unwrap_or_default();
    let line = |(column, curve): &(&Column<'_>, Curve)| {
        let told = |x: &f64| {
            let at = curve.points.iter().position(|(other, _)| (other - x).abs() < 1e-9)?;
            let ((x, value), (low, high)) = (curve.points[at], curve.band[at]);
            let around =
                if high > low { format!(" ({} to {})", write(low), write(high)) } else { String::new() };
            Some((write(value) + &around, (x, value / unit)))
        };
        let (values, at) =
            xs.iter().map(|x| told(x).map_or((String::new(), None), |(text, at)| (text, Some(at)))).unzip();
        Line {
            label: column.label.clone(),
            points: curve.points.iter().map(|(x, y)| (*x, y / unit)).collect(),
            band: curve.band.iter().map(|(low, high)| (low / unit, high / unit)).collect(),
            colour: column.at,
            dashed: false,
            values,
            at,
        }
    };
    let lines = curves.iter().map(line).collect();
    let places = xs.iter().map(|x| (*x, format!("at {}", unit::seconds(*x)))).collect();
    (lines, Stops { upright: false, places })
}

/// Bytes per second in each stretch of time, of the runs of all seeds. What is left over at the end is left out.
fn rate(jobs: &[JobResult]) -> Curve {
    let full = jobs.iter().map(|job| job.runtime_ns() / SAMPLE_NS).min().unwrap_or(0) as usize;
    let bytes = |job: &JobResult| {
        let mut bytes = vec![0u64; full];
        for (number, sample) in job.transfers.iter().flat_map(|transfer| transfer.samples.iter()) {
            if let Some(point) = bytes.get_mut(number as usize) {
                *point += sample.bytes;
            }
        }
        bytes
    };
    let by_seed: Vec<Vec<u64>> = jobs.iter().map(bytes).collect();
    let sample_s = SAMPLE_NS as f64 / 1e9;
    let mut curve = Curve::default();
    for window in windows(full) {
        let of_seed = |bytes: &Vec<u64>| {
            window
                .value(|at| Some(bytes[at.clone()].iter().sum::<u64>() as f64 / (at.len() as f64 * sample_s)))
        };
        let values: Vec<(f64, (f64, f64))> = by_seed.iter().filter_map(of_seed).collect();
        let mean = values.iter().map(|(value, _)| value).sum::<f64>() / values.len().max(1) as f64;
        let low = values.iter().map(|(_, (low, _))| *low).fold(mean, f64::min);
        let high = values.iter().map(|(_, (_, high))| *high).fold(mean, f64::max);
        let middle = (window.whole.start + window.whole.end) as f64 / 2.0;
        curve.points.push((middle * sample_s, mean));
        curve.band.push((low, high));
    }
    curve
}

pub(crate) fn title(what: &str, case: &str, job: &str) -> String {
    match case {
        "" => format!("{what}: {job}"),
        case => format!("{what}: {job}, case {case}"),
    }
}

/// Words joined to something every file system takes.
pub(crate) fn file_name(words: &[&str]) -> String {
    let words: Vec<String> = words.iter().filter(|w| !w.is_empty()).map(|w| plain(w)).collect();
    words.join("-")
}

fn plain(word: &str) -> String {
    word.chars().map(|c| if c.is_ascii_alphanumeric() || "._".contains(c) { c } else { '_' }).collect()
}

const _: () = assert!(JOBS_MAX <= DUE, "every job's figure has a colour of its own");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nines_are_written_as_percent() {
        assert_eq!([0.0, 1.0, 2.0, 3.0, 4.0].map(nines), ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
        assert!((nines_of(99.0) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn the_tail_ends_at_the_slowest() {
        let mut latency = Latency::new();
        (1..=100).for_each(|ns| latency.record(ns));
        let points = tail(&latency);
        assert_eq!(points.first(), Some(&(1.0, 0.0)));
        assert!(
            points.iter().any(|(x, y)| *x == 90.0 && (y - 1.0).abs() < 1e-9),
            "90 % are done within 90 ns"
        );
        assert_eq!(points.last(), Some(&(100.0, 2.0)));
    }
}
