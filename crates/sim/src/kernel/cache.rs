//! The page cache: which pages of which file are in memory, on their way, or dirty.
//!
//! Readahead windows follow Linux 2.6.34 `mm/readahead.c`. Writeback is the simple model that `docs/models.md` states: one
//! flusher, rounds of 1024 pages a file, background and hard limits on dirty pages.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use super::Memory;
use super::files::{FileId, PAGE};
use crate::engine::TaskId;

/// Largest readahead window, pages: 128 KiB.
pub(crate) const READAHEAD_MAX: u64 = 32;
/// Pages of one file the flusher writes before it looks at the next.
pub(crate) const FLUSH_ROUND: usize = 1024;

/// State of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Page {
    Absent,
    Reading,
    Clean,
    Dirty,
    Writing,
    /// Written to again while on its way to the device.
    WritingDirty,
}

#[derive(Debug)]
struct CachedFile {
    pages: Vec<Page>,
    dirty: BTreeSet<u32>,
    /// When the oldest dirty page became dirty.
    dirty_since_ns: u64,
    writing: u64,
    /// Tasks waiting for all writeback of this file.
    sync_waiters: Vec<TaskId>,
}

#[derive(Debug)]
struct PageIo {
    file: FileId,
    pages: Range<u64>,
    write: bool,
    waiters: Vec<TaskId>,
}

/// Where a reader is, for readahead (`struct file_ra_state`); page numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadaheadState {
    start: u64,
    size: u64,
    async_size: u64,
    previous: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct PageCache {
    files: Vec<CachedFile>,
    ios: Vec<Option<PageIo>>,
    free_ios: Vec<u32>,
    /// Pages in the order they came in, for eviction.
    order: VecDeque<(FileId, u32)>,
    max_pages: u64,
    background_pages: u64,
    dirty_pages_max: u64,
    dirty: u64,
    writing: u64,
    /// Tasks that dirtied too much.
    throttled: Vec<TaskId>,
    flusher: Option<TaskId>,
}

impl PageCache {
    pub(crate) fn new(memory: Memory) -> PageCache {
        let max_pages = (memory.cache_bytes / PAGE).max(64);
        PageCache {
            files: Vec::new(),
            ios: Vec::new(),
            free_ios: Vec::new(),
            order: VecDeque::new(),
            max_pages,
            background_pages: max_pages * u64::from(memory.background_percent) / 100,
            dirty_pages_max: (max_pages * u64::from(memory.dirty_percent) / 100).max(1),
            dirty: 0,
            writing: 0,
            throttled: Vec::new(),
            flusher: None,
        }
    }

    pub(crate) fn add_file(&mut self, bytes: u64) {
        self.files.push(CachedFile {
            pages: vec![Page::Absent; bytes.div_ceil(PAGE) as usize],
            dirty: BTreeSet::new(),
            dirty_since_ns: 0,
            writing: 0,
            sync_waiters: Vec::new(),
        });
    }

    /// A file's size changed: pages beyond it are forgotten, dirty or not.
    pub(crate) fn resize(&mut self, file: FileId, bytes: u64) {
        let pages = bytes.div_ceil(PAGE) as usize;
        let cached = &mut self.files[file.0];
        for gone in cached.dirty.split_off(&(pages as u32)) {
            self.dirty -= u64::from(cached.pages[gone as usize] == Page::Dirty);
            cached.pages[gone as usize] = Page::Clean;
        }
        if pages > cached.pages.len() {
            cached.pages.resize(pages, Page::Absent);
        }
    }

    // ---- reading --------------------------------------------------------------------------------------------------------

    /// Is the page's content in memory?
    pub(crate) fn is_uptodate(&self, file: FileId, page: u64) -> bool {
        !matches!(self.files[file.0].pages[page as usize], Page::Absent | Page::Reading)
    }

    /// Is somebody reading it in? Then `task` is woken when that is done.
    pub(crate) fn wait_for_page(&mut self, file: FileId, page: u64, task: TaskId) -> bool {
        let reading = self.files[file.0].pages[page as usize] == Page::Reading;
        if reading {
            let io = self
                .ios
                .iter_mut()
                .flatten()
                .find(|io| io.file == file && !io.write && io.pages.contains(&page));
            if let Some(io) = io {
                io.waiters.push(task);
            }
        }
        reading
    }

    /// Which window to read when a reader of `request` pages comes to `page`; `None`: nothing to start.
    pub(crate) fn readahead(
        &self,
        file: FileId,
        page: u64,
        request: u64,
        ra: &mut ReadaheadState,
    ) -> Option<Range<u64>> {
        let pages = self.files[file.0].pages.len() as u64;
        let absent = self.files[file.0].pages[page as usize] == Page::Absent;
        let marker = ra.size > 0 && page == ra.start + ra.size - ra.async_size;
        if !absent && !marker {
            return None;
        }
        if ra.size > 0 && (marker || page == ra.start + ra.size) {
            ra.start += ra.size;
            ra.size = next_window(ra.size);
            ra.async_size = ra.size;
        } else if absent {
            let sequential = page == 0
                || request > READAHEAD_MAX
                || ra.previous.is_some_and(|p| page.wrapping_sub(p) <= 1);
            if !sequential {
                return Some(page..(page + request).min(pages));
            }
            ra.start = page;
            ra.size = first_window(request);
            ra.async_size = if ra.size > request { ra.size - request } else { ra.size };
        } else {
            return None;
        }
        if page == ra.start && ra.size == ra.async_size {
            ra.async_size = next_window(ra.size);
            ra.size += ra.async_size;
        }
        let window = ra.start.min(pages)..(ra.start + ra.size).min(pages);
        (!window.is_empty()).then_some(window)
    }

