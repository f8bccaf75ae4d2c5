//! A sweep step by step, for those who bring their own machines: what is left to run, runs as bytes, and the results.

use std::path::Path;
use std::sync::Arc;

use super::file::Sweep as SweepFile;
use super::lines;
use super::plan::Plan;
use super::row::Lab;
use super::session::{Session, command};
use super::{page, rows, run, write};
use crate::error::Failure;

pub use super::rows::{Cells, Column};

/// A sweep with its results.
pub struct Sweep {
    session: Session,
    lab: Arc<Lab>,
}

impl Sweep {
    /// Begin the sweep of this file, or go on with it.
    ///
    /// # Errors
    /// What `fairlift sweep` would complain of.
    pub fn open(file: &str, folder: &Path) -> Result<Sweep, Failure> {
        let lab = Arc::new(Lab::default());
        Ok(Sweep { session: Session::open(file, folder, &lab)?, lab })
    }

    /// Make all runs here.
    ///
    /// # Errors
    /// When results cannot be written.
    pub fn run(&mut self, threads: Option<usize>) -> Result<(), Failure> {
        let bar = run::Bar::new(&self.session);
        let result = run::all(&mut self.session, &self.lab, crate::progress::threads(threads), &bar);
        bar.finish();
        result
    }

    /// The numbers of the runs to make now.
    pub fn pending(&self) -> Vec<u64> {
        self.session.pending()
    }

    /// Runs that a [`Worker`] made; those that are there already are left out.
    ///
    /// # Errors
    /// When the bytes are none of a worker's, or results cannot be written.
    pub fn record(&mut self, made: &str) -> Result<(), Failure> {
        let mut reader = lines::Reader::default();
        for line in made.lines() {
            let run = reader.line(line).map_err(|()| Failure::new("these are no runs of a worker"))?;
            run.map_or(Ok(()), |run| self.session.record(&reader.done(&run)))?;
        }
        Ok(())
    }

    /// Nothing is pending: go on with the next rung; false when that was the last.
    pub fn advance(&mut self) -> bool {
        self.session.advance()
    }

    /// Write the tables and the page.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(&self) -> Result<(), Failure> {
        write(&self.session)
    }

    /// What `fairlift sweep` prints.
    pub fn summary(&self) -> String {
        super::summary(&self.session, crate::style::Style::Plain)
    }

    /// The page.
    pub fn page(&self) -> String {
        page::page(&self.session).html()
    }

    /// The results, a row for each run.
    ///
    /// # Errors
    /// When they cannot be read back from their file.
    pub fn columns(&self) -> Result<Vec<Column>, Failure> {
        rows::Table::new(&self.session).all()
    }

    /// How many runs are there.
    pub fn done(&self) -> usize {
        self.session.journal.len()
    }

    /// By circumstance, the best first: what is set, the command, and the figures of the goal.
    pub fn best(&self) -> Vec<Best> {
        let (plan, ranking) = (&self.session.plan, self.session.ranking());
        let circumstances = plan.circumstances.iter().enumerate();
        circumstances
            .filter_map(|(number, circumstance)| {
                let best = ranking.scores(number).into_iter().next()?;
                let row = plan.row(plan.number(best.rung, number, best.point, 0));
                let figures =
                    plan.sweep.goal.terms.iter().zip(&best.stats).map(|(t, s)| (t.column.clone(), s.mean));
                Some(Best {
                    circumstance: circumstance.clone(),
                    settings: plan.points[best.point].clone(),
                    command: command(&plan.words(&row)),
                    figures: figures.collect(),
                })
            })
            .collect()
    }

    /// The files that runs read, as the sweep file names them, and where they are.
    pub fn files(&self) -> Vec<(String, String)> {
        self.session
            .plan
            .files()
            .into_iter()
            .map(|name| (name.clone(), self.session.plan.sweep.path(&name)))
            .collect()
    }
}

/// The best settings of a circumstance.
pub struct Best {
    /// Under what.
    pub circumstance: Vec<(String, String)>,
    /// What is set.
    pub settings: Vec<(String, String)>,
    /// The command of its first run.
    pub command: String,
    /// The goal's figures: columns and means.
    pub figures: Vec<(String, f64)>,
}

/// Makes runs of a sweep and keeps nothing: one of many.
pub struct Worker {
    plan: Plan,
    lab: Lab,
}

impl Worker {
    /// For the sweep of this file.
    ///
    /// # Errors
    /// When it is wrong.
    pub fn open(file: &str) -> Result<Worker, Failure> {
        let text = String::from_utf8(crate::input::read(file)?)
            .map_err(|_| Failure::new("not a text file (not UTF-8)").at(file))?;
        Ok(Worker { plan: Plan::new(SweepFile::parse(&text, file)?)?, lab: Lab::default() })
    }

    /// Make these runs, one after the other; what came of them, for [`Sweep::record`].
    pub fn run(&self, numbers: &[u64]) -> String {
        let mut writer = lines::Writer::default();
        let one = |number: &u64| self.lab.run(*number, &self.plan.words(&self.plan.row(*number)));
        numbers.iter().map(|number| writer.lines(&one(number))).collect()
    }
}

/// A CSV table of ours as columns: numbers where all cells of a column are.
pub fn columns_of_csv(text: &str) -> Vec<Column> {
    let mut lines = text.lines();
    let heads = lines.next().map(fields).unwrap_or_default();
    let mut cells: Vec<Vec<Option<String>>> = vec![Vec::new(); heads.len()];
    for line in lines {
        for (column, field) in cells.iter_mut().zip(fields(line)) {
            column.push(Some(field).filter(|field| !field.is_empty()));
        }
    }
    heads.into_iter().zip(cells).map(|(name, cells)| Column { name, cells: rows::typed(cells) }).collect()
}

/// The fields of a line; those in quotes without them.
pub fn fields(line: &str) -> Vec<String> {
    let (mut fields, mut is_quoted) = (vec![String::new()], false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        let last = fields.len() - 1;
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => fields[last].extend(letters.next()),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            letter => fields[last].push(letter),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_part_no_fields() {
        assert_eq!(fields("a,\"b,\"\"c\"\"\",,d"), ["a", "b,\"c\"", "", "d"]);
        let columns = columns_of_csv("n,w\n1,x\n,\"y\"\n");
        assert!(matches!(&columns[0].cells, Cells::Number(cells) if cells[..] == [Some(1.0), None]));
        assert!(matches!(&columns[1].cells, Cells::Text(cells) if cells[1].as_deref() == Some("y")));
    }
}
