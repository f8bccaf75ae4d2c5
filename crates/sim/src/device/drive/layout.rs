//! Where a sector lies on a drive whose layout was measured: zones with skews of their own, spares, defects.
//!
//! A zone's sectors are numbered along its tracks, from its first cylinder on. Sectors that hold no data (reserved at
//! the front, spare, slipped over because they are bad) have a physical number but no logical one; a remapped
//! sector's data lies in a spare. All of that comes down to one table: extents of logical sectors that are
//! neighbours on the medium. Facts on schemes and skews: DiskSim 4.0 manual, appendix on disk layouts.

use std::collections::BTreeMap;

/// Where spare sectors lie and what a slipped (skipped) bad sector does to those behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sparing {
    /// None.
    None,
    /// Whole tracks at the zone's end; bad places are tracks.
    Tracks,
    /// Sectors at each track's end.
    SectorsPerTrack,
    /// Sectors of each cylinder.
    SectorsPerCylinder {
        /// At its front rather than its end.
        front: bool,
        /// A slip moves all sectors up to the zone's end, not only those up to the next spare.
        slip_to_end: bool,
    },
    /// Sectors at the end of every so many cylinders.
    SectorsPerRange {
        /// Cylinders in a range.
        cylinders: u32,
    },
    /// Sectors at the zone's end.
    SectorsPerZone {
        /// Slips come on top of the spares.
        slip_to_end: bool,
    },
}

impl Sparing {
    /// Slips push the skew forward, too.
    fn slips_skew(self) -> bool {
        matches!(self, Sparing::SectorsPerTrack | Sparing::SectorsPerCylinder { .. })
    }
}

/// On which surface a cylinder begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Surfaces {
    /// Always the first.
    First,
    /// Every other cylinder of a zone goes back from the last surface, so that a cylinder switch stays on its surface.
    Turning,
    /// The same, counted over the whole disk.
    TurningOverall,
}

/// A zone, described. Angles and skews in 1/65,536 of its sectors.
#[derive(Clone, Debug)]
pub(super) struct Zone {
    pub(super) first_cylinder: u32,
    pub(super) last_cylinder: u32,
    pub(super) sectors_per_track: u32,
    pub(super) first_sector_at: u64,
    pub(super) track_skew: u64,
    pub(super) cylinder_skew: u64,
    /// Sectors at its front that hold no data of the host's.
    pub(super) reserved: u64,
    /// Spare sectors (or tracks) of each unit of the sparing scheme.
    pub(super) spares: u64,
    /// Bad sectors (or tracks) that were skipped, rising.
    pub(super) slips: Vec<u64>,
    /// Bad sectors (or tracks), and where their data went.
    pub(super) remaps: Vec<(u64, u64)>,
}

impl Zone {
    fn tracks(&self, heads: u32) -> u64 {
        u64::from(self.last_cylinder - self.first_cylinder + 1) * u64::from(heads)
    }
}

/// Logical sectors that follow one another on the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Extent {
    sector: u64,
    sectors: u64,
    /// Number of the first within its zone.
    physical: u64,
    zone: u32,
}

/// Where the heads stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Heads {
    pub(super) cylinder: u32,
    pub(super) head: u32,
}

/// A sector's place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    pub(super) heads: Heads,
    /// Angle at which it starts, in 2^32 parts of a turn.
    pub(super) angle: u32,
    /// Sectors from this one on that follow without a gap on its track.
    pub(super) run: u64,
    pub(super) sectors_per_track: u32,
}

/// The whole drive's layout.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    heads: u32,
    surfaces: Surfaces,
    sparing: Sparing,
    zones: Vec<Zone>,
    extents: Vec<Extent>,
    sectors: u64,
}

const FRACTION: u32 = 16;

impl Layout {
    /// The spec reader has checked that cylinders rise and nothing is empty.
    pub(super) fn new(heads: u32, surfaces: Surfaces, sparing: Sparing, zones: Vec<Zone>) -> Layout {
        let mut extents = Vec::new();
        let mut sectors = 0;
        for (index, zone) in zones.iter().enumerate() {
            for (physical, count) in zone_extents(zone, heads, sparing) {
                extents.push(Extent { sector: sectors, sectors: count, physical, zone: index as u32 });
                sectors += count;
            }
        }
        Layout { heads, surfaces, sparing, zones, extents, sectors }
    }

