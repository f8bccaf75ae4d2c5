//! Numbers as people read them.

/// Three significant digits; whole numbers are never rounded away.
pub fn short(value: f64) -> String {
    let size = value.abs();
    let digits = match size {
        _ if size == 0.0 => return "0".to_owned(),
        s if s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        s if s >= 0.9995 => 2,
        s if s >= 0.0995 => 3,
        _ => 4,
    };
    format!("{value:.digits$}")
}

/// A size in the largest unit that shows it without rounding: `4 KiB`, `1536 B`.
pub fn bytes(value: u64) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(bits, _)| value > 0 && value.trailing_zeros() >= *bits) {
        Some((bits, unit)) => format!("{} {unit}", value >> bits),
        None => format!("{value} B"),
    }
}

/// The same without a unit's name, as limits are written: `50M`, `500`.
pub fn bytes_short(value: u64) -> String {
    let units = [(30, "G"), (20, "M"), (10, "k")];
    match units.iter().find(|(bits, _)| value > 0 && value.trailing_zeros() >= *bits) {
        Some((bits, unit)) => format!("{}{unit}", value >> bits),
        None => value.to_string(),
    }
}

/// A time in seconds: `30 s`, `1.25 s`.
pub fn seconds(ns: u64) -> String {
    let text = format!("{:.3}", ns as f64 / 1e9);
    format!("{} s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// One thing or several: `1 process`, `4 processes`.
pub fn count(n: u64, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_whatever_the_size() {
        let shown: Vec<_> =
            [0.0, 0.01234, 0.1234, 0.9996, 1.234, 9.996, 12.34, 99.96, 123.4, 1234.5, 123_456.0]
                .map(short)
                .into();
        let wanted = ["0", "0.0123", "0.123", "1.00", "1.23", "10.0", "12.3", "100", "123", "1234", "123456"];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn units_are_exact() {
        assert_eq!(
            (bytes(4096), bytes(1 << 30), bytes(1536), bytes(0)),
            ("4 KiB".into(), "1 GiB".into(), "1536 B".into(), "0 B".into())
        );
        assert_eq!((seconds(30_000_000_000), seconds(1_250_000_000)), ("30 s".into(), "1.25 s".into()));
    }
}
