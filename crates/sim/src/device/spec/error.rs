//! What is wrong with a device file, said so that the reader can mend it.

use std::fmt;

/// A device file that cannot be used: which file, which line, which word, what would be right.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpecError {
    /// The file (or what the caller called the text).
    pub origin: String,
    /// Line, from 1; `None` when the fault has no place (a key that is missing).
    pub line: Option<usize>,
    /// What is wrong and what is allowed, one sentence or two.
    pub message: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.origin, self.message),
            None => write!(f, "{}: {}", self.origin, self.message),
        }
    }
}

impl std::error::Error for SpecError {}

/// `, did you mean "x"?` for the candidate nearest to `word`, or nothing when none is near.
pub(in crate::device) fn did_you_mean<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> String {
    candidates
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(String::new, |(_, name)| format!("; did you mean \"{name}\"?"))
}

/// A word of the user's, short enough for one line of an error.
pub(in crate::device) fn shown(word: &str) -> String {
    let mut short: String = word.chars().take(60).flat_map(char::escape_debug).collect();
    if word.chars().nth(60).is_some() {
        short.push('…');
    }
    short
}
