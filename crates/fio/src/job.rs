//! What a job does to the block layer, fully typed. Units stand last in a name.

use crate::diagnostic::Place;
use crate::table::EngineFamily;
use crate::values::Amount;

/// Direction of an I/O. The numbers index every `[T; 3]` of this crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Direction {
    /// Read.
    Read = 0,
    /// Write.
    Write = 1,
    /// Discard.
    Trim = 2,
}

impl Direction {
    /// All three, in index order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Trim];

    /// Index into a `[T; 3]`.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// `rw=`, without its postfix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Random offsets.
    pub random: bool,
    /// Reads happen.
    pub reads: bool,
    /// Writes happen.
    pub writes: bool,
    /// Trims happen. With `writes`: each block is trimmed, then written.
    pub trims: bool,
}

impl Access {
    /// The word for `rw=` that means this, as fio prints it.
    pub fn name(self) -> &'static str {
        match (self.random, self.reads, self.writes, self.trims) {
            (false, true, true, _) => "rw",
            (true, true, true, _) => "randrw",
            (false, _, true, true) => "trimwrite",
            (true, _, true, true) => "randtrimwrite",
            (false, _, _, true) => "trim",
            (true, _, _, true) => "randtrim",
            (false, _, true, _) => "write",
            (true, _, true, _) => "randwrite",
            (false, ..) => "read",
            (true, ..) => "randread",
        }
    }

    /// Reads and writes mixed by a coin.
    pub fn mixed(self) -> bool {
        self.reads && self.writes
    }

    /// Trims followed by writes of the same blocks.
    pub fn trim_then_write(self) -> bool {
        self.trims && self.writes
    }
}

/// `rw_sequencer=`: what happens between two random offsets of `randread:8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sequencer {
    /// Continue sequentially.
    Sequential,
    /// Repeat the same offset.
    Identical,
}

/// How long an I/O is, per direction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BlockSizes {
    /// Smallest size, bytes.
    pub min_bytes: u64,
    /// Largest size, bytes.
    pub max_bytes: u64,
    /// `bssplit`: bytes and percent, by rising percentage; empty: `bs` or `bsrange`.
    pub split: Vec<(u64, u32)>,
    /// `blockalign`: random offsets are multiples of this, bytes.
    pub align_bytes: u64,
}

/// One zone of `random_distribution=zoned`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ZoneShare {
    /// Percent of the accesses.
    pub access_percent: u32,
    /// Percent of the file (`zoned`) or bytes (`zoned_abs`).
    pub extent: Amount,
}

/// `random_distribution=`.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Every block equally often.
    Uniform,
    /// Zipf with exponent theta; hot blocks are scattered by a hash.
    Zipf {
        /// Exponent, not 1.
        theta: f64,
        /// Where the hottest block lies, 0…1 of the file; `None`: anywhere.
        center: Option<f64>,
    },
    /// Pareto, `0 < h < 1`: a share h of the accesses falls on all but a share h of the blocks.
    Pareto {
        /// Power.
        h: f64,
        /// As for Zipf.
        center: Option<f64>,
    },
    /// Normal with a deviation in percent of the file.
    Normal {
        /// Deviation, percent.
        deviation_percent: f64,
        /// As for Zipf.
        center: Option<f64>,
    },
    /// Zones, per direction; an empty list means uniform.
    Zoned([Vec<ZoneShare>; 3]),
}

/// `random_generator=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Generator {
    /// taus88; replaced by taus258 above 2³² blocks unless asked for by name.
    Tausworthe {
        /// Written in the job, so never replaced.
        explicit: bool,
    },
    /// taus258.
    Tausworthe64,
    /// Linear feedback shift register: every block once without a map.
    Lfsr,
}

/// How the random streams are seeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seeding {
    /// `randseed=`; `None`: fio's default 0x89.
    pub randseed: Option<u64>,
    /// `randrepeat=`, as written (fio turns it off for clones when `randseed` is set; see `offsets`).
    pub randrepeat: bool,
    /// `allrandrepeat=`.
    pub allrandrepeat: bool,
}

