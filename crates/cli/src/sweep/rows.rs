//! The results as a table: a row for each run, in the order of their numbers, whatever order they ran in. Rows are read back from the
//! results file a batch at a time, so memory does not grow with their number.

use std::fmt::Write as _;

use super::plan::{Plan, Row};
use super::session::{Session, command};
use crate::csv::quoted;
use crate::error::Failure;

/// Rows of a batch, which are a row group of the Parquet file. A row has some 40 cells, so a batch takes about 1 MB.
pub const BATCH: usize = 1024;

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

/// All rows: which run, what was set, the command that repeats it, and its figures.
pub struct Table<'a> {
    session: &'a Session,
    /// Numbers of the runs, in order.
    numbers: Vec<u64>,
    heads: Vec<Head<'a>>,
}

/// A column without its cells.
struct Head<'a> {
    name: &'a str,
    what: What,
}

/// What a column shows.
enum What {
    /// A number of the run.
    Whole(fn(&Row) -> u64),
    /// What this setting was; a number if all values are.
    Setting {
        is_number: bool,
    },
    Error,
    Command,
    /// The figure that stands at this place of a run's line, by layout.
    Figure(Vec<Option<usize>>),
}

impl<'a> Table<'a> {
    /// Of the runs that are done.
    pub fn new(session: &'a Session) -> Table<'a> {
        let plan = &session.plan;
        let numbers = session.journal.numbers();
        let mut heads = vec![
            Head { name: "row", what: What::Whole(|row| row.number) },
            Head { name: "point", what: What::Whole(|row| row.point as u64) },
        ];
        if plan.has_runtimes() {
            heads.push(Head { name: "rung", what: What::Whole(|row| row.rung as u64) });
        }
        heads.push(Head { name: "seed", what: What::Whole(|row| row.seed) });
        for axis in plan.sweep.over.iter().chain(&plan.sweep.vary) {
            let mut values = numbers.iter().filter_map(|number| set(plan, &plan.row(*number), &axis.key));
            let is_number = values.all(|text| parsed(text).is_some());
            heads.push(Head { name: &axis.key, what: What::Setting { is_number } });
        }
        heads.push(Head { name: "error", what: What::Error });
        heads.push(Head { name: "command", what: What::Command });
        let layouts = session.journal.layouts();
        for name in session.journal.columns() {
            let places = layouts.iter().map(|names| names.iter().position(|n| n == name)).collect();
            heads.push(Head { name, what: What::Figure(places) });
        }
        Table { session, numbers, heads }
    }

    /// The columns, without cells.
    pub fn empty(&self) -> Vec<Column> {
        let column = |head: &Head<'_>| Column { name: head.name.to_owned(), cells: head.what.no_cells() };
        self.heads.iter().map(column).collect()
    }

    /// The rows, `size` at a time.
    pub fn batches(&self, size: usize) -> impl Iterator<Item = Result<Vec<Column>, Failure>> {
        self.numbers.chunks(size).map(|numbers| self.columns(numbers))
    }

    /// The rows, all at once.
    pub fn all(&self) -> Result<Vec<Column>, Failure> {
        self.columns(&self.numbers)
    }

    fn columns(&self, numbers: &[u64]) -> Result<Vec<Column>, Failure> {
        let (plan, journal) = (&self.session.plan, &self.session.journal);
        let mut columns = self.empty();
        let mut line = String::new();
        for number in numbers {
            let row = plan.row(*number);
            let run = journal.read_back(*number, &mut line)?;
            for (column, head) in columns.iter_mut().zip(&self.heads) {
                match &head.what {
                    What::Whole(of) => column.cells.push_whole(of(&row) as i64),
                    What::Setting { .. } => column.cells.push(set(plan, &row, head.name)),
                    What::Error => column.cells.push(run.figures.as_ref().err().copied()),
                    What::Command => column.cells.push(Some(&command(&plan.words(&row)))),
                    What::Figure(places) => {
                        let found = run.figures.as_ref().ok();
                        let value = found.and_then(|(layout, values)| Some(values[places[*layout]?]));
                        column.cells.push_number(value);
                    }
                }
            }
        }
        Ok(columns)
    }
}

impl What {
    fn no_cells(&self) -> Cells {
        match self {
            What::Whole(_) => Cells::Whole(Vec::new()),
            What::Figure(_) | What::Setting { is_number: true } => Cells::Number(Vec::new()),
            What::Setting { is_number: false } | What::Error | What::Command => Cells::Text(Vec::new()),
        }
    }
}

/// What a setting was in a run, if it was set.
fn set<'a>(plan: &'a Plan, row: &Row, key: &str) -> Option<&'a str> {
    let mut set = plan.circumstances[row.circumstance].iter().chain(&plan.points[row.point]);
    set.find(|(set, _)| set == key).map(|(_, value)| value.as_str())
}

