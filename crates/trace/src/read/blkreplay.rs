//! blkreplay's `.load` files.

use super::Shared;
use super::fields::{sectors_to_bytes, time, uint};
use super::lines::LineParser;
use crate::error::Problem;
use crate::event::{Action, Event};
use crate::rwbs;

/// Free text, a line of column names that begins with `start`, perhaps more text, then
/// `seconds ; sector ; sectors ; R|W… ; replay_delay ; replay_duration` (the last two in seconds, 0 before a replay).
#[derive(Default)]
pub(crate) struct Blkreplay {
    named: bool,
    in_table: bool,
}

impl LineParser for Blkreplay {
    fn parse(&mut self, line: &[u8], _: &mut Shared) -> Result<Option<Event>, Problem> {
        let text = line.trim_ascii();
        if !self.in_table {
            // Text of any kind stands before the column names, and text without columns behind them; a file without column names
            // begins with its first row.
            let has_columns = text.iter().filter(|&&byte| byte == b';').count() >= 3;
            let is_row = has_columns && (self.named || text.first().is_some_and(u8::is_ascii_digit));
            self.in_table = is_row;
            if !is_row {
                self.named |= text.starts_with(b"start") && text.contains(&b';');
                return Ok(None);
            }
        }
        if text.is_empty() || text.starts_with(b"#") {
            return Ok(None);
        }
        let mut columns = text.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
        let mut column = || columns.next().unwrap_or_default();
        let (start, sector, sectors, op, _delay, duration) =
            (column(), column(), column(), column(), column(), column());
        let duration_ns =
            if duration.is_empty() { 0 } else { time(duration, 9, "the replay duration in seconds")? };
        // The recorder copied blkparse's word into it, as RA or WS.
        let (operation, flags) =
            rwbs::parse(op).ok_or_else(|| Problem::word("R, W or D, perhaps with flags", op))?;
        Ok(Some(Event {
            time_ns: time(start, 9, "the start in seconds")?,
            action: Action::Queue,
            sector: uint(sector, "a sector")?,
            bytes: sectors_to_bytes(uint(sectors, "a number of sectors")?)?,
            op: operation,
            flags,
            response_ns: (duration_ns > 0).then_some(duration_ns),
            ..Event::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Flags, Op};

    #[test]
    fn text_then_table() {
        let mut parser = Blkreplay::default();
        let mut parse = |line: &str| parser.parse(line.as_bytes(), &mut Shared::default());
        assert!(parse("Copying; 3 sentences; of; anything").unwrap().is_none());
        assert!(
            parse("start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0").unwrap().is_none()
        );
        assert!(parse("Converted by hand; see the licence").unwrap().is_none());
        let event = parse("      0.449518165 ;     37766917 ;   14 ; W ; 0.0 ; 0.002").unwrap().unwrap();
        assert_eq!((event.time_ns, event.sector, event.bytes), (449_518_165, 37_766_917, 14 * 512));
        assert_eq!((event.op, event.response_ns), (Op::Write, Some(2_000_000)));
        let ahead = parse("1.5 ; 8 ; 8 ; RA ; 0.0 ; 0.0").unwrap().unwrap();
        assert_eq!((ahead.op, ahead.flags, ahead.response_ns), (Op::Read, Flags::READAHEAD, None));
        assert!(parse("more text").is_err());
    }

    #[test]
    fn a_bad_first_row_behind_the_column_names_is_a_fault() {
        let mut parser = Blkreplay::default();
        let mut parse = |line: &str| parser.parse(line.as_bytes(), &mut Shared::default());
        assert!(parse("start ; sector; length ; op").unwrap().is_none());
        assert!(parse("x.5 ; 8 ; 8 ; R ; 0.0 ; 0.0").is_err());
    }
}
