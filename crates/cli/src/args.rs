//! The command line: what can be asked, with help and examples.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::serve::args::{CtlArguments, ServeArguments};
use crate::top::args::TopArguments;
use crate::trace::args::{
    CaptureArguments, ConvertArguments, DiffArguments, InspectArguments, ReplayArguments,
};

/// Compare block I/O schedulers on the jobs and disks you have.
#[derive(Debug, Parser)]
#[command(
    name = "fairlift",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  fairlift compare job.fio --device nvme            a fio job under today's schedulers
  fairlift compare --device hdd -- --name=r --rw=randread --bs=4k --size=1g --direct=1
  fairlift run --device hdd -- iozone -s 64 -e -i 0 a program instead of a job
  fairlift devices sata7200-2009                    the modelled disk's parameters
  fairlift reproduce                                published measurements beside ours
  fairlift inspect sda                              a blktrace: processes, sizes, where the time went
  fairlift replay sda --timing closed --device hdd  the same I/O on another disk, under each scheduler
  fairlift serve --model hdd --socket /tmp/d.sock   a block device (NBD) as slow as that disk

Exit code: 0 done, 1 a published figure was not reproduced, 2 wrong input, 70 a fault in fairlift."
)]
pub struct Arguments {
    /// What to do; without a command the main uses are shown.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The arguments of this process. `--timing scaled 2` may be two words.
pub fn parse() -> Arguments {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if words.get(1).is_some_and(|command| command == "replay")
        && let Some(at) = words.windows(2).position(|pair| pair[0] == "--timing" && pair[1] == "scaled")
        && words.get(at + 2).and_then(|word| word.to_str()).is_some_and(|word| word.parse::<f64>().is_ok())
    {
        let factor = words.remove(at + 2);
        words[at + 1].push("=");
        words[at + 1].push(factor);
    }
    Arguments::parse_from(words)
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job under several schedulers and print its rates and latencies under each
    Compare(CompareArguments),
    /// Run a job under one scheduler and report like fio
    Run(RunArguments),
    /// Run many settings from one file and say which are best
    Sweep(SweepArguments),
    /// List the modelled devices, or show one with all its parameters
    #[command(after_help = "\
Examples:
  fairlift devices                  all presets
  fairlift devices flash-kd         one of them, with every parameter
  fairlift devices mine.toml        a device file of your own, checked
  fairlift devices import x.parv    a device file from DiskSim's files of a measured drive")]
    Devices(DevicesArguments),
    /// List the schedulers, or show one with its tunables
    #[command(after_help = "\
Examples:
  fairlift schedulers               all of them
  fairlift schedulers cfq           its tunables by kernel version: range, default, meaning")]
    Schedulers(NameArguments),
    /// List the kernel versions and what they change
    #[command(
        after_help = "Examples:\n  fairlift kernels\n  fairlift kernels 6.12\n  fairlift compare job.fio --kernel 2.6.34"
    )]
    Kernels(NameArguments),
    /// Write the page that says which scheduler suits which load on which device
    Which(WhichArguments),
    /// Print this machine's disk, scheduler and groups as a scenario
    Host(HostArguments),
    /// Run experiments and print published figures beside ours
    Reproduce(ReproduceArguments),
    /// Replay a block trace under several schedulers
    Replay(ReplayArguments),
    /// Show which process did what in a block trace, and where the time went
    Inspect(InspectArguments),
    /// Compare two traces of the same I/O: order, times, merges
    Diff(DiffArguments),
    /// Convert a block trace from one format to another
    Convert(ConvertArguments),
    /// Record the block I/O of this machine (Linux, as root)
    Capture(CaptureArguments),
    /// Replay a measured trace on modelled devices and score them
    Validate(ValidateArguments),
    /// Measure a real file or disk with fio and make a device file of it
    Calibrate(CalibrateArguments),
    /// Say what of fairlift works on this machine, and how to get the rest
    Doctor,
    /// Print the completion script of a shell
    #[command(after_help = "Example:\n  fairlift completions bash >/etc/bash_completion.d/fairlift")]
    Completions {
        /// bash, elvish, fish, powershell or zsh
        shell: clap_complete::Shell,
    },
    /// Write a manual page for each command
    #[command(after_help = "Example:\n  fairlift man /usr/local/share/man/man1")]
    Man {
        /// Into this folder
        folder: PathBuf,
    },
    /// Serve a file, memory or a modelled disk over NBD, shared by weight
    Serve(Box<ServeArguments>),
    /// Query a running server, or change weights, limits, elevators and exports
    Ctl(CtlArguments),
    /// Show live who gets what of a server's devices, or of the kernel module's disks
    Top(TopArguments),
}

