//! dd: copy blocks from `/dev/zero` or a file to a file, or from a file to `/dev/null`.

use super::options::{self, shorten};
use super::process::During;
use super::{Failure, Process, Program, ProgramError, ProgramMetric, Run};
use crate::kernel::{Fd, OpenFlags, Rules};
use crate::scheduler::nearest;

/// Operands, and what their values may be.
const OPERANDS: &[(&str, &str)] = &[
    ("if", "/dev/zero or FILE"),
    ("of", "FILE or /dev/null"),
    ("bs", "BYTES (or with k, M, G)"),
    ("count", "BLOCKS"),
    ("seek", "BLOCKS"),
    ("skip", "BLOCKS"),
    ("conv", "fsync, fdatasync, notrunc"),
    ("iflag", "direct"),
    ("oflag", "direct, sync, dsync"),
    ("status", "none, noxfer"),
];

const SECONDS: ProgramMetric = ProgramMetric::time("seconds", "dd", "s");
const MIB_S: ProgramMetric = ProgramMetric::rate("mib_s", "bandwidth", "MiB/s");

/// An end of the copy.
#[derive(Clone, PartialEq, Eq, Debug)]
enum End {
    /// `/dev/zero`, `/dev/null`: costs processor time only.
    Nothing,
    File(String),
}

/// What dd was told.
#[derive(Debug)]
struct Dd {
    from: End,
    to: End,
    block_bytes: u64,
    /// None: to the end of the input.
    blocks: Option<u64>,
    skip: u64,
    seek: u64,
    in_flags: OpenFlags,
    out_flags: OpenFlags,
    fsync: bool,
    fdatasync: bool,
    transfer_line: bool,
    record_lines: bool,
}

pub(super) fn parse(words: &[String]) -> Result<Box<dyn Program>, ProgramError> {
    let mut dd = Dd {
        from: End::Nothing,
        to: End::Nothing,
        block_bytes: 512,
        blocks: None,
        skip: 0,
        seek: 0,
        in_flags: OpenFlags::RDONLY,
        out_flags: OpenFlags::WRONLY.create().truncate(),
        fsync: false,
        fdatasync: false,
        transfer_line: true,
        record_lines: true,
    };
    let (mut has_if, mut has_of) = (false, false);
    for word in words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || options::size("dd", name, value, 1, 0..=1 << 40);
        match name {
            "if" => (dd.from, has_if) = (end(value), true),
            "of" => (dd.to, has_of) = (end(value), true),
            "bs" => dd.block_bytes = options::size("dd", name, value, 1, 1..=1 << 30)?,
            "count" => dd.blocks = Some(number()?),
            "skip" => dd.skip = number()?,
            "seek" => dd.seek = number()?,
            "conv" | "iflag" | "oflag" | "status" => {
                for item in value.split(',') {
                    dd.list_item(name, item)?;
                }
            }
            _ => {
                let allowed = OPERANDS.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join("; ");
                return Err(ProgramError {
                    nearest: nearest(name, OPERANDS.iter().map(|(n, _)| *n)).map(|n| format!("{n}=")),
                    ..ProgramError::new("dd", format!("unknown operand '{}'", shorten(word)))
                        .allowing(allowed)
                });
            }
        }
    }
    if !has_if || !has_of {
        return Err(ProgramError::new(
            "dd",
            "name input and output: if=/dev/zero of=FILE, or if=FILE of=/dev/null",
        ));
    }
    if dd.from == End::Nothing && dd.blocks.is_none() {
        return Err(ProgramError::new("dd", "/dev/zero has no end: give count=BLOCKS"));
    }
    if matches!((&dd.from, &dd.to), (End::File(a), End::File(b)) if a == b) {
        return Err(ProgramError::new("dd", "if= and of= are the same file"));
    }
    Ok(Box::new(dd))
}

