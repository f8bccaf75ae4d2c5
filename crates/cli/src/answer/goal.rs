//! What a comparison is to find: `--goal`.

use fairlift_sim::group::GroupResult;
use fairlift_sim::program::{Better, ProgramMetric};
use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::scenario::Scenario;
use fairlift_sim::scheduler::nearest;
use fairlift_sim::stats::jain;

use crate::error::Failure;
use crate::number::short;

/// What the best scheduler is best at.
#[derive(Clone, Debug, PartialEq)]
pub enum Goal {
    /// No job far below its best; then the most moved.
    Balanced,
    /// Equal shares of the device's time, or shares by weight.
    Fair,
    /// A figure of a job, or of all together.
    Of(Figure, Option<String>),
    /// A figure of a program.
    Program(ProgramMetric, String),
}

/// A figure of jobs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// Bytes per second.
    Bandwidth,
    /// I/Os per second.
    Iops,
    /// Mean completion latency.
    Mean,
    /// A percentile of the completion latency.
    Percentile(f64),
    /// The longest completion latency.
    Longest,
    /// A percentile of the time fsync and fdatasync take.
    Fsync(f64),
}

/// What `--goal` takes, for people.
pub const ALLOWED: &str = "balanced, bandwidth, iops, fair, or of one job: p99:JOB (any percentile), mean:JOB, max:JOB, fsync:JOB \
(its p99), bandwidth:JOB, iops:JOB; of a program METRIC:PROGRAM";

/// Words that mean a figure or goal, for finding the nearest.
const WORDS: [&str; 21] = [
    "balanced",
    "default",
    "fair",
    "fairness",
    "bandwidth",
    "bw",
    "throughput",
    "iops",
    "mean",
    "avg",
    "latency",
    "lat",
    "max",
    "longest",
    "fsync",
    "p50",
    "p90",
    "p95",
    "p99",
    "p99.9",
    "p999",
];

impl Goal {
    /// Read what `--goal` says, for the jobs and programs of `scenario`.
    ///
    /// # Errors
    /// A word, job or metric there is not, with the nearest.
    pub fn parse(text: &str, scenario: &Scenario) -> Result<Goal, Failure> {
        let (what, who) = text.split_once(':').map_or((text, None), |(what, who)| (what, Some(who.trim())));
        if let Some(goal) = who.and_then(|who| program(what, who, scenario)) {
            return goal;
        }
        let goal = match (what.trim().to_ascii_lowercase().as_str(), who) {
            ("balanced" | "default", None) => Goal::Balanced,
            ("fair" | "fairness", None) => Goal::Fair,
            (word @ ("balanced" | "default" | "fair" | "fairness"), Some(_)) => {
                return Err(
                    fail(format!("'{word}' is of all jobs, not of one")).help(format!("allowed: {word}"))
                );
            }
            (word, who) => Goal::Of(figure(word).ok_or_else(|| unknown(what))?, who.map(str::to_owned)),
        };
        goal.of_a_job(scenario)
    }

    /// Make sure that the job it is about exists; a latency of the only job needs no name.
    fn of_a_job(self, scenario: &Scenario) -> Result<Goal, Failure> {
        let Goal::Of(figure, who) = self else { return Ok(self) };
        let jobs =
            names(scenario.cases.iter().flat_map(|case| case.jobs.iter().map(|job| job.name.as_str())));
        let list = |figure: Figure| {
            jobs.iter().map(|job| format!("{}:{job}", figure.word())).collect::<Vec<_>>().join(", ")
        };
        match who {
            Some(job) if jobs.contains(&job.as_str()) => Ok(Goal::Of(figure, Some(job))),
            Some(job) => {
                let near = nearest(&job, jobs.iter().copied());
                let failure = fail(format!("there is no job or program '{job}'"));
                let failure = match near {
                    Some(near) => failure.help(format!("did you mean '{}:{near}'?", figure.word())),
                    None => failure,
                };
                Err(failure.help(format!("allowed: {}", list(figure))))
            }
            None if figure.adds_up() => Ok(Goal::Of(figure, None)),
            None => match jobs[..] {
                [only] => Ok(Goal::Of(figure, Some(only.to_owned()))),
                _ => Err(fail(format!("'{}' of which job?", figure.word()))
                    .help(format!("allowed: {}", list(figure)))),
            },
        }
    }

