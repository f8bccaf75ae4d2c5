//! fs_mark: make many files, write them, force them to disk in one of seven ways, and count files per second.
//!
//! Operation by operation; checked against traces of fs_mark 3.3 for every sync
//! method.

use std::cell::RefCell;
use std::rc::Rc;

use super::options::{self, Opt, flag, with};
use super::process::{During, below};
use super::{Failure, Process, Program, ProgramError, ProgramMetric, Run};
use crate::device::rng::Rng;
use crate::kernel::{Errno, OpenFlags};
use crate::stats::Latency;

const OPTIONS: &[Opt] = &[
    with("-S", "METHOD (0 to 6)"),
    with("-D", "SUBDIRECTORIES"),
    with("-N", "FILES IN EACH SUBDIRECTORY"),
    with("-d", "DIRECTORY"),
    with("-l", "LOG FILE"),
    with("-L", "ITERATIONS"),
    with("-n", "FILES"),
    with("-p", "BYTES OF A NAME"),
    with("-r", "RANDOM BYTES OF A NAME"),
    with("-s", "BYTES OF A FILE"),
    with("-t", "THREADS"),
    with("-w", "BYTES OF A WRITE"),
    flag("-k"),
    flag("-v"),
];

/// Processor time to think of a name, nanoseconds: fs_mark 3.3 reports 8 to 14 us of "App Overhead" a file.
const NAMING_NS: u64 = 10_000;
/// Without `-N` a subdirectory is used for so long, seconds.
const SECONDS_PER_SUBDIRECTORY: u64 = 180;

const FILES_PER_S: ProgramMetric = ProgramMetric::rate("files_per_s", "rate", "files/s");
const FILES_PER_S_MIN: ProgramMetric = ProgramMetric::rate("files_per_s_min", "slowest", "files/s");
const FILES_PER_S_MAX: ProgramMetric = ProgramMetric::rate("files_per_s_max", "fastest", "files/s");
/// Of one thread, everything in its loop included.
const FILE_TIME: ProgramMetric = ProgramMetric::time("file_ms", "file", "ms");
const FILES: ProgramMetric = ProgramMetric::amount("files", "files", "files");
const WRITES: ProgramMetric = ProgramMetric::amount("writes", "writes", "calls");
const FSYNCS: ProgramMetric = ProgramMetric::amount("fsyncs", "fsyncs", "calls");
const OVERHEAD: ProgramMetric = ProgramMetric::time("app_overhead_us", "overhead", "us");
const FSYNC_MEAN: ProgramMetric = ProgramMetric::time("fsync_mean_ms", "fsync mean", "ms");
const FSYNC_MAX: ProgramMetric = ProgramMetric::time("fsync_max_ms", "fsync max", "ms");

/// How files reach the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SyncMethod {
    /// 0: not at all.
    None,
    /// 1: fsync each before its close.
    Inband,
    /// 2: after the loop sync, then fsync one file.
    SyncAndOne,
    /// 3: after the loop reopen and fsync each, last first.
    PostReverse,
    /// 4: sync, then as 3.
    SyncPostReverse,
    /// 5: after the loop reopen and fsync each, first first.
    Post,
    /// 6: sync, then as 5.
    SyncPost,
}

const METHODS: [(SyncMethod, &str); 7] = [
    (SyncMethod::None, "NO SYNC: Test does not issue sync() or fsync() calls."),
    (SyncMethod::Inband, "INBAND FSYNC: fsync() per file in write loop."),
    (
        SyncMethod::SyncAndOne,
        "SYSTEM SYNC/SINGLE FSYNC: Issue sync() after main write loop and 1 file fsync() per subdirectory.",
    ),
    (
        SyncMethod::PostReverse,
        "POST REVERSE: Reopen and fsync() each file in reverse order after main write loop.",
    ),
    (
        SyncMethod::SyncPostReverse,
        "SYNC POST REVERSE: Issue sync() and then reopen and fsync() each file in reverse order after main write loop.",
    ),
    (SyncMethod::Post, "POST: Reopen and fsync() each file in order after main write loop."),
    (
        SyncMethod::SyncPost,
        "SYNC POST: Issue sync() and then reopen and fsync() each file in order after main write loop.",
    ),
];

