//! Who dirties how much: a task's part of all pages that became dirty lately lowers its own dirty limit by up to an eighth, so that
//! who dirties most is held back first and who dirties little is not held back at all.
//!
//! Source: `mm/page-writeback.c` from 2.6.24 on, until pauses by rate replaced it in 3.2 (`task_dirty_limit`); "lately" is
//! the floating proportion of `lib/proportions.c`.

use std::collections::BTreeMap;

/// A heavy dirtier's limit is at most this part of the limit lower.
const LOWERED_BY: u64 = 8;

/// The parts of all tasks, older dirtying counting half as much with each period.
#[derive(Debug)]
pub(super) struct Shares {
    /// Pages in a period: two to four times the dirty limit.
    period: u64,
    /// Pages that became dirty since the start, by whomever.
    dirtied: u64,
    tasks: BTreeMap<usize, Share>,
}

/// A task's pages, as they counted in that period.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    pages: u64,
    period: u64,
}

impl Shares {
    pub(super) fn new(limit_pages: u64) -> Shares {
        Shares { period: 2 << limit_pages.max(2).ilog2(), dirtied: 0, tasks: BTreeMap::new() }
    }

    /// `task` made so many pages dirty.
    pub(super) fn add(&mut self, task: usize, pages: u64) {
        let pages_before = self.pages_of(task);
        let share = Share { pages: pages_before + pages, period: self.dirtied / self.period };
        self.tasks.insert(task, share);
        self.dirtied += pages;
    }

    /// The task's own dirty limit.
    pub(super) fn limit_of(&self, task: usize, limit: u64) -> u64 {
        let all = self.period + self.dirtied % self.period;
        let lower = limit / LOWERED_BY * self.pages_of(task) / all;
        (limit - lower.min(limit)).max(limit / 2)
    }

    fn pages_of(&self, task: usize) -> u64 {
        let share = self.tasks.get(&task).copied().unwrap_or_default();
        let periods = self.dirtied / self.period - share.period;
        share.pages.checked_shr(u32::try_from(periods).unwrap_or(u32::MAX)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limit 1000 pages: a period is 1024. After many periods alone a task's limit is an eighth lower, another's untouched.
    #[test]
    fn who_dirties_all_of_it_has_seven_eighths() {
        let mut shares = Shares::new(1000);
        assert_eq!(shares.period, 1024);
        (0..10_000).for_each(|_| shares.add(1, 8));
        assert_eq!(shares.limit_of(1, 1000), 875 + 1);
        assert_eq!(shares.limit_of(2, 1000), 1000);
    }

    #[test]
    fn two_alike_have_a_sixteenth_less_each_and_it_is_forgotten_when_they_stop() {
        let mut shares = Shares::new(1000);
        for _ in 0..1000 {
            shares.add(1, 8);
            shares.add(2, 8);
        }
        for task in [1, 2] {
            assert!((935..=940).contains(&shares.limit_of(task, 1000)), "{}", shares.limit_of(task, 1000));
        }
        shares.add(3, 64 * 1024);
        assert_eq!(shares.limit_of(1, 1000), 1000);
    }
}
