//! From jobs to processes: clones, and which of them share a file.

use std::collections::HashMap;

use crate::build::is_device;
use crate::job::Job;
use crate::offsets::Seeds;

/// Index into [`Expansion::files`].
pub type FileId = usize;

/// A file or device some process touches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileInfo {
    /// Path as fio would open it: it is also what the zipf and pareto streams are seeded from.
    pub path: String,
    /// A whole device (`/dev/…`) rather than a file.
    pub device: bool,
}

/// One process (fio: thread) of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Index of its job in the slice given to [`expand`].
    pub job: usize,
    /// fio's number, from 1: seeds depend on it.
    pub thread_number: u32,
    /// 0 for the first process of a job. Clones count *down* from `numjobs` - 1, as in fio: file names and
    /// `offset_increment` follow this number, seeds the other.
    pub clone_number: u32,
    /// Files, in the order of service.
    pub files: Vec<FileId>,
    /// Drawn start delay, microseconds.
    pub start_delay_us: u64,
}

/// All processes and files of a set of jobs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Expansion {
    /// In the order fio starts them.
    pub processes: Vec<Process>,
    /// Every file once.
    pub files: Vec<FileInfo>,
}

/// Makes the processes of all jobs. `entropy` stands in for the system's randomness where a job asks for it (`randrepeat=0`).
pub fn expand(jobs: &[Job], entropy: u64) -> Expansion {
    let mut expansion = Expansion::default();
    let mut ids = HashMap::new();
    for (index, job) in jobs.iter().enumerate() {
        for nth in 0..job.numjobs {
            let clone_number = if nth == 0 { 0 } else { job.numjobs - nth };
            let thread_number = job.first_thread + nth;
            let mut id_of = |path: String| {
                *ids.entry(path).or_insert_with_key(|path| {
                    expansion.files.push(FileInfo { path: path.clone(), device: is_device(path) });
                    expansion.files.len() - 1
                })
            };
            let files = paths(job, clone_number).into_iter().map(&mut id_of).collect();
            let start_delay_us = start_delay(job, thread_number, nth > 0, entropy);
            expansion.processes.push(Process {
                job: index,
                thread_number,
                clone_number,
                files,
                start_delay_us,
            });
        }
    }
    expansion
}

fn start_delay(job: &Job, thread_number: u32, clone: bool, entropy: u64) -> u64 {
    let (low, high) = job.schedule.start_delay_us;
    if low == high {
        return low;
    }
    Seeds::new(job, thread_number, clone, entropy).start_delay(low, high)
}

/// The paths fio would open for one process.
fn paths(job: &Job, clone_number: u32) -> Vec<String> {
    let files = &job.files;
    let directory = match files.directories.len() {
        0 => String::new(),
        count => format!("{}/", files.directories[clone_number as usize % count]),
    };
    if !files.names.is_empty() {
        // Names belong to the job, not the clone: with several directories all clones use the first.
        let directory = files.directories.first().map(|first| format!("{first}/")).unwrap_or_default();
        return files.names.iter().map(|name| format!("{directory}{name}")).collect();
    }
    let name = |number: u32| file_name(&files.format, &job.section, clone_number, number);
    (0..files.count).map(|number| format!("{directory}{}", name(number))).collect()
}

fn file_name(format: &str, job: &str, clone_number: u32, file_number: u32) -> String {
    if format.is_empty() {
        return format!("{job}.{clone_number}.{file_number}");
    }
    let name = format.replace("$jobname", job).replace("$jobnum", &clone_number.to_string());
    name.replace("$filenum", &file_number.to_string()).replace("$clientuid", "localhost")
}