fn parsed(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Numbers where all that is set is a number.
pub(super) fn typed(values: Vec<Option<String>>) -> Cells {
    match values.iter().flatten().all(|text| parsed(text).is_some()) {
        true => Cells::Number(values.iter().map(|text| parsed(text.as_ref()?)).collect()),
        false => Cells::Text(values),
    }
}

/// The first line of the CSV.
pub fn csv_head(columns: &[Column]) -> String {
    let heads: Vec<String> = columns.iter().map(|column| quoted(&column.name)).collect();
    heads.join(",") + "\n"
}

/// The rows as CSV. Numbers are written so that reading gives the same bits; what a row has not is empty.
pub fn csv(columns: &[Column]) -> String {
    let mut out = String::new();
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

    fn push_whole(&mut self, value: i64) {
        if let Cells::Whole(cells) = self {
            cells.push(value);
        }
    }

    fn push_number(&mut self, value: Option<f64>) {
        if let Cells::Number(cells) = self {
            cells.push(value);
        }
    }

    /// A text, as a number where the column has numbers.
    fn push(&mut self, text: Option<&str>) {
        match self {
            Cells::Whole(_) => {}
            Cells::Number(cells) => cells.push(text.and_then(parsed)),
            Cells::Text(cells) => cells.push(text.map(str::to_owned)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::row::Lab;
    use crate::sweep::run;

    const SWEEP: &str = r#"goal = "p99 of r"
seeds = 2
[fixed]
jobs = "r.fio"
device = "nvme"
[vary]
"job.r.size" = ["1m", "90t"]
"job.r.iodepth" = [1, 2]
"#;

    /// Rows that run and rows that fail: a file of 90 TB has no room on the device.
    #[test]
    fn batches_are_the_table_in_parts() {
        let folder = std::env::temp_dir().join(format!("fairlift-rows-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("r.fio"), "[r]\nrw=randread\nsize=1m\n").expect("a job file");
        std::fs::write(folder.join("s.toml"), SWEEP).expect("a sweep file");
        let lab = Lab::default();
        let file = folder.join("s.toml").display().to_string();
        let mut session = Session::open(&file, &folder.join("out"), &lab).unwrap_or_else(|e| panic!("{e:?}"));
        let bar = run::Bar::new(&session);
        run::all(&mut session, &lab, 1, &bar).unwrap_or_else(|e| panic!("{e:?}"));
        let table = Table::new(&session);
        let rows = |columns: Result<Vec<Column>, Failure>| csv(&columns.unwrap_or_else(|e| panic!("{e:?}")));
        let whole = rows(table.all());
        assert_eq!(whole.lines().count(), 8);
        assert_eq!(whole.lines().filter(|line| line.contains("90t")).count(), 4);
        let parts: Vec<String> = table.batches(3).map(rows).collect();
        assert_eq!(parts.iter().map(|part| part.lines().count()).collect::<Vec<_>>(), [3, 3, 2]);
        assert_eq!(parts.concat(), whole);
        std::fs::remove_dir_all(&folder).expect("the folder goes");
    }
}
