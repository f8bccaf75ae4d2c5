//! The I/O of one process, from the first to the last.

use crate::expand::Expansion;
use crate::job::{Direction, FileService, Generator, Job};
use crate::offsets::cursor::{Cursor, Draws};
use crate::offsets::layout::Layout;
use crate::offsets::lengths::length;
use crate::offsets::path_hash::path_hash;
use crate::offsets::rng::Rng;
use crate::offsets::seeds::Seeds;
use crate::table::EngineFamily;

/// What an I/O is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IoKind {
    /// A read, write or trim.
    Data(Direction),
    /// fsync of the file.
    Sync,
    /// fdatasync of the file.
    DataSync,
}

/// One I/O of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Io {
    /// What.
    pub kind: IoKind,
    /// Index into the process's files.
    pub file: usize,
    /// Where, bytes from the start of the file. 0 for syncs.
    pub offset_bytes: u64,
    /// How much, bytes. 0 for syncs.
    pub length_bytes: u64,
}

/// Generates the I/O of one process. `next()` allocates nothing.
///
/// The stream counts an I/O as issued when it is handed out. It knows no time: a caller ends a timed job by asking no more, and a
/// job with rates chooses the direction itself through [`Stream::next_in`].
#[derive(Clone, Debug)]
pub struct Stream {
    job: Job,
    seeds: Seeds,
    block_wide: bool,
    cursors: Vec<Cursor>,
    /// How many of them have more to give in this pass.
    cursors_left: usize,
    pass_bytes: u64,
    io_size_bytes: u64,
    draws: Streams,
    progress: Progress,
    service: Service,
    mix: Mix,
    /// Counts down to the next random offset of `randread:N`.
    until_random: u32,
    last_was_sync: bool,
}

/// The process's random streams.
#[derive(Clone, Debug)]
struct Streams {
    block: Rng,
    zone: Rng,
    mix: Rng,
    file: Rng,
    sizes: [Rng; 3],
    sequential_or_random: [Rng; 3],
}

impl Streams {
    fn new(seeds: &Seeds, block_wide: bool, next_file: Option<Rng>) -> Self {
        Self {
            block: seeds.block(block_wide),
            zone: seeds.zone(),
            mix: seeds.mix(),
            file: next_file.unwrap_or_else(|| seeds.file()),
            sizes: seeds.sizes(),
            sequential_or_random: seeds.sequential_or_random(),
        }
    }
}

/// How far the process is.
#[derive(Clone, Debug, Default)]
struct Progress {
    running: bool,
    finished: bool,
    passes_begun: u64,
    loops_left: u64,
    number_ios: u64,
    /// In this pass, all directions.
    pass_bytes: u64,
    /// In all passes.
    issued_bytes: [u64; 3],
    issued: [u64; 3],
}

/// Which file is served.
#[derive(Clone, Copy, Debug, Default)]
struct Service {
    current: Option<usize>,
    ios_left: u32,
    next: usize,
}

/// Which direction a mixed job is in.
#[derive(Clone, Copy, Debug)]
struct Mix {
    direction: Direction,
    /// The coin is thrown again when this many I/Os of `direction` are issued.
    until: u64,
}

impl Stream {
    /// The stream of process `process` of an expansion; `job` is the job it belongs to.
    ///
    /// `existing`: sizes of devices and of files already there, see [`Layout::new`]. `entropy`: stands in for the system's
    /// randomness under `randrepeat=0`.
    ///
    /// # Errors
    /// A sentence: see [`Layout::new`].
    pub fn new(
        job: &Job,
        expansion: &Expansion,
        process: usize,
        existing: &dyn Fn(&str) -> Option<u64>,
        entropy: u64,
    ) -> Result<Self, String> {
        let process = expansion.processes.get(process).ok_or("no such process")?;
        let paths: Vec<_> = process.files.iter().map(|&file| expansion.files[file].path.as_str()).collect();
        let layout = Layout::new(job, &paths, process.clone_number, existing)?;
        let clone = process.thread_number != job.first_thread;
        let seeds = Seeds::new(job, process.thread_number, clone, entropy);
        Self::from_parts(job.clone(), layout, seeds, process.thread_number)
    }

