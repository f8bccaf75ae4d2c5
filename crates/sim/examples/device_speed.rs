//! What the device models cost: processor nanoseconds per simulated request, per preset and depth.
//!
//! `cargo run --release -p fairlift-sim --example device_speed`

use std::time::Instant;

use fairlift_sim::device::rng::Rng;
use fairlift_sim::device::{Command, Completion, DeviceSpec, Op, PRESETS};

/// A closed loop of random aligned 4 KiB commands; gives nanoseconds per request.
fn cost(spec: &DeviceSpec, depth: u32, count: u64, op: Op, sequential: bool) -> f64 {
    let mut device = spec.build(1);
    let blocks = device.limits().sectors / 8;
    let mut rng = Rng::new(1);
    let mut next = 0;
    let mut command = |tag: u32| {
        next = if sequential { (next + 1) % blocks } else { rng.below(blocks) };
        Command { tag, op, sector: next * 8, sectors: 8, fua: false }
    };
    for tag in 0..depth {
        device.submit(command(tag), 0);
    }
    let mut done: Vec<Completion> = Vec::with_capacity(depth as usize);
    let mut completed = 0;
    let start = Instant::now();
    while completed < count {
        let Some(now) = device.next_event() else { break };
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            completed += 1;
            device.submit(command(completion.tag), now);
        }
    }
    start.elapsed().as_nanos() as f64 / completed as f64
}

fn main() {
    println!(
        "{:<16} {:>6} {:>12} {:>12} {:>12}",
        "ns per request", "depth", "random read", "seq. read", "random write"
    );
    for preset in PRESETS {
        let spec = match DeviceSpec::load(preset.name) {
            Ok(spec) => spec,
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(2);
            }
        };
        for depth in [1, 4, 31, 256] {
            if depth > spec.limits().queue_depth {
                continue;
            }
            let run = |op, sequential| cost(&spec, depth, 300_000, op, sequential);
            println!(
                "{:<16} {depth:>6} {:>12.0} {:>12.0} {:>12.0}",
                preset.name,
                run(Op::Read, false),
                run(Op::Read, true),
                run(Op::Write, false)
            );
        }
    }
}
