//! The order in which the drive's firmware serves what waits in it.

use super::geometry::{Heads, Place};
use super::mechanics::Mechanics;

/// A firmware's order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// As they came.
    Fifo,
    /// Upwards by sector, then from the lowest again; knows nothing of rotation.
    CLook,
    /// Nearest cylinder first.
    Sstf,
    /// Shortest positioning time (seek and rotation) first.
    Sptf,
}

impl Order {
    /// The words of a device file, in the order of [`Order::ALL`].
    pub(super) const WORDS: [&'static str; 4] = ["fifo", "c-look", "sstf", "sptf"];
    /// All orders.
    pub(super) const ALL: [Order; 4] = [Order::Fifo, Order::CLook, Order::Sstf, Order::Sptf];
}

/// When the firmware chooses what the heads do next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// As soon as the heads are done, from what waits then; the overhead of the chosen command follows.
    AtOnce,
    /// After the overhead, from all that has come by then: a command that the host sends at the completion of another competes.
    Late,
}

impl Choice {
    /// The words of a device file, in the order of [`Choice::ALL`].
    pub(super) const WORDS: [&'static str; 2] = ["at-once", "late"];
    pub(super) const ALL: [Choice; 2] = [Choice::AtOnce, Choice::Late];
}

/// What written data that presses has to do with commands that wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Drain {
    /// A piece of written data and a command in turns.
    Turns,
    /// Both in the firmware's order, as if each piece were a command that has just come.
    Together,
    /// Commands first: written data goes when no command waits. A flush, or a write that finds the cache full, takes turns all the same.
    After,
}

impl Drain {
    /// The words of a device file, in the order of [`Drain::ALL`].
    pub(super) const WORDS: [&'static str; 3] = ["turns", "together", "after"];
    pub(super) const ALL: [Drain; 3] = [Drain::Turns, Drain::Together, Drain::After];
}

/// Something the heads could do next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) sector: u64,
    /// Sectors; never 0.
    pub(super) sectors: u32,
    pub(super) write: bool,
    /// When it came, for ageing; `number` breaks ties.
    pub(super) since: u64,
    pub(super) number: u64,
    pub(super) place: Place,
}

impl Candidate {
    /// Is it a read that needs no positioning, as the heads read ahead there (see [`Situation::stream`])?
    #[inline]
    pub(super) fn streams(&self, stream: Option<(u64, u64)>) -> bool {
        !self.write && stream.is_some_and(|(first, end)| self.sector >= first && self.sector <= end)
    }
}

/// An order and what tempers it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) order: Order,
    /// Positioning time counts `1 − age/ageing`: 0 at this age. 0 turns ageing off.
    pub(super) ageing_ns: u64,
    /// A command of this age goes first. 0: no deadline.
    pub(super) deadline_ns: u64,
    /// A command of this age no longer stands behind reads of the stream the heads are on. 0: it stands behind them until ageing or the
    /// deadline end that.
    pub(super) stream_ns: u64,
}

/// What the decision is about, apart from the candidates.
pub(super) struct Situation<'a> {
    pub(super) mechanics: &'a Mechanics,
    pub(super) now: u64,
    pub(super) heads: Heads,
    /// First sector behind the last access, for C-LOOK.
    pub(super) last_sector: u64,
    /// Sectors the heads are reading ahead, from the first buffered to a little past the heads: a read that starts
    /// there needs no positioning.
    pub(super) stream: Option<(u64, u64)>,
}

impl Policy {
    /// Has a command that came at `since` waited longer than commands may?
    #[inline]
    pub(super) fn is_overdue(&self, since: u64, now: u64) -> bool {
        self.deadline_ns > 0 && now.saturating_sub(since) >= self.deadline_ns
    }

    /// The place in the list of the one to serve next; `None` when the list is empty.
    pub(super) fn pick(&self, candidates: &[Candidate], at: &Situation<'_>) -> Option<usize> {
        if candidates.len() <= 1 {
            return if candidates.is_empty() { None } else { Some(0) };
        }
        let oldest = || candidates.iter().enumerate().min_by_key(|(_, c)| c.number).map(|(index, _)| index);
        if self.order == Order::Fifo {
            return oldest();
        }
        let latest_start = at.now.saturating_sub(self.deadline_ns);
        if self.deadline_ns > 0 && candidates.iter().any(|c| c.since <= latest_start) {
            return oldest();
        }
        let leave_stream = self.leaves_stream(candidates, at);
        let allowed =
            || candidates.iter().enumerate().filter(|(_, c)| !(leave_stream && c.streams(at.stream)));
        match self.order {
            Order::Fifo => oldest(),
            Order::CLook => {
                let key = |c: &Candidate| (c.sector < at.last_sector, c.sector, c.number);
                allowed().min_by_key(|(_, c)| key(c)).map(|(index, _)| index)
            }
            Order::Sstf => {
                let key =
                    |c: &Candidate| (c.place.heads.cylinder.abs_diff(at.heads.cylinder), c.sector, c.number);
                allowed().min_by_key(|(_, c)| key(c)).map(|(index, _)| index)
            }
            Order::Sptf => self.shortest(allowed(), at),
        }
    }

    /// Has a command stood behind the stream long enough?
    fn leaves_stream(&self, candidates: &[Candidate], at: &Situation<'_>) -> bool {
        let latest_start = at.now.saturating_sub(self.stream_ns);
        self.stream_ns > 0
            && at.stream.is_some()
            && candidates.iter().any(|c| c.since <= latest_start && !c.streams(at.stream))
    }

    fn shortest<'a>(
        &self,
        candidates: impl Iterator<Item = (usize, &'a Candidate)>,
        at: &Situation<'_>,
    ) -> Option<usize> {
        let per_ns = if self.ageing_ns == 0 { 0.0 } else { 1.0 / self.ageing_ns as f64 };
        let mut best = (f64::INFINITY, u64::MAX, None);
        let here = at.mechanics.rotation.angle(at.now);
        for (index, candidate) in candidates {
            let streaming = candidate.streams(at.stream);
            // Past the ageing time everything costs nothing: the oldest goes first.
            let weight = (1.0 - (at.now - candidate.since.min(at.now)) as f64 * per_ns).max(0.0);
            // Nearly all are passed over by what they cost at least, without a square root.
            let floor = at.mechanics.reach_floor_ns(here, at.heads, &candidate.place);
            if !streaming && floor as f64 * weight > best.0 {
                continue;
            }
            let cost = if streaming {
                0
            } else {
                at.mechanics.reach(at.now, at.heads, &candidate.place, candidate.write) - at.now
            };
            let cost = cost as f64 * weight;
            if cost < best.0 || (cost == best.0 && candidate.number < best.1) {
                best = (cost, candidate.number, Some(index));
            }
        }
        best.2
    }
}
