//! From the options in force to a [`Job`].

mod access;
mod amount;
mod blocks;
mod distribution;
mod pace;
mod priority;
mod schedule;
mod submission;

use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::job::{Job, OpenSync};
use crate::settings::{Reader, Settings};
use crate::table::{Class, EngineFamily, FileCall};

/// What only the file as a whole knows about a job.
pub(crate) struct Context {
    pub(crate) section: String,
    pub(crate) place: Place,
    pub(crate) first_thread: u32,
    pub(crate) group_id: u32,
    pub(crate) stonewall: bool,
    pub(crate) options: Vec<(String, String)>,
}

/// Reads all settings of a job. The remarks decide whether it runs: see [`Severity`].
pub(crate) fn job(settings: &Settings, context: Context) -> (Job, Vec<Diagnostic>) {
    let mut reader = Reader::new(settings);
    let r = &mut reader;

    let access = access::read(r);
    let blocks = blocks::read(r, access.access);
    let distribution = distribution::read(r);
    let uniform = distribution == crate::job::Distribution::Uniform;
    let aligned_apart = blocks.iter().any(|sizes| sizes.align_bytes != sizes.min_bytes);
    let norandommap = r.flag("norandommap", false) || !uniform || aligned_apart;
    let mut schedule = schedule::read(r);
    schedule.group_id = context.group_id;
    schedule.stonewall |= context.stonewall;

    let mut job = Job {
        name: r.text("name").unwrap_or(&context.section).to_owned(),
        section: context.section,
        place: context.place,
        numjobs: r.number32("numjobs", 1, 1..=crate::source::MAX_PROCESSES),
        first_thread: context.first_thread,
        access: access.access,
        ios_per_random_offset: access.ios_per_random_offset,
        sequencer: access.sequencer,
        stride_bytes: access.stride_bytes,
        strided: access::strided(r),
        read_percent: access.read_percent,
        blocks,
        bs_is_seq_rand: r.flag("bs_is_seq_rand", false),
        bs_unaligned: r.flag("bs_unaligned", false),
        random_percent: access::random_percent(r),
        norandommap,
        distribution,
        generator: distribution::generator(r),
        seeding: distribution::seeding(r),
        verify: false,
        files: amount::files(r),
        extent: amount::extent(r),
        schedule,
        submission: submission::read(r),
        durability: submission::durability(r),
        preparation: submission::preparation(r, access.access),
        think: pace::think(r),
        rate: pace::rate(r),
        priority: priority::job(r),
        command_priority: priority::command(r),
        latency_target: pace::latency_target(r),
        cgroup: r.text("cgroup").map(str::to_owned),
        cgroup_weight: r.is_set("cgroup_weight").then(|| r.number32("cgroup_weight", 500, 100..=1000)),
        ioscheduler: r.text("ioscheduler").map(str::to_owned),
        options: context.options,
    };
    job.verify = verify(r, &job);
    check(r, &job);
    if let EngineFamily::Call(call) = job.submission.family {
        check_call(r, &job, call);
    }
    refusals(r, &job);
    (job, reader.found)
}

/// `verify=`: a job that writes would read everything back afterwards.
fn verify(r: &mut Reader<'_>, job: &Job) -> bool {
    let on = r.settings.get("verify").is_some_and(|setting| !setting.is_off());
    if on && job.access.writes && r.flag("do_verify", true) {
        r.warn("verify", "'verify' is not simulated: the read-back phase after the writes is missing");
    }
    on
}

/// What contradicts itself.
fn check(r: &mut Reader<'_>, job: &Job) {
    let min_block = job.min_block_bytes();
    if let Some(crate::values::Amount::Bytes(size)) = job.extent.size
        && size < min_block
    {
        let message = format!("size of {size} bytes is smaller than the smallest block of {min_block} bytes");
        r.found.push(Diagnostic::error(r.place("size"), message).with_word("size"));
    }
    if r.is_set("time_based") && r.flag("time_based", false) && job.schedule.runtime_us == 0 {
        r.warn("time_based", "'time_based' needs runtime=; it is ignored, as in fio");
    }
    if matches!(job.submission.family, EngineFamily::Sync | EngineFamily::Call(_))
        && job.submission.iodepth > 1
    {
        let message = format!(
            "'iodepth' is ignored: engine '{}' has one I/O in flight, as in fio",
            job.submission.engine
        );
        r.warn("iodepth", message);
    }
    if job.command_priority.is_off() || job.submission.family == EngineFamily::Async {
        return;
    }
    r.warn("cmdprio_percentage", "'cmdprio_*' needs an asynchronous engine; it is ignored");
}

