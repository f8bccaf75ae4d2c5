//! A request of virtio-blk (virtio 1.2, 5.2.6): 16 bytes of header, data, and a byte for its status, in a chain of descriptors.

use std::io::{self, Read, Write};

use virtio_queue::DescriptorChain;

use super::memory::Memory;
use crate::io::{Action, Fault, Io};

/// A request's descriptors.
pub(super) type Chain = DescriptorChain<Memory>;

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

fn broken<E: std::fmt::Display>(error: E) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// Bytes that the driver reads and writes: all data has to be there.
fn lengths(chain: &Chain) -> io::Result<(usize, usize)> {
    let memory = chain.memory();
    let reads = chain.clone().reader(memory).map_err(broken)?.available_bytes();
    let writes = chain.clone().writer(memory).map_err(broken)?.available_bytes();
    Ok((reads, writes))
}

/// What `chain` asks for, at most `most` bytes of data.
///
/// # Errors
/// The status to answer with, or `None`: it has not even a place for that.
pub(super) fn parse(chain: &Chain, most: usize) -> Result<Kind, Option<Status>> {
    let (reads, writes) = lengths(chain).map_err(|_| None)?;
    if writes == 0 {
        return Err(None);
    }
    let wrong = Some(Status::IoError);
    let mut header = [0; 16];
    let mut reader = chain.clone().reader(chain.memory()).map_err(|_| wrong)?;
    reader.read_exact(&mut header).map_err(|_| wrong)?;
    // The guest may change a chain while it is looked at.
    let (out, data) = (reads.checked_sub(header.len()).ok_or(wrong)?, writes - 1);
    let offset = u64_at(&header, 8).checked_mul(512).ok_or(wrong)?;
    let whole = |bytes: usize| {
        let whole = bytes > 0 && bytes <= most && bytes.is_multiple_of(512);
        u32::try_from(bytes).ok().filter(|_| whole).ok_or(wrong)
    };
    match u32_at(&header, 0) {
        0 => Ok(Kind::Do { action: Action::Read, offset, bytes: whole(data)? }),
        1 => Ok(Kind::Do { action: Action::Write, offset, bytes: whole(out)? }),
        4 => Ok(Kind::Do { action: Action::Flush, offset: 0, bytes: 0 }),
        8 if data >= NAME_BYTES => Ok(Kind::Name),
        kind @ (11 | 13) if out == RANGE_BYTES => {
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
    let mut reader = chain.clone().reader(chain.memory()).map_err(broken)?;
    reader.read_exact(&mut [0; 16])?;
    parts.iter_mut().try_for_each(|io| reader.read_exact(&mut io.data))
}

/// Write data and status to the guest's memory; how many bytes of it were written.
pub(super) fn answer<'a>(
    chain: &Chain,
    data: impl Iterator<Item = &'a [u8]>,
    status: Status,
) -> io::Result<u32> {
    let mut writer = chain.clone().writer(chain.memory()).map_err(broken)?;
    // There was a place when the request came; the guest may have taken it away.
    let place =
        writer.available_bytes().checked_sub(1).ok_or_else(|| broken("a chain has lost its status"))?;
    let mut last = writer.split_at(place).map_err(broken)?;
    for part in data {
        writer.write_all(part)?;
    }
    last.write_all(&[status as u8])?;
    Ok(writer.bytes_written() as u32 + 1)
}

/// The answer to [`Kind::Name`]: at most 20 bytes, filled up with zeroes.
pub(super) fn name(export: &str) -> [u8; NAME_BYTES] {
    let mut out = [0; NAME_BYTES];
    let len = export.len().min(NAME_BYTES);
    out[..len].copy_from_slice(&export.as_bytes()[..len]);
    out
}
