//! `fairlift validate --set`: all measured drives a file names, each beside the published figure for it.

use std::fmt::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{run, trace};
use crate::args::{Format, ValidateArguments};
use crate::error::Failure;
use crate::output::{Output, reason};
use fairlift_sim::validate::{Score, Timing};

/// Largest file of a set, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The file: `[[drive]]` tables.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    #[serde(default)]
    drive: Vec<Entry>,
}

/// A measured drive.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    /// Preset, device file or DiskSim file; like the trace relative to the set's folder.
    device: String,
    trace: String,
    /// The score of another simulation program on the whole trace, ms.
    published_rms_ms: f64,
    /// Was the model changed in view of this drive?
    built_on: bool,
    #[serde(default)]
    note: String,
}

/// A row of the table.
#[derive(Serialize)]
struct Row {
    drive: String,
    built_on: bool,
    published_rms_ms: f64,
    /// Requests and score, unless the drive's files are not here.
    requests: Option<usize>,
    rms_ms: Option<f64>,
    rms_percent: Option<f64>,
    measured_mean_ms: Option<f64>,
    simulated_mean_ms: Option<f64>,
    request_error_ms: Option<f64>,
    note: String,
}

/// Replay every drive of the set, and print a row for each.
pub fn validate(path: &Path, arguments: &ValidateArguments) -> Result<(), Failure> {
    let output = Output::open(arguments.output.as_deref())?;
    let set = read(path)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let rows = set.drive.iter().map(|entry| row(entry, folder)).collect::<Result<Vec<Row>, Failure>>()?;
    match arguments.output_format {
        Format::Table => output.write(&table(&rows)),
        Format::Json => {
            let text = serde_json::to_string_pretty(&rows).map_err(|e| Failure::internal(e.to_string()))?;
            output.write(&(text + "\n"))
        }
        Format::Csv => Err(Failure::new("a set has no csv").at("--output-format").help("table or json")),
    }
}

fn read(path: &Path) -> Result<Set, Failure> {
    let place = path.to_string_lossy().into_owned();
    let data = std::fs::metadata(path)
        .map_err(|e| Failure::new(format!("cannot read '{place}': {}", reason(&e))).at("--set"))?;
    if !data.is_file() || data.len() > FILE_BYTES_MAX {
        let message = format!("'{place}' must be a file of at most {FILE_BYTES_MAX} bytes");
        return Err(Failure::new(message).at("--set"));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::new(format!("cannot read '{place}': {}", reason(&e))).at("--set"))?;
    let set: Set = toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        Failure::new(error.message().trim_end_matches('.').to_owned()).at(format!("{place}:{line}"))
    })?;
    if set.drive.is_empty() {
        return Err(Failure::new("no [[drive]] in it").at(place));
    }
    Ok(set)
}

fn row(entry: &Entry, folder: &Path) -> Result<Row, Failure> {
    let (device, trace) = (folder.join(&entry.device), folder.join(&entry.trace));
    let score = match device.exists() && trace.exists() {
        true => Some(score(&device.to_string_lossy(), &trace.to_string_lossy())?),
        false => None,
    };
    let note = match score {
        Some(_) => entry.note.clone(),
        None => format!("not judged: {} and {} are not here", entry.device, entry.trace),
    };
    Ok(Row {
        drive: entry.name.clone(),
        built_on: entry.built_on,
        published_rms_ms: entry.published_rms_ms,
        requests: score.map(|score| score.requests),
        rms_ms: score.map(|score| score.rms_ms),
        rms_percent: score.map(|score| score.rms_percent()),
        measured_mean_ms: score.map(|score| score.measured_mean_ms),
        simulated_mean_ms: score.map(|score| score.simulated_mean_ms),
        request_error_ms: score.map(|score| score.request_error_ms),
        note,
    })
}

fn score(device: &str, path: &str) -> Result<Score, Failure> {
    let trace = trace::read(path, None, false)?;
    Ok(run(device, &trace.requests, Timing::of(&trace.requests), path)?.score)
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from(
        "| drive | model built on it | requests | published rms, ms | ours, ms | of the measured mean | \
         mean measured / ours, ms | mean error of a request, ms | |\n|---|---|--:|--:|--:|--:|--:|--:|---|\n",
    );
    for row in rows {
        let of = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        let built = if row.built_on { "yes" } else { "no" };
        let requests = row.requests.map_or("-".to_owned(), |requests| requests.to_string());
        let percent = row.rms_percent.map_or("-".to_owned(), |percent| format!("{percent:.1} %"));
        let _ = writeln!(
            out,
            "| {} | {built} | {requests} | {:.3} | {} | {percent} | {} / {} | {} | {} |",
            row.drive,
            row.published_rms_ms,
            of(row.rms_ms),
            of(row.measured_mean_ms),
            of(row.simulated_mean_ms),
            of(row.request_error_ms),
            row.note
        );
    }
    out
}
