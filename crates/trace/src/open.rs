//! From a path to a reader: one file, the per-CPU files of a prefix, or a directory of them.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::compress::SUFFIXES;
use crate::error::{ErrorKind, Place, TraceError};
use crate::read::Input;
use crate::reader::{Options, TraceReader};

impl TraceReader {
    /// Opens a trace. `path` may be a file, a directory with one `NAME.blktrace.CPU` set, `NAME`, `NAME.blktrace` or
    /// `NAME.blktrace.*` for such a set. Each file may be compressed.
    ///
    /// ```no_run
    /// use fairlift_trace::{Options, TraceReader};
    /// let mut reader = TraceReader::open("sda.blktrace.*".as_ref(), &Options::default())?;
    /// while let Some(event) = reader.next() {
    ///     let event = event?;
    ///     let who = event.comm.map_or("?", |comm| reader.names().get(comm));
    ///     println!("{} {who} {:?}", event.time_ns, event.action);
    /// }
    /// # Ok::<(), fairlift_trace::TraceError>(())
    /// ```
    pub fn open(path: &Path, options: &Options) -> Result<Self, TraceError> {
        let files = files_of(path)?;
        let mut streams = Vec::with_capacity(files.len());
        for file in files {
            let name = file.display().to_string();
            let opened = File::open(&file).map_err(|error| {
                TraceError::new(
                    ErrorKind::Io,
                    Place::file(&name.as_str().into()),
                    format!("cannot open: {error}"),
                )
            })?;
            streams.push((name, Box::new(opened) as Input));
        }
        Self::from_streams(streams, options)
    }
}

/// One file of a per-CPU set.
struct CpuFile {
    /// What stands before `.blktrace.`.
    set: String,
    cpu: u32,
    path: PathBuf,
}

/// `NAME.blktrace.CPU`, perhaps compressed.
fn cpu_file(path: PathBuf) -> Option<CpuFile> {
    let name = path.file_name()?.to_str()?.to_owned();
    let name = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(&name);
    let (set, cpu) = name.rsplit_once(".blktrace.")?;
    Some(CpuFile { set: set.to_owned(), cpu: cpu.parse().ok()?, path })
}

fn files_of(path: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let name = path.display().to_string();
    let fault = |kind, message: String| TraceError::new(kind, Place::file(&name.as_str().into()), message);
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let (directory, wanted) = if path.is_dir() {
        (path.to_owned(), None)
    } else {
        let wanted = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let wanted = wanted.strip_suffix(".*").unwrap_or(&wanted);
        let wanted = wanted.strip_suffix(".blktrace").unwrap_or(wanted).to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Pipes and devices are read as they are.
        if path.exists() {
            return Ok(vec![path.to_owned()]);
        }
        (parent.to_owned(), Some(wanted))
    };
    let entries = std::fs::read_dir(&directory).map_err(|error| {
        fault(ErrorKind::Io, format!("cannot open: no such file, and {}: {error}", directory.display()))
    })?;
    let mut found: Vec<CpuFile> = entries
        .filter_map(|entry| cpu_file(entry.ok()?.path()))
        .filter(|file| wanted.as_ref().is_none_or(|wanted| *wanted == file.set))
        .collect();
    found.sort_by(|a, b| (&a.set, a.cpu, &a.path).cmp(&(&b.set, b.cpu, &b.path)));
    let mut sets: Vec<&str> = found.iter().map(|file| file.set.as_str()).collect();
    sets.dedup();
    match sets.as_slice() {
        [] => Err(fault(ErrorKind::Empty, "no such file, and no NAME.blktrace.CPU files there".into())),
        [_] => {
            if let Some(pair) = found.windows(2).find(|pair| pair[0].cpu == pair[1].cpu) {
                let message = format!(
                    "{} and {} are both of CPU {}",
                    pair[0].path.display(),
                    pair[1].path.display(),
                    pair[0].cpu
                );
                return Err(fault(ErrorKind::MixedDevices, message));
            }
            Ok(found.into_iter().map(|file| file.path).collect())
        }
        several => {
            let message = format!("traces of several devices: {}; name one of them", several.join(", "));
            Err(fault(ErrorKind::MixedDevices, message))
        }
    }
}
