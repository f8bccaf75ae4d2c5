//! The comparison as one table: jobs as groups of rows, schedulers as rows, so that figures line up. Schedulers with the same
//! figures share a row; what is best is marked only where the difference is more than the spread.

use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::stats::Latency;
use maud::{Markup, html};

use super::in_case;
use crate::estimate::{BEHIND_MIN, Estimate, behind, best};
use crate::job::due;
use crate::report::{Column, job_names};
use crate::unit;

/// Names of the directions, by their numbers.
const DIRECTIONS: [&str; 3] = ["reads", "writes", "trims"];
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];
const HEADS: [&str; 11] = [
    "bandwidth",
    "I/Os per s",
    "mean",
    "median",
    "99 %",
    "99.9 %",
    "longest",
    "I/Os",
    "slower than 99.9 %",
    "device time",
    "due",
];

/// A cell: text, whether it is marked as best, and how many samples are behind a percentile that few are behind.
struct Cell {
    text: String,
    best: bool,
    few: Option<u64>,
}

/// The figures of a direction of a job under one column's schedulers.
struct Row<'a> {
    column: &'a Column<'a>,
    cells: Vec<Cell>,
}

/// The table; nothing without jobs.
pub(super) fn jobs(case: &str, columns: &[Column<'_>]) -> Markup {
    let names = job_names(columns);
    let groups: Vec<(String, Vec<Row<'_>>)> = names
        .iter()
        .flat_map(|name| {
            let of = |direction: usize| {
                (format!("{name}, {}", DIRECTIONS[direction]), rows(columns, name, Some(direction)))
            };
            (0..3).map(of).chain([(format!("{name}, fsync"), rows(columns, name, None))]).collect::<Vec<_>>()
        })
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    if groups.is_empty() {
        return html! {};
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Jobs" (in_case(case)) } {
            table.wide {
                caption {
                    "Jobs" (in_case(case)) ". Latencies are completion latencies. "
                    span.soft { "Marked: the best, and what cannot be told from it. Slanted: fewer than " (BEHIND_MIN) " samples behind it." }
                }
                thead { tr {
                    th scope="col" { "scheduler" }
                    @for head in HEADS { th.number scope="col" { (head) } }
                } }
                @for (heading, rows) in &groups {
                    tbody {
                        tr.group { th scope="rowgroup" colspan=(1 + HEADS.len()) { (heading) } }
                        @for row in rows { tr data-column=(row.column.at) {
                            th scope="row" { (row.column.label) }
                            @for cell in &row.cells { (of_cell(cell)) }
                        } }
                    }
                }
            }
        }
    }
}

fn of_cell(cell: &Cell) -> Markup {
    html! {
        td.number.best[cell.best].few[cell.few.is_some()] title=[cell.few.map(|few| format!("{few} slower"))] {
            (cell.text) @if cell.best { span.unseen { " (best)" } }
        }
    }
}

/// A row for each column that did such I/O; `direction`: none is fsync.
fn rows<'a>(columns: &'a [Column<'a>], name: &str, direction: Option<usize>) -> Vec<Row<'a>> {
    let latency =
        |job: &JobResult| direction.map_or_else(|| job.sync.clone(), |d| job.transfers[d].clat.clone());
    let did: Vec<(&Column<'_>, Vec<JobResult>)> = columns
        .iter()
        .map(|column| (column, column.job(name)))
        .filter(|(_, jobs)| jobs.iter().any(|job| latency(job).count() > 0))
        .collect();
    let per_second = |amount: u64, job: &JobResult| amount as f64 * 1e9 / job.runtime_ns() as f64;
    let of = |value: &dyn Fn(&JobResult) -> f64| -> Vec<Option<Estimate>> {
        did.iter().map(|(_, jobs)| Estimate::of_seeds(jobs.iter().map(value))).collect()
    };
    let latencies: Vec<Vec<Latency>> =
        did.iter().map(|(_, jobs)| jobs.iter().map(latency).collect()).collect();
    let percentile = |percent: f64| -> Vec<Option<Estimate>> {
        latencies.iter().map(|of| Estimate::percentile(&of.iter().collect::<Vec<_>>(), percent)).collect()
    };
    let bandwidth = direction.map(|d| of(&|job| per_second(job.transfers[d].bytes, job)));
    let rate = of(&|job| per_second(latency(job).count(), job));
    let mut parts: Vec<Vec<Cell>> = did.iter().map(|_| Vec::new()).collect();
    let mut add =
        |estimates: &[Option<Estimate>], higher: bool, write: fn(f64) -> String, behind_of: Option<f64>| {
            let marks = best(estimates, higher);
            for (at, estimate) in estimates.iter().enumerate() {
                let count: u64 = latencies[at].iter().map(Latency::count).sum();
                let few = behind_of.map(|percent| behind(count, percent)).filter(|few| *few < BEHIND_MIN);
                parts[at].push(Cell {
                    text: shown(estimate.as_ref(), write),
                    best: marks[at] && few.is_none(),
                    few,
                });
            }
        };
    match &bandwidth {
        Some(bandwidth) => add(bandwidth, true, unit::bandwidth, None),
        None => add(&vec![None; did.len()], true, unit::bandwidth, None),
    }
    add(&rate, true, unit::short, None);
    add(&of(&|job| latency(job).mean_ns()), false, unit::time, None);
    for percent in PERCENTILES {
        add(&percentile(percent), false, unit::time, Some(percent));
    }
    add(&of(&|job| latency(job).max_ns() as f64), false, unit::time, Some(100.0));
    let counts = |at: usize| latencies[at].iter().map(Latency::count).sum::<u64>();
    let plain = |text: String| Cell { text, best: false, few: None };
    did.iter()
        .zip(parts)
        .enumerate()
        .map(|(at, ((column, _), mut cells))| {
            cells.push(plain(unit::count(counts(at))));
            cells.push(plain(unit::count(behind(counts(at), 99.9))));
            cells.push(plain(
                column.share(name).map_or_else(nothing, |share| shown(Some(&share), unit::percent)),
            ));
            cells.push(plain(due(column.first(), name).map_or_else(nothing, unit::percent)));
            Row { column, cells }
        })
        .collect()
}

fn nothing() -> String {
    "-".to_owned()
}

/// A figure, of several seeds with half of its interval.
fn shown(estimate: Option<&Estimate>, write: fn(f64) -> String) -> String {
    match estimate {
        None => nothing(),
        Some(Estimate { value, high, seeds: true, .. }) if *value > 0.0 => {
            format!("{} \u{b1}{:.0} %", write(*value), 100.0 * (high - value) / value)
        }
        Some(estimate) => write(estimate.value),
    }
}

/// A figure of all jobs together, by column.
struct Total {
    head: &'static str,
    values: Vec<Option<Estimate>>,
    /// Is more better? None: neither is.
    better: Option<bool>,
    write: fn(f64) -> String,
}

impl Total {
    fn marks(&self) -> Vec<bool> {
        self.better.map_or_else(|| vec![false; self.values.len()], |higher| best(&self.values, higher))
    }
}

/// All jobs together.
pub(super) fn totals(case: &str, columns: &[Column<'_>]) -> Markup {
    if columns.iter().all(|column| column.first().processes.is_empty()) {
        return html! {};
    }
    let of = |value: &dyn Fn(&RunResult) -> f64| -> Vec<Option<Estimate>> {
        columns.iter().map(|column| Estimate::of_seeds(column.runs.iter().map(|run| value(run)))).collect()
    };
    let index: fn(f64) -> String = |value| format!("{value:.3}");
    let total = |head, values, better, write| Total { head, values, better, write };
    let figures: [Total; 5] = [
        total("bandwidth", of(&RunResult::bandwidth), Some(true), unit::bandwidth),
        total("I/Os per s", of(&RunResult::iops), Some(true), unit::short),
        total("device busy", of(&|run| 100.0 * run.busy()), None, unit::percent),
        total("Jain index of device time", of(&RunResult::jain_device_time), Some(true), index),
        total("simulated", of(&|run| run.duration_ns as f64), None, unit::time),
    ];
    let marks: Vec<Vec<bool>> = figures.iter().map(Total::marks).collect();
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "All jobs" (in_case(case)) } {
            table {
                caption { "All jobs" (in_case(case)) }
                thead { tr {
                    th scope="col" { "scheduler" }
                    @for figure in &figures { th.number scope="col" { (figure.head) } }
                } }
                tbody { @for (at, column) in columns.iter().enumerate() { tr data-column=(column.at) {
                    th scope="row" { (column.label) }
                    @for (figure, marks) in figures.iter().zip(&marks) {
                        (of_cell(&Cell { text: shown(figure.values[at].as_ref(), figure.write), best: marks[at], few: None }))
                    }
                } } }
            }
        }
    }
}
