//! Short ways to say what runs on what, and a device that writes down what reaches it.

use std::cell::RefCell;
use std::rc::Rc;

use fairlift_fio::{Job, ParseOptions, Source, expand, parse};
use fairlift_sim::block::BlockLayer;
use fairlift_sim::device::{Command, Completion, Device, DeviceSpec, Limits, Op};
use fairlift_sim::engine::{Outcome, Simulation};
use fairlift_sim::group::GroupTree;
use fairlift_sim::kernel::{self, Filesystem, Kernel, Memory, version};
use fairlift_sim::lab::{self, LabError, Setup};
use fairlift_sim::program::fio;
use fairlift_sim::result::{JobResult, RunResult};
use fairlift_sim::scheduler::SchedulerSpec;

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// What runs on what. Default: noop on the device `null`, Linux 2.6.31, seed 1.
#[derive(Clone)]
pub struct Lab {
    pub jobs: Vec<Job>,
    pub device: DeviceSpec,
    pub kernel: &'static str,
    pub scheduler: SchedulerSpec,
    pub seed: u64,
    pub memory: Memory,
    pub fresh_files: bool,
    pub filesystem: Filesystem,
}

pub fn jobs(text: &str) -> Vec<Job> {
    let parsed = parse(&[Source::new("test.fio", text)], &ParseOptions::default()).unwrap();
    assert!(parsed.refused.is_empty(), "{:?}", parsed.refused);
    parsed.jobs
}

/// The jobs of a fio job file's text.
pub fn lab(text: &str) -> Lab {
    Lab {
        jobs: jobs(text),
        device: DeviceSpec::load("null").unwrap(),
        kernel: "2.6.31",
        scheduler: SchedulerSpec::parse("noop", "").unwrap(),
        seed: 1,
        memory: Memory::default(),
        fresh_files: false,
        filesystem: Filesystem::Raw,
    }
}

impl std::fmt::Debug for Lab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Lab { kernel, scheduler, seed, memory, fresh_files, .. } = self;
        write!(
            f,
            "{} {kernel} {scheduler} seed {seed} {memory:?} fresh_files {fresh_files}",
            self.device.name()
        )
    }
}

impl Lab {
    pub fn on(self, device: &str) -> Lab {
        Lab { device: DeviceSpec::load(device).unwrap(), ..self }
    }

    /// On a device that serves any number of commands at a time, each in `latency_ns`.
    pub fn on_latency(self, latency_ns: u64) -> Lab {
        let text = format!(
            "model = \"null\"\ndescription = \"test\"\nsectors = 2_147_483_648\nlatency_ns = {latency_ns}\n\
             [limits]\nqueue_depth = 1024\nmax_kib = 1280\nmax_segments = 256\n"
        );
        Lab { device: DeviceSpec::parse(&text, "test.toml").unwrap(), ..self }
    }

    pub fn kernel(self, kernel: &'static str) -> Lab {
        Lab { kernel, ..self }
    }

    pub fn under(self, scheduler: &str) -> Lab {
        Lab { scheduler: SchedulerSpec::parse(scheduler, "2.6.31").unwrap(), ..self }
    }

    pub fn mounted(self, filesystem: &str, mount: &str) -> Lab {
        Lab { filesystem: Filesystem::parse(filesystem, mount).unwrap(), ..self }
    }

    pub fn seed(self, seed: u64) -> Lab {
        Lab { seed, ..self }
    }

    pub fn cache_mib(self, mib: u64) -> Lab {
        Lab { memory: Memory { cache_bytes: mib << 20, ..self.memory }, ..self }
    }

    /// The groups that the jobs name.
    fn groups(&self) -> GroupTree {
        let mut groups = GroupTree::default();
        groups.join_jobs(&self.jobs).unwrap();
        groups
    }

    pub fn try_run(&self) -> Result<RunResult, LabError> {
        let setup = Setup {
            scheduler: &self.scheduler,
            device: &self.device,
            rules: version::find(self.kernel).unwrap(),
            memory: self.memory,
            filesystem: self.filesystem,
            jobs: &self.jobs,
            seed: self.seed,
            runtime_ns: None,
            programs: &[],
            fresh_files: self.fresh_files,
            explain: false,
            groups: &self.groups(),
            warmup_ns: None,
        };
        lab::run(&setup, &mut |_| {})
    }

    pub fn run(&self) -> RunResult {
        self.try_run().unwrap()
    }

