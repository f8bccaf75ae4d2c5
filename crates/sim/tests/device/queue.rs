//! What a disk's firmware does with the commands in its queue: when it chooses, how many it orders, how long a stream goes first, what
//! written data has to do with reads.

use fairlift_sim::device::{Command, Completion, DeviceSpec};

use crate::harness::{MS, assert_within, changed, closed_loop, one, random_reads, read, write};

/// The V10 letter of the IO controller: of two jobs of random reads no read takes longer than 51 ms, of four 2,344. With two in the queue
/// the one that waits goes next if the firmware chooses when its heads come free, for the other's next read has not come yet.
#[test]
fn of_two_random_readers_none_waits_for_more_than_two_reads_where_the_firmware_chooses_at_once() {
    let longest = |chooses: &str, depth: u32| {
        let text = format!("[firmware]\norder = \"sstf\"\nageing_ms = 0\nchooses = \"{chooses}\"\n");
        let mut device = changed("sata7200-2009", &text).build(1);
        closed_loop(&mut *device, depth, 100, 20_000, random_reads(1_900_000_000, 5)).max_ms
    };
    let (two, late, eight) = (longest("at-once", 2), longest("late", 2), longest("at-once", 8));
    println!("two at once {two:.0} ms, late {late:.0} ms, eight at once {eight:.0} ms");
    // The longest seek, a revolution and the overhead, twice.
    assert!(two < 2.0 * (16.0 + 8.4 + 0.3), "{two}");
    assert!(late > 3.0 * two && eight > 4.0 * two, "{late} {eight}");
}

/// A firmware that orders the oldest few only gains nothing from commands behind them; one that orders a single one is first come,
/// first served.
#[test]
fn commands_behind_the_ordered_ones_gain_nothing() {
    let rate = |firmware: &str, depth: u32| {
        let mut device = changed("sata7200-2009", &format!("[firmware]\n{firmware}\n")).build(1);
        closed_loop(&mut *device, depth, 200, 20_000, random_reads(1_900_000_000, 5)).iops
    };
    // Depth 8 offers seven to choose from, as the eighth comes when one is done.
    let (eight, thirty_one) =
        (rate("sorts = 7\nchooses = \"at-once\"", 8), rate("sorts = 7\nchooses = \"at-once\"", 31));
    assert_within("31 deep, 7 ordered, as 8 deep", thirty_one, eight, 0.02);
    assert!(rate("chooses = \"at-once\"", 31) > 1.3 * thirty_one);
    assert_within("one ordered", rate("sorts = 1", 31), rate("order = \"fifo\"", 31), 1e-9);
}

/// The ST2000DM006: 58 reads a second at depth 1, 94 at depth 32; 99.9 % of its reads at depth 1 within 103 ms. All three were fitted, so
/// this holds the preset to what it was fitted to; that the rate grows no more from depth 8 on is the model's prediction.
#[test]
fn the_desktop_disk_of_2016_goes_from_58_to_94_reads_a_second() {
    let spec = DeviceSpec::load("desktop2t").expect("a preset");
    let at = |depth: u32| {
        let reads = random_reads(spec.limits().sectors, 7);
        closed_loop(&mut *spec.build(1), depth, 200, 40_000, reads)
    };
    let (one, all) = (at(1), at(31));
    assert_within("reads a second, depth 1", one.iops, 58.0, 0.03);
    assert_within("reads a second, depth 31", all.iops, 94.0, 0.03);
    assert_within("99.9th percentile, ms, depth 1", one.p999_ms, 103.0, 0.10);
    assert_within("depth 8 over 31", at(8).iops, all.iops, 0.02);
}

