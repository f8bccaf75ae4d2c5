//! States of a file's pages. Memory is taken only where there has been a page: files may be sparse, or never be cached.

use std::collections::BTreeMap;

/// State of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Page {
    #[default]
    Absent,
    Reading,
    Clean,
    Dirty,
    Writing,
    /// Written to again while on its way to the device.
    WritingDirty,
}

/// Pages whose states are kept together.
const CHUNK: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Pages {
    len: u64,
    chunks: BTreeMap<u64, [Page; CHUNK]>,
}

const fn split(page: u64) -> (u64, usize) {
    (page / CHUNK as u64, (page % CHUNK as u64) as usize)
}

impl Pages {
    pub(super) fn new(len: u64) -> Pages {
        Pages { len, chunks: BTreeMap::new() }
    }

    /// Pages of the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn get(&self, page: u64) -> Page {
        let (chunk, at) = split(page);
        self.chunks.get(&chunk).map_or(Page::Absent, |chunk| chunk[at])
    }

    pub(super) fn get_mut(&mut self, page: u64) -> &mut Page {
        let (chunk, at) = split(page);
        &mut self.chunks.entry(chunk).or_insert([Page::Absent; CHUNK])[at]
    }

    /// Change the length. Pages beyond it go, except those in flight; how many went.
    pub(super) fn resize(&mut self, len: u64) -> u64 {
        let mut gone = 0;
        if len < self.len {
            let (first, within) = split(len);
            for (number, chunk) in self.chunks.range_mut(first..) {
                let from = if *number == first { within } else { 0 };
                for page in &mut chunk[from..] {
                    if matches!(page, Page::Clean | Page::Dirty) {
                        *page = Page::Absent;
                        gone += 1;
                    }
                }
            }
            self.chunks.retain(|number, chunk| *number < first || chunk.iter().any(|p| *p != Page::Absent));
        }
        self.len = len;
        gone
    }

    /// Forget clean pages; how many there were. What is empty then takes no more memory, nor time when this is done after
    /// every write.
    pub(super) fn drop_clean(&mut self) -> u64 {
        let mut gone = 0;
        self.chunks.retain(|_, chunk| {
            for page in chunk.iter_mut().filter(|p| **p == Page::Clean) {
                *page = Page::Absent;
                gone += 1;
            }
            chunk.iter().any(|p| *p != Page::Absent)
        });
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_pages_go_and_leave_nothing_behind() {
        let mut pages = Pages::new(1000);
        *pages.get_mut(3) = Page::Clean;
        *pages.get_mut(700) = Page::Clean;
        *pages.get_mut(701) = Page::Dirty;
        assert_eq!(pages.drop_clean(), 2);
        assert_eq!((pages.get(3), pages.get(700), pages.get(701)), (Page::Absent, Page::Absent, Page::Dirty));
        assert_eq!(pages.chunks.len(), 1);
    }
}