/// A thing to show.
#[derive(Args, Debug)]
pub struct NameArguments {
    /// Show this one
    pub name: Option<String>,
}

/// `fairlift devices`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct DevicesArguments {
    /// Show this one
    pub name: Option<String>,

    /// What else to do.
    #[command(subcommand)]
    pub action: Option<DevicesAction>,
}

/// What else to do with devices.
#[derive(Debug, Subcommand)]
pub enum DevicesAction {
    /// Make a device file from DiskSim's files of a measured drive
    Import(ImportArguments),
}

/// `fairlift devices import`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift devices import atlas10k.parv --output atlas10k.toml
  fairlift compare job.fio --device atlas10k.toml

Give the system's file (.parv), where the bus stands, or the drive's own (.diskspecs). Layout (.model) and seek curve (.seek)
are found through it. What cannot be taken over is a warning, and a note in the device file.")]
pub struct ImportArguments {
    /// DiskSim's .parv or .diskspecs file
    pub file: PathBuf,

    /// The drive, when the file describes several
    #[arg(long, value_name = "NAME")]
    pub disk: Option<String>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `fairlift validate`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift validate atlas10k.toml --trace atlas10k.trace.xz
  fairlift validate atlas10k.parv sata7200-2009 --trace atlas10k.trace.xz --plot cdf.svg
  fairlift validate mine.toml --trace sda.blktrace.0 --timing open --output-format json
  fairlift validate --set devices/measured/drives.toml    all measured drives beside the published figures
  fairlift validate --rates                               flash drives: measured rates beside the model's

The trace must have response times: DiskSim's validation traces, blktrace (issue to completion), MSR, SYSTOR '17 and others.
The score is DiskSim's: the root mean square of the horizontal distance between the distributions of measured and simulated
response times.")]
pub struct ValidateArguments {
    /// Devices: presets, device files, or DiskSim's .parv and .diskspecs files
    #[arg(value_name = "DEVICE", required_unless_present_any = ["set", "rates"])]
    pub devices: Vec<String>,

    /// The measured trace; .gz, .xz, .zst and .bz2 are read directly
    #[arg(long, value_name = "TRACE", required_unless_present_any = ["set", "rates"])]
    pub trace: Option<String>,

    /// All drives that this file names, with their traces and published figures
    #[arg(long, value_name = "FILE", conflicts_with_all = ["devices", "trace", "format", "keep_going", "timing", "plot"])]
    pub set: Option<PathBuf>,

    /// Rates that were measured on drives beside the model's; of all presets that have them when no device is given
    #[arg(long, conflicts_with_all = ["set", "trace", "format", "keep_going", "timing", "plot"])]
    pub rates: bool,

    /// The trace's format, if it is not found out
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<String>,

    /// Skip faulty records; what is left is replayed, and not scored
    #[arg(long)]
    pub keep_going: bool,

    /// When requests come [default: closed if none comes before the one before it is done, else open]
    #[arg(long, value_enum, value_name = "TIMING")]
    pub timing: Option<TimingChoice>,

    /// What to print; csv lists every request
    #[arg(long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub output_format: Format,

    /// Draw the distributions to this file, .svg or .png
    #[arg(long, value_name = "FILE")]
    pub plot: Option<PathBuf>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `fairlift calibrate`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift calibrate --device /data/some-large-file --output mine.toml     reads only
  fairlift calibrate --device /dev/sdb --save sdb.json --output sdb.toml   as root
  fairlift calibrate --device /data/new --size 4G --write -o mine.toml     makes a file, writes to it, removes it
  fairlift calibrate --device /dev/sdb --print-series > series.fio         for a machine without fairlift: run there
                                                                           fio --output-format=json series.fio > sdb.json
  fairlift calibrate --from sdb.json --output sdb.toml                     and fit here
  fairlift calibrate --from sdb.json --from more.json                      jobs not of the series are predicted
  fairlift compare job.fio --device mine.toml

Needs fio for measuring. Nothing is written unless --write is given; then the contents of the file or disk are lost.
docs/calibrate.md says what is fitted to what.")]
pub struct CalibrateArguments {
    /// Measure this file or disk with fio
    #[arg(long, value_name = "FILE|DISK", conflicts_with = "from")]
    pub device: Option<String>,

    /// Fit to reports of fio (--output-format=json) instead: a file, or a folder of them; may be repeated
    #[arg(long, value_name = "REPORT|FOLDER")]
    pub from: Vec<String>,

