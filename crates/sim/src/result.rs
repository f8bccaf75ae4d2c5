//! What a run found out.

use fairlift_core::elevator::Finding;

use crate::anatomy::Anatomy;
use crate::block::BlockStats;
use crate::engine::Outcome;
use crate::group::GroupResult;
use crate::program::Figure;
use crate::samples::{Sample, Samples};
use crate::stats::{Latency, Moments, jain};

/// One direction of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transfer {
    /// I/Os completed.
    pub ios: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Submission latency: from the start of the call to the hand-over. Only asynchronous engines have it.
    pub slat: Latency,
    /// Completion latency: from the hand-over to the end (of a synchronous call: the whole call).
    pub clat: Latency,
    /// Both together.
    pub lat: Moments,
    /// What moved as time went on since the job's start.
    pub samples: Samples,
}

impl Transfer {
    /// Count one I/O of `bytes` that ended `since_start_ns` into the job.
    pub(crate) fn add(&mut self, bytes: u64, since_start_ns: u64) {
        self.ios += 1;
        self.bytes += bytes;
        self.samples.add(since_start_ns, Sample { ios: 1, bytes });
    }

    fn merge(&mut self, other: &Transfer) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        self.slat.merge(&other.slat);
        self.clat.merge(&other.clat);
        self.lat.merge(&other.lat);
        self.samples.merge(&other.samples);
    }
}

/// One process of a job, or several merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobResult {
    /// The job's name.
    pub name: String,
    /// fio's reporting group.
    pub group_id: u32,
    /// Merge this group's processes in reports.
    pub group_reporting: bool,
    /// Processes in this result.
    pub processes: u32,
    /// Reads, writes, discards.
    pub transfers: [Transfer; 3],
    /// fsync and fdatasync calls.
    pub sync: Latency,
    /// When counting began, nanoseconds of simulated time.
    pub started_ns: u64,
    /// When the job ended.
    pub ended_ns: u64,
    /// Device time charged to its io contexts, nanoseconds, over the whole run.
    pub device_time_ns: u64,
    /// Processor time, that for the scheduler included, nanoseconds.
    pub cpu_ns: u64,
    /// From its first I/O to its end, nanoseconds: what is not counted, too.
    pub lifetime_ns: u64,
    /// Queue depth wanted.
    pub depth: u32,
    /// I/Os submitted, by how many were in flight with them: 1, 2-3, 4-7, 8-15, 16-31, 32-63, more (fio's `iodepth_level`).
    pub depth_levels: [u64; 7],
    /// Options as written.
    pub options: Vec<(String, String)>,
}

impl JobResult {
    /// Count an I/O submitted as number `depth` in flight.
    pub(crate) fn count_depth(&mut self, depth: u32) {
        let level = (depth.max(1).ilog2() as usize).min(self.depth_levels.len() - 1);
        self.depth_levels[level] += 1;
    }

    /// Time counted, nanoseconds; at least 1.
    pub fn runtime_ns(&self) -> u64 {
        (self.ended_ns - self.started_ns).max(1)
    }

    /// Bytes of all directions.
    pub fn bytes(&self) -> u64 {
        self.transfers.iter().map(|t| t.bytes).sum()
    }

    /// I/Os of all directions.
    pub fn ios(&self) -> u64 {
        self.transfers.iter().map(|t| t.ios).sum()
    }

    /// Bytes per second, all directions.
    pub fn bandwidth(&self) -> f64 {
        self.bytes() as f64 * 1e9 / self.runtime_ns() as f64
    }

    /// I/Os per second, all directions.
    pub fn iops(&self) -> f64 {
        self.ios() as f64 * 1e9 / self.runtime_ns() as f64
    }

    /// Completion latencies of all directions.
    pub fn clat(&self) -> Latency {
        let mut all = Latency::new();
        for transfer in &self.transfers {
            all.merge(&transfer.clat);
        }
        all
    }

    fn merge(&mut self, other: &JobResult) {
        self.processes += other.processes;
        for (mine, theirs) in self.transfers.iter_mut().zip(&other.transfers) {
            mine.merge(theirs);
        }
        self.sync.merge(&other.sync);
        self.started_ns = self.started_ns.min(other.started_ns);
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        self.device_time_ns += other.device_time_ns;
        self.cpu_ns += other.cpu_ns;
        self.lifetime_ns += other.lifetime_ns;
        for (mine, theirs) in self.depth_levels.iter_mut().zip(&other.depth_levels) {
            *mine += theirs;
        }
    }
}

