//! The page, in Markdown.

use std::fmt::Write as _;

use fairlift_sim::result::{JobResult, RunResult};

use super::{Cell, Kind, LOADS, Load, SCHEDULERS, SEEDS};
use crate::number::{seconds, short};
use crate::spread::Spread;

/// A load, and what came of it on each device.
pub type Row<'a> = (&'a Load, Vec<Cell>);

/// All of it; a part has no overview.
pub fn page(rows: &[Row<'_>], kinds: &[&Kind], whole: bool) -> String {
    let mut out = String::new();
    if whole {
        out.push_str(&head(rows, kinds));
    }
    for row in rows {
        let _ = write!(out, "\n## {}\n\n{}", row.0.title, job(row.0));
        for (cell, kind) in row.1.iter().zip(kinds) {
            out.push_str(&section(cell, kind));
        }
    }
    out
}

/// The parts that a check looks for: each load on each device.
pub fn sections(rows: &[Row<'_>], kinds: &[&Kind]) -> Vec<String> {
    rows.iter()
        .flat_map(|(_, cells)| cells.iter().zip(kinds).map(|(cell, kind)| section(cell, kind)))
        .collect()
}

fn head(rows: &[Row<'_>], kinds: &[&Kind]) -> String {
    let times: Vec<String> =
        kinds.iter().map(|kind| format!("{} {}", kind.word, seconds(kind.runtime_ns))).collect();
    let mut out = format!(
        "# Which scheduler\n\n\
        This page says which scheduler suits a load on a device, for {} common loads on {} kinds of device. Find the load that is nearest to\n\
        yours in the first table; the section of that load has the figures. Every figure is simulated by the [lab](models.md) under Linux 6.12, with\n\
        each scheduler at its defaults, and is the mean of {SEEDS} seeds (simulated time of a run: {}).\n\
        [Real kernels](real-kernels.md) shows how near the lab is to a real kernel.\n\n\
        The table has the best scheduler for each load and its goal (rows) on each kind of device (columns). *all alike*: all {} schedulers come\n\
        within 5 % of the best, so it makes no difference which one you take. If only some of them do, the table names the first in the order\n\
        {}.\n\n",
        LOADS.len(),
        kinds.len(),
        times.join(", "),
        SCHEDULERS.len(),
        SCHEDULERS.join(", ")
    );
    let _ = writeln!(
        out,
        "| load, goal |{}",
        kinds.iter().map(|kind| format!(" {} |", kind.word)).collect::<String>()
    );
    let _ = writeln!(out, "|---|{}", "---|".repeat(kinds.len()));
    for (load, cells) in rows {
        let cells: String = cells.iter().map(|cell| format!(" {} |", choice(cell))).collect();
        let _ = writeln!(out, "| {}, `{}` |{cells}", load.title, load.goal);
    }
    out.push_str(
        "\nIn the sections below, the first column of figures is the goal's figure with half of its 95 % confidence interval; the best, and\n\
        those as good, are bold. The goal `balanced` has no such figure. The other columns have the rate and the p99 of each job. The sentences\n\
        below a table are the answer: the best scheduler, those that do not count, what the choice costs each job, and whether all seeds and a\n\
        device that is 20 % faster or slower give the same answer. [The answer](cli.md#the-answer) explains goals and answers.\n\n\
        `fairlift which --output docs/which-scheduler.md` writes this page; `make test` repeats a part of it and compares.\n",
    );
    out
}

/// The scheduler to take.
pub fn choice(cell: &Cell) -> String {
    match cell.answer.matters {
        false => "all alike".to_owned(),
        true => SCHEDULERS[cell.answer.chosen].to_owned(),
    }
}

/// The job file, without its comment, which stands above it.
fn job(load: &Load) -> String {
    let (about, job) = load.job.split_once('\n').unwrap_or(("", load.job));
    format!("{}\n\n```ini\n{}```\n", about.trim_start_matches(';').trim(), job)
}

/// A load on a device: the goal's figure, each job's rate and p99, and the answer.
fn section(cell: &Cell, kind: &Kind) -> String {
    let Figures { goal, jobs, rows } = Figures::of(cell);
    let goal_head = goal.as_ref().map_or_else(String::new, |goal| format!(" {goal} |"));
    let mut out = format!("\n### {}: {}\n\n", kind.word, cell.scenario.device.name());
    let heads: String = jobs.iter().map(|job| format!(" {job}: IOPS | p99, ms |")).collect();
    let _ = writeln!(out, "| |{goal_head}{heads}");
    let _ = writeln!(out, "|---|{}", "--:|".repeat(jobs.len() * 2 + usize::from(goal.is_some())));
    for row in rows {
        let mut line = format!("| {} |", row.scheduler);
        if let Some(shown) = row.goal {
            let _ = write!(line, " {} |", if row.is_best { format!("**{shown}**") } else { shown });
        }
        row.cells.iter().for_each(|cell| line.push_str(&format!(" {cell} |")));
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(out, "\n{}", cell.answer.sentences.join(" "));
    out
}

/// The table of a load on a device.
pub struct Figures {
    /// The goal's name, if it has a figure.
    pub goal: Option<String>,
    /// The jobs' names.
    pub jobs: Vec<String>,
    /// A row for each scheduler.
    pub rows: Vec<Shown>,
}

/// A scheduler's row.
pub struct Shown {
    /// Its name.
    pub scheduler: &'static str,
    /// The goal's figure with its spread.
    pub goal: Option<String>,
    /// It is as good as the best, and that matters.
    pub is_best: bool,
    /// Of each job: IOPS, p99 in ms.
    pub cells: Vec<String>,
}

impl Figures {
    /// Of this cell.
    pub fn of(cell: &Cell) -> Figures {
        let columns = cell.compared.columns(0);
        let first = columns.first().and_then(|runs| runs.first());
        let jobs: Vec<String> =
            first.map_or(Vec::new(), |run| run.jobs().into_iter().map(|job| job.name).collect());
        let goal = cell.goal.has_figure().then(|| cell.goal.name());
        let row = |(at, runs): (usize, &Vec<&RunResult>)| {
            let shown =
                |spread: Spread| format!("{} ±{:.0} %", cell.goal.show(spread.mean), spread.percent());
            let spread = Spread::of(runs.iter().filter_map(|run| cell.goal.value(run)));
            let mean = |job: usize, of: &dyn Fn(&JobResult) -> f64| {
                let spread = Spread::of(runs.iter().filter_map(|run| run.jobs().get(job).map(of)));
                short(spread.map_or(0.0, |spread| spread.mean))
            };
            let p99 = |job: &JobResult| job.clat().percentile_ns(99.0) as f64 / 1e6;
            Shown {
                scheduler: SCHEDULERS[at],
                goal: goal.as_ref().map(|_| spread.map_or("-".to_owned(), shown)),
                is_best: cell.answer.matters && cell.answer.as_good.contains(&at),
                cells: (0..jobs.len())
                    .flat_map(|job| [mean(job, &JobResult::iops), mean(job, &p99)])
                    .collect(),
            }
        };
        let rows = columns.iter().enumerate().map(row).collect();
        Figures { goal, jobs, rows }
    }
}
