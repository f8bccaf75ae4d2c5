//! Doubly linked list by index.

use core::marker::PhantomData;

use super::{Id, Table};

const NIL: u32 = u32::MAX;

/// The links of all elements of one capacity.
#[derive(Debug, Clone)]
pub struct ListLinks<I> {
    links: Table<Link>,
    id: PhantomData<I>,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    prev: u32,
    next: u32,
}

/// A list head. What the first element's link says is before it is not looked at, nor the tail of an empty list: so taking the first
/// element off, which is what lists do most, changes the head and nothing else.
#[derive(Debug, Clone, Copy)]
pub struct List<I> {
    head: u32,
    tail: u32,
    len: u32,
    id: PhantomData<I>,
}

impl<I: Id> ListLinks<I> {
    /// Links for elements `0..capacity`.
    pub fn new(capacity: usize) -> ListLinks<I> {
        ListLinks { links: Table::new(Link { prev: NIL, next: NIL }, capacity), id: PhantomData }
    }
}

impl<I: Id> Default for List<I> {
    fn default() -> List<I> {
        List::new()
    }
}

fn option<I: Id>(raw: u32) -> Option<I> {
    (raw != NIL).then(|| I::from_index(raw as usize))
}

impl<I: Id> List<I> {
    /// An empty list.
    pub const fn new() -> List<I> {
        List { head: NIL, tail: NIL, len: 0, id: PhantomData }
    }

    /// Nothing on it?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NIL
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// First element.
    #[inline]
    pub fn front(&self) -> Option<I> {
        option(self.head)
    }

    /// Last element.
    #[inline]
    pub fn back(&self) -> Option<I> {
        if self.is_empty() { None } else { option(self.tail) }
    }

    /// The element behind `id`.
    #[inline]
    pub fn next(&self, links: &ListLinks<I>, id: I) -> Option<I> {
        option(links.links[id.index()].next)
    }

    /// The element before `id`.
    #[inline]
    pub fn prev(&self, links: &ListLinks<I>, id: I) -> Option<I> {
        if self.head == id.index() as u32 { None } else { option(links.links[id.index()].prev) }
    }

    /// Append.
    #[inline]
    pub fn push_back(&mut self, links: &mut ListLinks<I>, id: I) {
        let raw = id.index() as u32;
        links.links[id.index()] = Link { prev: self.tail, next: NIL };
        if self.is_empty() {
            self.head = raw;
        } else {
            links.links[self.tail as usize].next = raw;
        }
        self.tail = raw;
        self.len += 1;
    }

    /// Prepend.
    #[inline]
    pub fn push_front(&mut self, links: &mut ListLinks<I>, id: I) {
        self.insert(links, NIL, id, self.head);
    }

    /// Put `id` right behind `at`.
    #[inline]
    pub fn insert_after(&mut self, links: &mut ListLinks<I>, at: I, id: I) {
        let next = links.links[at.index()].next;
        self.insert(links, at.index() as u32, id, next);
    }

    /// Put `id` right before `at`.
    #[inline]
    pub fn insert_before(&mut self, links: &mut ListLinks<I>, at: I, id: I) {
        let prev = self.prev(links, at).map_or(NIL, |prev| prev.index() as u32);
        self.insert(links, prev, id, at.index() as u32);
    }

    /// Take `id` off the list it is on, which must be this one.
    #[inline]
    pub fn remove(&mut self, links: &mut ListLinks<I>, id: I) {
        let Link { prev, next } = links.links[id.index()];
        if self.head == id.index() as u32 {
            self.head = next;
        } else {
            debug_assert!(
                links.links[prev as usize].next == id.index() as u32,
                "the element is on this list"
            );
            links.links[prev as usize].next = next;
        }
        if next == NIL {
            self.tail = prev;
        } else {
            links.links[next as usize].prev = prev;
        }
        links.links[id.index()] = Link { prev: NIL, next: NIL };
        self.len -= 1;
    }

    /// Take the first element off.
    #[inline]
    pub fn pop_front(&mut self, links: &mut ListLinks<I>) -> Option<I> {
        let id = self.front()?;
        // Who is on no list has no neighbours.
        let link = &mut links.links[id.index()];
        self.head = core::mem::replace(link, Link { prev: NIL, next: NIL }).next;
        self.len -= 1;
        Some(id)
    }

    /// All elements, front to back.
    pub fn iter<'a>(&self, links: &'a ListLinks<I>) -> impl Iterator<Item = I> + 'a {
        let mut at = self.head;
        core::iter::from_fn(move || {
            let id = option::<I>(at)?;
            at = links.links[id.index()].next;
            Some(id)
        })
    }

    fn insert(&mut self, links: &mut ListLinks<I>, prev: u32, id: I, next: u32) {
        let raw = id.index() as u32;
        links.links[id.index()] = Link { prev, next };
        if prev == NIL {
            self.head = raw;
        } else {
            links.links[prev as usize].next = raw;
        }
        if next == NIL {
            self.tail = raw;
        } else {
            links.links[next as usize].prev = raw;
        }
        self.len += 1;
    }
}
