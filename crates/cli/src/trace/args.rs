//! The command line of the commands on traces.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fairlift_sim::program::replay::Timing;

use crate::args::{ResultArguments, at_least_one};

/// How a trace is read.
#[derive(Args, Clone, Debug)]
pub struct ReadArguments {
    /// Read the trace as this format; otherwise fairlift recognises it (names: docs/traces.md)
    #[arg(long, visible_alias = "from", value_name = "FORMAT", value_parser = parsed_format)]
    pub format: Option<fairlift_trace::Format>,

    /// Read text that was written by 'blkparse -f STRING'
    #[arg(long, value_name = "STRING")]
    pub blkparse_format: Option<String>,

    /// Leave out faulty records instead of ending at the first one
    #[arg(long)]
    pub keep_going: bool,

    /// Put events in order within so many neighbours (160 bytes each), for traces whose times run backwards in places [default:
    /// 65536 for corpora of many volumes, else 0]
    #[arg(long, value_name = "EVENTS")]
    pub sort: Option<usize>,
}

/// `fairlift inspect`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift inspect sda.blktrace.0
  fairlift inspect sda                              the files sda.blktrace.0, .1, ... of every CPU
  fairlift inspect trace.csv.gz --output-format json
  blkparse -i sda -d - -O | fairlift inspect - --notes

Latencies are btt's intervals: Q2G waiting for a request, G2I plugged, I2D in the scheduler, D2C in the device.")]
pub struct InspectArguments {
    /// The trace: a file, '-', a directory, or NAME for NAME.blktrace.0, .1, ...
    #[arg(value_name = "TRACE")]
    pub trace: String,

    #[command(flatten)]
    pub read: ReadArguments,

    /// Print every message of the trace (an elevator's notes) above the table
    #[arg(long)]
    pub notes: bool,

    /// Show so many processes and devices
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,

    /// What to print
    #[arg(long, value_enum, default_value_t = InspectFormat::Table, value_name = "FORMAT")]
    pub output_format: InspectFormat,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `fairlift diff`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift replay sda --device mine.toml --scheduler bfq --trace lab.blktrace
  fairlift diff sda lab                             the kernel's run beside the lab's replay of it
  fairlift diff a.blktrace.0 b.blktrace.0 --within 0.1 --output-format json

An I/O is the same in both traces when operation, sector and size are; the n-th of A is the n-th of B. Times count from each trace's
first common arrival. Exit code: 0 the traces agree, 1 they differ, 2 wrong input.")]
pub struct DiffArguments {
    /// The first trace: a file, '-', a directory, or NAME for NAME.blktrace.0, .1, ...
    #[arg(value_name = "A")]
    pub a: String,

    /// The second trace
    #[arg(value_name = "B")]
    pub b: String,

    #[command(flatten)]
    pub read: ReadArguments,

    /// Times that differ by at most this many milliseconds count as equal
    #[arg(long, value_name = "MS", default_value = "1", value_parser = milliseconds)]
    pub within: u64,

    /// Show so many of the I/Os that differ
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub lines: usize,

    /// What to print
    #[arg(long, value_enum, default_value_t = InspectFormat::Table, value_name = "FORMAT")]
    pub output_format: InspectFormat,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// How an inspection is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum InspectFormat {
    /// For people
    Table,
    /// One object
    Json,
}

/// `fairlift convert`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift convert trace.csv.xz sda.blktrace        files sda.blktrace.0, ... for 'blkparse -i sda'
  fairlift convert sda merged.bin                   one stream of all CPUs, for btt and fio --read_iolog
  fairlift convert sda trace.json                   for ui.perfetto.dev
  fairlift convert perf.txt - --to iolog

Formats by the ending of OUT: .blktrace .bin .blkparse .txt .iolog .csv .json. What the target cannot hold is said.")]
pub struct ConvertArguments {
    /// The trace: a file, '-', a directory, or NAME for NAME.blktrace.0, .1, ...
    #[arg(value_name = "IN")]
    pub input: String,

    /// The file to write, '-' for standard output
    #[arg(value_name = "OUT")]
    pub output: String,

    #[command(flatten)]
    pub read: ReadArguments,

    /// Write this format instead of the one OUT's ending names
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Option<Target>,

    /// Which event an iolog's lines are [default: queue, or issue where a trace has no queue events]
    #[arg(long, value_enum, value_name = "EVENT")]
    pub at: Option<At>,

    /// Count time from the first event, as blkparse does
    #[arg(long)]
    pub rebase: bool,
}

/// A format that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Target {
    /// Binary blktrace, version 7, in one stream
    Blktrace,
    /// The same, version 8 (Linux 6.19)
    Blktrace8,
    /// Binary blktrace, version 7, a file for each CPU: OUT.blktrace.0, ...
    BlktraceCpus,
    /// blkparse's default text
    Blkparse,
    /// fio's iolog, version 3
    Iolog,
    /// fio's iolog, version 2 (fio before 3.31)
    Iolog2,
    /// A table of everything
    Csv,
    /// Chrome's and Perfetto's JSON
    Chrome,
}

