//! `bs`, `bsrange`, `bssplit`, `blockalign`.

use crate::job::{Access, BlockSizes, Direction};
use crate::settings::Reader;
use crate::values::{self, Wrong};

/// Entries of one `bssplit` direction: fio's limit.
const SPLIT_MAX: usize = 64;
/// Largest single I/O, bytes.
const BLOCK_BYTES_MAX: u64 = 1 << 30;

pub(super) fn read(r: &mut Reader<'_>, access: Access) -> [BlockSizes; 3] {
    let plain = r.per_direction("bs", block);
    let ranges = r.per_direction("bsrange", range);
    let splits = r.per_direction("bssplit", split);
    let aligns = r.per_direction("ba", block);
    Direction::ALL.map(|direction| {
        let i = direction.index();
        let split = splits[i].clone().unwrap_or_default();
        let of_split =
            split.iter().map(|&(bytes, _)| bytes).min().zip(split.iter().map(|&(bytes, _)| bytes).max());
        let bs = plain[i].unwrap_or(4096);
        let (min_bytes, max_bytes) = of_split.or(ranges[i]).unwrap_or((bs, bs));
        // Only random offsets are aligned otherwise than to the block.
        let align_bytes = aligns[i].filter(|_| access.random).unwrap_or(min_bytes);
        BlockSizes { min_bytes, max_bytes, split, align_bytes }
    })
}

fn block(text: &str, kb_base: u64) -> Result<u64, Wrong> {
    let bytes = values::bytes(text, kb_base)?;
    match bytes {
        1..=BLOCK_BYTES_MAX => Ok(bytes),
        _ => Err(Wrong::new(format!("a block of {bytes} bytes"), "1 byte to 1g")),
    }
}

fn range(text: &str, kb_base: u64) -> Result<(u64, u64), Wrong> {
    let (a, b) =
        text.split_once(['-', ':']).ok_or_else(|| Wrong::new(format!("'{text}' is no range"), "4k-64k"))?;
    let (a, b) = (block(a, kb_base)?, block(b, kb_base)?);
    Ok((a.min(b), a.max(b)))
}

/// `4k/10:64k/50:32k/`: entries without a percentage share what is left.
fn split(text: &str, kb_base: u64) -> Result<Vec<(u64, u32)>, Wrong> {
    let mut entries = Vec::new();
    // As in fio an empty entry ends the list.
    for entry in text.split(':').take_while(|entry| !entry.is_empty()) {
        let (bytes, percent) = entry.split_once('/').unwrap_or((entry, ""));
        entries.push((block(bytes, kb_base)?, share(percent)?));
    }
    if entries.len() > SPLIT_MAX {
        return Err(Wrong::new("more than 64 block sizes", "size/percent:size/percent:…"));
    }
    let given: u32 = entries.iter().filter_map(|&(_, percent)| percent).sum();
    let missing = entries.iter().filter(|(_, percent)| percent.is_none()).count() as u32;
    if given > 100 {
        return Err(Wrong::new(format!("percentages add up to {given}"), "at most 100"));
    }
    let rest = (100 - given).checked_div(missing).unwrap_or(0);
    // A lone size without a percentage gets none in fio, and is then used whenever the others are not.
    let rest = if entries.len() == 1 { 0 } else { rest };
    let mut entries: Vec<_> =
        entries.into_iter().map(|(bytes, percent)| (bytes, percent.unwrap_or(rest))).collect();
    entries.sort_by_key(|&(_, percent)| percent);
    Ok(entries)
}

/// A share in percent; nothing or 0 means a part of the rest.
fn share(text: &str) -> Result<Option<u32>, Wrong> {
    match text.trim() {
        "" => Ok(None),
        text => match text.trim_end_matches('%').parse::<u32>() {
            Ok(percent) => Ok(Some(percent.min(100)).filter(|&percent| percent > 0)),
            Err(_) => Err(Wrong::new(format!("'{text}' is no percentage"), "0…100")),
        },
    }
}
