//! A disk: what it is, its queue's limits, its scheduler and that one's tunables.

use std::fmt::Write as _;

use fairlift_core::tunable::Tunable;
use fairlift_sim::device::{DeviceSpec, Limits};
use fairlift_sim::kernel::Rules;
use fairlift_sim::kernel::rq_qos::iocost::model::Measured;
use fairlift_sim::scheduler::{SchedulerSpec, host};

use super::files::Files;
use super::{plain, quoted};
use crate::error::Failure;

/// Names of disks that are left out.
const NOT_DISKS: [&str; 6] = ["loop", "ram", "zram", "dm-", "md", "sr"];
/// Files of `queue` that are settings of every scheduler.
const SETTINGS: [&str; 5] = ["nr_requests", "max_sectors_kb", "read_ahead_kb", "nomerges", "wbt_lat_usec"];
/// Files that tell what the drive is: the modelled one has its own.
const FACTS: [&str; 6] =
    ["rotational", "write_cache", "fua", "max_hw_sectors_kb", "logical_block_size", "discard_max_bytes"];

/// A disk by its name in `/sys/block`.
#[derive(Debug)]
pub struct Disk {
    pub name: String,
    /// `MAJOR:MINOR`.
    pub numbers: Option<String>,
    rotational: Option<bool>,
    model: Option<String>,
}

impl Disk {
    /// The disk called `asked` (`/dev/sda`, `sda`, a partition of it), or the only one there is.
    pub fn find(files: &Files, asked: Option<&str>) -> Result<Disk, Failure> {
        let all = files.folders("sys/block").ok_or_else(|| {
            Failure::new("sys/block cannot be read, so that no disk is known")
                .help("on another machine's files: --root FOLDER, which has sys/block in it (cp -rL)")
        })?;
        let name = match asked {
            Some(asked) => named(files, &all, asked)?,
            None => only_one(&all)?,
        };
        let sys = format!("sys/block/{name}");
        Ok(Disk {
            numbers: files.word(&format!("{sys}/dev")),
            rotational: files.number(&format!("{sys}/queue/rotational")).map(|value| value == 1),
            model: files.word(&format!("{sys}/device/model")),
            name,
        })
    }

    fn queue(&self, file: &str) -> String {
        format!("sys/block/{}/queue/{file}", self.name)
    }

    /// The kind of device that it is, and why.
    fn kind(&self) -> (&'static str, &'static str) {
        match (self.name.as_str(), self.rotational) {
            (name, _) if name.starts_with("nvme") => ("nvme", "an NVMe drive"),
            (name, _) if name.starts_with("vd") || name.starts_with("xvd") => ("cloud", "a virtual disk"),
            (_, Some(true)) => ("hdd", "rotational"),
            (_, Some(false)) => ("sata-ssd", "not rotational"),
            (_, None) => ("hdd", "queue/rotational cannot be read"),
        }
    }

    /// Is bfq its scheduler, which has weights of its own?
    pub fn has_bfq(&self, files: &Files) -> bool {
        files.word(&self.queue("scheduler")).is_some_and(|text| chosen(&text) == "bfq")
    }

    /// The modelled device that stands for it.
    pub fn device(&self) -> String {
        let (word, why) = self.kind();
        let mut out =
            format!("device = {}   # {why}; 'fairlift calibrate' makes a device file of it\n", quoted(word));
        let Some(model) = &self.model else { return out };
        let _ = writeln!(out, "# The drive: {}", plain(model));
        let words = model.split_whitespace().collect::<Vec<_>>().join("_");
        if let Some(measured) = Measured::all().find(|measured| words.starts_with(measured.name)) {
            let _ = writeln!(out, "# Measured on such a drive: io.cost.model = {}", quoted(measured.name));
        }
        out
    }

    /// Its scheduler with what differs from the defaults, and all that was read as comments.
    pub fn scheduler(&self, files: &Files, rules: &Rules) -> String {
        let mut notes = String::new();
        let text = files.word(&self.queue("scheduler"));
        let name = text.as_deref().map_or("none", chosen);
        if text.is_none() {
            let _ = writeln!(notes, "# queue/scheduler cannot be read: none is a guess.");
        }
        let (mut spec, is_known) = match SchedulerSpec::parse_for(name, rules) {
            Ok(spec) => (spec, true),
            Err(_) => (fallback(rules), false),
        };
        if !is_known {
            let reason = format!("the lab has no '{}' under Linux {}", plain(name), rules.version);
            let _ = writeln!(
                notes,
                "# queue/scheduler = {}: {reason}; {} stands for it.",
                plain(name),
                spec.name()
            );
        }
        self.settings(files, rules, &mut spec, &mut notes);
        if is_known {
            self.tunables(files, rules, &mut spec, &mut notes);
        }
        for file in FACTS {
            notes.push_str(&self.note(files, file));
        }
        let queues = files.folders(&format!("sys/block/{}/mq", self.name)).map_or(0, |queues| queues.len());
        let _ = writeln!(notes, "# mq: {queues} hardware queues; the lab has one.");
        format!("schedulers = [{}]\n\n{notes}\n", quoted(&spec.to_string()))
    }

    fn note(&self, files: &Files, file: &str) -> String {
        match files.word(&self.queue(file)) {
            Some(value) => format!("# queue/{file} = {}\n", plain(&value)),
            None => format!("# queue/{file} cannot be read.\n"),
        }
    }

