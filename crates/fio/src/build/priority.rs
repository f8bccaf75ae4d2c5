//! I/O priorities.

use crate::job::{CommandPriority, Priority};
use crate::settings::Reader;
use crate::values::{self, Wrong};

pub(super) fn job(r: &mut Reader<'_>) -> Option<Priority> {
    let level = r.number32("prio", 0, 0..=7) as u8;
    let class = r.number32("prioclass", 0, 0..=3) as u8;
    (r.is_set("prio") || r.is_set("prioclass")).then_some(Priority { class, level })
}

pub(super) fn command(r: &mut Reader<'_>) -> CommandPriority {
    let mut pair = |name: &str, default: u32, max: u32| {
        let values = r.per_direction(name, |text, _| {
            let value = text.parse::<u32>().ok().filter(|&value| value <= max);
            value.ok_or_else(|| Wrong::new(format!("'{text}' is out of range 0…{max}"), ""))
        });
        [values[0].unwrap_or(default), values[1].unwrap_or(default)]
    };
    let percent = pair("cmdprio_percentage", 0, 100);
    let class = pair("cmdprio_class", 1, 3).map(|class| class as u8);
    let level = pair("cmdprio", 0, 7).map(|level| level as u8);
    let [read, write, _] = r.per_direction("cmdprio_bssplit", split);
    CommandPriority { percent, class, level, split: [read.unwrap_or_default(), write.unwrap_or_default()] }
}

/// `4k/10:64k/50/2/1`: size, percent, and optionally class and level.
fn split(text: &str, kb_base: u64) -> Result<Vec<(u64, u32, Option<Priority>)>, Wrong> {
    let entries = text.split(':').take_while(|entry| !entry.is_empty());
    let entries: Vec<_> = entries.map(|entry| split_entry(entry, kb_base)).collect::<Result<_, _>>()?;
    match entries.len() {
        0..=64 => Ok(entries),
        _ => Err(Wrong::new("more than 64 block sizes", "")),
    }
}

fn split_entry(entry: &str, kb_base: u64) -> Result<(u64, u32, Option<Priority>), Wrong> {
    let parts: Vec<_> = entry.split('/').collect();
    let number = |text: &str, max: u32| match text.trim() {
        "" => Ok(0),
        text => text.parse::<u32>().ok().filter(|&n| n <= max).ok_or(()),
    };
    let wrong =
        |()| Wrong::new(format!("'{entry}' is not understood"), "size/percent or size/percent/class/level");
    let bytes = values::bytes(parts[0], kb_base)?;
    match parts[..] {
        [_] => Ok((bytes, 0, None)),
        [_, percent] => Ok((bytes, number(percent, 100).map_err(wrong)?, None)),
        [_, percent, class, level] => {
            let (class, level) =
                (number(class, 3).map_err(wrong)? as u8, number(level, 7).map_err(wrong)? as u8);
            Ok((bytes, number(percent, 100).map_err(wrong)?, Some(Priority { class, level })))
        }
        _ => Err(wrong(())),
    }
}
