//! Experiments as a page: who says what and how much of it comes out, then each experiment in a line, then all figures, folded.

use std::fmt::Write as _;

use fairlift_sim::scenario::LeftOut;

use super::tally::{self, Tally};
use super::text::tolerance;
use super::{Experiment, Row, Status, Summary, ratio};
use crate::number::short;

/// What the table at the top counts.
const WHAT_COUNTS: &str = "\
*Printed*: the figure stands in a letter or another public post. *Derived*: a ratio of printed figures, or one that a letter's text gives in words.
*Statement*: what a letter's figures say without a number of their own, within the limits given. *Fitted*: a value of the model was chosen so that
it comes out, so it proves nothing. *Our aim*: nobody published it. A figure counts once, however many schedulers are to show it.

";

/// A page that says which command wrote it. `names`: the experiments asked for.
pub(super) fn page(
    experiments: &[Experiment],
    tallies: &[Tally],
    summary: &Summary,
    names: &[String],
) -> String {
    let mut out = String::from("# Experiments: published figures beside ours\n\n");
    let names: String = names.iter().map(|n| format!(" {n}")).collect();
    let _ = writeln!(
        out,
        "Written by `fairlift reproduce{names}` ({}); do not edit.\n",
        env!("CARGO_PKG_VERSION")
    );
    out.push_str(WHAT_COUNTS);
    out.push_str(&tally::markdown(tallies));
    let _ = writeln!(out, "\n{}.\n", summary.sentence());
    overview(&mut out, experiments);
    for experiment in experiments {
        details(&mut out, experiment);
    }
    out
}

/// Each experiment in a line: how much of it comes out, and why most of the rest does not.
fn overview(out: &mut String, experiments: &[Experiment]) {
    out.push_str(
        "| experiment | comparisons | come out | most of the rest does not because |\n|---|---:|---:|---|\n",
    );
    for experiment in experiments {
        let name = &experiment.scenario.name;
        let cells = experiment.rows.iter().map(|row| row.cells.len()).sum::<usize>();
        let reasons = Reasons::of(experiment);
        let why = match reasons.list.iter().max_by_key(|(_, count)| *count) {
            Some((why, count)) => format!("{} ({count})", cut(why)),
            None => String::new(),
        };
        let _ = writeln!(out, "| [{name}](#{name}) | {cells} | {} | {why} |", comes_out(experiment));
    }
}

/// How many comparisons come out, or better.
fn comes_out(experiment: &Experiment) -> usize {
    let cells = experiment.rows.iter().flat_map(|row| &row.cells);
    cells.filter(|cell| !matches!(Status::of(cell), Status::NotReproduced | Status::Known)).count()
}

/// The beginning of a reason: its first sentence, or part of that.
fn cut(why: &str) -> String {
    const LENGTH: usize = 160;
    let sentence = why.split(". ").next().unwrap_or(why).trim_end_matches('.');
    match sentence.char_indices().nth(LENGTH) {
        None => plain(sentence),
        Some((at, _)) => {
            let head = &sentence[..at];
            plain(&format!("{} …", &head[..head.rfind(' ').unwrap_or(at)]))
        }
    }
}