    /// Size, sectors.
    pub(super) fn sectors(&self) -> u64 {
        self.sectors
    }

    pub(super) fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// Cylinders, those between zones included.
    pub(super) fn cylinders(&self) -> u32 {
        self.zones.last().map_or(1, |zone| zone.last_cylinder + 1)
    }

    fn extent(&self, sector: u64) -> &Extent {
        &self.extents[self.extents.partition_point(|extent| extent.sector <= sector) - 1]
    }

    /// Zone and number within it of a sector below [`sectors`](Self::sectors), and what is left of its extent.
    fn physical(&self, sector: u64) -> (&Zone, u64, u64) {
        let extent = self.extent(sector);
        let within = sector - extent.sector;
        (&self.zones[extent.zone as usize], extent.physical + within, extent.sectors - within)
    }

    /// The place of a sector below [`sectors`](Self::sectors).
    pub(super) fn place(&self, sector: u64) -> Place {
        let (zone, physical, left) = self.physical(sector);
        let per_track = u64::from(zone.sectors_per_track);
        let (track, within) = (physical / per_track, physical % per_track);
        // A zone has fewer than 2^32 tracks (the spec reader's limit on cylinders).
        let (cylinder, surface) =
            ((track / u64::from(self.heads)) as u32, (track % u64::from(self.heads)) as u32);
        let turned = match self.surfaces {
            Surfaces::First => false,
            Surfaces::Turning => cylinder % 2 == 1,
            Surfaces::TurningOverall => (zone.first_cylinder + cylinder) % 2 == 1,
        };
        let at = self.track_start(zone, cylinder, surface) + (within << FRACTION);
        let turn = at % (per_track << FRACTION);
        Place {
            heads: Heads {
                cylinder: zone.first_cylinder + cylinder,
                head: if turned { self.heads - 1 - surface } else { surface },
            },
            angle: ((turn << (32 - FRACTION)) / per_track) as u32,
            run: left.min(per_track - within),
            sectors_per_track: zone.sectors_per_track,
        }
    }

    /// How far round a track starts, in parts of its sectors.
    fn track_start(&self, zone: &Zone, cylinder: u32, surface: u32) -> u64 {
        let (cylinder, surface) = (u64::from(cylinder), u64::from(surface));
        let switches = surface + (u64::from(self.heads) - 1) * cylinder;
        let mut at = zone.first_sector_at + switches * zone.track_skew + cylinder * zone.cylinder_skew;
        if self.sparing.slips_skew() {
            let tracks = cylinder * u64::from(self.heads)
                + if self.sparing == Sparing::SectorsPerTrack { surface } else { 0 };
            let before = tracks * u64::from(zone.sectors_per_track);
            at += (zone.slips.partition_point(|&slip| slip < before) as u64) << FRACTION;
        }
        at
    }

    /// First sector behind the track of `sector` in logical order.
    pub(super) fn track_end(&self, sector: u64) -> u64 {
        let heads = self.place(sector).heads;
        let mut end = sector;
        while end < self.sectors {
            let place = self.place(end);
            if place.heads != heads {
                break;
            }
            end += place.run;
        }
        end
    }

    /// First sector of the track of `sector` in logical order.
    pub(super) fn track_first(&self, sector: u64) -> u64 {
        let heads = self.place(sector).heads;
        let mut first = sector;
        loop {
            let (zone, physical, _) = self.physical(first);
            let within = physical % u64::from(zone.sectors_per_track);
            let extent = self.extent(first);
            first -= within.min(first - extent.sector);
            if first == 0 || self.place(first - 1).heads != heads {
                return first;
            }
            first -= 1;
        }
    }

    /// First sector behind the cylinder of `sector` in logical order.
    pub(super) fn cylinder_end(&self, sector: u64) -> u64 {
        let cylinder = self.place(sector).heads.cylinder;
        let mut end = sector;
        while end < self.sectors && self.place(end).heads.cylinder == cylinder {
            end = self.track_end(end);
        }
        end
    }
}

