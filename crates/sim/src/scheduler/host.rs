//! Settings that are not the elevator's but the host's around it, and go with every scheduler: those of the request queue that
//! are files in `/sys/block/DISK/queue`, processor time, what the queue knows of groups, and how groups take turns ([`fairlift_core::group::TUNABLES`]).

use fairlift_core::group::{self, Groups};
use fairlift_core::queue::{Admission, NoMerges, QueueConfig};
use fairlift_core::tunable::{SetError, Tunable, Unit};

use crate::device::Limits;
use crate::group::Tracking;
use crate::kernel::Rules;

/// `queue/nomerges`; what the levels mean: [`NoMerges`].
static NOMERGES: Tunable = Tunable::new(
    "nomerges",
    Unit::Number,
    (0, 2),
    0,
    "do not look for merges: 1 beyond the last request, 2 at all",
);
static GROUPS: Tunable = Tunable::new(
    "groups",
    Unit::Switch,
    (0, 1),
    1,
    "1: the queue knows the groups; 0: it does not, and all I/O is the root's",
);
static TRACKING: Tunable = Tunable::new(
    "tracking",
    Unit::Choice(Tracking::WORDS),
    (0, 2),
    1,
    "the group of a buffered write: its submitter's, that of the task that made its first page dirty, or its file's; if it is not set, the file's since 4.2 (6.12), with a flusher and dirty limits for each group",
);

static FAIR_WRITEBACK: Tunable = Tunable::new(
    "fair_writeback",
    Unit::Switch,
    (0, 1),
    0,
    "1: writeback follows the groups' weights: tasks that dirty pages pause by group, and the flusher serves groups",
);

/// `queue/nr_requests`.
static NR_REQUESTS: Tunable = Tunable::new(
    "nr_requests",
    Unit::Requests,
    (0, 65_536),
    0,
    "request slots (2.6: of sync and async I/O each) or tags; 0: as many as the kernel gives",
);
/// `queue/max_sectors_kb`.
static MAX_SECTORS: Tunable = Tunable::new(
    "max_sectors_kb",
    Unit::Kibibytes,
    (0, 1 << 20),
    0,
    "largest request; 0: what kernel and device allow",
);
/// `queue/read_ahead_kb`.
static READ_AHEAD: Tunable = Tunable::new(
    "read_ahead_kb",
    Unit::Kibibytes,
    (0, 65_536),
    128,
    "largest readahead window; 0: no readahead",
);
/// `queue/wbt_lat_usec`.
static WBT_LATENCY: Tunable = Tunable::new(
    "wbt_lat_usec",
    Unit::Microseconds,
    (0, 10_000_000),
    0,
    "writeback throttling: the longest a read is to take; 0: off; if it is not set, 2000 without seeks and 75000 with, but off under bfq and this project's (6.12)",
);
static CPU_PER_IO: Tunable = Tunable::new(
    "cpu_per_io_ns",
    Unit::Nanoseconds,
    (0, 1_000_000_000),
    0,
    "processor time of one I/O system call; 0: the kernel's (fairlift kernels)",
);
static SCHEDULER_CPU: Tunable = Tunable::new(
    "scheduler_cpu_ns",
    Unit::Nanoseconds,
    (0, 1_000_000_000),
    0,
    "processor time the scheduler takes for each bio; if it is not set, what was measured of it",
);

/// The settings of the lab's own, in the order to show them; the core's of groups follow.
static OWN: [&Tunable; 10] = [
    &NOMERGES,
    &NR_REQUESTS,
    &MAX_SECTORS,
    &READ_AHEAD,
    &WBT_LATENCY,
    &CPU_PER_IO,
    &SCHEDULER_CPU,
    &GROUPS,
    &TRACKING,
    &FAIR_WRITEBACK,
];

/// Tags of a queue with a scheduler, at most (`MAX_SCHED_RQ`, Linux 6.12 `block/blk.h`).
const SCHEDULER_TAGS_MAX: u64 = 2048;
/// Least `nr_requests` (`BLKDEV_MIN_RQ`) and largest request, sectors, that the kernel lets one write: a page.
const REQUESTS_MIN: u64 = 4;
const PAGE_KIB: u64 = 4;

/// All of them.
pub fn tunables() -> impl Iterator<Item = &'static Tunable> + Clone {
    OWN.into_iter().chain(group::TUNABLES)
}

/// Those that were set, in the order of [`tunables`], as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSettings(Vec<(&'static str, u64, String)>);

impl HostSettings {
    /// As they come.
    pub const fn new() -> HostSettings {
        HostSettings(Vec::new())
    }

    /// Set one.
    ///
    /// # Errors
    /// A value it does not take; the old one stays.
    pub fn set(&mut self, tunable: &'static Tunable, value: &str) -> Result<(), SetError> {
        let stored = tunable.parse(value)?;
        self.0.retain(|(name, ..)| *name != tunable.name);
        self.0.push((tunable.name, stored, value.to_owned()));
        self.0.sort_by_key(|(name, ..)| tunables().position(|t| t.name == *name));
        Ok(())
    }

