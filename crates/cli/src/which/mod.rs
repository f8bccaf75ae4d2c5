//! `fairlift which`: which scheduler for which load on which device, as a page made of runs.

mod html;
mod page;

use std::path::Path;

use fairlift_fio::{ParseOptions, Source, parse};
use fairlift_sim::device::DeviceSpec;
use fairlift_sim::kernel::version;
use fairlift_sim::scenario::Scenario;

use crate::answer::goal::Goal;
use crate::answer::{Answer, answers};
use crate::args::WhichArguments;
use crate::error::Failure;
use crate::input;
use crate::output::{self, Output};
use crate::plan::{Compared, Plan};

/// What is compared: the kernel's own, and this project's.
const SCHEDULERS: [&str; 7] = ["none", "mq-deadline", "kyber", "bfq", "fl-deadline", "fl-cfq", "fair"];
/// Seeds of each run.
const SEEDS: u64 = 3;

/// A load of the page.
struct Load {
    /// For commands and links.
    name: &'static str,
    /// For people.
    title: &'static str,
    job: &'static str,
    goal: &'static str,
}

const fn load(name: &'static str, title: &'static str, job: &'static str, goal: &'static str) -> Load {
    Load { name, title, job, goal }
}

const LOADS: [Load; 6] = [
    load("database", "A database and its log", include_str!("loads/database.fio"), "fsync:log"),
    load(
        "beside-a-writer",
        "A reader beside a bulk writer",
        include_str!("loads/beside-a-writer.fio"),
        "p99:reader",
    ),
    load("streams", "Four sequential readers", include_str!("loads/streams.fio"), "bandwidth"),
    load("deep", "Deep random reads", include_str!("loads/deep.fio"), "iops"),
    load("tenants", "Two tenants at 1:3", include_str!("loads/tenants.fio"), "fair"),
    load("mixed", "A little of everything", include_str!("loads/mixed.fio"), "balanced"),
];

/// A kind of device, and how long to simulate it, nanoseconds: long enough for some thousand requests of the slowest job.
struct Kind {
    word: &'static str,
    runtime_ns: u64,
}

const KINDS: [Kind; 4] = [
    Kind { word: "nvme", runtime_ns: 200_000_000 },
    Kind { word: "sata-ssd", runtime_ns: 1_000_000_000 },
    Kind { word: "hdd", runtime_ns: 20_000_000_000 },
    Kind { word: "cloud", runtime_ns: 4_000_000_000 },
];

/// What came of a load on a device.
struct Cell {
    goal: Goal,
    scenario: Scenario,
    compared: Compared,
    answer: Answer,
}

/// Make the page, or part of it, or compare it with one there is.
pub fn which(arguments: &WhichArguments) -> Result<(), Failure> {
    let kinds = chosen(&KINDS, |kind| kind.word, arguments.device.as_deref(), "--device")?;
    let loads = chosen(&LOADS, |load| load.name, arguments.load.as_deref(), "--load")?;
    let whole = kinds.len() == KINDS.len() && loads.len() == LOADS.len();
    let output = Output::open(arguments.output.as_deref())?;
    let html = match &arguments.page {
        Some(path) => Some(Output::open_for("--page", Some(path))?),
        None => None,
    };
    let mut rows = Vec::new();
    for load in loads {
        let cells =
            kinds.iter().map(|kind| cell(load, kind, arguments.threads)).collect::<Result<Vec<_>, _>>()?;
        rows.push((load, cells));
    }
    if let Some(html) = html {
        html.write(&html::document(&rows, &kinds).html())?;
    }
    let text = page::page(&rows, &kinds, whole);
    match &arguments.check {
        Some(path) => check(path, &text, &page::sections(&rows, &kinds)),
        None if arguments.page.is_some() && arguments.output.is_none() => Ok(()),
        None => output.write(&text),
    }
}

/// Those of `all` that are asked for.
fn chosen<'a, T>(
    all: &'a [T],
    name: impl Fn(&T) -> &'static str,
    asked: Option<&str>,
    option: &str,
) -> Result<Vec<&'a T>, Failure> {
    let found: Vec<&T> = all.iter().filter(|one| asked.is_none_or(|asked| name(one) == asked)).collect();
    if found.is_empty() {
        let names: Vec<&str> = all.iter().map(&name).collect();
        return Err(Failure::new(format!("the page has no '{}'", asked.unwrap_or_default()))
            .at(option)
            .help(format!("allowed: {}", names.join(", "))));
    }
    Ok(found)
}

/// One load on one device under every scheduler.
fn cell(load: &Load, kind: &Kind, threads: Option<usize>) -> Result<Cell, Failure> {
    let mut scenario = scenario(load, kind)?;
    let asked = SCHEDULERS.map(str::to_owned);
    input::choose(&mut scenario, &asked)?;
    let goal = Goal::parse(load.goal, &scenario)?;
    let plan = Plan::new(scenario, &[], SEEDS);
    let runs = crate::simulate(&plan.run, threads, None)?;
    let compared = plan.sort(runs);
    let answer = answers(&plan.shown, &compared, &goal).pop();
    let answer =
        answer.ok_or_else(|| Failure::internal(format!("no answer for {} on {}", load.name, kind.word)))?;
    Ok(Cell { goal, scenario: plan.shown, compared, answer })
}

fn scenario(load: &Load, kind: &Kind) -> Result<Scenario, Failure> {
    let sources = [Source::new(format!("{}.fio", load.name), load.job)];
    let parsed = parse(&sources, &ParseOptions::default()).map_err(|e| Failure::of_jobs(&e, &sources))?;
    let mut scenario = input::of_jobs(parsed, &sources, load.name)?;
    scenario.rules = version::TODAY.clone();
    scenario.device = DeviceSpec::load(kind.word).map_err(|e| Failure::internal(e.to_string()))?;
    scenario.runtime_ns = Some(kind.runtime_ns);
    Ok(scenario)
}

/// Does the page in the file say what the runs say? Of a part of it only the sections that were made.
fn check(path: &Path, page: &str, sections: &[String]) -> Result<(), Failure> {
    let text = std::fs::read_to_string(path).map_err(|e| {
        Failure::new(format!("cannot read '{}': {}", path.display(), output::reason(&e))).at("--check")
    })?;
    if text == page || sections.iter().all(|section| text.contains(section)) && !sections.is_empty() {
        return output::print(&format!("'{}' is up to date.\n", path.display()));
    }
    let stale = sections.iter().find(|section| !text.contains(*section)).map_or("", |section| {
        section.lines().find(|line| !line.trim().is_empty() && !text.contains(*line)).unwrap_or_default()
    });
    Err(Failure::new(format!("'{}' is not what the runs say now", path.display()))
        .at("--check")
        .help(format!("the first line it lacks: {stale}"))
        .help(format!("make it anew: fairlift which --output {}", path.display())))
}
