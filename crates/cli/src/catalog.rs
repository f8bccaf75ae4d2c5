//! What there is to choose from: devices, schedulers, kernels.

use std::fmt::Write as _;

use fairlift_core::elevator::Descriptor;
use fairlift_core::tunable::Tunable;
use fairlift_sim::device::{DeviceSpec, PRESETS, WORDS, Word};
use fairlift_sim::kernel::Rules;
use fairlift_sim::kernel::controller::KINDS;
use fairlift_sim::kernel::version::{DEFAULT, TODAY, VERSIONS};
use fairlift_sim::scheduler::names::{self, Era, Name};
use fairlift_sim::scheduler::{default_of, host, range_of};

use crate::error::Failure;
use crate::grid::{WIDTH, length, padded, wrapped};

/// The presets, or everything about one device.
pub fn devices(name: Option<&str>) -> Result<String, Failure> {
    let fail = |e: fairlift_sim::device::SpecError| Failure::new(e.message.clone()).at(e.origin);
    if let Some(name) = name {
        return Ok(DeviceSpec::load(name).map_err(fail)?.describe());
    }
    let mut rows = Vec::new();
    for preset in PRESETS {
        let spec = DeviceSpec::load(preset.name).map_err(fail)?;
        let limits = spec.limits();
        let size = format!("{:.0} GB, depth {}", limits.sectors as f64 * 512.0 / 1e9, limits.queue_depth);
        rows.push(vec![preset.name.to_owned(), spec.model().to_owned(), size, preset.description.to_owned()]);
    }
    let mut out = columns(&["device", "model", "size", ""], &rows);
    out.push_str("\nWords that stand for one of them:\n\n");
    let row = |word: &Word| [word.word, word.preset, word.note].map(str::to_owned).to_vec();
    out.push_str(&columns(&["word", "device", ""], &WORDS.iter().map(row).collect::<Vec<_>>()));
    out.push_str(
        "\n'fairlift devices NAME' shows every parameter of one. A file of your own can be based on it.\n",
    );
    Ok(out)
}

/// The schedulers, or the tunables of one.
pub fn schedulers(name: Option<&str>) -> Result<String, Failure> {
    if let Some(name) = name {
        return scheduler(name);
    }
    let mut out = String::new();
    for (era, kernels) in [
        (Era::BlkMq, "Linux 6.12 and 6.18"),
        (Era::TwoSix, "Linux 2.6"),
        (Era::Ours, "any kernel of the lab"),
    ] {
        let rows: Vec<Vec<String>> =
            names::of_era(era).filter_map(|name| Some(row(name, name.descriptor()?))).collect();
        let _ = writeln!(out, "{kernels}:\n");
        out.push_str(&columns(&["scheduler", "profiles", "tunables", ""], &rows));
        out.push('\n');
    }
    out.push_str("'fairlift schedulers NAME' shows the tunables of one.\n");
    out.push_str(
        "\nControllers above the queue, after a plus (cfq:groups=0+dm-ioband:policy=weight-iosize):\n\n",
    );
    out.push_str(&controllers());
    Ok(out)
}

/// A scheduler's row.
fn row(name: &Name, elevator: &Descriptor) -> Vec<String> {
    let profiles = match name.profile() {
        Some(profile) => profile.to_owned(),
        None if elevator.profiles.is_empty() => "-".to_owned(),
        None => elevator.profiles.join(", "),
    };
    let tunables = (elevator.tunables)(name.profile().unwrap_or_default()).len().to_string();
    let about = match elevator.name == name.word {
        true => elevator.about.to_owned(),
        false => format!("this project's {}, by its module: with groups", elevator.name),
    };
    vec![name.word.to_owned(), profiles, tunables, about]
}

/// The controllers with their settings, a row each.
fn controllers() -> String {
    let row = |name: &str, setting: &str, values: &str, about: &str| {
        [name, setting, values, about].map(str::to_owned).to_vec()
    };
    let mut rows = Vec::new();
    for kind in &KINDS {
        rows.push(row(kind.name, "", "", kind.about));
        rows.extend(kind.settings.iter().map(|(setting, values)| row("", setting, values, "")));
    }
    columns(&["controller", "setting", "values", ""], &rows)
}

