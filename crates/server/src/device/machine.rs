//! What a combiner works on: the core's queue, the bios in it, and whose they are.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use fairlift_core::group::GroupError;
use fairlift_core::queue::{RequestQueue, Submitted};
use fairlift_core::request::Status;
use fairlift_core::{Bio, ContextId, Dispatch, Flags, GroupId, GroupParams, Op, RequestId};
use fairlift_sim::kernel::version;
use fairlift_sim::scheduler::SchedulerSpec;
use fairlift_trace::Action;
use rustc_hash::FxHashMap;

use super::Inbox;
use super::port::{Mailbox, PortOptions};
use super::trace::Trace;
use super::waiters::Waiters;
use crate::back::{Job, Limits, MayWait};
use crate::histogram::Histogram;
use crate::io::{Action as IoAction, Fault, Io, Ios};

/// io contexts of a device; beyond them a group's connections share one.
const CONTEXTS_MAX: usize = 1024;
/// Groups of a device: exports, and connections where each has its own.
const GROUPS_MAX: usize = 512;
/// Lists kept for their memory.
const SPARE_MAX: usize = 256;
/// Bios that a group's limits hold; more wait before the queue.
const HELD_MAX: usize = 256;

/// How a device is built.
#[derive(Clone, Debug)]
pub struct DeviceOptions {
    /// The elevator with its settings, and those of the queue around it.
    pub elevator: SchedulerSpec,
}

/// A bio in the queue or the back end.
#[derive(Debug)]
struct Entry {
    /// `None` while a job has it.
    io: Option<Box<Io>>,
    port: u32,
    /// When it was submitted.
    at: u64,
}

/// Answers, and the mailbox for them.
type Delivery = (Arc<dyn Mailbox>, Ios);

/// A way in.
struct PortEntry {
    /// Of the export.
    name: String,
    mailbox: Arc<dyn Mailbox>,
    context: ContextId,
    /// A group of its own, removed with it.
    group: Option<GroupId>,
    latency: Arc<Histogram>,
    /// Bios not answered yet.
    flying: usize,
    closed: bool,
    answers: Ios,
    /// How much of its last bio the elevator would have wanted as one.
    part_sectors_max: Arc<AtomicU32>,
}

/// The queue and all that is in it.
pub(super) struct Machine {
    pub(super) queue: RequestQueue,
    pub(super) elevator: SchedulerSpec,
    depth: u32,
    in_device: u32,
    entries: Vec<Option<Entry>>,
    free_entries: Vec<u32>,
    /// By their numbers, which are not used again: bios of one that is gone may still come.
    ports: FxHashMap<u32, PortEntry>,
    next_port: u32,
    /// Ports with answers.
    answered: Vec<u32>,
    waiting: Waiters,
    /// Bios waiting for room among those their group's limit holds, longest wait first.
    crowded: VecDeque<Bio>,
    /// The same as for the queue, kept for its memory.
    done: Vec<u64>,
    /// Lists of jobs that are done, kept for their memory.
    spare: Vec<Vec<(u32, Box<Io>)>>,
    /// Jobs done and failed.
    pub(super) jobs: [u64; 2],
    trace: Option<Trace>,
}

impl Machine {
    pub(super) fn new(limits: &Limits, options: &DeviceOptions) -> Result<Machine, String> {
        let (rules, spec) = (version::TODAY, &options.elevator);
        let mut config = rules.queue_config(limits, CONTEXTS_MAX);
        spec.host().configure(&mut config, rules, limits, spec.is_direct())?;
        (config.groups_max, config.held_max) = (GROUPS_MAX, HELD_MAX);
        let mut queue = RequestQueue::new(config, spec.build(&config.elevator(), rules.profile));
        spec.host().apply(queue.groups_mut());
        Ok(Machine {
            queue,
            elevator: spec.clone(),
            depth: limits.queue_depth,
            in_device: 0,
            entries: Vec::new(),
            free_entries: Vec::new(),
            ports: FxHashMap::default(),
            next_port: 0,
            answered: Vec::new(),
            waiting: Waiters::default(),
            crowded: VecDeque::new(),
            done: Vec::new(),
            spare: Vec::new(),
            jobs: [0; 2],
            trace: None,
        })
    }

    // ---- ports --------------------------------------------------------------------------------------------------------------

