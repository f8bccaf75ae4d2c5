//! The slowest requests and calls: each a line that says why it took so long, which opens to a timeline and its table.

use fairlift_sim::anatomy::{Anatomy, CallStory, Calls, Cause, Part, RequestStory, Span};
use fairlift_sim::result::RunResult;
use maud::{Markup, html};

use crate::unit;

/// Stretches of time with more entries than this are shown by their longest.
const ROWS_MAX: usize = 200;

/// One stretch of time as the page shows it, relative to the story's start.
struct Row {
    from_ns: u64,
    to_ns: u64,
    /// Whose line of the timeline it is in.
    lane: String,
    /// What kind it is, for the colour.
    kind: &'static str,
    /// In words.
    words: String,
}

/// The stories of all runs of a case.
pub(super) fn stories(runs: &[RunResult]) -> Markup {
    let told: Vec<(&RunResult, &Anatomy)> =
        runs.iter().filter_map(|run| Some((run, run.explanation.as_ref()?))).collect();
    if told.is_empty() {
        return html! {};
    }
    html! {
        h3 { "Why they waited" }
        p { "The slowest requests, and the slowest calls that wait for the disk. Each opens to a timeline: zoom with the buttons "
            "or + and -, move with the arrow keys." }
        (legend())
        @for (run, anatomy) in told {
            h4 { (run.scheduler) }
            @for story in &anatomy.slowest { (request(anatomy, story)) }
            @for calls in &anatomy.calls { @if let Some(story) = calls.slowest.first() { (call(anatomy, calls, story)) } }
        }
    }
}

fn legend() -> Markup {
    let kinds = [
        ("device", "the device works on it"),
        ("behind", "the device works for somebody else"),
        ("idling", "the scheduler idles for somebody"),
        ("flush", "the device writes back its cache"),
        ("held", "held back or waiting otherwise"),
        ("cpu", "computing"),
    ];
    html! {
        ul.kinds { @for (kind, words) in kinds { li { span class={ "swatch " (kind) } aria-hidden="true" {} (words) } } }
    }
}

fn request(anatomy: &Anatomy, story: &RequestStory) -> Markup {
    let own = anatomy.name(story.task);
    let rows = story.spans.iter().map(|span| row_of_span(anatomy, own, story.asked_ns, span)).collect();
    let size = u64::from(story.sectors) / 2;
    let what = format!(
        "{} {} of {size} KiB at sector {} by {own}",
        if story.sync { "sync" } else { "async" },
        story.op,
        story.sector
    );
    details(story.took_ns(), &what, story.asked_ns, rows)
}

fn call(anatomy: &Anatomy, calls: &Calls, story: &CallStory) -> Markup {
    let rows = story.parts.iter().map(|part| row_of_part(anatomy, story.start_ns, part)).collect();
    let what = format!("{} by {}, the slowest of {}", calls.call.words(), calls.name, calls.count);
    details(story.end_ns - story.start_ns, &what, story.start_ns, rows)
}

fn row_of_span(anatomy: &Anatomy, own: &str, start_ns: u64, span: &Span) -> Row {
    Row {
        from_ns: span.start_ns - start_ns,
        to_ns: span.end_ns - start_ns,
        lane: whose(anatomy, span.cause).unwrap_or(own).to_owned(),
        kind: kind(span.cause),
        words: anatomy.told(span.cause, "the scheduler"),
    }
}

fn row_of_part(anatomy: &Anatomy, start_ns: u64, part: &Part) -> Row {
    let by = anatomy.name(Some(part.by));
    Row {
        from_ns: part.start_ns - start_ns,
        to_ns: part.end_ns - start_ns,
        lane: whose(anatomy, part.cause).unwrap_or(by).to_owned(),
        kind: kind(part.cause),
        words: format!("{} of {by}: {}", part.step.words(), anatomy.told(part.cause, "the scheduler")),
    }
}

fn details(took_ns: u64, what: &str, at_ns: u64, rows: Vec<Row>) -> Markup {
    let took = unit::time(took_ns as f64);
    html! {
        details.story {
            summary { strong { (took) } " " (what) " " span.soft { (main_causes(&rows, took_ns)) } }
            p { "Asked for at " (unit::time(at_ns as f64)) " of the run." }
            div.scroll tabindex="0" role="region" aria-label={ "Where " (took) " went" } {
                table {
                    thead { tr { th.number scope="col" { "from" } th.number scope="col" { "for" } th scope="col" { "what" } } }
                    tbody { @for row in longest(rows) {
                        tr data-from=(row.from_ns) data-to=(row.to_ns) data-lane=(row.lane) data-kind=(row.kind) {
                            td.number { (unit::time(row.from_ns as f64)) }
                            td.number { (unit::time((row.to_ns - row.from_ns) as f64)) }
                            td { (row.words) }
                        }
                    } }
                }
            }
        }
    }
}

/// In order of time, without the shortest if there are too many.
fn longest(mut rows: Vec<Row>) -> Vec<Row> {
    if rows.len() > ROWS_MAX {
        rows.sort_by_key(|row| std::cmp::Reverse(row.to_ns - row.from_ns));
        rows.truncate(ROWS_MAX);
        rows.sort_by_key(|row| row.from_ns);
    }
    rows
}

/// The two causes that took most.
fn main_causes(rows: &[Row], took_ns: u64) -> String {
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for row in rows {
        let ns = row.to_ns - row.from_ns;
        match sums.iter_mut().find(|(words, _)| *words == row.words) {
            Some((_, sum)) => *sum += ns,
            None => sums.push((&row.words, ns)),
        }
    }
    sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let share = |ns: u64| format!("{:.0} %", 100.0 * ns as f64 / took_ns.max(1) as f64);
    sums.iter().take(2).map(|(words, ns)| format!("{} {words}", share(*ns))).collect::<Vec<_>>().join(", ")
}

/// Whose line of the timeline a stretch belongs to, if it is somebody else's.
fn whose(anatomy: &Anatomy, cause: Cause) -> Option<&str> {
    match cause {
        Cause::Behind(Some(task)) | Cause::Idling(Some(task)) | Cause::Task(Some(task)) => {
            Some(anatomy.name(Some(task)))
        }
        _ => None,
    }
}

const fn kind(cause: Cause) -> &'static str {
    match cause {
        Cause::Device => "device",
        Cause::Behind(_) => "behind",
        Cause::Idling(_) => "idling",
        Cause::Flush => "flush",
        Cause::Cpu | Cause::Switch | Cause::Sleep => "cpu",
        _ => "held",
    }
}
