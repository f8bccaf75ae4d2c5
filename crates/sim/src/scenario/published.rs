//! Published figures beside ours.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

use crate::group::GroupMetric;
use crate::program::ProgramMetric;
use crate::result::{JobResult, RunResult};
use crate::stats::Latency;

/// What is measured: over the processes of one fio job, a program's own figure, or a group's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Metric {
    /// Bandwidth of all processes, KiB/s.
    BandwidthSum,
    /// Bandwidth of the fastest process, KiB/s.
    BandwidthMax,
    /// Bandwidth of the slowest process, KiB/s.
    BandwidthMin,
    /// I/Os per second of all processes.
    Iops,
    /// Mean completion latency, ms.
    LatencyMean,
    /// Median completion latency, ms.
    LatencyP50,
    /// 99th percentile of it.
    LatencyP99,
    /// Largest completion latency, ms.
    LatencyMax,
    /// Median of fsync and fdatasync calls, ms.
    SyncP50,
    /// 99th percentile of those.
    SyncP99,
    /// The longest of those.
    SyncMax,
    /// Those calls a second.
    SyncRate,
    /// The device's time, s.
    DeviceTime,
    /// The same as a part of all jobs', 0 to 1.
    DeviceTimeShare,
    /// A figure that a program reports.
    Program(ProgramMetric),
    /// A group's figure.
    Group(GroupMetric),
}

/// As scenario files name it.
impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// How ours may differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// Within the tolerance, either way.
    #[default]
    Near,
    /// Not smaller, but for the tolerance.
    AtLeast,
    /// Not larger, but for the tolerance.
    AtMost,
}

/// Who says what a figure should be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// It is printed in a letter (or in another public post), as it stands.
    Printed,
    /// A ratio of printed figures, or a figure that a letter's text gives in words.
    Derived,
    /// What a letter's figures say without a number of their own: a range, or an order.
    Statement,
    /// A value of the model was chosen so that it is reproduced: it proves nothing.
    Fitted,
    /// A figure of a letter that another experiment counts: here on another disk or with another setting.
    Again,
    /// Not published: it is what this project wants.
    Aim,
}

impl Origin {
    /// All of them, in the order to show them.
    pub const ALL: [Origin; 6] =
        [Origin::Printed, Origin::Derived, Origin::Statement, Origin::Fitted, Origin::Again, Origin::Aim];

    /// What to call its figures.
    pub const fn label(self) -> &'static str {
        match self {
            Origin::Printed => "printed",
            Origin::Derived => "derived",
            Origin::Statement => "statement",
            Origin::Fitted => "fitted",
            Origin::Again => "again",
            Origin::Aim => "our aim",
        }
    }
}

/// Which of our figures count as the published one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Accept {
    /// Those that differ by at most this share of the published figure, or only on the good side.
    Tolerance(Compare, f64),
    /// Those between these two, whatever was published; infinite: no limit.
    Range(f64, f64),
}

/// One row of a published table: a metric by case.
#[derive(Clone, PartialEq, Debug)]
pub struct Published {
    /// Under which scheduler, as the scenario names it.
    pub scheduler: String,
    /// Of which job or program, or of which group (its path).
    pub job: String,
    /// What.
    pub metric: Metric,
    /// The figures are the metric's ratio to another one's, if that says whose.
    pub over: Over,
    /// How to compare.
    pub accept: Accept,
    /// Figures by case.
    pub values: BTreeMap<String, f64>,
    /// Where the figures stand.
    pub source: String,
    /// Who says so; see also [`Published::origin_of`].
    pub origin: Origin,
    /// Cases of it to which a value of the model was fitted.
    pub fitted: Vec<String>,
    /// In whose letter, by its author and subject; empty for our own aims.
    pub letter: String,
    /// Number of its entry in the scenario: rows of one entry expect the same figures of several schedulers.
    pub entry: usize,
    /// Cases that are known not to be reproduced, and why.
    pub why: BTreeMap<String, String>,
}