    /// A way in.
    pub(super) fn open_port(
        &mut self,
        options: PortOptions<'_>,
        mailbox: Arc<dyn Mailbox>,
        part_sectors_max: Arc<AtomicU32>,
    ) -> u32 {
        let PortOptions { export: name, group, own, ioprio, latency } = options;
        // With no group left it shares its export's, as the core has it.
        let groups = self.queue.groups_mut();
        let params = GroupParams { latency_ns: groups[group].params().latency_ns, ..GroupParams::default() };
        let own = own.then(|| groups.create(group, params)).and_then(Result::ok);
        let context = self.queue.contexts_mut().create_in(own.unwrap_or(group), ioprio);
        let (name, answers) = (name.to_owned(), Vec::new());
        self.next_port += 1;
        if let Some(trace) = &self.trace {
            trace.name_port(self.next_port, &name);
        }
        let entry = PortEntry {
            name,
            mailbox,
            context,
            group: own,
            latency,
            flying: 0,
            closed: false,
            answers,
            part_sectors_max,
        };
        self.ports.insert(self.next_port, entry);
        self.next_port
    }

    /// The goal of `group` is that of its connections that have groups of their own.
    pub(super) fn set_goal_below(&mut self, group: GroupId, latency_ns: u64) {
        let groups = self.queue.groups_mut();
        for own in self.ports.values().filter_map(|port| port.group) {
            if groups[own].parent() == group {
                let params = GroupParams { latency_ns, ..*groups[own].params() };
                // A group that is being removed needs none.
                let _ = groups.set_params(own, params);
            }
        }
    }

    /// The client has gone; what is in flight is served, and its answers are dropped.
    pub(super) fn close_port(&mut self, port: u32, now: u64) {
        let Some(entry) = self.ports.get_mut(&port) else { return };
        entry.closed = true;
        self.forget_port(port, now);
    }

    /// A port that is closed goes with its last bio, and its context and group with it: a bio that waits for a slot is its group's
    /// until it has one.
    fn forget_port(&mut self, port: u32, now: u64) {
        let is_over = |entry: &PortEntry| entry.closed && entry.flying == 0 && entry.answers.is_empty();
        if !self.ports.get(&port).is_some_and(is_over) {
            return;
        }
        let Some(PortEntry { context, group, .. }) = self.ports.remove(&port) else { return };
        self.queue.context_exit(context, now);
        if let Some(group) = group {
            // It was there.
            let _: Result<(), GroupError> = self.queue.remove_group(group, now);
        }
    }

    /// From now on write to this trace; the one that was written to.
    pub(super) fn set_trace(&mut self, trace: Option<Trace>) -> Option<Trace> {
        if let Some(trace) = &trace {
            self.ports.iter().for_each(|(port, entry)| trace.name_port(*port, &entry.name));
        }
        std::mem::replace(&mut self.trace, trace)
    }

    /// Bios that are not answered.
    pub(super) fn unfinished(&self) -> usize {
        self.entries.len() - self.free_entries.len()
    }

    /// Requests in the back end, and bios that wait for a slot.
    pub(super) fn depths(&self) -> (u32, usize) {
        (self.in_device, self.waiting.len() + self.crowded.len() + self.queue.held())
    }

    // ---- a round of the combiner --------------------------------------------------------------------------------------------

    /// Take in what was left, and fill `jobs` with what is to start; when to be asked again at the latest.
    pub(super) fn round(&mut self, left: Inbox, now: u64, jobs: &mut Vec<Job>) -> Option<u64> {
        left.finished.into_iter().for_each(|job| self.complete(job, now));
        left.ios.into_iter().for_each(|(port, io)| self.take_in(port, io, now));
        loop {
            let timer = self.dispatch(now, jobs);
            if !self.let_waiters_try(now) {
                return timer;
            }
        }
    }

    /// The thread of `caller` may wait for those of `jobs` that are of no other client.
    pub(super) fn let_wait(&self, jobs: &mut [Job], caller: Option<u32>) {
        if caller.is_none() {
            return;
        }
        let port = |cookie: u32| self.entries[cookie as usize].as_ref().map(|entry| entry.port);
        for job in jobs {
            if !job.ios.is_empty() && job.ios.iter().all(|(cookie, _)| port(*cookie) == caller) {
                job.may_wait = if self.in_device == 1 { MayWait::Long } else { MayWait::Shortly };
            }
        }
    }

