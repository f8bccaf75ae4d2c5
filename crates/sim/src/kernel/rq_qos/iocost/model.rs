//! What an I/O costs: Linux' linear model, its presets, and models that were measured.
//!
//! Facts: Linux 6.12 `block/blk-iocost.c`. Measured: `devices/iocost/models.csv` (iocost-benchmarks, Apache-2.0).

use std::fmt;

use serde::Deserialize;

use crate::scheduler::nearest;

/// Virtual time of a second of a device's time at rate 100 %.
pub(super) const V_PER_SECOND: u64 = 1 << 37;
/// The same of a microsecond.
pub(super) const V_PER_US: u64 = V_PER_SECOND / 1_000_000;
/// Costs count whole pages.
const PAGE_BYTES: u64 = 4096;
/// An I/O this far from the one before it is random: 16 MiB.
const RANDOM_PAGES: u64 = 4096;
/// A share of a million.
pub(super) const MILLION: u64 = 1_000_000;

const MEASURED: &str = include_str!("../../../../../../devices/iocost/models.csv");

/// The six numbers of a linear model, in the order of [`NUMBERS`].
pub type Numbers = [u64; 6];

/// Their names.
pub const NUMBERS: [&str; 6] = ["rbps", "rseqiops", "rrandiops", "wbps", "wseqiops", "wrandiops"];

/// Numbers and latency (microseconds) that go with a kind of device.
#[derive(Debug)]
pub(super) struct Preset {
    pub(super) numbers: Numbers,
    pub(super) latency_us: u64,
    /// A rate at or above this, percent, for ten seconds: the next preset; at or below: the one before.
    pub(super) too_fast: Option<u64>,
    pub(super) too_slow: Option<u64>,
}

pub(super) const HDD: usize = 0;
pub(super) const SSD_DEPTH_1: usize = 1;
pub(super) const SSD: usize = 2;

pub(super) const PRESETS: [Preset; 4] = [
    Preset {
        numbers: [174_019_176, 41_708, 370, 178_075_866, 42_705, 378],
        latency_us: 250_000,
        too_fast: None,
        too_slow: None,
    },
    Preset {
        numbers: [245_855_193, 61_575, 6_946, 141_365_009, 33_716, 26_796],
        latency_us: 25_000,
        too_fast: None,
        too_slow: None,
    },
    Preset {
        numbers: [488_636_629, 8_932, 8_518, 427_891_549, 28_755, 21_940],
        latency_us: 25_000,
        too_fast: Some(500),
        too_slow: None,
    },
    Preset {
        numbers: [3_102_524_156, 724_816, 778_122, 1_742_780_862, 425_702, 443_193],
        latency_us: 5_000,
        too_fast: None,
        too_slow: Some(10),
    },
];

/// Virtual time of the parts of an I/O of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Costs {
    page: u64,
    sequential: u64,
    random: u64,
}

impl Costs {
    /// Of reads and of writes.
    pub(super) fn of(numbers: &Numbers) -> [Costs; 2] {
        let [rbps, rseq, rrand, wbps, wseq, wrand] = *numbers;
        [(rbps, rseq, rrand), (wbps, wseq, wrand)].map(|(bps, sequential, random)| {
            let page = V_PER_SECOND.div_ceil(bps.div_ceil(PAGE_BYTES).max(1));
            let beyond_page = |iops: u64| V_PER_SECOND.div_ceil(iops.max(1)).saturating_sub(page);
            Costs { page, sequential: beyond_page(sequential), random: beyond_page(random) }
        })
    }

    /// Of the transfer alone: what a merged I/O costs, and the time that is not counted as latency.
    pub(super) fn of_size(&self, sectors: u32) -> u64 {
        (u64::from(sectors) * 512 / PAGE_BYTES).max(1) * self.page
    }

    /// Of an I/O at `sector` after one that ended at `cursor`.
    pub(super) fn of_io(&self, sector: u64, sectors: u32, cursor: u64) -> u64 {
        let pages = sector.abs_diff(cursor) * 512 / PAGE_BYTES;
        let is_random = cursor != 0 && pages > RANDOM_PAGES;
        self.of_size(sectors) + if is_random { self.random } else { self.sequential }
    }
}

// ---- the files --------------------------------------------------------------------------------------------------------------

/// `io.cost.model`: what is not given is the preset's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct CostModel {
    given: [Option<u64>; 6],
}