/// Figures that a letter prints and the experiment does not compare.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// How many.
    pub figures: usize,
    /// Which.
    pub what: String,
    /// Why.
    pub why: String,
    /// In whose letter; empty: in the scenario's.
    #[serde(default)]
    pub letter: String,
}

/// What a figure is divided by: the same metric, where it differs. Nothing set: it is not divided.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Over {
    /// Under this scheduler.
    pub scheduler: Option<String>,
    /// Of this job, program or group.
    pub job: Option<String>,
    /// In this case.
    pub case: Option<String>,
}

impl Over {
    /// Is anything divided?
    pub fn is_ratio(&self) -> bool {
        *self != Over::default()
    }

    /// The words of [`Over`] that are set, for people.
    fn words(&self) -> String {
        let job = self.job.as_ref().map(|job| format!("of {job}"));
        let scheduler = self.scheduler.as_ref().map(|scheduler| format!("under {scheduler}"));
        let case = self.case.as_ref().map(|case| format!("in case {case}"));
        [job, scheduler, case].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// What became of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within the tolerance.
    Reproduced,
    /// Beyond the tolerance on the good side of an at-least or at-most figure.
    Better,
    /// Neither.
    NotReproduced,
}

/// A published figure beside ours.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// Case.
    pub case: String,
    /// Published.
    pub published: f64,
    /// Ours.
    pub ours: f64,
    /// Verdict.
    pub verdict: Verdict,
    /// Why it was known not to be reproduced; `None`: it is expected to be.
    pub why: Option<String>,
}

impl Metric {
    /// The metrics of fio jobs.
    pub const OF_JOBS: [Metric; 14] = [
        Metric::BandwidthSum,
        Metric::BandwidthMax,
        Metric::BandwidthMin,
        Metric::Iops,
        Metric::LatencyMean,
        Metric::LatencyP50,
        Metric::LatencyP99,
        Metric::LatencyMax,
        Metric::SyncP50,
        Metric::SyncP99,
        Metric::SyncMax,
        Metric::SyncRate,
        Metric::DeviceTime,
        Metric::DeviceTimeShare,
    ];

