//! Scheduler tags: which are taken. A limit is one of their numbers, not of how many are taken: I/O that is limited to so many gets
//! one of the first so many, or none, even if others are free.
//!
//! A tag that was given back can be found again only when a search finds none else. The search starts behind the tag taken last, at
//! the one given back last, or at the first after a search that found none.
//!
//! Source: Linux 6.12 and 6.18 `lib/sbitmap.c`. There each processor has a start of its own, and a limit on a map of several words is
//! spread over them; here there is one start and one row of tags.

use alloc::vec::Vec;

const BITS: u32 = u64::BITS;

/// Tags by number.
#[derive(Debug)]
pub(super) struct Tags {
    /// Not to be found: taken, or given back since the last search that found none.
    hidden: Vec<u64>,
    given_back: Vec<u64>,
    count: u32,
    start: u32,
}

impl Tags {
    pub(super) fn new(count: u32) -> Tags {
        let words = count.div_ceil(BITS) as usize;
        Tags { hidden: alloc::vec![0; words], given_back: alloc::vec![0; words], count, start: 0 }
    }

    /// One of the first `limit` tags.
    pub(super) fn take(&mut self, limit: u32) -> Option<u32> {
        let limit = limit.min(self.count);
        let found = self.find(limit).or_else(|| {
            self.show();
            self.find(limit)
        });
        let Some(tag) = found else {
            self.start = 0;
            return None;
        };
        self.hidden[(tag / BITS) as usize] |= 1 << (tag % BITS);
        if tag == self.start {
            self.start = if tag + 2 < self.count { tag + 1 } else { 0 };
        }
        Some(tag)
    }

    pub(super) fn give_back(&mut self, tag: u32) {
        self.given_back[(tag / BITS) as usize] |= 1 << (tag % BITS);
        self.start = tag;
    }

    /// Those given back can be found again.
    fn show(&mut self) {
        for (hidden, given_back) in self.hidden.iter_mut().zip(&mut self.given_back) {
            *hidden &= !core::mem::take(given_back);
        }
    }

    /// From the start up to the limit, then from the first up to the start.
    fn find(&self, limit: u32) -> Option<u32> {
        let start = if self.start < limit { self.start } else { 0 };
        self.first_in(start, limit).or_else(|| self.first_in(0, start))
    }

    /// The first from `from` on and below `to` that can be found.
    fn first_in(&self, from: u32, to: u32) -> Option<u32> {
        let mut at = from;
        while at < to {
            let free = !self.hidden[(at / BITS) as usize] >> (at % BITS);
            if free != 0 {
                return Some(at + free.trailing_zeros()).filter(|tag| *tag < to);
            }
            at = (at / BITS + 1) * BITS;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_of_the_numbers() {
        let mut tags = Tags::new(4);
        assert_eq!([tags.take(4), tags.take(4)], [Some(0), Some(1)]);
        assert_eq!(tags.take(2), None, "2 and 3 are free");
        assert_eq!(tags.take(4), Some(2));
        tags.give_back(1);
        assert_eq!(tags.take(1), None);
        assert_eq!(tags.take(2), Some(1));
    }

    #[test]
    fn a_search_goes_on_behind_the_tag_taken_last() {
        let mut tags = Tags::new(70);
        for tag in 0..69 {
            assert_eq!(tags.take(70), Some(tag));
        }
        assert_eq!(tags.take(70), Some(69));
        assert_eq!(tags.take(70), None);
        tags.give_back(65);
        tags.give_back(3);
        assert_eq!([tags.take(70), tags.take(70), tags.take(70)], [Some(3), Some(65), None]);
    }

    /// 6.12: a freed bit stays in the word, marked as cleared, until a search finds nothing else.
    #[test]
    fn what_was_given_back_comes_last() {
        let mut tags = Tags::new(4);
        assert_eq!(tags.take(4), Some(0));
        tags.give_back(0);
        assert_eq!([tags.take(4), tags.take(4), tags.take(4)].map(Option::unwrap), [1, 2, 3]);
        assert_eq!(tags.take(4), Some(0));
    }
}
