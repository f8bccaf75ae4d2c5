//! The cloud volume against its published run and its closed forms.

use fairlift_sim::device::DeviceSpec;

use crate::harness::{assert_within, changed, closed_loop, one, random_reads, read, sequential, write};

/// Published (gist niwinz/138c9ce4): 4 × 256 outstanding on a gp3 volume of 3,000 IOPS: 3,024 IOPS, mean 337 ms.
#[test]
fn gp3_with_4_times_256_outstanding_has_a_mean_of_337_ms() {
    let mut device = DeviceSpec::load("cloud-gp3").expect("a preset").build(1);
    let outcome = closed_loop(&mut *device, 1024, 5000, 200_000, random_reads(1_000_000_000, 1));
    assert_within("mean ms", outcome.mean_ms, 337.0, 0.02);
    assert_within("IOPS", outcome.iops, 3000.0, 0.01);
    assert_within("IOPS, published", outcome.iops, 3024.0, 0.01);
}

/// Large operations meet the byte bucket: 125 MiB/s.
#[test]
fn large_operations_are_limited_by_bytes() {
    let mut device = DeviceSpec::load("cloud-gp3").expect("a preset").build(1);
    let outcome = closed_loop(&mut *device, 32, 500, 20_000, sequential(0, read(0, 512)));
    assert_within("MiB/s", outcome.mb_per_s / 1.048576, 125.0, 0.01);
}

/// An operation of 1 MiB is charged as four: 100 operations per second are 25 of them.
#[test]
fn operations_above_256_kib_are_charged_by_the_unit() {
    let spec = changed(
        "cloud-gp3",
        "[operations]\nrate_per_s = 100\nburst = 4\n[bytes]\nrate_mib_per_s = 10000\n[limits]\nmax_kib = 1024\n",
    );
    let outcome = closed_loop(&mut *spec.build(1), 32, 100, 2000, sequential(0, read(0, 2048)));
    assert_within("IOPS", outcome.iops, 25.0, 0.01);
}

/// gp2: 3,000 IOPS from a bucket of 5.4 million credits, refilled at the base rate; then the base rate. With 300 IOPS
/// that is 5,400,000 / (3,000 − 300) = 2,000 s of burst.
#[test]
fn gp2_bursts_until_its_credits_are_gone() {
    let spec = changed("cloud-gp3", "[credits]\nsize = 5_400_000\nrate_per_s = 300\n");
    let mut device = spec.build(1);
    let burst = closed_loop(&mut *device, 64, 1000, 5_900_000, random_reads(1_000_000_000, 1));
    assert_within("IOPS in the burst", burst.iops, 3000.0, 0.01);
    let mut device = spec.build(1);
    let after = closed_loop(&mut *device, 64, 6_010_000, 100_000, random_reads(1_000_000_000, 1));
    assert_within("IOPS after it", after.iops, 300.0, 0.01);
}

/// Half reads, half writes, random.
fn mixed() -> impl FnMut() -> fairlift_sim::device::Command {
    let mut reads = random_reads(1_000_000, 1);
    let mut count = 0;
    move || {
        count += 1;
        let command = reads();
        if count % 2 == 0 { write(command.sector, 8) } else { command }
    }
}

/// Reads and writes have limits of their own: 100 of one and 1,000 of the other a second. In one queue the slower holds the
/// faster up; in two it does not.
#[test]
fn reads_and_writes_may_be_throttled_apart() {
    let own = "[read]\nrate_per_s = 1000\nrate_mib_per_s = 1000\nburst_ms = 1\n\
               [write]\nrate_per_s = 100\nrate_mib_per_s = 1000\nburst_ms = 1\n";
    let together = changed("cloud-gp3", own);
    let outcome = closed_loop(&mut *together.build(1), 64, 100, 4000, mixed());
    assert_within("IOPS, one queue", outcome.iops, 200.0, 0.02);
    let apart = changed("cloud-gp3", &format!("{own}[throttle]\napart = true\n"));
    let mut device = apart.build(1);
    let outcome = closed_loop(&mut *device, 64, 100, 10_000, random_reads(1_000_000, 1));
    assert_within("IOPS, reads alone", outcome.iops, 1000.0, 0.02);
}

/// The instance's limit lies above the volume's, and the lower of the two holds.
#[test]
fn an_instance_may_take_less_than_its_volume_gives() {
    let mut device = DeviceSpec::load("cloud-gp3-m5").expect("a preset").build(1);
    let outcome = closed_loop(&mut *device, 256, 1000, 50_000, random_reads(1_000_000_000, 1));
    assert_within("IOPS", outcome.iops, 3600.0, 0.01);
    let mut device = DeviceSpec::load("cloud-gp3-m5").expect("a preset").build(1);
    let outcome = closed_loop(&mut *device, 32, 200, 5000, sequential(0, read(0, 512)));
    assert_within("MB/s", outcome.mb_per_s, 81.25, 0.01);
}