/// What fs_mark was told.
#[derive(Clone, Debug)]
struct FsMark {
    arguments: Vec<String>,
    method: usize,
    subdirectories: u64,
    files_per_subdirectory: u64,
    directories: Vec<String>,
    iterations: u64,
    files: u64,
    name_bytes: usize,
    random_bytes: usize,
    file_bytes: u64,
    threads: u64,
    write_bytes: u64,
    keep: bool,
    verbose: bool,
}

pub(super) fn parse(words: &[String]) -> Result<Box<dyn Program>, ProgramError> {
    Ok(Box::new(read_options(words)?))
}

fn read_options(words: &[String]) -> Result<FsMark, ProgramError> {
    let mut m = FsMark {
        arguments: words.to_vec(),
        method: 1,
        subdirectories: 0,
        files_per_subdirectory: 0,
        directories: Vec::new(),
        iterations: 1,
        files: 1000,
        name_bytes: 40,
        random_bytes: 24,
        file_bytes: 51_200,
        threads: 1,
        write_bytes: 16_384,
        keep: false,
        verbose: false,
    };
    for (option, value) in options::read("fs_mark", OPTIONS, words)? {
        let number = |range| options::number("fs_mark", option, &value, range);
        match option {
            "-S" => m.method = number(0..=6)? as usize,
            // Two hex digits name a subdirectory in the original; more get more.
            "-D" => m.subdirectories = number(1..=65_536)?,
            "-N" => m.files_per_subdirectory = number(1..=10_000_000)?,
            "-d" => m.directories.push(value.trim_end_matches('/').to_owned()),
            "-l" => {}
            "-L" => m.iterations = number(1..=1_000_000)?,
            "-n" => m.files = number(1..=10_000_000)?,
            "-p" => m.name_bytes = number(1..=128)? as usize,
            "-r" => m.random_bytes = number(0..=128)? as usize,
            "-s" => m.file_bytes = number(0..=1 << 40)?,
            "-t" => m.threads = number(1..=4096)?,
            "-w" => m.write_bytes = number(1..=1 << 30)?,
            "-k" => m.keep = true,
            _ => m.verbose = true,
        }
    }
    if m.random_bytes > m.name_bytes {
        let message =
            format!("-r {} random bytes do not fit into a name of -p {} bytes", m.random_bytes, m.name_bytes);
        return Err(ProgramError::new("fs_mark", message));
    }
    if m.files_per_subdirectory > 0 && m.subdirectories == 0 {
        return Err(ProgramError::new("fs_mark", "-N needs -D: the number of subdirectories"));
    }
    if m.directories.is_empty() {
        m.directories.push(".".to_owned());
    }
    // Each directory has a process at least.
    m.threads = m.threads.max(m.directories.len() as u64);
    Ok(m)
}

/// The calls fs_mark times.
#[derive(Clone, Copy)]
enum Call {
    Creat,
    Write,
    Fsync,
    Sync,
    Close,
    Unlink,
}

const CALLS: [&str; 6] = ["CREAT", "WRITE", "FSYNC", "SYNC", "CLOSE", "UNLINK"];

/// What a process found out in an iteration.
#[derive(Debug, Default)]
struct Tally {
    calls: [Latency; 6],
    /// Time in the loop that was not spent in calls on files, nanoseconds.
    overhead_ns: u64,
    files_per_s: f64,
}

impl Program for FsMark {
    fn name(&self) -> &'static str {
        "fs_mark"
    }

    fn metrics(&self) -> Vec<ProgramMetric> {
        vec![
            FILES_PER_S,
            FILES_PER_S_MIN,
            FILES_PER_S_MAX,
            FILE_TIME,
            FILES,
            WRITES,
            FSYNCS,
            OVERHEAD,
            FSYNC_MEAN,
            FSYNC_MAX,
        ]
    }

    fn tasks(&self) -> usize {
        self.threads as usize + 1
    }

    fn run(&self, process: Process) -> Run<'_> {
        Box::pin(self.main(process))
    }
}

