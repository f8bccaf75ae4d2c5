//! Calls that wait for the disk: where their time went, through all the tasks they wait for.

use std::collections::BTreeMap;

use super::recorder::{Critical, Recorder};
use super::tasks::{Wait, Why};
use super::timeline::push;
use super::{Call, CallPart, CallStory, Calls, Cause, Part, SLOWEST_CALLS, Span, Step, Whom};
use crate::engine::TaskId;

/// Longest chain of tasks that wait for each other that is followed.
const CHAIN_MAX: u32 = 8;
/// Waits of a task that are kept before old ones are dropped.
const WAITS_KEPT: usize = 4096;

/// What many calls of one kind add up to.
#[derive(Debug, Default)]
pub(super) struct CallTotals {
    count: u64,
    total_ns: u64,
    max_ns: u64,
    round_trips: u64,
    parts: BTreeMap<PartKey, PartSum>,
    slowest: Vec<CallStory>,
}

/// Parts that are added up: step, its task, kind of cause, the task that caused it.
type PartKey = (Step, Whom, Cause, Whom);

/// Their sum.
#[derive(Clone, Copy, Debug)]
struct PartSum {
    /// One of the causes, whose task stands for all.
    cause: Cause,
    ns: u64,
    calls: u64,
}

/// The parts of one call.
struct Explanation {
    parts: Vec<Part>,
    round_trips: u64,
}

impl Recorder {
    /// `task` calls. A call within a call belongs to the outer one.
    pub(crate) fn begin_call(&mut self, task: TaskId, call: Call, now: u64) {
        let state = self.task(task);
        match &mut state.call {
            Some((_, _, depth)) => *depth += 1,
            None => {
                state.call = Some((call, now, 0));
                self.open_calls += 1;
            }
        }
    }

    /// The call of `task` that began last comes back.
    pub(crate) fn end_call(&mut self, task: TaskId, now: u64) {
        let state = self.task(task);
        let Some((call, start_ns, depth)) = &mut state.call else { return };
        if *depth > 0 {
            *depth -= 1;
            return;
        }
        let (call, start_ns) = (*call, *start_ns);
        state.call = None;
        state.step = Step::Call;
        let mut explanation = Explanation { parts: Vec::new(), round_trips: 0 };
        self.follow(task, start_ns, now, Step::Call, CHAIN_MAX, &mut explanation);
        self.add_call(task, call, start_ns, now, explanation);
        self.open_calls -= 1;
        self.forget_waits(task);
    }

    /// Drop waits that no open call can ask for.
    fn forget_waits(&mut self, caller: TaskId) {
        if self.open_calls > 0 && self.task(caller).waits.len() < WAITS_KEPT {
            return;
        }
        let before = self.oldest_call_ns();
        for task in &mut self.tasks {
            let old = task.waits.partition_point(|wait| wait.end_ns <= before);
            task.waits.drain(..old);
        }
    }

    /// What `task` did, or waited for, from `from` to `to`.
    fn follow(&self, task: TaskId, from: u64, to: u64, step: Step, chain_max: u32, out: &mut Explanation) {
        let Some(state) = self.tasks.get(task.0) else { return };
        let first = state.waits.partition_point(|wait| wait.end_ns <= from);
        let mut at = from;
        for wait in state.waits.range(first..).copied().chain(state.open_wait(to)) {
            if wait.start_ns >= to {
                break;
            }
            let (start, end) = (wait.start_ns.max(at), wait.end_ns.min(to));
            if end <= start {
                continue;
            }
            out.push(task, step, &[Span { start_ns: at, end_ns: start, cause: Cause::Cpu }]);
            let step = if wait.step == Step::Call { step } else { wait.step };
            self.follow_wait(task, &wait, start, end, step, chain_max, out);
            at = end;
        }
        out.push(task, step, &[Span { start_ns: at, end_ns: to, cause: Cause::Cpu }]);
    }

    #[expect(clippy::too_many_arguments, reason = "a stretch of time, whose, and where it belongs")]
    fn follow_wait(
        &self,
        task: TaskId,
        wait: &Wait,
        start: u64,
        end: u64,
        step: Step,
        chain_max: u32,
        out: &mut Explanation,
    ) {
        match wait.why {
            Why::For(Some(other)) if chain_max > 0 && other != task => {
                self.follow(other, start, end, step, chain_max - 1, out);
            }
            Why::For(other) => {
                out.push(task, step, &[Span { start_ns: start, end_ns: end, cause: Cause::Task(other) }]);
            }
            Why::Because(cause) => out.push(task, step, &[Span { start_ns: start, end_ns: end, cause }]),
            Why::Io => {
                out.round_trips += 1;
                out.push(task, step, &self.io_spans(wait.by.as_ref(), start, end));
            }
        }
    }

