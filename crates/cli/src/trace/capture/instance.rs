//! A tracing instance: buffers and settings of our own, which go away with it. Other tracing is not touched.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::device::BlockDevice;
use crate::error::Failure;
use crate::output::reason;

/// Where tracefs may be.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Names of our instances: this and the process number.
const PREFIX: &str = "fairlift-";
/// What is recorded, as far as the kernel has it.
const EVENTS: [&str; 14] = [
    "block_bio_queue",
    "block_bio_backmerge",
    "block_bio_frontmerge",
    "block_bio_bounce",
    "block_bio_remap",
    "block_getrq",
    "block_sleeprq",
    "block_plug",
    "block_unplug",
    "block_split",
    "block_rq_insert",
    "block_rq_issue",
    "block_rq_requeue",
    "block_rq_complete",
];
/// They carry no device.
const WITHOUT_DEVICE: [&str; 2] = ["block_plug", "block_unplug"];

/// An instance; removed when dropped.
#[derive(Debug)]
pub struct Instance {
    folder: PathBuf,
}

/// Turns an instance off from elsewhere.
#[derive(Debug)]
pub struct Switch(PathBuf);

impl Instance {
    /// One with buffers of `buffer_kib` for each CPU and the block events (of `device`) enabled, still off.
    pub fn create(buffer_kib: u64, device: Option<&BlockDevice>) -> Result<Instance, Failure> {
        let root = tracefs()?;
        sweep(&root);
        let folder = root.join("instances").join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder).map_err(|e| refused(&root, &e))?;
        let instance = Instance { folder };
        instance.write("tracing_on", "0")?;
        instance.write("buffer_size_kb", &buffer_kib.to_string())?;
        // The same clock on every CPU.
        instance.write("trace_clock", "mono")?;
        let mut enabled = 0;
        for event in EVENTS.iter().filter(|event| instance.folder.join("events/block").join(event).is_dir()) {
            if let Some(device) = device
                && !WITHOUT_DEVICE.contains(event)
            {
                instance.write(
                    &format!("events/block/{event}/filter"),
                    &format!("dev == {}", device.number().0),
                )?;
            }
            instance.write(&format!("events/block/{event}/enable"), "1")?;
            enabled += 1;
        }
        if enabled == 0 {
            return Err(Failure::new("this kernel has no block events")
                .help("it was built without CONFIG_BLK_DEV_IO_TRACE or tracepoints"));
        }
        Ok(instance)
    }

    /// Begin to record.
    pub fn start(&self) -> Result<(), Failure> {
        self.write("tracing_on", "1")
    }

    /// To turn it off.
    pub fn switch(&self) -> Switch {
        Switch(self.folder.join("tracing_on"))
    }

    /// The file events come from.
    pub fn pipe(&self) -> PathBuf {
        self.folder.join("trace_pipe")
    }

    /// Events that were overwritten before they were read, and those there was no room for.
    pub fn lost(&self) -> u64 {
        let Ok(cpus) = fs::read_dir(self.folder.join("per_cpu")) else { return 0 };
        let stats = cpus.filter_map(|cpu| fs::read_to_string(cpu.ok()?.path().join("stats")).ok());
        let lost = |text: String| -> u64 {
            let values = text.lines().filter_map(|line| {
                let value =
                    line.strip_prefix("overrun: ").or_else(|| line.strip_prefix("dropped events: "))?;
                value.trim().parse::<u64>().ok()
            });
            values.sum()
        };
        stats.map(lost).sum()
    }

    fn write(&self, file: &str, text: &str) -> Result<(), Failure> {
        write(&self.folder.join(file), text).map_err(|e| {
            Failure::new(format!("cannot set up tracing: {}", reason(&e))).at(self
                .folder
                .join(file)
                .display()
                .to_string())
        })
    }
}

impl Switch {
    /// Nothing more is recorded.
    pub fn off(&self) {
        // If the file is gone, so is the tracing.
        let _ = write(&self.0, "0");
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.switch().off();
        if let Err(error) = fs::remove_dir(&self.folder) {
            crate::error::warn(&format!(
                "cannot remove the tracing instance {}: {}; 'rmdir' does it",
                self.folder.display(),
                reason(&error)
            ));
        }
    }
}

/// tracefs files want one write without a trailing zero, and must not be created.
fn write(path: &Path, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

/// The folder of tracefs.
fn tracefs() -> Result<PathBuf, Failure> {
    let mut denied = false;
    for mount in MOUNTS {
        match fs::metadata(Path::new(mount).join("instances")) {
            Ok(_) => return Ok(mount.into()),
            Err(e) => denied |= e.kind() == ErrorKind::PermissionDenied,
        }
    }
    Err(match denied {
        true => needs_root(),
        false => Failure::new("tracefs is not mounted")
            .at(MOUNTS[0])
            .help(format!("as root: mount -t tracefs none {}", MOUNTS[0])),
    })
}

fn needs_root() -> Failure {
    Failure::new("recording block I/O needs root, because tracefs is closed to other users")
        .help("run it with sudo")
}

fn refused(root: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::PermissionDenied => needs_root(),
        _ => Failure::new(format!("cannot make a tracing instance: {}", reason(error)))
            .at(root.join("instances").display().to_string()),
    }
}

/// Take away what runs left behind that were killed.
fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root.join("instances")) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|number| number.parse::<u32>().ok());
        if let Some(process) = process
            && !Path::new(&format!("/proc/{process}")).exists()
        {
            // Somebody may still read it: then it stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
