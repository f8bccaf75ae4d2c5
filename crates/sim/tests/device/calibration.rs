//! The rotational calibration table: random 4 KiB reads in the first part of the cylinders, closed loop. The
//! published figures come from an independent simulation of the same parameters: IOPS, and the longest wait in seconds.

use fairlift_sim::device::DeviceSpec;

use crate::harness::{Outcome, changed, closed_loop, random_reads};

/// A row: preset, share of the cylinders, IOPS at QD 1, SPTF 4, 8, 16, 31, C-LOOK 31; the longest wait of SPTF 31; IOPS
/// and longest wait of SPTF 31 with ageing over 500 ms.
struct Row {
    preset: &'static str,
    span: f64,
    sptf: [(u32, f64); 5],
    c_look: f64,
    wait_s: f64,
    aged: f64,
    aged_wait_s: f64,
}

/// A cell may differ by so much.
const TOLERANCE: f64 = 0.07;
/// The longest wait of a run is an extreme: within a factor.
const WAIT_FACTOR: f64 = 2.0;
const REQUESTS: u64 = 60_000;

fn run(preset: &str, span: f64, depth: u32, firmware: &str) -> Outcome {
    let limits = if depth > 31 { "" } else { "[limits]\nqueue_depth = 31\n" };
    let spec: DeviceSpec = changed(preset, &format!("[firmware]\n{firmware}\n{limits}"));
    let geometry = spec.disk_geometry().expect("a disk");
    let cylinders = (f64::from(geometry.cylinders()) * span) as u32;
    let sectors = if span == 1.0 { geometry.sectors() } else { geometry.sectors_before_cylinder(cylinders) };
    let mut device = spec.build(1);
    closed_loop(&mut *device, depth, 500, REQUESTS, random_reads(sectors, 42))
}

fn check(row: &Row) {
    const PLAIN: &str = "order = \"sptf\"\nageing_ms = 0\ndeadline_ms = 0";
    let mut wrong = Vec::new();
    let mut cell = |name: String, ours: f64, published: f64| {
        let off = (ours / published - 1.0) * 100.0;
        println!(
            "{:<14} {:>5} % {name:<12} ours {ours:6.1} published {published:6.1} {off:+.1} %",
            row.preset,
            row.span * 100.0
        );
        if (ours / published - 1.0).abs() > TOLERANCE {
            wrong.push(format!("{name}: {ours:.1} vs {published}"));
        }
    };
    let mut wait = 0.0;
    for (depth, published) in row.sptf {
        let outcome = run(row.preset, row.span, depth, PLAIN);
        wait = outcome.max_ms / 1e3;
        cell(format!("SPTF {depth}"), outcome.iops, published);
    }
    cell(
        "C-LOOK 31".into(),
        run(row.preset, row.span, 31, "order = \"c-look\"\ndeadline_ms = 0").iops,
        row.c_look,
    );
    let aged = run(row.preset, row.span, 31, "order = \"sptf\"\nageing_ms = 500\ndeadline_ms = 0");
    cell("aged SPTF 31".into(), aged.iops, row.aged);
    assert!(wrong.is_empty(), "{}, {} %: {}", row.preset, row.span * 100.0, wrong.join("; "));

    for (name, ours, published) in [("", wait, row.wait_s), ("aged ", aged.max_ms / 1e3, row.aged_wait_s)] {
        println!("{:<14} longest {name}wait: ours {ours:.2} s, published {published} s", row.preset);
        let factor = (ours / published).max(published / ours);
        assert!(
            factor <= WAIT_FACTOR,
            "longest {name}wait {ours:.2} s is not within a factor of 2 of {published} s"
        );
    }
}

#[test]
fn sata7200_full_stroke_77_iops_at_depth_1_and_190_at_31() {
    check(&Row {
        preset: "sata7200-2009",
        span: 1.0,
        sptf: [(1, 77.0), (4, 111.0), (8, 131.0), (16, 158.0), (31, 190.0)],
        c_look: 145.0,
        wait_s: 1.6,
        aged: 173.0,
        aged_wait_s: 0.42,
    });
}

#[test]
fn sata7200_first_5_percent_146_iops_at_depth_1_and_386_at_31() {
    check(&Row {
        preset: "sata7200-2009",
        span: 0.05,
        sptf: [(1, 146.0), (4, 229.0), (8, 279.0), (16, 332.0), (31, 386.0)],
        c_look: 180.0,
        wait_s: 1.5,
        aged: 376.0,
        aged_wait_s: 0.30,
    });
}

#[test]
fn sata7200_first_2_gb_182_iops_at_depth_1_and_576_at_31() {
    check(&Row {
        preset: "sata7200-2009",
        span: 0.002,
        sptf: [(1, 182.0), (4, 337.0), (8, 427.0), (16, 503.0), (31, 576.0)],
        c_look: 191.0,
        wait_s: 0.8,
        aged: 576.0,
        aged_wait_s: 0.25,
    });
}

#[test]
fn fc15k_full_stroke_181_iops_at_depth_1_and_466_at_31() {
    check(&Row {
        preset: "fc15k",
        span: 1.0,
        sptf: [(1, 181.0), (4, 260.0), (8, 315.0), (16, 387.0), (31, 466.0)],
        c_look: 330.0,
        wait_s: 0.9,
        aged: 465.0,
        aged_wait_s: 0.33,
    });
}

#[test]
fn nearline4t_full_stroke_85_iops_at_depth_1_and_191_at_31() {
    check(&Row {
        preset: "nearline4t",
        span: 1.0,
        sptf: [(1, 85.0), (4, 118.0), (8, 138.0), (16, 162.0), (31, 191.0)],
        c_look: 139.0,
        wait_s: 1.9,
        aged: 173.0,
        aged_wait_s: 0.40,
    });
}
