//! How fast traces are read: `cargo run --release -p fairlift-trace --example trace_speed -- [RECORDS | FILE…]`.
//!
//! With a number, that many binary records (10 million by default) are made on the fly and read, without a file. With
//! files, each is read as it is and its statistics are taken. Prints records per second and the process's peak memory.

#[path = "../tests/common/generated.rs"]
mod generated;

use std::io::{self, Read};
use std::time::Instant;

use fairlift_trace::{Options, Summary, TraceReader};
use generated::generated;

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .map_or("unknown".into(), |text| text.trim().to_owned())
}

fn report(what: &str, records: u64, started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    let rate = records as f64 / seconds;
    println!(
        "{what}: {records} records in {seconds:.2} s, {rate:.0} records/s, peak memory {}",
        peak_memory()
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let records = match arguments.as_slice() {
        [] => Some(10_000_000),
        [number] => number.parse().ok(),
        _ => None,
    };
    if let Some(records) = records {
        let started = Instant::now();
        let mut bytes = 0;
        let mut source = generated(records);
        let mut piece = vec![0; 256 << 10];
        loop {
            match source.read(&mut piece)? {
                0 => break,
                count => bytes += count as u64,
            }
        }
        report("making them alone", bytes / 48, started);

        let million = records.min(1_000_000);
        let mut memory = Vec::new();
        generated(million).read_to_end(&mut memory)?;
        let started = Instant::now();
        let reader = TraceReader::from_read("memory", io::Cursor::new(memory), &Options::default())?;
        report("reading from memory", reader.map(|event| event.map(|_| 1)).sum::<Result<u64, _>>()?, started);

        let started = Instant::now();
        let reader = TraceReader::from_read("generated", generated(records), &Options::default())?;
        report("making and reading", reader.map(|event| event.map(|_| 1)).sum::<Result<u64, _>>()?, started);

        let started = Instant::now();
        let reader = TraceReader::from_read("generated", generated(records), &Options::default())?;
        let mut summary = Summary::new();
        for event in reader {
            summary.add(&event?);
        }
        report("making, reading and statistics", summary.events, started);
        return Ok(());
    }
    for path in &arguments {
        let started = Instant::now();
        let reader = TraceReader::open(path.as_ref(), &Options::default())?;
        let format = reader.format();
        report(
            &format!("{path} ({format})"),
            reader.map(|event| event.map(|_| 1)).sum::<Result<u64, _>>()?,
            started,
        );
        let started = Instant::now();
        let mut summary = Summary::of(format.facts());
        for event in TraceReader::open(path.as_ref(), &Options::default())? {
            summary.add(&event?);
        }
        report(&format!("{path} (with statistics)"), summary.events, started);
        for interval in fairlift_trace::Interval::ALL {
            let m = summary.all.interval(interval);
            let [min, mean, max] = [m.min as f64, m.mean(), m.max as f64].map(|ns| ns / 1e9);
            println!("  {} {min:.9} {mean:.9} {max:.9} {}", interval.name(), m.count);
        }
    }
    Ok(())
}
