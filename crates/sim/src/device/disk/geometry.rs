//! Where a sector lies: zones, layout, skew; and where the platter stands at a moment.
//!
//! Angles are fractions of a revolution as `u32` (2^32 is a whole turn), so that they wrap by themselves.

/// How the sectors run over the surfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// All tracks of a cylinder, then the next cylinder: disks up to about 2010.
    Cylinder,
    /// A band of so many tracks inward on one surface, outward on the next, and so on; then the next band, whose
    /// surfaces come in the opposite order. WD 4 TB: 128 tracks.
    Serpentine(u32),
}

/// Cylinders with one number of sectors per track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Zone {
    pub(super) first_sector: u64,
    pub(super) first_cylinder: u32,
    pub(super) first_track: u64,
    pub(super) cylinders: u32,
    pub(super) sectors_per_track: u32,
}

/// The recording side of a disk.
#[derive(Clone, Debug)]
pub struct Geometry {
    layout: Layout,
    heads: u32,
    cylinders: u32,
    sectors: u64,
    zones: Vec<Zone>,
    /// From a track's start to the next one's in LBA order.
    track_skew: u32,
    /// Added when the next track lies on the next cylinder (cylinder layout only).
    cylinder_skew: u32,
}

/// Where the heads stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Heads {
    pub(super) cylinder: u32,
    pub(super) head: u32,
}

/// A sector's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) sector: u64,
    pub(super) heads: Heads,
    /// Angle at which it starts.
    pub(super) angle: u32,
    /// First sector behind its track.
    pub(super) track_end: u64,
    pub(super) sectors_per_track: u32,
}

impl Geometry {
    /// From zones of (cylinders, sectors per track), outermost first; skews as fractions of a revolution.
    /// `sectors` may be less than the zones hold, not more (the spec reader has checked).
    pub(super) fn new(
        layout: Layout,
        heads: u32,
        sectors: u64,
        zones: &[(u32, u32)],
        track_skew: f64,
        cylinder_skew: f64,
    ) -> Geometry {
        let mut table = Vec::with_capacity(zones.len());
        let (mut first_sector, mut first_cylinder, mut first_track) = (0u64, 0u32, 0u64);
        for &(cylinders, sectors_per_track) in zones {
            table.push(Zone { first_sector, first_cylinder, first_track, cylinders, sectors_per_track });
            let tracks = u64::from(cylinders) * u64::from(heads);
            first_sector += tracks * u64::from(sectors_per_track);
            first_cylinder += cylinders;
            first_track += tracks;
        }
        let angle = |fraction: f64| (fraction * 4_294_967_296.0) as u64 as u32;
        Geometry {
            layout,
            heads,
            cylinders: first_cylinder,
            sectors: sectors.min(first_sector),
            zones: table,
            track_skew: angle(track_skew),
            cylinder_skew: match layout {
                Layout::Cylinder => angle(cylinder_skew),
                Layout::Serpentine(_) => 0,
            },
        }
    }

    /// Size, sectors.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Cylinders.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// Sectors that lie before `cylinder` (in the serpentine layout: before its band).
    pub fn sectors_before_cylinder(&self, cylinder: u32) -> u64 {
        let Some(zone) = self.zones.iter().rev().find(|zone| zone.first_cylinder <= cylinder) else {
            return 0;
        };
        let within = (cylinder - zone.first_cylinder).min(zone.cylinders);
        let whole = match self.layout {
            Layout::Cylinder => within,
            Layout::Serpentine(band) => within / band * band,
        };
        let sectors = u64::from(whole) * u64::from(self.heads) * u64::from(zone.sectors_per_track);
        (zone.first_sector + sectors).min(self.sectors)
    }

    pub(super) fn zones(&self) -> &[Zone] {
        &self.zones
    }