/// Published: io2 Block Express below 0.5 ms on average, 4,000 MiB/s; pd-ssd 15,000 IOPS and 480 MiB/s of reads, 400 of writes.
#[test]
fn provisioned_volumes_give_what_is_published() {
    let mut io2 = DeviceSpec::load("cloud-io2").expect("a preset").build(1);
    let alone = closed_loop(&mut *io2, 1, 10, 5000, random_reads(1_000_000_000, 1));
    assert!(alone.mean_ms < 0.5, "{alone:?}");
    let many = closed_loop(&mut *io2, 256, 1000, 50_000, random_reads(1_000_000_000, 1));
    assert_within("IOPS", many.iops, 16_000.0, 0.01);
    let pd = || DeviceSpec::load("cloud-pd-ssd").expect("a preset").build(1);
    let many = closed_loop(&mut *pd(), 256, 1000, 50_000, random_reads(1_000_000_000, 1));
    assert_within("pd-ssd IOPS", many.iops, 15_000.0, 0.01);
    let reads = closed_loop(&mut *pd(), 64, 200, 5000, sequential(0, read(0, 512)));
    assert_within("pd-ssd reads, MiB/s", reads.mb_per_s / 1.048576, 480.0, 0.01);
    let writes = closed_loop(&mut *pd(), 64, 200, 5000, sequential(0, write(0, 512)));
    assert_within("pd-ssd writes, MiB/s", writes.mb_per_s / 1.048576, 400.0, 0.01);
}

/// QEMU lets a request go while the bucket is not overdrawn, and lets who comes next pay: the rate is the same, the first request
/// larger than the bucket goes at once.
#[test]
fn who_pays_afterwards_goes_at_once() {
    let small =
        "[bytes]\nrate_mib_per_s = 1\nburst_mib = 0.01\n[latency]\nmedian_us = 0\nsigma = 0\nflush_us = 0\n";
    let mut after = changed("qemu-throttle", small).build(1);
    assert_eq!(one(&mut *after, read(0, 2048), 0), 0);
    assert_within("the next, ms", one(&mut *after, read(0, 8), 0) as f64 / 1e6, 990.0, 0.01);
    let mut before = changed("qemu-throttle", &format!("{small}[throttle]\npays = \"before\"\n")).build(1);
    closed_loop(&mut *before, 4, 4, 40, sequential(0, read(0, 256)));
}

/// A disk behind a throttle looks like what the host says, not like what its model is.
#[test]
fn what_a_device_says_of_itself_stands_in_its_file() {
    let limits = *DeviceSpec::load("qemu-throttle").expect("a preset").limits();
    assert!(limits.rotational && limits.write_cache && !limits.fua);
    for preset in ["sata7200-2009", "flash-kd", "cloud-gp3", "san-nvram", "null"] {
        for fact in [true, false] {
            let text = format!("[limits]\nrotational = {fact}\nwrite_cache = {fact}\nfua = {fact}\n");
            let limits = *changed(preset, &text).limits();
            assert_eq!((limits.rotational, limits.write_cache, limits.fua), (fact, fact, fact), "{preset}");
        }
    }
}

/// One command in 100 takes 25 ms: the mean of commands of 1 ms is 1.24 ms.
#[test]
fn a_tail_is_a_part_of_all_commands() {
    let tail = "[latency]\nmedian_us = 1000\nsigma = 0\ntail_share = 0.01\ntail_us = 25000\n";
    let mut device = changed("cloud-gp3", tail).build(1);
    let outcome = closed_loop(&mut *device, 1, 1, 100_000, random_reads(1_000_000_000, 1));
    assert_within("mean ms", outcome.mean_ms, 1.24, 0.03);
    assert_within("longest ms", outcome.max_ms, 25.0, 0.01);
}

/// 400 operations a second looked at every 100 ms: 40 or 41 pass at once, the next waits for the period's end.
#[test]
fn a_period_lets_through_what_the_buckets_have_gathered() {
    let period = "[operations]\nrate_per_s = 400\nburst = 80\n[throttle]\nperiod_ms = 100\n\
                  [latency]\nmedian_us = 100\nsigma = 0\n";
    let spec = changed("cloud-gp3", period);
    let alone = closed_loop(&mut *spec.build(1), 1, 400, 4000, random_reads(1_000_000_000, 1));
    assert_within("IOPS", alone.iops, 400.0, 0.01);
    assert_within("longest, ms", alone.max_ms, 100.1, 0.001);
    // Two and a half milliseconds apart on the average, but nearly all of them take a tenth of one.
    assert_within("mean, ms", alone.mean_ms, 2.5, 0.01);
    let many = closed_loop(&mut *spec.build(1), 32, 400, 4000, random_reads(1_000_000_000, 1));
    assert_within("IOPS at depth 32", many.iops, 400.0, 0.01);
}
