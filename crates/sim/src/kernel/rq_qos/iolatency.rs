//! io.latency: a group names a latency; while it misses that, its siblings that named none, or a longer one, may have fewer
//! and fewer I/Os in flight.
//!
//! The parent keeps a mark that goes down with each complaint and up again when the complainer is content. A group looks at the mark
//! when it issues something: if it went down, the group halves its depth, if it went up, the depth grows by a sixteenth of the
//! queue; at its old height there is no limit. At a depth of one, complaints make the group's tasks pause instead, for as long
//! as its metadata, which is never held up, took less than the target.
//!
//! Facts: Linux 6.12 `block/blk-iolatency.c`, `block/blk-cgroup.c`. Not modelled: changes at run time; the pause begins when the I/O
//! is submitted, not when the system call returns.

use std::collections::VecDeque;

use fairlift_core::{MS, SECOND};

use super::Slot;

/// Where the mark stands while no group complained.
const MARK: u32 = 1_000_000;
/// Steps of the mark and of the depth, in parts of the queue's requests: down, up.
const DOWN: u32 = 4;
const UP: u32 = 16;
/// A window is this many targets long, between these.
const WINDOW_TARGETS: u64 = 16;
const WINDOW_MIN_NS: u64 = 100 * MS;
const WINDOW_MAX_NS: u64 = SECOND;
/// The mark stays as it is for so long after a change.
const ADJUST_NS: u64 = 500 * MS;
/// I/Os a content group has to show.
const SAMPLES_MIN: u64 = 5;
/// Who did no more than this part of the siblings' I/O is left alone, percent.
const SMALL_PERCENT: u64 = 5;
/// After so long without complaints and praise the complainer is forgotten; the mark then rises every second.
const FORGET_NS: u64 = 5 * SECOND;
const TICK_NS: u64 = SECOND;
/// The longest pause of a task.
const PAUSE_MAX_NS: u64 = 250 * MS;

/// A bio's way: it asks its group, then every one above but the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Io {
    pub(crate) group: usize,
    /// Others wait for it: it is never held up.
    pub(crate) meta: bool,
    pub(crate) came_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    count: u64,
    missed: u64,
    total_ns: u64,
}

impl Sample {
    fn is_good(&self, target_ns: u64, rotational: bool) -> bool {
        if rotational {
            return self.total_ns <= target_ns * self.count;
        }
        self.missed < (self.count / 10).max(1)
    }
}

/// What tasks of a group have to pause for.
#[derive(Clone, Copy, Debug, Default)]
struct Delay {
    /// Complaints at a depth of one that were not taken back.
    complaints: u32,
    ns: u64,
    /// The last second: when it began, what was left then, and how many complaints.
    since_ns: u64,
    left_ns: u64,
    complaints_then: u32,
}

#[derive(Clone, Debug)]
struct Group {
    parent: Option<usize>,
    target_ns: u64,
    under_way: u32,
    depth: u32,
    /// The parent's mark when it last looked.
    mark_seen: u32,
    line: VecDeque<Slot>,
    window_since_ns: u64,
    /// In this window, and since the mark was last changed.
    window: Sample,
    sum: Sample,
    samples: u64,
    delay: Delay,
    /// For its children: the mark, who complains and with what target, when it was changed last, and their I/Os.
    mark: u32,
    complainer: Option<usize>,
    complaint_ns: u64,
    changed_ns: Option<u64>,
    children_samples: u64,
}

/// io.latency on one device.
#[derive(Debug)]
pub(crate) struct IoLatency {
    nr_requests: u32,
    rotational: bool,
    groups: Vec<Group>,
    tick_ns: Option<u64>,
}

impl IoLatency {
    /// For groups with these parents (earlier ones; the first is the root) and targets, nanoseconds, 0 = none. `None`: no group
    /// has a target.
    pub(crate) fn new(
        nr_requests: u32,
        rotational: bool,
        groups: impl Iterator<Item = (Option<usize>, u64)>,
    ) -> Option<IoLatency> {
        let group = |(parent, target_ns)| Group {
            parent,
            target_ns,
            under_way: 0,
            depth: u32::MAX,
            mark_seen: MARK,
            line: VecDeque::new(),
            window_since_ns: 0,
            window: Sample::default(),
            sum: Sample::default(),
            samples: 0,
            delay: Delay::default(),
            mark: MARK,
            complainer: None,
            complaint_ns: 0,
            changed_ns: None,
            children_samples: 0,
        };
        let groups: Vec<Group> = groups.map(group).collect();
        let is_used = groups.iter().any(|group| group.target_ns > 0);
        is_used.then_some(IoLatency { nr_requests: nr_requests.max(1), rotational, groups, tick_ns: None })
    }

