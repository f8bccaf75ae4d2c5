//! Arm and platter: how long it takes to get to a sector and to read or write from there on.

use super::geometry::{Geometry, Heads, Place, Rotation};
use super::seek::SeekCurve;

/// The moving parts and their times.
#[derive(Clone, Debug)]
pub(crate) struct Mechanics {
    pub(super) geometry: Geometry,
    pub(super) rotation: Rotation,
    pub(super) read_seek: SeekCurve,
    /// A curve of their own for writes; otherwise the read curve serves.
    pub(super) write_seek: Option<SeekCurve>,
    /// Added to every seek and head switch before a write.
    pub(super) write_settle_ns: u64,
    pub(super) head_switch_ns: u64,
}

/// Sectors passing under a head without interruption: a track, or its rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// First sector of the run.
    pub(super) first: u64,
    /// First sector behind it: the track's end.
    pub(super) end: u64,
    /// When the first sector starts to pass.
    pub(super) start_at: u64,
    pub(super) heads: Heads,
    sectors_per_track: u32,
}

impl Mechanics {
    /// Time to move arm and head select from `from` to `to`: seek and head switch overlap, the longer one counts.
    #[inline]
    fn move_ns(&self, from: Heads, to: Heads, write: bool) -> u64 {
        let distance = from.cylinder.abs_diff(to.cylinder);
        let switch = if from.head == to.head { 0 } else { self.head_switch_ns };
        if !write {
            return self.read_seek.ns(distance).max(switch);
        }
        let curve = self.write_seek.as_ref().unwrap_or(&self.read_seek);
        let time = curve.ns(distance).max(switch);
        if time == 0 { 0 } else { time + self.write_settle_ns }
    }

    /// When the sector at `to` starts to pass under its head, for heads that leave `from` at `now`.
    #[inline]
    pub(super) fn reach(&self, now: u64, from: Heads, to: Place, write: bool) -> u64 {
        let there = now + self.move_ns(from, to.heads, write);
        there + self.rotation.wait_ns(there, to.angle)
    }

    /// Start at `sector`, which begins to pass at `at`, and go on to `end` over as many tracks as it takes. Gives
    /// the time it is done and the last run.
    pub(super) fn transfer(&self, at: u64, sector: u64, end: u64, write: bool) -> (u64, Run) {
        let mut run = self.run(at, sector);
        while run.end < end {
            match self.next_run(&run, write) {
                Some(next) => run = next,
                None => break,
            }
        }
        (self.passed_at(&run, end.min(run.end)), run)
    }

    /// The run that starts with `sector` at time `at`.
    #[inline]
    pub(super) fn run(&self, at: u64, sector: u64) -> Run {
        let track = self.geometry.track(sector);
        let end = (track.first_sector + u64::from(track.sectors)).min(self.geometry.sectors());
        Run { first: sector, end, start_at: at, heads: track.place.heads, sectors_per_track: track.sectors }
    }

    /// The following track, reached by head switch or seek and the wait its skew is made for.
    pub(super) fn next_run(&self, run: &Run, write: bool) -> Option<Run> {
        if run.end >= self.geometry.sectors() {
            return None;
        }
        let track = self.geometry.track(run.end);
        let at = self.reach(self.passed_at(run, run.end), run.heads, track.place, write);
        let end = (run.end + u64::from(track.sectors)).min(self.geometry.sectors());
        Some(Run {
            first: run.end,
            end,
            start_at: at,
            heads: track.place.heads,
            sectors_per_track: track.sectors,
        })
    }

    /// When all sectors of the run before `end` have passed. `end` may lie behind the run: then as if the track went on.
    #[inline]
    pub(super) fn passed_at(&self, run: &Run, end: u64) -> u64 {
        // At most 2^24 sectors times 2^36 ns: no overflow.
        let sectors = end.saturating_sub(run.first);
        run.start_at + sectors * self.rotation.revolution_ns() / u64::from(run.sectors_per_track)
    }

    /// First sector of the run that has not passed completely at `now`.
    #[inline]
    pub(super) fn position(&self, run: &Run, now: u64) -> u64 {
        let passed = now.saturating_sub(run.start_at) * u64::from(run.sectors_per_track)
            / self.rotation.revolution_ns();
        (run.first + passed).min(run.end)
    }

    /// Seek, rotation and transfer of one small access, and where the heads are then: the whole service of a
    /// spindle that is not looked into any deeper (an array's).
    pub(crate) fn access(&self, now: u64, arm: &mut Arm, sector: u64, sectors: u64) -> u64 {
        let at = self.reach(now, arm.0, self.geometry.place(sector), false);
        let (done, run) = self.transfer(at, sector, (sector + sectors).min(self.geometry.sectors()), false);
        arm.0 = run.heads;
        done
    }

    /// Size, sectors.
    pub(crate) fn sectors(&self) -> u64 {
        self.geometry.sectors()
    }
}

/// Where a spindle's heads stand, for [`Mechanics::access`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arm(Heads);