    /// As it is written on the command line.
    pub fn name(&self) -> String {
        match self {
            Goal::Balanced => "balanced".to_owned(),
            Goal::Fair => "fair".to_owned(),
            Goal::Of(figure, None) => figure.word(),
            Goal::Of(figure, Some(job)) => format!("{}:{job}", figure.word()),
            Goal::Program(metric, program) => format!("{}:{program}", metric.name),
        }
    }

    /// What it means.
    pub fn meaning(&self) -> String {
        match self {
            Goal::Balanced => {
                "no job below two thirds of its best rate (IOPS), then the highest bandwidth".to_owned()
            }
            Goal::Fair => "device time shared equally, or by the groups' weights (Jain's index)".to_owned(),
            Goal::Of(figure, job) => {
                let whose =
                    job.as_ref().map_or_else(|| "all jobs together".to_owned(), |job| format!("job {job}"));
                let better = if figure.is_better_higher() { "the highest" } else { "the lowest" };
                format!("{better} {} of {whose}", figure.noun())
            }
            Goal::Program(metric, program) => {
                let better = if metric.better == Better::Lower { "the lowest" } else { "the highest" };
                format!("{better} {} of {program}", metric.name)
            }
        }
    }

    /// Is more better?
    pub fn is_better_higher(&self) -> bool {
        match self {
            Goal::Balanced | Goal::Fair => true,
            Goal::Of(figure, _) => figure.is_better_higher(),
            Goal::Program(metric, _) => metric.better != Better::Lower,
        }
    }

    /// Is it a matter of one figure?
    pub fn has_figure(&self) -> bool {
        *self != Goal::Balanced
    }

    /// Its figure of a run; `None`: the run has none, or it is no matter of one figure.
    pub fn value(&self, run: &RunResult) -> Option<f64> {
        match self {
            Goal::Balanced => None,
            Goal::Fair => Some(fairness(run)),
            Goal::Of(Figure::Bandwidth, None) => Some(run.bandwidth()),
            Goal::Of(_, None) => Some(run.iops()),
            Goal::Of(figure, Some(name)) => {
                run.jobs().iter().find(|job| job.name == *name).and_then(|job| figure.of(job))
            }
            Goal::Program(metric, name) => run.program(name)?.metric(metric.name),
        }
    }

    /// The job whose latency it is about.
    pub fn latency_of(&self) -> Option<&str> {
        match self {
            Goal::Of(figure, Some(job)) if !figure.adds_up() => Some(job),
            _ => None,
        }
    }

    /// The percentile of a latency that it is about.
    pub const fn percentile(&self) -> Option<f64> {
        match self {
            Goal::Of(Figure::Percentile(percent), _) => Some(*percent),
            _ => None,
        }
    }

    /// A value with its unit.
    pub fn show(&self, value: f64) -> String {
        match self {
            Goal::Balanced | Goal::Fair => format!("{value:.3}"),
            Goal::Of(figure, _) => figure.show(value),
            Goal::Program(metric, _) => format!("{} {}", short(value), metric.unit),
        }
    }
}

impl Figure {
    fn word(self) -> String {
        match self {
            Figure::Bandwidth => "bandwidth".to_owned(),
            Figure::Iops => "iops".to_owned(),
            Figure::Mean => "mean".to_owned(),
            Figure::Percentile(percent) => format!("p{percent}"),
            Figure::Longest => "max".to_owned(),
            Figure::Fsync(_) => "fsync".to_owned(),
        }
    }

    fn noun(self) -> String {
        match self {
            Figure::Bandwidth => "bandwidth".to_owned(),
            Figure::Iops => "IOPS".to_owned(),
            Figure::Mean => "mean completion latency".to_owned(),
            Figure::Percentile(percent) => format!("p{percent} of the completion latency"),
            Figure::Longest => "longest completion latency".to_owned(),
            Figure::Fsync(percent) => format!("p{percent} of the time an fsync takes"),
        }
    }

    fn is_better_higher(self) -> bool {
        self.adds_up()
    }

    /// Does it make sense of all jobs together?
    fn adds_up(self) -> bool {
        matches!(self, Figure::Bandwidth | Figure::Iops)
    }

