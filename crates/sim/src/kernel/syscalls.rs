//! The system calls that do I/O, as methods of [`Sys`].

use std::ops::Range;

use fairlift_core::{Bio, Flags, Op, SECOND};

pub use super::cache::ReadaheadState;
use super::cache::{FLUSH_ROUND, PageCache};
use super::files::{FileId, PAGE, PAGE_SECTORS, Run};
use crate::block::Owner;
use crate::engine::{OpDone, OpId, Sys};

/// `vm.dirty_writeback_centisecs`.
const FLUSH_INTERVAL_NS: u64 = 5 * SECOND;
/// `vm.dirty_expire_centisecs`.
const DIRTY_EXPIRE_NS: u64 = 30 * SECOND;

/// What a direct I/O does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirectIo {
    /// Read, write or discard.
    pub op: Op,
    /// The file.
    pub file: FileId,
    /// Where, bytes from its start.
    pub offset: u64,
    /// How much, bytes.
    pub bytes: u64,
    /// A priority of its own.
    pub ioprio: Option<fairlift_core::IoPrio>,
}

impl Sys {
    /// Submit a direct I/O and go on; its end is one of [`Sys::next_completion`]'s answers. Waits only for CPU and for request
    /// slots.
    pub async fn submit_direct(&self, io: DirectIo) -> OpId {
        let runs = self.direct_runs(&io);
        let op = self.open_op(Owner::Task(self.task));
        let flags = {
            let rules = &self.machine.borrow().kernel.rules;
            match io.op {
                Op::Read => rules.direct_read,
                _ => rules.direct_write,
            }
        };
        for run in runs {
            self.submit_run(op, io.op, flags, io.ioprio, run).await;
        }
        self.close_op(op);
        op
    }

    /// A direct I/O and its end: `pread`/`pwrite` on a file opened with O_DIRECT. Returns when it was done.
    pub async fn direct(&self, io: DirectIo) -> u64 {
        let op = self.submit_direct(io).await;
        self.unplug();
        self.completion_of(op).await
    }

    fn direct_runs(&self, io: &DirectIo) -> Vec<Run> {
        let mut machine = self.machine.borrow_mut();
        let mut runs = Vec::with_capacity(1);
        let first = io.offset / 512;
        let sectors = (io.offset + io.bytes).div_ceil(512) - first;
        machine.kernel.files.map(io.file, first, sectors, io.op == Op::Write, &mut runs);
        runs
    }

    /// The next finished operation of this task.
    pub async fn next_completion(&self) -> OpDone {
        self.wait(|machine, task| machine.take_completion(task, None)).await
    }

    /// The next finished operation, if there is one already.
    pub fn try_completion(&self) -> Option<OpDone> {
        self.machine.borrow_mut().take_completion(self.task, None)
    }

    /// Wait for one operation of this task; others stay to be collected.
    async fn completion_of(&self, op: OpId) -> u64 {
        self.wait(|machine, task| machine.take_completion(task, Some(op)).map(|d| d.at_ns)).await
    }

    // ---- bios -----------------------------------------------------------------------------------------------------------

    fn open_op(&self, owner: Owner) -> OpId {
        self.machine.borrow_mut().block.open_op(owner)
    }

    fn close_op(&self, op: OpId) {
        let mut machine = self.machine.borrow_mut();
        let now = machine.now();
        machine.block.close_op(op, now);
    }

    /// The caller goes to sleep for I/O: nothing may be held back any longer.
    pub(crate) fn unplug(&self) {
        self.machine.borrow_mut().block.unplug();
    }

    /// Gather what is submitted until [`Sys::close_plug`] (kernels with task plugs).
    pub fn open_plug(&self) {
        let mut machine = self.machine.borrow_mut();
        let context = machine.context_of(self.task);
        machine.block.open_plug(context);
    }

    /// Hand over what was gathered.
    pub fn close_plug(&self) {
        let mut machine = self.machine.borrow_mut();
        let (context, now) = (machine.context_of(self.task), machine.now());
        machine.block.close_plug(context, now);
    }

