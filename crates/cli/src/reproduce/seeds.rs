//! Which verdicts chance decides: every experiment with several seeds, and the comparisons whose verdict changes.

use std::collections::BTreeMap;

use fairlift_sim::scenario::{Case, Origin, Scenario};

use super::{Row, Status, run};
use crate::args::ReproduceArguments;
use crate::error::Failure;
use crate::grid::{Grid, number, word};
use crate::number::short;
use crate::style::Style;

/// Seeds on one command line, at most.
const MAX: u64 = 100;

/// Seeds from the first to the last, as `--seeds` names them: `1..5`, or `5` for `1..5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seeds {
    first: u64,
    last: u64,
}

impl std::str::FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Seeds, String> {
        let number = |word: &str| word.parse::<u64>().map_err(|_| format!("'{word}' is no whole number"));
        let (first, last) = match text.split_once("..") {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (1, number(text)?),
        };
        if last < first {
            return Err(format!("no seed from {first} to {last} (allowed: 1..5, or 5 for 1..5)"));
        }
        if last - first >= MAX {
            return Err(format!("{} seeds (allowed: up to {MAX})", (last - first).saturating_add(1)));
        }
        Ok(Seeds { first, last })
    }
}

impl Seeds {
    fn all(self) -> impl Iterator<Item = u64> {
        self.first..=self.last
    }
}

/// A comparison whose verdict is not the same with every seed.
#[derive(Debug, PartialEq)]
struct Change {
    /// What is compared, and in which case.
    what: String,
    published: f64,
    /// Ours: of the experiment as it stands, then with each seed; and is it reproduced?
    ours: Vec<(f64, bool)>,
}

/// Of the figures that a letter prints: how many are reproduced with all seeds, with some and with none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Printed {
    all: usize,
    some: usize,
    none: usize,
}

/// What chance does to all experiments.
#[derive(Debug, Default)]
pub(super) struct Changes {
    comparisons: usize,
    /// By experiment.
    changes: Vec<(String, Vec<Change>)>,
    /// By letter.
    printed: BTreeMap<String, Printed>,
}

impl Changes {
    /// Do all seeds give every verdict of the experiments as they stand?
    pub(super) fn is_none(&self) -> bool {
        self.changes.iter().all(|(_, changes)| changes.is_empty())
    }
}

/// Run every experiment as it stands and with each seed.
pub(super) fn changes(
    scenarios: Vec<Scenario>,
    seeds: Seeds,
    arguments: &ReproduceArguments,
) -> Result<Changes, Failure> {
    let mut found = Changes::default();
    for scenario in scenarios {
        let mut runs = vec![run(&scenario, &scenario.name, arguments)?];
        for seed in seeds.all() {
            let label = format!("{}, seed {seed}", scenario.name);
            runs.push(run(&with_seed(&scenario, seed), &label, arguments)?);
        }
        found.comparisons += runs[0].iter().map(|row| row.cells.len()).sum::<usize>();
        count_printed(&runs[1..], &mut found.printed);
        found.changes.push((scenario.name, changed(&runs)));
    }
    Ok(found)
}

/// The experiment with every draw taken from the seed, as under `compare --seeds`: offsets, the moments at which processes start,
/// and what the device draws.
fn with_seed(scenario: &Scenario, seed: u64) -> Scenario {
    let cases = scenario.cases.iter().map(|case| Case { seed: Some(seed), ..case.clone() }).collect();
    Scenario { cases, ..scenario.clone() }
}

/// Add an experiment's printed figures, each once, to those of their letters; `runs` has one run a seed.
fn count_printed(runs: &[Vec<Row>], printed: &mut BTreeMap<String, Printed>) {
    let mut good: BTreeMap<(&str, usize, &str), Vec<bool>> = BTreeMap::new();
    for (seed, rows) in runs.iter().enumerate() {
        for row in rows {
            let p = &row.published;
            for cell in row.cells.iter().filter(|cell| p.origin_of(&cell.case) == Origin::Printed) {
                let key = (p.letter.as_str(), p.entry, cell.case.as_str());
                let of_seeds = good.entry(key).or_insert_with(|| vec![true; runs.len()]);
                of_seeds[seed] &= is_good(Status::of(cell));
            }
        }
    }
    for ((letter, ..), of_seeds) in good {
        let count = printed.entry(letter.to_owned()).or_default();
        *match of_seeds.iter().filter(|good| **good).count() {
            0 => &mut count.none,
            n if n == of_seeds.len() => &mut count.all,
            _ => &mut count.some,
        } += 1;
    }
}

