//! What several test files need.
#![allow(dead_code)] // Each file uses its part.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A file of `tests/data`.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

pub fn text_of(name: &str) -> String {
    std::fs::read_to_string(data(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The decompressed content of such a file.
pub fn xz(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(data(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    liblzma::read::XzDecoder::new(file).read_to_end(&mut bytes).expect("good xz");
    bytes
}

/// An empty directory of one test.
pub fn scratch(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a directory to write in");
    path
}

/// Runs a tool and gives what it prints. `None`, said aloud, when it is not installed.
pub fn run(tool: &str, arguments: &[&str], directory: &Path) -> Option<String> {
    let output = Command::new(tool).args(arguments).current_dir(directory).stdin(Stdio::null()).output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("SKIPPED: {tool} cannot be run here: {error}");
            return None;
        }
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{tool} {arguments:?} failed:\n{text}\n{errors}");
    Some(text + &errors)
}
