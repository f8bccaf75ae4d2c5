//! One file of one process: where the last I/O ended, which blocks were touched, how the next is found.

use crate::job::{Direction, Distribution, Generator, Job, Sequencer};
use crate::offsets::layout::FileSpace;
use crate::offsets::lfsr::Lfsr;
use crate::offsets::random_map::{MAP_BLOCKS_MAX, RandomMap};
use crate::offsets::rng::Rng;
use crate::offsets::skew::Skew;
use crate::offsets::zones;

/// Random streams a file draws from; they belong to the process.
pub(super) struct Draws<'a> {
    pub(super) block: &'a mut Rng,
    pub(super) zone: &'a mut Rng,
    pub(super) sequential_or_random: &'a mut [Rng; 3],
}

/// A found place, relative to the start of the process's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset_bytes: u64,
    pub(super) random: bool,
    /// Found in the map's order: to be entered there.
    pub(super) mark: bool,
}

/// State of one file.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    pub(super) space: FileSpace,
    /// End of the last I/O per direction, from the start of the file, bytes.
    pub(super) last_end: [u64; 3],
    /// Start of the last I/O per direction, from the start of the file, bytes.
    pub(super) last_start: [Option<u64>; 3],
    /// Done of the zone it is in (`zonemode=strided`), bytes.
    pub(super) zone_done_bytes: u64,
    map: Option<RandomMap>,
    lfsr: Option<Lfsr>,
    skew: Option<Skew>,
    /// Nothing more to find in this pass.
    pub(super) done: bool,
}

impl Cursor {
    /// `skew_seed`: see [`Skew`]. `Err`: a sentence.
    pub(super) fn new(job: &Job, space: FileSpace, skew_seed: u32, block_seed: u64) -> Result<Self, String> {
        let reachable = space.part_bytes.min(space.total_bytes);
        let blocks = reachable / job.min_block_bytes();
        let skew_grain = job.blocks[0].min_bytes.min(job.blocks[1].min_bytes);
        let random = job.access.random;
        let lfsr = random && job.generator == Generator::Lfsr && !is_skewed(&job.distribution);
        let lfsr = lfsr.then(|| {
            Lfsr::new(blocks, block_seed).ok_or("random_generator=lfsr cannot start from this seed")
        });
        let map = random && !job.norandommap && lfsr.is_none();
        if map && blocks > MAP_BLOCKS_MAX {
            return Err(format!("a map of {blocks} blocks is too large: use norandommap or larger blocks"));
        }
        let mut cursor = Self {
            last_end: [space.offset_bytes; 3],
            last_start: [None; 3],
            zone_done_bytes: 0,
            map: map.then(|| RandomMap::new(blocks)),
            lfsr: lfsr.transpose()?,
            skew: random
                .then(|| Skew::new(&job.distribution, reachable.div_ceil(skew_grain).max(1), skew_seed))
                .flatten(),
            done: false,
            space,
        };
        cursor.restart(block_seed);
        Ok(cursor)
    }

    /// As opened anew.
    pub(super) fn restart(&mut self, block_seed: u64) {
        self.last_end = [self.space.offset_bytes; 3];
        self.last_start = [None; 3];
        self.zone_done_bytes = 0;
        match (&mut self.map, &mut self.lfsr) {
            (Some(map), _) => map.clear(),
            (None, Some(lfsr)) => lfsr.restart(block_seed),
            (None, None) => {}
        }
    }

