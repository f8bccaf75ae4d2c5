//! The series: which fio jobs a calibration runs, as one job file.
//!
//! Six of them are those of the kernel's `iocost_coef_gen.py` (bandwidth and 4 KiB operations, sequential and random); the
//! others are what those six cannot tell: one command at a time, a ladder of depths, distances of seeks, flushes.

use std::fmt::Write as _;

/// Depths of the ladder of random reads.
pub const DEPTHS: [u32; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
/// Parts of the target that the random reads of a span keep to, thousandths; the whole is the ladder's first step.
pub const SPANS: [u64; 3] = [1, 10, 100];
/// Where the job of the innermost tracks begins, thousandths.
pub const INNER_FROM: u64 = 950;

/// Names of the jobs.
pub const SEQUENTIAL: &str = "read-sequential";
pub const INNER: &str = "read-sequential-inner";
pub const SMALL: &str = "read-sequential-4k";
pub const RANDOM: &str = "read-random-";
pub const LARGE: &str = "read-random-64k";
pub const SPAN: &str = "read-span-";
pub const WRITE_SEQUENTIAL: &str = "write-sequential";
pub const WRITE_ONE: &str = "write-random-1";
pub const WRITE_MANY: &str = "write-random-32";
pub const WRITE_FLUSHED: &str = "write-fdatasync";
/// Jobs that nothing is fitted to: they judge the fit.
const CHECK: &str = "check-";

/// What the series runs on.
#[derive(Clone, Debug)]
pub struct Target {
    /// File or disk.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its contents may be overwritten.
    pub writes: bool,
    /// How long each job runs.
    pub seconds: u64,
}

/// The job file.
pub fn job_file(target: &Target) -> String {
    let mut out = String::new();
    let all = (target.bytes >> 20).max(1);
    let kinds = if target.writes { "reads and WRITES" } else { "only reads" };
    let _ = writeln!(out, "# fairlift calibrate: {kinds} {}", target.path.escape_default());
    let _ = writeln!(out, "[global]\nfilename={}\nsize={all}m", target.path.replace(':', "\\:"));
    let _ = writeln!(out, "direct=1\nioengine=libaio\ntime_based\nruntime={}", target.seconds);
    let _ = writeln!(out, "percentile_list=1:5:10:25:50:75:90:95:99:99.9");
    let mut job = |name: &str, options: &str| {
        let _ = write!(out, "\n[{name}]\nstonewall\n");
        options.split(' ').for_each(|option| {
            let _ = writeln!(out, "{option}");
        });
    };
    job(SEQUENTIAL, "rw=read bs=1m iodepth=4");
    let from = all * INNER_FROM / 1000;
    if from > 0 && from < all {
        job(INNER, &format!("rw=read bs=1m iodepth=4 offset={from}m size={}m", all - from));
    }
    job(SMALL, "rw=read bs=4k iodepth=1");
    for depth in DEPTHS {
        job(&format!("{RANDOM}{depth}"), &format!("rw=randread bs=4k iodepth={depth}"));
    }
    job(LARGE, "rw=randread bs=64k iodepth=1");
    for part in SPANS {
        job(
            &format!("{SPAN}{part}"),
            &format!("rw=randread bs=4k iodepth=1 size={}m", (all * part / 1000).max(1)),
        );
    }
    job(&format!("{CHECK}read-16k"), "rw=randread bs=16k iodepth=4");
    job(&format!("{CHECK}read-64k"), "rw=randread bs=64k iodepth=12");
    if target.writes {
        job(WRITE_SEQUENTIAL, "rw=write bs=1m iodepth=4");
        job(WRITE_ONE, "rw=randwrite bs=4k iodepth=1");
        job(WRITE_MANY, "rw=randwrite bs=4k iodepth=32");
        job(WRITE_FLUSHED, "rw=randwrite bs=4k iodepth=1 fdatasync=1");
        job(&format!("{CHECK}mixed"), "rw=randrw rwmixread=70 bs=4k iodepth=8");
    }
    out
}

/// How many jobs that are.
pub fn jobs(file: &str) -> u64 {
    file.lines().filter(|line| line.starts_with('[')).count() as u64 - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(writes: bool) -> Target {
        Target { path: "/data/a:b".to_owned(), bytes: 4 << 30, writes, seconds: 5 }
    }

    #[test]
    fn nothing_writes_unless_asked_to() {
        let reading = job_file(&target(false));
        assert!(!reading.contains("write") && !reading.contains("rw=randrw"), "{reading}");
        assert!(job_file(&target(true)).contains("rw=randwrite"));
    }

    #[test]
    fn fio_s_reader_takes_it() {
        let text = job_file(&target(true));
        let source = fairlift_fio::Source::new("series.fio", text.as_str());
        let parsed = fairlift_fio::parse(&[source], &fairlift_fio::ParseOptions::default()).unwrap();
        assert_eq!(parsed.jobs.len() as u64, jobs(&text));
        assert!(parsed.refused.is_empty());
    }
}
