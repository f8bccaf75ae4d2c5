//! What the device models cost: processor nanoseconds per simulated request, per preset and depth.
//!
//! `cargo run --release -p fairlift-sim --example device_speed [PRESET]`. The best of three runs counts: what others do on
//! the machine only ever adds.

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
    let start = cpu_ns();
    while completed < count {
        let Some(now) = device.next_event() else { break };
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            completed += 1;
            device.submit(command(completion.tag), now);
        }
    }
    (cpu_ns() - start) as f64 / completed as f64
}

/// Processor time of this process so far, nanoseconds; 0 where the system does not tell (it takes Linux).
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn main() {
    println!(
        "{:<16} {:>6} {:>12} {:>12} {:>12}",
        "ns per request", "depth", "random read", "seq. read", "random write"
    );
    let wanted = std::env::args().nth(1);
    for preset in PRESETS.iter().filter(|preset| wanted.as_deref().is_none_or(|name| name == preset.name)) {
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
            let run = |op, sequential| {
                let once = |_| cost(&spec, depth, 400_000, op, sequential);
                (0..3).map(once).fold(f64::INFINITY, f64::min)
            };
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
