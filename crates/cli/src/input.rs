//! From the command line to a scenario.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use fairlift_fio::{Change, MAX_BYTES, ParseOptions, Parsed, Source, parse, parse_command_line};
use fairlift_sim::device::{DeviceSpec, WORDS, word};
use fairlift_sim::group::{GroupTree, KEYS};
use fairlift_sim::kernel::{Filesystem, Memory, Rules, version};
use fairlift_sim::scenario::{self, Case, Scenario};
use fairlift_sim::scheduler::names::{self, Era, Name};
use fairlift_sim::scheduler::{SchedulerSpec, nearest};

use crate::args::WorkArguments;
use crate::error::{Failure, note, warn, warn_of_jobs};
use crate::output::reason;
use crate::programs::{self, Behind};
use crate::settings::Settings;

const DEVICE: &str = "sata7200-2009";
/// Longest runtime, microseconds: a day.
const RUNTIME_US_MAX: u64 = 86_400_000_000;

/// How many schedulers to run it under when the user names none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Columns {
    /// The scenario's own, or all that the kernel has.
    All,
    /// The kernel's default.
    One,
}

/// What is to be run, checked, with its warnings printed, under `schedulers`; if there are none, `columns` says under which.
pub fn scenario(work: &WorkArguments, schedulers: &[String], columns: Columns) -> Result<Scenario, Failure> {
    let behind = Behind::of(&work.behind);
    let settings = Settings::of(&work.set)?;
    let jobs = &settings.jobs[..];
    let mut scenario = match (&work.jobs[..], &behind) {
        ([], Behind::Nothing) => {
            return Err(Failure::new("nothing to run")
                .help("name a fio job file, '-' for standard input, or a scenario (.toml)")
                .help("or give fio's own options behind '--': -- --name=r --rw=randread --size=1g")
                .help("or a program: -- fs_mark -S 1 -D 100 -N 1000 -s 65536 -t 1 -w 4096"));
        }
        ([], Behind::FioOptions(_) | Behind::Programs(_)) if !jobs.is_empty() => {
            return Err(Failure::new("'--set job.…' changes jobs of a file, and there is no file")
                .at("--set")
                .help("give the option behind '--'"));
        }
        ([], Behind::FioOptions(options)) => of_command_line(options, work.strict)?,
        ([], Behind::Programs(commands)) => of_jobs(Parsed::default(), &[], &commands.join(", "))?,
        (_, Behind::FioOptions(_)) => {
            return Err(Failure::new("both job files and fio options behind '--'")
                .help("put the options into the job file, or leave the file away"));
        }
        ([file], _) if file.ends_with(".toml") => of_scenario_file(file, work.strict, jobs)?,
        (files, _) => of_job_files(files, work.strict, jobs)?,
    };
    if let Some(name) = &work.case {
        choose_case(&mut scenario, name)?;
    }
    if let Behind::Programs(commands) = &behind {
        programs::add(&mut scenario, commands)?;
    }
    let host = work.host.as_deref().map(|file| of_scenario_file(file, work.strict, &[])).transpose()?;
    let programs_added = matches!(behind, Behind::Programs(_));
    let is_scenario = matches!(&work.jobs[..], [file] if file.ends_with(".toml"));
    let (filesystem, mount) = (work.filesystem.as_deref(), work.mount.as_deref());
    programs::mount(&mut scenario, filesystem, mount, programs_added, is_scenario)?;
    match &work.kernel {
        Some(name) => scenario.rules = kernel(name)?.clone(),
        None if !is_scenario => {
            scenario.rules = host.as_ref().map_or(version::TODAY, |host| &host.rules).clone();
        }
        None => {}
    }
    match (&devices(&work.device)?[..], &host) {
        // A scenario's volume is then one of these.
        ([first, ..], _) => {
            let under = first.under(scenario.device.volume());
            scenario.device = under.map_err(|message| Failure::new(message).at("--device"))?;
        }
        ([], Some(host)) if !is_scenario => scenario.device = host.device.clone(),
        ([], None) if !is_scenario && scenario.rules.blk_mq => return Err(no_device()),
        ([], _) => {}
    }
    scenario.device = settings.change(&scenario.device)?;
    scenario.seed = work.seed.unwrap_or(scenario.seed);
    scenario.fresh_files |= work.fresh_files;
    scenario.explain = work.explain;
    if let Some(text) = &work.runtime {
        scenario.runtime_ns = Some(runtime_ns(text)?);
    }
    if let Some(host) = &host {
        add_groups(&mut scenario, host)?;
    }
    let with_host = host.as_ref().map(|host| beside_host(&scenario, host, schedulers, columns));
    match (columns, &with_host) {
        (_, Some(texts)) => choose(&mut scenario, texts)?,
        (Columns::One, None) if schedulers.is_empty() => {
            let default = if scenario.rules.blk_mq { "mq-deadline" } else { "cfq" };
            choose(&mut scenario, &[default.to_owned()])?;
        }
        _ => choose(&mut scenario, schedulers)?,
    }
    set_all(&mut scenario, settings.others.iter().copied())?;
    if scenario.filesystem == Filesystem::Raw && scenario.schedulers.iter().any(SchedulerSpec::yields) {
        warn(
            "yield=1 changes nothing on a raw device: it is the journal of a file system that makes tasks yield",
        );
    }
    Ok(scenario)
}

