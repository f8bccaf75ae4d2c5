//! Each program's own figures, a column per figure.

use maud::{Markup, html};

use super::in_case;
use crate::report::Column;
use crate::unit;

pub(super) fn tables(case: &str, columns: &[Column<'_>]) -> Markup {
    let names: Vec<&str> =
        columns.first().into_iter().flat_map(|c| &c.first().programs).map(|p| p.name.as_str()).collect();
    html! { @for name in names { (table(case, columns, name)) } }
}

fn table(case: &str, columns: &[Column<'_>], name: &str) -> Markup {
    let results: Vec<_> =
        columns.iter().filter_map(|column| Some((column, column.first().program(name)?))).collect();
    let heads = results.first().map_or(&[][..], |(_, program)| &program.figures[..]);
    if heads.is_empty() {
        return html! {};
    }
    html! {
        div.scroll tabindex="0" role="region" aria-label={ "Program " (name) (in_case(case)) } {
            table {
                caption { (name) ": " code { (results[0].1.command) } }
                thead { tr {
                    th scope="col" { "scheduler" }
                    @for head in heads { th.number scope="col" { (head.metric.part) " " (head.metric.heading) ", " (head.metric.unit) } }
                } }
                tbody { @for (column, program) in &results { tr data-column=(column.at) {
                    th scope="row" { (column.label) }
                    @for figure in &program.figures { td.number { (unit::short(figure.value)) } }
                } } }
            }
        }
    }
}
