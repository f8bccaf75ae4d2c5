//! Cuts a stream into lines and gives them to a format's parser.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use super::{Input, NamedInput, Shared, Source};
use crate::error::{ErrorKind, Place, Problem, TraceError};
use crate::event::Event;

/// The longest line that is read. Longer ones are no trace.
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;
const BUFFER_BYTES: usize = 256 << 10;

/// What a text format knows: one line in, at most one event out.
pub(crate) trait LineParser: Send {
    /// The event of a line without its end. `None`: a header, a comment, something that is not block I/O.
    fn parse(&mut self, line: &[u8], shared: &mut Shared) -> Result<Option<Event>, Problem>;
    /// Whether lines after this one are no longer trace (a summary, say).
    fn is_done(&self) -> bool {
        false
    }
    /// Whether events of several stages may be there; `None`: as the format says.
    fn stages(&self) -> Option<bool> {
        None
    }
}

/// The events of a text trace.
pub(crate) struct LineSource {
    file: Arc<str>,
    input: BufReader<Input>,
    line: Vec<u8>,
    parser: Box<dyn LineParser>,
    /// Lines begun, records returned, bytes before the current line and behind it.
    line_number: u64,
    record: u64,
    start: u64,
    end: u64,
    at_end: bool,
}

impl LineSource {
    pub fn new(named: NamedInput, parser: Box<dyn LineParser>) -> Self {
        let input = BufReader::with_capacity(BUFFER_BYTES, named.input);
        let (file, line) = (named.file, Vec::with_capacity(512));
        Self { file, input, line, parser, line_number: 0, record: 0, start: 0, end: 0, at_end: false }
    }

    /// Reads the next line with its end into `self.line`; false at the end of the file.
    fn read_line(&mut self) -> Result<bool, TraceError> {
        self.line.clear();
        self.start = self.end;
        let read = (&mut self.input).take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut self.line);
        match read {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.end += count as u64;
                self.line_number += 1;
                if count == LINE_BYTES_MAX && self.line.last() != Some(&b'\n') {
                    self.skip_to_line_end()?;
                    let message = format!("this line is longer than {LINE_BYTES_MAX} bytes");
                    return Err(TraceError::new(ErrorKind::Corrupt, self.place(), message));
                }
                Ok(true)
            }
            Err(error) => {
                self.at_end = true;
                Err(TraceError::reading(self.place(), &error))
            }
        }
    }

    fn skip_to_line_end(&mut self) -> Result<(), TraceError> {
        loop {
            let (count, found) = match self.input.fill_buf() {
                Ok([]) => return Ok(()),
                Ok(bytes) => match bytes.iter().position(|&byte| byte == b'\n') {
                    Some(end) => (end + 1, true),
                    None => (bytes.len(), false),
                },
                Err(error) => {
                    self.at_end = true;
                    return Err(TraceError::reading(self.place(), &error));
                }
            };
            self.input.consume(count);
            self.end += count as u64;
            if found {
                return Ok(());
            }
        }
    }
}

impl Source for LineSource {
    fn next(&mut self, shared: &mut Shared) -> Result<Option<Event>, TraceError> {
        while !self.at_end && !self.parser.is_done() {
            if !self.read_line()? {
                self.at_end = true;
                if self.record == 0 {
                    let message = "no event in this file";
                    return Err(TraceError::new(ErrorKind::Empty, Place::file(&self.file), message));
                }
                return Ok(None);
            }
            let whole = self.line.ends_with(b"\n");
            let text = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            shared.payload.clear();
            match self.parser.parse(text, shared) {
                Ok(Some(event)) => {
                    self.record += 1;
                    return Ok(Some(event));
                }
                Ok(None) => {}
                Err(mut problem) => {
                    // Counted as seen, so that a file of faults is not called empty as well.
                    self.record += 1;
                    if !whole {
                        problem.kind = ErrorKind::Truncated;
                        problem.message.push_str("; the file ends in the middle of this line");
                        self.at_end = true;
                    }
                    return Err(problem.at(self.place()));
                }
            }
        }
        Ok(None)
    }

    fn stages(&self) -> Option<bool> {
        self.parser.stages()
    }

    fn place(&self) -> Place {
        Place { file: self.file.clone(), record: self.record, line: self.line_number, offset: self.start }
    }
}
