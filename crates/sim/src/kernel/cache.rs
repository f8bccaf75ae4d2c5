//! The page cache: which pages of which file are in memory, on their way, or dirty.
//!
//! Readahead windows follow Linux 2.6.34 `mm/readahead.c`. Writeback is the simple model that `docs/models.md` states: one
//! flusher, rounds of 1024 pages a file, background and hard limits on dirty pages.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use super::Memory;
use super::files::{FileId, PAGE};
use crate::engine::TaskId;

/// Largest readahead window, pages: 128 KiB (`read_ahead_kb`).
const READAHEAD_MAX: u64 = 32;
/// Pages of one file the flusher writes before it looks at the next.
pub(crate) const FLUSH_ROUND: usize = 1024;

/// State of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Page {
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
const CHUNK: u64 = 4096;

/// The states of a file's pages. Memory is taken only where there has been a page: most files are read past the cache.
#[derive(Debug)]
struct Pages {
    len: u64,
    chunks: Vec<Option<Box<[Page]>>>,
}

impl Pages {
    fn new(len: u64) -> Pages {
        Pages { len, chunks: vec![None; len.div_ceil(CHUNK) as usize] }
    }

    fn get(&self, page: u64) -> Page {
        let chunk = self.chunks[(page / CHUNK) as usize].as_ref();
        chunk.map_or(Page::Absent, |chunk| chunk[(page % CHUNK) as usize])
    }

    fn get_mut(&mut self, page: u64) -> &mut Page {
        let chunk = self.chunks[(page / CHUNK) as usize]
            .get_or_insert_with(|| vec![Page::Absent; CHUNK as usize].into());
        &mut chunk[(page % CHUNK) as usize]
    }
}

#[derive(Debug)]
struct CachedFile {
    pages: Pages,
    dirty: BTreeSet<u64>,
    /// When the oldest dirty page became dirty, as far as is known.
    dirty_since_ns: u64,
    /// Writes on their way to the device, by their numbers.
    writing: BTreeSet<u64>,
    /// Tasks waiting for writes of this file.
    sync_waiters: Vec<TaskId>,
}

#[derive(Debug)]
struct PageIo {
    file: FileId,
    pages: Range<u64>,
    /// A write's number; `None` for a read.
    write: Option<u64>,
    waiters: Vec<TaskId>,
}

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
}