    /// Its name in scenario files.
    pub const fn name(self) -> &'static str {
        match self {
            Metric::BandwidthSum => "bandwidth_sum",
            Metric::BandwidthMax => "bandwidth_max",
            Metric::BandwidthMin => "bandwidth_min",
            Metric::Iops => "iops",
            Metric::LatencyMean => "latency_mean",
            Metric::LatencyP50 => "latency_p50",
            Metric::LatencyP99 => "latency_p99",
            Metric::LatencyMax => "latency_max",
            Metric::SyncP50 => "sync_p50",
            Metric::SyncP99 => "sync_p99",
            Metric::SyncMax => "sync_max",
            Metric::SyncRate => "sync_rate",
            Metric::DeviceTime => "device_time",
            Metric::DeviceTimeShare => "device_time_share",
            Metric::Program(metric) => metric.name,
            Metric::Group(metric) => metric.name(),
        }
    }

    /// Unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Metric::BandwidthSum | Metric::BandwidthMax | Metric::BandwidthMin => "KiB/s",
            Metric::Iops => "IOPS",
            Metric::LatencyMean | Metric::LatencyP50 | Metric::LatencyP99 | Metric::LatencyMax => "ms",
            Metric::SyncP50 | Metric::SyncP99 | Metric::SyncMax => "ms",
            Metric::SyncRate => "1/s",
            Metric::DeviceTime => "s",
            Metric::DeviceTimeShare => "",
            Metric::Program(metric) => metric.unit,
            Metric::Group(metric) => metric.unit(),
        }
    }

    /// What it is, for a table's head.
    pub const fn label(self) -> &'static str {
        match self {
            Metric::BandwidthSum => "bandwidth, all",
            Metric::BandwidthMax => "bandwidth, fastest",
            Metric::BandwidthMin => "bandwidth, slowest",
            Metric::Iops => "IOPS",
            Metric::LatencyMean => "latency, mean",
            Metric::LatencyP50 => "latency, median",
            Metric::LatencyP99 => "latency, p99",
            Metric::LatencyMax => "latency, max",
            Metric::SyncP50 => "fsync, median",
            Metric::SyncP99 => "fsync, p99",
            Metric::SyncMax => "fsync, longest",
            Metric::SyncRate => "fsyncs",
            Metric::DeviceTime => "device time",
            Metric::DeviceTimeShare => "share of the device's time",
            Metric::Program(metric) => metric.name,
            Metric::Group(metric) => metric.label(),
        }
    }

    /// Measure it in a run; `None` when the job, program or group is not in it.
    pub fn of(self, run: &RunResult, job: &str) -> Option<f64> {
        match self {
            Metric::Program(metric) => return run.program(job)?.metric(metric.name),
            Metric::Group(metric) => return metric.of(run.group(job)?),
            _ => {}
        }
        let processes = || run.processes.iter().filter(|p| p.name == job);
        let kib = |p: &JobResult| p.bandwidth() / 1024.0;
        processes().next()?;
        Some(match self {
            Metric::BandwidthSum => processes().map(kib).sum(),
            Metric::BandwidthMax => processes().map(kib).fold(0.0, f64::max),
            Metric::BandwidthMin => processes().map(kib).fold(f64::INFINITY, f64::min),
            Metric::Iops => processes().map(JobResult::iops).sum(),
            Metric::LatencyMean => {
                let (sum, n) = processes().fold((0.0, 0), |(sum, n), p| {
                    let clat = p.clat();
                    (sum + clat.mean_ns() * clat.count() as f64, n + clat.count())
                });
                sum / n.max(1) as f64 / 1e6
            }
            Metric::LatencyP50 => clats(processes()).percentile_ns(50.0) as f64 / 1e6,
            Metric::LatencyP99 => clats(processes()).percentile_ns(99.0) as f64 / 1e6,
            Metric::LatencyMax => processes().map(|p| p.clat().max_ns()).max().unwrap_or(0) as f64 / 1e6,
            Metric::SyncP50 => syncs(processes()).percentile_ns(50.0) as f64 / 1e6,
            Metric::SyncP99 => syncs(processes()).percentile_ns(99.0) as f64 / 1e6,
            Metric::SyncMax => syncs(processes()).max_ns() as f64 / 1e6,
            Metric::SyncRate => processes().map(sync_rate).sum(),
            Metric::DeviceTime => processes().map(|p| p.device_time_ns).sum::<u64>() as f64 / 1e9,
            Metric::DeviceTimeShare => processes().map(|p| run.device_share(p)).sum(),
            Metric::Program(_) | Metric::Group(_) => return None,
        })
    }
}

/// The I/Os of several processes.
fn clats<'a>(processes: impl Iterator<Item = &'a JobResult>) -> Latency {
    processes.fold(Latency::default(), |mut all, process| {
        all.merge(&process.clat());
        all
    })
}

/// The fsync and fdatasync calls of several processes.
fn syncs<'a>(processes: impl Iterator<Item = &'a JobResult>) -> Latency {
    processes.fold(Latency::default(), |mut all, process| {
        all.merge(&process.sync);
        all
    })
}

/// Those calls a second of a process's time.
fn sync_rate(process: &JobResult) -> f64 {
    let seconds = process.ended_ns.saturating_sub(process.started_ns) as f64 / 1e9;
    if seconds > 0.0 { process.sync.count() as f64 / seconds } else { 0.0 }
}

impl Published {
    /// Who says what the figure of `case` should be.
    pub fn origin_of(&self, case: &str) -> Origin {
        if self.fitted.iter().any(|fitted| fitted == case) { Origin::Fitted } else { self.origin }
    }

