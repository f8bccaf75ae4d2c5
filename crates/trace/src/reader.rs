//! The reader a caller sees: any format, checked order, faults counted.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io::Read;
use std::sync::Arc;

use crate::compress;
use crate::detect;
use crate::error::{ErrorKind, Place, TraceError};
use crate::event::{Action, Event};
use crate::format::{Facts, Format};
use crate::gap::{self, Lost};
use crate::names::{Names, Texts};
use crate::read::blkparse_format::BlkparseFormat;
use crate::read::blktrace::BlktraceFile;
use crate::read::lines::LineSource;
use crate::read::merge::Merge;
use crate::read::vscsi::Vscsi;
use crate::read::{Input, NamedInput, Shared, Source};

/// How to read.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Read as this format; `None`: find out.
    pub format: Option<Format>,
    /// For text written with `blkparse -f`. Sets the format.
    pub blkparse_format: Option<BlkparseFormat>,
    /// Skip and count faulty records instead of ending with the first one.
    pub keep_going: bool,
    /// Sort through this many events, of 160 bytes each. 0: time that runs backwards is a fault. `None`:
    /// [`Format::sort_window`].
    pub sort_window: Option<usize>,
    /// Count time from the first event that is no note, as blkparse does.
    pub rebase: bool,
}

/// What was left out.
#[derive(Clone, Debug, Default)]
pub struct Skipped {
    /// Faults, one for each skipped record or line.
    pub faults: u64,
    /// Bytes passed over in search of the next binary record.
    pub bytes: u64,
    /// The first few faults.
    pub first: Vec<TraceError>,
}

/// How many faults are kept word by word.
const FAULTS_KEPT: usize = 10;

/// The events of a trace, in order of time.
///
/// Faults come as errors. Without [`Options::keep_going`] the first one ends the iteration.
pub struct TraceReader {
    source: Box<dyn Source>,
    shared: Shared,
    format: Format,
    keep_going: bool,
    skipped: Skipped,
    lost: Lost,
    last_ns: u64,
    origin_ns: Option<u64>,
    rebase: bool,
    sort: Option<Sort>,
    held: Option<Event>,
    /// The payload of `held`.
    held_payload: Vec<u8>,
    ended: bool,
}

impl std::fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceReader")
            .field("format", &self.format)
            .field("place", &self.place())
            .finish_non_exhaustive()
    }
}

impl TraceReader {
    /// Reads one stream, decompressed as needed. `name` is for messages.
    pub fn from_read(
        name: &str,
        input: impl Read + Send + 'static,
        options: &Options,
    ) -> Result<Self, TraceError> {
        Self::from_streams(vec![(name.to_owned(), Box::new(input))], options)
    }

