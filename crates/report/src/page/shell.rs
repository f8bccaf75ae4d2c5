//! What every page has around its contents: the head, the style, the list of contents, the scripts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::canvas;

const STYLE: &str = include_str!("style.css");
/// Values, toggles, full width, contents; and the timelines.
const SCRIPTS: [&str; 2] = [include_str!("figures.js"), include_str!("timeline.js")];

/// An entry of the contents: the id of what it leads to, and what it is called.
pub(crate) struct Entry {
    pub id: String,
    pub text: String,
    /// It belongs to the entry before it that does not.
    pub below: bool,
}

/// A whole page, one file that needs no other. `top` stands above the contents and what they list.
pub(crate) fn page(title: &str, top: &Markup, contents: &[Entry], body: &Markup, foot: &str) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(concat!("fairlift ", env!("CARGO_PKG_VERSION")));
                title { (title) }
                style { (PreEscaped(canvas::css())) (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#results" { "Skip to the results" }
                header { h1 { (title) } (top) }
                div.frame {
                    nav.contents aria-label="Contents" {
                        ul { @for entry in contents { li.below[entry.below] { a href={ "#" (entry.id) } { (entry.text) } } } }
                    }
                    main id="results" { (body) }
                }
                footer { p { "Simulated by fairlift " (env!("CARGO_PKG_VERSION")) ". " (foot) } }
                @for script in SCRIPTS { script { (PreEscaped(script)) } }
            }
        }
    };
    markup.into_string()
}

/// A part that folds. Its id is inside of it, so that a link to it opens it.
pub(crate) fn fold(id: &str, heading: &str, is_open: bool, body: &Markup) -> Markup {
    html! {
        details.fold open[is_open] {
            summary { h2 { (heading) } }
            div id=(id) { (body) }
        }
    }
}

/// A figure with its caption. `words`: what it shows, for those who do not see it.
pub(crate) fn figure(words: &str, svg: &str, caption: &Markup) -> Markup {
    html! {
        figure {
            div.plot.drawn role="img" aria-label=(words) { (PreEscaped(svg)) }
            figcaption { (caption) }
        }
    }
}
