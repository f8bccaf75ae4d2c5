//! The results file: a line for each run that is done, appended as it is done. Whatever ends the process, what was written counts, and
//! the same command goes on from there.
//!
//! The runs stay on disk. In memory are where each line stands and the figures of the goal, about 100 bytes a run.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::{FlockOperation, flock};

use super::lines::{Reader, Run, Writer};
use super::row::Done;
use crate::error::Failure;
use crate::output::reason;

/// What the first line begins with; the number is the format's.
const MARK: &str = "fairlift-sweep\t1";

/// Where a run's line is.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// Its first byte in the file.
    at: u64,
    /// Bytes, without the line's end.
    len: u32,
    outcome: Outcome,
}

#[derive(Clone, Copy, Debug)]
enum Outcome {
    /// It has the columns of this layout.
    Figures(u32),
    /// It failed for this of [`Journal::errors`].
    Failed(u32),
}

/// The results so far.
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines in the file.
    end: u64,
    writer: Writer,
    /// Knows the columns of all lines so far.
    reader: Reader,
    /// The columns whose figures stay in memory.
    goal: Vec<String>,
    /// By layout: where the columns of the goal stand in a line.
    goal_places: Vec<Vec<Option<usize>>>,
    /// The runs that are done: number, and place in `kept`.
    places: FxHashMap<u64, u32>,
    kept: Vec<Kept>,
    /// A figure for each column of the goal, run by run as in `kept`; 0 where there is none.
    figures: Vec<f64>,
    /// Why runs failed; runs one after the other with the same reason share it.
    errors: Vec<String>,
}

