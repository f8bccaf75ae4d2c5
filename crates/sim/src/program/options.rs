//! Command lines: getopt's rules, numbers with ranges, and messages that list what a program knows.

use std::ops::RangeInclusive;

use super::ProgramError;
use crate::scheduler::nearest;

/// An option of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opt {
    /// As it is written: `-s`, `--mason`, `-+n`.
    pub(super) name: &'static str,
    /// What its value is called; empty: it has none.
    pub(super) value: &'static str,
}

/// An option without a value.
pub(super) const fn flag(name: &'static str) -> Opt {
    Opt { name, value: "" }
}

/// An option with a value.
pub(super) const fn with(name: &'static str, value: &'static str) -> Opt {
    Opt { name, value }
}

/// Options in the order given, with their values (empty for flags). Letters may be joined (`-ec`) and values attached
/// (`-i0`), as getopt has it; none of these programs takes other words.
///
/// # Errors
/// An unknown option, a missing value, a word that is none.
pub(super) fn read(
    program: &str,
    known: &'static [Opt],
    words: &[String],
) -> Result<Vec<(&'static str, String)>, ProgramError> {
    let mut found = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if let Some(opt) = known.iter().find(|o| o.name == word && (o.name.len() > 2)) {
            let value =
                if opt.value.is_empty() { String::new() } else { next_value(program, opt, &mut words)? };
            found.push((opt.name, value));
            continue;
        }
        let letters = match word.strip_prefix('-') {
            Some(letters) if !letters.is_empty() && !letters.starts_with(['-', '+']) => letters,
            Some(_) if word.len() > 1 => return Err(unknown(program, known, word)),
            _ => {
                return Err(ProgramError::new(program, format!("'{}' is no option", shorten(word)))
                    .allowing(list(known)));
            }
        };
        for (at, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            let Some(opt) = known.iter().find(|o| o.name == name) else {
                return Err(unknown(program, known, &name));
            };
            if opt.value.is_empty() {
                found.push((opt.name, String::new()));
                continue;
            }
            let attached = &letters[at + letter.len_utf8()..];
            let value =
                if attached.is_empty() { next_value(program, opt, &mut words)? } else { attached.to_owned() };
            found.push((opt.name, value));
            break;
        }
    }
    Ok(found)
}

fn next_value<'a>(
    program: &str,
    opt: &Opt,
    words: &mut impl Iterator<Item = &'a String>,
) -> Result<String, ProgramError> {
    words.next().cloned().ok_or_else(|| {
        ProgramError::new(program, format!("option {} needs a value: {}", opt.name, opt.value))
    })
}

fn unknown(program: &str, known: &[Opt], word: &str) -> ProgramError {
    // A letter is nearest to itself in the other case; only long words have typing mistakes.
    let other_case = |o: &&Opt| o.name != word && o.name.eq_ignore_ascii_case(word);
    let near = match known.iter().find(other_case) {
        Some(opt) => Some(opt.name.to_owned()),
        None if word.len() > 2 && word.len() < 64 => {
            nearest(word, known.iter().map(|o| o.name).filter(|n| n.len() > 2))
                .or_else(|| letter_of(known, word))
        }
        None => None,
    };
    ProgramError {
        nearest: near,
        ..ProgramError::new(program, format!("unknown option '{}'", shorten(word))).allowing(list(known))
    }
}

/// `-s` for `--size`: these programs have letters where others have words.
fn letter_of(known: &[Opt], word: &str) -> Option<String> {
    let letter = word.strip_prefix("--")?.get(..1)?;
    known.iter().map(|o| o.name).find(|name| name.strip_prefix('-') == Some(letter)).map(str::to_owned)
}

fn list(known: &[Opt]) -> String {
    let shown =
        |o: &Opt| if o.value.is_empty() { o.name.to_owned() } else { format!("{} {}", o.name, o.value) };
    known.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// A whole number within a range.
///
/// # Errors
/// Anything else.
pub(super) fn number(
    program: &str,
    option: &str,
    text: &str,
    range: RangeInclusive<u64>,
) -> Result<u64, ProgramError> {
    text.parse()
        .ok()
        .filter(|n| range.contains(n))
        .ok_or_else(|| out_of_range(program, option, text, "", range))
}

/// A size: a whole number of `unit` bytes, or with a suffix `b` (blocks of 512, where `blocks`), `k`, `m`, `g`, `t` of bytes.
///
/// # Errors
/// Anything else, and sizes out of `range` (bytes).
pub(super) fn size(
    program: &str,
    option: &str,
    text: &str,
    unit: u64,
    range: RangeInclusive<u64>,
) -> Result<u64, ProgramError> {
    let lower = text.to_ascii_lowercase();
    let (digits, factor) = match lower.strip_suffix(['k', 'm', 'g', 't']) {
        Some(digits) => (digits, 1 << (10 * (1 + "kmgt".find(&lower[digits.len()..]).unwrap_or(0)))),
        None => (lower.as_str(), unit),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(factor))
        .filter(|n| range.contains(n))
        .ok_or_else(|| out_of_range(program, option, text, " bytes", range))
}

fn out_of_range(
    program: &str,
    option: &str,
    text: &str,
    unit: &str,
    range: RangeInclusive<u64>,
) -> ProgramError {
    let message = format!(
        "{option} '{}' must be a number from {} to {}{unit}",
        shorten(text),
        range.start(),
        range.end()
    );
    ProgramError::new(program, message)
}

/// A word for a message: long ones are cut.
pub(super) fn shorten(word: &str) -> String {
    if word.chars().count() > 40 { word.chars().take(40).chain(['…']).collect() } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Opt] =
        &[with("-s", "SIZE"), flag("-e"), flag("-c"), with("-i", "TEST"), flag("-+n"), flag("--mason")];

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn letters_join_and_values_attach() {
        let found = read("p", KNOWN, &words("-ec -s64 -i 0 -+n --mason -ci1")).unwrap();
        let shown: Vec<_> = found.iter().map(|(n, v)| format!("{n}{v}")).collect();
        assert_eq!(shown, ["-e", "-c", "-s64", "-i0", "-+n", "--mason", "-c", "-i1"]);
    }

    #[test]
    fn sizes_have_suffixes() {
        let of = |text: &str| size("p", "-s", text, 1024, 1..=1 << 40);
        assert_eq!((of("64"), of("64k"), of("2M")), (Ok(65536), Ok(65536), Ok(2 << 20)));
        assert!(
            of("99999999999999999999").is_err() && of("").is_err() && of("k").is_err() && of("-1").is_err()
        );
        assert!(of("18446744073709551615t").is_err(), "no overflow");
    }
}
