//! Scenario files: TOML to [`Scenario`], with errors that name file, line and word.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::Path;

use fairlift_core::IoPrio;
use fairlift_fio::{Change, Diagnostic, Job, ParseOptions, Parsed, Refused, Source};
use serde::Deserialize;
use toml::Spanned;

use super::published::{Accept, Compare, LeftOut, Metric, Origin, Over, Published};
use super::{Case, Scenario, Vars};
use crate::block::Volume;
use crate::device::DeviceSpec;
use crate::group::{GroupMetric, GroupSpec, GroupTree};
use crate::kernel::{Filesystem, Memory, version};
use crate::program::ProgramSpec;
use crate::scheduler::{SchedulerSpec, nearest};

/// Largest scenario file read, bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Most runs of one program.
const REPEAT_MAX: u64 = 1000;

/// What is wrong with a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// File, and line where there is one.
    pub place: String,
    /// What is wrong, with what is allowed.
    pub message: String,
    /// Remarks of the fio job reader, if it is the jobs that are wrong.
    pub remarks: Vec<Diagnostic>,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        for remark in &self.remarks {
            write!(f, "\n{remark}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    letter: String,
    origin: Option<Origin>,
    device: Spanned<String>,
    kernel: Option<Spanned<String>>,
    schedulers: Vec<Spanned<String>>,
    seed: Option<u64>,
    runtime_s: Option<Spanned<f64>>,
    warmup_s: Option<Spanned<f64>>,
    cache_mib: Option<Spanned<u64>>,
    filesystem: Option<Spanned<String>>,
    mount: Option<Spanned<String>>,
    #[serde(default)]
    journal_yields: bool,
    #[serde(default)]
    fresh_files: bool,
    hole_write_us: Option<Spanned<f64>>,
    volume: Option<Spanned<FileVolume>>,
    jobs: Option<Spanned<String>>,
    jobs_file: Option<Spanned<String>>,
    #[serde(default)]
    group: Vec<Spanned<GroupSpec>>,
    #[serde(default)]
    program: Vec<FileProgram>,
    #[serde(default)]
    case_variable: String,
    #[serde(default)]
    case: Vec<FileCase>,
    #[serde(default)]
    published: Vec<FilePublished>,
    #[serde(default)]
    left_out: Vec<LeftOut>,
}

/// Several of the device under one volume.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileVolume {
    disks: Spanned<usize>,
    stripe_kib: Spanned<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileProgram {
    name: Spanned<String>,
    command: Spanned<String>,
    #[serde(default)]
    background: bool,
    start_s: Option<Spanned<f64>>,
    ioprio: Option<Spanned<String>>,
    cgroup: Option<Spanned<String>>,
    repeat: Option<Spanned<u64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCase {
    name: Spanned<String>,
    #[serde(default)]
    vars: Vars,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FilePublished {
    scheduler: Option<Spanned<String>>,
    #[serde(default)]
    schedulers: Vec<Spanned<String>>,
    job: Option<Spanned<String>>,
    group: Option<Spanned<String>>,
    metric: Spanned<String>,
    over: Option<Spanned<String>>,
    over_job: Option<Spanned<String>>,
    over_group: Option<Spanned<String>>,
    over_case: Option<Spanned<String>>,
    compare: Option<Compare>,
    values: BTreeMap<String, f64>,
    tolerance: Option<Spanned<f64>>,
    accept: Option<Spanned<FileRange>>,
    source: Option<String>,
    letter: Option<String>,
    origin: Option<Origin>,
    #[serde(default)]
    fitted: Vec<String>,
    #[serde(default)]
    why: BTreeMap<String, String>,
}

/// `{ min = 0.12, max = 0.27 }`
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileRange {
    min: Option<f64>,
    max: Option<f64>,
}

/// Read a scenario file.
///
/// # Errors
/// When it cannot be read or is wrong somewhere.
pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
    let origin = path.display().to_string();
    let fail = |message: String| ScenarioError { place: origin.clone(), message, remarks: Vec::new() };
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|e| fail(format!("cannot read: {e}")))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(fail(format!("too large for a scenario (at most {FILE_BYTES_MAX} bytes)")));
    }
    let text = String::from_utf8(bytes).map_err(|_| fail("not a text file (not UTF-8)".to_owned()))?;
    parse(&text, &origin)
}