    /// Write to the file or disk, too: what is in it is LOST
    #[arg(long)]
    pub write: bool,

    /// Use so much of it; with --write also the size of a file that is not there yet: 4G, 500M
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,

    /// Run each of the 16 jobs (21 with --write) so many seconds
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub seconds: u64,

    /// Fit this kind of device [default: a disk if one random read takes longer than 1.5 ms, else flash; or a throttled volume, if the
    /// rate does not rise with the depth and it fits better]
    #[arg(long, value_enum, value_name = "MODEL")]
    pub model: Option<CalibrateModel>,

    /// The fio to run
    #[arg(long, value_name = "PROGRAM", default_value = "fio")]
    pub fio: String,

    /// Keep fio's report in this file
    #[arg(long, value_name = "FILE", conflicts_with = "from")]
    pub save: Option<PathBuf>,

    /// Print the series as a fio job file and do nothing
    #[arg(long, requires = "device")]
    pub print_series: bool,

    /// Write the device file even if it misses a job of the series by more than 30 % of its rate
    #[arg(long)]
    pub force: bool,

    /// What to print about the fit; json holds the device file, too
    #[arg(long, value_enum, default_value_t = CalibrateFormat::Table, value_name = "FORMAT")]
    pub output_format: CalibrateFormat,

    /// Write the device file here instead of to standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// A model that can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CalibrateModel {
    /// Dies behind a delay
    Flash,
    /// Arm and platter
    Disk,
    /// Token buckets before a latency
    Cloud,
}

/// What a calibration prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CalibrateFormat {
    /// For people
    Table,
    /// For programs
    Json,
}

/// A size in bytes: digits with k, M, G or T, powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        Some((at, 't' | 'T')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| "allowed: a size such as 500M or 4G".to_owned())
}

/// When requests of a trace come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TimingChoice {
    /// As long after the completion before as in the trace
    Closed,
    /// At the recorded times
    Open,
}

/// What to run on what.
#[derive(Args, Debug)]
pub struct WorkArguments {
    /// fio job files, '-' for standard input, or one scenario file (.toml)
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,

    /// fio's own options instead of a job file, or programs: one word by word, or several, each in quotes
    #[arg(last = true, value_name = "FIO OPTIONS|PROGRAM", allow_hyphen_values = true)]
    pub behind: Vec<String>,

    /// Device: a kind (nvme, sata-ssd, hdd, cloud), a preset (see 'fairlift devices'), a device file or a folder of them;
    /// 'compare' takes several, separated by commas or repeated [default: a scenario's own; with a 2.6 kernel sata7200-2009;
    /// otherwise required]
    #[arg(short, long, value_name = "NAME|FILE", value_delimiter = ',')]
    pub device: Vec<String>,

    /// A machine's settings, written by 'fairlift host': its scheduler becomes the first column; its groups' settings, and its
    /// kernel and kind of device unless others are named, are used
    #[arg(long, value_name = "FILE")]
    pub host: Option<String>,

    /// Change a tunable, such as cfq.slice_idle=0, in every column of that scheduler, a group: group./vm1.io.weight=500, a field of
    /// the device: device.limits.queue_depth=8, or a job's option: job.db.iodepth=4, job.*.bs=8k; may be repeated
    #[arg(long, value_name = "WHOSE.WHAT=VALUE")]
    pub set: Vec<String>,

    /// Run this case of the scenario only
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,

    /// Seed of everything random; the same seed gives the same bytes [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Run every job for this long, in fio's notation: 30, 500ms, 2m
    #[arg(long, value_name = "TIME")]
    pub runtime: Option<String>,

    /// Kernel version (see 'fairlift kernels') [default: a scenario's own, else 6.12]
    #[arg(long, value_name = "VERSION")]
    pub kernel: Option<String>,

    /// File system on the device: raw, ext3, ext4 [default: ext4 for programs behind '--'
    /// and job files that make, cut or fill files, else raw]
    #[arg(long, value_name = "NAME")]
    pub filesystem: Option<String>,

    /// Mount options: data=ordered|writeback, barrier=0|1, size_mib=N
    #[arg(long, value_name = "OPTIONS")]
    pub mount: Option<String>,

    /// Let files that are only written start sparse, as fio of 2009 left them
    #[arg(long)]
    pub fresh_files: bool,

    /// Show where time went: each fsync by round trips, the device's time, the slowest requests
    #[arg(long)]
    pub explain: bool,

    /// Simulate this many runs at a time [default: number of processors]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,

