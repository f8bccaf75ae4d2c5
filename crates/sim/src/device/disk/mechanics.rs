//! Arm and platter: how long it takes to get to a sector and to read or write from there on.

use super::geometry::{Geometry, Heads, Place, Rotation};
use super::seek::{SeekCurve, SeekFloor};

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
    /// Below the curves.
    pub(super) seek_floor: SeekFloor,
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

    /// A move from `from` to `to` takes at least this.
    #[inline]
    fn move_floor_ns(&self, from: Heads, to: Heads) -> u64 {
        self.seek_floor.ns(from.cylinder.abs_diff(to.cylinder))
    }

    /// [`reach`](Self::reach) answers this much after now, or more; `here` is the platter's angle now.
    #[inline]
    pub(super) fn reach_floor_ns(&self, here: u32, from: Heads, to: &Place) -> u64 {
        let ahead = to.angle.wrapping_sub(here);
        self.rotation.no_sooner_ns(ahead, self.move_floor_ns(from, to.heads))
    }

    /// When the sector at `to` starts to pass under its head, for heads that leave `from` at `now`.
    #[inline]
    pub(super) fn reach(&self, now: u64, from: Heads, to: &Place, write: bool) -> u64 {
        let there = now + self.move_ns(from, to.heads, write);
        there + self.rotation.wait_ns(there, to.angle)
    }

    /// Read or write from `place` on, which begins to pass at `at`, up to `end`, over as many tracks as it takes. Gives
    /// the time it is done and the last run.
    #[inline]
    pub(super) fn transfer(&self, at: u64, place: &Place, end: u64) -> (u64, Run) {
        let mut run = self.run(at, place);
        while run.end < end {
            match self.next_run(&run) {
                Some(next) => run = next,
                None => break,
            }
        }
        (self.passed_at(&run, end.min(run.end)), run)
    }

    /// The run that starts with `place` at time `at`.
    #[inline]
    pub(super) fn run(&self, at: u64, place: &Place) -> Run {
        Run {
            first: place.sector,
            end: place.track_end,
            start_at: at,
            heads: place.heads,
            sectors_per_track: place.sectors_per_track,
        }
    }

    /// The following track. Its skew was laid out for just this switch (of writes, too), so it always fits: the measured
    /// WD 4 TB takes 1.8 ms for a random seek of one track and yet streams with a skew of 1.18 ms.
    pub(super) fn next_run(&self, run: &Run) -> Option<Run> {
        if run.end >= self.geometry.sectors() {
            return None;
        }
        let place = self.geometry.place(run.end);
        let passed_at = self.passed_at(run, run.end);
        Some(self.run(passed_at + self.rotation.wait_ns(passed_at, place.angle), &place))
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
        let place = self.geometry.place(sector);
        let at = self.reach(now, arm.0, &place, false);
        let (done, run) = self.transfer(at, &place, (sector + sectors).min(self.geometry.sectors()));
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
