//! Which disk is meant.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use fairlift_trace::DeviceNumber;

use crate::error::Failure;

/// Where the kernel lists block devices.
const CLASS: &str = "/sys/class/block";
const BY_NUMBER: &str = "/sys/dev/block";

/// A whole disk.
#[derive(Debug)]
pub struct BlockDevice {
    name: String,
    number: DeviceNumber,
    /// What was asked for, if that is a part of it.
    part: Option<String>,
}

impl BlockDevice {
    /// Its number.
    pub fn number(&self) -> DeviceNumber {
        self.number
    }

    /// In words.
    pub fn describe(&self) -> String {
        match &self.part {
            Some(part) => format!("{} (the whole disk below {part})", self.name),
            None => self.name.clone(),
        }
    }
}

/// The disk called `text`, of that device file, or below that path.
pub fn find(text: &str) -> Result<BlockDevice, Failure> {
    let fail = |what: String| {
        let names = fs::read_dir(CLASS).map(|entries| {
            let mut names: Vec<String> =
                entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names.join(", ")
        });
        Failure::new(what).at("--device").help(format!("block devices here: {}", names.unwrap_or_default()))
    };
    let by_name = Path::new(CLASS).join(text);
    let folder = if !text.contains('/') && by_name.is_dir() {
        by_name
    } else {
        let meta = fs::metadata(text).map_err(|_| fail(format!("there is no device or path '{text}'")))?;
        let number = if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() };
        let (major, minor) = (number >> 8 & 0xfff, number & 0xff | number >> 12 & 0xfff00);
        let by_number = Path::new(BY_NUMBER).join(format!("{major}:{minor}"));
        if !by_number.is_dir() {
            return Err(fail(format!("no block device lies below '{text}' (device {major}:{minor})")));
        }
        by_number
    };
    let folder = fs::canonicalize(&folder).map_err(|e| fail(format!("cannot look at '{text}': {e}")))?;
    // The kernel's events are those of whole disks, whatever the partition.
    let is_partition = folder.join("partition").exists();
    let disk: PathBuf = if is_partition { folder.parent().unwrap_or(&folder).to_owned() } else { folder };
    let name = disk.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let number = fs::read_to_string(disk.join("dev")).ok().and_then(|text| parsed(&text));
    let number = number.ok_or_else(|| fail(format!("'{text}' has no device number")))?;
    let part = (text != name && text != format!("/dev/{name}")).then(|| text.to_owned());
    Ok(BlockDevice { name, number, part })
}

/// `8:0`
fn parsed(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.trim().split_once(':')?;
    DeviceNumber::new(major.parse().ok()?, minor.parse().ok()?)
}