    /// Refuse job files with options that fairlift would ignore
    #[arg(long)]
    pub strict: bool,

    /// Write a trace of the simulated block layer to this file: .blktrace .bin .blkparse .iolog .csv .json (Perfetto); with
    /// several runs each gets a file, FILE's name with case and scheduler in it
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// Results to look at.
#[derive(Args, Debug)]
pub struct ViewArguments {
    /// Write a page with tables, figures and the slowest requests; it needs no other file
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,

    /// Write every figure into this folder, as SVG and PNG
    #[arg(long, value_name = "FOLDER")]
    pub plots: Option<PathBuf>,
}

/// Where results go.
#[derive(Args, Debug)]
pub struct ResultArguments {
    /// What to print; with 'run', 'table' is fio's report and the programs' output, 'json' fio's JSON
    #[arg(long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub output_format: Format,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Results to look at.
    #[command(flatten)]
    pub view: ViewArguments,
}

/// `fairlift compare`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift compare readers.fio --device nvme
  fairlift compare readers.fio --device hdd --scheduler none,mq-deadline,mq-deadline:fifo_batch=1
  fairlift compare readers.fio --device nvme --goal p99:db      which scheduler gives job db the lowest p99
  fairlift compare readers.fio --device nvme,hdd --seeds 5      on two devices, and how sure the answer is
  fairlift compare readers.fio --kernel 2.6.31 --scheduler cfq@2.6.31,cfq@2.6.34 --runtime 60
  fairlift compare --device cloud -- --name=r --rw=randread --bs=4k --size=1g --direct=1 --numjobs=4
  fairlift compare guests.fio --device hdd --set group./vm1.weight=1000 --scheduler mq-deadline,fl-deadline
  fairlift compare --kernel 2.6.34 -- fs_mark -S 1 -D 100 -N 1000 -s 65536 -t 1 -w 4096
  fairlift compare readers.fio --device hdd -- 'fsync-tester -n 20' 'while :; do dd if=/dev/zero of=big bs=8M count=64; sync; rm big; done'
  fairlift compare experiments/demo-readers.toml --output-format json --output demo.json
  fairlift compare readers.fio --device nvme --report readers.html         a page with figures

Behind '--': if the first word begins with a '-', all words are fio's options; if it has no blank, the words are one program's
command line; otherwise each word is a whole command line. A command line that ends in '&' or never ends is stopped when all
others have ended.

A * marks the best scheduler of each column. 'device time' is the job's share of the time that the device was busy.")]
pub struct CompareArguments {
    /// What to run on what.
    #[command(flatten)]
    pub work: WorkArguments,

    /// The schedulers, one column each.
    #[arg(
        short,
        long,
        value_name = "A,B,C",
        value_delimiter = ',',
        help = "\
Schedulers, NAME[@PROFILE][:TUNABLE=VALUE]...[+CONTROLLER] each [default: a scenario's own, else the kernel's]"
    )]
    pub scheduler: Vec<String>,

    /// Goal of the answer below the table: balanced, bandwidth, iops, fair; for one job p99:JOB (any percentile),
    /// mean:JOB, max:JOB, fsync:JOB, bandwidth:JOB, iops:JOB; for a program METRIC:PROGRAM
    #[arg(long, value_name = "GOAL", default_value = "balanced")]
    pub goal: String,

    /// Run every scheduler with this many seeds, and on a device 20 % faster and 20 % slower: figures are means with their spread,
    /// a star stands only where the difference exceeds the spread, and the answer says how sure it is
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub seeds: u64,

    /// Where results go.
    #[command(flatten)]
    pub results: ResultArguments,
}

/// `fairlift run`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift run readers.fio --device nvme --scheduler none
  fairlift run readers.fio --device hdd --scheduler mq-deadline:fifo_batch=1 --output-format json   fio's JSON
  fairlift run --device san-nvram --kernel 2.6.34 -- fs_mark -S 1 -D 100 -N 1000 -s 65536 -t 1 -w 4096
  fairlift run --device flash-kd -- --name=w --rw=randwrite --bs=4k --size=1g --direct=1 --iodepth=32 --ioengine=libaio")]
pub struct RunArguments {
    /// What to run on what.
    #[command(flatten)]
    pub work: WorkArguments,

    /// The scheduler.
    #[arg(
        short,
        long,
        value_name = "SCHEDULER",
        help = "\
The scheduler: NAME[@PROFILE][:TUNABLE=VALUE]... [default: the kernel's, mq-deadline of 6.12, cfq of 2.6]"
    )]
    pub scheduler: Option<String>,

    /// Where results go.
    #[command(flatten)]
    pub results: ResultArguments,
}

