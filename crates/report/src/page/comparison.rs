//! The comparison as tables: jobs and directions with every scheduler below each other, then the programs.

use fairlift_sim::group::GroupResult;
use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::stats::Latency;
use maud::{Markup, html};

use super::in_case;
use crate::{groups, unit};

/// Names of the directions, by their numbers.
const DIRECTIONS: [&str; 3] = ["reads", "writes", "trims"];

/// A scheduler's figures of one direction of a job.
struct Row<'a> {
    scheduler: &'a str,
    bytes_per_s: f64,
    ios_per_s: f64,
    latency: &'a Latency,
    device_share: f64,
}

/// All tables of a case.
pub(super) fn tables(case: &str, runs: &[RunResult]) -> Markup {
    let results: Vec<Vec<JobResult>> = runs.iter().map(RunResult::jobs).collect();
    let names: Vec<String> = results.first().into_iter().flatten().map(|j| j.name.clone()).collect();
    html! {
        @for name in &names {
            @for (direction, what) in DIRECTIONS.iter().enumerate() {
                (table(case, &format!("{name}, {what}"), &rows(runs, &results, name, direction)))
            }
            (table(case, &format!("{name}, fsync"), &sync_rows(runs, &results, name)))
        }
        @if !names.is_empty() { (totals(case, runs)) }
        (groups(case, runs))
        (programs(case, runs))
    }
}

fn rows<'a>(
    runs: &'a [RunResult],
    results: &'a [Vec<JobResult>],
    name: &str,
    direction: usize,
) -> Vec<Row<'a>> {
    let row = |(run, jobs): (&'a RunResult, &'a Vec<JobResult>)| {
        let job = jobs.iter().find(|j| j.name == name)?;
        let transfer = &job.transfers[direction];
        let per_second = |amount: u64| amount as f64 * 1e9 / job.runtime_ns() as f64;
        (transfer.ios > 0).then(|| Row {
            scheduler: &run.scheduler,
            bytes_per_s: per_second(transfer.bytes),
            ios_per_s: per_second(transfer.ios),
            latency: &transfer.clat,
            device_share: run.device_share(job),
        })
    };
    runs.iter().zip(results).filter_map(row).collect()
}

fn sync_rows<'a>(runs: &'a [RunResult], results: &'a [Vec<JobResult>], name: &str) -> Vec<Row<'a>> {
    let row = |(run, jobs): (&'a RunResult, &'a Vec<JobResult>)| {
        let job = jobs.iter().find(|j| j.name == name)?;
        (job.sync.count() > 0).then(|| Row {
            scheduler: &run.scheduler,
            bytes_per_s: 0.0,
            ios_per_s: job.sync.count() as f64 * 1e9 / job.runtime_ns() as f64,
            latency: &job.sync,
            device_share: run.device_share(job),
        })
    };
    runs.iter().zip(results).filter_map(row).collect()
}

/// A table with a scheduler's name and numbers in each row, for readers with and without a screen.
fn framed(case: &str, caption: &str, heads: &[&str], rows: &Markup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label={ (caption) (in_case(case)) } {
            table {
                caption { (caption) }
                thead { tr {
                    th scope="col" { "scheduler" }
                    @for head in heads {
                        th.number scope="col" { (head) }
                    }
                } }
                tbody { (rows) }
            }
        }
    }
}

