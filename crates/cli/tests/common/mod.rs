//! Running the program in a folder of its own.

#![allow(dead_code, reason = "every test file uses its own part")]

pub mod served;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed again.
pub struct Folder(PathBuf);

impl Folder {
    /// An empty folder.
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("fairlift-test-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// With a file in it.
    pub fn with(self, name: &str, content: impl AsRef<[u8]>) -> Folder {
        fs::write(self.0.join(name), content).unwrap();
        self
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Names of the files in it.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The program, about to start here with these arguments (separated by blanks).
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fairlift"));
        command.current_dir(&self.0).args(arguments.split_whitespace());
        command.stdin(Stdio::null()).env_remove("NO_COLOR");
        command
    }

    /// What it answers.
    pub fn run(&self, arguments: &str) -> Answer {
        Answer::of(self.command(arguments).output().unwrap())
    }

    /// What it answers, with these words after the arguments as they are, blanks and all.
    pub fn run_words(&self, arguments: &str, words: &[&str]) -> Answer {
        Answer::of(self.command(arguments).args(words).output().unwrap())
    }

    /// What it answers to `input` on standard input.
    pub fn run_with_input(&self, arguments: &str, input: &[u8]) -> Answer {
        let mut command = self.command(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // It may stop reading before the end.
        let _ = child.stdin.take().unwrap().write_all(input);
        Answer::of(child.wait_with_output().unwrap())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the program answered.
#[derive(Debug)]
pub struct Answer {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Answer {
    fn of(output: Output) -> Answer {
        Answer {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Its output, if it worked.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self.stdout
    }

    /// Its complaint: exit code 2, and nothing on standard output.
    #[track_caller]
    pub fn complaint(self) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (2, ""), "{}", self.stderr);
        assert!(!self.stderr.contains("internal error"), "{}", self.stderr);
        self.stderr
    }
}

/// Two jobs that take milliseconds to simulate.
pub const SMALL: &str = "\
[global]
direct=1
bs=4k
size=1m
[sequential]
rw=read
numjobs=2
[mixed]
rw=randrw
ioengine=libaio
iodepth=4
fsync=16
";

/// The text of a page without its blocks and spans of code.
pub fn prose(page: &str) -> String {
    let mut out = String::new();
    let mut fenced = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            out.extend(line.split('`').step_by(2));
            out.push('\n');
        }
    }
    out
}
