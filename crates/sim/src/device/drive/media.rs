//! Arm and platter of a measured drive: when which sectors pass under a head.

use super::super::disk::{Rotation, SeekCurve};
use super::layout::{Heads, Layout};

/// The moving parts.
#[derive(Clone, Debug)]
pub(super) struct Media {
    pub(super) layout: Layout,
    pub(super) rotation: Rotation,
    pub(super) seek: SeekCurve,
    /// Added to seeks and head switches before writing. Measured drives also have negative ones: their read seeks
    /// were measured with a settling time that writes do not need.
    pub(super) write_settle_ns: i64,
    pub(super) head_switch_ns: u64,
}

/// Neighbouring sectors passing under a head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass {
    /// First sector.
    pub(super) first: u64,
    /// How many.
    pub(super) sectors: u64,
    /// When the first starts to pass.
    pub(super) start_ns: u64,
    /// When the arm has come to the track.
    pub(super) on_track_ns: u64,
    pub(super) heads: Heads,
    pub(super) sectors_per_track: u32,
    revolution_ns: u64,
}

impl Pass {
    /// First sector behind it.
    pub(super) fn end(&self) -> u64 {
        self.first + self.sectors
    }

    /// When `count` of its sectors have passed.
    pub(super) fn passed_ns(&self, count: u64) -> u64 {
        // Below 2^24 sectors times 2^36 ns.
        self.start_ns + count * self.revolution_ns / u64::from(self.sectors_per_track)
    }

    /// Sectors that have passed completely at `now`.
    pub(super) fn passed(&self, now: u64) -> u64 {
        let count =
            now.saturating_sub(self.start_ns) * u64::from(self.sectors_per_track) / self.revolution_ns;
        count.min(self.sectors)
    }

    /// Its first `count` sectors.
    fn front(self, count: u64) -> Pass {
        Pass { sectors: count, ..self }
    }
}

/// Whether the drive takes sectors in the order in which they come by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// From the first on.
    InOrder,
    /// From wherever in the range the platter stands ("zero latency", "read on arrival").
    Any,
}

impl Media {
    fn move_ns(&self, from: Heads, to: Heads, write: bool) -> u64 {
        let switch = if from.head == to.head { 0 } else { self.head_switch_ns };
        // Seek and head switch overlap: the longer one counts.
        let time = self.seek.ns(from.cylinder.abs_diff(to.cylinder)).max(switch);
        if write && time > 0 { time.saturating_add_signed(self.write_settle_ns) } else { time }
    }

    /// The next sectors to pass for heads that leave `from` at `now`: from `first` on, up to `end` or a gap.
    pub(super) fn pass(&self, now: u64, from: Heads, first: u64, end: u64, write: bool) -> Pass {
        let place = self.layout.place(first);
        let on_track_ns = now + self.move_ns(from, place.heads, write);
        Pass {
            first,
            sectors: place.run.min(end - first),
            start_ns: on_track_ns + self.rotation.wait_ns(on_track_ns, place.angle),
            on_track_ns,
            heads: place.heads,
            sectors_per_track: place.sectors_per_track,
            revolution_ns: self.rotation.revolution_ns(),
        }
    }

    /// All passes that `first..end` takes, in order of sector; the time the last one ends and where the heads are then.
    pub(super) fn passes(
        &self,
        now: u64,
        from: Heads,
        (first, end): (u64, u64),
        write: bool,
        arrival: Arrival,
        out: &mut Vec<Pass>,
    ) -> (u64, Heads) {
        let (mut at, mut heads, mut next) = (now, from, first);
        while next < end {
            let pass = self.pass(at, heads, next, end, write);
            heads = pass.heads;
            at = match arrival {
                Arrival::Any => self.pass_any(pass, out),
                Arrival::InOrder => {
                    out.push(pass);
                    pass.passed_ns(pass.sectors)
                }
            };
            next = pass.end();
        }
        (at, heads)
    }

    /// A pass, begun in its middle when the platter stands there. Gives the time all of it has passed.
    pub(super) fn pass_any(&self, pass: Pass, out: &mut Vec<Pass>) -> u64 {
        let revolution_ns = self.rotation.revolution_ns();
        // When the first sector last started to pass, and how many have gone by since, counting a begun one.
        let since = (pass.on_track_ns + revolution_ns).saturating_sub(pass.start_ns);
        let gone = (since * u64::from(pass.sectors_per_track)).div_ceil(revolution_ns);
        if pass.start_ns == pass.on_track_ns || gone == 0 || gone >= pass.sectors {
            out.push(pass);
            return pass.passed_ns(pass.sectors);
        }
        let late = pass.front(gone);
        let early = Pass {
            first: pass.first + gone,
            sectors: pass.sectors - gone,
            start_ns: pass.passed_ns(gone).saturating_sub(revolution_ns).max(pass.on_track_ns),
            ..pass
        };
        out.push(late);
        out.push(early);
        late.passed_ns(gone)
    }
}
