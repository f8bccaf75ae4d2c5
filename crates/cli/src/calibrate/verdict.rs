//! What a fit is worth: its worst miss, and whether a file may be made of it.

use std::fmt;

use serde::Serialize;

use super::Judged;
use crate::error::Failure;

/// A fit that misses a job's rate by more is not written unless it is asked for.
const MISS_MAX: f64 = 0.3;

/// The job whose rate is missed most, and by how much.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    job: String,
    measured_iops: f64,
    simulated_iops: f64,
    miss: f64,
    good: bool,
}

impl Verdict {
    /// Over all jobs, fitted or predicted.
    pub fn of(judged: &[Judged]) -> Verdict {
        let worst = judged.iter().max_by(|x, y| x.iops_error.abs().total_cmp(&y.iops_error.abs()));
        worst.map_or_else(Verdict::default, |job| Verdict {
            job: job.job.clone(),
            measured_iops: job.measured.iops,
            simulated_iops: job.simulated.iops,
            miss: job.iops_error,
            good: job.iops_error.abs() <= MISS_MAX,
        })
    }

    /// Why no file is made of it, if so.
    pub fn refusal(&self) -> Option<Failure> {
        (!self.good).then(|| {
            Failure::new(format!(
                "the model misses a job of its own series by more than {:.0} %: {self}; nothing was written",
                MISS_MAX * 100.0
            ))
            .help("--force writes the file all the same; --model fits another model; a quiet machine or --seconds 20 measure better")
        })
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { job, measured_iops, simulated_iops, miss, .. } = self;
        write!(
            f,
            "worst miss {job}, {measured_iops:.0} IOPS measured, {simulated_iops:.0} by the model ({:+.0} %)",
            miss * 100.0
        )
    }
}
