//! Requests in two orders at once: by sector, and first come, first served with a deadline each.
//!
//! Both orders are doubly linked lists, so that neighbours, ends and the oldest take one look. What costs is finding a
//! new element's place by sector. For that every so often an element is a *mark*. The marks form a red-black tree
//! ([`Tree`]); a mark and the elements below it, down to the mark before (which is not of them), are its *run*. Above the
//! last mark lies the *open run*, which is all there is while a queue is short. A place is found by going down the tree to
//! the run it is in, and then through the run from the end that is nearer by sector, element by element. Most elements come
//! and go without a change to the tree, which is what makes this cheaper than a tree of all of them.
//!
//! # Bounds
//! * *A run has at most [`RUN_MAX`] elements.* Its count goes up when an element joins and stays when one leaves (no code
//!   knows in whose run an element is), so that it is at least the length. When it would pass the maximum, the run is counted
//!   anew, and cut into two halves if it is longer than half the maximum. Either way what is left counts at most half the
//!   maximum and one: before the next such walk of at most `RUN_MAX + 1` steps almost half as many elements have to join.
//!   (Without marks the open run is the whole queue, and its length is known.)
//! * *Insertion and search* go down a tree of at most `n` marks, in at most 2 log2(n + 1) steps, and pass at most `RUN_MAX`
//!   elements. An insertion may have to count and cut a run: as many steps once more, and one insertion in the tree.
//! * *Removal* is O(1), and for a mark at most one removal from the tree, O(log n). A mark with others in its run
//!   hands its place in the tree to the next one below.
//! * So each operation is O(log n + `RUN_MAX`) by itself, not on average. Runs may become short when elements leave at
//!   random; with runs of one element this is the red-black tree of all elements.
//! * *Memory*: marks have their places in the tree by the element's number. There is room for as many marks as
//!   elements, and a queue has nothing but its head.

use core::mem::replace;

use super::{Id, Table, Tree, TreeLinks};

/// No element. The place of this number holds one all the same, of sector 0, so that walks to lower sectors end there.
const NIL: u32 = 0;
/// Stands for a neighbour of elements that are in no queue.
const ABSENT: u32 = u32::MAX;
/// Elements in a run, at most. More make walks longer and marks fewer. In instructions 24 to 64 are about the same from 200
/// elements to 10,000, and queues up to this length need no tree at all; in time 32 is a tenth faster at 10,000, where
/// each step of a walk misses the first cache.
const RUN_MAX: u32 = 48;

/// The places of all elements of one capacity, for any number of queues.
#[derive(Debug, Clone)]
pub struct SortedFifoLinks<I> {
    /// Element `i` is node `i + 1`.
    nodes: Table<Node>,
    marks: TreeLinks<I, u64>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    sector: u64,
    deadline: u64,
    /// Neighbours by sector.
    below: u32,
    above: u32,
    /// Neighbours by arrival.
    older: u32,
    newer: u32,
    /// Not 0: it is a mark, and its run is at most so long.
    run: u32,
    /// Which of several queues it is in, as who put it in counts them.
    of: u8,
}

/// The head of one queue.
#[derive(Debug, Clone, Copy)]
pub struct SortedFifo<I> {
    marks: Tree<I>,
    first: u32,
    last: u32,
    oldest: u32,
    newest: u32,
    len: u32,
    /// The open run is at most so long.
    run: u32,
}

/// Where a new element goes: between these two, in the run of `mark` (or the open one).
#[derive(Clone, Copy)]
struct Place {
    below: u32,
    above: u32,
    mark: u32,
}

#[inline]
fn option<I: Id>(raw: u32) -> Option<I> {
    (raw != NIL).then(|| id(raw))
}

/// Of an element, not [`NIL`].
#[inline]
fn id<I: Id>(raw: u32) -> I {
    I::from_index(raw as usize - 1)
}

#[inline]
fn raw<I: Id>(id: I) -> u32 {
    id.index() as u32 + 1
}