#[derive(Debug)]
pub(crate) struct PageCache {
    files: Vec<CachedFile>,
    ios: Vec<Option<PageIo>>,
    free_ios: Vec<u32>,
    /// Pages in the order they came in, for eviction: each page that is not absent once.
    order: VecDeque<(FileId, u64)>,
    max_pages: u64,
    background_pages: u64,
    dirty_pages_max: u64,
    dirty: u64,
    /// Pages on their way to the device.
    writing: u64,
    /// Number of the next write.
    next_write: u64,
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
            next_write: 0,
            throttled: Vec::new(),
            flusher: None,
        }
    }

    pub(crate) fn add_file(&mut self, bytes: u64) {
        self.files.push(CachedFile {
            pages: Pages::new(bytes.div_ceil(PAGE)),
            dirty: BTreeSet::new(),
            dirty_since_ns: 0,
            writing: BTreeSet::new(),
            sync_waiters: Vec::new(),
        });
    }

    // ---- reading --------------------------------------------------------------------------------------------------------

    /// Is the page's content in memory?
    pub(crate) fn is_uptodate(&self, file: FileId, page: u64) -> bool {
        !matches!(self.files[file.0].pages.get(page), Page::Absent | Page::Reading)
    }

    /// Is somebody reading it in? Then `task` is woken when that is done.
    pub(crate) fn wait_for_page(&mut self, file: FileId, page: u64, task: TaskId) -> bool {
        let reading = self.files[file.0].pages.get(page) == Page::Reading;
        if reading {
            let io = self
                .ios
                .iter_mut()
                .flatten()
                .find(|io| io.file == file && io.write.is_none() && io.pages.contains(&page));
            if let Some(io) = io {
                io.waiters.push(task);
            }
        }
        reading
    }

    /// Which window to read when a reader of `request` pages comes to `page`; `None`: nothing to start. While the device is
    /// `congested` nothing is read ahead of time.
    pub(crate) fn readahead(
        &self,
        file: FileId,
        page: u64,
        request: u64,
        congested: bool,
        ra: &mut ReadaheadState,
    ) -> Option<Range<u64>> {
        let pages = self.files[file.0].pages.len;
        let absent = self.files[file.0].pages.get(page) == Page::Absent;
        let marker = ra.size > 0 && page == ra.start + ra.size - ra.async_size;
        if !absent && (!marker || congested) {
            return None;
        }
        let max = match ra.advice {
            Advice::Normal => READAHEAD_MAX,
            Advice::Sequential => 2 * READAHEAD_MAX,
            Advice::Random => return absent.then(|| page..(page + request).min(pages)),
        };
        if ra.size > 0 && (marker || page == ra.start + ra.size) {
            ra.start += ra.size;
            ra.size = next_window(ra.size, max);
            ra.async_size = ra.size;
        } else if absent {
            let sequential =
                page == 0 || request > max || ra.previous.is_some_and(|p| page.wrapping_sub(p) <= 1);
            if !sequential {
                return Some(page..(page + request).min(pages));
            }
            ra.start = page;
            ra.size = first_window(request, max);
            ra.async_size = if ra.size > request { ra.size - request } else { ra.size };
        } else {
            return None;
        }
        if page == ra.start && ra.size == ra.async_size {
            ra.async_size = next_window(ra.size, max);
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
        for page in window.filter(|p| pages.get(*p) == Page::Absent) {
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
            *self.files[file.0].pages.get_mut(page) = Page::Reading;
            self.order.push_back((file, page));
        }
        self.evict();
        self.add_io(PageIo { file, pages, write: None, waiters: Vec::new() })
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
            let state = self.files[file.0].pages.get_mut(page);
            match *state {
                Page::Clean => *state = Page::Absent,
                _ => self.order.push_back((file, page)),
            }
        }
    }

    /// Forget a file's clean pages (`posix_fadvise(DONTNEED)`, as fio does before a job).
    pub(crate) fn invalidate(&mut self, file: FileId) {
        let pages = &mut self.files[file.0].pages;
        for page in pages.chunks.iter_mut().flatten().flat_map(|chunk| chunk.iter_mut()) {
            if *page == Page::Clean {
                *page = Page::Absent;
            }
        }
        self.order.retain(|(f, page)| *f != file || pages.get(*page) != Page::Absent);
    }

    // ---- writing --------------------------------------------------------------------------------------------------------

    /// A program wrote `page`.
    pub(crate) fn dirty(&mut self, file: FileId, page: u64, now: u64) {
        let cached = &mut self.files[file.0];
        let state = cached.pages.get_mut(page);
        match *state {
            Page::Dirty | Page::WritingDirty => return,
            Page::Writing => *state = Page::WritingDirty,
            Page::Absent => {
                *state = Page::Dirty;
                self.order.push_back((file, page));
            }
            Page::Clean | Page::Reading => *state = Page::Dirty,
        }
        if cached.dirty.is_empty() {
            cached.dirty_since_ns = now;
        }
        cached.dirty.insert(page);
        self.dirty += 1;
        self.evict();
    }

    /// Is there nothing to write?
    pub(crate) fn is_clean(&self) -> bool {
        self.dirty == 0
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

    /// Dirty pages of `file` among `pages`, at most `max`: as ranges, marked as being written.
    pub(crate) fn start_writing(
        &mut self,
        file: FileId,
        pages: Range<u64>,
        max: usize,
        now: u64,
    ) -> Vec<(Range<u64>, u32)> {
        let cached = &mut self.files[file.0];
        let chosen: Vec<u64> = cached
            .dirty
            .range(pages)
            .copied()
            // A page that is still under way is written again later.
            .filter(|p| cached.pages.get(*p) == Page::Dirty)
            .take(max)
            .collect();
        if chosen.len() < max {
            // What stays dirty became so while it was being written.
            cached.dirty_since_ns = now;
        }
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for page in chosen {
            cached.dirty.remove(&page);
            *cached.pages.get_mut(page) = Page::Writing;
            self.dirty -= 1;
            self.writing += 1;
            match ranges.last_mut() {
                Some(last) if last.end == page => last.end += 1,
                _ => ranges.push(page..page + 1),
            }
        }
        ranges.into_iter().map(|pages| (pages.clone(), self.add_write(file, pages))).collect()
    }

    fn add_write(&mut self, file: FileId, pages: Range<u64>) -> u32 {
        let number = self.next_write;
        self.next_write += 1;
        self.files[file.0].writing.insert(number);
        self.add_io(PageIo { file, pages, write: Some(number), waiters: Vec::new() })
    }

    /// The number the next write of any file will have; all that are under way have smaller ones.
    pub(crate) fn next_write(&self) -> u64 {
        self.next_write
    }

    /// The next file with dirty pages at or behind number `from`, wrapping around; only those dirty since before `before_ns`.
    pub(crate) fn next_dirty_file(&self, from: usize, before_ns: u64) -> Option<FileId> {
        let n = self.files.len();
        (0..n).map(|i| (from + i) % n).map(FileId).find(|f| {
            let file = &self.files[f.0];
            !file.dirty.is_empty() && file.dirty_since_ns <= before_ns
        })
    }

    /// Have all writes of `file` with numbers below `before` reached the device? Otherwise `task` is woken when more have.
    pub(crate) fn wait_written(&mut self, file: FileId, before: u64, task: TaskId) -> bool {
        let cached = &mut self.files[file.0];
        let written = cached.writing.first().is_none_or(|first| *first >= before);
        if !written {
            cached.sync_waiters.push(task);
        }
        written
    }

    /// An I/O of the cache's is done: whom to wake.
    pub(crate) fn io_done(&mut self, io: u32) -> Vec<TaskId> {
        let Some(done) = self.ios[io as usize].take() else { return Vec::new() };
        self.free_ios.push(io);
        let mut wake = done.waiters;
        let cached = &mut self.files[done.file.0];
        for page in done.pages.clone() {
            let state = cached.pages.get_mut(page);
            *state = match (*state, done.write) {
                (Page::Reading, None) | (Page::Writing, Some(_)) => Page::Clean,
                (Page::WritingDirty, Some(_)) => Page::Dirty,
                // Written to, perhaps even sent off again, while it was being read in.
                (other, _) => other,
            };
        }
        if let Some(number) = done.write {
            cached.writing.remove(&number);
            self.writing -= done.pages.end - done.pages.start;
            wake.append(&mut cached.sync_waiters);
            if !self.over_limit() {
                wake.append(&mut self.throttled);
            }
        }
        wake
    }
}