    fn from_parts(job: Job, layout: Layout, seeds: Seeds, thread_number: u32) -> Result<Self, String> {
        let min_block = job.min_block_bytes();
        // fio widens its generator for huge files, but only once the streams are seeded: from the second pass on.
        let huge = layout.files.iter().any(|file| file.part_bytes / min_block > u64::from(u32::MAX));
        let block_wide = huge && job.generator == Generator::Tausworthe { explicit: false };
        let cursor = |space: crate::offsets::FileSpace| {
            let by_path = path_hash(space.path.as_bytes()).wrapping_mul(thread_number);
            let skew_seed = if seeds.repeatable { by_path } else { seeds.block_seed() as u32 };
            Cursor::new(&job, space, skew_seed, seeds.block_seed())
                .map_err(|error| format!("job '{}': {error}", job.name))
        };
        let cursors = layout.files.into_iter().map(cursor).collect::<Result<Vec<_>, _>>()?;
        let progress = Progress {
            loops_left: job.extent.loops,
            number_ios: job.extent.number_ios,
            ..Progress::default()
        };
        Ok(Self {
            draws: Streams::new(&seeds, false, None),
            pass_bytes: layout.pass_bytes,
            io_size_bytes: layout.io_size_bytes,
            mix: Mix { direction: Direction::Read, until: 0 },
            service: Service::default(),
            until_random: 1,
            last_was_sync: false,
            cursors_left: cursors.len(),
            cursors,
            progress,
            block_wide,
            seeds,
            job,
        })
    }

    /// The next I/O. `None`: the job has done its amount.
    #[allow(clippy::should_implement_trait)]
    #[inline]
    pub fn next(&mut self) -> Option<Io> {
        self.next_in(None)
    }

    /// The next I/O, in a direction the caller chose (only for mixed jobs; fio does so when rates run ahead).
    pub fn next_in(&mut self, direction: Option<Direction>) -> Option<Io> {
        loop {
            if !self.progress.running && !self.begin_pass() {
                return None;
            }
            if !self.pass_is_over()
                && let Some(io) = self.issue(direction)
            {
                return Some(io);
            }
            self.progress.running = false;
            self.progress.finished |= self.progress.pass_bytes == 0;
        }
    }

    /// The files, as laid out.
    pub fn files(&self) -> impl Iterator<Item = &crate::offsets::FileSpace> {
        self.cursors.iter().map(|cursor| &cursor.space)
    }

    /// The process's seeds, for streams its host draws from: [`Seeds::poisson`], [`Seeds::command_priority`].
    pub fn seeds(&self) -> &Seeds {
        &self.seeds
    }

    /// Passes over the files that have begun, from 1 once there was an I/O.
    pub fn passes(&self) -> u64 {
        self.progress.passes_begun
    }

    /// I/Os handed out so far, read, write and trim.
    pub fn issued(&self) -> [u64; 3] {
        self.progress.issued
    }

    /// Amount asked for in one loop, bytes.
    fn amount(&self) -> u64 {
        if self.io_size_bytes > 0 { self.io_size_bytes } else { self.pass_bytes }
    }

    fn begin_pass(&mut self) -> bool {
        if !self.another_pass() {
            return false;
        }
        if self.progress.passes_begun > 0 {
            if self.seeds.repeatable {
                let next_file =
                    Some(self.draws.file.clone()).filter(|_| self.job.files.service != FileService::Random);
                self.draws = Streams::new(&self.seeds, self.block_wide, next_file);
            }
            for cursor in &mut self.cursors {
                cursor.done = false;
                cursor.restart(self.seeds.block_seed());
            }
            self.cursors_left = self.cursors.len();
            self.service.current = None;
            self.mix.until = 0;
            self.last_was_sync = false;
        }
        if self.job.access.trim_then_write() {
            self.progress.number_ios *= 2;
        }
        self.progress.passes_begun += 1;
        self.progress.pass_bytes = 0;
        self.progress.running = true;
        true
    }

