//! What programs do, as async functions over the simulated system calls.
//!
//! [`parse`] takes a program's own command line and gives a [`Program`]: what it will do, checked and ready to run. What it
//! prints and measures becomes a [`crate::result::ProgramResult`]. `docs/programs.md` lists each program's command line.

mod dd;
pub mod fio;
mod fs_mark;
mod fsync_tester;
mod iozone;
mod metric;
mod options;
mod pace;
mod process;
pub mod replay;
mod shell;
mod small;
mod spawn;
mod tiotest;

use std::fmt;
use std::future::Future;
use std::pin::Pin;

pub use metric::{Better, Figure, ProgramMetric};
pub use process::{Console, Failure, Process};
pub use spawn::{ProgramSpec, Programs, spawn};

use crate::kernel::Rules;
use crate::scheduler::nearest;

/// A program's run: ends with the program.
pub type Run<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>>;

/// A program with its command line read and checked.
pub trait Program: fmt::Debug + Send + Sync {
    /// The original's name.
    fn name(&self) -> &'static str;

    /// The figures it reports when it ends.
    fn metrics(&self) -> Vec<ProgramMetric>;

    /// How many of its processes and threads live at once, itself included.
    fn tasks(&self) -> usize {
        1
    }

    /// Does it go on for ever? Such a program has to be stopped when the others have ended.
    fn is_endless(&self) -> bool {
        false
    }

    /// Does it need files, and with them a file system?
    fn needs_files(&self) -> bool {
        true
    }

    /// Whole devices it opens by name.
    fn devices(&self) -> Vec<String> {
        Vec::new()
    }

    /// Nanoseconds it takes at least under a kernel, as far as that is known.
    fn least_ns(&self, _rules: &Rules) -> u64 {
        0
    }

    /// Do it.
    fn run(&self, process: Process) -> Run<'_>;
}

/// What is wrong with a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError {
    /// The program; empty when there is no telling.
    pub program: String,
    /// What is wrong, naming the word.
    pub message: String,
    /// The right word nearest to the wrong one.
    pub nearest: Option<String>,
    /// What would be accepted.
    pub allowed: String,
}

impl ProgramError {
    fn new(program: &str, message: impl Into<String>) -> ProgramError {
        ProgramError {
            program: program.to_owned(),
            message: message.into(),
            nearest: None,
            allowed: String::new(),
        }
    }

    fn allowing(mut self, allowed: impl Into<String>) -> ProgramError {
        self.allowed = allowed.into();
        self
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.program.is_empty() {
            write!(f, "{}: ", self.program)?;
        }
        write!(f, "{}", self.message)?;
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean '{nearest}'?")?;
        }
        if !self.allowed.is_empty() {
            write!(f, " (allowed: {})", self.allowed)?;
        }
        Ok(())
    }
}

impl std::error::Error for ProgramError {}

type Reader = fn(&[String]) -> Result<Box<dyn Program>, ProgramError>;

/// All programs: name and reader of the arguments.
const PROGRAMS: &[(&str, Reader)] = &[
    ("iozone", iozone::parse),
    ("fs_mark", fs_mark::parse),
    ("fsync-tester", fsync_tester::parse),
    ("tiotest", tiotest::parse),
    ("dd", dd::parse),
    ("rm", small::parse_rm),
    ("sleep", small::parse_sleep),
    ("sync", small::parse_sync),
    ("sh", shell::parse_sh),
];

/// Names of all programs.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    PROGRAMS.iter().map(|(name, _)| *name)
}

/// Read a command line as a shell would: words, quotes, and a small grammar of `;`, `while :` and `time` (see `docs/programs.md`).
///
/// # Errors
/// When it names no program, or says something the program does not know.
pub fn parse(command: &str) -> Result<Box<dyn Program>, ProgramError> {
    shell::parse_command(command)
}

/// Read one program's command line, already split into words.
fn parse_words(words: &[String]) -> Result<Box<dyn Program>, ProgramError> {
    let Some((first, arguments)) = words.split_first() else {
        return Err(ProgramError::new("", "the command is empty").allowing(name_list()));
    };
    // Whatever folder the program lies in.
    let name = first.rsplit('/').next().unwrap_or(first);
    match PROGRAMS.iter().find(|(known, _)| *known == name) {
        Some((_, read)) => read(arguments),
        None => Err(ProgramError {
            nearest: nearest(name, names()),
            ..ProgramError::new("", format!("unknown program '{}'", options::shorten(first)))
                .allowing(name_list())
        }),
    }
}

/// Words that a shell has split already as one command line, for [`parse`]: each word is quoted where it has to be.
pub fn command_of(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn name_list() -> String {
    names().collect::<Vec<_>>().join(", ")
}
