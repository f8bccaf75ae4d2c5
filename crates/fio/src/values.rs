//! Numbers, sizes and times as fio writes them (read in fio 3.33's source and tried with it).
//!
//! Where fio would silently take `4q` for 4 or `1.5g` for 1 byte, these functions say no: a wrong number in a job file changes
//! every figure that follows.

/// A size: bytes, or a percentage of something only the caller knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Amount {
    /// Bytes.
    Bytes(u64),
    /// Percent of the file or device.
    Percent(u64),
}

impl Amount {
    /// Bytes, given what 100 % is.
    pub fn of(self, whole: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => {
                (u128::from(whole) * u128::from(percent) / 100).min(u128::from(u64::MAX)) as u64
            }
        }
    }
}

/// Why a value was not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// What is wrong, a sentence without a final stop.
    pub(crate) message: String,
    /// What would be accepted.
    pub(crate) allowed: &'static str,
}

impl Wrong {
    pub(crate) fn new(message: impl Into<String>, allowed: &'static str) -> Self {
        Self { message: message.into(), allowed }
    }
}

const SIZES: &str = "a whole number, decimal or 0x…, with k, m, g, t, p (powers of kb_base) or %";
const TIMES: &str = "a whole number with us, ms, s, m, h or d";

/// Bytes with a suffix. `kb_base` is 1024 or 1000; `kib`, `mib`… are the *other* base: fio's inversion, kept on purpose.
pub(crate) fn size(text: &str, kb_base: u64) -> Result<Amount, Wrong> {
    let text = text.trim();
    let (number, suffix) = leading_number(text).map_err(|why| why.of(text, "a size", SIZES))?;
    if suffix == "%" {
        return Ok(Amount::Percent(number));
    }
    let unit = byte_unit(suffix, kb_base)
        .ok_or_else(|| Wrong::new(format!("'{text}' has an unknown suffix '{suffix}'"), SIZES))?;
    let bytes = number.checked_mul(unit).ok_or_else(|| NoNumber::TooLarge.of(text, "a size", SIZES))?;
    Ok(Amount::Bytes(bytes))
}

/// Bytes with a suffix, a percentage refused.
pub(crate) fn bytes(text: &str, kb_base: u64) -> Result<u64, Wrong> {
    match size(text, kb_base)? {
        Amount::Bytes(bytes) => Ok(bytes),
        Amount::Percent(_) => Err(Wrong::new(format!("'{}' cannot be a percentage", text.trim()), SIZES)),
    }
}

/// Bytes with a sign, as in `rw=read:-8k`.
pub(crate) fn signed_bytes(text: &str, kb_base: u64) -> Result<i64, Wrong> {
    let text = text.trim();
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = i64::try_from(bytes(rest, kb_base)?);
    value
        .map(|value| sign * value)
        .map_err(|_| Wrong::new(format!("'{text}' does not fit in 63 bits"), SIZES))
}

/// A time in microseconds. A bare number counts in `unit_us` (1 or 1,000,000).
pub(crate) fn time_us(text: &str, unit_us: u64) -> Result<u64, Wrong> {
    let text = text.trim();
    let (number, suffix) = leading_number(text).map_err(|why| why.of(text, "a time", TIMES))?;
    let unit = match suffix.to_ascii_lowercase().as_str() {
        "" => unit_us,
        "us" | "usec" => 1,
        "ms" | "msec" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err(Wrong::new(format!("'{text}' has an unknown suffix '{suffix}'"), TIMES)),
    };
    // Nanoseconds must fit too: the simulator counts in them.
    let us = number.checked_mul(unit).filter(|us| us.checked_mul(1000).is_some());
    us.ok_or_else(|| Wrong::new(format!("'{text}' is longer than 584 years"), TIMES))
}

/// A decimal fraction, as in `zipf:1.2`.
pub(crate) fn fraction(text: &str) -> Result<f64, Wrong> {
    let text = text.trim();
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
    value.ok_or_else(|| Wrong::new(format!("'{text}' is not a number"), "a decimal number such as 1.2"))
}

