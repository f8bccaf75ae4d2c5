//! Configuration files: TOML to [`Config`], with errors that name file, line and word.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;

use fairlift_sim::device::DeviceSpec;
use fairlift_sim::group::GroupClass;
use fairlift_sim::group::limits::Max;
use fairlift_sim::scheduler::nearest;
use serde::Deserialize;
use toml::Spanned;

use super::{
    BackConfig, Config, ConfigError, DeviceConfig, ELEVATOR, ExportConfig, burst, elevator, goal, size,
};
use crate::back::file::{DEPTH, Engine, Options};
use crate::device::Share;
use crate::exports::{ExportOptions, UblkOptions, VhostOptions};
use crate::front::nbd::Bounds;
use crate::front::vhost::{QUEUES_MAX, Trust};
use crate::net::Address;
use crate::tls::{Required, TlsOptions};

/// Most threads of a file, and so requests at a time.
const DEPTH_MAX: u32 = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: Option<Spanned<Vec<Spanned<String>>>>,
    control: Option<Spanned<String>>,
    metrics: Option<Spanned<String>>,
    connection: Option<Spanned<ConnectionPart>>,
    tls: Option<Spanned<TlsPart>>,
    #[serde(default)]
    device: Vec<Spanned<DevicePart>>,
    #[serde(default)]
    export: Vec<Spanned<ExportPart>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConnectionPart {
    requests: Option<usize>,
    bytes: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TlsPart {
    certificate: PathBuf,
    key: PathBuf,
    clients: Option<PathBuf>,
    required: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DevicePart {
    name: String,
    file: Option<String>,
    ram: Option<Spanned<String>>,
    null: Option<Spanned<String>>,
    model: Option<Spanned<String>>,
    size: Option<Spanned<String>>,
    seed: Option<u64>,
    elevator: Option<Spanned<String>>,
    depth: Option<Spanned<u32>>,
    #[serde(default)]
    rotational: bool,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    direct: bool,
    engine: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportPart {
    name: Spanned<String>,
    device: Spanned<String>,
    #[serde(default)]
    description: String,
    offset: Option<Spanned<String>>,
    size: Option<Spanned<String>>,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    per_connection: bool,
    weight: Option<Spanned<u32>>,
    #[serde(default)]
    class: GroupClass,
    max: Option<Spanned<String>>,
    burst: Option<Spanned<String>>,
    reserve: Option<Spanned<u32>>,
    goal: Option<Spanned<String>>,
    vhost_user: Option<PathBuf>,
    ublk: Option<Spanned<String>>,
    ublk_recovery: Option<Spanned<bool>>,
    queues: Option<Spanned<u16>>,
    guest_memory: Option<Spanned<String>>,
}

/// The text, for the lines of errors.
struct Source<'a> {
    text: &'a str,
    origin: &'a str,
}

impl Source<'_> {
    fn place(&self, span: &Range<usize>) -> String {
        let before = self.text.get(..span.start).unwrap_or_default();
        format!("{}:{}", self.origin, 1 + before.matches('\n').count())
    }

    fn error(&self, span: &Range<usize>, message: impl Into<String>) -> ConfigError {
        ConfigError { place: self.place(span), message: message.into() }
    }

    /// The value of a key as `read` understands it.
    fn read<T>(
        &self,
        value: &Spanned<String>,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<T, ConfigError> {
        read(value.get_ref()).map_err(|message| self.error(&value.span(), message))
    }

    fn read_some<T>(
        &self,
        value: Option<&Spanned<String>>,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        value.map(|value| self.read(value, read)).transpose()
    }
}

pub(super) fn parse(text: &str, origin: &str) -> Result<Config, ConfigError> {
    let source = Source { text, origin };
    let file: File = toml::from_str(text).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        source.error(&span, with_nearest(error.message()))
    })?;
    let mut config = Config::default();
    for address in file.listen.iter().flat_map(Spanned::get_ref) {
        config.listen.push(source.read(address, Address::parse)?);
    }
    let is_disk = |part: &ExportPart| part.vhost_user.is_some() || part.ublk.is_some();
    let for_machines = file.export.iter().any(|part| is_disk(part.get_ref()));
    if config.listen.is_empty() && !for_machines {
        let span = file.listen.as_ref().map_or(0..0, Spanned::span);
        return Err(source.error(&span, "listen names no address (unix:PATH, tcp:HOST:PORT)"));
    }
    config.control = source.read_some(file.control.as_ref(), Address::parse)?;
    config.metrics = source.read_some(file.metrics.as_ref(), Address::parse)?;
    if let Some(part) = &file.connection {
        config.bounds = bounds(part.get_ref()).map_err(|message| source.error(&part.span(), message))?;
    }
    config.tls = file.tls.as_ref().map(|part| tls(&source, part)).transpose()?;
    let mut names = BTreeSet::new();
    for part in &file.device {
        if !names.insert(part.get_ref().name.clone()) {
            let message = format!("there is a device '{}' already", part.get_ref().name);
            return Err(source.error(&part.span(), message));
        }
        config.devices.push(device(&source, part)?);
    }
    for part in &file.export {
        config.exports.push(export(&source, part, &names)?);
    }
    if config.exports.is_empty() {
        return Err(source.error(&(0..0), "there is no [[export]]: nothing to serve"));
    }
    Ok(config)
}

