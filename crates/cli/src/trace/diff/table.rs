//! A comparison of two traces, for people.

use std::fmt::Write as _;

use super::Difference;
use super::pairs::{Figures, Pairs};
use crate::grid::{Grid, WIDTH, number, word, wrapped};
use crate::number::{count, short};
use crate::style::Style;

/// All of it: what the traces are, the figures, the first differences, the messages.
pub fn table(of: &Difference, pairs: &Pairs<'_>, style: Style) -> String {
    let mut out = String::new();
    for (letter, trace) in [("A", &of.a), ("B", &of.b)] {
        let text = format!(
            "{letter}: {}, {}, {}",
            trace.name,
            count(trace.ios as u64, "I/O", "I/Os"),
            count(trace.requests, "request", "requests"),
        );
        let _ = writeln!(out, "{}", style.bold(&text));
        if trace.open > 0 {
            let _ = writeln!(out, "   {} not done at its end: left out", count(trace.open, "I/O", "I/Os"));
        }
    }
    let _ = write!(out, "\n{}", figures(of, style));
    let _ = write!(out, "{}", first_differences(of, pairs, style));
    let _ = write!(out, "{}", messages(of, style));
    let _ = write!(out, "{}", messages_by_line(of, style));
    let _ = write!(out, "\n{}", verdict(of));
    out
}

/// A line of the table of figures: its name, and the value of each class.
type Line = (String, fn(&Figures) -> String);

fn figures(of: &Difference, style: Style) -> String {
    let tolerance = format!("{} ms", ms(of.within_ns));
    let lines: [Line; 13] = [
        ("I/Os in both".to_owned(), |f| f.both.to_string()),
        ("only in A".to_owned(), |f| f.only_a.to_string()),
        ("only in B".to_owned(), |f| f.only_b.to_string()),
        (format!("arrived within {tolerance}"), |f| f.arrived_within.to_string()),
        ("dispatched in one order".to_owned(), |f| f.dispatched_in_order.to_string()),
        (format!("dispatched within {tolerance}"), |f| f.dispatched_within.to_string()),
        (format!("done within {tolerance}"), |f| f.done_within.to_string()),
        ("merged in both".to_owned(), |f| f.merged_both.to_string()),
        ("merged in A only".to_owned(), |f| f.merged_a.to_string()),
        ("merged in B only".to_owned(), |f| f.merged_b.to_string()),
        ("dispatches apart, ms: p50".to_owned(), |f| ms(f.dispatch_apart.p50_ns)),
        ("dispatches apart, ms: p99".to_owned(), |f| ms(f.dispatch_apart.p99_ns)),
        ("dispatches apart, ms: largest".to_owned(), |f| ms(f.dispatch_apart.max_ns)),
    ];
    let mut grid = Grid::default();
    grid.row(std::iter::once(word("")).chain(of.figures.iter().map(|f| word(f.ios))).collect());
    for (name, value) in &lines {
        let values = of.figures.iter().map(|f| number(value(f)));
        grid.row(std::iter::once(word(name.as_str())).chain(values).collect());
    }
    grid.render(style, 30)
}

fn ms(ns: u64) -> String {
    short(ns as f64 / 1e6)
}

fn first_differences(of: &Difference, pairs: &Pairs<'_>, style: Style) -> String {
    if of.first.is_empty() && pairs.only_a.is_empty() && pairs.only_b.is_empty() {
        return String::new();
    }
    let mut grid = Grid::default();
    grid.row(["", "A, ms", "B, ms", "B - A", "sector", "KiB"].map(word).into());
    grid.text(style.bold("first I/Os dispatched further apart, or in one trace only"));
    for line in &of.first {
        let time = |ns: Option<i64>| ns.map_or("-".to_owned(), |ns| format!("{:.3}", ns as f64 / 1e6));
        let difference = line.a_ns.zip(line.b_ns).map(|(a, b)| b - a);
        grid.row(vec![
            word(format!("  {} {}", line.op, line.who)),
            number(time(line.a_ns)),
            number(time(line.b_ns)),
            number(time(difference)),
            number(line.sector.to_string()),
            number(short(line.bytes as f64 / 1024.0)),
        ]);
    }
    format!("\n{}", grid.render(style, 24))
}

fn messages(of: &Difference, style: Style) -> String {
    if of.messages.is_empty() {
        return String::new();
    }
    let mut grid = Grid::default();
    grid.row(["", "A", "B"].map(word).into());
    grid.text(style.bold("messages by kind (# stands for a number)"));
    for kind in &of.messages {
        grid.row(vec![
            word(format!("  {}", kind.text)),
            number(kind.a.to_string()),
            number(kind.b.to_string()),
        ]);
    }
    format!("\n{}", grid.render(style, 40))
}

/// Messages one by one, if both traces have some.
fn messages_by_line(of: &Difference, style: Style) -> String {
    let Some(figures) = &of.message_figures else { return String::new() };
    let mut grid = Grid::default();
    grid.text(style.bold("messages line by line (times in their words may differ)"));
    let rows = [
        ("in both".to_owned(), figures.both),
        ("only in A".to_owned(), figures.only_a),
        ("only in B".to_owned(), figures.only_b),
        ("in one order".to_owned(), figures.in_order),
        (format!("within {} ms", ms(of.within_ns)), figures.within),
    ];
    for (name, value) in rows {
        grid.row(vec![word(format!("  {name}")), number(value.to_string())]);
    }
    let mut out = format!("\n{}", grid.render(style, 30));
    if of.first_messages.is_empty() {
        return out;
    }
    let mut grid = Grid::default();
    grid.row(["", "A, ms", "B, ms"].map(word).into());
    grid.text(style.bold("first messages at another time, or in one trace only"));
    let time = |ns: Option<i64>| ns.map_or("-".to_owned(), |ns| format!("{:.3}", ns as f64 / 1e6));
    for line in &of.first_messages {
        grid.row(vec![word(format!("  {}", line.text)), number(time(line.a_ns)), number(time(line.b_ns))]);
    }
    let _ = write!(out, "\n{}", grid.render(style, 40));
    out
}

fn verdict(of: &Difference) -> String {
    let text = match (of.is_same, of.figures.first().map_or(0, |all| all.both)) {
        (true, _) => "The traces agree.".to_owned(),
        (false, 0) => {
            "The traces have no I/O in common: none has the same operation, sector and size in both."
                .to_owned()
        }
        (false, _) => "The traces differ.".to_owned(),
    };
    wrapped(&text, WIDTH).join("\n") + "\n"
}
