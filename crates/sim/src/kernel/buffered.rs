//! Reads and writes through the page cache, and the writing back of a file's pages.

use std::ops::Range;

use fairlift_core::{Flags, Op};

use super::bio::Kind;
use super::cache::ReadaheadState;
use super::files::{FileId, PAGE, PAGE_SECTORS, Run};
use super::vfs::Errno;
use crate::anatomy::{Call, Step, Why};
use crate::block::Owner;
use crate::engine::Sys;

/// Pages a write call handles between two looks at the dirty limits, at most.
const WRITE_STEP: u64 = 64;

/// Which dirty pages of a file are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Which {
    /// All; what has no place on the device yet gets one.
    All,
    /// Only those that have a place: the journal's thread may not allocate.
    Mapped,
}

impl Sys {
    /// `pread` through the page cache. `ra` belongs to the open file.
    pub async fn read_file(&self, file: FileId, offset: u64, bytes: u64, ra: &mut ReadaheadState) {
        let pages = page_range(offset, bytes);
        let copy = self.machine.borrow().kernel.rules.cpu_per_page_ns * (pages.end - pages.start);
        for page in pages.clone() {
            if page >= self.machine.borrow().kernel.cache.file_pages(file) {
                break; // cut meanwhile
            }
            self.read_ahead(file, page, pages.end - page, ra).await;
            // Readahead may not have covered the page (evicted again, or past its window).
            if !self.machine.borrow().kernel.cache.is_uptodate(file, page) {
                self.unplug();
                self.wait_for_page(file, page).await;
            }
            ra.was_read(page);
        }
        self.compute(copy).await;
    }

    async fn read_ahead(&self, file: FileId, page: u64, request: u64, ra: &mut ReadaheadState) {
        let window = {
            let mut machine = self.machine.borrow_mut();
            let congested = machine.block.is_congested(true);
            machine.kernel.cache.readahead(file, page, request, congested, ra)
        };
        if let Some(window) = window {
            self.read_pages(file, window).await;
        }
    }

    async fn read_pages(&self, file: FileId, window: Range<u64>) {
        let first_absent = |from: u64| {
            let cache = &self.machine.borrow().kernel.cache;
            let window = from..window.end.min(cache.file_pages(file));
            cache.absent(file, window).first().map(|pages| pages.start)
        };
        let mut at = window.start;
        while let Some(first) = first_absent(at) {
            // Others may read some of it while this task waits for the index.
            at = self.read_index(file, first).await.min(window.end);
            let end = at.min(self.machine.borrow().kernel.cache.file_pages(file));
            self.read_absent(file, first..end).await;
        }
    }

    /// Start to read what of `window` is not in memory; its places are known.
    pub(crate) async fn read_absent(&self, file: FileId, window: Range<u64>) {
        let ranges = self.machine.borrow().kernel.cache.absent(file, window);
        for pages in ranges {
            let io = self.machine.borrow_mut().kernel.cache.start_reading(file, pages.clone());
            let runs = self.runs_of(file, &pages, false);
            let op = self.open_op(Owner::Pages(io));
            for run in runs {
                self.submit_run(op, Kind::new(Op::Read, Flags::NONE), run).await;
            }
            self.close_op(op);
        }
    }

    /// Wait as long as a task reads this page in.
    pub(crate) async fn wait_while_read(&self, file: FileId, page: u64) {
        self.wait(Why::Io, |machine, task| {
            (!machine.kernel.cache.wait_for_page(file, page, task)).then_some(())
        })
        .await;
    }

    fn runs_of(&self, file: FileId, pages: &Range<u64>, allocate: bool) -> Vec<Run> {
        let mut runs = Vec::new();
        let (first, count) = (pages.start * PAGE_SECTORS, (pages.end - pages.start) * PAGE_SECTORS);
        self.machine.borrow_mut().kernel.files.map(file, first, count, allocate, &mut runs);
        runs
    }

    async fn wait_for_page(&self, file: FileId, page: u64) {
        loop {
            let read = self
                .wait(Why::Io, |machine, task| {
                    let cache = &mut machine.kernel.cache;
                    if cache.is_uptodate(file, page) || page >= cache.file_pages(file) {
                        Some(true)
                    } else if cache.wait_for_page(file, page, task) {
                        None
                    } else {
                        Some(false)
                    }
                })
                .await;
            if read {
                return;
            }
            // Evicted before we came to it: read just this page.
            self.read_pages(file, page..page + 1).await;
            self.unplug();
        }
    }

    /// `pwrite` through the page cache: dirties pages, and waits while there are too many. The file grows as needed.
    ///
    /// # Errors
    /// [`Errno::NoSpace`].
    pub async fn write_file(&self, file: FileId, offset: u64, bytes: u64) -> Result<(), Errno> {
        let all = page_range(offset, bytes);
        let mut pages = all.start..all.start;
        while pages.start < all.end {
            pages.end = (pages.start + WRITE_STEP).min(all.end);
            let end = (offset + bytes).min(pages.end * PAGE);
            if self.is_ext(file) {
                self.ext_prepare_write(file, pages.clone(), end).await?;
            } else {
                self.raw_grow(file, end)?;
            }
            let owned_before = self.dirty_beside(file);
            let copy = {
                let mut machine = self.machine.borrow_mut();
                let now = machine.now();
                let (dirty_before, cgroup) =
                    (machine.kernel.cache.dirty_pages(), machine.cgroup_of(self.task));
                for page in pages.clone() {
                    machine.kernel.cache.dirty(file, page, cgroup, now);
                }
                let dirtied = machine.kernel.cache.dirty_pages() - dirty_before;
                super::writeback::count_dirtied(&mut machine, self.task, dirtied);
                if dirty_before == 0 {
                    super::writeback::wake_flushers(&mut machine, cgroup);
                }
                machine.kernel.rules.cpu_per_page_ns * (pages.end - pages.start)
            };
            self.wake_flusher_of(file, owned_before == 0);
            self.compute(copy).await;
            self.balance_dirty(file, pages.end - pages.start).await;
            pages.start = pages.end;
        }
        Ok(())
    }

