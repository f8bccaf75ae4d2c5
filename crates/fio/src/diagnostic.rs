//! What the reader has to say about a job file: one plain struct per remark, rendered by the caller.

use std::fmt;
use std::ops::Range;

/// How much a remark weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The job runs, but differs from what fio would do.
    Warning,
    /// This job cannot be simulated; other jobs of the file can.
    Refusal,
    /// The text is wrong. Nothing of it is run.
    Error,
}

/// Where a remark points.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Place {
    /// Name of the file as the caller gave it, or as the `include` line led to it. `(command line)` for options given as arguments.
    pub file: String,
    /// Line number from 1. For a command line: number of the argument from 1. 0: the file as a whole.
    pub line: u32,
    /// Byte columns in that line from 0, half open. Empty: the line as a whole.
    pub columns: Range<u32>,
}

impl Place {
    /// A place that covers a whole line.
    pub fn line(file: &str, line: u32) -> Self {
        Self { file: file.to_owned(), line, columns: 0..0 }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.file),
            line => write!(f, "{}:{}", self.file, line),
        }
    }
}

/// One remark about one place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Diagnostic {
    /// How much it weighs.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// The wrong word, as written. Empty when the remark is not about one word.
    pub word: String,
    /// What is wrong, a sentence without a final stop.
    pub message: String,
    /// What would have been accepted, in words. Empty when there is nothing to list.
    pub allowed: String,
    /// The right word nearest to `word`, if one is near.
    pub nearest: Option<String>,
}

impl Diagnostic {
    /// A remark with a message only.
    pub fn new(severity: Severity, place: Place, message: impl Into<String>) -> Self {
        let (message, word, allowed) = (message.into(), String::new(), String::new());
        Self { severity, place, word, message, allowed, nearest: None }
    }

    /// An error with a message only.
    pub fn error(place: Place, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, place, message)
    }

    /// The same remark naming the wrong word.
    #[must_use]
    pub fn with_word(mut self, word: impl Into<String>) -> Self {
        self.word = word.into();
        self
    }

    /// The same remark saying what would be accepted.
    #[must_use]
    pub fn with_allowed(mut self, allowed: impl Into<String>) -> Self {
        self.allowed = allowed.into();
        self
    }

    /// The same remark with the most similar of `names`, if one is similar enough to be meant.
    #[must_use]
    pub fn with_nearest<'a>(mut self, names: impl Iterator<Item = &'a str>) -> Self {
        self.nearest = nearest(&self.word, names).map(str::to_owned);
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean '{nearest}'?")
        } else if !self.allowed.is_empty() {
            write!(f, "; allowed: {}", self.allowed)
        } else {
            Ok(())
        }
    }
}

/// The most similar name, when at most a third of its letters (and at least one edit) differ.
fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Long words are garbage, not typing mistakes, and the comparison is quadratic.
    if word.is_empty() || word.len() > 64 {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let (distance, name) = names.map(|name| (strsim::damerau_levenshtein(&lower, name), name)).min()?;
    (distance <= 1.max(name.len().max(word.len()) / 3)).then_some(name)
}
