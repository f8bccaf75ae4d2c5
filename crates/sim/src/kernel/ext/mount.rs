//! Which file system, and how it is mounted.

use crate::device::rng::Rng;
use crate::kernel::version::Rules;
use crate::kernel::vfs::Fallocate;

/// The kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FsKind {
    /// ext3 over jbd.
    Ext3,
    /// ext4 over jbd2, with extents and delayed allocation.
    Ext4,
}

/// What a commit waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DataMode {
    /// The data of the files it makes visible.
    Ordered,
    /// Nothing.
    Writeback,
}

/// How an ext3 or ext4 is mounted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mount {
    /// Kind.
    pub kind: FsKind,
    /// `data=`.
    pub data: DataMode,
    /// `barrier=`: does a commit order itself and flush the device's cache?
    pub barrier: bool,
    /// `fast_commit=1`: fsync writes what changed into an area of the journal's end, if the kernel can (ext4).
    pub fast_commit: bool,
    /// Size of the file system, bytes; `None`: the whole device.
    pub size_bytes: Option<u64>,
    /// Blocks of the journal; `None`: as mke2fs would.
    pub journal_blocks: Option<u64>,
    /// Part of the index blocks that are always in memory, percent: all of them (`metadata=cached`), none (`metadata=cold`), or some
    /// (`metadata=90%`), drawn once. The others are read from the disk when they are needed, if their file was there before the run or
    /// they were evicted.
    pub metadata_cached: u8,
}

/// What is on the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Filesystem {
    /// No file system: files are stretches of the device, without metadata.
    #[default]
    Raw,
    /// ext3 or ext4.
    Ext(Mount),
}

impl Filesystem {
    /// Can it do this `fallocate`, in kernel `rules`? ext3 of its own code has none, and punching holes came with Linux 3.0.
    pub fn allocates(self, rules: &Rules, mode: Fallocate) -> bool {
        match self {
            Filesystem::Raw => false,
            Filesystem::Ext(mount) => {
                let extents = mount.kind == FsKind::Ext4 || rules.ext3_is_ext4;
                extents && (mode != Fallocate::Punch || rules.ext4_punches_holes)
            }
        }
    }

    /// Does kernel `rules` know all that it is mounted with?
    ///
    /// # Errors
    /// What it does not know.
    pub fn check(self, rules: &Rules) -> Result<(), String> {
        match self {
            Filesystem::Ext(mount) if mount.fast_commit && !rules.ext4_fast_commits => {
                Err(format!("fast_commit=1: Linux {} has no fast commits; 6.12 has them", rules.version))
            }
            _ => Ok(()),
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Filesystem::Raw => "raw",
            Filesystem::Ext(Mount { kind: FsKind::Ext3, .. }) => "ext3",
            Filesystem::Ext(Mount { kind: FsKind::Ext4, .. }) => "ext4",
        }
    }

    /// Read a name (`raw`, `ext3`, `ext4`) and mount options (`data=ordered,barrier=0`). Defaults: ordered, barriers on ext4 only.
    ///
    /// # Errors
    /// A sentence that names the wrong word and what is allowed.
    pub fn parse(name: &str, options: &str) -> Result<Filesystem, String> {
        let kind = match name {
            "raw" if options.is_empty() => return Ok(Filesystem::Raw),
            "raw" => return Err("mount options need a file system: ext3 or ext4".to_owned()),
            "ext3" => FsKind::Ext3,
            "ext4" => FsKind::Ext4,
            _ => return Err(format!("unknown file system '{name}' (allowed: raw, ext3, ext4)")),
        };
        let mut mount = Mount {
            kind,
            data: DataMode::Ordered,
            barrier: kind == FsKind::Ext4,
            fast_commit: false,
            size_bytes: None,
            journal_blocks: None,
            metadata_cached: 100,
        };
        for option in options.split(',').map(str::trim).filter(|o| !o.is_empty()) {
            mount.set(option)?;
        }
        Ok(Filesystem::Ext(mount))
    }
}

impl Mount {
    /// Is this index block always in memory?
    pub(super) fn keeps(&self, block: u64) -> bool {
        Rng::new(block).below(100) < u64::from(self.metadata_cached)
    }

    fn set(&mut self, option: &str) -> Result<(), String> {
        let wrong = || {
            format!(
                "unknown mount option '{option}' (allowed: data=ordered, data=writeback, barrier=0, barrier=1, fast_commit=0, fast_commit=1, metadata=cached, metadata=cold, metadata=N%, size_mib=N)"
            )
        };
        match option.split_once('=').ok_or_else(wrong)? {
            ("data", "ordered") => self.data = DataMode::Ordered,
            ("data", "writeback") => self.data = DataMode::Writeback,
            ("barrier", "0") => self.barrier = false,
            ("barrier", "1") => self.barrier = true,
            ("fast_commit", "0") => self.fast_commit = false,
            ("fast_commit", "1") if self.kind == FsKind::Ext4 => self.fast_commit = true,
            ("fast_commit", "1") => return Err("fast_commit=1: ext3 has none, ext4 has".to_owned()),
            ("metadata", "cold") => self.metadata_cached = 0,
            ("metadata", "cached") => self.metadata_cached = 100,
            ("metadata", part) => match part.strip_suffix('%').and_then(|percent| percent.parse().ok()) {
                Some(percent @ 0..=100) => self.metadata_cached = percent,
                _ => return Err(format!("metadata={part}: must be cached, cold, or 0% to 100%")),
            },
            ("size_mib", mib) => match mib.parse::<u64>() {
                Ok(mib) if (64..=1 << 24).contains(&mib) => self.size_bytes = Some(mib << 20),
                _ => return Err(format!("size_mib={mib}: must be 64 to 16777216")),
            },
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_named() {
        let Ok(Filesystem::Ext(mount)) = Filesystem::parse("ext3", "data=writeback, barrier=1") else {
            panic!()
        };
        assert_eq!((mount.data, mount.barrier), (DataMode::Writeback, true));
        let Ok(Filesystem::Ext(mount)) = Filesystem::parse("ext4", "") else { panic!() };
        assert_eq!((mount.data, mount.barrier), (DataMode::Ordered, true));
        assert!(Filesystem::parse("ext4", "data=journal").unwrap_err().contains("data=journal"));
        assert!(Filesystem::parse("xfs", "").unwrap_err().contains("allowed: raw, ext3, ext4"));
        assert!(Filesystem::parse("raw", "barrier=0").is_err());
        assert!(Filesystem::parse("ext4", "size_mib=1").unwrap_err().contains("64"));
    }
}
