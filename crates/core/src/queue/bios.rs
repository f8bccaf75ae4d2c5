//! Which bios a request carries: chains through a pool of nodes.

use crate::collections::Table;
use crate::request::QueueData;

const NIL: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    cookie: u64,
    next: u32,
}

/// The bio nodes of one queue; a request's chain is in ascending order of sectors.
#[derive(Debug)]
pub(super) struct Bios {
    nodes: Table<Node>,
    free: u32,
}

impl Bios {
    pub(super) fn new(capacity: usize) -> Bios {
        let mut nodes = Table::new(Node { cookie: 0, next: NIL }, capacity);
        let mut free = NIL;
        for (index, node) in nodes.iter_mut().enumerate().rev() {
            node.next = core::mem::replace(&mut free, index as u32);
        }
        Bios { nodes, free }
    }

    /// A node for `cookie`, on no chain yet.
    #[inline]
    pub(super) fn take(&mut self, cookie: u64) -> Option<u32> {
        let at = self.free;
        let node = self.nodes.get_mut(at as usize)?;
        self.free = node.next;
        *node = Node { cookie, next: NIL };
        Some(at)
    }

    pub(super) fn append(&mut self, chain: &mut QueueData, node: u32) {
        self.nodes[chain.bio_last as usize].next = node;
        chain.bio_last = node;
    }

    pub(super) fn prepend(&mut self, chain: &mut QueueData, node: u32) {
        self.nodes[node as usize].next = chain.bio_first;
        chain.bio_first = node;
    }

    /// Hang `tail`'s chain behind `chain`'s.
    pub(super) fn join(&mut self, chain: &mut QueueData, tail: &QueueData) {
        self.nodes[chain.bio_last as usize].next = tail.bio_first;
        chain.bio_last = tail.bio_last;
    }

    /// The cookies of a chain, in order.
    pub(super) fn cookies(&self, chain: &QueueData) -> impl Iterator<Item = u64> + '_ {
        let node = |at: u32| self.nodes.get(at as usize).copied();
        core::iter::successors(node(chain.bio_first), move |last| node(last.next)).map(|node| node.cookie)
    }

    /// Free a chain, reporting its cookies in order.
    #[inline]
    pub(super) fn release(&mut self, chain: &QueueData, done: &mut impl FnMut(u64)) {
        if chain.bio_first == NIL {
            return;
        }
        let mut at = chain.bio_first;
        while at != NIL {
            let node = self.nodes[at as usize];
            done(node.cookie);
            at = node.next;
        }
        self.nodes[chain.bio_last as usize].next = self.free;
        self.free = chain.bio_first;
    }
}
