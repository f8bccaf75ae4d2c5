//! NBD's numbers and headers, as the protocol's document has them (NetworkBlockDevice/nbd, `doc/proto.md`). All are big-endian.

use crate::io::Fault;

/// First word of a server: "NBDMAGIC".
pub const INIT: u64 = 0x4e42_444d_4147_4943;
/// Second word, and first of each option: "IHAVEOPT".
pub const HAVE_OPTION: u64 = 0x4948_4156_454f_5054;
/// First word of an answer to an option.
pub const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
/// First word of a request.
pub const REQUEST: u32 = 0x2560_9513;
/// First word of a simple reply.
pub const SIMPLE_REPLY: u32 = 0x6744_6698;
/// First word of a chunk of a structured reply.
pub const CHUNK: u32 = 0x668e_33ef;

/// Handshake flags of both sides: fixed newstyle; no zeroes behind the answer to the option EXPORT_NAME.
pub const FIXED_NEWSTYLE: u16 = 1;
/// See [`FIXED_NEWSTYLE`].
pub const NO_ZEROES: u16 = 2;

/// Options.
pub mod option {
    #![allow(missing_docs)]
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    pub const INFO: u32 = 6;
    pub const GO: u32 = 7;
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Answers to options.
pub mod reply {
    #![allow(missing_docs)]
    pub const ACK: u32 = 1;
    pub const SERVER: u32 = 2;
    pub const INFO: u32 = 3;
    pub const META_CONTEXT: u32 = 4;
    pub const ERR_UNSUP: u32 = 0x8000_0001;
    pub const ERR_INVALID: u32 = 0x8000_0003;
    pub const ERR_TLS_REQD: u32 = 0x8000_0005;
    pub const ERR_UNKNOWN: u32 = 0x8000_0006;
    pub const ERR_SHUTDOWN: u32 = 0x8000_0007;
    pub const ERR_TOO_BIG: u32 = 0x8000_0009;
}

/// What INFO tells.
pub mod info {
    #![allow(missing_docs)]
    pub const EXPORT: u16 = 0;
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    pub const BLOCK_SIZE: u16 = 3;
}

/// What an export can do.
pub mod can {
    #![allow(missing_docs)]
    pub const HAS_FLAGS: u16 = 1;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const FLUSH: u16 = 1 << 2;
    pub const FUA: u16 = 1 << 3;
    pub const ROTATIONAL: u16 = 1 << 4;
    pub const TRIM: u16 = 1 << 5;
    pub const WRITE_ZEROES: u16 = 1 << 6;
    pub const DF: u16 = 1 << 7;
    pub const MULTI_CONN: u16 = 1 << 8;
    pub const FAST_ZERO: u16 = 1 << 11;
}

/// Commands.
pub mod command {
    #![allow(missing_docs)]
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISCONNECT: u16 = 2;
    pub const FLUSH: u16 = 3;
    pub const TRIM: u16 = 4;
    pub const WRITE_ZEROES: u16 = 6;
    pub const BLOCK_STATUS: u16 = 7;
}

/// Flags of commands.
pub mod flag {
    #![allow(missing_docs)]
    pub const FUA: u16 = 1;
    pub const NO_HOLE: u16 = 1 << 1;
    pub const DF: u16 = 1 << 2;
    pub const REQ_ONE: u16 = 1 << 3;
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// Chunks of structured replies.
pub mod chunk {
    #![allow(missing_docs)]
    pub const DONE: u16 = 1;
    pub const NONE: u16 = 0;
    pub const OFFSET_DATA: u16 = 1;
    pub const BLOCK_STATUS: u16 = 5;
    pub const ERROR: u16 = 0x8001;
}

/// States of the metadata context base:allocation.
pub mod state {
    #![allow(missing_docs)]
    pub const HOLE: u32 = 1;
    pub const ZERO: u32 = 2;
}

/// Errors of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Error {
    /// Not permitted: a write to a read-only export.
    Perm = 1,
    /// The back end failed.
    Io = 5,
    /// Not a request one may make.
    Invalid = 22,
    /// No space left, or a write behind the end.
    NoSpace = 28,
    /// More at once than the export takes.
    Overflow = 75,
    /// The export cannot do that, or not fast.
    NotSupported = 95,
    /// The server is about to end.
    Shutdown = 108,
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        match fault {
            Fault::Io => Error::Io,
            Fault::NoSpace => Error::NoSpace,
            Fault::NotSupported => Error::NotSupported,
            Fault::ReadOnly => Error::Perm,
            Fault::Invalid => Error::Invalid,
        }
    }
}

/// A request without its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Flags.
    pub flags: u16,
    /// Command.
    pub command: u16,
    /// The client's name for it.
    pub cookie: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub bytes: u32,
}

impl Request {
    /// Bytes of a request without its payload.
    pub const SIZE: usize = 28;

    /// Read one; `None`: this is no request.
    pub fn read(header: &[u8; Request::SIZE]) -> Option<Request> {
        (u32_at(header, 0) == REQUEST).then(|| Request {
            flags: u16_at(header, 4),
            command: u16_at(header, 6),
            cookie: u64_at(header, 8),
            offset: u64_at(header, 16),
            bytes: u32_at(header, 24),
        })
    }

    /// As it is sent.
    pub fn to_bytes(&self) -> [u8; Request::SIZE] {
        let mut out = [0; Request::SIZE];
        out[..4].copy_from_slice(&REQUEST.to_be_bytes());
        out[4..6].copy_from_slice(&self.flags.to_be_bytes());
        out[6..8].copy_from_slice(&self.command.to_be_bytes());
        out[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        out[16..24].copy_from_slice(&self.offset.to_be_bytes());
        out[24..].copy_from_slice(&self.bytes.to_be_bytes());
        out
    }
}

/// The number at a place, which is there.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// See [`u16_at`].
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) << 16 | u32::from(u16_at(bytes, at + 2))
}

/// See [`u16_at`].
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) << 32 | u64::from(u32_at(bytes, at + 4))
}