/// The message of the TOML reader about an unknown key, with the nearest of those it expected.
fn with_nearest(message: &str) -> String {
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let near = match (message.starts_with("unknown"), words.split_first()) {
        (true, Some((wrong, allowed))) => nearest(wrong, allowed.iter().copied()),
        _ => None,
    };
    match near {
        Some(near) => format!("{message}; did you mean '{near}'?"),
        None => message.to_owned(),
    }
}

fn bounds(part: &ConnectionPart) -> Result<Bounds, String> {
    let default = Bounds::default();
    let requests = part.requests.unwrap_or(default.requests);
    if !(1..=65_536).contains(&requests) {
        return Err(format!("requests = {requests} is not from 1 to 65536"));
    }
    Ok(Bounds { requests, bytes: part.bytes.as_deref().map_or(Ok(default.bytes), size)? })
}

fn tls(source: &Source<'_>, part: &Spanned<TlsPart>) -> Result<(TlsOptions, String), ConfigError> {
    let (place, part) = (source.place(&part.span()), part.get_ref());
    let options = TlsOptions {
        certificate: part.certificate.clone(),
        key: part.key.clone(),
        clients: part.clients.clone(),
        required: source.read_some(part.required.as_ref(), Required::parse)?.unwrap_or_default(),
    };
    Ok((options, place))
}

fn device(source: &Source<'_>, part: &Spanned<DevicePart>) -> Result<DeviceConfig, ConfigError> {
    let (whole, part) = (part.span(), part.get_ref());
    let bytes = source.read_some(part.size.as_ref(), size)?;
    let depth = part.depth.as_ref().map_or(DEPTH, |depth| *depth.get_ref());
    if !(1..=DEPTH_MAX).contains(&depth) {
        let span = part.depth.as_ref().map_or(whole, Spanned::span);
        return Err(source.error(&span, format!("depth = {depth} is not from 1 to {DEPTH_MAX}")));
    }
    let engine = source.read_some(part.engine.as_ref(), Engine::parse)?.unwrap_or_default();
    let (read_only, rotational, direct) = (part.read_only, part.rotational, part.direct);
    let options = Options { read_only, depth, rotational, direct, engine };
    let back = match (&part.file, &part.ram, &part.null, &part.model) {
        (Some(path), None, None, None) => BackConfig::File { path: path.into(), options },
        (None, Some(bytes), None, None) => BackConfig::Ram(source.read(bytes, size)?),
        (None, None, Some(bytes), None) => BackConfig::Null(source.read(bytes, size)?),
        (None, None, None, Some(model)) => {
            let spec =
                source.read(model, |name| DeviceSpec::load(name).map_err(|error| error.to_string()))?;
            BackConfig::Model { spec: Box::new(spec), bytes, seed: part.seed.unwrap_or(1) }
        }
        _ => {
            let message = format!("device '{}' needs one of file, ram, null, model", part.name);
            return Err(source.error(&whole, message));
        }
    };
    let of_model = matches!(back, BackConfig::Model { .. });
    let of_file = matches!(back, BackConfig::File { .. });
    let misplaced = [
        ("size", part.size.is_some() && !of_model),
        ("seed", part.seed.is_some() && !of_model),
        ("depth", part.depth.is_some() && !of_file),
        ("rotational", part.rotational && !of_file),
        ("read_only", part.read_only && !of_file),
        ("direct", part.direct && !of_file),
        ("engine", part.engine.is_some() && !of_file),
    ];
    if let Some((key, _)) = misplaced.iter().find(|(_, wrong)| *wrong) {
        let whose = if ["size", "seed"].contains(key) { "model" } else { "file" };
        return Err(source.error(&whole, format!("{key} goes with {whose} only")));
    }
    let elevator = match &part.elevator {
        Some(text) => source.read(text, |text| elevator(text).map_err(|error| error.to_string()))?,
        None => elevator(ELEVATOR).map_err(|error| source.error(&whole, error.to_string()))?,
    };
    Ok(DeviceConfig { name: part.name.clone(), back, elevator, place: source.place(&whole) })
}