    /// Dirty pages of all files of the group that `file` belongs to.
    fn dirty_beside(&self, file: FileId) -> u64 {
        let cache = &self.machine.borrow().kernel.cache;
        cache.owned_by(cache.owner_of(file)).dirty
    }

    /// Without a file system: a file grows if there is room.
    pub(crate) fn raw_grow(&self, file: FileId, bytes: u64) -> Result<(), Errno> {
        let kernel = &mut self.machine.borrow_mut().kernel;
        if bytes > kernel.files.get(file).bytes {
            if !kernel.files.has_room(file, bytes) {
                return Err(Errno::NoSpace);
            }
            kernel.resize(file, bytes);
        }
        Ok(())
    }

    /// `fsync` and, with `data_only`, `fdatasync`: the file's dirty pages, what the file system needs to find them again, and the
    /// device's cache. Pages dirtied later are not waited for.
    pub async fn sync_file(&self, file: FileId, data_only: bool) {
        self.begin_call(if data_only { Call::Fdatasync } else { Call::Fsync });
        self.step(Step::Data);
        self.write_and_wait(file).await;
        self.step(Step::Commit);
        if self.is_ext(file) {
            self.ext_sync(file, data_only).await;
        } else {
            self.step(Step::Flush);
            self.flush_device().await;
        }
        self.end_call();
    }

    /// Write the file's dirty pages as sync writes, and wait for them.
    pub(crate) async fn write_and_wait(&self, file: FileId) {
        let flags = self.machine.borrow().kernel.rules.fsync_write;
        // The second round is for pages that were dirtied again while on their way before this call.
        for _ in 0..2 {
            self.write_pages(file, 0..u64::MAX, u64::MAX, flags, Which::All).await;
            self.unplug();
            self.wait_for_writes(file).await;
        }
    }

    /// Wait for the file's pages that are in flight now.
    pub(crate) async fn wait_for_writes(&self, file: FileId) {
        let before = self.machine.borrow().kernel.cache.next_write();
        self.wait(Why::Io, |machine, task| {
            machine.kernel.cache.wait_written(file, before, task).then_some(())
        })
        .await;
    }

    /// Start writing up to `max` dirty pages of `file` among `pages`: how many there were, and where it stopped.
    pub(crate) async fn write_pages(
        &self,
        file: FileId,
        pages: Range<u64>,
        max: u64,
        flags: Flags,
        which: Which,
    ) -> (u64, u64) {
        let ext = self.is_ext(file);
        let (piece_max, page_by_page) = {
            let mut machine = self.machine.borrow_mut();
            let sectors = u64::from(machine.block.queue().config().limits.max_sectors);
            (sectors / PAGE_SECTORS, machine.kernel.writes_page_by_page(file))
        };
        self.open_plug();
        let mut at = pages.start;
        let mut count = 0;
        while count < max {
            let first = |sys: &Sys, at: u64| {
                let kernel = &sys.machine.borrow().kernel;
                kernel.cache.first_dirty(file, at..pages.end, piece_max.min(max - count))
            };
            let Some(mut piece) = first(self, at) else { break };
            let mut handle = None;
            if ext {
                let (mapped, length) = self.ext_mapped(file, &piece);
                if mapped {
                    piece.end = piece.start + length;
                } else if which == Which::Mapped {
                    at = piece.start + length;
                    continue;
                } else {
                    // Delayed allocation: the blocks get their places now.
                    handle = Some(self.start_handle(super::ext::ALLOCATION_CREDITS).await);
                    match first(self, piece.start) {
                        Some(same) if same.start == piece.start => piece = same,
                        _ => {
                            self.stop_handle(handle.take());
                            continue;
                        }
                    }
                }
            }
            let io = {
                let mut machine = self.machine.borrow_mut();
                let now = machine.now();
                machine.kernel.cache.start_writing(file, piece.clone(), now)
            };
            if let Some(handle) = &handle {
                self.ext_allocate_late(handle, file, piece.clone()).await;
            }
            let runs = self.runs_of(file, &piece, true);
            let op = self.open_op(Owner::Pages(io));
            let mut page = piece.start;
            for run in runs {
                let kind = Kind { page_by_page, ..Kind::new(Op::Write, flags) };
                let payer =
                    |before: u64| self.machine.borrow().kernel.cache.payer(io, page + before / PAGE_SECTORS);
                self.submit_run_for(op, kind, run, &payer).await;
                page += run.sectors / PAGE_SECTORS;
            }
            self.close_op(op);
            self.stop_handle(handle);
            count += piece.end - piece.start;
            at = piece.end;
        }
        self.close_plug();
        (count, at)
    }

    /// Drop a file's clean pages from the cache.
    pub fn invalidate(&self, file: FileId) {
        self.machine.borrow_mut().kernel.cache.invalidate(file);
    }
}

pub(crate) fn page_range(offset: u64, bytes: u64) -> Range<u64> {
    offset / PAGE..(offset + bytes).div_ceil(PAGE)
}
