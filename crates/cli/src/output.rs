//! Where results go: standard output, or a file that is either complete or not there.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::cleanup::Unfinished;
use crate::error::Failure;
use crate::style::Style;

/// Where results go.
#[derive(Debug)]
pub enum Output {
    /// Standard output.
    Stdout,
    /// A file, written beside its place and moved there when it is complete.
    File(Pending),
    /// A pipe or device such as /dev/null, which must not be replaced by a file.
    Special(PathBuf, File),
}

/// A file that has not its name yet; removed again unless it gets it.
#[derive(Debug)]
pub struct Pending {
    path: PathBuf,
    temporary: PathBuf,
    file: File,
    /// Until it has its name.
    unfinished: Option<Unfinished>,
}

impl Output {
    /// Make sure that the results can be written, before they are computed.
    pub fn open(path: Option<&Path>) -> Result<Output, Failure> {
        Output::open_for("--output", path)
    }

    /// As [`Output::open`], for a file that `option` named.
    pub fn open_for(option: &'static str, path: Option<&Path>) -> Result<Output, Failure> {
        let Some(path) = path else { return Ok(Output::Stdout) };
        let fail =
            |what: String| Failure::new(format!("cannot write '{}': {what}", path.display())).at(option);
        if path.is_dir() {
            return Err(fail("it is a directory".to_owned()));
        }
        // A link stays a link: it is the file behind it that is replaced.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if path.exists() && !path.is_file() {
            let file = File::options().write(true).open(path).map_err(|e| fail(reason(&e)))?;
            return Ok(Output::Special(path.clone(), file));
        }
        let name = path.file_name().ok_or_else(|| fail("it has no file name".to_owned()))?;
        let mut temporary = std::ffi::OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}.tmp", std::process::id()));
        let temporary = path.with_file_name(temporary);
        match File::create_new(&temporary) {
            Ok(file) => {
                let unfinished = Some(Unfinished::new(&temporary));
                Ok(Output::File(Pending { path: path.to_owned(), temporary, file, unfinished }))
            }
            Err(e) => Err(fail(reason(&e))),
        }
    }

    /// How to stress words there.
    pub fn style(&self) -> Style {
        match self {
            Output::Stdout => Style::of(&io::stdout()),
            Output::File(_) | Output::Special(..) => Style::Plain,
        }
    }

    /// To write to it bit by bit; [`Output::publish`] follows.
    pub fn stream(&self) -> io::Result<Box<dyn Write + Send>> {
        Ok(match self {
            Output::Stdout => Box::new(io::stdout()),
            Output::File(pending) => Box::new(pending.file.try_clone()?),
            Output::Special(_, file) => Box::new(file.try_clone()?),
        })
    }

    /// All was written to its stream.
    pub fn publish(self) -> io::Result<()> {
        match self {
            Output::File(mut pending) => pending.publish(&[]),
            Output::Stdout | Output::Special(..) => Ok(()),
        }
    }

    /// Write all of it.
    pub fn write(self, text: &str) -> Result<(), Failure> {
        let fail = |path: &Path, e: io::Error| {
            Failure::new(format!("cannot write '{}': {}", path.display(), reason(&e))).at("--output")
        };
        match self {
            Output::Stdout => print(text),
            Output::File(mut pending) => pending.publish(text.as_bytes()).map_err(|e| fail(&pending.path, e)),
            Output::Special(path, mut file) => file.write_all(text.as_bytes()).map_err(|e| fail(&path, e)),
        }
    }
}

impl Pending {
    fn publish(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.file.sync_all()?;
        fs::rename(&self.temporary, &self.path)?;
        if let Some(unfinished) = self.unfinished.take() {
            unfinished.keep();
        }
        Ok(())
    }
}

/// Write to standard output. A reader that has seen enough (`| head`) is no error.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::new(format!("cannot write to standard output: {}", reason(&e))))
        }
        _ => Ok(()),
    }
}

/// An operating system's error in plain words, the same on every system where the kind says enough.
pub fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "there is no such file or folder".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        ErrorKind::IsADirectory => "it is a directory".to_owned(),
        ErrorKind::NotADirectory => "a part of its path is not a folder".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        _ => error.to_string(),
    }
}
