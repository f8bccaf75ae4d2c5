//! Programs of a run: how they are started, and what they reported.

use std::sync::Arc;

use fairlift_core::IoPrio;

use super::process::Console;
use super::{Figure, Process, Program, ProgramMetric};
use crate::engine::Simulation;
use crate::group::GroupTree;
use crate::kernel::{Layout, NoSpace};
use crate::result::ProgramResult;

/// A program in a scenario.
#[derive(Clone, Debug)]
pub struct ProgramSpec {
    /// What it is called in results.
    pub name: String,
    /// Its command line, as written.
    pub command: String,
    /// The same, read.
    pub program: Arc<dyn Program>,
    /// It does not keep the run going: it is stopped when all others ended.
    pub background: bool,
    /// When it starts, nanoseconds.
    pub start_ns: u64,
    /// Its I/O priority.
    pub ioprio: IoPrio,
    /// The group it and its children are in; `None`: the root.
    pub cgroup: Option<String>,
    /// How often it is run, one run after the other; its figures are the means.
    pub repeat: u64,
}

impl ProgramSpec {
    /// A program in the foreground that starts at once.
    ///
    /// # Errors
    /// When the command line is wrong.
    pub fn new(name: &str, command: &str) -> Result<ProgramSpec, super::ProgramError> {
        Ok(ProgramSpec {
            name: name.to_owned(),
            command: command.to_owned(),
            program: Arc::from(super::parse(command)?),
            background: false,
            start_ns: 0,
            ioprio: IoPrio::DEFAULT,
            cgroup: None,
            repeat: 1,
        })
    }
}

/// Programs on a computer.
#[derive(Debug)]
pub struct Programs(Vec<(ProgramSpec, Console)>);

/// Start them.
///
/// # Errors
/// When a device that one of them opens cannot be had.
pub fn spawn(
    simulation: &mut Simulation,
    specs: &[ProgramSpec],
    groups: &GroupTree,
    seed: u64,
) -> Result<Programs, NoSpace> {
    let mut started = Vec::new();
    for (spec, number) in specs.iter().zip(1u64..) {
        for device in spec.program.devices() {
            simulation.with_machine(|m| {
                let bytes = m.block.device().limits().sectors * 512;
                m.kernel.create_file(&device, bytes, Layout::Device).map(|_| ())
            })?;
        }
        let (out, program) = (Console::default(), Arc::clone(&spec.program));
        let (start_ns, ioprio, repeat) = (spec.start_ns, spec.ioprio, spec.repeat);
        let seed = seed.wrapping_add(number.wrapping_mul(0xD1B5_4A32_D192_ED03));
        let console = out.clone();
        let task = |sys: crate::engine::Sys| async move {
            sys.sleep(start_ns).await;
            out.started(sys.now());
            let mut means = Means::default();
            for run in 0..repeat {
                let process = Process { sys: sys.clone(), out: out.clone(), ioprio, seed: seed ^ run };
                if let Err(failure) = program.run(process).await {
                    out.fail(failure);
                    break;
                }
                means.add(&out.printed().figures);
            }
            if repeat > 1 {
                means.figures().for_each(|(metric, mean)| out.set(metric, mean));
            }
            out.ended(sys.now());
        };
        let cgroup = groups.cgroup_of(spec.cgroup.as_deref());
        let id = match spec.background {
            true => simulation.spawn_background(cgroup, ioprio, task),
            false => simulation.spawn_in(cgroup, ioprio, task),
        };
        simulation.with_machine(|m| m.set_name(id, &spec.name));
        started.push((spec.clone(), console));
    }
    Ok(Programs(started))
}

/// Means of a program's figures over its runs.
#[derive(Default)]
struct Means {
    runs: f64,
    sums: Vec<(ProgramMetric, f64)>,
}

impl Means {
    fn add(&mut self, figures: &[Figure]) {
        self.runs += 1.0;
        for Figure { metric, value } in figures {
            match self.sums.iter_mut().find(|(m, _)| m == metric) {
                Some((_, sum)) => *sum += value,
                None => self.sums.push((*metric, *value)),
            }
        }
    }

    fn figures(&self) -> impl Iterator<Item = (ProgramMetric, f64)> + '_ {
        self.sums.iter().map(|(metric, sum)| (*metric, sum / self.runs))
    }
}

impl Programs {
    /// What they reported, in order of start.
    pub fn collect(&self, now_ns: u64) -> Vec<ProgramResult> {
        let report = |(spec, console): &(ProgramSpec, Console)| {
            let printed = console.printed();
            ProgramResult {
                name: spec.name.clone(),
                command: spec.command.clone(),
                background: spec.background,
                stopped: printed.ended_ns.is_none(),
                started_ns: printed.started_ns.unwrap_or(now_ns),
                ended_ns: printed.ended_ns.unwrap_or(now_ns),
                text: printed.text,
                figures: printed.figures,
                error: printed.failure.map(|f| format!("{}: {f}", spec.program.name())),
            }
        };
        self.0.iter().map(report).collect()
    }
}
