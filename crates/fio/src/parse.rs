//! Job files and command lines to jobs.

use std::collections::HashSet;

use crate::build::{self, Context};
use crate::change;
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::job::Job;
use crate::sections::{OptionLine, Section, Splitter, shorten};
use crate::settings::Settings;
use crate::source::{MAX_DIAGNOSTICS, MAX_FILES, MAX_PROCESSES, ParseOptions, Source};
use crate::table;

/// A job that cannot be simulated.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// Its name.
    pub name: String,
    /// Why: remarks of severity [`Severity::Refusal`], at least one.
    pub reasons: Vec<Diagnostic>,
}

/// What job files say.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Parsed {
    /// Jobs that can be simulated, in the order of the files.
    pub jobs: Vec<Job>,
    /// Jobs that cannot. fio would run them: a caller should say so, and may stop.
    pub refused: Vec<Refused>,
    /// Where jobs run otherwise than under fio. Each is named once, however many jobs inherit it.
    pub warnings: Vec<Diagnostic>,
    /// Options of all global sections as written: fio's JSON prints them as `global options`.
    pub global_options: Vec<(String, String)>,
}

/// Reads job files. Between two files everything waits, as with fio's command line.
///
/// # Errors
/// All errors of all files (at most [`MAX_DIAGNOSTICS`]), and with `strict` all warnings too.
pub fn parse(files: &[Source], options: &ParseOptions<'_>) -> Result<Parsed, Vec<Diagnostic>> {
    let mut splitter = Splitter::new(options);
    for file in files {
        splitter.add(file);
    }
    let (mut sections, mut found) = (splitter.sections, splitter.found);
    change::apply(options.changes, &mut sections, &mut found);
    assemble(sections, found, options.strict)
}

/// Makes jobs of sections.
pub(crate) fn assemble(
    sections: Vec<Section>,
    found: Vec<Diagnostic>,
    strict: bool,
) -> Result<Parsed, Vec<Diagnostic>> {
    let mut assembly = Assembly { found, ..Assembly::default() };
    for section in sections {
        if section.is_global() {
            assembly.global(section);
        } else {
            assembly.job(section);
        }
    }
    assembly.finish(strict)
}

#[derive(Default)]
struct Assembly {
    globals: Settings,
    /// Unknown options of global sections: wrong only for jobs whose engine has no options of its own.
    unknown_globals: Vec<Diagnostic>,
    parsed: Parsed,
    found: Vec<Diagnostic>,
    threads: u32,
    files: u64,
    group_id: u32,
    jobs_in_group: u32,
    job_names: Vec<String>,
    /// Directories and names of the files that some job fills the device with.
    filled: Vec<(Vec<String>, Vec<String>)>,
}

impl Assembly {
    fn global(&mut self, section: Section) {
        let mut unknown = apply(&section.lines, &mut self.globals);
        self.unknown_globals.append(&mut unknown);
        self.parsed.global_options.extend(written(&section.lines));
    }

    fn job(&mut self, section: Section) {
        let mut settings = self.globals.clone();
        let unknown = apply(&section.lines, &mut settings);
        let context = Context {
            options: written(&section.lines).collect(),
            section: section.name,
            place: section.place,
            first_thread: self.threads + 1,
            group_id: 0,
            stonewall: section.stonewall,
        };
        let (mut job, mut remarks) = build::job(&settings, context);
        let files = (job.files.directories.clone(), job.files.names.clone());
        let filled_before = !files.1.is_empty() && self.filled.contains(&files);
        remarks.extend(build::size_of_file(&settings, &mut job, filled_before));
        if job.extent.fills_device {
            self.filled.push(files);
        }
        job.schedule.group_id = self.group_of(&job);
        if table::engine(&job.submission.engine)
            .is_none_or(|engine| engine.family != table::EngineFamily::Unsupported)
        {
            remarks.extend(self.unknown_globals.iter().cloned());
            remarks.extend(unknown);
        }
        remarks.extend(self.wait_for(&job, &settings));
        self.threads = self.threads.saturating_add(job.numjobs);
        if self.threads > MAX_PROCESSES {
            let message = format!("more than {MAX_PROCESSES} processes up to job '{}'", job.name);
            self.found.push(Diagnostic::error(job.place.clone(), message));
            self.threads = 0;
        }
        self.files += u64::from(job.numjobs) * u64::from(job.files.count);
        if self.files > MAX_FILES {
            let message = format!("more than {MAX_FILES} files up to job '{}'", job.name);
            self.found.push(Diagnostic::error(job.place.clone(), message));
            self.files = 0;
        }
        self.job_names.push(job.name.clone());
        self.file_away(job, remarks);
    }