    /// Submit a run of sectors as bios no larger than a request may be.
    async fn submit_run(
        &self,
        op: OpId,
        what: Op,
        flags: Flags,
        ioprio: Option<fairlift_core::IoPrio>,
        run: Run,
    ) {
        let (context, max) = {
            let mut machine = self.machine.borrow_mut();
            let limits = machine.block.queue().config().limits;
            let max = u64::from(limits.max_sectors).min(u64::from(limits.max_segments) * PAGE_SECTORS);
            (machine.context_of(self.task), max)
        };
        let mut at = run.sector;
        let end = run.sector + run.sectors;
        while at < end {
            let sectors = max.min(end - at) as u32;
            let segments = u64::from(sectors).div_ceil(PAGE_SECTORS) as u16;
            let bio = Bio { cookie: 0, op: what, flags, sector: at, sectors, segments, context, ioprio };
            self.submit_bio(op, bio).await;
            at += u64::from(sectors);
        }
    }

    /// Submit one bio, waiting for a request slot if need be.
    async fn submit_bio(&self, op: OpId, bio: Bio) {
        let mut again = false;
        self.wait(|machine, task| {
            let now = machine.now();
            if again && machine.block.is_waiting(task) {
                return None; // woken for another reason
            }
            let taken = machine.block.submit(op, bio, task, again, now);
            again = true;
            taken.then_some(())
        })
        .await;
    }

    /// Write back the device's volatile cache.
    pub async fn flush_device(&self) {
        let op = self.open_op(Owner::Task(self.task));
        let context = self.context();
        let bio = Bio {
            cookie: 0,
            op: Op::Flush,
            flags: Flags::SYNC,
            sector: 0,
            sectors: 0,
            segments: 0,
            context,
            ioprio: None,
        };
        self.submit_bio(op, bio).await;
        self.close_op(op);
        self.unplug();
        self.completion_of(op).await;
    }

    // ---- buffered I/O -----------------------------------------------------------------------------------------------------

    /// `pread` through the page cache. `ra` belongs to the open file.
    pub async fn read_file(&self, file: FileId, offset: u64, bytes: u64, ra: &mut ReadaheadState) {
        let pages = page_range(offset, bytes);
        let copy = self.machine.borrow().kernel.rules.cpu_per_page_ns * (pages.end - pages.start);
        for page in pages.clone() {
            self.read_ahead(file, page, pages.end - page, ra).await;
            // Readahead may not have covered the page (evicted again, or past its window).
            if !self.machine.borrow().kernel.cache.is_uptodate(file, page) {
                self.unplug();
                self.wait_for_page(file, page).await;
            }
            PageCache::was_read(ra, page);
        }
        self.sleep(copy).await;
    }

    async fn read_ahead(&self, file: FileId, page: u64, request: u64, ra: &mut ReadaheadState) {
        let Some(window) = self.machine.borrow().kernel.cache.readahead(file, page, request, ra) else {
            return;
        };
        self.read_pages(file, window).await;
    }

    async fn read_pages(&self, file: FileId, window: Range<u64>) {
        let ranges = self.machine.borrow().kernel.cache.absent(file, window);
        for pages in ranges {
            let (io, runs) = {
                let mut machine = self.machine.borrow_mut();
                let io = machine.kernel.cache.start_reading(file, pages.clone());
                let mut runs = Vec::new();
                machine.kernel.files.map(
                    file,
                    pages.start * PAGE_SECTORS,
                    (pages.end - pages.start) * PAGE_SECTORS,
                    false,
                    &mut runs,
                );
                (io, runs)
            };
            let op = self.open_op(Owner::Pages(io));
            for run in runs {
                self.submit_run(op, Op::Read, Flags::NONE, None, run).await;
            }
            self.close_op(op);
        }
    }

    async fn wait_for_page(&self, file: FileId, page: u64) {
        loop {
            let reading = self
                .wait(|machine, task| {
                    let cache = &mut machine.kernel.cache;
                    if cache.is_uptodate(file, page) {
                        Some(true)
                    } else if cache.wait_for_page(file, page, task) {
                        None
                    } else {
                        Some(false)
                    }
                })
                .await;
            if reading {
                return;
            }
            // Evicted before we came to it: read just this page.
            self.read_pages(file, page..page + 1).await;
            self.unplug();
        }
    }

