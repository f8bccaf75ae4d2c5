//! Replays a block trace: one task for each traced process, in the group of its cgroup or volume ([`Replay::groups`]), its
//! I/Os where and as they were, flags kept.
//!
//! | timing | an I/O is submitted |
//! |---|---|
//! | open | when it arrived in the trace, whatever became of those before it |
//! | scaled N | the same, all times multiplied by N |
//! | closed | when no more I/Os of its process are in flight than when it arrived in the trace, and the process has thought as long as it did then |
//! | asap | as closed, without thinking: after the kernel's processor time for a call |
//!
//! The think time runs from the completion that the process can have waited for (the last one before the arrival), or from
//! the I/O before where none lay between. What one process waits for of another's is part of its think time.
//!
//! Not modelled: what lies above the block layer. A trace of requests (issue and completion only) is replayed as it was
//! merged then.

mod groups;
mod load;
mod notes;
mod packed;
mod process;
mod stamps;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::engine::Simulation;
use crate::group::GroupTree;

pub use load::{Loader, PROCESSES_MAX};
pub use process::Results;

/// When the I/Os of a trace are submitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Timing {
    /// At the recorded times.
    #[default]
    Open,
    /// At the recorded times multiplied by this many millionths.
    Scaled(u64),
    /// By the completions of the process's own I/Os and its think times.
    Closed,
    /// The same without think times.
    Asap,
}

impl Timing {
    /// A time of the trace in the replay, nanoseconds.
    fn scale(self, ns: u64) -> u64 {
        match self {
            Timing::Scaled(millionths) => {
                u64::try_from(u128::from(ns) * u128::from(millionths) / 1_000_000).unwrap_or(u64::MAX)
            }
            _ => ns,
        }
    }
}

impl FromStr for Timing {
    type Err = String;

    fn from_str(text: &str) -> Result<Timing, String> {
        let allowed = "allowed: open, closed, asap, scaled=N (all times times N, such as scaled=0.5)";
        match text {
            "open" => return Ok(Timing::Open),
            "closed" => return Ok(Timing::Closed),
            "asap" => return Ok(Timing::Asap),
            _ => {}
        }
        let factor = text.strip_prefix("scaled").and_then(|rest| rest.strip_prefix(['=', ':', ' ']));
        let Some(factor) = factor else { return Err(allowed.to_owned()) };
        match factor.trim().parse::<f64>() {
            Ok(factor) if (1e-6..=1e6).contains(&factor) => Ok(Timing::Scaled((factor * 1e6).round() as u64)),
            _ => Err(format!("'{factor}' is no factor from 0.000001 to 1000000; {allowed}")),
        }
    }
}

impl fmt::Display for Timing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Timing::Open => write!(f, "open"),
            Timing::Closed => write!(f, "closed"),
            Timing::Asap => write!(f, "asap"),
            Timing::Scaled(millionths) => write!(f, "scaled={}", *millionths as f64 / 1e6),
        }
    }
}

/// A trace, read and ready to be replayed any number of times.
#[derive(Debug)]
pub struct Replay {
    /// Its processes, in order of their first I/O.
    pub processes: Vec<Traced>,
    /// Its devices.
    pub devices: Vec<TracedDevice<String>>,
    /// Devices that were seen and are not replayed because others were chosen.
    pub left_aside: Vec<String>,
    /// I/Os of all processes.
    pub ios: u64,
    /// From the first arrival to the last, nanoseconds.
    pub length_ns: u64,
    /// It tells when I/Os were done.
    pub has_completions: bool,
    /// What it lacks, and what is done about it, whatever the timing.
    notes: Vec<String>,
}

/// A traced process.
#[derive(Debug)]
pub struct Traced {
    /// Its number, if the trace tells.
    pub pid: Option<u32>,
    /// Its name, else its number, else its volume.
    pub name: String,
    /// The path of its group, `/NAME`: its cgroup, or its volume where processes are not recorded and there are several.
    /// `None`: the root.
    pub group: Option<String>,
    /// Its I/Os.
    pub ios: u64,
    packed: packed::Packed,
}

/// A device of the trace.
#[derive(Clone, Debug)]
pub struct TracedDevice<Name> {
    /// What the trace calls it.
    pub name: Name,
    /// The sector behind the last one used.
    pub end_sector: u64,
}

/// Devices begin at multiples of this, sectors.
const ALIGN_SECTORS: u64 = 2048;

impl Replay {
    /// Sectors it needs on the device.
    pub fn sectors(&self) -> u64 {
        self.starts().last().copied().unwrap_or(0)
    }

    /// Where each of its devices begins on the replaying device, and where the last one ends. A lone device keeps its place.
    fn starts(&self) -> Vec<u64> {
        let mut starts = vec![0];
        let mut at = 0u64;
        for device in &self.devices {
            let end = at.saturating_add(device.end_sector);
            let is_alone = self.devices.len() == 1;
            at = if is_alone {
                end
            } else {
                end.saturating_add(ALIGN_SECTORS - 1) / ALIGN_SECTORS * ALIGN_SECTORS
            };
            starts.push(at);
        }
        starts
    }

    /// What it lacks, and what a replay with `timing` on a device of `capacity_sectors` does about it: sentences without a
    /// final stop.
    pub fn notes(&self, timing: Timing, capacity_sectors: u64) -> Vec<String> {
        let mut all = self.notes.clone();
        all.extend(notes::of_replay(self, timing, capacity_sectors));
        all
    }

    /// Names of its rows in a result: processes of one name share a row, and past `max` names the ones with the fewest I/Os
    /// are `(others)`.
    pub fn row_names(&self, max: usize) -> Vec<String> {
        let mut names: Vec<(&str, u64)> = Vec::new();
        for process in &self.processes {
            match names.iter_mut().find(|(name, _)| *name == process.name) {
                Some((_, ios)) => *ios += process.ios,
                None => names.push((&process.name, process.ios)),
            }
        }
        names.sort_by_key(|(_, ios)| std::cmp::Reverse(*ios));
        if names.len() > max {
            names.truncate(max.saturating_sub(1));
        }
        let row = |process: &Traced| match names.iter().any(|(name, _)| *name == process.name) {
            true => process.name.clone(),
            false => "(others)".to_owned(),
        };
        self.processes.iter().map(row).collect()
    }
}

/// Start the processes of `replay` on a computer, each in its group of `groups`, or in the root where that has none.
pub fn spawn(
    simulation: &mut Simulation,
    replay: &Arc<Replay>,
    groups: &GroupTree,
    timing: Timing,
) -> Results {
    process::spawn(simulation, replay, groups, timing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timings_are_read_and_written() {
        for text in ["open", "closed", "asap", "scaled=0.5", "scaled=2"] {
            assert_eq!(text.parse::<Timing>().unwrap().to_string(), text);
        }
        assert_eq!("scaled 2".parse(), Ok(Timing::Scaled(2_000_000)));
        for wrong in ["", "shut", "scaled", "scaled=", "scaled=-1", "scaled=0", "scaled=nan"] {
            assert!(wrong.parse::<Timing>().is_err(), "{wrong}");
        }
        assert_eq!(Timing::Scaled(500_000).scale(7), 3);
    }
}
