//! `--trace FILE`: what the block layer of each run did.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use fairlift_sim::recording::Recording;
use fairlift_sim::scenario::{Recorders, Scenario};
use fairlift_trace::write::{EventWriter, Losses};

use super::args::At;
use super::output::{Rest, TraceFile, cannot_write, target};
use crate::error::{Failure, note};

/// The traces of all runs of a scenario; none without `--trace`.
pub struct Traces(Vec<Cell>);

/// The trace of one run.
struct Cell {
    path: String,
    writer: Mutex<Option<Box<dyn EventWriter + Send>>>,
    written: Mutex<Option<io::Result<Losses>>>,
    rest: Rest,
}

impl Traces {
    /// Opens a file for each run of `scenario`, by case and scheduler.
    pub fn new(scenario: &Scenario, path: Option<&Path>) -> Result<Traces, Failure> {
        let Some(path) = path else { return Ok(Traces(Vec::new())) };
        let path = path.to_string_lossy().into_owned();
        let target = target(&path, None).map_err(|failure| failure.at("--trace"))?;
        if path == "-" {
            return Err(Failure::new("traces go to a file: standard output is for the results").at("--trace"));
        }
        let cell = |path: String| {
            let (writer, rest) = TraceFile::create(&path, target, At::Queue)?.split();
            Ok(Cell { path, writer: Mutex::new(Some(writer)), written: Mutex::new(None), rest })
        };
        names(scenario, &path).into_iter().map(cell).collect::<Result<_, _>>().map(Traces)
    }

    /// All runs are over: the files get their names.
    pub fn finish(self) -> Result<(), Failure> {
        for Cell { path, writer, written, rest } in self.0 {
            drop(writer);
            match written.into_inner().unwrap_or_else(PoisonError::into_inner) {
                None => continue,
                Some(Err(error)) => return Err(cannot_write(&path, &error)),
                Some(Ok(losses)) if losses.is_empty() => {}
                Some(Ok(losses)) => note(&format!("{path} cannot hold {losses}")),
            }
            rest.publish()?;
        }
        Ok(())
    }
}

impl Recorders for Traces {
    fn begin(&self, run: usize) -> Option<Recording> {
        let writer = self.0.get(run)?.writer.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(Recording::new(writer))
    }

    fn end(&self, run: usize, recording: Recording) {
        if let Some(cell) = self.0.get(run) {
            *cell.written.lock().unwrap_or_else(PoisonError::into_inner) = Some(recording.finish());
        }
    }
}

/// A file name for each run: with the case and the scheduler in it, where there are several, before the ending.
fn names(scenario: &Scenario, path: &str) -> Vec<String> {
    let (folder, file) =
        path.rsplit_once('/').map_or(("", path), |(_, file)| (&path[..path.len() - file.len()], file));
    let at = file.find(".blktrace").or_else(|| file.rfind('.')).unwrap_or(file.len());
    let (stem, ending) = file.split_at(at);
    let mut all: Vec<String> = Vec::new();
    for case in &scenario.cases {
        for scheduler in &scenario.schedulers {
            let mut name = stem.to_owned();
            if scenario.cases.len() > 1 {
                name = format!("{name}-{}", clean(&case.name));
            }
            if scenario.schedulers.len() > 1 {
                name = format!("{name}-{}", clean(&scheduler.to_string()));
            }
            let plain = name.clone();
            let mut copies = 1;
            while all.contains(&format!("{folder}{name}{ending}")) {
                copies += 1;
                name = format!("{plain}-{copies}");
            }
            all.push(format!("{folder}{name}{ending}"));
        }
    }
    all
}

/// Only what every file system takes, and what needs no quotes in a shell.
fn clean(name: &str) -> String {
    let keep = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '=' | '@' | '+');
    name.chars().map(|c| if keep(c) { c } else { '_' }).collect()
}