/// `file_service_type=` with its postfix: how many I/Os before the next file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileService {
    /// In turn.
    RoundRobin,
    /// Finish one before the next.
    Sequential,
    /// At random.
    Random,
}

/// Pauses between I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ThinkTime {
    /// Length of a pause, microseconds; 0: none.
    pub pause_us: u64,
    /// How much of the pause burns CPU, microseconds, at most `pause_us`.
    pub spin_us: u64,
    /// I/Os between two pauses.
    pub blocks: u64,
    /// Count issued instead of completed I/Os.
    pub count_issues: bool,
    /// `thinktime_iotime`: a pause after this much busy time, microseconds; 0: off.
    pub iotime_us: u64,
}

/// `zonemode=strided`: of every `zone_bytes + skip_bytes` only the first `zone_bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strided {
    /// `zonesize=`, at least 1.
    pub zone_bytes: u64,
    /// `zoneskip=`.
    pub skip_bytes: u64,
}

/// `rate_process=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateProcess {
    /// Even gaps.
    Linear,
    /// Exponential gaps.
    Poisson,
}

/// Rate limits, per direction. 0: none. Bytes and IOPS exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// `rate`, bytes/s.
    pub bytes_per_s: [u64; 3],
    /// `rate_min`, bytes/s.
    pub min_bytes_per_s: [u64; 3],
    /// `rate_iops`.
    pub iops: [u64; 3],
    /// `rate_iops_min`.
    pub min_iops: [u64; 3],
    /// `rate_process`.
    pub process: RateProcess,
    /// `rate_cycle`, milliseconds: window for the minimum rates.
    pub cycle_ms: u64,
    /// `rate_ignore_thinktime`.
    pub ignore_thinktime: bool,
}

/// `prioclass=` and `prio=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Priority {
    /// 0 none, 1 RT, 2 BE, 3 IDLE.
    pub class: u8,
    /// 0 (highest) to 7.
    pub level: u8,
}

/// Per-I/O priorities of the asynchronous engines.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct CommandPriority {
    /// `cmdprio_percentage`, read and write.
    pub percent: [u32; 2],
    /// `cmdprio_class`, read and write; fio's default is 1 (RT).
    pub class: [u8; 2],
    /// `cmdprio`, read and write.
    pub level: [u8; 2],
    /// `cmdprio_bssplit`, read and write: bytes, percent, and a priority of its own if given.
    pub split: [Vec<(u64, u32, Option<Priority>)>; 2],
}

impl CommandPriority {
    /// No I/O gets a priority of its own.
    pub fn is_off(&self) -> bool {
        self.percent == [0, 0] && self.split.iter().all(Vec::is_empty)
    }
}

/// Latency goal (parsed, not simulated: a warning says so).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
    /// Goal, microseconds.
    pub target_us: u64,
    /// Window, microseconds.
    pub window_us: u64,
    /// Share of I/Os that must meet it, percent.
    pub percentile: f64,
    /// Keep adjusting.
    pub run: bool,
}

/// `fallocate=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fallocate {
    /// No preallocation.
    None,
    /// fio's default on Linux: fallocate(2), nothing if that fails.
    Native,
    /// posix_fallocate(3).
    Posix,
    /// fallocate(2) keeping the size.
    Keep,
    /// ftruncate(2).
    Truncate,
}

/// `sync=`: O_SYNC or O_DSYNC at open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpenSync {
    /// Neither.
    None,
    /// O_SYNC.
    Sync,
    /// O_DSYNC.
    DataSync,
}

/// Whose end `exitall` ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitWhat {
    /// No job: `exitall` not set.
    None,
    /// The jobs of the same group.
    Group,
    /// All running jobs; the next stonewalled ones still start.
    Stonewall,
    /// Everything.
    All,
}

