//! Data over the bus: blocks go out as they come off the medium, and in before they are written.

use super::media::{Media, Pass};

/// When a block read from the medium, the `index`th of the request, is there; passes are in order of sector.
fn last_of(pass: &Pass) -> u64 {
    pass.passed_ns(pass.sectors)
}

/// When the first `count` blocks of the request are in the buffer: `buffered` of them are from the start, the others come
/// with `passes`.
pub(super) fn available_ns(passes: &[Pass], buffered: u64, count: u64) -> u64 {
    let mut left = count.saturating_sub(buffered);
    let mut at = 0;
    for pass in passes {
        if left == 0 {
            break;
        }
        let here = left.min(pass.sectors);
        at = at.max(pass.passed_ns(here));
        left -= here;
    }
    at
}

/// When `count` blocks have gone out, begun at `start_ns`, each not before it is in the buffer.
pub(super) fn sent_ns(passes: &[Pass], count: u64, start_ns: u64, block_ns: u64) -> u64 {
    let mut end = start_ns + count * block_ns;
    let mut behind: u64 = 0;
    // From the last block back: a block that comes at t lets the bus end at t and what is left behind it.
    for pass in passes.iter().rev() {
        end = end.max(last_of(pass) + (behind + 1) * block_ns);
        behind += pass.sectors;
        end = end.max(pass.passed_ns(1) + behind * block_ns);
    }
    end
}

/// When `pass` has been written, its blocks coming over the bus: the first `before` blocks of the request go ahead of it,
/// the bus starts at `start_ns`. A block that is late is written a revolution later, and all behind it.
pub(super) fn written_ns(media: &Media, pass: &Pass, before: u64, start_ns: u64, block_ns: u64) -> u64 {
    let revolution_ns = media.rotation.revolution_ns();
    let mut slip = 0;
    let mut done = 0;
    while done < pass.sectors {
        // The gap between a block's arrival and its turn shrinks or grows evenly: look at the block that is due, then
        // find how far it goes well.
        let due = |index: u64| pass.passed_ns(index) + slip;
        let there = |index: u64| start_ns + (before + index + 1) * block_ns;
        if due(done) < there(done) {
            slip += (there(done) - due(done)).div_ceil(revolution_ns) * revolution_ns;
            continue;
        }
        let (mut good, mut bad) = (done, pass.sectors);
        if due(bad - 1) >= there(bad - 1) {
            done = bad;
            continue;
        }
        while bad - good > 1 {
            let middle = good.midpoint(bad);
            if due(middle) >= there(middle) { good = middle } else { bad = middle }
        }
        done = good + 1;
    }
    pass.passed_ns(pass.sectors) + slip
}
