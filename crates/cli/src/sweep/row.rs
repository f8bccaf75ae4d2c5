//! One run of a sweep: from its command line to its figures, without printing anything.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use clap::Parser as _;
use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::{Scenario, run_all};

use super::figures::figures;
use crate::args::{Arguments, Command};
use crate::error::{Failure, quietly};
use crate::input::{self, Columns};
use crate::trace::replay::{self, Loaded};

/// What became of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// Its number.
    pub number: u64,
    /// Time it took here, microseconds; never part of a result.
    pub cost_us: u64,
    /// Its figures with their columns, or why there are none.
    pub figures: Result<Vec<(String, f64)>, String>,
}

/// Where runs are made: traces are read once and shared.
#[derive(Default)]
pub struct Lab {
    traces: Mutex<HashMap<String, Loaded>>,
}

impl Lab {
    /// Make the run of this command line.
    pub fn run(&self, number: u64, words: &[String]) -> Done {
        let start = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(|| quietly(|| self.figures(words))))
            .unwrap_or_else(|_| Err(Failure::internal("internal error")));
        let figures = result.map_err(|failure| failure.message().replace(['\n', '\r', '\t'], " "));
        Done { number, cost_us: start.elapsed().as_micros() as u64, figures }
    }

    fn figures(&self, words: &[String]) -> Result<Vec<(String, f64)>, Failure> {
        let scenario = self.scenario(words)?;
        Ok(figures(&one(&scenario)?))
    }

    /// What a command line runs: one case under one scheduler.
    pub fn scenario(&self, words: &[String]) -> Result<Scenario, Failure> {
        let all = std::iter::once("fairlift").chain(words.iter().map(String::as_str));
        let parsed = Arguments::try_parse_from(all).map_err(|e| Failure::new(e.to_string().trim_end()))?;
        let scenario = match &parsed.command {
            Some(Command::Run(run)) => input::scenario(&run.work, run.scheduler.as_slice(), Columns::One)?,
            Some(Command::Replay(arguments)) => {
                replay::scenario(arguments, |a| self.trace(&a.trace, || replay::load(a)))?.0
            }
            _ => return Err(Failure::internal("a sweep runs jobs and traces")),
        };
        if scenario.cases.len() > 1 {
            let names: Vec<&str> = scenario.cases.iter().map(|case| case.name.as_str()).collect();
            return Err(Failure::new("the scenario has several cases, and a run is of one").help(format!(
                "choose: case = \"{}\" in [fixed], or several in [over]",
                names.join("\" | \"")
            )));
        }
        if scenario.schedulers.len() > 1 {
            return Err(Failure::new("a run is under one scheduler")
                .help("scheduler = \"none\" in [fixed], or a list in [vary] or [over]"));
        }
        Ok(scenario)
    }

    fn trace(&self, name: &str, load: impl FnOnce() -> Result<Loaded, Failure>) -> Result<Loaded, Failure> {
        // Whoever comes second waits: reading takes memory, too.
        let mut traces = self.traces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = traces.get(name) {
            return Ok(found.clone());
        }
        let loaded = load()?;
        traces.insert(name.to_owned(), loaded.clone());
        Ok(loaded)
    }
}

fn one(scenario: &Scenario) -> Result<RunResult, Failure> {
    let runs = run_all(scenario, 1, &()).map_err(|e| Failure::of_run(&e))?;
    runs.into_iter().flatten().next().ok_or_else(|| Failure::internal("nothing ran"))
}