/// The zone's extents in logical order: physical number of the first sector, and how many.
fn zone_extents(zone: &Zone, heads: u32, sparing: Sparing) -> Vec<(u64, u64)> {
    let per_track = u64::from(zone.sectors_per_track);
    let whole = zone.tracks(heads) * per_track;
    let per_cylinder = u64::from(heads) * per_track;
    let (unit, spares, front, slip_to_end) = match sparing {
        Sparing::None => (whole, 0, false, false),
        Sparing::Tracks => (whole, zone.spares * per_track, false, false),
        Sparing::SectorsPerTrack => (per_track, zone.spares, false, false),
        Sparing::SectorsPerCylinder { front, slip_to_end } => (per_cylinder, zone.spares, front, slip_to_end),
        Sparing::SectorsPerRange { cylinders } => {
            (per_cylinder * u64::from(cylinders), zone.spares, false, false)
        }
        Sparing::SectorsPerZone { slip_to_end } => (whole, zone.spares, false, slip_to_end),
    };
    // Bad places as sectors: whole tracks where the scheme counts those.
    let (scale, width) = if sparing == Sparing::Tracks { (per_track, per_track) } else { (1, 1) };
    let slips: Vec<u64> = zone.slips.iter().map(|slip| slip * scale).collect();
    let mut extents = Vec::new();
    let mut start = 0;
    while start < whole {
        let end = (start + unit).min(whole);
        // A range that the zone's end cuts short has no spares.
        let spare = if end - start < unit { 0 } else { spares.min(end - start) };
        let here = &slips[slips.partition_point(|&s| s < start)..slips.partition_point(|&s| s < end)];
        let lost = if slip_to_end { here.len() as u64 * width } else { 0 };
        let count = (end - start - spare).saturating_sub(lost);
        let from = if front { start + spare } else { start };
        fill(&mut extents, from, end, count, here, width);
        start = end;
    }
    let extents = remap(extents, zone, scale, width);
    skip(extents, zone.reserved)
}

/// Lay `count` sectors from `from` on, around the slips, not beyond `end`.
fn fill(extents: &mut Vec<(u64, u64)>, from: u64, end: u64, count: u64, slips: &[u64], width: u64) {
    let (mut at, mut left) = (from, count);
    for &slip in slips {
        if slip < at {
            at = at.max(slip + width);
            continue;
        }
        let piece = (slip - at).min(left);
        push(extents, at, piece);
        left -= piece;
        at = slip + width;
    }
    push(extents, at, left.min(end.saturating_sub(at)));
}

fn push(extents: &mut Vec<(u64, u64)>, physical: u64, sectors: u64) {
    if sectors == 0 {
        return;
    }
    match extents.last_mut() {
        Some((first, count)) if *first + *count == physical => *count += sectors,
        _ => extents.push((physical, sectors)),
    }
}

/// Send the data of remapped sectors to where it went.
fn remap(extents: Vec<(u64, u64)>, zone: &Zone, scale: u64, width: u64) -> Vec<(u64, u64)> {
    if zone.remaps.is_empty() {
        return extents;
    }
    let moved: BTreeMap<u64, u64> =
        zone.remaps.iter().map(|&(bad, good)| (bad * scale, good * scale)).collect();
    let mut out = Vec::with_capacity(extents.len() + 2 * moved.len());
    for (physical, sectors) in extents {
        let (mut at, end) = (physical, physical + sectors);
        for (&bad, &good) in moved.range(physical..end) {
            push(&mut out, at, bad - at);
            out.push((good, width.min(end - bad)));
            at = (bad + width).min(end);
        }
        push(&mut out, at, end - at);
    }
    out
}

