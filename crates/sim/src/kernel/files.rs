//! Files: names, sizes, and where their blocks lie on the device.

use std::collections::BTreeMap;

use super::ext::ExtInode;
use super::extents::Extents;

/// Bytes in a page and in a file system block.
pub const PAGE: u64 = 4096;
/// Sectors in a page.
pub const PAGE_SECTORS: u64 = PAGE / 512;

/// A file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FileId(pub(crate) usize);

/// Where a file's blocks come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Layout {
    /// The whole device, as `filename=/dev/sdb` names it.
    Device,
    /// Written out in full before the run: one extent.
    Preallocated,
    /// Sparse: a block gets its place when it is first written, next to the one written before it. What ext3 and ext4 do
    /// for a file that was only truncated to its size; scattered writes then lie in a row on the disk.
    Fresh,
    /// As [`Layout::Fresh`], for a file that grows: its blocks come from the device's free space one by one.
    Growing,
}

/// Why a file cannot be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoSpace {
    /// Bytes asked for, all files so far included.
    pub wanted: u64,
    /// Bytes the device has.
    pub capacity: u64,
}

/// How blocks of a file become blocks of the device.
#[derive(Debug)]
pub(crate) enum Place {
    /// One behind the other from this sector on.
    Contiguous(u64),
    /// Block by block in the order of writing: within `region` (first block, next free one), or from all free space.
    Written { blocks: Extents, region: Option<(u64, u64)> },
    /// As the file system allocated them.
    Allocated(Extents),
}

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) bytes: u64,
    pub(crate) place: Place,
    /// Has it a name?
    pub(crate) linked: bool,
    /// How often it is open.
    pub(crate) opens: u32,
    /// What ext3 and ext4 know of it.
    pub(crate) ext: Option<ExtInode>,
}

/// All files of one device.
#[derive(Debug)]
pub(crate) struct Files {
    files: Vec<File>,
    by_name: BTreeMap<String, FileId>,
    capacity_sectors: u64,
    /// Without a file system, space is handed out from the start of the device on.
    next_sector: u64,
    /// Room for the runs of the next direct I/O.
    room: Vec<Run>,
}

/// A run of sectors that belongs together on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) sector: u64,
    pub(crate) sectors: u64,
}