    fn another_pass(&mut self) -> bool {
        let progress = &mut self.progress;
        if progress.finished {
            return false;
        }
        if self.job.schedule.time_based {
            return true;
        }
        if progress.loops_left > 0 {
            progress.loops_left -= 1;
            return true;
        }
        if self.number_exceeded() {
            return false;
        }
        let done: u64 = self.progress.issued_bytes.iter().sum();
        let left = self.amount().saturating_sub(done);
        let max_block = self.job.blocks.iter().map(|sizes| sizes.max_bytes).max().unwrap_or(1);
        let all_files_done = self.cursors_left == 0;
        left >= max_block && !(all_files_done && self.io_size_bytes == 0)
    }

    fn number_exceeded(&self) -> bool {
        let limit = self.progress.number_ios.saturating_mul(self.job.extent.loops);
        limit > 0 && self.progress.issued.iter().sum::<u64>() >= limit
    }

    fn pass_is_over(&self) -> bool {
        let (job, progress) = (&self.job, &self.progress);
        if job.schedule.time_based {
            return false;
        }
        let [read, write, trim] = progress.issued_bytes;
        let counted = match (job.access.reads, job.access.writes) {
            (true, true) => read + write,
            (false, true) => write,
            (true, false) => read,
            (false, false) => trim,
        };
        if counted >= self.amount().saturating_mul(job.extent.loops) || self.number_exceeded() {
            return true;
        }
        // fio counts the bytes of a pass only for I/O that is queued: a synchronous job goes on until it finds no more.
        if job.submission.family != EngineFamily::Async {
            return false;
        }
        let mut limit = self.pass_bytes;
        if job.access.writes && job.access.random && job.norandommap {
            limit = limit.max(self.io_size_bytes);
        }
        if job.access.trim_then_write() {
            limit = limit.saturating_add(self.amount().saturating_mul(job.extent.loops));
        }
        progress.pass_bytes >= limit
    }

    /// Finds the next I/O in some file. `None`: there is none in this pass.
    fn issue(&mut self, direction: Option<Direction>) -> Option<Io> {
        loop {
            let file = self.choose_file()?;
            if let Some(kind) = self.sync_due() {
                self.last_was_sync = true;
                return Some(Io { kind, file, offset_bytes: 0, length_bytes: 0 });
            }
            let direction = self.choose_direction(file, direction);
            if let Some((offset_bytes, length_bytes)) = self.place_in(file, direction) {
                self.account(file, direction, offset_bytes, length_bytes);
                return Some(Io { kind: IoKind::Data(direction), file, offset_bytes, length_bytes });
            }
            self.cursors[file].done = true;
            self.cursors_left -= 1;
        }
    }

    fn account(&mut self, file: usize, direction: Direction, offset_bytes: u64, length_bytes: u64) {
        let i = direction.index();
        let cursor = &mut self.cursors[file];
        cursor.last_start[i] = Some(offset_bytes);
        cursor.last_end[i] = offset_bytes + length_bytes;
        if let Some(zones) = self.job.strided {
            cursor.zone_done_bytes += length_bytes;
            if cursor.zone_done_bytes >= zones.zone_bytes {
                cursor.zone_done_bytes = 0;
                cursor.last_end[i] = cursor.last_end[i].saturating_add(zones.skip_bytes);
            }
        }
        self.progress.issued[i] += 1;
        self.progress.issued_bytes[i] += length_bytes;
        self.progress.pass_bytes += length_bytes;
        self.last_was_sync = false;
    }

    fn choose_file(&mut self) -> Option<usize> {
        let count = self.cursors.len();
        if count == 1 {
            return (!self.cursors[0].done).then_some(0);
        }
        if self.cursors_left == 0 {
            return None;
        }
        let files = &self.job.files;
        if let Some(current) = self.service.current.filter(|&current| !self.cursors[current].done) {
            if files.service == FileService::Sequential {
                return Some(current);
            }
            if self.service.ios_left > 0 {
                self.service.ios_left -= 1;
                return Some(current);
            }
        }
        let chosen = loop {
            let candidate = match files.service {
                FileService::Random => (count as f64 * self.draws.file.fraction()) as usize,
                FileService::RoundRobin | FileService::Sequential => {
                    let next = self.service.next;
                    self.service.next = (next + 1) % count;
                    next
                }
            };
            if !self.cursors[candidate].done {
                break candidate;
            }
        };
        self.service.current = Some(chosen);
        self.service.ios_left = files.service_ios - 1;
        Some(chosen)
    }

