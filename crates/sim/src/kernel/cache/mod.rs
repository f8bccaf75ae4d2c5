//! The page cache: which pages of which file are in memory, in flight, or dirty.

mod by_group;
mod inode_owner;
mod owners;
mod pages;
mod readahead;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use super::Memory;
use super::files::{FileId, PAGE};
use crate::engine::TaskId;
use crate::group::{Cgroup, Tracking};
use by_group::{ByGroup, Dirtiers};
pub(crate) use by_group::{NextPages, Owned};
use pages::{Page, Pages};
pub use readahead::{Advice, ReadaheadState};

#[derive(Debug, Default)]
struct CachedFile {
    pages: Pages,
    dirty: BTreeSet<u64>,
    /// When the oldest dirty page became dirty, as far as is known.
    dirty_since_ns: u64,
    /// Place among the dirty files.
    place: Option<u64>,
    /// Where the last round of writeback ended.
    write_from: u64,
    /// Writes in flight, by their numbers.
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
    /// Who made the pages of a write dirty, if there are groups.
    dirtiers: Dirtiers,
}

/// What the end of an I/O means to others.
#[derive(Debug)]
pub(crate) struct IoEnd {
    pub(crate) file: FileId,
    pub(crate) pages: Range<u64>,
    pub(crate) write: bool,
    pub(crate) wake: Vec<TaskId>,
}

#[derive(Debug)]
pub(crate) struct PageCache {
    /// Of the largest readahead window; 0 = no readahead.
    pub(crate) read_ahead_pages: u64,
    files: Vec<CachedFile>,
    ios: Vec<Option<PageIo>>,
    free_ios: Vec<u32>,
    /// Pages in the order they came in, for eviction; some of them are gone since.
    order: VecDeque<(FileId, u64)>,
    /// Pages of them that were used again and stay for another round: metadata only.
    touched: BTreeSet<(FileId, u64)>,
    /// Pages that are in memory.
    resident: u64,
    /// Files with dirty pages, longest wait for writeback first.
    dirty_files: BTreeMap<u64, FileId>,
    next_place: u64,
    max_pages: u64,
    background_pages: u64,
    limit_pages: u64,
    dirty: u64,
    /// Pages in flight to the device.
    writing: u64,
    /// Pages that reached the device since the start.
    written: u64,
    /// Number of the next write.
    next_write: u64,
    /// Accounts by group, if the run has some.
    groups: Option<Box<ByGroup>>,
}

impl PageCache {
    pub(crate) fn new(memory: Memory) -> PageCache {
        let max_pages = (memory.cache_bytes / PAGE).max(64);
        let share = |percent: u32| (max_pages * u64::from(percent) / 100).max(1);
        PageCache {
            files: Vec::new(),
            ios: Vec::new(),
            free_ios: Vec::new(),
            order: VecDeque::new(),
            touched: BTreeSet::new(),
            resident: 0,
            dirty_files: BTreeMap::new(),
            next_place: 0,
            max_pages,
            background_pages: share(memory.background_percent),
            limit_pages: share(memory.dirty_percent),
            read_ahead_pages: 32,
            dirty: 0,
            writing: 0,
            written: 0,
            next_write: 0,
            groups: None,
        }
    }

    // ---- groups ---------------------------------------------------------------------------------------------------------

    /// Keep accounts for so many groups, the root included.
    pub(crate) fn use_groups(&mut self, groups: usize, tracking: Tracking) {
        self.groups = Some(Box::new(ByGroup::new(groups, tracking)));
    }

    /// Since when pages of `group` wait to be written, if there are some, nanoseconds.
    pub(crate) fn unwritten_since(&self, group: Cgroup) -> Option<u64> {
        self.groups.as_ref()?.unwritten_since(group)
    }

    /// Dirty pages of `group`.
    pub(crate) fn dirty_of(&self, group: Cgroup) -> u64 {
        self.groups.as_ref().map_or(0, |groups| groups.dirty_of(group))
    }

    /// Pages of `group` that are dirty or in flight.
    pub(crate) fn unwritten_of(&self, group: Cgroup) -> u64 {
        self.groups.as_ref().map_or(0, |groups| groups.unwritten_of(group))
    }

    /// Pages of `group` that reached the device since the run's start.
    pub(crate) fn written_of(&self, group: Cgroup) -> u64 {
        self.groups.as_ref().map_or(0, |groups| groups.written_of(group))
    }

