//! One run of the lab: fio jobs and programs on a device under a scheduler.

use std::fmt;
use std::sync::Arc;

use fairlift_core::IoPrio;
use fairlift_fio::{Job, expand};

use crate::block::BlockLayer;
use crate::device::{Device, DeviceSpec, Face, Limits};
use crate::ends::{Endless, endless};
use crate::engine::{Outcome, Simulation};
use crate::group::{Cgroup, GroupTree};
use crate::kernel::controller::{ControllerSpec, Place};
use crate::kernel::rq_qos::iocost::IoCost;
use crate::kernel::rq_qos::iolatency::IoLatency;
use crate::kernel::rq_qos::{RqQos, wbt::Wbt};
use crate::kernel::{self, Filesystem, Kernel, Memory, Rules};
use crate::program::fio::{self, SetupError};
use crate::program::replay::{self, Replay, Timing};
use crate::program::{self, ProgramSpec};
use crate::recording::Recording;
use crate::result::RunResult;
use crate::scheduler::SchedulerSpec;
use crate::scheduler::host::HostSettings;
use fairlift_core::queue::Admission;

/// Simulated time after which a run is given up: a day.
pub const LIMIT_NS: u64 = 86_400 * 1_000_000_000;
/// io contexts for the kernel's own threads.
const DAEMONS: usize = 5;

/// Everything that decides a run. Equal setups give equal results, to the last bit.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The scheduler.
    pub scheduler: &'a SchedulerSpec,
    /// The device.
    pub device: &'a DeviceSpec,
    /// The kernel.
    pub rules: &'a Rules,
    /// Memory.
    pub memory: Memory,
    /// What is on the device.
    pub filesystem: Filesystem,
    /// fio jobs.
    pub jobs: &'a [Job],
    /// Programs that run beside them.
    pub programs: &'a [ProgramSpec],
    /// Groups of tasks.
    pub groups: &'a GroupTree,
    /// From when on the groups' figures count, nanoseconds; `None`: from the end of the longest `ramp_time`.
    pub warmup_ns: Option<u64>,
    /// The seed of everything random.
    pub seed: u64,
    /// End every job after this time, nanoseconds.
    pub runtime_ns: Option<u64>,
    /// See [`fio::Options::fresh_files`].
    pub fresh_files: bool,
    /// Record why requests and calls take as long as they do ([`crate::anatomy`]).
    pub explain: bool,
}

/// A trace to replay, and when its I/Os are submitted.
#[derive(Clone, Debug)]
pub struct Replaying {
    /// The trace.
    pub trace: Arc<Replay>,
    /// When.
    pub timing: Timing,
}

/// Why a run did not come to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabError {
    /// The jobs cannot be started.
    Setup(SetupError),
    /// There is no job, and no program in the foreground.
    NoJobs,
    /// A program in the foreground failed.
    Program {
        /// What the scenario calls it.
        name: String,
        /// The system call, and why.
        error: String,
    },
    /// A setting that this kernel or device would refuse: a sentence that names it.
    Setting(String),
    /// All programs wait and nothing is going to happen: a bug of ours.
    Stuck {
        /// Simulated time, nanoseconds.
        at_ns: u64,
    },
    /// A job or program cannot end in that time.
    Endless(Endless),
    /// The jobs are not done after [`LIMIT_NS`] of simulated time.
    TooLong,
}

impl fmt::Display for LabError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LabError::Setup(error) => error.fmt(f),
            LabError::Setting(reason) => f.write_str(reason),
            LabError::NoJobs => write!(f, "there is no job and no foreground program to run"),
            LabError::Program { name, error } => write!(f, "program '{name}' failed: {error}"),
            LabError::Stuck { at_ns } => {
                write!(
                    f,
                    "internal error: the simulation makes no progress at {} s; please report it",
                    *at_ns as f64 / 1e9
                )
            }
            LabError::Endless(Endless { name, reason }) => {
                write!(f, "'{name}' does not end within one simulated day, which is the limit: {reason}")
            }
            LabError::TooLong => {
                write!(f, "the jobs are not done after a day of simulated time: give them a runtime")
            }
        }
    }
}

impl std::error::Error for LabError {}

impl From<SetupError> for LabError {
    fn from(error: SetupError) -> LabError {
        LabError::Setup(error)
    }
}

/// Run it. `progress` hears the simulated nanoseconds now and then.
///
/// # Errors
/// When the jobs do not fit the device.
pub fn run(setup: &Setup<'_>, progress: &mut dyn FnMut(u64)) -> Result<RunResult, LabError> {
    run_with(setup, None, &mut None, progress)
}