/// The host's scheduler, then those asked for, the scenario's own or the kernel's; for one column the host's.
fn beside_host(scenario: &Scenario, host: &Scenario, asked: &[String], columns: Columns) -> Vec<String> {
    let mut texts: Vec<String> = host.schedulers.iter().map(ToString::to_string).collect();
    let others = match (asked, &scenario.schedulers[..], columns) {
        ([], _, Columns::One) => Vec::new(),
        ([], [], _) => defaults(&scenario.rules),
        ([], own, _) => own.iter().map(ToString::to_string).collect(),
        (asked, _, Columns::One) => return asked.to_vec(),
        (asked, ..) => asked.to_vec(),
    };
    for text in others {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

/// The host's groups, with what they are set to, beside those of the jobs.
fn add_groups(scenario: &mut Scenario, host: &Scenario) -> Result<(), Failure> {
    let Some(groups) = host.cases.first().map(|case| &case.groups) else { return Ok(()) };
    for case in &mut scenario.cases {
        case.groups.take_over(groups).map_err(|e| Failure::new(e.to_string()).at("--host"))?;
    }
    Ok(())
}

/// Leave the case of this name only.
fn choose_case(scenario: &mut Scenario, name: &str) -> Result<(), Failure> {
    let names: Vec<String> = scenario.cases.iter().map(|case| case.name.clone()).collect();
    if !names.iter().any(|other| other == name) {
        let mut failure = Failure::new(format!("there is no case '{name}'")).at("--case");
        if let Some(near) = nearest(name, names.iter().map(String::as_str)) {
            failure = failure.help(format!("did you mean '{near}'?"));
        }
        return Err(failure.help(format!("the cases are {}", names.join(", "))));
    }
    scenario.cases.retain(|case| case.name == name);
    scenario.published.clear();
    Ok(())
}

/// There is no typical drive of today: which one decides the answer.
pub fn no_device() -> Failure {
    let words: Vec<&str> = WORDS.iter().map(|word| word.word).collect();
    Failure::new("no device is named, and the answer depends on it")
        .help(format!("choose a kind: --device {}", words.join(" | ")))
        .help(
            "or a preset of 'fairlift devices', or a device file ('fairlift calibrate' makes one of a drive)",
        )
}

/// The devices that the command line names, changed as it says.
pub fn devices_of(work: &WorkArguments) -> Result<Vec<DeviceSpec>, Failure> {
    let settings = Settings::of(&work.set)?;
    devices(&work.device)?.iter().map(|device| settings.change(device)).collect()
}

/// The devices that `names` name, of folders all device files in them, in their order by name.
pub fn devices(names: &[String]) -> Result<Vec<DeviceSpec>, Failure> {
    let mut devices: Vec<DeviceSpec> = Vec::new();
    for name in names {
        let files = if Path::new(name).is_dir() { device_files(name)? } else { vec![name.clone()] };
        for file in files {
            let device = device(&file)?;
            if devices.iter().any(|other| other.name() == device.name()) {
                return Err(Failure::new(format!("device '{}' is given twice", device.name())).at("--device"));
            }
            devices.push(device);
        }
    }
    Ok(devices)
}

/// The device files in a folder.
fn device_files(folder: &str) -> Result<Vec<String>, Failure> {
    let fail = |e: io::Error| Failure::new(format!("cannot read '{folder}': {}", reason(&e))).at("--device");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_file() && path.extension().is_some_and(|ending| ending == "toml") {
            files.push(path.display().to_string());
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(Failure::new(format!("there is no device file in '{folder}'"))
            .at("--device")
            .help("device files end in .toml; 'fairlift calibrate' makes them")),
        false => Ok(files),
    }
}

/// The device called `name`, or described in the file of that name.
pub fn device(name: &str) -> Result<DeviceSpec, Failure> {
    if let Some(word) = word(name).filter(|word| !word.note.is_empty()) {
        note(&format!("--device {name} is {}: {}", word.preset, word.note));
    }
    DeviceSpec::load(name).map_err(|e| Failure::new(e.message.clone()).at(device_place(&e)))
}

pub(crate) fn device_place(error: &fairlift_sim::device::SpecError) -> String {
    match error.line {
        Some(line) => format!("{}:{line}", error.origin),
        None => format!("device '{}'", error.origin),
    }
}

// ---- jobs -------------------------------------------------------------------------------------------------------------

fn of_scenario_file(path: &str, strict: bool, changes: &[Change]) -> Result<Scenario, Failure> {
    let bytes = read(path)?;
    if bytes.len() > MAX_BYTES {
        return Err(Failure::new(format!("more than {MAX_BYTES} bytes are too many for a scenario")).at(path));
    }
    let text = String::from_utf8(bytes).map_err(|_| Failure::new("not a text file (not UTF-8)").at(path))?;
    let scenario = scenario::parse_changed(&text, path, changes).map_err(|e| Failure::of_scenario(&e))?;
    if strict && !scenario.warnings.is_empty() {
        return Err(Failure::of_jobs(&scenario.warnings, &[]));
    }
    warn_of_jobs(&scenario.warnings, &[]);
    Ok(scenario)
}

fn of_job_files(files: &[String], strict: bool, changes: &[Change]) -> Result<Scenario, Failure> {
    if let Some(toml) = files.iter().find(|f| f.ends_with(".toml")) {
        return Err(Failure::new(format!("'{toml}' is a scenario: it says all there is to run"))
            .help("run it by itself, without other files"));
    }
    if files.iter().filter(|f| *f == "-").count() > 1 {
        return Err(Failure::new("standard input can be read only once").help("give '-' once"));
    }
    let sources = files.iter().map(|file| source(file)).collect::<Result<Vec<_>, _>>()?;
    let options = ParseOptions {
        strict,
        changes,
        env: &|name| std::env::var(name).ok(),
        read_file: &|path| read_at_most(File::open(path)?, MAX_BYTES),
        ..ParseOptions::default()
    };
    let parsed = parse(&sources, &options).map_err(|e| Failure::of_jobs(&e, &sources))?;
    of_jobs(parsed, &sources, &files.join(", "))
}

fn of_command_line(options: &[String], strict: bool) -> Result<Scenario, Failure> {
    let parsed = parse_command_line(options, strict).map_err(|e| Failure::of_jobs(&e, &shown(options)))?;
    of_jobs(parsed, &shown(options), "command line")
}

/// The arguments as lines of a file, so that errors can show the one they are about.
fn shown(options: &[String]) -> [Source; 1] {
    [Source::new("(command line)", options.iter().map(|o| o.replace('\n', " ") + "\n").collect::<String>())]
}

/// What these jobs are, with everything else as it is by default; their warnings are printed.
pub fn of_jobs(parsed: Parsed, sources: &[Source], name: &str) -> Result<Scenario, Failure> {
    warn_of_jobs(&parsed.warnings, sources);
    if !parsed.refused.is_empty() {
        return Err(Failure::of_refused(&parsed.refused, sources));
    }
    let mut groups = GroupTree::default();
    groups.join_jobs(&parsed.jobs).map_err(|e| Failure::new(e.to_string()).at(name))?;
    let case = Case {
        name: String::new(),
        jobs: parsed.jobs,
        programs: Vec::new(),
        groups,
        replaying: None,
        device: None,
        seed: None,
        global_options: parsed.global_options,
    };
    Ok(Scenario { warnings: parsed.warnings, ..blank(name, vec![case])? })
}

/// A scenario of these cases with everything else as it is by default.
pub fn blank(name: &str, cases: Vec<Case>) -> Result<Scenario, Failure> {
    Ok(Scenario {
        name: name.to_owned(),
        title: name.to_owned(),
        about: String::new(),
        device: DeviceSpec::load(DEVICE).map_err(|e| Failure::internal(e.to_string()))?,
        rules: version::DEFAULT.clone(),
        schedulers: Vec::new(),
        memory: Memory::default(),
        filesystem: Filesystem::Raw,
        seed: 1,
        runtime_ns: None,
        fresh_files: false,
        explain: false,
        warmup_ns: None,
        cases,
        case_variable: String::new(),
        published: Vec::new(),
        left_out: Vec::new(),
        warnings: Vec::new(),
    })
}

fn source(file: &str) -> Result<Source, Failure> {
    if file != "-" {
        return Ok(Source::new(file, read(file)?));
    }
    let name = "(standard input)";
    let bytes = read_at_most(io::stdin().lock(), MAX_BYTES)
        .map_err(|e| Failure::new(format!("cannot read standard input: {}", reason(&e))))?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Failure::new("standard input is empty").at(name).help("pipe a fio job file into it"));
    }
    Ok(Source::new(name, without_bom(bytes, name)?))
}