/// Without the first `sectors`.
fn skip(extents: Vec<(u64, u64)>, mut sectors: u64) -> Vec<(u64, u64)> {
    let mut out = Vec::with_capacity(extents.len());
    for (physical, count) in extents {
        let gone = count.min(sectors);
        sectors -= gone;
        if count > gone {
            out.push((physical + gone, count - gone));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zone(first: u32, last: u32, sectors_per_track: u32) -> Zone {
        Zone {
            first_cylinder: first,
            last_cylinder: last,
            sectors_per_track,
            first_sector_at: 0,
            track_skew: 0,
            cylinder_skew: 0,
            reserved: 0,
            spares: 0,
            slips: Vec::new(),
            remaps: Vec::new(),
        }
    }

    /// Cylinder, head and sector within the track of every logical sector.
    fn walk(layout: &Layout) -> Vec<(u32, u32, u64)> {
        (0..layout.sectors())
            .map(|sector| {
                let (zone, physical, _) = layout.physical(sector);
                let heads = layout.place(sector).heads;
                (heads.cylinder, heads.head, physical % u64::from(zone.sectors_per_track))
            })
            .collect()
    }

    #[test]
    fn slips_move_sectors_up_to_the_spares_of_their_unit() {
        // Two cylinders of one head and five sectors; one spare each; sector 1 of the first is bad.
        let bad = Zone { spares: 1, slips: vec![1], ..zone(0, 1, 5) };
        let per_cylinder = Sparing::SectorsPerCylinder { front: false, slip_to_end: false };
        let layout = Layout::new(1, Surfaces::First, per_cylinder, vec![bad.clone()]);
        let track =
            |cylinder, sectors: &[u64]| -> Vec<_> { sectors.iter().map(|&s| (cylinder, 0, s)).collect() };
        assert_eq!(walk(&layout), [track(0, &[0, 2, 3, 4]), track(1, &[0, 1, 2, 3])].concat());
        let to_end = Sparing::SectorsPerCylinder { front: false, slip_to_end: true };
        let layout = Layout::new(1, Surfaces::First, to_end, vec![bad.clone()]);
        assert_eq!(walk(&layout), [track(0, &[0, 2, 3]), track(1, &[0, 1, 2, 3])].concat());
        let front = Sparing::SectorsPerCylinder { front: true, slip_to_end: false };
        let layout = Layout::new(1, Surfaces::First, front, vec![Zone { slips: vec![], ..bad.clone() }]);
        assert_eq!(walk(&layout), [track(0, &[1, 2, 3, 4]), track(1, &[1, 2, 3, 4])].concat());
        let layout =
            Layout::new(1, Surfaces::First, Sparing::SectorsPerZone { slip_to_end: false }, vec![bad]);
        assert_eq!(walk(&layout), [track(0, &[0, 2, 3, 4]), track(1, &[0, 1, 2, 3, 4])].concat());
    }

    #[test]
    fn a_slipped_track_and_a_reserved_front_hold_nothing() {
        let tracks = Zone { spares: 1, slips: vec![1], reserved: 2, ..zone(4, 5, 3) };
        let layout = Layout::new(2, Surfaces::First, Sparing::Tracks, vec![tracks, zone(7, 7, 2)]);
        // Four tracks: 0 without its first two sectors, 1 bad, 2, 3; the spare is used up by the bad one.
        let expected = [
            (4, 0, 2),
            (5, 0, 0),
            (5, 0, 1),
            (5, 0, 2),
            (5, 1, 0),
            (5, 1, 1),
            (5, 1, 2),
            (7, 0, 0),
            (7, 0, 1),
        ];
        assert_eq!(walk(&layout)[..9], expected);
        assert_eq!(layout.track_end(1), 4);
        assert_eq!(layout.cylinder_end(1), 7);
        assert_eq!(layout.track_first(3), 1);
    }

    #[test]
    fn a_remapped_sector_lies_in_its_spare() {
        let remapped = Zone { spares: 1, remaps: vec![(2, 5)], ..zone(0, 0, 6) };
        let layout =
            Layout::new(1, Surfaces::First, Sparing::SectorsPerZone { slip_to_end: false }, vec![remapped]);
        let within: Vec<u64> = walk(&layout).iter().map(|place| place.2).collect();
        assert_eq!(within, [0, 1, 5, 3, 4]);
    }

    #[test]
    fn every_second_cylinder_may_go_back_over_the_surfaces() {
        let layout = Layout::new(2, Surfaces::Turning, Sparing::None, vec![zone(3, 5, 1)]);
        let heads: Vec<(u32, u32)> = walk(&layout).iter().map(|place| (place.0, place.1)).collect();
        assert_eq!(heads, [(3, 0), (3, 1), (4, 1), (4, 0), (5, 0), (5, 1)]);
    }

    #[test]
    fn skews_add_up_over_tracks_and_cylinders() {
        let skewed =
            Zone { track_skew: 2 << 16, cylinder_skew: 5 << 16, first_sector_at: 1 << 16, ..zone(0, 3, 16) };
        let layout = Layout::new(2, Surfaces::First, Sparing::None, vec![skewed]);
        let sixteenths = |sector| layout.place(sector).angle >> 28;
        assert_eq!(sixteenths(0), 1);
        assert_eq!(sixteenths(3), 4);
        assert_eq!(sixteenths(16), 3, "a track switch");
        assert_eq!(sixteenths(32), 8, "a cylinder switch has its own skew");
    }
}
