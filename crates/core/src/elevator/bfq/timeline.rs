//! Entities by virtual finish time, each node with the earliest start below it: finds the smallest finish among those whose
//! start has come in O(log n).
//!
//! A treap (Seidel and Aragon, *Randomized search trees*, 1996): a search tree by finish and at the same time a heap by a
//! number drawn for each slot. Here the number is a fixed scramble of the slot, so that equal histories give equal trees;
//! its shape depends on who is in it only, and its depth is a small multiple of log n unless the scramble sorts the slots as
//! the finish times do. No walk is longer than the number of entities.
//!
//! **Overflow.** Virtual times wrap at 2^64 and are compared by their signed difference ([`is_after`]). That is right while
//! the times of one tree are within 2^63 of each other. An entity is at most one budget ahead of the tree's virtual time
//! (2^31 sectors at weight 1, times 2^22: 2^53), and those behind it wait for a virtual time that stops or serves them:
//! B-WF2Q+ keeps every backlogged entity within a budget of each of its siblings by weight.

use alloc::vec::Vec;

use super::entity::EntityId;
use crate::collections::Id;

/// Is the virtual time `a` after `b`?
#[inline]
pub(super) const fn is_after(a: u64, b: u64) -> bool {
    a.wrapping_sub(b) as i64 > 0
}

#[inline]
const fn earlier(a: u64, b: u64) -> u64 {
    if is_after(a, b) { b } else { a }
}

/// No node; the place of this number holds an unused one.
const NIL: u32 = 0;

#[derive(Clone, Copy, Default)]
struct Node {
    start: u64,
    finish: u64,
    /// Of this node and all below.
    earliest_start: u64,
    parent: u32,
    /// Earlier and later finish.
    child: [u32; 2],
}

/// The nodes of all entities; entity `i` is node `i + 1`.
pub(super) struct Links {
    nodes: Vec<Node>,
}

/// A tree; an entity is in one of them at most.
#[derive(Clone, Copy, Default)]
pub(super) struct Timeline {
    root: u32,
}

fn raw(id: EntityId) -> u32 {
    id.index() as u32 + 1
}

fn option(raw: u32) -> Option<EntityId> {
    (raw != NIL).then(|| EntityId::from_index(raw as usize - 1))
}

/// A bijection of the slots' numbers that leaves no order in them.
const fn rank(node: u32) -> u32 {
    let mut x = node.wrapping_mul(0x9e37_79b1);
    x ^= x >> 15;
    x = x.wrapping_mul(0x85eb_ca77);
    x ^ (x >> 13)
}

impl Links {
    pub(super) fn new(entities: usize) -> Links {
        Links { nodes: alloc::vec![Node::default(); entities + 1] }
    }

    fn at(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    fn at_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// Work out `earliest_start` of `node` anew.
    fn refresh(&mut self, node: u32) {
        let Node { start, child, .. } = *self.at(node);
        let mut earliest = start;
        for below in child.into_iter().filter(|child| *child != NIL) {
            earliest = earlier(earliest, self.at(below).earliest_start);
        }
        self.at_mut(node).earliest_start = earliest;
    }

    /// The outermost node on one side below `root`.
    fn end(&self, root: u32, side: usize) -> u32 {
        let mut at = root;
        while at != NIL && self.at(at).child[side] != NIL {
            at = self.at(at).child[side];
        }
        at
    }
}

impl Timeline {
    pub(super) fn is_empty(&self) -> bool {
        self.root == NIL
    }

    /// Who finishes first.
    pub(super) fn first(&self, links: &Links) -> Option<EntityId> {
        option(links.end(self.root, 0))
    }

    /// The earliest start there is.
    pub(super) fn earliest_start(&self, links: &Links) -> Option<u64> {
        (!self.is_empty()).then(|| links.at(self.root).earliest_start)
    }

