//! The messages of a trace: what an elevator, the kernel or a user wrote into it.

use std::collections::HashMap;

use fairlift_trace::Event;
use serde::Serialize;

/// Kinds of messages told apart; more are counted together.
const KINDS_MAX: usize = 1024;
/// Kinds shown.
const KINDS_SHOWN: usize = 15;
/// Longest kind, bytes.
const KIND_BYTES_MAX: usize = 120;

/// Messages counted by kind: the text with every number taken for the same.
#[derive(Debug, Default)]
pub struct Messages {
    count: u64,
    kinds: HashMap<String, Kind>,
    others: u64,
}

/// Messages that differ in their numbers only.
#[derive(Clone, Debug, Serialize)]
pub struct Kind {
    /// The text with `#` for each number.
    pub text: String,
    /// How many.
    pub count: u64,
    /// The first of them, as it was written.
    pub example: String,
    /// When that was, ns.
    pub first_ns: u64,
}

/// What is shown of them.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Shown {
    /// All messages.
    pub count: u64,
    /// The most frequent kinds.
    pub kinds: Vec<Kind>,
    /// Messages of other kinds.
    pub others: u64,
}

impl Messages {
    /// One more message; it as a line.
    pub fn add(&mut self, event: &Event, payload: &[u8]) -> String {
        self.count += 1;
        let text = String::from_utf8_lossy(payload);
        let text = text.trim_end();
        let (s, ns) = (event.time_ns / 1_000_000_000, event.time_ns % 1_000_000_000);
        let line = format!("{s:>5}.{ns:09}  {}\n", printable(text));
        let kind = kind(text);
        if let Some(known) = self.kinds.get_mut(&kind) {
            known.count += 1;
        } else if self.kinds.len() < KINDS_MAX {
            let example = printable(text);
            self.kinds.insert(kind.clone(), Kind { text: kind, count: 1, example, first_ns: event.time_ns });
        } else {
            self.others += 1;
        }
        line
    }

    /// The most frequent ones.
    pub fn shown(self) -> Shown {
        let mut kinds: Vec<Kind> = self.kinds.into_values().collect();
        kinds.sort_by(|a, b| (b.count, &a.text).cmp(&(a.count, &b.text)));
        let others = self.others + kinds.iter().skip(KINDS_SHOWN).map(|kind| kind.count).sum::<u64>();
        kinds.truncate(KINDS_SHOWN);
        Shown { count: self.count, kinds, others }
    }
}

fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The text with `#` for each number.
fn kind(text: &str) -> String {
    let mut out = String::new();
    let mut in_number = false;
    for letter in text.chars() {
        if out.len() >= KIND_BYTES_MAX {
            break;
        }
        if !letter.is_ascii_digit() {
            out.push(if letter.is_control() { ' ' } else { letter });
        } else if !in_number {
            out.push('#');
        }
        in_number = letter.is_ascii_digit();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_differ_in_numbers_are_of_a_kind() {
        let mut messages = Messages::default();
        for text in ["bfq12S activate 7", "bfq3S activate 10", "bfq3S expire"] {
            let line = messages.add(&Event { time_ns: 1_500_000_000, ..Event::default() }, text.as_bytes());
            assert_eq!(line, format!("    1.500000000  {text}\n"));
        }
        let shown = messages.shown();
        let kinds: Vec<_> = shown.kinds.iter().map(|kind| (kind.text.as_str(), kind.count)).collect();
        assert_eq!(kinds, [("bfq#S activate #", 2), ("bfq#S expire", 1)]);
        assert_eq!(shown.kinds[0].example, "bfq12S activate 7");
    }
}
