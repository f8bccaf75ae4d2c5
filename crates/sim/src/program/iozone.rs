//! iozone's write, rewrite, read and reread of one file (tests 0 and 1).
//!
//! Operation by operation, from a trace of iozone 3.489; the table is that of
//! the 3.3 and 3.4 versions of the time of the letters. The read test's calls are not from a trace.

use super::options::{self, Opt, flag, shorten, with};
use super::process::During;
use super::{Failure, Process, Program, ProgramError, ProgramMetric, Run};
use crate::kernel::{Fd, OpenFlags};

const OPTIONS: &[Opt] = &[
    with("-s", "SIZE (KiB, or with k, m, g)"),
    with("-r", "RECORD (KiB, or with k, m, g)"),
    with("-f", "FILE"),
    with("-i", "TEST (0 write/rewrite, 1 read/reread)"),
    flag("-e"),
    flag("-c"),
    flag("-I"),
    flag("-o"),
    flag("-w"),
    flag("-+n"),
];

const KIB: u64 = 1024;
const SIZE_BYTES_MAX: u64 = 1 << 40;
const RECORD_BYTES_MAX: u64 = 1 << 30;

const METRICS: [ProgramMetric; 4] = [
    ProgramMetric::rate("write_kib_s", "write", "KiB/s"),
    ProgramMetric::rate("rewrite_kib_s", "rewrite", "KiB/s"),
    ProgramMetric::rate("read_kib_s", "read", "KiB/s"),
    ProgramMetric::rate("reread_kib_s", "reread", "KiB/s"),
];
/// The same as times.
const TIMES: [ProgramMetric; 4] = [
    ProgramMetric::time("write_ms", "write", "ms"),
    ProgramMetric::time("rewrite_ms", "rewrite", "ms"),
    ProgramMetric::time("read_ms", "read", "ms"),
    ProgramMetric::time("reread_ms", "reread", "ms"),
];
/// Widths of the table's columns after size and record: write, rewrite, read, reread.
const WIDTHS: [usize; 4] = [8, 8, 9, 9];

/// What iozone was told.
#[derive(Debug)]
struct Iozone {
    arguments: Vec<String>,
    size_bytes: u64,
    record_bytes: u64,
    file: String,
    /// Tests 0 and 1.
    tests: [bool; 2],
    fsync_timed: bool,
    close_timed: bool,
    retest: bool,
    keep: bool,
    flags: OpenFlags,
    /// What it says about its options, in their order.
    remarks: Vec<String>,
}

pub(super) fn parse(words: &[String]) -> Result<Box<dyn Program>, ProgramError> {
    let mut z = Iozone {
        arguments: words.to_vec(),
        size_bytes: 512 * KIB,
        record_bytes: 4 * KIB,
        file: "iozone.tmp".to_owned(),
        tests: [false; 2],
        fsync_timed: false,
        close_timed: false,
        retest: true,
        keep: false,
        flags: OpenFlags::RDWR,
        remarks: Vec::new(),
    };
    let mut remark = |text: String| z.remarks.push(text);
    for (option, value) in options::read("iozone", OPTIONS, words)? {
        let size = |max| options::size("iozone", option, &value, KIB, KIB..=max);
        match option {
            "-s" => {
                z.size_bytes = size(SIZE_BYTES_MAX)?;
                remark(format!("File size set to {} KB", z.size_bytes / KIB));
            }
            "-r" => {
                z.record_bytes = size(RECORD_BYTES_MAX)?;
                remark(format!("Record Size {} KB", z.record_bytes / KIB));
            }
            "-f" => z.file = value,
            "-i" => match value.as_str() {
                "0" => z.tests[0] = true,
                "1" => z.tests[1] = true,
                _ => {
                    let message = format!("test '{}' is not simulated", shorten(&value));
                    return Err(
                        ProgramError::new("iozone", message).allowing("0 write/rewrite, 1 read/reread")
                    );
                }
            },
            "-e" => {
                z.fsync_timed = true;
                remark("Include fsync in write timing".to_owned());
            }
            "-c" => {
                z.close_timed = true;
                remark("Include close in write timing".to_owned());
            }
            "-I" => {
                z.flags = z.flags.direct();
                remark("O_DIRECT feature enabled".to_owned());
            }
            "-o" => {
                z.flags = z.flags.o_sync();
                remark("SYNC Mode.".to_owned());
            }
            "-w" => {
                z.keep = true;
                remark("Setting no_unlink".to_owned());
            }
            _ => {
                z.retest = false;
                remark("No retest option selected".to_owned());
            }
        }
    }
    if z.record_bytes > z.size_bytes {
        let message = format!(
            "a record of {} KiB does not fit into a file of {} KiB",
            z.record_bytes / KIB,
            z.size_bytes / KIB
        );
        return Err(ProgramError::new("iozone", message));
    }
    if z.tests == [false; 2] {
        z.tests = [true; 2];
    }
    if !z.tests[0] {
        return Err(ProgramError::new("iozone", "test 1 reads what test 0 wrote: give -i 0 too"));
    }
    Ok(Box::new(z))
}

impl Program for Iozone {
    fn name(&self) -> &'static str {
        "iozone"
    }

    fn metrics(&self) -> Vec<ProgramMetric> {
        let runs = |i: &usize| self.tests[i / 2] && (self.retest || i.is_multiple_of(2));
        (0..4).filter(runs).flat_map(|i| [METRICS[i], TIMES[i]]).collect()
    }

    fn run(&self, process: Process) -> Run<'_> {
        Box::pin(self.main(process))
    }
}