    /// The group above, if that is not the root.
    pub(crate) fn above(&self, group: usize) -> Option<usize> {
        self.groups[group].parent.filter(|parent| self.groups[*parent].parent.is_some())
    }

    /// Does a bio of this group have to ask?
    pub(crate) fn concerns(&self, group: usize) -> bool {
        self.groups[group].parent.is_some()
    }

    // ---- a bio comes ------------------------------------------------------------------------------------------------------

    /// May the bio go past `at`, its group or one above? Otherwise it waits there. `woken` gets the bios that a higher mark lets go.
    pub(crate) fn ask(&mut self, slot: Slot, at: usize, meta: bool, now: u64, woken: &mut Vec<Slot>) -> bool {
        self.look_at_mark(at, woken);
        self.tick_ns.get_or_insert(now + TICK_NS);
        let group = &mut self.groups[at];
        if meta || (group.line.is_empty() && group.under_way < group.depth) {
            group.under_way += 1;
            return true;
        }
        group.line.push_back(slot);
        false
    }

    /// How long a task that issued for `group` has to pause, nanoseconds.
    pub(crate) fn pause_ns(&mut self, group: usize, now: u64) -> u64 {
        let mut at = Some(group);
        let mut pause_ns = 0;
        while let Some(group) = at {
            let delay = &mut self.groups[group].delay;
            if delay.complaints > 0 {
                delay.shrink(now);
                pause_ns = pause_ns.max(delay.ns);
            }
            at = self.above(group);
        }
        pause_ns.min(PAUSE_MAX_NS)
    }

    fn look_at_mark(&mut self, at: usize, woken: &mut Vec<Slot>) {
        let Some(parent) = self.groups[at].parent else { return };
        let Group { mark, complaint_ns, children_samples, .. } = self.groups[parent];
        let seen = std::mem::replace(&mut self.groups[at].mark_seen, mark);
        if mark == seen {
            return;
        }
        let group = &mut self.groups[at];
        if mark < seen && group.target_ns > 0 {
            let few = (children_samples * SMALL_PERCENT / 100).max(1);
            if complaint_ns == 0 || group.target_ns <= complaint_ns || group.samples <= few {
                return;
            }
        }
        if mark < seen && group.depth == 1 {
            group.delay.complaints += 1;
        } else if mark == MARK {
            (group.depth, group.delay.complaints) = (u32::MAX, 0);
            self.wake(at, woken);
        } else {
            self.change_depth(at, mark > seen, woken);
        }
    }

    fn change_depth(&mut self, at: usize, up: bool, woken: &mut Vec<Slot>) {
        let step = (self.nr_requests / UP).max(1);
        let group = &mut self.groups[at];
        let depth = group.depth.min(self.nr_requests);
        if !up {
            group.depth = (depth / 2).max(1);
        } else if depth == 1 && group.delay.complaints > 0 {
            group.delay.complaints -= 1;
        } else if depth < self.nr_requests {
            group.depth = (depth + step).min(self.nr_requests);
            self.wake(at, woken);
        }
    }

    fn wake(&mut self, at: usize, woken: &mut Vec<Slot>) {
        let group = &mut self.groups[at];
        while group.under_way < group.depth
            && let Some(slot) = group.line.pop_front()
        {
            group.under_way += 1;
            woken.push(slot);
        }
    }

    // ---- a bio is done ----------------------------------------------------------------------------------------------------

    /// `woken` gets those that go on where they waited.
    pub(crate) fn done(&mut self, io: &Io, now: u64, woken: &mut Vec<Slot>) {
        let mut at = Some(io.group);
        while let Some(group) = at {
            self.groups[group].under_way -= 1;
            if self.groups[group].target_ns > 0 {
                self.record(group, io, now);
            }
            self.wake(group, woken);
            at = self.above(group);
        }
    }

