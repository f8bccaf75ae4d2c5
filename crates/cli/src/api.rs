//! What the Python package calls: the command's own work, handed over instead of printed. The texts are the command's, byte by byte.

use std::io::Read;
use std::path::Path;

use clap::Parser as _;
use clap::error::ErrorKind;
use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::{Scenario, run_all_recorded};

use crate::answer::Answer;
use crate::answer::goal::Goal;
use crate::args::{Arguments, Command, Format, WorkArguments};
use crate::error::quietly;
use crate::input::{self, Columns};
use crate::plan::{self, Plan, flat};
use crate::progress::threads;
use crate::style::Style;
use crate::trace::args::ReplayArguments;
use crate::trace::record::Traces;
use crate::trace::{replay, rows};
use crate::{answer, csv, json, report, table, view};

pub use crate::error::Failure;
pub use crate::sweep::api::{Best, Cells, Column, Sweep, Worker, columns_of_csv, fields};
pub use crate::trace::rows::TraceRows;

/// The results of `run`, `compare` or `replay`, in each form in which the command prints them.
pub struct Compared {
    /// As `--output-format table` does.
    pub table: String,
    /// As JSON.
    pub json: String,
    /// As CSV.
    pub csv: String,
    /// Where jobs run otherwise than under fio, a sentence each.
    pub warnings: Vec<String>,
    scenario: Scenario,
    runs: plan::Compared,
    asked: Option<(Goal, Vec<Answer>)>,
    repeat: String,
}

impl Compared {
    /// Do what this command line asks for; its words begin with `run`, `compare` or `replay`.
    ///
    /// # Errors
    /// What the command would complain of.
    pub fn of(words: &[String]) -> Result<Compared, Failure> {
        let command = parsed(words)?;
        quietly(|| match &command {
            Command::Compare(arguments) => {
                let scenario = input::scenario(&arguments.work, &arguments.scheduler, Columns::All)?;
                let goal = Goal::parse(&arguments.goal, &scenario)?;
                let plan = Plan::new(scenario, &input::devices_of(&arguments.work)?, arguments.seeds);
                let compared = plan.sort(simulated(&plan.run, &arguments.work)?);
                let scenario = &plan.shown;
                let answers = answer::answers(scenario, &compared, &goal);
                let table = table::table(scenario, &compared.by_case(), Style::Plain)
                    + &answer::text(scenario, &answers, &goal, Style::Plain);
                let json = json::comparison(scenario, &compared.all(), &goal, &answers);
                let csv = csv::csv(scenario, &compared.all());
                Ok(Compared::new(
                    [table, json, csv],
                    scenario.clone(),
                    compared,
                    Some((goal, answers)),
                    words,
                ))
            }
            Command::Run(arguments) => {
                let scenario =
                    input::scenario(&arguments.work, arguments.scheduler.as_slice(), Columns::One)?;
                let runs = simulated(&scenario, &arguments.work)?;
                let table = report::report(&scenario, &runs, Style::Plain);
                let json = json::fio(&scenario.cases[0], &runs[0][0]);
                let csv = csv::csv(&scenario, &flat(&runs));
                Ok(Compared::new(
                    [table, json, csv],
                    scenario,
                    plan::Compared::of_one_seed(runs),
                    None,
                    words,
                ))
            }
            Command::Replay(arguments) => Compared::replayed(words, arguments, replay::load),
            _ => Err(Failure::new("allowed: run, compare, replay")),
        })
    }

    /// Do what this `replay` asks for, with the trace that `rows` gives: text of the CSV format.
    ///
    /// # Errors
    /// What the command would complain of.
    pub fn of_rows(words: &[String], rows: impl Read + Send + 'static) -> Result<Compared, Failure> {
        let Command::Replay(arguments) = parsed(words)? else { return Err(Failure::new("allowed: replay")) };
        let load = |a: &ReplayArguments| replay::loaded(rows::input(rows)?, a);
        quietly(|| Compared::replayed(words, &arguments, load))
    }