    /// Waiting for I/O that `request` ended: until it went to the device, whatever kept it from there; then the device; then,
    /// where its cache has to be flushed behind it, that.
    fn io_spans(&self, request: Option<&Critical>, start: u64, end: u64) -> Vec<Span> {
        let mut spans = Vec::new();
        let timeline = |from: u64, to: u64, spans: &mut Vec<Span>| {
            if to > from {
                self.timeline.split(from, to, spans);
            }
        };
        let known = request.and_then(|r| Some((r.plugged_ns(), r.issued_ns?, r.began_ns, r.done_ns?)));
        let Some((plugged, issued, began, done)) = known else {
            timeline(start, end, &mut spans);
            return spans;
        };
        let within = |at: u64| at.clamp(start, end);
        let [queued, released, issued, began, done] = [plugged.0, plugged.1, issued, began, done].map(within);
        timeline(start, queued, &mut spans);
        push(&mut spans, queued, released, Cause::Plugged);
        timeline(released, issued, &mut spans);
        if began > issued {
            self.timeline.split_inside(issued, began, &mut spans);
        }
        push(&mut spans, began.max(issued), done, Cause::Device);
        timeline(done, end, &mut spans);
        spans
    }

    fn add_call(&mut self, task: TaskId, call: Call, start_ns: u64, end_ns: u64, explanation: Explanation) {
        let name = self.task(task).name.clone();
        let mut of_this: BTreeMap<PartKey, PartSum> = BTreeMap::new();
        for part in &explanation.parts {
            let whom = task_in(part.cause).map_or(Whom::Nobody, |whom| self.seen_from(task, whom));
            let key = (part.step, self.seen_from(task, Some(part.by)), kind_of(part.cause), whom);
            let sum = of_this.entry(key).or_insert(PartSum { cause: part.cause, ns: 0, calls: 1 });
            sum.ns += part.end_ns - part.start_ns;
        }
        let totals = self.calls.entry((name, call)).or_default();
        let took = end_ns - start_ns;
        totals.count += 1;
        totals.total_ns += took;
        totals.max_ns = totals.max_ns.max(took);
        totals.round_trips += explanation.round_trips;
        for (key, one) in of_this {
            let sum = totals.parts.entry(key).or_insert(PartSum { ns: 0, calls: 0, ..one });
            sum.ns += one.ns;
            sum.calls += one.calls;
        }
        let story = CallStory { task, start_ns, end_ns, parts: explanation.parts };
        let place = totals.slowest.partition_point(|other| other.end_ns - other.start_ns >= took);
        totals.slowest.insert(place, story);
        totals.slowest.truncate(SLOWEST_CALLS);
    }

    /// Who `other` is for `task`.
    fn seen_from(&self, task: TaskId, other: Option<TaskId>) -> Whom {
        let Some(other) = other else { return Whom::Nobody };
        let name = |task: TaskId| self.tasks.get(task.0).map_or("", |t| t.name.as_str());
        match () {
            () if other == task => Whom::Caller,
            () if name(other) == name(task) => Whom::Sibling,
            () => Whom::Named(name(other).to_owned()),
        }
    }
}

impl Explanation {
    fn push(&mut self, by: TaskId, step: Step, spans: &[Span]) {
        for span in spans.iter().filter(|span| span.end_ns > span.start_ns) {
            let Span { start_ns, end_ns, cause } = *span;
            match self.parts.last_mut() {
                Some(last)
                    if (last.step, last.by, last.cause, last.end_ns) == (step, by, cause, start_ns) =>
                {
                    last.end_ns = end_ns;
                }
                _ => self.parts.push(Part { start_ns, end_ns, step, by, cause }),
            }
        }
    }
}

impl CallTotals {
    pub(super) fn into_calls(self, name: String, call: Call) -> Calls {
        let part = |((step, by, _, whom), sum): (PartKey, PartSum)| {
            let PartSum { cause, ns, calls } = sum;
            CallPart { step, by, cause, whom, ns, calls }
        };
        Calls {
            name,
            call,
            count: self.count,
            total_ns: self.total_ns,
            max_ns: self.max_ns,
            round_trips: self.round_trips,
            parts: self.parts.into_iter().map(part).collect(),
            slowest: self.slowest,
        }
    }
}

/// The task a cause names, if it is of a kind that names one.
const fn task_in(cause: Cause) -> Option<Option<TaskId>> {
    match cause {
        Cause::Behind(task) | Cause::Inside(task) | Cause::Idling(task) | Cause::Task(task) => Some(task),
        _ => None,
    }
}

/// The same cause, without the task.
const fn kind_of(cause: Cause) -> Cause {
    match cause {
        Cause::Behind(_) => Cause::Behind(None),
        Cause::Inside(_) => Cause::Inside(None),
        Cause::Idling(_) => Cause::Idling(None),
        Cause::Task(_) => Cause::Task(None),
        other => other,
    }
}
