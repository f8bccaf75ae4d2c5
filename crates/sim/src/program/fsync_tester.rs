//! fsync-tester: how long an fsync of 1 MiB takes, once a second.
//!
//! The first form is Theodore Ts'o's (2009), the second (`--mason`) Chris Mason's, who added a process that dirties pages at
//! random. Sources in `docs/programs.md`. The originals' loop has no end or one of its own; `-n` and
//! `-t` set it here.

use super::options::{self, Opt, flag, with};
use super::process::{During, below};
use super::{Failure, Process, Program, ProgramError, ProgramMetric, Run};
use crate::engine::Signal;
use crate::kernel::{Fd, OpenFlags};

const OPTIONS: &[Opt] = &[with("-n", "ROUNDS"), with("-t", "SECONDS"), flag("--mason")];

const FILE: &str = "fsync-tester.tst-file";
const BYTES: u64 = 1 << 20;
const RANDOM_FILE: &str = "fsync-tester.rnd-file";
const RANDOM_BYTES: u64 = 256 << 20;
const BLOCK: u64 = 4096;
const SECOND: u64 = 1_000_000_000;
/// What both programs would take for an end if the original has none.
const ROUNDS_MAX: u64 = 60;
const LIMIT_S: u64 = 60;

const MEAN: ProgramMetric = ProgramMetric::time("mean_s", "fsync mean", "s");
const MEDIAN: ProgramMetric = ProgramMetric::time("median_s", "median", "s");
const MIN: ProgramMetric = ProgramMetric::time("min_s", "min", "s");
const MAX: ProgramMetric = ProgramMetric::time("max_s", "max", "s");
const COUNT: ProgramMetric = ProgramMetric::amount("count", "count", "fsyncs");
const WRITE_MAX: ProgramMetric = ProgramMetric::time("write_max_s", "write max", "s");

/// What fsync-tester was told.
#[derive(Debug)]
struct FsyncTester {
    rounds: u64,
    limit_ns: u64,
    mason: bool,
}

pub(super) fn parse(words: &[String]) -> Result<Box<dyn Program>, ProgramError> {
    let (mut rounds, mut limit_s, mut mason) = (None, None, false);
    for (option, value) in options::read("fsync-tester", OPTIONS, words)? {
        let number = |max| options::number("fsync-tester", option, &value, 1..=max);
        match option {
            "-n" => rounds = Some(number(1_000_000)?),
            "-t" => limit_s = Some(number(86_400)?),
            _ => mason = true,
        }
    }
    // One limit given: that one alone holds.
    let (rounds, limit_s) = match (rounds, limit_s) {
        (None, None) => (ROUNDS_MAX, LIMIT_S),
        (rounds, limit) => (rounds.unwrap_or(u64::MAX), limit.unwrap_or(86_400)),
    };
    Ok(Box::new(FsyncTester { rounds, limit_ns: limit_s * SECOND, mason }))
}

impl Program for FsyncTester {
    fn name(&self) -> &'static str {
        "fsync-tester"
    }

    fn metrics(&self) -> Vec<ProgramMetric> {
        vec![MEAN, MEDIAN, MIN, MAX, COUNT, WRITE_MAX]
    }

    fn tasks(&self) -> usize {
        1 + usize::from(self.mason)
    }

    fn run(&self, process: Process) -> Run<'_> {
        Box::pin(self.main(process))
    }
}

impl FsyncTester {
    async fn main(&self, p: Process) -> Result<(), Failure> {
        if !self.mason {
            return self.measure(&p).await;
        }
        let random_file = fill_random_file(&p).await?;
        let stop = Signal::new();
        let heard = stop.clone();
        let child = p.fork(0, move |child| async move { dirty_at_random(&child, random_file, &heard).await });
        let measured = self.measure(&p).await;
        stop.raise(&p.sys); // the original kills its child
        p.wait(&[child]).await;
        measured
    }

    async fn measure(&self, p: &Process) -> Result<(), Failure> {
        let start = p.sys.now();
        let mut times = Times::default();
        let fd = p.sys.open(FILE, OpenFlags::WRONLY.create()).await.during("open", FILE)?;
        for _ in 0..self.rounds {
            let called = p.sys.now();
            p.sys.pwrite(fd, 0, BYTES).await.during("pwrite", FILE)?;
            let written = p.sys.now();
            p.sys.fsync(fd).await.during("fsync", FILE)?;
            let synced = p.sys.now();
            times.add(p, written - called, synced - written, self.mason);
            p.sys.sleep(if self.mason { 4 * SECOND } else { SECOND }).await;
            if p.sys.now() - start >= self.limit_ns {
                break;
            }
        }
        p.sys.close(fd).await.during("close", FILE)
    }
}

/// All rounds so far.
#[derive(Debug, Default)]
struct Times {
    fsync_s: Vec<f64>,
    write_max_s: f64,
}

impl Times {
    /// One more round; the figures are up to date after each, for a program that is stopped.
    fn add(&mut self, p: &Process, write_ns: u64, fsync_ns: u64, with_write: bool) {
        let (write_s, fsync_s) = (write_ns as f64 / 1e9, fsync_ns as f64 / 1e9);
        if with_write {
            p.out.print(&format!("write time {write_s:.4} fsync time {fsync_s:.4}\n"));
        } else {
            p.out.print(&format!("fsync time: {fsync_s:.4}\n"));
        }
        let at = self.fsync_s.partition_point(|s| *s < fsync_s);
        self.fsync_s.insert(at, fsync_s);
        self.write_max_s = self.write_max_s.max(write_s);
        let (sorted, n) = (&self.fsync_s, self.fsync_s.len());
        p.out.set(MEAN, sorted.iter().sum::<f64>() / n as f64);
        p.out.set(MEDIAN, (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0);
        p.out.set(MIN, sorted[0]);
        p.out.set(MAX, sorted[n - 1]);
        p.out.set(COUNT, n as f64);
        p.out.set(WRITE_MAX, self.write_max_s);
    }
}

async fn fill_random_file(p: &Process) -> Result<Fd, Failure> {
    let fd = p.sys.open(RANDOM_FILE, OpenFlags::WRONLY.create()).await.during("open", RANDOM_FILE)?;
    for _ in 0..RANDOM_BYTES / BLOCK {
        p.sys.write(fd, BLOCK).await.during("write", RANDOM_FILE)?;
    }
    Ok(fd)
}

/// Overwrite blocks at random until `stop`.
async fn dirty_at_random(p: &Process, fd: Fd, stop: &Signal) -> Result<(), Failure> {
    let mut random = p.random();
    while !stop.is_raised() {
        let block = below(&mut random, RANDOM_BYTES / BLOCK);
        p.sys.pwrite(fd, block * BLOCK, BLOCK).await.during("pwrite", RANDOM_FILE)?;
    }
    Ok(())
}
