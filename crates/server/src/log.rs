//! What the server says on standard error: a line for each event, `time=SECONDS level=WORD event=WORD key=value...`.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// How much it matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Good to know.
    Info,
    /// The operator should look.
    Warn,
}

/// The line of an event.
fn line(seconds: f64, level: Level, event: &str, fields: &[(&str, &str)]) -> String {
    let level = if level == Level::Info { "info" } else { "warn" };
    let mut out = format!("time={seconds:.3} level={level} event={event}");
    for (key, value) in fields {
        let plain =
            !value.is_empty() && !value.contains([' ', '"', '=']) && !value.contains(char::is_control);
        let _ = if plain { write!(out, " {key}={value}") } else { write!(out, " {key}={value:?}") };
    }
    out + "\n"
}

/// Say it.
pub fn log(level: Level, event: &str, fields: &[(&str, &str)]) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    // Nobody is there to hear that nobody is there to hear it.
    let _ = std::io::stderr().lock().write_all(line(now, level, event, fields).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_cannot_pass_for_another_field() {
        let line = line(1.5, Level::Warn, "gone", &[("why", "a b=c\n\"d\""), ("export", "vm1")]);
        assert_eq!(line, "time=1.500 level=warn event=gone why=\"a b=c\\n\\\"d\\\"\" export=vm1\n");
    }
}
