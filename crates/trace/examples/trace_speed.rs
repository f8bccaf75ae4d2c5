//! How fast traces are read: `cargo run --release -p fairlift-trace --example trace_speed -- [RECORDS | FILE…]`.
//!
//! With a number, that many binary records (10 million by default) are made on the fly and read, without a file. With
//! files, each is read as it is and its statistics are taken. Prints records per second and the process's peak memory.

use std::io::{self, Read};
use std::time::Instant;

use fairlift_trace::write::{BlktraceWriter, EventWriter, Version};
use fairlift_trace::{Action, Device, DeviceNumber, Event, Names, Op, Options, Summary, Texts, TraceReader};

/// Binary records of one CPU, made when asked for: queue, get request, insert, issue, complete of each I/O.
struct Generated {
    left: u64,
    io: u64,
    stage: usize,
    piece: Vec<u8>,
    at: usize,
}

impl Generated {
    const STAGES: [Action; 5] =
        [Action::Queue, Action::GetRequest, Action::Insert, Action::Issue, Action::Complete];

    fn refill(&mut self) -> io::Result<()> {
        self.piece.clear();
        self.at = 0;
        let names = Names::default();
        let mut writer = BlktraceWriter::single(&mut self.piece, Version::V7);
        for _ in 0..self.left.min(4096) {
            let event = Event {
                time_ns: self.io * 10_000 + self.stage as u64 * 1_000,
                action: Self::STAGES[self.stage],
                device: Device::Number(DeviceNumber(8 << 20)),
                sector: self.io.wrapping_mul(2_654_435_761) % (1 << 30) / 8 * 8,
                bytes: 4096,
                op: if self.io.is_multiple_of(3) { Op::Write } else { Op::Read },
                pid: Some(1000 + (self.io % 8) as u32),
                cpu: Some(0),
                sequence: (self.io * 5 + self.stage as u64 + 1) as u32,
                ..Event::default()
            };
            writer.write(&event, Texts { names: &names, payload: b"" })?;
            self.stage = (self.stage + 1) % Self::STAGES.len();
            self.io += u64::from(self.stage == 0);
            self.left -= 1;
        }
        writer.finish().map(|_| ())
    }
}

impl Read for Generated {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() && self.left > 0 {
            self.refill()?;
        }
        let count = out.len().min(self.piece.len() - self.at);
        out[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

fn generated(records: u64) -> Generated {
    Generated { left: records, io: 0, stage: 0, piece: Vec::new(), at: 0 }
}

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
