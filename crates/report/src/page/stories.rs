//! The slowest requests and calls: each a line that says why it took so long, which opens to a timeline and its table.

use fairlift_sim::anatomy::{Anatomy, CallStory, Calls, Cause, Part, Sort, Span, TaskId};
use maud::{Markup, html};

use super::waits;
use crate::report::Column;
use crate::unit;

/// Of more stretches than this the shortest are put together with their neighbours.
const ROWS_MAX: usize = 24;

/// Sorts of requests that are shown of a run: those with the slowest ones.
const SORTS_MAX: usize = 6;

/// One stretch of time as the page shows it, relative to the story's start.
struct Row {
    from_ns: u64,
    to_ns: u64,
    /// Whose line of the timeline it is in.
    lane: String,
    /// What kind it is, for the colour.
    kind: &'static str,
    /// In words; of several stretches put together those of the longest.
    words: String,
    /// How many stretches are put together.
    stretches: usize,
    /// The longest of them.
    longest_ns: u64,
}

impl Row {
    fn new(from_ns: u64, to_ns: u64, lane: String, kind: &'static str, words: String) -> Row {
        Row { from_ns, to_ns, lane, kind, words, stretches: 1, longest_ns: to_ns - from_ns }
    }

    const fn length_ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }

    /// Take in the one that follows. If they are of the same sort they are one stretch.
    fn join(&mut self, next: Row) {
        let same = self.lane == next.lane && self.words == next.words;
        self.to_ns = next.to_ns;
        if same && self.stretches == 1 {
            self.longest_ns = self.length_ns();
            return;
        }
        self.stretches += next.stretches;
        if next.longest_ns > self.longest_ns {
            (self.lane, self.kind, self.words) = (next.lane, next.kind, next.words);
            self.longest_ns = next.longest_ns;
        }
    }

    fn told(&self) -> String {
        match self.stretches {
            1 => self.words.clone(),
            many => format!("{many} stretches, the longest: {}", self.words),
        }
    }
}

