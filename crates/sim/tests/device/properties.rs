//! What holds for every device under any commands.

use fairlift_sim::device::rng::Rng;
use fairlift_sim::device::{Command, Completion, DeviceSpec, Op, PRESETS};
use proptest::prelude::*;

use crate::harness::changed;

/// Random commands at random times; asserts all that must hold and gives the completions.
pub(crate) fn exercise(spec: &DeviceSpec, commands: u32, seed: u64) -> Vec<Completion> {
    let mut device = spec.build(seed);
    let mut rng = Rng::new(seed);
    let limits = *device.limits();
    let depth = limits.queue_depth.min(1 + rng.below(64) as u32);
    let mut waiting: Vec<Option<u64>> = vec![None; commands as usize];
    let (mut in_device, mut submitted, mut now, mut last) = (0u32, 0u32, 0u64, 0u64);
    let mut done = Vec::new();
    let mut all = Vec::new();
    let mut sector = 0;
    while submitted < commands || in_device > 0 {
        if submitted < commands && in_device < depth && rng.below(3) > 0 {
            let command = draw(&mut rng, &limits, &mut sector, submitted);
            waiting[submitted as usize] = Some(now);
            device.submit(command, now);
            submitted += 1;
            in_device += 1;
            if let Some(next) = device.next_event() {
                assert!(next >= now, "an event in the past: {next} < {now}");
            }
            continue;
        }
        // Either to the next event, or to some moment before or after it.
        let next = device.next_event();
        assert!(next.is_some() || in_device == 0, "commands are in the device but nothing will happen");
        let before = now;
        now = match (next, rng.below(4)) {
            (Some(next), 1..) => next,
            (next, _) => now + 1 + rng.below(next.unwrap_or(now).saturating_sub(now).max(1000) * 2),
        };
        device.advance(now, &mut done);
        assert!(device.next_event().is_none_or(|next| next > now), "no progress at {now}");
        assert!(now >= before);
        for completion in done.drain(..) {
            let since =
                waiting[completion.tag as usize].take().expect("completes once, and only what was submitted");
            assert!(completion.at_ns >= since, "done before it came");
            assert!(completion.at_ns >= last && completion.at_ns <= now, "out of order");
            last = completion.at_ns;
            in_device -= 1;
            all.push(completion);
        }
        assert!(device.busy_ns() <= now, "busy {} of {now} ns", device.busy_ns());
    }
    assert!(waiting.iter().all(Option::is_none));
    all
}

fn draw(rng: &mut Rng, limits: &fairlift_sim::device::Limits, sector: &mut u64, tag: u32) -> Command {
    let sectors = match rng.below(8) {
        0 => 1 + rng.below(u64::from(limits.max_sectors)) as u32,
        1 => limits.max_sectors,
        _ => 8,
    };
    // Streams, neighbourhoods, anywhere, and the very end.
    match rng.below(10) {
        0..4 => {}
        4..6 => *sector = sector.saturating_sub(rng.below(100)),
        9 => *sector = limits.sectors.saturating_sub(u64::from(sectors)),
        _ => *sector = rng.below(limits.sectors),
    }
    *sector = (*sector).min(limits.sectors.saturating_sub(u64::from(sectors)));
    let at = *sector;
    *sector += u64::from(sectors);
    let (op, sectors) = match rng.below(20) {
        0 => (Op::Flush, 0),
        1 => (Op::Discard, sectors),
        2..10 => (Op::Write, sectors),
        _ => (Op::Read, sectors),
    };
    let fua = op == Op::Write && rng.below(8) == 0;
    Command { tag, op, sector: if op == Op::Flush { 0 } else { at }, sectors, fua }
}

/// The presets and variants that reach other code.
fn specs() -> Vec<DeviceSpec> {
    let mut specs: Vec<DeviceSpec> =
        PRESETS.iter().map(|preset| DeviceSpec::load(preset.name).expect("a preset")).collect();
    for order in ["fifo", "c-look", "sstf"] {
        specs.push(changed("sata7200-2009", &format!("[firmware]\norder = \"{order}\"\nsticky_ms = 2\n")));
    }
    specs.push(changed("sata7200-2009", "[write_cache]\nextents = 2\nsize_kib = 64\nidle_ms = 3\n"));
    specs.push(changed("sata7200-2009", "[buffer]\nsegments = 1\nsegment_kib = 0\n"));
    specs.push(changed(
        "nearline4t",
        "[write_cache]\nenabled = false\n[buffer]\nsegments = 2\nsegment_kib = 16\n",
    ));
    specs.push(changed("flash-kd", "[buffer]\nsize_kib = 8\n[gc]\nwork = \"whole\"\n[die]\ncount = 3\n"));
    specs.push(changed("flash-kd", "[buffer]\npower_loss_protection = true\n"));
    specs.push(changed("cloud-gp3", "[credits]\nsize = 10\nrate_per_s = 30\n"));
    specs.push(changed("san-nvram", "[nvram]\nhalf_mib = 1\ntimer_s = 0.01\n[cache]\nsize_mib = 1\n"));
    specs
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_command_completes_once_and_time_goes_on(seed in any::<u64>()) {
        for spec in specs() {
            exercise(&spec, 400, seed);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_times(seed in any::<u64>()) {
        for spec in specs() {
            prop_assert_eq!(exercise(&spec, 100, seed), exercise(&spec, 100, seed));
        }
    }
}

/// How often the host looks does not change what happens.
#[test]
fn times_do_not_depend_on_when_the_host_looks() {
    for spec in specs() {
        let run = |step: Option<u64>| {
            let mut device = spec.build(5);
            let mut rng = Rng::new(17);
            let limits = *device.limits();
            let (mut sector, mut done) = (0, Vec::new());
            for tag in 0..limits.queue_depth.min(20) {
                device.submit(draw(&mut rng, &limits, &mut sector, tag), 0);
            }
            let end = 20_000_000_000;
            let mut now = 0;
            while now < end {
                now = match (step, device.next_event()) {
                    (Some(step), _) => now + step,
                    (None, Some(next)) => next,
                    (None, None) => break,
                };
                device.advance(now, &mut done);
            }
            done
        };
        assert_eq!(run(None), run(Some(1_234_567)), "{}", spec.describe());
    }
}
