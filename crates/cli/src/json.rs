//! The comparison for programs: every run with fio's own report in it.

use fairlift_sim::anatomy::Anatomy;
use fairlift_sim::engine::Outcome;
use fairlift_sim::group::{GoalFigures, GroupClass, GroupFigures, GroupResult};
use fairlift_sim::result::{ProgramResult, RunResult};
use fairlift_sim::scenario::{Case, Scenario};
use serde::Serialize;

use crate::answer::Answer;
use crate::answer::goal::Goal;
use crate::fio_json::{self, Report};
use crate::trace::replay::About;

#[derive(Serialize)]
struct Comparison<'a> {
    #[serde(rename = "fairlift version")]
    version: &'static str,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<&'a About>,
    runs: Vec<Run>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<Told>,
}

/// An answer to the comparison.
#[derive(Serialize)]
struct Told {
    case: String,
    device: String,
    goal: String,
    /// Does it matter which scheduler?
    matters: bool,
    scheduler: String,
    as_good: Vec<String>,
    sentences: Vec<String>,
    sysfs: Vec<String>,
    udev_file: Option<&'static str>,
    udev: Vec<String>,
    cgroup: Vec<String>,
    notes: Vec<String>,
}

impl Told {
    fn of(scenario: &Scenario, goal: &Goal, answer: &Answer) -> Told {
        let name = |at: &usize| scenario.schedulers[*at].to_string();
        let lines = answer.lines.clone();
        let (udev_file, udev) = lines.udev.map_or((None, Vec::new()), |(file, lines)| (Some(file), lines));
        Told {
            case: answer.case.clone(),
            device: answer.device.clone(),
            goal: goal.name(),
            matters: answer.matters,
            scheduler: name(&answer.chosen),
            as_good: answer.as_good.iter().map(name).collect(),
            sentences: answer.sentences.clone(),
            sysfs: lines.sysfs,
            udev_file,
            udev,
            cgroup: lines.cgroup,
            notes: lines.notes,
        }
    }
}

#[derive(Serialize)]
struct Run {
    scheduler: String,
    device: String,
    kernel: String,
    seed: u64,
    case: String,
    /// Did the jobs end by themselves, not by the simulation's time limit?
    finished: bool,
    simulated_ns: u64,
    bandwidth_bytes_per_s: f64,
    device_busy_share: f64,
    jain_device_time: f64,
    job_device_time: Vec<DeviceTime>,
    fio: Report,
    programs: Vec<Program>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Group>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Anatomy>,
    block: Block,
}

#[derive(Serialize)]
struct DeviceTime {
    jobname: String,
    groupid: u32,
    processes: u32,
    device_time_ns: u64,
    share: f64,
}

/// What a group got: with the groups below it, and its own tasks alone.
#[derive(Serialize)]
struct Group {
    path: String,
    weight: Option<u32>,
    class: GroupClass,
    #[serde(skip_serializing_if = "is_none")]
    reserve_percent: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_goal: Option<LatencyGoal>,
    /// Of its parent's device time.
    device_time_share: f64,
    counted_ns: u64,
    all: GroupTotals,
    own: GroupTotals,
}

/// Sync requests of a group with a latency goal.
#[derive(Serialize)]
struct LatencyGoal {
    goal_ns: u64,
    met: u64,
    missed_above_due: u64,
    missed_within_due: u64,
}