/// Queues of the export's disk.
fn queues(source: &Source<'_>, part: &ExportPart) -> Result<u16, ConfigError> {
    let Some(queues) = &part.queues else { return Ok(1) };
    let wrong = match *queues.get_ref() {
        _ if part.vhost_user.is_none() && part.ublk.is_none() => {
            "queues goes with vhost_user or ublk only".to_owned()
        }
        number if !(1..=QUEUES_MAX).contains(&number) => {
            format!("queues = {number} is not from 1 to {QUEUES_MAX}")
        }
        number => return Ok(number),
    };
    Err(source.error(&queues.span(), wrong))
}

/// How virtual machines reach an export.
fn vhost(source: &Source<'_>, part: &ExportPart, queues: u16) -> Result<Option<VhostOptions>, ConfigError> {
    let memory = source.read_some(part.guest_memory.as_ref(), Trust::parse)?.unwrap_or_default();
    if let (None, Some(memory)) = (&part.vhost_user, &part.guest_memory) {
        return Err(source.error(&memory.span(), "guest_memory goes with vhost_user only"));
    }
    Ok(part.vhost_user.clone().map(|path| VhostOptions { path, queues, memory }))
}

/// Which disk of this machine's kernel an export is.
fn ublk(source: &Source<'_>, part: &ExportPart, queues: u16) -> Result<Option<UblkOptions>, ConfigError> {
    let number = source.read_some(part.ublk.as_ref(), UblkOptions::parse_number)?;
    let recovers = part.ublk_recovery.as_ref().is_some_and(|recovers| *recovers.get_ref());
    if let (true, None | Some(None), Some(asked)) = (recovers, number, &part.ublk_recovery) {
        let why =
            "ublk_recovery needs the disk's number (such as ublk = \"0\"): the next server finds it by that";
        return Err(source.error(&asked.span(), why));
    }
    Ok(number.map(|number| UblkOptions { number, queues, recovers }))
}

fn export(
    source: &Source<'_>,
    part: &Spanned<ExportPart>,
    devices: &BTreeSet<String>,
) -> Result<ExportConfig, ConfigError> {
    let (whole, part) = (part.span(), part.get_ref());
    let device = part.device.get_ref();
    if !devices.contains(device) {
        let near = nearest(device, devices.iter().map(String::as_str));
        let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
        return Err(source.error(&part.device.span(), format!("there is no device '{device}'{near}")));
    }
    let offset =
        source.read_some(part.offset.as_ref(), |text| if text == "0" { Ok(0) } else { size(text) })?;
    let share = Share {
        weight: part.weight.as_ref().map_or(Share::default().weight, |weight| *weight.get_ref()),
        class: part.class,
        reserve: part.reserve.as_ref().map_or(0, |reserve| *reserve.get_ref()),
        goal_ns: source.read_some(part.goal.as_ref(), goal)?.unwrap_or(0),
        max: source.read_some(part.max.as_ref(), Max::parse)?.unwrap_or_default(),
        burst_ns: source.read_some(part.burst.as_ref(), burst)?.unwrap_or(Share::default().burst_ns),
    };
    let queues = queues(source, part)?;
    let options = ExportOptions {
        name: part.name.get_ref().clone(),
        description: part.description.clone(),
        offset: offset.unwrap_or(0),
        bytes: source.read_some(part.size.as_ref(), size)?,
        read_only: part.read_only,
        per_connection: part.per_connection,
        share,
        vhost: vhost(source, part, queues)?,
        ublk: ublk(source, part, queues)?,
    };
    if options.name.len() > 4096 {
        return Err(source.error(&part.name.span(), "a name has at most 4096 bytes"));
    }
    let weights = fairlift_core::group::WEIGHT_RANGE;
    if !(weights.0..=weights.1).contains(&share.weight) {
        let span = part.weight.as_ref().map_or(whole, Spanned::span);
        let message = format!("weight = {} is not from {} to {}", share.weight, weights.0, weights.1);
        return Err(source.error(&span, message));
    }
    let most = fairlift_core::group::RESERVE_MAX;
    if share.reserve > most {
        let span = part.reserve.as_ref().map_or(whole, Spanned::span);
        return Err(
            source.error(&span, format!("reserve = {} is not from 0 to {most} per cent", share.reserve))
        );
    }
    Ok(ExportConfig { device: device.clone(), options, place: source.place(&whole) })
}
