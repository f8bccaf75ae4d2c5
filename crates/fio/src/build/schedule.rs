//! When a job runs and which jobs it waits for.

use crate::job::{ExitWhat, Schedule};
use crate::settings::Reader;
use crate::values;

pub(super) fn read(r: &mut Reader<'_>) -> Schedule {
    let runtime_us = r.time_us("runtime", 0);
    let exitall = r.flag("exitall", false);
    let words = [("group", ExitWhat::Group), ("stonewall", ExitWhat::Stonewall), ("all", ExitWhat::All)];
    let (what, _) = r.choice("exit_what", ExitWhat::Group, &words);
    Schedule {
        start_delay_us: start_delay(r),
        runtime_us,
        time_based: r.flag("time_based", false) && runtime_us > 0,
        ramp_time_us: r.time_us("ramp_time", 0),
        stonewall: r.flag("stonewall", false),
        new_group: r.flag("new_group", false),
        wait_for: r.text("wait_for").map(str::to_owned),
        group_id: 0,
        group_reporting: r.flag("group_reporting", false),
        exit_what: if exitall { what } else { ExitWhat::None },
    }
}

/// `5` or `5-10`, seconds unless said otherwise.
fn start_delay(r: &mut Reader<'_>) -> (u64, u64) {
    let Some(text) = r.text("startdelay") else { return (0, 0) };
    let (low, high) = text.split_once(['-', ',', ':']).unwrap_or((text, text));
    match (values::time_us(low, 1_000_000), values::time_us(high, 1_000_000)) {
        (Ok(low), Ok(high)) => (low.min(high), low.max(high)),
        (Err(wrong), _) | (_, Err(wrong)) => {
            r.complain("startdelay", wrong);
            (0, 0)
        }
    }
}
