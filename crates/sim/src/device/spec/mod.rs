//! Device files: parameters of a modelled device as TOML, presets compiled in, files of users by path.
//!
//! ```
//! use fairlift_sim::device::DeviceSpec;
//! let spec = DeviceSpec::load("sata7200-2009").unwrap();
//! let device = spec.build(1);
//! assert_eq!(device.limits().queue_depth, 31);
//!
//! let slow = DeviceSpec::parse("based_on = \"sata7200-2009\"\n[firmware]\norder = \"fifo\"\n", "mine.toml").unwrap();
//! assert!(slow.describe().contains("fifo"));
//! ```

mod change;
mod error;
mod fields;
mod measured;
mod preset;

use std::fmt::Write as _;
use std::path::Path;

pub use error::SpecError;
pub(super) use fields::Fields;
pub use measured::Measured;
pub use preset::{PRESETS, Preset, preset};

pub(super) use error::{did_you_mean, shown};

use super::array::ArraySpec;
use super::cloud::CloudSpec;
use super::disk::DiskSpec;
use super::drive::DriveSpec;
use super::flash::FlashSpec;
use super::null::NullSpec;
use super::paced::Paced;
use super::timed::TimedSpec;
use super::{Device, Limits};
use crate::block::Volume;

/// Largest device file read, bytes; the presets are a few KiB.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Longest chain of `based_on`.
const BASES_MAX: usize = 8;
/// The models by the names files use.
const MODELS: [&str; 7] = ["disk", "drive", "flash", "cloud", "array", "timed", "null"];

/// A device, described: read and checked, ready to be built any number of times.
#[derive(Clone, Debug)]
pub struct DeviceSpec {
    name: String,
    description: String,
    model: &'static str,
    fields: Fields,
    parts: Parts,
    measured: Option<Measured>,
    /// How long everything takes beside what the parameters say, percent.
    pace_percent: u32,
    /// Several of it under a volume.
    volume: Option<Volume>,
}

#[derive(Clone, Debug)]
enum Parts {
    Disk(DiskSpec),
    Drive(Box<DriveSpec>),
    Flash(FlashSpec),
    Cloud(CloudSpec),
    Array(ArraySpec),
    Timed(TimedSpec),
    Null(NullSpec),
}

/// A word for a kind of device, for users who do not care which.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The word.
    pub word: &'static str,
    /// The preset that stands for it.
    pub preset: &'static str,
    /// What to know about it; empty if it is one of its kind.
    pub note: &'static str,
}

/// All of them.
pub const WORDS: [Word; 4] = [
    Word { word: "nvme", preset: "nvme-970evo", note: "" },
    Word { word: "sata-ssd", preset: "sata-ssd-870", note: "" },
    Word { word: "hdd", preset: "nearline4t", note: "" },
    Word { word: "cloud", preset: "cloud-gp3", note: "" },
];

/// The entry of [`WORDS`] called `word`.
pub fn word(word: &str) -> Option<&'static Word> {
    WORDS.iter().find(|entry| entry.word == word)
}

impl DeviceSpec {
    /// A preset by name or by one of [`WORDS`], or a file by path.
    ///
    /// # Errors
    /// When there is none (with the nearest preset's name), or the file is not a usable device file.
    pub fn load(name_or_path: &str) -> Result<DeviceSpec, SpecError> {
        let name_or_path = word(name_or_path).map_or(name_or_path, |word| word.preset);
        Self::from_fields(load_fields(name_or_path, 0)?, name_or_path)
    }

    /// A device file's text. `origin` is what errors and reports call it; a relative path in `based_on` starts at
    /// its folder.
    ///
    /// # Errors
    /// When the text is not TOML, misses a parameter, has one that is unknown or out of range.
    pub fn parse(text: &str, origin: &str) -> Result<DeviceSpec, SpecError> {
        Self::from_fields(based_fields(text, origin, 0)?, origin)
    }

    fn from_fields(mut fields: Fields, name: &str) -> Result<DeviceSpec, SpecError> {
        fields.has("based_on");
        let model = MODELS[fields.choice("model", &MODELS)?];
        let description = if fields.has("description") { fields.text("description")? } else { String::new() };
        let parts = match model {
            "disk" => Parts::Disk(DiskSpec::read(&mut fields)?),
            "drive" => Parts::Drive(Box::new(DriveSpec::read(&mut fields)?)),
            "flash" => Parts::Flash(FlashSpec::read(&mut fields)?),
            "cloud" => Parts::Cloud(CloudSpec::read(&mut fields)?),
            "array" => Parts::Array(ArraySpec::read(&mut fields)?),
            "timed" => Parts::Timed(TimedSpec::read(&mut fields)?),
            _ => Parts::Null(NullSpec::read(&mut fields)?),
        };
        // What a flash drive does depends on what was written before: its name always says so.
        let name = match &parts {
            Parts::Flash(flash) => format!("{name} ({})", flash.state()),
            _ => name.to_string(),
        };
        let measured = measured::read(&mut fields)?;
        fields.finish()?;
        Ok(DeviceSpec { name, description, model, fields, parts, measured, pace_percent: 100, volume: None })
    }

