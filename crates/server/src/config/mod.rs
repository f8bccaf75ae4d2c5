//! What to serve: a configuration file, or what the command line says instead. `docs/serve.md` lists the keys.

mod file;

use std::fmt;
use std::path::PathBuf;

use fairlift_core::group::limit::BURST_NS;
use fairlift_sim::device::DeviceSpec;
use fairlift_sim::kernel::version;
use fairlift_sim::scheduler::{SchedulerError, SchedulerSpec};

use crate::back::BackEnd;
use crate::back::file::{FileBack, Options};
use crate::back::model::Model;
use crate::back::null::Null;
use crate::back::ram::Ram;
use crate::exports::ExportOptions;
use crate::front::nbd::Bounds;
use crate::net::Address;
use crate::tls::TlsOptions;

/// The elevator of a device for which none is named.
pub const ELEVATOR: &str = "fl-deadline";

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// File and line, or the option of the command line.
    pub place: String,
    /// What is wrong, with what is allowed.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for ConfigError {}

/// Where a device's data is.
#[derive(Clone, Debug)]
pub enum BackConfig {
    /// A file or block device.
    File {
        /// Its path.
        path: PathBuf,
        /// How it is served.
        options: Options,
    },
    /// Memory of so many bytes.
    Ram(u64),
    /// Nowhere: so many bytes of zeroes.
    Null(u64),
    /// Memory with the timing of a modelled device.
    Model {
        /// The device.
        spec: Box<DeviceSpec>,
        /// Its first so many bytes; `None`: all.
        bytes: Option<u64>,
        /// Of its random service times.
        seed: u64,
    },
}

impl BackConfig {
    /// Open it.
    ///
    /// # Errors
    /// A sentence.
    pub fn open(&self) -> Result<Box<dyn BackEnd>, String> {
        Ok(match self {
            BackConfig::File { path, options } => {
                let back = FileBack::open(path, *options);
                Box::new(back.map_err(|error| format!("cannot open '{}': {error}", path.display()))?)
            }
            BackConfig::Ram(bytes) => Box::new(Ram::new(*bytes)),
            BackConfig::Null(bytes) => Box::new(Null::new(*bytes)),
            BackConfig::Model { spec, bytes, seed } => {
                let model = Model::new(spec, *bytes, *seed);
                let smaller = |size| format!("{} has {size} bytes, and at least 512 are served", spec.name());
                Box::new(model.map_err(smaller)?)
            }
        })
    }
}

/// A device to serve.
#[derive(Clone, Debug)]
pub struct DeviceConfig {
    /// Its name.
    pub name: String,
    /// Where its data is.
    pub back: BackConfig,
    /// Its elevator.
    pub elevator: SchedulerSpec,
    /// Where it is described, for errors.
    pub place: String,
}

/// An export to offer.
#[derive(Clone, Debug)]
pub struct ExportConfig {
    /// Its device's name.
    pub device: String,
    /// All else.
    pub options: ExportOptions,
    /// Where it is described, for errors.
    pub place: String,
}

/// All there is to serve.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Where clients connect.
    pub listen: Vec<Address>,
    /// Where `fairlift ctl` connects.
    pub control: Option<Address>,
    /// Where Prometheus connects.
    pub metrics: Option<Address>,
    /// What a connection may have in flight.
    pub bounds: Bounds,
    /// Certificates, and where they are described, for errors; `None`: no TLS.
    pub tls: Option<(TlsOptions, String)>,
    /// Devices.
    pub devices: Vec<DeviceConfig>,
    /// Exports.
    pub exports: Vec<ExportConfig>,
}

impl Config {
    /// Read a configuration; `origin` is what errors call it.
    ///
    /// # Errors
    /// With file, line and word.
    pub fn parse(text: &str, origin: &str) -> Result<Config, ConfigError> {
        file::parse(text, origin)
    }
}

/// The elevator called so, for a device of a kernel of today.
///
/// # Errors
/// What the lab says of a scheduler that is wrong.
pub fn elevator(text: &str) -> Result<SchedulerSpec, SchedulerError> {
    let spec = SchedulerSpec::parse_for(text, version::TODAY)?;
    match spec.controller() {
        Some(_) => Err(SchedulerError {
            word: text.to_owned(),
            message: format!("'{text}': controllers above a queue are the lab's alone"),
            allowed: String::new(),
            nearest: None,
        }),
        None => Ok(spec),
    }
}

/// A size in bytes: digits with k, M, G or T, powers of 1024.
///
/// # Errors
/// What is allowed.
pub fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'm' | 'M')) => (&text[..at], 20),
        Some((at, 'g' | 'G')) => (&text[..at], 30),
        Some((at, 't' | 'T')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    bytes
        .filter(|bytes| (1..=SIZE_MAX).contains(bytes))
        .ok_or_else(|| format!("'{text}' is no size (allowed: up to 1024T, such as 20G or 500M)"))
}

/// A time in nanoseconds: digits with us, ms or s.
///
/// # Errors
/// What is allowed.
pub fn duration(text: &str) -> Result<u64, String> {
    let units = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    let found =
        units.iter().find_map(|(unit, ns)| Some((text.strip_suffix(unit)?.parse::<u64>().ok()?, *ns)));
    let ns = found.and_then(|(number, ns)| number.checked_mul(ns));
    ns.filter(|ns| (1..=3_600_000_000_000).contains(ns))
        .ok_or_else(|| format!("'{text}' is no time (allowed: up to 3600s, such as 500us, 10ms or 2s)"))
}

/// A latency goal in nanoseconds, as in the lab: `0` is none.
///
/// # Errors
/// What is allowed.
pub fn goal(text: &str) -> Result<u64, String> {
    if text == "0" {
        Ok(0)
    } else {
        duration(text).map_err(|error| error.replace("allowed: ", "allowed: 0, "))
    }
}

/// How much unused time of limits is kept, in nanoseconds.
///
/// # Errors
/// What is allowed.
pub fn burst(text: &str) -> Result<u64, String> {
    duration(text)
        .ok()
        .filter(|ns| *ns >= BURST_NS)
        .ok_or_else(|| format!("'{text}' is no burst (allowed: 20ms to 3600s, such as 500ms or 2s)"))
}

/// Largest size: sectors of it are counted in the core without a thought of overflow.
const SIZE_MAX: u64 = 1 << 50;
