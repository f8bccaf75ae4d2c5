//! The operating system: what lies between a program's system call and the block layer.
//!
//! Direct I/O, and a simple page cache with readahead and writeback. File systems' metadata and journals are not modelled
//! yet (see `docs/models.md`).

mod cache;
mod calls;
mod files;
mod syscalls;
pub mod version;
mod vfs;

pub use files::{FileId, Layout, NoSpace, PAGE};
pub use syscalls::{DirectIo, ReadaheadState};
pub use version::Rules;
pub use vfs::{Errno, Fd, OpenFlags, OpenSync};

use crate::engine::{Simulation, TaskId};
use cache::PageCache;
use fairlift_core::IoPrio;
use files::Files;

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

/// State of the simulated kernel above the block layer.
#[derive(Debug)]
pub struct Kernel {
    pub(crate) rules: Rules,
    pub(crate) files: Files,
    pub(crate) cache: PageCache,
    pub(crate) vfs: vfs::Vfs,
}

impl Kernel {
    /// A kernel of version `rules` for a device of `capacity_sectors`.
    pub fn new(rules: Rules, memory: Memory, capacity_sectors: u64) -> Kernel {
        Kernel {
            rules,
            files: Files::new(capacity_sectors),
            cache: PageCache::new(memory),
            vfs: vfs::Vfs::default(),
        }
    }

    /// Make a file of `bytes`, or find the one of that name.
    ///
    /// # Errors
    /// When the device is too small.
    pub fn create_file(&mut self, name: &str, bytes: u64, layout: Layout) -> Result<FileId, NoSpace> {
        if let Some(file) = self.files.find(name)
            && self.files.get(file).bytes >= bytes
        {
            return Ok(file);
        }
        let file = self.files.create(name, bytes, layout)?;
        self.cache.add_file(bytes);
        Ok(file)
    }

    pub(crate) fn resize(&mut self, file: FileId, bytes: u64) {
        self.files.resize(file, bytes);
        self.cache.resize(file, bytes);
    }

    /// The page cache's I/O `io` is done: whom to wake.
    pub(crate) fn pages_done(&mut self, io: u32) -> Vec<TaskId> {
        self.cache.io_done(io)
    }
}

/// Start the kernel's own threads.
pub fn start_daemons(simulation: &mut Simulation) {
    simulation.spawn_daemon(IoPrio::DEFAULT, syscalls::flusher);
}
