//! tiotest: every thread writes its own file, writes into it at random, reads it, and reads in it at random.
//!
//! Phases and calls of version 0.3.3; the tables are those of 0.3.3 to 0.3.5.

use std::cell::RefCell;
use std::rc::Rc;

use super::options::{self, Opt, flag, with};
use super::process::{During, below};
use super::{Failure, Process, Program, ProgramError, ProgramMetric, Run};
use crate::engine::{Signal, Sys};
use crate::kernel::{Fd, OpenFlags};
use crate::stats::Latency;

const OPTIONS: &[Opt] = &[
    with("-f", "MBYTES PER THREAD"),
    with("-b", "BLOCK BYTES"),
    with("-d", "DIRECTORY (with -R: DEVICE)"),
    with("-t", "THREADS"),
    with("-r", "RANDOM OPERATIONS PER THREAD"),
    with("-o", "OFFSET IN MBYTES BETWEEN THREADS, with -R"),
    with("-k", "TEST TO SKIP (0 to 3)"),
    flag("-L"),
    flag("-R"),
    flag("-S"),
    flag("-W"),
    flag("-O"),
];

const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000_000_000;

/// The four phases, in order.
const PHASES: [&str; 4] = ["Write", "Random Write", "Read", "Random Read"];

macro_rules! metrics {
    ($($prefix:literal, $part:literal);*) => {
        [$([
            ProgramMetric::time(concat!($prefix, "_s"), "time", "s").of($part),
            ProgramMetric::rate(concat!($prefix, "_mib_s"), "bandwidth", "MiB/s").of($part),
            ProgramMetric::rate(concat!($prefix, "_iops"), "calls", "1/s").of($part),
            ProgramMetric::time(concat!($prefix, "_mean_ms"), "mean", "ms").of($part),
            ProgramMetric::time(concat!($prefix, "_max_ms"), "max", "ms").of($part),
            ProgramMetric::time(concat!($prefix, "_over_2s_percent"), "over 2 s", "%").of($part),
            ProgramMetric::time(concat!($prefix, "_over_10s_percent"), "over 10 s", "%").of($part),
        ]),*]
    };
}

/// Of all phases together: the last row of the second table.
const TOTAL: [ProgramMetric; 4] = [
    ProgramMetric::time("total_mean_ms", "mean", "ms").of("total"),
    ProgramMetric::time("total_max_ms", "max", "ms").of("total"),
    ProgramMetric::time("total_over_2s_percent", "over 2 s", "%").of("total"),
    ProgramMetric::time("total_over_10s_percent", "over 10 s", "%").of("total"),
];

const METRICS: [[ProgramMetric; 7]; 4] =
    metrics!("write", "write"; "random_write", "random write"; "read", "read"; "random_read", "random read");

/// What tiotest was told.
#[derive(Clone, Debug)]
struct Tiotest {
    file_bytes: u64,
    block_bytes: u64,
    paths: Vec<String>,
    threads: u64,
    random_ops: u64,
    offset_bytes: u64,
    offset_first: bool,
    skip: [bool; 4],
    show_latency: bool,
    raw: bool,
    sync_writing: bool,
    sequential_writing: bool,
}