/// What a database of depth 4 (8 KiB) gets beside a backup (256 KiB sequential, depth 2): its reads a second and longest wait, ms, and
/// the backup's MB/s, over 30 s.
fn database_beside_backup(preset: &str, firmware: &str) -> (f64, f64, f64) {
    let mut device = changed(preset, &format!("[firmware]\n{firmware}\n")).build(1);
    let mut draw = random_reads(1_900_000_000, 3);
    let mut database = move || Command { sectors: 16, ..draw() };
    let (mut next, mut reads, mut longest, mut since, mut now) = (0u64, 0u32, 0u64, [0u64; 4], 0u64);
    let mut done: Vec<Completion> = Vec::new();
    for tag in 0..4 {
        device.submit(Command { tag, ..database() }, 0);
    }
    for tag in 4..6 {
        device.submit(Command { tag, ..read(next, 512) }, 0);
        next += 512;
    }
    while now < 30_000_000_000 {
        now = device.next_event().expect("six commands are in the device");
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            let tag = completion.tag;
            if let Some(since) = since.get_mut(tag as usize) {
                reads += 1;
                longest = longest.max(now - *since);
                *since = now;
                device.submit(Command { tag, ..database() }, now);
            } else {
                device.submit(Command { tag, ..read(next, 512) }, now);
                next += 512;
            }
        }
    }
    let outcome = (f64::from(reads) / 30.0, longest as f64 / MS, next as f64 * 512.0 / 30e6);
    println!(
        "{preset} {firmware:?}: {:.0} reads/s, longest {:.0} ms, backup {:.0} MB/s",
        outcome.0, outcome.1, outcome.2
    );
    outcome
}

/// OpenZFS issue 15270 and pull request 11166: drives serve a stream first, until a deadline of 1 to 4 s; an older drive (issue 10253)
/// did not. `stream_ms` is where a drive stands between the two.
#[test]
fn a_stream_goes_first_for_as_long_as_the_firmware_lets_it() {
    let with = |firmware: &str| {
        database_beside_backup("sata7200-2009", &format!("chooses = \"at-once\"\n{firmware}"))
    };
    let (starved, late, all) = with("");
    let (some, longest, backup) = with("stream_ms = 100");
    let (most, _, least) = with("stream_ms = 1");
    assert!(starved < 15.0 && late > 900.0 && all > 90.0, "{starved} {late} {all}");
    assert!(some > 5.0 * starved && longest < 400.0, "{some} {longest}");
    assert!(backup > 20.0 && backup < 0.8 * all, "{backup} {all}");
    assert!(most > 1.2 * some && least < 0.7 * backup, "{most} {least}");
}

/// How long 30 random reads take, two at a time, once 160 pieces fill five eighths of the write cache, ms.
fn reads_beside_a_filled_cache(cache: &str) -> f64 {
    let mut device = changed("sata7200-2009", &format!("[write_cache]\n{cache}\n")).build(1);
    let (mut draw, mut now) = (random_reads(1_900_000_000, 9), 0);
    for _ in 0..160 {
        now = one(&mut *device, Command { tag: 0, ..write(draw().sector, 8) }, now);
    }
    let (start, mut done) = (now, Vec::new());
    (0..2).for_each(|tag| device.submit(Command { tag, ..draw() }, start));
    let mut reads = 0;
    while reads < 30 {
        now = device.next_event().expect("two reads are in the device");
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            reads += 1;
            device.submit(Command { tag: completion.tag, ..draw() }, now);
        }
    }
    (now - start) as f64 / MS
}

/// Written data that fills more than half of the cache goes to the medium between the reads; one that has to be fuller, or that goes
/// after all reads, leaves them alone; in one order with the reads the many near pieces come before the far reads.
#[test]
fn reads_beside_a_filled_write_cache_are_as_slow_as_its_drain_makes_them() {
    let turns = reads_beside_a_filled_cache("drain = \"turns\"");
    let after = reads_beside_a_filled_cache("drain = \"after\"");
    let fuller = reads_beside_a_filled_cache("drain_from = 0.7");
    let together = reads_beside_a_filled_cache("drain = \"together\"");
    println!("turns {turns:.0} ms, after {after:.0}, from 0.7 {fuller:.0}, together {together:.0}");
    assert!(turns > 1.3 * after, "{turns} {after}");
    assert!((after - fuller).abs() < 1e-6, "{after} {fuller}");
    assert!(together > turns, "{together}");
}
