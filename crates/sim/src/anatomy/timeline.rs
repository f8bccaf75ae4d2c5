//! What the queue and its device did, from the start of the run on.

use std::collections::{BTreeMap, VecDeque};

use super::{Cause, OverTime, Span};
use crate::engine::TaskId;

/// What they do at a moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// There is nothing to do.
    Empty,
    /// The device works; the next completion says for which task.
    Busy,
    /// Nothing (more) goes to the device, because of this.
    Waiting(Cause),
}

/// Stretches of time with one cause each, oldest first, without gaps from `kept_from_ns` on but for times with nothing to do.
#[derive(Debug)]
pub(super) struct Timeline {
    spans: VecDeque<Span>,
    state: State,
    since_ns: u64,
    /// Whose request went to the device last.
    last_issued: Cause,
    totals: BTreeMap<Cause, u64>,
    over_time: OverTime<Cause>,
}

impl Timeline {
    pub(super) fn new() -> Timeline {
        Timeline {
            spans: VecDeque::new(),
            state: State::Empty,
            since_ns: 0,
            last_issued: Cause::Behind(None),
            totals: BTreeMap::new(),
            over_time: OverTime::new(),
        }
    }

    /// From now on it is `state`.
    pub(super) fn enter(&mut self, state: State, now: u64) {
        if state != self.state {
            self.close(self.last_issued, now);
            self.state = state;
        }
    }

    /// A request of this kind went to the device.
    pub(super) fn issued(&mut self, cause: Cause) {
        self.last_issued = cause;
    }

    /// The device did a request of this kind: it worked for it since it last finished one.
    pub(super) fn completed(&mut self, cause: Cause, now: u64) {
        if self.state == State::Busy {
            self.close(cause, now);
        }
    }

    /// The stretch up to `now` ends; if the device was busy, because of `busy`.
    fn close(&mut self, busy: Cause, now: u64) {
        let start_ns = std::mem::replace(&mut self.since_ns, now);
        let cause = match self.state {
            State::Empty => return,
            State::Busy => busy,
            State::Waiting(cause) => cause,
        };
        if now <= start_ns {
            return;
        }
        *self.totals.entry(cause).or_default() += now - start_ns;
        self.over_time.add(cause, start_ns, now);
        match self.spans.back_mut() {
            Some(last) if last.cause == cause && last.end_ns == start_ns => last.end_ns = now,
            _ => self.spans.push_back(Span { start_ns, end_ns: now, cause }),
        }
    }

    /// What happened from `from` to `to`, without a gap.
    pub(super) fn split(&self, from: u64, to: u64, spans: &mut Vec<Span>) {
        let first = self.spans.partition_point(|span| span.end_ns <= from);
        let mut at = from;
        for span in self.spans.range(first..).take_while(|span| span.start_ns < to) {
            push(spans, at, span.start_ns, Cause::Held);
            at = span.end_ns.min(to);
            push(spans, span.start_ns.max(from), at, span.cause);
        }
        let open = match self.state {
            State::Empty => Cause::Held,
            State::Busy => self.last_issued,
            State::Waiting(cause) => cause,
        };
        push(spans, at, to, open);
    }

    /// The same for a request that is in the device: what it worked for meanwhile.
    pub(super) fn split_inside(&self, from: u64, to: u64, spans: &mut Vec<Span>) {
        let mut behind = Vec::new();
        self.split(from, to, &mut behind);
        for span in behind {
            let whom = match span.cause {
                Cause::Behind(task) => task,
                _ => None,
            };
            push(spans, span.start_ns, span.end_ns, Cause::Inside(whom));
        }
    }

    /// No later call asks for times before `before`.
    pub(super) fn forget(&mut self, before: u64) {
        let old = self.spans.partition_point(|span| span.end_ns <= before);
        self.spans.drain(..old);
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Time by cause up to `now`.
    pub(super) fn totals(&mut self, now: u64) -> &BTreeMap<Cause, u64> {
        self.close(self.last_issued, now);
        &self.totals
    }

    /// The same, as it went on.
    pub(super) fn over_time(&self) -> &OverTime<Cause> {
        &self.over_time
    }
}

/// Add a stretch of time, unless it is empty; it grows the last one if that has the same cause.
pub(super) fn push(spans: &mut Vec<Span>, start_ns: u64, end_ns: u64, cause: Cause) {
    if end_ns <= start_ns {
        return;
    }
    match spans.last_mut() {
        Some(last) if last.cause == cause && last.end_ns == start_ns => last.end_ns = end_ns,
        _ => spans.push(Span { start_ns, end_ns, cause }),
    }
}

/// The cause for others of the device working for `task`.
pub(super) const fn behind(task: Option<TaskId>) -> Cause {
    Cause::Behind(task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_leaves_no_gap() {
        let (a, b) = (behind(Some(TaskId(1))), behind(Some(TaskId(2))));
        let mut line = Timeline::new();
        line.enter(State::Busy, 10);
        line.completed(a, 20);
        line.completed(b, 35);
        line.enter(State::Waiting(Cause::Idling(Some(TaskId(2)))), 35);
        line.enter(State::Empty, 43);
        line.enter(State::Busy, 50);
        line.issued(a);
        let mut spans = Vec::new();
        line.split(15, 60, &mut spans);
        let shown: Vec<_> = spans.iter().map(|s| (s.start_ns, s.end_ns, s.cause)).collect();
        let wanted = [(15, 20, a), (20, 35, b), (35, 43, Cause::Idling(Some(TaskId(2)))), (43, 60, a)];
        assert_eq!(shown[..3], wanted[..3]);
        assert_eq!(spans.iter().map(|s| s.end_ns - s.start_ns).sum::<u64>(), 45);
        line.forget(30);
        let mut again = Vec::new();
        line.split(30, 60, &mut again);
        assert_eq!(again.iter().map(|s| s.end_ns - s.start_ns).sum::<u64>(), 30);
    }
}