pub(super) fn parse(words: &[String]) -> Result<Box<dyn Program>, ProgramError> {
    let mut t = Tiotest {
        file_bytes: 10 * MIB,
        block_bytes: 4096,
        paths: Vec::new(),
        threads: 4,
        random_ops: 1000,
        offset_bytes: 0,
        offset_first: false,
        skip: [false; 4],
        show_latency: true,
        raw: false,
        sync_writing: false,
        sequential_writing: false,
    };
    for (option, value) in options::read("tiotest", OPTIONS, words)? {
        let number = |range| options::number("tiotest", option, &value, range);
        match option {
            "-f" => t.file_bytes = number(1..=1 << 24)? * MIB,
            "-b" => t.block_bytes = number(1..=1 << 30)?,
            "-d" => t.paths.push(value.trim_end_matches('/').to_owned()),
            "-t" => t.threads = number(1..=4096)?,
            "-r" => t.random_ops = number(1..=100_000_000)?,
            "-o" => t.offset_bytes = number(0..=1 << 24)? * MIB,
            "-k" => t.skip[number(0..=3)? as usize] = true,
            "-L" => t.show_latency = false,
            "-R" => t.raw = true,
            "-S" => t.sync_writing = true,
            "-W" => t.sequential_writing = true,
            _ => t.offset_first = true,
        }
    }
    if t.block_bytes > t.file_bytes {
        let message =
            format!("a block of {} bytes does not fit into a file of {}", t.block_bytes, t.file_bytes);
        return Err(ProgramError::new("tiotest", message));
    }
    if t.raw && t.paths.is_empty() {
        return Err(ProgramError::new("tiotest", "-R needs -d DEVICE"));
    }
    if t.paths.is_empty() {
        t.paths.push(".".to_owned());
    }
    Ok(Box::new(t))
}

/// What the threads of a phase found out.
#[derive(Debug, Default)]
struct Phase {
    /// Wall clock, final fsync and close included, nanoseconds.
    ns: u64,
    calls: Latency,
    over_2s: u64,
    over_10s: u64,
    /// Processor time in the kernel, nanoseconds.
    cpu_ns: u64,
}

impl Phase {
    fn record(&mut self, ns: u64) {
        self.calls.record(ns);
        self.over_2s += u64::from(ns > 2 * SECOND);
        self.over_10s += u64::from(ns > 10 * SECOND);
    }

    fn add_calls(&mut self, other: &Phase) {
        self.calls.merge(&other.calls);
        self.over_2s += other.over_2s;
        self.over_10s += other.over_10s;
        self.cpu_ns += other.cpu_ns;
    }

    /// A row of the second table: mean and longest in milliseconds, shares over 2 and 10 s in percent.
    fn latency(&self) -> [f64; 4] {
        [
            self.calls.mean_ns() / 1e6,
            self.calls.max_ns() as f64 / 1e6,
            self.percent(self.over_2s),
            self.percent(self.over_10s),
        ]
    }

    fn percent(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.calls.count().max(1) as f64
    }
}

impl Program for Tiotest {
    fn name(&self) -> &'static str {
        "tiotest"
    }

    fn metrics(&self) -> Vec<ProgramMetric> {
        (0..4).filter(|phase| !self.skip[*phase]).flat_map(|phase| METRICS[phase]).chain(TOTAL).collect()
    }

    fn tasks(&self) -> usize {
        self.threads as usize + 1
    }

    fn needs_files(&self) -> bool {
        !self.raw
    }

    fn devices(&self) -> Vec<String> {
        if self.raw { self.paths.clone() } else { Vec::new() }
    }

    fn run(&self, process: Process) -> Run<'_> {
        Box::pin(self.main(process))
    }
}

impl Tiotest {
    async fn main(&self, p: Process) -> Result<(), Failure> {
        let mut phases: [Option<Phase>; 4] = [const { None }; 4];
        for (number, slot) in phases.iter_mut().enumerate() {
            if self.skip[number] {
                continue;
            }
            let phase = self.phase(&p, number).await;
            if p.failed() {
                return Ok(());
            }
            self.set_metrics(&p, number, &phase);
            *slot = Some(phase);
        }
        let mut total = Phase::default();
        phases.iter().flatten().for_each(|phase| total.add_calls(phase));
        TOTAL.iter().zip(total.latency()).for_each(|(metric, value)| p.out.set(*metric, value));
        p.out.print(&self.tables(&phases, &total));
        if !self.raw {
            for thread in 0..self.threads {
                let path = self.path(thread);
                p.sys.unlink(&path).await.during("unlink", &path)?;
            }
        }
        Ok(())
    }