/// A file's bytes, or one more than is allowed, so that the reader can say that it is too long.
pub fn read(path: &str) -> Result<Vec<u8>, Failure> {
    let fail = |e: io::Error| Failure::new(format!("cannot read '{path}': {}", reason(&e)));
    if Path::new(path).is_dir() {
        return Err(
            Failure::new(format!("cannot read '{path}': it is a directory")).help("name a file in it")
        );
    }
    let file = File::open(path).map_err(fail)?;
    without_bom(read_at_most(file, MAX_BYTES).map_err(fail)?, path)
}

/// The bytes, if they do not begin with a byte order mark, as editors of another system write it: fio takes it for a part of the
/// first word, and TOML allows none.
fn without_bom(bytes: Vec<u8>, name: &str) -> Result<Vec<u8>, Failure> {
    let marks: [(&[u8], &str); 3] =
        [(b"\xef\xbb\xbf", "UTF-8"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16")];
    match marks.iter().find(|(mark, _)| bytes.starts_with(mark)) {
        None => Ok(bytes),
        Some((_, encoding)) => {
            Err(Failure::new(format!("the file begins with a byte order mark (BOM) of {encoding}"))
                .at(format!("{name}:1"))
                .help("save it as UTF-8 without a BOM"))
        }
    }
}

fn read_at_most(from: impl Read, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

// ---- options ------------------------------------------------------------------------------------------------------------

/// The kernel called `name`.
pub fn kernel(name: &str) -> Result<&'static Rules, Failure> {
    version::find(name).ok_or_else(|| {
        let names = || version::VERSIONS.iter().map(|v| v.version);
        let mut failure = Failure::new(format!("unknown kernel '{name}'"));
        if let Some(near) = nearest(name, names()) {
            failure = failure.help(format!("did you mean '{near}'?"));
        }
        failure.help(format!("allowed: {}", names().collect::<Vec<_>>().join(", ")))
    })
}

/// A time to run for as fio writes it, nanoseconds.
pub fn runtime_ns(text: &str) -> Result<u64, Failure> {
    Ok(runtime_us(text)? * 1000)
}

/// The same in microseconds, read by the job reader itself.
fn runtime_us(text: &str) -> Result<u64, Failure> {
    let fail = |message: String| Failure::new(message).at("--runtime");
    let option = format!("--runtime={text}");
    let parsed = parse_command_line(&["--name=x", "--size=1m", &option], false).map_err(|diagnostics| {
        let (message, allowed) = match diagnostics.first() {
            Some(d) => (d.message.clone(), d.allowed.clone()),
            None => (format!("'{text}' is not a time"), String::new()),
        };
        fail(message).help(format!("allowed: {allowed}"))
    })?;
    match parsed.jobs.first().map_or(0, |job| job.schedule.runtime_us) {
        0 => Err(fail(format!("'{text}' is no time to run for"))
            .help("allowed: more than 0, such as 30, 500ms or 2m")),
        us if us > RUNTIME_US_MAX => Err(fail(format!("'{text}' is too long")).help("allowed: up to 1d")),
        us => Ok(us),
    }
}

/// Put the schedulers asked for into the scenario; those it has are read again for the kernel it now has.
pub fn choose(scenario: &mut Scenario, asked: &[String]) -> Result<(), Failure> {
    let texts: Vec<String> = match (asked, &scenario.schedulers[..]) {
        ([], []) => defaults(&scenario.rules),
        ([], own) => own.iter().map(ToString::to_string).collect(),
        (asked, _) => asked.to_vec(),
    };
    scenario.schedulers.clear();
    for text in &texts {
        let spec = SchedulerSpec::parse_for(text, &scenario.rules)
            .map_err(|e| Failure::of_scheduler(&e, "--scheduler"))?;
        if scenario.schedulers.contains(&spec) {
            return Err(Failure::new(format!("scheduler '{spec}' is given twice"))
                .at("--scheduler")
                .help("columns must differ, as in cfq,cfq:slice_idle=0"));
        }
        scenario.schedulers.push(spec);
    }
    Ok(())
}

/// What is compared when the user names none: what the kernel itself has.
fn defaults(rules: &Rules) -> Vec<String> {
    let own = |name: &&Name| !name.word.starts_with("fl-") && name.word != "anticipatory";
    names::of_era(Era::of(rules)).filter(own).map(|name| name.word.to_owned()).collect()
}

/// How settings of groups begin.
pub const GROUP_SETTING: &str = "group.";

/// Apply these settings, each of a thing of its own.
pub fn set_all<'a>(
    scenario: &mut Scenario,
    settings: impl Iterator<Item = &'a str> + Clone,
) -> Result<(), Failure> {
    let key = |setting: &'a str| setting.split('=').next().unwrap_or_default().trim();
    for (at, setting) in settings.clone().enumerate() {
        if let Some(first) = settings.clone().take(at).find(|other| key(other) == key(setting)) {
            return Err(Failure::new(format!("'{}' is set twice: '{first}' and '{setting}'", key(setting)))
                .at("--set")
                .help("give it once"));
        }
        set(scenario, setting)?;
    }
    Ok(())
}

/// Apply `SCHEDULER.TUNABLE=VALUE` or `group.PATH.KEY=VALUE`.
fn set(scenario: &mut Scenario, setting: &str) -> Result<(), Failure> {
    let fail = |message: String| Failure::new(message).at("--set");
    if let Some(setting) = setting.strip_prefix(GROUP_SETTING) {
        return set_group(scenario, setting);
    }
    let parts = setting.split_once('=').and_then(|(key, value)| Some((key.split_once('.')?, value)));
    let Some(((name, tunable), value)) = parts else {
        return Err(fail(format!("'{setting}' is not a setting"))
            .help("allowed: SCHEDULER.TUNABLE=VALUE, such as cfq.slice_idle=0, group.PATH.weight=VALUE, device.SECTION.KEY=VALUE, job.NAME.OPTION=VALUE"));
    };
    let asked = names::find(name.trim()).map_err(|e| Failure::of_scheduler(&e, "--set"))?;
    let profile = scenario.rules.profile;
    let mut found = false;
    for spec in scenario.schedulers.iter_mut().filter(|s| s.name() == asked.word) {
        spec.set(tunable.trim(), value.trim(), profile).map_err(|e| Failure::of_scheduler(&e, "--set"))?;
        found = true;
    }
    if !found {
        let columns: Vec<_> = scenario.schedulers.iter().map(ToString::to_string).collect();
        return Err(fail(format!("'{setting}' changes nothing: no column is {}", asked.word))
            .help(format!("the columns are {}", columns.join(", "))));
    }
    Ok(())
}

/// `PATH.KEY` as path and key; some keys have points in them, and paths may, too.
fn target_of(target: &str) -> Option<(&str, &str)> {
    let key = KEYS.into_iter().filter(|key| key.contains('.') && target.trim_end().ends_with(key));
    let with_points =
        key.filter_map(|key| Some((target.trim_end().strip_suffix(key)?.strip_suffix('.')?, key)));
    with_points.min_by_key(|(path, _)| path.len()).or_else(|| target.rsplit_once('.'))
}

/// Apply `PATH.KEY=VALUE` to the groups, in every case that has this one.
fn set_group(scenario: &mut Scenario, setting: &str) -> Result<(), Failure> {
    let fail = |message: String| Failure::new(message).at("--set");
    let parts = setting.split_once('=').and_then(|(target, value)| Some((target_of(target)?, value.trim())));
    let Some(((path, key), value)) = parts else {
        return Err(fail(format!("'group.{setting}' is not a setting of a group")).help(format!(
            "allowed: group.PATH.KEY=VALUE, such as group./vm1.weight=500; keys: {}",
            KEYS.join(", ")
        )));
    };
    if scenario.cases.iter().all(|case| case.groups.is_empty()) {
        let remedy = match scenario.cases.iter().any(|case| case.replaying.is_some()) {
            true => "a trace has them if it names cgroups, or if it has several volumes and no processes",
            false => "name some: cgroup= in a fio job, [[group]] or a program's cgroup in a scenario",
        };
        return Err(fail(format!("'group.{setting}': there are no groups")).help(remedy));
    }
    let cases = scenario.cases.iter_mut();
    let results: Vec<_> = cases.map(|case| case.groups.set(path.trim(), key.trim(), value)).collect();
    match results.iter().all(Result::is_err) {
        true => results.into_iter().collect::<Result<(), _>>().map_err(|e| fail(e.to_string())),
        false => Ok(()),
    }
}
