//! What a modelled device does under the loads that measure a drive's rates: alone on it, as fast as it goes.
//!
//! The loads are those of `resctl-bench` and the kernel's `iocost_coef_gen.py`: direct I/O, many requests in flight, 4 KiB
//! sequential and random, and large sequential blocks.

use crate::device::rng::Rng;
use crate::device::{Command, Completion, Device, DeviceSpec, Measured, Op};

/// Requests in flight.
const DEPTH: u32 = 128;
/// Requests of 4 KiB before counting starts, and counted: past what a write buffer hides.
const WARM: u64 = 30_000;
const COUNT: u64 = 60_000;
/// The same of large blocks.
const LARGE_WARM: u64 = 2_000;
const LARGE_COUNT: u64 = 6_000;
const LARGE_SECTORS: u32 = 256;

/// A load.
#[derive(Clone, Copy)]
struct Load {
    /// Share of writes, percent.
    writes: u64,
    random: bool,
    sectors: u32,
    warm: u64,
    count: u64,
}

/// What came of it.
struct Outcome {
    per_s: f64,
    /// Response times of reads and of writes, in order.
    responses_ns: [Vec<u64>; 2],
}

/// The model's own rates and latencies, as they would be measured. The latencies are the 95th percentiles of random 4 KiB
/// reads and writes, half and half.
pub fn of(spec: &DeviceSpec) -> Measured {
    let small = Load { writes: 0, random: false, sectors: 8, warm: WARM, count: COUNT };
    let large = Load { sectors: LARGE_SECTORS, warm: LARGE_WARM, count: LARGE_COUNT, ..small };
    let rate = |load: Load| run(spec, load).per_s;
    let bytes = |load: Load| rate(load) * f64::from(load.sectors) * 512.0;
    let mixed = run(spec, Load { writes: 50, random: true, ..small });
    Measured {
        read_bytes_per_s: bytes(large),
        write_bytes_per_s: bytes(Load { writes: 100, ..large }),
        read_seq_iops: rate(small),
        read_random_iops: rate(Load { random: true, ..small }),
        write_seq_iops: rate(Load { writes: 100, ..small }),
        write_random_iops: rate(Load { writes: 100, random: true, ..small }),
        read_p95_us: p95_us(&mixed.responses_ns[0]),
        write_p95_us: p95_us(&mixed.responses_ns[1]),
    }
}

fn p95_us(sorted: &[u64]) -> f64 {
    let rank = sorted.len() * 95 / 100;
    sorted.get(rank).copied().unwrap_or(0) as f64 / 1e3
}

fn run(spec: &DeviceSpec, load: Load) -> Outcome {
    let device = &mut *spec.build(1);
    let depth = DEPTH.min(device.limits().queue_depth);
    let blocks = device.limits().sectors / u64::from(load.sectors);
    let (mut rng, mut next) = (Rng::new(1), 0);
    let mut command = |tag: u32| {
        let block = if load.random { rng.below(blocks) } else { next % blocks };
        next += 1;
        let op = if rng.below(100) < load.writes { Op::Write } else { Op::Read };
        Command { tag, op, sector: block * u64::from(load.sectors), sectors: load.sectors, fua: false }
    };
    let mut sent = vec![(0u64, Op::Read); depth as usize];
    let mut send = |device: &mut dyn Device, tag: u32, now: u64, sent: &mut [(u64, Op)]| {
        let command = command(tag);
        sent[tag as usize] = (now, command.op);
        device.submit(command, now);
    };
    (0..depth).for_each(|tag| send(device, tag, 0, &mut sent));
    let mut done: Vec<Completion> = Vec::new();
    let (mut completed, mut since_ns, mut now) = (0, 0, 0);
    let mut responses_ns = [Vec::new(), Vec::new()];
    while completed < load.warm + load.count {
        let Some(at) = device.next_event() else { break };
        now = at;
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            completed += 1;
            let (at, op) = sent[completion.tag as usize];
            if completed == load.warm {
                since_ns = now;
            } else if completed > load.warm {
                responses_ns[usize::from(op == Op::Write)].push(completion.at_ns - at);
            }
            send(device, completion.tag, now, &mut sent);
        }
    }
    responses_ns.iter_mut().for_each(|times| times.sort_unstable());
    let seconds = now.saturating_sub(since_ns).max(1) as f64 / 1e9;
    Outcome { per_s: completed.saturating_sub(load.warm) as f64 / seconds, responses_ns }
}
