//! A host without a scheduler: drives a device directly.

use fairlift_sim::device::rng::Rng;
use fairlift_sim::device::{Command, Completion, Device, DeviceSpec, Op};

pub(crate) const MS: f64 = 1e6;

/// What a closed loop came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) iops: f64,
    pub(crate) mb_per_s: f64,
    pub(crate) mean_ms: f64,
    pub(crate) p999_ms: f64,
    pub(crate) max_ms: f64,
}

/// A command without a tag.
pub(crate) fn read(sector: u64, sectors: u32) -> Command {
    Command { tag: 0, op: Op::Read, sector, sectors, fua: false }
}

pub(crate) fn write(sector: u64, sectors: u32) -> Command {
    Command { op: Op::Write, ..read(sector, sectors) }
}

pub(crate) fn flush() -> Command {
    Command { op: Op::Flush, ..read(0, 0) }
}

/// Keep `depth` commands from `next` in the device until `warm + count` are done; figures are over the last `count`.
pub(crate) fn closed_loop(
    device: &mut dyn Device,
    depth: u32,
    warm: u64,
    count: u64,
    mut next: impl FnMut() -> Command,
) -> Outcome {
    let mut since = vec![0u64; depth as usize];
    let mut bytes = vec![0u64; depth as usize];
    let mut submit = |device: &mut dyn Device, tag: u32, now: u64, since: &mut [u64], bytes: &mut [u64]| {
        let command = next();
        since[tag as usize] = now;
        bytes[tag as usize] = u64::from(command.sectors) * 512;
        device.submit(Command { tag, ..command }, now);
    };
    for tag in 0..depth {
        submit(device, tag, 0, &mut since, &mut bytes);
    }
    let mut done: Vec<Completion> = Vec::new();
    let (mut completed, mut started_at, mut now) = (0, 0, 0);
    let (mut waits, mut moved) = (Vec::with_capacity(count as usize), 0u64);
    while completed < warm + count {
        now = device.next_event().expect("commands are in the device");
        device.advance(now, &mut done);
        for completion in done.drain(..) {
            completed += 1;
            if completed == warm {
                started_at = completion.at_ns;
            }
            if completed > warm {
                waits.push(completion.at_ns - since[completion.tag as usize]);
                moved += bytes[completion.tag as usize];
            }
            submit(device, completion.tag, now, &mut since, &mut bytes);
        }
    }
    let seconds = (now - started_at) as f64 / 1e9;
    waits.sort_unstable();
    let sum: u64 = waits.iter().sum();
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize] as f64 / MS;
    Outcome {
        iops: count as f64 / seconds,
        mb_per_s: moved as f64 / 1e6 / seconds,
        mean_ms: sum as f64 / waits.len() as f64 / MS,
        p999_ms: at(0.999),
        max_ms: at(1.0),
    }
}

/// Uniformly random reads of 8 sectors, aligned, in the first `span` sectors.
pub(crate) fn random_reads(span: u64, seed: u64) -> impl FnMut() -> Command {
    let mut rng = Rng::new(seed);
    move || read(rng.below(span / 8) * 8, 8)
}

/// Commands one behind the other, from `start` on.
pub(crate) fn sequential(start: u64, template: Command) -> impl FnMut() -> Command {
    let mut sector = start;
    move || {
        let command = Command { sector, ..template };
        sector += u64::from(template.sectors);
        command
    }
}

/// Run one command alone at `now`; gives when it is done.
pub(crate) fn one(device: &mut dyn Device, command: Command, now: u64) -> u64 {
    let mut done = Vec::new();
    device.advance(now, &mut done);
    assert!(done.is_empty(), "something else was under way");
    device.submit(command, now);
    while done.is_empty() {
        let at = device.next_event().expect("a command is in the device");
        device.advance(at, &mut done);
    }
    done[0].at_ns
}

/// A preset with some keys changed; `changes` is TOML.
pub(crate) fn changed(preset: &str, changes: &str) -> DeviceSpec {
    let text = format!("based_on = \"{preset}\"\n{changes}");
    DeviceSpec::parse(&text, "test").unwrap_or_else(|error| panic!("{error}"))
}

/// Is `ours` within `tolerance` (a fraction) of `published`?
#[track_caller]
pub(crate) fn assert_within(what: &str, ours: f64, published: f64, tolerance: f64) {
    let off = ours / published - 1.0;
    println!("{what}: {ours:.4}, published {published:.4}, {:+.1} %", off * 100.0);
    assert!(off.abs() <= tolerance, "{what}: {ours:.4} is {:+.1} % off {published:.4}", off * 100.0);
}
