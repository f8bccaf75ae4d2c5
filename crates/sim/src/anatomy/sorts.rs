//! Requests by what took most of their time, and the slowest of each sort.

use std::collections::BTreeMap;

use super::{Cause, RequestStory, Sort, Span};
use crate::engine::TaskId;

/// Sums of the requests of one sort.
#[derive(Debug)]
struct Totals {
    requests: u64,
    ns: u64,
    slowest: RequestStory,
}

/// All sorts so far, and which tasks count as one: those of one name.
#[derive(Debug, Default)]
pub(super) struct Sorts {
    /// The first task of each name.
    first: BTreeMap<String, TaskId>,
    /// For each task the first of its name.
    alike: BTreeMap<TaskId, TaskId>,
    totals: BTreeMap<(Option<TaskId>, Cause), Totals>,
}

impl Sorts {
    pub(super) fn named(&mut self, task: TaskId, name: &str) {
        let first = *self.first.entry(name.to_owned()).or_insert(task);
        self.alike.insert(task, first);
    }

    fn one(&self, task: Option<TaskId>) -> Option<TaskId> {
        task.map(|task| self.alike.get(&task).copied().unwrap_or(task))
    }

    /// Count a request of `task`; `story` tells its way if it is the slowest of its sort so far.
    pub(super) fn add(
        &mut self,
        task: Option<TaskId>,
        took_ns: u64,
        spans: &[Span],
        story: impl FnOnce() -> RequestStory,
    ) {
        let Some(cause) = self.main_cause(spans) else { return };
        match self.totals.get_mut(&(self.one(task), cause)) {
            Some(totals) => {
                totals.requests += 1;
                totals.ns += took_ns;
                if took_ns > totals.slowest.took_ns() {
                    totals.slowest = story();
                }
            }
            None => {
                let key = (self.one(task), cause);
                self.totals.insert(key, Totals { requests: 1, ns: took_ns, slowest: story() });
            }
        }
    }

    /// What took most of the time; tasks of one name count together.
    fn main_cause(&self, spans: &[Span]) -> Option<Cause> {
        let mut sums: Vec<(Cause, u64)> = Vec::new();
        for span in spans {
            let cause = match span.cause {
                Cause::Behind(task) => Cause::Behind(self.one(task)),
                Cause::Inside(task) => Cause::Inside(self.one(task)),
                Cause::Idling(task) => Cause::Idling(self.one(task)),
                Cause::Task(task) => Cause::Task(self.one(task)),
                other => other,
            };
            let ns = span.end_ns - span.start_ns;
            match sums.iter_mut().find(|(other, _)| *other == cause) {
                Some((_, sum)) => *sum += ns,
                None => sums.push((cause, ns)),
            }
        }
        sums.into_iter().max_by_key(|(cause, ns)| (*ns, *cause)).map(|(cause, _)| cause)
    }

    /// The sorts, the one whose slowest request took longest first.
    pub(super) fn finish(self) -> Vec<Sort> {
        let sort = |((task, cause), totals): ((Option<TaskId>, Cause), Totals)| Sort {
            task,
            cause,
            requests: totals.requests,
            total_ns: totals.ns,
            slowest: totals.slowest,
        };
        let mut sorts: Vec<Sort> = self.totals.into_iter().map(sort).collect();
        sorts.sort_by_key(|sort| std::cmp::Reverse(sort.slowest.took_ns()));
        sorts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start_ns: u64, end_ns: u64, cause: Cause) -> Span {
        Span { start_ns, end_ns, cause }
    }

    fn story(took_ns: u64) -> RequestStory {
        RequestStory {
            number: 0,
            task: None,
            op: "read",
            sync: true,
            sector: 0,
            sectors: 8,
            asked_ns: 0,
            queued_ns: 0,
            issued_ns: 0,
            done_ns: took_ns,
            spans: Vec::new(),
        }
    }

    #[test]
    fn tasks_of_one_name_are_one_cause_and_the_slowest_is_kept() {
        let [reader, a, b] = [1, 2, 3].map(TaskId);
        let mut sorts = Sorts::default();
        sorts.named(reader, "reader");
        sorts.named(a, "writer");
        sorts.named(b, "writer");
        // 6 ns behind both writers together, 5 ns being served.
        let spans = [
            span(0, 3, Cause::Behind(Some(a))),
            span(3, 6, Cause::Behind(Some(b))),
            span(6, 11, Cause::Device),
        ];
        sorts.add(Some(reader), 11, &spans, || story(11));
        sorts.add(Some(reader), 40, &[span(0, 40, Cause::Behind(Some(b)))], || story(40));
        sorts.add(Some(reader), 5, &[span(0, 5, Cause::Device)], || story(5));
        let told: Vec<_> =
            sorts.finish().iter().map(|s| (s.cause, s.requests, s.total_ns, s.slowest.took_ns())).collect();
        assert_eq!(told, [(Cause::Behind(Some(a)), 2, 51, 40), (Cause::Device, 1, 5, 5)]);
    }
}
