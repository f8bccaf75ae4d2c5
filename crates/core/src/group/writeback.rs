//! Tags for writeback, by weight. Linux writes each cgroup's dirty pages back from a kernel thread, and the threads take tags from one
//! pool in order of arrival. So a cgroup that writes more has more requests with the elevator, and a cgroup of a large weight finds its
//! share of the device, but no tag. Here each cgroup that writes back has the part of the tags that its weight gives it among those
//! that write back now; a thread that wants more waits in a line that the module keeps. The elevator still decides whose request goes
//! to the device: this only sees to it that it has one of each to choose from.
//!
//! A host asks before each async write takes a tag ([`Writeback::hold`]) and puts a thread that waits at the end of its group's line.
//! After a completion those go on that [`Writeback::next`] names. What they send has become requests, or parts of requests, a while
//! later; the host says so ([`Writeback::came`]).
//!
//! A part is four tags at least (of few tags half of them), so where there are few tags, or many groups that write back, there is less
//! than all may have. Then the group goes first that has written least by its weight: each request advances its *start* by its sectors
//! over its share; a group that comes back has no credit.

use super::{GroupId, Groups};
use crate::collections::{Id, List, ListLinks, Table, Tree, TreeLinks};

/// A group that has written nothing back for so long counts no more.
const RESTS_AFTER_NS: u64 = 100_000_000;

/// The least part of so many tags: one request may be in the device, one on its way there, and one coming, while the elevator has to find
/// one as long as it is the group's turn. But no group may have nearly all, or there would be none to choose from.
fn least(tags: u32) -> u64 {
    u64::from(tags).div_ceil(2).clamp(2, 4)
}

/// One group's.
#[derive(Clone, Copy, Debug, Default)]
struct Writer {
    /// Requests that write back for it.
    taken: u32,
    /// Threads that went on and may have sent no request yet.
    going: u32,
    /// Threads in its line.
    waiting: u32,
    /// Its share among all who write back, in 2^-20, when it was looked at last.
    share: u64,
    /// What it has written, in sectors over its share in 2^-20.
    start: u64,
    /// Sectors of its last request: of the next one, as far as is known.
    usual: u32,
    /// When it wrote back last.
    last_ns: u64,
    /// Among [`Writeback::writers`], [`Writeback::due`], [`Writeback::sent`]?
    writes: bool,
    due: bool,
    sent: bool,
}

/// A group with those below it.
#[derive(Clone, Copy, Debug, Default)]
struct Branch {
    /// Of the group and those below it: how many write back?
    writers: u32,
    /// The weights that its children and its own tasks count with, of those that write back.
    sum: u64,
    /// What it counts with in its parent's sum, and its own tasks in its own; 0: they do not.
    weight: u32,
    leaf_weight: u32,
}

/// Who writes back. Each call looks at a bounded number of groups.
#[derive(Debug)]
pub struct Writeback {
    by_group: Table<Writer>,
    branches: Table<Branch>,
    /// Those that did lately; each look at one group's part looks at the first of them, too, and puts it last.
    writers: List<GroupId>,
    writers_links: ListLinks<GroupId>,
    /// Those of which threads wait that may go once there is a tag, by their starts.
    due: Tree<GroupId>,
    due_links: TreeLinks<GroupId, u64>,
    /// Where the last was that went.
    floor: u64,
    /// Those of which threads are going.
    sent: List<GroupId>,
    sent_links: ListLinks<GroupId>,
    /// Over all groups: requests and threads that go, and threads in lines.
    taken: u32,
    waiting: u64,
}

/// What `sectors` advance the start of one by that has this share.
fn cost(sectors: u32, share: u64) -> u64 {
    (u64::from(sectors) << 20) / share.max(1)
}

impl Writeback {
    /// No group writes back yet. The only place that allocates.
    pub fn new(groups: &Groups) -> Writeback {
        let links = || ListLinks::new(groups.slots());
        Writeback {
            by_group: Table::new(Writer::default(), groups.slots()),
            branches: Table::new(Branch::default(), groups.slots()),
            writers: List::new(),
            writers_links: links(),
            due: Tree::new(),
            due_links: TreeLinks::new(groups.slots()),
            floor: 0,
            sent: List::new(),
            sent_links: links(),
            taken: 0,
            waiting: 0,
        }
    }

