//! When a fio job may issue its next I/O: think time and rates, by the rules of fio 3.33 (`backend.c`, `io_u.c`).

use fairlift_fio::offsets::{Rng, Seeds, poisson_gap_us};
use fairlift_fio::{Direction, Job, RateProcess};

/// May the next I/O go out?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// Yes; in this direction, if the rates leave only one.
    Go(Option<Direction>),
    /// Not before this time (nanoseconds), then in this direction.
    WaitUntil(u64, Option<Direction>),
}

/// Think time and rate schedule of one process.
#[derive(Debug)]
pub(super) struct Pace {
    think_ns: u64,
    think_blocks: u64,
    count_issues: bool,
    iotime_ns: u64,
    blocks: u64,
    busy_since_ns: u64,
    /// Do pauses push the schedule of the rates back? Otherwise the job catches up.
    forgive_pauses: bool,
    mixed: bool,
    /// The direction of a job that has only one.
    single: Direction,
    /// By direction; `None`: no limit.
    rates: [Option<Schedule>; 3],
}

/// The schedule of one direction. It does not forget: a job that fell behind catches up.
#[derive(Debug)]
struct Schedule {
    bytes_per_s: u64,
    /// With `rate_process=poisson`: the source of gaps, and I/Os per second.
    poisson: Option<(Rng, u64)>,
    /// When the next I/O is due, in nanoseconds and a fraction of 1/2^32: 2^96 ns are enough, and nothing is lost to rounding.
    due: u128,
}

impl Pace {
    pub(super) fn new(job: &Job, seeds: &Seeds) -> Pace {
        let mut gaps = seeds.poisson().map(Some);
        let mut schedule = |direction: Direction| {
            let d = direction.index();
            let min_block = job.blocks[d].min_bytes.max(1);
            // fio turns I/Os per second into bytes per second by the smallest block.
            let bytes_per_s = match (job.rate.bytes_per_s[d], job.rate.iops[d]) {
                (0, 0) => return None,
                (0, iops) => iops.saturating_mul(min_block),
                (bytes, _) => bytes,
            };
            let poisson = gaps[d].take().filter(|_| job.rate.process == RateProcess::Poisson);
            Some(Schedule { bytes_per_s, poisson: poisson.map(|rng| (rng, bytes_per_s / min_block)), due: 0 })
        };
        Pace {
            think_ns: job.think.pause_us * 1000,
            think_blocks: job.think.blocks.max(1),
            count_issues: job.think.count_issues,
            iotime_ns: job.think.iotime_us * 1000,
            blocks: 0,
            busy_since_ns: 0,
            forgive_pauses: job.rate.ignore_thinktime,
            mixed: job.access.mixed(),
            single: match (job.access.reads, job.access.writes) {
                (true, _) => Direction::Read,
                (false, true) => Direction::Write,
                (false, false) => Direction::Trim,
            },
            rates: Direction::ALL.map(&mut schedule),
        }
    }

    pub(super) fn start(&mut self, now: u64) {
        self.busy_since_ns = now;
        for schedule in self.rates.iter_mut().flatten() {
            schedule.due = u128::from(now) << 32;
        }
    }

    /// Is there a rate to keep to?
    pub(super) fn is_limited(&self) -> bool {
        self.rates.iter().any(Option::is_some)
    }

    /// May the next I/O be drawn? A mixed job goes on in whichever direction is due, and tosses its coin while both are.
    pub(super) fn turn(&self, now: u64) -> Turn {
        if !self.mixed {
            let due = self.due(self.single);
            return if due <= now { Turn::Go(None) } else { Turn::WaitUntil(due, None) };
        }
        let (read, write) = (self.due(Direction::Read), self.due(Direction::Write));
        match (read <= now, write <= now) {
            (true, true) => Turn::Go(None),
            (true, false) => Turn::Go(Some(Direction::Read)),
            (false, true) => Turn::Go(Some(Direction::Write)),
            (false, false) if read <= write => Turn::WaitUntil(read, Some(Direction::Read)),
            (false, false) => Turn::WaitUntil(write, Some(Direction::Write)),
        }
    }

    fn due(&self, direction: Direction) -> u64 {
        self.rates[direction.index()].as_ref().map_or(0, |schedule| (schedule.due >> 32) as u64)
    }

    /// An I/O went out: the next one of this direction is due later.
    pub(super) fn issued(&mut self, direction: Direction, bytes: u64) {
        if let Some(schedule) = &mut self.rates[direction.index()] {
            schedule.due += match &mut schedule.poisson {
                Some((rng, iops)) => u128::from(poisson_gap_us(rng, *iops)) * (1000 << 32),
                // At most 2^64 bytes a time 2^62: fits.
                None => (u128::from(bytes) * (1_000_000_000 << 32)) / u128::from(schedule.bytes_per_s),
            };
        }
        self.blocks += u64::from(self.count_issues);
    }

    pub(super) fn completed(&mut self) {
        self.blocks += u64::from(!self.count_issues);
    }

    /// Is it time to think?
    pub(super) fn thinks(&self, now: u64) -> bool {
        match (self.think_ns, self.iotime_ns) {
            (0, _) => false,
            (_, 0) => self.blocks >= self.think_blocks,
            (_, iotime) => now >= self.busy_since_ns + iotime,
        }
    }

    /// Begins a pause at `now`; its length, nanoseconds.
    pub(super) fn pause(&mut self, now: u64) -> u64 {
        self.blocks = 0;
        self.busy_since_ns = now + self.think_ns;
        if self.forgive_pauses {
            for schedule in self.rates.iter_mut().flatten() {
                schedule.due += u128::from(self.think_ns) << 32;
            }
        }
        self.think_ns
    }
}
