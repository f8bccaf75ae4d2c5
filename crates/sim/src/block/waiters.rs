//! Tasks that wait for a request slot, and who of them is woken when slots become free.
//!
//! With pools (2.6) sync and async I/O wait in a line each, the queue says who is woken, and a task that finds the slot gone
//! goes to the end. With tags (blk-mq) all wait in one line. Freed tags are counted while a task waits, and as soon as there
//! is a batch of them as many waiters are woken, longest wait first; one that finds no tag keeps its place.
//!
//! Source: Linux 6.12 `lib/sbitmap.c` (`sbq_calc_wake_batch`, `sbitmap_queue_wake_up`), `block/blk-mq-tag.c`. The kernel spreads
//! its waiters over eight lines and asks these in turn, and one that loses goes to the end of the next line: by chance it
//! wins soon. Here nothing is left to chance, so the longest wait wins.

use std::collections::VecDeque;

use fairlift_core::GroupId;
use fairlift_core::queue::Admission;

use crate::engine::TaskId;

/// Lines in which a bitmap of tags lets tasks wait: a batch is at most its share of the tags.
const WAIT_QUEUES: u32 = 8;
/// Waiters woken at a time, at most.
const WAKE_BATCH_MAX: u32 = 8;

/// When a task began to wait: a place in line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Place(u64);

#[derive(Clone, Copy, Debug)]
struct Waiter {
    place: Place,
    task: TaskId,
    group: GroupId,
}

/// Tasks that wait for a request slot.
#[derive(Debug)]
pub(super) struct Waiters {
    /// Longest wait first; `[async, sync]`, or all in the first with tags.
    lines: [VecDeque<Waiter>; 2],
    tags: bool,
    /// Tags freed since waiters were woken last.
    freed: u32,
    /// Places given out.
    places: u64,
}

impl Waiters {
    pub(super) fn new(admission: Admission) -> Waiters {
        let tags = matches!(admission, Admission::Tags { .. });
        Waiters { lines: [VecDeque::new(), VecDeque::new()], tags, freed: 0, places: 0 }
    }

    /// Is there one line for all I/O?
    pub(super) fn has_tags(&self) -> bool {
        self.tags
    }

    fn line(&mut self, sync: bool) -> &mut VecDeque<Waiter> {
        &mut self.lines[usize::from(sync && !self.tags)]
    }

    /// `task` waits, with its bio's group; it had `place` before, if it was woken in vain.
    pub(super) fn add(&mut self, task: TaskId, group: GroupId, sync: bool, place: Option<Place>) -> Place {
        let kept = place.filter(|_| self.tags);
        let place = kept.unwrap_or_else(|| {
            self.places += 1;
            Place(self.places)
        });
        let line = self.line(sync);
        let at = line.partition_point(|waiter| waiter.place < place);
        line.insert(at, Waiter { place, task, group });
        place
    }

    /// The waiter of `group` that waits longest leaves the line.
    pub(super) fn take(&mut self, group: GroupId, sync: bool) -> Option<TaskId> {
        let line = self.line(sync);
        let first = line.iter().position(|waiter| waiter.group == group)?;
        line.remove(first).map(|waiter| waiter.task)
    }

    /// `count` tags are free again; those in `woken` may try. `depth`: tags, or the least number of them that some I/O is
    /// limited to.
    pub(super) fn tags_freed(&mut self, count: u32, depth: u32, woken: &mut VecDeque<TaskId>) {
        let batch = wake_batch(depth);
        for _ in 0..count {
            if self.lines[0].is_empty() {
                return;
            }
            self.freed += 1;
            if self.freed >= batch {
                self.freed = 0;
                let most = self.lines[0].len().min(batch as usize);
                woken.extend(self.lines[0].drain(..most).map(|waiter| waiter.task));
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.iter().map(VecDeque::len).sum()
    }

    pub(super) fn contains(&self, task: TaskId) -> bool {
        self.lines.iter().flatten().any(|waiter| waiter.task == task)
    }
}

/// How many tags have to be free before a task is woken, and how many are woken then. A task that waits found `depth` tags taken,
/// which is at least one batch for each line, so the batch comes together.
fn wake_batch(depth: u32) -> u32 {
    (depth / WAIT_QUEUES).clamp(1, WAKE_BATCH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(tasks: usize) -> Waiters {
        let mut waiters = Waiters::new(Admission::Tags { nr_requests: 64 });
        (0..tasks).for_each(|task| {
            waiters.add(TaskId(task), GroupId::ROOT, task % 2 == 0, None);
        });
        waiters
    }

    fn freed(waiters: &mut Waiters, count: u32, depth: u32) -> Vec<usize> {
        let mut woken = VecDeque::new();
        waiters.tags_freed(count, depth, &mut woken);
        woken.into_iter().map(|task| task.0).collect()
    }

    /// 64 tags / 8 lines = 8; never more than 8; at least 1.
    #[test]
    fn a_batch_is_an_eighth_of_the_tags() {
        assert_eq!([1, 15, 16, 48, 64, 256].map(wake_batch), [1, 1, 2, 6, 8, 8]);
    }

    #[test]
    fn nobody_is_woken_before_a_batch_of_tags_is_free() {
        let mut waiters = waiting(10);
        assert_eq!(freed(&mut waiters, 7, 64), []);
        assert_eq!(freed(&mut waiters, 1, 64), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(freed(&mut waiters, 7, 64), [], "the count began anew");
        assert_eq!(freed(&mut waiters, 1, 64), [8, 9]);
    }

    #[test]
    fn tags_freed_while_nobody_waits_do_not_count() {
        let mut waiters = waiting(0);
        assert_eq!(freed(&mut waiters, 100, 64), []);
        waiters.add(TaskId(1), GroupId::ROOT, true, None);
        assert_eq!(freed(&mut waiters, 7, 64), []);
    }

    #[test]
    fn who_was_woken_in_vain_keeps_its_place() {
        let mut waiters = waiting(2);
        let first = waiters.lines[0][0].place;
        assert_eq!(freed(&mut waiters, 1, 8), [0]);
        waiters.add(TaskId(2), GroupId::ROOT, true, None);
        waiters.add(TaskId(0), GroupId::ROOT, true, Some(first));
        assert_eq!(freed(&mut waiters, 3, 8), [0, 1, 2]);
    }

    /// 2.6: `get_request_wait` sleeps at the end of its class's line again.
    #[test]
    fn with_pools_it_goes_to_the_end() {
        let mut waiters = Waiters::new(Admission::Pools { nr_requests: 128 });
        let place = waiters.add(TaskId(0), GroupId::ROOT, true, None);
        waiters.add(TaskId(1), GroupId::ROOT, true, None);
        waiters.add(TaskId(2), GroupId::ROOT, false, None);
        assert_eq!(waiters.take(GroupId::ROOT, true), Some(TaskId(0)));
        waiters.add(TaskId(0), GroupId::ROOT, true, Some(place));
        assert_eq!(waiters.take(GroupId::ROOT, true), Some(TaskId(1)));
        assert_eq!(waiters.take(GroupId::ROOT, false), Some(TaskId(2)));
    }
}