impl CostModel {
    /// Read `[MAJOR:MINOR] [ctrl=auto|user] [model=linear] [rbps=N] ...`, or the name of a measured model.
    ///
    /// # Errors
    /// With the wrong word, and what is allowed.
    pub fn parse(text: &str) -> Result<CostModel, String> {
        let mut model = CostModel::default();
        let mut auto = false;
        for (name, value) in words(text) {
            let Some(value) = value else {
                model.given = Measured::find(name)?.numbers.map(Some);
                continue;
            };
            let at = NUMBERS.iter().position(|number| *number == name);
            match (name, at) {
                ("ctrl", _) => auto = is_auto(name, value)?,
                ("model", _) if value == "linear" => {}
                ("model", _) => {
                    return Err(format!("io.cost.model: model={value} is not known (allowed: linear)"));
                }
                (_, Some(at)) => model.given[at] = Some(number("io.cost.model", name, value, 1, u64::MAX)?),
                _ => {
                    let all = ["ctrl", "model"].into_iter().chain(NUMBERS);
                    return Err(unknown("io.cost.model", name, all));
                }
            }
        }
        Ok(if auto { CostModel::default() } else { model })
    }

    /// Has it numbers of its own?
    pub(super) fn is_users(&self) -> bool {
        self.given.iter().any(Option::is_some)
    }

    /// The numbers, beside a preset.
    pub(super) fn numbers(&self, preset: &Preset) -> Numbers {
        std::array::from_fn(|at| self.given[at].unwrap_or(preset.numbers[at]))
    }
}

/// `io.cost.qos`: what is not given is the preset's. Percentages in hundredths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct CostQos {
    /// Is io.cost on?
    pub enable: bool,
    /// Of reads and of writes: what part has to keep the latency, and the latency, microseconds.
    pub(super) part: [Option<u64>; 2],
    pub(super) latency_us: [Option<u64>; 2],
    /// Bounds of the rate.
    pub(super) rate: [Option<u64>; 2],
}

/// Bounds of the bounds, hundredths of a percent: 1 % and 10000 %.
const RATE_MIN: u64 = 100;
const RATE_MAX: u64 = 1_000_000;

impl CostQos {
    /// Read `[MAJOR:MINOR] [enable=0|1] [ctrl=auto|user] [rpct=P] [rlat=US] [wpct=P] [wlat=US] [min=P] [max=P]`; the name of a
    /// measured model stands for `enable=1` and its percentages and latencies.
    ///
    /// # Errors
    /// With the wrong word, and what is allowed.
    pub fn parse(text: &str) -> Result<CostQos, String> {
        const FILE: &str = "io.cost.qos";
        let mut qos = CostQos::default();
        let mut auto = false;
        for (name, value) in words(text) {
            let Some(value) = value else {
                let measured = Measured::find(name)?;
                qos.enable = true;
                (qos.part, qos.latency_us) = (measured.part.map(Some), measured.latency_us.map(Some));
                continue;
            };
            match name {
                "enable" if ["0", "1"].contains(&value) => qos.enable = value == "1",
                "enable" => return Err(format!("{FILE}: enable={value} is not 0 or 1")),
                "ctrl" => auto = is_auto(name, value)?,
                "rpct" => qos.part[0] = Some(percent(name, value, 0, 10_000)?),
                "wpct" => qos.part[1] = Some(percent(name, value, 0, 10_000)?),
                "rlat" => qos.latency_us[0] = Some(number(FILE, name, value, 1, MILLION * 60)?),
                "wlat" => qos.latency_us[1] = Some(number(FILE, name, value, 1, MILLION * 60)?),
                "min" => qos.rate[0] = Some(percent(name, value, RATE_MIN, RATE_MAX)?),
                "max" => qos.rate[1] = Some(percent(name, value, RATE_MIN, RATE_MAX)?),
                _ => {
                    let all = ["enable", "ctrl", "rpct", "rlat", "wpct", "wlat", "min", "max"];
                    return Err(unknown(FILE, name, all.into_iter()));
                }
            }
        }
        if auto {
            return Ok(CostQos { enable: qos.enable, ..CostQos::default() });
        }
        let [min, max] = qos.rates();
        if min > max {
            return Err(format!("{FILE}: min is above max"));
        }
        Ok(qos)
    }

    /// Is anything but `enable` given?
    pub(super) fn is_users(&self) -> bool {
        [self.part, self.latency_us, self.rate].iter().flatten().any(Option::is_some)
    }

    /// Bounds of the rate, hundredths of a percent.
    pub(super) fn rates(&self) -> [u64; 2] {
        [self.rate[0].unwrap_or(RATE_MIN), self.rate[1].unwrap_or(RATE_MAX)]
    }
}

impl TryFrom<String> for CostModel {
    type Error = String;

    fn try_from(text: String) -> Result<CostModel, String> {
        CostModel::parse(&text)
    }
}

