//! Lines of job files: sections, comments, includes, `name=value`.

use std::path::Path;

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::source::{
    MAX_BYTES, MAX_INCLUDE_DEPTH, MAX_INCLUDES, MAX_LINE_BYTES, MAX_SECTIONS, ParseOptions, Source,
};
use crate::substitute::substitute;

/// One `name=value` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OptionLine {
    pub(crate) name: String,
    /// After substitution; `None`: no `=`.
    pub(crate) value: Option<String>,
    pub(crate) name_place: Place,
    pub(crate) value_place: Place,
}

/// One `[name]` with its lines, those of included files among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) lines: Vec<OptionLine>,
    /// First job of a second or later file: waits for all jobs before.
    pub(crate) stonewall: bool,
}

impl Section {
    /// Sets defaults for the jobs after it instead of being one.
    pub(crate) fn is_global(&self) -> bool {
        self.name.starts_with("global")
    }
}

/// Cuts job files into sections.
pub(crate) struct Splitter<'a> {
    options: &'a ParseOptions<'a>,
    bytes_left: usize,
    includes_left: u32,
    /// The current file's sections are to begin with a stonewall.
    stonewall_next: bool,
    pub(crate) sections: Vec<Section>,
    pub(crate) found: Vec<Diagnostic>,
}