impl<I: Id> SortedFifoLinks<I> {
    /// Places for elements `0..capacity`.
    pub fn new(capacity: usize) -> SortedFifoLinks<I> {
        let node =
            Node { sector: 0, deadline: 0, below: NIL, above: NIL, older: NIL, newer: ABSENT, run: 0, of: 0 };
        SortedFifoLinks { nodes: Table::new(node, capacity + 1), marks: TreeLinks::new(capacity) }
    }

    /// Is `id` in a queue?
    #[inline]
    pub fn is_queued(&self, id: I) -> bool {
        self.node(raw(id)).newer != ABSENT
    }

    /// The sector `id`, which is in a queue, is sorted by.
    #[inline]
    pub fn sector(&self, id: I) -> u64 {
        self.node(raw(id)).sector
    }

    /// The deadline of `id`, which is in a queue.
    #[inline]
    pub fn deadline(&self, id: I) -> u64 {
        self.node(raw(id)).deadline
    }

    /// Which of several queues `id` is in, as [`SortedFifo::insert_in`] was told; `None`: in none.
    #[inline]
    pub fn queue_of(&self, id: I) -> Option<u8> {
        let node = self.node(raw(id));
        (node.newer != ABSENT).then_some(node.of)
    }

    /// `at`, if it is an element of this sector.
    #[inline]
    fn equal_at(&self, at: u32, sector: u64) -> Option<I> {
        option(at).filter(|_| self.node(at).sector == sector)
    }

    #[inline]
    fn node(&self, raw: u32) -> &Node {
        &self.nodes[raw as usize]
    }

    #[inline]
    fn node_mut(&mut self, raw: u32) -> &mut Node {
        &mut self.nodes[raw as usize]
    }
}

impl<I: Id> Default for SortedFifo<I> {
    fn default() -> SortedFifo<I> {
        SortedFifo::new()
    }
}

impl<I: Id> SortedFifo<I> {
    /// An empty queue.
    pub const fn new() -> SortedFifo<I> {
        SortedFifo { marks: Tree::new(), first: NIL, last: NIL, oldest: NIL, newest: NIL, len: 0, run: 0 }
    }