    /// The preset's name or the file's path; of a flash drive with the state it is in.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What was measured on the drive it models, if its file says.
    pub fn measured(&self) -> Option<&Measured> {
        self.measured.as_ref()
    }

    /// Its one-line description; may be empty for a file of a user's.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The model behind it: disk, drive, flash, cloud, array, timed or null.
    pub fn model(&self) -> &'static str {
        self.model
    }

    /// The limits the built device will have.
    pub fn limits(&self) -> &Limits {
        match &self.parts {
            Parts::Disk(spec) => spec.limits(),
            Parts::Drive(spec) => spec.limits(),
            Parts::Flash(spec) => spec.limits(),
            Parts::Cloud(spec) => spec.limits(),
            Parts::Array(spec) => spec.limits(),
            Parts::Timed(spec) => spec.limits(),
            Parts::Null(spec) => spec.limits(),
        }
    }

    /// The same, but everything takes `percent` of its time.
    #[must_use]
    pub fn paced(&self, percent: u32) -> DeviceSpec {
        DeviceSpec { pace_percent: percent, ..self.clone() }
    }

    /// Several of it under this volume, each with a request queue of its own; `None`: one by itself.
    ///
    /// # Errors
    /// When one is smaller than a stripe: a sentence that says so.
    pub fn under(&self, volume: Option<Volume>) -> Result<DeviceSpec, String> {
        if let Some(volume) = volume.filter(|volume| volume.limits(self.limits()).sectors == 0) {
            let (kib, disk) = (volume.stripe_sectors / 2, self.limits().sectors / 2);
            return Err(format!("stripe_kib is {kib}: more than {} holds ({disk} KiB)", self.name));
        }
        Ok(DeviceSpec { volume, ..self.clone() })
    }

    /// The volume it is a disk of, if it is.
    pub fn volume(&self) -> Option<Volume> {
        self.volume
    }

    /// The device, of a volume one of its disks, idle and at rest. Only `seed` decides its random service times.
    pub fn build(&self, seed: u64) -> Box<dyn Device + Send> {
        let device = self.build_as_described(seed);
        if self.pace_percent == 100 { device } else { Box::new(Paced::new(device, self.pace_percent)) }
    }

    fn build_as_described(&self, seed: u64) -> Box<dyn Device + Send> {
        match &self.parts {
            Parts::Disk(spec) => Box::new(spec.build(seed)),
            Parts::Drive(spec) => Box::new(spec.build()),
            Parts::Flash(spec) => Box::new(spec.build(seed)),
            Parts::Cloud(spec) => Box::new(spec.build(seed)),
            Parts::Array(spec) => Box::new(spec.build(seed)),
            Parts::Timed(spec) => Box::new(spec.build()),
            Parts::Null(spec) => Box::new(spec.build()),
        }
    }

    /// The disk's geometry; `None` for the other models.
    pub fn disk_geometry(&self) -> Option<&super::disk::Geometry> {
        match &self.parts {
            Parts::Disk(spec) => Some(spec.geometry()),
            _ => None,
        }
    }

    /// What the parameters amount to, a name and a text with unit each.
    fn derived(&self) -> Vec<(&'static str, String)> {
        match &self.parts {
            Parts::Disk(spec) => spec.derived(),
            Parts::Drive(spec) => spec.derived(),
            Parts::Flash(spec) => spec.derived(),
            Parts::Cloud(_) | Parts::Array(_) | Parts::Timed(_) | Parts::Null(_) => Vec::new(),
        }
    }

    /// All parameters with units, for people.
    pub fn describe(&self) -> String {
        let limits = self.limits();
        let mut out = format!("{} (model: {})\n", self.name, self.model);
        if !self.description.is_empty() {
            let _ = writeln!(out, "{}", self.description);
        }
        let gb = limits.sectors as f64 * 512.0 / 1e9;
        let _ = writeln!(out, "  {:<28} {gb:.1} GB", "size");
        for (name, value) in self.derived() {
            let _ = writeln!(out, "  {name:<28} {value}");
        }
        out.push_str(&self.fields.dump());
        out
    }
}

/// What a device tells the host about itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Facts {
    pub(super) rotational: bool,
    pub(super) write_cache: bool,
    pub(super) fua: bool,
    /// SCSI and ATA.
    pub(super) budget: bool,
}