    /// Writes in flight that begin with a page of `group`.
    pub(crate) fn writes_of(&self, group: Cgroup) -> u64 {
        self.groups.as_ref().map_or(0, |groups| groups.writes_of(group))
    }

    /// The group that `file` belongs to.
    pub(crate) fn owner_of(&self, file: FileId) -> Cgroup {
        self.groups.as_ref().map_or(Cgroup::ROOT, |groups| groups.owner_of(file))
    }

    /// Pages of the files that `group` owns.
    pub(crate) fn owned_by(&self, group: Cgroup) -> Owned {
        self.groups.as_ref().map_or(Owned::default(), |groups| groups.owned_by(group))
    }

    /// Groups with dirty pages.
    pub(crate) fn dirty_groups(&self) -> impl Iterator<Item = Cgroup> + '_ {
        self.groups.iter().flat_map(|groups| groups.dirty_groups())
    }

    /// What of `group` is to be written next: of its files in turn, each from where it was left.
    pub(crate) fn next_pages_of(&mut self, group: Cgroup) -> Option<NextPages> {
        let groups = self.groups.as_ref()?;
        let next = groups.files_of(group).into_iter().find_map(|file| {
            let from = self.files[file.0].write_from;
            let mut runs = groups.runs_of(file, group, from);
            runs.find_map(|run| {
                // Some of it may be on its way, and be dirty again.
                let first = self.first_dirty(file, run.clone(), 1)?;
                Some(NextPages { file, pages: first.start..run.end, max: by_group::STEP_PAGES })
            })
        });
        if let (Some(next), Some(groups)) = (&next, &mut self.groups) {
            groups.had_step(group, next.file);
        }
        next
    }

    /// Bytes that `group` made dirty, and those of them that reached the device, since the count began.
    pub(crate) fn bytes_of(&self, group: Cgroup) -> (u64, u64) {
        self.groups.as_ref().map_or((0, 0), |groups| groups.bytes_of(group))
    }

    /// [`PageCache::bytes_of`] begins anew.
    pub(crate) fn restart_group_figures(&mut self) {
        if let Some(groups) = &mut self.groups {
            groups.restart();
        }
    }

    /// A round of writeback of `file` is over.
    pub(crate) fn round_over(&mut self, file: FileId, took_ns: u64) {
        if let Some(groups) = &mut self.groups {
            groups.round_over(file, took_ns);
        }
    }

    /// The group that a bio of the write `io` beginning with `page` is submitted for; `None`: the submitter's own.
    pub(crate) fn payer(&self, io: u32, page: u64) -> Option<Cgroup> {
        let io = self.ios.get(io as usize)?.as_ref()?;
        self.groups.as_ref()?.payer(io.file, &io.dirtiers, page)
    }

    pub(crate) fn add_file(&mut self, bytes: u64) {
        self.files.push(CachedFile { pages: Pages::new(bytes.div_ceil(PAGE)), ..CachedFile::default() });
    }

    /// Know all files up to `file`; new ones are empty.
    pub(crate) fn add_files_up_to(&mut self, file: FileId) {
        while self.files.len() <= file.0 {
            self.add_file(0);
        }
    }

    /// A file's size changed: pages beyond it are forgotten, dirty or not.
    pub(crate) fn resize(&mut self, file: FileId, bytes: u64) {
        let len = bytes.div_ceil(PAGE);
        let cached = &mut self.files[file.0];
        for page in cached.dirty.split_off(&len) {
            self.dirty -= 1;
            if let Some(groups) = &mut self.groups {
                groups.forgotten(file, page..page + 1);
            }
            if *cached.pages.get_mut(page) == Page::WritingDirty {
                *cached.pages.get_mut(page) = Page::Writing;
            }
        }
        self.resident -= cached.pages.resize(len);
        if cached.dirty.is_empty() {
            self.leave_line(file);
        }
        self.compact();
    }

    // ---- reading --------------------------------------------------------------------------------------------------------

    /// Pages of the file.
    pub(crate) fn file_pages(&self, file: FileId) -> u64 {
        self.files[file.0].pages.len()
    }

    /// Is the page's content in memory?
    pub(crate) fn is_uptodate(&self, file: FileId, page: u64) -> bool {
        !matches!(self.files[file.0].pages.get(page), Page::Absent | Page::Reading)
    }

    /// Is a task reading it in? Then `task` is woken when that is done.
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
        let pages = &self.files[file.0].pages;
        ra.next_window(
            page,
            request,
            pages.get(page) == Page::Absent,
            congested,
            (pages.len(), self.read_ahead_pages),
        )
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
            self.enter(file, page, Page::Reading);
        }
        self.evict();
        self.add_io(PageIo { file, pages, write: None, waiters: Vec::new(), dirtiers: Vec::new() })
    }

    /// An absent page comes in.
    fn enter(&mut self, file: FileId, page: u64, state: Page) {
        *self.files[file.0].pages.get_mut(page) = state;
        self.order.push_back((file, page));
        self.resident += 1;
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

    /// A page that is in memory was used again: it stays for another round of eviction.
    pub(crate) fn touch(&mut self, file: FileId, page: u64) {
        self.touched.insert((file, page));
    }

    /// Drop the oldest clean pages above the limit.
    fn evict(&mut self) {
        let mut tries = self.order.len();
        while self.resident > self.max_pages && tries > 0 {
            tries -= 1;
            let Some((file, page)) = self.order.pop_front() else { return };
            match self.files[file.0].pages.get(page) {
                Page::Absent => {}
                Page::Clean if !self.touched.is_empty() && self.touched.remove(&(file, page)) => {
                    self.order.push_back((file, page));
                }
                Page::Clean => {
                    *self.files[file.0].pages.get_mut(page) = Page::Absent;
                    self.resident -= 1;
                }
                _ => self.order.push_back((file, page)),
            }
        }
    }

    /// Forget entries of pages that are gone, once they are the larger part.
    fn compact(&mut self) {
        if self.order.len() as u64 > 2 * self.resident + 65_536 {
            let files = &self.files;
            self.order.retain(|(file, page)| files[file.0].pages.get(*page) != Page::Absent);
        }
    }

    /// Forget a file's clean pages (`posix_fadvise(DONTNEED)`, as fio does before a job).
    pub(crate) fn invalidate(&mut self, file: FileId) {
        self.resident -= self.files[file.0].pages.drop_clean();
        self.compact();
    }

    /// Forget these pages, dirty or not, but for those in flight.
    pub(crate) fn forget(&mut self, file: FileId, pages: Range<u64>) {
        for page in pages {
            self.undirty(file, page);
            if self.files[file.0].pages.get(page) == Page::Clean {
                *self.files[file.0].pages.get_mut(page) = Page::Absent;
                self.resident -= 1;
            }
        }
        self.compact();
    }

    // ---- becoming dirty -------------------------------------------------------------------------------------------------

    /// A task of `group` wrote `page`.
    pub(crate) fn dirty(&mut self, file: FileId, page: u64, group: Cgroup, now: u64) {
        let state = self.files[file.0].pages.get(page);
        match state {
            Page::Dirty | Page::WritingDirty => return,
            Page::Writing => *self.files[file.0].pages.get_mut(page) = Page::WritingDirty,
            Page::Absent => self.enter(file, page, Page::Dirty),
            Page::Clean | Page::Reading => *self.files[file.0].pages.get_mut(page) = Page::Dirty,
        }
        let cached = &mut self.files[file.0];
        cached.dirty.insert(page);
        self.dirty += 1;
        if let Some(groups) = &mut self.groups {
            groups.dirtied(file, page, group, now);
        }
        if cached.place.is_none() {
            cached.dirty_since_ns = now;
            self.join_line(file);
        }
        self.evict();
    }

    /// `page` need not be written after all.
    pub(crate) fn undirty(&mut self, file: FileId, page: u64) {
        let cached = &mut self.files[file.0];
        if !cached.dirty.remove(&page) {
            return;
        }
        let state = cached.pages.get_mut(page);
        *state = if *state == Page::WritingDirty { Page::Writing } else { Page::Clean };
        self.dirty -= 1;
        if let Some(groups) = &mut self.groups {
            groups.forgotten(file, page..page + 1);
        }
        if cached.dirty.is_empty() {
            self.leave_line(file);
        }
    }

    fn join_line(&mut self, file: FileId) {
        self.dirty_files.insert(self.next_place, file);
        self.files[file.0].place = Some(self.next_place);
        self.next_place += 1;
    }

    fn leave_line(&mut self, file: FileId) {
        if let Some(place) = self.files[file.0].place.take() {
            self.dirty_files.remove(&place);
        }
    }

    /// Dirty pages.
    pub(crate) fn dirty_pages(&self) -> u64 {
        self.dirty
    }

    /// Pages dirty or in flight.
    pub(crate) fn unwritten_pages(&self) -> u64 {
        self.dirty + self.writing
    }

    /// Pages that reached the device since the start.
    pub(crate) fn written_pages(&self) -> u64 {
        self.written
    }

    /// Dirty pages that start the background writeback, and that stop those who dirty more.
    pub(crate) fn limits(&self) -> (u64, u64) {
        (self.background_pages, self.limit_pages)
    }

    /// Pages there may be.
    pub(crate) fn max_pages(&self) -> u64 {
        self.max_pages
    }

    /// Is there so much dirty that the flusher has to work?
    pub(crate) fn over_background(&self) -> bool {
        self.dirty > self.background_pages
    }

    // ---- writing --------------------------------------------------------------------------------------------------------

    /// All files with dirty pages, longest wait first.
    pub(crate) fn dirty_files(&self) -> Vec<FileId> {
        self.dirty_files.values().copied().collect()
    }

    /// All files with pages in flight to the device.
    pub(crate) fn files_being_written(&self) -> Vec<FileId> {
        let being = |f: &FileId| !self.files[f.0].writing.is_empty();
        (0..self.files.len()).map(FileId).filter(being).collect()
    }

    /// The file that is due to be written, among those dirty since before `before_ns` and in line before `place`.
    pub(crate) fn next_dirty_file(&self, before_ns: u64, place: u64) -> Option<FileId> {
        let mut line = self.dirty_files.range(..place).map(|(_, file)| *file);
        line.find(|f| self.files[f.0].dirty_since_ns <= before_ns)
    }

    /// The same among the files that `owner` owns.
    pub(crate) fn next_dirty_file_of(&self, owner: Cgroup, before_ns: u64, place: u64) -> Option<FileId> {
        let mut line = self.dirty_files.range(..place).map(|(_, file)| *file);
        line.find(|f| self.files[f.0].dirty_since_ns <= before_ns && self.owner_of(*f) == owner)
    }

    /// The end of the line of dirty files: a file that joins later stands at or behind it.
    pub(crate) fn end_of_line(&self) -> u64 {
        self.next_place
    }

    /// `file` had its turn: if it is still dirty it goes to the end of the line.
    pub(crate) fn had_its_turn(&mut self, file: FileId) {
        self.leave_line(file);
        if !self.files[file.0].dirty.is_empty() {
            self.join_line(file);
        }
    }

    /// Where a round of writeback of `file` starts.
    pub(crate) fn write_from(&self, file: FileId) -> u64 {
        self.files[file.0].write_from
    }

    pub(crate) fn set_write_from(&mut self, file: FileId, page: u64) {
        self.files[file.0].write_from = page;
    }

    /// The first run of dirty pages of `file` among `pages`, at most `max` long, that are not in flight already.
    pub(crate) fn first_dirty(&self, file: FileId, pages: Range<u64>, max: u64) -> Option<Range<u64>> {
        let cached = &self.files[file.0];
        if pages.is_empty() {
            return None;
        }
        let mut run: Option<Range<u64>> = None;
        for page in cached.dirty.range(pages).copied() {
            if cached.pages.get(page) != Page::Dirty {
                // Still under way: it is written again later.
                if run.is_some() {
                    break;
                }
                continue;
            }
            match &mut run {
                None => run = Some(page..page + 1),
                Some(run) if run.end == page && page - run.start < max => run.end += 1,
                Some(_) => break,
            }
        }
        run
    }

    /// The dirty pages of `file`, in runs.
    pub(crate) fn dirty_runs(&self, file: FileId) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for page in self.files[file.0].dirty.iter().copied() {
            match runs.last_mut() {
                Some(last) if last.end == page => last.end += 1,
                _ => runs.push(page..page + 1),
            }
        }
        runs
    }

    /// Is the page to be written, or to be written again?
    pub(crate) fn is_page_dirty(&self, file: FileId, page: u64) -> bool {
        self.files[file.0].dirty.contains(&page)
    }

    /// Does `file` have dirty pages?
    pub(crate) fn is_dirty(&self, file: FileId) -> bool {
        !self.files[file.0].dirty.is_empty()
    }

    /// The dirty `pages` are going to be written: the number of the I/O.
    pub(crate) fn start_writing(&mut self, file: FileId, pages: Range<u64>, now: u64) -> u32 {
        let cached = &mut self.files[file.0];
        for page in pages.clone() {
            let was = cached.dirty.remove(&page);
            debug_assert!(was && cached.pages.get(page) == Page::Dirty);
            *cached.pages.get_mut(page) = Page::Writing;
        }
        let count = pages.end - pages.start;
        self.dirty -= count;
        self.writing += count;
        let number = self.next_write;
        self.next_write += 1;
        cached.writing.insert(number);
        // What stays dirty or becomes so from now on is younger.
        cached.dirty_since_ns = cached.dirty_since_ns.max(if cached.dirty.is_empty() { now } else { 0 });
        if cached.dirty.is_empty() {
            self.leave_line(file);
        }
        let dirtiers = match &mut self.groups {
            Some(groups) => groups.sent(file, pages.clone()),
            None => Vec::new(),
        };
        self.add_io(PageIo { file, pages, write: Some(number), waiters: Vec::new(), dirtiers })
    }

    /// The number the next write of any file will have; all that are in flight have smaller ones.
    pub(crate) fn next_write(&self) -> u64 {
        self.next_write
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

    /// Have, of the writes of `file`, those below `numbers` and those among `numbers` that hold some of `pages` reached the device?
    /// Otherwise `task` is woken when more have.
    pub(crate) fn wait_pages_written(
        &mut self,
        file: FileId,
        pages: &[Range<u64>],
        numbers: Range<u64>,
        task: TaskId,
    ) -> bool {
        if !self.wait_written(file, numbers.start, task) {
            return false;
        }
        let holds = |io: &PageIo| {
            let first_after = pages.partition_point(|run| run.end <= io.pages.start);
            pages.get(first_after).is_some_and(|run| run.start < io.pages.end)
        };
        let is_one = |io: &PageIo| io.file == file && io.write.is_some_and(|n| n < numbers.end) && holds(io);
        let waits = self.ios.iter().flatten().any(is_one);
        if waits {
            self.files[file.0].sync_waiters.push(task);
        }
        !waits
    }

    /// An I/O of the cache's is done.
    pub(crate) fn io_done(&mut self, io: u32) -> Option<IoEnd> {
        let done = self.ios[io as usize].take()?;
        self.free_ios.push(io);
        let mut wake = done.waiters;
        let cached = &mut self.files[done.file.0];
        for page in done.pages.clone() {
            let beyond = page >= cached.pages.len();
            let state = cached.pages.get_mut(page);
            *state = match (*state, done.write) {
                (Page::Reading, None) | (Page::Writing, Some(_)) if beyond => {
                    self.resident -= 1;
                    Page::Absent
                }
                (Page::Reading, None) | (Page::Writing, Some(_)) => Page::Clean,
                (Page::WritingDirty, Some(_)) => Page::Dirty,
                // Written to, perhaps even sent off again, while it was being read in.
                (other, _) => other,
            };
        }
        if let Some(number) = done.write {
            let count = done.pages.end - done.pages.start;
            cached.writing.remove(&number);
            self.writing -= count;
            self.written += count;
            if let Some(groups) = &mut self.groups {
                groups.arrived(done.file, &done.dirtiers);
            }
            wake.append(&mut cached.sync_waiters);
        }
        Some(IoEnd { file: done.file, pages: done.pages, write: done.write.is_some(), wake })
    }
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
            ra.was_read(page);
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
            ra.was_read(page + 1);
        }
    }

    #[test]
    fn a_page_written_on_its_way_is_dirty_again() {
        let (mut cache, file) = cache(16);
        cache.dirty(file, 3, Cgroup::ROOT, 0);
        assert_eq!(cache.first_dirty(file, 0..16, 100), Some(3..4));
        let io = cache.start_writing(file, 3..4, 0);
        cache.dirty(file, 3, Cgroup::ROOT, 1);
        assert_eq!(cache.first_dirty(file, 0..16, 100), None, "not twice at a time");
        cache.io_done(io);
        assert_eq!(cache.first_dirty(file, 0..16, 100), Some(3..4));
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

    /// Cutting a file forgets its dirty pages, and those in flight are gone once they arrive.
    #[test]
    fn a_cut_file_keeps_nothing() {
        let (mut cache, file) = cache(16);
        for page in 0..4 {
            cache.dirty(file, page, Cgroup::ROOT, 0);
        }
        let io = cache.start_writing(file, 0..2, 0);
        cache.dirty(file, 1, Cgroup::ROOT, 0);
        cache.resize(file, 0);
        assert_eq!((cache.dirty_pages(), cache.unwritten_pages(), cache.resident), (0, 2, 2));
        cache.io_done(io);
        assert_eq!((cache.unwritten_pages(), cache.resident), (0, 0));
        assert!(cache.dirty_files().is_empty());
    }
}
