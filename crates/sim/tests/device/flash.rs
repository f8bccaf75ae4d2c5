//! The flash drive against its closed forms.

use fairlift_sim::device::rng::Rng;
use fairlift_sim::device::{Command, Device, DeviceSpec};

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

/// Drives made from measured rates: each of the six within 15 %.
#[test]
fn the_six_measured_rates_come_out_within_15_percent() {
    let mut drives = 0;
    for preset in fairlift_sim::device::PRESETS {
        let spec = DeviceSpec::load(preset.name).expect("a preset");
        let Some(measured) = spec.measured() else { continue };
        let ours = fairlift_sim::rates::of(&spec);
        let name = spec.name();
        assert_within(&format!("{name} rbps"), ours.read_bytes_per_s, measured.read_bytes_per_s, 0.15);
        assert_within(&format!("{name} wbps"), ours.write_bytes_per_s, measured.write_bytes_per_s, 0.15);
        assert_within(&format!("{name} rseqiops"), ours.read_seq_iops, measured.read_seq_iops, 0.15);
        assert_within(&format!("{name} rrandiops"), ours.read_random_iops, measured.read_random_iops, 0.15);
        assert_within(&format!("{name} wseqiops"), ours.write_seq_iops, measured.write_seq_iops, 0.15);
        assert_within(&format!("{name} wrandiops"), ours.write_random_iops, measured.write_random_iops, 0.15);
        drives += 1;
    }
    assert!(drives >= 6, "client, data centre, SATA, QLC");
}

/// The latencies of the same models are 1.5 times the 95th percentile with 2,048 requests in flight: by Little's law at least 1.5 times
/// 2,048 over the rate, and more as requests at random do not fall on the dies evenly. 970 PRO: 12.0 and 13.1 ms measured, 12.1 and 13.1
/// in the model. Of other drives the rest is not modelled: the least is 0.3 of what was measured (SN720, writes), the most 1.3 (990 PRO, reads).
#[test]
fn the_measured_latencies_are_mostly_the_benchs_own_queue() {
    for preset in fairlift_sim::device::PRESETS {
        let spec = DeviceSpec::load(preset.name).expect("a preset");
        let Some(measured) = spec.measured() else { continue };
        let ours = fairlift_sim::rates::of(&spec);
        for (what, latency_us, measured_us, per_s) in [
            ("read", ours.read_latency_us, measured.read_latency_us, ours.read_random_iops),
            ("write", ours.write_latency_us, measured.write_latency_us, ours.write_random_iops),
        ] {
            let queue_us = 1.5 * 2048.0 / per_s * 1e6;
            println!(
                "{} {what}: {latency_us:.0} us, measured {measured_us:.0}, queue {queue_us:.0}",
                preset.name
            );
            assert!(latency_us > 0.95 * queue_us && latency_us < 1.8 * queue_us, "{latency_us} {queue_us}");
            assert!((0.25..1.5).contains(&(latency_us / measured_us)), "{latency_us} {measured_us}");
        }
    }
}

/// The product guide's: 490,000 and 38,000 random reads and writes, 3.2 and 1.05 GB/s, 85 and 20 us alone.
#[test]
fn the_p4500_does_what_its_product_guide_says() {
    let spec = DeviceSpec::load("nvme-p4500").expect("a preset");
    assert!(!spec.limits().write_cache, "nothing is lost with the power");
    let rates = fairlift_sim::rates::of(&spec);
    assert_within("random reads", rates.read_random_iops, 490_000.0, 0.15);
    assert_within("random writes", rates.write_random_iops, 38_000.0, 0.15);
    assert_within("GB/s read", rates.read_bytes_per_s, 3.2e9, 0.05);
    assert_within("GB/s write", rates.write_bytes_per_s, 1.05e9, 0.05);
    let span = spec.limits().sectors;
    let reads = closed_loop(&mut *spec.build(1), 1, 100, 20_000, random_reads(span, 1));
    assert_within("us a read alone", reads.mean_ms * 1e3, 85.0, 0.03);
    let written = one(&mut *spec.build(1), write(800, 8), 0) as f64 / 1e3;
    assert_within("us a write alone", written, 20.0, 0.03);
}

