//! What a group may have at most: `max`, as cgroup v2's `io.max`, and what the comparators above the queue
//! ([`crate::kernel::controller`]) learn of them.

use fairlift_core::IoPrio;
use fairlift_core::group::limit::{RATE_MAX, Rates};
use serde::Deserialize;

use crate::kernel::rq_qos::iocost::model::{CostModel, CostQos, words};
use crate::scheduler::nearest;

/// The words of [`Max`].
const WORDS: [&str; 4] = ["rbps", "wbps", "riops", "wiops"];

/// `io.max`: limits a second, 0 = none. Written `rbps=1M wiops=100`, with the device's numbers before it as the kernel's file has
/// them or without; what is not named, or `max`, has no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct Max {
    /// `rbps`, bytes.
    pub read_bps: u64,
    /// `wbps`, bytes.
    pub write_bps: u64,
    /// `riops`.
    pub read_iops: u64,
    /// `wiops`.
    pub write_iops: u64,
}

impl Max {
    /// Read `rbps=1M wiops=100`.
    ///
    /// # Errors
    /// With the wrong word, and what is allowed.
    pub fn parse(text: &str) -> Result<Max, String> {
        let mut max = Max::default();
        for (name, value) in words(text) {
            let value = value.unwrap_or("");
            let place = match name {
                "rbps" => &mut max.read_bps,
                "wbps" => &mut max.write_bps,
                "riops" => &mut max.read_iops,
                "wiops" => &mut max.write_iops,
                _ => {
                    let near = nearest(name, WORDS.into_iter());
                    let near = near.map_or_else(String::new, |near| format!("; did you mean '{near}'?"));
                    let all = WORDS.join("=N, ");
                    return Err(format!(
                        "max has no '{name}'{near} (allowed: {all}=N; N a second, or 'max')"
                    ));
                }
            };
            *place =
                if value == "max" { 0 } else { parse_rate(value).map_err(|e| format!("{name}: {e}"))? };
        }
        Ok(max)
    }

    /// Is nothing limited?
    pub fn is_none(&self) -> bool {
        *self == Max::default()
    }

    /// Of reads and of writes, as the core has them.
    pub fn rates(&self) -> [Rates; 2] {
        [(self.read_bps, self.read_iops), (self.write_bps, self.write_iops)]
            .map(|(bytes_per_s, ios_per_s)| Rates { bytes_per_s, ios_per_s })
    }
}

impl TryFrom<String> for Max {
    type Error = String;

    fn try_from(text: String) -> Result<Max, String> {
        Max::parse(&text)
    }
}

/// dm-ioband's `range-bw`: KB a second. Written `100:2000`; a maximum of 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct Range {
    /// The least it is to get.
    pub min_kb: u64,
    /// The most it may get; 0: no limit.
    pub max_kb: u64,
}

impl Range {
    /// Read `100:2000`.
    ///
    /// # Errors
    /// With what is allowed.
    pub fn parse(text: &str) -> Result<Range, String> {
        let numbers =
            text.split_once(':').and_then(|(min, max)| Some((min.parse().ok()?, max.parse().ok()?)));
        match numbers {
            Some((min_kb, max_kb)) if max_kb <= RATE_MAX >> 10 && (max_kb == 0 || min_kb <= max_kb) => {
                Ok(Range { min_kb, max_kb })
            }
            _ => Err(format!("range_kb '{text}' is not MIN:MAX, KB a second (MAX 0: no limit)")),
        }
    }
}

impl TryFrom<String> for Range {
    type Error = String;

    fn try_from(text: String) -> Result<Range, String> {
        Range::parse(&text)
    }
}

/// A rate: a number a second, 1 or more, with k, M or G for 2^10, 2^20 or 2^30.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct Rate(pub u64);

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Rate, String> {
        parse_rate(&text).map(Rate)
    }
}

/// See [`Rate`].
pub(crate) fn parse_rate(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let shift = match &text[digits.len()..] {
        "" => Some(0),
        "k" | "K" => Some(10),
        "m" | "M" => Some(20),
        "g" | "G" => Some(30),
        _ => None,
    };
    let rate = shift.and_then(|shift| digits.parse::<u64>().ok()?.checked_mul(1 << shift));
    rate.filter(|rate| (1..=RATE_MAX).contains(rate)).ok_or_else(|| {
        format!("'{text}' is not a rate from 1 to {RATE_MAX} a second (k, M, G: times 2^10, 2^20, 2^30)")
    })
}

/// `io.latency`: the latency a group is to have, microseconds; 0 = none. Written `target=75000`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct Latency {
    /// Microseconds.
    pub target_us: u64,
}

/// Longest target, microseconds.
const TARGET_US_MAX: u64 = 60_000_000;