/// Which event stands for an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum At {
    /// What programs asked for
    Queue,
    /// What the device was asked for
    Issue,
    /// What the device had done
    Complete,
}

/// `fairlift replay`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift replay sda --device hdd                  the recorded I/Os under the kernel's four schedulers
  fairlift replay sda --timing closed --device nvme,sata-ssd
  fairlift replay mysql.load.gz --scheduler deadline,cfq,cfq:slice_idle=0 --kernel 2.6.34
  fairlift replay volumes.csv --only 7,9 --timing scaled=0.5 --device nvme --output-format csv
  fairlift replay alibaba.csv --device nvme --set group./7.weight=500 --scheduler fl-deadline,fl-deadline:groups=0

Each traced process has its own io context. Each cgroup is a group; in a trace without processes each volume is one.
Timing: open submits at the recorded times; scaled=N multiplies these times by N; closed submits when as many of the process'
I/Os are complete as in the trace and its recorded think time has passed; asap is closed without think time.
Latency runs from the moment at which an I/O is due, so waiting for a request slot counts.")]
pub struct ReplayArguments {
    /// The trace: a file, '-', a directory, or NAME for NAME.blktrace.0, .1, ...
    #[arg(value_name = "TRACE")]
    pub trace: String,

    #[command(flatten)]
    pub read: ReadArguments,

    /// When I/Os are submitted: open, closed, asap or scaled=N
    #[arg(long, value_name = "TIMING", default_value_t = Timing::Open)]
    pub timing: Timing,

    /// Replay these of the trace's devices only: major:minor or the volume's name
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub only: Vec<String>,

    /// The schedulers, one column each.
    #[arg(
        short,
        long,
        value_name = "A,B,C",
        value_delimiter = ',',
        help = "\
Schedulers, NAME[@PROFILE][:TUNABLE=VALUE]... each [default: the kernel's own]"
    )]
    pub scheduler: Vec<String>,

    /// Devices to replay on, one block of the table each: presets or device files [default: none; with a 2.6 kernel
    /// sata7200-2009]
    #[arg(short, long, value_name = "A,B,C", value_delimiter = ',')]
    pub device: Vec<String>,

    /// Change a tunable, such as cfq.slice_idle=0, in every column of that scheduler, a group: group./NAME.weight=500, or a field
    /// of the devices: device.limits.queue_depth=8; may be repeated
    #[arg(long, value_name = "WHOSE.WHAT=VALUE")]
    pub set: Vec<String>,

    /// Seed of everything random; the same seed gives the same bytes [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Kernel version (see 'fairlift kernels') [default: 6.12]
    #[arg(long, value_name = "VERSION")]
    pub kernel: Option<String>,

    /// Say why it took as long as it did: what the device's time and each process's requests went to, the slowest requests
    #[arg(long)]
    pub explain: bool,

    /// Simulate so many runs at a time [default: number of processors]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,

    /// Write what the block layer did to this file, as 'compare --trace' does
    #[arg(long = "trace", value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Where results go.
    #[command(flatten)]
    pub results: ResultArguments,
}

/// `fairlift capture`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift capture --output app.blktrace -- ./app --its --options      while the command runs
  fairlift capture --device /dev/sda --output sda.csv                 until Ctrl-C
  fairlift capture --device /var/lib/db --seconds 60 --output db.bin   the disk below a folder, for a minute

Needs root and tracefs. fairlift makes a tracing instance and removes it afterwards; other tracing is not touched. It records
all I/O of the device, by any process, because writeback and journal threads work for the command too. Time stamps are
microseconds.")]
pub struct CaptureArguments {
    /// Record this device only: a name, a device file, or a path on it [default: all]
    #[arg(short, long, value_name = "DEVICE|PATH")]
    pub device: Option<String>,

    /// The file to write; the format by its ending, as 'convert' does
    #[arg(short, long, value_name = "FILE", default_value = "capture.blktrace")]
    pub output: String,

    /// Write this format instead of the one the ending names
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Option<Target>,

    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: Option<u64>,

    /// Buffer for each CPU, KiB: more lose less under load
    #[arg(long, value_name = "KIB", default_value_t = 8192, value_parser = clap::value_parser!(u64).range(16..=1 << 20))]
    pub buffer: u64,

    /// The command to run; recording ends with it
    #[arg(last = true, value_name = "COMMAND", allow_hyphen_values = true)]
    pub command: Vec<String>,
}

/// Milliseconds as ns.
fn milliseconds(text: &str) -> Result<u64, String> {
    match text.parse::<f64>() {
        Ok(ms) if (0.0..=1e9).contains(&ms) => Ok((ms * 1e6).round() as u64),
        _ => Err("allowed are milliseconds from 0 to 1000000000, such as 0.1".to_owned()),
    }
}

fn parsed_format(name: &str) -> Result<fairlift_trace::Format, String> {
    let formats = || fairlift_trace::Format::all().map(fairlift_trace::Format::name);
    name.parse().map_err(|_| {
        let near = fairlift_sim::scheduler::nearest(name, formats());
        let near = near.map_or_else(String::new, |near| format!("did you mean '{near}'? "));
        format!("{near}formats: {}", formats().collect::<Vec<_>>().join(", "))
    })
}
