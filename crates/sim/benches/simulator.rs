//! Simulated requests per processor second: `cargo bench -p fairlift-sim --bench simulator [WORD]`.
//!
//! The best of three runs counts: what others do on the machine only ever adds.

use fairlift_fio::{Job, ParseOptions, Source, parse};
use fairlift_sim::device::DeviceSpec;
use fairlift_sim::kernel::{Memory, version};
use fairlift_sim::lab::{self, Setup};
use fairlift_sim::scheduler::SchedulerSpec;

/// What is measured: its name, device, kernel, scheduler, jobs.
const LOADS: &[(&str, &str, &str, &str, &str)] = &[
    (
        "4 jobs of depth 32, random reads",
        "flash-kd",
        "6.12",
        "noop",
        "[a]\nrw=randread\nsize=64g\nnorandommap\nnumjobs=4\nioengine=libaio\niodepth=32\nruntime=1",
    ),
    (
        "4 jobs of depth 32, random reads",
        "flash-kd",
        "6.12",
        "none",
        "[a]\nrw=randread\nsize=64g\nnorandommap\nnumjobs=4\nioengine=libaio\niodepth=32\nruntime=1",
    ),
    (
        "4 jobs of depth 32, random reads",
        "flash-kd",
        "6.12",
        "mq-deadline",
        "[a]\nrw=randread\nsize=64g\nnorandommap\nnumjobs=4\nioengine=libaio\niodepth=32\nruntime=1",
    ),
    (
        "1 job of depth 1, random reads",
        "flash-kd",
        "6.12",
        "noop",
        "[a]\nrw=randread\nsize=64g\nnorandommap\nruntime=20",
    ),
    (
        "1 sequential reader + 1 random",
        "sata7200-2009",
        "2.6.31",
        "cfq",
        "[s]\nrw=read\nsize=8g\nruntime=60\n[r]\nrw=randread\nsize=2g\nruntime=60",
    ),
    (
        "16 sequential readers + 1 random",
        "sata7200-2009",
        "2.6.31",
        "cfq",
        "[s]\nrw=read\nsize=2g\nnumjobs=16\nruntime=60\n[r]\nrw=randread\nsize=2g\nruntime=60",
    ),
    (
        "32 random readers",
        "sata7200-2009",
        "2.6.31",
        "cfq",
        "[r]\nrw=randread\nsize=2g\nnorandommap\nnumjobs=32\nruntime=1200",
    ),
    (
        "32 random readers",
        "sata7200-2009",
        "2.6.31",
        "noop",
        "[r]\nrw=randread\nsize=2g\nnorandommap\nnumjobs=32\nruntime=1200",
    ),
];

fn jobs(text: &str) -> Vec<Job> {
    let text = format!("[global]\ndirect=1\nbs=4k\ntime_based\n{text}\n");
    parse(&[Source::new("bench.fio", text)], &ParseOptions::default()).expect("a right job file").jobs
}

/// Processor time of this process so far, nanoseconds (it takes Linux).
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    println!(
        "{:<34} {:<14} {:<11} {:>9} {:>9} {:>12}",
        "load", "device", "", "requests", "ns each", "per CPU s"
    );
    for (name, device, kernel, scheduler, text) in LOADS {
        let label = format!("{name} {device} {kernel} {scheduler}");
        if !wanted.iter().all(|word| label.contains(word.as_str())) {
            continue;
        }
        let rules = version::find(kernel).expect("a known kernel");
        let device_spec = DeviceSpec::load(device).expect("a preset");
        let spec = SchedulerSpec::parse(scheduler, rules.profile).expect("a known scheduler");
        let setup = Setup {
            scheduler: &spec,
            device: &device_spec,
            rules,
            memory: Memory::default(),
            filesystem: fairlift_sim::kernel::Filesystem::Raw,
            jobs: &jobs(text),
            programs: &[],
            seed: 1,
            runtime_ns: None,
            fresh_files: false,
            explain: false,
            groups: &fairlift_sim::group::GroupTree::default(),
            warmup_ns: None,
        };
        let measure = || {
            let start = cpu_ns();
            let run = lab::run(&setup, &mut |_| {}).expect("the run ends");
            (cpu_ns() - start, run.block.requests.iter().sum::<u64>())
        };
        let (ns, requests) = (0..3).map(|_| measure()).min().expect("three runs");
        let each = ns as f64 / requests as f64;
        println!("{name:<34} {device:<14} {scheduler:<11} {requests:>9} {each:>9.0} {:>12.0}", 1e9 / each);
    }
}
