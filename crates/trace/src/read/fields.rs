//! Numbers and words of text formats, read from bytes without allocation.

use crate::error::{ErrorKind, Problem};

/// The words between blanks, at most `N`; the rest are counted but not kept.
pub(crate) struct Words<'a, const N: usize> {
    words: [&'a [u8]; N],
    count: usize,
}

impl<'a, const N: usize> Words<'a, N> {
    /// Words between blanks and tabs.
    pub fn blank(line: &'a [u8]) -> Self {
        let (mut words, mut count): ([&[u8]; N], usize) = ([b""; N], 0);
        let mut start = None;
        for (at, byte) in line.iter().enumerate() {
            match (byte.is_ascii_whitespace(), start) {
                (false, None) => start = Some(at),
                (true, Some(from)) => {
                    keep(&mut words, &mut count, &line[from..at]);
                    start = None;
                }
                _ => {}
            }
        }
        if let Some(from) = start {
            keep(&mut words, &mut count, &line[from..]);
        }
        Self { words, count }
    }

    /// Words between `separator`, without the blanks around them.
    pub fn separated(line: &'a [u8], separator: u8) -> Self {
        let (mut words, mut count): ([&[u8]; N], usize) = ([b""; N], 0);
        for word in line.split(|&byte| byte == separator) {
            keep(&mut words, &mut count, word.trim_ascii());
        }
        Self { words, count }
    }

    /// All words when there are exactly `count`.
    pub fn exactly(&self, count: usize, columns: &str) -> Result<&[&'a [u8]; N], Problem> {
        if self.count == count {
            Ok(&self.words)
        } else {
            Err(Problem::corrupt(format!("expected {count} columns ({columns}), found {}", self.count)))
        }
    }
}

fn keep<'a, const N: usize>(words: &mut [&'a [u8]; N], count: &mut usize, word: &'a [u8]) {
    if let Some(slot) = words.get_mut(*count) {
        *slot = word;
    }
    *count += 1;
}

/// A decimal number.
pub(crate) fn uint(word: &[u8], what: &str) -> Result<u64, Problem> {
    digits(word).ok_or_else(|| Problem::word(&format!("{what}, a whole number"), word))
}

/// A decimal number of at most 32 bits.
pub(crate) fn uint32(word: &[u8], what: &str) -> Result<u32, Problem> {
    digits(word)
        .and_then(|value| u32::try_from(value).ok())
        .ok_or_else(|| Problem::word(&format!("{what}, a whole number below 2^32"), word))
}

/// A whole number of digits only; `None` when empty, too large or something else.
pub(crate) fn digits(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0u64, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { value.checked_mul(10)?.checked_add(u64::from(digit)) }
    })
}

/// A signed whole number.
pub(crate) fn int(word: &[u8], what: &str) -> Result<i64, Problem> {
    let (negative, magnitude) = match word {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, word),
    };
    digits(magnitude)
        .and_then(|value| i64::try_from(value).ok())
        .map(|value| if negative { -value } else { value })
        .ok_or_else(|| Problem::word(&format!("{what}, a whole number"), word))
}

/// A hexadecimal number, with or without `0x`.
pub(crate) fn hex(word: &[u8]) -> Option<u64> {
    let word = word.strip_prefix(b"0x").unwrap_or(word);
    if word.is_empty() || word.len() > 16 {
        return None;
    }
    word.iter().try_fold(0u64, |value, &byte| Some(value << 4 | u64::from((byte as char).to_digit(16)?)))
}

/// A time in a unit of 10^-`scale` of the result's: `decimal(b"1.5", 9, ..)` is 1.5 s in ns. Digits past the result's
/// unit are dropped.
pub(crate) fn time(word: &[u8], scale: u32, what: &str) -> Result<u64, Problem> {
    if let [b'-', rest @ ..] = word
        && decimal(rest, scale).is_some_and(|value| value > 0)
    {
        let message = format!("{what} is negative ({})", String::from_utf8_lossy(word));
        return Err(Problem { kind: ErrorKind::NegativeTime, message });
    }
    let unsigned = word.strip_prefix(b"-").unwrap_or(word);
    decimal(unsigned, scale).ok_or_else(|| Problem::word(&format!("{what}, a decimal number"), word))
}

/// A decimal fraction times 10^`scale`.
pub(crate) fn decimal(word: &[u8], scale: u32) -> Option<u64> {
    // How many digits may still come that count; all of them do before the point.
    let mut left = None;
    let mut value = 0u64;
    for &byte in word {
        let digit = byte.wrapping_sub(b'0');
        match (digit <= 9, left) {
            (true, Some(0)) => {}
            (true, _) => {
                value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
                left = left.map(|left: u32| left - 1);
            }
            (false, None) if byte == b'.' => left = Some(scale),
            (false, _) => return None,
        }
    }
    let has_digits = word.len() > usize::from(left.is_some());
    if has_digits { value.checked_mul(10u64.pow(left.unwrap_or(scale))) } else { None }
}

/// `sectors` in bytes.
pub(crate) fn sectors_to_bytes(sectors: u64) -> Result<u64, Problem> {
    sectors
        .checked_mul(crate::event::SECTOR_BYTES)
        .ok_or_else(|| Problem::corrupt(format!("{sectors} sectors are more than 2^64 bytes")))
}

/// Takes the next word off the front of `rest`. Empty at the end.
pub(crate) fn next_word<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let trimmed = rest.trim_ascii_start();
    let end = trimmed.iter().position(u8::is_ascii_whitespace).unwrap_or(trimmed.len());
    let (word, tail) = trimmed.split_at(end);
    *rest = tail;
    word
}

/// `major,minor`.
pub(crate) fn device(word: &[u8]) -> Result<crate::event::DeviceNumber, Problem> {
    let mut parts = word.splitn(2, |&byte| byte == b',');
    let number = |part: Option<&[u8]>| part.and_then(digits).and_then(|value| u32::try_from(value).ok());
    number(parts.next())
        .zip(number(parts.next()))
        .and_then(|(major, minor)| crate::event::DeviceNumber::new(major, minor))
        .ok_or_else(|| Problem::word("a device as major,minor", word))
}

/// What is between the first `[` and the last `]` of `rest`, and what stands behind it.
pub(crate) fn bracketed(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    let open = rest.iter().position(|&byte| byte == b'[')?;
    let close = rest.iter().rposition(|&byte| byte == b']')?;
    (open < close).then(|| (&rest[open + 1..close], &rest[close + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(decimal(b"13.191135", 6), Some(13_191_135));
        assert_eq!(decimal(b"0.000000001", 9), Some(1));
        assert_eq!(decimal(b"7050.375042", 3), Some(7_050_375));
        assert_eq!(decimal(b"5", 9), Some(5_000_000_000));
        assert_eq!(decimal(b".5", 1), Some(5));
        assert_eq!(decimal(b"18446744073.7095516159", 9), Some(u64::MAX), "what is past the unit is dropped");
        assert_eq!(decimal(b"3.", 2), Some(300));
        for wrong in ["", ".", "1.2.3", "1e3", "99999999999999999999", "18446744074.0"] {
            assert_eq!(decimal(wrong.as_bytes(), 9), None, "{wrong}");
        }
        assert_eq!(time(b"-1.5", 9, "time").unwrap_err().kind, ErrorKind::NegativeTime);
        assert_eq!(time(b"-0.0", 9, "time").unwrap(), 0);
    }
}
