//! `rw` and what belongs to it.

use crate::diagnostic::{Diagnostic, Severity};
use crate::job::{Access, Sequencer, Strided};
use crate::settings::Reader;
use crate::values::{self, Wrong};

pub(super) struct AccessOptions {
    pub(super) access: Access,
    pub(super) ios_per_random_offset: u32,
    pub(super) stride_bytes: i64,
    pub(super) sequencer: Sequencer,
    pub(super) read_percent: u32,
}

const fn access(random: bool, reads: bool, writes: bool, trims: bool) -> Access {
    Access { random, reads, writes, trims }
}

const MODES: &[(&str, Access)] = &[
    ("read", access(false, true, false, false)),
    ("write", access(false, false, true, false)),
    ("trim", access(false, false, false, true)),
    ("randread", access(true, true, false, false)),
    ("randwrite", access(true, false, true, false)),
    ("randtrim", access(true, false, false, true)),
    ("rw", access(false, true, true, false)),
    ("readwrite", access(false, true, true, false)),
    ("randrw", access(true, true, true, false)),
    ("trimwrite", access(false, false, true, true)),
    ("randtrimwrite", access(true, false, true, true)),
];

pub(super) fn read(r: &mut Reader<'_>) -> AccessOptions {
    let (access, postfix) = r.choice("rw", MODES[0].1, MODES);
    let (mut ios_per_random_offset, mut stride_bytes) = (1, 0);
    if let Some(postfix) = postfix {
        let result = if access.random {
            every(postfix).map(|every| ios_per_random_offset = every)
        } else {
            values::signed_bytes(postfix, r.kb_base).map(|stride| stride_bytes = stride)
        };
        if let Err(wrong) = result {
            r.complain("rw", wrong);
        }
    }
    let sequencers = [("sequential", Sequencer::Sequential), ("identical", Sequencer::Identical)];
    let (sequencer, _) = r.choice("rw_sequencer", Sequencer::Sequential, &sequencers);
    AccessOptions { access, ios_per_random_offset, stride_bytes, sequencer, read_percent: read_percent(r) }
}

/// `zonemode=strided`, which `zonesize` without a mode means, too.
pub(super) fn strided(r: &mut Reader<'_>) -> Option<Strided> {
    let (zone_bytes, skip_bytes) = (size(r, "zonesize"), size(r, "zoneskip"));
    let mode = r.text("zonemode").map(str::trim);
    match mode {
        None if zone_bytes == 0 => None,
        Some("none") => None,
        None | Some("strided") if zone_bytes > 0 => Some(Strided { zone_bytes, skip_bytes }),
        None | Some("strided") => {
            r.complain("zonemode", Wrong::new("strided access without zonesize", "zonesize=BYTES"));
            None
        }
        Some("zbd") => {
            let message = "'zonemode=zbd' is not simulated: zoned block devices are not supported";
            let remark = Diagnostic::new(Severity::Refusal, r.place("zonemode"), message);
            r.found.push(remark.with_word("zonemode"));
            None
        }
        Some(other) => {
            let wrong = Wrong::new(format!("'{other}' is not known"), "none, strided, zbd");
            r.complain("zonemode", wrong);
            None
        }
    }
}

fn size(r: &mut Reader<'_>, name: &str) -> u64 {
    r.number(name, 0, 0..=i64::MAX as u64)
}

fn every(postfix: &str) -> Result<u32, Wrong> {
    let number = postfix.trim().parse::<u32>().ok().filter(|&every| every > 0);
    number.ok_or_else(|| {
        Wrong::new(format!("'{postfix}' is no number of I/Os"), "a number from 1, as in randread:8")
    })
}

/// `rwmixread` and `rwmixwrite` set the same thing: the later one wins.
fn read_percent(r: &mut Reader<'_>) -> u32 {
    let read = r.number32("rwmixread", 50, 0..=100);
    let write = r.number32("rwmixwrite", 50, 0..=100);
    if r.settings.later("rwmixwrite", "rwmixread") { 100 - write } else { read }
}

pub(super) fn random_percent(r: &mut Reader<'_>) -> [u32; 3] {
    let values = r.per_direction("percentage_random", |text, _| {
        let percent = text.trim_end_matches('%').parse::<u32>().ok().filter(|&percent| percent <= 100);
        percent.ok_or_else(|| Wrong::new(format!("'{text}' is no percentage"), "0…100, also read,write,trim"))
    });
    values.map(|percent| percent.unwrap_or(100))
}
