//! A trace for those who keep tables: its events as rows of the CSV format (docs/traces.md), a batch at a time, and rows as a trace.

use std::io::Read;

use fairlift_trace::write::{CsvWriter, EventWriter as _};
use fairlift_trace::{Format, Options, TraceReader};

use super::args::ReadArguments;
use super::input::{Input, failure};
use crate::error::Failure;

/// Events of a batch.
const EVENTS: usize = 1 << 16;
/// What a trace is called that comes as rows.
const NAME: &str = "table";

/// The events of a trace as text of the CSV format.
pub struct TraceRows(Option<Input>);

impl TraceRows {
    /// Opens the trace called `name`.
    pub fn open(name: &str, arguments: &ReadArguments) -> Result<TraceRows, Failure> {
        Ok(TraceRows(Some(Input::open(name, arguments, false)?)))
    }

    /// The next events, a line each below the header; `None` after the last.
    ///
    /// # Errors
    /// What is wrong with the trace.
    pub fn batch(&mut self) -> Result<Option<String>, Failure> {
        let Some(input) = &mut self.0 else { return Ok(None) };
        let mut text = Vec::new();
        let mut writer = CsvWriter::new(&mut text);
        let mut events = 0;
        while events < EVENTS {
            let Some(event) = input.next()? else { break };
            let written = writer.write(&event, input.reader().texts());
            written.map_err(|e| Failure::internal(e.to_string()))?;
            events += 1;
        }
        writer.finish().map_err(|e| Failure::internal(e.to_string()))?;
        drop(writer);
        if events < EVENTS {
            self.0.take().map_or(Ok(()), Input::finish)?;
        }
        // The writer escapes what is no printable ASCII.
        let text = String::from_utf8(text).map_err(|e| Failure::internal(e.to_string()))?;
        Ok((events > 0).then_some(text))
    }
}

/// A trace whose rows, with their header, come from `rows`.
pub fn input(rows: impl Read + Send + 'static) -> Result<Input, Failure> {
    let options = Options { format: Some(Format::Csv), ..Options::default() };
    let reader = TraceReader::from_read(NAME, rows, &options).map_err(|e| failure(&e, false))?;
    Ok(Input::of(reader, NAME, false))
}
