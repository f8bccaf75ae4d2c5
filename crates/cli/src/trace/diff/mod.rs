//! `fairlift diff`: two traces of the same I/O beside each other, for instance a kernel's and the lab's replay of it.

mod ios;
mod messages;
mod pairs;
mod table;

use std::process::ExitCode;

use serde::Serialize;

use super::args::{DiffArguments, InspectFormat};
use super::input::Input;
use super::inspect::messages::Kind;
use crate::error::Failure;
use crate::json;
use crate::output::Output;
use ios::{Class, Io, Trace};
use messages::{MessageFigures, MessageLine};
use pairs::{Figures, Pairs};

/// Exit code of traces that differ, as diff(1) has it.
const DIFFERENT: u8 = 1;

/// What is found; the JSON output is this.
#[derive(Debug, Serialize)]
struct Difference {
    a: About,
    b: About,
    /// Two times no further apart than this are the same, ns.
    within_ns: u64,
    is_same: bool,
    /// All I/Os, then each class that occurs.
    figures: Vec<Figures>,
    /// The first I/Os that were dispatched further apart, or are in one trace only.
    first: Vec<Line>,
    /// Messages by kind.
    messages: Vec<MessageKind>,
    /// Messages one by one, if both traces have some.
    message_figures: Option<MessageFigures>,
    /// The first of them at another time, or in one trace only.
    first_messages: Vec<MessageLine>,
}

/// One of the two traces.
#[derive(Debug, Serialize)]
struct About {
    name: String,
    ios: usize,
    requests: u64,
    /// I/Os that were not done at its end.
    open: u64,
}

impl About {
    fn of(trace: &Trace) -> About {
        About { name: trace.name.clone(), ios: trace.ios.len(), requests: trace.requests, open: trace.open }
    }
}

/// An I/O and when each trace dispatched it, from the first common arrival.
#[derive(Debug, Serialize)]
struct Line {
    op: &'static str,
    sector: u64,
    bytes: u64,
    who: String,
    a_ns: Option<i64>,
    b_ns: Option<i64>,
}

/// Messages that differ in their numbers only.
#[derive(Debug, Serialize)]
struct MessageKind {
    text: String,
    a: u64,
    b: u64,
}

/// Read both, print how they differ.
pub fn diff(arguments: &DiffArguments) -> Result<ExitCode, Failure> {
    if arguments.a == "-" && arguments.b == "-" {
        return Err(Failure::new("only one of the two can be standard input").at("B"));
    }
    let output = Output::open(arguments.output.as_deref())?;
    let read = |name: &str| ios::read(Input::open(name, &arguments.read, false)?, name);
    let (a, b) = (read(&arguments.a)?, read(&arguments.b)?);
    for trace in [&a, &b] {
        if trace.ios.iter().all(|io| io.dispatched_ns.is_none()) {
            return Err(Failure::new("the trace does not say when an I/O was dispatched and done")
                .at(&trace.name)
                .help("'fairlift replay --trace FILE' writes one that does"));
        }
    }
    let pairs = Pairs::of(&a, &b);
    let in_both = !a.told.is_empty() && !b.told.is_empty();
    let zeroes = (pairs.zero_a, pairs.zero_b);
    let (message_figures, first_messages) = match in_both {
        true => {
            let told = messages::compare(&a.told, &b.told, zeroes, arguments.within, arguments.lines);
            (Some(told.0), told.1)
        }
        false => (None, Vec::new()),
    };
    let found = Difference {
        a: About::of(&a),
        b: About::of(&b),
        within_ns: arguments.within,
        is_same: pairs.is_same(arguments.within),
        figures: classes(&pairs, arguments.within),
        first: first_lines(&pairs, arguments.within, arguments.lines),
        messages: kinds(&a.messages, &b.messages),
        message_figures,
        first_messages,
    };
    let text = match arguments.output_format {
        InspectFormat::Table => output.style().visible(&table::table(&found, &pairs, output.style())),
        InspectFormat::Json => json::text(&found),
    };
    output.write(&text)?;
    Ok(if found.is_same { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
}

/// All I/Os, and each class of which there is one.
fn classes(pairs: &Pairs<'_>, within_ns: u64) -> Vec<Figures> {
    let mut all = vec![pairs.figures(None, within_ns)];
    let each = Class::ALL.into_iter().map(|class| pairs.figures(Some(class), within_ns));
    all.extend(each.filter(|figures| figures.both + figures.only_a + figures.only_b > 0));
    all
}

fn first_lines(pairs: &Pairs<'_>, within_ns: u64, count: usize) -> Vec<Line> {
    let line = |io: &Io, a: Option<&Io>, b: Option<&Io>| Line {
        op: io.key.op.name(),
        sector: io.key.sector,
        bytes: io.key.bytes,
        who: io.who.clone(),
        a_ns: a.and_then(|a| since(pairs.zero_a, a.dispatched_ns?)),
        b_ns: b.and_then(|b| since(pairs.zero_b, b.dispatched_ns?)),
    };
    let apart =
        pairs.first_apart(within_ns, count).into_iter().map(|pair| line(pair.a, Some(pair.a), Some(pair.b)));
    let only_a = pairs.only_a.iter().take(count).map(|io| line(io, Some(io), None));
    let only_b = pairs.only_b.iter().take(count).map(|io| line(io, None, Some(io)));
    let mut lines: Vec<Line> = apart.chain(only_a).chain(only_b).collect();
    lines.sort_by_key(|line| line.a_ns.or(line.b_ns));
    lines.truncate(count);
    lines
}

fn since(zero_ns: u64, ns: u64) -> Option<i64> {
    i64::try_from(i128::from(ns) - i128::from(zero_ns)).ok()
}

/// The kinds of both, the most frequent first.
fn kinds(a: &[Kind], b: &[Kind]) -> Vec<MessageKind> {
    let of = |kind: &Kind, a: u64, b: u64| MessageKind { text: kind.text.clone(), a, b };
    let mut all: Vec<MessageKind> = a.iter().map(|kind| of(kind, kind.count, 0)).collect();
    for kind in b {
        match all.iter_mut().find(|known| known.text == kind.text) {
            Some(known) => known.b = kind.count,
            None => all.push(of(kind, 0, kind.count)),
        }
    }
    all.sort_by(|x, y| (y.a.max(y.b), &x.text).cmp(&(x.a.max(x.b), &y.text)));
    all
}