    /// Finds the next place. `fresh`: a random job's turn for a new offset (always true without `randread:N`).
    pub(super) fn find(
        &mut self,
        job: &Job,
        direction: Direction,
        fresh: bool,
        draws: &mut Draws<'_>,
        block_seed: u64,
    ) -> Option<Place> {
        let i = direction.index();
        if job.access.random && job.access.trim_then_write() && direction == Direction::Write {
            // The start of the trim counts from the start of the file here, and the part's offset is added once more: fio 3.33
            // writes beside its trims when offset= is set.
            let offset_bytes = self.last_start[Direction::Trim.index()]?;
            return Some(Place { offset_bytes, random: true, mark: false });
        }
        let sequential = |offset_bytes| Place { offset_bytes, random: false, mark: false };
        if !job.access.random {
            return self.sequential(job, i).map(sequential);
        }
        if !fresh && job.sequencer == Sequencer::Identical {
            let start = self.last_start[i].map_or(0, |start| start - self.space.offset_bytes);
            return Some(sequential(start));
        }
        let go_random = fresh && {
            let percent = job.random_percent[i];
            percent == 100 || draws.sequential_or_random[i].between(1, 100) <= u64::from(percent)
        };
        if !go_random && let Some(offset) = self.sequential(job, i) {
            return Some(sequential(offset));
        }
        let block = self.random_block(job, direction, draws).or_else(|| {
            // A timed job starts its map over; the generator goes on.
            job.schedule.time_based.then(|| self.restart(block_seed))?;
            self.random_block(job, direction, draws)
        })?;
        let offset_bytes = block * job.blocks[i].align_bytes;
        Some(Place { offset_bytes, random: go_random, mark: go_random })
    }

    /// Enters an I/O in the map; returns its length, cut where the map is already set.
    #[inline]
    pub(super) fn mark(&mut self, min_bytes: u64, offset_in_part: u64, length: u64) -> u64 {
        let Some(map) = &mut self.map else { return length };
        let marked = map.insert_run(offset_in_part / min_bytes, length.div_ceil(min_bytes));
        (marked * min_bytes).min(length)
    }

    fn random_block(&mut self, job: &Job, direction: Direction, draws: &mut Draws<'_>) -> Option<u64> {
        if let Some(skew) = &mut self.skew {
            return Some(skew.next_block());
        }
        let sizes = &job.blocks[direction.index()];
        let overhang = sizes.min_bytes.saturating_sub(sizes.align_bytes);
        let reachable = self.space.part_bytes.min(self.space.total_bytes).checked_sub(overhang)?;
        let blocks = Some(reachable / sizes.align_bytes).filter(|&blocks| blocks > 0)?;
        let zone = match &job.distribution {
            Distribution::Zoned(zones) => {
                zones::draw(&zones[direction.index()], draws.zone, blocks, sizes.align_bytes)
            }
            _ => None,
        };
        match zone {
            None => self.uniform_block(draws.block, blocks),
            Some(zone) if zone.first_block + zone.blocks > blocks => None,
            Some(zone) => Some(zone.first_block + self.uniform_block(draws.block, zone.blocks)?),
        }
    }

    #[inline]
    fn uniform_block(&mut self, rng: &mut Rng, blocks: u64) -> Option<u64> {
        if let Some(lfsr) = &mut self.lfsr {
            return lfsr.next_block();
        }
        let block = (blocks as f64 * rng.fraction()) as u64;
        match &self.map {
            Some(map) if map.contains(block) => map.next_free_after(block),
            _ => Some(block),
        }
    }

    /// Where the last I/O of this direction ended, plus the stride; wraps as fio does.
    fn sequential(&mut self, job: &Job, i: usize) -> Option<u64> {
        let FileSpace { total_bytes, offset_bytes, part_bytes, .. } = self.space;
        let stride = job.stride_bytes;
        if self.last_end[i] >= part_bytes + offset_bytes && job.schedule.time_based && job.files.count == 1 {
            self.last_end[i] = offset_bytes;
        }
        if self.last_end[i] >= total_bytes {
            return None;
        }
        let far_end = total_bytes.min(part_bytes);
        if self.last_end[i] == offset_bytes && offset_bytes > 0 && stride < 0 {
            self.last_end[i] = far_end;
        }
        let position = self.last_end[i].wrapping_sub(offset_bytes);
        if position == 0 || stride == 0 {
            return Some(position);
        }
        let next = position.wrapping_add_signed(stride);
        Some(match next < total_bytes {
            true => next,
            false if stride > 0 => offset_bytes,
            false => far_end.wrapping_add_signed(stride),
        })
    }
}

fn is_skewed(distribution: &Distribution) -> bool {
    !matches!(distribution, Distribution::Uniform | Distribution::Zoned(_))
}