impl Latency {
    /// Read `target=75000`, microseconds, or `target=max`.
    ///
    /// # Errors
    /// With what is allowed.
    pub fn parse(text: &str) -> Result<Latency, String> {
        let allowed = format!("allowed: target=N, microseconds, 1 to {TARGET_US_MAX}, or target=max");
        let mut latency = None;
        for (name, value) in words(text) {
            latency = match (name, value) {
                ("target", Some("max")) => Some(Latency { target_us: 0 }),
                ("target", Some(value)) => {
                    let target_us = value.parse().ok().filter(|us| (1..=TARGET_US_MAX).contains(us));
                    target_us.map(|target_us| Latency { target_us })
                }
                _ => return Err(format!("io.latency has no '{name}' ({allowed})")),
            };
        }
        latency.ok_or_else(|| format!("io.latency '{text}' is not a target ({allowed})"))
    }
}

impl TryFrom<String> for Latency {
    type Error = String;

    fn try_from(text: String) -> Result<Latency, String> {
        Latency::parse(&text)
    }
}

/// `io.prio.class`: what becomes of the I/O priority of a group's bios.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub enum PrioClass {
    /// Nothing.
    #[default]
    NoChange,
    /// Real time, level 4, if it is not real time already. `none-to-rt` is an older name of it.
    PromoteToRt,
    /// Best effort at most.
    RestrictToBe,
    /// Idle.
    Idle,
}

impl PrioClass {
    const WORDS: [(&'static str, PrioClass); 5] = [
        ("no-change", PrioClass::NoChange),
        ("promote-to-rt", PrioClass::PromoteToRt),
        ("none-to-rt", PrioClass::PromoteToRt),
        ("restrict-to-be", PrioClass::RestrictToBe),
        ("idle", PrioClass::Idle),
    ];

    /// Read `restrict-to-be`.
    ///
    /// # Errors
    /// With what is allowed.
    pub fn parse(text: &str) -> Result<PrioClass, String> {
        let names = || PrioClass::WORDS.iter().map(|(name, _)| *name);
        let found = PrioClass::WORDS.iter().find(|(name, _)| *name == text.trim());
        found.map(|(_, class)| *class).ok_or_else(|| {
            let near = nearest(text, names()).map_or_else(String::new, |n| format!("; did you mean '{n}'?"));
            format!(
                "io.prio.class '{text}' is unknown{near} (allowed: {})",
                names().collect::<Vec<_>>().join(", ")
            )
        })
    }

    /// A bio's priority under it.
    pub(crate) fn apply(self, ioprio: IoPrio) -> IoPrio {
        match (self, ioprio) {
            (PrioClass::PromoteToRt, IoPrio::BestEffort(_) | IoPrio::Idle) => IoPrio::RealTime(4),
            (PrioClass::RestrictToBe, IoPrio::RealTime(_)) => IoPrio::BestEffort(0),
            (PrioClass::Idle, _) => IoPrio::Idle,
            _ => ioprio,
        }
    }
}

impl TryFrom<String> for PrioClass {
    type Error = String;

    fn try_from(text: String) -> Result<PrioClass, String> {
        PrioClass::parse(&text)
    }
}

/// `memory.max`: the memory of a group and those below it, bytes; 0 = no limit. Written `128M`, or `max`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub struct MemoryMax(pub u64);

/// Least and most memory of a group, bytes.
const MEMORY_RANGE: (u64, u64) = (1 << 20, 1 << 50);

impl MemoryMax {
    /// Read `128M`, or `max`.
    ///
    /// # Errors
    /// With what is allowed.
    pub fn parse(text: &str) -> Result<MemoryMax, String> {
        let text = text.trim();
        if text == "max" {
            return Ok(MemoryMax(0));
        }
        let shift = |unit: char| "kmgt".find(unit.to_ascii_lowercase()).map(|at| 10 * (at as u32 + 1));
        let (digits, shift) = match text.chars().last().and_then(shift) {
            Some(shift) => (&text[..text.len() - 1], shift),
            None => (text, 0),
        };
        let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
        bytes.filter(|bytes| (MEMORY_RANGE.0..=MEMORY_RANGE.1).contains(bytes)).map(MemoryMax).ok_or_else(|| {
            format!("memory.max '{text}' is not a size (allowed: 1M to 1024T; bytes, or with K, M, G or T for powers of 1024; or max)")
        })
    }
}

impl TryFrom<String> for MemoryMax {
    type Error = String;