    /// Whose bios are answered, and the bios.
    pub(super) fn take_answers(&mut self, now: u64) -> Vec<Delivery> {
        let mut answered = std::mem::take(&mut self.answered);
        let mut deliveries = Vec::with_capacity(answered.len());
        for at in answered.drain(..) {
            let Some(port) = self.ports.get_mut(&at) else { continue };
            deliveries.push((port.mailbox.clone(), std::mem::take(&mut port.answers)));
            if port.closed {
                self.forget_port(at, now);
            }
        }
        self.answered = answered;
        deliveries
    }

    /// A bio comes in.
    fn take_in(&mut self, port: u32, io: Box<Io>, now: u64) {
        let Some(entry) = self.ports.get_mut(&port) else { return };
        entry.flying += 1;
        let context = entry.context;
        let cookie = match self.free_entries.pop() {
            Some(cookie) => cookie,
            None => {
                self.entries.push(None);
                self.entries.len() as u32 - 1
            }
        };
        let bio = bio(&io, cookie, context);
        self.entries[cookie as usize] = Some(Entry { io: Some(io), port, at: now });
        if let Some(trace) = &self.trace {
            trace.bio(Action::Queue, &bio, port, now);
        }
        let answer = self.queue.submit(bio, now);
        self.tell_part_size(port, &bio, now);
        self.submitted(bio, answer, now);
    }

    /// What `port` sends next is split before it comes in: by what holds now.
    fn tell_part_size(&mut self, port: u32, bio: &Bio, now: u64) {
        if let Some(entry) = self.ports.get(&port) {
            entry.part_sectors_max.store(self.queue.bio_sectors_max(bio, now), Ordering::Relaxed);
        }
    }

    fn submitted(&mut self, bio: Bio, answer: Submitted, now: u64) {
        if self.trace.is_some() {
            self.trace_submitted(&bio, &answer, now);
        }
        match answer {
            Submitted::Queued(_) | Submitted::Merged(_) | Submitted::Held => {}
            Submitted::Done => self.answer(bio.cookie, Ok(()), now),
            Submitted::Full => self.waiting.push(self.queue.group_of(&bio), bio),
            Submitted::NoRoom => self.crowded.push_back(bio),
            Submitted::Refused(_) => self.answer(bio.cookie, Err(Fault::Invalid), now),
        }
    }

    fn trace_submitted(&self, bio: &Bio, answer: &Submitted, now: u64) {
        let Some(trace) = &self.trace else { return };
        let port = self.entries[bio.cookie as usize].as_ref().map_or(0, |entry| entry.port);
        match answer {
            Submitted::Queued(_) => {
                trace.bio(Action::GetRequest, bio, port, now);
                trace.bio(Action::Insert, bio, port, now);
            }
            Submitted::Merged(rq) if self.queue.requests()[*rq].sector == bio.sector => {
                trace.bio(Action::FrontMerge, bio, port, now);
            }
            Submitted::Merged(_) => trace.bio(Action::BackMerge, bio, port, now),
            Submitted::Full => trace.bio(Action::SleepRequest, bio, port, now),
            Submitted::Done | Submitted::Held | Submitted::NoRoom | Submitted::Refused(_) => {}
        }
    }

    /// Those who were woken for a slot or for room try again; did one get in?
    fn let_waiters_try(&mut self, now: u64) -> bool {
        let mut got_in = false;
        while let Some(key) = self.queue.next_wakeup() {
            let Some(bio) = self.waiting.pop(key) else { continue };
            match self.queue.resubmit(bio, now) {
                // Its group may have been removed meanwhile: then it waits as its ancestor's.
                Submitted::Full => self.waiting.push_front((self.queue.group_of(&bio), key.1), bio),
                answer => {
                    got_in = true;
                    self.submitted(bio, answer, now);
                }
            }
        }
        if self.queue.take_room() {
            for bio in std::mem::take(&mut self.crowded) {
                let answer = self.queue.submit(bio, now);
                got_in |= !matches!(answer, Submitted::Full | Submitted::NoRoom);
                self.submitted(bio, answer, now);
            }
        }
        got_in
    }

