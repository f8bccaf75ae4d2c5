//! What a modelled device does under the loads that measure a drive's rates: alone on it, as fast as it goes.
//!
//! The loads are those of `resctl-bench` and the kernel's `iocost_coef_gen.py`: direct I/O, many requests in flight, 4 KiB
//! sequential and random, and large sequential blocks. Latencies are those of the same tool: eight jobs of 256 requests each, so that
//! most of a latency is the queue of the bench itself, outside the device.

use std::collections::VecDeque;

use crate::device::rng::Rng;
use crate::device::{Command, Completion, Device, DeviceSpec, Measured, Op};

/// Requests in flight where rates are measured.
const DEPTH: u32 = 128;
/// Where latencies are: eight jobs of 256.
const LATENCY_DEPTH: u32 = 2048;
/// The latency that goes into the kernel's `io.cost.qos` is the 95th percentile times this.
const LATENCY_MARGIN: f64 = 1.5;
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
    in_flight: u32,
    sectors: u32,
    warm: u64,
    count: u64,
}

/// What came of it.
struct Outcome {
    per_s: f64,
    /// Response times, in order.
    responses_ns: Vec<u64>,
}

/// The model's own rates and latencies, as they would be measured.
pub fn of(spec: &DeviceSpec) -> Measured {
    let small = Load { writes: 0, random: false, in_flight: DEPTH, sectors: 8, warm: WARM, count: COUNT };
    let large = Load { sectors: LARGE_SECTORS, warm: LARGE_WARM, count: LARGE_COUNT, ..small };
    let rate = |load: Load| run(spec, load).per_s;
    let bytes = |load: Load| rate(load) * f64::from(load.sectors) * 512.0;
    let latency = |writes: u64| {
        let load = Load { writes, random: true, in_flight: LATENCY_DEPTH, ..small };
        p95_us(&run(spec, load).responses_ns) * LATENCY_MARGIN
    };
    Measured {
        read_bytes_per_s: bytes(large),
        write_bytes_per_s: bytes(Load { writes: 100, ..large }),
        read_seq_iops: rate(small),
        read_random_iops: rate(Load { random: true, ..small }),
        write_seq_iops: rate(Load { writes: 100, ..small }),
        write_random_iops: rate(Load { writes: 100, random: true, ..small }),
        read_latency_us: latency(0),
        write_latency_us: latency(100),
    }
}

fn p95_us(sorted: &[u64]) -> f64 {
    let rank = sorted.len() * 95 / 100;
    sorted.get(rank).copied().unwrap_or(0) as f64 / 1e3
}

/// Requests that are in flight: in the device under a tag, or waiting outside for one.
struct Host {
    outside: VecDeque<(Command, u64)>,
    free_tags: Vec<u32>,
    sent_at: Vec<u64>,
}

impl Host {
    fn new(queue_depth: u32) -> Host {
        let free_tags = (0..queue_depth).rev().collect();
        Host { outside: VecDeque::new(), free_tags, sent_at: vec![0; queue_depth as usize] }
    }

    /// Give the device what waits outside, as far as it has tags.
    fn dispatch(&mut self, device: &mut dyn Device, now: u64) {
        while !self.outside.is_empty() {
            let Some(tag) = self.free_tags.pop() else { return };
            if let Some((command, sent_at)) = self.outside.pop_front() {
                self.sent_at[tag as usize] = sent_at;
                device.submit(Command { tag, ..command }, now);
            }
        }
    }
}

fn run(spec: &DeviceSpec, load: Load) -> Outcome {
    let device = &mut *spec.build(1);
    let blocks = device.limits().sectors / u64::from(load.sectors);
    let (mut rng, mut next) = (Rng::new(1), 0);
    let mut command = || {
        let block = if load.random { rng.below(blocks) } else { next % blocks };
        next += 1;
        let op = if rng.below(100) < load.writes { Op::Write } else { Op::Read };
        Command { tag: 0, op, sector: block * u64::from(load.sectors), sectors: load.sectors, fua: false }
    };
    let mut host = Host::new(device.limits().queue_depth);
    host.outside.extend((0..load.in_flight).map(|_| (command(), 0)));
    host.dispatch(device, 0);
    let mut done: Vec<Completion> = Vec::new();
    let (mut completed, mut since_ns, mut now) = (0, 0, 0);
    let mut responses_ns = Vec::new();
    while completed < load.warm + load.count {
        let Some(at) = device.next_event() else { break };
        now = at;
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            completed += 1;
            if completed == load.warm {
                since_ns = now;
            } else if completed > load.warm {
                responses_ns.push(completion.at_ns - host.sent_at[completion.tag as usize]);
            }
            host.free_tags.push(completion.tag);
            host.outside.push_back((command(), now));
        }
        host.dispatch(device, now);
    }
    responses_ns.sort_unstable();
    let seconds = now.saturating_sub(since_ns).max(1) as f64 / 1e9;
    Outcome { per_s: completed.saturating_sub(load.warm) as f64 / seconds, responses_ns }
}