    fn of(self, job: &JobResult) -> Option<f64> {
        let clat = job.clat();
        let latency = |ns: f64| (clat.count() > 0).then_some(ns);
        match self {
            Figure::Bandwidth => Some(job.bandwidth()),
            Figure::Iops => Some(job.iops()),
            Figure::Mean => latency(clat.mean_ns()),
            Figure::Percentile(percent) => latency(clat.percentile_ns(percent).min(clat.max_ns()) as f64),
            Figure::Longest => latency(clat.max_ns() as f64),
            Figure::Fsync(percent) => {
                let sync = &job.sync;
                (sync.count() > 0).then(|| sync.percentile_ns(percent).min(sync.max_ns()) as f64)
            }
        }
    }

    fn show(self, value: f64) -> String {
        match self {
            Figure::Bandwidth => format!("{} MiB/s", short(value / 1_048_576.0)),
            Figure::Iops => format!("{} IOPS", short(value)),
            _ if value >= 1e6 => format!("{} ms", short(value / 1e6)),
            _ => format!("{} us", short(value / 1e3)),
        }
    }
}

/// `p99`, `p99.9`, fio's `p999` without the point, and words.
fn figure(word: &str) -> Option<Figure> {
    Some(match word {
        "bandwidth" | "bw" | "throughput" => Figure::Bandwidth,
        "iops" => Figure::Iops,
        "mean" | "avg" | "average" | "latency" | "lat" | "clat" => Figure::Mean,
        "median" => Figure::Percentile(50.0),
        "max" | "longest" | "worst" => Figure::Longest,
        "fsync" | "sync" => Figure::Fsync(99.0),
        _ => {
            let digits = word.strip_prefix('p')?;
            let number: f64 = digits.parse().ok()?;
            let percent = match digits.len() {
                3.. if !digits.contains('.') && digits.starts_with("99") => {
                    format!("{}.{}", &digits[..2], &digits[2..]).parse().ok()?
                }
                _ => number,
            };
            (percent > 0.0 && percent < 100.0).then_some(Figure::Percentile(percent))?
        }
    })
}

/// The goal `METRIC:PROGRAM`, if there is such a program.
fn program(what: &str, who: &str, scenario: &Scenario) -> Option<Result<Goal, Failure>> {
    let mut programs = scenario.cases.iter().flat_map(|case| &case.programs);
    let metrics = programs.find(|program| program.name == who)?.program.metrics();
    let comparable =
        || metrics.iter().filter(|metric| metric.better != Better::Neither).map(|metric| metric.name);
    let found = metrics.iter().find(|metric| metric.name == what && metric.better != Better::Neither);
    Some(found.map(|metric| Goal::Program(*metric, who.to_owned())).ok_or_else(|| {
        let failure = fail(format!("program '{who}' has no figure '{what}' to be best at"));
        let failure = match nearest(what, comparable()) {
            Some(near) => failure.help(format!("did you mean '{near}:{who}'?")),
            None => failure,
        };
        let all = names(comparable()).iter().map(|name| format!("{name}:{who}")).collect::<Vec<_>>();
        failure.help(format!("allowed: {}", all.join(", ")))
    }))
}

fn unknown(word: &str) -> Failure {
    if word.strip_prefix(['p', 'P']).is_some_and(|number| number.parse::<f64>().is_ok()) {
        return fail(format!("'{word}' is no percentile"))
            .help("allowed: p50, p99, p99.9 and others above p0 and below p100");
    }
    let failure = fail(format!("'{word}' is no goal"));
    let failure = match nearest(&word.to_ascii_lowercase(), WORDS.into_iter()) {
        Some(near) => failure.help(format!("did you mean '{near}'?")),
        None => failure,
    };
    failure.help(format!("allowed: {ALLOWED}"))
}

fn fail(message: String) -> Failure {
    Failure::new(message).at("--goal")
}

/// Each name once, in order.
fn names<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut names = Vec::new();
    all.for_each(|name| {
        if !names.contains(&name) {
            names.push(name);
        }
    });
    names
}

/// Jain's index of the processes' device time; with groups of what each group got over what its weight entitles it to beside its
/// siblings. A group's own tasks are no sibling of its children here.
fn fairness(run: &RunResult) -> f64 {
    let groups = || run.groups.iter().filter(|group| group.parent.is_some());
    if groups().next().is_none() {
        return run.jain_device_time();
    }
    let weight = |group: &GroupResult| f64::from(group.weight.unwrap_or(100));
    let entitled = |group: &GroupResult| {
        let siblings = groups().filter(|other| other.parent == group.parent);
        weight(group) / siblings.map(weight).sum::<f64>()
    };
    jain(&groups().map(|group| group.share / entitled(group)).collect::<Vec<_>>())
}