impl<'a> Splitter<'a> {
    pub(crate) fn new(options: &'a ParseOptions<'a>) -> Self {
        Self {
            options,
            bytes_left: MAX_BYTES,
            includes_left: MAX_INCLUDES,
            stonewall_next: false,
            sections: Vec::new(),
            found: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, source: &Source) {
        self.stonewall_next = self.sections.iter().any(|section| !section.is_global());
        let sections_before = self.sections.len();
        self.read(&source.name, &source.bytes, 0);
        if self.sections.len() == sections_before && self.found.is_empty() {
            self.found.push(Diagnostic::error(Place::line(&source.name, 0), "no [section] in this file"));
        }
    }

    /// Reads one file. `depth` > 0: an included one, whose lines go to the section at hand.
    fn read(&mut self, name: &str, bytes: &[u8], depth: u32) {
        let Some(left) = self.bytes_left.checked_sub(bytes.len()) else {
            let message = format!("job files together are larger than {MAX_BYTES} bytes");
            return self.found.push(Diagnostic::error(Place::line(name, 0), message));
        };
        self.bytes_left = left;
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let line =
                    1 + bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() as u32;
                return self
                    .found
                    .push(Diagnostic::error(Place::line(name, line), "not a text file: invalid UTF-8"));
            }
        };
        let mut outside_reported = depth > 0;
        let first_section = self.sections.len();
        for (number, line) in (1u32..).zip(text.lines()) {
            let place = Place::line(name, number);
            if line.len() > MAX_LINE_BYTES {
                self.found
                    .push(Diagnostic::error(place, format!("line is longer than {MAX_LINE_BYTES} bytes")));
                continue;
            }
            let content = before_comment(line);
            if content.is_empty() {
                continue;
            }
            if content.starts_with('[') {
                if depth > 0 {
                    self.found.push(
                        Diagnostic::error(place, "an included file cannot open a section").with_word(content),
                    );
                } else if !self.open_section(content, place) {
                    return;
                }
            } else if depth == 0 && self.sections.len() == first_section {
                // One remark is enough: in a file that is no job file every line would earn one.
                if !outside_reported {
                    let message = format!("option '{}' stands before the first [section]", shorten(content));
                    self.found.push(Diagnostic::error(place, message).with_word(shorten(content)));
                    outside_reported = true;
                }
            } else if let Some(file) = include_target(content) {
                self.include(name, file, place, depth);
            } else {
                self.option(line, content, place);
            }
        }
    }

    /// False: too many sections, give up on this file.
    fn open_section(&mut self, content: &str, place: Place) -> bool {
        if self.sections.len() == MAX_SECTIONS {
            self.found.push(Diagnostic::error(place, format!("more than {MAX_SECTIONS} sections")));
            return false;
        }
        let name = content.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let name = name.map(str::trim).filter(|name| !name.is_empty() && name.len() <= 255);
        if name.is_none() {
            let message = format!("'{}' is not a section heading", shorten(content));
            let remark = Diagnostic::error(place.clone(), message).with_word(shorten(content));
            self.found.push(remark.with_allowed("[name] with 1 to 255 letters"));
        }
        let name = name.unwrap_or("?").to_owned();
        let stonewall = self.stonewall_next && !name.starts_with("global");
        self.stonewall_next &= !stonewall;
        self.sections.push(Section { name, place, lines: Vec::new(), stonewall });
        true
    }

    fn include(&mut self, from: &str, file: &str, place: Place, depth: u32) {
        if depth + 1 > MAX_INCLUDE_DEPTH {
            let message =
                format!("includes are nested deeper than {MAX_INCLUDE_DEPTH} (does a file include itself?)");
            return self.found.push(Diagnostic::error(place, message).with_word(file));
        }
        if self.includes_left == 0 {
            let message = format!("more than {MAX_INCLUDES} includes (does a file include itself?)");
            // Once is enough: the include that overflows is often one of thousands.
            if self.found.last().is_none_or(|last| last.message != message) {
                self.found.push(Diagnostic::error(place, message).with_word(file));
            }
            return;
        }
        self.includes_left -= 1;
        let path = Path::new(from).parent().unwrap_or(Path::new("")).join(file);
        match (self.options.read_file)(&path) {
            Ok(bytes) => self.read(&path.to_string_lossy(), &bytes, depth + 1),
            Err(error) => {
                let message = format!("cannot read included file '{}': {error}", path.display());
                self.found.push(Diagnostic::error(place, message).with_word(file));
            }
        }
    }

    fn option(&mut self, line: &str, content: &str, place: Place) {
        let start = line.len() - line.trim_start().len();
        let (name, value) = match content.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(value)),
            None => (content, None),
        };
        let columns = |from: usize, length: usize| Place {
            columns: from as u32..(from + length) as u32,
            ..place.clone()
        };
        let name_place = columns(start, name.len());
        let value_place = match value {
            Some(value) => {
                columns(start + content.len() - value.trim_start().len(), value.trim_start().len())
            }
            None => name_place.clone(),
        };
        if let Some(value) =
            value.filter(|value| value.starts_with(char::is_whitespace) && !value.trim().is_empty())
        {
            let message = format!(
                "blank after '{name}=': fio would take it as part of the value and drop the suffix of a number; read here as '{name}={}'",
                value.trim()
            );
            self.found.push(
                Diagnostic::new(Severity::Warning, value_place.clone(), message).with_word(value.trim()),
            );
        }
        let value = value.map(|value| self.substitute(value.trim(), &value_place));
        let line = OptionLine { name: name.to_owned(), value, name_place, value_place };
        if let Some(section) = self.sections.last_mut() {
            section.lines.push(line);
        }
    }

    fn substitute(&mut self, value: &str, place: &Place) -> String {
        match substitute(value, self.options) {
            Ok(result) => {
                for name in result.unset {
                    let message =
                        format!("environment variable '{name}' is not set; replaced by nothing, as fio does");
                    self.found
                        .push(Diagnostic::new(Severity::Warning, place.clone(), message).with_word(name));
                }
                result.text
            }
            Err(message) => {
                self.found.push(Diagnostic::error(place.clone(), message).with_word(value));
                String::new()
            }
        }
    }
}

/// The line up to a `;` or `#`, without blanks around it.
fn before_comment(line: &str) -> &str {
    let blank = |c: char| c.is_whitespace() || c.is_control();
    line.split([';', '#']).next().unwrap_or_default().trim_matches(blank)
}

/// The file of an `include FILE` line.
fn include_target(content: &str) -> Option<&str> {
    let rest = content.strip_prefix("include")?;
    rest.starts_with(|c: char| c.is_whitespace() || c == '=')
        .then(|| rest[1..].trim())
        .filter(|file| !file.is_empty())
}

/// Enough of a word to recognise it.
pub(crate) fn shorten(word: &str) -> String {
    match word.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}