impl FsMark {
    async fn main(&self, p: Process) -> Result<(), Failure> {
        p.out.print(&self.head(p.sys.now()));
        let mut all = Tally::default();
        let mut rates: Vec<f64> = Vec::new();
        for iteration in 1..=self.iterations {
            let tally = self.iterate(&p, iteration).await;
            if p.failed() {
                return Ok(());
            }
            let count = iteration * self.files * self.threads;
            p.out.print(&row(count, self.file_bytes, tally.files_per_s, tally.overhead_ns / 1000));
            if self.verbose {
                p.out.print(&call_columns(&tally.calls));
            }
            p.out.print("\n");
            rates.push(tally.files_per_s);
            all.overhead_ns += tally.overhead_ns;
            all.calls.iter_mut().zip(&tally.calls).for_each(|(a, b)| a.merge(b));
            let set = |metric, value| p.out.set(metric, value);
            set(FILES_PER_S, rates.iter().sum::<f64>() / rates.len() as f64);
            set(FILES_PER_S_MIN, rates.iter().copied().fold(f64::INFINITY, f64::min));
            set(FILES_PER_S_MAX, rates.iter().copied().fold(0.0, f64::max));
            let file_ms = rates.iter().map(|rate| self.threads as f64 * 1e3 / rate);
            set(FILE_TIME, file_ms.sum::<f64>() / rates.len() as f64);
            set(FILES, count as f64);
            set(WRITES, all.calls[Call::Write as usize].count() as f64);
            set(FSYNCS, all.calls[Call::Fsync as usize].count() as f64);
            set(OVERHEAD, all.overhead_ns as f64 / 1e3);
            set(FSYNC_MEAN, all.calls[Call::Fsync as usize].mean_ns() / 1e6);
            set(FSYNC_MAX, all.calls[Call::Fsync as usize].max_ns() as f64 / 1e6);
        }
        p.out.print("\n");
        Ok(())
    }

    /// One iteration: a child for each thread; their rates add up.
    async fn iterate(&self, p: &Process, iteration: u64) -> Tally {
        let sum = Rc::new(RefCell::new(Tally::default()));
        let children: Vec<_> = (0..self.threads)
            .map(|thread| {
                let (mark, sum) = (self.clone(), Rc::clone(&sum));
                p.fork(iteration * self.threads + thread, move |child| async move {
                    let tally = mark.child(&child, thread).await?;
                    let mut sum = sum.borrow_mut();
                    sum.files_per_s += tally.files_per_s;
                    sum.overhead_ns += tally.overhead_ns;
                    sum.calls.iter_mut().zip(&tally.calls).for_each(|(a, b)| a.merge(b));
                    Ok(())
                })
            })
            .collect();
        p.wait(&children).await;
        sum.take()
    }

    /// One process's files.
    async fn child(&self, p: &Process, thread: u64) -> Result<Tally, Failure> {
        let directory = &self.directories[(thread % self.directories.len() as u64) as usize];
        let mut random = p.random();
        let mut tally = Tally::default();
        let mut paths: Vec<String> = Vec::new();
        make_directory(p, directory).await?;
        p.sys.statfs().await;

        let start_s = p.sys.now() / 1_000_000_000;
        let start = p.sys.now();
        for n in 0..self.files {
            let path = self.next_path(p, directory, start_s, n, &mut random).await?;
            self.write_file(p, &path, &mut tally).await?;
            paths.push(path);
        }
        self.sync_after_loop(p, &paths, &mut tally).await?;
        let loop_ns = p.sys.now() - start;

        tally.files_per_s = self.files as f64 * 1e9 / loop_ns.max(1) as f64;
        let in_calls: f64 = tally.calls.iter().map(|c| c.mean_ns() * c.count() as f64).sum();
        tally.overhead_ns = loop_ns.saturating_sub(in_calls.round() as u64);
        if !self.keep {
            for path in &paths {
                let called = p.sys.now();
                p.sys.unlink(path).await.during("unlink", path)?;
                tally.time(p, Call::Unlink, called);
            }
        }
        Ok(tally)
    }