    fn record(&mut self, at: usize, io: &Io, now: u64) {
        let group = &mut self.groups[at];
        let took_ns = now - io.came_ns.min(now);
        if io.meta && group.depth != u32::MAX {
            // It was not held up, and says nothing; but the group's tasks pause for it.
            group.delay.ns += group.target_ns.saturating_sub(took_ns);
        } else {
            group.window.count += 1;
            group.window.missed += u64::from(took_ns >= group.target_ns);
            group.window.total_ns += took_ns;
        }
        let window_ns = (WINDOW_TARGETS * group.target_ns).clamp(WINDOW_MIN_NS, WINDOW_MAX_NS);
        if now - group.window_since_ns >= window_ns {
            group.window_since_ns = now;
            self.judge(at, now);
        }
    }

    /// The end of a window: complain, praise, or neither.
    fn judge(&mut self, at: usize, now: u64) {
        let Some(parent) = self.groups[at].parent else { return };
        let rotational = self.rotational;
        let group = &mut self.groups[at];
        let target_ns = group.target_ns;
        let window = std::mem::take(&mut group.window);
        let is_good = window.is_good(target_ns, rotational);
        let mark = self.groups[parent].mark;
        if is_good && mark == MARK {
            return;
        }
        let group = &mut self.groups[at];
        group.sum.count += window.count;
        group.sum.missed += window.missed;
        group.sum.total_ns += window.total_ns;
        let (sum, before) = (group.sum, std::mem::replace(&mut group.samples, group.sum.count));
        let (raised, lowered) = (self.moved(mark, true), self.moved(mark, false));
        let above = &mut self.groups[parent];
        above.children_samples = above.children_samples - before + sum.count;
        if above.changed_ns.is_some_and(|changed_ns| now - changed_ns < ADJUST_NS) {
            return;
        }
        if is_good && sum.is_good(target_ns, rotational) {
            if sum.count < SAMPLES_MIN {
                return;
            }
            if above.complainer == Some(at) {
                above.changed_ns = Some(now);
                above.mark = raised;
            }
        } else if above.complaint_ns == 0 || above.complaint_ns >= target_ns {
            above.changed_ns = Some(now);
            if above.complainer.is_none() || above.complaint_ns > target_ns {
                (above.complainer, above.complaint_ns) = (Some(at), target_ns);
            }
            above.mark = lowered;
        }
        self.groups[at].sum = Sample::default();
    }

    /// The mark a step up or down. Deep down a step is one, and never below two queues under where it stood.
    fn moved(&self, mark: u32, up: bool) -> u32 {
        let qd = self.nr_requests;
        let below = MARK.saturating_sub(mark);
        match (up, below > qd) {
            (true, true) => mark + 1,
            (true, false) => (mark + (qd / UP).max(1)).min(MARK),
            (false, true) if below < 2 * qd => mark - 1,
            (false, true) => mark,
            (false, false) => mark - (qd / DOWN).max(1),
        }
    }

    // ---- every second -----------------------------------------------------------------------------------------------------

    pub(crate) fn next_event(&self) -> Option<u64> {
        self.tick_ns
    }

    /// Where no group complains any more the mark rises.
    pub(crate) fn advance(&mut self, now: u64) {
        if self.tick_ns.is_none_or(|tick_ns| tick_ns > now) {
            return;
        }
        self.tick_ns = None;
        for at in 0..self.groups.len() {
            let Group { mark, complainer, changed_ns, .. } = self.groups[at];
            if mark >= MARK {
                continue;
            }
            if complainer.is_none() {
                self.groups[at].mark = self.moved(mark, true);
            } else if changed_ns.is_none_or(|changed_ns| now - changed_ns >= FORGET_NS) {
                self.groups[at].complainer = None;
            }
        }
    }
}

impl Delay {
    /// Once a second what was there a second ago is forgotten, up to a second of it; more if complaints were taken back.
    fn shrink(&mut self, now: u64) {
        if self.since_ns + SECOND >= now {
            return;
        }
        let mut paid_ns = self.left_ns.min(now - self.since_ns);
        if self.complaints < self.complaints_then {
            paid_ns = paid_ns.max(self.left_ns / 2);
        }
        self.ns = self.ns.saturating_sub(paid_ns);
        (self.since_ns, self.left_ns, self.complaints_then) = (now, self.ns, self.complaints);
    }
}

#[cfg(test)]
#[path = "iolatency_tests.rs"]
mod tests;
