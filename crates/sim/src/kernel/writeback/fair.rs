//! Writeback that keeps to groups' weights (`fair_writeback=1`): tasks are paused by their group's share of the device's time,
//! and the flusher serves groups, not files.
//!
//! Without it the page cache gives the weights away before the queue sees them: all tasks are paused alike, files are
//! written in the order in which they became dirty, and while the flusher is with one group's file the other's queue runs dry.
//! Here
//!
//! * each group that dirties pages has a part of the dirty limits: as much as drains in the same time as the others' parts (its
//!   share of the device's time, divided by what a page of its costs of that time). So the heavier group has the longer line;
//! * a task is paused by its group's dirty pages and written pages ([`super::rate`], one control a group);
//! * the flusher keeps a quota of writes of every group with the queue, in proportion to the shares, and gives who used
//!   least of the device's time for its weight the next one. It never waits for a request slot with one group's page in hand;
//! * a group that is ahead of the others in device time for its weight, as the device's own queue may let it be, has only as
//!   much with the queue as keeps it from running dry. So shares are exact also where an elevator cannot see what a
//!   device with a long queue of its own does.
//!
//! The design is the lab's own; its parts are of `docs/sources.md`, *writeback by groups*.

use fairlift_core::{MS, SECOND};

use super::rate::RateControl;
use crate::group::{Cgroup, GroupTree};

/// How often shares are reckoned anew.
const UPDATE_NS: u64 = 200 * MS;
/// Device time, for its share, that a group may be ahead of the one with least, and behind the one with most: what is older is forgotten.
const AHEAD_NS: f64 = 400e6;
const BEHIND_MAX_NS: f64 = 4e9;
/// How long a group counts as busy after its last request.
const BUSY_NS: u64 = SECOND;
/// Fewest writes of a group that the flusher keeps with the queue.
const WRITES_MIN: u64 = 4;
/// Looks at the counters over which a page's cost is averaged.
const COST_LOOKS: f64 = 32.0;
/// Device time that a page is taken to cost before some were written: 60 MB/s.
const FIRST_COST_NS: f64 = 1e9 / 15_000.0;

/// A group's place in the tree.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: Option<usize>,
    weight: f64,
    leaf_weight: f64,
}

/// What is known of a group.
#[derive(Debug)]
pub(super) struct GroupState {
    /// Pauses its tasks.
    pub(super) rate: RateControl,
    /// Its share of the device's time, 0 to 1, among those that are busy.
    share: f64,
    /// Device time of writes, and the pages they wrote, older ones counting less.
    writes_ns: f64,
    written: f64,
    /// Device time it used, divided by its share.
    virtual_ns: f64,
    /// When it was last seen busy.
    busy_ns: Option<u64>,
    seen: Seen,
}

/// Counters at the last look, since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Device time of all its requests, and of its writes.
    pub(super) device_ns: u64,
    pub(super) write_ns: u64,
    /// Pages written back.
    pub(super) written: u64,
    /// Pages dirty or in flight.
    pub(super) unwritten: u64,
    /// Has it requests?
    pub(super) requests: bool,
}

/// All groups.
#[derive(Debug)]
pub(crate) struct FairWriteback {
    tree: Vec<Node>,
    groups: Vec<GroupState>,
    updated_ns: u64,
    background: f64,
    limit: f64,
    /// Writes of all groups that the flusher keeps with the queue.
    writes: u64,
    /// Least device time, for its share, among the busy.
    least_ns: f64,
}

impl FairWriteback {
    /// For these groups, a page cache with these limits (background, dirty), and so many writes with the queue.
    pub(crate) fn new(tree: &GroupTree, (background, limit): (u64, u64), writes: u64) -> FairWriteback {
        let node = |group: Cgroup| Node {
            parent: tree.parent(group).map(Cgroup::index),
            weight: tree.spec(group).map_or(1.0, |spec| f64::from(spec.weight)),
            leaf_weight: f64::from(tree.leaf_weight(group)),
        };
        let tree: Vec<Node> = tree.numbers().map(node).collect();
        let state = |_: &Node| GroupState {
            rate: RateControl::new((background, limit)),
            share: 1.0,
            writes_ns: FIRST_COST_NS,
            written: 1.0,
            virtual_ns: 0.0,
            busy_ns: None,
            seen: Seen::default(),
        };
        let groups = tree.iter().map(state).collect();
        let (background, limit) = (background as f64, limit as f64);
        FairWriteback { tree, groups, updated_ns: 0, background, limit, writes, least_ns: 0.0 }
    }

