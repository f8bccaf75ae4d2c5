//! `fairlift validate`: measured traces replayed on modelled devices, and scored.

mod graph;
mod plot;
mod rates;
mod set;
mod trace;

use std::fmt::Write as _;

use fairlift_sim::validate::{Measured, Score, Timing, replay};
use serde::Serialize;

use crate::args::{Format, TimingChoice, ValidateArguments};
use crate::error::Failure;
use crate::grid::{Grid, number, word};
use crate::import;
use crate::output::Output;
use trace::Trace;

/// A device's answer to the trace.
struct Run {
    device: String,
    simulated_ns: Vec<u64>,
    score: Score,
}

/// Replay, score, print, plot.
pub fn validate(arguments: &ValidateArguments) -> Result<(), Failure> {
    if arguments.rates {
        return rates::validate(arguments);
    }
    if let Some(set) = &arguments.set {
        return set::validate(set, arguments);
    }
    let output = Output::open(arguments.output.as_deref())?;
    if let Some(plot) = &arguments.plot {
        plot::check(plot)?;
    }
    let path = arguments.trace.as_deref().unwrap_or_default();
    let Trace { requests, left_out } = trace::read(path, arguments.format.as_deref(), arguments.keep_going)?;
    let timing = match arguments.timing {
        None => Timing::of(&requests),
        Some(TimingChoice::Closed) => Timing::Closed,
        Some(TimingChoice::Open) => Timing::Open,
    };
    let mut runs = Vec::new();
    for device in &arguments.devices {
        runs.push(run(device, &requests, timing, path)?);
    }
    if let Some(path) = &arguments.plot {
        plot::draw(path, &requests, &runs)?;
    }
    match arguments.output_format {
        Format::Table => output.write(&table(path, &requests, timing, &runs, left_out)),
        Format::Json => output.write(&json(path, timing, &requests, &runs, left_out)?),
        Format::Csv => output.write(&csv(&requests, &runs)),
    }
}

fn run(name: &str, requests: &[Measured], timing: Timing, trace: &str) -> Result<Run, Failure> {
    let spec = import::device(name)?;
    let sectors = spec.limits().sectors;
    let beyond = requests.iter().enumerate().find(|(_, r)| r.sector + u64::from(r.sectors) > sectors);
    if let Some((number, request)) = beyond {
        let end = request.sector + u64::from(request.sectors);
        let message = format!("request {} ends at sector {end}, and {name} has {sectors}", number + 1);
        return Err(Failure::new(message)
            .at(trace)
            .help("the trace must be of this device, or of a smaller one"));
    }
    let simulated_ns = replay(&mut *spec.build(1), requests, timing);
    let measured: Vec<u64> = requests.iter().map(|request| request.response_ns).collect();
    let score = Score::of(&measured, &simulated_ns)
        .ok_or_else(|| Failure::new("no request with a measured response time").at(trace))?;
    Ok(Run { device: name.to_owned(), simulated_ns, score })
}

fn ms(value: f64) -> String {
    format!("{value:.3}")
}

/// What stands for a score of a trace with gaps: the requests beside those left out are not the ones that were measured.
const NO_SCORE: &str = "-";

fn table(trace: &str, requests: &[Measured], timing: Timing, runs: &[Run], left_out: u64) -> String {
    let scored = |value: String| if left_out == 0 { value } else { NO_SCORE.to_owned() };
    let mut grid = Grid::default();
    let heads = ["device", "measured", "simulated", "rms", "of mean", "KS", "request error"];
    grid.row(heads.map(word).into());
    grid.row(["", "mean ms", "mean ms", "ms", "%", "", "mean ms"].map(word).into());
    for run in runs {
        let score = &run.score;
        grid.row(vec![
            word(&run.device),
            number(ms(score.measured_mean_ms)),
            number(scored(ms(score.simulated_mean_ms))),
            number(scored(ms(score.rms_ms))),
            number(scored(format!("{:.1}", score.rms_percent()))),
            number(scored(ms(score.ks))),
            number(scored(ms(score.request_error_ms))),
        ]);
    }
    let how = match timing {
        Timing::Closed => "each as long after the completion before it as in the trace",
        Timing::Open => "at the recorded times",
    };
    let mut out = format!("{trace}: {} requests, {how}\n", requests.len());
    if left_out > 0 {
        let _ = writeln!(
            out,
            "No score: {left_out} faulty records are left out, and what they did to the drive with them."
        );
    }
    out.push('\n');
    out.push_str(&grid.render(crate::style::Style::Plain, 0));
    for run in runs {
        let _ = write!(out, "\n{}\n{}", run.device, graph::cumulative(requests, &run.simulated_ns));
    }
    out.push_str(
        "\nrms: root mean square of the horizontal distance of the two distributions (DiskSim's score);\n\
         KS: their greatest vertical distance, 0 to 1; request error: mean absolute difference, request by request.\n",
    );
    out
}

