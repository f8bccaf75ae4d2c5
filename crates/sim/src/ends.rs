//! Can a run end within the day that the lab simulates? What cannot is refused before the work begins.
//!
//! These are bounds from below: times that the jobs ask for, and processor time alone. What passes may still take longer than a day;
//! the run then ends there ([`crate::lab::LabError::TooLong`]).

use fairlift_fio::{Amount, Job};

use crate::kernel::Rules;
use crate::lab::LIMIT_NS;
use crate::program::ProgramSpec;

/// Why it cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endless {
    /// The job or program.
    pub name: String,
    /// What takes how long.
    pub reason: String,
}

/// The first of these that cannot end in a day, if there is one.
pub fn endless(jobs: &[Job], programs: &[ProgramSpec], rules: &Rules) -> Option<Endless> {
    let job = |job: &Job| Some(Endless { name: job.name.clone(), reason: job_reason(job, rules)? });
    let program = |spec: &ProgramSpec| {
        let least_ns = spec.program.least_ns(rules).saturating_mul(spec.repeat.max(1));
        let reason = format!("it needs {} of processor time at least", days(least_ns));
        (!spec.background && least_ns > LIMIT_NS).then(|| Endless { name: spec.name.clone(), reason })
    };
    jobs.iter().find_map(job).or_else(|| programs.iter().find_map(program))
}

fn job_reason(job: &Job, rules: &Rules) -> Option<String> {
    let plan = &job.schedule;
    let times = [
        ("startdelay", plan.start_delay_us.0),
        ("ramp_time", plan.ramp_time_us),
        ("runtime", if plan.time_based { plan.runtime_us } else { 0 }),
    ];
    let too_long = |us: u64| us.saturating_mul(1000) > LIMIT_NS;
    if let Some((name, us)) = times.into_iter().find(|(_, us)| too_long(*us)) {
        return Some(format!("its {name} is {}", days(us.saturating_mul(1000))));
    }
    let together = times.iter().map(|(_, us)| us).sum();
    if too_long(together) {
        return Some(format!(
            "startdelay, ramp_time and runtime are {} together",
            days(together.saturating_mul(1000))
        ));
    }
    // Before a runtime that is no longer than a day it ends in any case.
    if plan.runtime_us > 0 && !too_long(plan.runtime_us) {
        return None;
    }
    let ios = ios_at_least(job)?;
    let ns = u128::from(ios) * u128::from(rules.cpu_per_io_ns);
    (ns > u128::from(LIMIT_NS)).then(|| {
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        format!("its {ios} I/Os need {} of processor time at least", days(ns))
    })
}

/// I/Os that a process of the job does whatever happens, if that is known without its file.
fn ios_at_least(job: &Job) -> Option<u64> {
    let extent = &job.extent;
    let largest = job.blocks.iter().map(|sizes| sizes.max_bytes).max()?.max(1);
    let bytes = match (extent.io_size, extent.size) {
        (Some(Amount::Bytes(bytes)), _) | (None, Some(Amount::Bytes(bytes))) => bytes,
        _ => return None,
    };
    let ios = (bytes / largest).saturating_mul(extent.loops);
    Some(if extent.number_ios > 0 { ios.min(extent.number_ios) } else { ios })
}

/// `11574 days`, `1.5 days`.
fn days(ns: u64) -> String {
    let days = ns as f64 / LIMIT_NS as f64;
    if days >= 10.0 { format!("{days:.0} days") } else { format!("{days:.1} days") }
}