/// The stories of all runs of a case; `None`: nothing was recorded.
pub(super) fn stories(case: &str, columns: &[Column<'_>]) -> Option<Markup> {
    let told: Vec<(&Column<'_>, &Anatomy)> =
        columns.iter().filter_map(|column| Some((column, column.first().explanation.as_ref()?))).collect();
    if told.is_empty() {
        return None;
    }
    Some(html! {
        p { "Requests by what took most of their time, and the slowest of each sort. Each opens to a timeline that tells who had the "
            "device meanwhile: zoom with the buttons or + and -, move with the arrow keys." }
        (legend())
        @for (column, anatomy) in told { section data-column=(column.at) {
            h3 { (column.label) }
            (waits::table(&scope(case, column), anatomy))
            @for sort in anatomy.sorts.iter().take(SORTS_MAX) { (request(&scope(case, column), anatomy, sort)) }
            @if anatomy.sorts.len() > SORTS_MAX { p.note { (rest(anatomy)) } }
            @for calls in &anatomy.calls { @if let Some(story) = calls.slowest.first() { (call(&scope(case, column), anatomy, calls, story)) } }
        } }
    })
}

/// What tells a run from all others of the page.
fn scope(case: &str, column: &Column<'_>) -> String {
    format!(", {}{}", column.label, super::in_case(case))
}

fn legend() -> Markup {
    let kinds = [
        ("device", "served by the drive"),
        ("inside", "queued inside the drive"),
        ("behind", "queued in front of it, which works for another task"),
        ("idling", "the scheduler idles for another task"),
        ("flush", "the device writes back its cache"),
        ("held", "held back or waiting otherwise"),
        ("cpu", "computing"),
    ];
    html! {
        ul.kinds { @for (kind, words) in kinds { li { span class={ "swatch " (kind) } aria-hidden="true" {} (words) } } }
    }
}

/// The sorts that are not shown.
fn rest(anatomy: &Anatomy) -> String {
    let rest = &anatomy.sorts[SORTS_MAX..];
    let requests: u64 = rest.iter().map(|sort| sort.requests).sum();
    let longest = rest.iter().map(|sort| sort.slowest.took_ns()).max().unwrap_or(0);
    format!(
        "{} more sorts with {} requests, none of which took longer than {}.",
        rest.len(),
        unit::count(requests),
        unit::time(longest as f64)
    )
}

/// The requests of a name that most of their time went to the same, and the slowest of them.
fn request(scope: &str, anatomy: &Anatomy, sort: &Sort) -> Markup {
    let story = &sort.slowest;
    let name = anatomy.name(sort.task);
    let own = story.task.map_or_else(|| name.to_owned(), |task| numbered(anatomy, task));
    let rows = story.spans.iter().map(|span| row_of_span(anatomy, &own, story.asked_ns, span)).collect();
    let size = u64::from(story.sectors) / 2;
    let what = format!(
        "{} {} of {size} KiB at sector {} by {own}",
        if story.sync { "sync" } else { "async" },
        story.op,
        story.sector
    );
    let of_name: u64 = anatomy
        .sorts
        .iter()
        .filter(|other| anatomy.name(other.task) == name)
        .map(|other| other.requests)
        .sum();
    let heading = html! {
        strong { (unit::count(sort.requests)) " of " (unit::count(of_name)) " requests of " (name) ": mostly "
            (anatomy.told(sort.cause, "the scheduler")) }
        " " span.soft {
            "mean " (unit::time(sort.total_ns as f64 / sort.requests.max(1) as f64)) ", longest " (unit::time(story.took_ns() as f64))
        }
    };
    details(scope, story.took_ns(), &heading, &what, story.asked_ns, rows)
}

fn call(scope: &str, anatomy: &Anatomy, calls: &Calls, story: &CallStory) -> Markup {
    let rows = story.parts.iter().map(|part| row_of_part(anatomy, story.start_ns, part)).collect();
    let what = format!("{} by {}, the slowest of {}", calls.call.words(), calls.name, calls.count);
    let took_ns = story.end_ns - story.start_ns;
    let heading = html! {
        strong { (calls.count) " calls of " (calls.call.words()) " by " (calls.name) }
        " " span.soft { "mean " (unit::time(calls.total_ns as f64 / calls.count.max(1) as f64)) ", longest " (unit::time(took_ns as f64)) }
    };
    details(scope, took_ns, &heading, &what, story.start_ns, rows)
}

fn row_of_span(anatomy: &Anatomy, own: &str, start_ns: u64, span: &Span) -> Row {
    Row::new(
        span.start_ns - start_ns,
        span.end_ns - start_ns,
        whose(span.cause).map_or_else(|| own.to_owned(), |task| numbered(anatomy, task)),
        kind(span.cause),
        anatomy.told(span.cause, "the scheduler"),
    )
}

fn row_of_part(anatomy: &Anatomy, start_ns: u64, part: &Part) -> Row {
    let by = anatomy.name(Some(part.by));
    Row::new(
        part.start_ns - start_ns,
        part.end_ns - start_ns,
        numbered(anatomy, whose(part.cause).unwrap_or(part.by)),
        kind(part.cause),
        format!("{} of {by}: {}", part.step.words(), anatomy.told(part.cause, "the scheduler")),
    )
}

/// A task's name, with its number among those of the same name if there are several.
fn numbered(anatomy: &Anatomy, task: TaskId) -> String {
    let name = anatomy.name(Some(task));
    let mut same = anatomy.tasks.iter().filter(|other| other.name == name);
    match same.clone().count() {
        0 | 1 => name.to_owned(),
        _ => format!("{name} {}", same.position(|other| other.task == task).map_or(0, |i| i + 1)),
    }
}

fn details(scope: &str, took_ns: u64, heading: &Markup, what: &str, at_ns: u64, rows: Vec<Row>) -> Markup {
    let took = unit::time(took_ns as f64);
    html! {
        details.story {
            summary { (heading) }
            p { "The longest: " (what) ", asked for at " (unit::time(at_ns as f64)) " of the run, took " (took) ": "
                (main_causes(&rows, took_ns)) "." }
            div.scroll tabindex="0" role="region" aria-label={ "Where " (took) " went: " (what) " at " (unit::time(at_ns as f64)) (scope) } {
                table {
                    thead { tr { th.number scope="col" { "from" } th.number scope="col" { "for" } th scope="col" { "what" } } }
                    tbody { @for row in condensed(rows) {
                        tr data-from=(row.from_ns) data-to=(row.to_ns) data-lane=(row.lane) data-kind=(row.kind) {
                            td.number { (unit::time(row.from_ns as f64)) }
                            td.number { (unit::time((row.to_ns - row.from_ns) as f64)) }
                            td.words { (row.told()) }
                        }
                    } }
                }
            }
        }
    }
}

/// In order of time and without gaps: neighbours of the same kind and lane are one, then the shortest are put together with
/// their neighbours until there are few enough.
fn condensed(rows: Vec<Row>) -> Vec<Row> {
    let rows = joined(rows, |last, row| last.lane == row.lane && last.words == row.words);
    if rows.len() <= ROWS_MAX {
        return rows;
    }
    let mut lengths: Vec<u64> = rows.iter().map(Row::length_ns).collect();
    lengths.sort_unstable_by_key(|ns| std::cmp::Reverse(*ns));
    let short_ns = lengths[ROWS_MAX];
    joined(rows, |last, row| last.longest_ns <= short_ns && row.length_ns() <= short_ns)
}

/// Rows with each joined to the one before it where they `belong` together.
fn joined(rows: Vec<Row>, belong: impl Fn(&Row, &Row) -> bool) -> Vec<Row> {
    let mut out: Vec<Row> = Vec::new();
    for row in rows {
        match out.last_mut().filter(|last| last.to_ns == row.from_ns && belong(last, &row)) {
            Some(last) => last.join(row),
            None => out.push(row),
        }
    }
    out
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

/// The task whose line of the timeline a stretch belongs to, if it is another task's.
const fn whose(cause: Cause) -> Option<TaskId> {
    match cause {
        Cause::Behind(task) | Cause::Inside(task) | Cause::Idling(task) | Cause::Task(task) => task,
        _ => None,
    }
}

/// What kind of time it is, for the colour.
pub(super) const fn kind(cause: Cause) -> &'static str {
    match cause {
        Cause::Device => "device",
        Cause::Inside(_) => "inside",
        Cause::Behind(_) => "behind",
        Cause::Idling(_) => "idling",
        Cause::Flush => "flush",
        Cause::Cpu | Cause::Switch | Cause::Sleep => "cpu",
        _ => "held",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(from_ns: u64, to_ns: u64, words: &str) -> Row {
        Row::new(from_ns, to_ns, "a".into(), "device", words.into())
    }

    #[test]
    fn stretches_of_one_sort_that_follow_each_other_are_one() {
        let rows =
            condensed(vec![row(0, 5, "in the device"), row(5, 9, "in the device"), row(9, 10, "held back")]);
        let told: Vec<_> = rows.iter().map(|r| (r.from_ns, r.to_ns, r.told())).collect();
        assert_eq!(told, [(0, 9, "in the device".to_owned()), (9, 10, "held back".to_owned())]);
    }

    #[test]
    fn of_too_many_stretches_the_short_ones_are_put_together_and_none_is_lost() {
        // A long one, then a hundred short ones of two sorts, ten times.
        let mut at = 0;
        let mut rows = Vec::new();
        for turn in 0..10 {
            for i in 0..101 {
                let (length, words) = [(1_000 + turn, "long"), (2, "short"), (1, "shorter")]
                    [if i == 0 { 0 } else { 1 + i % 2 }];
                rows.push(row(at, at + length, words));
                at += length;
            }
        }
        let rows = condensed(rows);
        assert!(rows.len() <= 2 * ROWS_MAX + 1, "{} rows", rows.len());
        assert_eq!(rows.iter().filter(|r| r.words == "long").count(), 10, "the long ones stay by themselves");
        assert_eq!(rows[1].told(), "100 stretches, the longest: short");
        let end = rows
            .iter()
            .fold(0, |at, row| if row.from_ns == at { row.to_ns } else { panic!("a gap at {at}") });
        assert_eq!(end, at);
    }
}
