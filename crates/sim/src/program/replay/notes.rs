//! What a trace lacks, and what the replay does about it, in sentences.

use std::collections::{BTreeMap, BTreeSet};

use fairlift_trace::Facts;

use super::{Replay, Timing, Traced};

/// Why I/Os are left out.
pub(super) const NO_OPERATION: &str = "that name no operation";
pub(super) const ZONES: &str = "that manage zones";
pub(super) const EMPTY: &str = "of no bytes";
pub(super) const TOO_LARGE: &str = "of 4 GiB and more: no bio is that large";
pub(super) const DEVICES: &str = "on devices past the first 4096";

/// What was found while a trace was read.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) left_out: BTreeMap<&'static str, u64>,
    pub(super) queue_events: bool,
    pub(super) completions: u64,
    pub(super) with_pid: u64,
    pub(super) with_cgroup: u64,
    pub(super) with_response: u64,
    pub(super) write_zeroes: u64,
    /// I/Os of processes past the most told apart.
    pub(super) sharing: u64,
    /// Arrivals moved inside their second.
    pub(super) spread: u64,
    /// From the first arrival to the last.
    pub(super) length_ns: u64,
}

/// About the trace alone.
pub(super) fn of_trace(found: &Found, facts: Facts, traced: &[Traced], devices: usize) -> Vec<String> {
    let processes = traced.len();
    let mut notes = Vec::new();
    for (what, count) in &found.left_out {
        notes.push(format!("{count} I/Os {what} are left out"));
    }
    if found.write_zeroes > 0 {
        notes.push(format!("{} writes of zeroes without data are replayed as discards", found.write_zeroes));
    }
    if found.with_pid == 0 && processes > 0 {
        let each = if devices > 1 { "each volume has" } else { "all I/O has" };
        notes.push(format!("no process numbers: {each} one io context"));
    }
    let groups: BTreeSet<&str> = traced.iter().filter_map(|process| process.group.as_deref()).collect();
    if !groups.is_empty() {
        let each = if found.with_cgroup > 0 { "cgroup" } else { "volume" };
        notes.push(format!(
            "{} {each}s: each is a group of weight 100 (--set group.PATH.weight=N changes it, SCHEDULER:groups=0 schedules without)",
            groups.len()
        ));
    }
    if found.sharing > 0 {
        notes.push(format!("{} processes have their own io context, all others share one", processes - 1));
    }
    if facts.stages && !found.queue_events && found.with_response == 0 && processes > 0 {
        notes.push(
            "no queue events: an I/O arrives when it was inserted or issued, as merged then, from the process that did that"
                .to_owned(),
        );
    }
    if found.spread > 0 {
        notes.push(
            "time stamps are whole seconds: the I/Os of each second are spread evenly over it".to_owned(),
        );
    }
    notes
}

/// About this trace replayed with `timing` on a device of `capacity_sectors`.
pub(super) fn of_replay(replay: &Replay, timing: Timing, capacity_sectors: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if !replay.has_completions {
        match timing {
            Timing::Open | Timing::Scaled(_) => {}
            Timing::Closed => notes.push(
                "no completions: what a process waited for is not known; each of its I/Os waits for the one before and keeps \
                 at least the recorded distance to it"
                    .to_owned(),
            ),
            Timing::Asap => notes.push(
                "no completions: what a process waited for is not known; each of its I/Os waits for the one before"
                    .to_owned(),
            ),
        }
    } else if matches!(timing, Timing::Open | Timing::Scaled(_)) {
        notes.push(
            "arrivals stay where they were, however long an I/O takes (--timing closed lets processes wait)"
                .to_owned(),
        );
    }
    if replay.devices.len() > 1 {
        notes.push(format!(
            "{} devices of the trace lie one behind the other on the device",
            replay.devices.len()
        ));
    }
    let needed = replay.sectors();
    if needed > capacity_sectors {
        notes.push(format!(
            "the trace reaches {:.1} GB far, the device has {:.1} GB: what lies behind its end begins again at its start",
            needed as f64 * 512.0 / 1e9,
            capacity_sectors as f64 * 512.0 / 1e9
        ));
    }
    notes
}
