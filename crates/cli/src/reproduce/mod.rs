//! `fairlift reproduce`: published figures beside ours.

mod figures;
mod find;
mod json;
mod markdown;
mod seeds;
mod tally;
mod text;

use std::process::ExitCode;

use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::{Cell, Published, Scenario, Verdict, run_all};
use serde::Serialize;

use crate::args::{PageFormat, ReproduceArguments};
use crate::error::Failure;
use crate::output::Output;
use crate::progress::{Bar, threads};
pub use seeds::Seeds;

/// Exit code when a figure is not reproduced that should be.
const NOT_REPRODUCED: u8 = 1;

/// An experiment with all its figures.
struct Experiment {
    scenario: Scenario,
    rows: Vec<Row>,
}

/// A published row and what became of its figures.
struct Row {
    published: Published,
    cells: Vec<Cell>,
}

/// What a figure means for the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Status {
    /// Ours is within the tolerance.
    Reproduced,
    /// Ours is beyond the tolerance, on the good side.
    Better,
    /// It differs, and the experiment does not say that it does.
    NotReproduced,
    /// It differs; the experiment says why.
    Known,
    /// It is reproduced although the experiment says that it is not.
    Stale,
}

impl Status {
    fn of(cell: &Cell) -> Status {
        match (cell.verdict, &cell.why) {
            (Verdict::NotReproduced, None) => Status::NotReproduced,
            (Verdict::NotReproduced, Some(_)) => Status::Known,
            (_, Some(_)) => Status::Stale,
            (Verdict::Reproduced, None) => Status::Reproduced,
            (Verdict::Better, None) => Status::Better,
        }
    }

    /// As JSON and CSV name it.
    fn word(self) -> &'static str {
        match self {
            Status::Reproduced => "reproduced",
            Status::Better => "better",
            Status::NotReproduced => "not-reproduced",
            Status::Known => "known",
            Status::Stale => "stale",
        }
    }
}

/// How many comparisons there are of each status: one figure under several schedulers is several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Summary {
    figures: usize,
    reproduced: usize,
    better: usize,
    not_reproduced: usize,
    known: usize,
    stale: usize,
}

impl Summary {
    fn of(experiments: &[Experiment]) -> Summary {
        let cells = experiments.iter().flat_map(|e| &e.rows).flat_map(|r| &r.cells);
        let mut summary = Summary::default();
        for cell in cells {
            summary.figures += 1;
            *match Status::of(cell) {
                Status::Reproduced => &mut summary.reproduced,
                Status::Better => &mut summary.better,
                Status::NotReproduced => &mut summary.not_reproduced,
                Status::Known => &mut summary.known,
                Status::Stale => &mut summary.stale,
            } += 1;
        }
        summary
    }

    fn sentence(&self) -> String {
        let mut out =
            format!("{} of {} comparisons are reproduced", self.reproduced + self.stale, self.figures);
        let parts = [
            (self.better, "are better"),
            (self.known, "known not to be reproduced"),
            (self.not_reproduced, "NOT REPRODUCED"),
            (self.stale, "reproduced but still listed as known not to be"),
        ];
        for (n, what) in parts.iter().filter(|(n, _)| *n > 0) {
            out.push_str(&format!(", {n} {what}"));
        }
        out
    }
}

/// Ours as a share of the published figure.
fn ratio(cell: &Cell) -> Option<f64> {
    (cell.published != 0.0).then(|| cell.ours / cell.published)
}

/// Run the experiments asked for and print them.
pub fn reproduce(arguments: &ReproduceArguments) -> Result<ExitCode, Failure> {
    let output = Output::open(arguments.output.as_deref())?;
    if let Some(seeds) = arguments.seeds {
        let changes = seeds::changes(find::scenarios(&arguments.experiments)?, seeds, arguments)?;
        let text = seeds::text(&changes, seeds, output.style());
        output.write(&text)?;
        return Ok(if changes.is_none() { ExitCode::SUCCESS } else { ExitCode::from(NOT_REPRODUCED) });
    }
    let data = match format(arguments) {
        PageFormat::Markdown => arguments.output.as_deref().map(|page| page.with_extension("csv")),
        PageFormat::Table | PageFormat::Json => None,
    };
    let data_output = data.as_deref().map(|path| Output::open(Some(path))).transpose()?;
    let scenarios = find::scenarios(&arguments.experiments)?;
    let count = scenarios.len();
    let mut experiments = Vec::new();
    for (i, scenario) in scenarios.into_iter().enumerate() {
        let rows = run(&scenario, &format!("{}/{count} {}", i + 1, scenario.name), arguments)?;
        experiments.push(Experiment { rows, scenario });
    }
    let (summary, tallies) = (Summary::of(&experiments), tally::of(&experiments));
    let text = match format(arguments) {
        PageFormat::Table => text::page(&experiments, &tallies, &summary, output.style()),
        PageFormat::Json => json::page(&experiments, &tallies, &summary),
        PageFormat::Markdown => {
            let data = data.as_deref().and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
            markdown::page(&experiments, &tallies, &summary, &arguments.experiments, data.as_deref())
        }
    };
    if let Some(data_output) = data_output {
        data_output.write(&figures::csv(&experiments))?;
    }
    let to_file = !matches!(output, Output::Stdout);
    output.write(&text)?;
    if to_file {
        eprintln!("{}{}", tally::text(&tallies), summary.sentence());
    }
    Ok(if summary.not_reproduced > 0 { ExitCode::from(NOT_REPRODUCED) } else { ExitCode::SUCCESS })
}

/// Run an experiment and judge its figures; `label` stands before the progress bar.
fn run(scenario: &Scenario, label: &str, arguments: &ReproduceArguments) -> Result<Vec<Row>, Failure> {
    let bar = Bar::new(scenario, label);
    let runs = run_all(scenario, threads(arguments.threads), &bar);
    bar.finish();
    Ok(judged(scenario, &runs.map_err(|e| Failure::of_run(&e))?))
}

fn format(arguments: &ReproduceArguments) -> PageFormat {
    let ending = arguments.output.as_deref().and_then(|path| path.extension()).and_then(|e| e.to_str());
    arguments.output_format.unwrap_or(match ending {
        Some("md") => PageFormat::Markdown,
        Some("json") => PageFormat::Json,
        _ => PageFormat::Table,
    })
}

fn judged(scenario: &Scenario, runs: &[Vec<RunResult>]) -> Vec<Row> {
    let run_of = |case: &str, scheduler: &str| {
        let runs = &runs[scenario.cases.iter().position(|c| c.name == case)?];
        runs.iter()
            .zip(&scenario.schedulers)
            .find(|(_, spec)| spec.to_string() == scheduler)
            .map(|(run, _)| run)
    };
    let row = |published: &Published| Row { cells: published.cells(run_of), published: published.clone() };
    scenario.published.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(verdict: Verdict, why: Option<&str>) -> Cell {
        Cell { case: "1".into(), published: 2.0, ours: 1.0, verdict, why: why.map(Into::into) }
    }

    #[test]
    fn a_reason_excuses_a_figure_only_while_it_is_not_reproduced() {
        assert_eq!(Status::of(&cell(Verdict::NotReproduced, None)), Status::NotReproduced);
        assert_eq!(Status::of(&cell(Verdict::NotReproduced, Some("why"))), Status::Known);
        assert_eq!(Status::of(&cell(Verdict::Reproduced, Some("why"))), Status::Stale);
        assert_eq!(Status::of(&cell(Verdict::Better, None)), Status::Better);
        assert_eq!(ratio(&cell(Verdict::Better, None)), Some(0.5));
    }
}