    /// One more request writes back for `group`: of one of the threads that go, if there are any.
    pub fn arrived(&mut self, groups: &Groups, group: GroupId, sectors: u32, now: u64) {
        self.writes(groups, group, now);
        let writer = &mut self.by_group[group.index()];
        let mut paid = 0;
        if writer.going > 0 {
            writer.going -= 1;
            paid = cost(writer.usual, writer.share);
        } else {
            self.taken += 1;
        }
        writer.taken += 1;
        writer.usual = sectors;
        writer.start = (writer.start + cost(sectors, writer.share)).saturating_sub(paid);
    }

    /// One fewer does.
    pub fn done(&mut self, group: GroupId) {
        let writer = &mut self.by_group[group.index()];
        if writer.taken > 0 {
            writer.taken -= 1;
            self.taken = self.taken.saturating_sub(1);
        }
        self.may_be_due(group);
    }

    fn may_be_due(&mut self, group: GroupId) {
        let writer = &mut self.by_group[group.index()];
        if writer.waiting > 0 && !writer.due {
            writer.due = true;
            self.due.insert(&mut self.due_links, group, writer.start);
        }
    }

    fn writes(&mut self, groups: &Groups, group: GroupId, now: u64) {
        let writer = &mut self.by_group[group.index()];
        writer.last_ns = now;
        // A group that comes back has no credit.
        if writer.taken + writer.going + writer.waiting == 0 {
            writer.start = writer.start.max(self.floor);
        }
        if !writer.writes {
            writer.writes = true;
            self.writers.push_back(&mut self.writers_links, group);
            for at in groups.path(group) {
                self.branches[at.index()].writers += 1;
            }
        }
        self.weigh(groups, group);
    }

    /// It does no longer.
    fn rests(&mut self, groups: &Groups, group: GroupId) {
        if core::mem::take(&mut self.by_group[group.index()].writes) {
            self.writers.remove(&mut self.writers_links, group);
            for at in groups.path(group) {
                let writers = &mut self.branches[at.index()].writers;
                *writers = writers.saturating_sub(1);
            }
            self.weigh(groups, group);
        }
    }

    /// Let the weights on the way to the root count as they are now, and find the group's share.
    fn weigh(&mut self, groups: &Groups, group: GroupId) {
        let writes = self.by_group[group.index()].writes;
        let own = &mut self.branches[group.index()];
        let weight = if writes { groups[group].params().leaf_weight } else { 0 };
        own.sum = (own.sum + u64::from(weight)).saturating_sub(own.leaf_weight.into());
        own.leaf_weight = weight;
        let mut share = (u64::from(weight) << 20) / own.sum.max(1);
        for at in groups.path(group).take_while(|at| *at != GroupId::ROOT) {
            let branch = &mut self.branches[at.index()];
            let weight = if branch.writers > 0 { groups[at].params().weight } else { 0 };
            let former = core::mem::replace(&mut branch.weight, weight);
            let above = &mut self.branches[groups[at].parent().index()];
            above.sum = (above.sum + u64::from(weight)).saturating_sub(former.into());
            share = share * u64::from(weight) / above.sum.max(1);
        }
        self.by_group[group.index()].share = share;
    }

    /// One of those that write back is looked at again, and is none any more if it has not for a while.
    fn look_at_next(&mut self, groups: &Groups, now: u64) {
        let Some(group) = self.writers.front() else { return };
        let writer = &self.by_group[group.index()];
        if writer.taken + writer.going + writer.waiting == 0
            && now.saturating_sub(writer.last_ns) > RESTS_AFTER_NS
        {
            self.rests(groups, group);
        } else {
            self.writers.remove(&mut self.writers_links, group);
            self.writers.push_back(&mut self.writers_links, group);
        }
    }

