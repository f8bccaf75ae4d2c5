//! Experiments as a page.

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
    let _ = writeln!(out, "\n{}.", summary.sentence());
    for experiment in experiments {
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
        for row in &experiment.rows {
            table(&mut out, row);
        }
    }
    out
}

fn table(out: &mut String, row: &Row) {
    let p = &row.published;
    let unit = if p.unit().is_empty() { String::new() } else { format!(", {}", p.unit()) };
    let _ = writeln!(
        out,
        "\n`{}`, {}: {} ({}; {}).",
        p.scheduler,
        plain(&p.job),
        p.label(),
        tolerance(row),
        p.origin.label()
    );
    if !p.source.is_empty() {
        let _ = writeln!(out, "Source: {}.", plain(p.source.trim_end_matches('.')));
    }
    let _ = writeln!(out, "\n| case | published{unit} | ours{unit} | ratio | |\n|---|---:|---:|---:|---|");
    for cell in &row.cells {
        let why = cell.why.as_deref().unwrap_or_default();
        let verdict = match Status::of(cell) {
            Status::Reproduced => "reproduced".to_owned(),
            Status::Better => "better".to_owned(),
            Status::NotReproduced => "**not reproduced**".to_owned(),
            Status::Known => format!("not reproduced (known: {})", plain(why)),
            Status::Stale => format!("reproduced; the reason why not is stale ({})", plain(why)),
        };
        let ratio = ratio(cell).map_or_else(|| "-".to_owned(), |r| format!("{r:.2}"));
        let fitted = if p.origin_of(&cell.case) == p.origin { "" } else { " (fitted)" };
        let case = format!("{}{fitted}", plain(&cell.case));
        let _ = writeln!(
            out,
            "| {case} | {} | {} | {ratio} | {verdict} |",
            short(cell.published),
            short(cell.ours)
        );
    }
}

/// One line that cannot break a table.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
