//! The tree the limits stand on, kept in step with the table of groups. Nothing here is on the request path.

use super::gate::Gate;
use super::{Direction, Limits, RATE_MAX, Rates, WaiterId};
use crate::collections::{Id, List};
use crate::group::{GroupId, Groups, WEIGHT_DEFAULT};

/// A group's place in the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Node {
    /// `None`: the root, or no group.
    pub(super) parent: Option<GroupId>,
    pub(super) weight: u32,
    /// Weight of its own bios beside its child groups.
    pub(super) leaf_weight: u32,
}

impl Node {
    pub(super) const ROOT: Node = Node { parent: None, weight: WEIGHT_DEFAULT, leaf_weight: WEIGHT_DEFAULT };
}

/// A group, its parent, ... to the root.
pub(super) struct Ancestry<'a> {
    nodes: &'a [Node],
    at: Option<GroupId>,
}

impl<'a> Ancestry<'a> {
    pub(super) fn of(nodes: &'a [Node], group: GroupId) -> Ancestry<'a> {
        Ancestry { nodes, at: Some(group) }
    }
}

impl Iterator for Ancestry<'_> {
    type Item = GroupId;

    #[inline]
    fn next(&mut self) -> Option<GroupId> {
        let group = self.at?;
        self.at = self.nodes[group.index()].parent;
        Some(group)
    }
}

impl Limits {
    /// The limits of `group` itself.
    pub fn rates(&self, group: GroupId, direction: Direction) -> Rates {
        self.sides[direction as usize].gates[group.index()].rates()
    }

    /// Limit `group` from now on; rates above [`RATE_MAX`] are taken as that. What its last bios owe is paid at the new rate.
    /// Ask [`Limits::next`] again.
    pub fn set(&mut self, group: GroupId, direction: Direction, rates: Rates, now: u64) {
        let side = &mut self.sides[direction as usize];
        let gate = &mut side.gates[group.index()];
        gate.bytes.set(rates.bytes_per_s.min(RATE_MAX), now);
        gate.ios.set(rates.ios_per_s.min(RATE_MAX), now);
        side.withdraw(&self.nodes, group);
        side.rise(&self.nodes, group, now);
        self.find_scarce();
    }

    /// Take over what changed in the table since the last time: groups that came and went, moved with all that wait below
    /// them, and weights. Whoever waits at a group that is gone waits at the ancestor that is left, behind those who do already.
    #[inline]
    pub fn follow(&mut self, table: &Groups, now: u64) {
        if self.seen != table.changes() {
            self.follow_changes(table, now);
        }
    }

    fn follow_changes(&mut self, table: &Groups, now: u64) {
        self.seen = table.changes();
        let groups = || (0..table.slots()).map(GroupId::from_index);
        let is_gone = |group: GroupId| table.known(group) != group;
        for group in groups().filter(|group| is_gone(*group)) {
            if let Some(heir) = Ancestry::of(&self.nodes, group).find(|above| !is_gone(*above)) {
                self.bequeath(group, heir, now);
            }
        }
        // First everybody who is in the wrong place leaves, then they come back: on the way from one tree to another there is
        // never a circle.
        for group in groups() {
            let node = node_of(table, group);
            if node.parent != self.nodes[group.index()].parent {
                self.leave(group);
            }
            self.nodes[group.index()] = Node { parent: self.nodes[group.index()].parent, ..node };
        }
        for group in groups().filter(|group| is_gone(*group)) {
            self.sides.iter_mut().for_each(|side| side.gates[group.index()] = Gate::NEW);
        }
        for group in groups() {
            match node_of(table, group).parent {
                Some(parent) if self.nodes[group.index()].parent.is_none() => self.join(group, parent, now),
                _ => {}
            }
        }
        self.find_scarce();
    }

    /// Take `group` and all below it out of the tree.
    fn leave(&mut self, group: GroupId) {
        for side in &mut self.sides {
            side.withdraw(&self.nodes, group);
            let waiting = side.gates[group.index()].waiting;
            for above in Ancestry::of(&self.nodes, group).skip(1) {
                side.gates[above.index()].waiting -= waiting;
            }
        }
        self.nodes[group.index()].parent = None;
    }

    /// Put it back below `parent`.
    fn join(&mut self, group: GroupId, parent: GroupId, now: u64) {
        // It may have risen to its own top while it had no parent.
        self.sides.iter_mut().for_each(|side| side.withdraw(&self.nodes, group));
        self.nodes[group.index()].parent = Some(parent);
        for side in &mut self.sides {
            let waiting = side.gates[group.index()].waiting;
            for above in Ancestry::of(&self.nodes, group).skip(1) {
                side.gates[above.index()].more_wait(waiting, now, self.burst_ns);
            }
            side.rise(&self.nodes, group, now);
        }
    }

    /// `group` is no more; `heir`, an ancestor, takes the bios of its own.
    fn bequeath(&mut self, group: GroupId, heir: GroupId, now: u64) {
        for at in 0..2 {
            let bios = self.leave_gate(at, group);
            self.append(at, heir, bios, now);
        }
    }

    /// The bios of `group` itself, which wait nowhere from now on.
    pub(super) fn leave_gate(&mut self, at: usize, group: GroupId) -> List<WaiterId> {
        let side = &mut self.sides[at];
        let bios = side.take_own(&self.nodes, group);
        for above in Ancestry::of(&self.nodes, group) {
            side.gates[above.index()].waiting -= bios.len() as u32;
        }
        bios
    }

    /// Put `bios`, which wait nowhere now, behind those of `group`.
    pub(super) fn append(&mut self, at: usize, group: GroupId, mut bios: List<WaiterId>, now: u64) {
        if bios.is_empty() {
            return;
        }
        let (side, count) = (&mut self.sides[at], bios.len() as u32);
        for above in Ancestry::of(&self.nodes, group) {
            side.gates[above.index()].more_wait(count, now, self.burst_ns);
        }
        let fifo = &mut side.gates[group.index()].fifo;
        let is_first = fifo.is_empty();
        while let Some(waiter) = bios.pop_front(&mut self.waiters.links) {
            fifo.push_back(&mut self.waiters.links, waiter);
        }
        if is_first {
            side.offer_own(&self.nodes, group, now);
        }
    }

    /// The smallest rates from each group up, and what follows from them.
    fn find_scarce(&mut self) {
        for side in &mut self.sides {
            for index in 0..side.gates.len() {
                let way = Ancestry::of(&self.nodes, GroupId::from_index(index));
                let rates = way.map(|above| side.gates[above.index()].rates());
                side.gates[index].scarce = rates.fold(Rates::NONE, Rates::scarcer);
            }
            side.restart_clocks();
        }
    }
}

/// What the table says of `group`; a node without a parent if it is none.
fn node_of(table: &Groups, group: GroupId) -> Node {
    if table.known(group) != group {
        return Node::ROOT;
    }
    let (params, parent) = (table[group].params(), table[group].parent());
    Node {
        parent: (group != GroupId::ROOT).then_some(parent),
        weight: params.weight,
        leaf_weight: params.leaf_weight,
    }
}