fn end(value: &str) -> End {
    match value {
        "/dev/zero" | "/dev/null" => End::Nothing,
        path => End::File(path.to_owned()),
    }
}

impl Dd {
    fn list_item(&mut self, operand: &str, item: &str) -> Result<(), ProgramError> {
        match (operand, item) {
            ("conv", "fsync") => self.fsync = true,
            ("conv", "fdatasync") => self.fdatasync = true,
            ("conv", "notrunc") => self.out_flags.truncate = false,
            ("iflag", "direct") => self.in_flags = self.in_flags.direct(),
            ("oflag", "direct") => self.out_flags = self.out_flags.direct(),
            ("oflag", "sync") => self.out_flags = self.out_flags.o_sync(),
            ("oflag", "dsync") => self.out_flags = self.out_flags.o_dsync(),
            ("status", "none") => (self.record_lines, self.transfer_line) = (false, false),
            ("status", "noxfer") => self.transfer_line = false,
            _ => {
                let allowed = OPERANDS.iter().find(|(n, _)| *n == operand).map_or("", |(_, v)| v);
                return Err(ProgramError {
                    nearest: nearest(item, allowed.split(", ")),
                    ..ProgramError::new("dd", format!("unknown {operand} '{}'", shorten(item)))
                        .allowing(allowed)
                });
            }
        }
        Ok(())
    }

    async fn main(&self, p: Process) -> Result<(), Failure> {
        let start = p.sys.now();
        let input = self.open(&p, &self.from, self.in_flags, self.skip).await?;
        let output = self.open(&p, &self.to, self.out_flags, self.seek).await?;
        let mut copied = Copied::default();
        while self.blocks.is_none_or(|blocks| copied.reads() < blocks) {
            let bytes = match &input {
                Some((fd, path)) => p.sys.read(*fd, self.block_bytes).await.during("error reading", path)?,
                None => self.fill_with_zeros(&p).await,
            };
            if bytes == 0 {
                break;
            }
            if let Some((fd, path)) = &output {
                p.sys.write(*fd, bytes).await.during("error writing", path)?;
            }
            copied.add(bytes, self.block_bytes);
        }
        if let Some((fd, path)) = &output {
            if self.fdatasync {
                p.sys.fdatasync(*fd).await.during("fdatasync failed for", path)?;
            }
            if self.fsync {
                p.sys.fsync(*fd).await.during("fsync failed for", path)?;
            }
        }
        for (fd, path) in input.iter().chain(&output) {
            p.sys.close(*fd).await.during("close", path)?;
        }
        self.report(&p, &copied, p.sys.now() - start);
        Ok(())
    }

    async fn open<'a>(
        &self,
        p: &Process,
        end: &'a End,
        flags: OpenFlags,
        first_block: u64,
    ) -> Result<Option<(Fd, &'a str)>, Failure> {
        let End::File(path) = end else { return Ok(None) };
        let fd = p.sys.open(path, flags).await.during("failed to open", path)?;
        p.sys.lseek(fd, first_block * self.block_bytes).during("cannot seek", path)?;
        Ok(Some((fd, path)))
    }

    /// Read a block from `/dev/zero`.
    async fn fill_with_zeros(&self, p: &Process) -> u64 {
        p.sys.compute(p.kernel_cpu_ns(1, self.block_bytes)).await;
        self.block_bytes
    }

    fn report(&self, p: &Process, copied: &Copied, ns: u64) {
        if self.record_lines {
            let records = format!("{}+{}", copied.full, copied.partial);
            p.out.print(&format!("{records} records in\n{records} records out\n"));
        }
        if self.transfer_line {
            p.out.print(&transfer(copied.bytes, ns));
        }
        let seconds = ns.max(1) as f64 / 1e9;
        p.out.set(SECONDS, seconds);
        p.out.set(MIB_S, copied.bytes as f64 / f64::from(1 << 20) / seconds);
    }
}

