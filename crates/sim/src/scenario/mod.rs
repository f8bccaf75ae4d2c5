//! Scenarios: one TOML file says what runs on what.
//!
//! ```toml
//! title = "One random reader beside 1...16 sequential readers"
//! device = "sata7200-2009"          # preset or file
//! kernel = "2.6.31"
//! schedulers = ["noop", "deadline", "cfq:slice_idle=8"]
//! filesystem = "ext4"               # raw (default), ext3 or ext4
//! mount = "data=ordered,barrier=0"  # its mount options
//! seed = 1
//!
//! jobs = """                        # a fio job file; or jobs_file = "readers.fio"
//! [sequential]
//! rw=read
//! numjobs=${NR}
//! """
//!
//! [[program]]                       # programs beside the jobs, or instead of them; see docs/programs.md
//! name = "load"
//! command = "while :; do dd if=/dev/zero of=bigfile bs=8M count=256; sync; rm bigfile; done"
//! background = true                 # stopped when everything else has ended
//! start_s = 0.5                     # default 0
//! ioprio = "be/4"                   # rt/0...7, be/0...7, idle
//! repeat = 5                        # run it so often, one after the other; its figures are the means (default 1)
//! cgroup = "vm1"                    # the group it and its children are in
//!
//! [[group]]                         # groups, with what they are beside their siblings; see docs/lab-groups.md
//! path = "vm1/db"
//! weight = 500                      # 1 to 10000, default 100
//! leaf_weight = 100                 # of its own tasks beside its child groups
//! class = "be"                      # rt, be, idle: strict among siblings
//! max = "rbps=1M wiops=100"         # limits a second; for this and the comparators' keys see docs/limits.md
//!
//! [[case]]                          # the jobs run once per case, with these variables
//! name = "4"
//! vars = { NR = "4" }
//!
//! [[published]]                     # figures to compare with, by case
//! scheduler = "cfq"                 # or schedulers = ["noop", "cfq"], if the same is expected of several
//! job = "sequential"                # or a program's name; or group = "/vm1" instead
//! metric = "bandwidth_sum"          # KiB/s; or iops, latency_mean, latency_max, sync_p50, sync_p99, sync_max, sync_rate, ...; of a program one of its own metrics, of a group a group's (docs/lab-groups.md)
//! over = "deadline"                 # optional: the figures are ratios to the same metric under this scheduler, and
//! # over_job = "random"             # of this job or program, or over_group = "/vm2"; and
//! # over_case = "1"                 # in this case
//! values = { 4 = 27338 }
//! tolerance = 0.25                  # with compare = "near" (default), "at-least" or "at-most"
//! # accept = { min = 0.12, max = 0.27 }   instead of tolerance and compare: what counts, whatever was published
//! source = "where the figures stand"
//! # letter = "Goyal"                # whose letter that is; also at the top, for all rows
//! # origin = "printed"              # or derived, statement, fitted, aim; also at the top. Without it a row with a letter is derived if it
//! #                                   is a ratio, a statement if it has a range to accept, else printed; a row without one is an aim
//! # fitted = ["1"]                  # cases to which a value of the model was fitted: they prove nothing
//!
//! [[left_out]]                      # figures of the letter that are not compared
//! figures = 16
//! what = "the processor's columns"
//! why = "the processor is not known"
//! ```
//!
//! A job file on the command line is the short form: a scenario with one case and no published figures.

mod parse;
mod published;
mod run;

use std::collections::BTreeMap;

use fairlift_fio::{Diagnostic, Job};

use crate::device::DeviceSpec;
use crate::group::GroupTree;
use crate::kernel::{Filesystem, Memory, Rules};
use crate::lab::Replaying;
use crate::program::ProgramSpec;
use crate::scheduler::SchedulerSpec;

pub use parse::{Beside, ScenarioError, load, parse, parse_among, parse_changed};
pub use published::{Accept, Cell, Compare, LeftOut, Metric, Origin, Over, Published, Verdict, judge};
pub use run::{Progress, Recorders, RunFailure, run_all, run_all_recorded};

/// A scenario, read and checked.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Short name: the file's stem.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Anything more there is to say.
    pub about: String,
    /// The device.
    pub device: DeviceSpec,
    /// The kernel.
    pub rules: Rules,
    /// The schedulers to run under, in the order of the tables.
    pub schedulers: Vec<SchedulerSpec>,
    /// Memory.
    pub memory: Memory,
    /// What is on the device.
    pub filesystem: Filesystem,
    /// Seed of everything random.
    pub seed: u64,
    /// End every job after this, nanoseconds.
    pub runtime_ns: Option<u64>,
    /// Files that are only written start sparse.
    pub fresh_files: bool,
    /// Record why requests and calls take as long as they do.
    pub explain: bool,
    /// From when on the groups' figures count, nanoseconds; `None`: from the end of the longest `ramp_time`.
    pub warmup_ns: Option<u64>,
    /// What runs, by case.
    pub cases: Vec<Case>,
    /// Figures to compare with.
    pub published: Vec<Published>,
    /// Printed figures that are not compared.
    pub left_out: Vec<LeftOut>,
    /// Remarks of the job reader.
    pub warnings: Vec<Diagnostic>,
}

/// The jobs and programs with one set of variables.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name; empty when there is only one.
    pub name: String,
    /// The jobs.
    pub jobs: Vec<Job>,
    /// The programs.
    pub programs: Vec<ProgramSpec>,
    /// The groups that jobs and programs are in, and those beside them.
    pub groups: GroupTree,
    /// A trace replayed beside them.
    pub replaying: Option<Replaying>,
    /// A device of its own, instead of the scenario's.
    pub device: Option<DeviceSpec>,
    /// Options of the global sections, as written.
    pub global_options: Vec<(String, String)>,
}

/// Variables of a case.
pub(crate) type Vars = BTreeMap<String, String>;
