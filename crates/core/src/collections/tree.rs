//! Ordered tree by index: red-black, with every element's neighbours at hand.
//!
//! The rules (Guibas and Sedgewick 1978, as in Cormen et al., *Introduction to Algorithms*, chapter 13): a red node
//! has black children, and every way down from a node passes the same number of black ones. Hence no way down is
//! longer than twice the shortest, and every operation is O(log n) without recursion.
//!
//! Elevators ask for neighbours more often than they insert, so the nodes also form a list in order: a neighbour takes
//! one look instead of a walk, and an insertion finds its own for nothing on the way down.

use core::marker::PhantomData;

use super::{Id, Table};

/// No node. The place of this number holds one all the same, always black, so that a child's colour can be looked at
/// and its parent set without asking first whether there is a child.
const NIL: u32 = 0;

/// The nodes of all elements of one capacity; element `i` is node `i + 1`.
#[derive(Debug, Clone)]
pub struct TreeLinks<I, K> {
    nodes: Table<Node<K>>,
    id: PhantomData<I>,
}

#[derive(Debug, Clone, Copy)]
struct Node<K> {
    key: K,
    parent: u32,
    /// Left and right child.
    child: [u32; 2],
    /// The element before and the one behind.
    beside: [u32; 2],
    red: bool,
}

/// A tree's root. Elements with equal keys keep their order of insertion.
#[derive(Debug, Clone, Copy)]
pub struct Tree<I> {
    root: u32,
    /// First and last element.
    ends: [u32; 2],
    len: u32,
    id: PhantomData<I>,
}

const LEFT: usize = 0;
const RIGHT: usize = 1;

#[inline]
fn option<I: Id>(raw: u32) -> Option<I> {
    (raw != NIL).then(|| I::from_index(raw as usize - 1))
}

#[inline]
fn raw<I: Id>(id: I) -> u32 {
    id.index() as u32 + 1
}

impl<I: Id, K: Ord + Copy + Default> TreeLinks<I, K> {
    /// Nodes for elements `0..capacity`.
    pub fn new(capacity: usize) -> TreeLinks<I, K> {
        let node = Node { key: K::default(), parent: NIL, child: [NIL; 2], beside: [NIL; 2], red: false };
        TreeLinks { nodes: Table::new(node, capacity + 1), id: PhantomData }
    }

    /// The key `id` was inserted with.
    #[inline]
    pub fn key(&self, id: I) -> K {
        self.node(raw(id)).key
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
        self.node(raw).red
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
        Tree { root: NIL, ends: [NIL; 2], len: 0, id: PhantomData }
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
        option(self.ends[LEFT])
    }

    /// Largest element; O(1).
    #[inline]
    pub fn last(&self) -> Option<I> {
        option(self.ends[RIGHT])
    }

