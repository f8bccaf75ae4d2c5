//! The pace of writes, on a drive that acknowledges them before it is done.

use super::super::pace::Pace;
use crate::{MS, SECOND};

const SECTORS: u32 = 64;
const FAST_NS: u64 = MS / 50;

/// A drive with room for `room` writes that is done with one every `drains_ns`; a task that writes the next as soon as it may.
struct Drive {
    pace: Pace,
    now: u64,
    room: u64,
    drains_ns: u64,
    /// When what is in the buffer will have left it.
    empty_ns: u64,
}

impl Drive {
    fn new(drains_ns: u64) -> Drive {
        Drive { pace: Pace::NEW, now: 1, room: 32, drains_ns, empty_ns: 0 }
    }

    /// Write for so long: how many, and for how many the buffer was full.
    fn write(&mut self, span_ns: u64) -> (u64, u64) {
        let (end, mut writes, mut full) = (self.now + span_ns, 0, 0);
        while self.now < end {
            self.now = self.now.max(self.pace.next_ns());
            self.pace.sent(SECTORS, self.now);
            let (sent, room_ns) = (self.now, self.room * self.drains_ns);
            self.empty_ns = self.empty_ns.max(sent) + self.drains_ns;
            let accepted = sent.max(self.empty_ns.saturating_sub(room_ns));
            full += u64::from(accepted > sent);
            self.now = accepted + FAST_NS;
            self.pace.done(SECTORS, self.now - sent, true, self.now);
            writes += 1;
        }
        (writes, full)
    }
}

/// Once it was full, seven eighths of what it takes go out, and it is not full again for half a minute.
#[test]
fn writes_go_at_seven_eighths_of_what_the_drive_takes() {
    let mut drive = Drive::new(MS / 5);
    drive.write(SECOND);
    let (writes, full) = drive.write(20 * SECOND);
    assert!((80_000..=89_000).contains(&writes), "{writes}");
    assert!(full <= writes / 100, "{full} of {writes}");
}

/// It is measured again: a drive that has become twice as fast is used after half a minute.
#[test]
fn a_faster_drive_is_noticed() {
    let mut drive = Drive::new(MS / 5);
    drive.write(SECOND);
    drive.drains_ns = MS / 10;
    drive.write(35 * SECOND);
    let (writes, _) = drive.write(10 * SECOND);
    assert!(writes >= 80_000, "{writes}");
}

/// And one that has become slower at once.
#[test]
fn a_slower_drive_is_noticed() {
    let mut drive = Drive::new(MS / 5);
    drive.write(SECOND);
    drive.drains_ns = 2 * MS / 5;
    drive.write(2 * SECOND);
    let (writes, full) = drive.write(10 * SECOND);
    assert!(full <= writes / 20, "{full} of {writes}");
}

/// A drive that takes all that comes has no pace.
#[test]
fn a_drive_that_is_never_full_is_not_held_back() {
    let mut drive = Drive::new(FAST_NS / 2);
    let (writes, full) = drive.write(SECOND);
    assert_eq!((full, drive.pace.of_32_kib_ns()), (0, 0));
    assert!(writes >= SECOND / FAST_NS - 1, "{writes}");
}

/// Whoever sends one at a time, and long before the drive is full, is not held back to the rate it has.
#[test]
fn who_writes_slowly_sets_no_pace() {
    let mut pace = Pace::NEW;
    for write in 1..10_000_u64 {
        let took_ns = if write == 1 { FAST_NS } else { 20 * FAST_NS };
        pace.sent(SECTORS, write * MS);
        pace.done(SECTORS, took_ns, false, write * MS + took_ns);
    }
    assert_eq!(pace.of_32_kib_ns(), 0);
}
