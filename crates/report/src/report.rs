//! What a page or its figures are made of: the results of a comparison, and what was asked of them.

use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::scenario::Scenario;
use fairlift_sim::stats::Latency;

use crate::estimate::Estimate;
use crate::unit;

/// Percentile of the completion latency that is shown where none was asked for.
pub const PERCENTILE: f64 = 99.0;

/// Results, and what was asked of them.
pub struct Report<'a> {
    /// What ran.
    pub scenario: &'a Scenario,
    /// By case, scheduler, seed.
    pub runs: Vec<Vec<Vec<&'a RunResult>>>,
    /// What was to be found, in words; empty: nothing was asked.
    pub question: String,
    /// The percentile of the completion latency that it is about.
    pub percentile: f64,
    /// What it comes to, by case.
    pub answers: Vec<Told>,
    /// The command that runs it again.
    pub repeat: String,
}

/// The answer to one case.
pub struct Told {
    /// Position of the case.
    pub case: usize,
    /// Position of the scheduler that is named.
    pub chosen: usize,
    /// Does it matter which?
    pub matters: bool,
    /// In sentences.
    pub sentences: Vec<String>,
    /// What sets it on a machine; empty: nothing does.
    pub lines: String,
}

/// Schedulers of a case under which every figure is the same, as one column.
pub(crate) struct Column<'a> {
    /// Position of the first of them: it decides the colour.
    pub at: usize,
    /// Their names.
    pub label: String,
    /// By seed, of the first.
    pub runs: Vec<&'a RunResult>,
    /// The answer names one of them.
    pub chosen: bool,
}

impl<'a> Report<'a> {
    /// The schedulers of a case, those that are alike together.
    pub(crate) fn columns(&self, case: usize) -> Vec<Column<'a>> {
        let chosen =
            self.answers.iter().find(|told| told.case == case && told.matters).map(|told| told.chosen);
        let mut columns: Vec<(String, Column<'a>)> = Vec::new();
        for (at, runs) in self.runs[case].iter().enumerate() {
            let Some(first) = runs.first() else { continue };
            let printed: String = runs.iter().map(|run| printed(run)).collect();
            match columns.iter_mut().find(|(other, _)| *other == printed) {
                Some((_, column)) => {
                    column.label.push_str(" = ");
                    column.label.push_str(&first.scheduler);
                    column.chosen |= chosen == Some(at);
                }
                None => {
                    let label = first.scheduler.clone();
                    columns.push((
                        printed,
                        Column { at, label, runs: runs.clone(), chosen: chosen == Some(at) },
                    ));
                }
            }
        }
        columns.into_iter().map(|(_, column)| column).collect()
    }

    /// Name of a case; empty if there is only one.
    pub(crate) fn case_name(&self, case: usize) -> &'a str {
        self.scenario.cases.get(case).map_or("", |case| case.name.as_str())
    }

    /// A case in words: `sequential readers: 4`, `case nvme`; empty if there is only one.
    pub(crate) fn case_words(&self, case: usize) -> String {
        match (self.case_name(case), self.scenario.case_variable.as_str()) {
            ("", _) => String::new(),
            (name, "") => format!("case {name}"),
            (name, variable) => format!("{variable}: {name}"),
        }
    }

    /// A case's device.
    pub(crate) fn device(&self, case: usize) -> &'a str {
        let own = self.scenario.cases.get(case).and_then(|case| case.device.as_ref());
        own.unwrap_or(&self.scenario.device).name()
    }

    /// Names of the devices.
    pub(crate) fn devices(&self) -> Vec<&'a str> {
        let mut names: Vec<&str> = (0..self.runs.len()).map(|case| self.device(case)).collect();
        names.dedup();
        names
    }

    /// The schedulers as they were asked for.
    pub(crate) fn scheduler_names(&self) -> Vec<&'a str> {
        let runs = self.runs.first().into_iter().flatten();
        runs.filter_map(|runs| runs.first()).map(|run| run.scheduler.as_str()).collect()
    }

    /// Are figures means over several?
    pub(crate) fn has_seeds(&self) -> bool {
        self.seed_count() > 1
    }

    fn seed_count(&self) -> usize {
        self.runs.iter().flatten().map(Vec::len).max().unwrap_or(1)
    }

    /// `seed 1`, `seeds 1 to 5`.
    pub(crate) fn seeds(&self) -> String {
        let first = self.scenario.seed;
        match self.seed_count() as u64 {
            0 | 1 => format!("seed {first}"),
            count => format!("seeds {first} to {}", first.wrapping_add(count - 1)),
        }
    }

    /// Device, kernel and title: what stands below each figure's own title.
    pub(crate) fn conditions(&self, case: usize) -> String {
        let of = format!("{}, Linux {}", self.device(case), self.scenario.rules.version);
        let seeds = if self.has_seeds() { format!(", {} seeds", self.seed_count()) } else { String::new() };
        match self.scenario.title.as_str() {
            "" => of + &seeds,
            title => format!("{of}{seeds}; {title}"),
        }
    }
}

impl Column<'_> {
    /// The first seed's run.
    pub(crate) fn first(&self) -> &RunResult {
        self.runs[0]
    }

    /// A job's results, by seed.
    pub(crate) fn job(&self, name: &str) -> Vec<JobResult> {
        self.runs.iter().filter_map(|run| run.jobs().into_iter().find(|job| job.name == name)).collect()
    }

    /// A job's share of the device time of all jobs, percent.
    pub(crate) fn share(&self, name: &str) -> Option<Estimate> {
        let of = |run: &&RunResult| {
            let job = run.jobs().into_iter().find(|job| job.name == name)?;
            Some(100.0 * run.device_share(&job))
        };
        Estimate::of_seeds(self.runs.iter().filter_map(of))
    }
}

/// Names of the jobs of these columns that did anything, in the order in which they come first.
pub(crate) fn job_names(columns: &[Column<'_>]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for job in columns.iter().flat_map(|column| &column.runs).flat_map(|run| run.jobs()) {
        if !names.contains(&job.name) {
            names.push(job.name);
        }
    }
    names
}

/// Every figure that a page prints of a run: what is the same in print is the same row.
fn printed(run: &RunResult) -> String {
    let mut text = String::new();
    for job in run.jobs() {
        text += &format!(
            "{} {} {:.1}",
            job.name,
            unit::bandwidth(job.bandwidth()),
            100.0 * run.device_share(&job)
        );
        for latency in job.transfers.iter().map(|transfer| &transfer.clat).chain([&job.sync]) {
            text += &latencies(latency);
        }
    }
    for figure in run.programs.iter().flat_map(|program| &program.figures) {
        text += &format!(" {}", unit::short(figure.value));
    }
    for group in &run.groups {
        text += &format!(" {} {:.1}{}", group.path, 100.0 * group.share, latencies(&group.all.latency));
    }
    text
}

fn latencies(latency: &Latency) -> String {
    let percentiles = [50.0, 99.0, 99.9].map(|p| unit::time(latency.percentile_ns(p) as f64));
    let (mean, longest) = (unit::time(latency.mean_ns()), unit::time(latency.max_ns() as f64));
    format!(" {} {mean} {} {longest}", unit::count(latency.count()), percentiles.join(" "))
}
