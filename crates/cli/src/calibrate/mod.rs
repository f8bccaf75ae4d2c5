//! `fairlift calibrate`: a short series of fio jobs on a real file or disk, and a device file fitted to it.

mod cache;
mod check;
mod disk;
mod fio;
mod fit;
mod flash;
mod measured;
mod probe;
mod series;
mod throttle;
mod verdict;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use fairlift_sim::device::DeviceSpec;
use serde::Serialize;

use crate::args::{CalibrateArguments, CalibrateFormat, CalibrateModel};
use crate::error::{Failure, warn};
use crate::grid::{Grid, number, word};
use crate::json;
use crate::number::short;
use crate::output::{self, Output};
use fit::{Fit, Series, relative};
use measured::{Figures, Measured};
use verdict::Verdict;

/// One random read slower than this, nanoseconds, and an arm moves.
const DISK_READ_NS: f64 = 1.5e6;
/// A mean so many times the median: something else was going on.
const DISTURBED: f64 = 1.5;

/// A job, measured and simulated.
#[derive(Serialize)]
struct Judged {
    job: String,
    /// The fit looked at it; otherwise it is a prediction.
    fitted: bool,
    measured: Shown,
    simulated: Shown,
    iops_error: f64,
    p50_error: Option<f64>,
    p99_error: Option<f64>,
}

#[derive(Serialize)]
struct Shown {
    iops: f64,
    bandwidth_bytes_per_s: f64,
    clat_mean_ns: f64,
    clat_p50_ns: f64,
    clat_p99_ns: f64,
    sync_mean_ns: f64,
}

#[derive(Serialize)]
struct Report<'a> {
    model: &'static str,
    jobs: &'a [Judged],
    /// Root mean square of the relative errors of operations per second.
    fitted_rms: f64,
    predicted_rms: Option<f64>,
    verdict: &'a Verdict,
    notes: &'a [String],
    /// Not there when the fit misses its checks.
    device_file: Option<&'a str>,
}

/// Measure or load, fit, judge, write.
pub fn calibrate(arguments: &CalibrateArguments) -> Result<(), Failure> {
    if arguments.print_series {
        return output::print(&series::job_file(&target(arguments)?));
    }
    let output = Output::open(arguments.output.as_deref())?;
    let to_file = arguments.output.is_some();
    let jobs = measure(arguments)?;
    disturbances(&jobs);
    let what = arguments.device.clone().unwrap_or_else(|| arguments.from.join(", "));
    let description = format!("calibrated from {what}");
    let Found { fit, judged } = fit(arguments, &jobs, &description)?;
    let verdict = Verdict::of(&judged);
    let table = table(&fit, &judged, &verdict);
    let file = fit.device_file(&description, &format!("Made by fairlift calibrate from {what}.\n\n{table}"));
    let refused = verdict.refusal().filter(|_| !arguments.force);
    let shown = if refused.is_some() { None } else { Some(file.as_str()) };
    match arguments.output_format {
        CalibrateFormat::Table => match shown {
            Some(file) => {
                output.write(file)?;
                if to_file {
                    output::print(&table)?;
                }
            }
            // Not where the file would have gone.
            None => eprint!("{table}"),
        },
        CalibrateFormat::Json => {
            let report = json::text(&Report {
                model: fit.model,
                jobs: &judged,
                fitted_rms: rms(&judged, true).unwrap_or(0.0),
                predicted_rms: rms(&judged, false),
                verdict: &verdict,
                notes: &fit.notes,
                device_file: shown,
            });
            match shown.filter(|_| to_file) {
                Some(file) => {
                    output.write(file)?;
                    output::print(&report)?;
                }
                None if to_file => output::print(&report)?,
                None => output.write(&report)?,
            }
        }
    }
    refused.map_or(Ok(()), Err)
}

fn target(arguments: &CalibrateArguments) -> Result<series::Target, Failure> {
    let Some(device) = &arguments.device else {
        return Err(Failure::new("nothing to calibrate").help(
            "--device FILE-or-DISK measures it with fio; --from REPORT takes what fio measured before",
        ));
    };
    fio::target(device, arguments)
}

