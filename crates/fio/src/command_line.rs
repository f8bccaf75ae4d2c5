//! A job written as fio's command line: `--name=x --rw=randread --bs=4k`.

use crate::diagnostic::{Diagnostic, Place};
use crate::parse::{Parsed, assemble};
use crate::sections::{OptionLine, Section, shorten};
use crate::source::{MAX_LINE_BYTES, MAX_SECTIONS};
use crate::table::{self, Kind};

/// Options of the program fio that say nothing about a job, and whether they take a value.
const PROGRAM_OPTIONS: &[(&str, bool)] = &[
    ("output", true),
    ("output-format", true),
    ("append-terse", false),
    ("bandwidth-log", false),
    ("latency-log", true),
    ("minimal", false),
    ("terse-version", true),
    ("eta", true),
    ("eta-interval", true),
    ("eta-newline", true),
    ("status-interval", true),
    ("debug", true),
    ("parse-only", false),
    ("readonly", false),
    ("showcmd", false),
    ("alloc-size", true),
    ("max-jobs", true),
    ("warnings-fatal", false),
    ("aux-path", true),
];

const FILE: &str = "(command line)";

/// Reads fio options given as arguments. Each `--name` starts a job; options before the first are defaults for all jobs.
///
/// Without any `--name` all options make one job called `job`. A leading word `fio` is skipped, and so are options of the
/// program such as `--output-format`. Variables are not replaced: a shell has done that.
///
/// # Errors
/// All errors; with `strict` all warnings too. Line numbers are argument numbers from 1.
pub fn parse_command_line<S: AsRef<str>>(arguments: &[S], strict: bool) -> Result<Parsed, Vec<Diagnostic>> {
    let mut reader = Reader { sections: vec![section("global", Place::line(FILE, 1))], found: Vec::new() };
    let mut arguments = (1u32..).zip(arguments.iter().map(AsRef::as_ref)).peekable();
    arguments.next_if(|(_, first)| first.rsplit('/').next() == Some("fio"));
    while let Some((number, argument)) = arguments.next() {
        let place = Place { columns: 0..argument.len() as u32, ..Place::line(FILE, number) };
        let Some(option) =
            argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')).filter(|o| !o.is_empty())
        else {
            reader.complain(
                place,
                format!("'{}' is no option; job files are given by themselves", shorten(argument)),
                argument,
            );
            continue;
        };
        if argument.len() > MAX_LINE_BYTES {
            reader.complain(place, format!("argument is longer than {MAX_LINE_BYTES} bytes"), "");
            continue;
        }
        let (name, mut value) =
            option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
        if value.is_none() && takes_next(name) {
            value = arguments.next_if(|(_, next)| !next.starts_with("--")).map(|(_, next)| next);
        }
        if !PROGRAM_OPTIONS.iter().any(|(known, _)| *known == name) {
            reader.option(name, value, place);
        }
    }
    if let [only] = &mut reader.sections[..] {
        only.name = "job".to_owned();
    }
    assemble(reader.sections, reader.found, strict)
}

struct Reader {
    sections: Vec<Section>,
    found: Vec<Diagnostic>,
}

impl Reader {
    fn option(&mut self, name: &str, value: Option<&str>, place: Place) {
        if name == "name" {
            match value.map(str::trim).filter(|value| !value.is_empty() && value.len() <= 255) {
                Some(_) if self.sections.len() > MAX_SECTIONS => {
                    return self.complain(place, format!("more than {MAX_SECTIONS} jobs"), name);
                }
                Some(job) => self.sections.push(section(job, place.clone())),
                None => return self.complain(place, "--name needs a name".to_owned(), name),
            }
        }
        let value = value.map(|value| value.trim().to_owned());
        let line = OptionLine { name: name.to_owned(), value, name_place: place.clone(), value_place: place };
        if let Some(section) = self.sections.last_mut() {
            section.lines.push(line);
        }
    }

    fn complain(&mut self, place: Place, message: String, word: &str) {
        self.found.push(Diagnostic::error(place, message).with_word(shorten(word)));
    }
}

fn section(name: &str, place: Place) -> Section {
    Section { name: name.to_owned(), place, lines: Vec::new(), stonewall: false }
}

/// Whether an option written without `=` takes the next argument as its value.
fn takes_next(name: &str) -> bool {
    let program = PROGRAM_OPTIONS.iter().find(|(known, _)| *known == name).map(|(_, takes)| *takes);
    program.unwrap_or_else(|| table::option(name).is_some_and(|info| info.kind != Kind::Flag))
}