    /// The first of the group's line goes.
    fn send(&mut self, group: GroupId) {
        let writer = &mut self.by_group[group.index()];
        self.floor = writer.start;
        writer.start += cost(writer.usual, writer.share);
        writer.going += 1;
        writer.waiting -= 1;
        self.taken += 1;
        self.waiting -= 1;
        if !writer.sent {
            writer.sent = true;
            self.sent.push_back(&mut self.sent_links, group);
        }
    }

    /// Has the group its part of the `tags` already, with `unsent` requests that have not arrived? Never with fewer than [`least`]; and
    /// alone it may have them all.
    fn has_its_part(&mut self, groups: &Groups, group: GroupId, unsent: u32, tags: u32, now: u64) -> bool {
        self.look_at_next(groups, now);
        self.writes(groups, group, now);
        if self.writers.front() == self.writers.back() {
            return false;
        }
        let writer = &self.by_group[group.index()];
        let part = (u64::from(tags) * writer.share).div_ceil(1 << 20);
        u64::from(writer.taken) + u64::from(writer.going) + u64::from(unsent) >= part.max(least(tags))
    }

    /// Does a thread wait that writes back for `group`, which is not the root? It has `unsent` requests that have not arrived yet, of `tags`
    /// that async requests can have; `busy`: the elevator has requests. It waits while the group has its part, while there is no tag, and behind
    /// those that wait already. It is counted then; ask [`Writeback::next`].
    pub fn hold(
        &mut self,
        groups: &Groups,
        group: GroupId,
        unsent: u32,
        tags: u32,
        busy: bool,
        now: u64,
    ) -> bool {
        // Weights decide only where requests wait: as long as the elevator has none, it is enough that there are tags.
        let has_its_part = self.has_its_part(groups, group, unsent, tags, now) && busy;
        let others_write = self.writers.front() != self.writers.back();
        let none_left = others_write && self.taken.saturating_add(unsent) >= tags;
        let writer = &mut self.by_group[group.index()];
        let waits = has_its_part || none_left || writer.waiting > 0;
        if waits {
            writer.waiting += 1;
            self.waiting += 1;
            // Else one of its own that is done makes it due.
            if !has_its_part || writer.taken + writer.going == 0 {
                self.may_be_due(group);
            }
        }
        waits
    }

    /// The group whose first waiting thread goes on now; `None`: no other. `all`: none is to wait any longer.
    pub fn next(&mut self, groups: &Groups, tags: u32, all: bool, now: u64) -> Option<GroupId> {
        while (all || self.taken < tags)
            && let Some(group) = self.due.first()
        {
            self.due.remove(&mut self.due_links, group);
            self.by_group[group.index()].due = false;
            if self.by_group[group.index()].waiting > 0
                && (all || !self.has_its_part(groups, group, 0, tags, now))
            {
                self.send(group);
                self.may_be_due(group);
                return Some(group);
            }
        }
        None
    }

    /// All that [`Writeback::next`] named have come.
    pub fn came(&mut self) {
        while let Some(group) = self.sent.pop_front(&mut self.sent_links) {
            let writer = &mut self.by_group[group.index()];
            writer.sent = false;
            self.taken = self.taken.saturating_sub(core::mem::take(&mut writer.going));
            self.may_be_due(group);
        }
    }

    /// Threads that wait for tags for their groups' writeback.
    pub fn waiting(&self) -> u64 {
        self.waiting
    }

    /// `group` is about to go: what is in its line waits at the end of the line of `heir`, above it, from now on. The root's do not
    /// wait: send them on.
    pub fn move_line(&mut self, groups: &Groups, group: GroupId, heir: GroupId, now: u64) {
        let moved = core::mem::take(&mut self.by_group[group.index()].waiting);
        self.rests(groups, group);
        if heir == GroupId::ROOT {
            self.waiting -= u64::from(moved);
        } else if moved > 0 {
            self.writes(groups, heir, now);
            self.by_group[heir.index()].waiting += moved;
            self.may_be_due(heir);
        }
    }
}
