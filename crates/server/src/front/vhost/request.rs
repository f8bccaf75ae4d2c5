//! A request of virtio-blk (virtio 1.2, 5.2.6): 16 bytes of header, data, and a byte for its status, in a chain of descriptors.

use std::io;

use super::chain::Chain;
use crate::io::{Action, Fault, Io};

/// Length of a request's header, bytes.
const HEADER_BYTES: usize = 16;
/// Length of the answer to [`Kind::Name`], bytes.
const NAME_BYTES: usize = 20;
/// Length of the range of a discard or zeroing, bytes.
const RANGE_BYTES: usize = 16;

/// Statuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Status {
    Ok = 0,
    IoError = 1,
    Unsupported = 2,
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Status {
        if fault == Fault::NotSupported { Status::Unsupported } else { Status::IoError }
    }
}

/// What a request asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// This on bytes of the disk.
    Do { action: Action, offset: u64, bytes: u32 },
    /// What the disk is called.
    Name,
}

/// A request in flight.
pub(super) struct Request {
    pub(super) chain: Chain,
    pub(super) bytes: u32,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// What `chain` asks for, at most `most` bytes of data.
///
/// # Errors
/// The status to answer with, or `None`: it has not even a place for that.
pub(super) fn parse(chain: &Chain, most: u32) -> Result<Kind, Option<Status>> {
    let (reads, writes) = chain.lengths();
    let data = writes.checked_sub(1).ok_or(None)?;
    let wrong = Some(Status::IoError);
    let mut header = [0; HEADER_BYTES];
    let mut reader = chain.reader();
    reader.read_exact(&mut header).map_err(|_| wrong)?;
    let out = reads - header.len() as u64;
    let offset = u64_at(&header, 8).checked_mul(512).ok_or(wrong)?;
    let whole = |bytes: u64| {
        let whole = bytes > 0 && bytes <= u64::from(most) && bytes.is_multiple_of(512);
        u32::try_from(bytes).ok().filter(|_| whole).ok_or(wrong)
    };
    match u32_at(&header, 0) {
        0 => Ok(Kind::Do { action: Action::Read, offset, bytes: whole(data)? }),
        1 => Ok(Kind::Do { action: Action::Write, offset, bytes: whole(out)? }),
        4 => Ok(Kind::Do { action: Action::Flush, offset: 0, bytes: 0 }),
        8 if data >= NAME_BYTES as u64 => Ok(Kind::Name),
        kind @ (11 | 13) if out == RANGE_BYTES as u64 => {
            let mut range = [0; RANGE_BYTES];
            reader.read_exact(&mut range).map_err(|_| wrong)?;
            let (sectors, flags) = (u32_at(&range, 8), u32_at(&range, 12));
            let unmap = flags & 1 != 0;
            // Unknown flags, and a discard with the flag of zeroing, are for the device to refuse (5.2.6.2).
            if flags > 1 || (kind == 11 && unmap) {
                return Err(Some(Status::Unsupported));
            }
            let action = if kind == 11 { Action::Trim } else { Action::Zero { punch: unmap, fast: false } };
            let bytes = sectors.checked_mul(512).ok_or(wrong)?;
            Ok(Kind::Do { action, offset: u64_at(&range, 0).checked_mul(512).ok_or(wrong)?, bytes })
        }
        8 | 11 | 13 => Err(wrong),
        _ => Err(Some(Status::Unsupported)),
    }
}

/// Fill a write's parts from the guest's memory.
pub(super) fn fetch(chain: &Chain, parts: &mut [Box<Io>]) -> io::Result<()> {
    let mut reader = chain.reader();
    reader.read_exact(&mut [0; HEADER_BYTES])?;
    parts.iter_mut().try_for_each(|io| reader.read_exact(&mut io.data))
}

/// The answer to [`Kind::Name`]: at most 20 bytes, filled up with zeroes.
pub(super) fn name(export: &str) -> [u8; NAME_BYTES] {
    let mut out = [0; NAME_BYTES];
    let len = export.len().min(NAME_BYTES);
    out[..len].copy_from_slice(&export.as_bytes()[..len]);
    out
}
