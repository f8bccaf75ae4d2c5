//! The memory of a virtual machine: which files of it the server maps.
//!
//! If a mapped file has shrunk, the kernel kills the process that touches its lost pages (SIGBUS, mmap(2)). As one
//! machine must not end the disks of all others, its memory must be of files that no process can shrink (`F_SEAL_SHRINK`, fcntl(2)),
//! and of ordinary pages: the kernel may be out of huge pages when the server touches one for the first time.

use std::io;

use rustix::fs::{SealFlags, fcntl_get_seals, fstat, fstatfs};
use vm_memory::{FileOffset, GuestAddressSpace, GuestMemoryAtomic, GuestMemoryBackend};
use vm_memory::{GuestMemoryLoadGuard, GuestMemoryMmap, GuestMemoryRegion};

/// The guest's memory as it is while a request is in flight.
pub(super) type Memory = GuestMemoryLoadGuard<GuestMemoryMmap>;

/// Which memory a machine may bring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Only memory that cannot go away under the server.
    #[default]
    Sealed,
    /// Any: the machine may kill the server.
    Any,
}

impl Trust {
    /// From its name.
    ///
    /// # Errors
    /// With what is allowed.
    pub fn parse(text: &str) -> Result<Trust, String> {
        match text {
            "sealed" => Ok(Trust::Sealed),
            "any" => Ok(Trust::Any),
            _ => Err(format!("there is no guest_memory '{text}' (allowed: sealed, any)")),
        }
    }
}

/// A guest's memory: replaced as a whole when the machine changes it, and only by memory that was checked.
pub(super) struct Guest {
    checked: GuestMemoryAtomic<GuestMemoryMmap>,
    trust: Trust,
}

impl Guest {
    pub(super) fn new(trust: Trust) -> Guest {
        Guest { checked: GuestMemoryAtomic::new(GuestMemoryMmap::new()), trust }
    }

    pub(super) fn memory(&self) -> Memory {
        self.checked.memory()
    }

    /// Use `memory` from now on, or go on with what there was.
    pub(super) fn replace(&self, memory: &GuestMemoryMmap) -> io::Result<()> {
        if self.trust == Trust::Sealed {
            for region in memory.iter() {
                check(region.file_offset(), region.len()).map_err(io::Error::other)?;
            }
        }
        let lock = self.checked.lock().map_err(|_| io::Error::other("a thread has panicked"))?;
        lock.replace(memory.clone());
        Ok(())
    }
}

/// Will each of `bytes` of this file be there for as long as it is mapped?
fn check(file: Option<&FileOffset>, bytes: u64) -> Result<(), String> {
    let no = |why: &str| {
        format!("its memory {why}; use a sealed memfd of ordinary pages, or trust it: guest_memory = \"any\"")
    };
    let file = file.ok_or_else(|| no("is no file"))?;
    // Only a memfd has seals.
    let seals = fcntl_get_seals(file.file()).unwrap_or(SealFlags::empty());
    if !seals.contains(SealFlags::SHRINK) {
        return Err(no("is a file that can shrink"));
    }
    let pages = fstatfs(file.file()).map_err(|error| no(&format!("cannot be checked ({error})")))?;
    if pages.f_type as i64 != libc::TMPFS_MAGIC {
        return Err(no("has huge pages, of which the kernel may have too few"));
    }
    // Sealed first: its size cannot fall any more.
    let has = fstat(file.file()).map_err(|error| no(&format!("cannot be checked ({error})")))?.st_size;
    let needs = file.start().checked_add(bytes);
    if needs.is_none_or(|needs| u64::try_from(has).map_or(true, |has| has < needs)) {
        return Err(no("is larger than its file"));
    }
    Ok(())
}
