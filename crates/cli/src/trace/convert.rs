//! `fairlift convert`: one format to another.

use std::io::ErrorKind;

use fairlift_trace::{Action, Format};

use super::args::{At, ConvertArguments, ReadArguments, Target};
use super::input::Input;
use super::output::{TraceFile, cannot_write, target};
use crate::error::{Failure, note};

/// Events looked at for a queue event, when an iolog is written.
const LOOK_AHEAD: usize = 1 << 20;

/// Read all of it, write all of it, say what was lost.
pub fn convert(arguments: &ConvertArguments) -> Result<(), Failure> {
    let target = target(&arguments.output, arguments.to)?;
    let mut input = Input::open(&arguments.input, &arguments.read, arguments.rebase)?;
    let at = match (arguments.at, target) {
        (Some(at), _) => at,
        (None, Target::Iolog | Target::Iolog2) => arrivals(&arguments.input, &arguments.read)?,
        (None, _) => At::Queue,
    };
    let mut file = TraceFile::create(&arguments.output, target, at)?;
    let mut events = 0u64;
    while let Some(event) = input.next()? {
        events += 1;
        match file.writer().write(&event, input.reader().texts()) {
            // Whoever reads our output has seen enough.
            Err(error) if error.kind() == ErrorKind::BrokenPipe && arguments.output == "-" => return Ok(()),
            Err(error) => return Err(cannot_write(&arguments.output, &error)),
            Ok(()) => {}
        }
    }
    let format = input.reader().format();
    input.finish()?;
    let losses = file.finish()?;
    if !losses.is_empty() {
        note(&format!("{} cannot hold {losses}", arguments.output));
    }
    if arguments.output != "-" {
        note(&format!("{events} events of format {format} written to {}", arguments.output));
    }
    Ok(())
}

/// What arrives in a trace: queue events, or issues where it has none. Standard input cannot be read twice.
fn arrivals(name: &str, read: &ReadArguments) -> Result<At, Failure> {
    if name == "-" {
        return Ok(At::Queue);
    }
    let mut input = Input::open(name, &ReadArguments { keep_going: true, ..read.clone() }, false)?;
    if input.reader().format() == Format::Iolog {
        return Ok(At::Queue);
    }
    let mut has_issues = false;
    for _ in 0..LOOK_AHEAD {
        match input.next()? {
            Some(event) if event.action == Action::Queue => return Ok(At::Queue),
            Some(event) => has_issues |= event.action == Action::Issue,
            None => break,
        }
    }
    Ok(if has_issues { At::Issue } else { At::Queue })
}
