//! Bold and colour, where the reader can see them; and what text from outside may not do to a terminal.

use std::io::IsTerminal;

/// The escapes of [`Style::Terminal`].
const OWN: [&str; 4] = ["\u{1b}[1m", "\u{1b}[1;31m", "\u{1b}[1;33m", "\u{1b}[0m"];

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

    /// `text` with control characters shown (`\x1b`) instead of sent: names come from files that strangers may have written. Line
    /// ends stay, and what this type itself has put there.
    pub fn visible(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c.is_control() && c != '\n' && c != '\t') {
            let (before, from) = rest.split_at(at);
            out.push_str(before);
            let own = OWN.iter().find(|own| self == Style::Terminal && from.starts_with(**own));
            let length = match (own, from.chars().next()) {
                (Some(own), _) => {
                    out.push_str(own);
                    own.len()
                }
                (None, Some(control)) => {
                    out.push_str(&format!("\\x{:02x}", u32::from(control)));
                    control.len_utf8()
                }
                (None, None) => break,
            };
            rest = &from[length..];
        }
        out + rest
    }

    fn escaped(self, text: &str, code: &str) -> String {
        match self {
            Style::Plain => text.to_owned(),
            Style::Terminal => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown() {
        let text = "a\u{1b}[2Jb\u{7}\n\u{9b}c\u{85}";
        assert_eq!(Style::Plain.visible(text), "a\\x1b[2Jb\\x07\n\\x9bc\\x85");
        let bold = Style::Terminal.bold("job\u{1b}]0;title\u{7}");
        assert_eq!(Style::Terminal.visible(&bold), "\u{1b}[1mjob\\x1b]0;title\\x07\u{1b}[0m");
        assert_eq!(Style::Plain.visible("\u{1b}[1mnot ours\u{1b}[0m"), "\\x1b[1mnot ours\\x1b[0m");
    }
}