    /// What pauses the tasks of `group`.
    pub(super) fn rate(&mut self, group: Cgroup) -> &mut RateControl {
        &mut self.groups[group.index()].rate
    }

    /// May the flusher hand the queue more of `group`, which has `under_way` writes in flight?
    pub(super) fn has_room(&self, group: Cgroup, under_way: u64) -> bool {
        let state = &self.groups[group.index()];
        let is_ahead = state.virtual_ns > self.least_ns + AHEAD_NS;
        let quota = if is_ahead { 0 } else { (self.writes as f64 * state.share) as u64 };
        under_way < quota.max(WRITES_MIN)
    }

    /// Device time that `group` has had for its share; who has had least is next.
    pub(super) fn virtual_ns(&self, group: Cgroup) -> f64 {
        self.groups[group.index()].virtual_ns
    }

    /// Is it time to look at the counters, or is `group` new here?
    pub(super) fn is_due(&self, group: Option<Cgroup>, now: u64) -> bool {
        let is_new = group.is_some_and(|group| !self.groups[group.index()].is_busy(now));
        is_new || now >= self.updated_ns + UPDATE_NS
    }

    /// Look at the counters, by group.
    pub(super) fn update(&mut self, seen: impl Fn(Cgroup) -> Seen, now: u64) {
        self.updated_ns = now;
        let (least, mut joined) = (self.virtual_among_busy(f64::min, now), false);
        for place in 0..self.groups.len() {
            let seen = seen(Cgroup(place as u16));
            let group = &mut self.groups[place];
            let was_busy = group.is_busy(now);
            group.look(seen, now);
            if !was_busy && group.is_busy(now) {
                // Who was away has saved nothing.
                group.virtual_ns = group.virtual_ns.max(least);
                joined = true;
            }
        }
        let behind = self.virtual_among_busy(f64::max, now) - BEHIND_MAX_NS;
        for group in &mut self.groups {
            group.virtual_ns = group.virtual_ns.max(behind);
        }
        self.least_ns = self.virtual_among_busy(f64::min, now);
        self.share_out(now);
        self.move_limits(if joined { 1.0 } else { 1.0 / 8.0 }, now);
    }

    fn virtual_among_busy(&self, choose: fn(f64, f64) -> f64, now: u64) -> f64 {
        let busy = self.groups.iter().filter(|group| group.is_busy(now));
        busy.map(|group| group.virtual_ns).reduce(choose).unwrap_or(0.0)
    }

    /// Shares of those who are busy: by weight among siblings, from the root down. Children stand behind their parents.
    fn share_out(&mut self, now: u64) {
        let own: Vec<bool> = self.groups.iter().map(|group| group.is_busy(now)).collect();
        let mut below = own.clone();
        let mut weights: Vec<f64> = self
            .tree
            .iter()
            .zip(&own)
            .map(|(node, busy)| if *busy { node.leaf_weight } else { 0.0 })
            .collect();
        for place in (1..self.tree.len()).rev() {
            if below[place]
                && let Some(parent) = self.tree[place].parent
            {
                below[parent] = true;
                weights[parent] += self.tree[place].weight;
            }
        }
        let mut whole = vec![0.0; self.tree.len()];
        for place in 0..self.tree.len() {
            whole[place] = match self.tree[place].parent {
                None => 1.0,
                Some(parent) if below[place] => whole[parent] * self.tree[place].weight / weights[parent],
                Some(_) => 0.0,
            };
            if own[place] {
                self.groups[place].share = whole[place] * self.tree[place].leaf_weight / weights[place];
            }
        }
    }

