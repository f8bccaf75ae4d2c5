//! All cases at a glance: a table for each job, a row for each case, what every scheduler gave it and let it wait.

use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::scenario::Scenario;
use maud::{Markup, html};

use crate::curves::JOBS_MAX;
use crate::unit;

/// The tables; nothing if there is but one case, whose own tables say as much.
pub(super) fn overview(scenario: &Scenario, runs: &[Vec<RunResult>]) -> Markup {
    let names = names(runs);
    if runs.len() < 2 || names.is_empty() {
        return html! {};
    }
    let schedulers: Vec<&str> = runs[0].iter().map(|run| run.scheduler.as_str()).collect();
    html! {
        section aria-labelledby="overview" {
            h2 id="overview" { "Overview" }
            @for name in names.iter().take(JOBS_MAX) {
                div.scroll tabindex="0" role="region" aria-label={ "Overview: " (name) } {
                    table.overview {
                        caption { (name) }
                        thead {
                            tr {
                                th rowspan="2" scope="col" { "case" }
                                @for scheduler in &schedulers { th.group colspan="2" scope="colgroup" { (scheduler) } }
                            }
                            tr { @for _ in &schedulers {
                                th.number.first scope="col" { "bandwidth" }
                                th.number scope="col" { "99 % within" }
                            } }
                        }
                        tbody { @for (case, runs) in scenario.cases.iter().zip(runs) { tr {
                            th scope="row" { (case.name) }
                            @for run in runs { (cells(run, name)) }
                        } } }
                    }
                }
            }
        }
    }
}

/// Names of all jobs, in the order in which they come first.
fn names(runs: &[Vec<RunResult>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for job in runs.iter().flatten().flat_map(RunResult::jobs) {
        if !names.contains(&job.name) {
            names.push(job.name);
        }
    }
    names
}

fn cells(run: &RunResult, name: &str) -> Markup {
    let job = run.jobs().into_iter().find(|job| job.name == name && job.ios() > 0);
    let slow = |job: &JobResult| job.clat().percentile_ns(99.0).min(job.clat().max_ns());
    html! {
        @if let Some(job) = job {
            td.number.first { (unit::bandwidth(job.bandwidth())) }
            td.number { (unit::time(slow(&job) as f64)) }
        } @else { td.number.first { "-" } td.number { "-" } }
    }
}