    /// The place of a sector. Sectors behind the end count as the last one.
    #[inline]
    pub(super) fn place(&self, sector: u64) -> Place {
        let sector = sector.min(self.sectors - 1);
        let index = self.zones.partition_point(|zone| zone.first_sector <= sector) - 1;
        let zone = &self.zones[index];
        // A zone holds fewer than 2^32 tracks (cylinders and heads are bounded by the reader).
        let offset = sector - zone.first_sector;
        let track = (offset / u64::from(zone.sectors_per_track)) as u32;
        let within = (offset - u64::from(track) * u64::from(zone.sectors_per_track)) as u32;
        let (cylinder, head) = match self.layout {
            Layout::Cylinder => (track / self.heads, track % self.heads),
            Layout::Serpentine(band) => {
                let number = track / (self.heads * band);
                let rest = track % (self.heads * band);
                // The last band of a zone may be narrower.
                let width = band.min(zone.cylinders - number * band);
                let (surface, along) = (rest / width, rest % width);
                let head = if number.is_multiple_of(2) { surface } else { self.heads - 1 - surface };
                let inward = if surface.is_multiple_of(2) { along } else { width - 1 - along };
                (number * band + inward, head)
            }
        };
        let cylinder = zone.first_cylinder + cylinder;
        let global = (zone.first_track as u32).wrapping_add(track);
        let angle =
            global.wrapping_mul(self.track_skew).wrapping_add(cylinder.wrapping_mul(self.cylinder_skew));
        // within < sectors per track, so the quotient is below a whole turn.
        let turn = ((u64::from(within) << 32) / u64::from(zone.sectors_per_track)) as u32;
        let track_end = sector - u64::from(within) + u64::from(zone.sectors_per_track);
        Place {
            sector,
            heads: Heads { cylinder, head },
            angle: angle.wrapping_add(turn),
            track_end: track_end.min(self.sectors),
            sectors_per_track: zone.sectors_per_track,
        }
    }
}

/// The spindle: time to angle and back without a division.
#[derive(Clone, Copy, Debug)]
pub(in crate::device) struct Rotation {
    revolution_ns: u64,
    /// 2^64 / revolution: the product with a time is the angle in its upper half, whole turns lost by wrapping.
    turns_per_ns_64: u64,
    /// A wait longer than a revolution less this is rounding, not a missed sector.
    slack: u32,
}

/// Rounding forgiven when the next sector follows without a gap, nanoseconds.
const SLACK_NS: u64 = 32;
/// That, and more than rounding angles and times makes.
const FORGIVEN_NS: u64 = SLACK_NS + 8;

impl Rotation {
    pub(in crate::device) fn from_rpm(rpm: f64) -> Rotation {
        let revolution_ns = (60e9 / rpm + 0.5) as u64;
        Rotation {
            revolution_ns,
            turns_per_ns_64: u64::MAX / revolution_ns,
            slack: ((SLACK_NS << 32) / revolution_ns) as u32,
        }
    }

    pub(in crate::device) fn revolution_ns(self) -> u64 {
        self.revolution_ns
    }

    /// Where the platter stands at `now`.
    #[inline]
    pub(super) fn angle(self, now: u64) -> u32 {
        (now.wrapping_mul(self.turns_per_ns_64) >> 32) as u32
    }

    /// Time from `now` until the platter stands at `angle`.
    #[inline]
    pub(in crate::device) fn wait_ns(self, now: u64, angle: u32) -> u64 {
        let ahead = angle.wrapping_sub(self.angle(now));
        if ahead > u32::MAX - self.slack {
            return 0;
        }
        (u64::from(ahead) * self.revolution_ns) >> 32
    }

