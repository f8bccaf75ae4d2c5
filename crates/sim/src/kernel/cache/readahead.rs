//! Readahead: how far ahead of a reader the kernel reads. Source: Linux 2.6.34 `mm/readahead.c`.

use std::ops::Range;

/// What a program told the kernel about its accesses to a file (`posix_fadvise`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Advice {
    /// Nothing.
    #[default]
    Normal,
    /// Windows may become twice as large.
    Sequential,
    /// No readahead.
    Random,
}

/// Where a reader is, for readahead (`struct file_ra_state`); page numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadaheadState {
    advice: Advice,
    start: u64,
    size: u64,
    async_size: u64,
    previous: Option<u64>,
}

impl ReadaheadState {
    /// A freshly opened file.
    pub fn new(advice: Advice) -> ReadaheadState {
        ReadaheadState { advice, ..ReadaheadState::default() }
    }

    /// The window to read when the reader of `request` pages comes to `page` of a file of `pages`, which is `absent` from memory
    /// or not; `None`: nothing to start. `largest`: pages of the largest window (`read_ahead_kb`), 0 = no readahead.
    pub(crate) fn next_window(
        &mut self,
        page: u64,
        request: u64,
        absent: bool,
        congested: bool,
        (pages, largest): (u64, u64),
    ) -> Option<Range<u64>> {
        let marker = self.size > 0 && page == self.start + self.size - self.async_size;
        if !absent && (!marker || congested) {
            return None;
        }
        let max = match self.advice {
            Advice::Normal if largest > 0 => largest,
            Advice::Sequential if largest > 0 => 2 * largest,
            _ => return absent.then(|| page..(page + request).min(pages)),
        };
        if self.size > 0 && (marker || page == self.start + self.size) {
            self.start += self.size;
            self.size = next_size(self.size, max);
            self.async_size = self.size;
        } else if absent {
            let sequential =
                page == 0 || request > max || self.previous.is_some_and(|p| page.wrapping_sub(p) <= 1);
            if !sequential {
                return Some(page..(page + request).min(pages));
            }
            self.start = page;
            self.size = first_size(request, max);
            self.async_size = if self.size > request { self.size - request } else { self.size };
        } else {
            return None;
        }
        if page == self.start && self.size == self.async_size {
            self.async_size = next_size(self.size, max);
            self.size += self.async_size;
        }
        let window = self.start.min(pages)..(self.start + self.size).min(pages);
        (!window.is_empty()).then_some(window)
    }

    /// The reader consumed `page`.
    pub(crate) fn was_read(&mut self, page: u64) {
        self.previous = Some(page);
    }
}

/// The first window for a request of so many pages.
fn first_size(request: u64, max: u64) -> u64 {
    let size = request.next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

fn next_size(size: u64, max: u64) -> u64 {
    let next = if size < max / 16 { size * 4 } else { size * 2 };
    next.min(max)
}