/// The first window for a request of so many pages.
fn first_window(request: u64, max: u64) -> u64 {
    let size = request.next_power_of_two();
    if size <= max / 32 {
        size * 4
    } else if size <= max / 4 {
        size * 2
    } else {
        max
    }
}

fn next_window(size: u64, max: u64) -> u64 {
    let next = if size < max / 16 { size * 4 } else { size * 2 };
    next.min(max)
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
            if let Some(window) = cache.readahead(file, page, 1, false, &mut ra) {
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
            let window = cache.readahead(file, page, 2, false, &mut ra).unwrap();
            assert_eq!(window, page..page + 2);
            cache.start_reading(file, window);
            PageCache::was_read(&mut ra, page + 1);
        }
    }

    #[test]
    fn a_page_written_on_its_way_is_dirty_again() {
        let (mut cache, file) = cache(16);
        cache.dirty(file, 3, 0);
        let writes = cache.start_writing(file, 0..16, 100, 0);
        assert_eq!(writes[0].0, 3..4);
        cache.dirty(file, 3, 1);
        assert!(cache.start_writing(file, 0..16, 100, 1).is_empty(), "not twice at a time");
        cache.io_done(writes[0].1);
        assert_eq!(cache.start_writing(file, 0..16, 100, 2).len(), 1);
    }

    /// A read that ends does not make a page clean that was written to, and is being written back, meanwhile.
    #[test]
    fn a_read_that_ends_late_does_not_undo_a_write() {
        let (mut cache, file) = cache(16);
        let read = cache.start_reading(file, 0..4);
        cache.dirty(file, 2, 0);
        let writes = cache.start_writing(file, 0..16, 100, 0);
        cache.io_done(read);
        cache.dirty(file, 2, 1);
        cache.io_done(writes[0].1);
        assert_eq!(cache.start_writing(file, 0..16, 100, 2).len(), 1, "the second write to the page counts");
    }

    #[test]
    fn a_page_dropped_and_read_again_is_counted_once() {
        let (mut cache, file) = cache(1000);
        for _ in 0..5 {
            let io = cache.start_reading(file, 0..200);
            cache.io_done(io);
            cache.invalidate(file);
        }
        let io = cache.start_reading(file, 0..256);
        cache.io_done(io);
        assert!((0..256).all(|page| cache.is_uptodate(file, page)));
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