#[derive(Serialize)]
struct Report<'a> {
    trace: &'a str,
    timing: &'static str,
    requests: usize,
    left_out: u64,
    runs: Vec<ReportRun<'a>>,
}

#[derive(Serialize)]
struct ReportRun<'a> {
    device: &'a str,
    measured_mean_ms: f64,
    simulated_mean_ms: Option<f64>,
    rms_ms: Option<f64>,
    rms_percent: Option<f64>,
    ks: Option<f64>,
    request_error_ms: Option<f64>,
    percentiles: Vec<Percentile>,
}

#[derive(Serialize)]
struct Percentile {
    percent: f64,
    measured_ms: f64,
    simulated_ms: f64,
}

/// Percentiles that the JSON lists.
const PERCENTS: [f64; 13] = [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 99.0, 99.9];

/// Times in order, milliseconds.
fn sorted_ms(times: impl Iterator<Item = u64>) -> Vec<f64> {
    let mut times: Vec<u64> = times.collect();
    times.sort_unstable();
    times.into_iter().map(|ns| ns as f64 / 1e6).collect()
}

/// The value below which `percent` of sorted values lie.
fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let rank = (percent / 100.0 * sorted.len() as f64) as usize;
    sorted.get(rank.min(sorted.len().saturating_sub(1))).copied().unwrap_or(0.0)
}

fn json(
    trace: &str,
    timing: Timing,
    requests: &[Measured],
    runs: &[Run],
    left_out: u64,
) -> Result<String, Failure> {
    let scored = |value: f64| (left_out == 0).then_some(value);
    let measured = sorted_ms(requests.iter().map(|request| request.response_ns));
    let each = |run: &Run| {
        let simulated = sorted_ms(run.simulated_ns.iter().copied());
        let at = |percent: f64| Percentile {
            percent,
            measured_ms: percentile(&measured, percent),
            simulated_ms: percentile(&simulated, percent),
        };
        PERCENTS.map(at).into()
    };
    let report = Report {
        trace,
        timing: match timing {
            Timing::Closed => "closed",
            Timing::Open => "open",
        },
        requests: requests.len(),
        left_out,
        runs: runs
            .iter()
            .map(|run| ReportRun {
                device: &run.device,
                measured_mean_ms: run.score.measured_mean_ms,
                simulated_mean_ms: scored(run.score.simulated_mean_ms),
                rms_ms: scored(run.score.rms_ms),
                rms_percent: scored(run.score.rms_percent()),
                ks: scored(run.score.ks),
                request_error_ms: scored(run.score.request_error_ms),
                percentiles: each(run),
            })
            .collect(),
    };
    let text = serde_json::to_string_pretty(&report).map_err(|e| Failure::internal(e.to_string()))?;
    Ok(text + "\n")
}

/// A row for each device and request.
fn csv(requests: &[Measured], runs: &[Run]) -> String {
    let mut out = String::from("device,request,op,sector,sectors,arrival_ns,measured_ns,simulated_ns\n");
    for run in runs {
        let device = crate::csv::quoted(&run.device);
        for (index, (request, simulated)) in requests.iter().zip(&run.simulated_ns).enumerate() {
            let op = if request.op == fairlift_sim::device::Op::Read { "read" } else { "write" };
            let _ = writeln!(
                out,
                "{device},{},{op},{},{},{},{},{simulated}",
                index + 1,
                request.sector,
                request.sectors,
                request.arrival_ns,
                request.response_ns
            );
        }
    }
    out
}
