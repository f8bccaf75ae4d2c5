//! The timed device against times worked out by hand.

use fairlift_sim::device::{Command, DeviceSpec};

use crate::harness::{flush, read};

/// 1 ms a command and 1 us a sector, flush 5 ms.
fn spec(channels: u32, seeks: &str, more: &str) -> DeviceSpec {
    let text = format!(
        "model = \"timed\"\nsectors = 1000\n[timing]\nchannels = {channels}\nfixed_us = 1000\nrate_mb_per_s = 512\n{seeks}\n\
         flush_us = 5000\n{more}\n[limits]\nqueue_depth = 32\nmax_kib = 64\nmax_segments = 16\n"
    );
    DeviceSpec::parse(&text, "timed.toml").expect("a device")
}

const NO_SEEKS: &str = "near_us = 0\nfar_us = 0";

/// When each of these, all sent at 0, is done: microseconds by tag.
fn times(spec: &DeviceSpec, commands: &[Command]) -> Vec<u64> {
    let mut device = spec.build(1);
    for (tag, command) in commands.iter().enumerate() {
        device.submit(Command { tag: tag as u32, ..*command }, 0);
    }
    let mut done = Vec::new();
    while let Some(at) = device.next_event() {
        device.advance(at, &mut done);
    }
    done.sort_by_key(|c| c.tag);
    done.iter().map(|c| c.at_ns / 1000).collect()
}

/// One sector is 512 bytes: 1 us at 512 MB/s.
#[test]
fn one_channel_serves_one_after_the_other() {
    assert_eq!(times(&spec(1, NO_SEEKS, ""), &[read(0, 8), read(500, 1), read(8, 100)]), [1008, 2009, 3109]);
}

#[test]
fn channels_serve_at_the_same_time() {
    let four = [read(0, 8), read(0, 16), read(0, 1), read(0, 1)];
    assert_eq!(times(&spec(2, NO_SEEKS, ""), &four), [1008, 1016, 2009, 2017]);
}

#[test]
fn a_flush_waits_for_all_and_all_wait_for_it() {
    let commands = [read(0, 8), read(0, 16), flush(), read(0, 1)];
    assert_eq!(times(&spec(2, NO_SEEKS, ""), &commands), [1008, 1016, 6016, 7017]);
}

/// Half of 1,000 sectors away: 2 ms + half of 8 ms. Where the last one ended: nothing.
#[test]
fn a_seek_is_linear_in_the_distance() {
    let commands = [read(500, 8), read(508, 8), read(16, 1)];
    let disk = spec(1, "near_us = 2000\nfar_us = 10000", "");
    // 500 of 1000: 6,000; 516 to 16: the same.
    assert_eq!(times(&disk, &commands), [7008, 8016, 8016 + 7001]);
}

/// The way there and back keeps no channel busy.
#[test]
fn the_path_delays_and_does_not_slow() {
    assert_eq!(times(&spec(1, NO_SEEKS, "path_us = 100"), &[read(0, 8), read(0, 8)]), [1108, 2116]);
}

#[test]
fn a_far_seek_cannot_be_shorter_than_a_near_one() {
    let text = "model = \"timed\"\nsectors = 1000\n[timing]\nchannels = 1\nfixed_us = 1\nrate_mb_per_s = 0\nnear_us = 9\nfar_us = 8\n\
                flush_us = 0\n[limits]\nqueue_depth = 32\nmax_kib = 64\nmax_segments = 16\n";
    let error = DeviceSpec::parse(text, "timed.toml").expect_err("refused").to_string();
    assert!(error.contains("timed.toml:8") && error.contains("at least timing.near_us"), "{error}");
}
