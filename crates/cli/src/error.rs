//! Errors and warnings as people read them: what is wrong, where, the line itself, and what would be right.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::Write as _;

use fairlift_fio::{Diagnostic, Refused, Severity, Source};
use fairlift_sim::lab::LabError;
use fairlift_sim::program::ProgramError;
use fairlift_sim::program::fio::SetupError;
use fairlift_sim::scenario::{RunFailure, ScenarioError};
use fairlift_sim::scheduler::SchedulerError;

use crate::style::Style;

/// Exit code of wrong input.
const WRONG_INPUT: u8 = 2;
/// Most of a source line that is shown, characters.
const LINE_CHARS_MAX: usize = 90;

/// Why nothing came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Exit code.
    pub code: u8,
    remarks: Vec<Remark>,
}

/// One thing to say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Remark {
    warning: bool,
    message: String,
    place: String,
    excerpt: Option<Excerpt>,
    help: Vec<String>,
}

/// A line of the input, and which part of it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    line: u32,
    text: String,
    /// Characters, half open.
    marked: (usize, usize),
}

impl Failure {
    /// Wrong input, in one sentence without a final stop.
    pub fn new(message: impl Into<String>) -> Failure {
        let remark = Remark { message: message.into(), ..Remark::default() };
        Failure { code: WRONG_INPUT, remarks: vec![remark] }
    }

    /// A fault of ours.
    pub fn internal(message: impl Into<String>) -> Failure {
        Failure { code: crate::INTERNAL_ERROR, ..Failure::new(message) }
    }

    /// What is wrong, in one sentence.
    pub fn message(&self) -> String {
        self.remarks.first().map_or_else(String::new, |remark| remark.message.clone())
    }

    /// Where it is wrong: `FILE:LINE`, an option, a run; may be empty.
    pub fn place(&self) -> String {
        self.remarks.first().map_or_else(String::new, |remark| remark.place.clone())
    }

    /// The file and line of it, as far as it is of a file.
    pub fn file_and_line(&self) -> (Option<String>, Option<u32>) {
        let place = self.place();
        match place.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
            Some((file, Ok(line))) => (Some(file.to_owned()), Some(line)),
            _ if crate::api::is_file(&place) => (Some(place), None),
            _ => (None, None),
        }
    }

    /// Everything it has to say, for people, without colours.
    pub fn plain(&self) -> String {
        self.render(Style::Plain)
    }

    /// The same, saying where.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Failure {
        if let Some(remark) = self.remarks.last_mut() {
            remark.place = place.into();
        }
        self
    }

    /// The same, saying what would be right.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Failure {
        if let Some(remark) = self.remarks.last_mut() {
            remark.help.push(help.into());
        }
        self
    }

    /// What the job reader complains of.
    pub fn of_jobs(diagnostics: &[Diagnostic], sources: &[Source]) -> Failure {
        let error = |d: &Diagnostic| Remark { warning: false, ..Remark::of(d, sources) };
        Failure { code: WRONG_INPUT, remarks: diagnostics.iter().map(error).collect() }
    }

    /// Jobs that cannot be simulated.
    pub fn of_refused(refused: &[Refused], sources: &[Source]) -> Failure {
        let reasons = |job: &Refused| {
            let name = job.name.clone();
            job.reasons.clone().into_iter().map(move |d| {
                let remark = Remark::of(&d, sources);
                Remark { message: format!("job '{name}' cannot be simulated: {}", remark.message), ..remark }
            })
        };
        Failure { code: WRONG_INPUT, remarks: refused.iter().flat_map(reasons).collect() }
    }

    /// A scenario that is wrong.
    pub fn of_scenario(error: &ScenarioError) -> Failure {
        let mut failure = Failure::new(error.message.trim_end()).at(&error.place);
        failure.remarks.extend(error.remarks.iter().map(|d| Remark { warning: false, ..Remark::of(d, &[]) }));
        failure
    }

    /// A program that does not understand its command line.
    pub fn of_program(error: &ProgramError, command: &str) -> Failure {
        let name = if error.program.is_empty() { String::new() } else { format!("{}: ", error.program) };
        let mut failure = Failure::new(format!("{name}{}", error.message)).at(format!("command '{command}'"));
        if let Some(nearest) = &error.nearest {
            failure = failure.help(format!("did you mean '{nearest}'?"));
        }
        if !error.allowed.is_empty() {
            failure = failure.help(format!("allowed: {}", error.allowed));
        }
        failure
    }

    /// A scheduler, profile or tunable there is not.
    pub fn of_scheduler(error: &SchedulerError, place: &str) -> Failure {
        let mut failure = Failure::new(&error.message).at(place);
        if let Some(nearest) = &error.nearest {
            failure = failure.help(format!("did you mean '{nearest}'?"));
        }
        if !error.allowed.is_empty() {
            failure = failure.help(format!("allowed: {}", error.allowed));
        }
        failure
    }

    /// A run that could not be made.
    pub fn of_run(failure: &RunFailure) -> Failure {
        let place = if failure.case.is_empty() { String::new() } else { format!("case '{}'", failure.case) };
        match &failure.error {
            LabError::Setup(error @ SetupError::Job(_)) => Failure::new(error.to_string()).at(place),
            LabError::Setup(error @ SetupError::NoSpace { .. }) => Failure::new(error.to_string())
                .at(place)
                .help("make the files smaller (size=, filesize=, numjobs=) or take a larger device"),
            LabError::Setting(_) => Failure::new(failure.error.to_string()).at(place),
            LabError::NoJobs => Failure::new(failure.error.to_string()).at(place),
            LabError::Program { .. } => Failure::new(failure.error.to_string()).at(place),
            LabError::Endless(_) => Failure::new(failure.error.to_string())
                .at(place)
                .help("give it less to do, or every job a shorter time: --runtime 30"),
            LabError::TooLong => {
                Failure::new("the jobs are not done after a day of simulated time".to_owned())
                    .at(place)
                    .help("give them a runtime (runtime=, or --runtime 30) or less to do")
            }
            LabError::Stuck { .. } => Failure::internal(failure.to_string()),
        }
    }

    /// Everything it has to say.
    pub fn render(&self, style: Style) -> String {
        self.remarks.iter().map(|r| r.render(style)).collect()
    }

    /// Say it on standard error.
    pub fn print(&self) {
        let stderr = std::io::stderr();
        let _ = stderr.lock().write_all(self.render(Style::of(&stderr)).as_bytes());
    }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Do something without its warnings and notes, on this thread.
