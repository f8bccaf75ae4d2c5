//! Nothing: reads give zeroes, writes go nowhere. For benches of what stands above.

use super::{BackEnd, Extent, Job, Limits};
use crate::io::{Action, Fault};

/// The back end without a store.
#[derive(Debug)]
pub struct Null {
    limits: Limits,
}

impl Null {
    /// Of so many bytes, rounded up to sectors.
    pub fn new(bytes: u64) -> Null {
        Null { limits: super::ram::limits(bytes) }
    }
}

impl BackEnd for Null {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn start(&self, jobs: &mut Vec<Job>, done: &mut Vec<Job>) {
        for job in jobs.iter_mut().filter(|job| job.action == Action::Read) {
            job.ios.iter_mut().for_each(|(_, io)| io.data.fill(0));
        }
        done.append(jobs);
    }

    fn extents(&self, _: u64, bytes: u64) -> Result<Vec<Extent>, Fault> {
        Ok(vec![Extent { bytes, hole: true, zero: true }])
    }
}
