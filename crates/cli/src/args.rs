//! The command line: what can be asked, with help and examples.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Compare block I/O schedulers on the jobs and disks you have.
#[derive(Debug, Parser)]
#[command(
    name = "fairlift",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  fairlift compare job.fio                          a fio job under noop, deadline and cfq
  fairlift compare -- --name=r --rw=randread --bs=4k --size=1g --direct=1
  fairlift devices sata7200-2009                    what the modelled disk is
  fairlift reproduce                                published measurements beside ours

Exit code: 0 done, 1 a published figure was not reproduced, 2 wrong input, 70 a fault in fairlift."
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job under several schedulers and print what each of them does to it
    Compare(CompareArguments),
    /// Run a job under one scheduler and report like fio
    Run(RunArguments),
    /// List the modelled devices, or show one with all its parameters
    #[command(after_help = "\
Examples:
  fairlift devices                  all presets
  fairlift devices flash-kd         one of them, with every parameter
  fairlift devices mine.toml        a device file of your own, checked")]
    Devices(NameArguments),
    /// List the schedulers, or show one with its tunables
    #[command(after_help = "\
Examples:
  fairlift schedulers               all of them
  fairlift schedulers cfq           its tunables: range, default, what they do, by kernel version")]
    Schedulers(NameArguments),
    /// List the kernel versions and what they change
    #[command(after_help = "Example:\n  fairlift kernels\n  fairlift compare job.fio --kernel 2.6.34")]
    Kernels,
    /// Run experiments and print published figures beside ours
    Reproduce(ReproduceArguments),
}

/// A thing to show.
#[derive(Args, Debug)]
pub struct NameArguments {
    /// Show this one
    pub name: Option<String>,
}

/// What to run on what.
#[derive(Args, Debug)]
pub struct WorkArguments {
    /// fio job files, '-' for standard input, or one scenario file (.toml)
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,

    /// fio's own options instead of a job file
    #[arg(last = true, value_name = "FIO OPTIONS", allow_hyphen_values = true)]
    pub fio: Vec<String>,

    /// Device: a preset (see 'fairlift devices') or a device file [default: sata7200-2009]
    #[arg(short, long, value_name = "NAME|FILE")]
    pub device: Option<String>,

    /// Change a tunable, such as cfq.slice_idle=0, in every column of that scheduler; may be repeated
    #[arg(long, value_name = "SCHEDULER.TUNABLE=VALUE")]
    pub set: Vec<String>,

    /// Seed of everything random; the same seed gives the same bytes [default: 1]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Run every job for this long, in fio's notation: 30, 500ms, 2m
    #[arg(long, value_name = "TIME")]
    pub runtime: Option<String>,

    /// Kernel version (see 'fairlift kernels') [default: 2.6.31]
    #[arg(long, value_name = "VERSION")]
    pub kernel: Option<String>,

    /// Files that are only written start out sparse, as fio of 2009 left them
    #[arg(long)]
    pub fresh_files: bool,

    /// Simulate so many runs at a time [default: number of processors]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub threads: Option<usize>,

    /// Refuse job files with options that fairlift would ignore
    #[arg(long)]
    pub strict: bool,
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

/// `fairlift compare`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift compare readers.fio
  fairlift compare readers.fio --device fc15k --scheduler deadline,cfq,cfq:slice_idle=0
  fairlift compare readers.fio --scheduler cfq@2.6.31,cfq@2.6.34 --runtime 60
  fairlift compare -- --name=r --rw=randread --bs=4k --size=1g --direct=1 --numjobs=4
  fairlift compare experiments/demo-readers.toml --output-format json --output demo.json
  fairlift compare readers.fio --report readers.html         a page with figures

The best scheduler of each column is marked with *. 'device time' is the job's part of the time the device was busy.")]
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
Schedulers, NAME[@PROFILE][:TUNABLE=VALUE]... each [default: noop,deadline,cfq]"
    )]
    pub scheduler: Vec<String>,

    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub output_format: Format,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Results to look at.
    #[command(flatten)]
    pub view: ViewArguments,
}

/// `fairlift run`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift run readers.fio --scheduler deadline
  fairlift run readers.fio --scheduler cfq:slice_idle=0 --output-format json   fio's JSON, as fio writes it
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
        default_value = "cfq",
        help = "\
The scheduler: NAME[@PROFILE][:TUNABLE=VALUE]..."
    )]
    pub scheduler: String,

    /// What to print; 'table' is fio's report, 'json' fio's JSON
    #[arg(long, value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub output_format: Format,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Results to look at.
    #[command(flatten)]
    pub view: ViewArguments,
}

/// `fairlift reproduce`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  fairlift reproduce                                  all experiments
  fairlift reproduce v10-test2-vanilla                one, by name
  fairlift reproduce mine.toml                        one of your own
  fairlift reproduce --output docs/experiments.md     as a page

Names are looked for in ./experiments, then among those compiled into the program. Exit code 1 means that a figure is not
reproduced which the experiment does not list as known to differ.")]
pub struct ReproduceArguments {
    /// Experiments: names or scenario files; none means all
    #[arg(value_name = "NAME|FILE")]
    pub experiments: Vec<String>,

    /// What to print [default: by the ending of --output, else table]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output_format: Option<PageFormat>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Simulate so many runs at a time [default: number of processors]
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
    /// One row per case, scheduler, job and direction
    Csv,
}

/// How experiments are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    /// For people
    Table,
    /// One object
    Json,
    /// A page
    Markdown,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n @ 1..=1024) => Ok(n),
        _ => Err("1 to 1024 are possible".to_owned()),
    }
}