    /// Of those whose start is not after `now`, who finishes first.
    pub(super) fn first_eligible(&self, links: &Links, now: u64) -> Option<EntityId> {
        let has = |node: u32| node != NIL && !is_after(links.at(node).earliest_start, now);
        let mut at = self.root;
        while has(at) {
            let Node { start, child: [sooner, later], .. } = *links.at(at);
            if has(sooner) {
                at = sooner;
            } else if !is_after(start, now) {
                return option(at);
            } else {
                at = later;
            }
        }
        None
    }

    /// Put `id` in, behind those that finish at the same time.
    pub(super) fn insert(&mut self, links: &mut Links, id: EntityId, start: u64, finish: u64) {
        let new = raw(id);
        let (mut parent, mut side) = (NIL, 0);
        let mut at = self.root;
        while at != NIL {
            parent = at;
            side = usize::from(!is_after(links.at(at).finish, finish));
            at = links.at(at).child[side];
        }
        *links.at_mut(new) = Node { start, finish, earliest_start: start, parent, child: [NIL; 2] };
        if parent == NIL {
            self.root = new;
            return;
        }
        links.at_mut(parent).child[side] = new;
        while links.at(new).parent != NIL && rank(links.at(new).parent) < rank(new) {
            self.lift(links, new);
        }
        self.refresh_upwards(links, links.at(new).parent);
    }

    /// Take `id` out.
    pub(super) fn remove(&mut self, links: &mut Links, id: EntityId) {
        let gone = raw(id);
        loop {
            let [a, b] = links.at(gone).child;
            let up = match (a, b) {
                (NIL, NIL) => break,
                (a, NIL) => a,
                (NIL, b) => b,
                (a, b) => {
                    if rank(a) > rank(b) {
                        a
                    } else {
                        b
                    }
                }
            };
            self.lift(links, up);
        }
        let parent = links.at(gone).parent;
        self.hang(links, parent, gone, NIL);
        self.refresh_upwards(links, parent);
    }

    fn refresh_upwards(&self, links: &mut Links, from: u32) {
        let mut at = from;
        while at != NIL {
            links.refresh(at);
            at = links.at(at).parent;
        }
    }

    /// `new` takes the place of `old` below `parent`.
    fn hang(&mut self, links: &mut Links, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            self.root = new;
            return;
        }
        let side = usize::from(links.at(parent).child[1] == old);
        links.at_mut(parent).child[side] = new;
    }

    /// Rotate: `low` takes the place of its parent, which becomes its child.
    fn lift(&mut self, links: &mut Links, low: u32) {
        let high = links.at(low).parent;
        let above = links.at(high).parent;
        let side = usize::from(links.at(high).child[1] == low);
        let between = links.at(low).child[1 - side];
        links.at_mut(high).child[side] = between;
        if between != NIL {
            links.at_mut(between).parent = high;
        }
        links.at_mut(low).child[1 - side] = high;
        links.at_mut(low).parent = above;
        self.hang(links, above, high, low);
        links.at_mut(high).parent = low;
        links.refresh(high);
        links.refresh(low);
    }

    /// All of them by finish, for checks.
    #[cfg(test)]
    pub(super) fn all(&self, links: &Links) -> std::vec::Vec<EntityId> {
        fn walk(links: &Links, at: u32, parent: u32, into: &mut std::vec::Vec<EntityId>) {
            let Some(id) = option(at) else { return };
            let node = *links.at(at);
            assert_eq!(node.parent, parent);
            assert!(parent == NIL || rank(parent) > rank(at), "a heap");
            walk(links, node.child[0], at, into);
            into.push(id);
            walk(links, node.child[1], at, into);
            let mut copy = Links { nodes: links.nodes.clone() };
            copy.refresh(at);
            assert_eq!(copy.at(at).earliest_start, node.earliest_start);
        }
        let mut all = std::vec::Vec::new();
        walk(links, self.root, NIL, &mut all);
        for pair in all.windows(2) {
            assert!(!is_after(links.at(raw(pair[0])).finish, links.at(raw(pair[1])).finish), "by finish");
        }
        all
    }
}