/// What a program printed and measured.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramResult {
    /// What the scenario calls it.
    pub name: String,
    /// Its command line, as written.
    pub command: String,
    /// It ran in the background.
    pub background: bool,
    /// It had not ended when the run did.
    pub stopped: bool,
    /// When it started, nanoseconds of simulated time.
    pub started_ns: u64,
    /// When it ended or was stopped.
    pub ended_ns: u64,
    /// What it printed, in the original's format.
    pub text: String,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// The system call that ended it before its time.
    pub error: Option<String>,
}

impl ProgramResult {
    /// A figure by its name.
    pub fn metric(&self, name: &str) -> Option<f64> {
        self.figures.iter().find(|f| f.metric.name == name).map(|f| f.value)
    }
}

/// A whole run: one scheduler, one device, one seed.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Scheduler as it was asked for, with its settings.
    pub scheduler: String,
    /// Device.
    pub device: String,
    /// Kernel version.
    pub kernel: String,
    /// Seed.
    pub seed: u64,
    /// Each process, in order of start.
    pub processes: Vec<JobResult>,
    /// Each program, in order of start.
    pub programs: Vec<ProgramResult>,
    /// Each group, the root first, parents before their children; empty when there is none but the root.
    pub groups: Vec<GroupResult>,
    /// Block layer counters.
    pub block: BlockStats,
    /// Simulated time, nanoseconds.
    pub duration_ns: u64,
    /// Time the device worked, background work included, nanoseconds.
    pub device_busy_ns: u64,
    /// Time in which a command waited in the device for a rate that was set, nanoseconds.
    pub device_limited_ns: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What the elevator had found out about the device by the end.
    pub found: Vec<Finding>,
    /// Why things took as long as they did, if that was asked for.
    pub explanation: Option<Anatomy>,
}

impl RunResult {
    /// A program's result by its name.
    pub fn program(&self, name: &str) -> Option<&ProgramResult> {
        self.programs.iter().find(|p| p.name == name)
    }

    /// Results as people want to see them: processes of one job (or of one reporting group, if the jobs say so) together.
    pub fn jobs(&self) -> Vec<JobResult> {
        let mut jobs: Vec<JobResult> = Vec::new();
        for process in &self.processes {
            match jobs.iter_mut().find(|j| same_row(j, process)) {
                Some(job) => job.merge(process),
                None => jobs.push(process.clone()),
            }
        }
        jobs
    }

    /// The processes as fio's JSON lists them: merged only where `group_reporting` asks for it.
    pub fn reported(&self) -> Vec<JobResult> {
        let mut jobs: Vec<JobResult> = Vec::new();
        for process in &self.processes {
            let group = jobs.iter_mut().find(|j| process.group_reporting && j.group_id == process.group_id);
            match group {
                Some(job) => job.merge(process),
                None => jobs.push(process.clone()),
            }
        }
        jobs
    }

    /// Bytes per second of all jobs over the time any of them was counted.
    pub fn bandwidth(&self) -> f64 {
        let bytes: u64 = self.processes.iter().map(JobResult::bytes).sum();
        bytes as f64 * 1e9 / self.counted_ns() as f64
    }

    /// The time in which any job was counted, nanoseconds; at least 1.
    fn counted_ns(&self) -> u64 {
        let start = self.processes.iter().map(|p| p.started_ns).min().unwrap_or(0);
        let end = self.processes.iter().map(|p| p.ended_ns).max().unwrap_or(0);
        (end - start).max(1)
    }

    /// I/Os per second of all jobs over the time any of them was counted.
    pub fn iops(&self) -> f64 {
        let ios: u64 = self.processes.iter().map(JobResult::ios).sum();
        ios as f64 * 1e9 / self.counted_ns() as f64
    }

    /// Share of the run with a request in the device, 0 to 1.
    pub fn busy(&self) -> f64 {
        self.block.busy_ns as f64 / self.duration_ns.max(1) as f64
    }

    /// Jain's index over the processes' device time: 1 = all got the same.
    pub fn jain_device_time(&self) -> f64 {
        let shares: Vec<f64> = self.processes.iter().map(|p| p.device_time_ns as f64).collect();
        jain(&shares)
    }

    /// The share of device time of `job` among all jobs, 0 to 1.
    pub fn device_share(&self, job: &JobResult) -> f64 {
        let all: u64 = self.processes.iter().map(|p| p.device_time_ns).sum();
        if all == 0 { 0.0 } else { job.device_time_ns as f64 / all as f64 }
    }
}

fn same_row(a: &JobResult, b: &JobResult) -> bool {
    a.name == b.name && a.group_id == b.group_id
}