    /// The back end is done with `job`.
    fn complete(&mut self, job: Job, now: u64) {
        self.in_device -= 1;
        let Job { request, action, result, mut ios, .. } = job;
        self.jobs[usize::from(result.is_err())] += 1;
        for (cookie, mut io) in ios.drain(..) {
            io.result = result;
            if let Some(entry) = &mut self.entries[cookie as usize] {
                entry.io = Some(io);
            }
        }
        if self.spare.len() < SPARE_MAX {
            self.spare.push(ios);
        }
        if let Some(trace) = &self.trace {
            trace.request(Action::Complete, &self.queue.requests()[request], result.is_err(), now);
        }
        let status = if result.is_ok() { Status::Done } else { Status::Failed };
        let mut done = std::mem::take(&mut self.done);
        self.queue.complete_as(request, status, now, |cookie| done.push(cookie));
        // A flush has no bios: those it was for are told.
        let flush = if action == IoAction::Flush { result } else { Ok(()) };
        done.drain(..).for_each(|cookie| self.answer(cookie, flush, now));
        self.done = done;
        self.let_waiters_try(now);
    }

    /// `cookie`'s bio is done; its own result counts before `result`.
    fn answer(&mut self, cookie: u64, result: Result<(), Fault>, now: u64) {
        let Some(Entry { io: Some(mut io), port, at }) = self.entries[cookie as usize].take() else { return };
        self.free_entries.push(cookie as u32);
        io.result = io.result.and(result);
        let Some(entry) = self.ports.get_mut(&port) else { return };
        entry.flying -= 1;
        entry.latency.add(now.saturating_sub(at));
        if entry.answers.is_empty() {
            self.answered.push(port);
        }
        entry.answers.push(io);
    }

    /// Give the back end what the queue lets go.
    fn dispatch(&mut self, now: u64, jobs: &mut Vec<Job>) -> Option<u64> {
        let mut entered = Vec::new();
        let mut timer = self.queue.let_in(now, |bio, answer| entered.push((*bio, answer)));
        while self.in_device < self.depth {
            match self.queue.dispatch_with(now, |bio, answer| entered.push((*bio, answer))) {
                Dispatch::Issue(rq) => jobs.push(self.issue(rq, now)),
                Dispatch::Idle { until } => {
                    timer = Some(until.max(now + 1));
                    break;
                }
                Dispatch::Busy | Dispatch::Empty => {
                    timer = None;
                    break;
                }
            }
        }
        entered.into_iter().for_each(|(bio, answer)| self.submitted(bio, answer, now));
        timer
    }

    fn issue(&mut self, rq: RequestId, now: u64) -> Job {
        self.in_device += 1;
        let request = &self.queue.requests()[rq];
        if let Some(trace) = &self.trace {
            trace.request(Action::Issue, request, false, now);
        }
        let fua = request.flags.contains(Flags::FUA);
        if request.op == Op::Flush {
            return Job::new(rq, IoAction::Flush, 0, 0, Vec::new());
        }
        let entries = &mut self.entries;
        let take = |cookie: u64| Some((cookie as u32, entries[cookie as usize].as_mut()?.io.take()?));
        let mut ios = self.spare.pop().unwrap_or_default();
        ios.extend(self.queue.cookies(rq).filter_map(take));
        debug_assert!(!ios.is_empty(), "a request has bios");
        let (action, offset) = ios.first().map_or((IoAction::Flush, 0), |(_, io)| (io.action, io.offset));
        let bytes = ios.iter().map(|(_, io)| u64::from(io.bytes)).sum();
        Job { fua, ..Job::new(rq, action, offset, bytes, ios) }
    }
}

/// The bio of `io`. Its sender waits for the answer: writes are sync.
fn bio(io: &Io, cookie: u32, context: ContextId) -> Bio {
    let mut flags = Flags::SYNC;
    if io.fua {
        flags.insert(Flags::FUA);
    }
    // What does not fill its sectors, and zeroes, go alone: joined requests are one range with one meaning.
    if !(io.offset | u64::from(io.bytes)).is_multiple_of(512) || matches!(io.action, IoAction::Zero { .. }) {
        flags.insert(Flags::NOMERGE);
    }
    let op = match io.action {
        IoAction::Read => Op::Read,
        IoAction::Write | IoAction::Zero { .. } => Op::Write,
        IoAction::Trim => Op::Discard,
        IoAction::Flush => Op::Flush,
    };
    let (sector, end) = (io.offset / 512, io.end().div_ceil(512));
    let sectors = if op == Op::Flush { 0 } else { (end - sector) as u32 };
    Bio { cookie: cookie.into(), op, flags, sector, sectors, segments: 1, context, ioprio: None, group: None }
}