impl Files {
    pub(crate) fn new(capacity_sectors: u64) -> Files {
        Files {
            files: Vec::new(),
            by_name: BTreeMap::new(),
            capacity_sectors,
            next_sector: 0,
            room: Vec::new(),
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<FileId> {
        self.by_name.get(name).copied()
    }

    /// A file without a file system.
    pub(crate) fn create(&mut self, name: &str, bytes: u64, layout: Layout) -> Result<FileId, NoSpace> {
        let sectors = bytes.div_ceil(PAGE) * PAGE_SECTORS;
        let first = if layout == Layout::Device { 0 } else { self.next_sector };
        if first + bytes.div_ceil(512) > self.capacity_sectors {
            return Err(NoSpace {
                wanted: (first * 512).saturating_add(bytes),
                capacity: self.capacity_sectors * 512,
            });
        }
        let place = match layout {
            Layout::Device | Layout::Preallocated => Place::Contiguous(first),
            Layout::Fresh => Place::Written {
                blocks: Extents::default(),
                region: Some((first / PAGE_SECTORS, first / PAGE_SECTORS)),
            },
            Layout::Growing => Place::Written { blocks: Extents::default(), region: None },
        };
        if matches!(layout, Layout::Preallocated | Layout::Fresh) {
            self.next_sector += sectors;
        }
        let file = self.add(place, bytes);
        self.link(name, file);
        Ok(file)
    }

    /// A file without a name.
    pub(crate) fn add(&mut self, place: Place, bytes: u64) -> FileId {
        self.files.push(File { bytes, place, linked: false, opens: 0, ext: None });
        FileId(self.files.len() - 1)
    }

    /// Give a file a name.
    pub(crate) fn link(&mut self, name: &str, file: FileId) {
        self.by_name.insert(name.to_owned(), file);
        self.files[file.0].linked = true;
    }

    /// Take a name away.
    pub(crate) fn unlink(&mut self, name: &str) {
        if let Some(file) = self.by_name.remove(name) {
            self.files[file.0].linked = false;
        }
    }

    /// Change a file's size; what a file without a file system had beyond it becomes a hole.
    pub(crate) fn resize(&mut self, file: FileId, bytes: u64) {
        let file = &mut self.files[file.0];
        if bytes < file.bytes
            && let Place::Written { blocks, .. } = &mut file.place
        {
            blocks.truncate(bytes.div_ceil(PAGE));
        }
        file.bytes = bytes;
    }

    pub(crate) fn get(&self, file: FileId) -> &File {
        &self.files[file.0]
    }

    pub(crate) fn get_mut(&mut self, file: FileId) -> &mut File {
        &mut self.files[file.0]
    }

    /// An empty list of runs, to be given back by [`Files::keep_room`]: an I/O need not allocate one.
    pub(crate) fn take_room(&mut self) -> Vec<Run> {
        std::mem::take(&mut self.room)
    }

    /// `runs` are not needed any more.
    pub(crate) fn keep_room(&mut self, mut runs: Vec<Run>) {
        runs.clear();
        self.room = runs;
    }

    /// The first sector on the device of some bytes that are there, of a file without a file system that lies in one piece.
    #[inline]
    pub(crate) fn only_run(&self, file: FileId, offset: u64, bytes: u64) -> Option<u64> {
        let file = &self.files[file.0];
        let Place::Contiguous(first) = file.place else { return None };
        let is_there = bytes > 0 && offset + bytes <= file.bytes && file.ext.is_none();
        is_there.then(|| first + offset / 512)
    }

    /// The runs on the device of `sectors` sectors from `sector` of the file, appended to `runs`. Holes are skipped (they read as
    /// zeros without I/O); with `allocate` those of a file without a file system get a place.
    pub(crate) fn map(
        &mut self,
        file: FileId,
        sector: u64,
        sectors: u64,
        allocate: bool,
        runs: &mut Vec<Run>,
    ) {
        if allocate {
            self.place_holes(file, sector, sectors);
        }
        let extents = match &self.files[file.0].place {
            Place::Contiguous(first) => {
                runs.push(Run { sector: first + sector, sectors });
                return;
            }
            Place::Written { blocks, .. } => blocks,
            Place::Allocated(blocks) => blocks,
        };
        let end = sector + sectors;
        let mut at = sector;
        while at < end {
            let (block, within) = (at / PAGE_SECTORS, at % PAGE_SECTORS);
            let (place, blocks) = extents.run_at(block, end.div_ceil(PAGE_SECTORS) - block);
            let length = (blocks * PAGE_SECTORS - within).min(end - at);
            if let Some(place) = place {
                let place = place * PAGE_SECTORS + within;
                match runs.last_mut() {
                    Some(run) if run.sector + run.sectors == place => run.sectors += length,
                    _ => runs.push(Run { sector: place, sectors: length }),
                }
            }
            at += length;
        }
    }

    fn place_holes(&mut self, file: FileId, sector: u64, sectors: u64) {
        let Place::Written { blocks, region } = &mut self.files[file.0].place else { return };
        let end = (sector + sectors).div_ceil(PAGE_SECTORS);
        let mut at = sector / PAGE_SECTORS;
        while at < end {
            let (place, length) = blocks.run_at(at, end - at);
            if place.is_none() {
                let first = match region {
                    Some((_, next)) => {
                        *next += length;
                        *next - length
                    }
                    None => {
                        self.next_sector += length * PAGE_SECTORS;
                        self.next_sector / PAGE_SECTORS - length
                    }
                };
                blocks.insert(at, first, length);
            }
            at += length;
        }
    }

    /// What no file has, bytes.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.capacity_sectors.saturating_sub(self.next_sector) * 512
    }

    /// Is there room for a file without a file system to grow to `bytes`?
    pub(crate) fn has_room(&self, file: FileId, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.files[file.0].bytes).div_ceil(512);
        self.next_sector + more <= self.capacity_sectors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(files: &mut Files, file: FileId, sector: u64, sectors: u64, allocate: bool) -> Vec<(u64, u64)> {
        let mut runs = Vec::new();
        files.map(file, sector, sectors, allocate, &mut runs);
        runs.into_iter().map(|r| (r.sector, r.sectors)).collect()
    }

    #[test]
    fn preallocated_files_lie_one_behind_the_other() {
        let mut files = Files::new(10_000);
        let a = files.create("a", 8192, Layout::Preallocated).unwrap();
        let b = files.create("b", 5000, Layout::Preallocated).unwrap();
        assert_eq!(runs(&mut files, a, 8, 8, false), [(8, 8)]);
        assert_eq!(runs(&mut files, b, 0, 9, false), [(16, 9)]);
        let c = files.create("c", 1, Layout::Preallocated).unwrap();
        assert_eq!(runs(&mut files, c, 0, 1, false), [(32, 1)], "5000 bytes take two blocks");
    }

    #[test]
    fn fresh_files_are_laid_out_in_the_order_of_writing() {
        let mut files = Files::new(10_000);
        let f = files.create("f", 10 * PAGE, Layout::Fresh).unwrap();
        assert_eq!(runs(&mut files, f, 56, 8, true), [(0, 8)], "block 7 is written first");
        assert_eq!(runs(&mut files, f, 16, 16, true), [(8, 16)]);
        assert_eq!(runs(&mut files, f, 56, 8, true), [(0, 8)], "and stays where it is");
        assert_eq!(runs(&mut files, f, 48, 16, false), [(0, 8)], "block 6 is a hole");
    }

    #[test]
    fn a_device_that_is_too_small_says_so() {
        let mut files = Files::new(100);
        let error = files.create("f", 100 * 512 + 1, Layout::Preallocated).unwrap_err();
        assert_eq!(error, NoSpace { wanted: 51_201, capacity: 51_200 });
    }
}
