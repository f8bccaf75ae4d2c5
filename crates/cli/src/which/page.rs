//! The page, in Markdown.

use std::fmt::Write as _;

use super::{Cell, Kind, LOADS, Load, SCHEDULERS, SEEDS};
use crate::number::seconds;
use crate::spread::Spread;

type Row<'a> = (&'a Load, Vec<Cell>);

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
        This page answers which scheduler suits a load on a device, for {} common loads on {} kinds of device. Find the load that is nearest to\n\
        yours. Every figure is simulated by the [lab](models.md), under Linux 6.12 at each scheduler's defaults, with {SEEDS} seeds\n\
        each ({}), and on devices 20 % faster and slower. [Real kernels](real-kernels.md) shows how near the lab is to a real kernel.\n\
        [The answer](cli.md#the-answer) explains goals and answers. `fairlift which --output docs/which-scheduler.md` writes this page;\n\
        `make test` repeats a part of it and compares.\n\n",
        LOADS.len(),
        kinds.len(),
        times.join(", ")
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
        "\n(any): no scheduler matters. Where several are as good, the table has the first of the order ",
    );
    let _ = writeln!(out, "{}.", SCHEDULERS.join(", "));
    out
}

fn choice(cell: &Cell) -> String {
    match cell.answer.matters {
        false => "(any)".to_owned(),
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
    let columns = cell.compared.columns(0);
    let jobs: Vec<String> = columns
        .first()
        .and_then(|runs| runs.first())
        .map_or(Vec::new(), |run| run.jobs().into_iter().map(|job| job.name).collect());
    let goal = match cell.goal.has_figure() {
        true => format!(" {} |", cell.goal.name()),
        false => String::new(),
    };
    let mut out = format!("\n### {}: {}\n\n", kind.word, cell.scenario.device.name());
    let heads: String = jobs.iter().map(|job| format!(" {job}: IOPS | p99, ms |")).collect();
    let _ = writeln!(out, "| |{goal}{heads}");
    let _ = writeln!(out, "|---|{}", "--:|".repeat(jobs.len() * 2 + usize::from(!goal.is_empty())));
    for (at, runs) in columns.iter().enumerate() {
        let mut line = format!("| {} |", SCHEDULERS[at]);
        if !goal.is_empty() {
            let spread = Spread::of(runs.iter().filter_map(|run| cell.goal.value(run)));
            let shown = spread
                .map_or("-".to_owned(), |s| format!("{} ±{:.0} %", cell.goal.show(s.mean), s.percent()));
            let best = cell.answer.matters && cell.answer.as_good.contains(&at);
            let _ = write!(line, " {} |", if best { format!("**{shown}**") } else { shown });
        }
        for job in 0..jobs.len() {
            let mean = |of: &dyn Fn(&fairlift_sim::result::JobResult) -> f64| {
                Spread::of(runs.iter().filter_map(|run| run.jobs().get(job).map(of))).map_or(0.0, |s| s.mean)
            };
            let (iops, p99) = (mean(&|j| j.iops()), mean(&|j| j.clat().percentile_ns(99.0) as f64 / 1e6));
            let _ = write!(line, " {} | {} |", crate::number::short(iops), crate::number::short(p99));
        }
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(out, "\n{}", cell.answer.sentences.join(" "));
    out
}
