//! Planted bugs: each file `mutants/NAME` describes one deliberate fault of the core or of its side of the kernel module,
//! as an exact piece of source and what to put in its place. `run` plants them one by one in a copy of the workspace and runs
//! the tests of that crate there; a fault that no test notices *survives*, and that is an error.
//!
//! ```text
//! breaks: which promise the fault breaks, in one line
//! file: crates/core/src/queue/merge.rs
//! --- old
//! the exact text, found once in the file (line ends behind it do not count)
//! --- new
//! the faulty one
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};

const USAGE: &str = "usage: mutants list | mutants run [NAME...]";
/// A mutant that keeps the tests busy for so many times as long as they take without one has been noticed too.
const PATIENCE: u32 = 5;

/// The crates whose faults these are; the first unless the file is in another's folder.
const PACKAGES: [&str; 2] = ["fairlift-core", "fairlift-kernel"];

struct Mutant {
    name: String,
    breaks: String,
    file: PathBuf,
    old: String,
    new: String,
}

impl Mutant {
    /// The crate whose tests are to catch it.
    fn package(&self) -> &'static str {
        PACKAGES[usize::from(self.file.starts_with("crates/kernel"))]
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let result = match args.split_first() {
        Some((command, [])) if command == "list" => list(),
        Some((command, names)) if command == "run" => run(names),
        _ => Err(USAGE.to_string()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("mutants: {message}");
            ExitCode::from(2)
        }
    }
}

fn list() -> Result<bool, String> {
    let mut out = io::stdout().lock();
    for mutant in read_all()? {
        // Whoever reads may have seen enough.
        if writeln!(out, "{:34} {}", mutant.name, mutant.breaks).is_err() {
            break;
        }
    }
    Ok(true)
}

fn run(names: &[String]) -> Result<bool, String> {
    let mut mutants = read_all()?;
    if let Some(unknown) = names.iter().find(|name| mutants.iter().all(|m| m.name != **name)) {
        return Err(format!("no mutant is called {unknown}; see `mutants list`"));
    }
    mutants.retain(|m| names.is_empty() || names.contains(&m.name));
    let mut scratch = Scratch::new().map_err(|e| format!("copying the workspace: {e}"))?;
    let started = Instant::now();
    // Without this "caught" would mean nothing.
    let mut longest = Duration::ZERO;
    for package in PACKAGES.iter().filter(|package| mutants.iter().any(|m| m.package() == **package)) {
        let begun = Instant::now();
        match scratch.test(package) {
            Verdict::Survived => longest = longest.max(begun.elapsed()),
            Verdict::Caught(by) => return Err(format!("{package}: tests fail without any mutant: {by}")),
            Verdict::Broken(what) => return Err(format!("{package} does not build: {what}")),
        }
    }
    scratch.tests_max = longest * PATIENCE;
    let mut caught = 0;
    for mutant in &mutants {
        let verdict = scratch.plant(mutant)?;
        caught += usize::from(matches!(verdict, Verdict::Caught(_)));
        match verdict {
            Verdict::Caught(by) => println!("caught    {:34} {by}", mutant.name),
            Verdict::Survived => println!("SURVIVED  {:34} {}", mutant.name, mutant.breaks),
            Verdict::Broken(what) => println!("BROKEN    {:34} {what}", mutant.name),
        }
    }
    println!("{caught} of {} caught in {} s", mutants.len(), started.elapsed().as_secs());
    Ok(caught == mutants.len())
}

// ---- the descriptions -------------------------------------------------------------------------------------------------------

