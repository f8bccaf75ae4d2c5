//! The page: one file that needs no other, readable without scripts, with the keyboard, in light and dark and on paper.

pub(crate) mod colours;
mod comparison;
mod overview;
mod stories;
mod waits;

use fairlift_sim::result::RunResult;
use fairlift_sim::scenario::Scenario;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::chart::DrawError;
use crate::curves::{Figure, figures};

/// How pages look.
pub(crate) const STYLE: &str = include_str!("style.css");

/// The page of a scenario's results. `repeat` is the command that runs it again.
///
/// # Errors
/// When a figure cannot be drawn.
pub fn page(scenario: &Scenario, runs: &[Vec<RunResult>], repeat: &str) -> Result<String, DrawError> {
    let figures = figures(scenario, runs);
    let cases =
        (0..runs.len()).map(|case| section(scenario, runs, &figures, case)).collect::<Result<Vec<_>, _>>()?;
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(concat!("fairlift ", env!("CARGO_PKG_VERSION")));
                title { (scenario.title) }
                style { (PreEscaped(colours::css())) (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#results" { "Skip to the results" }
                header {
                    h1 { (scenario.title) }
                    @for paragraph in paragraphs(&scenario.about) { p { (paragraph) } }
                    (settings(scenario, runs, repeat))
                }
                @if runs.len() > 1 { (contents(scenario)) }
                main id="results" { (overview::overview(scenario, runs)) @for case in &cases { (case) } }
                script { (PreEscaped(include_str!("timeline.js"))) }
                footer { p { "Simulated by fairlift " (env!("CARGO_PKG_VERSION")) ". The same seed gives the same page." } }
            }
        }
    };
    Ok(markup.into_string())
}

/// Blank lines part paragraphs.
fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").map(str::trim).filter(|p| !p.is_empty())
}

/// What was run, so that it can be run again.
fn settings(scenario: &Scenario, runs: &[Vec<RunResult>], repeat: &str) -> Markup {
    let schedulers: Vec<&str> = runs.first().into_iter().flatten().map(|r| r.scheduler.as_str()).collect();
    html! {
        section aria-labelledby="settings" {
            h2 id="settings" { "Settings" }
            dl {
                dt { "Device" } dd { (scenario.device.name()) }
                dt { "Kernel" } dd { "Linux " (scenario.rules.version) }
                dt { "Schedulers" } dd { (schedulers.join(", ")) }
                dt { "Seed" } dd { (scenario.seed) }
                dt { "Run it again" } dd { code { (repeat) } }
            }
        }
    }
}

fn contents(scenario: &Scenario) -> Markup {
    html! {
        nav aria-label="Cases" {
            ul { @for (i, case) in scenario.cases.iter().enumerate() { li { a href={ "#case-" (i) } { "Case " (case.name) } } } }
        }
    }
}

/// Tells the landmarks of a case from those of the others.
fn in_case(case: &str) -> String {
    if case.is_empty() { String::new() } else { format!(", case {case}") }
}

fn section(
    scenario: &Scenario,
    runs: &[Vec<RunResult>],
    figures: &[Figure],
    case: usize,
) -> Result<Markup, DrawError> {
    let name = scenario.cases.get(case).map_or("", |c| c.name.as_str());
    let heading = if name.is_empty() { "Results".to_owned() } else { format!("Case {name}") };
    let drawn = figures.iter().filter(|f| f.case == case).map(figure).collect::<Result<Vec<_>, _>>()?;
    Ok(html! {
        section.case id={ "case-" (case) } aria-labelledby={ "case-" (case) "-title" } {
            h2 id={ "case-" (case) "-title" } { (heading) }
            (comparison::tables(name, &runs[case]))
            div.figures { @for figure in &drawn { (figure) } }
            (stories::stories(name, &runs[case]))
        }
    })
}

fn figure(figure: &Figure) -> Result<Markup, DrawError> {
    let svg = colours::themed(&figure.svg()?);
    Ok(html! {
        figure {
            div.plot role="img" aria-label={ (figure.title) ". " (figure.caption) } { (PreEscaped(svg)) }
            figcaption { (figure.caption) }
        }
    })
}
