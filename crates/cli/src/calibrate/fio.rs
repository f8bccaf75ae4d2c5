//! Running the series with fio on a real file or disk.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::measured::{self, Measured};
use super::series::{self, Target};
use crate::args::CalibrateArguments;
use crate::error::{Failure, note};
use crate::output::reason;

/// The smallest target: below, everything fits into a cache of the device.
const BYTES_MIN: u64 = 64 << 20;

/// A folder for fio's files, removed again.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, Failure> {
        let path = std::env::temp_dir().join(format!("fairlift-calibrate-{}", std::process::id()));
        std::fs::create_dir(&path)
            .map_err(|e| Failure::new(format!("cannot make {}: {}", path.display(), reason(&e))))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left behind in the folder for such things.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The target, looked at; nothing is written yet.
pub fn target(path: &str, arguments: &CalibrateArguments) -> Result<Target, Failure> {
    let fail = |message: String| Failure::new(message).at(path);
    if path.contains(['\n', ';', '#']) || path.trim() != path || path.is_empty() {
        return Err(fail("a fio job file cannot name this path".to_owned()).help("use a link to it"));
    }
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        Err(e) if e.kind() == ErrorKind::NotFound && arguments.write && arguments.size.is_some() => {
            let bytes = arguments.size.unwrap_or(0);
            return checked_size(path, bytes, arguments);
        }
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(fail("there is no such file or disk".to_owned())
                .help("--write --size 4G makes a file, fills it, and removes it again"));
        }
        Err(e) => return Err(fail(format!("cannot look at it: {}", reason(&e)))),
    };
    if about.is_dir() {
        return Err(fail("this is a folder".to_owned()).help("name a file in it, or the disk below it"));
    }
    if !about.is_file() && !about.file_type().is_block_device() {
        return Err(fail("neither a file nor a disk".to_owned()));
    }
    if about.is_file() && !arguments.write && about.blocks() * 512 < about.len() / 100 * 99 {
        return Err(fail("the file has holes: reading them tells nothing about the disk".to_owned())
            .help("take a file that was written, or allow writing it with --write"));
    }
    let mut options = OpenOptions::new();
    options.read(true).write(arguments.write);
    if about.file_type().is_block_device() && arguments.write {
        // Linux refuses this for a disk that is in use.
        options.custom_flags(libc::O_EXCL);
    }
    let file = options.open(path).map_err(|e| match e.raw_os_error() {
        Some(libc::EBUSY) => fail("the disk is in use (mounted?): it is not written to".to_owned()),
        _ => fail(format!("cannot open it: {}", reason(&e))),
    })?;
    let bytes = match about.is_file() {
        true => about.len(),
        false => end_of(&file).map_err(|e| fail(format!("cannot find its size: {}", reason(&e))))?,
    };
    checked_size(path, arguments.size.map_or(bytes, |size| size.min(bytes)), arguments)
}

fn end_of(mut file: &File) -> std::io::Result<u64> {
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))
}

fn checked_size(path: &str, bytes: u64, arguments: &CalibrateArguments) -> Result<Target, Failure> {
    if bytes < BYTES_MIN {
        return Err(Failure::new(format!("{bytes} bytes are too few: a device's cache would answer"))
            .at(path)
            .help("at least 64 MiB; several GiB are better"));
    }
    Ok(Target { path: path.to_owned(), bytes, writes: arguments.write, seconds: arguments.seconds })
}

/// Run the series; what fio measured.
pub fn run(target: &Target, arguments: &CalibrateArguments) -> Result<Vec<Measured>, Failure> {
    let scratch = Scratch::new()?;
    let (jobs, report) = (scratch.0.join("series.fio"), scratch.0.join("report.json"));
    let text = series::job_file(target);
    std::fs::write(&jobs, &text)
        .map_err(|e| Failure::new(format!("cannot write {}: {}", jobs.display(), reason(&e))))?;
    let is_new = !Path::new(&target.path).exists();
    note(&format!(
        "{} jobs of {} s each on {}{}",
        series::jobs(&text),
        target.seconds,
        target.path,
        if target.writes { ", whose contents are OVERWRITTEN" } else { ", read-only" }
    ));
    let mut command = Command::new(&arguments.fio);
    command.arg("--output-format=json").arg(format!("--output={}", report.display())).arg(&jobs);
    if !target.writes {
        command.arg("--readonly");
    }
    let ran = command.output();
    if is_new {
        // The file was ours.
        let _ = std::fs::remove_file(&target.path);
    }
    let ran = ran.map_err(|e| match e.kind() {
        ErrorKind::NotFound => Failure::new(format!("'{}' is not installed", arguments.fio))
            .help("Debian and Ubuntu: apt install fio")
            .help("--print-series writes the job file for another machine; --from takes the report of fio there"),
        _ => Failure::new(format!("cannot start '{}': {}", arguments.fio, reason(&e))),
    })?;
    if !ran.status.success() {
        let said = String::from_utf8_lossy(&ran.stderr);
        let first = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it did not say why");
        return Err(Failure::new(format!("fio failed: {first}")).at(&target.path));
    }
    let measured = measured::load(&report.display().to_string())?;
    if let Some(path) = &arguments.save {
        std::fs::copy(&report, path)
            .map_err(|e| Failure::new(format!("cannot write '{}': {}", path.display(), reason(&e))))?;
    }
    Ok(measured)
}
