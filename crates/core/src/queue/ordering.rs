//! Order and durability: which steps a barrier or a flush takes on which device.
//!
//! A *barrier* (until 2.6.36, [`super::barrier`]) empties the elevator, lets the device run dry, and goes alone, between
//! cache flushes if the device has a volatile cache. A *flush sequence* (since 2.6.37, [`super::flush`]) orders nothing but
//! itself: flush, write, flush, as far as the device needs them, with many sequences sharing one flush command.
//!
//! Source: Linux 2.6.33 `block/blk-barrier.c`, Documentation/block/barrier.txt; Linux 6.12 `block/blk-flush.c`.

use crate::request::{Bio, Flags, Op};

/// How the queue keeps order and durability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ordering {
    /// Barriers fail: the device cannot order (2.6's `QUEUE_ORDERED_NONE`).
    NoBarriers,
    /// Barrier by draining; the device's cache is not volatile (`QUEUE_ORDERED_DRAIN`).
    Drain,
    /// Barrier by draining, with a flush before and after (`QUEUE_ORDERED_DRAIN_FLUSH`).
    DrainFlush,
    /// Barrier by draining, a flush before, and a FUA write (`QUEUE_ORDERED_DRAIN_FUA`).
    DrainFua,
    /// FLUSH and FUA sequences.
    Sequences {
        /// Is there a volatile write cache?
        write_cache: bool,
        /// Does the device do FUA itself?
        fua: bool,
    },
}

/// The steps of a barrier or flush sequence, in their order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(super) enum Step {
    Drain,
    PreFlush,
    Data,
    PostFlush,
    Done,
}

/// Which steps a sequence has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    pub(super) pre_flush: bool,
    pub(super) data: bool,
    pub(super) post_flush: bool,
}

impl Plan {
    /// The first step at or behind `from` that this plan has.
    pub(super) fn next(self, from: Step) -> Step {
        if from <= Step::PreFlush && self.pre_flush {
            Step::PreFlush
        } else if from <= Step::Data && self.data {
            Step::Data
        } else if from <= Step::PostFlush && self.post_flush {
            Step::PostFlush
        } else {
            Step::Done
        }
    }

    /// Kept in a request's `sequence` byte: bit 7 = has one, bit 6 = [`NEEDS_FLUSH`], bits 0-2 = the
    /// steps.
    pub(super) fn to_byte(self) -> u8 {
        0x80 | u8::from(self.pre_flush) | u8::from(self.data) << 1 | u8::from(self.post_flush) << 2
    }

    pub(super) fn from_byte(byte: u8) -> Option<Plan> {
        (byte & 0x80 != 0).then_some(Plan {
            pre_flush: byte & 1 != 0,
            data: byte & 2 != 0,
            post_flush: byte & 4 != 0,
        })
    }
}

/// Set in a request's `sequence` byte while it waits for the next flush command.
const NEEDS_FLUSH: u8 = 0x40;

pub(super) const fn needs_flush(sequence: u8) -> bool {
    sequence & NEEDS_FLUSH != 0
}

/// The flush it needs has not gone out.
pub(super) const fn without_flush(sequence: u8) -> u8 {
    sequence | NEEDS_FLUSH
}

/// The flush it needs is in the device.
pub(super) const fn with_flush(sequence: u8) -> u8 {
    sequence & !NEEDS_FLUSH
}

impl Ordering {
    /// Do barriers keep order, for which the device runs dry?
    pub const fn drains(self) -> bool {
        matches!(self, Ordering::Drain | Ordering::DrainFlush | Ordering::DrainFua)
    }

    /// The flags of `bio` as this queue takes them.
    #[inline]
    pub(super) fn flags(self, bio: &Bio) -> Flags {
        let mut flags = bio.flags;
        if let Ordering::Sequences { write_cache, .. } = self {
            flags.remove(Flags::BARRIER); // gone since 2.6.37
            if !write_cache {
                flags.remove(Flags::PREFLUSH | Flags::FUA); // what is written is durable
            }
        }
        flags
    }

    /// The flags of the request that `bio` becomes.
    #[inline]
    pub(super) fn request_flags(self, bio: &Bio) -> Flags {
        let mut flags = bio.flags;
        flags.remove(Flags::UNPLUG);
        let durable = bio.op == Op::Flush || flags.intersects(Flags::PREFLUSH | Flags::FUA);
        if durable && matches!(self, Ordering::Sequences { .. }) {
            flags.insert(Flags::SYNC); // somebody waits for it
        }
        flags
    }

    /// The flush sequence of a bio; `None` when it needs none.
    #[inline]
    pub(super) fn sequence(self, bio: &Bio) -> Option<Plan> {
        let Ordering::Sequences { write_cache, fua } = self else { return None };
        let plan = Plan {
            pre_flush: write_cache && (bio.op == Op::Flush || bio.flags.contains(Flags::PREFLUSH)),
            data: bio.op != Op::Flush,
            post_flush: write_cache && !fua && bio.op != Op::Flush && bio.flags.contains(Flags::FUA),
        };
        (plan.pre_flush || plan.post_flush).then_some(plan)
    }

    /// The steps of a barrier; `None` when barriers are refused. `empty` = no data, flush only.
    pub(super) fn barrier(self, empty: bool) -> Option<Plan> {
        let (pre_flush, post_flush) = match self {
            Ordering::NoBarriers => return None,
            Ordering::Drain | Ordering::Sequences { .. } => (false, false),
            Ordering::DrainFlush => (true, !empty),
            Ordering::DrainFua => (true, false),
        };
        Some(Plan { pre_flush, data: !empty, post_flush })
    }
}