    /// What goes with every scheduler.
    fn settings(&self, files: &Files, rules: &Rules, spec: &mut SchedulerSpec, notes: &mut String) {
        for file in SETTINGS {
            let note = self.note(files, file);
            notes.push_str(note.trim_end());
            let Some(value) = files.word(&self.queue(file)) else {
                notes.push('\n');
                continue;
            };
            let refusal = match self.is_default(file, &value, spec) {
                true => None,
                false => self.beyond_model(file, &value, spec).or_else(|| set(spec, file, &value, rules)),
            };
            notes.push_str(&refusal.map_or_else(String::new, |why| format!(": not set, {why}")));
            notes.push('\n');
        }
    }

    /// The limits of the modelled device that stands for it.
    fn modelled(&self) -> Option<Limits> {
        DeviceSpec::load(self.kind().0).ok().map(|device| *device.build(1).limits())
    }

    /// Why the modelled drive cannot have it.
    fn beyond_model(&self, file: &str, value: &str, spec: &SchedulerSpec) -> Option<String> {
        let limits = self.modelled()?;
        let most_kib = u64::from(limits.max_sectors / 2);
        match file {
            "nr_requests" if spec.is_direct() => Some(format!(
                "without a scheduler it is the modelled drive's queue depth, {}",
                limits.queue_depth
            )),
            "max_sectors_kb" if value.parse().is_ok_and(|kib: u64| kib >= most_kib) => {
                Some(format!("the modelled drive takes {most_kib} at most"))
            }
            _ => None,
        }
    }

    /// Is that what the lab has anyway?
    fn is_default(&self, file: &str, value: &str, spec: &SchedulerSpec) -> bool {
        let wbt = match (spec.is_without_wbt(), self.modelled().is_some_and(|limits| limits.rotational)) {
            (true, _) => "0",
            (false, false) => "2000",
            (false, true) => "75000",
        };
        match file {
            "wbt_lat_usec" => value == wbt,
            _ => default_of(file).is_some_and(|default| default.to_string() == value),
        }
    }

    fn tunables(&self, files: &Files, rules: &Rules, spec: &mut SchedulerSpec, notes: &mut String) {
        let known = (spec.descriptor().tunables)(rules.profile);
        for file in files.names(&self.queue("iosched")) {
            let Some(value) = files.word(&self.queue(&format!("iosched/{file}"))) else {
                let _ = writeln!(notes, "# queue/iosched/{file} cannot be read.");
                continue;
            };
            let _ = write!(notes, "# queue/iosched/{file} = {}", plain(&value));
            let tunable = known.iter().find(|tunable| tunable.name == file);
            let all_tags =
                file == "async_depth" && files.word(&self.queue("nr_requests")).as_ref() == Some(&value);
            let is_default =
                |tunable: &'static Tunable| all_tags || tunable.parse(&value) == Ok(tunable.stored_default());
            let refusal = match tunable {
                None => Some("the lab has no such tunable".to_owned()),
                Some(tunable) if is_default(tunable) => None,
                Some(_) => set(spec, &file, &value, rules),
            };
            let _ =
                writeln!(notes, "{}", refusal.map_or_else(String::new, |why| format!(": not set, {why}")));
        }
    }
}

/// The default of a setting of every scheduler.
fn default_of(name: &str) -> Option<u64> {
    host::tunables().find(|tunable| tunable.name == name).map(|tunable| tunable.default)
}

/// Set it; why that does not go.
fn set(spec: &mut SchedulerSpec, name: &str, value: &str, rules: &Rules) -> Option<String> {
    spec.set(name, value, rules.profile).err().map(|error| plain(&error.to_string()))
}

/// What stands for a scheduler that the lab has not.
fn fallback(rules: &Rules) -> SchedulerSpec {
    let name = if rules.blk_mq { "none" } else { "noop" };
    SchedulerSpec::parse(name, rules.profile).unwrap_or_else(|_| unreachable!("a built-in scheduler"))
}

/// The word in brackets of `none [mq-deadline] kyber`.
fn chosen(text: &str) -> &str {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(name, _)| name)
}

fn named(files: &Files, all: &[String], asked: &str) -> Result<String, Failure> {
    let name = asked.strip_prefix("/dev/").unwrap_or(asked);
    if all.iter().any(|disk| disk == name) {
        return Ok(name.to_owned());
    }
    let has_part = |disk: &&String| {
        !name.is_empty()
            && !name.contains('/')
            && files.folders(&format!("sys/block/{disk}/{name}")).is_some()
    };
    all.iter().find(has_part).cloned().ok_or_else(|| {
        let mut failure = Failure::new(format!("there is no disk '{}'", plain(asked)));
        if let Some(near) = fairlift_sim::scheduler::nearest(name, all.iter().map(String::as_str)) {
            failure = failure.help(format!("did you mean '{near}'?"));
        }
        failure.help(format!("disks: {}", all.join(", ")))
    })
}

fn only_one(all: &[String]) -> Result<String, Failure> {
    let is_disk = |name: &&String| !NOT_DISKS.iter().any(|prefix| name.starts_with(prefix));
    let disks: Vec<&String> = all.iter().filter(is_disk).collect();
    match disks[..] {
        [disk] => Ok(disk.clone()),
        [] => Err(Failure::new("there is no disk").help(format!("name one of: {}", all.join(", ")))),
        _ => {
            let names: Vec<&str> = disks.iter().map(|name| name.as_str()).collect();
            Err(Failure::new("there are several disks").help(format!("name one of: {}", names.join(", "))))
        }
    }
}
