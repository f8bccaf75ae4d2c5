//! Any trace, replayed: every I/O of it is done, whatever the timing.
#![no_main]

use std::io::Cursor;
use std::sync::Arc;

use fairlift_sim::device::DeviceSpec;
use fairlift_sim::kernel::{Filesystem, Memory, version};
use fairlift_sim::lab::{Replaying, Setup, run_with};
use fairlift_sim::program::replay::{Loader, Timing};
use fairlift_sim::scheduler::SchedulerSpec;
use fairlift_trace::{Options, TraceReader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|trace: &[u8]| {
    let options = Options { keep_going: true, ..Options::default() };
    let Ok(mut reader) = TraceReader::from_read("fuzz", Cursor::new(trace.to_vec()), &options) else { return };
    let mut next = reader.next();
    let mut loader = Loader::new(reader.facts(), Vec::new());
    while let Some(Ok(event)) = next {
        loader.event(&event, reader.names());
        next = reader.next();
    }
    let replay = loader.finish(reader.names());
    assert_eq!(replay.ios, replay.processes.iter().map(|process| process.ios).sum::<u64>());
    // A trace may last for centuries: what is simulated of it is what happens, not the time between.
    if replay.ios == 0 || replay.ios > 2000 {
        return;
    }
    let scheduler = SchedulerSpec::parse("cfq", version::DEFAULT.profile).expect("a scheduler");
    let device = DeviceSpec::load("null").expect("a preset");
    let groups = replay.groups();
    let replay = Arc::new(replay);
    for timing in [Timing::Open, Timing::Closed, Timing::Asap] {
        let setup = Setup {
            scheduler: &scheduler,
            device: &device,
            rules: version::DEFAULT,
            memory: Memory::default(),
            filesystem: Filesystem::Raw,
            jobs: &[],
            programs: &[],
            groups: &groups,
            warmup_ns: None,
            seed: 1,
            runtime_ns: None,
            fresh_files: false,
            explain: false,
        };
        let replaying = Replaying { trace: Arc::clone(&replay), timing };
        let result = run_with(&setup, Some(&replaying), &mut None, &mut |_| {}).expect("it ends");
        // Not the block layer's bios: a large I/O is several, a flush of nothing is none.
        let ended: u64 = result.processes.iter().map(|process| process.ios() + process.sync.count()).sum();
        assert_eq!(ended, replay.ios, "{timing}");
    }
});