fn scheduler(text: &str) -> Result<String, Failure> {
    let (name, profile) = text.split_once('@').map_or((text, None), |(name, profile)| (name, Some(profile)));
    let word = names::find(name).map_err(|e| Failure::of_scheduler(&e, ""))?;
    let found = word.descriptor().ok_or_else(|| Failure::internal(format!("no elevator for {name}")))?;
    if let Some(profile) = profile {
        // Says what is wrong with a profile there is not.
        fairlift_sim::scheduler::SchedulerSpec::parse(text, "").map_err(|e| Failure::of_scheduler(&e, ""))?;
        return Ok(format!("{}: {}\n{}", word.word, found.about, profile_block(found, profile)));
    }
    let mut out = format!("{}: {}\n", word.word, found.about);
    match word.profile() {
        Some(profile) => out.push_str(&profile_block(found, profile)),
        None if found.profiles.is_empty() => out.push_str(&profile_block(found, "")),
        None => found.profiles.iter().for_each(|profile| out.push_str(&profile_block(found, profile))),
    }
    for (setting, value) in word.preset() {
        let _ = writeln!(out, "\n{} sets {setting}={value}.", word.word);
    }
    out.push_str("\nOf the host around it, with every scheduler:\n\n");
    out.push_str(&tunables(host::tunables()));
    Ok(out)
}

fn profile_block(found: &Descriptor, profile: &str) -> String {
    let list = (found.tunables)(profile);
    let mut out = String::new();
    if !profile.is_empty() {
        let kernels: Vec<_> = VERSIONS.iter().filter(|v| v.profile == profile).map(|v| v.version).collect();
        let _ = write!(out, "\nprofile {profile}");
        if !kernels.is_empty() {
            let _ = write!(out, " (what --kernel {} implies)", kernels.join(" and "));
        }
        out.push_str("\n\n");
    } else {
        out.push('\n');
    }
    if list.is_empty() {
        out.push_str("It has no tunables.\n");
        return out;
    }
    out.push_str(&tunables(list.iter()));
    out
}

fn tunables(list: impl Iterator<Item = &'static Tunable>) -> String {
    let row = |t: &Tunable| vec![t.name.to_owned(), default_of(t), range_of(t), t.about.to_owned()];
    columns(&["tunable", "default", "range", ""], &list.map(row).collect::<Vec<_>>())
}

/// The kernel versions, or one with its schedulers.
pub fn kernels(name: Option<&str>) -> Result<String, Failure> {
    let Some(name) = name else { return Ok(all_kernels()) };
    let rules = crate::input::kernel(name)?;
    let mut out = kernel(rules);
    let own = names::of_era(Era::of(rules)).map(|name| name.word);
    let list = format!("schedulers: {}; and of the lab's own fair", own.collect::<Vec<_>>().join(", "));
    wrapped(&list, WIDTH - 2).iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    Ok(out)
}

fn all_kernels() -> String {
    let mut out: String = VERSIONS.iter().map(kernel).collect();
    let _ = writeln!(
        out,
        "\nA scenario, and a trace to replay, have {} if nothing is said, a job or program {}.",
        DEFAULT.version, TODAY.version
    );
    out.push_str("The CPU costs are stated constants of this lab, not measurements.\n");
    out
}

fn kernel(rules: &Rules) -> String {
    let mut out = String::new();
    let tick = match rules.tick_ns {
        0 => "exact clock".to_owned(),
        ns => format!("jiffies of {} ms", ns as f64 / 1e6),
    };
    let block = match (rules.blk_mq, rules.task_plugs) {
        (true, _) => "blk-mq tags and task plugs",
        (false, true) => "request pools and task plugs",
        (false, false) => "request pools and a queue plug",
    };
    let writers = match rules.writeback.foreground {
        true => "programs that dirty too much write it back themselves",
        false => "programs that dirty too much sleep",
    };
    let cpu = format!(
        "{} us of CPU per direct I/O, {} us per cached page",
        rules.cpu_per_io_ns as f64 / 1e3,
        rules.cpu_per_page_ns as f64 / 1e3
    );
    let _ = writeln!(out, "{}: {}", rules.version, rules.about);
    let facts = format!("{block}; {tick}; elevators default to profile {}; {writers}; {cpu}", rules.profile);
    wrapped(&facts, WIDTH - 2).iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    out
}

/// Rows under heads; the last column is wrapped.
fn columns(heads: &[&str], rows: &[Vec<String>]) -> String {
    let last = heads.len() - 1;
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| length(&row[column]));
        cells.chain([length(heads[column])]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..last).map(widest).collect();
    let indent: usize = widths.iter().map(|w| w + 2).sum();
    let room = WIDTH.saturating_sub(indent).max(20);
    let mut out = String::new();
    let heads: Vec<String> = heads.iter().map(ToString::to_string).collect();
    for row in std::iter::once(&heads).chain(rows) {
        let mut line: String = row[..last].iter().zip(&widths).map(|(cell, w)| padded(cell, w + 2)).collect();
        for (i, text) in wrapped(&row[last], room).iter().enumerate() {
            if i > 0 {
                let _ = writeln!(out, "{}", line.trim_end());
                line = " ".repeat(indent);
            }
            line.push_str(text);
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}