    /// Reads the per-CPU files of one blktrace, given in the order of their CPUs, or any single stream.
    pub fn from_streams(streams: Vec<(String, Input)>, options: &Options) -> Result<Self, TraceError> {
        let mut inputs = Vec::new();
        let forced = options.blkparse_format.as_ref().map(|_| Format::BlkparseFormat).or(options.format);
        let mut format = forced;
        for (name, input) in streams {
            let file: Arc<str> = name.into();
            let failed = |error: std::io::Error| TraceError::reading(Place::file(&file), &error);
            let mut input = compress::decompress(input).map_err(failed)?;
            if format.is_none() {
                // What can be decompressed of a damaged file is enough; the fault is met again when it is read.
                let mut sample = Vec::new();
                let mut piece = [0; 4096];
                let mut fault = None;
                while sample.len() < detect::SAMPLE_BYTES && fault.is_none() {
                    match input.read(&mut piece) {
                        Ok(0) => break,
                        Ok(count) => sample.extend_from_slice(&piece[..count]),
                        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                        Err(error) => fault = Some(error),
                    }
                }
                if let (Some(error), true) = (&fault, sample.is_empty()) {
                    return Err(TraceError::reading(Place::file(&file), error));
                }
                format = Some(detect::detect(&file, &sample)?);
                input = match fault {
                    None => compress::put_back(sample, input),
                    Some(error) => compress::put_back(sample, Box::new(Failing(Some(error)))),
                };
            }
            inputs.push(NamedInput { file, input });
        }
        let Some(format) = format.filter(|_| !inputs.is_empty()) else {
            return Err(TraceError::new(ErrorKind::Empty, Place::file(&"".into()), "no file to read"));
        };
        let source: Box<dyn Source> = match format {
            Format::Blktrace => {
                let open = if inputs.len() == 1 { BlktraceFile::alone } else { BlktraceFile::of_cpu };
                Box::new(Merge::new(inputs.into_iter().map(open).collect()))
            }
            _ if inputs.len() > 1 => {
                let message = format!("several files are one trace only in format blktrace, not {format}");
                return Err(TraceError::new(ErrorKind::Unsupported, Place::file(&inputs[1].file), message));
            }
            Format::Vscsi => Box::new(Vscsi::new(inputs.remove(0))),
            _ => {
                let input = inputs.remove(0);
                let Some(parser) = format.line_parser(options.blkparse_format.as_ref()) else {
                    let message = "format blkparse-format needs the format string it was written with";
                    return Err(TraceError::new(ErrorKind::Unsupported, Place::file(&input.file), message));
                };
                Box::new(LineSource::new(input, parser))
            }
        };
        let sort_window = options.sort_window.unwrap_or(format.sort_window());
        Ok(Self {
            source,
            shared: Shared::default(),
            format,
            keep_going: options.keep_going,
            skipped: Skipped::default(),
            lost: Lost::default(),
            last_ns: 0,
            origin_ns: None,
            rebase: options.rebase,
            sort: (sort_window > 0).then(|| Sort::new(sort_window)),
            held: None,
            held_payload: Vec::new(),
            ended: false,
        })
    }

    /// The format read.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What the trace records, as far as its format says; of CSV, from the first event on, what its columns say.
    pub fn facts(&self) -> Facts {
        let facts = self.format.facts();
        Facts { stages: self.source.stages().unwrap_or(facts.stages), ..facts }
    }

    /// Process and volume names so far.
    pub fn names(&self) -> &Names {
        &self.shared.names
    }

    /// The bytes that came with the event returned last: a message's text, say. Empty for most.
    pub fn payload(&self) -> &[u8] {
        &self.shared.payload
    }

