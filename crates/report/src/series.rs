//! A series of cases as lines over the variable that makes them.

use fairlift_sim::result::JobResult;
use fairlift_sim::stats::Latency;

use crate::chart::{Axis, Chart, Line, Scale, Stops, united};
use crate::curves::{Figure, file_name};
use crate::estimate::Estimate;
use crate::report::{Report, job_names};
use crate::unit;

/// Fewer cases make no line.
const CASES_MIN: usize = 3;
/// Values that differ by more lie on a logarithmic axis.
const WIDE: f64 = 8.0;

/// A figure of each job's latency, and one of its bandwidth; none if the cases are not numbers.
pub(crate) fn figures(report: &Report<'_>) -> Vec<Figure> {
    let numbers: Vec<(usize, f64)> =
        (0..report.runs.len()).filter_map(|case| Some((case, number(report.case_name(case))?))).collect();
    if numbers.len() < CASES_MIN {
        return Vec::new();
    }
    let names = job_names(&report.columns(numbers[0].0));
    names
        .iter()
        .take(crate::curves::JOBS_MAX)
        .flat_map(|job| [latency(report, &numbers, job), bandwidth(report, &numbers, job)])
        .flatten()
        .collect()
}

/// The number that a case's name is: `16`, `64k`, `1:3` (three times the one).
fn number(name: &str) -> Option<f64> {
    if let Some((one, other)) = name.split_once(':') {
        let (one, other) = (number(one)?, number(other)?);
        return (one > 0.0).then(|| other / one);
    }
    let (digits, unit) = match name.to_ascii_lowercase().chars().last()? {
        'k' => (&name[..name.len() - 1], 1024.0),
        'm' => (&name[..name.len() - 1], 1024.0 * 1024.0),
        'g' => (&name[..name.len() - 1], 1024.0 * 1024.0 * 1024.0),
        _ => (name, 1.0),
    };
    digits.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0).map(|value| value * unit)
}

fn latency(report: &Report<'_>, cases: &[(usize, f64)], job: &str) -> Option<Figure> {
    let of = |jobs: &[JobResult]| {
        let latencies: Vec<Latency> = jobs.iter().map(JobResult::clat).collect();
        Estimate::percentile(&latencies.iter().collect::<Vec<_>>(), report.percentile)
    };
    let what = format!("p{} latency", report.percentile);
    figure(report, cases, job, ("latency", &what), unit::time, &of)
}

fn bandwidth(report: &Report<'_>, cases: &[(usize, f64)], job: &str) -> Option<Figure> {
    let of = |jobs: &[JobResult]| {
        Estimate::of_seeds(jobs.iter().filter(|job| job.ios() > 0).map(JobResult::bandwidth))
    };
    figure(report, cases, job, ("bandwidth", "bandwidth"), unit::bandwidth, &of)
}

fn figure(
    report: &Report<'_>,
    cases: &[(usize, f64)],
    job: &str,
    (word, what): (&str, &str),
    write: fn(f64) -> String,
    of: &dyn Fn(&[JobResult]) -> Option<Estimate>,
) -> Option<Figure> {
    let schedulers = report.runs.first()?.len();
    let line = |at: usize| {
        let value = |(case, x): &(usize, f64)| {
            let runs = report.runs[*case].get(at)?;
            let jobs: Vec<JobResult> =
                runs.iter().filter_map(|run| run.jobs().into_iter().find(|of| of.name == job)).collect();
            Some((*x, of(&jobs)?))
        };
        let values: Vec<Option<(f64, Estimate)>> = cases.iter().map(value).collect();
        let there: Vec<(f64, Estimate)> = values.iter().flatten().copied().collect();
        let first = there.first()?.1;
        let told = |(_, estimate): (f64, Estimate)| match estimate.seeds {
            true => {
                format!("{} ({} to {})", write(estimate.value), write(estimate.low), write(estimate.high))
            }
            false => write(estimate.value),
        };
        Some(Line {
            label: report.runs[cases[0].0].get(at)?.first()?.scheduler.clone(),
            points: there.iter().map(|(x, estimate)| (*x, estimate.value)).collect(),
            band: if first.seeds {
                there.iter().map(|(_, e)| (e.low.max(0.0), e.high)).collect()
            } else {
                Vec::new()
            },
            colour: at,
            dashed: false,
            values: values.iter().map(|value| value.map_or_else(String::new, told)).collect(),
            at: values.iter().map(|value| value.map(|(x, estimate)| (x, estimate.value))).collect(),
        })
    };
    let mut lines = united((0..schedulers).filter_map(line).collect());
    let ys = || lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y);
    let (low, high) = ys().fold((f64::INFINITY, 0.0_f64), |(low, high), y| (low.min(y), high.max(y)));
    if high <= 0.0 {
        return None;
    }
    // Marks are round in the unit that they are written in.
    let (unit, name, write_mark): (f64, String, fn(f64) -> String) = match word {
        "bandwidth" => {
            (unit::of_bandwidth(high).0, format!("{what}, {}", unit::of_bandwidth(high).1), unit::short)
        }
        _ => (1.0, what.to_owned(), write),
    };
    for line in &mut lines {
        line.points.iter_mut().chain(line.at.iter_mut().flatten()).for_each(|(_, y)| *y /= unit);
        line.band.iter_mut().for_each(|(low, high)| (*low, *high) = (*low / unit, *high / unit));
    }
    let scale =
        |low: f64, high: f64| if low > 0.0 && high > WIDE * low { Scale::Logarithmic } else { Scale::Linear };
    let xs = || cases.iter().map(|(_, x)| *x);
    let x_scale = scale(xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
    let y_scale = scale(low, high);
    let variable = match report.scenario.case_variable.as_str() {
        "" => "case",
        name => name,
    };
    let title = format!("{job}: {what}, by {variable}");
    Some(Figure {
        name: file_name(&["series", word, job]),
        title: title.clone(),
        caption: "Each point is a case. Of several seeds the mean, in the band that the mean lies in 19 times of 20.",
        case: cases[0].0,
        chart: Chart {
            head: [title, report.conditions(cases[0].0)],
            x: Axis { label: variable.to_owned(), scale: x_scale, write: unit::short },
            y: Axis { label: name, scale: y_scale, write: write_mark },
            y_includes: if y_scale == Scale::Linear { (0.0, 0.0) } else { (f64::NAN, f64::NAN) },
            lines,
            panels: false,
            stops: Stops {
                upright: false,
                places: cases
                    .iter()
                    .map(|(case, x)| (*x, format!("{variable}: {}", report.case_name(*case))))
                    .collect(),
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_numbers_sizes_or_ratios() {
        assert_eq!(["16", "4k", "1:3", "2:3"].map(number), [Some(16.0), Some(4096.0), Some(3.0), Some(1.5)]);
        assert_eq!(["alone", "", "nvme", "inf"].map(number), [None; 4]);
    }
}
