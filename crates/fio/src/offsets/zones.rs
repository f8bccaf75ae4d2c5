//! `random_distribution=zoned` and `zoned_abs`: shares of the accesses for parts of the file.

use crate::job::ZoneShare;
use crate::offsets::rng::Rng;
use crate::values::Amount;

/// The part of a file a draw falls on, blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    pub(super) first_block: u64,
    pub(super) blocks: u64,
}

/// Draws a zone. `None`: no zones for this direction.
pub(super) fn draw(zones: &[ZoneShare], rng: &mut Rng, file_blocks: u64, block_bytes: u64) -> Option<Zone> {
    if zones.is_empty() {
        return None;
    }
    let drawn = rng.between(1, 100) as u32;
    let mut access_so_far = 0;
    let (mut percent_before, mut bytes_before) = (0, 0);
    for zone in zones {
        access_so_far += zone.access_percent;
        let inside = drawn <= access_so_far;
        match zone.extent {
            Amount::Percent(percent) => {
                if inside {
                    let first_block = percent_before * file_blocks / 100;
                    return Some(Zone { first_block, blocks: file_blocks * percent / 100 });
                }
                percent_before += percent;
            }
            Amount::Bytes(bytes) => {
                if inside {
                    let first_block = bytes_before / block_bytes;
                    return Some(Zone {
                        first_block,
                        blocks: (bytes_before + bytes) / block_bytes - first_block,
                    });
                }
                bytes_before += bytes;
            }
        }
    }
    None
}