/// Run it beside the replay of a trace, and write down in `recording` what happens in the block layer.
///
/// # Errors
/// As [`run`].
pub fn run_with(
    setup: &Setup<'_>,
    replaying: Option<&Replaying>,
    recording: &mut Option<Recording>,
    progress: &mut dyn FnMut(u64),
) -> Result<RunResult, LabError> {
    let traced = replaying.map_or(0, |replaying| replaying.trace.processes.len());
    if setup.jobs.is_empty() && setup.programs.iter().all(|p| p.background) && traced == 0 {
        return Err(LabError::NoJobs);
    }
    let jobs = with_runtime(setup.jobs, setup.runtime_ns);
    let expansion = expand(&jobs, setup.seed);
    let program_tasks: usize = setup.programs.iter().map(|p| p.program.tasks()).sum();
    setup.filesystem.check(setup.rules).map_err(LabError::Setting)?;
    let (host, controller) = around(setup);
    let mut rules = host.rules(setup.rules);
    let own_tasks = expansion.processes.len() + program_tasks + traced;
    let flushers = if rules.writeback.by_cgroup { setup.groups.iter().len() } else { 0 };
    let contexts = own_tasks + DAEMONS + usize::from(!setup.groups.is_empty()) + flushers;
    // As in the module: an elevator that obeys yields is told of them.
    rules.journal_yields |= setup.scheduler.yields();
    if let Some(endless) = endless(&jobs, setup.programs, &rules) {
        return Err(LabError::Endless(endless));
    }
    let own_limits = host.groups()
        && setup.groups.has_max()
        && !controller.as_ref().is_some_and(ControllerSpec::keeps_max);
    let queue = Queue { setup, host: &host, rules: &rules, contexts, own_limits };
    let volume = setup.device.volume();
    let mut block = queue.layer(setup.seed, volume.map(|v| v.limits(setup.device.limits())))?;
    if let Some(volume) = volume {
        check_volume(setup, &host, controller.as_ref()).map_err(LabError::Setting)?;
        let seeds = (0..volume.disks as u64).map(|disk| setup.seed.wrapping_add(disk));
        block.set_disks(volume, seeds.map(|seed| queue.layer(seed, None)).collect::<Result<_, _>>()?);
    }
    let nr_requests = block.nr_requests();
    let direct = setup.scheduler.is_direct();
    let sectors = block.device().limits().sectors;
    let kernel = Kernel::new(rules.clone(), setup.memory, setup.filesystem, sectors);
    let mut simulation = Simulation::new(block, kernel);
    if !setup.groups.is_empty() {
        simulation.with_machine(|m| m.use_groups(setup.groups, &host));
        count_figures_between(&mut simulation, setup, warmup_end_ns(setup), jobs_end_ns(setup, &jobs));
    }
    simulation.with_machine(|m| m.block.set_scheduler(direct, setup.scheduler.cost()));
    if rules.blk_mq && setup.scheduler.is_in_module() {
        simulation.with_machine(|m| m.block.use_module());
    }
    if own_limits {
        simulation.with_machine(|m| m.block.limit_groups(setup.groups));
    }
    if let Some(controller) = &controller {
        let groups = setup.groups.entitled();
        let (tick_ns, keeps_slice) = (setup.rules.tick_ns, setup.rules.io_max_keeps_slice);
        let place = Place { groups: &groups, nr_requests, tick_ns, keeps_slice };
        simulation.with_machine(|m| m.block.set_controller(controller.build(&place)));
    }
    if setup.rules.blk_mq && setup.scheduler.host().groups() {
        simulation.with_machine(|m| m.block.set_classes(setup.groups.classes()));
    }
    if setup.explain {
        simulation.with_machine(crate::engine::Machine::start_anatomy);
    }
    if let Some(recording) = recording.take() {
        simulation.record(recording);
    }
    kernel::start_daemons(&mut simulation);
    let options =
        fio::Options { fresh_files: setup.fresh_files, entropy: setup.seed, groups: setup.groups.clone() };
    let results = fio::spawn(&mut simulation, &jobs, &expansion, &options)?;
    let programs = program::spawn(&mut simulation, setup.programs, setup.groups, setup.seed)
        .map_err(|space| SetupError::NoSpace { job: "programs".to_owned(), space })?;
    let replayed = replaying.map(|r| replay::spawn(&mut simulation, &r.trace, setup.groups, r.timing));
    // A trace may last for weeks; it ends by itself.
    let limit_ns = if replaying.is_some() { u64::MAX } else { LIMIT_NS };
    let outcome = simulation.run(limit_ns, progress);
    *recording = simulation.take_recording();
    let (duration_ns, block) = simulation.with_machine(|m| (m.now(), m.block.stats_of_all()));
    let (device_busy_ns, device_limited_ns) = simulation.with_machine(|m| m.block.device_times_ns());
    match outcome {
        Outcome::Finished => {}
        Outcome::Stuck => return Err(LabError::Stuck { at_ns: duration_ns }),
        Outcome::TimeLimit => return Err(LabError::TooLong),
    }
    let programs = programs.collect(duration_ns);
    for program in programs.iter().filter(|p| !p.background) {
        if let Some(error) = program.error.clone() {
            return Err(LabError::Program { name: program.name.clone(), error });
        }
    }
    Ok(RunResult {
        scheduler: setup.scheduler.to_string(),
        device: setup.device.name().to_owned(),
        kernel: setup.rules.version.to_owned(),
        seed: setup.seed,
        processes: [results.collect(&simulation), replayed.map_or_else(Vec::new, |r| r.collect())].concat(),
        programs,
        groups: simulation.with_machine(|m| m.group_results(setup.groups)),
        block,
        duration_ns,
        device_busy_ns,
        device_limited_ns,
        outcome,
        found: simulation.with_machine(|m| m.block.found(m.now())),
        explanation: simulation.with_machine(crate::engine::Machine::take_anatomy),
    })
}

