//! Every figure of the experiments as a row of CSV: the data behind the page.

use std::fmt::Write as _;

use super::text::tolerance;
use super::{Experiment, Status, ratio};
use crate::csv::quoted;

const HEAD: &str = "experiment,letter,origin,scheduler,of,figure,unit,case,published,ours,ratio,accepted,verdict,reason,source\n";

/// All figures, in the order of the experiments.
pub(super) fn csv(experiments: &[Experiment]) -> String {
    let mut out = HEAD.to_owned();
    for experiment in experiments {
        for row in &experiment.rows {
            let p = &row.published;
            for cell in &row.cells {
                let words = [
                    experiment.scenario.name.as_str(),
                    p.letter.as_str(),
                    p.origin_of(&cell.case).label(),
                    p.scheduler.as_str(),
                    p.job.as_str(),
                    &p.label(),
                    p.unit(),
                    cell.case.as_str(),
                ];
                let ratio = ratio(cell).map_or_else(String::new, |r| format!("{r:.4}"));
                let _ = writeln!(
                    out,
                    "{},{},{},{ratio},{},{},{},{}",
                    words.map(quoted).join(","),
                    cell.published,
                    cell.ours,
                    quoted(&tolerance(row)),
                    Status::of(cell).word(),
                    quoted(&one_line(cell.why.as_deref().unwrap_or_default())),
                    quoted(&one_line(&p.source)),
                );
            }
        }
    }
    out
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
