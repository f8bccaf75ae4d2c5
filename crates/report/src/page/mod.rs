//! The page: one file that needs no other, readable without scripts, with the keyboard, in light and dark and on paper.

mod groups;
mod map;
mod overview;
mod programs;
pub(crate) mod shell;
mod stories;
mod table;
mod waits;

use maud::{Markup, html};

use crate::curves::{Figure, figures, shown_jobs};
use crate::job::JobChart;
use crate::report::{Column, Report, Told};
use crate::series;
use shell::{Entry, fold};

/// The page of a comparison's results: the question and its answer, a picture of each job, then figures, waits and tables.
pub fn page(report: &Report<'_>) -> String {
    let figures = figures(report);
    let cases = 0..report.runs.len();
    let parts: Vec<Part> = cases.flat_map(|case| parts(report, &figures, case)).collect();
    let overview = overview::overview(report);
    let mut contents =
        vec![entry("answer", if report.answers.is_empty() { "Results" } else { "Answer" }, false)];
    contents.extend(parts.iter().map(|part| entry(&part.id, &part.short, part.below)));
    contents.push(entry("settings", "Settings", false));
    let body = html! {
        section.answer id="answer" aria-label="Answer" {
            (question(report))
            (overview)
            @if report.runs.len() == 1 { (jobs(report, 0)) }
        }
        @for part in &parts { (part.body) }
        (fold("settings", "Settings", false, &settings(report)))
    };
    let title = &report.scenario.title;
    shell::page(title, &top(report), &contents, &body, "The same seed gives the same page.")
}

/// A part of the page that folds.
struct Part {
    id: String,
    short: String,
    below: bool,
    body: Markup,
}

fn entry(id: &str, text: &str, below: bool) -> Entry {
    Entry { id: id.to_owned(), text: text.to_owned(), below }
}

/// Tells the landmarks of a case from those of the others.
fn in_case(case: &str) -> String {
    if case.is_empty() { String::new() } else { format!(", case {case}") }
}

/// What was run, in a few words, below the title.
fn top(report: &Report<'_>) -> Markup {
    let schedulers: Vec<&str> = report.scheduler_names();
    html! {
        p.facts {
            (report.devices().join(" and ")) ", Linux " (report.scenario.rules.version) ", " (report.seeds()) " \u{b7} "
            (schedulers.join(", "))
        }
        @for paragraph in paragraphs(&report.scenario.about) { p.about { (paragraph) } }
    }
}

/// Blank lines part paragraphs.
fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").map(str::trim).filter(|p| !p.is_empty())
}

/// What was asked, and the answer of each case.
fn question(report: &Report<'_>) -> Markup {
    html! {
        @if !report.question.is_empty() { p.question { (report.question) } }
        div.answers { @for told in &report.answers { (answer(report, told)) } }
    }
}

fn answer(report: &Report<'_>, told: &Told) -> Markup {
    let case = report.case_words(told.case);
    let name = report.runs[told.case]
        .get(told.chosen)
        .and_then(|runs| runs.first())
        .map_or("", |run| run.scheduler.as_str());
    html! {
        div.told {
            p.verdict {
                @if !case.is_empty() { span.soft { (case) " \u{2192} " } }
                @if told.matters { strong { (name) } } @else { strong { "any scheduler" } }
            }
            p { (told.sentences.join(" ")) }
            @if !told.lines.is_empty() {
                details { summary { "How to set " (name) } pre tabindex="0" { code { (told.lines) } } }
            }
        }
    }
}

/// A picture of each job of a case.
fn jobs(report: &Report<'_>, case: usize) -> Markup {
    let columns = report.columns(case);
    let charts: Vec<JobChart> =
        shown_jobs(&columns).iter().filter_map(|job| JobChart::new(report, case, &columns, job)).collect();
    html! {
        div.jobs { @for chart in &charts {
            figure {
                div.plot.drawn.wide role="img" aria-label={ (chart.title) ". " (chart.words()) } { (maud::PreEscaped(chart.wide())) }
                div.plot.drawn.narrow role="img" aria-label={ (chart.title) ". " (chart.words()) } { (maud::PreEscaped(chart.narrow())) }
            }
        } }
        @if !charts.is_empty() {
            p.note {
                "Latency: the dot is the percentile, the line reaches from the median to the longest. Device time: the bar is what the job had, "
                "the dashed line what it was due: an even part for each process, or by its group's weight. "
                @if report.has_seeds() { "Brackets below a dot or bar: where the mean lies, 19 times of 20." }
                @else { "One run each; --seeds 5 tells what is chance." }
            }
        }
    }
}

/// The parts of a case, each of which folds: what there is to see, why, and the figures in numbers.
fn parts(report: &Report<'_>, figures: &[Figure], case: usize) -> Vec<Part> {
    let (name, columns) = (report.case_name(case), report.columns(case));
    let many = report.runs.len() > 1;
    let words = report.case_words(case);
    let of_case = if name.is_empty() { String::new() } else { format!(", {words}") };
    let mut parts = Vec::new();
    let mut add = |what: &str, word: &str, is_open: bool, body: Markup| {
        let id = if many { format!("{word}-{case}") } else { word.to_owned() };
        let heading = format!("{what}{of_case}");
        let body = fold(&id, &heading, is_open, &body);
        parts.push(Part { id, short: what.to_owned(), below: many, body });
    };
    if many {
        add("The jobs", "jobs", case == 0, jobs(report, case));
    }
    add("Tables", "tables", false, tables(name, &columns));
    let drawn: Vec<&Figure> = figures.iter().filter(|figure| figure.case == case).collect();
    if !drawn.is_empty() {
        add(
            "Over time",
            "figures",
            !many,
            html! { div.figures { @for figure in drawn { (of_figure(figure)) } } },
        );
    }
    if let Some(stories) = stories::stories(name, &columns) {
        add("Why requests waited", "waits", !many, stories);
    }
    if let Some(maps) = map::maps(report, case, &columns) {
        add("Where on the device", "map", !many, maps);
    }
    if let Some(first) = parts.first_mut().filter(|_| many) {
        first.short = words;
        first.below = false;
    }
    parts
}

fn tables(case: &str, columns: &[Column<'_>]) -> Markup {
    html! {
        (table::jobs(case, columns))
        (table::totals(case, columns))
        (groups::table(case, columns))
        (programs::tables(case, columns))
    }
}

/// A line chart of the page.
fn of_figure(figure: &Figure) -> Markup {
    shell::figure(
        &format!("{}. {}", figure.title, figure.caption),
        &figure.chart.inline(),
        &html! { (figure.caption) },
    )
}

/// The lines over a series of cases.
fn of_series(report: &Report<'_>) -> Option<Markup> {
    let figures = series::figures(report);
    (!figures.is_empty()).then(|| html! { div.figures { @for figure in &figures { (of_figure(figure)) } } })
}

/// What was run, so that it can be run again.
fn settings(report: &Report<'_>) -> Markup {
    html! {
        dl {
            dt { "Device" } dd { (report.devices().join(", ")) }
            dt { "Kernel" } dd { "Linux " (report.scenario.rules.version) }
            dt { "Schedulers" } dd { (report.scheduler_names().join(", ")) }
            dt { "Seed" } dd { (report.scenario.seed) }
            @if report.has_seeds() { dt { "Seeds" } dd { (report.seeds()) } }
            dt { "Run it again" } dd { code { (report.repeat) } }
        }
    }
}
