//! Hears what happens in block layer and engine, and turns it into an [`Anatomy`].

use std::collections::{BTreeMap, VecDeque};

use fairlift_core::collections::Id;
use fairlift_core::request::{RequestState, Requests};
use fairlift_core::{Bio, Flags, Op, Request, RequestId};

use super::calls::CallTotals;
use super::sorts::Sorts;
use super::tasks::{Task, Why};
use super::timeline::{State, Timeline, behind, push};
use super::window::Windows;
use super::{
    Anatomy, Call, Cause, DeviceTimes, GroupTimes, RequestStory, SLOWEST_REQUESTS, Served, Share, Span, Step,
    TaskTimes, Window,
};
use crate::engine::{OpId, TaskId};
use crate::group::Cgroup;

/// Stretches of time kept before those that no later call can ask for are looked for and dropped.
const KEPT: usize = 1 << 16;

/// A request on its way, or the last one in its slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Critical {
    number: u64,
    task: Option<TaskId>,
    asked_ns: u64,
    queued_ns: u64,
    /// When its task's plug let it go.
    released_ns: u64,
    pub(super) issued_ns: Option<u64>,
    /// When the device began to serve it.
    pub(super) began_ns: u64,
    pub(super) done_ns: Option<u64>,
}

/// What the requests of a group came to.
#[derive(Debug, Default)]
struct GroupTotals {
    requests: u64,
    request_ns: u64,
    causes: BTreeMap<Cause, u64>,
}

/// The recorder of a run.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(super) timeline: Timeline,
    /// By request slot.
    slots: Vec<Option<Critical>>,
    numbers: u64,
    /// Requests in their tasks' plugs.
    plugged: Vec<RequestId>,
    /// Tasks that wait for a slot, and since when.
    asked: BTreeMap<TaskId, u64>,
    /// The request that took an operation's bio last: slot and number, by operation.
    request_of: Vec<Option<(usize, u64)>>,
    /// In the order of the block layer's own list: which request ended each operation that is done.
    done_by: VecDeque<Option<Critical>>,
    pub(super) tasks: Vec<Task>,
    /// By [`Cgroup`]; empty when there is none but the root.
    groups: Vec<GroupTotals>,
    pub(super) open_calls: usize,
    pub(super) calls: BTreeMap<(String, Call), CallTotals>,
    slowest: Vec<RequestStory>,
    sorts: Sorts,
    windows: Windows,
    trim_at: usize,
}

impl Recorder {
    pub(crate) fn new() -> Recorder {
        Recorder {
            timeline: Timeline::new(),
            slots: Vec::new(),
            plugged: Vec::new(),
            numbers: 0,
            asked: BTreeMap::new(),
            request_of: Vec::new(),
            done_by: VecDeque::new(),
            tasks: Vec::new(),
            groups: Vec::new(),
            open_calls: 0,
            calls: BTreeMap::new(),
            slowest: Vec::new(),
            sorts: Sorts::default(),
            windows: Windows::default(),
            trim_at: KEPT,
        }
    }

    // ---- tasks -----------------------------------------------------------------------------------------------------------

    pub(super) fn task(&mut self, task: TaskId) -> &mut Task {
        if task.0 >= self.tasks.len() {
            self.tasks.resize_with(task.0 + 1, Task::default);
        }
        &mut self.tasks[task.0]
    }

    pub(crate) fn named(&mut self, task: TaskId, name: &str) {
        name.clone_into(&mut self.task(task).name);
        self.sorts.named(task, name);
    }

    /// The task is in this group.
    pub(crate) fn belongs(&mut self, task: TaskId, group: Cgroup) {
        self.task(task).group = group;
    }

    /// The run has so many groups, the root included.
    pub(crate) fn use_groups(&mut self, groups: usize) {
        self.groups.resize_with(groups, GroupTotals::default);
    }

    /// The task cannot go on.
    pub(crate) fn pends(&mut self, task: TaskId, why: Why, now: u64) {
        self.task(task).pends(why, now);
    }

    /// The task goes on.
    pub(crate) fn resumes(&mut self, task: TaskId, now: u64) {
        let kept = self.open_calls > 0;
        self.task(task).resumes(now, kept);
    }

    /// From now on what the task does belongs to this step.
    pub(crate) fn step(&mut self, task: TaskId, step: Step) {
        self.task(task).step = step;
    }

    /// The task is woken because an operation is done, which `request` ended.
    pub(crate) fn woken(&mut self, task: TaskId, request: Option<Critical>) {
        self.task(task).woken_by = request;
    }

    // ---- requests --------------------------------------------------------------------------------------------------------

    /// A bio found no slot.
    pub(crate) fn full(&mut self, task: TaskId, now: u64) {
        self.asked.entry(task).or_insert(now);
    }

