//! The letters for operation and flags that blkparse and the kernel's tracepoints print.

use crate::event::{Flags, Op};

/// Reads such a word. `None` when it has other letters.
///
/// blkparse: `F`? one of `W R D N`, then `F`? `A`? `S`? `M`?. The kernel adds `FF` (flush), `DE` (secure erase), `WZ`
/// (write zeroes), `Z` with a letter (zones), `U` (atomic), `V` (driver) and, long ago, `B` (barrier).
pub(crate) fn parse(word: &[u8]) -> Option<(Op, Flags)> {
    let mut flags = Flags::NONE;
    let mut rest = word;
    if let [b'F', tail @ ..] = rest {
        // A lone F, or F before another F, is the flush itself; otherwise it goes before the operation.
        if let [b'W' | b'R' | b'D' | b'N' | b'Z' | b'F', ..] = tail {
            (flags, rest) = (Flags::PREFLUSH, tail);
        }
    }
    let (op, tail): (Op, &[u8]) = match rest {
        [b'W', b'Z', tail @ ..] => (Op::WriteZeroes, tail),
        [b'W', tail @ ..] => (Op::Write, tail),
        [b'R', tail @ ..] => (Op::Read, tail),
        [b'D', b'E', tail @ ..] => (Op::SecureErase, tail),
        [b'D', tail @ ..] => (Op::Discard, tail),
        [b'F', tail @ ..] => {
            flags = Flags::NONE;
            (Op::Flush, tail)
        }
        [b'Z', b'A', tail @ ..] => (Op::ZoneAppend, tail),
        [b'Z', b'R', b'A', tail @ ..] => (Op::ZoneResetAll, tail),
        [b'Z', b'R', tail @ ..] => (Op::ZoneReset, tail),
        [b'Z', b'F', tail @ ..] => (Op::ZoneFinish, tail),
        [b'Z', b'O', tail @ ..] => (Op::ZoneOpen, tail),
        [b'Z', b'C', tail @ ..] => (Op::ZoneClose, tail),
        [b'N', tail @ ..] if flags.has(Flags::PREFLUSH) => {
            flags = Flags::NONE;
            (Op::Flush, tail)
        }
        [b'N' | b'V', tail @ ..] => (Op::None, tail),
        _ => return None,
    };
    for letter in tail {
        flags = flags.with(match letter {
            b'F' => Flags::FUA,
            b'A' => Flags::READAHEAD,
            b'S' => Flags::SYNC,
            b'M' => Flags::META,
            b'U' => Flags::ATOMIC,
            b'B' => Flags::PREFLUSH,
            _ => return None,
        });
    }
    Some((op, flags))
}

/// Writes the word as blkparse does, with the kernel's letters where blkparse has none.
pub(crate) fn write(out: &mut Vec<u8>, op: Op, flags: Flags) {
    if flags.has(Flags::PREFLUSH) {
        out.push(b'F');
    }
    out.extend_from_slice(match op {
        Op::Read => b"R",
        Op::Write => b"W",
        Op::Discard => b"D",
        Op::SecureErase => b"DE",
        Op::Flush => b"FN",
        Op::WriteZeroes => b"WZ",
        Op::ZoneAppend => b"ZA",
        Op::ZoneReset => b"ZR",
        Op::ZoneResetAll => b"ZRA",
        Op::ZoneFinish => b"ZF",
        Op::ZoneOpen => b"ZO",
        Op::ZoneClose => b"ZC",
        Op::None | Op::Sync | Op::DataSync => b"N",
    });
    let letters = [
        (Flags::FUA, b'F'),
        (Flags::READAHEAD, b'A'),
        (Flags::SYNC, b'S'),
        (Flags::META, b'M'),
        (Flags::ATOMIC, b'U'),
    ];
    out.extend(letters.iter().filter(|(flag, _)| flags.has(*flag)).map(|(_, letter)| letter));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_both_printers() {
        for (word, op, flags) in [
            ("R", Op::Read, Flags::NONE),
            ("RASM", Op::Read, Flags::READAHEAD.with(Flags::SYNC).with(Flags::META)),
            ("WS", Op::Write, Flags::SYNC),
            ("FWFSM", Op::Write, Flags::PREFLUSH.with(Flags::FUA).with(Flags::SYNC).with(Flags::META)),
            ("FN", Op::Flush, Flags::NONE),
            ("FF", Op::Flush, Flags::NONE),
            ("FFS", Op::Flush, Flags::SYNC),
            ("N", Op::None, Flags::NONE),
            ("DS", Op::Discard, Flags::SYNC),
            ("DE", Op::SecureErase, Flags::NONE),
            ("ZRA", Op::ZoneResetAll, Flags::NONE),
            ("WB", Op::Write, Flags::PREFLUSH),
        ] {
            assert_eq!(parse(word.as_bytes()), Some((op, flags)), "{word}");
        }
        for word in ["", "X", "RQ", "Z"] {
            assert_eq!(parse(word.as_bytes()), None, "{word}");
        }
    }
}