/// The limits every model's file gives. `facts` are what follows from the model; the file may say otherwise: a disk
/// behind a hypervisor's throttle looks rotational and has a write cache, whatever lets its commands through.
pub(super) fn limits(fields: &mut Fields, sectors: u64, facts: Facts) -> Result<Limits, SpecError> {
    let mut fact = |path: &str, model: bool| match fields.has(path) {
        true => fields.boolean(path),
        false => Ok(model),
    };
    let rotational = fact("limits.rotational", facts.rotational)?;
    let write_cache = fact("limits.write_cache", facts.write_cache)?;
    let fua = fact("limits.fua", facts.fua)?;
    let budget = fact("limits.budget", facts.budget)?;
    Ok(Limits {
        sectors,
        queue_depth: fields.integer("limits.queue_depth", 1, 65_536)? as u32,
        rotational,
        write_cache,
        fua,
        budget,
        max_sectors: fields.integer("limits.max_kib", 4, 65_536)? as u32 * 2,
        max_segments: fields.integer("limits.max_segments", 1, 65_535)? as u16,
    })
}

/// A device file the model itself refers to (the spindles of an array).
pub(super) fn load_disk(name: &str, fields: &Fields, path: &str) -> Result<DiskSpec, SpecError> {
    let spec = DeviceSpec::load(name)
        .map_err(|error| fields.error(path, format!("{path} \"{}\": {error}", shown(name))))?;
    match spec.parts {
        Parts::Disk(disk) => Ok(disk),
        _ => Err(fields.error(path, format!("{path} must name a disk, and \"{}\" is none", shown(name)))),
    }
}

fn load_fields(name_or_path: &str, depth: usize) -> Result<Fields, SpecError> {
    if let Some(preset) = preset(name_or_path) {
        return based_fields(preset.text, preset.name, depth);
    }
    let whole = |message: String| SpecError { origin: shown(name_or_path), line: None, message };
    let looks_like_path = name_or_path.contains(['/', '\\']) || name_or_path.ends_with(".toml");
    let path = Path::new(name_or_path);
    let data = match std::fs::metadata(path) {
        Ok(data) => data,
        Err(_) if !looks_like_path => {
            let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            let words: Vec<&str> = WORDS.iter().map(|word| word.word).collect();
            let near = did_you_mean(name_or_path, names.iter().chain(&words).copied());
            return Err(whole(format!(
                "no device of that name and no such file{near} (words: {}; presets: {})",
                words.join(", "),
                names.join(", ")
            )));
        }
        Err(error) => return Err(whole(format!("cannot read: {error}"))),
    };
    if !data.is_file() {
        return Err(whole("not a file".to_string()));
    }
    if data.len() > FILE_BYTES_MAX {
        return Err(whole(format!(
            "{} bytes are too many for a device file (at most {FILE_BYTES_MAX})",
            data.len()
        )));
    }
    let bytes = std::fs::read(path).map_err(|error| whole(format!("cannot read: {error}")))?;
    if [&b"\xef\xbb\xbf"[..], b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| bytes.starts_with(mark)) {
        return Err(whole(
            "it begins with a byte order mark (BOM): save it as UTF-8 without one".to_string(),
        ));
    }
    let text = String::from_utf8(bytes).map_err(|_| whole("not a text file (not UTF-8)".to_string()))?;
    based_fields(&text, name_or_path, depth)
}

fn based_fields(text: &str, origin: &str, depth: usize) -> Result<Fields, SpecError> {
    if text.len() as u64 > FILE_BYTES_MAX {
        let message =
            format!("{} bytes are too many for a device file (at most {FILE_BYTES_MAX})", text.len());
        return Err(SpecError { origin: shown(origin), line: None, message });
    }
    let mut fields = Fields::parse(text, origin)?;
    if !fields.has("based_on") {
        return Ok(fields);
    }
    let base = fields.text("based_on")?;
    if depth >= BASES_MAX {
        return Err(fields.error("based_on", format!("more than {BASES_MAX} files based on one another")));
    }
    let beside = Path::new(origin).parent().map(|folder| folder.join(&base));
    let found = match beside {
        Some(beside) if preset(&base).is_none() && beside.is_file() => beside.to_string_lossy().into_owned(),
        _ => base.clone(),
    };
    match load_fields(&found, depth + 1) {
        Ok(base) => Ok(fields.over(base)),
        // A fault inside the base has its own place; a base that is not there has none but ours.
        Err(error) if error.line.is_some() => Err(error),
        Err(error) => {
            Err(fields.error("based_on", format!("based_on \"{}\": {}", shown(&base), error.message)))
        }
    }
}
