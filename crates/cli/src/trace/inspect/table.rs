//! An inspection, for people.

use std::fmt::Write as _;

use fairlift_trace::Interval;

use super::figures::{Inspection, Part, Stretch};
use super::messages::Shown;
use crate::grid::{Grid, WIDTH, number, word, wrapped};
use crate::number::{bytes, count, seconds, short};
use crate::style::Style;

const NOTHING: &str = "-";

/// All sections that have something to show.
pub fn table(of: &Inspection, style: Style) -> String {
    let mut out = head(of, style);
    let mut section = |text: String| {
        if !text.is_empty() {
            let _ = write!(out, "\n{text}");
        }
    };
    section(operations(of, style));
    section(shape(of, style));
    section(anatomy(of, style));
    section(parts(of, style, "process", "processes", &of.processes, of.processes_total));
    if of.devices_total > 1 {
        section(parts(of, style, "device", "devices", &of.devices, of.devices_total));
    }
    section(messages(&of.messages, style));
    section(list("not in the trace", &of.lacks, style));
    out
}

fn head(of: &Inspection, style: Style) -> String {
    let ios = count(of.all.ios, "I/O", "I/Os");
    let mut out = format!("{}\n", style.bold(&format!("{} ({})", of.trace, of.format)));
    let text = format!(
        "{} in {}: {ios}, {} MiB; {} and {}",
        count(of.events_total, "event", "events"),
        seconds(of.length_ns),
        short(of.all.bytes as f64 / 1_048_576.0),
        count(of.processes_total as u64, "process", "processes"),
        count(of.devices_total as u64, "device", "devices"),
    );
    let kinds: Vec<String> = of.events.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    for line in
        wrapped(&text, WIDTH).into_iter().chain(wrapped(&format!("events: {}", kinds.join(", ")), WIDTH))
    {
        let _ = writeln!(out, "{line}");
    }
    out
}

fn operations(of: &Inspection, style: Style) -> String {
    let mut grid = Grid::default();
    grid.row(["", "I/Os", "share %", "MiB", "mean KiB", "1/s", "KiB/s"].map(word).into());
    grid.text(style.bold("operations"));
    let length_s = of.length_ns as f64 / 1e9;
    let rate = |amount: f64| if length_s > 0.0 { short(amount / length_s) } else { NOTHING.to_owned() };
    for op in &of.all.operations {
        let kib = op.bytes as f64 / 1024.0;
        let figures = [
            op.ios.to_string(),
            share(op.ios as f64, of.all.ios as f64),
            short(kib / 1024.0),
            short(kib / op.ios.max(1) as f64),
            rate(op.ios as f64),
            rate(kib),
        ];
        let name = if op.op == "none" { "no operation" } else { op.op };
        grid.row(std::iter::once(word(format!("  {name}"))).chain(figures.map(number)).collect());
    }
    grid.render(style, 20)
}

/// Sizes, order and arrivals, a line each.
fn shape(of: &Inspection, style: Style) -> String {
    let all = &of.all;
    let sizes: Vec<String> = all
        .sizes
        .iter()
        .map(|size| format!("{}: {}", bytes(size.from_bytes), share(size.ios as f64, all.ios as f64)))
        .collect();
    let mut facts = Vec::new();
    if !sizes.is_empty() {
        facts.push(format!("sizes, from this up to twice as much, share in %: {}", sizes.join(", ")));
    }
    if let Some(sequential) = all.sequential_share {
        facts.push(format!(
            "order: {} % begin where the one before ended, the others {} MiB away on average",
            short(100.0 * sequential),
            short(all.seek_mean_sectors / 2048.0)
        ));
    }
    let arrivals = &all.arrivals;
    let or_none = |value: Option<f64>| value.map_or(NOTHING.to_owned(), short);
    let mut text = format!(
        "arrivals: {} ms apart on average, variation {} (1: Poisson, more: bursts)",
        short(arrivals.gap_mean_ns / 1e6),
        or_none(arrivals.gap_variation),
    );
    if arrivals.full_seconds > 0 {
        let _ = write!(
            text,
            "; a second has {} on average, {} at most, dispersion {}",
            short(arrivals.per_second_mean),
            arrivals.per_second_max,
            or_none(arrivals.per_second_dispersion),
        );
    }
    facts.push(text);
    for (what, flight) in [("in flight", &of.in_flight), ("in the device", &of.in_device)] {
        if flight.max > 0 {
            facts.push(format!("{what}: {} I/Os on average, {} at most", short(flight.mean), flight.max));
        }
    }
    list("load", &facts, style)
}