    /// The next file's path; its subdirectory is made, as a rule in vain.
    async fn next_path(
        &self,
        p: &Process,
        directory: &str,
        start_s: u64,
        n: u64,
        random: &mut Rng,
    ) -> Result<String, Failure> {
        p.sys.compute(NAMING_NS).await;
        let now_s = p.sys.now() / 1_000_000_000;
        let name = self.file_name(now_s, random);
        if self.subdirectories == 0 {
            return Ok(format!("{directory}/{name}"));
        }
        let index = match self.files_per_subdirectory {
            0 => now_s / SECONDS_PER_SUBDIRECTORY,
            per_subdirectory => start_s + n / per_subdirectory,
        };
        let subdirectory = format!("{directory}/{:02x}", index % self.subdirectories);
        make_directory(p, &subdirectory).await?;
        Ok(format!("{subdirectory}/{name}"))
    }

    /// Seconds in hex, filled up with `~`, then random letters and digits.
    fn file_name(&self, now_s: u64, random: &mut Rng) -> String {
        const LETTERS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let mut name = format!("{now_s:08x}");
        name.truncate(self.name_bytes - self.random_bytes);
        while name.len() < self.name_bytes - self.random_bytes {
            name.push('~');
        }
        for _ in 0..self.random_bytes {
            name.push(LETTERS[below(random, LETTERS.len() as u64) as usize] as char);
        }
        name
    }

    async fn write_file(&self, p: &Process, path: &str, tally: &mut Tally) -> Result<(), Failure> {
        let called = p.sys.now();
        let fd = p.sys.open(path, OpenFlags::RDWR.create().truncate()).await.during("open", path)?;
        tally.time(p, Call::Creat, called);
        let mut left = self.file_bytes;
        while left > 0 {
            let called = p.sys.now();
            left -= p.sys.write(fd, left.min(self.write_bytes)).await.during("write", path)?;
            tally.time(p, Call::Write, called);
        }
        if METHODS[self.method].0 == SyncMethod::Inband {
            let called = p.sys.now();
            p.sys.fsync(fd).await.during("fsync", path)?;
            tally.time(p, Call::Fsync, called);
        }
        let called = p.sys.now();
        p.sys.close(fd).await.during("close", path)?;
        tally.time(p, Call::Close, called);
        Ok(())
    }

    /// What sync methods 2 to 6 do when all files are written; it counts.
    async fn sync_after_loop(&self, p: &Process, paths: &[String], tally: &mut Tally) -> Result<(), Failure> {
        use SyncMethod::{Inband, None, Post, PostReverse, SyncAndOne, SyncPost, SyncPostReverse};
        let method = METHODS[self.method].0;
        if matches!(method, SyncAndOne | SyncPost | SyncPostReverse) {
            let called = p.sys.now();
            p.sys.sync().await;
            tally.time(p, Call::Sync, called);
        }
        let in_order: Box<dyn Iterator<Item = &String>> = match method {
            None | Inband => return Ok(()),
            SyncAndOne => Box::new(paths.iter().take(1)),
            Post | SyncPost => Box::new(paths.iter()),
            PostReverse | SyncPostReverse => Box::new(paths.iter().rev()),
        };
        for path in in_order {
            let fd = p.sys.open(path, OpenFlags::RDONLY).await.during("open", path)?;
            let called = p.sys.now();
            p.sys.fsync(fd).await.during("fsync", path)?;
            tally.time(p, Call::Fsync, called);
            p.sys.close(fd).await.during("close", path)?;
        }
        Ok(())
    }

