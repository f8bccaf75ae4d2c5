//! The operating system: what lies between a program's system call and the block layer.
//!
//! [`Sys`](crate::engine::Sys) has the system calls. Below them: open files and names, the page cache with readahead and
//! writeback, ext3 and ext4 with their journals, all by [kernel version](version). `docs/filesystems.md` says what
//! is modelled from which source, and what is not.

mod bio;
mod buffered;
mod cache;
mod calls;
pub mod controller;
mod direct;
mod ext;
mod extents;
mod files;
mod journal;
mod raw;
pub mod rq_qos;
pub mod version;
mod vfs;
mod writeback;

pub use cache::{Advice, ReadaheadState};
pub use direct::DirectIo;
pub use ext::{DataMode, Filesystem, FsKind, Mount};
pub(crate) use files::PAGE_SECTORS;
pub use files::{FileId, Layout, NoSpace, PAGE};
pub use journal::JournalStats;
pub use raw::RawIo;
pub use version::Rules;
pub use vfs::{Errno, Fallocate, Fd, OpenFlags, OpenSync};

use crate::engine::{Simulation, TaskId};
use crate::group::GroupTree;
use crate::scheduler::host::HostSettings;
use cache::PageCache;
use ext::Ext;
use fairlift_core::IoPrio;
use files::Files;
use writeback::{CgroupWriteback, FairWriteback, Writeback};

/// How much memory there is for pages, and how much of it may be dirty.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Memory {
    /// Page cache, bytes.
    pub cache_bytes: u64,
    /// Dirty pages above this are written in the background, percent of the cache (`vm.dirty_background_ratio`).
    pub background_percent: u32,
    /// Programs that dirty pages wait above this, percent (`vm.dirty_ratio`).
    pub dirty_percent: u32,
}

impl Default for Memory {
    /// 1 GiB; ratios of Linux since 2.6.30.
    fn default() -> Memory {
        Memory { cache_bytes: 1 << 30, background_percent: 10, dirty_percent: 20 }
    }
}

impl Memory {
    /// So much memory, with the ratios that kernel starts with.
    pub fn of(rules: &Rules, cache_bytes: u64) -> Memory {
        let (background_percent, dirty_percent) = rules.writeback.ratios;
        Memory { cache_bytes, background_percent, dirty_percent }
    }
}

/// State of the simulated kernel above the block layer.
#[derive(Debug)]
pub struct Kernel {
    pub(crate) rules: Rules,
    pub(crate) files: Files,
    pub(crate) cache: PageCache,
    pub(crate) vfs: vfs::Vfs,
    pub(crate) ext: Option<Ext>,
    pub(crate) writeback: Writeback,
}

/// What a run left behind in memory; all zero after `sync` and a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Leftovers {
    /// Dirty pages, metadata on its way home included.
    pub dirty_pages: u64,
    /// Pages in flight to the device.
    pub writing_pages: u64,
    /// Transactions that are not committed.
    pub transactions: usize,
    /// Metadata blocks that are in the log only.
    pub checkpoint_blocks: usize,
}

impl Kernel {
    /// A kernel of version `rules` for a device of `capacity_sectors` with `filesystem` on it.
    pub fn new(rules: Rules, memory: Memory, filesystem: Filesystem, capacity_sectors: u64) -> Kernel {
        let mut files = Files::new(capacity_sectors);
        let mut cache = PageCache::new(memory);
        cache.read_ahead_pages = rules.read_ahead_kib * 1024 / PAGE;
        let ext = match filesystem {
            Filesystem::Raw => None,
            Filesystem::Ext(mount) => {
                cache.add_file(capacity_sectors * 512);
                Some(Ext::new(mount, &rules, &mut files, capacity_sectors))
            }
        };
        let writeback = Writeback::new(&cache);
        Kernel { rules, files, cache, vfs: vfs::Vfs::default(), ext, writeback }
    }

    /// The run has these groups; `settings`: the group a buffered write belongs to, and whether writeback keeps to weights, with
    /// at most so many `writes` in the queue.
    pub(crate) fn use_groups(&mut self, tree: &GroupTree, settings: &HostSettings, writes: u64) {
        let by_cgroup = self.rules.writeback.by_cgroup;
        self.cache.use_groups(tree.slots(), settings.tracking(by_cgroup));
        if by_cgroup {
            self.writeback.cgroups = Some(CgroupWriteback::new(tree, self.cache.limits()));
        }
        if settings.fair_writeback() {
            self.writeback.fair = Some(FairWriteback::new(tree, self.cache.limits(), writes));
        }
    }

