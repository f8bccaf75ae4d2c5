//! The results file: a line for each run that is done, appended as it is done. Whatever ends the process, what was written counts, and
//! the same command goes on from there.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use rustix::fs::{FlockOperation, flock};

use super::lines;
use super::row::Done;
use crate::error::Failure;
use crate::output::reason;

/// What the first line begins with; the number is the format's.
const MARK: &str = "fairlift-sweep\t1";

/// A run's figures, kept small: names are shared by all rows that have the same.
#[derive(Clone, Debug)]
pub struct Kept {
    /// Which of [`Journal::layouts`]; `None`: the run failed.
    pub layout: Option<u32>,
    /// Its figures, in the layout's order.
    pub values: Box<[f64]>,
    /// Why it failed.
    pub error: Box<str>,
}

/// The results so far.
pub struct Journal {
    path: PathBuf,
    file: File,
    writer: lines::Writer,
    names: FxHashMap<Vec<String>, u32>,
    /// Columns of rows, in their order.
    pub layouts: Vec<Vec<String>>,
    /// The runs that are done, by number.
    pub rows: FxHashMap<u64, Kept>,
}

impl Journal {
    /// Open the results of the sweep with this hash, or begin them.
    pub fn open(path: &Path, hash: u64) -> Result<Journal, Failure> {
        let fail =
            |e: &std::io::Error| Failure::new(format!("cannot write '{}': {}", path.display(), reason(e)));
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(path).map_err(|e| fail(&e))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            Failure::new("another fairlift writes to these results").at(path.display().to_string())
        })?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|e| fail(&e))?;
        let mut journal = Journal {
            path: path.to_owned(),
            file,
            writer: lines::Writer::default(),
            names: FxHashMap::default(),
            layouts: Vec::new(),
            rows: FxHashMap::default(),
        };
        let head = format!("{MARK}\t{hash:016x}\n");
        // A line without its end is one that a kill cut off.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            journal.file.set_len(whole as u64).map_err(|e| fail(&e))?;
            journal.file.seek(SeekFrom::End(0)).map_err(|e| fail(&e))?;
        }
        if whole == 0 {
            journal.write(&head)?;
            return Ok(journal);
        }
        let found = text.lines().next().unwrap_or_default();
        if found != head.trim_end() {
            let what = match found.starts_with(MARK) {
                true => {
                    "these are the results of another sweep: the sweep file, or a file it names, has changed since"
                }
                false => "this is no results file of a sweep",
            };
            return Err(Failure::new(what)
                .at(path.display().to_string())
                .help("move the folder away, or give another one with --output"));
        }
        journal.read(&text[head.len()..whole])?;
        Ok(journal)
    }

    fn read(&mut self, text: &str) -> Result<(), Failure> {
        let mut reader = lines::Reader::default();
        for (number, line) in text.lines().enumerate() {
            let done = reader.line(line).map_err(|()| {
                Failure::new("this line is no result").at(format!("{}:{}", self.path.display(), number + 2))
            })?;
            if let Some(done) = done {
                self.keep(done);
            }
        }
        self.writer = lines::Writer::after(&reader);
        Ok(())
    }

    /// Write a run down, unless it is there already.
    pub fn record(&mut self, done: Done) -> Result<(), Failure> {
        if self.rows.contains_key(&done.number) {
            return Ok(());
        }
        let lines = self.writer.lines(&done);
        self.write(&lines)?;
        self.keep(done);
        Ok(())
    }

    /// All of the lines or, after a kill, a part without its end.
    fn write(&mut self, lines: &str) -> Result<(), Failure> {
        self.file.write_all(lines.as_bytes()).map_err(|e| {
            Failure::new(format!("cannot write '{}': {}", self.path.display(), reason(&e)))
                .help("the same command goes on from here when there is room again")
        })
    }

    fn keep(&mut self, done: Done) {
        let kept = match done.figures {
            Err(error) => Kept { layout: None, values: Box::default(), error: error.into() },
            Ok(figures) => {
                let (names, values): (Vec<String>, Vec<f64>) = figures.into_iter().unzip();
                let next = self.layouts.len() as u32;
                let layout = *self.names.entry(names).or_insert_with_key(|names| {
                    self.layouts.push(names.clone());
                    next
                });
                Kept { layout: Some(layout), values: values.into(), error: "".into() }
            }
        };
        self.rows.entry(done.number).or_insert(kept);
    }

    /// A figure of a run.
    pub fn figure(&self, number: u64, column: &str) -> Option<f64> {
        let kept = self.rows.get(&number)?;
        let names = self.layouts.get(kept.layout? as usize)?;
        names.iter().position(|name| name == column).map(|at| kept.values[at])
    }

    /// All columns, in the order in which rows by number have them first.
    pub fn columns(&self) -> Vec<String> {
        let mut first: Vec<u64> = vec![u64::MAX; self.layouts.len()];
        for (number, kept) in &self.rows {
            if let Some(layout) = kept.layout {
                first[layout as usize] = first[layout as usize].min(*number);
            }
        }
        let mut order: Vec<usize> = (0..first.len()).collect();
        order.sort_by_key(|layout| first[*layout]);
        let mut columns: Vec<String> = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        for name in order.into_iter().flat_map(|layout| &self.layouts[layout]) {
            if seen.insert(name) {
                columns.push(name.clone());
            }
        }
        columns
    }

    /// Have it all on the disk.
    pub fn sync(&self) -> Result<(), Failure> {
        self.file
            .sync_data()
            .map_err(|e| Failure::new(format!("cannot write '{}': {}", self.path.display(), reason(&e))))
    }
}
