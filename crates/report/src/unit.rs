//! Numbers with a unit people read at a glance.

/// A time, with three significant digits.
pub(crate) fn time(ns: f64) -> String {
    match ns {
        ns if ns >= 1e9 => format!("{} s", short(ns / 1e9)),
        ns if ns >= 1e6 => format!("{} ms", short(ns / 1e6)),
        ns if ns >= 1e3 => format!("{} us", short(ns / 1e3)),
        ns => format!("{} ns", short(ns)),
    }
}

/// A share.
pub(crate) fn percent(value: f64) -> String {
    format!("{} %", short(value))
}

/// Seconds.
pub(crate) fn seconds(value: f64) -> String {
    format!("{} s", short(value))
}

/// The unit for bandwidths up to so many bytes per second, and its name.
pub(crate) fn of_bandwidth(most: f64) -> (f64, &'static str) {
    if most >= 1_048_576.0 { (1_048_576.0, "MiB/s") } else { (1024.0, "KiB/s") }
}

/// Bytes per second.
pub(crate) fn bandwidth(bytes_per_s: f64) -> String {
    match bytes_per_s {
        b if b >= 1048576.0 => format!("{} MiB/s", short(b / 1048576.0)),
        b => format!("{} KiB/s", short(b / 1024.0)),
    }
}

/// A number of things: `489`, `2.81k`, `1.2M`.
pub(crate) fn count(count: u64) -> String {
    match count as f64 {
        n if n >= 1e6 => format!("{}M", short(n / 1e6)),
        n if n >= 1e3 => format!("{}k", short(n / 1e3)),
        _ => count.to_string(),
    }
}

/// Three significant digits, without a useless fraction.
pub(crate) fn short(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 100.0 => 0,
        v if v >= 10.0 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!([time(950.0), time(8_333_000.0), time(2.0e9)], ["950 ns", "8.33 ms", "2 s"]);
        assert_eq!([count(489), count(2_812), count(1_200_000)], ["489", "2.81k", "1.2M"]);
        assert_eq!([bandwidth(36_864.0), bandwidth(1048576.0 * 25.2)], ["36 KiB/s", "25.2 MiB/s"]);
    }
}