fn table(case: &str, caption: &str, rows: &[Row<'_>]) -> Markup {
    if rows.is_empty() {
        return html! {};
    }
    let best_rate = best(rows.iter().map(|r| r.ios_per_s), f64::max);
    let percentile = |row: &Row<'_>, p: f64| row.latency.percentile_ns(p).min(row.latency.max_ns()) as f64;
    let latencies: Vec<[f64; 5]> = rows
        .iter()
        .map(|r| {
            let tail = [50.0, 99.0, 99.9].map(|p| percentile(r, p));
            [r.latency.mean_ns(), tail[0], tail[1], tail[2], r.latency.max_ns() as f64]
        })
        .collect();
    let best_latency: Vec<Option<f64>> =
        (0..5).map(|i| best(latencies.iter().map(|l| l[i]), f64::min)).collect();
    let rows = html! {
        @for (row, latency) in rows.iter().zip(&latencies) { tr {
            th scope="row" { (row.scheduler) }
            @if row.bytes_per_s > 0.0 { (cell(&unit::bandwidth(row.bytes_per_s), best_rate == Some(row.ios_per_s))) }
            @else { td.number { "-" } }
            (cell(&unit::short(row.ios_per_s), best_rate == Some(row.ios_per_s)))
            @for (value, best) in latency.iter().zip(&best_latency) { (cell(&unit::time(*value), *best == Some(*value))) }
            td.number { (format!("{:.1} %", 100.0 * row.device_share)) }
        } }
    };
    framed(
        case,
        caption,
        &["bandwidth", "I/Os per s", "mean latency", "median", "99 %", "99.9 %", "max", "device time"],
        &rows,
    )
}

/// A table for each group with a figure: what it got, with the groups below it.
fn groups(case: &str, runs: &[RunResult]) -> Markup {
    html! {
        @for group in groups::shown(runs) {
            @let results: Vec<(&str, &GroupResult)> =
                runs.iter().filter_map(|run| Some((run.scheduler.as_str(), run.groups.get(group)?))).collect();
            @if let Some((_, first)) = results.first() {
                (group_table(case, &format!("group {}, weight {}", first.path, first.weight.unwrap_or(0)), &results))
            }
        }
    }
}

fn group_table(case: &str, caption: &str, results: &[(&str, &GroupResult)]) -> Markup {
    let rate = |group: &GroupResult, direction: usize| {
        unit::bandwidth(group.per_second(512 * group.all.sectors[direction]))
    };
    let rows = html! {
        @for (scheduler, group) in results { tr {
            th scope="row" { (scheduler) }
            td.number { (format!("{:.1} %", 100.0 * group.share)) }
            td.number { (rate(group, 0)) }
            td.number { (rate(group, 1)) }
            td.number { (unit::short(group.per_second(group.all.requests.iter().sum()))) }
            td.number { (unit::time(group.all.latency.mean_ns())) }
            td.number { (unit::time(group.all.latency.max_ns() as f64)) }
        } }
    };
    framed(
        case,
        caption,
        &["of its parent's device time", "reads", "writes", "requests per s", "mean latency", "max"],
        &rows,
    )
}

fn totals(case: &str, runs: &[RunResult]) -> Markup {
    let rows = html! {
        @for run in runs { tr {
            th scope="row" { (run.scheduler) }
            td.number { (unit::bandwidth(run.bandwidth())) }
            td.number { (unit::short(run.iops())) }
            td.number { (format!("{:.1} %", 100.0 * run.busy())) }
            td.number { (format!("{:.3}", run.jain_device_time())) }
            td.number { (unit::time(run.duration_ns as f64)) }
        } }
    };
    framed(
        case,
        "all jobs",
        &["bandwidth", "I/Os per s", "device busy", "Jain index of device time", "simulated"],
        &rows,
    )
}

/// Each program's own figures, a column per figure.
fn programs(case: &str, runs: &[RunResult]) -> Markup {
    let names: Vec<&str> =
        runs.first().into_iter().flat_map(|r| &r.programs).map(|p| p.name.as_str()).collect();
    html! {
        @for name in names {
            @let results: Vec<_> = runs.iter().filter_map(|r| Some((r, r.program(name)?))).collect();
            @let heads = results.first().map_or(&[][..], |(_, p)| &p.figures[..]);
            @if !heads.is_empty() {
                div.scroll tabindex="0" role="region" aria-label={ "program " (name) (in_case(case)) } {
                    table {
                        caption { (name) ": " code { (results[0].1.command) } }
                        thead { tr {
                            th scope="col" { "scheduler" }
                            @for head in heads { th.number scope="col" { (head.metric.part) " " (head.metric.heading) ", " (head.metric.unit) } }
                        } }
                        tbody { @for (run, program) in &results { tr {
                            th scope="row" { (run.scheduler) }
                            @for figure in &program.figures { td.number { (unit::short(figure.value)) } }
                        } } }
                    }
                }
            }
        }
    }
}

fn cell(text: &str, best: bool) -> Markup {
    html! {
        td.number.best[best] { (text) @if best { span.unseen { " (best)" } } }
    }
}

/// The best value, if values differ at all.
fn best(values: impl Iterator<Item = f64> + Clone, better: fn(f64, f64) -> f64) -> Option<f64> {
    let best = values.clone().reduce(better)?;
    values.into_iter().any(|v| v != best).then_some(best)
}
