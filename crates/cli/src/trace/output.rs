//! Writing a trace: formats by name or by the file's ending, files that are whole or not there.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use clap::ValueEnum;
use fairlift_trace::Action;
use fairlift_trace::write::{
    BlkparseWriter, BlktraceWriter, ChromeWriter, CsvWriter, EventWriter, IologVersion, IologWriter, Losses,
    Version,
};

use super::args::{At, Target};
use crate::error::Failure;
use crate::output::{Output, reason};

/// Files of CPUs without I/O are made up to this CPU.
const CPUS_MAX: u32 = 4096;

/// Endings and what they stand for.
const ENDINGS: [(&str, Target); 8] = [
    ("blktrace", Target::BlktraceCpus),
    ("bin", Target::Blktrace),
    ("blkparse", Target::Blkparse),
    ("txt", Target::Blkparse),
    ("iolog", Target::Iolog),
    ("csv", Target::Csv),
    ("json", Target::Chrome),
    ("perfetto", Target::Chrome),
];

/// A trace on its way to a file.
pub struct TraceFile {
    writer: Box<dyn EventWriter + Send>,
    files: Files,
    name: String,
}

/// Files of CPUs, as they are met.
type CpuFiles = Arc<Mutex<BTreeMap<u32, Output>>>;

/// The files it becomes: one, or as many as there are CPUs.
enum Files {
    One(Output),
    PerCpu { set: String, files: CpuFiles },
}

/// The format a file is written in: the one asked for, else by its ending.
pub fn target(path: &str, asked: Option<Target>) -> Result<Target, Failure> {
    if let Some(target) = asked {
        return Ok(target);
    }
    let name =
        Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some((_, cpu)) = name.rsplit_once(".blktrace.") {
        if cpu == "*" {
            return Ok(Target::BlktraceCpus);
        }
        if cpu.parse::<u32>().is_ok() {
            return Ok(Target::Blktrace);
        }
    }
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let found = ENDINGS.iter().find(|(known, _)| Some(*known) == ending.as_deref());
    found.map(|(_, target)| *target).ok_or_else(|| {
        let endings: Vec<String> = ENDINGS.iter().map(|(ending, _)| format!(".{ending}")).collect();
        let names: Vec<String> = Target::value_variants()
            .iter()
            .filter_map(|t| Some(t.to_possible_value()?.get_name().to_owned()))
            .collect();
        Failure::new(format!("the ending of '{path}' names no trace format"))
            .help(format!("endings: {}", endings.join(", ")))
            .help(format!("formats of --to: {}", names.join(", ")))
    })
}

impl TraceFile {
    /// Begins a file, '-' for standard output. `at`: which events are the lines of an iolog.
    pub fn create(path: &str, target: Target, at: At) -> Result<TraceFile, Failure> {
        if target == Target::BlktraceCpus {
            return Self::per_cpu(path);
        }
        let output = Output::open((path != "-").then_some(Path::new(path)))?;
        let out = output.stream().map_err(|e| cannot_write(path, &e))?;
        let at = match at {
            At::Queue => Action::Queue,
            At::Issue => Action::Issue,
            At::Complete => Action::Complete,
        };
        let writer: Box<dyn EventWriter + Send> = match target {
            Target::Blktrace | Target::BlktraceCpus => Box::new(BlktraceWriter::single(out, Version::V7)),
            Target::Blktrace8 => Box::new(BlktraceWriter::single(out, Version::V8)),
            Target::Blkparse => Box::new(BlkparseWriter::new(out)),
            Target::Iolog => Box::new(IologWriter::new(out, IologVersion::V3, at)),
            Target::Iolog2 => Box::new(IologWriter::new(out, IologVersion::V2, at)),
            Target::Csv => Box::new(CsvWriter::new(out)),
            Target::Chrome => Box::new(ChromeWriter::new(out)),
        };
        Ok(TraceFile { writer, files: Files::One(output), name: path.to_owned() })
    }

    /// `NAME.blktrace.0` and so on, opened as CPUs are met.
    fn per_cpu(path: &str) -> Result<TraceFile, Failure> {
        if path == "-" {
            return Err(Failure::new("files for each CPU do not fit into standard output")
                .help("--to blktrace writes one stream of all CPUs"));
        }
        let set = path.strip_suffix(".*").unwrap_or(path);
        let set = set.strip_suffix(".blktrace").unwrap_or(set).to_owned();
        // The first one is opened now: a place that cannot be written is told before the work is done.
        let first = Output::open(Some(&cpu_file(&set, 0)))?;
        let files = CpuFiles::new(Mutex::new(BTreeMap::from([(0, first)])));
        let (opened, prefix) = (Arc::clone(&files), set.clone());
        let open = move |cpu: u32| -> io::Result<Box<dyn Write + Send>> {
            let mut files = opened.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(output) = files.get(&cpu) {
                return output.stream();
            }
            let output = Output::open(Some(&cpu_file(&prefix, cpu)));
            let output = output.map_err(|failure| io::Error::other(failure.message()))?;
            let stream = output.stream();
            files.insert(cpu, output);
            stream
        };
        let writer = Box::new(BlktraceWriter::per_cpu(open, Version::V7));
        Ok(TraceFile { writer, files: Files::PerCpu { set, files }, name: path.to_owned() })
    }

    /// What takes the events.
    pub fn writer(&mut self) -> &mut dyn EventWriter {
        &mut *self.writer
    }

    /// Take it apart: the writer goes elsewhere, [`Rest::publish`] follows when it has finished.
    pub fn split(self) -> (Box<dyn EventWriter + Send>, Rest) {
        (self.writer, Rest { files: self.files, name: self.name })
    }

    /// All was written: the file gets its name. Says what the format could not hold.
    pub fn finish(mut self) -> Result<Losses, Failure> {
        let losses = self.writer.finish().map_err(|e| cannot_write(&self.name, &e))?;
        let (writer, rest) = self.split();
        drop(writer);
        rest.publish()?;
        Ok(losses)
    }
}

/// The files of a trace whose writer is elsewhere.
pub struct Rest {
    files: Files,
    name: String,
}

impl Rest {
    /// The files get their names.
    pub fn publish(self) -> Result<(), Failure> {
        let outputs = match self.files {
            Files::One(output) => vec![output],
            Files::PerCpu { set, files } => {
                let mut files = std::mem::take(&mut *files.lock().unwrap_or_else(PoisonError::into_inner));
                // blkparse counts up from CPU 0 and ends at the first file that is not there.
                let last = files.keys().next_back().copied().unwrap_or(0).min(CPUS_MAX);
                for cpu in 0..last {
                    if let std::collections::btree_map::Entry::Vacant(missing) = files.entry(cpu) {
                        missing.insert(Output::open(Some(&cpu_file(&set, cpu)))?);
                    }
                }
                files.into_values().collect()
            }
        };
        outputs.into_iter().try_for_each(|output| output.publish().map_err(|e| cannot_write(&self.name, &e)))
    }
}

fn cpu_file(set: &str, cpu: u32) -> PathBuf {
    PathBuf::from(format!("{set}.blktrace.{cpu}"))
}

/// Writing failed.
pub fn cannot_write(path: &str, error: &io::Error) -> Failure {
    Failure::new(format!("cannot write '{path}': {}", reason(error)))
}