    /// On a device that serves one command at a time, in a millisecond.
    pub fn run_on_depth_1(self) -> RunResult {
        let text = "model = \"null\"\ndescription = \"test\"\nsectors = 2_147_483_648\nlatency_ns = 1_000_000\n\
             [limits]\nqueue_depth = 1\nmax_kib = 1280\nmax_segments = 256\n";
        Lab { device: DeviceSpec::parse(text, "test.toml").unwrap(), ..self }.run()
    }

    /// Run with a device that keeps a log.
    pub fn run_logged(&self) -> Logged {
        self.run_logged_with(|_| {})
    }

    /// The same, with a chance to change the block layer before the start.
    pub fn run_logged_with(&self, prepare: impl FnOnce(&mut BlockLayer)) -> Logged {
        let log = Rc::new(RefCell::new(Log::default()));
        let host = self.scheduler.host();
        let rules = host.rules(version::find(self.kernel).unwrap());
        let expansion = expand(&self.jobs, self.seed);
        let device = Recorder { device: self.device.build(self.seed), log: Rc::clone(&log) };
        let mut config = rules.queue_config(device.limits(), expansion.processes.len() + 4);
        host.configure(&mut config, &rules, device.limits(), self.scheduler.is_direct()).unwrap();
        let elevator = self.scheduler.build(&config.elevator(), rules.profile);
        let kernel = Kernel::new(rules, self.memory, self.filesystem, device.limits().sectors);
        let mut block = BlockLayer::new(config, elevator, Box::new(device));
        prepare(&mut block);
        let mut simulation = Simulation::new(block, kernel);
        kernel::start_daemons(&mut simulation);
        let options =
            fio::Options { fresh_files: self.fresh_files, entropy: self.seed, groups: Default::default() };
        let results = fio::spawn(&mut simulation, &self.jobs, &expansion, &options).unwrap();
        let outcome = simulation.run(lab::LIMIT_NS, &mut |_| {});
        assert_eq!(outcome, Outcome::Finished);
        let unfinished = simulation.with_machine(|m| m.block().unfinished());
        Logged { processes: results.collect(&simulation), log: log.take(), unfinished }
    }
}

/// A logged run.
pub struct Logged {
    pub processes: Vec<JobResult>,
    pub log: Log,
    pub unfinished: [usize; 3],
}

/// What reached the device, in the order of arrival, with the time.
#[derive(Debug, Default)]
pub struct Log {
    pub commands: Vec<(u64, Command)>,
    in_flight: usize,
    pub in_flight_max: usize,
}

impl Log {
    /// Sizes of the commands of one kind, KiB.
    pub fn kib(&self, op: Op) -> Vec<u32> {
        self.commands.iter().filter(|(_, c)| c.op == op).map(|(_, c)| c.sectors / 2).collect()
    }

    pub fn count(&self, op: Op) -> usize {
        self.commands.iter().filter(|(_, c)| c.op == op).count()
    }

    /// When the first command of a kind came, nanoseconds.
    pub fn first(&self, op: Op) -> Option<u64> {
        self.commands.iter().find(|(_, c)| c.op == op).map(|(at, _)| *at)
    }
}

#[derive(Debug)]
struct Recorder {
    device: Box<dyn Device>,
    log: Rc<RefCell<Log>>,
}

impl Device for Recorder {
    fn limits(&self) -> &Limits {
        self.device.limits()
    }

    fn submit(&mut self, command: Command, now: u64) {
        let mut log = self.log.borrow_mut();
        log.commands.push((now, command));
        log.in_flight += 1;
        log.in_flight_max = log.in_flight_max.max(log.in_flight);
        self.device.submit(command, now);
    }

    fn next_event(&self) -> Option<u64> {
        self.device.next_event()
    }

    fn advance(&mut self, now: u64, done: &mut Vec<Completion>) {
        let before = done.len();
        self.device.advance(now, done);
        self.log.borrow_mut().in_flight -= done.len() - before;
    }

    fn busy_ns(&self) -> u64 {
        self.device.busy_ns()
    }
}

/// The row of the job called `name`.
pub fn job<'a>(run: &'a RunResult, name: &str) -> &'a JobResult {
    run.processes.iter().find(|p| p.name == name).unwrap()
}

pub fn assert_near(got: f64, wanted: f64, share: f64) {
    assert!((got - wanted).abs() <= share * wanted, "{got} is not within {share} of {wanted}");
}
