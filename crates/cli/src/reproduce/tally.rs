//! How many figures there are, and what became of them: by origin and by letter.
//!
//! A figure counts once, however many schedulers are to show it: it is reproduced if it is so under all of them.

use std::collections::BTreeMap;

use fairlift_sim::scenario::Origin;
use serde::Serialize;

use super::{Experiment, Status};
use crate::grid::{Grid, number, word};
use crate::style::Style;

/// Figures of one origin and one letter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Tally {
    pub(super) origin: Origin,
    /// Empty: no letter's.
    pub(super) letter: String,
    pub(super) figures: usize,
    pub(super) reproduced: usize,
    pub(super) better: usize,
    pub(super) not_reproduced: usize,
    pub(super) known: usize,
    /// Printed figures that are not compared.
    pub(super) left_out: usize,
}

/// All tallies, by origin and then by letter.
pub(super) fn of(experiments: &[Experiment]) -> Vec<Tally> {
    let mut figures = BTreeMap::new();
    for (at, experiment) in experiments.iter().enumerate() {
        for row in &experiment.rows {
            for cell in &row.cells {
                let p = &row.published;
                let key = (p.origin_of(&cell.case), p.letter.as_str(), at, p.entry, cell.case.as_str());
                let worst = figures.entry(key).or_insert(Status::Reproduced);
                *worst = (*worst).or_worse(Status::of(cell));
            }
        }
    }
    let mut tallies: BTreeMap<(Origin, &str), Tally> = BTreeMap::new();
    for out in experiments.iter().flat_map(|e| &e.scenario.left_out) {
        let key = (Origin::Printed, out.letter.as_str());
        tallies.entry(key).or_insert_with(|| Tally::none(key)).left_out += out.figures;
    }
    for ((origin, letter, ..), status) in figures {
        let key = (origin, letter);
        let tally = tallies.entry(key).or_insert_with(|| Tally::none(key));
        tally.figures += 1;
        *match status {
            Status::Reproduced | Status::Stale => &mut tally.reproduced,
            Status::Better => &mut tally.better,
            Status::NotReproduced => &mut tally.not_reproduced,
            Status::Known => &mut tally.known,
        } += 1;
    }
    tallies.into_values().collect()
}

impl Status {
    /// The worse of two: what a figure is that several schedulers should show.
    fn or_worse(self, other: Status) -> Status {
        let rank = |status| match status {
            Status::Reproduced => 0,
            Status::Stale => 1,
            Status::Better => 2,
            Status::Known => 3,
            Status::NotReproduced => 4,
        };
        if rank(other) > rank(self) { other } else { self }
    }
}

impl Tally {
    fn none((origin, letter): (Origin, &str)) -> Tally {
        let letter = letter.to_owned();
        Tally {
            origin,
            letter,
            figures: 0,
            reproduced: 0,
            better: 0,
            not_reproduced: 0,
            known: 0,
            left_out: 0,
        }
    }

    fn who(&self) -> String {
        match self.letter.as_str() {
            "" => self.origin.label().to_owned(),
            letter => format!("{}: {letter}", self.origin.label()),
        }
    }

    fn percent(&self) -> String {
        format!("{:.0} %", 100.0 * (self.reproduced + self.better) as f64 / self.figures.max(1) as f64)
    }

    fn numbers(&self) -> [String; 6] {
        [self.figures, self.reproduced, self.better, self.known, self.not_reproduced, self.left_out]
            .map(|n| n.to_string())
    }
}

/// Sums of each origin that has several letters, before these.
fn with_sums(tallies: &[Tally]) -> Vec<Tally> {
    let mut out = Vec::new();
    for origin in Origin::ALL {
        let of_it: Vec<&Tally> = tallies.iter().filter(|t| t.origin == origin).collect();
        if of_it.len() > 1 {
            let sum = |what: fn(&Tally) -> usize| of_it.iter().map(|t| what(t)).sum();
            out.push(Tally {
                origin,
                letter: "all".to_owned(),
                figures: sum(|t| t.figures),
                reproduced: sum(|t| t.reproduced),
                better: sum(|t| t.better),
                not_reproduced: sum(|t| t.not_reproduced),
                known: sum(|t| t.known),
                left_out: sum(|t| t.left_out),
            });
        }
        out.extend(of_it.into_iter().cloned());
    }
    out
}

const HEAD: [&str; 8] = [
    "",
    "compared",
    "reproduced",
    "better",
    "known to differ",
    "unexpectedly differ",
    "left out",
    "share reproduced",
];

/// On one screen.
pub(super) fn text(tallies: &[Tally]) -> String {
    let mut grid = Grid::default();
    grid.row(HEAD.map(word).into());
    for tally in with_sums(tallies) {
        let mut row = vec![word(tally.who())];
        row.extend(tally.numbers().map(number));
        row.push(number(tally.percent()));
        grid.row(row);
    }
    grid.render(Style::Plain, 24)
}

/// As a table of a page.
pub(super) fn markdown(tallies: &[Tally]) -> String {
    let mut out = format!("| {} |\n|---|---:|---:|---:|---:|---:|---:|---:|\n", HEAD.join(" | "));
    for tally in with_sums(tallies) {
        out.push_str(&format!(
            "| {} | {} | {} |\n",
            tally.who(),
            tally.numbers().join(" | "),
            tally.percent()
        ));
    }
    out
}