    /// In-order successor of `id`; O(1).
    #[inline]
    pub fn next<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, id: I) -> Option<I> {
        option(links.node(raw(id)).beside[RIGHT])
    }

    /// In-order predecessor of `id`; O(1).
    #[inline]
    pub fn prev<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, id: I) -> Option<I> {
        option(links.node(raw(id)).beside[LEFT])
    }

    /// The first element with exactly this key.
    #[inline]
    pub fn find<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, key: K) -> Option<I> {
        self.lower_bound(links, key).filter(|id| links.key(*id) == key)
    }

    /// The first element whose key is at least `key`.
    #[inline]
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

    /// The two elements between which a new element of `key` would come, behind those of equal key.
    #[inline]
    pub fn around<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, key: K) -> [Option<I>; 2] {
        let (parent, side) = self.place_for(links, key);
        let outer = links.node(parent).beside[side];
        let [below, above] = if side == LEFT { [outer, parent] } else { [parent, outer] };
        [option(below), option(above)]
    }

    /// All elements in order.
    pub fn iter<'a, K: Ord + Copy + Default>(
        &self,
        links: &'a TreeLinks<I, K>,
    ) -> impl Iterator<Item = I> + 'a {
        let mut at = self.ends[LEFT];
        core::iter::from_fn(move || {
            let id = option::<I>(at)?;
            at = links.node(at).beside[RIGHT];
            Some(id)
        })
    }

    /// Put `id` in, behind elements of equal key.
    pub fn insert<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, id: I, key: K) {
        let (parent, side) = self.place_for(links, key);
        self.attach(links, raw(id), key, parent, side);
    }

    /// Put `id` in, unless an element of equal key is there.
    ///
    /// # Errors
    /// That element.
    pub fn insert_unique<K: Ord + Copy + Default>(
        &mut self,
        links: &mut TreeLinks<I, K>,
        id: I,
        key: K,
    ) -> Result<(), I> {
        let (parent, side) = self.place_for(links, key);
        // An equal would be right below the place.
        let below = if side == LEFT { links.node(parent).beside[LEFT] } else { parent };
        match option(below) {
            Some(equal) if links.node(below).key == key => Err(equal),
            _ => {
                self.attach(links, raw(id), key, parent, side);
                Ok(())
            }
        }
    }

    /// Put `id` in right before `at`, or behind all others, where `key` must fit; no search.
    pub fn insert_before<K: Ord + Copy + Default>(
        &mut self,
        links: &mut TreeLinks<I, K>,
        at: Option<I>,
        id: I,
        key: K,
    ) {
        let (parent, side) = match at.map(raw) {
            None => (self.ends[RIGHT], RIGHT),
            Some(at) if links.node(at).child[LEFT] == NIL => (at, LEFT),
            // The last one of what is below `at` on its left: nothing hangs on its right.
            Some(at) => (links.node(at).beside[LEFT], RIGHT),
        };
        self.attach(links, raw(id), key, parent, side);
    }

    /// `new` takes the place of `old`, which leaves; `key` must fit there.
    pub fn replace<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, old: I, new: I, key: K) {
        let (old, new) = (raw(old), raw(new));
        let node = Node { key, ..*links.node(old) };
        *links.node_mut(new) = node;
        for (side, beside) in node.beside.into_iter().enumerate() {
            links.node_mut(node.child[side]).parent = new;
            if beside == NIL {
                self.ends[side] = new;
            } else {
                links.node_mut(beside).beside[1 - side] = new;
            }
        }
        self.hang(links, node.parent, old, new);
    }

    /// Give `id`, which is in this tree, another key if its place is the same with it: as taking it out and putting it in
    /// again, for much less. Else nothing changes, and the answer is no.
    pub fn rekey<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, id: I, key: K) -> bool {
        let [before, behind] = links.node(raw(id)).beside;
        let fits = (before == NIL || links.node(before).key <= key)
            && (behind == NIL || key < links.node(behind).key);
        if fits {
            links.node_mut(raw(id)).key = key;
        }
        fits
    }

    /// Where a new element of `key` hangs, behind those of equal key: below which node, on which side.
    #[inline]
    fn place_for<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, key: K) -> (u32, usize) {
        // In an empty tree the root is the node that is none: it has no children either.
        let mut parent = self.root;
        loop {
            let node = links.node(parent);
            let side = if key < node.key { LEFT } else { RIGHT };
            if node.child[side] == NIL {
                return (parent, side);
            }
            parent = node.child[side];
        }
    }

    #[inline(always)] // for the two insertions
    fn attach<K: Ord + Copy + Default>(
        &mut self,
        links: &mut TreeLinks<I, K>,
        new: u32,
        key: K,
        parent: u32,
        side: usize,
    ) {
        self.len += 1;
        if parent == NIL {
            *links.node_mut(new) = Node { key, parent, child: [NIL; 2], beside: [NIL; 2], red: false };
            (self.root, self.ends) = (new, [new; 2]);
            return;
        }
        // Between its parent and the parent's neighbour on that side.
        let above = links.node_mut(parent);
        above.child[side] = new;
        let outer = core::mem::replace(&mut above.beside[side], new);
        let parent_red = above.red;
        let beside = if side == LEFT { [outer, parent] } else { [parent, outer] };
        if outer == NIL {
            self.ends[side] = new;
        } else {
            links.node_mut(outer).beside[1 - side] = new;
        }
        *links.node_mut(new) = Node { key, parent, child: [NIL; 2], beside, red: true };
        if parent_red {
            self.mend_red(links, new);
        }
    }

    /// Take `id` out of the tree it is in, which must be this one.
    pub fn remove<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, id: I) {
        let gone = raw(id);
        let Node { parent, child: [left, right], beside: [before, behind], red, .. } = *links.node(gone);
        debug_assert!(
            gone == if before == NIL { self.ends[LEFT] } else { links.node(before).beside[RIGHT] },
            "the element is here"
        );
        if self.len == 1 {
            *self = Tree::new();
            return;
        }
        self.len -= 1;
        if before == NIL {
            self.ends[LEFT] = behind;
        } else {
            links.node_mut(before).beside[RIGHT] = behind;
        }
        if behind == NIL {
            self.ends[RIGHT] = before;
        } else {
            links.node_mut(behind).beside[LEFT] = before;
        }

        // `hole_parent` is above the place where a node left the tree, `filler` what moved up there (perhaps nothing).
        let (hole_parent, filler, lost_black);
        if left == NIL || right == NIL {
            filler = left | right; // the one there is
            hole_parent = parent;
            lost_black = !red;
            self.hang(links, parent, gone, filler);
        } else {
            // The successor takes the place (and colour) of `gone`; its own old place is the hole.
            let heir = links.node_mut(behind);
            filler = heir.child[RIGHT];
            lost_black = !heir.red;
            heir.red = red;
            heir.child[LEFT] = left;
            let heir_parent = heir.parent;
            if heir_parent == gone {
                hole_parent = behind;
            } else {
                hole_parent = heir_parent;
                heir.child[RIGHT] = right;
                links.node_mut(right).parent = behind;
                links.node_mut(heir_parent).child[LEFT] = filler;
                links.node_mut(filler).parent = heir_parent;
            }
            links.node_mut(left).parent = behind;
            self.hang(links, parent, gone, behind);
        }
        if lost_black {
            self.mend_black(links, filler, hole_parent);
        }
    }

    /// Hang `new` (or nothing) below `parent`, where `old` hangs.
    #[inline]
    fn hang<K: Ord + Copy + Default>(
        &mut self,
        links: &mut TreeLinks<I, K>,
        parent: u32,
        old: u32,
        new: u32,
    ) {
        if parent == NIL {
            self.root = new;
        } else {
            let child = &mut links.node_mut(parent).child;
            child[usize::from(child[RIGHT] == old)] = new;
        }
        links.node_mut(new).parent = parent;
    }

    /// Turn the edge between `top` and its child on the other side, so that `top` sinks to `side`.
    #[inline(always)] // saves 20 to 40 instructions a request
    fn rotate<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, top: u32, side: usize) {
        let side = side & 1; // as it is anyway: saves the bounds checks
        let Node { parent, child, .. } = *links.node(top);
        let up = child[1 - side];
        let rising = links.node_mut(up);
        let inner = core::mem::replace(&mut rising.child[side], top);
        let sinking = links.node_mut(top);
        sinking.child[1 - side] = inner;
        sinking.parent = up;
        links.node_mut(inner).parent = top;
        self.hang(links, parent, top, up);
    }

    /// `at` and its parent are red. At most two turns, or a climb by two levels.
    fn mend_red<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, mut at: u32) {
        loop {
            let mut parent = links.node(at).parent;
            if !links.is_red(parent) {
                break;
            }
            let grand = links.node(parent).parent;
            let side = usize::from(links.node(grand).child[RIGHT] == parent);
            let uncle = links.node(grand).child[1 - side];
            if links.is_red(uncle) {
                links.node_mut(parent).red = false;
                links.node_mut(uncle).red = false;
                if grand == self.root {
                    break; // stays black
                }
                links.node_mut(grand).red = true;
                at = grand;
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
    }

    /// The ways through `at` (a child of `parent`, perhaps nothing) are one black node short.
    fn mend_black<K: Ord + Copy + Default>(
        &mut self,
        links: &mut TreeLinks<I, K>,
        mut at: u32,
        mut parent: u32,
    ) {
        while parent != NIL && !links.is_red(at) {
            let children = links.node(parent).child;
            let side = usize::from(children[RIGHT] == at);
            let mut sibling = children[1 - side];
            if links.is_red(sibling) {
                links.node_mut(sibling).red = false;
                links.node_mut(parent).red = true;
                self.rotate(links, parent, side);
                sibling = links.node(parent).child[1 - side];
            }
            let nephews = links.node(sibling).child;
            let (near, mut far) = (nephews[side], nephews[1 - side]);
            if !links.is_red(far) {
                if !links.is_red(near) {
                    links.node_mut(sibling).red = true;
                    at = parent;
                    parent = links.node(at).parent;
                    continue;
                }
                self.rotate(links, sibling, 1 - side);
                (far, sibling) = (sibling, near);
            }
            let above = links.node_mut(parent);
            let red = core::mem::replace(&mut above.red, false);
            links.node_mut(sibling).red = red;
            links.node_mut(far).red = false;
            self.rotate(links, parent, side);
            return;
        }
        links.node_mut(at).red = false;
    }

    /// Check every rule; for tests.
    ///
    /// # Panics
    /// When a rule is broken.
    #[cfg(test)]
    pub(super) fn check<K: Ord + Copy + Default + core::fmt::Debug>(&self, links: &TreeLinks<I, K>) {
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
        assert!(!links.is_red(NIL) && !links.is_red(self.root), "black ends");
        blacks(links, self.root, NIL);
        let keys: alloc::vec::Vec<K> = self.iter(links).map(|i| links.key(i)).collect();
        assert!(keys.is_sorted(), "order {keys:?}");
        assert_eq!(keys.len(), self.len());
        for id in self.iter(links) {
            assert!(self.next(links, id).is_none_or(|next| self.prev(links, next) == Some(id)), "beside");
        }
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

    /// A new key in place leaves the order that taking out and putting in again would; where it cannot, nothing changes.
    #[test]
    fn a_new_key_in_place_is_a_removal_and_an_insertion() {
        const N: usize = 8;
        let order = |tree: &Tree<Element>, links: &TreeLinks<Element, u64>| -> alloc::vec::Vec<_> {
            tree.iter(links).map(|id| (id.index(), links.key(id))).collect()
        };
        for moved in (0..N).map(Element::from_index) {
            for key in 0..12 {
                let mut links = TreeLinks::<Element, u64>::new(N);
                let mut tree = Tree::new();
                // Pairs of equal keys: 1 1 3 3 5 5 7 7.
                (0..N).for_each(|at| tree.insert(&mut links, Element::from_index(at), (at | 1) as u64));
                let before = order(&tree, &links);
                let (mut again, mut again_links) = (tree, links.clone());
                again.remove(&mut again_links, moved);
                again.insert(&mut again_links, moved, key);
                let expected = order(&again, &again_links);
                let stays = before.iter().map(|(id, _)| id).eq(expected.iter().map(|(id, _)| id));
                assert_eq!(tree.rekey(&mut links, moved, key), stays, "{moved:?} to {key}");
                assert_eq!(order(&tree, &links), if stays { expected } else { before }, "{moved:?} to {key}");
                tree.check(&links);
            }
        }
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
                None if step % 2 == 0 && tree.find(&links, key).is_some() => {
                    let equal = model.range((key, 0)..(key + 1, 0)).next_back().map(|(_, id)| *id);
                    assert_eq!(tree.insert_unique(&mut links, id, key).err(), equal);
                }
                None => {
                    if tree.find(&links, key).is_some() {
                        tree.insert(&mut links, id, key);
                    } else {
                        assert_eq!(tree.insert_unique(&mut links, id, key), Ok(()));
                    }
                    model.insert((key, step), id);
                    place[element] = Some((key, step));
                }
            }
            tree.check(&links);
            assert_eq!(tree.first(), model.values().next().copied());
            assert_eq!(tree.last(), model.values().next_back().copied());
            assert_eq!(tree.find(&links, key), model.range((key, 0)..(key + 1, 0)).next().map(|(_, id)| *id));
            assert_eq!(tree.lower_bound(&links, key), model.range((key, 0)..).next().map(|(_, id)| *id));
            if let Some(at) = place[element] {
                assert_eq!(tree.next(&links, id), model.range(at..).nth(1).map(|(_, id)| *id));
                assert_eq!(tree.prev(&links, id), model.range(..at).next_back().map(|(_, id)| *id));
            }
        }
    }
}