    /// All threads of a phase: started together, or with `-W` one after the other.
    async fn phase(&self, p: &Process, number: usize) -> Phase {
        let sum = Rc::new(RefCell::new(Phase::default()));
        let start = Signal::new();
        let in_turn = self.sequential_writing && number == 0;
        let began = p.sys.now();
        let mut children = Vec::new();
        for thread in 0..self.threads {
            let (test, sum, go) = (self.clone(), Rc::clone(&sum), start.clone());
            let child = p.fork(number as u64 * self.threads + thread, move |child| async move {
                if !in_turn {
                    go.wait(&child.sys).await;
                }
                let phase = test.thread(&child, number, thread).await?;
                sum.borrow_mut().add_calls(&phase);
                Ok(())
            });
            if in_turn {
                p.wait(&[child]).await;
            } else {
                children.push(child);
            }
        }
        start.raise(&p.sys);
        p.wait(&children).await;
        let mut phase = sum.take();
        phase.ns = (p.sys.now() - began).max(1);
        phase
    }

    /// One thread's part of a phase.
    async fn thread(&self, p: &Process, number: usize, thread: u64) -> Result<Phase, Failure> {
        let (writes, at_random) = (number < 2, number % 2 == 1);
        let path = self.path(thread);
        let base = self.base(thread);
        let mut flags = if writes { OpenFlags::RDWR.create() } else { OpenFlags::RDONLY };
        flags.truncate = number == 0 && !self.raw;
        if writes && self.sync_writing {
            flags = flags.o_sync();
        }
        let blocks = self.file_bytes / self.block_bytes;
        let mut random = p.random();
        let mut phase = Phase::default();
        let fd = p.sys.open(&path, flags).await.during("open", &path)?;
        p.sys.lseek(fd, base).during("lseek", &path)?;
        let calls = if at_random { self.random_ops } else { blocks };
        for _ in 0..calls {
            if at_random {
                let block = below(&mut random, blocks);
                p.sys.lseek(fd, base + block * self.block_bytes).during("lseek", &path)?;
            }
            let called = p.sys.now();
            self.call(&p.sys, fd, writes, &path).await?;
            phase.record(p.sys.now() - called);
        }
        if writes {
            p.sys.fsync(fd).await.during("fsync", &path)?;
        }
        p.sys.close(fd).await.during("close", &path)?;
        phase.cpu_ns = p.kernel_cpu_ns(calls, calls * self.block_bytes);
        Ok(phase)
    }

    async fn call(&self, sys: &Sys, fd: Fd, writes: bool, path: &str) -> Result<(), Failure> {
        if writes {
            sys.write(fd, self.block_bytes).await.during("write", path)?;
        } else {
            sys.read(fd, self.block_bytes).await.during("read", path)?;
        }
        Ok(())
    }

    fn path(&self, thread: u64) -> String {
        let path = &self.paths[(thread % self.paths.len() as u64) as usize];
        if self.raw { path.clone() } else { format!("{path}/_tiotest_pid1.thr{thread}") }
    }

    /// Where a thread's part of a raw device begins, bytes.
    fn base(&self, thread: u64) -> u64 {
        if !self.raw {
            return 0;
        }
        let on_this_device = thread / self.paths.len() as u64;
        let first = if self.offset_first { self.offset_bytes } else { 0 };
        first + on_this_device * (self.offset_bytes + self.file_bytes)
    }

    /// Bytes a phase moves.
    fn bytes(&self, number: usize) -> u64 {
        let calls = if number % 2 == 1 { self.random_ops } else { self.file_bytes / self.block_bytes };
        self.threads * calls * self.block_bytes
    }

    fn set_metrics(&self, p: &Process, number: usize, phase: &Phase) {
        let seconds = phase.ns as f64 / 1e9;
        let rate = self.bytes(number) as f64 / MIB as f64 / seconds;
        let calls = phase.calls.count() as f64 / seconds;
        let values = [seconds, rate, calls].into_iter().chain(phase.latency());
        METRICS[number].iter().zip(values).for_each(|(metric, value)| p.out.set(*metric, value));
    }

