//! `fairlift validate --rates`: drives whose rates were measured, each rate beside the model's.

use std::fmt::Write as _;

use fairlift_sim::device::{DeviceSpec, Measured, PRESETS};
use fairlift_sim::rates;
use serde::Serialize;

use crate::args::{Format, ValidateArguments};
use crate::error::Failure;
use crate::import;
use crate::output::Output;

/// A drive's figures.
#[derive(Serialize)]
struct Row {
    device: String,
    figures: Vec<Figure>,
}

#[derive(Serialize)]
struct Figure {
    name: &'static str,
    measured: f64,
    model: f64,
}

/// Of the devices given, or of all presets whose files say what was measured.
pub fn validate(arguments: &ValidateArguments) -> Result<(), Failure> {
    let output = Output::open(arguments.output.as_deref())?;
    let mut rows = Vec::new();
    for name in &arguments.devices {
        let spec = import::device(name)?;
        let Some(measured) = spec.measured() else {
            let message = format!("{name} has no section [measured] to compare with");
            return Err(Failure::new(message).at("--rates"));
        };
        rows.push(row(&spec, measured));
    }
    if arguments.devices.is_empty() {
        for preset in PRESETS {
            let spec = import::device(preset.name)?;
            rows.extend(spec.measured().map(|measured| row(&spec, measured)));
        }
    }
    match arguments.output_format {
        Format::Table => output.write(&table(&rows)),
        Format::Json => {
            let text = serde_json::to_string_pretty(&rows).map_err(|e| Failure::internal(e.to_string()))?;
            output.write(&(text + "\n"))
        }
        Format::Csv => Err(Failure::new("rates have no csv").at("--output-format").help("table or json")),
    }
}

fn row(spec: &DeviceSpec, measured: &Measured) -> Row {
    let model = rates::of(spec);
    let figure = |name, of: fn(&Measured) -> f64| Figure { name, measured: of(measured), model: of(&model) };
    Row {
        device: spec.name().to_owned(),
        figures: vec![
            figure("read MB/s", |m| m.read_bytes_per_s / 1e6),
            figure("write MB/s", |m| m.write_bytes_per_s / 1e6),
            figure("sequential reads", |m| m.read_seq_iops),
            figure("random reads", |m| m.read_random_iops),
            figure("sequential writes", |m| m.write_seq_iops),
            figure("random writes", |m| m.write_random_iops),
            figure("read latency, ms", |m| m.read_latency_us / 1e3),
            figure("write latency, ms", |m| m.write_latency_us / 1e3),
        ],
    }
}

fn table(rows: &[Row]) -> String {
    let mut out = String::from("| measured / model |");
    let heads: Vec<&str> =
        rows.first().map_or(Vec::new(), |row| row.figures.iter().map(|f| f.name).collect());
    heads.iter().for_each(|head| _ = write!(out, " {head} |"));
    out.push_str("\n|---|");
    heads.iter().for_each(|_| out.push_str("--:|"));
    for row in rows {
        let _ = write!(out, "\n| `{}` |", row.device);
        for figure in &row.figures {
            let digits = if figure.measured < 100.0 { 1 } else { 0 };
            let _ = write!(out, " {:.digits$} / {:.digits$} |", figure.measured, figure.model);
        }
    }
    out.push('\n');
    out
}