    /// Both, as writers take them.
    pub fn texts(&self) -> Texts<'_> {
        Texts { names: &self.shared.names, payload: &self.shared.payload }
    }

    /// Where the event returned last stands. With a sort window: where reading is.
    pub fn place(&self) -> Place {
        self.source.place()
    }

    /// What [`Options::keep_going`] left out so far.
    pub fn skipped(&self) -> Skipped {
        Skipped { bytes: self.source.skipped_bytes(), ..self.skipped.clone() }
    }

    /// What the recorder lost, as far as the trace was read.
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// A message that says that events are missing becomes what it says.
    #[inline]
    fn mark_gap(&mut self, event: Event) -> Event {
        let event =
            if event.action == Action::Message { gap::told(event, &self.shared.payload) } else { event };
        if let Action::Lost { events } = event.action {
            self.lost.add(events);
        }
        event
    }

    fn note_fault(&mut self, error: TraceError) {
        self.skipped.faults += 1;
        if self.skipped.first.len() < FAULTS_KEPT {
            self.skipped.first.push(error);
        }
    }

    /// The next event in the source's order, or in order of time within the sort window.
    fn pull(&mut self) -> Result<Option<Event>, TraceError> {
        let Some(sort) = &mut self.sort else { return self.source.next(&mut self.shared) };
        while !sort.at_end && sort.heap.len() <= sort.window {
            match self.source.next(&mut self.shared)? {
                Some(event) => sort.push(event, &self.shared.payload),
                None => sort.at_end = true,
            }
        }
        Ok(sort.heap.pop().map(|Reverse(held)| {
            self.shared.payload.clear();
            self.shared.payload.extend_from_slice(&held.payload);
            held.event
        }))
    }

    /// The next event whose time the one behind it does not show to be wrong. A single time far ahead would make every later
    /// event run backwards, so each event is held until the next one is known.
    fn pull_plausible(&mut self) -> Result<Option<Event>, TraceError> {
        loop {
            let Some(held) = self.held else {
                match self.pull()? {
                    Some(event) => self.hold(event),
                    None => return Ok(None),
                }
                continue;
            };
            let next = self.pull()?;
            match next {
                Some(next) if next.time_ns < self.last_ns => return self.in_order(next).map(Some),
                Some(next) if next.time_ns < held.time_ns => {
                    let message = format!(
                        "time jumps ahead to {} ns in the record before this one, and back to {} ns",
                        held.time_ns, next.time_ns
                    );
                    self.hold(next);
                    return Err(TraceError::new(ErrorKind::OutOfOrder, self.place(), message));
                }
                Some(next) => self.hold(next),
                None => {
                    self.held = None;
                    std::mem::swap(&mut self.shared.payload, &mut self.held_payload);
                }
            }
            return Ok(Some(held));
        }
    }

    /// Keeps `event` for the next call; the payload of the event kept until now becomes the reader's.
    fn hold(&mut self, event: Event) {
        self.held = Some(event);
        std::mem::swap(&mut self.shared.payload, &mut self.held_payload);
    }

    /// Checks and rebases the time of an event.
    #[inline]
    fn in_order(&mut self, mut event: Event) -> Result<Event, TraceError> {
        if event.time_ns < self.last_ns {
            let message = format!(
                "time runs backwards: {} ns after {} ns; a sort window puts near neighbours in order",
                event.time_ns, self.last_ns
            );
            return Err(TraceError::new(ErrorKind::OutOfOrder, self.place(), message));
        }
        self.last_ns = event.time_ns;
        if self.rebase {
            if self.origin_ns.is_none() && !event.action.is_note() {
                self.origin_ns = Some(event.time_ns);
            }
            event.time_ns = self.origin_ns.map_or(0, |origin| event.time_ns - origin);
        }
        Ok(event)
    }
}

impl Iterator for TraceReader {
    type Item = Result<Event, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            // A sort window puts a time far ahead last, where it harms nobody.
            let pulled =
                if self.keep_going && self.sort.is_none() { self.pull_plausible() } else { self.pull() };
            let event = match pulled {
                Ok(Some(event)) => self.in_order(event),
                Ok(None) => {
                    self.ended = true;
                    return None;
                }
                Err(error) => Err(error),
            };
            match event {
                Err(error) if self.keep_going && error.kind != ErrorKind::Empty => self.note_fault(error),
                Err(error) => {
                    self.ended = true;
                    return Some(Err(error));
                }
                Ok(event) => return Some(Ok(self.mark_gap(event))),
            }
        }
        None
    }
}

/// Gives back the error that was met while the format was looked for.
struct Failing(Option<std::io::Error>);

impl Read for Failing {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// Events held back to be sorted.
struct Sort {
    heap: BinaryHeap<Reverse<Held>>,
    window: usize,
    pushed: u64,
    at_end: bool,
}

struct Held {
    event: Event,
    number: u64,
    payload: Box<[u8]>,
}

impl Sort {
    fn new(window: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(window.min(1 << 20) + 1), window, pushed: 0, at_end: false }
    }

    fn push(&mut self, event: Event, payload: &[u8]) {
        self.heap.push(Reverse(Held { event, number: self.pushed, payload: payload.into() }));
        self.pushed += 1;
    }
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.event.time_ns, self.number).cmp(&(other.event.time_ns, other.number))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Held {}
