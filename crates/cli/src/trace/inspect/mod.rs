//! `fairlift inspect`: who did what in a trace, and where the time went.

mod figures;
pub(in crate::trace) mod messages;
mod table;

use std::io::{BufWriter, ErrorKind, Write as _};

use fairlift_trace::{Action, Event, Summary};

use super::args::{InspectArguments, InspectFormat};
use super::input::Input;
use super::output::cannot_write;
use crate::error::Failure;
use crate::json;
use crate::output::Output;
use figures::Inspection;
use messages::Messages;

/// Read all of it and print what it shows.
pub fn inspect(arguments: &InspectArguments) -> Result<(), Failure> {
    let output = Output::open(arguments.output.as_deref())?;
    let mut input = Input::open(&arguments.trace, &arguments.read, false)?;
    let format = input.reader().format();
    let mut summary = Summary::of(format.facts());
    let mut messages = Messages::default();
    let mut lines = match (arguments.notes, arguments.output_format) {
        (true, InspectFormat::Table) => {
            Some(BufWriter::new(output.stream().map_err(|e| cannot_write("-", &e))?))
        }
        _ => None,
    };
    let mut tells = Tells::default();
    while let Some(event) = input.next()? {
        summary.add(&event);
        if event.action == Action::Message {
            let line = messages.add(&event, input.reader().payload());
            match lines.as_mut().map(|out| out.write_all(line.as_bytes())) {
                // Whoever reads has seen enough.
                Some(Err(error)) if error.kind() == ErrorKind::BrokenPipe => return Ok(()),
                Some(Err(error)) => return Err(cannot_write(&arguments.trace, &error)),
                _ => {}
            }
        }
        tells.add(&event);
    }
    if let Some(mut out) = lines {
        out.write_all(b"\n").and_then(|()| out.flush()).map_err(|e| cannot_write("-", &e))?;
    }
    let inspection = Inspection::of(arguments, &input, &summary, &tells, messages);
    input.finish()?;
    let text = match arguments.output_format {
        InspectFormat::Table => table::table(&inspection, output.style()),
        InspectFormat::Json => json::text(&inspection),
    };
    output.write(&text)
}

/// What a trace turns out to tell.
#[derive(Clone, Copy, Debug)]
struct Tells {
    arrivals: u64,
    with_pid: u64,
    with_response: u64,
    completions: u64,
    queue_events: bool,
    whole_seconds: bool,
}

impl Default for Tells {
    fn default() -> Tells {
        Tells {
            arrivals: 0,
            with_pid: 0,
            with_response: 0,
            completions: 0,
            queue_events: false,
            whole_seconds: true,
        }
    }
}

impl Tells {
    fn add(&mut self, event: &Event) {
        self.queue_events |= event.action == Action::Queue;
        self.completions += u64::from(event.action == Action::Complete);
        if matches!(event.action, Action::Queue | Action::Issue) {
            self.arrivals += 1;
            self.with_pid += u64::from(event.pid.is_some());
            self.with_response += u64::from(event.response_ns.is_some());
            self.whole_seconds &= event.time_ns.is_multiple_of(1_000_000_000);
        }
    }
}