    /// Nothing in it?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.oldest == NIL
    }

    /// Number of elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    // ---- by sector ----

    /// The element of the lowest sector.
    #[inline]
    pub fn first(&self) -> Option<I> {
        option(self.first)
    }

    /// The element of the highest sector.
    #[inline]
    pub fn last(&self) -> Option<I> {
        option(self.last)
    }

    /// The element behind `id` by sector.
    #[inline]
    pub fn next(&self, links: &SortedFifoLinks<I>, id: I) -> Option<I> {
        option(links.node(raw(id)).above)
    }

    /// The element before `id` by sector.
    #[inline]
    pub fn prev(&self, links: &SortedFifoLinks<I>, id: I) -> Option<I> {
        option(links.node(raw(id)).below)
    }

    /// The first element of exactly this sector.
    #[inline]
    pub fn find(&self, links: &SortedFifoLinks<I>, sector: u64) -> Option<I> {
        self.at_or_above(links, sector).filter(|id| links.sector(*id) == sector)
    }

    /// The first element of this sector or a higher one.
    #[inline]
    pub fn at_or_above(&self, links: &SortedFifoLinks<I>, sector: u64) -> Option<I> {
        option(sector.checked_sub(1).map_or(self.first, |lower| self.place_for(links, lower).above))
    }

    /// All elements by sector.
    pub fn iter<'a>(&self, links: &'a SortedFifoLinks<I>) -> impl Iterator<Item = I> + 'a {
        walk(self.first, |at| links.node(at).above)
    }

    // ---- by arrival ----

    /// The element that came first.
    #[inline]
    pub fn oldest(&self) -> Option<I> {
        option(self.oldest)
    }

    /// When the oldest one's time is up.
    #[inline]
    pub fn oldest_deadline(&self, links: &SortedFifoLinks<I>) -> Option<u64> {
        self.oldest().map(|id| links.deadline(id))
    }

    /// All elements in order of arrival.
    pub fn arrivals<'a>(&self, links: &'a SortedFifoLinks<I>) -> impl Iterator<Item = I> + 'a {
        walk(self.oldest, |at| links.node(at).newer)
    }

    // ---- changes ----

    /// Put `id`, which is in no queue, in as the newest, behind elements of equal sector.
    #[inline]
    pub fn insert(&mut self, links: &mut SortedFifoLinks<I>, id: I, sector: u64, deadline: u64) {
        let place = self.place_for(links, sector);
        self.file(links, raw(id), place, sector, deadline);
    }

    /// Put `id` in as [`SortedFifo::insert`] does, unless an element of equal sector is there.
    ///
    /// # Errors
    /// That element.
    #[inline]
    pub fn insert_unique(
        &mut self,
        links: &mut SortedFifoLinks<I>,
        id: I,
        sector: u64,
        deadline: u64,
    ) -> Result<(), I> {
        let place = self.place_for(links, sector);
        if let Some(equal) = links.equal_at(place.below, sector) {
            return Err(equal);
        }
        self.file(links, raw(id), place, sector, deadline);
        Ok(())
    }

    /// Put `id` in as [`SortedFifo::insert`] does, or where it is to be `unique` as [`SortedFifo::insert_unique`]; this is the queue of
    /// that number ([`SortedFifoLinks::queue_of`]).
    ///
    /// # Errors
    /// The element of equal sector.
    #[inline(always)] // for one caller
    pub fn insert_in(
        &mut self,
        links: &mut SortedFifoLinks<I>,
        (id, number, unique): (I, u8, bool),
        sector: u64,
        deadline: u64,
    ) -> Result<(), I> {
        let place = self.place_for(links, sector);
        if unique && let Some(equal) = links.equal_at(place.below, sector) {
            return Err(equal);
        }
        self.file_in(links, (raw(id), number), place, sector, deadline);
        Ok(())
    }

    /// Take `id` out of the queue it is in, which must be this one. Answers with the one behind it by sector.
    #[inline(always)] // most have one place where nearly all requests leave
    pub fn remove(&mut self, links: &mut SortedFifoLinks<I>, id: I) -> Option<I> {
        let gone = raw(id);
        debug_assert!(links.is_queued(id), "the element is here");
        self.unlink_arrival(links, gone);
        links.node_mut(gone).newer = ABSENT;
        self.len -= 1;
        option(self.unsort(links, gone))
    }

    /// `id` has another sector now. It keeps its deadline and its place by arrival.
    pub fn resort(&mut self, links: &mut SortedFifoLinks<I>, id: I, sector: u64) {
        let moved = raw(id);
        let stays = self.fits(links, moved, sector);
        links.node_mut(moved).sector = sector;
        if !stays {
            self.unsort(links, moved);
            let place = self.place_for(links, sector);
            let node = links.node_mut(moved);
            (node.below, node.above) = (place.below, place.above);
            self.sort(links, moved, place);
        } else if links.node(moved).run > 0 {
            let kept = self.marks.rekey(&mut links.marks, id, sector);
            debug_assert!(kept, "marks are in the order of all");
        }
    }

    /// As [`SortedFifo::resort`], unless another element of that sector is there: then nothing changes.
    ///
    /// # Errors
    /// That element.
    pub fn resort_unique(&mut self, links: &mut SortedFifoLinks<I>, id: I, sector: u64) -> Result<(), I> {
        let moved = raw(id);
        let stays = self.fits(links, moved, sector);
        let below = if stays { links.node(moved).below } else { self.place_for(links, sector).below };
        if let Some(equal) = links.equal_at(below, sector) {
            return Err(equal);
        }
        self.resort(links, id, sector);
        Ok(())
    }

    /// `gone` has become a part of `kept`, in the same queue, and leaves. If its deadline is the earlier one, `kept` takes
    /// that and its place by arrival. Answers with the one behind `gone` by sector.
    pub fn absorb(&mut self, links: &mut SortedFifoLinks<I>, kept: I, gone: I) -> Option<I> {
        self.inherit(links, kept, gone);
        self.remove(links, gone)
    }

    /// The same before the caller removes `gone`: `kept` takes the earlier deadline of the two, and the place by arrival that
    /// goes with it.
    pub fn inherit(&mut self, links: &mut SortedFifoLinks<I>, kept: I, gone: I) {
        let deadline = links.deadline(gone);
        if deadline < links.deadline(kept) {
            let (kept, gone) = (raw(kept), raw(gone));
            self.unlink_arrival(links, kept);
            let older = links.node(gone).older;
            self.link_arrival(links, older, kept, gone);
            links.node_mut(kept).deadline = deadline;
        }
    }

    // ---- the order by sector ----

    /// The place of a new element of `sector`, behind those of equal sector: from the nearer end of the run.
    #[inline(always)] // for the two insertions
    fn place_for(&self, links: &SortedFifoLinks<I>, sector: u64) -> Place {
        let (mut low, mut high, mut mark) = (self.first, self.last, NIL);
        if !self.marks.is_empty() {
            let [before, behind] = self.marks.around(&links.marks, sector);
            low = before.map_or(low, raw);
            high = behind.map_or(high, raw);
            mark = behind.map_or(NIL, raw);
        }
        // In an empty queue both are NIL, of sector 0, and so is what is below.
        let high_sector = links.node(high).sector;
        if high_sector <= sector {
            return Place { below: high, above: NIL, mark };
        }
        let low_sector = links.node(low).sector;
        if sector < low_sector {
            return Place { below: NIL, above: low, mark };
        }
        if sector - low_sector < high_sector - sector {
            let mut node = links.node(low);
            loop {
                let above = node.above;
                node = links.node(above);
                if node.sector > sector {
                    return Place { below: node.below, above, mark };
                }
            }
        }
        let mut node = links.node(high);
        loop {
            let below = node.below;
            node = links.node(below);
            if node.sector <= sector {
                return Place { below, above: node.above, mark };
            }
        }
    }

    /// Would `at` be in the same place with this sector, behind those of equal sector?
    fn fits(&self, links: &SortedFifoLinks<I>, at: u32, sector: u64) -> bool {
        let Node { below, above, .. } = *links.node(at);
        links.node(below).sector <= sector && (above == NIL || sector < links.node(above).sector)
    }

    #[inline(always)] // for the two insertions
    fn file(&mut self, links: &mut SortedFifoLinks<I>, new: u32, place: Place, sector: u64, deadline: u64) {
        self.file_in(links, (new, 0), place, sector, deadline);
    }

    #[inline(always)] // for the insertions
    fn file_in(
        &mut self,
        links: &mut SortedFifoLinks<I>,
        (new, of): (u32, u8),
        place: Place,
        sector: u64,
        deadline: u64,
    ) {
        debug_assert!(links.node(new).newer == ABSENT, "the element is in no queue");
        let older = replace(&mut self.newest, new);
        if older == NIL {
            self.oldest = new;
        } else {
            links.node_mut(older).newer = new;
        }
        self.len += 1;
        let Place { below, above, .. } = place;
        *links.node_mut(new) = Node { sector, deadline, below, above, older, newer: NIL, run: 0, of };
        self.sort(links, new, place);
    }

    /// Make `new`, which knows its neighbours, known to them.
    #[inline(always)] // for the two insertions
    fn sort(&mut self, links: &mut SortedFifoLinks<I>, new: u32, place: Place) {
        let Place { below, above, mark } = place;
        if below == NIL {
            self.first = new;
        } else {
            links.node_mut(below).above = new;
        }
        if above == NIL {
            self.last = new;
        } else {
            links.node_mut(above).below = new;
        }
        let run = if mark == NIL { &mut self.run } else { &mut links.node_mut(mark).run };
        *run += 1;
        if *run > RUN_MAX {
            self.recount(links, mark);
        }
    }

    /// Take `gone` out of the order by sector. Answers with the one that was above it.
    #[inline(always)] // for `remove`
    fn unsort(&mut self, links: &mut SortedFifoLinks<I>, gone: u32) -> u32 {
        let Node { below, above, run, .. } = *links.node(gone);
        if below == NIL {
            self.first = above;
        } else {
            links.node_mut(below).above = above;
        }
        if above == NIL {
            self.last = below;
        } else {
            links.node_mut(above).below = below;
        }
        if run > 0 {
            self.unmark(links, gone);
        }
        above
    }

    /// `gone`, a mark, has left: the one below it takes over, unless the run ends with it.
    #[inline(never)]
    fn unmark(&mut self, links: &mut SortedFifoLinks<I>, gone: u32) {
        let Node { below, run, .. } = *links.node(gone);
        links.node_mut(gone).run = 0;
        let heir = links.node_mut(below);
        if below == NIL || heir.run > 0 {
            self.marks.remove(&mut links.marks, id(gone));
        } else {
            heir.run = run;
            let sector = heir.sector;
            self.marks.replace(&mut links.marks, id(gone), id(below), sector);
        }
    }

    /// Count the run of `mark` (or the open one), which has elements, and cut it in two if it is long.
    #[inline(never)]
    fn recount(&mut self, links: &mut SortedFifoLinks<I>, mark: u32) {
        if self.marks.is_empty() && self.len <= RUN_MAX {
            self.run = self.len;
            return;
        }
        let mut at = if mark == NIL { self.last } else { mark };
        let (mut length, mut middle) = (0, at);
        loop {
            length += 1;
            if length % 2 == 0 {
                middle = links.node(middle).below;
            }
            at = links.node(at).below;
            if at == NIL || links.node(at).run > 0 {
                break;
            }
        }
        let mut upper = length;
        if length > RUN_MAX / 2 {
            upper = length / 2;
            links.node_mut(middle).run = length - upper;
            let sector = links.node(middle).sector;
            self.marks.insert_before(&mut links.marks, option(mark), id(middle), sector);
        }
        debug_assert!(upper <= RUN_MAX / 2 + 1, "the next count is far off");
        *(if mark == NIL { &mut self.run } else { &mut links.node_mut(mark).run }) = upper;
    }

    // ---- the order by arrival ----

    /// Put `new` between `older` and `newer`, neighbours so far.
    fn link_arrival(&mut self, links: &mut SortedFifoLinks<I>, older: u32, new: u32, newer: u32) {
        let node = links.node_mut(new);
        (node.older, node.newer) = (older, newer);
        *(if older == NIL { &mut self.oldest } else { &mut links.node_mut(older).newer }) = new;
        *(if newer == NIL { &mut self.newest } else { &mut links.node_mut(newer).older }) = new;
    }

    #[inline(always)] // for `remove`
    fn unlink_arrival(&mut self, links: &mut SortedFifoLinks<I>, gone: u32) {
        let Node { older, newer, .. } = *links.node(gone);
        if older == NIL {
            self.oldest = newer;
        } else {
            links.node_mut(older).newer = newer;
        }
        if newer == NIL {
            self.newest = older;
        } else {
            links.node_mut(newer).older = older;
        }
    }
}

/// The elements from `at` on.
fn walk<I: Id>(mut at: u32, step: impl Fn(u32) -> u32) -> impl Iterator<Item = I> {
    core::iter::from_fn(move || {
        let id = option::<I>(at)?;
        at = step(at);
        Some(id)
    })
}

#[cfg(test)]
mod tests;
