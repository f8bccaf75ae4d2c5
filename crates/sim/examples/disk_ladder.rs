//! Random 4 KiB reads at depths 1 to 31: rate and response times of a modelled device.
//!
//! `cargo run --release -p fairlift-sim --example disk_ladder DEVICE [SHARE]`, a preset or a file, and the part of it that is read
//! (1: all).

use fairlift_sim::device::rng::Rng;
use fairlift_sim::device::{Command, DeviceSpec, Op};

const REQUESTS: usize = 40_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("desktop2t", String::as_str);
    let share: f64 = arguments.get(1).and_then(|share| share.parse().ok()).unwrap_or(1.0);
    let spec = match DeviceSpec::load(name) {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    };
    for depth in [1, 2, 4, 8, 16, 31] {
        ladder_step(&spec, depth, share);
    }
}

/// Keep `depth` reads in the device and print what came of them.
fn ladder_step(spec: &DeviceSpec, depth: u32, share: f64) {
    let blocks = ((spec.limits().sectors as f64 * share) as u64 / 8).max(1);
    let (mut device, mut rng) = (spec.build(1), Rng::new(7));
    let mut read = |tag| Command { tag, op: Op::Read, sector: rng.below(blocks) * 8, sectors: 8, fua: false };
    let mut sent_at = vec![0; depth as usize];
    (0..depth).for_each(|tag| device.submit(read(tag), 0));
    let (mut waits, mut done, mut now) = (Vec::with_capacity(REQUESTS), Vec::new(), 0);
    while waits.len() < REQUESTS {
        now = device.next_event().unwrap_or(now);
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            waits.push(now - sent_at[completion.tag as usize]);
            sent_at[completion.tag as usize] = now;
            device.submit(read(completion.tag), now);
        }
    }
    waits.sort_unstable();
    let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize] as f64 / 1e6;
    println!(
        "{depth:>3}: {:6.1} reads/s  p50 {:6.1}  p99 {:6.1}  p99.9 {:6.1}  longest {:6.1} ms",
        waits.len() as f64 / (now as f64 / 1e9),
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0)
    );
}
