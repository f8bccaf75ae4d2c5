//! The results as a table: a row for each run, in the order of their numbers, whatever order they ran in.

use std::fmt::Write as _;

use super::plan::Row;
use super::session::{Session, command};
use crate::csv::quoted;

/// A column.
pub struct Column {
    /// Its head.
    pub name: String,
    /// Its cells, one a row.
    pub cells: Cells,
}

/// Cells of one kind; `None`: this row has none.
pub enum Cells {
    /// Whole numbers.
    Whole(Vec<i64>),
    /// Numbers.
    Number(Vec<Option<f64>>),
    /// Words.
    Text(Vec<Option<String>>),
}

/// All columns: which run, what was set, the command that repeats it, and its figures.
pub fn columns(session: &Session) -> Vec<Column> {
    let plan = &session.plan;
    let mut numbers: Vec<u64> = session.journal.rows.keys().copied().collect();
    numbers.sort_unstable();
    let rows: Vec<Row> = numbers.iter().map(|number| plan.row(*number)).collect();
    let whole = |name: &str, of: &dyn Fn(&Row) -> u64| Column {
        name: name.to_owned(),
        cells: Cells::Whole(rows.iter().map(|row| of(row) as i64).collect()),
    };
    let mut columns = vec![whole("row", &|row| row.number), whole("point", &|row| row.point as u64)];
    if plan.has_runtimes() {
        columns.push(whole("rung", &|row| row.rung as u64));
    }
    columns.push(whole("seed", &|row| row.seed));
    for axis in plan.sweep.over.iter().chain(&plan.sweep.vary) {
        let value = |row: &Row| {
            let mut set = plan.circumstances[row.circumstance].iter().chain(&plan.points[row.point]);
            set.find(|(key, _)| *key == axis.key).map(|(_, value)| value.clone())
        };
        columns.push(Column { name: axis.key.clone(), cells: typed(rows.iter().map(value).collect()) });
    }
    let errors =
        numbers.iter().map(|n| Some(session.journal.rows[n].error.to_string()).filter(|e| !e.is_empty()));
    columns.push(Column { name: "error".to_owned(), cells: Cells::Text(errors.collect()) });
    let commands = rows.iter().map(|row| Some(command(&plan.words(row))));
    columns.push(Column { name: "command".to_owned(), cells: Cells::Text(commands.collect()) });
    for name in session.journal.columns() {
        // Where a column stands is the same in all rows of a layout.
        let places: Vec<Option<usize>> =
            session.journal.layouts.iter().map(|names| names.iter().position(|n| *n == name)).collect();
        let cells = numbers.iter().map(|number| {
            let kept = &session.journal.rows[number];
            kept.layout.and_then(|layout| places[layout as usize]).map(|place| kept.values[place])
        });
        columns.push(Column { cells: Cells::Number(cells.collect()), name });
    }
    columns
}

/// Numbers where all that is set is a number.
pub(super) fn typed(values: Vec<Option<String>>) -> Cells {
    let number = |text: &String| text.parse::<f64>().ok().filter(|n| n.is_finite());
    match values.iter().flatten().all(|text| number(text).is_some()) {
        true => Cells::Number(values.iter().map(|text| text.as_ref().and_then(number)).collect()),
        false => Cells::Text(values),
    }
}

/// As CSV. Numbers are written so that reading gives the same bits; what a row has not is empty.
pub fn csv(columns: &[Column]) -> String {
    let heads: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    let mut out = heads.join(",") + "\n";
    let rows = columns.first().map_or(0, |column| column.cells.len());
    for row in 0..rows {
        for (place, column) in columns.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            let _ = match &column.cells {
                Cells::Whole(cells) => write!(out, "{}", cells[row]),
                Cells::Number(cells) => cells[row].map_or(Ok(()), |number| write!(out, "{number}")),
                Cells::Text(cells) => write!(out, "{}", quoted(cells[row].as_deref().unwrap_or_default())),
            };
        }
        out.push('\n');
    }
    out
}

impl Cells {
    /// How many.
    #[expect(clippy::len_without_is_empty, reason = "a table without rows has columns without cells")]
    pub fn len(&self) -> usize {
        match self {
            Cells::Whole(cells) => cells.len(),
            Cells::Number(cells) => cells.len(),
            Cells::Text(cells) => cells.len(),
        }
    }
}
