//! A measured drive's parameters, read from its device file and checked.

use super::layout::{Layout, Sparing, Surfaces, Zone};
use super::media::{Arrival, Media};
use super::segments::Segments;
use super::{After, Drive, ExtraDisconnect, Overheads, ReadAhead, Settings, WriteCache};
use crate::device::Limits;
use crate::device::disk::{Rotation, read_seek};
use crate::device::spec::{Facts, Fields, SpecError, limits};

/// A measured drive, described.
#[derive(Clone, Debug)]
pub(crate) struct DriveSpec {
    limits: Limits,
    settings: Settings,
    media: Media,
    segments: Segments,
    rpm: f64,
}

const CYLINDERS_MAX: u64 = 10_000_000;
const ZONES_MAX: usize = 1024;
const DEFECTS_MAX: usize = 100_000;
/// Longest time a part of a drive may take, ms.
const PART_MS_MAX: f64 = 10_000.0;
const SPARING_WORDS: [&str; 10] = [
    "none",
    "tracks",
    "sectors-per-cylinder",
    "sectors-per-track",
    "sectors-per-cylinder-slip-to-end",
    "sectors-per-cylinder-front",
    "sectors-per-cylinder-front-slip-to-end",
    "sectors-per-range",
    "sectors-per-zone",
    "sectors-per-zone-slip-to-end",
];

