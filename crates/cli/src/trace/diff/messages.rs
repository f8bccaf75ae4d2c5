//! The messages of two traces beside each other, line by line.

use std::collections::{HashMap, VecDeque};

use serde::Serialize;

use super::pairs::longest_rising;
use super::since;

/// A message and when it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// As it was written.
    pub text: String,
    /// When, ns.
    pub at_ns: u64,
}

/// The messages of both traces in numbers. A message of one is the other's when it is the n-th with these words; times in its words
/// (`for 7990 us`) may differ.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MessageFigures {
    /// In both traces.
    pub both: usize,
    /// In the first only.
    pub only_a: usize,
    /// In the second only.
    pub only_b: usize,
    /// The most that can be picked so that both traces have them in one order.
    pub in_order: usize,
    /// Written within the tolerance of each other, counted from each trace's first common arrival.
    pub within: usize,
}

/// A message that one trace has at another time, or alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessageLine {
    /// Its words, in the first trace if that has it.
    pub text: String,
    /// When the first trace has it, from the first common arrival.
    pub a_ns: Option<i64>,
    /// When the second has it.
    pub b_ns: Option<i64>,
}

/// Both in numbers, and the first `count` lines that differ. `zeroes`: when the time of each trace begins.
pub fn compare(
    a: &[Told],
    b: &[Told],
    zeroes: (u64, u64),
    within_ns: u64,
    count: usize,
) -> (MessageFigures, Vec<MessageLine>) {
    let mut known: HashMap<String, VecDeque<usize>> = HashMap::new();
    for (place, told) in b.iter().enumerate() {
        known.entry(key(&told.text)).or_default().push_back(place);
    }
    let (mut figures, mut places, mut lines) = (MessageFigures::default(), Vec::new(), Vec::new());
    for told in a {
        let place = known.get_mut(&key(&told.text)).and_then(VecDeque::pop_front);
        let line = MessageLine {
            text: told.text.clone(),
            a_ns: since(zeroes.0, told.at_ns),
            b_ns: place.and_then(|place| since(zeroes.1, b[place].at_ns)),
        };
        places.extend(place.map(|place| place as u64));
        match (line.a_ns.zip(line.b_ns), place) {
            (Some((a_ns, b_ns)), _) if a_ns.abs_diff(b_ns) <= within_ns => figures.within += 1,
            (_, None) => {
                figures.only_a += 1;
                lines.push(line);
            }
            _ => lines.push(line),
        }
    }
    figures.both = places.len();
    figures.in_order = longest_rising(places.into_iter());
    let alone: Vec<usize> = known.into_values().flatten().collect();
    figures.only_b = alone.len();
    lines.extend(alone.into_iter().map(|place| MessageLine {
        text: b[place].text.clone(),
        a_ns: None,
        b_ns: since(zeroes.1, b[place].at_ns),
    }));
    lines.sort_by(|x, y| (x.a_ns.or(x.b_ns), &x.text).cmp(&(y.a_ns.or(y.b_ns), &y.text)));
    lines.truncate(count);
    (figures, lines)
}

/// The words without times: `idle group 2 for # us`.
fn key(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_time = |at: usize| {
        let is_number = words[at].bytes().all(|byte| byte.is_ascii_digit());
        is_number && words.get(at + 1).is_some_and(|unit| matches!(*unit, "us" | "ns" | "ms"))
    };
    let word = |at: usize| if is_time(at) { "#" } else { words[at] };
    (0..words.len()).map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[(u64, &str)]) -> Vec<Told> {
        lines.iter().map(|(at_ns, text)| Told { text: (*text).to_owned(), at_ns: *at_ns }).collect()
    }

    #[test]
    fn words_are_compared_and_times_in_them_are_not() {
        let a = told(&[(10, "turn group 1"), (20, "idle group 1 for 8000 us"), (30, "turn group 2")]);
        let b = told(&[(110, "turn group 2"), (125, "idle group 1 for 7990 us"), (131, "turn group 3")]);
        let (figures, lines) = compare(&a, &b, (0, 100), 5, 10);
        assert_eq!(figures, MessageFigures { both: 2, only_a: 1, only_b: 1, in_order: 1, within: 1 });
        let shown: Vec<_> = lines.iter().map(|line| (line.text.as_str(), line.a_ns, line.b_ns)).collect();
        assert_eq!(
            shown,
            [
                ("turn group 1", Some(10), None),
                ("turn group 2", Some(30), Some(10)),
                ("turn group 3", None, Some(31))
            ]
        );
    }

    #[test]
    fn a_trace_agrees_with_itself() {
        let a = told(&[(10, "turn group 1"), (10, "turn group 2"), (30, "turn group 1")]);
        let (figures, lines) = compare(&a, &a, (0, 0), 0, 10);
        assert_eq!(figures, MessageFigures { both: 3, only_a: 0, only_b: 0, in_order: 3, within: 3 });
        assert!(lines.is_empty());
    }
}
