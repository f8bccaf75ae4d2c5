//! Why a request or a call took as long as it did.
//!
//! A run records nothing of this unless it is asked to ([`crate::lab::Setup::explain`]). The recorder hears of three things: what
//! the device and its queue do at each moment, each request's way through them, and what each task waits for.
//! From these a request's time is split into [`Span`]s, and the time of a call that waits for the disk - `fsync` and its like -
//! into [`Part`]s, through the tasks that others wait for: a task in `fsync` waits for the journal's thread, that for a request,
//! that behind another or because the elevator idles for another task. Spans and parts leave no gap and do not overlap: they add up
//! to the request's or call's time, to the nanosecond.

mod calls;
mod recorder;
mod samples;
mod sorts;
mod tasks;
mod timeline;
mod window;

use serde::Serialize;

pub use crate::engine::TaskId;
pub(crate) use recorder::{Recorder, is_plugged};
pub use samples::OverTime;
pub(crate) use tasks::Why;

/// Slowest requests kept.
pub const SLOWEST_REQUESTS: usize = 10;
/// Slowest calls kept of each program and kind.
pub const SLOWEST_CALLS: usize = 3;

/// What a stretch of time went to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "why", content = "task")]
pub enum Cause {
    /// No request slot was free.
    Slot,
    /// Held back in a plug, for others to be merged with it.
    Plugged,
    /// The device worked for this task.
    Behind(Option<TaskId>),
    /// The elevator let the device stand still, or held requests back, for the next request of this task.
    Idling(Option<TaskId>),
    /// The device wrote back its volatile cache.
    Flush,
    /// The queue gave the device nothing, for none of these reasons: a batch has to drain, say.
    Held,
    /// The request was in the device, which worked for this task: it was queued inside.
    Inside(Option<TaskId>),
    /// The device served the request: moving, and the transfer.
    Device,
    /// Computing: the system call, copying.
    Cpu,
    /// From the wake-up until it ran.
    Switch,
    /// The journal waited for others to join its transaction.
    Batching,
    /// Operations in the transaction had to end.
    Handles,
    /// The kernel made a task that dirties pages pause.
    Throttle,
    /// A writeback thread waited because the queue was full.
    Congestion,
    /// The program slept of its own accord.
    Sleep,
    /// A kernel thread had nothing to do.
    Unasked,
    /// Waiting for another program, thread or signal.
    Task(Option<TaskId>),
}

impl Cause {
    /// In words: `whom` is the task in it, `elevator` who idles.
    pub fn words(self, whom: &str, elevator: &str) -> String {
        match self {
            Cause::Slot => "waiting for a request slot".to_owned(),
            Cause::Plugged => "plugged".to_owned(),
            Cause::Behind(_) => format!("queued behind {whom}"),
            Cause::Idling(_) => format!("{} idles for {whom}", elevator),
            Cause::Flush => "the device flushes its cache".to_owned(),
            Cause::Held => "held back".to_owned(),
            Cause::Inside(_) => format!("queued inside the drive, behind {whom}"),
            Cause::Device => "being served by the device".to_owned(),
            Cause::Cpu => "computing".to_owned(),
            Cause::Switch => "task switch".to_owned(),
            Cause::Batching => "sync batching: waiting for others to join".to_owned(),
            Cause::Handles => "open operations of the transaction".to_owned(),
            Cause::Throttle => "paused for dirtying pages".to_owned(),
            Cause::Congestion => "paused because the queue is full".to_owned(),
            Cause::Sleep => "asleep of its own accord".to_owned(),
            Cause::Unasked => "nothing to do".to_owned(),
            Cause::Task(_) => format!("waiting for {whom}"),
        }
    }
}

/// A stretch of a request's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Span {
    /// From, nanoseconds of simulated time.
    pub start_ns: u64,
    /// To.
    pub end_ns: u64,
    /// What it went to.
    #[serde(flatten)]
    pub cause: Cause,
}

/// A request's way, told afterwards.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct RequestStory {
    /// The how-manieth it was.
    pub number: u64,
    /// Whose it was.
    pub task: Option<TaskId>,
    /// What it did: `read`, `write` or `discard`.
    pub op: &'static str,
    /// A task waited for it.
    pub sync: bool,
    /// First sector.
    pub sector: u64,
    /// Sectors, with all that was merged.
    pub sectors: u32,
    /// When its task first wanted it, nanoseconds.
    pub asked_ns: u64,
    /// When it got its slot.
    pub queued_ns: u64,
    /// When it went to the device.
    pub issued_ns: u64,
    /// When it was done.
    pub done_ns: u64,
    /// Where the time between the first and the last went.
    pub spans: Vec<Span>,
}

