//! The figures of a run, each with the name of its column: `db.p99_ns`, `run.busy_share`, `/vm1.gap_longest_ms`.

use fairlift_sim::group::GroupMetric;
use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::stats::Latency;

use super::goal::RUN;

const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];
/// Percentiles of completion latency, and how their columns are called.
const PERCENTILES: [(f64, &str); 5] =
    [(50.0, "p50_ns"), (90.0, "p90_ns"), (95.0, "p95_ns"), (99.0, "p99_ns"), (99.9, "p999_ns")];

/// All figures of a run, in an order that only the jobs decide.
pub fn figures(run: &RunResult) -> Vec<(String, f64)> {
    let mut all = Figures(Vec::new());
    let jobs = run.jobs();
    let mut clat = Latency::new();
    jobs.iter().for_each(|job| clat.merge(&job.clat()));
    all.push(RUN, "bandwidth_bytes_per_s", run.bandwidth());
    all.push(RUN, "iops_per_s", run.iops());
    all.latency(RUN, &clat);
    all.push(RUN, "busy_share", run.busy());
    all.push(RUN, "jain_index", run.jain_device_time());
    all.push(RUN, "simulated_s", run.duration_ns as f64 / 1e9);
    for (place, job) in jobs.iter().enumerate() {
        // fio lets jobs of different groups share a name.
        match jobs[..place].iter().filter(|other| other.name == job.name).count() {
            0 => all.job(run, job, &job.name),
            before => all.job(run, job, &format!("{}#{}", job.name, before + 1)),
        }
    }
    for program in &run.programs {
        program.figures.iter().for_each(|figure| all.push(&program.name, figure.metric.name, figure.value));
    }
    for group in &run.groups {
        for metric in GroupMetric::ALL {
            if let Some(value) = metric.of(group) {
                all.push(&group.path, metric.name(), value);
            }
        }
    }
    all.0
}

struct Figures(Vec<(String, f64)>);

impl Figures {
    fn push(&mut self, of: &str, name: &str, value: f64) {
        self.0.push((format!("{of}.{name}"), value));
    }

    /// Of all directions; of a job that reads and writes of each, too.
    fn job(&mut self, run: &RunResult, job: &JobResult, name: &str) {
        self.push(name, "bandwidth_bytes_per_s", job.bandwidth());
        self.push(name, "iops_per_s", job.iops());
        self.latency(name, &job.clat());
        self.push(name, "device_share", run.device_share(job));
        let moved = || DIRECTIONS.iter().zip(&job.transfers).filter(|(_, transfer)| transfer.ios > 0);
        if moved().count() > 1 {
            for (direction, transfer) in moved() {
                let of = format!("{name}.{direction}");
                let per_second = |amount: u64| amount as f64 * 1e9 / job.runtime_ns() as f64;
                self.push(&of, "bandwidth_bytes_per_s", per_second(transfer.bytes));
                self.push(&of, "iops_per_s", per_second(transfer.ios));
                self.latency(&of, &transfer.clat);
            }
        }
        if job.sync.count() > 0 {
            self.latency(&format!("{name}.sync"), &job.sync);
        }
    }

    fn latency(&mut self, of: &str, latency: &Latency) {
        if latency.count() == 0 {
            return;
        }
        self.push(of, "mean_ns", latency.mean_ns());
        for (percent, name) in PERCENTILES {
            self.push(of, name, latency.percentile_ns(percent).min(latency.max_ns()) as f64);
        }
        self.push(of, "max_ns", latency.max_ns() as f64);
    }
}