/// btt's intervals.
fn anatomy(of: &Inspection, style: Style) -> String {
    let stretches: Vec<&Stretch> = of.all.intervals.iter().chain(&of.all.response).collect();
    if stretches.is_empty() {
        return String::new();
    }
    let ms = |ns: f64| short(ns / 1e6);
    let mut grid = Grid::default();
    let heads = ["", "I/Os", "min", "mean", "p50", "p99", "p99.9", "max", "% of Q2C"];
    grid.row(heads.map(word).into());
    grid.text(style.bold("latency, ms"));
    for stretch in stretches {
        let latency = of.latency.iter().find(|latency| latency.name == stretch.name);
        let percentile = |value: Option<u64>| {
            value.map_or(NOTHING.to_owned(), |ns| ms((ns.clamp(stretch.min_ns, stretch.max_ns)) as f64))
        };
        let figures = [
            stretch.ios.to_string(),
            ms(stretch.min_ns as f64),
            ms(stretch.mean_ns),
            percentile(latency.map(|l| l.p50_ns)),
            percentile(latency.map(|l| l.p99_ns)),
            percentile(latency.map(|l| l.p999_ns)),
            ms(stretch.max_ns as f64),
            stretch.share_of_q2c.map_or(NOTHING.to_owned(), |share| short(100.0 * share)),
        ];
        let name = format!("  {} {}", stretch.name, meaning(stretch.name));
        grid.row(std::iter::once(word(name)).chain(figures.map(number)).collect());
    }
    let mut out = grid.render(style, 20);
    if of.unfinished > 0 {
        let _ = writeln!(out, "  {} never seen complete", count(of.unfinished, "I/O was", "I/Os were"));
    }
    out
}

fn meaning(interval: &str) -> &'static str {
    match interval {
        "Q2G" => "until a request",
        "S2G" => "asleep for one",
        "G2I" => "plugged",
        "Q2M" => "until merged",
        "I2D" => "in the scheduler",
        "M2D" => "merged, scheduler",
        "D2C" => "in the device",
        "Q2C" => "all of it",
        _ => "",
    }
}

fn parts(of: &Inspection, style: Style, one: &str, many: &str, parts: &[Part], total: usize) -> String {
    if parts.is_empty() {
        return String::new();
    }
    let has_latency = !of.all.intervals.is_empty() || of.all.response.is_some();
    let mut grid = Grid::default();
    let mut heads = vec!["", "I/Os", "reads %", "MiB", "mean KiB", "seq. %", "burst"];
    if has_latency {
        heads.extend(["Q2C ms", "I2D ms", "D2C ms"]);
    }
    grid.row(heads.into_iter().map(word).collect());
    grid.text(style.bold(if total == 1 { one } else { many }));
    let mean = |stretch: Option<&Stretch>| stretch.map_or(NOTHING.to_owned(), |s| short(s.mean_ns / 1e6));
    for part in parts {
        let kib = part.bytes as f64 / 1024.0;
        let or_none = |value: Option<f64>| value.map_or(NOTHING.to_owned(), short);
        let mut figures = vec![
            part.ios.to_string(),
            share(part.of_op("read") as f64, part.ios as f64),
            short(kib / 1024.0),
            short(kib / part.ios.max(1) as f64),
            or_none(part.sequential_share.map(|share| 100.0 * share)),
            or_none(part.arrivals.gap_variation),
        ];
        if has_latency {
            figures.push(mean(part.interval(Interval::Q2C).or(part.response.as_ref())));
            figures.push(mean(part.interval(Interval::I2D)));
            figures.push(mean(part.interval(Interval::D2C)));
        }
        let name = match (&part.name, part.pid) {
            (Some(name), Some(pid)) => format!("  {name} [{pid}]"),
            (Some(name), None) => format!("  {name}"),
            (None, Some(pid)) => format!("  pid {pid}"),
            (None, None) => format!("  {NOTHING}"),
        };
        grid.row(std::iter::once(word(name)).chain(figures.into_iter().map(number)).collect());
    }
    let mut out = grid.render(style, 20);
    if total > parts.len() {
        let _ = writeln!(out, "  and {} more (--top)", total - parts.len());
    }
    out
}

fn messages(shown: &Shown, style: Style) -> String {
    if shown.count == 0 {
        return String::new();
    }
    let mut out = format!("{}\n", style.bold(&count(shown.count, "message", "messages")));
    for kind in &shown.kinds {
        let _ = writeln!(out, "  {:>8}  {}", kind.count, kind.example);
    }
    if shown.others > 0 {
        let _ = writeln!(out, "  {:>8}  others", shown.others);
    }
    out.push_str("  each kind with its first message; --notes prints all\n");
    out
}

fn list(title: &str, facts: &[String], style: Style) -> String {
    let mut out = String::new();
    for (index, text) in facts.iter().enumerate() {
        if index == 0 {
            let _ = writeln!(out, "{}", style.bold(title));
        }
        for (line, part) in wrapped(text, WIDTH - 4).iter().enumerate() {
            let _ = writeln!(out, "  {} {part}", if line == 0 { "-" } else { " " });
        }
    }
    out
}

fn share(part: f64, whole: f64) -> String {
    if whole > 0.0 { short(100.0 * part / whole) } else { NOTHING.to_owned() }
}
