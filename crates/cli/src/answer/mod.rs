//! What a comparison comes to, in sentences that are computed from the runs.
//!
//! A goal says what is best ([`goal`]). Schedulers that come within [`ALIKE`] of the best are as good; of these the first column is
//! named, so that a comparison of the kernel's own names the one that costs least. What each job loses by it follows, then whether other
//! seeds and a slightly different device say the same, and the lines to paste ([`paste`]). Where it does not matter, the answer says
//! what decides instead ([`reason`]).

pub mod goal;
mod paste;
mod print;
mod reason;

use fairlift_sim::device::DeviceSpec;
use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::scenario::{Case, Scenario};
use fairlift_sim::scheduler::SchedulerSpec;

use crate::number::short;
use crate::plan::{Columns, Compared};
use goal::Goal;
pub use paste::Lines;
pub use print::{set, text};

/// A job that gets its best rate over this is kept.
const FACTOR: f64 = 1.5;
/// A job that gets its best rate over this is not starved, and its latency counts.
const BUSY: f64 = 2.0;
/// Figures that differ by no more are alike.
const ALIKE: f64 = 1.05;
/// Latencies of one job that differ by more are worth a sentence.
const TAIL: f64 = 2.0;

/// What one case comes to.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The case's name; empty if there is only one.
    pub case: String,
    /// The device.
    pub device: String,
    /// The scheduler named, by its column, and those as good.
    pub chosen: usize,
    /// As good as the best: the chosen one and others.
    pub as_good: Vec<usize>,
    /// Does it matter at all?
    pub matters: bool,
    /// The answer.
    pub sentences: Vec<String>,
    /// What makes it so on a machine.
    pub lines: Lines,
}

/// The answers to a comparison, one for each case in which there is something to compare.
pub fn answers(scenario: &Scenario, compared: &Compared, goal: &Goal) -> Vec<Answer> {
    let of =
        |(at, case): (usize, &Case)| answer(scenario, case, &compared.columns(at), &compared.paced(at), goal);
    scenario.cases.iter().enumerate().filter_map(of).collect()
}

