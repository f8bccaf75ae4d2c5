//! The fitted device simulated with the very jobs that were measured, fitted ones and others.

use fairlift_fio::{ParseOptions, Source, parse};
use fairlift_sim::device::DeviceSpec;
use fairlift_sim::group::GroupTree;
use fairlift_sim::kernel::{Rules, version};
use fairlift_sim::result::JobResult;
use fairlift_sim::scenario::{Case, run_all};

use super::measured::{Figures, Measured};
use crate::error::Failure;
use crate::{input, progress};

/// The kernel the jobs are simulated under: the newest that is modelled.
const KERNEL: &str = "6.12";
/// Its scheduler: what a device does, undisturbed.
const SCHEDULER: &str = "none";
/// Simulated time of a job, seconds: enough for a steady state.
const FLASH_S: u64 = 1;
const DISK_S: u64 = 20;
/// Options that say nothing about the I/O.
const LEFT_OUT: [&str; 9] = [
    "filename",
    "runtime",
    "percentile_list",
    "time_based",
    "stonewall",
    "wait_for_previous",
    "name",
    "directory",
    "filename_format",
];

/// The kernel whose processor time counts where none was measured.
pub fn rules() -> Result<&'static Rules, Failure> {
    version::find(KERNEL).ok_or_else(|| Failure::internal(format!("no kernel {KERNEL}")))
}

/// What the device does with each of the jobs, on a host that takes `cpu_ns` for a command.
pub fn simulate(device: &DeviceSpec, jobs: &[Measured], cpu_ns: u64) -> Result<Vec<Figures>, Failure> {
    let seconds = if device.limits().rotational { DISK_S } else { FLASH_S };
    let cases = jobs.iter().map(|job| case(job, seconds)).collect::<Result<Vec<_>, _>>()?;
    let mut scenario = input::blank("calibrate", cases)?;
    scenario.rules = rules()?.clone();
    scenario.rules.cpu_per_io_ns = cpu_ns;
    scenario.device = device.clone();
    input::choose(&mut scenario, &[SCHEDULER.to_owned()])?;
    let bar = progress::Bar::new(&scenario, "simulating");
    let runs = run_all(&scenario, progress::threads(None), &bar).map_err(|e| Failure::of_run(&e));
    bar.finish();
    let figures = |run: &fairlift_sim::result::RunResult| {
        let all = run.jobs();
        all.first().map_or_else(Figures::default, figures)
    };
    Ok(runs?.iter().map(|case| figures(&case[0])).collect())
}

/// A measured job as a case of its own.
fn case(job: &Measured, seconds: u64) -> Result<Case, Failure> {
    let mut text =
        format!("[{}]\nfilename=target\ntime_based\nruntime={seconds}\n", job.name.replace([']', '\n'], "_"));
    for (key, value) in job.options.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str())) {
        text += &if value.is_empty() { format!("{key}\n") } else { format!("{key}={value}\n") };
    }
    let sources = [Source::new(format!("job '{}'", job.name), text)];
    let parsed = parse(&sources, &ParseOptions::default()).map_err(|e| Failure::of_jobs(&e, &sources))?;
    if !parsed.refused.is_empty() {
        return Err(Failure::of_refused(&parsed.refused, &sources));
    }
    Ok(Case {
        name: job.name.clone(),
        jobs: parsed.jobs,
        programs: Vec::new(),
        groups: GroupTree::default(),
        replaying: None,
        device: None,
        seed: None,
        global_options: parsed.global_options,
    })
}

fn figures(job: &JobResult) -> Figures {
    let [read, write, _] = &job.transfers;
    let more = if read.ios >= write.ios { read } else { write };
    let at = |percent: f64| more.clat.percentile_ns(percent) as f64;
    Figures {
        iops: job.iops(),
        bandwidth: job.bandwidth(),
        mean_ns: more.clat.mean_ns(),
        p5_ns: at(5.0),
        p50_ns: at(50.0),
        p95_ns: at(95.0),
        p99_ns: at(99.0),
        p999_ns: at(99.9),
        submit_ns: more.slat.mean_ns(),
        sync_ns: job.sync.mean_ns(),
    }
}
