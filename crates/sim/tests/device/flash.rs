//! The flash drive against its closed forms.

use fairlift_sim::device::rng::Rng;
use fairlift_sim::device::{Device, DeviceSpec};

use crate::harness::{
    MS, assert_within, changed, closed_loop, flush, one, random_reads, read, sequential, write,
};

const SPAN: u64 = 1_000_215_216;
/// 970 PRO: firmware D, sensing S, 4 KiB over the channel (5.12) and the link (1.22), microseconds.
const D: f64 = 21.5;
const S: f64 = 36.0;
const TRANSFER: f64 = 5.12 + 1.22;
const DIES: f64 = 16.0;

fn flash() -> Box<dyn Device> {
    DeviceSpec::load("flash-kd").expect("a preset").build(1)
}

/// D + S + transfer = 21.5 + 36 + 6 = 64 us.
#[test]
fn one_read_alone_takes_64_us() {
    let outcome = closed_loop(&mut *flash(), 1, 100, 50_000, random_reads(SPAN, 1));
    assert_within("us at depth 1", outcome.mean_ms * 1e3, D + S + TRANSFER, 0.03);
    assert_within("us at depth 1, published", outcome.mean_ms * 1e3, 64.0, 0.03);
}

/// 16 dies / 36 us = 444,000 reads per second. Random pages leave a die idle now and then, so the depth is large.
#[test]
fn saturated_it_reads_444_thousand_pages_a_second() {
    let outcome = closed_loop(&mut *flash(), 1000, 5000, 400_000, random_reads(SPAN, 2));
    assert_within("IOPS saturated", outcome.iops, DIES / S * 1e6, 0.03);
}

/// With a link too narrow for the dies the rate is B / 4 KiB.
#[test]
fn a_narrow_link_caps_the_rate() {
    let spec = changed("flash-kd", "[link]\nrate_mb_per_s = 560\n");
    let outcome = closed_loop(&mut *spec.build(1), 256, 5000, 200_000, random_reads(SPAN, 3));
    assert_within("IOPS through 560 MB/s", outcome.iops, 560e6 / 4096.0, 0.03);
}

/// The knee is where the line of depth 1 meets saturation: k·(1 + (D + transfer)/S) commands.
#[test]
fn the_knee_lies_where_latency_and_saturation_lines_meet() {
    let alone = closed_loop(&mut *flash(), 1, 100, 50_000, random_reads(SPAN, 4));
    let full = closed_loop(&mut *flash(), 1000, 5000, 400_000, random_reads(SPAN, 5));
    let knee = full.iops * alone.mean_ms / 1e3;
    assert_within("commands at the knee", knee, DIES * (1.0 + (D + TRANSFER) / S), 0.03);
}

/// Little's law at every depth: mean latency times rate is the depth.
#[test]
fn littles_law_holds() {
    for depth in [1, 4, 16, 64, 256] {
        let outcome = closed_loop(&mut *flash(), depth, 2000, 100_000, random_reads(SPAN, 6));
        assert_within("depth", outcome.iops * outcome.mean_ms / 1e3, f64::from(depth), 0.01);
    }
}

/// Steady random overwrites: dies · page / (program + (WA − 1)·(read + program) + erase·WA/block), with WA = 7.8 for 7 %.
#[test]
fn steady_random_writes_run_at_the_drain_rate() {
    let mut rng = Rng::new(8);
    let outcome = closed_loop(&mut *flash(), 32, 20_000, 200_000, || write(rng.below(SPAN / 8) * 8, 8));
    let wa = 7.80;
    let per_page_us = 185.0 + (wa - 1.0) * (36.0 + 185.0) + 3000.0 * wa / 256.0;
    assert_within("MB/s written", outcome.mb_per_s, DIES * 32_768.0 / per_page_us, 0.03);
}

/// A drive filled sequentially has no garbage to collect: dies · page / program.
#[test]
fn a_sequentially_filled_drive_writes_at_the_program_rate() {
    let spec = changed("flash-kd", "[gc]\nfilled_by = \"sequential\"\n");
    let outcome = closed_loop(&mut *spec.build(1), 32, 1000, 40_000, sequential(0, write(0, 256)));
    assert_within("MB/s written", outcome.mb_per_s, DIES * 32_768.0 / 185.0, 0.03);
}

/// The write buffer acknowledges in 4.0 + 0.46 us and the link.
#[test]
fn a_buffered_write_takes_5_7_us_and_a_flush_a_program() {
    let mut device = flash();
    let done = one(&mut *device, write(0, 8), 0);
    assert_within("us per write", done as f64 / 1e3, 4.0 + 0.46 + 1.22, 0.01);
    let flushed = one(&mut *device, flush(), done);
    assert_within("us per flush", (flushed - done) as f64 / 1e3, 185.0 + 20.0, 0.01);
}

/// Garbage collection in one piece gives the same rate and a far longer worst read.
#[test]
fn unsliced_garbage_collection_shows_in_the_tail() {
    let run = |work: &str| {
        let spec = changed("flash-kd", &format!("[gc]\nwork = \"{work}\"\n"));
        let mut rng = Rng::new(13);
        let mut device = spec.build(1);
        closed_loop(&mut *device, 8, 20_000, 400_000, || {
            let sector = rng.below(SPAN / 8) * 8;
            if rng.below(4) == 0 { write(sector, 8) } else { read(sector, 8) }
        })
    };
    let (sliced, whole) = (run("sliced"), run("whole"));
    println!("sliced {sliced:?}, whole {whole:?}");
    assert!(whole.max_ms > 4.0 * sliced.max_ms);
}

/// Sizes from 512 bytes to a MiB complete, and large reads reach the link's rate.
#[test]
fn large_reads_run_at_the_links_rate() {
    let outcome = closed_loop(&mut *flash(), 8, 100, 20_000, sequential(0, read(0, 2048)));
    assert_within("MB/s read", outcome.mb_per_s, 3360.0, 0.03);
    let mut device = flash();
    let small = one(&mut *device, read(3, 1), 0) as f64 / MS;
    assert!(small < 0.1);
}