impl DriveSpec {
    pub(crate) fn read(fields: &mut Fields) -> Result<DriveSpec, SpecError> {
        let rpm = fields.number("rpm", 60.0, 1_000_000.0)?;
        let layout = read_layout(fields)?;
        let media = Media {
            rotation: Rotation::from_rpm(rpm),
            seek: read_seek(fields, "seek", layout.cylinders())?,
            write_settle_ns: (fields.number("write_settle_ms", -PART_MS_MAX, PART_MS_MAX)? * 1e6).round()
                as i64,
            head_switch_ns: ms(fields, "head_switch_ms")?,
            layout,
        };
        let settings = read_settings(fields)?;
        let count = fields.integer("buffer.segments", 1, 4096)? as usize;
        let sectors = fields.integer("buffer.segment_sectors", 1, 1 << 21)?;
        let segments = Segments::new(count, sectors, fields.boolean("buffer.own_write_segment")?);
        let facts = Facts {
            rotational: true,
            write_cache: settings.write_cache != WriteCache::Off,
            fua: false,
            budget: true,
        };
        let limits = limits(fields, media.layout.sectors(), facts)?;
        Ok(DriveSpec { limits, settings, media, segments, rpm })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn build(&self) -> Drive {
        Drive::new(self.limits, self.settings.clone(), self.media.clone(), self.segments.clone())
    }

    /// What the parameters amount to.
    pub(crate) fn derived(&self) -> Vec<(&'static str, String)> {
        let layout = &self.media.layout;
        let rate = |zone: Option<&Zone>| {
            zone.map_or(0.0, |zone| f64::from(zone.sectors_per_track) * 512.0 * self.rpm / 60.0 / 1e6)
        };
        let zones = layout.zones();
        vec![
            ("sectors", layout.sectors().to_string()),
            ("revolution", format!("{:.3} ms", self.media.rotation.revolution_ns() as f64 / 1e6)),
            ("longest seek", format!("{:.2} ms", self.media.seek.ns(layout.cylinders() - 1) as f64 / 1e6)),
            (
                "raw media rate",
                format!(
                    "{:.1} outer, {:.1} inner MB/s ({} zones)",
                    rate(zones.first()),
                    rate(zones.last()),
                    zones.len()
                ),
            ),
        ]
    }
}

fn ms(fields: &mut Fields, path: &str) -> Result<u64, SpecError> {
    Ok((fields.number(path, 0.0, PART_MS_MAX)? * 1e6).round() as u64)
}

fn read_layout(fields: &mut Fields) -> Result<Layout, SpecError> {
    let heads = fields.integer("geometry.heads", 1, 256)? as u32;
    let surfaces = match fields.choice("geometry.surfaces", &["first", "turning", "turning-overall"])? {
        0 => Surfaces::First,
        1 => Surfaces::Turning,
        _ => Surfaces::TurningOverall,
    };
    let sparing = read_sparing(fields)?;
    let mut zones = read_zones(fields)?;
    read_defects(fields, &mut zones)?;
    for (number, zone) in zones.iter_mut().enumerate() {
        let tracks = u64::from(zone.last_cylinder - zone.first_cylinder + 1) * u64::from(heads);
        let places = match sparing {
            Sparing::Tracks => tracks,
            _ => tracks * u64::from(zone.sectors_per_track),
        };
        zone.slips.sort_unstable();
        zone.slips.dedup();
        let moved = zone.remaps.iter().flat_map(|&(bad, good)| [bad, good]);
        if let Some(beyond) = zone.slips.iter().copied().chain(moved).find(|&place| place >= places) {
            let message = format!("zone {} has {places} places, and {beyond} is none of them", number + 1);
            let path = if zone.slips.contains(&beyond) { "geometry.slips" } else { "geometry.remaps" };
            return Err(fields.error(path, format!("{path}: {message}")));
        }
    }
    let layout = Layout::new(heads, surfaces, sparing, zones);
    if layout.sectors() == 0 {
        return Err(fields.error("geometry.zones", "geometry.zones: nothing is left for data"));
    }
    Ok(layout)
}

fn read_sparing(fields: &mut Fields) -> Result<Sparing, SpecError> {
    Ok(match fields.choice("geometry.sparing", &SPARING_WORDS)? {
        0 => Sparing::None,
        1 => Sparing::Tracks,
        2 => Sparing::SectorsPerCylinder { front: false, slip_to_end: false },
        3 => Sparing::SectorsPerTrack,
        4 => Sparing::SectorsPerCylinder { front: false, slip_to_end: true },
        5 => Sparing::SectorsPerCylinder { front: true, slip_to_end: false },
        6 => Sparing::SectorsPerCylinder { front: true, slip_to_end: true },
        7 => Sparing::SectorsPerRange {
            cylinders: fields.integer("geometry.range_cylinders", 1, CYLINDERS_MAX)? as u32,
        },
        8 => Sparing::SectorsPerZone { slip_to_end: false },
        _ => Sparing::SectorsPerZone { slip_to_end: true },
    })
}

/// Rows of first and last cylinder, sectors per track, where its first sector starts, track skew, cylinder skew (these
/// three in sectors), reserved sectors at its front, spares.
fn read_zones(fields: &mut Fields) -> Result<Vec<Zone>, SpecError> {
    let rows = fields.rows::<8>("geometry.zones", (1u64 << 40) as f64, ZONES_MAX)?;
    let mut zones: Vec<Zone> = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        let [first, last, per_track, at, track_skew, cylinder_skew, reserved, spares] = *row;
        let fault = |what: &str| format!("geometry.zones, entry {}: {what}", index + 1);
        let whole = [first, last, per_track, reserved, spares].iter().all(|number| number.fract() == 0.0);
        let wrong = if !whole {
            "cylinders, sectors and spares must be whole numbers"
        } else if first > last || last >= CYLINDERS_MAX as f64 {
            "[first, last] cylinder must rise, up to 9999999"
        } else if zones.last().is_some_and(|before| first <= f64::from(before.last_cylinder)) {
            "cylinders must lie behind those of the entry before"
        } else if !(1.0..=1_000_000.0).contains(&per_track) {
            "sectors per track must be from 1 to 1000000"
        } else if [at, track_skew, cylinder_skew].iter().any(|&sectors| sectors > per_track * 1000.0) {
            "skews are in sectors, and these are more than a thousand turns"
        } else {
            ""
        };
        if !wrong.is_empty() {
            return Err(fields.error("geometry.zones", fault(wrong)));
        }
        let parts = |sectors: f64| (sectors * 65_536.0).round() as u64;
        zones.push(Zone {
            first_cylinder: first as u32,
            last_cylinder: last as u32,
            sectors_per_track: per_track as u32,
            first_sector_at: parts(at),
            track_skew: parts(track_skew),
            cylinder_skew: parts(cylinder_skew),
            reserved: reserved as u64,
            spares: spares as u64,
            slips: Vec::new(),
            remaps: Vec::new(),
        });
    }
    Ok(zones)
}