/// Why a text begins with no number.
enum NoNumber {
    Negative,
    TooLarge,
    Other,
}

impl NoNumber {
    fn of(&self, text: &str, what: &str, allowed: &'static str) -> Wrong {
        let message = match self {
            Self::Negative => format!("'{text}' is negative"),
            Self::TooLarge => format!("'{text}' is too large: it does not fit in 64 bits"),
            Self::Other => format!("'{text}' is not {what}"),
        };
        Wrong::new(message, allowed)
    }
}

/// Splits `12k` into 12 and `k`; hexadecimal numbers take all hexadecimal digits.
fn leading_number(text: &str) -> Result<(u64, &str), NoNumber> {
    let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = hex.map_or((text, 10), |digits| (digits, 16));
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    match u64::from_str_radix(&digits[..end], radix) {
        Ok(number) => Ok((number, &digits[end..])),
        Err(_) if end > 0 => Err(NoNumber::TooLarge),
        Err(_)
            if text.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) =>
        {
            Err(NoNumber::Negative)
        }
        Err(_) => Err(NoNumber::Other),
    }
}

fn byte_unit(suffix: &str, kb_base: u64) -> Option<u64> {
    let lower = suffix.to_ascii_lowercase();
    if lower.is_empty() || lower == "b" {
        return Some(1);
    }
    let power = 1 + "kmgtp".find(lower.chars().next()?)? as u32;
    let other_base = if kb_base == 1000 { 1024u64 } else { 1000 };
    match &lower[1..] {
        "" | "b" | "i" => Some(kb_base.pow(power)),
        "ib" => Some(other_base.pow(power)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_follow_the_code_of_fio_not_its_manual() {
        let b = |text| bytes(text, 1024).unwrap();
        assert_eq!(b("4k"), 4096);
        assert_eq!(b("4KB"), 4096);
        assert_eq!(b("4ki"), 4096);
        assert_eq!(b("4kib"), 4000);
        assert_eq!(b("1mi"), 1 << 20);
        assert_eq!(b("1mib"), 1_000_000);
        assert_eq!(b("0x1000"), 4096);
        assert_eq!(b("2G"), 2 << 30);
        assert_eq!(bytes("1kib", 1000), Ok(1024));
        assert_eq!(bytes("1k", 1000), Ok(1000));
        assert_eq!(size("20%", 1024), Ok(Amount::Percent(20)));
    }

    #[test]
    fn what_fio_misreads_in_silence_is_refused() {
        for text in ["", "k", "4q", "1.5g", "8*1k", "-4k", "20%%", "99999999999999999999", "16385p", "4kk"] {
            assert!(bytes(text, 1024).is_err(), "{text}");
        }
        let message = |text: &str| bytes(text, 1024).unwrap_err().message;
        assert_eq!(message("-4k"), "'-4k' is negative");
        assert_eq!(
            message("99999999999999999999"),
            "'99999999999999999999' is too large: it does not fit in 64 bits"
        );
        assert_eq!(message("16385p"), "'16385p' is too large: it does not fit in 64 bits");
        assert_eq!(message("-k"), "'-k' is not a size");
    }

    #[test]
    fn times_know_their_default_unit() {
        assert_eq!(time_us("30", 1_000_000), Ok(30_000_000));
        assert_eq!(time_us("30", 1), Ok(30));
        assert_eq!(time_us("5ms", 1_000_000), Ok(5_000));
        assert_eq!(time_us("2h", 1), Ok(7_200_000_000));
        assert!(time_us("5sec", 1).is_err());
        assert!(time_us("99999999999d", 1).is_err());
    }

    #[test]
    fn signs_are_for_strides_only() {
        assert_eq!(signed_bytes("-8k", 1024), Ok(-8192));
        assert_eq!(signed_bytes("+8k", 1024), Ok(8192));
        assert!(signed_bytes("--8k", 1024).is_err());
    }
}