/// Read a scenario's text; `origin` is what errors call it, and relative paths start at its folder.
///
/// # Errors
/// When it is wrong somewhere.
pub fn parse(text: &str, origin: &str) -> Result<Scenario, ScenarioError> {
    parse_changed(text, origin, &[])
}

/// The same, with options of its fio jobs changed.
///
/// # Errors
/// When it is wrong somewhere, or has no job of a changed name.
pub fn parse_changed(text: &str, origin: &str, changes: &[Change]) -> Result<Scenario, ScenarioError> {
    let folder = Path::new(origin).parent().unwrap_or(Path::new(""));
    let beside = |name: &str| {
        let path = folder.join(name);
        path.is_file().then(|| (path.display().to_string(), std::fs::read_to_string(&path)))
    };
    Reader { text, origin, beside: &beside, changes }.read()
}

/// A file beside a scenario: what to call it, and its text.
pub type Beside = (String, std::io::Result<String>);

/// Read a scenario's text; `beside` gives the files it names, `None` for those there are not.
///
/// # Errors
/// When it is wrong somewhere.
pub fn parse_among(
    text: &str,
    origin: &str,
    beside: &dyn Fn(&str) -> Option<Beside>,
) -> Result<Scenario, ScenarioError> {
    Reader { text, origin, beside, changes: &[] }.read()
}

struct Reader<'a> {
    text: &'a str,
    origin: &'a str,
    beside: &'a dyn Fn(&str) -> Option<Beside>,
    changes: &'a [Change],
}

