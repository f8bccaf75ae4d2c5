//! What the Python package calls: the command's own work, handed over instead of printed. The texts are the command's, byte by byte.

use std::path::Path;

use clap::Parser as _;
use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::{Scenario, run_all};

use crate::answer::Answer;
use crate::answer::goal::Goal;
use crate::args::{Arguments, Command, Format};
use crate::error::quietly;
use crate::input::{self, Columns};
use crate::plan::{self, Plan, flat};
use crate::progress::threads;
use crate::style::Style;
use crate::trace::replay;
use crate::{answer, csv, json, report, table, view};

pub use crate::error::Failure;
pub use crate::sweep::api::{Best, Cells, Column, Sweep, Worker, columns_of_csv};

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
        let all = std::iter::once("fairlift").chain(words.iter().map(String::as_str));
        let parsed = Arguments::try_parse_from(all).map_err(|e| Failure::new(e.to_string().trim_end()))?;
        quietly(|| match &parsed.command {
            Some(Command::Compare(arguments)) => {
                let scenario = input::scenario(&arguments.work, &arguments.scheduler, Columns::All)?;
                let goal = Goal::parse(&arguments.goal, &scenario)?;
                let plan = Plan::new(scenario, &input::devices_of(&arguments.work)?, arguments.seeds);
                let compared = plan.sort(simulated(&plan.run, arguments.work.threads)?);
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
            Some(Command::Run(arguments)) => {
                let scenario =
                    input::scenario(&arguments.work, arguments.scheduler.as_slice(), Columns::One)?;
                let runs = simulated(&scenario, arguments.work.threads)?;
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
            Some(Command::Replay(arguments)) => {
                let (scenario, trace, format) = replay::scenario(arguments, replay::load)?;
                let runs = simulated(&scenario, arguments.threads)?;
                let text =
                    |kind| replay::text(arguments, &scenario, &runs, (&trace, format), kind, Style::Plain);
                let texts = [Format::Table, Format::Json, Format::Csv].map(text);
                Ok(Compared::new(texts, scenario, plan::Compared::of_one_seed(runs), None, words))
            }
            _ => Err(Failure::new("allowed: run, compare, replay")),
        })
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

fn simulated(scenario: &Scenario, asked: Option<usize>) -> Result<Vec<Vec<RunResult>>, Failure> {
    run_all(scenario, threads(asked), &()).map_err(|e| Failure::of_run(&e))
}