    /// `pwrite` through the page cache: dirties pages, and waits while there are too many.
    pub async fn write_file(&self, file: FileId, offset: u64, bytes: u64) {
        let pages = page_range(offset, bytes);
        let copy = {
            let mut machine = self.machine.borrow_mut();
            let now = machine.now();
            for page in pages.clone() {
                machine.kernel.cache.dirty(file, page, now);
            }
            if machine.kernel.cache.over_background()
                && let Some(flusher) = machine.kernel.cache.flusher()
            {
                machine.wake(flusher);
            }
            machine.kernel.rules.cpu_per_page_ns * (pages.end - pages.start)
        };
        self.sleep(copy).await;
        if self.machine.borrow().kernel.rules.foreground_writeback {
            self.write_for_balance(file).await;
        }
        self.wait(|machine, task| {
            let over = machine.kernel.cache.over_limit();
            if over {
                machine.kernel.cache.throttle(task);
            }
            (!over).then_some(())
        })
        .await;
    }

    /// Until 3.1 whoever dirties too much writes some of it himself.
    async fn write_for_balance(&self, file: FileId) {
        while self.machine.borrow().kernel.cache.over_limit() {
            if self.write_pages(file, 0..u64::MAX, FLUSH_ROUND, Flags::NONE).await == 0 {
                return;
            }
        }
    }

    /// `fsync`/`fdatasync`: the file's dirty pages, then the device's cache.
    pub async fn sync_file(&self, file: FileId) {
        let flags = self.machine.borrow().kernel.rules.fsync_write;
        while self.write_pages(file, 0..u64::MAX, usize::MAX, flags).await > 0 {}
        self.unplug();
        self.wait(|machine, task| machine.kernel.cache.wait_written(file, task).then_some(())).await;
        self.flush_device().await;
    }

    /// Start writing up to `max` dirty pages of `file`; how many there were.
    async fn write_pages(&self, file: FileId, range: Range<u64>, max: usize, flags: Flags) -> u64 {
        self.open_plug();
        let writes = self.machine.borrow_mut().kernel.cache.start_writing(file, range, max);
        let mut count = 0;
        for (pages, io) in writes {
            count += pages.end - pages.start;
            let mut runs = Vec::new();
            self.machine.borrow_mut().kernel.files.map(
                file,
                pages.start * PAGE_SECTORS,
                (pages.end - pages.start) * PAGE_SECTORS,
                true,
                &mut runs,
            );
            let op = self.open_op(Owner::Pages(io));
            for run in runs {
                self.submit_run(op, Op::Write, flags, None, run).await;
            }
            self.close_op(op);
        }
        self.close_plug();
        count
    }

    /// Drop a file's clean pages from the cache.
    pub fn invalidate(&self, file: FileId) {
        self.machine.borrow_mut().kernel.cache.invalidate(file);
    }

    /// CPU time of one I/O system call in this kernel, nanoseconds.
    pub fn cpu_per_io_ns(&self) -> u64 {
        self.machine.borrow().kernel.rules.cpu_per_io_ns
    }
}

fn page_range(offset: u64, bytes: u64) -> Range<u64> {
    offset / PAGE..(offset + bytes).div_ceil(PAGE)
}

/// The kernel thread that writes dirty pages back: above the background limit at once, else those older than 30 s every 5 s.
pub(super) async fn flusher(sys: Sys) {
    sys.machine.borrow_mut().kernel.cache.set_flusher(sys.task);
    let mut next_look = 0;
    let mut from = 0;
    loop {
        // Woken by a writer over the background limit, or by the clock.
        let due = next_look;
        let mut armed = false;
        sys.wait(|machine, task| {
            if machine.kernel.cache.over_background() || machine.now() >= due {
                return Some(());
            }
            if !armed {
                armed = true;
                machine.wake_at(due, task);
            }
            None
        })
        .await;
        let now = sys.now();
        if now >= next_look {
            next_look = now + FLUSH_INTERVAL_NS;
        }
        loop {
            let (background, file) = {
                let cache = &sys.machine.borrow().kernel.cache;
                let background = cache.over_background();
                // Pages dirtied before this are due.
                let before = if background { Some(u64::MAX) } else { now.checked_sub(DIRTY_EXPIRE_NS) };
                (background, before.and_then(|before| cache.next_dirty_file(from, before)))
            };
            let Some(file) = file else { break };
            from = file.0 + 1;
            let written = sys.write_pages(file, 0..u64::MAX, FLUSH_ROUND, Flags::NONE).await;
            if written == 0 && background {
                // Everything dirty is under way already: wait for some of it.
                sys.sleep(SECOND / 100).await;
            }
            if written == 0 {
                break;
            }
        }
    }
}