/// What the request queues of a run have in common.
struct Queue<'a> {
    setup: &'a Setup<'a>,
    host: &'a HostSettings,
    rules: &'a Rules,
    contexts: usize,
    /// Do the queue's groups keep their limits themselves?
    own_limits: bool,
}

impl Queue<'_> {
    /// A request queue with its scheduler above a device of its own. `volume`: it stands for a volume with these limits, and its
    /// disks come below it.
    fn layer(&self, seed: u64, volume: Option<Limits>) -> Result<BlockLayer, LabError> {
        let Queue { setup, host, rules, contexts, own_limits } = *self;
        let device: Box<dyn Device> = match volume {
            Some(limits) => Box::new(Face(limits)),
            None => setup.device.build(seed),
        };
        let mut config = rules.queue_config(device.limits(), contexts);
        host.configure(&mut config, rules, device.limits(), setup.scheduler.is_direct())
            .map_err(|message| LabError::Setting(format!("{}: {message}", setup.scheduler)))?;
        if host.groups() {
            config.groups_max = setup.groups.iter().len();
        }
        if !own_limits {
            config.held_max = 0;
        }
        let (Admission::Pools { nr_requests } | Admission::Tags { nr_requests }) = config.admission;
        let below = Below { device: device.limits(), nr_requests, requests_max: config.requests_max() };
        let qos = queue_controllers(setup, host, &below).map_err(LabError::Setting)?;
        let elevator = setup.scheduler.build(&config.elevator(), rules.profile);
        let mut block = BlockLayer::new(config, elevator, device);
        if let Some(qos) = qos {
            block.set_qos(qos);
        }
        Ok(block)
    }
}

/// What the lab cannot do on a volume of several disks.
fn check_volume(
    setup: &Setup<'_>,
    host: &HostSettings,
    controller: Option<&ControllerSpec>,
) -> Result<(), String> {
    let refused = [
        (controller.is_some(), "a controller above the queue (+NAME, or a group's max without groups)"),
        (host.fair_writeback(), "fair_writeback"),
        (setup.explain, "--explain, --report and --plots"),
    ];
    match refused.into_iter().find(|(asked, _)| *asked) {
        Some((_, what)) => {
            Err(format!("{}: a volume of several disks does not go with {what}", setup.scheduler))
        }
        None => Ok(()),
    }
}

/// The host's settings and the controller. A scheduler that knows no groups gets none; what limits them (`io.max`) then is
/// blk-throttle, as in Linux, if nothing else is asked for.
fn around(setup: &Setup<'_>) -> (HostSettings, Option<ControllerSpec>) {
    let (host, controller) = (setup.scheduler.host(), setup.scheduler.controller().cloned());
    if setup.scheduler.knows_groups() || !host.groups() {
        return (host.clone(), controller);
    }
    let throttle = || setup.groups.has_max().then(|| ControllerSpec::parse("blk-throttle").ok()).flatten();
    (host.without_groups(), controller.or_else(throttle))
}

/// What the controllers between merging and the request slot have to know of the queue.
struct Below<'a> {
    device: &'a Limits,
    nr_requests: u32,
    requests_max: usize,
}

