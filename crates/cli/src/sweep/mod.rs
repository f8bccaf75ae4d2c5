//! `fairlift sweep`: many runs from one file, and which of their settings are best.
//!
//! A [`file`] says what varies; the [`plan`] makes runs of it, each a command line; the [`session`] knows which have run, by the
//! [`journal`] on disk, and leaves bad settings behind; [`rank`] says which are best; [`rows`] and [`page`] show it all.

pub mod api;
mod axis;
mod figures;
mod file;
mod goal;
mod journal;
mod lines;
mod page;
mod parquet;
mod plan;
mod rank;
mod row;
mod rows;
mod run;
mod sample;
mod session;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use fairlift_report::Document;

use crate::args::SweepArguments;
use crate::error::{Failure, warn};
use crate::grid::{Grid, number, word};
use crate::output::{Output, print};
use crate::progress::threads;
use crate::style::Style;
use row::Lab;
use session::Session;

pub use session::command;

/// Make all runs that are not there yet, write the results, say what is best.
pub fn sweep(arguments: &SweepArguments) -> Result<(), Failure> {
    let folder = arguments.output.clone().unwrap_or_else(|| folder_of(&arguments.file));
    let lab = Lab::default();
    let mut session = Session::open(&arguments.file, &folder, &lab)?;
    let bar = run::Bar::new(&session);
    let result = run::all(&mut session, &lab, threads(arguments.threads), &bar);
    bar.finish();
    result?;
    write(&session)?;
    let failed = session.journal.failed().count();
    if let Some((_, reason)) = session.journal.failed().min_by_key(|(number, _)| *number) {
        warn(&format!("{failed} of {} runs failed; the first: {reason}", session.journal.len()));
    }
    print(&summary(&session, Style::of(&std::io::stdout())))
}

/// Beside where the command runs, by the file's name.
fn folder_of(file: &str) -> PathBuf {
    let stem = Path::new(file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    PathBuf::from(format!("{stem}-results"))
}

/// The results as files: each is complete or not there.
fn write(session: &Session) -> Result<(), Failure> {
    session.journal.sync()?;
    write_tables(session)?;
    let document = page::page(session);
    Output::open(Some(&session.folder.join("page.html")))?.write(&document.html())?;
    write_markdown(&document, &session.folder)
}

/// The same rows as CSV and as Parquet, a batch at a time.
fn write_tables(session: &Session) -> Result<(), Failure> {
    let table = rows::Table::new(session);
    let mut csv = TableFile::open(session, "results.csv")?;
    let mut parquet = TableFile::open(session, "results.parquet")?;
    let stream = parquet.stream()?;
    let mut groups = parquet::Groups::new(&table.empty(), stream).map_err(|e| parquet.fail(&e))?;
    let mut lines = BufWriter::new(csv.stream()?);
    let head = rows::csv_head(&table.empty());
    lines.write_all(head.as_bytes()).map_err(|e| csv.fail(&e))?;
    for batch in table.batches(rows::BATCH) {
        let columns = batch?;
        lines.write_all(rows::csv(&columns).as_bytes()).map_err(|e| csv.fail(&e))?;
        groups.write(&columns).map_err(|e| parquet.fail(&e))?;
    }
    lines.flush().map_err(|e| csv.fail(&e))?;
    groups.close().map_err(|e| parquet.fail(&e))?;
    csv.publish()?;
    parquet.publish()
}

/// A file of results while it is written.
struct TableFile {
    path: PathBuf,
    output: Output,
}

impl TableFile {
    fn open(session: &Session, name: &str) -> Result<TableFile, Failure> {
        let path = session.folder.join(name);
        Ok(TableFile { output: Output::open(Some(&path))?, path })
    }

    fn fail(&self, error: &dyn std::fmt::Display) -> Failure {
        Failure::new(format!("cannot write '{}': {error}", self.path.display()))
    }

    fn stream(&mut self) -> Result<Box<dyn Write + Send>, Failure> {
        self.output.stream().map_err(|e| self.fail(&e))
    }

    fn publish(self) -> Result<(), Failure> {
        let path = self.path;
        let fail = |e: &std::io::Error| Failure::new(format!("cannot write '{}': {e}", path.display()));
        self.output.publish().map_err(|e| fail(&e))
    }
}

fn write_markdown(document: &Document, folder: &Path) -> Result<(), Failure> {
    for drawing in document.drawings() {
        Output::open(Some(&folder.join(format!("{}.svg", drawing.name))))?.write(&drawing.svg)?;
    }
    Output::open(Some(&folder.join("page.md")))?
        .write(&document.markdown(&|drawing| format!("{}.svg", drawing.name)))
}

/// What is best, a line per circumstance, and the command of each.
fn summary(session: &Session, style: Style) -> String {
    let plan = &session.plan;
    let ranking = session.ranking();
    let mut out = format!("{}\n{}\n\n", style.bold(&plan.sweep.title), plan.sweep.goal.text);
    let mut grid = Grid::default();
    let terms = &plan.sweep.goal.terms;
    let heads = ["", "best"].map(word).into_iter().chain(terms.iter().map(|term| word(page::head(term))));
    grid.row(heads.chain(["limits", "alike"].map(word)).collect());
    let mut commands = Vec::new();
    for circumstance in 0..plan.circumstances.len() {
        let scores = ranking.scores(circumstance);
        let mut cells = vec![word(page::setting(&plan.circumstances[circumstance]))];
        if let Some(best) = scores.first() {
            cells.push(word(page::setting(&plan.points[best.point])));
            let figures = terms.iter().zip(&best.stats);
            cells.extend(figures.map(|(term, stat)| number(page::figure(term, stat.mean, None))));
            cells.push(word(best.error.clone().unwrap_or_else(|| page::kept(best))));
            cells.push(word(page::alike(&ranking, &scores)));
            let row = plan.row(plan.number(best.rung, circumstance, best.point, 0));
            commands.push(command(&plan.words(&row)));
        }
        grid.row(cells);
    }
    out.push_str(&grid.render(style, 0));
    out.push('\n');
    commands.iter().for_each(|line| out.push_str(&format!("{line}\n")));
    let folder = session.folder.display();
    out.push_str(&format!(
        "\n{} runs: {folder}/page.html, results.csv, results.parquet\n",
        session.journal.len()
    ));
    out
}