    /// Heads that move for `least_ns` or longer from now on wait for an angle that is `ahead` now until this time from now, or
    /// longer: the platter is there once a revolution, whatever the way takes. A few nanoseconds too early at most
    /// ([`SLACK_NS`], and what rounding makes).
    #[inline]
    pub(super) fn no_sooner_ns(self, ahead: u32, least_ns: u64) -> u64 {
        let mut there = (u64::from(ahead) * self.revolution_ns) >> 32;
        let least_ns = least_ns.saturating_sub(FORGIVEN_NS);
        // Whether a turn is needed is chance, which no processor predicts: two are added without a branch, and most ways
        // need no more. The loop is for the long ones.
        for _ in 0..2 {
            there += self.revolution_ns * u64::from(there < least_ns);
        }
        while there < least_ns {
            there += self.revolution_ns;
        }
        there.saturating_sub(FORGIVEN_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(geometry: &Geometry, sectors: u64, step: u64) -> Vec<(u32, u32)> {
        let mut seen: Vec<(u32, u32)> = Vec::new();
        for sector in (0..sectors).step_by(step as usize) {
            let heads = geometry.place(sector).heads;
            if seen.last() != Some(&(heads.cylinder, heads.head)) {
                seen.push((heads.cylinder, heads.head));
            }
        }
        seen
    }

    #[test]
    fn cylinder_order_fills_a_cylinder_before_the_next() {
        let geometry = Geometry::new(Layout::Cylinder, 2, 70, &[(2, 10), (3, 5)], 0.1, 0.05);
        assert_eq!(geometry.sectors(), 70);
        let expected = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1), (4, 0), (4, 1)];
        assert_eq!(walk(&geometry, 70, 5), expected);
        assert_eq!(geometry.sectors_before_cylinder(1), 20);
        assert_eq!(geometry.sectors_before_cylinder(3), 50);
        assert_eq!(geometry.sectors_before_cylinder(99), 70);
    }

    #[test]
    fn serpentine_goes_in_and_out_and_turns_its_surfaces_round() {
        // Three surfaces, bands of two tracks, five cylinders: the last band is one track wide.
        let geometry = Geometry::new(Layout::Serpentine(2), 3, 150, &[(5, 10)], 0.1, 0.0);
        let expected = [
            (0, 0),
            (1, 0),
            (1, 1),
            (0, 1),
            (0, 2),
            (1, 2), // inward, outward, inward
            (2, 2),
            (3, 2),
            (3, 1),
            (2, 1),
            (2, 0),
            (3, 0), // the surfaces the other way
            (4, 0),
            (4, 1),
            (4, 2),
        ];
        assert_eq!(walk(&geometry, 150, 10), expected);
    }

    #[test]
    fn no_way_is_sooner_than_the_bound_and_the_shortest_hardly_later() {
        let mut x = 1u64;
        let mut random = |below: u64| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (x >> 16) % below
        };
        for rpm in [4_002.0, 5_400.0, 7_200.0, 15_000.0] {
            let rotation = Rotation::from_rpm(rpm);
            for _ in 0..100_000 {
                let (now, way, angle) = (random(1 << 45), random(30_000_000), random(1 << 32) as u32);
                let took = way + rotation.wait_ns(now + way, angle);
                let ahead = angle.wrapping_sub(rotation.angle(now));
                let bound = |least| rotation.no_sooner_ns(ahead, least);
                assert!(bound(way) <= took && bound(random(way + 1)) <= took, "{rpm} {now} {way} {angle}");
                // Who misses the angle by less than what is forgiven waits for a turn that the bound leaves out.
                let just_missed = bound(way) < way;
                assert!(just_missed || bound(way) + 2 * FORGIVEN_NS >= took, "{rpm} {now} {way} {angle}");
            }
        }
    }

    #[test]
    fn skew_adds_up_over_tracks_and_cylinders() {
        let geometry = Geometry::new(Layout::Cylinder, 2, 100, &[(5, 10)], 0.25, 0.125);
        let turn = |sector| f64::from(geometry.place(sector).angle) / 4_294_967_296.0;
        assert_eq!(turn(0), 0.0);
        assert_eq!(turn(10), 0.25);
        assert_eq!(turn(20), 0.625);
        assert!((turn(25) - 0.125).abs() < 1e-6);
    }

    #[test]
    fn rotation_waits_for_the_rest_of_the_turn() {
        let rotation = Rotation::from_rpm(7200.0);
        assert_eq!(rotation.revolution_ns(), 8_333_333);
        let quarter = 1 << 30;
        let wait = rotation.wait_ns(0, quarter);
        assert!(wait.abs_diff(2_083_333) < 3, "{wait}");
        // After ten turns and a half it is three quarters of a turn away.
        let wait = rotation.wait_ns(10 * 8_333_333 + 4_166_666, quarter);
        assert!(wait.abs_diff(6_250_000) < 20, "{wait}");
        assert_eq!(rotation.wait_ns(8_333_333 + 4, 0), 0, "a few nanoseconds late is rounding");
    }
}
