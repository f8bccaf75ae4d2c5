//! A request of the kernel, and its answer (`UBLK_IO_OP_`, `UBLK_IO_F_`).

use crate::io::{Action, Fault};
use crate::uring::ublk::Descriptor;

const FUA: u32 = 1 << 13;
const NO_UNMAP: u32 = 1 << 15;

/// What the kernel asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wish {
    pub(super) action: Action,
    pub(super) fua: bool,
    pub(super) offset: u64,
    pub(super) bytes: u32,
}

/// What `descriptor` asks for.
///
/// # Errors
/// An operation that the disk did not offer, or a range that no disk has.
pub(super) fn parse(descriptor: Descriptor) -> Result<Wish, Fault> {
    let Descriptor { op_flags, sectors, start_sector } = descriptor;
    let action = match op_flags & 0xff {
        0 => Action::Read,
        1 => Action::Write,
        2 => return Ok(Wish { action: Action::Flush, fua: false, offset: 0, bytes: 0 }),
        3 => Action::Trim,
        5 => Action::Zero { punch: op_flags & NO_UNMAP == 0, fast: false },
        _ => return Err(Fault::NotSupported),
    };
    let range = start_sector.checked_mul(512).zip(sectors.checked_mul(512));
    let (offset, bytes) = range.ok_or(Fault::Invalid)?;
    Ok(Wish { action, fua: op_flags & FUA != 0, offset, bytes })
}

/// The number of an error.
pub(super) fn errno(fault: Fault) -> i32 {
    match fault {
        Fault::Io => libc::EIO,
        Fault::NoSpace => libc::ENOSPC,
        Fault::NotSupported => libc::EOPNOTSUPP,
        Fault::ReadOnly => libc::EROFS,
        Fault::Invalid => libc::EINVAL,
    }
}

/// Where the data of a request is in the character device (`UBLKSRV_IO_BUF_OFFSET`, `UBLK_TAG_OFF`, `UBLK_QID_OFF`).
pub(super) fn place(queue: u16, tag: u16) -> u64 {
    0x8000_0000 + (u64::from(queue) << 41) + (u64::from(tag) << 25)
}
