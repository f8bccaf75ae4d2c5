//! The comparison for spreadsheets: one row per case, scheduler, job and direction, and one per figure of a program or group.

use std::fmt::Write as _;

use fairlift_sim::group::GroupMetric;
use fairlift_sim::result::{JobResult, ProgramResult, RunResult};
use fairlift_sim::scenario::Scenario;
use fairlift_sim::stats::Latency;

const HEAD: &str = "case,scheduler,device,kernel,seed,job,group,processes,direction,bytes,ios,bandwidth_bytes_per_s,iops_per_s,\
clat_mean_ns,clat_p50_ns,clat_p99_ns,clat_p999_ns,clat_max_ns,job_device_share,\
run_bandwidth_bytes_per_s,run_device_busy_share,run_jain_index,run_simulated_s,metric,value,unit\n";

/// Names of the directions, by their numbers.
const DIRECTIONS: [&str; 3] = ["read", "write", "trim"];

/// All runs, with a head that names the units. The direction `sync` stands for fsync calls.
pub fn csv(scenario: &Scenario, runs: &[Vec<&RunResult>]) -> String {
    let mut out = HEAD.to_owned();
    for (case, runs) in scenario.cases.iter().zip(runs) {
        for run in runs {
            for job in run.jobs() {
                job_rows(&mut out, &case.name, run, &job);
            }
            for program in &run.programs {
                program_rows(&mut out, &case.name, run, program);
            }
            for group in &run.groups {
                for metric in GroupMetric::ALL {
                    let Some(value) = metric.of(group) else { continue };
                    figure_row(&mut out, &case.name, run, &group.path, (metric.name(), value, metric.unit()));
                }
            }
        }
    }
    out
}

fn job_rows(out: &mut String, case: &str, run: &RunResult, job: &JobResult) {
    let mut row = |direction: &str, bytes: u64, ios: u64, latency: &Latency| {
        let per_second = |amount: u64| amount as f64 * 1e9 / job.runtime_ns() as f64;
        let words = [case, &run.scheduler, &run.device, &run.kernel].map(quoted).join(",");
        let _ = writeln!(
            out,
            "{words},{},{},{},{},{direction},{bytes},{ios},{:.1},{:.3},{:.1},{},{},{},{},{:.6},{:.1},{:.6},{:.6},{:.6},,,",
            run.seed,
            quoted(&job.name),
            job.group_id,
            job.processes,
            per_second(bytes),
            per_second(ios),
            latency.mean_ns(),
            latency.percentile_ns(50.0).min(latency.max_ns()),
            latency.percentile_ns(99.0).min(latency.max_ns()),
            latency.percentile_ns(99.9).min(latency.max_ns()),
            latency.max_ns(),
            run.device_share(job),
            run.bandwidth(),
            run.busy(),
            run.jain_device_time(),
            run.duration_ns as f64 / 1e9,
        );
    };
    for (name, transfer) in DIRECTIONS.iter().zip(&job.transfers).filter(|(_, t)| t.ios > 0) {
        row(name, transfer.bytes, transfer.ios, &transfer.clat);
    }
    if job.sync.count() > 0 {
        row("sync", 0, job.sync.count(), &job.sync);
    }
}

/// A row for each figure: the columns of jobs stay empty, but for the program's name in `job`.
fn program_rows(out: &mut String, case: &str, run: &RunResult, program: &ProgramResult) {
    for figure in &program.figures {
        let (name, unit) = (figure.metric.name, figure.metric.unit);
        figure_row(out, case, run, &program.name, (name, figure.value, unit));
    }
}

/// A row for one figure (name, value, unit) of a program or group.
fn figure_row(out: &mut String, case: &str, run: &RunResult, of: &str, figure: (&str, f64, &str)) {
    let words = [case, &run.scheduler, &run.device, &run.kernel].map(quoted).join(",");
    let _ = writeln!(
        out,
        "{words},{},{},,,,,,,,,,,,,,,{:.6},,{:.6},{},{},{}",
        run.seed,
        quoted(of),
        run.busy(),
        run.duration_ns as f64 / 1e9,
        figure.0,
        figure.1,
        quoted(figure.2),
    );
}

/// A field, in quotes where it needs them.
pub fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(super::quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(super::quoted("cfq:quantum=4"), "cfq:quantum=4");
    }
}