    fn stored(&self, tunable: &Tunable) -> Option<u64> {
        self.0.iter().find(|(name, ..)| *name == tunable.name).map(|(_, stored, _)| *stored)
    }

    /// How much to look for merges; `rules` may not know level 2.
    pub fn nomerges(&self, rules: &Rules) -> NoMerges {
        match NoMerges::from_sysfs(self.stored(&NOMERGES).unwrap_or(NOMERGES.default)) {
            NoMerges::All if !rules.nomerges_all => NoMerges::Simple,
            level => level,
        }
    }

    /// The kernel's rules with what is set of them here.
    pub fn rules(&self, rules: &Rules) -> Rules {
        let mut rules = rules.clone();
        if let Some(kib) = self.stored(&READ_AHEAD) {
            rules.read_ahead_kib = kib;
        }
        if let Some(ns) = self.stored(&CPU_PER_IO).filter(|ns| *ns > 0) {
            rules.cpu_per_io_ns = ns;
        }
        // Pages that belong to tasks, or to none, are what there was before.
        rules.writeback.by_cgroup &=
            self.tracking(rules.writeback.by_cgroup) == Tracking::Inode && !self.fair_writeback();
        rules
    }

    /// Processor time of the scheduler for each bio, nanoseconds, if it is set.
    pub fn scheduler_cpu_ns(&self) -> Option<u64> {
        self.stored(&SCHEDULER_CPU)
    }

    /// `wbt_lat_usec` in nanoseconds, if it is set.
    pub fn wbt_latency_ns(&self) -> Option<u64> {
        self.stored(&WBT_LATENCY)
    }

    /// Put `nr_requests`, `max_sectors_kb` and `nomerges` into `queue`, which is the kernel's for `device`. `direct`: there is no
    /// scheduler, hence only the device's own tags.
    ///
    /// # Errors
    /// What the kernel would refuse, as a sentence.
    pub fn configure(
        &self,
        queue: &mut QueueConfig,
        rules: &Rules,
        device: &Limits,
        direct: bool,
    ) -> Result<(), String> {
        queue.nomerges = self.nomerges(rules);
        if !rules.blk_mq && self.wbt_latency_ns().is_some() {
            let version = rules.version;
            return Err(format!("wbt_lat_usec: Linux {version} has no writeback throttling; 6.12 has it"));
        }
        let tags = u64::from(device.queue_depth.max(1));
        if direct {
            queue.admission = Admission::Tags { nr_requests: device.queue_depth.max(1) };
        }
        if let Some(wanted) = self.stored(&NR_REQUESTS).filter(|wanted| *wanted > 0) {
            let (most, why) = match (direct, rules.blk_mq) {
                (true, _) => (tags, "without a scheduler that is the device's queue depth"),
                (false, true) => (SCHEDULER_TAGS_MAX, "the kernel's limit with a scheduler"),
                (false, false) => (NR_REQUESTS.max, "the lab's limit"),
            };
            if wanted > most {
                return Err(format!("nr_requests={wanted} is too many: at most {most}, {why}"));
            }
            let nr_requests = wanted.max(REQUESTS_MIN.min(most)) as u32;
            queue.admission = match queue.admission {
                Admission::Pools { .. } => Admission::Pools { nr_requests },
                Admission::Tags { .. } => Admission::Tags { nr_requests },
            };
        }
        if let Some(wanted) = self.stored(&MAX_SECTORS).filter(|wanted| *wanted > 0) {
            let most = u64::from(device.max_sectors) / 2;
            if !(PAGE_KIB..=most).contains(&wanted) {
                return Err(format!(
                    "max_sectors_kb={wanted} does not go: {PAGE_KIB} (a page) to {most} (what the device takes)"
                ));
            }
            queue.limits.max_sectors = wanted as u32 * 2;
        }
        Ok(())
    }

    /// The same settings for a scheduler that knows no groups.
    #[must_use]
    pub fn without_groups(&self) -> HostSettings {
        let mut settings = self.clone();
        let set = settings.set(&GROUPS, "0");
        debug_assert!(set.is_ok(), "0 is a value of a switch");
        settings
    }

    /// Is the request queue told of the groups there are?
    pub fn groups(&self) -> bool {
        self.stored(&GROUPS).unwrap_or(GROUPS.default) == 1
    }

    /// Whose a buffered write is; `by_cgroup`: the kernel has writeback by cgroup.
    pub fn tracking(&self, by_cgroup: bool) -> Tracking {
        match self.stored(&TRACKING) {
            None if by_cgroup => Tracking::Inode,
            stored => Tracking::from_stored(stored.unwrap_or(TRACKING.default)),
        }
    }

    /// Does writeback keep to the groups' weights?
    pub fn fair_writeback(&self) -> bool {
        self.stored(&FAIR_WRITEBACK) == Some(1)
    }

    /// Hand the core those that are its own.
    pub fn apply(&self, groups: &mut Groups) {
        for (name, _, text) in &self.0 {
            if group::TUNABLES.iter().any(|t| t.name == *name) {
                // Checked when it was set.
                let _ = groups.set(name, text);
            }
        }
    }

    /// Names and values, as they were written.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, _, text)| (*name, text.as_str()))
    }
}