/// What engines that call the file system do not take, under fio either.
fn check_call(r: &mut Reader<'_>, job: &Job, call: FileCall) {
    let engine = &job.submission.engine;
    let mut wrong = |name: &str, message: String| {
        let place = if r.is_set(name) { r.place(name) } else { job.place.clone() };
        r.found.push(Diagnostic::error(place, message).with_word(engine.clone()));
    };
    if job.files.names.iter().any(|name| is_device(name)) {
        wrong("filename", format!("engine '{engine}' works on files, not on devices, as in fio"));
    }
    let durability = &job.durability;
    let syncs = durability.fsync_writes + durability.fdatasync_writes > 0 || durability.end_fsync;
    if !call.is_by_name() && (syncs || durability.open_sync != OpenSync::None) {
        wrong(
            "ioengine",
            format!("engine '{engine}' has no data to sync: leave out fsync, fdatasync, end_fsync and sync"),
        );
    }
    if call == FileCall::Truncate && (job.access.reads || job.access.trims) {
        wrong("rw", format!("engine '{engine}' takes writes only, as in fio: rw=write or rw=randwrite"));
    }
}

/// Options and engines that make the job another one than can be simulated, and those that merely change it.
fn refusals(r: &mut Reader<'_>, job: &Job) {
    if job.submission.family == EngineFamily::Unsupported {
        let engine = &job.submission.engine;
        let reason = crate::table::engine(engine).map_or("unknown", |info| info.reason);
        let message = format!("engine '{engine}' is not simulated: {reason}");
        refuse(r, "ioengine", message);
    }
    for setting in r.settings.iter().filter(|setting| !setting.is_off()) {
        let (name, mut note) = (setting.info.name, setting.info.note);
        if name == "openfiles" && job.submission.family.is_call_by_name() {
            if setting.value.as_deref() == Some("1") {
                continue;
            }
            note = "such a job has one file open at a time";
        }
        let severity = match setting.info.class {
            Class::Warn => Severity::Warning,
            Class::Refuse => Severity::Refusal,
            Class::Use | Class::Ignore => continue,
        };
        let message = format!("'{name}' is not simulated: {note}");
        r.found.push(Diagnostic::new(severity, setting.place.clone(), message).with_word(name));
    }
    if job.strided.is_some() && job.access.random {
        refuse(
            r,
            "zonesize",
            "'zonesize' is not simulated for random I/O: zones are read and written from one end to the other",
        );
    }
    if job.extent.fills_device && (job.access.reads || job.access.trims) {
        refuse(
            r,
            "fill_device",
            "'fill_device' is simulated for jobs that only write: fio fills the device before such a job",
        );
    }
    if let Some(name) = job.files.names.iter().find(|name| is_no_storage(name)) {
        refuse(r, "filename", format!("'{name}' has no request queue"));
    }
}

/// Size of a regular file that no job gives one, bytes.
const ASSUMED_BYTES: u64 = 1 << 30;

/// A regular file has the size that the job gives it; there is no real one to look at. `filled_before`: an earlier job writes
/// this file until the device is full, so its size shows when the job comes to its end. What is to be said about it.
pub(crate) fn size_of_file(settings: &Settings, job: &mut Job, filled_before: bool) -> Option<Diagnostic> {
    let sized = matches!(job.extent.size, Some(crate::values::Amount::Bytes(_))) || job.files.file_bytes > 0;
    if sized || job.is_on_device() || job.submission.family == EngineFamily::Unsupported {
        return None;
    }
    let place = settings.get("size").map_or_else(|| job.place.clone(), |setting| setting.place.clone());
    let of_filled = job.extent.fills_device || filled_before;
    let again = filled_before && (job.schedule.time_based || job.extent.loops > 1);
    if of_filled && (again || job.access.random || job.extent.size.is_some()) {
        let message = "a file that fills the device is written and read once, from its start to its end: its size is not known before";
        return Some(Diagnostic::new(Severity::Refusal, place, message));
    }
    if of_filled {
        return None;
    }
    job.files.file_bytes = ASSUMED_BYTES;
    let message = format!(
        "the size of the file of job '{}' is not known, and taken for 1 GiB: add size= or filesize=",
        job.name
    );
    Some(Diagnostic::new(Severity::Warning, place, message))
}

fn refuse(r: &mut Reader<'_>, name: &str, message: impl Into<String>) {
    let remark = Diagnostic::new(Severity::Refusal, r.place(name), message);
    r.found.push(remark.with_word(name));
}

/// A whole device rather than a file in a file system.
pub(crate) fn is_device(path: &str) -> bool {
    path.starts_with("/dev/")
}

fn is_no_storage(path: &str) -> bool {
    matches!(path, "/dev/null" | "/dev/zero" | "/dev/full" | "/dev/random" | "/dev/urandom" | "-")
}
