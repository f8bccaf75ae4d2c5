//! The shingled drive: what its media cache takes, and what it costs later.

use fairlift_sim::device::rng::Rng;
use fairlift_sim::device::{Command, Device, DeviceSpec};

use crate::harness::{MS, assert_within, changed, closed_loop, one, read, sequential, write};

/// A media cache that is full after 500 writes.
const SMALL: &str = "[media_cache]\nwrites = 500\n";
/// The outer thousandth, so that bands and log have one rate.
const SPAN: u64 = 15_000_000;

fn random_writes(seed: u64) -> impl FnMut() -> Command {
    let mut rng = Rng::new(seed);
    move || write(rng.below(SPAN / 8) * 8, 8)
}

/// Until the cache is full random writes run faster than any disk's arm: 500 go as entries of many. Then each write waits until a
/// band is cleaned: the write is read from the log, the band is read and written, twice 30 MiB at 190 MB/s.
#[test]
fn random_writes_are_fast_until_the_media_cache_is_full() {
    let spec = changed("shingled8t", SMALL);
    let fast = closed_loop(&mut *spec.build(1), 31, 50, 400, random_writes(1));
    assert!(fast.iops > 1000.0, "{fast:?}");
    let slow = closed_loop(&mut *spec.build(1), 31, 1500, 60, random_writes(1));
    let clean_s = 2.0 * 31.457 / 190.0 + 0.045;
    assert_within("writes a second", slow.iops, 1.0 / clean_s, 0.2);
}

/// A stream from a band's start on goes past the cache, at the rate of the medium.
#[test]
fn sequential_writes_go_past_the_cache() {
    let spec = changed("shingled8t", SMALL);
    let stream = closed_loop(&mut *spec.build(1), 4, 200, 2000, sequential(0, write(0, 2048)));
    assert_within("MB/s", stream.mb_per_s, 190.0, 0.03);
}

/// What was written to the cache is read from there, piece by piece, until the drive has been idle.
#[test]
fn scattered_writes_make_a_sequential_read_slow_until_they_are_cleaned() {
    let spec = DeviceSpec::load("shingled8t").expect("a preset");
    let large = read(0, 2048);
    let clean_ms = one(&mut *spec.build(1), large, 0) as f64 / MS;
    let mut device = spec.build(1);
    let mut now = 0;
    for place in 0..20 {
        now = one(&mut *device, write(place * 100 + 8, 8), now);
    }
    // The drive's buffer has to be empty: 500 ms later it is, and no cleaning has begun.
    now = idle_until(&mut *device, now + 500_000_000);
    let read_at = one(&mut *device, large, now);
    let scattered_ms = (read_at - now) as f64 / MS;
    assert!(scattered_ms > 5.0 * clean_ms, "{scattered_ms} ms, without writes {clean_ms}");
    now = idle_until(&mut *device, read_at + 60_000_000_000);
    // The band is whole again: a revolution more or less is the platter's angle.
    let again_ms = (one(&mut *device, large, now) - now) as f64 / MS;
    assert!(
        again_ms < clean_ms + 40.0 && again_ms < scattered_ms / 2.0,
        "{again_ms} ms, never written {clean_ms}"
    );
}

/// Let the device do what it does by itself.
fn idle_until(device: &mut dyn Device, until: u64) -> u64 {
    let mut done = Vec::new();
    while let Some(at) = device.next_event().filter(|&at| at <= until) {
        device.advance(at, &mut done);
    }
    device.advance(until, &mut done);
    assert!(done.is_empty());
    until
}
