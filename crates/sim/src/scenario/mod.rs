//! Scenarios: one TOML file says what runs on what.
//!
//! `docs/scenario.md` has the format, with every key.
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
    /// What the cases differ in, where their names are its values: `sequential readers`; empty: they are just cases.
    pub case_variable: String,
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
    /// A seed of its own, instead of the scenario's; it then decides also what fio repeats from run to run
    /// (docs/cli.md, "How sure it is").
    pub seed: Option<u64>,
    /// Options of the global sections, as written.
    pub global_options: Vec<(String, String)>,
}

/// Variables of a case.
pub(crate) type Vars = BTreeMap<String, String>;