/// The data sheet's: 465,000 random reads, 70,000 random writes, and a flush that has nothing to do.
#[test]
fn an_enterprise_drive_flushes_for_nothing() {
    let spec = DeviceSpec::load("nvme-enterprise").expect("a preset");
    assert!(!spec.limits().write_cache, "nothing is lost with the power");
    let rates = fairlift_sim::rates::of(&spec);
    assert_within("random reads", rates.read_random_iops, 465_000.0, 0.15);
    assert_within("random writes", rates.write_random_iops, 70_000.0, 0.15);
    let mut device = spec.build(1);
    let written = one(&mut *device, write(0, 8), 0);
    assert!(one(&mut *device, flush(), written) - written < 10_000);
}

#[test]
fn a_flash_drives_name_says_its_state() {
    let name = |changes: &str| changed("nvme-970evo", changes).name().to_owned();
    assert_eq!(DeviceSpec::load("flash-kd").expect("a preset").name(), "flash-kd (steady)");
    assert_eq!(DeviceSpec::load("nvme-970evo").expect("a preset").name(), "nvme-970evo (steady)");
    assert_eq!(name("[gc]\nstate = \"fresh\"\n"), "test (fresh)");
    assert_eq!(name("[gc]\nstate = \"sequential\"\n"), "test (sequential)");
}

/// A fresh drive takes random writes as fast as sequential ones; the steady one is the measured one.
#[test]
fn a_fresh_drive_has_nothing_to_collect() {
    let random = |spec: &DeviceSpec| {
        let mut reads = random_reads(800_000_000, 1);
        closed_loop(&mut *spec.build(1), 128, 20_000, 60_000, move || write(reads().sector, 8)).iops
    };
    let steady = random(&DeviceSpec::load("nvme-970evo").expect("a preset"));
    let fresh = random(&changed("nvme-970evo", "[gc]\nstate = \"fresh\"\n"));
    assert_within("steady", steady, 40_000.0, 0.15);
    assert!(fresh > 3.0 * steady, "{fresh} and {steady}");
}

/// A cache of 1 MiB, 32 pages: while it lasts a page takes 30 us, then 20 ms; two idle seconds later it is there again.
#[test]
fn an_slc_cache_fills_up_and_comes_back() {
    let text = |state: &str| {
        format!(
            "[slc]\nsize_mib = 1\nprogram_us = 30\nrecover_mb_per_s = 200\n[die]\nprogram_us = 20000\ncount = 1\n\
             [buffer]\nsize_kib = 32\n[gc]\nstate = \"{state}\"\n"
        )
    };
    let page = |device: &mut dyn Device, n: u64, now: u64| one(device, write(n * 64, 64), now);
    let pages = |device: &mut dyn Device, count: u64, from: u64| {
        (0..count).fold(from, |now, n| page(device, n, now)) - from
    };
    let mut device = changed("flash-kd", &text("fresh")).build(1);
    let fast = pages(&mut *device, 32, 0);
    assert!(fast < 10_000_000, "{fast}");
    let slow = pages(&mut *device, 10, fast);
    assert!(slow > 150_000_000, "{slow}: the cache is full");
    assert!(pages(&mut *device, 32, 2_500_000_000) < 10_000_000, "folded while idle");
    let mut steady = changed("flash-kd", &text("steady")).build(1);
    assert!(pages(&mut *steady, 32, 0) > 500_000_000, "a steady drive has none");
}

/// A read beside programs: one that suspends them does not wait for the program's 5 ms.
#[test]
fn reads_suspend_programs_where_the_drive_can() {
    let slow = "[die]\nprogram_us = 5000\ncount = 1\n";
    let wait = |suspend: &str| {
        let mut device =
            changed("flash-kd", &format!("{slow}{suspend}[gc]\nfilled_by = \"sequential\"\n")).build(1);
        let written = one(&mut *device, write(0, 64), 0);
        one(&mut *device, read(6400, 8), written) - written
    };
    assert!(wait("") > 4_900_000, "it waits for the program");
    assert!(wait("suspend_us = 30\n") < 200_000, "it suspends it");
}

/// Data sheet figures of p99.9 some 100 times the median: a share of writes takes 2 ms.
#[test]
fn a_share_of_writes_takes_much_longer() {
    let tail = "[tail]\nwrite_share = 0.01\nwrite_us = 2000\n";
    let mut device = changed("flash-kd", tail).build(1);
    let mut now = 0;
    let mut times: Vec<u64> = (0..2000)
        .map(|n| {
            let done = one(&mut *device, write(n * 8, 8), now);
            let took = done - now;
            now = done + 1_000_000;
            took
        })
        .collect();
    times.sort_unstable();
    assert!(times[1000] < 10_000 && times[1995] > 100 * times[1000], "{} {}", times[1000], times[1995]);
}

