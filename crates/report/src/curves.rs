//! Which figures a scenario's results make.

use std::path::{Path, PathBuf};

use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::samples::SAMPLE_NS;
use fairlift_sim::scenario::Scenario;
use fairlift_sim::stats::Latency;

use crate::chart::{Axis, Chart, DrawError, Line, Scale, united};
use crate::{groups, shares, unit};

/// Points a curve is thinned to; more would not be seen.
const POINTS_MAX: usize = 400;
const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

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
    ///
    /// # Errors
    /// When the drawing library refuses.
    pub fn svg(&self) -> Result<String, DrawError> {
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
        let text = self.svg()?;
        std::fs::write(&svg, text).map_err(|e| DrawError::of(&svg, &e))?;
        self.chart.png(&png)?;
        Ok([svg, png])
    }
}

/// Jobs with figures in a case; a page of thousands would help nobody. Those that moved most are shown.
pub(crate) const JOBS_MAX: usize = 8;

/// All figures, case by case: latency, bandwidth and share of the device of every job, then shares of groups, then the device.
pub fn figures(scenario: &Scenario, runs: &[Vec<RunResult>]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (case, runs) in runs.iter().enumerate() {
        let label = scenario.cases.get(case).map_or("", |c| c.name.as_str());
        for (name, columns) in jobs(runs) {
            figures.extend(latency(case, label, &name, &columns));
            figures.extend(bandwidth(case, label, &name, &columns));
            figures.extend(shares::share(case, label, &name, runs));
        }
        for program in runs.first().into_iter().flat_map(|run| &run.programs).take(JOBS_MAX) {
            figures.extend(shares::share(case, label, &program.name, runs));
        }
        figures.extend(groups::shares(case, label, runs));
        figures.extend(shares::busy(case, label, runs));
    }
    let of = format!("{}, Linux {}", scenario.device.name(), scenario.rules.version);
    for figure in &mut figures {
        let load = if scenario.title.is_empty() { of.clone() } else { format!("{of}; {}", scenario.title) };
        figure.chart.head = [figure.title.clone(), load];
    }
    figures
}

/// Each job with its result under every scheduler that ran it.
fn jobs(runs: &[RunResult]) -> Vec<(String, Vec<Column>)> {
    let mut jobs: Vec<(String, Vec<Column>)> = Vec::new();
    for (colour, run) in runs.iter().enumerate() {
        for job in run.jobs() {
            let entry = (run.scheduler.clone(), colour, job);
            match jobs.iter_mut().find(|(name, _)| *name == entry.2.name) {
                Some((_, columns)) => columns.push(entry),
                None => jobs.push((entry.2.name.clone(), vec![entry])),
            }
        }
    }
    if jobs.len() > JOBS_MAX {
        let moved = |columns: &Columns| columns.iter().map(|(.., job)| job.bytes()).max();
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(moved(&jobs[*i].1)));
        let kept = &order[..JOBS_MAX];
        jobs = jobs.into_iter().enumerate().filter(|(i, _)| kept.contains(i)).map(|(_, job)| job).collect();
    }
    jobs
}

/// A scheduler, its colour, and what a job got under it.
type Column = (String, usize, JobResult);
type Columns = [Column];

fn latency(case: usize, label: &str, job: &str, columns: &Columns) -> Option<Figure> {
    let lines: Vec<Line> = columns
        .iter()
        .filter(|(.., result)| result.clat().count() > 0)
        .map(|(scheduler, colour, result)| Line {
            label: format!("{scheduler} ({})", unit::count(result.clat().count())),
            points: tail(&result.clat()),
            colour: *colour,
            dashed: false,
        })
        .collect();
    if lines.is_empty() {
        return None;
    }
    Some(Figure {
        name: file_name(&["latency", label, job]),
        title: title("Latency", label, job),
        caption: "Share of I/Os done within a time, in brackets their number; both axes logarithmic, so that rare slow ones are seen. Further left is better.",
        case,
        chart: Chart {
            head: Default::default(),
            x: Axis { label: "completion latency", scale: Scale::Logarithmic, write: unit::time },
            y: Axis { label: "done within", scale: Scale::Nines, write: nines },
            y_includes: (0.0, 1.0),
            lines: united(lines),
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
    thinned(points)
}

fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(POINTS_MAX).max(1);
    let last = points.len().saturating_sub(1);
    points.into_iter().enumerate().filter(|(i, _)| i % step == 0 || *i == last).map(|(_, p)| p).collect()
}

fn nines(value: f64) -> String {
    let percent = 100.0 * (1.0 - 10f64.powf(-value));
    let digits = (value.ceil() as i32 - 2).clamp(0, 6) as usize;
    format!("{percent:.digits$} %")
}

fn bandwidth(case: usize, label: &str, job: &str, columns: &Columns) -> Option<Figure> {
    let fastest =
        columns.iter().flat_map(|(.., result)| rate(result)).map(|(_, rate)| rate).fold(0.0, f64::max);
    let (unit, axis) =
        if fastest >= 4.0 * MIB { (MIB, "bandwidth, MiB/s") } else { (KIB, "bandwidth, KiB/s") };
    let lines: Vec<Line> = columns
        .iter()
        .map(|(scheduler, colour, result)| Line {
            label: scheduler.clone(),
            points: rate(result).map(|(s, rate)| (s, rate / unit)).collect(),
            colour: *colour,
            dashed: false,
        })
        .filter(|line| line.points.len() > 1)
        .collect();
    if lines.is_empty() {
        return None;
    }
    Some(Figure {
        name: file_name(&["bandwidth", label, job]),
        title: title("Bandwidth", label, job),
        caption: "Bytes moved in each half second (or longer, of a long job), all directions and processes of the job. Further up is better.",
        case,
        chart: Chart {
            head: Default::default(),
            x: Axis { label: "time since the job's start", scale: Scale::Linear, write: seconds },
            y: Axis { label: axis, scale: Scale::Linear, write: unit::short },
            y_includes: (0.0, 0.0),
            lines: united(lines),
        },
    })
}

/// Time in seconds and bytes per second, by sample, or by so many of them that there are at most [`POINTS_MAX`] points. What is left
/// over at the end is left out.
fn rate(job: &JobResult) -> impl Iterator<Item = (f64, f64)> {
    let full = job.runtime_ns() / SAMPLE_NS;
    let step = full.div_ceil(POINTS_MAX as u64).max(1);
    let mut bytes = vec![0u64; (full / step) as usize];
    for (number, sample) in job.transfers.iter().flat_map(|transfer| transfer.samples.iter()) {
        if let Some(point) = bytes.get_mut((number / step) as usize) {
            *point += sample.bytes;
        }
    }
    let step_s = step as f64 * SAMPLE_NS as f64 / 1e9;
    bytes.into_iter().enumerate().map(move |(i, bytes)| ((i as f64 + 0.5) * step_s, bytes as f64 / step_s))
}

pub(crate) fn seconds(value: f64) -> String {
    format!("{} s", unit::short(value))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nines_are_written_as_percent() {
        assert_eq!([0.0, 1.0, 2.0, 3.0, 4.0].map(nines), ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
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