    fn replayed(
        words: &[String],
        arguments: &ReplayArguments,
        load: impl FnOnce(&ReplayArguments) -> Result<replay::Loaded, Failure>,
    ) -> Result<Compared, Failure> {
        let (scenario, trace, format) = replay::scenario(arguments, load)?;
        let runs = recorded(&scenario, arguments.threads, arguments.record.as_deref())?;
        let text = |kind| replay::text(arguments, &scenario, &runs, (&trace, format), kind, Style::Plain);
        let texts = [Format::Table, Format::Json, Format::Csv].map(text);
        Ok(Compared::new(texts, scenario, plan::Compared::of_one_seed(runs), None, words))
    }

    /// `texts`: the table, JSON and CSV.
    fn new(
        texts: [String; 3],
        scenario: Scenario,
        runs: plan::Compared,
        asked: Option<(Goal, Vec<Answer>)>,
        words: &[String],
    ) -> Compared {
        let [table, json, csv] = texts;
        let table = Style::Plain.visible(&table);
        let warnings = scenario.warnings.iter().map(ToString::to_string).collect();
        Compared { table, json, csv, warnings, scenario, runs, asked, repeat: crate::sweep::command(words) }
    }

    /// The page that `--report` writes, without what only a recorded run can tell.
    ///
    /// # Errors
    /// None so far.
    pub fn page(&self) -> Result<String, Failure> {
        let asked = self.asked.as_ref().map(|(goal, answers)| (goal, &answers[..]));
        Ok(fairlift_report::page(&view::report(&self.scenario, &self.runs, asked, self.repeat.clone())))
    }
}

/// All parameters of a device with these fields changed, as `fairlift devices NAME` prints them, and its whole name.
///
/// # Errors
/// When there is none, or it does not take a value.
pub fn device(name: &str, changes: &[(String, String)]) -> Result<(String, String), Failure> {
    let settings: Vec<String> =
        changes.iter().map(|(path, value)| format!("device.{path}={value}")).collect();
    let device = quietly(|| crate::settings::Settings::of(&settings)?.change(&input::device(name)?))?;
    Ok((device.name().to_owned(), device.describe()))
}

/// Is this the name of a file that is there?
pub fn is_file(name: &str) -> bool {
    Path::new(name).is_file()
}

/// A trace's events as rows; `words` are what `fairlift inspect` takes: the trace, and how it is read.
///
/// # Errors
/// What the command would complain of.
pub fn trace_rows(words: &[String]) -> Result<TraceRows, Failure> {
    let inspect: Vec<String> = std::iter::once("inspect".to_owned()).chain(words.iter().cloned()).collect();
    let Command::Inspect(arguments) = parsed(&inspect)? else { return Err(Failure::new("allowed: a trace")) };
    TraceRows::open(&arguments.trace, &arguments.read)
}

/// Does the command take these words, those behind `fairlift`? Nothing runs.
///
/// # Errors
/// When it does not.
pub fn understood(words: &[String]) -> Result<(), Failure> {
    match arguments(words) {
        Err(e) if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => Ok(()),
        result => result.map(|_| ()).map_err(|e| refused(&e)),
    }
}

fn parsed(words: &[String]) -> Result<Command, Failure> {
    let parsed = arguments(words).map_err(|e| refused(&e))?;
    parsed.command.ok_or_else(|| Failure::new("nothing is asked for"))
}

fn arguments(words: &[String]) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(std::iter::once("fairlift").chain(words.iter().map(String::as_str)))
}

/// The sentence without the word that every complaint begins with.
fn refused(error: &clap::Error) -> Failure {
    let text = error.to_string();
    Failure::new(text.strip_prefix("error: ").unwrap_or(&text).trim_end())
}

fn simulated(scenario: &Scenario, work: &WorkArguments) -> Result<Vec<Vec<RunResult>>, Failure> {
    recorded(scenario, work.threads, work.trace.as_deref())
}

fn recorded(
    scenario: &Scenario,
    asked: Option<usize>,
    trace: Option<&Path>,
) -> Result<Vec<Vec<RunResult>>, Failure> {
    let traces = Traces::new(scenario, trace)?;
    let runs = run_all_recorded(scenario, threads(asked), &(), &traces).map_err(|e| Failure::of_run(&e))?;
    traces.finish()?;
    Ok(runs)
}
