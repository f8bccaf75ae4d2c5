//! All cases at a glance: lines over the variable that makes them, or a table with a row for each.

use maud::{Markup, html};

use crate::curves::shown_jobs;
use crate::report::Report;
use crate::unit;

/// Nothing if there is but one case, whose own figures say as much.
pub(super) fn overview(report: &Report<'_>) -> Markup {
    if report.runs.len() < 2 {
        return html! {};
    }
    html! {
        @if let Some(series) = super::of_series(report) { (series) }
        (table(report))
    }
}

/// A row for each case and job, what every scheduler gave it and let it wait.
fn table(report: &Report<'_>) -> Markup {
    let schedulers = report.scheduler_names();
    let percentile = format!("p{}", report.percentile);
    let mut names: Vec<String> = Vec::new();
    for case in 0..report.runs.len() {
        for name in shown_jobs(&report.columns(case)) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    if names.is_empty() {
        return html! {};
    }
    html! {
        details.fold open {
            summary { h2 { "All cases" } }
            div.scroll tabindex="0" role="region" aria-label="All cases" {
                table.overview {
                    caption { "Bandwidth, and " (percentile) " of the completion latency, of each job" }
                    thead {
                        tr {
                            th rowspan="2" scope="col" { "job, case" }
                            @for scheduler in &schedulers { th.group colspan="2" scope="colgroup" { (scheduler) } }
                        }
                        tr { @for _ in &schedulers {
                            th.number.first scope="col" { "bandwidth" }
                            th.number scope="col" { (percentile) }
                        } }
                    }
                    @for name in &names {
                        tbody {
                            tr.group { th scope="rowgroup" colspan=(1 + 2 * schedulers.len()) { (name) } }
                            @for case in 0..report.runs.len() { tr {
                                th scope="row" { (report.case_name(case)) }
                                @for at in 0..schedulers.len() { (cells(report, case, at, name)) }
                            } }
                        }
                    }
                }
            }
        }
    }
}

fn cells(report: &Report<'_>, case: usize, at: usize, name: &str) -> Markup {
    let runs = report.runs[case].get(at).map_or(&[][..], Vec::as_slice);
    let jobs: Vec<_> = runs
        .iter()
        .filter_map(|run| run.jobs().into_iter().find(|job| job.name == name && job.ios() > 0))
        .collect();
    let mean = |of: &dyn Fn(&fairlift_sim::result::JobResult) -> f64| {
        jobs.iter().map(of).sum::<f64>() / jobs.len() as f64
    };
    html! {
        @if jobs.is_empty() { td.number.first { "-" } td.number { "-" } }
        @else {
            td.number.first { (unit::bandwidth(mean(&|job| job.bandwidth()))) }
            td.number { (unit::time(mean(&|job| job.clat().percentile_ns(report.percentile).min(job.clat().max_ns()) as f64))) }
        }
    }
}
