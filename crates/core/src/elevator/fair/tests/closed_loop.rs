//! Tasks that send their next request when the last one is done, and what fair finds out about the device under them.

use super::machine::{Device, Load, Machine, READS};
use crate::context::IoPrio;
use crate::request::{Flags, Op};
use crate::{MS, SECOND};

const SERIAL: Device = Device { at_a_time: 1, access_ns: 2 * MS, seek_ns: 0, slots: 32, rotational: false };
const FLASH: Device = Device { at_a_time: 16, access_ns: MS / 10, seek_ns: 0, slots: 64, rotational: false };
const DISK: Device = Device { at_a_time: 1, access_ns: MS / 2, seek_ns: 6 * MS, slots: 31, rotational: true };

/// A reader of one block at a time beside one of 32, on a device that takes 32 and serves them one after the other: it waits for
/// what is being served and for one more, not for 32.
#[test]
fn nobody_waits_behind_a_deep_neighbour_in_the_device() {
    let mut machine = Machine::new(SERIAL);
    let light = machine.task(READS);
    let deep = machine.task(Load { depth: 32, ..READS });
    machine.run(2 * SECOND);
    machine.forget();
    machine.run(5 * SECOND);
    let (longest_ns, _) = machine.waited_ns(light);
    assert!(longest_ns <= 4 * SERIAL.access_ns, "{} us", longest_ns / 1000);
    let per_s = [light, deep].map(|task| machine.done(task) / 5);
    assert!(per_s[0] + per_s[1] >= 498, "{per_s:?}: the device is kept busy");
    assert!(per_s[0] >= 160, "{per_s:?}");
}

/// Writes past the page cache are sync as well, and no more urgent than reads: a deep writer does not go first again and again.
#[test]
fn a_deep_writer_past_the_page_cache_is_not_urgent() {
    let mut machine = Machine::new(SERIAL);
    let light = machine.task(READS);
    machine.task(Load { op: Op::Write, flags: Flags::SYNC, depth: 32, ..READS });
    machine.run(2 * SECOND);
    machine.forget();
    machine.run(5 * SECOND);
    assert!(machine.done(light) >= 800, "{}", machine.done(light));
}

/// What is found holds still: on each device the depth is what it gains from after two seconds, and stays, but for a short trial
/// every ten seconds.
#[test]
fn the_depth_is_found_within_two_seconds_and_stays() {
    for (device, least, most) in [(SERIAL, 1, 2), (FLASH, 8, 32)] {
        let mut machine = Machine::new(device);
        machine.task(READS);
        machine.task(Load { depth: 64, ..READS });
        machine.run(2 * SECOND);
        let mut depths = std::vec::Vec::new();
        for _ in 0..100 {
            machine.run(SECOND / 10);
            depths.push(machine.found().depth[0]);
        }
        let usual = depths[0];
        assert!((least..=most).contains(&usual), "{depths:?}");
        assert!(depths.iter().filter(|depth| **depth != usual).count() <= 3, "{depths:?}");
    }
}

/// A task that is alone fills the device.
#[test]
fn who_is_alone_is_not_held_back() {
    let mut machine = Machine::new(FLASH);
    let deep = machine.task(Load { depth: 64, ..READS });
    machine.run(SECOND);
    assert!(machine.done(deep) >= 159_000, "{}", machine.done(deep));
}

/// With two tasks the deep one keeps what the device can do but for what the light one uses.
#[test]
fn a_device_that_serves_many_at_a_time_is_kept_full() {
    let mut machine = Machine::new(FLASH);
    let light = machine.task(Load { think_ns: 2 * MS, ..READS });
    let deep = machine.task(Load { depth: 64, ..READS });
    machine.run(2 * SECOND);
    machine.forget();
    machine.run(SECOND);
    assert!(machine.done(deep) >= 120_000, "{}", machine.done(deep));
    let (_, mean_ns) = machine.waited_ns(light);
    assert!(mean_ns <= 2 * FLASH.access_ns, "{mean_ns}");
}

/// Streams have turns where seeks cost time: two of them get what one gets alone, but for a tenth, and each its half.
#[test]
fn streams_are_kept_whole_on_a_disk() {
    let mut machine = Machine::new(DISK);
    let streams = [0; 2].map(|_| machine.task(Load { sequential: true, think_ns: MS / 10, ..READS }));
    machine.run(2 * SECOND);
    machine.forget();
    machine.run(10 * SECOND);
    let alone = 10 * SECOND / (DISK.access_ns + MS / 10);
    let got = streams.map(|stream| machine.done(stream));
    assert!((got[0] + got[1]) * 10 >= alone * 9, "{got:?} of {alone}");
    assert!(machine.permille(streams[0]).abs_diff(500) <= 20, "{}", machine.permille(streams[0]));
}

/// A task with four random reads at a time gets its half beside a stream: its turn lasts while the device has its requests, though none
/// of them is queued then.
#[test]
fn a_turn_lasts_while_its_requests_are_in_the_device() {
    let mut machine = Machine::new(DISK);
    let deep = machine.task(Load { depth: 4, ..READS });
    machine.task(Load { sequential: true, depth: 2, ..READS });
    machine.run(2 * SECOND);
    machine.forget();
    machine.run(10 * SECOND);
    // Each of its requests takes 6.5 ms: half of the time is 77 a second.
    assert!((700..=840).contains(&machine.done(deep)), "{}", machine.done(deep));
}