impl Program for Dd {
    fn name(&self) -> &'static str {
        "dd"
    }

    fn metrics(&self) -> Vec<ProgramMetric> {
        vec![SECONDS, MIB_S]
    }

    fn needs_files(&self) -> bool {
        let is_file = |end: &End| matches!(end, End::File(path) if !path.starts_with("/dev/"));
        is_file(&self.from) || is_file(&self.to)
    }

    fn devices(&self) -> Vec<String> {
        let device = |end: &End| match end {
            End::File(path) if path.starts_with("/dev/") => Some(path.clone()),
            _ => None,
        };
        [&self.from, &self.to].into_iter().filter_map(device).collect()
    }

    fn least_ns(&self, rules: &Rules) -> u64 {
        // A file may end before that, /dev/zero does not.
        let blocks = if self.from == End::Nothing { self.blocks.unwrap_or(0) } else { 0 };
        blocks.saturating_mul(rules.cpu_per_io_ns)
    }

    fn run(&self, process: Process) -> Run<'_> {
        Box::pin(self.main(process))
    }
}

#[derive(Debug, Default)]
struct Copied {
    full: u64,
    partial: u64,
    bytes: u64,
}

impl Copied {
    fn add(&mut self, bytes: u64, block: u64) {
        self.bytes += bytes;
        if bytes == block { self.full += 1 } else { self.partial += 1 }
    }

    fn reads(&self) -> u64 {
        self.full + self.partial
    }
}

/// dd's last line.
fn transfer(bytes: u64, ns: u64) -> String {
    let seconds = ns.max(1) as f64 / 1e9;
    let sizes = match bytes {
        0..1000 => String::new(),
        1000..1024 => format!(" ({})", scaled(bytes as f64, 1000.0, "B", 10.0)),
        _ => format!(
            " ({}, {})",
            scaled(bytes as f64, 1000.0, "B", 10.0),
            scaled(bytes as f64, 1024.0, "iB", 10.0)
        ),
    };
    let rate = scaled(bytes as f64 / seconds, 1000.0, "B", 100.0);
    format!("{bytes} bytes{sizes} copied, {} s, {rate}/s\n", significant(seconds))
}

/// `2.1 GB`: one decimal below `whole_from` (sizes 10, rates 100), whole numbers from there on.
fn scaled(value: f64, base: f64, unit: &str, whole_from: f64) -> String {
    const PREFIXES: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
    let (mut value, mut power) = (value, 0);
    while value >= base && power + 1 < PREFIXES.len() {
        value /= base;
        power += 1;
    }
    let (prefix, unit) = match (power, unit) {
        (0, _) => ("", "B"),
        (1, "iB") => ("K", unit),
        (power, unit) => (PREFIXES[power], unit),
    };
    if power > 0 && value < whole_from - 0.05 {
        format!("{value:.1} {prefix}{unit}")
    } else {
        format!("{value:.0} {prefix}{unit}")
    }
}

/// C's `%g`: six significant digits without trailing zeros, with an exponent below 1e-4.
fn significant(value: f64) -> String {
    let trim = |text: String| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    let exponent = value.log10().floor() as i32;
    if exponent < -4 {
        let mantissa = trim(format!("{:.5}", value / 10f64.powi(exponent)));
        return format!("{mantissa}e-{:02}", -exponent);
    }
    trim(format!("{value:.*}", (5 - exponent).max(0) as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPTURE: &str = include_str!("../../tests/data/programs/dd-9.1.txt");

    #[test]
    fn the_last_line_is_dds() {
        let mut lines = 0;
        for line in CAPTURE.lines().filter(|l| l.contains("copied")) {
            let bytes: u64 = line.split(' ').next().unwrap().parse().unwrap();
            let seconds: f64 =
                line.split("copied, ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            assert_eq!(transfer(bytes, (seconds * 1e9).round() as u64).trim_end(), line);
            lines += 1;
        }
        assert!(lines >= 8, "{lines} lines compared");
    }
}
