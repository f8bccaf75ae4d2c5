//! Device files: read, built, and given a few commands.
#![no_main]

use fairlift_sim::device::{Command, DeviceSpec, Op};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let spec = match DeviceSpec::parse(text, "fuzz.toml") {
        Ok(spec) => spec,
        Err(error) => return assert!(error.to_string().starts_with("fuzz.toml"), "{error}"),
    };
    let mut device = spec.build(1);
    let limits = *device.limits();
    let sectors = limits.max_sectors.min(8).min(u32::try_from(limits.sectors).unwrap_or(u32::MAX));
    let last = limits.sectors - u64::from(sectors);
    let (mut now, mut done) = (0, Vec::new());
    for (tag, op) in [Op::Read, Op::Write, Op::Discard, Op::Read, Op::Flush].into_iter().enumerate() {
        let flush = op == Op::Flush;
        let sector = if flush { 0 } else { last / 7 * tag as u64 };
        let sectors = if flush { 0 } else { sectors };
        device.submit(Command { tag: 0, op, sector, sectors, fua: tag == 1 && limits.fua }, now);
        for _ in 0..100_000 {
            let Some(next) = device.next_event() else { break };
            assert!(next >= now, "an event in the past");
            now = next;
            device.advance(now, &mut done);
            if !done.is_empty() {
                break;
            }
        }
        assert_eq!(done.len(), 1, "one command, one completion");
        done.clear();
    }
});