pub fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let before = QUIET.replace(true);
    let result = work();
    QUIET.set(before);
    result
}

/// Print the job reader's warnings.
pub fn warn_of_jobs(diagnostics: &[Diagnostic], sources: &[Source]) {
    if QUIET.get() {
        return;
    }
    let remarks = diagnostics.iter().map(|d| Remark::of(d, sources)).collect();
    Failure { code: 0, remarks }.print();
}

/// Print a remark on standard error: not wrong, but good to know.
pub fn note(message: &str) {
    if QUIET.get() {
        return;
    }
    let stderr = std::io::stderr();
    let style = Style::of(&stderr);
    let _ = writeln!(stderr.lock(), "{}: {}", style.bold("note"), printable(message));
}

/// Print a warning.
pub fn warn(message: &str) {
    if QUIET.get() {
        return;
    }
    let remark = Remark { warning: true, message: message.to_owned(), ..Remark::default() };
    Failure { code: 0, remarks: vec![remark] }.print();
}

impl Remark {
    fn of(d: &Diagnostic, sources: &[Source]) -> Remark {
        let mut help = Vec::new();
        if let Some(nearest) = &d.nearest {
            help.push(format!("did you mean '{nearest}'?"));
        }
        if !d.allowed.is_empty() {
            help.push(format!("allowed: {}", d.allowed));
        }
        let source = sources.iter().find(|s| s.name == d.place.file);
        let excerpt = source.and_then(|s| Excerpt::of(&s.bytes, d.place.line, d.place.columns.clone()));
        Remark {
            warning: d.severity == Severity::Warning,
            message: d.message.clone(),
            place: d.place.to_string(),
            excerpt,
            help,
        }
    }

    fn render(&self, style: Style) -> String {
        let level = if self.warning { style.yellow("warning") } else { style.red("error") };
        let mut out = format!("{level}: {}\n", style.bold(&printable(&self.message)));
        if !self.place.is_empty() {
            let _ = writeln!(out, "  --> {}", printable(&self.place));
        }
        if let Some(excerpt) = &self.excerpt {
            let (from, to) = excerpt.marked;
            let _ = writeln!(out, "{:>4} | {}", excerpt.line, excerpt.text);
            if to > from {
                let _ = writeln!(out, "     | {}{}", " ".repeat(from), style.red(&"^".repeat(to - from)));
            }
        }
        for help in &self.help {
            let _ = writeln!(out, "  help: {}", printable(help));
        }
        out
    }
}

impl Excerpt {
    fn of(bytes: &[u8], line: u32, columns: std::ops::Range<u32>) -> Option<Excerpt> {
        let wanted = usize::try_from(line.checked_sub(1)?).ok()?;
        let raw = std::str::from_utf8(bytes.split(|b| *b == b'\n').nth(wanted)?).ok()?;
        let raw = raw.trim_end_matches('\r');
        let chars = |bytes: u32| raw.get(..bytes as usize).map(|part| part.chars().count());
        let marked = (chars(columns.start)?, chars(columns.end)?);
        if marked.1 > LINE_CHARS_MAX {
            return None;
        }
        // A character for each, so that the mark stands below what it marks.
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        let text = raw.chars().take(LINE_CHARS_MAX).map(shown).collect();
        Some(Excerpt { line, text, marked })
    }
}

/// With control characters shown, which could confuse a terminal.
fn printable(text: &str) -> String {
    Style::Plain.visible(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excerpt_marks_the_word() {
        let sources = [Source::new("a.fio", "[a]\niodept=3\n")];
        let failure = match fairlift_fio::parse(&sources, &fairlift_fio::ParseOptions::default()) {
            Ok(_) => panic!("iodept is no option"),
            Err(diagnostics) => Failure::of_jobs(&diagnostics, &sources),
        };
        let text = failure.render(Style::Plain);
        assert!(text.contains("   2 | iodept=3\n     | ^^^^^^\n"), "{text}");
        assert!(text.contains("help: did you mean 'iodepth'?"), "{text}");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(Failure::new("a\u{1b}[2Jb\u{7}").render(Style::Plain), "error: a\\x1b[2Jb\\x07\n");
    }
}