    /// Move each dirtier's part of the dirty limits so far towards what drains as fast as the others' parts: all of the way when
    /// a dirtier is new, before the newcomer fills what is not its own.
    fn move_limits(&mut self, way: f64, now: u64) {
        let dirties = |group: &GroupState| group.is_busy(now) && group.seen.unwritten > 0;
        let all: f64 = self.groups.iter().filter(|group| dirties(group)).map(GroupState::speed).sum();
        let (background, limit) = (self.background, self.limit);
        for group in self.groups.iter_mut().filter(|group| dirties(group)) {
            let part = group.speed() / all;
            group.rate.move_limits(background * part, limit * part, way);
        }
    }

    /// Is so much of `group` dirty, with `pages`, that the flusher has to work?
    pub(super) fn is_over_background(&self, group: Cgroup, pages: u64) -> bool {
        pages as f64 > self.groups[group.index()].rate.background()
    }
}

impl GroupState {
    fn is_busy(&self, now: u64) -> bool {
        self.busy_ns.is_some_and(|at| now < at + BUSY_NS)
    }

    /// Pages a second that its share of the device's time is good for, but for a factor.
    fn speed(&self) -> f64 {
        self.share * self.written / self.writes_ns.max(1.0)
    }

    fn look(&mut self, seen: Seen, now: u64) {
        let device_ns = seen.device_ns - self.seen.device_ns;
        if seen.unwritten > 0 || seen.requests || device_ns > 0 {
            self.busy_ns = Some(now);
        }
        self.virtual_ns += device_ns as f64 / self.share.max(1e-6);
        let written = seen.written - self.seen.written;
        let writes_ns = seen.write_ns - self.seen.write_ns;
        if written > 0 || writes_ns > 0 {
            self.writes_ns += writes_ns as f64 - self.writes_ns / COST_LOOKS;
            self.written += written as f64 - self.written / COST_LOOKS;
        }
        self.seen = seen;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::GroupSpec;

    /// Groups a (weight 100) with a/x (300), and b (200), of which `busy` have something to do.
    fn shares(busy: &[u16]) -> Vec<f64> {
        let mut tree = GroupTree::default();
        for (path, weight) in [("a", 100), ("a/x", 300), ("b", 200)] {
            tree.add(&GroupSpec { weight, ..GroupSpec::new(path) }).unwrap();
        }
        let mut fair = FairWriteback::new(&tree, (1000, 2000), 96);
        let seen = |group: Cgroup| Seen { requests: busy.contains(&group.0), ..Seen::default() };
        fair.update(seen, SECOND);
        busy.iter().map(|group| fair.groups[usize::from(*group)].share).collect()
    }

    #[test]
    fn the_busy_share_by_weight_on_every_level() {
        // In twelfths.
        let cases: [(&[u16], &[f64], &str); 5] = [
            (&[1], &[12.0], "alone"),
            (&[1, 3], &[4.0, 8.0], "1:2"),
            (&[2, 3], &[4.0, 8.0], "a's own tasks want nothing"),
            (&[1, 2, 3], &[1.0, 3.0, 8.0], "a's own beside a/x"),
            (&[0, 1], &[6.0, 6.0], "the root's own tasks are a child like the others"),
        ];
        for (busy, twelfths, what) in cases {
            for (share, wanted) in shares(busy).into_iter().zip(twelfths) {
                assert!((12.0 * share - wanted).abs() < 1e-9, "{what}: {share}");
            }
        }
    }

    #[test]
    fn the_quota_follows_the_share_and_is_never_nothing() {
        let mut tree = GroupTree::default();
        tree.add(&GroupSpec { weight: 1, ..GroupSpec::new("a") }).unwrap();
        tree.add(&GroupSpec { weight: 99, ..GroupSpec::new("b") }).unwrap();
        let mut fair = FairWriteback::new(&tree, (1000, 2000), 100);
        fair.update(|group| Seen { requests: group.0 > 0, ..Seen::default() }, SECOND);
        assert!(fair.has_room(Cgroup(1), 3) && !fair.has_room(Cgroup(1), 4));
        assert!(fair.has_room(Cgroup(2), 98) && !fair.has_room(Cgroup(2), 99));
    }
}
