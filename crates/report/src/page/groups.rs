//! What each group got, with the groups below it.

use fairlift_sim::group::GroupResult;
use maud::{Markup, html};

use super::in_case;
use crate::report::Column;
use crate::{groups, unit};

const HEADS: [&str; 6] =
    ["of its parent's device time", "reads", "writes", "requests per s", "mean latency", "longest"];

/// The groups with a figure, each a group of rows; nothing without any.
pub(super) fn table(case: &str, columns: &[Column<'_>]) -> Markup {
    let shown = groups::shown(columns);
    if shown.is_empty() {
        return html! {};
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Groups" (in_case(case)) } {
            table.wide {
                caption { "Groups" (in_case(case)) }
                thead { tr {
                    th scope="col" { "scheduler" }
                    @for head in HEADS { th.number scope="col" { (head) } }
                } }
                @for place in shown { (rows(place, columns)) }
            }
        }
    }
}

fn rows(place: usize, columns: &[Column<'_>]) -> Markup {
    let results: Vec<(&Column<'_>, &GroupResult)> =
        columns.iter().filter_map(|column| Some((column, column.first().groups.get(place)?))).collect();
    let rate = |group: &GroupResult, direction: usize| {
        unit::bandwidth(group.per_second(512 * group.all.sectors[direction]))
    };
    html! {
        tbody {
            @if let Some((_, first)) = results.first() {
                tr.group { th scope="rowgroup" colspan=(1 + HEADS.len()) {
                    "group " (first.path) ", weight " (first.weight.unwrap_or(0))
                } }
            }
            @for (column, group) in results { tr data-column=(column.at) {
                th scope="row" { (column.label) }
                td.number { (format!("{:.1} %", 100.0 * group.share)) }
                td.number { (rate(group, 0)) }
                td.number { (rate(group, 1)) }
                td.number { (unit::short(group.per_second(group.all.requests.iter().sum()))) }
                td.number { (unit::time(group.all.latency.mean_ns())) }
                td.number { (unit::time(group.all.latency.max_ns() as f64)) }
            } }
        }
    }
}
