//! Bold and colour, where the reader can see them.

use std::io::IsTerminal;

/// How to stress a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Not at all: a file, a pipe, or `NO_COLOR`.
    Plain,
    /// With terminal escapes.
    Terminal,
}

impl Style {
    /// What suits this stream.
    pub fn of(stream: &impl IsTerminal) -> Style {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|v| v == "dumb");
        if stream.is_terminal() && !unwanted { Style::Terminal } else { Style::Plain }
    }

    /// Bold.
    pub fn bold(self, text: &str) -> String {
        self.escaped(text, "1")
    }

    /// Bold red.
    pub fn red(self, text: &str) -> String {
        self.escaped(text, "1;31")
    }

    /// Bold yellow.
    pub fn yellow(self, text: &str) -> String {
        self.escaped(text, "1;33")
    }

    fn escaped(self, text: &str, code: &str) -> String {
        match self {
            Style::Plain => text.to_owned(),
            Style::Terminal => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}