fn is_good(status: Status) -> bool {
    matches!(status, Status::Reproduced | Status::Better | Status::Stale)
}

/// Of the rows of each run (of the same experiment) the comparisons that end differently.
fn changed(runs: &[Vec<Row>]) -> Vec<Change> {
    let mut changes = Vec::new();
    for (at, row) in runs[0].iter().enumerate() {
        for (nth, cell) in row.cells.iter().enumerate() {
            let of_run = |rows: &Vec<Row>| {
                let cell = &rows[at].cells[nth];
                (cell.ours, is_good(Status::of(cell)))
            };
            let ours: Vec<(f64, bool)> = runs.iter().map(of_run).collect();
            if ours.iter().any(|(_, good)| *good != ours[0].1) {
                let p = &row.published;
                let case = if cell.case.is_empty() { String::new() } else { format!(", {}", cell.case) };
                let what = format!("{}, {}: {}{case}", p.scheduler, p.job, p.label());
                changes.push(Change { what, published: cell.published, ours });
            }
        }
    }
    changes
}

/// As a table of each experiment that has any; `-` marks what is not reproduced.
pub(super) fn text(found: &Changes, seeds: Seeds, style: Style) -> String {
    let mut out = String::new();
    for (name, changes) in found.changes.iter().filter(|(_, changes)| !changes.is_empty()) {
        out.push_str(&format!("{}\n", style.bold(name)));
        let mut grid = Grid::default();
        let mut head = vec![word("  comparison"), word("published"), word("as it stands")];
        head.extend(seeds.all().map(|seed| word(format!("seed {seed}"))));
        grid.row(head);
        for change in changes {
            let mut row = vec![word(format!("  {}", change.what)), number(short(change.published))];
            let figure =
                |(ours, good): &(f64, bool)| format!("{}{}", if *good { "" } else { "-" }, short(*ours));
            row.extend(change.ours.iter().map(|ours| number(figure(ours))));
            grid.row(row);
        }
        out.push_str(&grid.render(Style::Plain, 24));
        out.push('\n');
    }
    out.push_str(&printed_text(&found.printed));
    let count: usize = found.changes.iter().map(|(_, changes)| changes.len()).sum();
    out.push_str(&format!(
        "{count} of {} comparisons change their verdict with the seed ({} to {}; '-': not reproduced)\n",
        found.comparisons, seeds.first, seeds.last
    ));
    out
}

/// The printed figures of each letter by what became of them, then all.
fn printed_text(printed: &BTreeMap<String, Printed>) -> String {
    let mut grid = Grid::default();
    let head = ["printed figures", "reproduced with all seeds", "with some", "with none"];
    grid.row(head.map(word).into());
    let mut all = Printed::default();
    let mut row = |letter: &str, p: &Printed| {
        let numbers = [p.all, p.some, p.none].map(|n| number(n.to_string()));
        grid.row(std::iter::once(word(letter)).chain(numbers).collect());
    };
    for (letter, p) in printed {
        row(letter, p);
        all = Printed { all: all.all + p.all, some: all.some + p.some, none: all.none + p.none };
    }
    if printed.len() > 1 {
        row("all", &all);
    }
    if printed.is_empty() { String::new() } else { format!("{}\n", grid.render(Style::Plain, 24)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_range_or_a_number() {
        assert_eq!("2..5".parse(), Ok(Seeds { first: 2, last: 5 }));
        assert_eq!("5".parse(), Ok(Seeds { first: 1, last: 5 }));
        for (wrong, said) in
            [("", "no whole number"), ("5..2", "allowed"), ("0..100", "101 seeds"), ("a..b", "'a'")]
        {
            let error = wrong.parse::<Seeds>().unwrap_err();
            assert!(error.contains(said), "{wrong}: {error}");
        }
    }
}