    fn group_of(&mut self, job: &Job) -> u32 {
        if (job.schedule.stonewall || job.schedule.new_group) && self.jobs_in_group > 0 {
            self.jobs_in_group = 0;
            self.group_id += 1;
        }
        self.jobs_in_group += 1;
        self.group_id
    }

    fn wait_for(&self, job: &Job, settings: &Settings) -> Option<Diagnostic> {
        let name = job.schedule.wait_for.as_ref()?;
        let place = settings.get("wait_for").map(|setting| setting.place.clone()).unwrap_or_default();
        match self.job_names.iter().filter(|other| *other == name).count() {
            1 => None,
            0 => {
                let message = format!("wait_for: no earlier job is named '{}'", shorten(name));
                let remark = Diagnostic::error(place, message).with_word(shorten(name));
                Some(remark.with_nearest(self.job_names.iter().map(String::as_str)))
            }
            _ => Some(
                Diagnostic::error(place, format!("wait_for: several jobs are named '{name}'"))
                    .with_word(name),
            ),
        }
    }

    fn file_away(&mut self, job: Job, remarks: Vec<Diagnostic>) {
        let (reasons, mut remarks): (Vec<_>, Vec<_>) =
            remarks.into_iter().partition(|remark| remark.severity == Severity::Refusal);
        if !reasons.is_empty() {
            // How a job would differ is no matter when it does not run at all.
            remarks.retain(|remark| remark.severity == Severity::Error);
        }
        self.found.append(&mut remarks);
        if reasons.is_empty() {
            self.parsed.jobs.push(job);
        } else {
            self.parsed.refused.push(Refused { name: job.name, reasons });
        }
    }

    fn finish(mut self, strict: bool) -> Result<Parsed, Vec<Diagnostic>> {
        if self.job_names.is_empty() {
            self.found.append(&mut self.unknown_globals);
            if !self.found.iter().any(|remark| remark.severity == Severity::Error) {
                self.found.push(Diagnostic::error(
                    Place::line("(input)", 0),
                    "no job to run: no section besides [global]",
                ));
            }
        }
        let mut seen = HashSet::new();
        self.found.retain(|remark| seen.insert((remark.place.clone(), remark.message.clone())));
        let fatal = |remark: &Diagnostic| strict || remark.severity == Severity::Error;
        if !self.found.iter().any(fatal) {
            self.parsed.warnings = self.found;
            return Ok(self.parsed);
        }
        self.found.retain(fatal);
        let hidden = self.found.len().saturating_sub(MAX_DIAGNOSTICS);
        if hidden > 0 {
            self.found.truncate(MAX_DIAGNOSTICS);
            let place = self.found[MAX_DIAGNOSTICS - 1].place.clone();
            self.found.push(Diagnostic::error(place, format!("{hidden} more errors are not shown")));
        }
        Err(self.found)
    }
}

/// Puts a section's lines into force; gives back the lines no option is known for.
fn apply(lines: &[OptionLine], settings: &mut Settings) -> Vec<Diagnostic> {
    let mut unknown = Vec::new();
    for line in lines {
        match table::option(&line.name) {
            Some(info) => settings.set(info, line.value.clone(), line.value_place.clone()),
            None => unknown.push(unknown_option(line)),
        }
    }
    unknown
}

fn unknown_option(line: &OptionLine) -> Diagnostic {
    let word = shorten(&line.name);
    let remark =
        Diagnostic::error(line.name_place.clone(), format!("unknown option '{word}'")).with_word(&line.name);
    remark.with_nearest(table::options().iter().flat_map(|info| [Some(info.name), info.alias]).flatten())
}

fn written(lines: &[OptionLine]) -> impl Iterator<Item = (String, String)> + '_ {
    lines.iter().map(|line| (line.name.clone(), line.value.clone().unwrap_or_default()))
}
