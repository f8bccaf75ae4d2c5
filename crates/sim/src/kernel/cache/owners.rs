//! Who made pages dirty: in runs of pages, as long as they are dirty.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::group::Cgroup;

/// The owners of a file's dirty pages.
#[derive(Debug, Default)]
pub(super) struct Owners {
    /// First page of a run -> (page behind it, owner).
    runs: BTreeMap<u64, (u64, Cgroup)>,
}

impl Owners {
    /// `page`, which has no owner, belongs to `owner`.
    pub(super) fn insert(&mut self, page: u64, owner: Cgroup) {
        let mut run = page..page + 1;
        if let Some((start, (end, before))) = self.runs.range(..page).next_back()
            && (*end, *before) == (page, owner)
        {
            run.start = *start;
        }
        if let Some((end, behind)) = self.runs.get(&run.end).copied()
            && behind == owner
        {
            self.runs.remove(&run.end);
            run.end = end;
        }
        self.runs.insert(run.start, (run.end, owner));
    }

    /// The runs of `owner`, from page `from` on to the end and then from the start.
    pub(super) fn of(&self, owner: Cgroup, from: u64) -> impl Iterator<Item = Range<u64>> + '_ {
        let within = self.runs.range(..from).next_back().filter(|(_, (end, _))| *end > from);
        let rest = within.map(|(_, (end, whose))| (from, *end, *whose));
        let behind = self.runs.range(from..).map(|(start, (end, whose))| (*start, *end, *whose));
        let before = self.runs.range(..from).map(|(start, (end, whose))| (*start, *end, *whose));
        let all = rest.into_iter().chain(behind).chain(before);
        all.filter(move |(.., whose)| *whose == owner).map(|(start, end, _)| start..end)
    }

    /// `pages` have no owners any longer: who they were, in order.
    pub(super) fn take(&mut self, pages: Range<u64>) -> Vec<(Range<u64>, Cgroup)> {
        let mut taken = Vec::new();
        let first = self.runs.range(..=pages.start).next_back().map_or(pages.start, |(start, _)| *start);
        let touched: Vec<_> =
            self.runs.range(first..pages.end.max(first)).map(|(s, (e, o))| (*s, *e, *o)).collect();
        for (start, end, owner) in touched {
            let part = start.max(pages.start)..end.min(pages.end);
            if part.is_empty() {
                continue;
            }
            self.runs.remove(&start);
            if start < part.start {
                self.runs.insert(start, (part.start, owner));
            }
            if part.end < end {
                self.runs.insert(part.end, (end, owner));
            }
            taken.push((part, owner));
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_owner_are_one_and_are_taken_in_parts() {
        let mut owners = Owners::default();
        for page in [4, 0, 1, 3, 2] {
            owners.insert(page, Cgroup(1));
        }
        owners.insert(5, Cgroup(2));
        assert_eq!(owners.runs.len(), 2);
        assert_eq!(owners.of(Cgroup(1), 3).collect::<Vec<_>>(), [3..5, 0..5]);
        assert_eq!(owners.of(Cgroup(2), 9).next(), Some(5..6));
        assert_eq!(owners.take(1..2), [(1..2, Cgroup(1))]);
        assert_eq!(owners.runs.len(), 3);
        assert_eq!(owners.take(0..9), [(0..1, Cgroup(1)), (2..5, Cgroup(1)), (5..6, Cgroup(2))]);
        assert!(owners.runs.is_empty());
        assert_eq!(owners.take(3..3), []);
    }
}