impl RequestStory {
    /// From the wish to the end, nanoseconds.
    pub fn took_ns(&self) -> u64 {
        self.done_ns - self.asked_ns
    }
}

/// The part of a call, or of a commit that a task waits for, that a stretch of time belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Nothing in particular.
    #[default]
    Call,
    /// The file's dirty pages.
    Data,
    /// Until the journal's thread runs, and afterwards until the caller does.
    Commit,
    /// The journal's superblock: the log begins, or moves its start.
    Superblock,
    /// Data that the transaction has to find on the device.
    OrderedData,
    /// Descriptor and copies of metadata.
    JournalBody,
    /// The block that makes them count.
    CommitBlock,
    /// Making room in the log.
    Checkpoint,
    /// A flush of the device's cache.
    Flush,
}

impl Step {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Step::Call => "call",
            Step::Data => "data write",
            Step::Commit => "wake-ups",
            Step::Superblock => "journal superblock",
            Step::OrderedData => "ordered data",
            Step::JournalBody => "journal body",
            Step::CommitBlock => "commit block",
            Step::Checkpoint => "checkpoint",
            Step::Flush => "cache flush",
        }
    }
}

/// A call that waits for the disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// `fsync`.
    Fsync,
    /// `fdatasync`.
    Fdatasync,
    /// A write through `O_SYNC` or `O_DSYNC`.
    SyncWrite,
    /// `sync`.
    Sync,
}

impl Call {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Call::Fsync => "fsync",
            Call::Fdatasync => "fdatasync",
            Call::SyncWrite => "synchronous write",
            Call::Sync => "sync",
        }
    }
}

/// A stretch of a call's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Part {
    /// From, nanoseconds of simulated time.
    pub start_ns: u64,
    /// To.
    pub end_ns: u64,
    /// Which part of the work it was.
    pub step: Step,
    /// Who did it: the caller, or a task that it waited for.
    pub by: TaskId,
    /// What it went to.
    #[serde(flatten)]
    pub cause: Cause,
}

/// One call, told afterwards.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CallStory {
    /// Who called.
    pub task: TaskId,
    /// When, nanoseconds.
    pub start_ns: u64,
    /// When it came back.
    pub end_ns: u64,
    /// Where the time went.
    pub parts: Vec<Part>,
}

/// A task, as seen from a caller whose calls are added up.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "who", content = "name")]
pub enum Whom {
    /// The caller itself.
    Caller,
    /// Another task of the same name.
    Sibling,
    /// A task of this name.
    Named(String),
    /// No particular task.
    Nobody,
}

/// What the time of many calls went to, in one step of them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CallPart {
    /// The step.
    pub step: Step,
    /// Who did it.
    pub by: Whom,
    /// What it went to; the task in it is one of those meant by `whom`.
    #[serde(flatten)]
    pub cause: Cause,
    /// The task it was for, or because of.
    pub whom: Whom,
    /// In all calls, nanoseconds.
    pub ns: u64,
    /// In how many calls.
    pub calls: u64,
}

/// All calls of one kind by tasks of one name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Calls {
    /// Name of the tasks.
    pub name: String,
    /// Kind.
    pub call: Call,
    /// How many.
    pub count: u64,
    /// Their time together, nanoseconds.
    pub total_ns: u64,
    /// The longest, nanoseconds.
    pub max_ns: u64,
    /// Times that one of them, or a task it waited for, waited for the device.
    pub round_trips: u64,
    /// Where the time went, by step; adds up to `total_ns`.
    pub parts: Vec<CallPart>,
    /// The longest of them, the longest first.
    pub slowest: Vec<CallStory>,
}

/// Requests of the tasks of one name, most of whose time went to the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sort {
    /// The first task of that name.
    pub task: Option<TaskId>,
    /// What took most of their time; a task in it stands for all of its name.
    pub cause: Cause,
    /// How many there are.
    pub requests: u64,
    /// Their time from the wish to the end, added up, nanoseconds.
    pub total_ns: u64,
    /// The slowest of them.
    pub slowest: RequestStory,
}