/// `fairlift which`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift which --output docs/which-scheduler.md     the whole page: six loads, four devices, seven schedulers
  fairlift which --device hdd --load streams          one section
  fairlift which --check docs/which-scheduler.md      compare the page with new runs")]
pub struct WhichArguments {
    /// This kind of device only: nvme, sata-ssd, hdd, cloud
    #[arg(short, long, value_name = "KIND")]
    pub device: Option<String>,

    /// This load only: database, beside-a-writer, streams, deep, tenants, mixed
    #[arg(long, value_name = "LOAD")]
    pub load: Option<String>,

    /// Compare with this page instead of printing one
    #[arg(long, value_name = "FILE", conflicts_with = "output")]
    pub check: Option<PathBuf>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Write it as one HTML page
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,

    /// Simulate this many runs at a time [default: number of processors]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,
}

/// `fairlift sweep`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift sweep fifo.toml                  results in ./fifo-results: page.html, results.csv, results.parquet
  fairlift sweep fifo.toml --output /data/fifo --threads 8

A sweep file (docs/sweep.md):
  goal = \"p99 of db < 20 ms, then bandwidth of batch\"
  seeds = 5
  [fixed]
  jobs = \"db-batch.fio\"
  runtime = \"2s\"
  [over]                                    # one answer for each of these
  device = [\"nvme\", \"hdd\"]
  [vary]                                    # what to choose among
  scheduler = [\"none\", \"mq-deadline\", \"bfq\"]
  \"mq-deadline.fifo_batch\" = { from = 1, to = 64, scale = \"log\", steps = 4 }

After a kill or a power failure the same command continues. Every row has the command that repeats its run.")]
pub struct SweepArguments {
    /// The sweep file
    #[arg(value_name = "SWEEP.toml")]
    pub file: String,

    /// Put the results into this folder [default: the sweep file's name with -results, here]
    #[arg(short, long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,

    /// Simulate this many runs at a time [default: number of processors]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,
}

/// `fairlift host`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift host > mine.toml                    the only disk of this machine
  fairlift host /dev/nvme0n1 -o mine.toml
  fairlift host sda --root /tmp/server         another machine's files: sys/block, sys/fs/cgroup, proc/sys/kernel
  fairlift compare job.fio --host mine.toml    this machine's scheduler beside the kernel's others

The command reads files, changes nothing, and needs no rights. A comment in the scenario names each value that cannot be read
and each setting that the lab does not have.")]
pub struct HostArguments {
    /// The disk: /dev/sda, nvme0n1 or a partition of it [default: the only one there is]
    #[arg(value_name = "DISK")]
    pub disk: Option<String>,

    /// Read the files below this folder instead of /
    #[arg(long, value_name = "FOLDER", default_value = "/", hide_default_value = true)]
    pub root: PathBuf,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `fairlift reproduce`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift reproduce                                  all experiments
  fairlift reproduce goyal-test2-vanilla              one, by name
  fairlift reproduce moyer                            a group: all whose names start with moyer-
  fairlift reproduce mine.toml                        one of your own
  fairlift reproduce --output docs/experiments.md     as a page, with every figure in docs/experiments.csv
  fairlift reproduce goyal-test3 --seeds 1..5         which verdicts chance decides; exit code 1 if there are any

fairlift looks for names in ./experiments, then among the experiments compiled into the program. Exit code 1: a figure is not
reproduced, and the experiment does not list it as known to differ.")]
pub struct ReproduceArguments {
    /// Experiments: names, groups (the part of a name before a dash) or scenario files; none means all
    #[arg(value_name = "NAME|FILE")]
    pub experiments: Vec<String>,

    /// What to print [default: by the ending of --output, else table]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output_format: Option<PageFormat>,

    /// Say which verdicts change with the seed: run each experiment as it stands, then with these seeds (1..5, or 5 for 1..5)
    #[arg(long, value_name = "FIRST..LAST", conflicts_with = "output_format")]
    pub seeds: Option<crate::reproduce::Seeds>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Simulate this many runs at a time [default: number of processors]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// One object; the runs in fio's own schema
    Json,
    /// One row per case, scheduler, job and direction, and per program and figure
    Csv,
}

/// How experiments are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    /// For people
    Table,
    /// One object
    Json,
    /// A page; with --output every figure goes to a CSV file beside it
    Markdown,
}

/// A number of threads.
pub fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1024) => Ok(n),
        _ => Err("1 to 1024 are possible".to_owned()),
    }
}
