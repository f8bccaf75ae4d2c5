//! Ordered tree by index: red-black, with its first element at hand.

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
    left: u32,
    right: u32,
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

#[allow(clippy::todo, unused_variables, dead_code)]
impl<I: Id, K: Ord + Copy + Default> TreeLinks<I, K> {
    /// Nodes for elements `0..capacity`.
    pub fn new(capacity: usize) -> TreeLinks<I, K> {
        todo!()
    }

    /// The key `id` was inserted with.
    pub fn key(&self, id: I) -> K {
        self.nodes[id.index()].key
    }
}

#[allow(clippy::todo, unused_variables, dead_code)]
impl<I: Id> Tree<I> {
    /// An empty tree.
    pub const fn new() -> Tree<I> {
        Tree { root: NIL, first: NIL, len: 0, id: PhantomData }
    }
    /// Nothing in it?
    pub fn is_empty(&self) -> bool {
        self.root == NIL
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len as usize
    }
    /// Put `id` in, behind elements of equal key.
    pub fn insert<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, id: I, key: K) {
        todo!()
    }
    /// Take `id` out of the tree it is in, which must be this one.
    pub fn remove<K: Ord + Copy + Default>(&mut self, links: &mut TreeLinks<I, K>, id: I) {
        todo!()
    }
    /// Smallest element; O(1).
    pub fn first(&self) -> Option<I> {
        todo!()
    }
    /// Largest element.
    pub fn last<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>) -> Option<I> {
        todo!()
    }
    /// In-order successor of `id`.
    pub fn next<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, id: I) -> Option<I> {
        todo!()
    }
    /// In-order predecessor of `id`.
    pub fn prev<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, id: I) -> Option<I> {
        todo!()
    }
    /// The first element with exactly this key.
    pub fn find<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, key: K) -> Option<I> {
        todo!()
    }
    /// The first element whose key is at least `key`.
    pub fn lower_bound<K: Ord + Copy + Default>(&self, links: &TreeLinks<I, K>, key: K) -> Option<I> {
        todo!()
    }
}