/// A request that the device served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Served {
    /// Whose.
    pub task: Option<TaskId>,
    /// It wrote (or discarded), rather than read.
    pub write: bool,
    /// First sector.
    pub sector: u64,
    /// Sectors.
    pub sectors: u32,
    /// When it went to the device, nanoseconds.
    pub issued_ns: u64,
    /// When the device began to serve it.
    pub began_ns: u64,
    /// When it was done.
    pub done_ns: u64,
}

/// A window of a run in which every request is known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// From, nanoseconds of simulated time.
    pub from_ns: u64,
    /// To.
    pub to_ns: u64,
    /// In the order in which they were done.
    pub requests: Vec<Served>,
    /// What the queue and the device did meanwhile.
    pub spans: Vec<Span>,
}

/// Time by cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Share {
    /// What it went to.
    #[serde(flatten)]
    pub cause: Cause,
    /// Nanoseconds.
    pub ns: u64,
}

/// A task and where its time, and that of its requests, went.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TaskTimes {
    /// Which.
    pub task: TaskId,
    /// What it is called: the job's or program's name; kernel threads have their own.
    pub name: String,
    /// Its requests that are done.
    pub requests: u64,
    /// Their time from the wish to the end, added up, nanoseconds.
    pub request_ns: u64,
    /// Where that went; adds up to `request_ns`.
    pub request_causes: Vec<Share>,
    /// What the task itself waited for; [`Cause::Device`] stands for all waiting for I/O.
    pub waits: Vec<Share>,
    /// Its group's place among the run's groups ([`crate::result::RunResult::groups`]); 0: the root.
    #[serde(skip_serializing_if = "is_root")]
    pub group: usize,
}

const fn is_root(group: &usize) -> bool {
    *group == 0
}

/// Where the time of a group's requests went, without those of the groups below it. Whose a request is the block layer says: what
/// kernel threads write for a group is the group's.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct GroupTimes {
    /// Its requests that are done.
    pub requests: u64,
    /// Their time from the wish to the end, added up, nanoseconds.
    pub request_ns: u64,
    /// Where that went; adds up to `request_ns`.
    pub request_causes: Vec<Share>,
}

/// What the device's time went to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct DeviceTimes {
    /// Working ([`Cause::Behind`]), flushing, idled, plugged, held back, by task; what is missing is time without any request.
    pub causes: Vec<Share>,
    /// The same, as it went on; for pictures, not part of the JSON.
    #[serde(skip)]
    pub over_time: OverTime<Cause>,
}

/// Everything recorded of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Anatomy {
    /// Length of the run, nanoseconds.
    pub duration_ns: u64,
    /// All tasks that did or waited for something.
    pub tasks: Vec<TaskTimes>,
    /// The run's groups, the root first, in the order of its results; none if it has none but the root.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupTimes>,
    /// The device.
    pub device: DeviceTimes,
    /// The [`SLOWEST_REQUESTS`], the slowest first.
    pub slowest: Vec<RequestStory>,
    /// Calls that wait for the disk, by name and kind.
    pub calls: Vec<Calls>,
    /// Requests by what took most of their time, the sort with the slowest first; for pages, not part of the JSON.
    #[serde(skip)]
    pub sorts: Vec<Sort>,
    /// What the device did in a stretch of the run's second half (of a short run in all of it); for pictures, not part of the JSON.
    #[serde(skip)]
    pub window: Window,
}

impl Anatomy {
    /// A cause in words, with the name of the task in it.
    pub fn told(&self, cause: Cause, elevator: &str) -> String {
        let task = match cause {
            Cause::Behind(task) | Cause::Inside(task) | Cause::Idling(task) | Cause::Task(task) => task,
            _ => None,
        };
        cause.words(self.name(task), elevator)
    }

    /// The place of a task's group among the run's groups.
    pub fn group(&self, task: Option<TaskId>) -> Option<usize> {
        self.task(task).map(|t| t.group)
    }

    /// What a task is called.
    pub fn name(&self, task: Option<TaskId>) -> &str {
        self.task(task).map_or("no task", |t| t.name.as_str())
    }

    /// They stand in the order of their numbers.
    fn task(&self, task: Option<TaskId>) -> Option<&TaskTimes> {
        let task = task?;
        self.tasks.get(task.0).filter(|times| times.task == task)
    }
}