impl LatencyGoal {
    fn of(goal: &GoalFigures) -> LatencyGoal {
        let GoalFigures { goal_ns, met, missed_above_due, missed_within_due } = *goal;
        LatencyGoal { goal_ns, met, missed_above_due, missed_within_due }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's
fn is_none(reserve: &u32) -> bool {
    *reserve == 0
}

#[derive(Serialize)]
struct GroupTotals {
    device_time_ns: u64,
    read_requests: u64,
    write_requests: u64,
    read_sectors: u64,
    write_sectors: u64,
    merged_bios: u64,
    dirtied_bytes: u64,
    written_bytes: u64,
    latency_mean_ns: f64,
    latency_p50_ns: u64,
    latency_p99_ns: u64,
    latency_max_ns: u64,
    gap_longest_ns: u64,
    gap_total_ns: u64,
}

impl Group {
    fn of(group: &GroupResult) -> Group {
        Group {
            path: group.path.clone(),
            weight: group.weight,
            class: group.class,
            reserve_percent: group.reserve,
            latency_goal: group.goal.as_ref().map(LatencyGoal::of),
            device_time_share: group.share,
            counted_ns: group.counted_ns,
            all: GroupTotals::of(&group.all),
            own: GroupTotals::of(&group.own),
        }
    }
}

impl GroupTotals {
    fn of(figures: &GroupFigures) -> GroupTotals {
        let percentile = |percent| figures.latency.percentile_ns(percent).min(figures.latency.max_ns());
        GroupTotals {
            device_time_ns: figures.device_time_ns,
            read_requests: figures.requests[0],
            write_requests: figures.requests[1],
            read_sectors: figures.sectors[0],
            write_sectors: figures.sectors[1],
            merged_bios: figures.merged,
            dirtied_bytes: figures.dirtied_bytes,
            written_bytes: figures.written_bytes,
            latency_mean_ns: figures.latency.mean_ns(),
            latency_p50_ns: percentile(50.0),
            latency_p99_ns: percentile(99.0),
            latency_max_ns: figures.latency.max_ns(),
            gap_longest_ns: figures.gap_longest_ns,
            gap_total_ns: figures.gap_total_ns,
        }
    }
}

/// What a program printed and measured.
#[derive(Serialize)]
struct Program {
    name: String,
    command: String,
    background: bool,
    /// It was stopped when all others had ended.
    stopped: bool,
    started_ns: u64,
    ended_ns: u64,
    figures: Vec<Figure>,
    /// In the original's format.
    text: String,
}

#[derive(Serialize)]
struct Figure {
    name: &'static str,
    value: f64,
    unit: &'static str,
}

#[derive(Serialize)]
struct Block {
    bios: u64,
    merges: u64,
    write_merges: u64,
    read_requests: u64,
    write_requests: u64,
    discard_requests: u64,
    flush_requests: u64,
    read_sectors: u64,
    write_sectors: u64,
    read_ticks_ns: u64,
    write_ticks_ns: u64,
    busy_ns: u64,
    device_work_ns: u64,
    mean_queue_length: f64,
}

/// All runs as one object.
pub fn comparison(scenario: &Scenario, runs: &[Vec<&RunResult>], goal: &Goal, answers: &[Answer]) -> String {
    let answers = answers.iter().map(|answer| Told::of(scenario, goal, answer)).collect();
    compared(scenario, runs, None, answers)
}

/// The same of a trace, with what is known of it.
pub fn replay(scenario: &Scenario, runs: &[Vec<RunResult>], about: &About) -> String {
    compared(scenario, &crate::plan::flat(runs), Some(about), Vec::new())
}

fn compared(
    scenario: &Scenario,
    runs: &[Vec<&RunResult>],
    replay: Option<&About>,
    answers: Vec<Told>,
) -> String {
    let by_case = scenario.cases.iter().zip(runs);
    let runs = by_case.flat_map(|(case, runs)| runs.iter().map(move |run| Run::of(case, run))).collect();
    text(&Comparison {
        version: env!("CARGO_PKG_VERSION"),
        title: scenario.title.clone(),
        replay,
        runs,
        answers,
    })
}

/// fio's own report of one run; what fio has no place for stands beside its keys, as `fairlift`.
pub fn fio(case: &Case, run: &RunResult) -> String {
    let programs: Vec<Program> = run.programs.iter().map(Program::of).collect();
    let groups: Vec<Group> = run.groups.iter().map(Group::of).collect();
    let explain = run.explanation.clone();
    let more = !programs.is_empty() || !groups.is_empty() || explain.is_some();
    let fairlift = more.then_some(Beside { programs, groups, explain });
    text(&WithMore { fio: fio_json::report(case, run), fairlift })
}

#[derive(Serialize)]
struct WithMore {
    #[serde(flatten)]
    fio: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    fairlift: Option<Beside>,
}

#[derive(Serialize)]
struct Beside {
    programs: Vec<Program>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    groups: Vec<Group>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explain: Option<Anatomy>,
}

/// An object, indented, with a final newline.
pub fn text(value: &impl Serialize) -> String {
    // Neither maps with keys that are not text nor numbers JSON lacks occur in these types.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

impl Program {
    fn of(program: &ProgramResult) -> Program {
        let figure = |f: &fairlift_sim::program::Figure| Figure {
            name: f.metric.name,
            value: f.value,
            unit: f.metric.unit,
        };
        Program {
            name: program.name.clone(),
            command: program.command.clone(),
            background: program.background,
            stopped: program.stopped,
            started_ns: program.started_ns,
            ended_ns: program.ended_ns,
            figures: program.figures.iter().map(figure).collect(),
            text: program.text.clone(),
        }
    }
}

impl Run {
    fn of(case: &Case, run: &RunResult) -> Run {
        let (simulated_ns, device_work_ns) = (run.duration_ns, run.device_busy_ns);
        let device_time = |job: &fairlift_sim::result::JobResult| DeviceTime {
            jobname: job.name.clone(),
            groupid: job.group_id,
            processes: job.processes,
            device_time_ns: job.device_time_ns,
            share: run.device_share(job),
        };
        let block = &run.block;
        Run {
            scheduler: run.scheduler.clone(),
            device: run.device.clone(),
            kernel: run.kernel.clone(),
            seed: run.seed,
            case: case.name.clone(),
            finished: run.outcome == Outcome::Finished,
            simulated_ns,
            bandwidth_bytes_per_s: run.bandwidth(),
            device_busy_share: run.busy(),
            jain_device_time: run.jain_device_time(),
            job_device_time: run.jobs().iter().map(device_time).collect(),
            fio: fio_json::report(case, run),
            programs: run.programs.iter().map(Program::of).collect(),
            groups: run.groups.iter().map(Group::of).collect(),
            explain: run.explanation.clone(),
            block: Block {
                bios: block.bios,
                merges: block.merged,
                write_merges: block.merged_writes,
                read_requests: block.requests[0],
                write_requests: block.requests[1],
                discard_requests: block.requests[2],
                flush_requests: block.requests[3],
                read_sectors: block.sectors[0],
                write_sectors: block.sectors[1],
                read_ticks_ns: block.ticks_ns[0],
                write_ticks_ns: block.ticks_ns[1],
                busy_ns: block.busy_ns,
                device_work_ns,
                mean_queue_length: block.queue_ns as f64 / simulated_ns.max(1) as f64,
            },
        }
    }
}
