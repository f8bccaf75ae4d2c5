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

    /// Change the length. Pages beyond it go, but for those on their way; how many went.
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

    /// Forget clean pages; how many there were.
    pub(super) fn drop_clean(&mut self) -> u64 {
        let mut gone = 0;
        for page in self.chunks.values_mut().flatten().filter(|p| **p == Page::Clean) {
            *page = Page::Absent;
            gone += 1;
        }
        gone
    }
}