    fn tables(&self, phases: &[Option<Phase>; 4], total: &Phase) -> String {
        let mut text = format!("Tiotest results for {} concurrent io threads:\n{RATES_HEAD}", self.threads);
        for (number, phase) in phases.iter().enumerate() {
            let Some(phase) = phase else { continue };
            let mbytes = self.bytes(number) as f64 / MIB as f64;
            let seconds = phase.ns as f64 / 1e9;
            // Programs take no CPU time of their own here.
            let system = 100.0 * phase.cpu_ns as f64 / phase.ns as f64;
            text.push_str(&rates_row(number, mbytes, seconds, mbytes / seconds, [0.0, system]));
        }
        text.push_str(RATES_FOOT);
        if self.show_latency {
            text.push_str(LATENCY_HEAD);
            for (number, phase) in phases.iter().enumerate() {
                let Some(phase) = phase else { continue };
                text.push_str(&latency_row(PHASES[number], phase));
            }
            text.push_str("|--------------+-----------------+-----------------+----------+-----------|\n");
            text.push_str(&latency_row("Total", total));
            text.push_str("`--------------+-----------------+-----------------+----------+-----------'\n\n");
        }
        text
    }
}

const RATES_HEAD: &str = "\
,----------------------------------------------------------------------.
| Item                  | Time     | Rate         | Usr CPU  | Sys CPU |
+-----------------------+----------+--------------+----------+---------+
";
const RATES_FOOT: &str = "`----------------------------------------------------------------------'\n";
const LATENCY_HEAD: &str = "\
Tiotest latency results:
,-------------------------------------------------------------------------.
| Item         | Average latency | Maximum latency | % >2 sec | % >10 sec |
+--------------+-----------------+-----------------+----------+-----------+
";

fn rates_row(phase: usize, mbytes: f64, seconds: f64, rate: f64, cpu: [f64; 2]) -> String {
    let width = 16 - PHASES[phase].len();
    format!(
        "| {} {mbytes:>width$.0} MBs | {seconds:>6.1} s | {rate:>7.3} MB/s | {:>5.1} %  | {:>5.1} % |\n",
        PHASES[phase], cpu[0], cpu[1]
    )
}

fn latency_row(item: &str, phase: &Phase) -> String {
    let [mean, max, over_2s, over_10s] = phase.latency();
    format!("| {item:<12} | {mean:>12.3} ms | {max:>12.3} ms | {over_2s:>8.5} | {over_10s:>9.5} |\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPTURE: &str = include_str!("../../tests/data/programs/tiotest-0.3.txt");

    #[test]
    fn the_tables_are_tiotests() {
        for part in [RATES_HEAD, RATES_FOOT, LATENCY_HEAD] {
            assert!(CAPTURE.contains(part), "{part}");
        }
        let rows = [
            rates_row(0, 32768.0, 484.3, 67.662, [0.8, 12.9]),
            rates_row(1, 16.0, 3.2, 4.913, [0.1, 1.6]),
            rates_row(2, 32768.0, 155.1, 211.207, [1.5, 22.9]),
            rates_row(3, 16.0, 8.7, 1.795, [0.1, 0.3]),
        ];
        for row in rows {
            assert!(CAPTURE.contains(&row), "{row}");
        }
        let mut phase = Phase::default();
        phase.record(2000);
        phase.record(0);
        phase.record(1000);
        phase.calls.record(8_020_000);
        let ours = latency_row("Read", &phase);
        let theirs = CAPTURE.lines().find(|l| l.starts_with("| Read         |        ")).unwrap();
        let bars = |l: &str| {
            l.char_indices().filter(|(_, c)| "|.m".contains(*c)).map(|(i, _)| i).collect::<Vec<_>>()
        };
        assert_eq!(bars(&ours), bars(theirs), "columns stand where they stood");
    }
}