impl Iozone {
    async fn main(&self, p: Process) -> Result<(), Failure> {
        for remark in &self.remarks {
            p.out.print(&format!("\t{remark}\n"));
        }
        p.out.print(&format!("\tCommand line used: iozone {}\n", self.arguments.join(" ")));
        p.out.print("\tOutput is in Kbytes/sec\n");
        self.probe_the_directory(&p).await?;
        let mut kib_s = [None; 4];
        for (i, figure) in kib_s.iter_mut().enumerate() {
            let again = i % 2 == 1;
            if !self.tests[i / 2] || (again && !self.retest) {
                continue;
            }
            let ns = if i < 2 { self.write(&p, again).await? } else { self.read(&p).await? };
            let rate = (self.records() * self.record_bytes) as f64 / KIB as f64 * 1e9 / ns.max(1) as f64;
            p.out.set(METRICS[i], rate);
            p.out.set(TIMES[i], ns as f64 / 1e6);
            *figure = Some(rate);
        }
        if !self.keep {
            p.sys.unlink(&self.file).await.during("unlink", &self.file)?;
        }
        p.out.print(HEAD);
        p.out.print(&row(self.size_bytes / KIB, self.record_bytes / KIB, &kib_s));
        p.out.print("\niozone test complete.\n");
        Ok(())
    }

    fn records(&self) -> u64 {
        self.size_bytes / self.record_bytes
    }

    /// Can a file be made here? iozone finds out before it measures.
    async fn probe_the_directory(&self, p: &Process) -> Result<(), Failure> {
        p.sys.sync().await;
        p.sys.sync().await;
        let fd = p.sys.open(&self.file, OpenFlags::WRONLY.create()).await.during("open", &self.file)?;
        p.sys.ftruncate(fd, 0).await.during("ftruncate", &self.file)?;
        p.sys.close(fd).await.during("close", &self.file)?;
        p.sys.unlink(&self.file).await.during("unlink", &self.file)
    }

    /// Write the file once; returns the nanoseconds that count.
    async fn write(&self, p: &Process, again: bool) -> Result<u64, Failure> {
        let file = &self.file;
        if !again {
            let fd = p.sys.creat(file).await.during("creat", file)?;
            p.sys.close(fd).await.during("close", file)?;
        }
        let fd = p.sys.open(file, self.flags).await.during("open", file)?;
        p.sys.fsync(fd).await.during("fsync", file)?; // commits the create, so that it is not timed
        let start = p.sys.now();
        for _ in 0..self.records() {
            p.sys.write(fd, self.record_bytes).await.during("write", file)?;
        }
        self.finish(p, fd, start).await
    }

    /// Read the file once; returns the nanoseconds that count.
    async fn read(&self, p: &Process) -> Result<u64, Failure> {
        let file = &self.file;
        let flags = OpenFlags { write: false, ..self.flags };
        let fd = p.sys.open(file, flags).await.during("open", file)?;
        p.sys.fsync(fd).await.during("fsync", file)?;
        let start = p.sys.now();
        for _ in 0..self.records() {
            p.sys.read(fd, self.record_bytes).await.during("read", file)?;
        }
        self.finish(p, fd, start).await
    }

    /// fsync and close, inside the timing or outside.
    async fn finish(&self, p: &Process, fd: Fd, start: u64) -> Result<u64, Failure> {
        let file = &self.file;
        if self.fsync_timed {
            p.sys.fsync(fd).await.during("fsync", file)?;
        }
        if self.close_timed {
            p.sys.close(fd).await.during("close", file)?;
            return Ok(p.sys.now() - start);
        }
        let end = p.sys.now();
        p.sys.fsync(fd).await.during("fsync", file)?;
        p.sys.close(fd).await.during("close", file)?;
        Ok(end - start)
    }
}

const HEAD: &str = concat!(
    "                                                            ",
    "random  random    bkwd   record   stride                                   \n",
    "              KB  reclen   write rewrite    read    reread    ",
    "read   write    read  rewrite     read   fwrite frewrite   fread  freread\n",
);

/// A line of the table: rates are cut to whole KB/s; tests that did not run leave blanks.
fn row(size_kib: u64, record_kib: u64, kib_s: &[Option<f64>; 4]) -> String {
    let mut line = format!("{size_kib:>16}{record_kib:>8}");
    for (figure, width) in kib_s.iter().zip(WIDTHS) {
        match figure {
            Some(rate) => line.push_str(&format!("{:>width$}", *rate as u64)),
            None => line.push_str(&" ".repeat(width)),
        }
    }
    format!("{}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPTURE: &str = include_str!("../../tests/data/programs/iozone-3.4.txt");

    #[test]
    fn the_table_is_iozones() {
        assert!(CAPTURE.contains(HEAD), "both head lines, to the last blank");
        let lines = row(409_600, 64, &[Some(31782.9), Some(22524.0), None, None])
            + &row(131_072_000, 8, &[Some(540_467.0), Some(532_880.2), Some(512_028.0), Some(513_703.0)]);
        for line in lines.lines() {
            assert!(CAPTURE.lines().any(|l| l.starts_with(line)), "{line:?}");
        }
    }
}