impl Journal {
    /// Open the results of the sweep with this hash, or begin them. Figures of the columns `goal` stay in memory.
    pub fn open(path: &Path, hash: u64, goal: Vec<String>) -> Result<Journal, Failure> {
        let fail =
            |e: &std::io::Error| Failure::new(format!("cannot write '{}': {}", path.display(), reason(e)));
        let mut options = OpenOptions::new();
        let file = options.read(true).append(true).create(true).open(path).map_err(|e| fail(&e))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            Failure::new("another fairlift writes to these results").at(path.display().to_string())
        })?;
        let lines = BufReader::new(file.try_clone().map_err(|e| fail(&e))?);
        let mut journal = Journal {
            path: path.to_owned(),
            file,
            end: 0,
            writer: Writer::default(),
            reader: Reader::default(),
            goal,
            goal_places: Vec::new(),
            places: FxHashMap::default(),
            kept: Vec::new(),
            figures: Vec::new(),
            errors: Vec::new(),
        };
        let head = format!("{MARK}\t{hash:016x}");
        journal.read(lines, &head)?;
        if journal.end == 0 {
            journal.write(&format!("{head}\n"))?;
            journal.end = head.len() as u64 + 1;
        }
        journal.writer = Writer::after(&journal.reader);
        Ok(journal)
    }

    /// Read the lines that are there; one without its end, which a kill cut off, is removed.
    fn read(&mut self, mut lines: impl BufRead, head: &str) -> Result<(), Failure> {
        let fail = |e: &std::io::Error, path: &Path| {
            Failure::new(format!("cannot read '{}': {}", path.display(), reason(e)))
        };
        let mut bytes = Vec::new();
        for number in 1.. {
            bytes.clear();
            if lines.read_until(b'\n', &mut bytes).map_err(|e| fail(&e, &self.path))? == 0 {
                return Ok(());
            }
            if bytes.pop() != Some(b'\n') {
                return self.file.set_len(self.end).map_err(|e| fail(&e, &self.path));
            }
            let line = std::str::from_utf8(&bytes);
            if number == 1 {
                self.check_head(line.unwrap_or_default(), head)?;
                self.end = bytes.len() as u64 + 1;
            } else {
                line.map_err(drop).and_then(|line| self.learn(line)).map_err(|()| {
                    Failure::new("this line is no result").at(format!("{}:{number}", self.path.display()))
                })?;
            }
        }
        Ok(())
    }

    fn check_head(&self, found: &str, head: &str) -> Result<(), Failure> {
        if found == head {
            return Ok(());
        }
        let what = match found.starts_with(MARK) {
            true => {
                "these are the results of another sweep: the sweep file, or a file it names, has changed since"
            }
            false => "this is no results file of a sweep",
        };
        Err(Failure::new(what)
            .at(self.path.display().to_string())
            .help("move the folder away, or give another one with --output"))
    }

    /// Write a run down, unless it is there already.
    pub fn record(&mut self, done: &Done) -> Result<(), Failure> {
        if self.has(done.number) {
            return Ok(());
        }
        let lines = self.writer.lines(done);
        self.write(&lines)?;
        let learned = lines.lines().try_for_each(|line| self.learn(line));
        learned.map_err(|()| Failure::internal("a run was written that cannot be read"))
    }

    /// All of the lines or, after a kill, a part without its end.
    fn write(&mut self, lines: &str) -> Result<(), Failure> {
        self.file.write_all(lines.as_bytes()).map_err(|e| {
            Failure::new(format!("cannot write '{}': {}", self.path.display(), reason(&e)))
                .help("the same command goes on from here when there is room again")
        })
    }

    /// A line that stands at the end of what is known.
    fn learn(&mut self, line: &str) -> Result<(), ()> {
        match self.reader.line(line)? {
            None => {
                let names = self.reader.layouts().last().ok_or(())?;
                let place = |goal: &String| names.iter().position(|name| name == goal);
                self.goal_places.push(self.goal.iter().map(place).collect());
            }
            Some(run) => self.keep(&run, line.len()),
        }
        self.end += line.len() as u64 + 1;
        Ok(())
    }

    fn keep(&mut self, run: &Run<'_>, len: usize) {
        if self.has(run.number) {
            return;
        }
        let outcome = match &run.figures {
            Ok((layout, values)) => {
                let places = &self.goal_places[*layout];
                self.figures.extend(places.iter().map(|place| place.map_or(0.0, |at| values[at])));
                Outcome::Figures(*layout as u32)
            }
            Err(message) => {
                self.figures.resize(self.figures.len() + self.goal.len(), 0.0);
                if self.errors.last().is_none_or(|last| last != message) {
                    self.errors.push((*message).to_owned());
                }
                Outcome::Failed(self.errors.len() as u32 - 1)
            }
        };
        self.places.insert(run.number, self.kept.len() as u32);
        self.kept.push(Kept { at: self.end, len: len as u32, outcome });
    }

    /// How many runs are done.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Is this run done?
    pub fn has(&self, number: u64) -> bool {
        self.places.contains_key(&number)
    }

    /// The numbers of the runs that are done, in order.
    pub fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.places.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    /// The runs that failed, each with the reason, in no order.
    pub fn failed(&self) -> impl Iterator<Item = (u64, &str)> {
        self.places.keys().filter_map(|number| Some((*number, self.error(*number)?)))
    }

    /// Why a run failed, if it did.
    pub fn error(&self, number: u64) -> Option<&str> {
        match self.kept[*self.places.get(&number)? as usize].outcome {
            Outcome::Failed(at) => Some(&self.errors[at as usize]),
            Outcome::Figures(_) => None,
        }
    }

    /// The figure of a run in column `at` of the goal.
    pub fn goal_figure(&self, number: u64, at: usize) -> Option<f64> {
        let place = *self.places.get(&number)? as usize;
        let Outcome::Figures(layout) = self.kept[place].outcome else { return None };
        self.goal_places[layout as usize][at]?;
        Some(self.figures[place * self.goal.len() + at])
    }

    /// A run with all its figures, from the file; `line` holds its text.
    pub fn read_back<'a>(&self, number: u64, line: &'a mut String) -> Result<Run<'a>, Failure> {
        let fail = |what: &str| Failure::new(format!("cannot read '{}': {what}", self.path.display()));
        let place = self.places.get(&number).ok_or_else(|| Failure::internal("no such run"))?;
        let kept = self.kept[*place as usize];
        let mut bytes = std::mem::take(line).into_bytes();
        bytes.resize(kept.len as usize, 0);
        self.file.read_exact_at(&mut bytes, kept.at).map_err(|e| fail(&reason(&e)))?;
        let changed = "it was changed while it was in use";
        *line = String::from_utf8(bytes).map_err(|_| fail(changed))?;
        self.reader.run(line).map_err(|()| fail(changed))
    }

    /// Columns of rows, in their order, by layout.
    pub fn layouts(&self) -> &[Vec<String>] {
        self.reader.layouts()
    }

    /// All columns, in the order in which rows by number have them first.
    pub fn columns(&self) -> Vec<&str> {
        let mut first: Vec<u64> = vec![u64::MAX; self.layouts().len()];
        for (number, place) in &self.places {
            if let Outcome::Figures(layout) = self.kept[*place as usize].outcome {
                let first = &mut first[layout as usize];
                *first = (*first).min(*number);
            }
        }
        let mut order: Vec<usize> = (0..first.len()).collect();
        order.sort_by_key(|layout| first[*layout]);
        let mut seen = FxHashSet::default();
        let names = order.into_iter().flat_map(|layout| &self.layouts()[layout]);
        names.map(String::as_str).filter(|name| seen.insert(*name)).collect()
    }

    /// Have it all on the disk.
    pub fn sync(&self) -> Result<(), Failure> {
        self.file
            .sync_data()
            .map_err(|e| Failure::new(format!("cannot write '{}': {}", self.path.display(), reason(&e))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(number: u64, figures: &[(&str, f64)]) -> Done {
        let figures = figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        Done { number, cost_us: 1, figures: Ok(figures) }
    }

    fn open(path: &Path) -> Journal {
        Journal::open(path, 7, vec!["b".into(), "a".into()]).unwrap_or_else(|e| panic!("{e:?}"))
    }

    /// Two layouts, of which one has not all of the goal's columns, and a run that failed; looked at before and after a kill.
    #[test]
    fn goal_figures_are_in_memory_and_the_rest_is_read_back() {
        let path = std::env::temp_dir().join(format!("fairlift-journal-{}", std::process::id()));
        let rows = [done(9, &[("a", 1.0), ("b", 0.1)]), done(4, &[("c", 2.0), ("a", 3.0)])];
        let failed = Done { number: 5, cost_us: 2, figures: Err("no space".into()) };
        let mut journal = open(&path);
        for row in [&rows[0], &failed, &rows[1], &rows[0]] {
            journal.record(row).unwrap_or_else(|e| panic!("{e:?}"));
        }
        let check = |journal: &Journal| {
            assert_eq!((journal.len(), journal.numbers()), (3, vec![4, 5, 9]));
            assert_eq!([0, 1].map(|at| journal.goal_figure(9, at)), [Some(0.1), Some(1.0)]);
            assert_eq!([0, 1].map(|at| journal.goal_figure(4, at)), [None, Some(3.0)]);
            assert_eq!([0, 1].map(|at| journal.goal_figure(5, at)), [None, None]);
            assert_eq!(journal.failed().collect::<Vec<_>>(), [(5, "no space")]);
            assert_eq!(journal.columns(), ["c", "a", "b"], "in the order of the runs' numbers");
            let mut line = String::new();
            for row in rows.iter().chain([&failed]) {
                let run = journal.read_back(row.number, &mut line).unwrap_or_else(|e| panic!("{e:?}"));
                assert_eq!(journal.reader.done(&run), *row);
            }
        };
        check(&journal);
        journal.file.write_all(b"R\t6\t1\t0\t1.").expect("a part of a line");
        drop(journal);
        let mut journal = open(&path);
        check(&journal);
        journal.record(&done(6, &[("a", 5.0), ("b", 6.0)])).unwrap_or_else(|e| panic!("{e:?}"));
        drop(journal);
        assert_eq!(open(&path).goal_figure(6, 0), Some(6.0), "behind the part that was removed");
        std::fs::remove_file(&path).expect("the file goes");
    }
}