    fn head(&self, now: u64) -> String {
        let mut text = String::from("\n#  fs_mark ");
        for argument in &self.arguments {
            text.push_str(&format!(" {argument} "));
        }
        let directories = match (self.subdirectories, self.files_per_subdirectory) {
            (0, _) => "no subdirectories used".to_owned(),
            (d, 0) => format!(
                "Time based hash between directories across {d} subdirectories with {SECONDS_PER_SUBDIRECTORY} seconds per subdirectory."
            ),
            (d, n) => format!(
                "Round Robin between directories across {d} subdirectories with {n} files per subdirectory."
            ),
        };
        text.push_str(&format!(
            "\n#\tVersion 3.3, {} thread(s) starting at {} s of simulated time\n\
             #\tSync method: {}\n\
             #\tDirectories:  {directories}\n\
             #\tFile names: {} bytes long, ({} initial bytes of time stamp with {} random bytes at end of name)\n\
             #\tFiles info: size {} bytes, written with an IO size of {} bytes per write\n\
             #\tApp overhead is time in microseconds spent in the test not doing file writing related system calls.\n",
            self.threads,
            now / 1_000_000_000,
            METHODS[self.method].1,
            self.name_bytes,
            self.name_bytes - self.random_bytes,
            self.random_bytes,
            self.file_bytes,
            self.write_bytes,
        ));
        if self.verbose {
            text.push_str("#\tAll system call times are reported in microseconds.\n");
        }
        text.push_str("\nFSUse%        Count         Size    Files/sec     App Overhead");
        if self.verbose {
            CALLS.iter().for_each(|call| text.push_str(&format!("{:>27}", format!("{call} (Min/Avg/Max)"))));
        }
        text.push('\n');
        text
    }
}

impl Tally {
    fn time(&mut self, p: &Process, call: Call, called_ns: u64) {
        self.calls[call as usize].record(p.sys.now() - called_ns);
    }
}

/// A line of the table. How full the file system is is not known here: 0.
fn row(count: u64, size: u64, files_per_s: f64, overhead_us: u64) -> String {
    format!("{:>6}{count:>13}{size:>13}{files_per_s:>13.1}{overhead_us:>17}", 0)
}

fn call_columns(calls: &[Latency; 6]) -> String {
    let column = |c: &Latency| {
        format!("{:>9}{:>9}{:>9}", c.min_ns() / 1000, (c.mean_ns() / 1000.0) as u64, c.max_ns() / 1000)
    };
    calls.iter().map(column).collect()
}

async fn make_directory(p: &Process, path: &str) -> Result<(), Failure> {
    if path == "." || path.is_empty() {
        return Ok(());
    }
    match p.sys.mkdir(path).await {
        Err(Errno::Exists) => Ok(()),
        made => made.during("mkdir", path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPTURE: &str = include_str!("../../tests/data/programs/fs_mark-3.3.txt");

    /// Lines of the capture, without the fill level of its file system.
    fn captured(line: &str) -> bool {
        CAPTURE.lines().any(|l| l.get(6..) == line.get(6..))
    }

    #[test]
    fn the_table_is_fs_marks() {
        assert!(captured(&row(1000, 65_536, 212.4, 14_533)));
        assert!(captured(&row(16, 16_384, 11103.8, 441)));
    }

    #[test]
    fn the_head_is_fs_marks() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for method in 0..=6 {
            let command = format!("-S {method} -D 2 -N 3 -n 8 -s 16384 -t 2 -w 4096 -d d");
            let text = head_of(&words(&command));
            for line in text.lines().filter(|l| !l.contains("starting at")) {
                assert!(CAPTURE.lines().any(|l| l == line), "method {method}: {line:?}");
            }
        }
        for command in ["-S 5 -n 5 -d e1 -d e2 -t 2 -v", "-d e1 -n 7 -D 5 -S 0"] {
            for line in head_of(&words(command)).lines().filter(|l| !l.contains("starting at")) {
                assert!(CAPTURE.lines().any(|l| l == line), "{line:?}");
            }
        }
    }

    fn head_of(words: &[String]) -> String {
        read_options(words).unwrap().head(0)
    }
}
