//! What a group may have at most: `max`, as cgroup v2's `io.max`, and what the comparators above the queue
//! ([`crate::kernel::controller`]) are told.

use fairlift_core::group::limit::{RATE_MAX, Rates};
use serde::Deserialize;

use crate::scheduler::nearest;

/// The words of [`Max`].
const WORDS: [&str; 4] = ["rbps", "wbps", "riops", "wiops"];

/// `io.max`: limits a second, 0 = none. Written `rbps=1M wiops=100`; what is not named, or `max`, has no limit.
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
        for part in text.split_whitespace() {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
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
}

/// What can be set of them.
pub const KEYS: [&str; 4] = ["max", "range_kb", "bandwidth_max", "iops_max"];

impl GroupLimits {
    /// Change one of [`KEYS`]; `false`: it is none of them.
    ///
    /// # Errors
    /// A value it does not take.
    pub fn set(&mut self, key: &str, value: &str) -> Result<bool, String> {
        match key {
            "max" => self.max = Max::parse(value)?,
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
    fn a_range_has_its_minimum_first() {
        assert_eq!(Range::parse("100:2000"), Ok(Range { min_kb: 100, max_kb: 2000 }));
        assert_eq!(Range::parse("100:0"), Ok(Range { min_kb: 100, max_kb: 0 }));
        for wrong in ["100", "200:100", "a:b", ":"] {
            assert!(Range::parse(wrong).is_err(), "{wrong}");
        }
    }
}
