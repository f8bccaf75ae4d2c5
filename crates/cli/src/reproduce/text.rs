//! Experiments for people.

use std::fmt::Write as _;

use fairlift_sim::scenario::{Accept, Compare};

use super::tally::{self, Tally};
use super::{Experiment, Row, Status, Summary, ratio};
use crate::grid::{Cell, Grid, WIDTH, length, number, word, wrapped};
use crate::number::short;
use crate::style::Style;

/// All experiments, row by row.
pub(super) fn page(experiments: &[Experiment], tallies: &[Tally], summary: &Summary, style: Style) -> String {
    let mut out = String::new();
    for experiment in experiments {
        let scenario = &experiment.scenario;
        let title = format!("{}: {}", scenario.name, scenario.title);
        wrapped(&title, WIDTH).iter().for_each(|line| out.push_str(&format!("{}\n", style.bold(line))));
        let facts = format!(
            "device {}, Linux {}, seed {}",
            scenario.device.name(),
            scenario.rules.version,
            scenario.seed
        );
        wrapped(&facts, WIDTH).iter().for_each(|line| out.push_str(&format!("{line}\n")));
        sources(&mut out, experiment);
        for row in &experiment.rows {
            out.push('\n');
            row_block(&mut out, row, style);
        }
        out.push('\n');
    }
    let _ = writeln!(out, "{}", tally::text(tallies));
    let _ = writeln!(out, "{}", style.bold(&summary.sentence()));
    out
}

/// The source once, if all rows have the same.
fn sources(out: &mut String, experiment: &Experiment) {
    let mut all: Vec<&str> = experiment.rows.iter().map(|r| r.published.source.as_str()).collect();
    all.dedup();
    for source in all.iter().filter(|s| !s.is_empty()) {
        paragraph(out, "source: ", source);
    }
}

fn row_block(out: &mut String, row: &Row, style: Style) {
    let p = &row.published;
    let head =
        format!("{}, {}: {}, {} ({})", p.scheduler, p.job, p.label(), tolerance(row), p.origin.label());
    wrapped(&head, WIDTH - 2).iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    let mut grid = Grid::default();
    let unit = p.unit();
    grid.row(["", "published", "ours", "ratio", "", ""].map(word).into());
    grid.row(["    case", unit, unit, "", "", ""].map(word).into());
    for cell in &row.cells {
        let ratio = ratio(cell).map_or_else(|| "-".to_owned(), |r| format!("{r:.2}"));
        let mut cells: Vec<Cell> = vec![word(format!("    {}", cell.case))];
        cells.extend([number(short(cell.published)), number(short(cell.ours)), number(ratio)]);
        grid.row(cells);
    }
    let lines = grid.render(Style::Plain, 12);
    let mut lines = lines.lines();
    lines.by_ref().take(2).for_each(|line| out.push_str(&format!("{line}\n")));
    for (line, cell) in lines.zip(&row.cells) {
        let verdict = verdict(cell, style);
        let indent = length(line) + 2;
        match wrapped(&verdict.1, WIDTH.saturating_sub(indent).max(30)).split_first() {
            Some((first, rest)) => {
                let _ = writeln!(out, "{line}  {}", verdict.0.replace("{}", first));
                rest.iter().for_each(|more| out.push_str(&format!("{}{more}\n", " ".repeat(indent))));
            }
            None => out.push_str(line),
        }
    }
}

/// Within which limits a figure counts as reproduced.
pub(super) fn tolerance(row: &Row) -> String {
    let (compare, share) = match row.published.accept {
        Accept::Tolerance(compare, share) => (compare, share),
        Accept::Range(min, max) if max.is_infinite() => return format!("at least {min}"),
        Accept::Range(min, max) if min.is_infinite() => return format!("at most {max}"),
        Accept::Range(min, max) => return format!("from {min} to {max}"),
    };
    let percent = format!("{:.1}", 100.0 * share);
    let percent = percent.trim_end_matches(".0");
    match compare {
        Compare::Near => format!("within {percent} %"),
        Compare::AtLeast => format!("at least, but for {percent} %"),
        Compare::AtMost => format!("at most, but for {percent} %"),
    }
}

/// How the verdict's first line is stressed (`{}` stands for it), and the verdict.
fn verdict(cell: &fairlift_sim::scenario::Cell, style: Style) -> (String, String) {
    let why = cell.why.as_deref().unwrap_or_default();
    match Status::of(cell) {
        Status::Reproduced => ("{}".to_owned(), "reproduced".to_owned()),
        Status::Better => ("{}".to_owned(), "better".to_owned()),
        Status::NotReproduced => (style.red("{}"), "NOT REPRODUCED".to_owned()),
        Status::Known => ("{}".to_owned(), format!("not reproduced (known: {why})")),
        Status::Stale => (style.yellow("{}"), format!("reproduced; the reason why not is stale ({why})")),
    }
}

fn paragraph(out: &mut String, label: &str, text: &str) {
    let indent = " ".repeat(label.len());
    for (i, line) in wrapped(text, WIDTH - label.len()).iter().enumerate() {
        let _ = writeln!(out, "{}{line}", if i == 0 { label } else { &indent });
    }
}
