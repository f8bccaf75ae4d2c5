//! `random_distribution`, `random_generator`, seeds.

use crate::job::{Distribution, Generator, Seeding, ZoneShare};
use crate::settings::Reader;
use crate::values::{self, Amount, Wrong};

/// Entries of one direction: fio's limit.
const ZONES_MAX: usize = 256;

#[derive(Clone, Copy, PartialEq)]
enum Word {
    Uniform,
    Zipf,
    Pareto,
    Normal,
    Zoned { absolute: bool },
}

pub(super) fn read(r: &mut Reader<'_>) -> Distribution {
    let words = [
        ("random", Word::Uniform),
        ("zipf", Word::Zipf),
        ("pareto", Word::Pareto),
        ("normal", Word::Normal),
        ("zoned", Word::Zoned { absolute: false }),
        ("zoned_abs", Word::Zoned { absolute: true }),
    ];
    let (word, postfix) = r.choice("random_distribution", Word::Uniform, &words);
    let result = match word {
        Word::Uniform => Ok(Distribution::Uniform),
        Word::Zoned { absolute } => zoned(postfix.unwrap_or_default(), absolute, r.kb_base),
        Word::Zipf => parameters(postfix, 1.1).and_then(zipf),
        Word::Pareto => parameters(postfix, 0.2).and_then(pareto),
        Word::Normal => parameters(postfix, 0.0).and_then(normal),
    };
    result.unwrap_or_else(|wrong| {
        r.complain("random_distribution", wrong);
        Distribution::Uniform
    })
}

/// `value[:center]`.
fn parameters(postfix: Option<&str>, default: f64) -> Result<(f64, Option<f64>), Wrong> {
    let Some(postfix) = postfix else { return Ok((default, None)) };
    let (value, center) =
        postfix.split_once(':').map_or((postfix, None), |(value, center)| (value, Some(center)));
    let center = center.map(values::fraction).transpose()?;
    match center {
        Some(center) if !(0.0..=1.0).contains(&center) => Err(Wrong::new(format!("center {center}"), "0…1")),
        center => Ok((values::fraction(value)?, center)),
    }
}

fn zipf((theta, center): (f64, Option<f64>)) -> Result<Distribution, Wrong> {
    if theta == 1.0 || theta < 0.0 {
        return Err(Wrong::new(format!("zipf exponent {theta}"), "a number from 0, not 1"));
    }
    Ok(Distribution::Zipf { theta, center })
}

fn pareto((h, center): (f64, Option<f64>)) -> Result<Distribution, Wrong> {
    if h <= 0.0 || h >= 1.0 {
        return Err(Wrong::new(format!("pareto power {h}"), "a number between 0 and 1"));
    }
    Ok(Distribution::Pareto { h, center })
}

fn normal((deviation_percent, center): (f64, Option<f64>)) -> Result<Distribution, Wrong> {
    if !(0.0..100.0).contains(&deviation_percent) {
        return Err(Wrong::new(format!("deviation of {deviation_percent} %"), "0 to below 100"));
    }
    Ok(Distribution::Normal { deviation_percent, center })
}

/// `50/5:30/15:20/80`, also one list per direction.
fn zoned(text: &str, absolute: bool, kb_base: u64) -> Result<Distribution, Wrong> {
    let lists: Vec<_> =
        text.split(',').map(|list| zones(list, absolute, kb_base)).collect::<Result<_, _>>()?;
    match &lists[..] {
        [all] if all.is_empty() => Err(Wrong::new("no zones", "zoned:access%/size%:…")),
        [all] => Ok(Distribution::Zoned([all.clone(), all.clone(), all.clone()])),
        [read, write] => Ok(Distribution::Zoned([read.clone(), write.clone(), write.clone()])),
        [read, write, trim] => Ok(Distribution::Zoned([read.clone(), write.clone(), trim.clone()])),
        _ => Err(Wrong::new("more than three lists", "read[,write[,trim]]")),
    }
}

fn zones(text: &str, absolute: bool, kb_base: u64) -> Result<Vec<ZoneShare>, Wrong> {
    let mut zones = Vec::new();
    for entry in text.split(':').take_while(|entry| !entry.is_empty()) {
        let (access, extent) = entry.split_once('/').unwrap_or((entry, ""));
        let access_percent = percent(access)?;
        let extent = match (extent.is_empty(), absolute) {
            (true, _) => None,
            (false, true) => Some(Amount::Bytes(values::bytes(extent, kb_base)?)),
            (false, false) => Some(Amount::Percent(u64::from(percent(extent)?))),
        };
        zones.push((access_percent, extent));
    }
    if zones.len() > ZONES_MAX {
        return Err(Wrong::new("more than 256 zones", ""));
    }
    let access: u32 = zones.iter().map(|&(access, _)| access).sum();
    if !zones.is_empty() && access != 100 {
        return Err(Wrong::new(format!("the zones' shares of the accesses add up to {access} %"), "100 %"));
    }
    let given: u64 = zones
        .iter()
        .filter_map(|(_, extent)| extent.map(|extent| extent.of(0).max(percent_of(extent))))
        .sum();
    let missing = zones.iter().filter(|(_, extent)| extent.is_none()).count() as u64;
    if !absolute && given > 100 || absolute && missing > 0 {
        return Err(Wrong::new(
            "the zones' sizes do not fit the file",
            "at most 100 %, or a size for each zone",
        ));
    }
    let rest = 100u64.saturating_sub(given).checked_div(missing).unwrap_or(0);
    let share = |(access_percent, extent): (u32, Option<Amount>)| ZoneShare {
        access_percent,
        extent: extent.unwrap_or(Amount::Percent(rest)),
    };
    Ok(zones.into_iter().map(share).collect())
}

fn percent_of(extent: Amount) -> u64 {
    match extent {
        Amount::Percent(percent) => percent,
        Amount::Bytes(_) => 0,
    }
}

fn percent(text: &str) -> Result<u32, Wrong> {
    let percent = text.trim().trim_end_matches('%').parse::<u32>().ok().filter(|&percent| percent <= 100);
    percent.ok_or_else(|| Wrong::new(format!("'{text}' is no percentage"), "0…100"))
}

pub(super) fn generator(r: &mut Reader<'_>) -> Generator {
    let words = [
        ("tausworthe", Generator::Tausworthe { explicit: true }),
        ("tausworthe64", Generator::Tausworthe64),
        ("lfsr", Generator::Lfsr),
    ];
    r.choice("random_generator", Generator::Tausworthe { explicit: false }, &words).0
}

pub(super) fn seeding(r: &mut Reader<'_>) -> Seeding {
    Seeding {
        randseed: r.is_set("randseed").then(|| r.number("randseed", 0x89, 0..=u64::MAX)),
        randrepeat: r.flag("randrepeat", true),
        allrandrepeat: r.flag("allrandrepeat", false),
    }
}