fn measure(arguments: &CalibrateArguments) -> Result<Vec<Measured>, Failure> {
    if arguments.from.is_empty() {
        return fio::run(&target(arguments)?, arguments);
    }
    let mut jobs: Vec<Measured> = Vec::new();
    for path in &arguments.from {
        for job in measured::load(path)? {
            if jobs.iter().any(|known| known.name == job.name) {
                return Err(Failure::new(format!("job '{}' is there twice", job.name)).at(path));
            }
            jobs.push(job);
        }
    }
    Ok(jobs)
}

/// Says when a measurement was not alone on the machine.
fn disturbances(jobs: &[Measured]) {
    let one = jobs.iter().find(|job| job.name == format!("{}1", series::RANDOM));
    let ratio = |job: &Measured| job.figures.mean_ns / job.figures.p50_ns.max(1.0);
    if let Some(job) = one.filter(|job| job.figures.p50_ns > 0.0 && ratio(job) > DISTURBED) {
        let ratio = ratio(job);
        warn(&format!(
            "{}: the mean latency is {ratio:.1} times the median: the disk or the processor had other work, or long stalls; \
             rates are fitted, such tails are not",
            job.name
        ));
    }
}

/// A fit, and every job beside it.
struct Found {
    fit: Fit,
    judged: Vec<Judged>,
}

/// The fit that explains the jobs best.
fn fit(arguments: &CalibrateArguments, jobs: &[Measured], description: &str) -> Result<Found, Failure> {
    let unknown_cpu_ns = check::rules()?.cpu_per_io_ns;
    let series = || Series::new(jobs, unknown_cpu_ns);
    let judged = |fit: Fit, series: Series<'_>| {
        let spec = DeviceSpec::parse(&fit.device_file(description, ""), "(fit)")
            .map_err(|e| Failure::internal(format!("the fit is no device: {e}")))?;
        let cpu_ns = series.cpu_ns;
        let judged = judge(&spec, jobs, &series.asked(), cpu_ns)?;
        let mut found = Found { fit, judged };
        found.fit.note(host(cpu_ns));
        Ok::<Found, Failure>(found)
    };
    let asked = series();
    let one = asked.need(&format!("{}1", series::RANDOM))?;
    let flat = throttle::flat_rate(&asked);
    let turns = one.p50_ns.max(1e9 / one.iops * 0.5) > DISK_READ_NS;
    match arguments.model {
        Some(CalibrateModel::Cloud) => {
            let rate = flat.ok_or_else(|| {
                Failure::new("the three deepest jobs read-random-N have not one rate, or the host holds it: no bucket shows")
            })?;
            let asked = series();
            judged(throttle::fit(&asked, rate)?, asked)
        }
        Some(CalibrateModel::Disk) => disk(series(), judged),
        None if turns && flat.is_none() => disk(series(), judged),
        Some(CalibrateModel::Flash) => {
            let asked = series();
            judged(flash::fit(&asked)?, asked)
        }
        None => {
            let asked = series();
            let other = if turns {
                disk(asked, judged)
            } else {
                flash::fit(&asked).and_then(|fit| judged(fit, asked))
            };
            let Some(rate) = flat else { return other };
            let asked = series();
            let throttled = judged(throttle::fit(&asked, rate)?, asked)?;
            Ok(match other {
                Ok(other) if off(&other.judged) < off(&throttled.judged) => other,
                _ => throttled,
            })
        }
    }
}

fn disk<'a>(
    series: Series<'a>,
    judged: impl Fn(Fit, Series<'a>) -> Result<Found, Failure>,
) -> Result<Found, Failure> {
    let bytes = series.target_bytes().ok_or_else(|| {
        Failure::new("the size of the disk is not known")
            .help("job 'read-sequential' must have size=, in bytes or as 100m")
    })?;
    let fit = disk::fit(&series, bytes)?;
    judged(fit, series)
}

