//! DiskSim's drive files, made into device files.
//!
//! Give the file that describes the system (`.parv`), because the bus a drive was measured on stands there, or the
//! drive's own (`.diskspecs`); the layout (`.model`) and the seek curve (`.seek`) are found through it. What the
//! parameters mean is in DiskSim's manual (version 4.0); the model is `device/drive`.

mod drive;
mod seek;
mod syntax;

use std::path::Path;

use super::spec::{DeviceSpec, SpecError};

/// A device file made from someone else's files.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The drive's name in its file.
    pub name: String,
    /// The device file.
    pub text: String,
    /// What could not be taken over exactly, a sentence each.
    pub notes: Vec<String>,
}

/// Read DiskSim's `path`; `disk` picks one when it describes several.
///
/// # Errors
/// With file, line, word and what would be right, when a file is missing, malformed or uses what is not supported.
pub fn disksim(path: &Path, disk: Option<&str>) -> Result<Imported, SpecError> {
    let tree = syntax::read(path)?;
    let imported = drive::import(&tree, path, disk)?;
    // What was written is read again at once: a fault in it would be ours or in numbers that contradict one another.
    DeviceSpec::parse(&imported.text, &imported.name).map_err(|error| SpecError {
        origin: path.to_string_lossy().into_owned(),
        line: None,
        message: format!("{}: {}", imported.name, error.message),
    })?;
    Ok(imported)
}
