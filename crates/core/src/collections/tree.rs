//! Ordered tree by index: red-black, with its first element at hand.
//!
//! The rules (Guibas and Sedgewick 1978, as in Cormen et al., *Introduction to Algorithms*, chapter 13): a red node
//! has black children, and every way down from a node passes the same number of black ones. Hence no way down is
//! longer than twice the shortest, and every operation is O(log n) without recursion.

use alloc::vec::Vec;
use core::marker::PhantomData;

use super::Id;

const NIL: u32 = u32::MAX;

/// The nodes of all elements of one capacity.
#[derive(Debug, Clone)]
pub struct TreeLinks<I, K> {
    nodes: Vec<Node<K>>,
    id: PhantomData<I>,
}

#[derive(Debug, Clone, Copy)]
struct Node<K> {
    key: K,
    parent: u32,
    /// Left and right child.
    child: [u32; 2],
    red: bool,
}

/// A tree's root. Elements with equal keys keep their order of insertion.
#[derive(Debug, Clone, Copy)]
pub struct Tree<I> {
    root: u32,
    first: u32,
    len: u32,
    id: PhantomData<I>,
}

const LEFT: usize = 0;
const RIGHT: usize = 1;

fn option<I: Id>(raw: u32) -> Option<I> {
    (raw != NIL).then(|| I::from_index(raw as usize))
}

impl<I: Id, K: Ord + Copy + Default> TreeLinks<I, K> {
    /// Nodes for elements `0..capacity`.
    pub fn new(capacity: usize) -> TreeLinks<I, K> {
        let node = Node { key: K::default(), parent: NIL, child: [NIL; 2], red: false };
        TreeLinks { nodes: alloc::vec![node; capacity], id: PhantomData }
    }

    /// The key `id` was inserted with.
    #[inline]
    pub fn key(&self, id: I) -> K {
        self.nodes[id.index()].key
    }

    #[inline]
    fn node(&self, raw: u32) -> &Node<K> {
        &self.nodes[raw as usize]
    }

    #[inline]
    fn node_mut(&mut self, raw: u32) -> &mut Node<K> {
        &mut self.nodes[raw as usize]
    }

    #[inline]
    fn is_red(&self, raw: u32) -> bool {
        raw != NIL && self.node(raw).red
    }

    /// The outermost node below `raw` on one side.
    #[inline]
    fn outermost(&self, mut raw: u32, side: usize) -> u32 {
        while self.node(raw).child[side] != NIL {
            raw = self.node(raw).child[side];
        }
        raw
    }

    /// The in-order neighbour of `raw` on one side.
    #[inline]
    fn neighbour(&self, mut raw: u32, side: usize) -> u32 {
        let below = self.node(raw).child[side];
        if below != NIL {
            return self.outermost(below, 1 - side);
        }
        let mut parent = self.node(raw).parent;
        while parent != NIL && self.node(parent).child[side] == raw {
            raw = parent;
            parent = self.node(raw).parent;
        }
        parent
    }
}

impl<I: Id> Default for Tree<I> {
    fn default() -> Tree<I> {
        Tree::new()
    }
}

impl<I: Id> Tree<I> {
    /// An empty tree.
    pub const fn new() -> Tree<I> {
        Tree { root: NIL, first: NIL, len: 0, id: PhantomData }
    }

    /// Nothing in it?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.root == NIL
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Smallest element; O(1).
    #[inline]
    pub fn first(&self) -> Option<I> {
        option(self.first)
    }

