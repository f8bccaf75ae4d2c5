//! A disk's parameters, read from its device file and checked.

use super::MediaSpec;
use super::buffer::{Dirty, Segments};
use super::geometry::{Geometry, Layout, Rotation};
use super::mechanics::Mechanics;
use super::order::{Choice, Drain, Order, Policy};
use super::seek::{SeekCurve, SeekFloor};
use super::{Disk, Overheads, Settings};
use crate::device::Limits;
use crate::device::chance::Chance;
use crate::device::events::Rate;
use crate::device::spec::{Facts, Fields, SpecError, limits};

/// A disk, described.
#[derive(Clone, Debug)]
pub(crate) struct DiskSpec {
    limits: Limits,
    settings: Settings,
    mechanics: Mechanics,
    rpm: f64,
    segments: usize,
    segment_sectors: u64,
    extents_max: usize,
    dirty_sectors_max: u64,
    drain_from: f64,
    media: Option<MediaSpec>,
}

const CYLINDERS_MAX: u64 = 10_000_000;
const ZONES_MAX: usize = 1024;
/// More points than any published curve has.
const POINTS_MAX: usize = 100_000;
/// Longest time a part of a disk may take, ms.
const PART_MS_MAX: f64 = 10_000.0;

impl DiskSpec {
    pub(crate) fn read(fields: &mut Fields) -> Result<DiskSpec, SpecError> {
        let rpm = fields.number("rpm", 60.0, 1_000_000.0)?;
        let rotation = Rotation::from_rpm(rpm);
        let geometry = read_geometry(fields, rotation.revolution_ns() as f64 / 1e6)?;
        let read_seek = read_seek(fields, "seek", geometry.cylinders())?;
        let write_seek = match fields.has("write_seek.curve") {
            true => Some(self::read_seek(fields, "write_seek", geometry.cylinders())?),
            false => None,
        };
        let write_settle_ns = ns(fields.number("write_settle_ms", 0.0, PART_MS_MAX)?);
        let head_switch_ns = ns(fields.number("head_switch_ms", 0.0, PART_MS_MAX)?);
        let overheads = Overheads {
            read_hit_ns: ns(fields.number("overhead.read_hit_ms", 0.0, PART_MS_MAX)?),
            write_hit_ns: ns(fields.number("overhead.write_hit_ms", 0.0, PART_MS_MAX)?),
            miss_ns: ns(fields.number("overhead.miss_ms", 0.0, PART_MS_MAX)?),
        };
        let link = Rate::mb_per_s(fields.number("link.rate_mb_per_s", 0.1, 1e6)?);
        let segments = fields.integer("buffer.segments", 1, 4096)? as usize;
        let segment_kib = fields.integer("buffer.segment_kib", 0, 1 << 20)?;
        let write_cache = fields.boolean("write_cache.enabled")?;
        let dirty_kib = fields.integer("write_cache.size_kib", 1, 1 << 20)?;
        let extents_max = fields.integer("write_cache.extents", 1, 65_536)? as usize;
        let idle_ns = ns(fields.number("write_cache.idle_ms", 0.0, PART_MS_MAX)?);
        let policy = Policy {
            order: Order::ALL[fields.choice("firmware.order", &Order::WORDS)?],
            ageing_ns: ns(fields.number("firmware.ageing_ms", 0.0, 1e6)?),
            deadline_ns: ns(fields.number("firmware.deadline_ms", 0.0, 1e6)?),
            stream_ns: ns(fields.number_or("firmware.stream_ms", 0.0, 0.0, 1e6)?),
        };
        let choice = Choice::ALL[fields.choice_or("firmware.chooses", &Choice::WORDS, 0)?];
        let sorts =
            fields.integer_or("firmware.sorts", u64::from(u32::MAX), 1, u64::from(u32::MAX))? as usize;
        let drain = Drain::ALL[fields.choice_or("write_cache.drain", &Drain::WORDS, 0)?];
        let drain_from = fields.number_or("write_cache.drain_from", 0.5, 0.0, 1.0)?;
        let retries = Chance::read(fields, "read", "ms")?;
        let sticky_ns = ns(fields.number_or("firmware.sticky_ms", 0.0, 0.0, PART_MS_MAX)?);
        let facts = Facts { rotational: true, write_cache, fua: false, budget: true };
        let media = read_media(fields, geometry.sectors())?;
        let visible = media.map_or(geometry.sectors(), |media| media.first);
        let limits = limits(fields, visible, facts)?;
        let curves: Vec<&SeekCurve> = std::iter::once(&read_seek).chain(write_seek.as_ref()).collect();
        Ok(DiskSpec {
            limits,
            settings: Settings {
                overheads,
                link,
                policy,
                choice,
                sorts,
                sticky_ns,
                write_cache,
                idle_ns,
                drain,
                retries,
            },
            mechanics: Mechanics {
                seek_floor: SeekFloor::new(&curves, geometry.cylinders()),
                geometry,
                rotation,
                read_seek,
                write_seek,
                write_settle_ns,
                head_switch_ns,
            },
            rpm,
            segments,
            segment_sectors: segment_kib * 2,
            extents_max,
            dirty_sectors_max: dirty_kib * 2,
            drain_from,
            media,
        })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn geometry(&self) -> &Geometry {
        &self.mechanics.geometry
    }

    /// Arm and platter alone, for an array's spindles.
    pub(crate) fn mechanics(&self) -> &Mechanics {
        &self.mechanics
    }

    /// `seed` decides which reads have to be repeated.
    pub(crate) fn build(&self, seed: u64) -> Disk {
        let segments = Segments::new(self.segments, self.segment_sectors);
        let dirty = Dirty::new(self.extents_max, self.dirty_sectors_max, self.drain_from);
        let (settings, mechanics) = (self.settings.clone(), self.mechanics.clone());
        Disk::new(self.limits, settings, mechanics, segments, dirty, self.media, seed)
    }

    /// What the parameters amount to.
    pub(crate) fn derived(&self) -> Vec<(&'static str, String)> {
        let n = u64::from(self.mechanics.geometry.cylinders());
        let count = n as f64;
        // Random pairs of cylinders are d apart with density 2(n − d)/n²; every hundredth part will do.
        let step = (n / 4096).max(1);
        let (mut sum, mut weights) = (0.0, 0.0);
        for d in (1..n).step_by(step as usize) {
            let weight = count - d as f64;
            sum += weight * self.mechanics.read_seek.ns(d as u32) as f64;
            weights += weight;
        }
        let mean = if weights > 0.0 { sum / weights / 1e6 } else { 0.0 };
        let longest = self.mechanics.read_seek.ns(n.saturating_sub(1) as u32) as f64 / 1e6;
        let media = |spt: u32| f64::from(spt) * 512.0 * self.rpm / 60.0 / 1e6;
        let zones = self.mechanics.geometry.zones();
        let (outer, inner) = match (zones.first(), zones.last()) {
            (Some(outer), Some(inner)) => (media(outer.sectors_per_track), media(inner.sectors_per_track)),
            _ => (0.0, 0.0),
        };
        vec![
            ("revolution", format!("{:.3} ms", self.mechanics.rotation.revolution_ns() as f64 / 1e6)),
            ("mean / longest read seek", format!("{mean:.2} / {longest:.2} ms")),
            ("raw media rate", format!("{outer:.1} outer, {inner:.1} inner MB/s ({} zones)", zones.len())),
        ]
    }
}

/// A shingled drive's media cache; it takes the last sectors of the disk.
fn read_media(fields: &mut Fields, sectors: u64) -> Result<Option<MediaSpec>, SpecError> {
    if !fields.has("media_cache.size_mib") {
        return Ok(None);
    }
    let cache = fields.integer("media_cache.size_mib", 1, 1 << 24)? << 11;
    let band = fields.integer("media_cache.band_mib", 1, 1 << 14)? << 11;
    let entry = fields.integer("media_cache.entry_kib", 4, 1 << 16)? << 1;
    let writes_max = fields.integer("media_cache.writes", 1, 1 << 24)? as usize;
    let idle_ns = ns(fields.number("media_cache.idle_ms", 0.0, 1e9)?);
    if cache + band > sectors {
        return Err(fields.error("media_cache.size_mib", "the disk has no room for such a cache and a band"));
    }
    if entry > cache {
        return Err(fields.error("media_cache.entry_kib", "an entry does not fit into the cache"));
    }
    // The host sees whole bands.
    let first = (sectors - cache) / band * band;
    Ok(Some(MediaSpec { first, sectors: cache, writes_max, band, entry, idle_ns }))
}

fn ns(ms: f64) -> u64 {
    (ms * 1e6 + 0.5) as u64
}

fn read_geometry(fields: &mut Fields, revolution_ms: f64) -> Result<Geometry, SpecError> {
    let heads = fields.integer("geometry.heads", 1, 256)?;
    let layout = match fields.choice("geometry.layout", &["cylinder", "serpentine"])? {
        0 => Layout::Cylinder,
        _ => Layout::Serpentine(fields.integer("geometry.band_tracks", 1, 1_000_000)? as u32),
    };
    let zones = read_zones(fields)?;
    let capacity: u64 =
        zones.iter().map(|&(cylinders, spt)| u64::from(cylinders) * u64::from(spt) * heads).sum();
    let sectors = fields.integer_or("geometry.sectors", capacity, 1, 1 << 50)?;
    if sectors > capacity {
        let message = format!("geometry.sectors is {sectors}, but the zones hold only {capacity}");
        return Err(fields.error("geometry.sectors", message));
    }
    let track_skew = fields.number("geometry.track_skew_ms", 0.0, revolution_ms)? / revolution_ms;
    let cylinder_skew = match layout {
        Layout::Cylinder => fields.number("geometry.cylinder_skew_ms", 0.0, revolution_ms)? / revolution_ms,
        Layout::Serpentine(_) => 0.0,
    };
    Ok(Geometry::new(layout, heads as u32, sectors, &zones, track_skew, cylinder_skew))
}

/// Zones as pairs of cylinders and sectors per track, or as equal zones falling in a straight line.
fn read_zones(fields: &mut Fields) -> Result<Vec<(u32, u32)>, SpecError> {
    // A file that counts cylinders means straight-line zones, even over a base with a table.
    if fields.has("geometry.zone_table") && !fields.is_own("geometry.cylinders") {
        let pairs = fields.pairs("geometry.zone_table", CYLINDERS_MAX as f64, ZONES_MAX)?;
        let mut zones = Vec::with_capacity(pairs.len());
        for (index, &(cylinders, spt)) in pairs.iter().enumerate() {
            let whole = |x: f64| x >= 1.0 && x.fract() == 0.0;
            if !whole(cylinders) || !whole(spt) || spt > 1_000_000.0 {
                let message = format!(
                    "geometry.zone_table, entry {}: [cylinders, sectors per track] must be whole numbers of at least 1",
                    index + 1
                );
                return Err(fields.error("geometry.zone_table", message));
            }
            zones.push((cylinders as u32, spt as u32));
        }
        let total: u64 = zones.iter().map(|zone| u64::from(zone.0)).sum();
        if total > CYLINDERS_MAX {
            let message = format!("geometry.zone_table has {total} cylinders; at most {CYLINDERS_MAX}");
            return Err(fields.error("geometry.zone_table", message));
        }
        return Ok(zones);
    }
    let cylinders = fields.integer("geometry.cylinders", 1, CYLINDERS_MAX)?;
    let count = fields.integer("geometry.zones", 1, (ZONES_MAX as u64).min(cylinders))?;
    let outer = fields.number("geometry.sectors_per_track_outer", 1.0, 1_000_000.0)?;
    let inner = fields.number("geometry.sectors_per_track_inner", 1.0, outer)?;
    Ok((0..count)
        .map(|zone| {
            // Boundaries at equal parts, so that the zones cover all cylinders.
            let (from, to) = (cylinders * zone / count, cylinders * (zone + 1) / count);
            // The middle of the zone on the straight line from the outermost to the innermost track.
            let along = (zone as f64 + 0.5) / count as f64;
            ((to - from) as u32, ((outer + (inner - outer) * along + 0.5) as u32).max(1))
        })
        .collect())
}

/// The seek curve in `section`.
pub(in crate::device) fn read_seek(
    fields: &mut Fields,
    section: &str,
    cylinders: u32,
) -> Result<SeekCurve, SpecError> {
    let path = |key: &str| format!("{section}.{key}");
    match fields.choice(&path("curve"), &["lee", "hp", "table"])? {
        0 => {
            let min = fields.number(&path("min_ms"), 0.0, PART_MS_MAX)?;
            let mean = fields.number(&path("mean_ms"), 0.0, PART_MS_MAX)?;
            let max = fields.number(&path("max_ms"), 0.0, PART_MS_MAX)?;
            let (a, b, c) = SeekCurve::lee_from_times(min, mean, max, cylinders);
            // Rounding of a curve that is exactly on the border is not an error.
            if a < -1e-9 || b < -1e-9 {
                let (low, high) = ((2.0 * min + max) / 3.0, (7.0 * min + 8.0 * max) / 15.0);
                let message = format!(
                    "no curve rises from {min} ms to {max} ms with a mean of {mean} ms: \
                     {section}.mean_ms must be from {low:.3} to {high:.3}"
                );
                return Err(fields.error(&path("mean_ms"), message));
            }
            Ok(SeekCurve::Lee { a: a.max(0.0) * 1e6, b: b.max(0.0) * 1e6, c: c * 1e6 })
        }
        1 => {
            let single = match fields.has(&path("single_ms")) {
                true => Some(fields.number(&path("single_ms"), 0.0, PART_MS_MAX)? * 1e6),
                false => None,
            };
            Ok(SeekCurve::Hp {
                near: fields.number(&path("near_ms"), 0.0, PART_MS_MAX)? * 1e6,
                near_root: fields.number(&path("near_root_ms"), 0.0, PART_MS_MAX)? * 1e6,
                knee: fields.integer(&path("knee_cylinders"), 0, CYLINDERS_MAX)? as u32,
                far: fields.number(&path("far_ms"), 0.0, PART_MS_MAX)? * 1e6,
                far_slope: fields.number(&path("far_slope_ms"), 0.0, PART_MS_MAX)? * 1e6,
                single,
            })
        }
        _ => {
            let points = fields.pairs(&path("points"), CYLINDERS_MAX as f64, POINTS_MAX)?;
            if let Some(index) = points.windows(2).position(|pair| pair[1].0 <= pair[0].0) {
                let message = format!(
                    "{section}.points, entry {}: distances [cylinders, ms] must rise from point to point",
                    index + 2
                );
                return Err(fields.error(&path("points"), message));
            }
            if let Some(index) = points.iter().position(|point| point.1 > PART_MS_MAX) {
                let message = format!("{section}.points, entry {}: more than {PART_MS_MAX} ms", index + 1);
                return Err(fields.error(&path("points"), message));
            }
            Ok(SeekCurve::Table(points.into_iter().map(|(distance, ms)| (distance, ms * 1e6)).collect()))
        }
    }
}
