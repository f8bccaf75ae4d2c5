//! Experiments as a page: what the letters ask and how many of their figures are reproduced, then each experiment in a line, then a
//! section for each. The figures themselves go to a file of data beside the page ([`super::figures`]).

use std::fmt::Write as _;

use fairlift_sim::scenario::{LeftOut, Origin};

use super::tally::{self, Tally};
use super::{Experiment, Row, Status, Summary, ratio};

/// What the page is, for a reader who does not know the letters.
const WHAT_IT_IS: &str = "\
Kernel developers published measurements of disk schedulers in letters to linux-kernel. Each experiment here repeats one of these measurements in
the lab, on a modelled disk of that time. A figure is *reproduced* if the lab's figure is within the stated tolerance of the published one, most often
a quarter. A figure that is not reproduced stays, with the reason. No value of a model was changed to reproduce a single figure, except where a figure is
called *fitted*.

";

/// The question of each letter.
const LETTERS: [(&str, &str); 6] = [
    ("Brunelle", "2008: what does the search for merges cost random I/O, and what does `nomerges` save?"),
    ("Goyal", "2009: do groups with weights get their shares of a disk, under each elevator?"),
    ("Zoccolo", "2009: is an fsync faster if deadline separates sync from async requests?"),
    ("Moyer", "2010: is an fsync under CFQ faster if its task yields to the journal's thread?"),
    ("Tsuruta", "2009: what do groups by dm-ioband cost readers, beside the IO controller?"),
    ("Kara", "2012: how many fsyncs a second does jbd do beside a reader?"),
];

/// What the origins are.
const ORIGINS: &str = "\
*Printed*: the figure stands in a letter or another public text. *Derived*: a ratio of printed figures, or one that a letter gives in words.
*Statement*: a range that follows from a letter's figures or words. *Fitted*: a value of the model was chosen so that the figure is reproduced, so the
figure proves nothing. *Again*: a figure that another experiment counts already, here on another disk. *Our aim*: a target of this project, without a
publication. A figure counts once, even if several schedulers should show it.

";

/// A page that says which command wrote it. `names`: the experiments asked for; `data`: the file with the figures.
pub(super) fn page(
    experiments: &[Experiment],
    tallies: &[Tally],
    summary: &Summary,
    names: &[String],
    data: Option<&str>,
) -> String {
    let mut out = String::from("# Experiments: published figures beside ours\n\n");
    out.push_str(WHAT_IT_IS);
    letters(&mut out, tallies);
    let _ = writeln!(out, "{}.\n", summary.sentence());
    overview(&mut out, experiments);
    out.push_str("\n## Counts by origin\n\n");
    out.push_str(ORIGINS);
    out.push_str(&tally::markdown(tallies));
    let names: String = names.iter().map(|n| format!(" {n}")).collect();
    let _ = write!(
        out,
        "\n`fairlift reproduce{names}` ({}) wrote this page; do not edit.",
        env!("CARGO_PKG_VERSION")
    );
    if let Some(data) = data {
        let _ = write!(
            out,
            " [{data}]({data}) has every figure: published, ours, their ratio, the accepted range, the verdict, the reason and the source."
        );
    }
    out.push('\n');
    for experiment in experiments {
        details(&mut out, experiment);
    }
    out
}

/// What each letter asks, and how many of its figures are reproduced.
fn letters(out: &mut String, tallies: &[Tally]) {
    let of = |letter: &str, origin: Origin| tallies.iter().find(|t| t.letter == letter && t.origin == origin);
    if !LETTERS.iter().any(|(letter, _)| tallies.iter().any(|t| t.letter == *letter)) {
        return;
    }
    out.push_str("| letter | question | printed figures reproduced | derived | statements |\n|---|---|---:|---:|---:|\n");
    for (letter, question) in LETTERS {
        let cells =
            [Origin::Printed, Origin::Derived, Origin::Statement].map(|origin| match of(letter, origin) {
                Some(tally) => format!("{} of {}", tally.reproduced + tally.better, tally.figures),
                None => String::new(),
            });
        if cells.iter().any(|cell| !cell.is_empty()) {
            let _ = writeln!(out, "| {letter} | {question} | {} |", cells.join(" | "));
        }
    }
    out.push('\n');
}

