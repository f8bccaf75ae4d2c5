//! `docs/adding-an-elevator.md`, followed for real: a new elevator written outside of the core, beside noop in the lab.

#[path = "adding_an_elevator/scan.rs"]
mod scan;

use fairlift_core::queue::{QueueConfig, RequestQueue, Submitted};
use fairlift_core::{Bio, Dispatch, Flags, IoPrio, Op};
use fairlift_fio::{Job, ParseOptions, Source, parse};
use fairlift_sim::device::DeviceSpec;
use fairlift_sim::kernel::{Filesystem, Memory, version};
use fairlift_sim::lab::{self, Setup};
use fairlift_sim::result::RunResult;
use fairlift_sim::scheduler::SchedulerSpec;

use scan::SCAN;

/// The disk of 2009, taking one command at a time: what it does not sort the elevator has to.
fn disk() -> DeviceSpec {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices/sata7200-2009.toml");
    let text = std::fs::read_to_string(path).unwrap().replace("queue_depth = 31", "queue_depth = 1");
    DeviceSpec::parse(&text, "one-at-a-time.toml").unwrap()
}

fn jobs(text: &str) -> Vec<Job> {
    parse(&[Source::new("scan.fio", text)], &ParseOptions::default()).unwrap().jobs
}

/// Runs `jobs` on `device` under `scheduler`.
fn run(scheduler: &SchedulerSpec, device: &DeviceSpec, jobs: &[Job]) -> RunResult {
    let setup = Setup {
        scheduler,
        device,
        rules: version::find("2.6.31").unwrap(),
        memory: Memory::default(),
        filesystem: Filesystem::Raw,
        jobs,
        programs: &[],
        seed: 1,
        runtime_ns: None,
        fresh_files: false,
        explain: false,
        groups: &fairlift_sim::group::GroupTree::default(),
        warmup_ns: None,
    };
    lab::run(&setup, &mut |_| {}).unwrap()
}

#[test]
fn scan_seeks_less_than_noop() {
    let jobs = jobs(
        "[a]\nfilename=one\nrw=randread\nsize=500g\nnorandommap\ndirect=1\nnumjobs=32\ntime_based\nruntime=20\n",
    );
    let noop = run(&SchedulerSpec::parse("noop", "").unwrap(), &disk(), &jobs);
    let scan = run(&SchedulerSpec::of(&SCAN), &disk(), &jobs);
    assert!(scan.iops() > 1.5 * noop.iops(), "scan {} noop {}", scan.iops(), noop.iops());
    assert_eq!(scan.scheduler, "scan");
}

#[test]
fn a_turn_for_the_oldest_saves_the_others_from_a_sequential_reader() {
    let jobs = jobs(
        "[global]\ndirect=1\nsize=4g\ntime_based\nruntime=10\nioengine=libaio\niodepth=8\n[s]\nrw=read\n[r]\nrw=randread\n",
    );
    let random = |spec: &SchedulerSpec| run(spec, &disk(), &jobs).processes[1].iops();
    let pure = SchedulerSpec::of(&SCAN);
    let mut fair = pure.clone();
    fair.set("oldest_after", "16", "").unwrap();
    assert_eq!(fair.to_string(), "scan:oldest_after=16");
    assert!(random(&fair) > 5.0 * random(&pure), "{} {}", random(&fair), random(&pure));
}

#[test]
fn a_wrong_setting_is_refused_with_the_right_ones() {
    let mut spec = SchedulerSpec::of(&SCAN);
    let unknown = spec.set("oldest_aftr", "1", "").unwrap_err();
    let start =
        "scan has no tunable 'oldest_aftr'; did you mean 'oldest_after'? (allowed: oldest_after, nomerges, ";
    assert!(unknown.to_string().starts_with(start), "{unknown}");
    assert!(spec.set("oldest_after", "10001", "").is_err());
}

/// A golden test: the order worked out by hand.
#[test]
fn it_goes_up_and_starts_over() {
    let config = QueueConfig { tagged: true, rotational: false, ..QueueConfig::default() };
    let mut queue = RequestQueue::new(config, (SCAN.build)(&config.elevator(), ""));
    let context = queue.contexts_mut().create(IoPrio::DEFAULT);
    let read = |sector| Bio {
        cookie: sector,
        op: Op::Read,
        flags: Flags::NONE,
        sector,
        sectors: 8,
        segments: 1,
        context,
        ioprio: None,
        group: None,
    };
    for sector in [500, 100, 900, 300] {
        assert!(matches!(queue.submit(read(sector), 0), Submitted::Queued(_)));
    }
    let mut order = Vec::new();
    while let Dispatch::Issue(rq) = queue.dispatch(0) {
        order.push(queue.requests()[rq].sector);
        queue.complete(rq, 0, |_| {});
        if order.len() == 2 {
            // Behind the head: has to wait for the next way over the disk.
            queue.submit(read(200), 0);
        }
    }
    assert_eq!(order, [100, 300, 500, 900, 200]);
}

/// Every block of code in the document stands, line for line, in one of the files of this test.
#[test]
fn the_document_shows_this_code() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let read = |path: &str| std::fs::read_to_string(format!("{root}{path}")).unwrap();
    let document = read("../../docs/adding-an-elevator.md");
    let code = read("tests/adding_an_elevator/scan.rs") + &read("tests/adding_an_elevator.rs");
    let blocks: Vec<&str> =
        document.split("```rust\n").skip(1).map(|b| b.split("```").next().unwrap()).collect();
    assert!(blocks.len() >= 5, "{} blocks", blocks.len());
    for block in blocks {
        assert!(code.contains(block), "not in the test:\n{block}");
    }
}