/// Bad places, by number of the zone from 1 on.
fn read_defects(fields: &mut Fields, zones: &mut [Zone]) -> Result<(), SpecError> {
    let number_max = (1u64 << 40) as f64;
    let slips = match fields.has("geometry.slips") {
        true => fields.rows::<2>("geometry.slips", number_max, DEFECTS_MAX)?,
        false => Vec::new(),
    };
    let remaps = match fields.has("geometry.remaps") {
        true => fields.rows::<3>("geometry.remaps", number_max, DEFECTS_MAX)?,
        false => Vec::new(),
    };
    let count = zones.len();
    let index = |number: f64| (number >= 1.0 && number <= count as f64).then(|| number as usize - 1);
    for &[zone, place] in &slips {
        let Some(index) = index(zone) else {
            let message = format!("geometry.slips: there is no zone {zone}; zones are 1 to {count}");
            return Err(fields.error("geometry.slips", message));
        };
        zones[index].slips.push(place as u64);
    }
    for &[zone, bad, good] in &remaps {
        let Some(index) = index(zone) else {
            let message = format!("geometry.remaps: there is no zone {zone}; zones are 1 to {count}");
            return Err(fields.error("geometry.remaps", message));
        };
        if bad != good {
            zones[index].remaps.push((bad as u64, good as u64));
        }
    }
    Ok(())
}

fn read_settings(fields: &mut Fields) -> Result<Settings, SpecError> {
    let arrival = |any: bool| if any { Arrival::Any } else { Arrival::InOrder };
    let read_ahead = ["none", "track", "cylinder", "segment", "next-track"];
    let write_cache = ["off", "on"];
    Ok(Settings {
        overheads: read_overheads(fields)?,
        read_block_ns: ms(fields, "bus.read_block_ms")?,
        write_block_ns: ms(fields, "bus.write_block_ms")?,
        read_ahead: match fields.choice("read_ahead.until", &read_ahead)? {
            0 => ReadAhead::None,
            1 => ReadAhead::Track,
            2 => ReadAhead::Cylinder,
            3 => ReadAhead::Segment,
            _ => ReadAhead::NextTrack,
        },
        read_ahead_max: fields.integer("read_ahead.sectors_max", 0, 1 << 30)?,
        read_ahead_over_request: fields.boolean("read_ahead.over_request")?,
        drop_requested: fields.boolean("buffer.drop_requested")?,
        read_ahead_after_hit: fields.boolean("read_ahead.after_hit")?,
        stop_in_sector: fields.boolean("read_ahead.stop_in_sector")?,
        almost_hits: fields.boolean("buffer.almost_hits")?,
        free_reads: fields.boolean("buffer.free_reads")?,
        read_arrival: arrival(fields.boolean("buffer.read_on_arrival")?),
        write_arrival: arrival(fields.boolean("buffer.write_on_arrival")?),
        write_cache: match fields.choice("buffer.write_cache", &write_cache)? {
            0 => WriteCache::Off,
            _ => WriteCache::On,
        },
        combine_writes: fields.boolean("buffer.combine_writes")?,
        reads_written_data: fields.boolean("buffer.reads_written_data")?,
        caching: fields.boolean("buffer.caching")?,
        high_water: fields.number("bus.high_water", 0.0, 1.0)?,
        high_water_of_request: fields.boolean("bus.high_water_of_request")?,
        partial_at_once: fields.boolean("bus.partial_at_once")?,
    })
}

fn read_overheads(fields: &mut Fields) -> Result<Overheads, SpecError> {
    let mut after = |what: &str| -> Result<After, SpecError> {
        Ok(After {
            read_ns: ms(fields, &format!("overhead.{what}_after_read_ms"))?,
            write_ns: ms(fields, &format!("overhead.{what}_after_write_ms"))?,
        })
    };
    let (read_hit, read_miss) = (after("read_hit")?, after("read_miss")?);
    let (write_hit, write_miss) = (after("write_hit")?, after("write_miss")?);
    let extra = match fields.has("extra_disconnect.command_ms") {
        true => Some(ExtraDisconnect {
            command_ns: ms(fields, "extra_disconnect.command_ms")?,
            disconnect_ns: ms(fields, "extra_disconnect.disconnect_ms")?,
            pause_ns: ms(fields, "extra_disconnect.pause_ms")?,
            seek_delay_ns: ms(fields, "extra_disconnect.seek_delay_ms")?,
        }),
        false => None,
    };
    Ok(Overheads {
        read_hit,
        read_miss,
        write_hit,
        write_miss,
        read_complete_ns: ms(fields, "overhead.read_complete_ms")?,
        write_complete_ns: ms(fields, "overhead.write_complete_ms")?,
        prepare_ns: ms(fields, "overhead.prepare_ms")?,
        reselect_ns: ms(fields, "overhead.reselect_ms")?,
        reselect_again_ns: ms(fields, "overhead.reselect_again_ms")?,
        write_disconnect_ns: ms(fields, "overhead.write_disconnect_ms")?,
        write_seek_min_ns: ms(fields, "overhead.write_seek_min_ms")?,
        extra,
    })
}