/// Each experiment in a line: how many figures are reproduced, and why most of the others are not.
fn overview(out: &mut String, experiments: &[Experiment]) {
    out.push_str(
        "| experiment | comparisons | reproduced | why most of the others are not |\n|---|---:|---:|---|\n",
    );
    for experiment in experiments {
        let name = &experiment.scenario.name;
        let cells = experiment.rows.iter().map(|row| row.cells.len()).sum::<usize>();
        let reasons = Reasons::of(experiment);
        let why = match reasons.list.iter().max_by_key(|(_, count)| *count) {
            Some((why, count)) => format!("{} ({count})", cut(why)),
            None => String::new(),
        };
        let _ = writeln!(out, "| [{name}](#{name}) | {cells} | {} | {why} |", reproduced(experiment));
    }
}

/// How many comparisons are reproduced, or better.
fn reproduced(experiment: &Experiment) -> usize {
    let cells = experiment.rows.iter().flat_map(|row| &row.cells);
    cells.filter(|cell| is_reproduced(Status::of(cell))).count()
}

fn is_reproduced(status: Status) -> bool {
    !matches!(status, Status::NotReproduced | Status::Known)
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

/// One experiment: what it is, its rows in a line each, and why figures differ.
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
    let _ = writeln!(
        out,
        "\n<details><summary>{} of {cells} comparisons are reproduced</summary>\n\n\
         | figure | of | schedulers | comparisons | reproduced | ours / published |\n|---|---|---|---:|---:|---:|",
        reproduced(experiment)
    );
    figures(out, experiment);
    reasons(out, &Reasons::of(experiment));
    out.push_str("\n</details>\n");
}

/// Every figure's kind in a line: of which job, and how far ours are from those published, over all schedulers and cases.
fn figures(out: &mut String, experiment: &Experiment) {
    let mut kinds: Vec<((String, &str), Vec<&Row>)> = Vec::new();
    for row in &experiment.rows {
        let p = &row.published;
        let (label, unit) = (p.label(), p.unit());
        let what = if unit.is_empty() || label.contains(unit) { label } else { format!("{label}, {unit}") };
        let key = (what, p.job.as_str());
        match kinds.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rows)) => rows.push(row),
            None => kinds.push((key, vec![row])),
        }
    }
    for ((what, job), rows) in kinds {
        let cells: Vec<_> = rows.iter().flat_map(|row| &row.cells).collect();
        let good = cells.iter().filter(|cell| is_reproduced(Status::of(cell))).count();
        let mut schedulers: Vec<&str> = rows.iter().map(|row| row.published.scheduler.as_str()).collect();
        schedulers.dedup();
        let schedulers = match schedulers.as_slice() {
            few if few.len() <= 4 => {
                few.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
            }
            many => format!("{} schedulers", many.len()),
        };
        let ratios: Vec<f64> = cells.iter().filter_map(|cell| ratio(cell)).collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let range = match ratios.len() {
            0 => "-".to_owned(),
            1 => format!("{least:.2}"),
            _ => format!("{least:.2} to {most:.2}"),
        };
        let _ =
            writeln!(out, "| {what} | {} | {schedulers} | {} | {good} | {range} |", plain(job), cells.len());
    }
}

/// Why figures differ, the most frequent reason first.
fn reasons(out: &mut String, reasons: &Reasons<'_>) {
    let mut list: Vec<_> = reasons.list.iter().collect();
    list.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for (at, (why, count)) in list.into_iter().enumerate() {
        if at == 0 {
            out.push_str("\nReasons, with the number of comparisons:\n\n");
        }
        let _ = writeln!(out, "* {count}: {}.", plain(why.trim_end_matches('.')));
    }
}

/// Why figures of an experiment are not reproduced: each reason once, with its number of figures.
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
}

/// One line that cannot break a table.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
