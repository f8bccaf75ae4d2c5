//! Where the time of all requests went, added up by who asked for them.

use std::collections::BTreeMap;

use fairlift_sim::anatomy::{Anatomy, Cause};
use maud::{Markup, html};

use super::stories::kind;
use crate::curves::JOBS_MAX;
use crate::unit;

/// The requests of all tasks of a name.
#[derive(Default)]
struct Waits {
    requests: u64,
    ns: u64,
    /// Cause in words, with its kind.
    causes: BTreeMap<String, (&'static str, u64)>,
}

/// A row for each name: number of requests, mean time, a bar of the causes, and the same in words.
pub(super) fn table(scope: &str, anatomy: &Anatomy) -> Markup {
    let mut rows: Vec<(&str, Waits)> = by_name(anatomy).into_iter().collect();
    rows.sort_by_key(|(_, waits)| std::cmp::Reverse(waits.ns));
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "All requests" (scope) } {
            table {
                thead { tr {
                    th scope="col" { "all requests of" }
                    @for head in ["requests", "mean time"] { th.number scope="col" { (head) } }
                    th scope="col" { "where it went" }
                    th scope="col" { "most of it" }
                } }
                tbody { @for (name, waits) in rows.iter().take(JOBS_MAX) { (row(name, waits)) } }
            }
        }
    }
}

fn row(name: &str, waits: &Waits) -> Markup {
    let mut causes: Vec<(&str, &str, u64)> =
        waits.causes.iter().map(|(words, (kind, ns))| (words.as_str(), *kind, *ns)).collect();
    causes.sort_by_key(|(_, _, ns)| std::cmp::Reverse(*ns));
    let percent = |ns: u64| 100.0 * ns as f64 / waits.ns.max(1) as f64;
    let most: Vec<String> =
        causes.iter().take(2).map(|(words, _, ns)| format!("{:.0} % {words}", percent(*ns))).collect();
    html! {
        tr {
            th scope="row" { (name) }
            td.number { (waits.requests) }
            td.number { (unit::time(waits.ns as f64 / waits.requests.max(1) as f64)) }
            td { div.bar aria-hidden="true" { @for (words, kind, ns) in &causes {
                div class=(kind) title=(words) style={ "width:" (format!("{:.1}", percent(*ns))) "%" } {}
            } } }
            td.words { (most.join(", ")) }
        }
    }
}

fn by_name(anatomy: &Anatomy) -> BTreeMap<&str, Waits> {
    let mut names: BTreeMap<&str, Waits> = BTreeMap::new();
    for task in anatomy.tasks.iter().filter(|task| task.requests > 0) {
        let waits = names.entry(&task.name).or_default();
        waits.requests += task.requests;
        waits.ns += task.request_ns;
        for share in &task.request_causes {
            let cause: Cause = share.cause;
            let entry = waits.causes.entry(anatomy.told(cause, "the scheduler")).or_insert((kind(cause), 0));
            entry.1 += share.ns;
        }
    }
    names
}
