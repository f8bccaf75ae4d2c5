//! Which part of which file a process works on.

use crate::build::is_device;
use crate::job::Job;
use crate::values::Amount;

/// One file as a process sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSpace {
    /// Its path.
    pub path: String,
    /// Its size, bytes. A regular file is as large as the job needs it.
    pub total_bytes: u64,
    /// Where the process's part begins, bytes.
    pub offset_bytes: u64,
    /// How long that part is, bytes.
    pub part_bytes: u64,
}

/// All files of a process, and how much it does in total.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// In the order of service.
    pub files: Vec<FileSpace>,
    /// One pass over all parts, bytes (fio: `size`).
    pub pass_bytes: u64,
    /// Amount asked for by `io_size`, bytes; 0: same as a pass.
    pub io_size_bytes: u64,
}

impl Layout {
    /// Lays out the files of a process.
    ///
    /// `existing`: size of a device, or of a file that is already there, bytes; `None`: not there.
    ///
    /// # Errors
    /// A sentence: the device is not there or too small, the offset lies behind the end, a part is smaller than a block.
    pub fn new(
        job: &Job,
        paths: &[&str],
        clone_number: u32,
        existing: &dyn Fn(&str) -> Option<u64>,
    ) -> Result<Self, String> {
        let min_block = job.min_block_bytes();
        let size = match job.extent.size {
            Some(Amount::Bytes(bytes)) => bytes,
            _ => 0,
        };
        let per_file = size / paths.len().max(1) as u64;
        let mut blocks_left_over = (size - per_file * paths.len() as u64) / min_block;
        let mut layout = Self { files: Vec::with_capacity(paths.len()), pass_bytes: 0, io_size_bytes: 0 };
        for path in paths {
            let found = existing(path);
            if is_device(path) && found.is_none() {
                return Err(format!("job '{}': size of device {path} is not known", job.name));
            }
            let real = found.unwrap_or(0);
            let offset = start_offset(job, clone_number, real.max(job.files.file_bytes));
            let behind = || {
                format!("job '{}': offset {offset} lies behind the end of {path} ({real} bytes)", job.name)
            };
            let mut part = match (job.files.file_bytes, per_file) {
                (0, 0) => real.checked_sub(offset).ok_or_else(behind)?,
                (0, _) => {
                    let extra = if blocks_left_over > 0 { min_block } else { 0 };
                    blocks_left_over = blocks_left_over.saturating_sub(1);
                    per_file + extra
                }
                (fixed, _) => fixed.checked_sub(offset).ok_or_else(behind)?,
            };
            if let Some(Amount::Percent(percent)) =
                job.extent.size.filter(|&size| size != Amount::Percent(100))
            {
                let whole = part + offset;
                part = Amount::Percent(percent).of(whole).min(whole - offset);
                part -= part % min_block;
            }
            let end = offset.checked_add(part).ok_or_else(behind)?;
            if is_device(path) && end > real {
                return Err(format!("job '{}' needs {end} bytes of {path}, which has {real}", job.name));
            }
            let of_amount = match job.extent.io_size {
                Some(Amount::Percent(percent)) => Amount::Percent(percent).of(part),
                _ => part,
            };
            layout.pass_bytes = layout.pass_bytes.saturating_add(of_amount);
            layout.files.push(FileSpace {
                path: (*path).to_owned(),
                total_bytes: real.max(end),
                offset_bytes: offset,
                part_bytes: part,
            });
        }
        if size > 0 && size < layout.pass_bytes {
            layout.pass_bytes = size;
        }
        if let Some(Amount::Bytes(bytes)) = job.extent.io_size {
            layout.io_size_bytes = bytes;
        }
        if layout.pass_bytes < min_block {
            return Err(format!(
                "job '{}': a block of {min_block} bytes is larger than its {} bytes of data",
                job.name, layout.pass_bytes
            ));
        }
        Ok(layout)
    }
}

/// `offset` plus `offset_increment` per clone; percentages are rounded up to a block.
fn start_offset(job: &Job, clone_number: u32, file_bytes: u64) -> u64 {
    let extent = &job.extent;
    let increment = extent.offset_increment.of(file_bytes).saturating_mul(u64::from(clone_number));
    let offset = extent.offset.of(file_bytes).saturating_add(increment);
    let percent = |amount| matches!(amount, Amount::Percent(1..));
    if !percent(extent.offset) && !percent(extent.offset_increment) {
        return offset;
    }
    let align = if extent.offset_align_bytes > 0 { extent.offset_align_bytes } else { job.min_block_bytes() };
    offset.div_ceil(align).saturating_mul(align)
}