impl Reader<'_> {
    fn read(&self) -> Result<Scenario, ScenarioError> {
        let file: File = toml::from_str(self.text).map_err(|e| self.toml_error(&e))?;
        self.scenario(file)
    }

    fn scenario(&self, file: File) -> Result<Scenario, ScenarioError> {
        let device = self.device(&file.device)?;
        let device = self.under_volume(&device, file.volume.as_ref())?;
        let mut rules = match &file.kernel {
            None => version::DEFAULT.clone(),
            Some(name) => version::find(name.get_ref())
                .ok_or_else(|| self.unknown("kernel", name, version::VERSIONS.iter().map(|v| v.version)))?
                .clone(),
        };
        rules.journal_yields |= file.journal_yields;
        if let Some(us) = &file.hole_write_us {
            if !(0.0..=1e6).contains(us.get_ref()) {
                return Err(self.at(us.span(), "hole_write_us must be 0 to 1000000 (a second)".to_owned()));
            }
            rules.cpu_per_hole_write_ns = (*us.get_ref() * 1e3) as u64;
        }
        let mut schedulers = Vec::new();
        for text in &file.schedulers {
            schedulers.push(
                SchedulerSpec::parse_for(text.get_ref(), &rules)
                    .map_err(|e| self.at(text.span(), e.to_string()))?,
            );
        }
        if schedulers.is_empty() {
            return Err(self.whole("schedulers is empty: name at least one".to_owned()));
        }
        let runtime_ns = self.time("runtime_s", file.runtime_s.as_ref())?;
        let warmup_ns = self.time("warmup_s", file.warmup_s.as_ref())?;
        let mut memory = Memory::of(&rules, Memory::default().cache_bytes);
        let filesystem = self.filesystem(&file)?;
        if let Some(mib) = &file.cache_mib {
            if !(1..=1 << 20).contains(mib.get_ref()) {
                return Err(self.at(mib.span(), "cache_mib must be 1 to 1048576 (1 TiB)".to_owned()));
            }
            memory.cache_bytes = mib.get_ref() << 20;
        }
        let (cases, warnings) = self.cases(&file)?;
        let published = self.published(&file, &schedulers, &cases)?;
        let mut left_out = file.left_out;
        left_out
            .iter_mut()
            .filter(|out| out.letter.is_empty())
            .for_each(|out| out.letter.clone_from(&file.letter));
        let name = Path::new(self.origin)
            .file_stem()
            .map_or_else(|| self.origin.to_owned(), |s| s.to_string_lossy().into());
        Ok(Scenario {
            name,
            title: file.title,
            about: file.about,
            device,
            rules,
            schedulers,
            memory,
            filesystem,
            seed: file.seed.unwrap_or(1),
            runtime_ns,
            fresh_files: file.fresh_files,
            explain: false,
            warmup_ns,
            cases,
            case_variable: file.case_variable,
            published,
            left_out,
            warnings,
        })
    }

    /// A time above 0, nanoseconds.
    fn time(&self, key: &str, value: Option<&Spanned<f64>>) -> Result<Option<u64>, ScenarioError> {
        match value {
            None => Ok(None),
            Some(s) if *s.get_ref() > 0.0 && *s.get_ref() <= 86_400.0 => {
                Ok(Some((*s.get_ref() * 1e9) as u64))
            }
            Some(s) => Err(self.at(s.span(), format!("{key} must be above 0 and at most 86400 (a day)"))),
        }
    }

    fn device(&self, name: &Spanned<String>) -> Result<DeviceSpec, ScenarioError> {
        let found = match (self.beside)(name.get_ref()) {
            None => DeviceSpec::load(name.get_ref()),
            Some((origin, Ok(text))) => DeviceSpec::parse(&text, &origin),
            Some((origin, Err(e))) => {
                return Err(self.at(name.span(), format!("cannot read device '{origin}': {e}")));
            }
        };
        found.map_err(|e| self.at(name.span(), e.to_string()))
    }

    fn under_volume(
        &self,
        device: &DeviceSpec,
        volume: Option<&Spanned<FileVolume>>,
    ) -> Result<DeviceSpec, ScenarioError> {
        let Some(volume) = volume else { return Ok(device.clone()) };
        let FileVolume { disks, stripe_kib } = volume.get_ref();
        let (least, most) = Volume::DISKS;
        if !(least..=most).contains(disks.get_ref()) {
            return Err(self.at(disks.span(), format!("disks must be {least} to {most}")));
        }
        let kib = *stripe_kib.get_ref();
        if !kib.is_multiple_of(4) || !(4..=1 << 40).contains(&kib) {
            let message = "stripe_kib must be a multiple of 4 (a page), at least 4".to_owned();
            return Err(self.at(stripe_kib.span(), message));
        }
        let volume = Volume { disks: *disks.get_ref(), stripe_sectors: kib * 2 };
        device.under(Some(volume)).map_err(|message| self.at(stripe_kib.span(), message))
    }

    fn filesystem(&self, file: &File) -> Result<Filesystem, ScenarioError> {
        let name = file.filesystem.as_ref().map_or("raw", |name| name.get_ref());
        let options = file.mount.as_ref().map_or("", |mount| mount.get_ref());
        Filesystem::parse(name, options).map_err(|message| {
            match file.mount.as_ref().or(file.filesystem.as_ref()) {
                Some(place) => self.at(place.span(), message),
                None => self.whole(message),
            }
        })
    }

    /// The jobs and programs, once per case.
    fn cases(&self, file: &File) -> Result<(Vec<Case>, Vec<Diagnostic>), ScenarioError> {
        let source = self.job_source(file)?;
        if source.is_none() && file.program.iter().all(|p| p.background) {
            return Err(self.whole(
                "nothing runs: give jobs (a fio job file's text), jobs_file (a path) or a [[program]] that is not in the background"
                    .to_owned(),
            ));
        }
        let no_case = [(String::new(), Vars::new())];
        let named: Vec<_> = file.case.iter().map(|c| (c.name.get_ref().clone(), c.vars.clone())).collect();
        let mut cases: Vec<Case> = Vec::new();
        let mut warnings = Vec::new();
        for (name, vars) in if named.is_empty() { &no_case[..] } else { &named[..] } {
            if cases.iter().any(|c| c.name == *name) {
                return Err(self.whole(format!("two cases are called '{name}'")));
            }
            let mut parsed = Parsed::default();
            if let Some((text, origin, span)) = &source {
                parsed = parse_jobs(text, origin, vars, self.changes).map_err(|remarks| ScenarioError {
                    message: format!("the jobs are wrong{}", in_case(name)),
                    remarks,
                    ..self.at(span.clone(), String::new())
                })?;
                if let Some(refused) = parsed.refused.first() {
                    return Err(self.refused(refused, span.clone()));
                }
            }
            if warnings.is_empty() {
                warnings = parsed.warnings;
            }
            let programs = self.programs(file, vars, &parsed.jobs)?;
            let place = source.as_ref().map_or(0..0, |(_, _, span)| span.clone());
            let groups = self.groups(file, &parsed.jobs, place)?;
            cases.push(Case {
                name: name.clone(),
                jobs: parsed.jobs,
                programs,
                groups,
                replaying: None,
                device: None,
                seed: None,
                global_options: parsed.global_options,
            });
        }
        Ok((cases, warnings))
    }

    /// The groups of a case: those described, and those that jobs and programs name.
    fn groups(
        &self,
        file: &File,
        jobs: &[Job],
        jobs_place: Range<usize>,
    ) -> Result<GroupTree, ScenarioError> {
        let mut tree = GroupTree::default();
        for group in &file.group {
            tree.add(group.get_ref()).map_err(|e| self.at(group.span(), e.to_string()))?;
        }
        if let Some((path, why)) = tree.unkept_reserve() {
            let named = |group: &&Spanned<GroupSpec>| tree.find(&group.get_ref().path) == tree.find(&path);
            let span = file.group.iter().find(named).map_or(jobs_place.clone(), Spanned::span);
            return Err(self.at(span, why));
        }
        tree.join_jobs(jobs).map_err(|e| self.at(jobs_place, e.to_string()))?;
        for entry in &file.program {
            let Some(path) = &entry.cgroup else { continue };
            tree.join(path.get_ref()).map_err(|e| self.at(path.span(), e.to_string()))?;
        }
        Ok(tree)
    }

    /// Text, name and place of the fio jobs, if there are some.
    fn job_source(&self, file: &File) -> Result<Option<(String, String, Range<usize>)>, ScenarioError> {
        match (&file.jobs, &file.jobs_file) {
            (None, None) => Ok(None),
            (Some(jobs), None) => {
                Ok(Some((jobs.get_ref().clone(), format!("{} (jobs)", self.origin), jobs.span())))
            }
            (None, Some(path)) => {
                let fail = |e: &str| {
                    self.at(path.span(), format!("cannot read jobs_file '{}': {e}", path.get_ref()))
                };
                let (origin, text) =
                    (self.beside)(path.get_ref()).ok_or_else(|| fail("there is no such file"))?;
                Ok(Some((text.map_err(|e| fail(&e.to_string()))?, origin, path.span())))
            }
            (Some(_), Some(_)) => Err(self.whole(
                "give either jobs (a fio job file's text) or jobs_file (a path), not both".to_owned(),
            )),
        }
    }

    fn programs(&self, file: &File, vars: &Vars, jobs: &[Job]) -> Result<Vec<ProgramSpec>, ScenarioError> {
        let mut programs: Vec<ProgramSpec> = Vec::new();
        for entry in &file.program {
            let name = entry.name.get_ref();
            if programs.iter().any(|p| p.name == *name) || jobs.iter().any(|j| j.name == *name) {
                return Err(self.at(entry.name.span(), format!("two programs or jobs are called '{name}'")));
            }
            let command = with_vars(entry.command.get_ref(), vars);
            let mut spec =
                ProgramSpec::new(name, &command).map_err(|e| self.at(entry.command.span(), e.to_string()))?;
            spec.background = entry.background;
            if let Some(start) = &entry.start_s {
                if !(0.0..=86_400.0).contains(start.get_ref()) {
                    return Err(self.at(start.span(), "start_s must be 0 to 86400 (a day)".to_owned()));
                }
                spec.start_ns = (start.get_ref() * 1e9) as u64;
            }
            if let Some(repeat) = &entry.repeat {
                if !(1..=REPEAT_MAX).contains(repeat.get_ref()) {
                    return Err(self.at(repeat.span(), format!("repeat must be 1 to {REPEAT_MAX}")));
                }
                spec.repeat = *repeat.get_ref();
            }
            if let Some(ioprio) = &entry.ioprio {
                spec.ioprio = priority(ioprio.get_ref()).ok_or_else(|| {
                    let message = format!(
                        "unknown ioprio '{}' (allowed: rt/0 to rt/7, be/0 to be/7, idle)",
                        ioprio.get_ref()
                    );
                    self.at(ioprio.span(), message)
                })?;
            }
            spec.cgroup = entry.cgroup.as_ref().map(|path| path.get_ref().clone());
            programs.push(spec);
        }
        Ok(programs)
    }

    fn refused(&self, refused: &Refused, span: Range<usize>) -> ScenarioError {
        ScenarioError {
            remarks: refused.reasons.clone(),
            ..self.at(span, format!("job '{}' cannot be simulated", refused.name))
        }
    }

    fn published(
        &self,
        file: &File,
        schedulers: &[SchedulerSpec],
        cases: &[Case],
    ) -> Result<Vec<Published>, ScenarioError> {
        let mut rows = Vec::new();
        for (entry, row) in file.published.iter().enumerate() {
            let shown: Vec<String> = schedulers.iter().map(ToString::to_string).collect();
            let named: Vec<&Spanned<String>> = row.scheduler.iter().chain(&row.schedulers).collect();
            if named.is_empty() || (row.scheduler.is_some() && !row.schedulers.is_empty()) {
                let message = "a published row has either a scheduler or a list of schedulers";
                return Err(self.at(row.metric.span(), message.to_owned()));
            }
            if let Some(unknown) =
                named.iter().copied().chain(&row.over).find(|s| !shown.contains(s.get_ref()))
            {
                return Err(self.unknown("scheduler", unknown, shown.iter().map(String::as_str)));
            }
            let (job, metric) = self.metric(row, cases)?;
            let known = |case: &String| cases.iter().any(|c| c.name == *case);
            if let Some(case) = row.values.keys().chain(row.why.keys()).chain(&row.fitted).find(|c| !known(c))
            {
                return Err(self.at(
                    row.metric.span(),
                    format!("published figure for case '{case}', which there is not"),
                ));
            }
            if let Some(case) = row.over_case.as_ref().filter(|case| !known(case.get_ref())) {
                return Err(self.unknown("case", case, cases.iter().map(|c| c.name.as_str())));
            }
            let text = |word: &Option<Spanned<String>>| word.as_ref().map(|word| word.get_ref().clone());
            let accept = self.accept(row)?;
            let letter = row.letter.clone().unwrap_or_else(|| file.letter.clone());
            let is_ratio =
                [&row.over, &row.over_job, &row.over_group, &row.over_case].iter().any(|o| o.is_some());
            let origin = row.origin.or(file.origin).unwrap_or(match accept {
                _ if letter.is_empty() => Origin::Aim,
                Accept::Range(..) => Origin::Statement,
                Accept::Tolerance(..) if is_ratio => Origin::Derived,
                Accept::Tolerance(..) => Origin::Printed,
            });
            rows.extend(named.into_iter().map(|scheduler| Published {
                scheduler: scheduler.get_ref().clone(),
                job: job.clone(),
                metric,
                over: Over {
                    scheduler: text(&row.over),
                    job: text(&row.over_job).or(text(&row.over_group)),
                    case: text(&row.over_case),
                },
                accept,
                values: row.values.clone(),
                source: row.source.clone().unwrap_or_else(|| file.source.clone()),
                origin,
                letter: if origin == Origin::Aim { String::new() } else { letter.clone() },
                entry,
                fitted: row.fitted.clone(),
                why: row.why.clone(),
            }));
        }
        Ok(rows)
    }

    /// Which figures count as a row's.
    fn accept(&self, row: &FilePublished) -> Result<Accept, ScenarioError> {
        match (&row.tolerance, &row.accept) {
            (Some(share), None) if *share.get_ref() > 0.0 && *share.get_ref() <= 1.0 => {
                Ok(Accept::Tolerance(row.compare.unwrap_or_default(), *share.get_ref()))
            }
            (Some(share), None) => {
                Err(self.at(share.span(), "tolerance must be above 0 and at most 1".to_owned()))
            }
            (None, Some(range)) => {
                let FileRange { min, max } = range.get_ref();
                let (low, high) = (min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY));
                let message = if min.is_none() && max.is_none() {
                    "accept needs min or max: { min = 0.12, max = 0.27 }"
                } else if row.compare.is_some() {
                    "compare goes with tolerance; accept says by itself what counts"
                } else if low <= high {
                    return Ok(Accept::Range(low, high));
                } else {
                    "accept.min is larger than accept.max"
                };
                Err(self.at(range.span(), message.to_owned()))
            }
            _ => Err(self.at(
                row.metric.span(),
                "a published row needs either tolerance (a share, such as 0.25) or accept (a range, such as { min = 0.12, max = 0.27 })"
                    .to_owned(),
            )),
        }
    }

    /// Whose figures a row has (a job, a program or a group), and which.
    fn metric(&self, row: &FilePublished, cases: &[Case]) -> Result<(String, Metric), ScenarioError> {
        let (wrong, message) = match (&row.job, &row.group) {
            (Some(job), None) => match &row.over_group {
                None => return self.metric_of_job(row, job, cases),
                Some(over) => (over, "over_group goes with group; with job it is over_job"),
            },
            (None, Some(group)) => match &row.over_job {
                None => return self.metric_of_group(row, group, cases),
                Some(over) => (over, "over_job goes with job; with group it is over_group"),
            },
            _ => (&row.metric, "a published row is either of a job (or program) or of a group: job or group"),
        };
        Err(self.at(wrong.span(), message.to_owned()))
    }

    fn metric_of_group(
        &self,
        row: &FilePublished,
        group: &Spanned<String>,
        cases: &[Case],
    ) -> Result<(String, Metric), ScenarioError> {
        for named in [Some(group), row.over_group.as_ref()].into_iter().flatten() {
            if let Some(Err(e)) = cases.first().map(|case| case.groups.known(named.get_ref())) {
                return Err(self.at(named.span(), e.to_string()));
            }
        }
        let metric = GroupMetric::ALL.into_iter().find(|m| m.name() == row.metric.get_ref());
        let metric = metric.ok_or_else(|| {
            self.unknown("metric", &row.metric, GroupMetric::ALL.into_iter().map(GroupMetric::name))
        })?;
        Ok((group.get_ref().clone(), Metric::Group(metric)))
    }

    fn metric_of_job(
        &self,
        row: &FilePublished,
        job: &Spanned<String>,
        cases: &[Case],
    ) -> Result<(String, Metric), ScenarioError> {
        let programs = || cases.iter().flat_map(|c| &c.programs);
        let jobs = || cases.iter().flat_map(|c| c.jobs.iter().map(|j| j.name.as_str()));
        let program = |name: &str| programs().find(|p| p.name == name);
        for named in [Some(job), row.over_job.as_ref()].into_iter().flatten() {
            if program(named.get_ref()).is_none() && !jobs().any(|j| j == named.get_ref()) {
                return Err(self.unknown("job", named, jobs().chain(programs().map(|p| p.name.as_str()))));
            }
        }
        let metric = if let Some(program) = program(job.get_ref()) {
            let metrics = program.program.metrics();
            metrics
                .iter()
                .find(|m| m.name == row.metric.get_ref())
                .map(|m| Metric::Program(*m))
                .ok_or_else(|| self.unknown("metric", &row.metric, metrics.iter().map(|m| m.name)))
        } else {
            let of_jobs = || Metric::OF_JOBS.into_iter();
            of_jobs()
                .find(|m| m.name() == row.metric.get_ref())
                .ok_or_else(|| self.unknown("metric", &row.metric, of_jobs().map(Metric::name)))
        };
        Ok((job.get_ref().clone(), metric?))
    }

    // ---- errors -------------------------------------------------------------------------------------------------------

    fn whole(&self, message: String) -> ScenarioError {
        ScenarioError { place: self.origin.to_owned(), message, remarks: Vec::new() }
    }

    fn at(&self, span: Range<usize>, message: String) -> ScenarioError {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        ScenarioError { place: format!("{}:{line}", self.origin), message, remarks: Vec::new() }
    }

    fn unknown<'a>(
        &self,
        what: &str,
        word: &Spanned<String>,
        allowed: impl Iterator<Item = &'a str> + Clone,
    ) -> ScenarioError {
        let near = nearest(word.get_ref(), allowed.clone())
            .map_or_else(String::new, |n| format!("; did you mean '{n}'?"));
        let mut names: Vec<_> = allowed.collect();
        names.dedup();
        self.at(
            word.span(),
            format!("unknown {what} '{}'{near} (allowed: {})", word.get_ref(), names.join(", ")),
        )
    }

    fn toml_error(&self, error: &toml::de::Error) -> ScenarioError {
        let mut message = error.message().to_owned();
        // serde lists the right names; say which one was meant.
        let mut quoted = message.split('`').skip(1).step_by(2);
        if ["unknown field", "unknown variant"].iter().any(|start| message.starts_with(start))
            && let Some(word) = quoted.next()
            && let Some(near) = nearest(word, quoted)
        {
            message.push_str(&format!("; did you mean `{near}`?"));
        }
        match error.span() {
            Some(span) => self.at(span, message),
            None => self.whole(message),
        }
    }
}

/// A command with `${NAME}` replaced by the case's variables; other names stay as they are.
fn with_vars(command: &str, vars: &Vars) -> String {
    vars.iter().fold(command.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

/// `rt/4`, `be/0`, `idle`.
fn priority(text: &str) -> Option<IoPrio> {
    let (class, level) = text.split_once('/').unwrap_or((text, ""));
    let level = || level.parse().ok().filter(|l| *l <= 7u8);
    match class {
        "rt" => level().map(IoPrio::RealTime),
        "be" => level().map(IoPrio::BestEffort),
        "idle" if text == "idle" => Some(IoPrio::Idle),
        _ => None,
    }
}

fn in_case(name: &str) -> String {
    if name.is_empty() { String::new() } else { format!(" in case '{name}'") }
}

fn parse_jobs(text: &str, origin: &str, vars: &Vars, changes: &[Change]) -> Result<Parsed, Vec<Diagnostic>> {
    let environment = |name: &str| vars.get(name).cloned();
    let options = ParseOptions { env: &environment, changes, ..ParseOptions::default() };
    fairlift_fio::parse(&[Source::new(origin, text)], &options)
}