    /// A bio became a request; `plugged`: in its task's plug.
    pub(crate) fn queued(&mut self, rq: RequestId, op: OpId, task: TaskId, plugged: bool, now: u64) {
        if plugged {
            self.plugged.push(rq);
        }
        self.numbers += 1;
        let asked_ns = self.asked.remove(&task).unwrap_or(now);
        let request = Critical {
            number: self.numbers,
            task: Some(task),
            asked_ns,
            queued_ns: now,
            released_ns: now,
            issued_ns: None,
            began_ns: now,
            done_ns: None,
        };
        *grown(&mut self.slots, rq.index()) = Some(request);
        *grown(&mut self.request_of, op.number()) = Some((rq.index(), self.numbers));
    }

    /// A bio joined a request.
    pub(crate) fn merged(&mut self, rq: RequestId, op: OpId, task: TaskId) {
        self.asked.remove(&task);
        let number = grown(&mut self.slots, rq.index()).map_or(0, |request| request.number);
        *grown(&mut self.request_of, op.number()) = Some((rq.index(), number));
    }

    /// A task's plug may have been emptied: which of its requests are with the elevator now?
    pub(crate) fn look_at_plugs(&mut self, requests: &Requests, now: u64) {
        let slots = &mut self.slots;
        self.plugged.retain(|rq| {
            let held = requests[*rq].state == RequestState::Held;
            if !held && let Some(request) = grown(slots, rq.index()) {
                // It may be with the device already, when the plug is looked at.
                request.released_ns = request.issued_ns.unwrap_or(now).min(now);
            }
            held
        });
    }

    /// The device got a request of `task`.
    pub(crate) fn issued(&mut self, rq: RequestId, request: &Request, task: Option<TaskId>, now: u64) {
        if request.op == Op::Flush {
            self.timeline.issued(Cause::Flush);
            return;
        }
        self.timeline.issued(behind(task));
        if let Some(request) = grown(&mut self.slots, rq.index()) {
            request.issued_ns = Some(now);
        }
    }

    /// The device did a request of `task`, which `group` has to answer for; it waited inside the device until `began_ns`.
    pub(crate) fn completed(
        &mut self,
        rq: RequestId,
        request: &Request,
        task: Option<TaskId>,
        group: Cgroup,
        (began_ns, now): (u64, u64),
    ) {
        if request.op == Op::Flush {
            self.timeline.completed(Cause::Flush, now);
            return;
        }
        self.timeline.completed(behind(task), now);
        let Some(slot) = grown(&mut self.slots, rq.index()) else { return };
        slot.done_ns = Some(now);
        slot.began_ns = began_ns.clamp(slot.issued_ns.unwrap_or(now).min(now), now);
        let known = *slot;
        let spans = self.spans_of(&known);
        let took = now - known.asked_ns;
        if let Some(task) = known.task {
            let state = self.task(task);
            state.requests += 1;
            state.request_ns += took;
            for span in &spans {
                *state.causes.entry(span.cause).or_default() += span.end_ns - span.start_ns;
            }
        }
        if let Some(totals) = self.groups.get_mut(group.index()) {
            totals.requests += 1;
            totals.request_ns += took;
            for span in &spans {
                *totals.causes.entry(span.cause).or_default() += span.end_ns - span.start_ns;
            }
        }
        self.sorts.add(known.task, took, &spans, || story(&known, request, spans.clone()));
        let served = Served {
            task,
            write: request.op != Op::Read,
            sector: request.sector,
            sectors: request.sectors,
            issued_ns: known.issued_ns.unwrap_or(known.began_ns),
            began_ns: known.began_ns,
            done_ns: now,
        };
        if self.windows.add(served) {
            let window = self.window();
            self.windows.keep(window);
        }
        self.keep_if_slow(&known, request, took, spans);
    }

    /// The last requests, and what the device did meanwhile.
    fn window(&self) -> Window {
        let mut window = self.windows.last();
        self.timeline.split(window.from_ns, window.to_ns, &mut window.spans);
        window
    }

    /// Where a request's time went.
    fn spans_of(&self, request: &Critical) -> Vec<Span> {
        let Critical { asked_ns, queued_ns, released_ns, .. } = *request;
        let (Some(issued), Some(done)) = (request.issued_ns, request.done_ns) else { return Vec::new() };
        let mut spans = Vec::new();
        push(&mut spans, asked_ns, queued_ns, Cause::Slot);
        push(&mut spans, queued_ns, released_ns, Cause::Plugged);
        self.timeline.split(released_ns, issued, &mut spans);
        self.timeline.split_inside(issued, request.began_ns, &mut spans);
        push(&mut spans, request.began_ns, done, Cause::Device);
        spans
    }

    fn keep_if_slow(&mut self, known: &Critical, request: &Request, took: u64, spans: Vec<Span>) {
        let full = self.slowest.len() >= SLOWEST_REQUESTS;
        if full && self.slowest.last().is_some_and(|last| last.took_ns() >= took) {
            return;
        }
        self.slowest.truncate(SLOWEST_REQUESTS - 1);
        let place = self.slowest.partition_point(|other| other.took_ns() >= took);
        self.slowest.insert(place, story(known, request, spans));
    }