    /// Unit of the figures; that of a ratio is none.
    pub fn unit(&self) -> &'static str {
        if self.over.is_ratio() { "" } else { self.metric.unit() }
    }

    /// What the figures are, for a table's head.
    pub fn label(&self) -> String {
        match &self.over {
            over if !over.is_ratio() => self.metric.label().to_owned(),
            Over { scheduler: Some(other), job: None, case: None } => {
                format!("{}, over that of {other}", self.metric.label())
            }
            over => format!("{}, over that {}", self.metric.label(), over.words()),
        }
    }

    /// The figures of this row beside ours; `run` finds the run of a case under a scheduler.
    pub fn cells<'a>(&self, run: impl Fn(&str, &str) -> Option<&'a RunResult>) -> Vec<Cell> {
        let measured = |case: &str, scheduler: &str, job: &str| self.metric.of(run(case, scheduler)?, job);
        let cell = |(case, published): (&String, &f64)| {
            let ours = measured(case, &self.scheduler, &self.job)?;
            let ours = match self.over.is_ratio() {
                false => ours,
                true => {
                    let scheduler = self.over.scheduler.as_ref().unwrap_or(&self.scheduler);
                    let job = self.over.job.as_ref().unwrap_or(&self.job);
                    ours / measured(self.over.case.as_ref().unwrap_or(case), scheduler, job)?
                }
            };
            Some(Cell {
                case: case.clone(),
                published: *published,
                ours,
                verdict: judge(*published, ours, self.accept),
                why: self.why.get(case).cloned(),
            })
        };
        let mut cells: Vec<Cell> = self.values.iter().filter_map(cell).collect();
        cells.sort_by_key(|c| (c.case.parse::<u64>().unwrap_or(u64::MAX), c.case.clone()));
        cells
    }
}

/// Compare a figure with the published one.
pub fn judge(published: f64, ours: f64, accept: Accept) -> Verdict {
    let (near, good) = match accept {
        Accept::Range(min, max) => ((min..=max).contains(&ours), false),
        Accept::Tolerance(compare, share) => {
            let near = (ours - published).abs() <= share * published.abs();
            let good = match compare {
                Compare::Near => false,
                Compare::AtLeast => ours > published,
                Compare::AtMost => ours < published,
            };
            (near, good)
        }
    };
    match (near, good) {
        (true, _) => Verdict::Reproduced,
        (false, true) => Verdict::Better,
        (false, false) => Verdict::NotReproduced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerance_is_a_share_of_the_published_figure() {
        let judge = |ours, compare| judge(100.0, ours, Accept::Tolerance(compare, 0.25));
        assert_eq!(judge(125.0, Compare::Near), Verdict::Reproduced);
        assert_eq!(judge(125.1, Compare::Near), Verdict::NotReproduced);
        assert_eq!(judge(74.9, Compare::Near), Verdict::NotReproduced);
        assert_eq!(judge(300.0, Compare::AtLeast), Verdict::Better);
        assert_eq!(judge(300.0, Compare::AtMost), Verdict::NotReproduced);
        assert_eq!(judge(76.0, Compare::AtLeast), Verdict::Reproduced);
    }

    #[test]
    fn a_range_is_taken_as_it_stands_whatever_was_published() {
        let judge = |ours, min, max| judge(0.19, ours, Accept::Range(min, max));
        assert_eq!(judge(0.12, 0.12, 0.27), Verdict::Reproduced);
        assert_eq!(judge(0.27, 0.12, 0.27), Verdict::Reproduced);
        assert_eq!(judge(0.28, 0.12, 0.27), Verdict::NotReproduced);
        assert_eq!(judge(0.11, 0.12, 0.27), Verdict::NotReproduced);
        assert_eq!(judge(1e9, 1.0, f64::INFINITY), Verdict::Reproduced, "no upper limit");
        assert_eq!(judge(f64::NAN, 0.0, f64::INFINITY), Verdict::NotReproduced);
    }
}