    /// A reader consumed `page`.
    pub(crate) fn was_read(ra: &mut ReadaheadState, page: u64) {
        ra.previous = Some(page);
    }

    /// The absent pages of `window`, as ranges.
    pub(crate) fn absent(&self, file: FileId, window: Range<u64>) -> Vec<Range<u64>> {
        let pages = &self.files[file.0].pages;
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for page in window.filter(|p| pages[*p as usize] == Page::Absent) {
            match ranges.last_mut() {
                Some(last) if last.end == page => last.end += 1,
                _ => ranges.push(page..page + 1),
            }
        }
        ranges
    }

    /// `pages` are being read in; the number of the I/O.
    pub(crate) fn start_reading(&mut self, file: FileId, pages: Range<u64>) -> u32 {
        for page in pages.clone() {
            self.files[file.0].pages[page as usize] = Page::Reading;
            self.order.push_back((file, page as u32));
        }
        self.evict();
        self.add_io(PageIo { file, pages, write: false, waiters: Vec::new() })
    }

    fn add_io(&mut self, io: PageIo) -> u32 {
        if let Some(free) = self.free_ios.pop() {
            self.ios[free as usize] = Some(io);
            free
        } else {
            self.ios.push(Some(io));
            self.ios.len() as u32 - 1
        }
    }

    /// Drop the oldest clean pages above the limit.
    fn evict(&mut self) {
        let mut tries = self.order.len();
        while self.order.len() as u64 > self.max_pages && tries > 0 {
            tries -= 1;
            let Some((file, page)) = self.order.pop_front() else { return };
            let state = &mut self.files[file.0].pages[page as usize];
            match *state {
                Page::Clean => *state = Page::Absent,
                Page::Absent => {}
                _ => self.order.push_back((file, page)),
            }
        }
    }

    /// Forget a file's clean pages (`posix_fadvise(DONTNEED)`, as fio does before a job).
    pub(crate) fn invalidate(&mut self, file: FileId) {
        for page in &mut self.files[file.0].pages {
            if *page == Page::Clean {
                *page = Page::Absent;
            }
        }
    }

    // ---- writing --------------------------------------------------------------------------------------------------------

    /// A program wrote `page`.
    pub(crate) fn dirty(&mut self, file: FileId, page: u64, now: u64) {
        let cached = &mut self.files[file.0];
        let state = &mut cached.pages[page as usize];
        match *state {
            Page::Dirty | Page::WritingDirty => return,
            Page::Writing => *state = Page::WritingDirty,
            Page::Absent => {
                *state = Page::Dirty;
                self.order.push_back((file, page as u32));
            }
            Page::Clean | Page::Reading => *state = Page::Dirty,
        }
        if cached.dirty.is_empty() {
            cached.dirty_since_ns = now;
        }
        cached.dirty.insert(page as u32);
        self.dirty += 1;
        self.evict();
    }

    /// Is there so much dirty that the flusher has to work? Wakes nobody by itself.
    pub(crate) fn over_background(&self) -> bool {
        self.dirty > self.background_pages
    }

    /// Is there so much dirty or under way that programs have to wait?
    pub(crate) fn over_limit(&self) -> bool {
        self.dirty + self.writing >= self.dirty_pages_max
    }

    pub(crate) fn throttle(&mut self, task: TaskId) {
        self.throttled.push(task);
    }

    pub(crate) fn set_flusher(&mut self, task: TaskId) {
        self.flusher = Some(task);
    }

    pub(crate) fn flusher(&self) -> Option<TaskId> {
        self.flusher
    }

    /// Dirty pages of `file`, from `from` on, at most `max`: as ranges, marked as being written.
    pub(crate) fn start_writing(
        &mut self,
        file: FileId,
        pages: Range<u64>,
        max: usize,
    ) -> Vec<(Range<u64>, u32)> {
        let cached = &mut self.files[file.0];
        let chosen: Vec<u32> = cached
            .dirty
            .range(pages.start as u32..pages.end.min(u64::from(u32::MAX)) as u32)
            .copied()
            // A page that is still under way is written again later.
            .filter(|p| cached.pages[*p as usize] == Page::Dirty)
            .take(max)
            .collect();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for page in chosen {
            cached.dirty.remove(&page);
            cached.pages[page as usize] = Page::Writing;
            self.dirty -= 1;
            self.writing += 1;
            cached.writing += 1;
            match ranges.last_mut() {
                Some(last) if last.end == u64::from(page) => last.end += 1,
                _ => ranges.push(u64::from(page)..u64::from(page) + 1),
            }
        }
        ranges
            .into_iter()
            .map(|pages| {
                let io = PageIo { file, pages: pages.clone(), write: true, waiters: Vec::new() };
                (pages, self.add_io(io))
            })
            .collect()
    }

