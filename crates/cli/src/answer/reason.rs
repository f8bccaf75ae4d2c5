//! Why it does not matter which scheduler: where the time goes instead.

use fairlift_sim::result::{JobResult, RunResult};

use crate::number::short;

/// A limit decides, or everything waits for it, in so much of the time.
const NEARLY_ALWAYS: f64 = 0.9;
/// So little does not count.
const NEARLY_NEVER: f64 = 0.05;
/// Of the time requests spend in front of the drive and in it, so much in front at most: its queue takes everything.
const IN_FRONT_MAX: f64 = 0.02;

/// Sums over runs of one comparison.
struct Sums {
    /// Bytes the jobs moved, and the device.
    moved: u64,
    from_device: u64,
    /// Processor time of the processes, and how long they lived.
    cpu_ns: u64,
    lifetime_ns: u64,
    duration_ns: u64,
    lock_ns: u64,
    limited_ns: u64,
    busy_ns: u64,
    /// Mean number of requests in the device, and in front of it (tasks that wait for a tag with them); and of bios held by limits above.
    inside: f64,
    in_front: f64,
    held: f64,
}

impl Sums {
    fn of(runs: &[&RunResult]) -> Sums {
        let sum = |of: fn(&RunResult) -> u64| runs.iter().map(|run| of(run)).sum::<u64>();
        let jobs =
            |of: fn(&JobResult) -> u64| runs.iter().flat_map(|run| &run.processes).map(of).sum::<u64>();
        let duration_ns = sum(|run| run.duration_ns).max(1);
        let mean = |of: fn(&RunResult) -> u128| {
            runs.iter().map(|run| of(run)).sum::<u128>() as f64 / duration_ns as f64
        };
        Sums {
            moved: jobs(JobResult::bytes),
            from_device: 512 * sum(|run| run.block.sectors.iter().sum()),
            cpu_ns: jobs(|job| job.cpu_ns),
            lifetime_ns: jobs(|job| job.lifetime_ns),
            duration_ns,
            lock_ns: sum(|run| run.block.lock_ns),
            limited_ns: sum(|run| run.device_limited_ns),
            busy_ns: sum(|run| run.block.busy_ns),
            inside: mean(|run| run.block.device_ns),
            in_front: mean(|run| run.block.queue_ns - run.block.device_ns + run.block.slot_wait_ns),
            held: mean(|run| run.block.held_ns),
        }
    }

    /// Of the time that I/O is on its way, the part in which a limit above the queue holds it.
    fn held_share(&self) -> f64 {
        self.held / (self.held + self.in_front + self.inside).max(f64::MIN_POSITIVE)
    }

    fn share(&self, ns: u64) -> f64 {
        ns as f64 / self.duration_ns as f64
    }

    /// Processor time of the processes' lives.
    fn cpu(&self) -> f64 {
        self.cpu_ns as f64 / self.lifetime_ns.max(1) as f64
    }
}

/// What keeps a scheduler from mattering, from the runs of the scheduler that waits least for anything else; `None`: nothing seen.
pub fn why_not(columns: &[Vec<&RunResult>]) -> String {
    let sums: Vec<Sums> = columns.iter().map(|runs| Sums::of(runs)).collect();
    let all = |is: &dyn Fn(&Sums) -> bool| sums.iter().all(is);
    let some = |of: &dyn Fn(&Sums) -> f64| sums.iter().map(of).fold(f64::INFINITY, f64::min);
    if all(&|s| s.moved > 0 && s.from_device as f64 <= NEARLY_NEVER * s.moved as f64) {
        let least = some(&|s| 100.0 * (1.0 - s.from_device as f64 / s.moved as f64));
        return format!(
            "everything is served from memory: {} % of the bytes never see the device",
            short(least)
        );
    }
    if let Some(text) = processor(&sums) {
        return text;
    }
    if all(&|s| s.held_share() >= NEARLY_ALWAYS) {
        let least = some(&|s| 100.0 * s.held_share());
        return format!(
            "{} decides: it holds I/O for {} % of the time it takes",
            limit(columns),
            short(least)
        );
    }
    if all(&|s| s.share(s.limited_ns) >= NEARLY_ALWAYS) {
        let least = some(&|s| 100.0 * s.share(s.limited_ns));
        return format!(
            "the volume's rate limit decides: requests wait for it in {} % of the time",
            short(least)
        );
    }
    let fewest = |a: &Sums, b: &Sums| a.in_front.total_cmp(&b.in_front);
    let Some(least) = sums.iter().min_by(|a, b| fewest(a, b)) else { return String::new() };
    let (inside, in_front) = (short(least.inside), short(least.in_front));
    if least.in_front <= IN_FRONT_MAX * (least.in_front + least.inside) {
        return match least.inside > 1.05 {
            true => format!(
                "the drive's queue takes everything: on average {inside} requests are in it and {in_front} in front of it, so the drive orders them"
            ),
            false => format!(
                "there is nothing to order: on average {inside} requests are in the device and {in_front} in front of it"
            ),
        };
    }
    match least.share(least.busy_ns) {
        busy if busy <= 0.5 => format!(
            "the device is idle {} % of the time: the jobs ask for no more",
            short(100.0 * (1.0 - busy))
        ),
        _ => format!(
            "the device takes as long in any order: on average {inside} requests are in it and {in_front} in front of it"
        ),
    }
}

/// What limits above the queue are called: a column may name a controller of its own.
fn limit(columns: &[Vec<&RunResult>]) -> &'static str {
    let other = |run: &&RunResult| run.scheduler.contains('+') && !run.scheduler.contains("+blk-throttle");
    if columns.iter().flatten().any(other) { "the controller above the queue" } else { "io.max" }
}

/// The processor, or the scheduler's lock, is what every job waits for under every scheduler.
fn processor(sums: &[Sums]) -> Option<String> {
    let busiest = |s: &Sums| s.cpu().max(s.share(s.lock_ns));
    if !sums.iter().all(|s| s.lifetime_ns > 0 && busiest(s) >= NEARLY_ALWAYS) {
        return None;
    }
    let least = sums.iter().map(busiest).fold(f64::INFINITY, f64::min);
    Some(format!(
        "the processor is the limit: the jobs compute, or wait for the scheduler's lock, in {} % of the time",
        short((100.0 * least).min(100.0))
    ))
}

/// Does every job wait for the processor? Then rates differ by the schedulers' processor cost.
pub fn is_processor_bound(columns: &[Vec<&RunResult>]) -> Option<String> {
    processor(&columns.iter().map(|runs| Sums::of(runs)).collect::<Vec<_>>())
}