impl TryFrom<String> for CostQos {
    type Error = String;

    fn try_from(text: String) -> Result<CostQos, String> {
        CostQos::parse(&text)
    }
}

/// The words of a file, but for the device's numbers: `NAME=VALUE`, or a name alone.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let is_device = |word: &str| {
        word.split_once(':').is_some_and(|(major, minor)| {
            [major, minor].iter().all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    text.split_whitespace()
        .enumerate()
        .filter(move |(at, word)| !(*at == 0 && is_device(word)))
        .map(|(_, word)| word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value))))
}

fn is_auto(name: &str, value: &str) -> Result<bool, String> {
    match value {
        "auto" => Ok(true),
        "user" => Ok(false),
        _ => Err(format!("{name}={value} is not auto or user")),
    }
}

fn number(file: &str, name: &str, value: &str, min: u64, max: u64) -> Result<u64, String> {
    let parsed = value.parse().ok().filter(|number| (min..=max).contains(number));
    let most = if max == u64::MAX { String::new() } else { format!(" to {max}") };
    parsed.ok_or_else(|| format!("{file}: {name}={value} is not a number from {min}{most}"))
}

/// `95` or `95.25`, in hundredths.
fn percent(name: &str, value: &str, min: u64, max: u64) -> Result<u64, String> {
    let (whole, part) = value.split_once('.').unwrap_or((value, ""));
    let hundredths = || {
        let part = match part.len() {
            0 => 0,
            1 => part.parse::<u64>().ok()? * 10,
            2 => part.parse().ok()?,
            _ => return None,
        };
        whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(part)
    };
    hundredths().filter(|p| (min..=max).contains(p)).ok_or_else(|| {
        let shown = |p: u64| format!("{}.{:02}", p / 100, p % 100);
        format!("io.cost.qos: {name}={value} is not a percentage from {} to {}", shown(min), shown(max))
    })
}

fn unknown<'a>(file: &str, word: &str, all: impl Iterator<Item = &'a str> + Clone) -> String {
    let near =
        nearest(word, all.clone()).map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
    format!("{file} has no '{word}'{near} (allowed: {})", all.collect::<Vec<_>>().join(", "))
}

// ---- measured models --------------------------------------------------------------------------------------------------------

/// A model that was measured on a drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measured {
    /// The drive's model, with underscores.
    pub name: &'static str,
    /// Which of the measurements of that model.
    pub result: &'static str,
    /// The linear model.
    pub numbers: Numbers,
    part: [u64; 2],
    latency_us: [u64; 2],
}

impl Measured {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Measured> + Clone {
        MEASURED.lines().filter(|line| !line.starts_with('#')).skip(1).filter_map(Measured::of)
    }

    /// `model,kernel,nr_cpus,` six numbers, `rpct,rlat,wpct,wlat,result`.
    fn of(line: &'static str) -> Option<Measured> {
        let fields: Vec<&str> = line.split(',').collect();
        let field = |at: usize| fields.get(at).copied();
        let mut numbers = [0; 6];
        for (at, number) in numbers.iter_mut().enumerate() {
            *number = field(3 + at)?.parse().ok()?;
        }
        let part = |at| percent("", field(at)?, 0, 10_000).ok();
        let latency = |at| field(at)?.parse().ok();
        Some(Measured {
            name: field(0)?,
            result: field(13)?,
            numbers,
            part: [part(9)?, part(11)?],
            latency_us: [latency(10)?, latency(12)?],
        })
    }

    /// `NAME`, of several measurements of a drive the first, or `NAME/RESULT`.
    ///
    /// # Errors
    /// With the nearest.
    pub fn find(text: &str) -> Result<Measured, String> {
        let (name, result) = text.split_once('/').map_or((text, None), |(name, result)| (name, Some(result)));
        let fits = |m: &Measured| m.name == name && result.is_none_or(|result| m.result == result);
        if let Some(found) = Measured::all().find(fits) {
            return Ok(found);
        }
        let of_name: Vec<String> =
            Measured::all().filter(|m| m.name == name).map(|m| m.to_string()).collect();
        if !of_name.is_empty() {
            return Err(format!("'{text}' was not measured (allowed: {})", of_name.join(", ")));
        }
        let names = Measured::all().map(|m| m.name);
        let near =
            nearest(name, names.clone()).map_or_else(String::new, |n| format!("; did you mean '{n}'?"));
        let mut all: Vec<_> = names.collect();
        all.dedup();
        Err(format!("'{text}' is neither NAME=VALUE nor a measured model{near} (models: {})", all.join(", ")))
    }
}

/// As [`Measured::find`] reads it.
impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.result)
    }
}