    /// The next file with dirty pages at or behind number `from`, wrapping around; only those dirty since before `before_ns`.
    pub(crate) fn next_dirty_file(&self, from: usize, before_ns: u64) -> Option<FileId> {
        let n = self.files.len();
        (0..n).map(|i| (from + i) % n).map(FileId).find(|f| {
            let file = &self.files[f.0];
            !file.dirty.is_empty() && file.dirty_since_ns <= before_ns
        })
    }

    /// Is nothing of `file` on its way to the device? Otherwise `task` is woken when that is so.
    pub(crate) fn wait_written(&mut self, file: FileId, task: TaskId) -> bool {
        let cached = &mut self.files[file.0];
        if cached.writing > 0 {
            cached.sync_waiters.push(task);
        }
        cached.writing == 0
    }

    /// An I/O of the cache's is done: whom to wake.
    pub(crate) fn io_done(&mut self, io: u32) -> Vec<TaskId> {
        let Some(done) = self.ios[io as usize].take() else { return Vec::new() };
        self.free_ios.push(io);
        let mut wake = done.waiters;
        let cached = &mut self.files[done.file.0];
        for page in done.pages.clone() {
            let state = &mut cached.pages[page as usize];
            *state = match *state {
                Page::WritingDirty => Page::Dirty,
                Page::Dirty => Page::Dirty,
                _ => Page::Clean,
            };
        }
        if done.write {
            let pages = done.pages.end - done.pages.start;
            cached.writing -= pages;
            self.writing -= pages;
            if cached.writing == 0 {
                wake.append(&mut cached.sync_waiters);
            }
            if !self.over_limit() {
                wake.append(&mut self.throttled);
            }
        }
        wake
    }
}

/// The first window for a request of so many pages.
fn first_window(request: u64) -> u64 {
    let size = request.next_power_of_two();
    if size <= READAHEAD_MAX / 32 {
        size * 4
    } else if size <= READAHEAD_MAX / 4 {
        size * 2
    } else {
        READAHEAD_MAX
    }
}

fn next_window(size: u64) -> u64 {
    let next = if size < READAHEAD_MAX / 16 { size * 4 } else { size * 2 };
    next.min(READAHEAD_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(pages: u64) -> (PageCache, FileId) {
        let mut cache = PageCache::new(Memory { cache_bytes: 1 << 20, ..Memory::default() });
        cache.add_file(pages * PAGE);
        (cache, FileId(0))
    }

    /// 4 KiB sequential reads: windows of 16, 32, 64, 128, 128 KiB, each started when the reader enters the one before.
    #[test]
    fn sequential_reads_ramp_up_to_128_kib() {
        let (mut cache, file) = cache(512);
        let mut ra = ReadaheadState::default();
        let mut windows = Vec::new();
        for page in 0..140 {
            if let Some(window) = cache.readahead(file, page, 1, &mut ra) {
                windows.push(window.end - window.start);
                let io = cache.start_reading(file, window);
                cache.io_done(io);
            }
            PageCache::was_read(&mut ra, page);
        }
        // Windows begin at pages 0, 4, 12, 28, 60, 92, 124, 156; the last is started on entering the one at 124.
        assert_eq!(windows, [4, 8, 16, 32, 32, 32, 32, 32]);
    }

    #[test]
    fn random_reads_get_what_they_asked_for() {
        let (mut cache, file) = cache(512);
        let mut ra = ReadaheadState::default();
        for page in [100, 7, 300] {
            let window = cache.readahead(file, page, 2, &mut ra).unwrap();
            assert_eq!(window, page..page + 2);
            cache.start_reading(file, window);
            PageCache::was_read(&mut ra, page + 1);
        }
    }

    #[test]
    fn a_page_written_on_its_way_is_dirty_again() {
        let (mut cache, file) = cache(16);
        cache.dirty(file, 3, 0);
        let writes = cache.start_writing(file, 0..16, 100);
        assert_eq!(writes[0].0, 3..4);
        cache.dirty(file, 3, 1);
        assert!(cache.start_writing(file, 0..16, 100).is_empty(), "not twice at a time");
        cache.io_done(writes[0].1);
        assert_eq!(cache.start_writing(file, 0..16, 100).len(), 1);
    }

    #[test]
    fn the_oldest_clean_pages_are_evicted() {
        let (mut cache, file) = cache(1000);
        let io = cache.start_reading(file, 0..256);
        cache.io_done(io);
        let io = cache.start_reading(file, 256..266);
        cache.io_done(io);
        assert!(!cache.is_uptodate(file, 9) && cache.is_uptodate(file, 10));
    }
}