fn read_all() -> Result<Vec<Mutant>, String> {
    let entries = fs::read_dir("mutants").map_err(|e| format!("mutants/: {e}"))?;
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<Mutant, String> {
    let place = path.display();
    let text = fs::read_to_string(path).map_err(|e| format!("{place}: {e}"))?;
    parse(&text, path).ok_or_else(|| format!("{place}: expected breaks:, file:, --- old, --- new"))
}

/// How often the text that `mutant` replaces is in its file, which must be once.
fn places(mutant: &Mutant, source: &str) -> Result<(), String> {
    match source.matches(&mutant.old).count() {
        1 => Ok(()),
        found => Err(format!("its text is in {} {found} times", mutant.file.display())),
    }
}

fn parse(text: &str, path: &Path) -> Option<Mutant> {
    let (head, rest) = text.split_once("--- old\n")?;
    let (old, new) = rest.split_once("--- new\n")?;
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some(Mutant {
        name: path.file_name()?.to_str()?.to_string(),
        breaks: field("breaks:")?.to_string(),
        file: PathBuf::from(field("file:")?),
        old: old.trim_end_matches('\n').to_string(),
        new: new.trim_end_matches('\n').to_string(),
    })
}

// ---- the copy ---------------------------------------------------------------------------------------------------------------

enum Verdict {
    /// By which test.
    Caught(String),
    Survived,
    /// It does not even build, or its place is gone.
    Broken(String),
}

/// A copy of the workspace with a target directory of its own, kept between runs so that little is built twice.
struct Scratch {
    root: PathBuf,
    /// Tests that run longer have noticed.
    tests_max: Duration,
}

impl Scratch {
    fn new() -> io::Result<Scratch> {
        let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        let root = target.join("mutants");
        fs::create_dir_all(&root)?;
        let root = root.canonicalize()?;
        for entry in ["Cargo.toml", "Cargo.lock", "crates", "kernel", "docs"] {
            copy(Path::new(entry), &root.join(entry))?;
        }
        Ok(Scratch { root, tests_max: Duration::MAX })
    }

    /// Plant `mutant`, run the tests, and put the file back.
    fn plant(&self, mutant: &Mutant) -> Result<Verdict, String> {
        let path = self.root.join(&mutant.file);
        let Ok(text) = fs::read_to_string(&path) else {
            return Ok(Verdict::Broken(format!("{} is gone", mutant.file.display())));
        };
        if let Err(why) = places(mutant, &text) {
            return Ok(Verdict::Broken(why));
        }
        let place = |e: io::Error| format!("{}: {e}", path.display());
        fs::write(&path, text.replacen(&mutant.old, &mutant.new, 1)).map_err(place)?;
        let verdict = self.test(mutant.package());
        fs::write(&path, text).map_err(place)?;
        Ok(verdict)
    }

    fn test(&self, package: &str) -> Verdict {
        let build = self.cargo(&["test", "--no-run"], package).output();
        match build {
            Err(e) => return Verdict::Broken(e.to_string()),
            Ok(output) if !output.status.success() => {
                let errors = String::from_utf8_lossy(&output.stderr);
                let first = errors.lines().find(|line| line.starts_with("error")).unwrap_or("does not build");
                return Verdict::Broken(first.to_string());
            }
            Ok(_) => {}
        }
        let log = self.root.join("tests.log");
        let tests = fs::File::create(&log)
            .and_then(|out| self.cargo(&["test", "--tests"], package).stdout(out).spawn());
        let Ok(mut tests) = tests else { return Verdict::Broken("the tests do not start".to_string()) };
        let started = Instant::now();
        loop {
            match tests.try_wait() {
                Ok(Some(status)) if status.success() => return Verdict::Survived,
                Ok(Some(_)) => return Verdict::Caught(first_failure(&log)),
                Ok(None) if started.elapsed() < self.tests_max => thread::sleep(Duration::from_millis(20)),
                Ok(None) => {
                    let _ = tests.kill();
                    let _ = tests.wait();
                    return Verdict::Caught(format!("no end within {} s", self.tests_max.as_secs()));
                }
                Err(e) => return Verdict::Broken(e.to_string()),
            }
        }
    }

    /// cargo for a copied crate; it stops at the first test file with a failure.
    fn cargo(&self, args: &[&str], package: &str) -> Command {
        let mut command = Command::new("cargo");
        command.current_dir(&self.root).args(args).args(["--package", package]);
        command.env("CARGO_TARGET_DIR", self.root.join("target")).env("RUST_BACKTRACE", "0");
        command.env("PROPTEST_FAILURE_PERSISTENCE", "off").stdin(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn first_failure(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let failure = text.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    failure.unwrap_or("the tests ended abnormally").to_string()
}

/// Copy a file or a tree; files that are equal already keep their time, so that cargo need not build them again.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        let text = fs::read(from)?;
        return if fs::read(to).is_ok_and(|there| there == text) { Ok(()) } else { fs::write(to, text) };
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let old = entry?.path();
        let gone = old.file_name().is_some_and(|name| !from.join(name).exists());
        if gone && old.is_dir() {
            fs::remove_dir_all(old)?;
        } else if gone {
            fs::remove_file(old)?;
        }
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A planted bug whose place is gone would be found only when all are run, which takes hours.
    #[test]
    fn every_planted_bug_has_its_place() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        env::set_current_dir(root).expect("the workspace");
        let mutants = read_all().expect("mutants/ is readable");
        assert!(!mutants.is_empty());
        let lost: Vec<String> = mutants
            .iter()
            .filter_map(|mutant| {
                let source = fs::read_to_string(&mutant.file).unwrap_or_default();
                places(mutant, &source).err().map(|why| format!("{}: {why}", mutant.name))
            })
            .collect();
        assert_eq!(lost, Vec::<String>::new());
    }
}