/// A task that reads one block after the other, at random, gets its half beside a stream with long turns: not one request a turn.
#[test]
fn a_single_request_flow_gets_its_due_beside_long_turns() {
    let mut machine = Machine::new(DISK);
    let stream = machine.task(Load { sequential: true, depth: 2, ..READS });
    let random = machine.task(Load { think_ns: MS / 50, ..READS });
    machine.run(2 * SECOND);
    machine.forget();
    machine.run(10 * SECOND);
    // Each of its requests takes 6.5 ms: half of the time is 77 a second.
    assert!(machine.done(random) >= 700, "{} beside {}", machine.done(random), machine.done(stream));
}

/// Where a jump costs nothing nobody is waited for.
#[test]
fn nobody_is_waited_for_where_it_does_not_pay() {
    let mut machine = Machine::new(SERIAL);
    machine.task(Load { sequential: true, think_ns: MS, ..READS });
    let deep = machine.task(Load { depth: 4, ..READS });
    machine.run(2 * SECOND);
    machine.forget();
    machine.run(2 * SECOND);
    assert_eq!(machine.found().turn_ns, 0);
    assert!(machine.permille(deep) >= 500, "{}", machine.permille(deep));
}

/// A loop of writes that somebody waits for goes through a stream's turns.
#[test]
fn a_write_that_somebody_waits_for_goes_through_a_streams_turn() {
    let mut machine = Machine::new(DISK);
    machine.task(Load { sequential: true, depth: 2, ..READS });
    let writer = machine.task(Load {
        op: Op::Write,
        flags: Flags::SYNC.or(Flags::NOIDLE),
        think_ns: 200 * MS,
        ..READS
    });
    machine.run(SECOND);
    machine.forget();
    machine.run(10 * SECOND);
    let (longest_ns, _) = machine.waited_ns(writer);
    // What is in the device, and itself: two requests of the stream, one of them with a seek.
    assert!(longest_ns <= 2 * (DISK.access_ns + DISK.seek_ns) + DISK.access_ns, "{} us", longest_ns / 1000);
}

/// A reader that wants far less than its part waits for what is in the device, not for a stream's turn.
#[test]
fn a_light_reader_goes_through_a_streams_turn() {
    let mut machine = Machine::new(DISK);
    let stream = machine.task(Load { sequential: true, depth: 2, ..READS });
    let light = machine.task(Load { think_ns: 100 * MS, ..READS });
    machine.run(2 * SECOND);
    machine.forget();
    machine.run(10 * SECOND);
    let (longest_ns, _) = machine.waited_ns(light);
    assert!(longest_ns <= 3 * (DISK.access_ns + DISK.seek_ns), "{} us", longest_ns / 1000);
    // It costs the stream two seeks each time, 13 ms in 106.
    let alone = 10 * SECOND / DISK.access_ns;
    assert!(machine.done(stream) * 100 >= alone * 85, "{} of {alone}", machine.done(stream));
}

/// Light readers pay for what their going at once costs a stream to come back: four that would take all of the device that way
/// leave the stream its part.
#[test]
fn going_at_once_is_paid_by_who_does() {
    let mut machine = Machine::new(DISK);
    let stream = machine.task(Load { sequential: true, depth: 2, ..READS });
    (0..4).for_each(|_| _ = machine.task(Load { think_ns: 45 * MS, ..READS }));
    machine.run(2 * SECOND);
    machine.forget();
    machine.run(10 * SECOND);
    let alone = 10 * SECOND / DISK.access_ns;
    assert!(machine.done(stream) * 5 >= alone, "{} of {alone}", machine.done(stream));
}

#[test]
fn parts_go_by_level() {
    let mut machine = Machine::new(SERIAL);
    let [high, low] =
        [0, 7].map(|level| machine.task(Load { depth: 8, ioprio: IoPrio::BestEffort(level), ..READS }));
    machine.run(2 * SECOND);
    machine.forget();
    machine.run(20 * SECOND);
    assert!(machine.permille(high).abs_diff(818) <= 10, "{} of 9/11", machine.permille(high));
    assert!(machine.permille(low).abs_diff(182) <= 10, "{} of 2/11", machine.permille(low));
}

/// When turns begin to pay, each of sixteen streams is about to have its first: a reader of one block goes between them all the same, and not
/// after all of them.
#[test]
fn the_first_turns_of_streams_are_not_all_before_a_short_request() {
    let mut machine =
        Machine::new(Device { at_a_time: 1, access_ns: MS, seek_ns: 8 * MS, slots: 31, rotational: true });
    let random = machine.task(READS);
    for _ in 0..16 {
        machine.task(Load { sequential: true, ..READS });
    }
    machine.run(4 * SECOND);
    let (longest_ns, _) = machine.waited_ns(random);
    assert!(longest_ns <= SECOND, "{} ms", longest_ns / MS);
}