/// How far a fit is off, rates and medians alike: mean square of the logarithms.
fn off(judged: &[Judged]) -> f64 {
    let errors: Vec<f64> = judged
        .iter()
        .flat_map(|job| [Some(job.iops_error), job.p50_error])
        .flatten()
        .map(|error| (1.0 + error).max(1e-3).ln().powi(2))
        .collect();
    errors.iter().sum::<f64>() / errors.len().max(1) as f64
}

fn host(cpu_ns: u64) -> String {
    format!(
        "the host takes {:.1} us for a command beside the device; the file does not have it, the host setting cpu_per_io_ns = {cpu_ns} \
         gives it to the lab",
        cpu_ns as f64 / 1e3
    )
}

fn judge(
    spec: &DeviceSpec,
    jobs: &[Measured],
    fitted: &BTreeSet<String>,
    cpu_ns: u64,
) -> Result<Vec<Judged>, Failure> {
    let simulated = check::simulate(spec, jobs, cpu_ns)?;
    let shown = |f: &Figures| Shown {
        iops: f.iops,
        bandwidth_bytes_per_s: f.bandwidth,
        clat_mean_ns: f.mean_ns,
        clat_p50_ns: f.p50_ns,
        clat_p99_ns: f.p99_ns,
        sync_mean_ns: f.sync_ns,
    };
    let error = |ours: f64, theirs: f64| (theirs > 0.0 && ours > 0.0).then(|| relative(ours, theirs));
    let judged = |(job, ours): (&Measured, &Figures)| Judged {
        job: job.name.clone(),
        fitted: fitted.contains(&job.name),
        measured: shown(&job.figures),
        simulated: shown(ours),
        iops_error: relative(ours.iops, job.figures.iops),
        p50_error: error(ours.p50_ns, job.figures.p50_ns),
        p99_error: error(ours.p99_ns, job.figures.p99_ns),
    };
    Ok(jobs.iter().zip(&simulated).map(judged).collect())
}

fn rms(judged: &[Judged], fitted: bool) -> Option<f64> {
    let errors: Vec<f64> =
        judged.iter().filter(|j| j.fitted == fitted).map(|j| j.iops_error.powi(2)).collect();
    (!errors.is_empty()).then(|| (errors.iter().sum::<f64>() / errors.len() as f64).sqrt())
}

/// Measured beside simulated, fitted jobs first.
fn table(fit: &Fit, judged: &[Judged], verdict: &Verdict) -> String {
    let mut grid = Grid::default();
    grid.row(["", "IOPS", "simulated", "error", "p50", "simulated", "p99", "simulated"].map(word).into());
    grid.row(["", "", "", "%", "us", "us", "us", "us"].map(word).into());
    for fitted in [true, false] {
        let jobs: Vec<&Judged> = judged.iter().filter(|j| j.fitted == fitted).collect();
        if !jobs.is_empty() {
            grid.text(if fitted { "fitted" } else { "predicted: nothing was fitted to these" });
        }
        for job in jobs {
            let us = |ns: f64| number(if ns > 0.0 { short(ns / 1e3) } else { "-".to_owned() });
            grid.row(vec![
                word(format!("  {}", job.job)),
                number(short(job.measured.iops)),
                number(short(job.simulated.iops)),
                number(format!("{:+.1}", job.iops_error * 100.0)),
                us(job.measured.clat_p50_ns),
                us(job.simulated.clat_p50_ns),
                us(job.measured.clat_p99_ns),
                us(job.simulated.clat_p99_ns),
            ]);
        }
    }
    let mut out = grid.render(crate::style::Style::Plain, 0);
    let percent = |rms: f64| format!("{:.1} %", rms * 100.0);
    let _ = write!(
        out,
        "\nerror of IOPS, root mean square: {} of the fitted jobs",
        percent(rms(judged, true).unwrap_or(0.0))
    );
    if let Some(predicted) = rms(judged, false) {
        let _ = write!(out, ", {} of the predicted ones", percent(predicted));
    }
    out.push('\n');
    for note in &fit.notes {
        let _ = writeln!(out, "- {note}");
    }
    let _ = writeln!(out, "\nverdict: {verdict}");
    out
}