    fn sync_due(&self) -> Option<IoKind> {
        let writes = self.progress.issued[Direction::Write.index()];
        if self.last_was_sync || !self.job.access.writes || writes == 0 {
            return None;
        }
        let due = |every: u64| every > 0 && writes.is_multiple_of(every);
        match self.job.durability {
            durability if due(durability.fsync_writes) => Some(IoKind::Sync),
            durability if due(durability.fdatasync_writes) => Some(IoKind::DataSync),
            _ => None,
        }
    }

    fn choose_direction(&mut self, file: usize, asked: Option<Direction>) -> Direction {
        let access = self.job.access;
        if access.trim_then_write() {
            let [_, write, trim] = self.cursors[file].last_start;
            return if write == trim { Direction::Trim } else { Direction::Write };
        }
        if !access.mixed() {
            return if access.reads {
                Direction::Read
            } else if access.writes {
                Direction::Write
            } else {
                Direction::Trim
            };
        }
        if let Some(direction) = asked {
            self.mix.direction = direction;
            return direction;
        }
        let current = self.mix.direction;
        let issued = self.progress.issued[current.index()];
        if issued >= self.mix.until {
            let read = self.draws.mix.between(1, 100) <= u64::from(self.job.read_percent);
            let chosen = if read { Direction::Read } else { Direction::Write };
            if chosen != current {
                let other_percent = match current {
                    Direction::Read => 100 - self.job.read_percent,
                    _ => self.job.read_percent,
                };
                self.mix.until = issued * u64::from(other_percent) / 100;
            }
            self.mix.direction = chosen;
        }
        self.mix.direction
    }

    /// Offset from the start of the file and length; `None`: the file has no more to give in this pass.
    fn place_in(&mut self, file: usize, direction: Direction) -> Option<(u64, u64)> {
        self.until_random -= 1;
        let fresh = self.until_random == 0;
        if fresh {
            self.until_random = self.job.ios_per_random_offset;
        }
        let Streams { block, zone, sequential_or_random, sizes, .. } = &mut self.draws;
        let mut draws = Draws { block, zone, sequential_or_random };
        let cursor = &mut self.cursors[file];
        let place = cursor.find(&self.job, direction, fresh, &mut draws, self.seeds.block_seed())?;
        let part = &cursor.space;
        if place.offset_bytes >= part.part_bytes {
            return None;
        }
        let (part_end, total_bytes) = (part.offset_bytes + part.part_bytes, part.total_bytes);
        let offset = part.offset_bytes + place.offset_bytes;
        let [_, write, trim] = Direction::ALL.map(Direction::index);
        let pairs = self.job.access.random && self.job.access.trim_then_write();
        if pairs && direction == Direction::Trim && cursor.last_start[trim] == Some(offset) {
            // The same block twice running: the written mark must differ, or no write would follow.
            cursor.last_start[write] = cursor.last_start[write].map(|start| start.wrapping_sub(1));
        }
        let length = if pairs && direction == Direction::Write {
            cursor.last_end[trim] - cursor.last_start[trim]?
        } else {
            let i = match (self.job.bs_is_seq_rand, place.random) {
                (false, _) => direction.index(),
                (true, false) => Direction::Read.index(),
                (true, true) => Direction::Write.index(),
            };
            let room = part_end.saturating_sub(offset);
            length(&self.job.blocks[i], self.job.bs_unaligned, &mut sizes[i], room)?
        };
        if length == 0 || offset.checked_add(length)? > total_bytes {
            return None;
        }
        let length = if place.mark {
            cursor.mark(self.job.blocks[direction.index()].min_bytes, place.offset_bytes, length)
        } else {
            length
        };
        (length > 0).then_some((offset, length))
    }
}
