//! The comparison of programs: a paragraph per program, with columns of its own figures.

use fairlift_sim::program::{Better, ProgramMetric};
use fairlift_sim::result::ProgramResult;

use crate::grid::{Grid, WIDTH, length, word};
use crate::number::short;
use crate::plan::Columns;
use crate::style::Style;
use crate::table::{Best, marked_as, plain, rows_of};

/// All programs of a case; `names` are the rows' heads, at least `first` wide.
pub fn programs(runs: &Columns<'_>, names: &[String], style: Style, first: usize) -> String {
    let count = runs.first().and_then(|seeds| seeds.first()).map_or(0, |run| run.programs.len());
    let paragraphs = (0..count).map(|index| {
        let by_seed =
            runs.iter().map(|seeds| seeds.iter().filter_map(|run| run.programs.get(index)).collect());
        let results: Vec<Vec<&ProgramResult>> = by_seed.collect();
        program(&results, names, style, first)
    });
    paragraphs.collect::<Vec<_>>().join("\n")
}

/// How much was done: as a rule a whole number.
fn amount(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { short(value) }
}

/// One program under all schedulers.
fn program(results: &[Vec<&ProgramResult>], names: &[String], style: Style, first: usize) -> String {
    let Some(any) = results.first().and_then(|seeds| seeds.first()) else { return String::new() };
    let mut out = String::new();
    let mut title = style.bold(&any.name);
    let mut about = about(any);
    for part in parts(results) {
        let mut grid = Grid::default();
        let comma = if part.is_empty() { "" } else { ", " };
        grid.text(format!("{title}{comma}{part}{about}"));
        columns(&mut grid, results, names, part);
        out.push_str(&grid.render(style, first));
        (title, about) = (any.name.clone(), String::new());
    }
    if out.is_empty() {
        let mut grid = Grid::default();
        grid.text(format!("{title}{about}"));
        grid.text("  it has no figures, or was stopped before it had some".to_owned());
        out = grid.render(style, first);
    }
    out
}

/// ` (its command line)`, as far as it fits.
fn about(program: &ProgramResult) -> String {
    let place = if program.background { ", in the background" } else { "" };
    let room = WIDTH.saturating_sub(length(&program.name) + length(place) + 3);
    let command = match length(&program.command) > room {
        true => program.command.chars().take(room - 1).chain(['…']).collect(),
        false => program.command.clone(),
    };
    format!("{place} ({command})")
}

/// The parts of the program that have figures, in the order it reports them.
fn parts(results: &[Vec<&ProgramResult>]) -> Vec<&'static str> {
    let mut parts = Vec::new();
    for figure in results.iter().flatten().flat_map(|r| &r.figures) {
        if !parts.contains(&figure.metric.part) {
            parts.push(figure.metric.part);
        }
    }
    parts
}

fn columns(grid: &mut Grid, results: &[Vec<&ProgramResult>], names: &[String], part: &str) {
    let mut metrics: Vec<ProgramMetric> = Vec::new();
    for figure in results.iter().flatten().flat_map(|r| &r.figures).filter(|f| f.metric.part == part) {
        if !metrics.contains(&figure.metric) {
            metrics.push(figure.metric);
        }
    }
    let head = |text: fn(&ProgramMetric) -> &'static str| {
        std::iter::once(word("")).chain(metrics.iter().map(|m| word(text(m)))).collect()
    };
    grid.row(head(|m| m.heading));
    grid.row(head(|m| m.unit));
    let figures: Vec<_> = metrics
        .iter()
        .map(|metric| {
            let value = |result: &&ProgramResult| result.metric(metric.name);
            match metric.better {
                Better::Higher => marked_as(results, Best::Highest, value, short),
                Better::Lower => marked_as(results, Best::Lowest, value, short),
                Better::Neither => plain(results, value, amount),
            }
        })
        .collect();
    rows_of(grid, names, &figures);
}
