//! A modelled device alone, with random commands at a fixed depth: quick enough to be asked hundreds of times in a fit.

use std::collections::VecDeque;

use fairlift_sim::device::rng::Rng;
use fairlift_sim::device::{Command, DeviceSpec, Op};

/// Random commands of one kind and size, `depth` of them in flight.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub op: Op,
    pub depth: u32,
    /// Size of a command, and of the range they lie in, from the start of the device; 0: all of it.
    pub sectors: u32,
    pub span: u64,
    /// Processor time for each: it submits one after the other.
    pub cpu_ns: u64,
    /// How many; the first tenth warms up.
    pub commands: u64,
}

/// Commands per second.
pub fn rate(spec: &DeviceSpec, load: Load) -> f64 {
    let mut device = spec.build(1);
    let span = if load.span == 0 { device.limits().sectors } else { load.span.min(device.limits().sectors) };
    let size = u64::from(load.sectors);
    let blocks = (span / size).max(1);
    let mut places = Rng::new(7);
    let mut ready: VecDeque<u32> = (0..load.depth).collect();
    // When the processor is through with the next command, and when it was with the last one.
    let (mut cpu_at, mut free_at, mut now, mut done) = (load.cpu_ns, 0u64, 0, Vec::new());
    let (mut finished, mut counted_from) = (0u64, None);
    while finished < load.commands {
        // What comes first: something in the device, or the processor's next command.
        let of_device = device.next_event();
        let of_cpu = (!ready.is_empty()).then_some(cpu_at);
        let Some(at) = of_device.into_iter().chain(of_cpu).min() else { break };
        now = at.max(now);
        device.advance(now, &mut done);
        if ready.is_empty() && !done.is_empty() {
            // It has been idle since the last one.
            cpu_at = free_at.max(now) + load.cpu_ns;
        }
        finished += done.len() as u64;
        ready.extend(done.drain(..).map(|completion| completion.tag));
        if counted_from.is_none() && finished >= load.commands / 10 {
            counted_from = Some((finished, now));
        }
        if cpu_at <= now
            && let Some(tag) = ready.pop_front()
        {
            let sector = places.below(blocks) * size;
            device.submit(Command { tag, op: load.op, sector, sectors: load.sectors, fua: false }, now);
            free_at = now;
            cpu_at = now + load.cpu_ns;
        }
    }
    let (first, from_ns) = counted_from.unwrap_or((0, 0));
    (finished - first) as f64 * 1e9 / (now - from_ns).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the lab's fio reaches on the same drive when the host takes 20 us for a command (`none:cpu_per_io_ns=20000`).
    #[test]
    fn a_slow_host_is_charged_as_the_lab_does() {
        let spec = DeviceSpec::load("flash-kd").unwrap();
        for (depth, lab) in [(1, 11_943.0), (2, 23_628.0), (4, 44_530.0), (8, 49_997.0), (64, 49_997.0)] {
            let load = Load { op: Op::Read, depth, sectors: 8, span: 0, cpu_ns: 20_000, commands: 20_000 };
            let ours = rate(&spec, load);
            assert!((ours / lab - 1.0).abs() < 0.01, "depth {depth}: {ours} instead of {lab}");
        }
    }

    #[test]
    fn one_at_a_time_is_the_latency_and_many_are_the_dies() {
        let spec = DeviceSpec::load("flash-kd").unwrap();
        let reads = |depth, cpu_ns| {
            rate(&spec, Load { op: Op::Read, depth, sectors: 8, span: 0, cpu_ns, commands: 4000 })
        };
        let one = reads(1, 0);
        assert!((1e9 / one / 63_850.0 - 1.0).abs() < 0.01, "{one}");
        let many = reads(512, 0);
        assert!((many / 441_000.0 - 1.0).abs() < 0.05, "{many}");
        assert!((1e9 / reads(1, 10_000) - 1e9 / one - 10_000.0).abs() < 1000.0);
        let load = Load { op: Op::Write, depth: 32, sectors: 8, span: 0, cpu_ns: 0, commands: 20_000 };
        let writes = rate(&spec, load);
        assert!((writes * 4096.0 / 294.7e6 - 1.0).abs() < 0.05, "{writes}");
    }
}