    /// An operation is done, ended by the request in `rq` if the device did one just now; in the block layer's order.
    pub(crate) fn op_done(&mut self, op: OpId, rq: Option<(RequestId, Op)>) {
        let slot = match rq {
            Some((rq, kind)) if kind != Op::Flush => self.slots.get(rq.index()).copied().flatten(),
            // The queue's own flush ended it: what counts is the request it was for.
            _ => self.request_of.get(op.number()).copied().flatten().and_then(|(slot, number)| {
                self.slots.get(slot).copied().flatten().filter(|request| request.number == number)
            }),
        };
        self.done_by.push_back(slot);
    }

    /// The request that ended the operation that the block layer hands out now.
    pub(crate) fn next_done(&mut self) -> Option<Critical> {
        self.done_by.pop_front().flatten()
    }

    // ---- the queue --------------------------------------------------------------------------------------------------------

    /// What the queue and the device do from now on. `oldest_ns`: since when the oldest request is in flight.
    pub(crate) fn queue_state(
        &mut self,
        busy: bool,
        waiting: Option<Cause>,
        now: u64,
        oldest_ns: impl Fn() -> u64,
    ) {
        let state = match (waiting, busy) {
            (Some(cause), _) => State::Waiting(cause),
            (None, true) => State::Busy,
            (None, false) => State::Empty,
        };
        self.timeline.enter(state, now);
        if self.timeline.len() > self.trim_at {
            self.trim(oldest_ns());
        }
    }

    /// Forget what no later call can ask for: before the oldest request, wait for a slot, and call.
    fn trim(&mut self, oldest_request_ns: u64) {
        let asked = self.asked.values().copied().min().unwrap_or(u64::MAX);
        let before = self.oldest_call_ns().min(asked).min(oldest_request_ns).min(self.windows.oldest_ns());
        self.timeline.forget(before);
        self.trim_at = KEPT.max(2 * self.timeline.len());
    }

    pub(super) fn oldest_call_ns(&self) -> u64 {
        self.tasks.iter().filter_map(|t| t.call.map(|(_, start, _)| start)).min().unwrap_or(u64::MAX)
    }

    /// Everything, at the end of the run.
    pub(crate) fn finish(mut self, now: u64) -> Anatomy {
        let share = |(cause, ns): (&Cause, &u64)| Share { cause: *cause, ns: *ns };
        for task in 0..self.tasks.len() {
            self.resumes(TaskId(task), now);
        }
        let window = self.windows.take().unwrap_or_else(|| self.window());
        let times = |(number, task): (usize, &Task)| TaskTimes {
            task: TaskId(number),
            name: task.name.clone(),
            requests: task.requests,
            request_ns: task.request_ns,
            request_causes: task.causes.iter().map(share).collect(),
            waits: task.totals.iter().map(share).collect(),
            group: task.group.index(),
        };
        let of_group = |group: &GroupTotals| GroupTimes {
            requests: group.requests,
            request_ns: group.request_ns,
            request_causes: group.causes.iter().map(share).collect(),
        };
        Anatomy {
            duration_ns: now,
            tasks: self.tasks.iter().enumerate().map(times).collect(),
            groups: self.groups.iter().map(of_group).collect(),
            device: DeviceTimes {
                causes: self.timeline.totals(now).iter().map(share).collect(),
                over_time: self.timeline.over_time().clone(),
            },
            slowest: self.slowest,
            calls: self
                .calls
                .into_iter()
                .map(|((name, call), totals)| totals.into_calls(name, call))
                .collect(),
            sorts: self.sorts.finish(),
            window,
        }
    }
}

/// A request's way.
fn story(known: &Critical, request: &Request, spans: Vec<Span>) -> RequestStory {
    RequestStory {
        number: known.number,
        task: known.task,
        op: match request.op {
            Op::Read => "read",
            Op::Discard => "discard",
            Op::Write | Op::Flush => "write",
        },
        sync: request.is_sync(),
        sector: request.sector,
        sectors: request.sectors,
        asked_ns: known.asked_ns,
        queued_ns: known.queued_ns,
        issued_ns: known.issued_ns.unwrap_or(known.queued_ns),
        done_ns: known.done_ns.unwrap_or(known.queued_ns),
        spans,
    }
}

/// The element, of a vector that is as long as it has to be.
fn grown<T: Clone>(vector: &mut Vec<Option<T>>, index: usize) -> &mut Option<T> {
    if index >= vector.len() {
        vector.resize(index + 1, None);
    }
    &mut vector[index]
}

impl Critical {
    /// While it was in its task's plug.
    pub(super) const fn plugged_ns(&self) -> (u64, u64) {
        (self.queued_ns, self.released_ns)
    }
}

/// Is this bio's request in its task's plug? One that waits for a flush is held, too.
pub(crate) fn is_plugged(request: &Request, bio: &Bio) -> bool {
    let ordered = bio.op == Op::Flush || bio.flags.intersects(Flags::PREFLUSH | Flags::BARRIER);
    request.state == RequestState::Held && !ordered
}