    /// Largest element.
    pub fn last<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>) -> Option<I> {
        option::<I>(self.root).map(|_| I::from_index(links.outermost(self.root, RIGHT) as usize))
    }

    /// In-order successor of `id`.
    #[inline]
    pub fn next<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, id: I) -> Option<I> {
        option(links.neighbour(id.index() as u32, RIGHT))
    }

    /// In-order predecessor of `id`.
    #[inline]
    pub fn prev<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, id: I) -> Option<I> {
        option(links.neighbour(id.index() as u32, LEFT))
    }

    /// The first element with exactly this key.
    pub fn find<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, key: K) -> Option<I> {
        self.lower_bound(links, key).filter(|id| links.key(*id) == key)
    }

    /// The first element whose key is at least `key`.
    pub fn lower_bound<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, key: K) -> Option<I> {
        let mut at = self.root;
        let mut best = NIL;
        while at != NIL {
            let node = links.node(at);
            if node.key < key {
                at = node.child[RIGHT];
            } else {
                best = at;
                at = node.child[LEFT];
            }
        }
        option(best)
    }

    /// All elements in order.
    pub fn iter<'a, K: Ord + Copy + Default>(
        &self,
        links: &'a TreeLinks<I, K>,
    ) -> impl Iterator<Item = I> + 'a {
        let mut at = self.first;
        core::iter::from_fn(move || {
            let id = option::<I>(at)?;
            at = links.neighbour(at, RIGHT);
            Some(id)
        })
    }

    /// Put `id` in, behind elements of equal key.
    pub fn insert<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, id: I, key: K) {
        let new = id.index() as u32;
        let mut parent = NIL;
        let mut side = LEFT;
        let mut leftmost = true;
        let mut at = self.root;
        while at != NIL {
            let node = links.node(at);
            parent = at;
            side = if key < node.key { LEFT } else { RIGHT };
            leftmost &= side == LEFT;
            at = node.child[side];
        }
        *links.node_mut(new) = Node { key, parent, child: [NIL; 2], red: true };
        if parent == NIL {
            self.root = new;
        } else {
            links.node_mut(parent).child[side] = new;
        }
        if leftmost {
            self.first = new;
        }
        self.len += 1;
        self.mend_red(links, new);
    }

    /// Take `id` out of the tree it is in, which must be this one.
    pub fn remove<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, id: I) {
        let gone = id.index() as u32;
        debug_assert!(
            self.len > 0 && (links.node(gone).parent != NIL || self.root == gone),
            "the element is here"
        );
        if self.first == gone {
            self.first = links.neighbour(gone, RIGHT);
        }
        self.len -= 1;

        let [left, right] = links.node(gone).child;
        // `hole` is where a node left the tree, `filler` what moved up into it (perhaps nothing).
        let (hole_parent, filler, lost_black);
        if left == NIL || right == NIL {
            filler = if left == NIL { right } else { left };
            hole_parent = links.node(gone).parent;
            lost_black = !links.node(gone).red;
            self.replace(links, gone, filler);
        } else {
            // The successor takes the place (and colour) of `gone`; its own old place is the hole.
            let heir = links.outermost(right, LEFT);
            filler = links.node(heir).child[RIGHT];
            lost_black = !links.node(heir).red;
            hole_parent = if links.node(heir).parent == gone { heir } else { links.node(heir).parent };
            if hole_parent != heir {
                self.replace(links, heir, filler);
                links.node_mut(heir).child[RIGHT] = right;
                links.node_mut(right).parent = heir;
            }
            self.replace(links, gone, heir);
            links.node_mut(heir).child[LEFT] = left;
            links.node_mut(left).parent = heir;
            links.node_mut(heir).red = links.node(gone).red;
        }
        let node = links.node_mut(gone);
        node.parent = NIL;
        node.child = [NIL; 2];
        if lost_black {
            self.mend_black(links, filler, hole_parent);
        }
    }

    /// Hang `new` (or nothing) where `old` hangs.
    fn replace<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, old: u32, new: u32) {
        let parent = links.node(old).parent;
        if parent == NIL {
            self.root = new;
        } else {
            let side = usize::from(links.node(parent).child[RIGHT] == old);
            links.node_mut(parent).child[side] = new;
        }
        if new != NIL {
            links.node_mut(new).parent = parent;
        }
    }

    /// Turn the edge between `top` and its child on the other side, so that `top` sinks to `side`.
    fn rotate<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, top: u32, side: usize) {
        let up = links.node(top).child[1 - side];
        let inner = links.node(up).child[side];
        self.replace(links, top, up);
        links.node_mut(top).child[1 - side] = inner;
        if inner != NIL {
            links.node_mut(inner).parent = top;
        }
        links.node_mut(up).child[side] = top;
        links.node_mut(top).parent = up;
    }

    /// `at` is red; its parent may be red too. At most two turns, or a climb by two levels.
    fn mend_red<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, mut at: u32) {
        while links.is_red(links.node(at).parent) {
            let mut parent = links.node(at).parent;
            let grand = links.node(parent).parent;
            let side = usize::from(links.node(grand).child[RIGHT] == parent);
            let uncle = links.node(grand).child[1 - side];
            if links.is_red(uncle) {
                links.node_mut(parent).red = false;
                links.node_mut(uncle).red = false;
                links.node_mut(grand).red = true;
                at = grand;
                if links.node(at).parent == NIL {
                    break;
                }
                continue;
            }
            if links.node(parent).child[1 - side] == at {
                self.rotate(links, parent, side);
                parent = at;
            }
            links.node_mut(parent).red = false;
            links.node_mut(grand).red = true;
            self.rotate(links, grand, 1 - side);
            break;
        }
        let root = self.root;
        links.node_mut(root).red = false;
    }

    /// The ways through `at` (a child of `parent`, perhaps nothing) are one black node short.
    fn mend_black<K: Ord + Copy + Default>(
        &mut self,
        links: &mut TreeLinks<I, K>,
        mut at: u32,
        mut parent: u32,
    ) {
        while parent != NIL && !links.is_red(at) {
            let side = usize::from(links.node(parent).child[RIGHT] == at);
            let mut sibling = links.node(parent).child[1 - side];
            if links.is_red(sibling) {
                links.node_mut(sibling).red = false;
                links.node_mut(parent).red = true;
                self.rotate(links, parent, side);
                sibling = links.node(parent).child[1 - side];
            }
            let near = links.node(sibling).child[side];
            let far = links.node(sibling).child[1 - side];
            if !links.is_red(near) && !links.is_red(far) {
                links.node_mut(sibling).red = true;
                at = parent;
                parent = links.node(at).parent;
                continue;
            }
            if !links.is_red(far) {
                links.node_mut(near).red = false;
                links.node_mut(sibling).red = true;
                self.rotate(links, sibling, 1 - side);
                sibling = near;
            }
            links.node_mut(sibling).red = links.node(parent).red;
            links.node_mut(parent).red = false;
            let far = links.node(sibling).child[1 - side];
            links.node_mut(far).red = false;
            self.rotate(links, parent, side);
            return;
        }
        if at != NIL {
            links.node_mut(at).red = false;
        }
    }

    /// Check every rule; for tests.
    ///
    /// # Panics
    /// When a rule is broken.
    #[cfg(test)]
    fn check<K: Ord + Copy + Default + core::fmt::Debug>(&self, links: &TreeLinks<I, K>) {
        fn blacks<I: Id, K: Ord + Copy + Default>(links: &TreeLinks<I, K>, at: u32, parent: u32) -> usize {
            if at == NIL {
                return 1;
            }
            let node = links.node(at);
            assert_eq!(node.parent, parent, "parent link");
            assert!(!node.red || !links.is_red(parent), "red under red");
            let [l, r] = node.child.map(|c| blacks(links, c, at));
            assert_eq!(l, r, "black height");
            l + usize::from(!node.red)
        }
        blacks(links, self.root, NIL);
        let keys: alloc::vec::Vec<K> = self.iter(links).map(|i| links.key(i)).collect();
        assert!(keys.is_sorted(), "order {keys:?}");
        assert_eq!(keys.len(), self.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    crate::collections::define_id! {
        /// A test element.
        Element
    }

    /// Random insertions and removals against a BTreeMap keyed by (key, insertion number).
    #[test]
    fn agrees_with_a_btreemap() {
        const N: usize = 97;
        let mut links = TreeLinks::<Element, u64>::new(N);
        let mut tree = Tree::new();
        let mut model = BTreeMap::new();
        let mut place = [None; N];
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for step in 0..60_000u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let element = (random >> 33) as usize % N;
            let key = (random >> 20) % 23;
            let id = Element::from_index(element);
            match place[element].take() {
                Some(at) => {
                    tree.remove(&mut links, id);
                    model.remove(&at);
                }
                None => {
                    tree.insert(&mut links, id, key);
                    model.insert((key, step), id);
                    place[element] = Some((key, step));
                }
            }
            tree.check(&links);
            assert_eq!(tree.first(), model.values().next().copied());
            assert_eq!(tree.last(&links), model.values().next_back().copied());
            assert_eq!(tree.find(&links, key), model.range((key, 0)..(key + 1, 0)).next().map(|(_, id)| *id));
            assert_eq!(tree.lower_bound(&links, key), model.range((key, 0)..).next().map(|(_, id)| *id));
            if let Some(at) = place[element] {
                assert_eq!(tree.next(&links, id), model.range(at..).nth(1).map(|(_, id)| *id));
                assert_eq!(tree.prev(&links, id), model.range(..at).next_back().map(|(_, id)| *id));
            }
        }
    }
}
