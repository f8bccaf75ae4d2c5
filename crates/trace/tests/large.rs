//! Long traces are read at speed and in little memory. The full size is `cargo test --release -p fairlift-trace --test large
//! -- --ignored`.

#[path = "common/generated.rs"]
mod generated;

use std::fs::File;
use std::io::BufWriter;
use std::time::Instant;

use fairlift_trace::{Options, Summary, TraceReader};
use generated::generated;

/// Most memory this process has used, bytes; 0 where Linux does not tell.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

#[test]
fn a_million_records_pass_through_in_little_memory() {
    let reader =
        TraceReader::from_read("generated", generated(1_000_000), &Options::default()).expect("opens");
    let mut summary = Summary::new();
    for event in reader {
        summary.add(&event.expect("a good record"));
    }
    assert_eq!((summary.events, summary.all.total().count), (1_000_000, 200_000));
    // The records are 48 MB; statistics keep only what is under way.
    assert!(peak_bytes() < 40 << 20, "{} bytes", peak_bytes());
}

#[test]
#[ignore = "half a gigabyte on disk, and a statement about speed"]
fn ten_million_records_of_a_file_are_read_at_two_million_a_second_in_300_mb() {
    const RECORDS: u64 = 10_000_000;
    let path = std::env::temp_dir().join(format!("fairlift-large-{}.bin", std::process::id()));
    let mut file = BufWriter::new(File::create(&path).expect("disk"));
    std::io::copy(&mut generated(RECORDS), &mut file).expect("disk");
    drop(file);
    let started = Instant::now();
    let reader = TraceReader::open(&path, &Options::default()).expect("opens");
    let count = reader.map(|event| event.map(|_| 1u64)).sum::<Result<u64, _>>();
    let seconds = started.elapsed().as_secs_f64();
    std::fs::remove_file(&path).expect("disk");
    let rate = RECORDS as f64 / seconds;
    println!("{RECORDS} records in {seconds:.2} s: {rate:.0} per second, {} bytes at most", peak_bytes());
    assert_eq!(count, Ok(RECORDS));
    assert!(rate >= 2e6, "{rate:.0} records per second");
    assert!(peak_bytes() < 300_000_000, "{} bytes", peak_bytes());
}
