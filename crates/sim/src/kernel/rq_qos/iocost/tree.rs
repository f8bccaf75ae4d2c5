//! Weights in a tree: the share of the device that is due to a group, and the share it uses.
//!
//! A group that is active has its weight as `active`; `inuse` is what is left of it after donations. A part is the product, from
//! the root down, of a group's number beside the sum of its siblings'. Only leaves are set; what an inner group has follows
//! from its children.
//!
//! Facts: Linux 6.12 `block/blk-iocost.c` (`current_hweight`, `propagate_weights`, `current_hweight_max`).

/// The whole device.
pub(super) const WHOLE: u64 = 1 << 16;
/// `io.weight` of a group that was not given one.
const WEIGHT_DEFAULT: u64 = 100;

#[derive(Clone, Debug, Default)]
struct Node {
    weight: u64,
    active: u64,
    inuse: u64,
    children_active: u64,
    children_inuse: u64,
    /// From the child of the root down to itself.
    path: Vec<usize>,
}

/// The weights of all groups.
#[derive(Debug)]
pub(super) struct Tree {
    nodes: Vec<Node>,
}

impl Tree {
    /// Of groups with these parents (which come earlier; the first is the root) and `io.weight`.
    pub(super) fn new(groups: impl Iterator<Item = (Option<usize>, u32)>) -> Tree {
        let mut nodes: Vec<Node> = Vec::new();
        for (at, (parent, weight)) in groups.enumerate() {
            let mut path = parent.map_or_else(Vec::new, |parent| nodes[parent].path.clone());
            if parent.is_some() {
                path.push(at);
            }
            nodes.push(Node { weight: u64::from(weight) * WHOLE / WEIGHT_DEFAULT, path, ..Node::default() });
        }
        Tree { nodes }
    }

    pub(super) fn is_root(&self, group: usize) -> bool {
        self.nodes[group].path.is_empty()
    }

    /// From the child of the root down to the group.
    pub(super) fn path(&self, group: usize) -> &[usize] {
        &self.nodes[group].path
    }

    pub(super) fn weight(&self, group: usize) -> u64 {
        self.nodes[group].weight
    }

    pub(super) fn active(&self, group: usize) -> u64 {
        self.nodes[group].active
    }

    pub(super) fn inuse(&self, group: usize) -> u64 {
        self.nodes[group].inuse
    }

    pub(super) fn has_active_children(&self, group: usize) -> bool {
        self.nodes[group].children_active > 0
    }

    /// The number above each member of a group's path: the root's (0) for the first.
    fn steps(&self, group: usize) -> impl DoubleEndedIterator<Item = (usize, usize)> + '_ {
        let path = &self.nodes[group].path;
        path.iter().enumerate().map(|(at, child)| (if at == 0 { 0 } else { path[at - 1] }, *child))
    }

    /// The share of the device that is the group's due, and the share it uses.
    pub(super) fn parts(&self, group: usize) -> (u64, u64) {
        let (mut due, mut used) = (WHOLE, WHOLE);
        for (parent, child) in self.steps(group) {
            let (parent, child) = (&self.nodes[parent], &self.nodes[child]);
            if parent.children_active == 0 || parent.children_inuse == 0 {
                continue;
            }
            due = due * child.active / parent.children_active;
            used = used * child.inuse / parent.children_inuse;
        }
        (due.max(1), used.max(1))
    }

    /// The part it would use if it donated nothing.
    pub(super) fn most(&self, group: usize) -> u64 {
        let (mut most, mut inuse) = (WHOLE, self.nodes[group].active);
        for (parent, child) in self.steps(group).rev() {
            let (parent, child) = (&self.nodes[parent], &self.nodes[child]);
            let sum = parent.children_inuse + inuse - child.inuse;
            most = most * inuse / sum.max(1);
            inuse = (parent.active * sum).div_ceil(parent.children_active.max(1));
        }
        most.max(1)
    }

    /// A leaf has these numbers from now on, and those above it what follows; (0, 0): it is no longer active.
    pub(super) fn set(&mut self, leaf: usize, active: u64, inuse: u64) {
        let (mut active, mut inuse) = (active, inuse.max(1).min(active));
        let path = std::mem::take(&mut self.nodes[leaf].path);
        for at in (0..path.len()).rev() {
            let (child, parent) = (path[at], if at == 0 { 0 } else { path[at - 1] });
            let (active_before, inuse_before) = (self.nodes[child].active, self.nodes[child].inuse);
            if (active, inuse) == (active_before, inuse_before) {
                break;
            }
            (self.nodes[child].active, self.nodes[child].inuse) = (active, inuse);
            let above = &mut self.nodes[parent];
            above.children_active = above.children_active + active - active_before;
            above.children_inuse = above.children_inuse + inuse - inuse_before;
            (active, inuse) = (0, 0);
            if above.children_active > 0 {
                active = above.weight;
                inuse = (active * above.children_inuse).div_ceil(above.children_active);
            }
        }
        self.nodes[leaf].path = path;
    }
}