/// Which files a job touches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Files {
    /// `filename=`, split at `:`; empty: a file of its own for each clone.
    pub names: Vec<String>,
    /// `directory=`, split at `:`; clones take them in turn.
    pub directories: Vec<String>,
    /// `filename_format=`; empty: `$jobname.$jobnum.$filenum`.
    pub format: String,
    /// Number of files per clone.
    pub count: u32,
    /// Order of service.
    pub service: FileService,
    /// I/Os to one file before the next.
    pub service_ios: u32,
    /// `filesize=`, bytes per file; 0: from `size`.
    pub file_bytes: u64,
}

/// How much is done, and where in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// `size=`; `None`: all of the file or device.
    pub size: Option<Amount>,
    /// `io_size=`; `None`: same as `size`.
    pub io_size: Option<Amount>,
    /// `offset=`.
    pub offset: Amount,
    /// `offset_increment=`, added once per clone number.
    pub offset_increment: Amount,
    /// `offset_align=`, bytes, for percentages; 0: the smallest block size.
    pub offset_align_bytes: u64,
    /// `number_ios=`; 0: no limit.
    pub number_ios: u64,
    /// `loops=`, at least 1.
    pub loops: u64,
    /// `fill_device` without a size: the job writes until the device is full.
    pub fills_device: bool,
}

/// When the job runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// `startdelay=`, microseconds, as a range (both ends equal for a plain value).
    pub start_delay_us: (u64, u64),
    /// `runtime=`, microseconds; 0: until the amount is done.
    pub runtime_us: u64,
    /// `time_based`: start over until the runtime is up.
    pub time_based: bool,
    /// `ramp_time=`, microseconds, not counted in statistics and added to the runtime.
    pub ramp_time_us: u64,
    /// Wait for all earlier jobs. True also for the first job of every further file.
    pub stonewall: bool,
    /// Start a reporting group.
    pub new_group: bool,
    /// `wait_for=`: name of a job to wait for.
    pub wait_for: Option<String>,
    /// Reporting group, from 0.
    pub group_id: u32,
    /// `group_reporting`.
    pub group_reporting: bool,
    /// `exitall` and `exit_what`.
    pub exit_what: ExitWhat,
}

/// How I/O is submitted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Submission {
    /// `ioengine=`, as written.
    pub engine: String,
    /// What that means.
    pub family: EngineFamily,
    /// I/Os in flight at most: `iodepth`, or 1 for the sync family.
    pub depth: u32,
    /// `iodepth=` as written.
    pub iodepth: u32,
    /// `iodepth_batch`: I/Os submitted in one go.
    pub batch: u32,
    /// `iodepth_batch_complete_min`: completions waited for (0: poll).
    pub batch_complete_min: u32,
    /// `iodepth_batch_complete_max`.
    pub batch_complete_max: u32,
    /// `iodepth_low`: once full, no new I/O until the depth has fallen to this.
    pub low: u32,
    /// O_DIRECT.
    pub direct: bool,
    /// `io_submit_mode=offload`: submitted by helper threads, so a rate is kept as an open loop.
    pub offload: bool,
    /// `serialize_overlap`.
    pub serialize_overlap: bool,
}

/// When written data is forced to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Durability {
    /// `fsync=N`: fsync after every N writes; 0: never.
    pub fsync_writes: u64,
    /// `fdatasync=N`: fdatasync after every N writes; 0: never.
    pub fdatasync_writes: u64,
    /// fsync at the end of the job.
    pub end_fsync: bool,
    /// fsync when a file is closed.
    pub fsync_on_close: bool,
    /// O_SYNC, O_DSYNC.
    pub open_sync: OpenSync,
}

