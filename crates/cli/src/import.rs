//! `fairlift devices import`: someone else's drive files made into device files.

use std::path::Path;

use fairlift_sim::device::{DeviceSpec, SpecError, import};

use crate::args::ImportArguments;
use crate::error::{self, Failure};
use crate::output::Output;

/// Import a drive and write its device file.
pub fn import(arguments: &ImportArguments) -> Result<(), Failure> {
    let output = Output::open(arguments.output.as_deref())?;
    let imported = import::disksim(&arguments.file, arguments.disk.as_deref()).map_err(|e| failure(&e))?;
    for note in &imported.notes {
        error::warn(&format!("{}: {note}", imported.name));
    }
    output.write(&imported.text)
}

/// A device by preset, device file, or DiskSim file.
pub fn device(name: &str) -> Result<DeviceSpec, Failure> {
    let path = Path::new(name);
    let foreign = path.extension().is_some_and(|ending| ending == "parv" || ending == "diskspecs");
    if !foreign {
        return DeviceSpec::load(name).map_err(|e| failure(&e));
    }
    let imported = import::disksim(path, None).map_err(|e| failure(&e))?;
    for note in &imported.notes {
        error::warn(&format!("{name}: {note}"));
    }
    DeviceSpec::parse(&imported.text, name).map_err(|e| failure(&e))
}

/// What is wrong with a device's file, with its place.
pub fn failure(error: &SpecError) -> Failure {
    let place = match error.line {
        Some(line) => format!("{}:{line}", error.origin),
        None => error.origin.clone(),
    };
    Failure::new(error.message.trim_end_matches('.')).at(place)
}
