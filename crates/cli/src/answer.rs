//! What a comparison comes to, in sentences that are computed from the runs.
//!
//! The criterion: a scheduler keeps everybody if no job's rate is below its best one over [`FACTOR`]; of those that do, the one
//! that moves most is named, with what it costs whom. Where all rates are alike, that is the answer, and why.

use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::scenario::{Case, Scenario};

use crate::grid::{WIDTH, wrapped};
use crate::number::short;

/// A job that gets its best rate over this is kept.
const FACTOR: f64 = 1.5;
/// Rates and bandwidths that differ by no more are alike.
const ALIKE: f64 = 1.05;
/// Latencies of one job that differ by more are worth a sentence.
const TAIL: f64 = 2.0;

/// A job by scheduler.
struct Row<'a> {
    name: String,
    results: Vec<&'a JobResult>,
}

impl Row<'_> {
    /// The number of the scheduler under which it gets most.
    fn best(&self) -> usize {
        (0..self.results.len()).fold(0, |best, at| if self.iops(at) > self.iops(best) { at } else { best })
    }

    fn iops(&self, at: usize) -> f64 {
        self.results[at].iops()
    }

    /// How many times more it gets where it gets most.
    fn times_less(&self, at: usize) -> f64 {
        match (self.iops(self.best()), self.iops(at)) {
            (0.0, _) => 1.0,
            (best, own) => best / own.max(f64::MIN_POSITIVE),
        }
    }

    fn p99(&self, at: usize) -> f64 {
        self.results[at].clat().percentile_ns(99.0) as f64
    }
}

/// The answers to a comparison of fio jobs, one for each case, to stand below its table; empty where there is nothing to compare.
pub fn answers(scenario: &Scenario, runs: &[Vec<RunResult>]) -> String {
    let of_case = |(case, runs): (&Case, &Vec<RunResult>)| {
        let sentences = answer(runs)?;
        let name = if case.name.is_empty() { String::new() } else { format!("Case {}: ", case.name) };
        Some(wrapped(&format!("{name}{sentences}"), WIDTH).join("\n"))
    };
    let answers: Vec<String> = scenario.cases.iter().zip(runs).filter_map(of_case).collect();
    if answers.is_empty() { String::new() } else { format!("\n{}\n", answers.join("\n")) }
}

/// What one case comes to.
fn answer(runs: &[RunResult]) -> Option<String> {
    let jobs: Vec<Vec<JobResult>> = runs.iter().map(RunResult::jobs).collect();
    let count = jobs.first().map_or(0, Vec::len);
    if runs.len() < 2 || count == 0 || jobs.iter().any(|of_run| of_run.len() != count) {
        return None;
    }
    let rows: Vec<Row<'_>> = (0..count)
        .map(|at| Row {
            name: jobs[0][at].name.clone(),
            results: jobs.iter().map(|of_run| &of_run[at]).collect(),
        })
        .collect();
    let sentences = match is_all_alike(&rows, runs.len()) {
        true => vec![alike(runs)],
        false => differing(runs, &rows),
    };
    Some(sentences.join(" "))
}

fn is_all_alike(rows: &[Row<'_>], schedulers: usize) -> bool {
    rows.iter().all(|row| {
        let tails = (0..schedulers).map(|at| row.p99(at));
        let (low, high) =
            tails.fold((f64::INFINITY, 0.0_f64), |(low, high), p99| (low.min(p99), high.max(p99)));
        (0..schedulers).all(|at| row.times_less(at) <= ALIKE) && high <= low * TAIL
    })
}

fn alike(runs: &[RunResult]) -> String {
    let busy = runs.iter().map(RunResult::busy).fold(1.0, f64::min);
    let why = match busy {
        busy if busy >= 0.98 => "the device is busy all the time, whoever orders what it is sent",
        busy if busy <= 0.5 => "the device is idle most of the time: the jobs do not ask for more",
        _ => "nothing waits long enough to be put in another order",
    };
    format!("It does not matter which: every job gets within 5 % of its best rate under each ({why}).")
}

fn differing(runs: &[RunResult], rows: &[Row<'_>]) -> Vec<String> {
    let worst = |at: usize| rows.iter().map(|row| row.times_less(at)).fold(1.0, f64::max);
    let keeping: Vec<usize> = (0..runs.len()).filter(|at| worst(*at) <= FACTOR).collect();
    let mut sentences = Vec::new();
    let chosen = match keeping.split_first() {
        Some((first, rest)) => {
            let more =
                |a: usize, b: usize| if runs[b].bandwidth() > runs[a].bandwidth() * ALIKE { b } else { a };
            let chosen = rest.iter().fold(*first, |best, at| more(best, *at));
            let alone = if keeping.len() == 1 { "alone " } else { "" };
            sentences.push(format!(
                "{} {alone}keeps everybody: no job gets less than two thirds of its best rate{}.",
                runs[chosen].scheduler,
                if keeping.len() > 1 { ", and of those that do so it moves most, or as much" } else { "" }
            ));
            chosen
        }
        None => {
            let chosen = (0..runs.len()).fold(0, |best, at| if worst(at) < worst(best) { at } else { best });
            sentences.push(format!(
                "No scheduler keeps everybody (every job at two thirds of its best rate or more); {} comes nearest.",
                runs[chosen].scheduler
            ));
            chosen
        }
    };
    sentences.extend(rows.iter().filter_map(|row| price(runs, row, chosen)));
    sentences
}

/// What the chosen scheduler costs a job: its rate, or its tail.
fn price(runs: &[RunResult], row: &Row<'_>, chosen: usize) -> Option<String> {
    let best = row.best();
    if row.times_less(chosen) > ALIKE {
        let (own, most) = (row.iops(chosen), row.iops(best));
        let rates = format!("{} IOPS, {} under {}", short(own), short(most), runs[best].scheduler);
        return Some(format!("{} gets {rates}.", row.name));
    }
    let quickest = (0..runs.len()).filter(|at| row.times_less(*at) <= ALIKE);
    let quickest = quickest.fold(chosen, |best, at| if row.p99(at) < row.p99(best) { at } else { best });
    (row.p99(chosen) > TAIL * row.p99(quickest)).then(|| {
        let ms = |at: usize| short(row.p99(at) / 1e6);
        format!(
            "{}'s p99 is {} ms, {} under {}.",
            row.name,
            ms(chosen),
            ms(quickest),
            runs[quickest].scheduler
        )
    })
}