/// One experiment: what it is, and its figures.
fn details(out: &mut String, experiment: &Experiment) {
    let scenario = &experiment.scenario;
    let _ = writeln!(out, "\n## {}\n\n{}\n", scenario.name, plain(&scenario.title));
    if !scenario.about.trim().is_empty() {
        let _ = writeln!(out, "{}\n", scenario.about.trim());
    }
    let (device, kernel) = (scenario.device.name(), scenario.rules.version);
    let _ = writeln!(out, "Device `{device}`, Linux {kernel}, seed {}.", scenario.seed);
    for out_of in &scenario.left_out {
        let LeftOut { figures, what, why, .. } = out_of;
        let _ = writeln!(out, "\nNot compared: {figures} figures, {}: {}.", plain(what), plain(why));
    }
    let cells = experiment.rows.iter().map(|row| row.cells.len()).sum::<usize>();
    if cells == 0 {
        return;
    }
    let (reasons, sources) = (Reasons::of(experiment), sources(experiment));
    let _ = writeln!(
        out,
        "\n<details><summary>{} of {cells} comparisons come out</summary>\n\n\
         | scheduler | of | figure | may be | case | published | ours | ratio | |\n|---|---|---|---|---|---:|---:|---:|---|",
        comes_out(experiment)
    );
    for row in &experiment.rows {
        figures(out, row, &reasons, &sources);
    }
    notes(out, "Sources", "s", sources.iter().copied());
    notes(out, "Reasons", "r", reasons.list.iter().map(|(why, _)| *why));
    out.push_str("\n</details>\n");
}

/// The figures of one published row.
fn figures(out: &mut String, row: &Row, reasons: &Reasons<'_>, sources: &[&str]) {
    let p = &row.published;
    let (label, unit) = (p.label(), p.unit());
    let what = if unit.is_empty() || label.contains(unit) { label } else { format!("{label}, {unit}") };
    let source = sources.iter().position(|s| *s == p.source);
    let source = source.map_or_else(String::new, |at| format!(" s{}", at + 1));
    for cell in &row.cells {
        let verdict = match Status::of(cell) {
            Status::Reproduced => "comes out".to_owned(),
            Status::Better => "better".to_owned(),
            Status::NotReproduced => "**does not come out**".to_owned(),
            Status::Known => format!("**no**: {}", reasons.number(cell.why.as_deref())),
            Status::Stale => {
                format!("comes out; the reason why not is stale ({})", reasons.number(cell.why.as_deref()))
            }
        };
        let _ = writeln!(
            out,
            "| `{}` | {} | {what} | {}; {}{source} | {} | {} | {} | {} | {verdict} |",
            p.scheduler,
            plain(&p.job),
            tolerance(row),
            p.origin_of(&cell.case).label(),
            plain(&cell.case),
            short(cell.published),
            short(cell.ours),
            ratio(cell).map_or_else(|| "-".to_owned(), |r| format!("{r:.2}")),
        );
    }
}

/// A numbered list that the table refers to.
fn notes<'a>(out: &mut String, head: &str, letter: &str, notes: impl Iterator<Item = &'a str>) {
    for (at, note) in notes.enumerate() {
        if at == 0 {
            let _ = writeln!(out, "\n{head}:\n");
        }
        let _ = writeln!(out, "* {letter}{}: {}.", at + 1, plain(note.trim_end_matches('.')));
    }
}

/// Why figures of an experiment do not come out, each reason once, and of how many figures.
struct Reasons<'a> {
    list: Vec<(&'a str, usize)>,
}

impl<'a> Reasons<'a> {
    fn of(experiment: &'a Experiment) -> Reasons<'a> {
        let mut list: Vec<(&str, usize)> = Vec::new();
        for why in experiment.rows.iter().flat_map(|row| &row.cells).filter_map(|cell| cell.why.as_deref()) {
            match list.iter_mut().find(|(known, _)| *known == why) {
                Some((_, count)) => *count += 1,
                None => list.push((why, 1)),
            }
        }
        Reasons { list }
    }

    fn number(&self, why: Option<&str>) -> String {
        let at = self.list.iter().position(|(known, _)| Some(*known) == why);
        at.map_or_else(String::new, |at| format!("r{}", at + 1))
    }
}

/// Where the figures stand, each source once.
fn sources(experiment: &Experiment) -> Vec<&str> {
    let mut list: Vec<&str> = Vec::new();
    for row in &experiment.rows {
        let source = row.published.source.as_str();
        if !source.is_empty() && !list.contains(&source) {
            list.push(source);
        }
    }
    list
}

/// One line that cannot break a table.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
