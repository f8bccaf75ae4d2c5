//! How long the next I/O is.

use crate::job::BlockSizes;
use crate::offsets::rng::Rng;

/// Length of an I/O with `room_bytes` up to the end of its part; `None`: not even the smallest block fits.
///
/// A fixed size is not cut to the room: fio finds out later that it does not fit.
#[inline]
pub(super) fn length(sizes: &BlockSizes, unaligned: bool, rng: &mut Rng, room_bytes: u64) -> Option<u64> {
    let (min, max) = (sizes.min_bytes, sizes.max_bytes);
    if min == max {
        return Some(min);
    }
    if room_bytes < min {
        return None;
    }
    // Draws until something fits; the smallest block does, so this ends.
    loop {
        let drawn = if sizes.split.is_empty() {
            min + (max as f64 * rng.fraction()) as u64
        } else {
            from_split(&sizes.split, rng, room_bytes)
        };
        let rounded = if unaligned { drawn } else { drawn - drawn % min };
        let length = rounded.min(max);
        if length <= room_bytes {
            return Some(length);
        }
    }
}

/// Draws a percentage and takes the entry it falls on, or a later one that fits.
fn from_split(split: &[(u64, u32)], rng: &mut Rng, room_bytes: u64) -> u64 {
    let drawn = rng.next_value();
    let hundredth = rng.max_value() / 100;
    let (mut chosen, mut percent_so_far) = (0, 0);
    for &(bytes, percent) in split.iter().filter(|(_, percent)| *percent > 0) {
        chosen = bytes;
        percent_so_far += u64::from(percent);
        if drawn / percent_so_far <= hundredth && bytes <= room_bytes {
            break;
        }
    }
    chosen
}
