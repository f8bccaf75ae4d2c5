//! `fairlift replay`: a trace under several schedulers, on several devices.

use std::fmt::Write as _;
use std::sync::Arc;

use fairlift_sim::kernel::version;
use fairlift_sim::lab::Replaying;
use fairlift_sim::program::replay::{Loader, Replay};
use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::{Case, Scenario};
use serde::Serialize;

use super::args::ReplayArguments;
use super::input::Input;
use crate::args::Format;
use crate::error::{Failure, note};
use crate::grid::{WIDTH, wrapped};
use crate::number::{count, seconds};
use crate::output::Output;
use crate::plan::{Compared, flat, single};
use crate::settings::Settings;
use crate::style::Style;
use crate::view::View;
use crate::{csv, input, json, table};

/// What is known of the trace, for programs.
#[derive(Serialize)]
pub struct About {
    trace: String,
    format: &'static str,
    timing: String,
    ios: u64,
    length_ns: u64,
    processes: Vec<Process>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Process {
    pid: Option<u32>,
    name: String,
    group: Option<String>,
    ios: u64,
}

/// Read the trace, replay it everywhere, print what came of it.
pub fn replay(arguments: &ReplayArguments) -> Result<(), Failure> {
    let output = Output::open(arguments.results.output.as_deref())?;
    let view = View::open(&arguments.results.view)?;
    let (mut scenario, trace, format) = scenario(arguments, load)?;
    view.prepare(&mut scenario);
    let runs = crate::simulate(&scenario, arguments.threads, arguments.record.as_deref())?;
    let mut compared = Compared::of_one_seed(runs);
    view.write(&scenario, &mut compared, None, arguments.explain)?;
    let runs = compared.first;
    let style = output.style();
    output.write(&text(arguments, &scenario, &runs, (&trace, format), arguments.results.output_format, style))
}

/// The results as they are printed.
pub fn text(
    arguments: &ReplayArguments,
    scenario: &Scenario,
    runs: &[Vec<RunResult>],
    (trace, format): (&Replay, &'static str),
    output_format: Format,
    style: Style,
) -> String {
    let notes = notes(scenario, trace, arguments);
    match output_format {
        Format::Table => {
            style.visible(&with_notes(&table::table(scenario, &single(runs), style), &notes, style))
        }
        Format::Json => json::replay(scenario, runs, &about(arguments, trace, format, notes)),
        Format::Csv => {
            notes.iter().for_each(|text| note(text));
            csv::csv(scenario, &flat(runs))
        }
    }
}

/// A trace ready to be replayed, and its format's name.
pub type Loaded = (Arc<Replay>, &'static str);

/// What is to be replayed, checked; `load` reads the trace.
pub fn scenario(
    arguments: &ReplayArguments,
    load: impl FnOnce(&ReplayArguments) -> Result<Loaded, Failure>,
) -> Result<(Scenario, Arc<Replay>, &'static str), Failure> {
    let mut scenario = input::blank(&arguments.trace, Vec::new())?;
    scenario.rules = match &arguments.kernel {
        Some(name) => input::kernel(name)?.clone(),
        None => version::TODAY.clone(),
    };
    scenario.seed = arguments.seed.unwrap_or(scenario.seed);
    scenario.explain = arguments.explain;
    input::choose(&mut scenario, &arguments.scheduler)?;
    let settings = Settings::of(&arguments.set)?;
    if !settings.jobs.is_empty() {
        return Err(Failure::new("a trace has no fio jobs whose options could be changed").at("--set"));
    }
    // Groups are known with the trace.
    let (of_groups, of_schedulers): (Vec<&str>, Vec<_>) =
        settings.others.iter().copied().partition(|setting: &&str| setting.starts_with(input::GROUP_SETTING));
    input::set_all(&mut scenario, of_schedulers.into_iter())?;
    let changed = |name: &String| settings.change(&input::device(name)?);
    let devices = arguments.device.iter().map(changed).collect::<Result<Vec<_>, _>>()?;
    scenario.device = match devices.first() {
        Some(first) => first.clone(),
        None if scenario.rules.blk_mq => return Err(input::no_device()),
        None => settings.change(&scenario.device)?,
    };
    if let Some(twice) =
        devices.iter().enumerate().find(|(i, d)| devices[..*i].iter().any(|e| e.name() == d.name()))
    {
        return Err(Failure::new(format!("device '{}' is given twice", twice.1.name())).at("--device"));
    }
    let (trace, format) = load(arguments)?;
    let groups = trace.groups();
    let case = |name: &str, device| Case {
        name: name.to_owned(),
        jobs: Vec::new(),
        programs: Vec::new(),
        groups: groups.clone(),
        replaying: Some(Replaying { trace: Arc::clone(&trace), timing: arguments.timing }),
        device,
        seed: None,
        global_options: Vec::new(),
    };
    scenario.cases = match devices.len() {
        0 | 1 => vec![case("", None)],
        _ => devices
            .into_iter()
            .map(|device| {
                let name = device.name().to_owned();
                case(&name, Some(device))
            })
            .collect(),
    };
    input::set_all(&mut scenario, of_groups.into_iter())?;
    scenario.title = title(arguments, &trace, format);
    Ok((scenario, trace, format))
}

/// Read the trace.
pub fn load(arguments: &ReplayArguments) -> Result<Loaded, Failure> {
    loaded(Input::open(&arguments.trace, &arguments.read, false)?, arguments)
}

/// Read the trace that `input` gives.
pub fn loaded(mut input: Input, arguments: &ReplayArguments) -> Result<Loaded, Failure> {
    let format = input.reader().format();
    // What a table's columns hold is known with its first row.
    let mut next = input.next()?;
    let mut loader = Loader::new(input.reader().facts(), arguments.only.clone());
    while let Some(event) = next {
        loader.event(&event, input.reader().names());
        next = input.next()?;
    }
    let replay = loader.finish(input.reader().names());
    input.finish()?;
    if replay.ios == 0 {
        let mut failure = Failure::new("the trace has no I/O to replay").at(&arguments.trace);
        if !replay.left_aside.is_empty() {
            failure = Failure::new(format!("nothing in the trace is on {}", arguments.only.join(", ")))
                .at("--only")
                .help(format!("the trace's devices: {}", replay.left_aside.join(", ")));
        }
        return Err(failure);
    }
    Ok((Arc::new(replay), format.name()))
}

fn title(arguments: &ReplayArguments, trace: &Replay, format: &str) -> String {
    format!(
        "{} ({format}): {} of {} in {}, replayed {}",
        arguments.trace,
        count(trace.ios, "I/O", "I/Os"),
        count(trace.processes.len() as u64, "process", "processes"),
        seconds(trace.length_ns),
        arguments.timing
    )
}

/// What the trace lacks, and what was done about it, on any of the devices.
fn notes(scenario: &Scenario, trace: &Replay, arguments: &ReplayArguments) -> Vec<String> {
    let mut all = Vec::new();
    for case in &scenario.cases {
        let device = case.device.as_ref().unwrap_or(&scenario.device);
        for text in trace.notes(arguments.timing, device.limits().sectors) {
            if !all.contains(&text) {
                all.push(text);
            }
        }
    }
    all
}

fn with_notes(table: &str, notes: &[String], style: Style) -> String {
    let mut out = table.to_owned();
    for (index, text) in notes.iter().enumerate() {
        if index == 0 {
            let _ = writeln!(out, "\n{}", style.bold("about the trace"));
        }
        for (line, part) in wrapped(text, WIDTH - 4).iter().enumerate() {
            let _ = writeln!(out, "  {} {part}", if line == 0 { "-" } else { " " });
        }
    }
    out
}

fn about(arguments: &ReplayArguments, trace: &Replay, format: &'static str, notes: Vec<String>) -> About {
    let process = |p: &fairlift_sim::program::replay::Traced| Process {
        pid: p.pid,
        name: p.name.clone(),
        group: p.group.clone(),
        ios: p.ios,
    };
    About {
        trace: arguments.trace.clone(),
        format,
        timing: arguments.timing.to_string(),
        ios: trace.ios,
        length_ns: trace.length_ns,
        processes: trace.processes.iter().map(process).collect(),
        notes,
    }
}
