//! The cloud volume against its published run and its closed forms.

use fairlift_sim::device::DeviceSpec;

use crate::harness::{assert_within, changed, closed_loop, random_reads, read, sequential};

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
