//! Where a recorder lost events.
//!
//! A trace says so by a message in ftrace's words, `[LOST 12 EVENTS]` or `[LOST EVENTS]`, at the place where they are missing. Every
//! format that holds messages keeps it.

use crate::event::{Action, Event};

/// How much of a trace its recorder lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Places where events are missing.
    pub gaps: u64,
    /// How many events are missing there; more, if a place does not say how many.
    pub events: u64,
}

impl Lost {
    pub(crate) fn add(&mut self, events: u64) {
        self.gaps += 1;
        self.events = self.events.saturating_add(events);
    }
}

/// The message that says that `events` are missing at this time; 0: it is not known how many.
pub(crate) fn message(events: u64) -> String {
    if events == 0 { "[LOST EVENTS]".to_owned() } else { format!("[LOST {events} EVENTS]") }
}

/// A message of that text becomes [`Action::Lost`]; its text stays.
pub(crate) fn told(event: Event, payload: &[u8]) -> Event {
    match (event.action, parse(payload)) {
        (Action::Message, Some(events)) => Event { action: Action::Lost { events }, ..event },
        _ => event,
    }
}

/// The number of events, 0 if it is not said; `None` for any other text. trace-cmd writes `[12 EVENTS DROPPED]`.
pub(crate) fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?.trim_end_matches(['\0', '\n', ' ']);
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let number = match inner {
        "LOST EVENTS" | "EVENTS DROPPED" => return Some(0),
        _ => match inner.strip_prefix("LOST ") {
            Some(rest) => rest.strip_suffix(" EVENTS")?,
            None => inner.strip_suffix(" EVENTS DROPPED")?,
        },
    };
    number.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_the_recorders_are_known() {
        for (text, events) in [
            ("[LOST 12 EVENTS]", Some(12)),
            ("[LOST EVENTS]", Some(0)),
            ("[7 EVENTS DROPPED]", Some(7)),
            ("[EVENTS DROPPED]", Some(0)),
            ("[LOST 12 EVENTS]\n", Some(12)),
            ("cfq12S / [LOST 12 EVENTS]", None),
            ("[LOST many EVENTS]", None),
            ("[LOST -1 EVENTS]", None),
            ("", None),
        ] {
            assert_eq!(parse(text.as_bytes()), events, "{text:?}");
        }
        assert_eq!([0, 12].map(|events| parse(message(events).as_bytes())), [Some(0), Some(12)]);
    }
}
