//! Files: names, sizes, and where their blocks lie on the device.

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

#[derive(Debug)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    first_sector: u64,
    /// For [`Layout::Fresh`]: block of the file -> block of its region plus one; 0 = not allocated.
    blocks: Option<Vec<u32>>,
    next_block: u32,
    grows: bool,
}

/// All files of one device.
#[derive(Debug)]
pub(crate) struct Files {
    files: Vec<File>,
    capacity_sectors: u64,
    next_sector: u64,
}

/// A run of sectors that belongs together on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) sector: u64,
    pub(crate) sectors: u64,
}

impl Files {
    pub(crate) fn new(capacity_sectors: u64) -> Files {
        Files { files: Vec::new(), capacity_sectors, next_sector: 0 }
    }

    pub(crate) fn find(&self, name: &str) -> Option<FileId> {
        self.files.iter().position(|f| f.name == name).map(FileId)
    }

    pub(crate) fn create(&mut self, name: &str, bytes: u64, layout: Layout) -> Result<FileId, NoSpace> {
        let sectors = bytes.div_ceil(PAGE) * PAGE_SECTORS;
        let grows = layout == Layout::Growing;
        let first_sector = if layout == Layout::Device || grows { 0 } else { self.next_sector };
        if first_sector + bytes.div_ceil(512) > self.capacity_sectors {
            return Err(NoSpace {
                wanted: (first_sector * 512).saturating_add(bytes),
                capacity: self.capacity_sectors * 512,
            });
        }
        if layout != Layout::Device && !grows {
            self.next_sector += sectors;
        }
        let blocks = (layout == Layout::Fresh || grows).then(|| vec![0; (sectors / PAGE_SECTORS) as usize]);
        self.files.push(File { name: name.to_owned(), bytes, first_sector, blocks, next_block: 0, grows });
        Ok(FileId(self.files.len() - 1))
    }

    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    pub(crate) fn get(&self, file: FileId) -> &File {
        &self.files[file.0]
    }

    /// Change a growing file's size.
    pub(crate) fn resize(&mut self, file: FileId, bytes: u64) {
        let file = &mut self.files[file.0];
        file.bytes = bytes;
        if let Some(blocks) = &mut file.blocks {
            blocks.resize(bytes.div_ceil(PAGE) as usize, 0);
        }
    }

    /// Give a file another name; an empty one makes it unreachable.
    pub(crate) fn set_name(&mut self, file: FileId, name: &str) {
        self.files[file.0].name = name.to_owned();
    }

    /// The runs on the device of `sectors` sectors from `sector` of the file, appended to `runs`. With `allocate` missing blocks
    /// get a place; without, they are skipped (a hole reads as zeros without I/O).
    pub(crate) fn map(
        &mut self,
        file: FileId,
        sector: u64,
        sectors: u64,
        allocate: bool,
        runs: &mut Vec<Run>,
    ) {
        let file = &mut self.files[file.0];
        let first = file.first_sector;
        let Some(blocks) = &mut file.blocks else {
            runs.push(Run { sector: first + sector, sectors });
            return;
        };
        let mut at = sector;
        while at < sector + sectors {
            let block = (at / PAGE_SECTORS) as usize;
            let within = at % PAGE_SECTORS;
            let length = (PAGE_SECTORS - within).min(sector + sectors - at);
            if blocks[block] == 0 && allocate {
                if file.grows {
                    blocks[block] = (self.next_sector / PAGE_SECTORS) as u32 + 1;
                    self.next_sector += PAGE_SECTORS;
                } else {
                    file.next_block += 1;
                    blocks[block] = file.next_block;
                }
            }
            if blocks[block] != 0 {
                let place = first + u64::from(blocks[block] - 1) * PAGE_SECTORS + within;
                match runs.last_mut() {
                    Some(run) if run.sector + run.sectors == place => run.sectors += length,
                    _ => runs.push(Run { sector: place, sectors: length }),
                }
            }
            at += length;
        }
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
