//! Experiments for programs.

use fairlift_sim::scenario::{Accept, Compare, Metric, Origin};
use serde::Serialize;

use super::tally::Tally;
use super::{Experiment, Status, Summary, ratio};

#[derive(Serialize)]
struct Page<'a> {
    #[serde(rename = "fairlift version")]
    version: &'static str,
    summary: &'a Summary,
    /// By who says so and in whose letter; a figure counts once.
    figures: &'a [Tally],
    experiments: Vec<PageExperiment<'a>>,
}

#[derive(Serialize)]
struct PageExperiment<'a> {
    name: &'a str,
    title: &'a str,
    device: &'a str,
    kernel: &'a str,
    seed: u64,
    rows: Vec<PageRow<'a>>,
}

#[derive(Serialize)]
struct PageRow<'a> {
    scheduler: &'a str,
    job: &'a str,
    metric: Metric,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    over: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over_job: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    over_case: Option<&'a str>,
    #[serde(flatten)]
    limits: Limits,
    source: &'a str,
    letter: &'a str,
    cells: Vec<PageCell<'a>>,
}

/// Which figures count.
#[derive(Serialize)]
#[serde(untagged)]
enum Limits {
    Tolerance { compare: Compare, tolerance: f64 },
    Range { accept: Range },
}

/// From here to there; `null`: no limit.
#[derive(Serialize)]
struct Range {
    min: Option<f64>,
    max: Option<f64>,
}

impl Limits {
    fn of(accept: Accept) -> Limits {
        let limit = |bound: f64| Some(bound).filter(|b| b.is_finite());
        match accept {
            Accept::Tolerance(compare, tolerance) => Limits::Tolerance { compare, tolerance },
            Accept::Range(min, max) => Limits::Range { accept: Range { min: limit(min), max: limit(max) } },
        }
    }
}

#[derive(Serialize)]
struct PageCell<'a> {
    case: &'a str,
    origin: Origin,
    published: f64,
    ours: f64,
    ratio: Option<f64>,
    status: Status,
    why: Option<&'a str>,
}

/// All experiments as one object.
pub(super) fn page(experiments: &[Experiment], figures: &[Tally], summary: &Summary) -> String {
    let experiments = experiments.iter().map(experiment).collect();
    crate::json::text(&Page { version: env!("CARGO_PKG_VERSION"), summary, figures, experiments })
}

fn experiment(experiment: &Experiment) -> PageExperiment<'_> {
    let scenario = &experiment.scenario;
    PageExperiment {
        name: &scenario.name,
        title: &scenario.title,
        device: scenario.device.name(),
        kernel: scenario.rules.version,
        seed: scenario.seed,
        rows: experiment.rows.iter().map(page_row).collect(),
    }
}

fn page_row(row: &super::Row) -> PageRow<'_> {
    let cells = row.cells.iter().map(|cell| PageCell {
        case: &cell.case,
        origin: row.published.origin_of(&cell.case),
        published: cell.published,
        ours: cell.ours,
        ratio: ratio(cell),
        status: Status::of(cell),
        why: cell.why.as_deref(),
    });
    let p = &row.published;
    PageRow {
        scheduler: &p.scheduler,
        job: &p.job,
        metric: p.metric,
        unit: p.unit(),
        over: p.over.scheduler.as_deref(),
        over_job: p.over.job.as_deref(),
        over_case: p.over.case.as_deref(),
        limits: Limits::of(p.accept),
        source: &p.source,
        letter: &p.letter,
        cells: cells.collect(),
    }
}