/// 4 KiB reads one behind the other are not free although the page is in the die's register: 345,000 a second were measured.
#[test]
fn sequential_small_reads_cost_the_firmware() {
    let mut device = DeviceSpec::load("nvme-970pro").expect("a preset").build(1);
    let outcome = closed_loop(&mut *device, 128, 20_000, 60_000, sequential(0, read(0, 8)));
    assert_within("IOPS", outcome.iops, 344_761.0, 0.05);
}

/// A memory of 64 MiB before the drive: what lies in it takes 10 us and the link; over four times as much a quarter is there.
#[test]
fn a_memory_before_the_drive_answers_its_share() {
    let spec = changed("flash-kd", "[cache]\nsize_mib = 64\nover_mib = 256\nread_us = 10\n");
    let inside = closed_loop(&mut *spec.build(1), 1, 20_000, 5000, random_reads(16_384, 1));
    assert_within("inside, us", inside.mean_ms * 1e3, 11.2, 0.01);
    let alone =
        closed_loop(&mut *changed("flash-kd", "").build(1), 1, 5000, 20_000, random_reads(524_288, 1));
    let around = closed_loop(&mut *spec.build(1), 1, 5000, 20_000, random_reads(524_288, 1));
    assert_within("around, ms", around.mean_ms, alone.mean_ms * 0.75 + 0.0112 * 0.25, 0.03);
}

/// Reads suspend programs, but not a collection that has begun: with one for every page a read behind a write waits for it.
#[test]
fn no_read_suspends_a_collection_that_has_begun() {
    let wait = |tail: &str| {
        let die = "[die]\nprogram_us = 500\ncount = 1\nsuspend_us = 30\n";
        let mut device = changed("flash-kd", &format!("{die}{tail}")).build(1);
        let written = one(&mut *device, write(0, 64), 0);
        one(&mut *device, read(6400, 8), written) - written
    };
    assert!(wait("") < 200_000, "nothing to wait for");
    let held_up = wait("[tail]\ncollect_share = 1\ncollect_us = 20000\n");
    assert!(held_up > 3_000_000, "{held_up} ns of a collection whose median is 20 ms");
}

/// p50 and p99.9 of random reads at depth 4 beside random writes at depth 4, and of the writes, milliseconds.
fn beside_each_other(preset: &str) -> [(f64, f64); 2] {
    let mut device = DeviceSpec::load(preset).expect("a preset").build(1);
    let mut random = Rng::new(7);
    let (mut since, mut waits, mut done, mut now) = ([0u64; 8], [vec![], vec![]], Vec::new(), 0);
    let mut submit = |device: &mut dyn Device, tag: u32, now: u64| {
        let sector = random.below(1 << 20) * 8;
        let command = if tag < 4 { read(sector, 8) } else { write(sector, 32) };
        device.submit(Command { tag, ..command }, now);
        now
    };
    for tag in 0..8 {
        since[tag as usize] = submit(&mut *device, tag, 0);
    }
    while waits[0].len() < 100_000 || waits[1].len() < 20_000 {
        now = device.next_event().unwrap_or(now);
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            let tag = completion.tag;
            waits[usize::from(tag >= 4)].push(completion.at_ns - since[tag as usize]);
            since[tag as usize] = submit(&mut *device, tag, completion.at_ns);
        }
    }
    waits.map(|mut waits| {
        waits.sort_unstable();
        (waits[waits.len() / 2] as f64 / 1e6, waits[waits.len() * 999 / 1000] as f64 / 1e6)
    })
}

/// resctl-bench measured a 970 PRO under a mixed load: reads of 0.135 ms (p50) and 4.5 ms (p99.9), writes of 0.045 and 8.5 ms. The load is not ours, so
/// the order of magnitude is judged: p99.9 of both lies some tens to hundreds of medians away.
#[test]
fn tails_of_reads_and_writes_beside_each_other_are_long() {
    let [reads, writes] = beside_each_other("nvme-970pro");
    assert!((0.05..0.3).contains(&reads.0) && (2.0..9.0).contains(&reads.1), "reads {reads:?}");
    assert!((0.01..0.1).contains(&writes.0) && (0.8..9.0).contains(&writes.1), "writes {writes:?}");
    let [reads, _] = beside_each_other("sata-ssd-870");
    assert!(reads.1 > 10.0 * reads.0, "reads of the SATA drive {reads:?}");
}