    /// Is there so much dirty that the flusher has to work: in all, or of a group when writeback keeps to weights?
    pub(crate) fn has_too_much_dirty(&self) -> bool {
        let of_group = |fair| writeback::has_group_over_background(fair, &self.cache);
        self.cache.over_background() || self.writeback.fair.as_ref().is_some_and(of_group)
    }

    /// Make a file of `bytes`, or find the one of that name: how things stand before a run, without I/O. On ext3 and ext4
    /// [`Layout::Fresh`] files start out empty.
    ///
    /// # Errors
    /// When the device is too small.
    pub fn create_file(&mut self, name: &str, bytes: u64, layout: Layout) -> Result<FileId, NoSpace> {
        if let Some(file) = self.files.find(name)
            && self.files.get(file).bytes >= bytes
        {
            return Ok(file);
        }
        let file = match &mut self.ext {
            Some(ext) if layout != Layout::Device => ext.lay_out(&mut self.files, name, bytes, layout)?,
            _ => self.files.create(name, bytes, layout)?,
        };
        self.cache.add_files_up_to(file);
        let bytes = self.files.get(file).bytes;
        self.cache.resize(file, bytes);
        Ok(file)
    }

    fn resize(&mut self, file: FileId, bytes: u64) {
        self.files.resize(file, bytes);
        self.cache.resize(file, bytes);
    }

    /// Are the file's pages written one bio each?
    fn writes_page_by_page(&self, file: FileId) -> bool {
        let Some(ext) = &self.ext else { return false };
        file == ext.bdev
            || (self.files.get(file).ext.is_some() && !self.rules.large_bios[ext.mount.kind as usize])
    }

    /// The page cache's I/O `io` is done: the tasks to wake.
    pub(crate) fn pages_done(&mut self, io: u32) -> Vec<TaskId> {
        let Some(mut end) = self.cache.io_done(io) else { return Vec::new() };
        if end.write {
            end.wake.extend(self.writeback.woken_by_writes());
        }
        if let Some(ext) = &mut self.ext
            && end.write
            && end.file == ext.bdev
        {
            for block in end.pages.clone() {
                // One that was changed on its way has to make it again.
                if !self.cache.is_page_dirty(end.file, block) {
                    ext.journal.block_is_home(block);
                }
            }
        }
        end.wake
    }

    /// Bytes that files can still get; without a file system those of the device behind the last file.
    pub fn free_bytes(&self) -> u64 {
        self.ext.as_ref().map_or_else(|| self.files.free_bytes(), |ext| ext.blocks_free() * PAGE)
    }

    /// What is on the device.
    pub fn filesystem(&self) -> Filesystem {
        self.ext.as_ref().map_or(Filesystem::Raw, |ext| Filesystem::Ext(ext.mount))
    }

    /// Its version.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The journal's counters; `None` without a journal.
    pub fn journal_stats(&self) -> Option<JournalStats> {
        self.ext.as_ref().map(|ext| ext.journal.stats())
    }

    /// Blocks of the journal's log: in use, and all.
    pub fn journal_log(&self) -> Option<(u64, u64)> {
        self.ext.as_ref().map(|ext| ext.journal.log_used())
    }

    /// What is not on the device yet.
    pub fn leftovers(&self) -> Leftovers {
        let [transactions, checkpoint_blocks, _] =
            self.ext.as_ref().map_or([0; 3], |ext| ext.journal.unfinished());
        Leftovers {
            dirty_pages: self.cache.dirty_pages(),
            writing_pages: self.cache.unwritten_pages() - self.cache.dirty_pages(),
            transactions,
            checkpoint_blocks,
        }
    }
}

/// Start the kernel's own threads.
pub fn start_daemons(simulation: &mut Simulation) {
    controller::worker::start(simulation);
    writeback::start(simulation);
    let kind = simulation.with_machine(|m| m.kernel.ext.as_ref().map(|ext| ext.mount.kind));
    let ext3_is_ext4 = simulation.with_machine(|m| m.kernel.rules.ext3_is_ext4);
    let (name, ioprio) = match kind {
        None => return,
        Some(FsKind::Ext3) if !ext3_is_ext4 => ("kjournald", IoPrio::DEFAULT),
        // journal_ioprio=3
        Some(_) => ("jbd2", IoPrio::BestEffort(3)),
    };
    let task = simulation.spawn_daemon(ioprio, journal::commit_thread);
    simulation.with_machine(|m| m.set_name(task, name));
}
