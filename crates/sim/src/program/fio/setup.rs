//! The files of a job file's processes, as they stand before the run.

use fairlift_fio::offsets::Stream;
use fairlift_fio::{Direction, EngineFamily, Expansion, FileCall, FileInfo, Job};

use super::calls::fallocate;
use super::{Options, SetupError};
use crate::engine::Simulation;
use crate::kernel::{Fallocate, FileId, Filesystem, Layout, Rules};

/// What a process works on.
pub(super) struct Files {
    pub(super) stream: Stream,
    /// None if it only knows their names.
    pub(super) ids: Vec<FileId>,
    /// Of a process that makes calls by name.
    pub(super) names: Vec<String>,
    /// One of them is a file that some job fills the device with.
    pub(super) filled: bool,
}

/// The files of each process, made where they have to be.
pub(super) fn files(
    simulation: &Simulation,
    jobs: &[Job],
    expansion: &Expansion,
    options: &Options,
) -> Result<Vec<Files>, SetupError> {
    simulation.with_machine(|m| {
        let (filesystem, rules) = (m.kernel.filesystem(), m.kernel.rules());
        jobs.iter().try_for_each(|job| check(job, filesystem, rules))
    })?;
    let filled = filled(jobs, expansion);
    let streams = streams(simulation, jobs, expansion, &filled, options)?;
    let ids = create(simulation, jobs, expansion, &streams, &filled, options)?;
    let of_process = |(process, stream): (&fairlift_fio::Process, Stream)| {
        let by_name = jobs[process.job].submission.family.is_call_by_name();
        let name = |file: &usize| expansion.files[*file].path.clone();
        Files {
            stream,
            ids: process.files.iter().filter(|_| !by_name).filter_map(|file| ids[*file]).collect(),
            names: process.files.iter().filter(|_| by_name).map(name).collect(),
            filled: process.files.iter().any(|file| filled[*file]),
        }
    };
    Ok(expansion.processes.iter().zip(streams).map(of_process).collect())
}

/// Has the machine the file system that the job needs?
fn check(job: &Job, filesystem: Filesystem, rules: &Rules) -> Result<(), SetupError> {
    let (name, engine) = (&job.name, &job.submission.engine);
    if job.needs_filesystem() && filesystem == Filesystem::Raw {
        let what = match job.extent.fills_device {
            true => "fill_device of a file".to_owned(),
            false => format!("engine {engine}"),
        };
        let message =
            format!("job '{name}': {what} needs a file system, ext3 or ext4, and there is none (raw)");
        return Err(SetupError::Job(message));
    }
    if job.submission.family != EngineFamily::Call(FileCall::Allocate) {
        return Ok(());
    }
    let directions = [job.access.reads, job.access.writes, job.access.trims];
    let mut used = Direction::ALL.into_iter().filter(|d| directions[d.index()]).map(fallocate);
    let Some(mode) = used.find(|mode| !filesystem.allocates(rules, *mode)) else { return Ok(()) };
    let holes = if mode == Fallocate::Punch { ", or not punch holes" } else { "" };
    Err(SetupError::Job(format!(
        "job '{name}': {} of Linux {} cannot fallocate{holes} (allowed: ext4, holes since 3.0)",
        filesystem.name(),
        rules.version,
    )))
}

/// Which files some job fills the device with.
fn filled(jobs: &[Job], expansion: &Expansion) -> Vec<bool> {
    let mut filled = vec![false; expansion.files.len()];
    for process in expansion.processes.iter().filter(|process| jobs[process.job].extent.fills_device) {
        for file in &process.files {
            filled[*file] = !expansion.files[*file].device;
        }
    }
    filled
}

/// What each process is going to do. A file that fills the device may become as large as what is free.
fn streams(
    simulation: &Simulation,
    jobs: &[Job],
    expansion: &Expansion,
    filled: &[bool],
    options: &Options,
) -> Result<Vec<Stream>, SetupError> {
    let (capacity, free) =
        simulation.with_machine(|m| (m.block.device().limits().sectors * 512, m.kernel.free_bytes()));
    let of_process = |number: usize| {
        let process = &expansion.processes[number];
        let fills: Vec<&str> = process
            .files
            .iter()
            .filter(|file| filled[**file])
            .map(|file| expansion.files[*file].path.as_str())
            .collect();
        let existing = |path: &str| match path.starts_with("/dev/") {
            true => Some(capacity),
            false => fills.contains(&path).then_some(free),
        };
        Stream::new(&jobs[process.job], expansion, number, &existing, options.entropy)
            .map_err(SetupError::Job)
    };
    (0..expansion.processes.len()).map(of_process).collect()
}

/// What a file's users need of it.
#[derive(Clone, Copy)]
struct Need {
    bytes: u64,
    laid_out: bool,
    /// It is there before the run.
    exists: bool,
    last_job: usize,
}

/// Make every file large enough for all who use it. One that engine filecreate makes is not there yet, and one that is to fill
/// the device is empty.
fn create(
    simulation: &Simulation,
    jobs: &[Job],
    expansion: &Expansion,
    streams: &[Stream],
    filled: &[bool],
    options: &Options,
) -> Result<Vec<Option<FileId>>, SetupError> {
    let nothing = Need { bytes: 0, laid_out: !options.fresh_files, exists: false, last_job: 0 };
    let mut needs = vec![nothing; expansion.files.len()];
    for (process, stream) in expansion.processes.iter().zip(streams) {
        let job = &jobs[process.job];
        if job.submission.family == EngineFamily::Call(FileCall::Create) {
            continue;
        }
        for (file, space) in process.files.iter().zip(stream.files()) {
            let need = &mut needs[*file];
            need.exists = true;
            need.bytes = need.bytes.max(space.total_bytes);
            need.laid_out |= job.access.reads || job.preparation.overwrite;
            need.last_job = process.job;
        }
    }
    let create = |((info, need), filled): ((&FileInfo, Need), &bool)| {
        let (layout, bytes) = match (info.device, need.laid_out) {
            _ if !need.exists => return Ok(None),
            _ if *filled => (Layout::Fresh, 0),
            (true, _) => (Layout::Device, need.bytes),
            (false, true) => (Layout::Preallocated, need.bytes),
            (false, false) => (Layout::Fresh, need.bytes),
        };
        simulation
            .with_machine(|m| m.kernel.create_file(&info.path, bytes, layout))
            .map(Some)
            .map_err(|space| SetupError::NoSpace { job: jobs[need.last_job].name.clone(), space })
    };
    expansion.files.iter().zip(needs).zip(filled).map(create).collect()
}
