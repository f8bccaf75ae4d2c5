//! A small computer with a file system, a trace, and programs written on the spot.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use fairlift_core::{Flags, IoPrio, Op};
use fairlift_sim::block::{BlockLayer, TraceEvent, TraceKind};
use fairlift_sim::device::DeviceSpec;
use fairlift_sim::engine::{Machine, Outcome, Simulation, Sys};
use fairlift_sim::kernel::{self, Filesystem, Kernel, Memory, Mount, version};
use fairlift_sim::scheduler::SchedulerSpec;

pub const SECOND: u64 = 1_000_000_000;
const HOUR_NS: u64 = 3600 * SECOND;

/// What is run on.
#[derive(Clone, Debug)]
pub struct Computer {
    pub version: &'static str,
    pub filesystem: &'static str,
    pub mount: &'static str,
    pub device: &'static str,
    pub scheduler: &'static str,
    pub memory_mib: u64,
    pub journal_blocks: Option<u64>,
    pub yields: bool,
}

pub fn computer(version: &'static str, filesystem: &'static str, mount: &'static str) -> Computer {
    Computer {
        version,
        filesystem,
        mount,
        device: "sata7200-2009",
        scheduler: "deadline",
        memory_mib: 1024,
        journal_blocks: None,
        yields: false,
    }
}

/// A line of a trace, as tests state it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    pub task: String,
    pub what: String,
    pub sectors: u32,
    pub sector: u64,
    pub at_ns: u64,
    pub kind: TraceKind,
    pub write: bool,
}

impl Line {
    pub fn kib(&self) -> u32 {
        self.sectors / 2
    }

    /// `task: what KiB`.
    pub fn short(&self) -> String {
        format!("{}: {} {}", self.task, self.what, self.kib())
    }
}

/// `W`, `R`, `F`(lush), then the flags in words.
fn words(event: &TraceEvent) -> String {
    let mut text = match event.op {
        Op::Read => "R",
        Op::Write => "W",
        Op::Discard => "D",
        Op::Flush => "FLUSH",
    }
    .to_owned();
    for (flag, name) in [
        (Flags::SYNC, "sync"),
        (Flags::NOIDLE, "noidle"),
        (Flags::UNPLUG, "unplug"),
        (Flags::META, "meta"),
        (Flags::BARRIER, "barrier"),
        (Flags::PREFLUSH, "preflush"),
        (Flags::FUA, "fua"),
    ] {
        if event.flags.contains(flag) {
            text.push('+');
            text.push_str(name);
        }
    }
    text
}

impl Computer {
    pub fn build(&self) -> Simulation {
        let mut rules = version::find(self.version).unwrap().clone();
        rules.journal_yields = self.yields;
        let device = DeviceSpec::load(self.device).unwrap().build(1);
        let config = rules.queue_config(device.limits(), 64);
        let scheduler = SchedulerSpec::parse(self.scheduler, rules.profile).unwrap();
        let elevator = scheduler.build(&config.elevator(), rules.profile);
        let filesystem = match Filesystem::parse(self.filesystem, self.mount).unwrap() {
            Filesystem::Ext(mount) => Filesystem::Ext(Mount { journal_blocks: self.journal_blocks, ..mount }),
            raw => raw,
        };
        let memory = Memory::of(&rules, self.memory_mib << 20);
        let kernel = Kernel::new(rules, memory, filesystem, device.limits().sectors);
        let mut simulation = Simulation::new(BlockLayer::new(config, elevator, device), kernel);
        kernel::start_daemons(&mut simulation);
        simulation
    }

    /// Run a program called `app`; what the machine looks like then, and the whole trace.
    pub fn run<F, P>(&self, program: P) -> Ran
    where
        P: FnOnce(Sys, Marks) -> F,
        F: Future<Output = ()> + 'static,
    {
        let mut simulation = self.build();
        simulation.with_machine(|m| m.block_mut().start_trace());
        let marks = Marks::default();
        let inner = marks.clone();
        let task = simulation.spawn(IoPrio::DEFAULT, |sys| program(sys, inner));
        simulation.with_machine(|m| m.set_name(task, "app"));
        let outcome = simulation.run(HOUR_NS, &mut |_| {});
        assert_eq!(outcome, Outcome::Finished, "{self:?}");
        let lines = lines(&simulation);
        Ran { lines, marks: marks.0.take(), simulation }
    }
}

/// The trace so far, as tests state it.
pub fn lines(simulation: &Simulation) -> Vec<Line> {
    simulation.with_machine(|m| {
        let trace = m.block_mut().take_trace();
        trace.iter().map(|e| line(m, e)).collect()
    })
}

fn line(machine: &Machine, event: &TraceEvent) -> Line {
    Line {
        task: event.task.map_or_else(|| "queue".to_owned(), |t| machine.name_of(t).to_owned()),
        what: words(event),
        sectors: event.sectors,
        sector: event.sector,
        at_ns: event.at_ns,
        kind: event.kind,
        write: event.op == Op::Write,
    }
}

/// Moments a program names.
#[derive(Clone, Default)]
pub struct Marks(Rc<RefCell<Vec<(&'static str, u64)>>>);

impl Marks {
    pub fn set(&self, name: &'static str, sys: &Sys) {
        self.0.borrow_mut().push((name, sys.now()));
    }
}

/// A run that is over.
pub struct Ran {
    pub lines: Vec<Line>,
    pub marks: Vec<(&'static str, u64)>,
    pub simulation: Simulation,
}

impl Ran {
    pub fn at(&self, mark: &str) -> u64 {
        self.marks.iter().find(|(name, _)| *name == mark).unwrap_or_else(|| panic!("no mark {mark}")).1
    }

    /// What happened between two marks; what happened at the very moment of the first came before it.
    pub fn between(&self, from: &str, to: &str) -> Vec<Line> {
        let (from, to) = (self.at(from), self.at(to));
        self.lines.iter().filter(|l| l.at_ns > from && l.at_ns <= to).cloned().collect()
    }

    /// Requests that went to the device between two marks, in short.
    pub fn issued(&self, from: &str, to: &str) -> Vec<String> {
        self.between(from, to).iter().filter(|l| l.kind == TraceKind::Issued).map(Line::short).collect()
    }

    /// Bios that came in between two marks: runs of equal ones as `count x`.
    pub fn bios(&self, from: &str, to: &str) -> Vec<String> {
        let mut runs: Vec<(String, usize)> = Vec::new();
        for line in self.between(from, to) {
            if !matches!(line.kind, TraceKind::Queued | TraceKind::Merged) {
                continue;
            }
            match runs.last_mut() {
                Some((short, count)) if *short == line.short() => *count += 1,
                _ => runs.push((line.short(), 1)),
            }
        }
        runs.into_iter().map(|(short, count)| format!("{count} x {short}")).collect()
    }
}
