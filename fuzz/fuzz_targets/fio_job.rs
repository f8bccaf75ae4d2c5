//! fio job files: read, and the first I/Os of each job drawn.
#![no_main]

use fairlift_fio::offsets::Stream;
use fairlift_fio::{Amount, Job, ParseOptions, Source, expand, parse};
use libfuzzer_sys::fuzz_target;

/// Maps and power sums of huge files are right but slow: not the subject here.
fn is_small(job: &Job) -> bool {
    matches!(job.extent.size, Some(Amount::Bytes(..=0x100_0000))) && job.files.file_bytes < 1 << 24 && job.files.count < 50
}

fuzz_target!(|bytes: &[u8]| {
    let included = |_: &std::path::Path| Ok(b"bs=8k\n".to_vec());
    let options = ParseOptions { read_file: &included, ..ParseOptions::default() };
    let Ok(parsed) = parse(&[Source::new("fuzz.fio", bytes)], &options) else { return };
    let expansion = expand(&parsed.jobs, 7);
    for (index, process) in expansion.processes.iter().enumerate().take(3) {
        let job = &parsed.jobs[process.job];
        let device = |path: &str| path.starts_with("/dev/").then_some(1 << 24);
        if is_small(job)
            && let Ok(mut stream) = Stream::new(job, &expansion, index, &device, 7)
        {
            (0..50).for_each(|_| _ = stream.next());
        }
    }
});
