//! Opening a trace, and saying what is wrong with it.

use std::path::Path;

use fairlift_trace::{BlkparseFormat, ErrorKind, Event, Options, TraceError, TraceReader};
use indicatif::{ProgressBar, ProgressDrawTarget};

use super::args::ReadArguments;
use crate::error::{Failure, warn};
use crate::number::count;

/// Events between two looks at the clock.
const PROGRESS_EVENTS: u64 = 1 << 17;
/// Skipped faults that are listed one by one.
const FAULTS_TOLD: usize = 3;

/// A trace that is read to its end.
pub struct Input {
    reader: TraceReader,
    keep_going: bool,
    name: String,
    events: u64,
    bar: ProgressBar,
}

impl ReadArguments {
    /// As the reader takes them.
    pub fn options(&self) -> Result<Options, Failure> {
        let blkparse_format = match &self.blkparse_format {
            None => None,
            Some(text) => Some(BlkparseFormat::parse(text).map_err(|e| {
                Failure::new(format!("'{text}' is not a format of blkparse: {e}")).at("--blkparse-format")
            })?),
        };
        Ok(Options {
            format: self.format,
            blkparse_format,
            keep_going: self.keep_going,
            sort_window: self.sort,
            ..Options::default()
        })
    }
}

impl Input {
    /// Opens the trace called `name`, '-' for standard input.
    pub fn open(name: &str, arguments: &ReadArguments, rebase: bool) -> Result<Input, Failure> {
        let options = Options { rebase, ..arguments.options()? };
        let opened = match name {
            "-" => TraceReader::from_read("(standard input)", std::io::stdin(), &options),
            _ => TraceReader::open(Path::new(name), &options),
        };
        let reader = opened.map_err(|e| failure(&e, arguments.keep_going))?;
        Ok(Input::of(reader, name, arguments.keep_going))
    }

    /// A reader that is there already.
    pub fn of(reader: TraceReader, name: &str, keep_going: bool) -> Input {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        Input { reader, keep_going, name: name.to_owned(), events: 0, bar }
    }

    /// The reader, for names and payloads of the event given last.
    pub fn reader(&self) -> &TraceReader {
        &self.reader
    }

    /// The next event.
    pub fn next(&mut self) -> Result<Option<Event>, Failure> {
        let event = self.reader.next().transpose().map_err(|e| failure(&e, self.keep_going))?;
        self.events += u64::from(event.is_some());
        if self.events.is_multiple_of(PROGRESS_EVENTS) {
            self.bar.set_message(format!("{} million events", self.events / 1_000_000));
            self.bar.tick();
        }
        Ok(event)
    }

    /// The end: says what was left out; a trace of which nothing is left is no trace.
    pub fn finish(self) -> Result<(), Failure> {
        self.bar.finish_and_clear();
        let skipped = self.reader.skipped();
        if skipped.faults > 0 {
            let records =
                if skipped.faults == 1 { "1 fault".to_owned() } else { format!("{} faults", skipped.faults) };
            warn(&format!("{}: {records} left out ({} bytes passed over)", self.name, skipped.bytes));
            skipped.first.iter().take(FAULTS_TOLD).for_each(|fault| warn(&fault.to_string()));
        }
        let lost = self.reader.lost();
        if lost.gaps > 0 {
            warn(&format!(
                "{}: its recorder lost {} in {}; nothing is paired across them",
                self.name,
                if lost.events == 0 { "events".to_owned() } else { count(lost.events, "event", "events") },
                count(lost.gaps, "place", "places"),
            ));
        }
        match (self.events, skipped.first.first()) {
            (0, Some(fault)) => Err(failure(fault, true).help("nothing else in it can be read")),
            (0, None) => Err(Failure::new("the trace has no events").at(&self.name)),
            _ => Ok(()),
        }
    }
}

/// A fault of a trace as people read it.
pub fn failure(error: &TraceError, keeps_going: bool) -> Failure {
    let mut failure = Failure::new(&error.message).at(error.place.to_string());
    let has_good_part = matches!(
        error.kind,
        ErrorKind::Truncated
            | ErrorKind::Corrupt
            | ErrorKind::ByteOrder
            | ErrorKind::OutOfOrder
            | ErrorKind::NegativeTime
    );
    if has_good_part && !keeps_going {
        failure = failure.help("--keep-going leaves such records out and uses the rest");
    }
    if error.kind == ErrorKind::OutOfOrder {
        failure = failure.help("--sort 1000 puts near neighbours in order");
    }
    failure
}