    fn try_from(text: String) -> Result<MemoryMax, String> {
        MemoryMax::parse(&text)
    }
}

/// All a group may be told of limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct GroupLimits {
    /// fairlift's own limits, or blk-throttle's if that is the controller.
    pub max: Max,
    /// dm-ioband's `range-bw`.
    pub range_kb: Range,
    /// io-throttle's `blockio.bandwidth-max`, bytes.
    pub bandwidth_max: Rate,
    /// io-throttle's `blockio.iops-max`.
    pub iops_max: Rate,
    /// `io.latency`.
    pub latency: Latency,
    /// `io.prio.class`.
    pub prio_class: PrioClass,
    /// `memory.max`.
    pub memory_max: MemoryMax,
    /// `io.cost.model`, of the root.
    pub cost_model: Option<CostModel>,
    /// `io.cost.qos`, of the root.
    pub cost_qos: Option<CostQos>,
}

/// What can be set of them.
pub const KEYS: [&str; 10] = [
    "max",
    "range_kb",
    "bandwidth_max",
    "iops_max",
    "io.max",
    "io.latency",
    "io.prio.class",
    "io.cost.model",
    "io.cost.qos",
    "memory.max",
];

impl GroupLimits {
    /// The files of these limits that only kernels with blk-mq have.
    pub(crate) fn of_today(&self) -> impl Iterator<Item = &'static str> {
        [
            ("io.latency", self.latency.target_us > 0),
            ("io.prio.class", self.prio_class != PrioClass::NoChange),
            ("io.cost.model", self.cost_model.is_some()),
            ("io.cost.qos", self.cost_qos.is_some()),
            ("memory.max", self.memory_max.0 > 0),
        ]
        .into_iter()
        .filter_map(|(file, is_set)| is_set.then_some(file))
    }

    /// Do they suit the root, or only the root?
    ///
    /// # Errors
    /// With the file that does not.
    pub(crate) fn check(&self, is_root: bool) -> Result<(), &'static str> {
        if is_root && self.latency.target_us > 0 {
            return Err("the root has no io.latency");
        }
        if is_root && self.memory_max.0 > 0 {
            return Err("the root has no memory.max: cache_mib is the memory of all");
        }
        if !is_root && (self.cost_model.is_some() || self.cost_qos.is_some()) {
            return Err("io.cost.model and io.cost.qos are the root's: path = \"/\"");
        }
        Ok(())
    }

    /// Change one of [`KEYS`]; `false`: it is none of them.
    ///
    /// # Errors
    /// A value it does not take.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, String> {
        match key {
            "max" | "io.max" => self.max = Max::parse(value)?,
            "io.latency" => self.latency = Latency::parse(value)?,
            "memory.max" => self.memory_max = MemoryMax::parse(value)?,
            "io.prio.class" => self.prio_class = PrioClass::parse(value)?,
            "io.cost.model" => self.cost_model = Some(CostModel::parse(value)?),
            "io.cost.qos" => self.cost_qos = Some(CostQos::parse(value)?),
            "range_kb" => self.range_kb = Range::parse(value)?,
            "bandwidth_max" => self.bandwidth_max = Rate(parse_rate(value)?),
            "iops_max" => self.iops_max = Rate(parse_rate(value)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn max_is_written_as_io_max() {
        let max = Max::parse("rbps=1M wiops=120 riops=max").unwrap();
        assert_eq!(max, Max { read_bps: 1 << 20, write_iops: 120, ..Max::default() });
        assert_eq!(Max::parse(""), Ok(Max::default()));
        assert_eq!(
            Max::parse("rbp=1").unwrap_err(),
            "max has no 'rbp'; did you mean 'rbps'? (allowed: rbps=N, wbps=N, riops=N, wiops=N; N a second, or 'max')"
        );
        for wrong in ["rbps", "rbps=0", "rbps=1x", "wiops=-1", "wbps=999999G"] {
            assert!(Max::parse(wrong).unwrap_err().contains("is not a rate"), "{wrong}");
        }
    }

    #[test]
    fn memory_is_written_as_the_kernels_file_is() {
        assert_eq!(MemoryMax::parse("128M"), Ok(MemoryMax(128 << 20)));
        assert_eq!(MemoryMax::parse("134217728"), Ok(MemoryMax(128 << 20)));
        assert_eq!(MemoryMax::parse("max"), Ok(MemoryMax(0)));
        for wrong in ["", "M", "12X", "-1", "1K", "99999999T", "1.5G"] {
            assert!(MemoryMax::parse(wrong).unwrap_err().contains("is not a size"), "{wrong}");
        }
    }

    #[test]
    fn a_range_has_its_minimum_first() {
        assert_eq!(Range::parse("100:2000"), Ok(Range { min_kb: 100, max_kb: 2000 }));
        assert_eq!(Range::parse("100:0"), Ok(Range { min_kb: 100, max_kb: 0 }));
        for wrong in ["100", "200:100", "a:b", ":"] {
            assert!(Range::parse(wrong).is_err(), "{wrong}");
        }
    }
}
