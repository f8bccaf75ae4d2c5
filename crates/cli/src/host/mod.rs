//! `fairlift host`: this machine's disk, scheduler and groups as a scenario.
//!
//! Everything is read from files, below `--root` if that is given: `/sys/block`, `/sys/fs/cgroup`, `/proc/sys/kernel/osrelease`.
//! What is not there, or what the lab has not, becomes a comment.

mod disk;
mod files;
mod groups;

use std::fmt::Write as _;

use fairlift_sim::kernel::Rules;
use fairlift_sim::kernel::version::{TODAY, VERSIONS};

use crate::args::HostArguments;
use crate::error::Failure;
use crate::output::Output;
use disk::Disk;
use files::Files;

/// Print it.
pub fn host(arguments: &HostArguments) -> Result<(), Failure> {
    let output = Output::open(arguments.output.as_deref())?;
    let files = Files::below(&arguments.root);
    let disk = Disk::find(&files, arguments.disk.as_deref())?;
    output.write(&scenario(&files, &disk))
}

fn scenario(files: &Files, disk: &Disk) -> String {
    let release = files.word("proc/sys/kernel/osrelease");
    let rules = nearest_kernel(release.as_deref());
    let mut out = String::from(
        "# Made by 'fairlift host'. Replace [job] by your own, or add this as a column to a comparison:\n",
    );
    let _ = writeln!(out, "#   fairlift compare job.fio --host THIS-FILE\n");
    let _ = writeln!(out, "title = {}", quoted(&format!("as {} is", disk.name)));
    out.push_str(&kernel(release.as_deref(), rules));
    out.push_str(&disk.device());
    out.push_str(&disk.scheduler(files, rules));
    out.push_str(
        "jobs = \"\"\"\n[job]\nrw=randread\nbs=4k\nsize=1g\ndirect=1\nruntime=10\ntime_based\n\"\"\"\n",
    );
    out.push_str(&groups::read(files, disk));
    out
}

fn kernel(release: Option<&str>, rules: &Rules) -> String {
    let version = quoted(rules.version);
    match release {
        None => format!("kernel = {version}   # proc/sys/kernel/osrelease cannot be read: today's\n"),
        Some(release) => format!("kernel = {version}   # runs {}\n", plain(release)),
    }
}

/// The newest of the lab's kernels that is no newer than this one, else the oldest.
fn nearest_kernel(release: Option<&str>) -> &'static Rules {
    let Some(release) = release.and_then(numbers) else { return TODAY };
    let mut known = VERSIONS.iter().rev();
    known.find(|rules| numbers(rules.version).is_some_and(|v| v <= release)).unwrap_or(&VERSIONS[0])
}

/// `6.12.117-amd64` as 6, 12, 117.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let end = version.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(version.len());
    let mut parts = version[..end].split('.').map(str::parse);
    let mut next = |or: Option<u32>| parts.next().map_or(or, Result::ok);
    Some([next(None)?, next(Some(0))?, next(Some(0)).unwrap_or(0)])
}

/// As a TOML string.
fn quoted(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

/// For a comment: one line, nothing that a terminal obeys.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group's folder may be called nearly anything.
    #[test]
    fn strings_are_read_back_as_they_were() {
        for text in ["plain", "a\"b\\c", "new\nline\u{1b}[0m", "\u{e9}\u{85}"] {
            let read: toml::Table = toml::from_str(&format!("x = {}", quoted(text))).expect("TOML");
            assert_eq!(read["x"].as_str(), Some(text));
        }
    }

    #[test]
    fn the_nearest_kernel_is_not_newer() {
        let version = |release| nearest_kernel(Some(release)).version;
        assert_eq!(version("6.18.44-generic"), "6.18");
        assert_eq!(version("6.17.2"), "6.12");
        assert_eq!(version("6.12.117+deb12-amd64"), "6.12");
        assert_eq!(version("5.4.0"), "2.6.39");
        assert_eq!(version("2.6.31.5"), "2.6.31");
        assert_eq!(version("2.6.9"), "2.6.28");
        assert_eq!(nearest_kernel(None).version, TODAY.version);
        assert_eq!(version("strange"), TODAY.version);
    }
}
