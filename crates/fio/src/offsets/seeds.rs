//! One seed per random stream of a process (fio 3.33 `init.c`).

use crate::job::{Generator, Job};
use crate::offsets::rng::Rng;

/// The seed everything derives from while `randrepeat` is on.
const REPEATABLE: u64 = 0xb189_9bed;
/// Default of `randseed`.
const DEFAULT_RANDSEED: u64 = 0x89;
/// Spreads the seeds of the streams.
const SPREAD: u64 = 0x9e37_0001;

/// Number of a stream in fio's table of seeds.
#[derive(Clone, Copy)]
enum Slot {
    SizeRead = 0,
    SizeWrite = 1,
    SizeTrim = 2,
    Mix = 4,
    File = 5,
    Block = 6,
    SequentialOrRandom = 10,
    StartDelay = 13,
    Poisson = 15,
    Zone = 16,
    PoissonWrite = 17,
    PoissonTrim = 18,
    CommandPriority = 19,
}

const SLOTS: usize = 21;

/// The seeds of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds {
    table: [u64; SLOTS],
    /// Every pass over the file starts from the same seeds.
    pub(super) repeatable: bool,
    wide: bool,
    /// Streams of write and trim sizes follow read or each other.
    same_write: bool,
    same_trim: bool,
}

impl Seeds {
    /// Seeds for a process. `clone`: not the first process of its job. `entropy`: instead of the system's, for `randrepeat=0`.
    pub fn new(job: &Job, thread_number: u32, clone: bool, entropy: u64) -> Self {
        let seeding = job.seeding;
        let thread = u64::from(thread_number);
        let mut table = match seeding.randseed {
            None if !seeding.randrepeat => from_entropy(entropy, thread),
            randseed => from_randseed(randseed.unwrap_or(DEFAULT_RANDSEED), thread),
        };
        if seeding.allrandrepeat {
            table = std::array::from_fn(|slot| REPEATABLE.wrapping_mul(thread) + slot as u64);
        }
        // fio turns randrepeat off for randseed only after the first process has been seeded, so `randseed` does not move the
        // offsets of the first process of a job, only those of its clones. Recorded: tests/vectors/randseed*.
        let offsets_repeat = seeding.randrepeat && (seeding.randseed.is_none() || !clone);
        if offsets_repeat && job.access.random {
            table[Slot::Block as usize] = REPEATABLE.wrapping_mul(thread);
        }
        Self {
            table,
            repeatable: seeding.randrepeat && seeding.randseed.is_none(),
            wide: job.generator == Generator::Tausworthe64,
            same_write: job.verify,
            same_trim: job.access.trim_then_write(),
        }
    }

    fn seed(&self, slot: Slot) -> u64 {
        self.table[slot as usize]
    }

    /// Offsets; `wide`: 64 bits whatever the generator.
    pub(super) fn block(&self, wide: bool) -> Rng {
        Rng::new(self.seed(Slot::Block), self.wide || wide)
    }

    /// The seed of the offsets, for generators of another kind.
    pub(super) fn block_seed(&self) -> u64 {
        self.seed(Slot::Block)
    }

    /// Block sizes for read, write, trim.
    pub(super) fn sizes(&self) -> [Rng; 3] {
        let read = self.seed(Slot::SizeRead);
        let write = if self.same_write { read } else { self.seed(Slot::SizeWrite) };
        let trim = if self.same_trim { write } else { self.seed(Slot::SizeTrim) };
        [read, write, trim].map(|seed| Rng::new(seed, self.wide))
    }

    /// The coin of a mixed job.
    pub(super) fn mix(&self) -> Rng {
        Rng::taus88(self.seed(Slot::Mix))
    }

    /// The coin of `percentage_random`: three streams with one seed.
    pub(super) fn sequential_or_random(&self) -> [Rng; 3] {
        [(); 3].map(|()| Rng::taus88(self.seed(Slot::SequentialOrRandom)))
    }

    /// Which file is next.
    pub(super) fn file(&self) -> Rng {
        Rng::new(self.seed(Slot::File), self.wide)
    }

    /// Which zone of `random_distribution=zoned`.
    pub(super) fn zone(&self) -> Rng {
        Rng::taus88(self.seed(Slot::Zone))
    }

    /// Gaps of `rate_process=poisson` for read, write, trim.
    pub fn poisson(&self) -> [Rng; 3] {
        [Slot::Poisson, Slot::PoissonWrite, Slot::PoissonTrim].map(|slot| Rng::taus88(self.seed(slot)))
    }

    /// The coin of `cmdprio_percentage`: an I/O has the priority when `between(0, 99)` is below the percentage.
    pub fn command_priority(&self) -> Rng {
        Rng::taus88(self.seed(Slot::CommandPriority))
    }

    /// A start delay between two bounds, microseconds.
    pub(crate) fn start_delay(&self, low_us: u64, high_us: u64) -> u64 {
        Rng::new(self.seed(Slot::StartDelay), self.wide).between(low_us, high_us)
    }
}

fn from_randseed(randseed: u64, thread: u64) -> [u64; SLOTS] {
    let mut seed = (0..4).fold(randseed, |seed, _| seed.wrapping_mul(SPREAD));
    std::array::from_fn(|slot| {
        let value = seed.wrapping_mul(thread).wrapping_add(slot as u64);
        seed = seed.wrapping_mul(SPREAD);
        value
    })
}

/// SplitMix64 (Steele, Lea, Flood 2014): any well-mixed function would do here.
fn from_entropy(entropy: u64, thread: u64) -> [u64; SLOTS] {
    let mut state = entropy ^ thread.wrapping_mul(0xd134_2543_de82_ef95);
    std::array::from_fn(|_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}