/// What happens to files and cache around the I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Preparation {
    /// `overwrite`: lay the file out before writing to it (always true for reading jobs).
    pub overwrite: bool,
    /// `fallocate`.
    pub fallocate: Fallocate,
    /// `invalidate`: drop the file's pages from the cache first.
    pub invalidate: bool,
    /// `fadvise_hint`: tell the kernel the pattern (`random` switches readahead off).
    pub fadvise: bool,
    /// `create_on_open`.
    pub create_on_open: bool,
    /// `create_fsync`.
    pub create_fsync: bool,
    /// `create_serialize`.
    pub create_serialize: bool,
    /// `create_only`: no I/O after laying the files out.
    pub create_only: bool,
    /// `unlink`: remove the files afterwards.
    pub unlink: bool,
}

/// One job section of a file: `numjobs` processes doing the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name for reports: `name=`, or the section's.
    pub name: String,
    /// Name of the section, from which file names are made.
    pub section: String,
    /// Where the section starts.
    pub place: Place,
    /// `numjobs=`.
    pub numjobs: u32,
    /// fio's number of the first process, from 1: seeds depend on it. Refused jobs are counted.
    pub first_thread: u32,
    /// `rw=`.
    pub access: Access,
    /// `randread:N`: a new random offset every N I/Os (1: always).
    pub ios_per_random_offset: u32,
    /// `rw_sequencer=`.
    pub sequencer: Sequencer,
    /// `write:N`: bytes skipped after each sequential I/O; negative: backwards.
    pub stride_bytes: i64,
    /// `zonemode=strided`.
    pub strided: Option<Strided>,
    /// `rwmixread=`, percent.
    pub read_percent: u32,
    /// Sizes per direction.
    pub blocks: [BlockSizes; 3],
    /// `bs_is_seq_rand`: sizes of "read" for sequential, of "write" for random I/O.
    pub bs_is_seq_rand: bool,
    /// `bs_unaligned`: sizes are not rounded to multiples of the smallest.
    pub bs_unaligned: bool,
    /// `percentage_random=`, per direction.
    pub random_percent: [u32; 3],
    /// `norandommap`, or implied by the distribution or `blockalign`.
    pub norandommap: bool,
    /// `random_distribution=`.
    pub distribution: Distribution,
    /// `random_generator=`.
    pub generator: Generator,
    /// Seeds.
    pub seeding: Seeding,
    /// `verify=` is on: reads and writes draw sizes from equal streams.
    pub verify: bool,
    /// Files.
    pub files: Files,
    /// Amounts.
    pub extent: Extent,
    /// Times and order.
    pub schedule: Schedule,
    /// Engine and depth.
    pub submission: Submission,
    /// fsync and friends.
    pub durability: Durability,
    /// Layout of files.
    pub preparation: Preparation,
    /// Pauses.
    pub think: ThinkTime,
    /// Rates.
    pub rate: Rate,
    /// `prio`, `prioclass`; `None`: not set.
    pub priority: Option<Priority>,
    /// `cmdprio_*`.
    pub command_priority: CommandPriority,
    /// `latency_target`.
    pub latency_target: Option<LatencyTarget>,
    /// `cgroup=`.
    pub cgroup: Option<String>,
    /// `cgroup_weight=`.
    pub cgroup_weight: Option<u32>,
    /// `ioscheduler=`.
    pub ioscheduler: Option<String>,
    /// The section's own options, names and values as written: fio's JSON prints them as `job options`.
    pub options: Vec<(String, String)>,
}

impl Job {
    /// The job works with names, sizes or free blocks of files: without a file system it has no meaning.
    pub fn needs_filesystem(&self) -> bool {
        let fills_a_file = self.extent.fills_device && !self.is_on_device();
        matches!(self.submission.family, EngineFamily::Call(_)) || fills_a_file
    }

    /// All of its files are whole devices (`/dev/…`).
    pub fn is_on_device(&self) -> bool {
        let names = &self.files.names;
        !names.is_empty() && names.iter().all(|name| crate::build::is_device(name))
    }

    /// Smallest block size over all directions, bytes: the grain of the random map.
    pub fn min_block_bytes(&self) -> u64 {
        self.blocks.iter().map(|sizes| sizes.min_bytes).min().unwrap_or(1)
    }
}