fn answer(
    scenario: &Scenario,
    case: &Case,
    columns: &Columns<'_>,
    paced: &[(u32, Columns<'_>)],
    goal: &Goal,
) -> Option<Answer> {
    if columns.len() < 2 {
        return None;
    }
    let rows = rows(columns)?;
    if rows.is_empty() && !matches!(goal, Goal::Program(..)) {
        return None;
    }
    let as_good = as_good(goal, columns)?;
    let matters =
        as_good.len() < columns.len() || *goal == Goal::Balanced && !is_all_alike(&rows, columns.len());
    let chosen = *as_good.first()?;
    let mut sentences = match matters {
        false => vec![alike(columns, &scenario.schedulers[chosen])],
        true => {
            let mut sentences = match goal {
                Goal::Balanced => balanced(scenario, columns, &rows, &as_good),
                _ => figures(scenario, columns, goal, &as_good),
            };
            sentences.extend(
                reason::is_processor_bound(columns)
                    .map(|why| format!("What differs is the schedulers' processor cost: {why}.")),
            );
            sentences.extend(rows.iter().filter_map(|row| price(scenario, row, chosen)));
            sentences
        }
    };
    sentences.extend(certainty(scenario, columns, paced, goal, chosen, matters));
    let device = case.device.as_ref().unwrap_or(&scenario.device);
    Some(Answer {
        case: case.name.clone(),
        device: device.name().to_owned(),
        chosen,
        as_good,
        matters,
        sentences,
        lines: lines(scenario, case, device, chosen),
    })
}

fn lines(scenario: &Scenario, case: &Case, device: &DeviceSpec, chosen: usize) -> Lines {
    paste::lines(&scenario.schedulers[chosen], &scenario.rules, device, &case.groups)
}

// ---- which ------------------------------------------------------------------------------------------------------------

/// The columns as good as the best, in their order; `None`: a run lacks the figure.
fn as_good(goal: &Goal, columns: &[Vec<&RunResult>]) -> Option<Vec<usize>> {
    if *goal == Goal::Balanced {
        return as_good_balanced(columns);
    }
    let values =
        columns.iter().map(|runs| mean(runs, |run| goal.value(run))).collect::<Option<Vec<f64>>>()?;
    let busy: Vec<bool> = keeps_busy(goal, columns);
    Some(within(&values, goal.is_better_higher(), (0..values.len()).filter(|at| busy[*at])))
}

/// Who lets the job whose latency the goal is about do half of its best rate at least. A job that is hardly ever served has few
/// slow requests: its latency alone would reward that.
fn keeps_busy(goal: &Goal, columns: &[Vec<&RunResult>]) -> Vec<bool> {
    let Some(name) = goal.latency_of() else { return vec![true; columns.len()] };
    let rate = |run: &RunResult| run.jobs().iter().find(|job| job.name == name).map(JobResult::iops);
    let rates: Vec<f64> = columns.iter().map(|runs| mean(runs, rate).unwrap_or(0.0)).collect();
    let best = rates.iter().copied().fold(0.0, f64::max);
    rates.iter().map(|rate| rate * BUSY >= best).collect()
}

/// Those of `among` whose value is within [`ALIKE`] of the best of them.
fn within(values: &[f64], higher: bool, among: impl Iterator<Item = usize> + Clone) -> Vec<usize> {
    let all = among.clone().map(|at| values[at]);
    let best = if higher { all.fold(f64::NEG_INFINITY, f64::max) } else { all.fold(f64::INFINITY, f64::min) };
    let alike = |value: f64| if higher { value * ALIKE >= best } else { value <= best * ALIKE };
    among.filter(|at| alike(values[*at])).collect()
}

/// Of those that keep every job the ones that move most; if none does, those that come nearest.
fn as_good_balanced(columns: &[Vec<&RunResult>]) -> Option<Vec<usize>> {
    let rows = rows(columns)?;
    let worst: Vec<f64> = (0..columns.len()).map(|at| worst(&rows, at)).collect();
    let keeping: Vec<usize> = (0..columns.len()).filter(|at| worst[*at] <= FACTOR).collect();
    if keeping.is_empty() {
        return Some(within(&worst, false, 0..worst.len()));
    }
    let bandwidths: Vec<f64> =
        columns.iter().map(|runs| mean(runs, |run| Some(run.bandwidth())).unwrap_or(0.0)).collect();
    Some(within(&bandwidths, true, keeping.into_iter()))
}

fn mean(runs: &[&RunResult], of: impl Fn(&RunResult) -> Option<f64>) -> Option<f64> {
    let values = runs.iter().map(|run| of(run)).collect::<Option<Vec<f64>>>()?;
    Some(values.iter().sum::<f64>() / values.len().max(1) as f64)
}

/// How many times less a job gets than at its best, of all jobs the most.
fn worst(rows: &[Row], at: usize) -> f64 {
    rows.iter().map(|row| row.times_less(at)).fold(1.0, f64::max)
}

/// A job by scheduler: means over seeds.
struct Row {
    name: String,
    iops: Vec<f64>,
    p99_ns: Vec<f64>,
}

/// The jobs; `None`: there are none, or not the same ones everywhere.
fn rows(columns: &[Vec<&RunResult>]) -> Option<Vec<Row>> {
    let jobs: Vec<Vec<Vec<JobResult>>> =
        columns.iter().map(|runs| runs.iter().map(|run| run.jobs()).collect()).collect();
    let names: Vec<String> = jobs.first()?.first()?.iter().map(|job| job.name.clone()).collect();
    if jobs.iter().flatten().any(|of_run| of_run.len() != names.len()) {
        return None;
    }
    let mean = |at: usize, of: &dyn Fn(&JobResult) -> f64| -> Vec<f64> {
        let of_column = |runs: &Vec<Vec<JobResult>>| {
            runs.iter().map(|jobs| of(&jobs[at])).sum::<f64>() / runs.len().max(1) as f64
        };
        jobs.iter().map(of_column).collect()
    };
    let row = |(at, name): (usize, &String)| Row {
        name: name.clone(),
        iops: mean(at, &JobResult::iops),
        p99_ns: mean(at, &|job| job.clat().percentile_ns(99.0) as f64),
    };
    Some(names.iter().enumerate().map(row).collect())
}

impl Row {
    /// The number of the scheduler under which it gets most.
    fn best(&self) -> usize {
        (0..self.iops.len()).fold(0, |best, at| if self.iops[at] > self.iops[best] { at } else { best })
    }

    /// How many times more it gets where it gets most.
    fn times_less(&self, at: usize) -> f64 {
        match (self.iops[self.best()], self.iops[at]) {
            (0.0, _) => 1.0,
            (best, own) => best / own.max(f64::MIN_POSITIVE),
        }
    }
}

// ---- in words ---------------------------------------------------------------------------------------------------------

fn is_all_alike(rows: &[Row], schedulers: usize) -> bool {
    rows.iter().all(|row| {
        let (low, high) = (row.p99_ns.iter())
            .fold((f64::INFINITY, 0.0_f64), |(low, high), p99| (low.min(*p99), high.max(*p99)));
        (0..schedulers).all(|at| row.times_less(at) <= ALIKE) && high <= low * TAIL
    })
}

fn alike(columns: &[Vec<&RunResult>], chosen: &SchedulerSpec) -> String {
    format!(
        "The choice makes no difference here: all schedulers come within 5 % of the best. The reason: {}. Keep the one that is set, or take {chosen}.",
        reason::why_not(columns)
    )
}

/// What is said of a choice by one figure.
fn figures(scenario: &Scenario, columns: &[Vec<&RunResult>], goal: &Goal, as_good: &[usize]) -> Vec<String> {
    let values: Vec<f64> =
        columns.iter().map(|runs| mean(runs, |run| goal.value(run)).unwrap_or(f64::NAN)).collect();
    let busy = keeps_busy(goal, columns);
    let mut order: Vec<usize> = (0..values.len()).filter(|at| busy[*at] && !as_good.contains(at)).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    if goal.is_better_higher() {
        order.reverse();
    }
    let named = |at: &usize| format!("{} ({})", scenario.schedulers[*at], goal.show(values[*at]));
    let then = match listed(order.iter().map(named)) {
        behind if behind.is_empty() => String::new(),
        behind => format!("; then come {behind}"),
    };
    let first = named(&as_good[0]);
    let mut sentences = vec![match as_good {
        [_] => format!("{first} is best{then}."),
        [_, others @ ..] => {
            format!("{first} is best, or as good as {} (within 5 %){then}.", listed(others.iter().map(named)))
        }
        [] => String::new(),
    }];
    let starved: Vec<usize> = (0..values.len()).filter(|at| !busy[*at]).collect();
    if let (Some(job), false) = (goal.latency_of(), starved.is_empty()) {
        let who = listed(starved.iter().map(named));
        let under = if starved.len() == 1 { "it" } else { "these" };
        sentences
            .push(format!("Not counted: {who}; under {under} {job} gets less than half of its best rate."));
    }
    sentences
}

/// The sentence about a choice that keeps every job, or comes nearest.
fn balanced(
    scenario: &Scenario,
    columns: &[Vec<&RunResult>],
    rows: &[Row],
    as_good: &[usize],
) -> Vec<String> {
    let keeping = (0..columns.len()).filter(|at| worst(rows, *at) <= FACTOR).count();
    let name = |at: usize| scenario.schedulers[at].to_string();
    let chosen = as_good[0];
    let others = listed(as_good[1..].iter().map(|at| name(*at)));
    let same = if others.is_empty() { String::new() } else { format!(" {others} would do as well.") };
    vec![match keeping {
        0 => format!(
            "Under no scheduler does every job get two thirds of its best rate or more; {} comes nearest.{same}",
            name(chosen)
        ),
        1 => format!("Under {} alone every job gets at least two thirds of its best rate.", name(chosen)),
        _ => format!(
            "Under {} every job gets at least two thirds of its best rate; none of the others that do so has more bandwidth.{same}",
            name(chosen)
        ),
    }]
}

/// What the chosen scheduler costs a job: its rate, or its tail.
fn price(scenario: &Scenario, row: &Row, chosen: usize) -> Option<String> {
    let best = row.best();
    if row.times_less(chosen) > ALIKE {
        let (own, most) = (short(row.iops[chosen]), short(row.iops[best]));
        return Some(format!("{} gets {own} IOPS, {most} under {}.", row.name, scenario.schedulers[best]));
    }
    let quickest = (0..row.iops.len()).filter(|at| row.times_less(*at) <= ALIKE);
    let quickest =
        quickest.fold(chosen, |best, at| if row.p99_ns[at] < row.p99_ns[best] { at } else { best });
    (row.p99_ns[chosen] > TAIL * row.p99_ns[quickest]).then(|| {
        let ms = |at: usize| short(row.p99_ns[at] / 1e6);
        let other = &scenario.schedulers[quickest];
        format!("{}'s p99 is {} ms, {} under {other}.", row.name, ms(chosen), ms(quickest))
    })
}

/// Do all seeds, and devices that are a little faster and slower, say the same?
fn certainty(
    scenario: &Scenario,
    columns: &[Vec<&RunResult>],
    paced: &[(u32, Columns<'_>)],
    goal: &Goal,
    chosen: usize,
    matters: bool,
) -> Vec<String> {
    let seeds = columns.first().map_or(0, Vec::len);
    if seeds < 2 {
        return match matters {
            true => vec![
                "One run each: --seeds 5 also shows chance and the effect of a slightly different device."
                    .to_owned(),
            ],
            false => Vec::new(),
        };
    }
    let holds =
        |columns: &[Vec<&RunResult>]| as_good(goal, columns).is_some_and(|good| good.contains(&chosen));
    let of_seed =
        |seed: usize| -> Vec<Vec<&RunResult>> { columns.iter().map(|runs| vec![runs[seed]]).collect() };
    let agreeing = (0..seeds).filter(|seed| holds(&of_seed(*seed))).count();
    let mut sentences = vec![match agreeing {
        _ if agreeing == seeds => format!("All {seeds} seeds give this answer."),
        _ => format!("Of {seeds} seeds {agreeing} give this answer: much of it is chance."),
    }];
    let turned: Vec<String> = paced
        .iter()
        .filter(|(_, columns)| !holds(columns))
        .filter_map(|(percent, columns)| {
            let other = &scenario.schedulers[*as_good(goal, columns)?.first()?];
            let how = if *percent < 100 { "faster" } else { "slower" };
            Some(format!("on a device {} % {how} it is {other}", percent.abs_diff(100)))
        })
        .collect();
    sentences.push(match turned.is_empty() {
        true => "A device 20 % faster or slower gives the same answer.".to_owned(),
        false => format!("Knife edge: {}.", turned.join(", ")),
    });
    sentences
}

/// `a`, `a and b`, `a, b and c`.
fn listed(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    match &words[..] {
        [] => String::new(),
        [only] => only.clone(),
        [front @ .., last] => format!("{} and {last}", front.join(", ")),
    }
}