/// The controllers as that kernel has them. Those of groups are out with `groups=0`.
fn queue_controllers(
    setup: &Setup<'_>,
    host: &HostSettings,
    below: &Below<'_>,
) -> Result<Option<RqQos>, String> {
    let version = setup.rules.version;
    if !setup.rules.blk_mq {
        return setup.groups.file_of_today().map_or(Ok(None), |(file, group)| {
            Err(format!("group '{group}': Linux {version} has no {file}; 6.12 has it"))
        });
    }
    let uses_groups = setup.scheduler.host().groups();
    let (latency, cost) = match uses_groups {
        true => (latency(setup, below), cost(setup, below)?),
        false => (None, None),
    };
    let wbt = writeback_throttling(setup, host, below, cost.is_some());
    Ok(RqQos::new(wbt, latency, cost, below.requests_max))
}

/// Writeback throttling: on unless the scheduler, io.cost or `wbt_lat_usec` switches it off.
fn writeback_throttling(
    setup: &Setup<'_>,
    host: &HostSettings,
    below: &Below<'_>,
    beside_cost: bool,
) -> Option<Wbt> {
    let set_ns = host.wbt_latency_ns();
    if set_ns.is_none() && (setup.scheduler.is_without_wbt() || beside_cost) {
        return None;
    }
    let Limits { rotational, queue_depth, write_cache, .. } = *below.device;
    Wbt::new(set_ns, rotational, below.nr_requests.min(queue_depth), write_cache)
}

fn latency(setup: &Setup<'_>, below: &Below<'_>) -> Option<IoLatency> {
    let tree = setup.groups;
    let of = |group| (tree.parent(group).map(Cgroup::index), tree.limits(group).latency.target_us * 1000);
    IoLatency::new(below.nr_requests, below.device.rotational, tree.numbers().map(of))
}

fn cost(setup: &Setup<'_>, below: &Below<'_>) -> Result<Option<IoCost>, String> {
    let tree = setup.groups;
    let (model, qos) = tree.cost();
    let Some(qos) = qos.filter(|qos| qos.enable) else {
        return match model {
            Some(_) => Err("io.cost.model does nothing without io.cost.qos = \"enable=1\"".to_owned()),
            None => Ok(None),
        };
    };
    let device = (below.device.rotational, below.device.queue_depth);
    Ok(Some(IoCost::new(model.unwrap_or_default(), qos, device, &tree.weights())))
}

/// When the groups' figures begin to count.
fn warmup_end_ns(setup: &Setup<'_>) -> u64 {
    let ramps = setup.jobs.iter().map(|job| job.schedule.ramp_time_us * 1000);
    setup.warmup_ns.or_else(|| ramps.max()).unwrap_or(0)
}

/// When the first job's time is up, if that is known. Its requests and others' are still queued then, and are done by number, not
/// by weight: what the groups get of the device until all are done does not count.
fn jobs_end_ns(setup: &Setup<'_>, jobs: &[Job]) -> Option<u64> {
    if setup.programs.iter().any(|program| !program.background) {
        return None;
    }
    let end_us = |job: &Job| {
        let plan = &job.schedule;
        (plan.runtime_us > 0).then_some(plan.start_delay_us.0 + plan.ramp_time_us + plan.runtime_us)
    };
    let ends_us: Option<Vec<u64>> = jobs.iter().map(end_us).collect();
    ends_us?.into_iter().min().map(|us| us.saturating_mul(1000))
}

/// What the groups get outside of this does not count.
fn count_figures_between(simulation: &mut Simulation, setup: &Setup<'_>, start_ns: u64, end_ns: Option<u64>) {
    let end_ns = end_ns.filter(|end_ns| *end_ns > start_ns);
    if start_ns == 0 && end_ns.is_none() {
        return;
    }
    let tree = setup.groups.clone();
    simulation.spawn_daemon(IoPrio::DEFAULT, move |sys| async move {
        if start_ns > 0 {
            sys.sleep_until(start_ns).await;
            sys.machine.borrow_mut().restart_group_figures();
        }
        if let Some(end_ns) = end_ns {
            sys.sleep_until(end_ns).await;
            sys.machine.borrow_mut().close_group_figures(&tree);
        }
    });
}

/// The jobs with every runtime replaced, if one is given; they then run for that long whatever their size.
fn with_runtime(jobs: &[Job], runtime_ns: Option<u64>) -> Vec<Job> {
    let mut jobs = jobs.to_vec();
    if let Some(ns) = runtime_ns {
        for job in &mut jobs {
            job.schedule.runtime_us = (ns / 1000).max(1);
            job.schedule.time_based = true;
        }
    }
    jobs
}
